//! Which share of a region's accesses find their page in the TLBs, which all regions of a program share.
//!
//! The TLBs of a core are a cache of pages with least-recently-used replacement (see `che_approximation`).

use super::che_approximation::{Class, Flow, Law, time_of};

/// One thread's accesses to a region, by page.
pub struct PageFlow {
    /// Elements of which several are in a page, each with a popularity of its own; or pages.
    flow: Flow,
    /// Its elements in a page; 1 where it is of pages.
    per_page: f64,
    classes: Vec<Class>,
}

impl PageFlow {
    /// Of elements of which each has a popularity of its own, and so many are in a page.
    pub fn new(elements: f64, rate: f64, law: Law, per_page: f64) -> Self {
        let flow = Flow {
            lines: elements.max(1.0),
            rate,
            law,
        };
        Self {
            per_page: per_page.min(flow.lines),
            classes: flow.classes(),
            flow,
        }
    }

    /// Share of the pages of which this many elements were not accessed within a characteristic time.
    fn absent(&self, elements: f64, time: f64) -> f64 {
        let accessed = self.flow.occupies_of(&self.classes, time) / self.flow.lines;
        // A sum of shares may exceed one by its rounding.
        (1.0 - accessed).max(0.0).powf(elements)
    }

    /// Share of the accesses that find their page in TLBs of this characteristic time: the element was accessed, or
    /// another one of its page.
    pub fn hits(&self, time: f64) -> f64 {
        let missed = 1.0 - self.flow.hits(time);
        1.0 - missed * self.absent(self.per_page - 1.0, time)
    }

    /// Pages that are in the TLBs: those of which an element was accessed.
    fn occupies(&self, time: f64) -> f64 {
        match self.per_page > 1.0 {
            true => self.flow.lines / self.per_page * (1.0 - self.absent(self.per_page, time)),
            // New pages may be more than the region has.
            false => self.flow.occupies_of(&self.classes, time),
        }
    }
}

/// The characteristic time of TLBs with this many entries that these flows share.
pub fn characteristic_time(flows: &[PageFlow], entries: f64) -> f64 {
    let occupied = |time| flows.iter().map(|flow| flow.occupies(time)).sum();
    time_of(occupied, entries)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use proptest::prelude::*;

    use super::*;
    use crate::core::ooo::che_approximation::Ranking;
    use crate::rng;

    fn uniform(pages: f64, rate: f64) -> PageFlow {
        PageFlow::new(pages * 64.0, rate, Law::Uniform, 64.0)
    }

    proptest! {
        #[test]
        fn entries_are_shared_and_one_region_has_its_share_of_them(
            pages in 100.0f64..1e6,
            share in 0.01f64..0.9,
            other in 1.0f64..1e6,
            rate in 0.01f64..100.0,
        ) {
            let entries = share * pages;
            let alone = characteristic_time(&[uniform(pages, 1.0)], entries);
            let hits = uniform(pages, 1.0).hits(alone);
            prop_assert!((hits - share).abs() < 0.01, "{hits} of {share}");
            let both = [uniform(pages, 1.0), uniform(other, rate)];
            let time = characteristic_time(&both, entries);
            prop_assert!(both[0].hits(time) <= hits + 1e-9);
            let held: f64 = both.iter().map(|flow| flow.occupies(time)).sum();
            prop_assert!((held / entries - 1.0).abs() < 0.01, "{held} of {entries}");
            // Twice as large a page never hits less.
            let wide = |pages: f64, rate| PageFlow::new(pages * 64.0, rate, Law::Uniform, 128.0);
            let wide = [wide(pages, 1.0), wide(other, rate)];
            prop_assert!(wide[0].hits(characteristic_time(&wide, entries)) >= both[0].hits(time) - 1e-9);
        }
    }

    /// Hits of each of some regions in least-recently-used TLBs. A region has the cumulated popularity of its elements, how
    /// many of them a page has, and its share of the accesses.
    fn replayed(regions: &[(Vec<f64>, u64, f64)], entries: usize) -> Vec<f64> {
        let mut used: HashMap<(usize, u64), u64> = HashMap::new();
        let mut order: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        let (mut hits, mut all) = (vec![0.0; regions.len()], vec![0.0; regions.len()]);
        let draw = |n: u64| rng::mix(n) as f64 / u64::MAX as f64;
        for n in 0..400_000 {
            let mut choice = draw(2 * n);
            let found = regions.iter().position(|region| {
                choice -= region.2;
                choice < 0.0
            });
            let region = found.unwrap_or(regions.len() - 1);
            let (sums, per_page, _) = &regions[region];
            let element = sums.partition_point(|&sum| sum < draw(2 * n + 1) * sums[sums.len() - 1]);
            // As in a region, popular elements are far from each other.
            let place = element as u64 * 7919 % sums.len() as u64;
            let page = (region, place / per_page);
            let before = used.insert(page, n);
            if let Some(before) = before {
                order.remove(&before);
            }
            order.insert(n, page);
            if order.len() > entries
                && let Some((_, oldest)) = order.pop_first()
            {
                used.remove(&oldest);
            }
            if n > 100_000 {
                all[region] += 1.0;
                hits[region] += f64::from(u8::from(before.is_some()));
            }
        }
        hits.iter().zip(all).map(|(hits, all)| hits / all).collect()
    }

    #[test]
    fn hits_are_those_of_least_recently_used_entries() {
        let zipf = |elements: u32, skew: f64| {
            let mut sum = 0.0;
            let add = |rank| {
                sum += f64::from(rank + 1).powf(-skew);
                sum
            };
            (0..elements).map(add).collect::<Vec<f64>>()
        };
        for skew in [0.0, 0.6, 0.99] {
            let law = match skew {
                0.0 => Law::Uniform,
                skew => Law::Ranked(Ranking::Zipf(skew)),
            };
            for per_page in [1_u32, 16, 64] {
                let popular = PageFlow::new(32_000.0, 0.7, law, f64::from(per_page));
                let flows = [popular, PageFlow::new(3000.0, 0.3, Law::Uniform, 10.0)];
                let entries = 400_u16;
                let time = characteristic_time(&flows, f64::from(entries));
                let regions = [
                    (zipf(32_000, skew), u64::from(per_page), 0.7),
                    (zipf(3000, 0.0), 10, 0.3),
                ];
                let replayed = replayed(&regions, entries.into());
                for (flow, replayed) in flows.iter().zip(replayed) {
                    let hits = flow.hits(time);
                    assert!(
                        (hits - replayed).abs() < 0.03,
                        "skew {skew}, {per_page} in a page: {hits}, replayed {replayed}"
                    );
                }
            }
        }
    }

    #[test]
    fn elements_that_fit_leave_none_of_their_pages_out() {
        for skew in [0.2, 0.6, 0.99, 1.2] {
            for elements in (1..300_u32).map(|n| f64::from(1000 + 3331 * n)) {
                let law = Law::Ranked(Ranking::Zipf(skew));
                let flow = PageFlow::new(elements, 1.0, law, 64.0 / 3.0);
                assert_eq!(flow.hits(f64::INFINITY), 1.0, "{skew}, {elements}");
                assert!(flow.occupies(f64::INFINITY) <= elements);
            }
        }
    }

    #[test]
    fn pages_that_fit_are_all_found_and_new_ones_never() {
        let flows = [
            uniform(100.0, 1.0),
            PageFlow::new(1000.0, 0.1, Law::Cyclic, 1.0),
            PageFlow::new(1e6, 0.01, Law::Once, 1.0),
        ];
        let time = characteristic_time(&flows[..2], 1200.0);
        assert_eq!([flows[0].hits(time), flows[1].hits(time)], [1.0, 1.0]);
        let time = characteristic_time(&flows, 1200.0);
        assert!(flows[0].hits(time) > 0.99);
        assert_eq!(flows[2].hits(time), 0.0);
        // A run that is longer than there are entries finds none of its pages.
        let time = characteristic_time(&flows, 1000.0);
        assert_eq!(flows[1].hits(time), 0.0);
    }
}
