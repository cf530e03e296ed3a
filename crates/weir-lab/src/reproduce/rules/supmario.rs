//! SupMario (arXiv 2409.14317): Table 1, the hop between sockets, latency ratios and tails.
//!
//! Its CXL cards are measured in the Emerald Rapids server. Latency and bandwidth are Intel MLC's:
//! idle latency of a chase with prefetchers off, and the most that loads of all cores reach.

use crate::reproduce::rule::{Figure, Rule};
use weir_model::access::Op;

use crate::reproduce::figures::{
    PEAK, curve, difference, excess_pct, greatest, idle, least, quantile, ratio,
};
use crate::reproduce::points::Stream;

/// Enough counts to meet the peak of a tier, whether or not it declines past it.
const THREADS: &[u32] = &[4, 8, 12, 16, 24, 32, 48, 64];

/// A tier, and the rows of Table 1 with its latency; its bandwidth is in the row after.
const TABLE_1: [(u32, &str, &str); 16] = [
    (3, "spr2s", "dram"),
    (5, "spr2s", "remote"),
    (12, "emr2s", "dram"),
    (14, "emr2s", "remote"),
    (21, "skx2s", "dram"),
    (23, "skx2s", "remote"),
    (30, "skx8s", "dram"),
    (32, "skx8s", "remote"),
    (39, "emr2s+cxl-a", "cxl0"),
    (41, "emr2s+cxl-a@remote", "cxl0"),
    (46, "emr2s+cxl-b", "cxl0"),
    (48, "emr2s+cxl-b@remote", "cxl0"),
    (53, "emr2s+cxl-c", "cxl0"),
    (55, "emr2s+cxl-c@remote", "cxl0"),
    (60, "emr2s+cxl-d", "cxl0"),
    (62, "emr2s+cxl-d@remote", "cxl0"),
];

fn loads(platform: &'static str, tier: &'static str) -> Figure {
    curve(Stream::new(platform, tier, Op::Ld), THREADS, PEAK)
}

/// Of a device with a tail, 1250 of this many hops make a mean of eight longer than the 99.9th
/// percentile, and 125 longer than the 99.99th.
const HOPS: u64 = 10_000_000;

/// A quantile of what the paper's probe logs: means of eight dependent hops, as its artefact
/// (MoatLab/Melody) takes them by default.
fn logged(platform: &'static str, tier: &'static str, share: f64) -> Figure {
    // The longest hops of DRAM are not rare.
    let hops = if platform == "emr2s" { HOPS / 10 } else { HOPS };
    quantile((platform, tier), 1, hops, 8, share)
}

/// What a gap between the median and the 99.9th percentile is in.
type Gap = fn(&Figure, &Figure) -> Figure;

fn gap(in_what: Gap, platform: &'static str, tier: &'static str) -> Figure {
    in_what(&logged(platform, tier, 0.999), &logged(platform, tier, 0.5))
}

const LOGGED: &str = "means of 8 hops, as the paper's probe logs them, computed from single hops as if they were \
     independent; chance alone moves it by about 5 %";
const ON_EMR: &str = "on emr2s, which the paper leaves open; means of 8 hops, as the paper's probe logs them, computed \
     from single hops as if they were independent";
const ABOVE: &str = "published as above this; ours is p99.99 of means of 8 hops";
const AT_LEAST: &str = "published as more than this";
const CONFIGURATIONS: &str = "of the other socket of three servers and the four cards, whose latencies Table 1 has; the paper \
     makes sockets slower by their uncore clock";
const TABLE: &str = "follows from latencies of Table 1, which were set";

pub(super) fn rules() -> Vec<Rule> {
    let id = |number: u32| format!("SUP-{number:03}");
    let mut rules = Vec::new();
    for (number, platform, tier) in TABLE_1 {
        rules.push(Rule::calibrated(id(number), idle(platform, tier)));
        rules.push(Rule::calibrated(id(number + 1), loads(platform, tier)));
    }
    let cards = [
        ("emr2s+cxl-a", "emr2s+cxl-a@remote"),
        ("emr2s+cxl-b", "emr2s+cxl-b@remote"),
        ("emr2s+cxl-c", "emr2s+cxl-c@remote"),
        ("emr2s+cxl-d", "emr2s+cxl-d@remote"),
    ];
    for (number, (near, far)) in (75..).zip(cards) {
        let hop = difference(&idle(far, "cxl0"), &idle(near, "cxl0"));
        rules.push(Rule::identity(id(number), hop).noting(TABLE));
    }
    let sockets = ["skx2s", "emr2s", "skx8s"].map(|platform| (platform, "remote"));
    let slow = sockets
        .into_iter()
        .chain(cards.map(|(near, _)| (near, "cxl0")));
    let slow: Vec<Figure> = slow.map(|(platform, tier)| idle(platform, tier)).collect();
    let local = idle("emr2s", "dram");
    let ratios = ["emr2s+cxl-a", "emr2s+cxl-b", "emr2s+cxl-d"];
    let ratios = ratios.map(|card| ratio(&idle(card, "cxl0"), &local));
    let (b, c) = ("emr2s+cxl-b", "emr2s+cxl-c");
    let interleaved = loads("emr2s+2xcxl-d@interleaved", "cxl0");
    rules.extend([
        Rule::predicted("SUP-079", interleaved).noting(AT_LEAST),
        Rule::identity("SUP-080", least(slow.clone())).noting(CONFIGURATIONS),
        Rule::identity("SUP-081", greatest(slow)).noting(CONFIGURATIONS),
        Rule::identity("SUP-092", least(ratios.to_vec())).noting(TABLE),
        Rule::identity("SUP-093", greatest(ratios.into())).noting(TABLE),
        Rule::predicted("SUP-094", gap(difference, "emr2s", "dram")).noting(ON_EMR),
        Rule::predicted("SUP-095", gap(difference, "emr2s", "remote")).noting(ON_EMR),
        Rule::calibrated("SUP-098", gap(excess_pct, b, "cxl0")).noting(LOGGED),
        Rule::calibrated("SUP-099", logged(b, "cxl0", 0.9999)).noting(ABOVE),
        Rule::calibrated("SUP-101", gap(excess_pct, c, "cxl0")).noting(LOGGED),
        Rule::calibrated("SUP-102", logged(c, "cxl0", 0.9999)).noting(ABOVE),
    ]);
    rules
}
