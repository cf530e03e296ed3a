//! Three ways to the memory of a device whose DRAM is a cache of flash (CXL-SSD, HotStorage 2022): as local DRAM, by
//! CXL, and by loads that no cache of the host keeps.
//!
//! The paper runs Apex-Map, which draws the line `u^(1/alpha) N` of `N` lines (Strohmaier and Shan, SC 2005). So a
//! memory that holds the first `c` bytes of `M` answers the share `(c/M)^alpha` of the accesses. The times of the levels
//! are those of pointer chases at random on the model.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::units::Bytes;

use crate::reproduce::figures::{chase, latency, ratio};
use crate::reproduce::points::Stream;
use crate::reproduce::rule::{Figure, Rule};

const MACHINE: &str = "hotstorage22+hotstorage22-ssd";
/// What the benchmark uses: the capacity of the prototype (SSD-014).
const MEMORY: Bytes = Bytes::gib(32);
/// The caches of the platform, and of the device.
const L1: Bytes = Bytes::kib(128);
const L2: Bytes = Bytes::kib(256);
const LLC: Bytes = Bytes::mib(4);
const DEVICE: Bytes = Bytes::gib(1);
/// A set of which the DRAM of the device holds a quarter.
const LARGER: Bytes = Bytes::gib(4);
const APEX: &str = "by the share of accesses that each cache holds under Apex-Map's law, with the latencies of the model";
const SETS_FIRMWARE: &str = "sets the time of the device's firmware";
const SETS_UNCACHED: &str = "sets what an uncached load takes longer than one through CXL.mem";
const COMPARABLE: &str = "the paper says comparable; ours has one access in 300 that finds its page in no DRAM, which is most of the mean";

/// Latencies of loads at random that the first cache answers, the second, the third, the tier's DRAM; of a tier with a
/// medium, also one that misses that DRAM.
fn levels(tier: &'static str, op: Op) -> Vec<Figure> {
    let of = |size| {
        latency(Stream {
            op,
            pattern: Pattern::Chase {
                locality: Locality::Random,
            },
            working_set: Some(size),
            ..chase(MACHINE, tier)
        })
    };
    let sizes = [
        Bytes::kib(64),
        Bytes::kib(192),
        Bytes::mib(2),
        Bytes::mib(256),
    ];
    let mut levels: Vec<Figure> = sizes.into_iter().map(of).collect();
    let [.., dram] = levels.as_slice() else {
        return levels;
    };
    let (dram, larger) = (dram.clone(), of(LARGER));
    levels.push(Figure::new("ns", move |results| {
        let (hit, mean) = (dram.value(results)?, larger.value(results)?);
        let missing = 1.0 - DEVICE.get() as f64 / LARGER.get() as f64;
        Ok(hit + (mean - hit) / missing)
    }));
    levels
}

/// The share of accesses that find their line in the first bytes of the memory.
fn held(first: Bytes, alpha: f64) -> f64 {
    (first.get() as f64 / MEMORY.get() as f64).powf(alpha)
}

/// The mean of latencies whose memories end there.
fn mean(latencies: Vec<Figure>, ends: &'static [Bytes], alpha: f64) -> Figure {
    Figure::new("ns", move |results| {
        let (mut before, mut mean) = (0.0, 0.0);
        for (latency, &end) in latencies.iter().zip(ends) {
            let up_to = held(end, alpha);
            mean += (up_to - before) * latency.value(results)?;
            before = up_to;
        }
        Ok(mean)
    })
}

/// Mean latency of local DRAM, over CXL, and of loads that no cache keeps.
fn dram(alpha: f64) -> Figure {
    let levels = levels("dram", Op::Ld).into_iter().take(4).collect();
    mean(levels, &[L1, L2, LLC, MEMORY], alpha)
}

fn cxl(alpha: f64) -> Figure {
    let levels = levels("cxl0", Op::Ld);
    mean(levels, &[L1, L2, LLC, DEVICE, MEMORY], alpha)
}

fn uncached(alpha: f64) -> Figure {
    let levels = levels("cxl0", Op::UcLd).into_iter().skip(3).collect();
    mean(levels, &[DEVICE, MEMORY], alpha)
}

pub(super) fn rules() -> Vec<Rule> {
    let over_dram = |alpha| ratio(&cxl(alpha), &dram(alpha));
    let over_cxl = |alpha| ratio(&uncached(alpha), &cxl(alpha));
    vec![
        Rule::predicted("SSD-003", over_cxl(0.001)).noting(APEX),
        Rule::predicted("SSD-004", over_dram(0.001)).noting(COMPARABLE),
        Rule::calibrated("SSD-007", over_dram(1.0)).noting(SETS_FIRMWARE),
        Rule::calibrated("SSD-008", over_cxl(1.0)).noting(SETS_UNCACHED),
    ]
}
