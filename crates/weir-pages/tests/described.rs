//! Laws of described programs as workloads of pages.

use proptest::prelude::*;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_model::workload::{Workload, Workloads};
use weir_pages::policy::Thresholds;
use weir_pages::{
    Costs, Counted, CountedRegion, Host, Memory, Options, PagedWorkload, Sampler, Scan, Simulation,
    TierCurve, by_name, described,
};

const IDLE: Nanos = Nanos(100.0);

fn host(fast: Bytes, slow: Bytes) -> Host {
    let memory = |capacity, ns, gbps| Memory {
        capacity,
        curve: TierCurve::of_queue(Nanos(ns), GbPerSec(gbps)),
    };
    Host {
        // So much bandwidth that latency is the idle one.
        fast: memory(fast, IDLE.get(), 1e6),
        slow: memory(slow, 250.0, 1e6),
        swap: true,
        costs: Costs::default(),
        thresholds: Thresholds::default(),
    }
}

/// As if a machine had counted it: a share `missed` of all accesses misses, two at once, and takes half of the time.
fn counted(workload: &Workload, missed: f64) -> Vec<Counted> {
    let threads = f64::from(workload.threads);
    let of = |n: usize| {
        let phase = &workload.phases[n];
        let accesses = phase.instructions as f64 * threads * phase.apki / 1000.0;
        let regions = phase.regions.iter().map(|region| {
            let counted = CountedRegion {
                misses: accesses * region.share * missed,
                mlp: 2.0,
            };
            (region.name.clone(), counted)
        });
        Counted {
            phases: n..n + 1,
            time: IDLE * (accesses * missed / threads).max(1.0),
            latency: IDLE,
            written: None,
            regions: regions.collect(),
        }
    };
    (0..workload.phases.len()).map(of).collect()
}

fn paged(workload: &Workload, missed: f64, size: Option<Bytes>) -> PagedWorkload {
    described(workload, &counted(workload, missed), IDLE, size)
}

fn options(seconds: f64, seed: u64) -> Options {
    Options {
        seconds,
        interval_s: 0.25,
        seed,
    }
}

fn run(
    workload: &PagedWorkload,
    host: &Host,
    policy: &str,
    seed: u64,
) -> (f64, f64, [Bytes; 3], Bytes) {
    let policy = by_name(policy).unwrap();
    let mut simulation = Simulation::new(workload, host, policy, options(10.0, seed)).unwrap();
    let summary = simulation.run(|| true);
    (
        summary.maccesses_per_s,
        summary.local_pct,
        simulation.placed(),
        simulation.allocated(),
    )
}

#[test]
fn every_description_is_a_workload_of_pages_with_all_its_bytes_and_misses() {
    for workload in Workloads::builtin().list() {
        let of_pages = paged(workload, 0.3, None);
        of_pages.check().unwrap();
        let memory = workload.memory();
        assert_eq!(of_pages.regions.len(), memory.len(), "{}", workload.name);
        for ((name, bytes), region) in memory.iter().zip(&of_pages.regions) {
            assert_eq!(*name, region.name);
            assert_eq!(
                region.bytes.get(),
                bytes.get().max(4096),
                "{}: {name}",
                workload.name
            );
        }
    }
}

#[test]
fn without_misses_a_program_is_as_fast_on_any_memory() {
    let library = Workloads::builtin();
    let workload = paged(
        library.get("matmul-blocked").unwrap(),
        0.0,
        Some(Bytes::mib(64)),
    );
    workload.check().unwrap();
    let speed = |fast| run(&workload, &host(fast, Bytes::mib(256)), "first-touch", 1).0;
    let (all, little) = (speed(Bytes::mib(256)), speed(Bytes::mib(16)));
    assert!((all / little - 1.0).abs() < 1e-4, "{all} {little}");
}

#[test]
fn what_a_cache_serves_sets_accessed_bits_and_no_sample_of_misses_sees_it() {
    let program = r#"
kind = "workload"
summary = "One region that caches serve, and one that they do not"
source = "a test"

[[phase]]
instructions = 1_000_000
cpi = 0.5
apki = 100
regions = [
  { name = "served", bytes = "32 MiB", order = "random", share = 0.5 },
  { name = "missed", bytes = "32 MiB", order = "random", share = 0.5 },
]
"#;
    let workload = Workloads::check("both.toml", program).unwrap();
    let mut of_both = counted(&workload, 1.0);
    of_both[0].regions[0].1.misses = 0.0;
    let paged = described(&workload, &of_both, IDLE, None);
    let host = host(Bytes::mib(128), Bytes::mib(128));
    let policy = || by_name("first-touch").unwrap();
    let mut simulation = Simulation::new(&paged, &host, policy(), options(2.0, 1)).unwrap();
    let scan = |simulation: &Simulation<'_>, sampler| Scan::new(simulation, sampler, 4096, 1);
    let mut bits = scan(&simulation, Sampler::AccessedBits);
    let mut events = scan(&simulation, Sampler::Events(10.0));
    simulation.run(|| true);
    let touches = |scan: &mut Scan, region: &str| -> f64 {
        let seen = scan.look(&simulation);
        let own = seen.iter().filter(|seen| &*seen.region == region);
        own.map(|seen| seen.touches).sum()
    };
    let both = ["served", "missed"];
    let [by_bits, by_events] = [&mut bits, &mut events].map(|scan| {
        let mut again = || both.map(|region| touches(scan, region));
        again()
    });
    assert!(by_bits[0] > 1000.0, "{by_bits:?}");
    assert_eq!(by_events[0], 0.0, "{by_events:?}");
}

#[test]
fn a_scan_visits_each_page_once_a_round_and_random_accesses_visit_one_each() {
    let library = Workloads::builtin();
    let burst = |name: &str| paged(library.get(name).unwrap(), 1.0, None).regions[0].burst;
    assert!((burst("scan") - 64.0).abs() < 1e-9, "{}", burst("scan"));
    assert!((burst("chase") - 1.0).abs() < 1e-9, "{}", burst("chase"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn bytes_are_conserved_and_equal_seeds_give_equal_runs(
        which in 0usize..1000,
        missed in 0.001f64..1.0,
        part in 0.1f64..0.9,
        policy in prop::sample::select(vec!["first-touch", "tiering", "tpp", "colloid", "neomem", "payback", "interleave"]),
        seed in 0u64..100,
    ) {
        let library = Workloads::builtin();
        let workload = &library.list()[which % library.list().len()];
        let workload = paged(workload, missed, Some(Bytes::mib(192)));
        let fast = Bytes((part * 192.0) as u64 * (1 << 20) + (16 << 20));
        let host = host(fast, Bytes::mib(256));
        let one = run(&workload, &host, policy, seed);
        let placed: u64 = one.2.iter().map(|bytes| bytes.get()).sum();
        prop_assert_eq!(placed, one.3.get());
        prop_assert!(one.2[0].get() <= fast.get());
        prop_assert_eq!(one, run(&workload, &host, policy, seed));
    }

    #[test]
    fn a_program_wholly_in_the_fast_tier_runs_as_it_was_counted(which in 0usize..1000, missed in 0.001f64..1.0) {
        let library = Workloads::builtin();
        let program = &library.list()[which % library.list().len()];
        let counted = counted(program, missed);
        let workload = described(program, &counted, IDLE, Some(Bytes::mib(64)));
        let (speed, local, ..) = run(&workload, &host(Bytes::mib(256), Bytes::mib(64)), "first-touch", 1);
        let misses: f64 = counted.iter().flat_map(|c| &c.regions).map(|(_, r)| r.misses).sum();
        let ns: f64 = counted.iter().map(|c| c.time.get()).sum();
        prop_assert!((local - 100.0).abs() < 1e-9);
        prop_assert!((speed / (misses / ns * 1e3) - 1.0).abs() < 0.01, "{} {}", speed, misses / ns * 1e3);
    }
}
