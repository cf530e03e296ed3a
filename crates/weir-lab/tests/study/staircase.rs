//! What the staircase of latencies by working set says of the caches.

use weir_lab::Severity;
use weir_lab::studies::verdicts;
use weir_model::units::{Bytes, Nanos};

use super::common::{Toy, WALK_NS};
use super::{all_points, judged};

#[test]
fn the_staircase_names_each_cache_and_memory() {
    let found = judged(&Toy::default(), "dram latency");
    let text = &found[0].text;
    assert!(text.starts_with("L1d 2.0 ns, L2 6.0 ns, L3 "), "{text}");
    assert!(text.contains("memory 1"), "{text}");
    let walks = found
        .iter()
        .find(|verdict| verdict.text.contains("page walks"))
        .unwrap();
    let added: f64 = walks
        .text
        .split(' ')
        .find_map(|word| word.parse().ok())
        .expect("a number of ns");
    assert!((added - WALK_NS).abs() < 5.0, "{}", walks.text);
}

#[test]
fn a_cache_without_a_step_is_doubted() {
    let mut topology = Toy::default().topology();
    let points = all_points(&Toy::default());
    // The machine claims a second-level cache of 8 MiB where latency shows no step.
    topology.caches[1].size = Bytes::mib(8);
    let found = verdicts(&points, &topology);
    let doubt = found
        .iter()
        .find(|verdict| verdict.text.contains("no step where L2 ends"));
    assert_eq!(
        doubt.map(|verdict| verdict.severity),
        Some(Severity::Doubt),
        "{found:#?}"
    );
}

/// A guest that has a part of a cache had a latency of memory for it.
#[test]
fn the_part_of_the_last_cache_that_is_left_is_said_and_never_from_one_figure() {
    let mut topology = Toy::default().topology();
    topology.caches[2].size = Bytes::mib(32);
    let said = |ns: &dyn Fn(f64) -> f64| {
        let mut points = all_points(&Toy::default());
        for point in &mut points {
            if let (Some(size), Some(latency)) = (point.wss_bytes, &mut point.ns)
                && point.pattern == "chase_tlb_friendly"
                && size > topology.caches[1].size
            {
                latency.mean = Nanos(ns(size.get() as f64 / Bytes::mib(1).get() as f64));
            }
        }
        let found = verdicts(&points, &topology).into_iter();
        let own = found.filter(|verdict| verdict.about == "dram latency");
        own.fold(String::new(), |all, verdict| all + &verdict.text + "; ")
    };
    let part = |mib: f64| said(&|size| 20.0 + 90.0 * (1.0 - mib / size).max(0.0));
    let left = part(6.0);
    let plateau = left.contains(", L3 20.0 ns (9.0 MiB of 32 MiB), memory 1");
    let doubt = left.contains("; 9.0 MiB of 32 MiB are left of L3: half");
    assert!(plateau && doubt && !left.contains("no step"), "{left}");
    // None of the working sets fits 2.7 MiB: 43 % of the hops over 4 MiB hit, and 6.3 % of those over 8 MiB.
    let none = said(&|size| 110.0 - 90.0 * [0.43, 0.063, 0.0][(size.log2() as usize - 2).min(2)]);
    assert!(
        none.contains("at most 2.8 MiB of 32 MiB are left of L3") && !none.contains(", L3 "),
        "{none}"
    );
    // Too few of those over 4 MiB hit to tell 1 MiB from less: what L2 holds, 2 MiB, does not go to memory.
    let few = said(&|size| 110.0 - 50.0 * f64::from(size == 4.0));
    assert!(
        few.contains("at most 2.0 MiB of 32 MiB are left of L3"),
        "{few}"
    );
    // All of them take as long as memory, as on a machine with other load.
    let loaded = said(&|size| 100.0 + size % 5.0);
    assert!(
        loaded.contains("at most 4.0 MiB of 32 MiB are left of L3") && !loaded.contains(", L3 "),
        "{loaded}"
    );
    // One working set that was disturbed shows no part.
    let whole = |size: f64| 20.0 + 90.0 * f64::from(size > 32.0 || size == 4.0);
    assert!(!said(&whole).contains("left of L3"));
}
