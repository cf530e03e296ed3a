//! Time of the kernel's work on pages: what is counted, times what each costs.

use weir_model::units::{Bytes, Nanos};
use weir_pages::policy::{Decision, Fault, Placing, Scan};
use weir_pages::workload::{Band, PagedWorkload};
use weir_pages::{Costs, Policy, Simulation, Tier, Vmstat, by_name};

use super::{cache, host, options};

/// A kernel whose work takes no time.
const FREE: Costs = Costs {
    hint_fault: Nanos(0.0),
    unmap: Nanos(0.0),
    migrate: Nanos(0.0),
    shootdown: Nanos(0.0),
    copy_4k: Nanos(0.0),
    lru_scan: Nanos(0.0),
    event: Nanos(0.0),
    swap_out: Nanos(0.0),
    swap_in: Nanos(0.0),
};

/// Counters, and the time in ns that the kernel took of threads.
fn run(workload: &PagedWorkload, policy: &str, costs: Costs, slow_mib: u64) -> (Vmstat, f64) {
    let mut host = host(256, slow_mib);
    host.costs = costs;
    let asked = options(40.0);
    let mut sim = Simulation::new(workload, &host, by_name(policy).unwrap(), asked).unwrap();
    sim.run(|| true);
    let thread_ns = f64::from(workload.threads) * asked.interval_s * 1e9;
    let shares = sim.intervals().iter().map(|of| of.kernel_pct / 100.0);
    // Threads that only wait for the kernel owe what is left to later intervals.
    assert!(shares.clone().all(|share| share < 0.95), "{policy}");
    (*sim.counters(), shares.map(|share| share * thread_ns).sum())
}

/// Moves by threads of the program: promotions at a fault, and demotions before an allocation.
fn moves(c: &Vmstat) -> u64 {
    c.pgpromote_anon + c.pgpromote_file + c.pgdemote_direct
}

#[test]
fn each_cost_is_paid_as_often_as_its_event_is_counted() {
    type Cost = (Costs, fn(&Vmstat, f64) -> f64);
    let one = Nanos(10.0);
    let all: [Cost; 6] = [
        (
            Costs {
                hint_fault: one,
                ..FREE
            },
            |c, _| c.numa_hint_faults as f64,
        ),
        (Costs { unmap: one, ..FREE }, |c, _| {
            c.numa_pte_updates as f64
        }),
        (
            Costs {
                migrate: one,
                ..FREE
            },
            |c, _| moves(c) as f64,
        ),
        (
            Costs {
                copy_4k: one,
                ..FREE
            },
            |c, _| moves(c) as f64,
        ),
        (
            Costs {
                shootdown: one,
                ..FREE
            },
            |c, threads| (c.promoted() + c.demoted()) as f64 * threads,
        ),
        (
            Costs {
                swap_in: one,
                ..FREE
            },
            |c, _| c.pswpin as f64,
        ),
    ];
    // Pages of one size, so that counts are of pages. Neither node has room for all, and swap is used.
    let mut workload = cache(300, 300);
    workload.regions[1].drift_per_hour = 60.0;
    for policy in ["tpp", "tpp-all-sampled", "numa-balancing", "tiering", "tmo"] {
        for (n, (costs, count)) in all.iter().enumerate() {
            for slow_mib in [256, 1024] {
                let (counters, ns) = run(&workload, policy, *costs, slow_mib);
                let expected = one.get() * count(&counters, f64::from(workload.threads));
                assert!(
                    (ns - expected).abs() <= 1e-6 * expected.max(1.0),
                    "{policy} {n} {slow_mib}: {ns} {expected}"
                );
            }
        }
    }
    // All of them are counted somewhere.
    let (tpp, _) = run(&workload, "tpp", FREE, 1024);
    let (full, _) = run(&workload, "tpp", FREE, 256);
    assert!(
        tpp.numa_hint_faults > 0 && moves(&tpp) > 0 && full.pswpin > 0,
        "{tpp:?} {full:?}"
    );
}

#[test]
fn a_page_of_2_mib_is_moved_once_and_copied_512_times() {
    let mut workload = cache(0, 600);
    workload.regions.remove(0);
    workload.regions[0].accesses = 1.0;
    workload.regions[0].page = Bytes::mib(2);
    let one = Nanos(10.0);
    let of = |costs| run(&workload, "tpp", costs, 1024);
    let (moved, once) = of(Costs {
        migrate: one,
        ..FREE
    });
    let (copied, bytes) = of(Costs {
        copy_4k: one,
        ..FREE
    });
    assert!(moves(&moved) > 0, "{moved:?}");
    assert!(
        (once - 10.0 * moves(&moved) as f64 / 512.0).abs() < 1e-3,
        "{once}"
    );
    assert!(
        (bytes - 10.0 * moves(&copied) as f64).abs() < 1e-3,
        "{bytes}"
    );
}

/// Promotes at each fault what begins on the slow node, by transactions.
struct Transactions;

impl Policy for Transactions {
    fn place(&mut self, _: &Placing) -> Tier {
        Tier::Slow
    }

    fn scan(&self) -> Option<Scan> {
        Some(Scan::LINUX)
    }

    fn transactional(&self) -> bool {
        true
    }

    fn fault(&mut self, _: &Fault) -> Decision {
        Decision::Promote
    }
}

#[test]
fn a_transaction_fails_as_often_as_a_page_is_written_while_it_is_copied() {
    let whole = Band {
        pages: 1.0,
        accesses: 1.0,
    };
    let mut workload = cache(0, 1000);
    workload.regions.remove(0);
    workload.regions[0].accesses = 1.0;
    workload.regions[0].bands = vec![whole];
    // Each has the mean rate, that of the interval before.
    let pages = 1000.0 * 256.0;
    let mut failed = |writes: f64, copy: Nanos| {
        workload.regions[0].writes = writes;
        let mut host = host(2048, 2048);
        host.costs.copy_4k = copy;
        let asked = options(10.0);
        let mut sim = Simulation::new(&workload, &host, Box::new(Transactions), asked).unwrap();
        let (mut expected, mut rate) = (0.0, 0.0);
        for _ in 0..sim.length() {
            let tried = sim.counters().pgpromote_tried;
            sim.step();
            let tried = (sim.counters().pgpromote_tried - tried) as f64;
            let written: f64 = rate * writes * copy.get() / 1e9;
            expected += tried * (1.0 - (-written).exp());
            rate = sim.intervals().last().unwrap().maccesses * 1e6 / asked.interval_s / pages;
        }
        let c = sim.counters();
        assert!(c.pgpromote_tried > 10_000, "{c:?}");
        (c.promote_aborted as f64, expected, c.pgpromote_tried as f64)
    };
    let (aborted, expected, _) = failed(0.0, Nanos(1e6));
    assert_eq!((aborted, expected), (0.0, 0.0));
    let (aborted, expected, tried) = failed(0.5, Nanos(5e6));
    assert!(
        (0.1..0.9).contains(&(expected / tried)),
        "{expected} of {tried}"
    );
    assert!(
        (aborted / expected - 1.0).abs() < 0.05,
        "{aborted} {expected}"
    );
}
