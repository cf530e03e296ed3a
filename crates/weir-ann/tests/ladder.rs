//! Laws of the ladder: parts sum up, each technique gains, data are conserved, devices help.

use proptest::prelude::*;
use weir_ann::datasets::Dataset;
use weir_ann::ladder::{Spent, Step, Variant};
use weir_ann::times::{ByTier, Times};
use weir_ann::walked::{AtCandidates, Walked};
use weir_model::units::Nanos;

/// Times of a machine whose pool is this many times as far as its local memory.
fn times(near: f64, far: f64) -> Times {
    let by = |cached: f64, near: f64, far: f64| ByTier {
        cached: Nanos(cached),
        near: Nanos(near),
        far: Nanos(far),
    };
    Times {
        line: by(2.0, near, near * far),
        list: by(40.0, 40.0 + near, 40.0 + near * far),
        vector: by(15.0, near, near * far),
        vectors_among: vec![
            (20, by(15.0, 1.1 * near, 1.05 * near * far)),
            (40, by(15.0, 1.4 * near, 1.1 * near * far)),
        ],
        cores: 40,
    }
}

fn walk(new: f64, foreseen: f64) -> AtCandidates {
    AtCandidates {
        candidates: 50,
        recall: 0.95,
        steps: 52.0,
        new,
        again: 0.5,
        kept: 4.0,
        moved: 0.4,
        foreseen,
    }
}

prop_compose! {
    fn machines()(
        near in 70.0_f64..120.0, far in 3.0_f64..6.0, new in 0.3_f64..0.8, foreseen in 0.3_f64..1.0, hits in 0.05_f64..1.0,
        dataset in 0_usize..6,
    ) -> (Times, AtCandidates, f64, Dataset) {
        (times(near, far), walk(new, foreseen), hits, Dataset::ALL[dataset])
    }
}

fn step<'a>((times, walk, hits, dataset): &'a (Times, AtCandidates, f64, Dataset)) -> Step<'a> {
    let shape = dataset.published();
    Step {
        shape,
        walk,
        times,
        hits: *hits,
        devices: shape.devices,
        once: *hits > 0.5,
    }
}

fn total(spent: &Spent) -> f64 {
    spent.parts.total().get()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn parts_are_times_that_sum_up_and_the_core_is_idle_for_no_longer(machine in machines()) {
        let step = step(&machine);
        for variant in Variant::ALL {
            let spent = step.spent(variant);
            let parts = spent.parts;
            let all = [parts.traverse, parts.distance_memory, parts.distance_compute, parts.update, parts.interface];
            prop_assert!(all.iter().all(|part| part.get() >= 0.0), "{variant}: {parts:?}");
            let sum: f64 = all.iter().map(|part| part.get()).sum();
            prop_assert!((sum - total(&spent)).abs() < 1e-9 * sum);
            prop_assert!((0.0..=total(&spent)).contains(&spent.idle.get()));
        }
    }

    #[test]
    fn each_technique_gains(machine in machines()) {
        let step = step(&machine);
        let ladder = [Variant::Base, Variant::Epax, Variant::NoPrefetch, Variant::Cache, Variant::Cxla];
        let each = ladder.map(|variant| total(&step.spent(variant)));
        prop_assert!(each.windows(2).all(|two| two[1] <= two[0] + 1e-9), "{each:?}");
        prop_assert!(total(&step.spent(Variant::NearOracle)) <= each[4], "a pool costs something");
        prop_assert!(total(&step.spent(Variant::Oracle)) < each[0]);
    }

    /// Whoever computes distances, the same vectors are read: over links, or within devices.
    #[test]
    fn vectors_are_read_once_in_each_variant(machine in machines()) {
        let step = step(&machine);
        let vectors = step.shape.vector_bytes() * step.distances();
        let base = step.spent(Variant::Base);
        prop_assert!((base.link_bytes - step.shape.list_bytes() - vectors).abs() < 1e-6);
        for variant in [Variant::NearOracle, Variant::Epax, Variant::NoPrefetch, Variant::Cache, Variant::Cxla] {
            prop_assert_eq!(step.spent(variant).device_bytes, vectors);
        }
        prop_assert_eq!(step.spent(Variant::Oracle).link_bytes, 0.0);
        // A local list does not cross.
        prop_assert!(step.spent(Variant::NoPrefetch).link_bytes <= step.spent(Variant::Epax).link_bytes);
    }

    /// More devices compute no slower; what they cost is doorbells.
    #[test]
    fn devices_help_but_for_their_doorbells(machine in machines(), factor in 2_u32..5) {
        let few = step(&machine);
        let many = Step { devices: few.devices * factor, ..few };
        let (few, many) = (few.spent(Variant::Epax).parts, many.spent(Variant::Epax).parts);
        prop_assert!((many.distance() - few.distance()).get() < 1e-9);
        prop_assert!((many.interface - few.interface).get() > -5.0);
    }

    #[test]
    fn hosts_add_queries_until_devices_are_busy(machine in machines()) {
        let step = step(&machine);
        let rate = |hosts| step.queries_per_second(Variant::Cxla, hosts);
        let twice = Step { devices: 2 * step.devices, ..step };
        let mut before = 0.0;
        for hosts in 1..12 {
            prop_assert!(rate(hosts) >= before * (1.0 - 1e-12));
            prop_assert!(rate(hosts) <= f64::from(hosts) * rate(1) * (1.0 + 1e-12));
            prop_assert!(twice.queries_per_second(Variant::Cxla, hosts) >= 0.9 * rate(hosts));
            before = rate(hosts);
        }
        let most = 1.0 / (step.device_time() * step.steps()).as_secs();
        prop_assert!((0.98..1.0 + 1e-12).contains(&(rate(60) / most)), "{} {most}", rate(60));
    }

    /// The asymptotic bounds of Denning and Buzen (1978), and that a query has company only if there is some.
    #[test]
    fn queries_that_share_devices_or_channels_are_as_slow_as_the_bounds_allow(machine in machines(), queries in 2_u32..41) {
        let step = step(&machine);
        for variant in Variant::ALL {
            let alone = step.spent(variant).parts.total();
            let one = step.spent_among(variant, 1).parts.total();
            prop_assert!((one - alone).get().abs() < 1e-9 * alone.get());
            let among = step.spent_among(variant, queries).parts.total();
            let fewer = step.spent_among(variant, queries - 1).parts.total();
            prop_assert!(among >= fewer * (1.0 - 1e-12) && fewer >= alone * (1.0 - 1e-12), "{variant}: {alone} {fewer} {among}");
            let slowest = match variant {
                Variant::Oracle | Variant::Base => alone * 1.4,
                _ => {
                    let bound = step.device_time() * f64::from(queries);
                    prop_assert!(among >= bound * (1.0 - 1e-12), "{variant}: {among} {bound}");
                    alone + bound
                }
            };
            prop_assert!(among <= slowest * (1.0 + 1e-12), "{variant}: {among} {slowest}");
        }
    }

    /// As many cores read vectors as the share of their time is.
    #[test]
    fn cores_that_read_vectors_are_the_share_of_the_time_that_they_read(machine in machines()) {
        let step = step(&machine);
        for variant in [Variant::Oracle, Variant::Base] {
            let parts = step.spent_among(variant, 40).parts;
            let readers = 40.0 * (parts.distance() / parts.total());
            let by = step.times.vector_among(readers);
            let each = if variant == Variant::Oracle { by.near } else { by.far };
            let read = parts.distance() / step.distances();
            prop_assert!((read - each).get().abs() < 1e-6 * each.get(), "{variant}: {read} {each}");
        }
    }
}

#[test]
fn a_share_of_the_reads_is_between_those_that_were_counted() {
    let walked = Walked {
        hits: vec![0.2, 0.5, 0.9, 1.0],
        ..Walked::default()
    };
    for (capacity, share) in [
        (0.0, 0.0),
        (0.125, 0.1),
        (0.25, 0.2),
        (0.375, 0.35),
        (1.0, 1.0),
        (7.0, 1.0),
    ] {
        assert!(
            (walked.hit_share(capacity) - share).abs() < 1e-12,
            "{capacity}"
        );
    }
}

#[test]
fn sizes_of_published_graphs_follow_from_degrees() {
    let size = |dataset: Dataset| dataset.published().list_bytes();
    assert!((f64::midpoint(size(Dataset::BigAnn), size(Dataset::YandexT)) - 129.2).abs() < 0.1);
    let shards = Dataset::ALL.map(|dataset| dataset.published().shards());
    assert_eq!(shards, [2, 4, 2, 4, 2, 2]);
    assert_eq!("Meta_S".parse(), Ok(Dataset::MetaS));
    assert!("sift".parse::<Dataset>().unwrap_err().contains("yandex-d"));
}
