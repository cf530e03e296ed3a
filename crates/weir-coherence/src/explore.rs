//! A search over every state that a machine can reach, the shortest first.
//!
//! States that differ only in the numbers of equal parts count once (symmetry reduction, Ip and Dill, "Better verification
//! through symmetry", 1996): a machine names one of them, its canonical state.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use weir_model::stop;

/// What is explored.
pub trait Machine {
    /// A state; equal states have equal futures.
    type State: Clone + Eq + Hash;
    /// What leads from a state to the next.
    type Step: Clone + Debug;

    /// Where the search begins.
    fn first(&self) -> Self::State;

    /// Adds every step that may come next, with the state after it.
    fn next(&self, state: &Self::State, all: &mut Vec<(Self::Step, Self::State)>);

    /// The rule that a state breaks, if it breaks one.
    fn broken(&self, state: &Self::State) -> Option<&'static str>;

    /// One of the states that differ from this only in the numbers of equal parts.
    fn canonical(&self, state: &Self::State) -> Self::State {
        state.clone()
    }

    /// Whether a step begins new work, which need not happen; all other steps continue what is under way.
    fn begins(&self, _: &Self::Step) -> bool {
        false
    }

    /// Whether nothing is under way. `None` where the machine has no such state: then progress is not checked.
    fn rests(&self, _: &Self::State) -> Option<bool> {
        None
    }
}

/// A search that found nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// States, those counted once that differ in the numbers of equal parts.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Steps from the beginning to the state that is the farthest.
    pub depth: u32,
}

/// Why a search ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped<Step> {
    /// A rule is broken.
    Broken(Violation<Step>),
    /// There are more states than were allowed.
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A stop was requested ([`weir_model::stop`]).
    Requested,
}

/// A shortest way to a state in which a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<Step> {
    /// The rule.
    pub rule: &'static str,
    /// Every step from the beginning.
    pub steps: Vec<Step>,
    /// States that were seen until then.
    pub states: usize,
}

/// A state where work is under way and no step continues it.
pub const STUCK: &str = "something waits for a message that is never sent";
/// States from which work may go on for ever.
pub const ENDLESS: &str = "messages go round without end";

/// Folds words with a multiplication: the states of a search are no attack.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

/// States between two looks at whether a stop was requested.
const LOOK: usize = 4096;

type Seen<State> = HashMap<State, u32, BuildHasherDefault<Fold>>;

/// Visits every state.
///
/// Checked in each: the machine's rules; where it knows rest, that a step continues what is under way, and that no cycle
/// of such steps exists. Both together mean that everything under way ends, in whatever order messages arrive.
///
/// # Errors
/// A rule is broken, there are more states than `limit`, or a stop was requested.
pub fn explore<M: Machine>(machine: &M, limit: usize) -> Result<Explored, Stopped<M::Step>> {
    explore_with(machine, limit, &mut |_| ())
}

/// The same; `visited` is told at intervals how many states were visited.
///
/// # Errors
/// As [`explore`].
pub fn explore_with<M: Machine>(
    machine: &M,
    limit: usize,
    visited: &mut dyn FnMut(usize),
) -> Result<Explored, Stopped<M::Step>> {
    let first = machine.canonical(&machine.first());
    let mut seen: Seen<M::State> = HashMap::default();
    seen.insert(first.clone(), 0);
    // The state from which each was reached first, and its distance from the beginning.
    let mut came: Vec<(u32, u32)> = vec![(0, 0)];
    // Steps that continue work: those of state n end at `ends[n]`.
    let (mut ends, mut onward): (Vec<usize>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut waiting = VecDeque::from([first]);
    let mut next = Vec::new();
    let mut steps = 0;
    while let Some(state) = waiting.pop_front() {
        if ends.len() % LOOK == 0 {
            visited(ends.len());
            if stop::requested() {
                return Err(Stopped::Requested);
            }
        }
        let at = ends.len() as u32;
        let broken = |rule, seen: &Seen<M::State>, came: &[(u32, u32)]| {
            Err(Stopped::Broken(Violation {
                rule,
                steps: way(machine, seen, came, at),
                states: seen.len(),
            }))
        };
        if let Some(rule) = machine.broken(&state) {
            return broken(rule, &seen, &came);
        }
        machine.next(&state, &mut next);
        let rests = machine.rests(&state);
        if rests == Some(false) && next.iter().all(|(step, _)| machine.begins(step)) {
            return broken(STUCK, &seen, &came);
        }
        for (step, after) in next.drain(..) {
            steps += 1;
            let after = machine.canonical(&after);
            let new = seen.len() as u32;
            let to = *seen.entry(after).or_insert_with_key(|after| {
                came.push((at, came[at as usize].1 + 1));
                waiting.push_back(after.clone());
                new
            });
            if rests.is_some() && !machine.begins(&step) {
                onward.push(to);
            }
        }
        ends.push(onward.len());
        if seen.len() > limit {
            return Err(Stopped::TooMany { limit });
        }
    }
    if let Some(at) = cycle(&ends, &onward) {
        return Err(Stopped::Broken(Violation {
            rule: ENDLESS,
            steps: way(machine, &seen, &came, at),
            states: seen.len(),
        }));
    }
    Ok(Explored {
        states: seen.len(),
        steps,
        depth: came.last().map_or(0, |came| came.1),
    })
}

/// A state on a cycle, if there is one (Kahn's topological order).
fn cycle(ends: &[usize], onward: &[u32]) -> Option<u32> {
    let of = |at: usize| &onward[at.checked_sub(1).map_or(0, |before| ends[before])..ends[at]];
    let mut before = vec![0_u32; ends.len()];
    for &to in onward {
        before[to as usize] += 1;
    }
    let mut free: Vec<usize> = (0..ends.len()).filter(|&at| before[at] == 0).collect();
    while let Some(at) = free.pop() {
        for &to in of(at) {
            before[to as usize] -= 1;
            if before[to as usize] == 0 {
                free.push(to as usize);
            }
        }
    }
    before.iter().position(|&left| left > 0).map(|at| at as u32)
}

/// The steps to a state. They are found anew from the first state, so that the numbers of equal parts are the same in all.
fn way<M: Machine>(
    machine: &M,
    seen: &Seen<M::State>,
    came: &[(u32, u32)],
    to: u32,
) -> Vec<M::Step> {
    let mut path = Vec::new();
    let mut at = to;
    while at != 0 {
        path.push(at);
        at = came[at as usize].0;
    }
    let mut state = machine.first();
    let mut next = Vec::new();
    let mut steps = Vec::new();
    while let Some(at) = path.pop() {
        machine.next(&state, &mut next);
        let found = next
            .drain(..)
            .find(|(_, after)| seen.get(&machine.canonical(after)) == Some(&at));
        let Some((step, after)) = found else { break };
        steps.push(step);
        state = after;
    }
    steps
}

/// 64 random bits (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Steps that are drawn at random, for machines with too many states.
///
/// # Errors
/// A rule is broken; the steps are those that were drawn.
pub fn walk<M: Machine>(
    machine: &M,
    seed: u64,
    steps: usize,
) -> Result<M::State, Violation<M::Step>> {
    let mut state = machine.first();
    let mut drawn = seed;
    let mut next = Vec::new();
    let mut done = Vec::new();
    for _ in 0..steps {
        machine.next(&state, &mut next);
        let rule = machine.broken(&state).or_else(|| {
            let all = || next.iter().all(|(step, _)| machine.begins(step));
            (machine.rests(&state) == Some(false) && all()).then_some(STUCK)
        });
        if let Some(rule) = rule {
            return Err(Violation {
                rule,
                states: done.len(),
                steps: done,
            });
        }
        if next.is_empty() {
            break;
        }
        let at = split_mix(&mut drawn) % next.len() as u64;
        let (step, after) = next.swap_remove(at as usize);
        next.clear();
        done.push(step);
        state = after;
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of two steps begins at 0, and after the second goes on at the state that is given, if one is.
    struct Work(Option<u32>);

    impl Machine for Work {
        type State = u32;
        type Step = u32;

        fn first(&self) -> u32 {
            0
        }

        fn next(&self, state: &u32, all: &mut Vec<(u32, u32)>) {
            let next = if *state < 2 { Some(state + 1) } else { self.0 };
            all.extend(next.map(|next| (*state, next)));
        }

        fn broken(&self, _: &u32) -> Option<&'static str> {
            None
        }

        fn begins(&self, step: &u32) -> bool {
            *step == 0
        }

        fn rests(&self, state: &u32) -> Option<bool> {
            Some(*state == 0)
        }
    }

    #[test]
    fn work_that_ends_is_counted_and_work_that_stops_or_goes_round_is_found() {
        let explored = Explored {
            states: 3,
            steps: 3,
            depth: 2,
        };
        assert_eq!(explore(&Work(Some(0)), 3), Ok(explored));
        let stopped = Stopped::TooMany { limit: 2 };
        assert_eq!(explore(&Work(Some(0)), 2), Err(stopped));
        for (work, expected) in [(Work(None), STUCK), (Work(Some(1)), ENDLESS)] {
            match explore(&work, 9) {
                Err(Stopped::Broken(found)) => assert_eq!(found.rule, expected),
                other => panic!("{other:?}"),
            }
        }
    }
}
