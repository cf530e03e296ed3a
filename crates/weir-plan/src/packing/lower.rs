//! Lower bounds on the bins of a packing, per dimension: volume, and dual-feasible functions.
//!
//! A dual-feasible function maps sizes to sizes such that what fits into one bin still sums up to at most one. The sum
//! over all items is then a lower bound. Used are u(k) of Fekete and Schepers (New Classes of Fast Lower Bounds for Bin
//! Packing Problems, 2001), and the bound L2 of Martello and Toth.

use super::bins::{Kind, Shape};

/// The largest k of u(k).
const MOST: u64 = 64;

/// No packing has fewer bins.
pub fn bound(kinds: &[Kind], bin: Shape) -> u64 {
    let of = |size: fn(Shape) -> u64| {
        let items: Vec<(u64, u64)> = kinds
            .iter()
            .map(|kind| (size(kind.shape), kind.count))
            .collect();
        one_dimension(&items, size(bin))
    };
    of(|shape| shape.cores).max(of(|shape| shape.memory))
}

/// The bound for sizes with their counts.
fn one_dimension(items: &[(u64, u64)], bin: u64) -> u64 {
    let volume: u128 = items
        .iter()
        .map(|&(size, count)| u128::from(size) * u128::from(count))
        .sum();
    let volume = ceil(volume, u128::from(bin));
    let by_steps = (1..=MOST).map(|k| stepped(items, bin, k)).max();
    volume.max(by_steps.unwrap_or(0)).max(l2(items, bin))
}

fn ceil(sum: u128, bin: u128) -> u64 {
    u64::try_from(sum.div_ceil(bin.max(1))).unwrap_or(u64::MAX)
}

/// The sum of u(k), in whole numbers: of a size x it is floor((k + 1) x) / k, or x where (k + 1) x is whole.
fn stepped(items: &[(u64, u64)], bin: u64, k: u64) -> u64 {
    let (bin, k) = (u128::from(bin), u128::from(k));
    let value = |size: u64| {
        let scaled = (k + 1) * u128::from(size);
        match scaled.is_multiple_of(bin) {
            true => k * u128::from(size),
            false => scaled / bin * bin,
        }
    };
    let sum = items
        .iter()
        .map(|&(size, count)| value(size) * u128::from(count))
        .sum();
    ceil(sum, k * bin)
}

/// For each threshold: items above the rest of a bin have one each, those above half too, and what small ones do not fit
/// next to them needs more.
fn l2(items: &[(u64, u64)], bin: u64) -> u64 {
    let mut thresholds: Vec<u64> = items
        .iter()
        .map(|item| item.0)
        .filter(|size| *size <= bin / 2)
        .collect();
    thresholds.push(0);
    thresholds.sort_unstable();
    thresholds.dedup();
    let mut best = 0;
    for least in thresholds {
        let (mut alone, mut halves, mut of_halves, mut small) = (0u128, 0u128, 0u128, 0u128);
        for &(size, count) in items {
            let (size, count) = (u128::from(size), u128::from(count));
            match size {
                size if size > u128::from(bin - least) => alone += count,
                size if 2 * size > u128::from(bin) => {
                    halves += count;
                    of_halves += size * count;
                }
                size if size >= u128::from(least) => small += size * count,
                _ => {}
            }
        }
        let room = halves * u128::from(bin) - of_halves;
        let more = ceil(small.saturating_sub(room), u128::from(bin));
        let total = u64::try_from(alone + halves).unwrap_or(u64::MAX);
        best = best.max(total.saturating_add(more));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_leave_no_room_for_halves() {
        // Five of 3/4 and four of 1/2: five bins and two more, where the volume says six.
        assert_eq!(one_dimension(&[(75, 5), (50, 4)], 100), 7);
        // Nor two of 12 in 20 for one of 9, though the volume is that of two bins.
        assert_eq!(one_dimension(&[(12, 2), (9, 1)], 20), 3);
    }

    #[test]
    fn a_bin_has_three_items_of_a_little_more_than_a_quarter() {
        assert_eq!(one_dimension(&[(51, 600)], 200), 200);
        assert_eq!(one_dimension(&[(50, 600)], 200), 150);
    }
}
