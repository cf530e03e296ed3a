//! The checks in words: what is explored, by name, with planted mistakes.

use weir_model::stop;

use crate::explore::{Explored, Machine, Stopped, explore_with, walk};
use crate::hdm_db::{self, Shared};
use crate::type2::{self, Kind, Type2};

/// A mistake that can be planted in one of the protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// In memory that hosts share.
    Shared(hdm_db::Fault),
    /// Between a host and a device that caches.
    Type2(type2::Fault),
}

impl Fault {
    /// Every one.
    pub fn all() -> Vec<Self> {
        let shared = hdm_db::Fault::ALL.map(Fault::Shared);
        shared
            .into_iter()
            .chain(type2::Fault::ALL.map(Fault::Type2))
            .collect()
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Shared(fault) => fault.name(),
            Fault::Type2(fault) => fault.name(),
        }
    }
}

impl std::str::FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = Self::all();
        let names: Vec<&str> = all.iter().map(|fault| fault.name()).collect();
        (all.iter().find(|fault| fault.name() == text).copied()).ok_or_else(|| {
            format!(
                "no mistake is called `{text}`; known are {}",
                names.join(", ")
            )
        })
    }
}

/// A protocol with its bounds, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What was explored.
    pub what: String,
    /// The planted mistake.
    pub fault: Option<&'static str>,
    /// States that were seen.
    pub states: u64,
    /// Steps between them; none where a rule is broken, since not all were followed.
    pub steps: Option<u64>,
    /// The rule that is broken, and the shortest way there.
    pub broken: Option<(&'static str, Vec<String>)>,
}

fn checked<M: Machine>(
    what: String,
    fault: Option<&'static str>,
    machine: &M,
    visited: &mut dyn FnMut(usize),
) -> Option<Checked>
where
    M::Step: std::fmt::Display,
{
    // The largest of these machines has half a million states.
    let (states, steps, broken) = match explore_with(machine, 20_000_000, visited) {
        Ok(Explored { states, steps, .. }) => (states, Some(steps as u64), None),
        Err(Stopped::TooMany { limit }) => {
            (limit, None, Some(("more states than expected", Vec::new())))
        }
        Err(Stopped::Requested) => return None,
        Err(Stopped::Broken(found)) => {
            let steps = found.steps.iter().map(ToString::to_string).collect();
            (found.states, None, Some((found.rule, steps)))
        }
    };
    Some(Checked {
        what,
        fault,
        states: states as u64,
        steps,
        broken,
    })
}

fn of_hosts<const H: usize, const L: usize>(
    filter: usize,
    fault: Option<hdm_db::Fault>,
    visited: &mut dyn FnMut(usize),
) -> Option<Checked> {
    let lines = if L == 1 { "line" } else { "lines" };
    let what = format!("HDM-DB: {H} hosts, {L} {lines}, filter of {filter}");
    checked(
        what,
        fault.map(hdm_db::Fault::name),
        &Shared::<H, L> { filter, fault },
        visited,
    )
}

fn of_type2(
    kind: Kind,
    fault: Option<type2::Fault>,
    visited: &mut dyn FnMut(usize),
) -> Option<Checked> {
    let what = match kind {
        Kind::Host => "CXL.cache: a line of the host",
        Kind::Device => "HDM-D: a line of the device",
    };
    checked(
        what.into(),
        fault.map(type2::Fault::name),
        &Type2 { kind, fault },
        visited,
    )
}

/// A check of a protocol as it is, which is told at intervals how many states were visited; `None` if a stop was requested
/// meanwhile.
pub type Check = fn(&mut dyn FnMut(usize)) -> Option<Checked>;

/// Checks of the protocols as they are, with the states that each has.
pub const ALL: [(Check, u64); 5] = [
    (host_line, 283),
    (device_line, 221),
    (three_hosts, 17_314),
    (small_filter, 308_552),
    (filter, 907_320),
];

fn host_line(visited: &mut dyn FnMut(usize)) -> Option<Checked> {
    of_type2(Kind::Host, None, visited)
}

fn device_line(visited: &mut dyn FnMut(usize)) -> Option<Checked> {
    of_type2(Kind::Device, None, visited)
}

fn three_hosts(visited: &mut dyn FnMut(usize)) -> Option<Checked> {
    of_hosts::<3, 1>(1, None, visited)
}

fn small_filter(visited: &mut dyn FnMut(usize)) -> Option<Checked> {
    of_hosts::<2, 2>(1, None, visited)
}

fn filter(visited: &mut dyn FnMut(usize)) -> Option<Checked> {
    of_hosts::<2, 2>(2, None, visited)
}

/// Checks a protocol with a planted mistake, in the smallest machine that shows it; `None` if a stop was requested
/// meanwhile.
pub fn with(fault: Fault) -> Option<Checked> {
    let visited = &mut |_| ();
    match fault {
        Fault::Shared(fault) => of_hosts::<2, 2>(1, Some(fault), visited),
        Fault::Type2(fault @ (type2::Fault::BogusData | type2::Fault::SnoopPassesGo)) => {
            of_type2(Kind::Host, Some(fault), visited)
        }
        Fault::Type2(fault) => of_type2(Kind::Device, Some(fault), visited),
    }
}

/// Walks of eight hosts and six lines with a filter of two entries, whose steps are drawn at random, others for each
/// `seed`; `walked` is called after each walk. `None` if a stop was requested meanwhile.
pub fn walks(seed: u64, count: u64, steps: usize, walked: &mut dyn FnMut()) -> Option<Checked> {
    drawn(None, seed, count, steps, walked)
}

fn drawn(
    fault: Option<hdm_db::Fault>,
    seed: u64,
    count: u64,
    steps: usize,
    walked: &mut dyn FnMut(),
) -> Option<Checked> {
    let machine = Shared::<8, 6> { filter: 2, fault };
    let mut failed = None;
    for at in 0..count {
        if stop::requested() {
            return None;
        }
        // Walks of one seed are not those of the next.
        let own = seed.wrapping_mul(1_000_003).wrapping_add(at);
        if let Err(found) = walk(&machine, own, steps) {
            failed = Some(found);
            break;
        }
        walked();
    }
    let words = if count == 1 { "walk" } else { "walks" };
    Some(Checked {
        what: format!("HDM-DB: 8 hosts, 6 lines, filter of 2, {count} random {words}"),
        fault: None,
        states: count * steps as u64,
        steps: Some(count * steps as u64),
        broken: failed.map(|found| {
            let steps = found.steps.iter().map(ToString::to_string).collect();
            (found.rule, steps)
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_of_another_seed_take_other_steps() {
        let way = |seed| {
            let fault = Some(hdm_db::Fault::NoWait);
            let checked = drawn(fault, seed, 50, 2_000, &mut || ()).unwrap();
            checked.broken.expect("the mistake is found").1
        };
        assert_eq!(way(1), way(1));
        assert_ne!(way(1), way(2));
    }
}
