//! When workers and a copier are busy, from the rates at which each goes alone and with the other.

use weir_model::units::{Bytes, GbPerSec, Nanos};

/// Rates of a part of a query, in bytes a nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The workers, while nothing is copied.
    pub alone: GbPerSec,
    /// The workers with the copier.
    pub beside: GbPerSec,
    /// The copier with the workers.
    pub copier: GbPerSec,
}

/// Queries that run one after the other on columns which a copier brings near.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<'a> {
    /// What a query reads, part by part, with the rates of the part.
    pub query: &'a [(Bytes, Rates)],
    /// What has to be near before each query begins, beyond what is there already.
    pub copies: &'a [Bytes],
    /// The copier while the workers wait.
    pub copier_alone: GbPerSec,
}

/// What became of a [`Plan`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Course {
    /// Until the last query is done.
    pub time: Nanos,
    /// Of that, while the workers waited for the copier.
    pub waited: Nanos,
    /// Bytes that were copied while the workers waited, and with them.
    pub copied: [f64; 2],
}

impl Plan<'_> {
    /// Runs it. The copier is at most one query ahead, so that near memory holds the columns of two.
    pub fn run(&self) -> Course {
        let mut course = Course::default();
        let queries = self.copies.len();
        let left_of = |bytes: Option<&Bytes>| bytes.map_or(0.0, |bytes| bytes.get() as f64);
        let (mut query, mut part, mut copy) = (0, 0, 0);
        let mut to_copy = left_of(self.copies.first());
        let mut to_read = left_of(self.query.first().map(|(bytes, _)| bytes));
        while query < queries {
            // Empty columns take no time.
            if copy < queries && to_copy <= 0.0 {
                copy += 1;
                to_copy = left_of(self.copies.get(copy));
                continue;
            }
            let Some((_, rates)) = self.query.get(part) else {
                (query, part) = (query + 1, 0);
                to_read = left_of(self.query.first().map(|(bytes, _)| bytes));
                continue;
            };
            let works = copy > query;
            if works && to_read <= 0.0 {
                part += 1;
                to_read = left_of(self.query.get(part).map(|(bytes, _)| bytes));
                continue;
            }
            let copies = copy < queries && copy <= query + 1;
            let (reads, moves) = match (works, copies) {
                (true, true) => (rates.beside, rates.copier),
                (true, false) => (rates.alone, GbPerSec(0.0)),
                (false, _) => (GbPerSec(0.0), self.copier_alone),
            };
            let until = |left: f64, rate: GbPerSec| match rate.get() > 0.0 {
                true => left / rate.get(),
                false => f64::INFINITY,
            };
            let (read_by, copied_by) = (until(to_read, reads), until(to_copy, moves));
            let step = read_by.min(copied_by);
            if !step.is_finite() {
                // Neither goes on: a rate of zero.
                course.time = Nanos(f64::INFINITY);
                return course;
            }
            course.time = course.time + Nanos(step);
            if !works {
                course.waited = course.waited + Nanos(step);
            }
            let moved = if copied_by <= read_by {
                to_copy
            } else {
                step * moves.get()
            };
            course.copied[usize::from(works)] += moved;
            // What ends is zero, whatever rounding says.
            to_copy = if copied_by <= read_by {
                0.0
            } else {
                to_copy - moved
            };
            to_read = if read_by <= copied_by {
                0.0
            } else {
                to_read - step * reads.get()
            };
        }
        course
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rates(alone: f64, slower: f64, copier: f64) -> Rates {
        Rates {
            alone: GbPerSec(alone),
            beside: GbPerSec(alone * slower),
            copier: GbPerSec(copier),
        }
    }

    proptest! {
        #[test]
        fn what_is_copied_is_what_was_asked_and_nobody_is_faster_than_alone(
            parts in prop::collection::vec((0u64..1 << 30, 1.0..300.0f64, 0.2..1.0f64), 1..3),
            copies in prop::collection::vec(0u64..1 << 30, 1..20),
            (alone, slower) in (1.0..40.0f64, 0.2..1.0f64),
        ) {
            let query: Vec<_> = parts.iter().map(|&(bytes, gbps, worse)| {
                (Bytes(bytes), rates(gbps, worse, alone * slower))
            }).collect();
            let copies: Vec<Bytes> = copies.into_iter().map(Bytes).collect();
            let plan = Plan { query: &query, copies: &copies, copier_alone: GbPerSec(alone) };
            let course = plan.run();
            let all: f64 = copies.iter().map(|bytes| bytes.get() as f64).sum();
            prop_assert!((course.copied.iter().sum::<f64>() - all).abs() <= 1e-6 * all.max(1.0));
            let work = |pick: fn(&Rates) -> GbPerSec| copies.len() as f64
                * query.iter().map(|(b, r)| b.get() as f64 / pick(r).get()).sum::<f64>();
            let time = course.time.get();
            let first = copies[0].get() as f64 / alone;
            let slack = 1.0 + 1e-9;
            prop_assert!(time * slack >= first + work(|r| r.alone));
            prop_assert!(time * slack >= all / alone);
            // Never worse than first all copies and then all work, at the worst rates.
            prop_assert!(time <= (all / (alone * slower) + work(|r| r.beside)) * slack);
            prop_assert!(course.waited.get() <= time && course.waited.get() * slack >= first);
        }
    }

    #[test]
    fn a_copier_that_is_fast_enough_is_waited_for_once() {
        let query = [(Bytes(1000), rates(10.0, 0.5, 5.0))];
        // 200 bytes at 10 a nanosecond alone; then 100 with each query but the last, in 20 ns of its
        // 110: 20 at half speed have done 100 bytes, and 900 take 90.
        let copies = [Bytes(200), Bytes(100), Bytes(100)];
        let plan = Plan {
            query: &query,
            copies: &copies,
            copier_alone: GbPerSec(10.0),
        };
        let course = plan.run();
        assert!((course.waited.get() - 20.0).abs() < 1e-9, "{course:?}");
        assert!(
            (course.time.get() - (20.0 + 110.0 + 110.0 + 100.0)).abs() < 1e-9,
            "{course:?}"
        );
        assert_eq!(course.copied, [200.0, 200.0]);
    }
}
