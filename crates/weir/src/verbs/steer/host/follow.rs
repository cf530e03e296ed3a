//! Tenants that nobody named, as their control groups come and go.

use std::collections::BTreeSet;

use weir_linux::steer::automatic::Rules;
use weir_linux::steer::{Candidate, Host};
use weir_steer::config::Automatic;
use weir_steer::scope::Scope;

/// Windows from one look to the next.
const EVERY: u64 = 40;
/// Tenants that are followed at most: what is seen of each costs some microseconds a window.
const MOST: usize = 256;

/// How tenants are found, and when it is looked again.
pub struct Follow {
    rules: Rules,
    windows: u64,
    /// Groups that could not be tenants, so that each is told once.
    refused: BTreeSet<String>,
}

/// Who has a place among a host's tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// Somebody named it.
    Named,
    /// It was found.
    Found {
        /// Its control group.
        group: String,
        /// Whether it may be held.
        restrain: bool,
    },
    /// It has gone, and another may have its place.
    Free,
}

impl Followed {
    /// A candidate that became a tenant.
    pub fn found(candidate: &Candidate) -> Self {
        Self::Found {
            group: candidate.group.clone(),
            restrain: candidate.restrain,
        }
    }
}

impl Follow {
    /// By these rules.
    pub fn new(automatic: &Automatic, slow_nodes: Vec<u32>) -> Self {
        let path = |scope: &Scope| match scope {
            Scope::Cgroup(path) => Some(path.clone()),
            _ => None,
        };
        Self {
            rules: Rules {
                slow_nodes,
                slow_share: automatic.slow.get(),
                least: automatic.least,
                exclude: automatic.exclude.iter().filter_map(path).collect(),
                most: MOST,
            },
            windows: 0,
            refused: BTreeSet::new(),
        }
    }

    /// The candidates, if it is time to look; a window passes.
    pub fn look(&mut self, host: &Host) -> Option<Vec<Candidate>> {
        let is_due = self.windows.is_multiple_of(EVERY);
        self.windows += 1;
        is_due.then(|| host.candidates(&self.rules))
    }

    /// Whether a candidate that could not be a tenant was not told yet.
    pub fn is_news(&mut self, refused: &Candidate) -> bool {
        // Groups come and go for as long as the machine runs.
        if self.refused.len() >= MOST {
            self.refused.clear();
        }
        self.refused.insert(refused.group.clone())
    }
}

/// The places whose tenants are no candidates any more, or are for another role.
pub fn gone(candidates: &[Candidate], followed: &[Followed]) -> Vec<usize> {
    let is_gone = |known: &Followed| {
        matches!(known, Followed::Found { .. })
            && !candidates.iter().any(|c| Followed::found(c) == *known)
    };
    let places = followed.iter().enumerate();
    places
        .filter(|(_, known)| is_gone(known))
        .map(|(place, _)| place)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::units::Bytes;

    use super::*;

    fn candidate(group: u8, restrain: bool) -> Candidate {
        Candidate {
            group: format!("/g{group}"),
            restrain,
            slow: Bytes(0),
            all: Bytes(1),
        }
    }

    proptest! {
        #[test]
        fn whoever_is_found_again_in_its_role_keeps_its_place(
            now in prop::collection::btree_map(0u8..8, any::<bool>(), 0..8),
            before in prop::collection::vec((0u8..8, any::<bool>(), 0u8..3), 0..8),
        ) {
            let now: Vec<Candidate> = now.iter().map(|(&g, &r)| candidate(g, r)).collect();
            let before: Vec<Followed> = (before.iter())
                .map(|&(group, restrain, kind)| match kind {
                    0 => Followed::Named,
                    1 => Followed::Free,
                    _ => Followed::found(&candidate(group, restrain)),
                })
                .collect();
            let gone = gone(&now, &before);
            for (place, known) in before.iter().enumerate() {
                let stays = match known {
                    Followed::Named | Followed::Free => true,
                    found => now.iter().any(|c| Followed::found(c) == *found),
                };
                prop_assert_eq!(!stays, gone.contains(&place), "{:?}", known);
            }
        }
    }
}
