//! Tenants that start and end while a host is steered, as their control groups do.

use std::collections::BTreeSet;

use weir_model::action::Action;
use weir_model::capability::Unavailable;
use weir_model::machine::TenantChange;
use weir_model::tenant::{self, Work};
use weir_model::units::Nanos;

use super::Host;
use crate::steer::automatic::{Candidate, candidates};
use crate::steer::config::TenantScope;
use crate::steer::release::lock;
use crate::steer::tenant::Tenant;

/// Windows from one search to the next.
const EVERY: u64 = 40;
/// The most refused groups that are remembered: groups start and end as long as the machine runs.
const MOST: usize = 256;

/// The positions of tenants, and when the next search is.
#[derive(Debug, Default)]
pub(super) struct Follow {
    windows: u64,
    /// Groups that could not be tenants, so that each is reported once.
    refused: BTreeSet<String>,
    positions: Vec<Position>,
}

/// A position of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Position {
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

impl Position {
    /// That of a candidate that became a tenant.
    fn found(candidate: &Candidate) -> Self {
        Self::Found {
            group: candidate.group.clone(),
            restrain: candidate.restrain,
        }
    }
}

impl Host {
    /// Adds a tenant, in the last position or in that of one that has ended, and returns the position.
    ///
    /// # Errors
    /// It cannot be found or limited, or overlaps another.
    pub fn adopt(
        &mut self,
        asked: TenantScope,
        place: Option<usize>,
    ) -> Result<usize, Unavailable> {
        let number = place.unwrap_or(self.tenants.len());
        let before = self.config.tenants.clone();
        if number < self.config.tenants.len() {
            self.config.tenants[number] = asked;
        } else {
            self.config.tenants.push(asked);
        }
        let found = Tenant::find_beside(&self.root, &self.config, number, &self.tenants);
        let mut tenant = match found {
            Ok(tenant) => tenant,
            Err(why) => {
                self.config.tenants = before;
                return Err(why);
            }
        };
        if let Some(writes) = &self.writes {
            let mut writes = lock(writes);
            tenant.settle(&self.root, &mut writes, &self.config);
        }
        match self.tenants.get_mut(number) {
            Some(place) => *place = tenant,
            None => self.tenants.push(tenant),
        }
        Ok(number)
    }

    /// Retires a tenant: its limits are removed, it is not observed any more, and its group may belong to another.
    pub fn retire(&mut self, tenant: usize) {
        let Some(name) = self.tenants.get(tenant).map(|own| own.name().to_owned()) else {
            return;
        };
        let name = || name.clone();
        for action in [
            Action::Cores {
                tenant: name(),
                cores: None,
            },
            Action::ProcessorTime {
                tenant: name(),
                share: 1.0,
                period: Nanos(100e6),
            },
            Action::Bandwidth {
                tenant: name(),
                percent: 100,
            },
            Action::Clock {
                tenant: name(),
                clock: None,
            },
        ] {
            // Its group may be gone, and its limits with the group.
            let _ = self.act(&action);
        }
        self.tenants[tenant].retire();
    }

    /// The changes of tenants by the rules of the configuration, if a search is due.
    pub(super) fn follow_groups(&mut self) -> Vec<TenantChange> {
        let Some(rules) = &self.config.automatic else {
            return Vec::new();
        };
        let is_due = self.follow.windows.is_multiple_of(EVERY);
        self.follow.windows += 1;
        if !is_due {
            return Vec::new();
        }
        let candidates = candidates(&self.root, rules);
        self.follow
            .positions
            .resize(self.tenants.len(), Position::Named);
        let mut changes = Vec::new();
        for place in gone(&candidates, &self.follow.positions) {
            self.retire(place);
            self.follow.positions[place] = Position::Free;
            let why = format!(
                "{} has ended, or changes its role",
                self.tenants[place].name()
            );
            changes.push(TenantChange::Ended { place, why });
        }
        for candidate in candidates {
            if !self.follow.positions.contains(&Position::found(&candidate)) {
                changes.extend(self.take_in(&candidate));
            }
        }
        changes
    }

    /// Makes a tenant of a candidate, in a free position or the last.
    fn take_in(&mut self, candidate: &Candidate) -> Option<TenantChange> {
        let (scope, restrain) = (candidate.scope(), candidate.restrain);
        let asked = TenantScope {
            name: scope.to_string(),
            scope: scope.clone(),
            restrain,
        };
        let positions = &mut self.follow.positions;
        let free = positions.iter().position(|known| *known == Position::Free);
        let place = match self.adopt(asked, free) {
            Ok(place) => place,
            Err(why) => {
                let why = format!("cgroup:{} is not a tenant: {why}", candidate.group);
                return self
                    .is_news(candidate)
                    .then_some(TenantChange::Refused { why });
            }
        };
        let found = Position::found(candidate);
        match self.follow.positions.get_mut(place) {
            Some(position) => *position = found,
            None => self.follow.positions.push(found),
        }
        let cpus = self.tenants[place].cpus().to_vec();
        Some(TenantChange::Found {
            place,
            tenant: Box::new(tenant::Tenant::of_host(
                scope.to_string(),
                Work::Scope(scope),
                cpus,
            )),
            restrain,
            why: candidate.why(),
        })
    }

    /// Whether a candidate that could not be a tenant was not reported yet.
    fn is_news(&mut self, refused: &Candidate) -> bool {
        let known = &mut self.follow.refused;
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(refused.group.clone())
    }
}

/// The positions of tenants that are no candidates any more, or have another role.
fn gone(candidates: &[Candidate], positions: &[Position]) -> Vec<usize> {
    let is_gone = |known: &Position| {
        matches!(known, Position::Found { .. })
            && !candidates.iter().any(|c| Position::found(c) == *known)
    };
    let places = positions.iter().enumerate();
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
        fn a_tenant_that_is_found_again_in_its_role_keeps_its_position(
            now in prop::collection::btree_map(0u8..8, any::<bool>(), 0..8),
            before in prop::collection::vec((0u8..8, any::<bool>(), 0u8..3), 0..8),
        ) {
            let now: Vec<Candidate> = now.iter().map(|(&g, &r)| candidate(g, r)).collect();
            let before: Vec<Position> = (before.iter())
                .map(|&(group, restrain, kind)| match kind {
                    0 => Position::Named,
                    1 => Position::Free,
                    _ => Position::found(&candidate(group, restrain)),
                })
                .collect();
            let gone = gone(&now, &before);
            for (place, known) in before.iter().enumerate() {
                let stays = match known {
                    Position::Named | Position::Free => true,
                    found => now.iter().any(|c| Position::found(c) == *found),
                };
                prop_assert_eq!(!stays, gone.contains(&place), "{:?}", known);
            }
        }
    }
}
