//! Moves of pages that an action requests, for a machine that has numbers of its own for tiers.

use crate::machine::MachineError;
use crate::region::Pages;
use crate::tenant::Placement;
use crate::topology::TierName;
use crate::units::GbPerSec;

/// Where an action moves pages.
#[derive(Debug, Clone, Copy)]
pub enum Destination<'a> {
    /// From one tier to another.
    Between(&'a TierName, &'a TierName),
    /// To the tiers of a placement.
    Place(&'a Placement),
}

/// A request to move pages of a tenant.
#[derive(Debug, Clone, Copy)]
pub struct MoveRequest<'a> {
    /// Which pages.
    pub pages: &'a Pages,
    /// Where they go.
    pub destination: Destination<'a>,
    /// At most this many bytes a second.
    pub limit: Option<GbPerSec>,
}

/// A destination by the machine's numbers `N` of its tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<N> {
    /// Pages on one tier move to another.
    Between {
        /// The tier that they leave.
        from: N,
        /// The tier that they reach.
        to: N,
    },
    /// Pages are distributed in turn, by weights above zero.
    Weights(Vec<(N, u64)>),
}

impl MoveRequest<'_> {
    /// The requested bytes of a region: the first, and the first one behind the last.
    pub fn range(&self) -> (u64, u64) {
        match self.pages {
            Pages::All | Pages::Region(_) => (0, u64::MAX),
            Pages::Range { offset, bytes, .. } => {
                (offset.get(), offset.get().saturating_add(bytes.get()))
            }
        }
    }

    /// The target of each requested region, with the region's position. `regions` are all of the tenant's, each with
    /// its name and the tier that is local to its cores; `number` is the machine's number of a tier.
    ///
    /// # Errors
    /// There is no such region or tier, or the limit is not a rate.
    pub fn targets<'r, N>(
        &self,
        regions: impl Iterator<Item = (usize, &'r str, &'r TierName)>,
        number: impl Fn(&TierName) -> Result<N, MachineError>,
    ) -> Result<Vec<(usize, Target<N>)>, MachineError> {
        let is_rate = |limit: &GbPerSec| limit.get().is_finite() && limit.get() > 0.0;
        if let Some(limit) = self.limit.filter(|limit| !is_rate(limit)) {
            return Err(MachineError::Request(format!(
                "pages cannot move at {limit}; give a limit above zero, or none"
            )));
        }
        let wanted = match self.pages {
            Pages::All => None,
            Pages::Region(name) | Pages::Range { region: name, .. } => Some(name.as_str()),
        };
        let (mut names, mut targets) = (Vec::new(), Vec::new());
        for (position, name, local) in regions {
            names.push(name);
            if wanted.is_none_or(|wanted| wanted == name) {
                targets.push((position, self.target(local, &number)?));
            }
        }
        if targets.is_empty() {
            return Err(MachineError::Request(match wanted {
                Some(name) => format!(
                    "the tenant has no region `{name}`; its regions are: {}",
                    names.join(", ")
                ),
                None => "the tenant has no pages that can be moved".into(),
            }));
        }
        Ok(targets)
    }

    fn target<N>(
        &self,
        local: &TierName,
        number: impl Fn(&TierName) -> Result<N, MachineError>,
    ) -> Result<Target<N>, MachineError> {
        Ok(match self.destination {
            Destination::Between(from, to) => Target::Between {
                from: number(from)?,
                to: number(to)?,
            },
            Destination::Place(placement) => {
                let weights = placement.weights(local);
                let weights = weights.iter().filter(|(_, weight)| *weight > 0);
                let weights = weights.map(|(tier, weight)| Ok((number(tier)?, u64::from(*weight))));
                Target::Weights(weights.collect::<Result<_, MachineError>>()?)
            }
        })
    }
}

impl<N: Copy + PartialEq> Target<N> {
    /// The tier to which a page on tier `now` moves; `None` if it stays. `page` is its number in its array.
    pub fn of(&self, now: N, page: u64) -> Option<N> {
        let to = match self {
            Target::Between { from, to } => (now == *from).then_some(*to),
            Target::Weights(weights) => {
                let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
                let mut turn = page % total.max(1);
                let mut tiers = weights.iter();
                let found = tiers.find(|(_, weight)| match turn.checked_sub(*weight) {
                    Some(rest) => {
                        turn = rest;
                        false
                    }
                    None => true,
                });
                found.map(|(tier, _)| *tier)
            }
        };
        to.filter(|to| *to != now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Bytes;

    #[test]
    fn a_range_ends_behind_its_bytes() {
        let range = |offset, bytes| {
            let pages = Pages::Range {
                region: "a".into(),
                offset: Bytes(offset),
                bytes: Bytes(bytes),
            };
            let request = MoveRequest {
                pages: &pages,
                destination: Destination::Place(&Placement::FirstTouch),
                limit: None,
            };
            request.range()
        };
        assert_eq!(range(4096, 8192), (4096, 12_288));
        assert_eq!(range(4096, u64::MAX), (4096, u64::MAX));
    }

    proptest! {
        #[test]
        fn a_round_of_pages_has_each_tier_as_often_as_its_weight(
            weights in prop::collection::vec(1u64..9, 1..5),
            round in 0u64..1000,
        ) {
            let numbered: Vec<(usize, u64)> = weights.iter().copied().enumerate().collect();
            let total: u64 = weights.iter().sum();
            let target = Target::Weights(numbered);
            // No page is on this tier, so each of them moves.
            let nowhere = weights.len();
            let mut found = vec![0u64; weights.len()];
            for page in round * total..(round + 1) * total {
                found[target.of(nowhere, page).unwrap()] += 1;
            }
            prop_assert_eq!(found, weights);
        }
    }
}
