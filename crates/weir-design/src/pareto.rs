//! Designs that no other dominates.

use std::cmp::Ordering;

/// Whether one list of costs is nowhere higher than another and somewhere lower.
pub fn dominates(one: &[f64], other: &[f64]) -> bool {
    let pairs = || one.iter().zip(other);
    pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
}

/// Which of these lists of costs no other dominates. Equal ones are all on the front.
pub fn front(costs: &[&[f64]]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    // Nothing dominates what comes before it in the order of words.
    order.sort_by(|&a, &b| lexicographic(costs[a], costs[b]));
    let mut found: Vec<usize> = Vec::new();
    let mut on = vec![false; costs.len()];
    for at in order {
        if !found.iter().any(|&own| dominates(costs[own], costs[at])) {
            found.push(at);
            on[at] = true;
        }
    }
    on
}

fn lexicographic(one: &[f64], other: &[f64]) -> Ordering {
    let unequal = one.iter().zip(other).map(|(a, b)| a.total_cmp(b));
    let mut unequal = unequal.filter(|order| order.is_ne());
    unequal.next().unwrap_or(Ordering::Equal)
}

/// How many others dominate each list of costs (Fonseca and Fleming, ICGA 1993), as lists are added.
#[derive(Debug, Clone, Default)]
pub struct Ranks {
    costs: Vec<Vec<f64>>,
    ranks: Vec<f64>,
}

impl Ranks {
    /// Adds a list of costs.
    pub fn add(&mut self, costs: Vec<f64>) {
        let mut rank = 0.0;
        for (own, place) in self.costs.iter().zip(&mut self.ranks) {
            if dominates(own, &costs) {
                rank += 1.0;
            } else if dominates(&costs, own) {
                *place += 1.0;
            }
        }
        self.costs.push(costs);
        self.ranks.push(rank);
    }

    /// The rank of each, in the order in which they were added; 0 on the front.
    pub fn all(&self) -> &[f64] {
        &self.ranks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn costs() -> impl Strategy<Value = Vec<Vec<f64>>> {
        let one = proptest::collection::vec((0_u8..12).prop_map(f64::from), 3);
        proptest::collection::vec(one, 1..40)
    }

    fn of(costs: &[Vec<f64>]) -> Vec<bool> {
        front(&costs.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn members_are_dominated_by_nobody_and_all_others_by_a_member(costs in costs()) {
            let on = of(&costs);
            for (at, own) in costs.iter().enumerate() {
                let by_any = costs.iter().any(|other| dominates(other, own));
                prop_assert_eq!(on[at], !by_any);
                let by_member = (costs.iter().zip(&on)).any(|(c, on)| *on && dominates(c, own));
                prop_assert!(on[at] || by_member);
            }
        }

        #[test]
        fn the_order_and_monotone_scales_change_nothing(costs in costs(), turn in 0_usize..40) {
            let on = of(&costs);
            let mut turned = costs.clone();
            turned.rotate_left(turn % costs.len());
            let mut expected = on.clone();
            expected.rotate_left(turn % costs.len());
            prop_assert_eq!(of(&turned), expected);
            let scaled: Vec<Vec<f64>> = (costs.iter())
                .map(|own| vec![own[0].exp(), own[1] * 7.0 - 3.0, own[2].powi(3)])
                .collect();
            prop_assert_eq!(of(&scaled), on);
        }

        #[test]
        fn rank_zero_is_the_front(costs in costs()) {
            let mut ranks = Ranks::default();
            costs.iter().for_each(|own| ranks.add(own.clone()));
            let on: Vec<bool> = ranks.all().iter().map(|rank| *rank == 0.0).collect();
            prop_assert_eq!(on, of(&costs));
        }
    }
}
