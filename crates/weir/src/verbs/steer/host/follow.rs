//! Automatic tenants, as their control groups start and end.

use std::collections::BTreeSet;

use weir_linux::steer::automatic::Rules;
use weir_linux::steer::{Candidate, Host};
use weir_steer::config::Automatic;
use weir_steer::scope::Scope;

/// Windows from one search to the next.
const EVERY: u64 = 40;
/// The most tenants that are followed: the observation of each costs some microseconds a window.
const MOST: usize = 256;

/// The rules of the search, and when the next search is.
pub struct Follow {
    rules: Rules,
    windows: u64,
    /// Groups that could not be tenants, so that each is reported once.
    refused: BTreeSet<String>,
}

/// The positions of a host's tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// A tenant that was named.
    Named,
    /// A tenant that was found.
    Found {
        /// Its control group.
        group: String,
        /// Whether it may be limited.
        restrain: bool,
    },
    /// It has ended, and another may take its position.
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
    /// A search with these rules.
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

    /// The candidates, if a search is due; a window passes.
    pub fn look(&mut self, host: &Host) -> Option<Vec<Candidate>> {
        let is_due = self.windows.is_multiple_of(EVERY);
        self.windows += 1;
        is_due.then(|| host.candidates(&self.rules))
    }

    /// Whether a candidate that could not be a tenant was not reported yet.
    pub fn is_news(&mut self, refused: &Candidate) -> bool {
        // Groups start and end as long as the machine runs.
        if self.refused.len() >= MOST {
            self.refused.clear();
        }
        self.refused.insert(refused.group.clone())
    }
}

/// The positions of tenants that are no candidates any more, or have another role.
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
