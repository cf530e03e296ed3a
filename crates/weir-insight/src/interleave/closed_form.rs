//! The successor's closed form: slowdown over all shares from stalls and latencies at both ends.
//!
//! Inferred from the public artefact of CAMP (ASPLOS 2026), by the same authors as best-shot. Of each
//! class of requests it asks for stall cycles all-local and all-slow, and for how much longer than
//! unloaded its requests take there. A share of a tier's stalls falls with the third power of its share of
//! pages, as far as they come from queueing, and in proportion as far as they do not.

/// A class of requests: demand loads, prefetches, stores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Class {
    /// Stalled cycles with every page local, as a share of all cycles then.
    pub local_stalls: f64,
    /// Stalled cycles with every page on the slower tier, as a share of the same.
    pub slow_stalls: f64,
    /// Latency with every page local, as a multiple of the unloaded one; at least 1.
    pub local_queueing: f64,
    /// Latency with every page on the slower tier, likewise.
    pub slow_queueing: f64,
}

impl Class {
    /// What queues and what does not, of either tier's stalls.
    fn parts(&self) -> [f64; 4] {
        let split = |stalls: f64, queueing: f64| {
            let flat = stalls / queueing.max(1.0);
            [stalls - flat, flat]
        };
        let [local_queued, local_flat] = split(self.local_stalls, self.local_queueing);
        let [slow_queued, slow_flat] = split(self.slow_stalls, self.slow_queueing);
        [local_queued, local_flat, slow_queued, slow_flat]
    }
}

/// The change of run time at a share of pages on the slower tier, as a share of the run time with none:
/// above zero is slower.
pub fn change(classes: &[Class], share: f64) -> f64 {
    let of = |class: &Class| {
        let [local_queued, local_flat, slow_queued, slow_flat] = class.parts();
        let rest = 1.0 - share;
        local_queued * rest.powi(3)
            + local_flat * rest
            + slow_queued * share.powi(3)
            + slow_flat * share
            - class.local_stalls
    };
    classes.iter().map(of).sum()
}

/// The share with the least run time, and the change there. The curve is convex, so that its one minimum
/// is where its derivative, a square polynomial, is zero, or at an end.
pub fn best(classes: &[Class]) -> (f64, f64) {
    let [
        mut local_queued,
        mut local_flat,
        mut slow_queued,
        mut slow_flat,
    ] = [0.0; 4];
    for class in classes {
        let [lq, lf, sq, sf] = class.parts();
        local_queued += lq;
        local_flat += lf;
        slow_queued += sq;
        slow_flat += sf;
    }
    // 3 sq x^2 + sf - 3 lq (1 - x)^2 - lf = 0
    let square = 3.0 * (slow_queued - local_queued);
    let linear = 6.0 * local_queued;
    let constant = slow_flat - local_flat - 3.0 * local_queued;
    let inner = roots(square, linear, constant)
        .into_iter()
        .flatten()
        .filter(|x| (0.0..=1.0).contains(x));
    // All local changes nothing, to the last bit.
    let all_local = (0.0, 0.0);
    inner
        .chain([1.0])
        .map(|x| (x, change(classes, x)))
        .fold(all_local, |best, at| if at.1 < best.1 { at } else { best })
}

/// The real zeros of `a x^2 + b x + c`.
fn roots(a: f64, b: f64, c: f64) -> [Option<f64>; 2] {
    let root = (b * b - 4.0 * a * c).sqrt();
    if root.is_nan() {
        return [None, None];
    }
    // The form that does not cancel, and that stays finite as `a` vanishes.
    let q = -0.5 * (b + root.copysign(b));
    let zero = |x: f64| x.is_finite().then_some(x);
    [zero(q / a), zero(c / q)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class() -> impl Strategy<Value = Class> {
        (0.0..1.0_f64, 0.0..4.0_f64, 1.0..6.0_f64, 1.0..6.0_f64).prop_map(
            |(local_stalls, slow_stalls, local_queueing, slow_queueing)| Class {
                local_stalls,
                slow_stalls,
                local_queueing,
                slow_queueing,
            },
        )
    }

    proptest! {
        #[test]
        fn the_ends_are_what_was_measured(classes in prop::collection::vec(class(), 1..4)) {
            let all_slow: f64 = classes.iter().map(|c| c.slow_stalls - c.local_stalls).sum();
            prop_assert!(change(&classes, 0.0).abs() < 1e-12);
            prop_assert!((change(&classes, 1.0) - all_slow).abs() < 1e-9);
        }

        #[test]
        fn no_share_is_better_than_the_best(
            classes in prop::collection::vec(class(), 1..4),
            share in 0.0..=1.0_f64,
        ) {
            let (x, least) = best(&classes);
            prop_assert!((0.0..=1.0).contains(&x));
            prop_assert!(least <= change(&classes, share) + 1e-9);
            prop_assert!(least <= 0.0);
        }

        /// Where nothing queues the law is linear: share times slowdown (SupMario §6.2).
        #[test]
        fn without_queues_slowdown_is_linear_in_the_share(class in class(), share in 0.0..=1.0_f64) {
            let class = Class { local_queueing: 1.0, slow_queueing: 1.0, ..class };
            let whole = change(&[class], 1.0);
            prop_assert!((change(&[class], share) - share * whole).abs() < 1e-9);
        }
    }

    #[test]
    fn equal_tiers_that_queue_share_equally() {
        let class = Class {
            local_stalls: 0.8,
            slow_stalls: 0.8,
            local_queueing: 3.0,
            slow_queueing: 3.0,
        };
        let (share, change) = best(&[class]);
        assert!((share - 0.5).abs() < 1e-9, "{share}");
        assert!(change < -0.1, "{change}");
    }
}
