//! What tenants use of a device, and how long ago they last used a page of it when a run begins.

use crate::rng;

/// Lines of a device that something uses.
#[derive(Debug, Clone)]
pub struct Footprint {
    /// Its first page.
    pub first: u64,
    pub pages: u64,
    pub order: Reuse,
    /// Uses of any page of it, in relation to other footprints.
    pub rate: f64,
    /// Whether what is used is also written.
    pub written: bool,
    /// Whether reads of it must not wait for internal tasks of the device.
    pub deterministic: bool,
    /// Selects the chance of a page.
    pub seed: u64,
}

/// The order in which pages of a footprint are used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reuse {
    /// One after the other; this page of the footprint was used last.
    InTurn { last: u64 },
    /// Any page at any time, independently of others.
    AtRandom,
    /// Independently of others, and the first part x of them with the chance x^alpha.
    Apex { alpha: f64 },
}

impl Reuse {
    /// The same where `lines` of them are one page.
    pub fn of_pages(self, lines: u64) -> Self {
        match self {
            Reuse::InTurn { last } => Reuse::InTurn { last: last / lines },
            other => other,
        }
    }
}

impl Footprint {
    /// The time since a page was used last. Where uses are independent, it is exponential with the page's own rate:
    /// the least recently used pages of a set in the long run are those with the longest such times.
    pub fn age(&self, page: u64, seed: u64) -> f64 {
        let n = page - self.first;
        let pages = self.pages as f64;
        let wait = -(1.0 - rng::unit(seed ^ self.seed, page)).ln();
        match self.order {
            Reuse::InTurn { last } => ((last + self.pages - n) % self.pages) as f64 / self.rate,
            Reuse::AtRandom => wait * pages / self.rate,
            Reuse::Apex { alpha } => {
                let up_to = |page: u64| (page as f64 / pages).powf(alpha);
                wait / (up_to(n + 1) - up_to(n)) / self.rate
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprint(order: Reuse) -> Footprint {
        Footprint {
            first: 1000,
            pages: 4000,
            order,
            rate: 1.0,
            written: false,
            deterministic: false,
            seed: 5,
        }
    }

    #[test]
    fn pages_behind_a_stream_were_used_last_and_those_ahead_longest_ago() {
        let footprint = footprint(Reuse::InTurn { last: 100 });
        assert_eq!(footprint.age(1100, 1), 0.0);
        assert_eq!(footprint.age(1099, 1), 1.0);
        assert_eq!(footprint.age(1101, 1), 3999.0);
    }

    #[test]
    fn a_page_at_random_was_used_as_long_ago_as_there_are_pages_on_average() {
        let footprint = footprint(Reuse::AtRandom);
        let mean = (1000..5000).map(|page| footprint.age(page, 1)).sum::<f64>() / 4000.0;
        assert!((3600.0..4400.0).contains(&mean), "{mean}");
    }
}
