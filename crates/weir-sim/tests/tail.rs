//! Latency distributions of single requests: an injected distribution is recovered, and load changes it as
//! published.

use crate::common::*;
use weir_model::access::Op;
use weir_model::machine::Machine;
use weir_model::platform::{Platform, Sourced, Tail};
use weir_model::units::{Bytes, Nanos};
use weir_sim::SimMachine;

const MACHINE: &str = "emr2s+cxl-a";

/// The machine, its device with this tail or with none.
fn with_tail(tail: Option<(f64, f64)>) -> Platform {
    with_spread(tail, 1.0)
}

/// The same with a tail of which this share is exponential.
fn with_spread(tail: Option<(f64, f64)>, spread: f64) -> Platform {
    let mut platform = platform(MACHINE);
    platform.devices[0].device.tail = tail.map(|(share, mean)| Tail {
        share: Sourced::from_source(share, "what if"),
        mean: Sourced::from_source(Nanos(mean), "what if"),
        spread: Sourced::from_source(spread, "what if"),
    });
    platform
}

/// Every latency in ns and its number of accesses, of a chase over the device with this many hops.
fn distribution(platform: &Platform, hops: u64) -> Vec<(f64, u64)> {
    let mut machine = SimMachine::new(&bed_of(platform), 1);
    let tenant = chase("cxl0", 0..1, Bytes::gib(1));
    machine.start(&[tenant]).unwrap();
    let idle = platform.devices[0].device.measured.idle.get();
    let seen = machine.observe(Nanos(idle * hops as f64)).unwrap();
    let histogram = seen.tenants[0].latency.as_ref().unwrap();
    let buckets = histogram.buckets();
    buckets.iter().map(|&(ns, n)| (ns.get(), n)).collect()
}

fn quantile(distribution: &[(f64, u64)], q: f64) -> f64 {
    let total: u64 = distribution.iter().map(|b| b.1).sum();
    let mut left = (q * total as f64) as u64;
    for &(ns, n) in distribution {
        if left < n {
            return ns;
        }
        left -= n;
    }
    f64::NAN
}

/// Mean and standard deviation.
fn moments(distribution: &[(f64, u64)]) -> (f64, f64) {
    let total: u64 = distribution.iter().map(|b| b.1).sum();
    let of = |f: &dyn Fn(f64) -> f64| {
        let sum: f64 = distribution.iter().map(|&(ns, n)| f(ns) * n as f64).sum();
        sum / total as f64
    };
    let mean = of(&|ns| ns);
    (mean, of(&|ns| (ns - mean).powi(2)).sqrt())
}

/// A memory of two latencies: the mean is the idle latency that the file states, and the variance is that of a share that
/// takes longer, besides what the DRAM's own varies.
#[test]
fn a_delay_without_spread_makes_two_latencies() {
    let own = moments(&distribution(&with_tail(None), 200_000)).1;
    for (share, delay) in [(0.2, 200.0), (0.5, 100.0), (0.05, 400.0)] {
        let platform = with_spread(Some((share, delay)), 0.0);
        let seen = distribution(&platform, 400_000);
        let idle = platform.devices[0].device.measured.idle.get();
        let (mean, deviation) = moments(&seen);
        assert!((mean / idle - 1.0).abs() < 0.02, "{mean} for {idle}");
        let law = (share * (1.0 - share) * delay * delay + own * own).sqrt();
        assert!(
            (deviation / law - 1.0).abs() < 0.05,
            "{deviation} for {law}"
        );
        assert_eq!(seen, distribution(&platform, 400_000));
    }
}

#[test]
fn a_known_tail_is_recovered() {
    let (share, mean) = (0.02, 400.0);
    let seen = distribution(&with_tail(Some((share, mean))), 4_000_000);
    // The file states the idle latency with its tail: without a tail, the rest of the path is longer by the
    // same mean.
    let idle: Vec<(f64, u64)> = distribution(&with_tail(None), 400_000)
        .into_iter()
        .map(|(ns, n)| (ns - share * mean, n))
        .collect();
    let total: u64 = idle.iter().map(|b| b.1).sum();
    // The distribution of idle latency plus, for a share of reads, an exponential delay.
    let beyond = |x: f64| -> f64 {
        let of = |&(ns, n): &(f64, u64)| {
            let p = if ns > x {
                1.0
            } else {
                share * (-(x - ns) / mean).exp()
            };
            p * n as f64 / total as f64
        };
        idle.iter().map(of).sum()
    };
    for q in [0.5, 0.9, 0.99, 0.999, 0.9999] {
        let (mut low, mut high) = (0.0, 20_000.0);
        while high - low > 0.01 {
            let middle = (low + high) / 2.0;
            if beyond(middle) > 1.0 - q {
                low = middle;
            } else {
                high = middle;
            }
        }
        assert_near(&format!("p{}", q * 100.0), quantile(&seen, q), high, 0.03);
    }
}

/// p99.9 in ns of a chase with this many other threads, each of which loads a line every 10 ns or so.
fn tail(machine: &str, tier: &str, corun: u32) -> f64 {
    let mut tenants = vec![chase(tier, 0..1, Bytes::mib(512))];
    if corun > 0 {
        tenants.push(stream(Op::Ld, tier, 1..1 + corun).with_stream(|s| s.pause = Nanos(10.0)));
    }
    let seen = run(&bed(machine), &tenants, 50.0, 3_000.0, 1);
    let latency = seen.0.tenants[0].latency.as_ref().unwrap();
    latency.quantile(0.999).get()
}

#[test]
fn tails_worsen_with_company_on_a_device_and_hardly_on_dram() {
    // SupMario §3.3: co-located threads lengthen the tails of CXL cards and not those of DRAM.
    for machine in ["emr2s+cxl-a", "spr2s+cxl-c"] {
        for tier in ["cxl0", "dram"] {
            let alone = tail(machine, tier, 0);
            let mut longest = alone;
            for corun in [2, 8] {
                let ns = tail(machine, tier, corun);
                assert!(
                    ns > 0.9 * longest,
                    "{machine}, {corun} other threads on {tier}: {ns:.0} after {longest:.0} ns"
                );
                longest = longest.max(ns);
            }
            let times = longest / alone;
            let expected = if tier == "dram" { 0.9..1.3 } else { 1.8..20.0 };
            assert!(
                expected.contains(&times),
                "{machine}, {tier}: p99.9 from {alone:.0} to {longest:.0} ns"
            );
        }
    }
}
