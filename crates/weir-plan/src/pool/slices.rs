//! Which VM owns which slice of a pool: the protocol as a state machine, and a checker of all its interleavings.
//!
//! A manager gives slices to hosts and takes them back (Pond, section 4.2). The paper does not say when a slice is
//! scrubbed, what a crash of the manager leaves, or whether the device's permission comes before the host's use. Here:
//!
//! - add: the device's permission is set, then the host brings the slice online;
//! - release: the host takes it offline, then the permission is cleared, then the slice is scrubbed, then it is free;
//! - crash of a host: once the manager has noticed, its slices go the same way; until then the host does not join again;
//! - crash of the manager: hosts keep what they have; a new manager reads the device's table and asks again.
//!
//! Held at every step: a slice is online at one host at most, and only at the host that the device permits; and no host
//! is permitted on a slice that has another's data.

use weir_coherence::explore::{Machine, Stopped, explore};

weir_model::named! {
    /// The order of steps. All but the first are wrong, and are there so that the checker can be tested.
    pub enum Order {
        /// As above.
        Right = "right",
        /// The permission is cleared before the host has taken the slice offline.
        ClearFirst = "clear first",
        /// The host brings the slice online before it is permitted.
        OnlineFirst = "online first",
        /// A slice is free as soon as its permission is cleared.
        WithoutScrub = "without scrub",
        /// A host joins again before the manager has noticed that it crashed.
        JoinAtOnce = "join at once",
    }
}

/// A host, by number.
pub type Host = u8;

/// What the manager does with a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Free,
    Adding(Host),
    Owned(Host),
    Releasing(Host),
    Clearing,
    Scrubbing,
}

/// A message between manager and host; there is one at most for a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Message {
    Online(Host),
    IsOnline(Host),
    Offline(Host),
    IsOffline(Host),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Slice {
    /// The host that the device permits.
    permitted: Option<Host>,
    /// Whose data it has.
    data: Option<Host>,
    /// Hosts at which it is online, a bit each.
    online: u64,
    stage: Stage,
    message: Option<Message>,
}

/// Hosts, manager, and slices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    slices: Vec<Slice>,
    hosts: Host,
    /// Hosts that run, a bit each.
    up: u64,
    /// Hosts whose crash the manager has not noticed.
    unnoticed: u64,
    manager: bool,
}

/// One step, in words.
pub type Step = String;

fn bit(host: Host) -> u64 {
    1 << host
}

impl State {
    /// Free slices and hosts that run; at most 64 hosts.
    pub fn new(slices: usize, hosts: Host) -> Self {
        let slice = Slice {
            permitted: None,
            data: None,
            online: 0,
            stage: Stage::Free,
            message: None,
        };
        let hosts = hosts.min(64);
        Self {
            slices: vec![slice; slices],
            hosts,
            up: (0..hosts).map(bit).fold(0, |all, bit| all | bit),
            unnoticed: 0,
            manager: true,
        }
    }

    /// The rule that is broken, if one is.
    pub fn broken(&self) -> Option<&'static str> {
        self.slices.iter().find_map(|slice| {
            let permitted = slice.permitted.map_or(0, bit);
            if slice.online.count_ones() > 1 {
                Some("a slice has two owners")
            } else if slice.online & !permitted != 0 {
                Some("a host uses a slice that the device does not permit")
            } else if slice.permitted.is_some()
                && slice.data.is_some()
                && slice.data != slice.permitted
            {
                Some("a slice is given away with another's data")
            } else {
                None
            }
        })
    }

    /// Every step that may come next, with the state after it.
    pub fn next(&self, order: Order) -> Vec<(Step, State)> {
        let mut all = Vec::new();
        for at in 0..self.slices.len() {
            self.of_slice(at, order, &mut all);
        }
        for host in 0..self.hosts {
            self.of_host(host, order, &mut all);
        }
        if self.manager {
            all.push(("the manager crashes".into(), self.manager_crashed()));
        } else {
            all.push((
                "a new manager reads the device's table".into(),
                self.manager_again(),
            ));
        }
        all
    }

    fn with(&self, at: usize, change: impl FnOnce(&mut Slice)) -> State {
        let mut state = self.clone();
        if let Some(slice) = state.slices.get_mut(at) {
            change(slice);
        }
        state
    }

    fn of_slice(&self, at: usize, order: Order, all: &mut Vec<(Step, State)>) {
        let slice = self.slices[at];
        let mut step =
            |what: String, state: State| all.push((format!("slice {at}: {what}"), state));
        if self.manager {
            match (slice.stage, slice.message) {
                (Stage::Free, _) => {
                    // The manager gives nothing to a host whose crash is not settled.
                    let settled = match order {
                        Order::JoinAtOnce => self.up,
                        _ => self.up & !self.unnoticed,
                    };
                    for host in (0..self.hosts).filter(|host| settled & bit(*host) != 0) {
                        let added = self.with(at, |slice| {
                            if order != Order::OnlineFirst {
                                slice.permitted = Some(host);
                            }
                            slice.stage = Stage::Adding(host);
                            slice.message = Some(Message::Online(host));
                        });
                        step(format!("add to host {host}"), added);
                    }
                }
                (Stage::Adding(host), Some(Message::IsOnline(_))) => {
                    let owned = self.with(at, |slice| {
                        slice.permitted = Some(host);
                        slice.stage = Stage::Owned(host);
                        slice.message = None;
                    });
                    step(format!("host {host} owns it"), owned);
                }
                (Stage::Owned(host), _) => {
                    let releasing = self.with(at, |slice| {
                        if order == Order::ClearFirst {
                            slice.permitted = None;
                        }
                        slice.stage = Stage::Releasing(host);
                        slice.message = Some(Message::Offline(host));
                    });
                    step(format!("release from host {host}"), releasing);
                }
                (Stage::Releasing(_), Some(Message::IsOffline(_))) => {
                    let clearing = self.with(at, |slice| {
                        slice.stage = Stage::Clearing;
                        slice.message = None;
                    });
                    step("the host has taken it offline".into(), clearing);
                }
                (Stage::Clearing, _) => {
                    let cleared = self.with(at, |slice| {
                        slice.permitted = None;
                        slice.stage = match order {
                            Order::WithoutScrub => Stage::Free,
                            _ => Stage::Scrubbing,
                        };
                    });
                    step("permission cleared".into(), cleared);
                }
                (Stage::Scrubbing, _) => {
                    let scrubbed = self.with(at, |slice| {
                        slice.data = None;
                        slice.stage = Stage::Free;
                    });
                    step("scrubbed".into(), scrubbed);
                }
                _ => {}
            }
        }
        match slice.message {
            Some(Message::Online(host)) if self.up & bit(host) != 0 => {
                let online = self.with(at, |slice| {
                    slice.online |= bit(host);
                    slice.data = Some(host);
                    slice.message = Some(Message::IsOnline(host));
                });
                step(format!("host {host} brings it online and writes"), online);
            }
            Some(Message::Offline(host)) if self.up & bit(host) != 0 => {
                let offline = self.with(at, |slice| {
                    slice.online &= !bit(host);
                    slice.message = Some(Message::IsOffline(host));
                });
                step(format!("host {host} takes it offline"), offline);
            }
            _ => {}
        }
    }

    fn of_host(&self, host: Host, order: Order, all: &mut Vec<(Step, State)>) {
        let mut state = self.clone();
        if self.up & bit(host) != 0 {
            state.up &= !bit(host);
            state.unnoticed |= bit(host);
            for slice in &mut state.slices {
                slice.online &= !bit(host);
                // What was sent to it is lost; what it had sent still arrives.
                if matches!(slice.message, Some(Message::Online(to) | Message::Offline(to)) if to == host)
                {
                    slice.message = None;
                }
            }
            all.push((format!("host {host} crashes"), state));
        } else if self.unnoticed & bit(host) == 0 || order == Order::JoinAtOnce {
            state.up |= bit(host);
            all.push((format!("host {host} joins again"), state));
        }
        if self.manager && self.unnoticed & bit(host) != 0 {
            all.push((
                format!("the crash of host {host} is noticed"),
                self.noticed(host),
            ));
        }
    }

    /// All slices of a host that crashed go back.
    fn noticed(&self, host: Host) -> State {
        let mut state = self.clone();
        state.unnoticed &= !bit(host);
        for slice in &mut state.slices {
            if matches!(slice.stage, Stage::Adding(of) | Stage::Owned(of) | Stage::Releasing(of) if of == host)
            {
                slice.stage = Stage::Clearing;
                slice.message = None;
            }
        }
        state
    }

    /// What the manager knew and what was under way is lost; hosts and device keep theirs.
    fn manager_crashed(&self) -> State {
        let mut state = self.clone();
        state.manager = false;
        for slice in &mut state.slices {
            slice.message = None;
        }
        state
    }

    fn manager_again(&self) -> State {
        let mut state = self.clone();
        state.manager = true;
        // Hosts that are down are seen again; those that joined are known to.
        state.unnoticed = 0;
        for slice in &mut state.slices {
            (slice.stage, slice.message) = match slice.permitted {
                Some(host) if self.up & bit(host) != 0 => {
                    (Stage::Adding(host), Some(Message::Online(host)))
                }
                Some(_) => (Stage::Clearing, None),
                None if slice.data.is_some() => (Stage::Clearing, None),
                None => (Stage::Free, None),
            };
        }
        state
    }
}

/// Slices and hosts whose steps come in some order.
struct Slices {
    first: State,
    order: Order,
}

impl Machine for Slices {
    type State = State;
    type Step = Step;

    fn first(&self) -> State {
        self.first.clone()
    }

    fn next(&self, state: &State, all: &mut Vec<(Step, State)>) {
        all.extend(state.next(self.order));
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        state.broken()
    }
}

/// States that are explored at most: 64 slices and hosts have more than any machine can visit.
const MOST_STATES: usize = 10_000_000;

/// Every state that can be reached, and the shortest way to a violation if there is one.
///
/// # Errors
/// A rule is broken, or there are too many states.
pub fn check(slices: usize, hosts: Host, order: Order) -> Result<usize, Stopped<Step>> {
    let first = State::new(slices, hosts);
    explore(&Slices { first, order }, MOST_STATES).map(|found| found.states)
}

/// Every stage with those that may follow it while the manager lives, by name.
#[cfg(test)]
pub(super) fn stages() -> std::collections::BTreeSet<(&'static str, &'static str)> {
    let name = |stage| match stage {
        Stage::Free => "free",
        Stage::Adding(_) => "adding",
        Stage::Owned(_) => "owned",
        Stage::Releasing(_) => "releasing",
        Stage::Clearing => "clearing",
        Stage::Scrubbing => "scrubbing",
    };
    let mut found = std::collections::BTreeSet::new();
    let mut seen = std::collections::HashSet::from([State::new(1, 2)]);
    let mut waiting: Vec<State> = seen.iter().cloned().collect();
    while let Some(state) = waiting.pop() {
        for (_, next) in state.next(Order::Right) {
            let [from, to] = [&state, &next].map(|state| name(state.slices[0].stage));
            if state.manager && from != to {
                found.insert((from, to));
            }
            if seen.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use proptest::prelude::*;
    use weir_model::random::Random;

    #[test]
    fn no_interleaving_of_the_right_order_breaks_a_rule() {
        for (slices, hosts) in [(1, 1), (1, 2), (1, 3), (2, 2)] {
            let states =
                check(slices, hosts, Order::Right).unwrap_or_else(|found| panic!("{found:?}"));
            assert!(states > 10, "{states}");
        }
    }

    #[test]
    fn each_wrong_order_is_found_with_the_way_there() {
        for order in Order::ALL
            .into_iter()
            .filter(|order| *order != Order::Right)
        {
            let Err(Stopped::Broken(found)) = check(1, 2, order) else {
                panic!("{order} is not found");
            };
            assert!(!found.steps.is_empty(), "{order}");
            match order {
                Order::WithoutScrub => {
                    assert_eq!(found.rule, "a slice is given away with another's data");
                }
                Order::ClearFirst => assert_eq!(
                    found.rule,
                    "a host uses a slice that the device does not permit"
                ),
                _ => {}
            }
        }
    }

    /// From every state all slices can become free again: nothing is lost for good.
    #[test]
    fn no_slice_is_lost() {
        let mut states = vec![State::new(1, 2)];
        let mut seen: HashSet<State> = states.iter().cloned().collect();
        let mut before: HashMap<State, Vec<State>> = HashMap::new();
        while let Some(state) = states.pop() {
            for (_, next) in state.next(Order::Right) {
                before.entry(next.clone()).or_default().push(state.clone());
                if seen.insert(next.clone()) {
                    states.push(next);
                }
            }
        }
        let mut back: HashSet<State> = HashSet::from([State::new(1, 2)]);
        let mut waiting: Vec<State> = back.iter().cloned().collect();
        while let Some(state) = waiting.pop() {
            for earlier in before.get(&state).into_iter().flatten() {
                if back.insert(earlier.clone()) {
                    waiting.push(earlier.clone());
                }
            }
        }
        assert_eq!(back.len(), seen.len());
    }

    fn walk(order: Order, seed: u64, steps: usize) -> Option<&'static str> {
        let mut random = Random::new(seed);
        let mut state = State::new(12, 6);
        for _ in 0..steps {
            let next = state.next(order);
            let at = (random.share() * next.len() as f64) as usize;
            state = next.into_iter().nth(at)?.1;
            if let Some(rule) = state.broken() {
                return Some(rule);
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn many_slices_and_hosts_keep_the_rules(seed: u64) {
            prop_assert_eq!(walk(Order::Right, seed, 400), None);
            prop_assert!(walk(Order::WithoutScrub, seed, 4000).is_some());
        }
    }
}
