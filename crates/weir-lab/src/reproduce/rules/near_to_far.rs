//! Operators over columns of two tiers (Near to Far, DIMES 2023).

use weir_model::access::Op;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec};

use crate::movement::Method;
use crate::offload::{Crowd, Crowded, KEPT_PCT, Pair, SharedCore};
use crate::reproduce::figures::bandwidth;
use crate::reproduce::points::{Stream, gbps, gbps_beside};
use crate::reproduce::rule::{Figure, Rule};
use crate::stage::{Stage, Way};
use crate::together::Operator;

const WORST: &str = "the worst of 14, 28 and 42 local threads with 4, 8, 14 and 28 others on free cores, which is 14 with 28: half as \
                     many threads read DRAM as read the card, and slower with them; the card has its two modules on two \
                     channels";
const HALF: &str = "28 local threads and 8 others, with buffers of 10 %";
const SECOND: &str = "56 local threads and 1, 2, 4 or 8 others with buffers of 10 %; the least";
const POLLING: &str = "16 local threads, and 1 to 16 others that poll on their cores; the larger of 5 and 10 % that loses no more \
                       than 1 %";
const SOCKET: &str = "20 joins, a shared column of 1 GiB and 64 MiB each, copied by the accelerator in place of five threads";

const MACHINE: &str = "spr8480+agilex-2x2666";
const LOCAL: [u32; 3] = [14, 28, 42];
const FAR: [u32; 4] = [4, 8, 14, 28];
/// Cores of the socket, one thread on each.
const CORES: u32 = 56;
/// The size of remote buffers, of local ones.
const SHARE: f64 = 0.1;

/// The least bandwidth of the system, of that of the local threads alone, in percent.
fn least(local: &'static [u32], far: &'static [u32]) -> Figure {
    let [near, slow] = ["dram", "cxl0"].map(|tier| Stream::new(MACHINE, tier, Op::Ld));
    Figure::new("%", move |results| {
        let mut least = f64::INFINITY;
        for &local in local {
            let alone_gbps = GbPerSec(bandwidth(near, local).value(results)?);
            for &others in far.iter().filter(|&others| local + others <= CORES) {
                let beside = Some((slow, others));
                let local_gbps = near.read(local, beside, results, gbps)?;
                let far_gbps = near.read(local, beside, results, gbps_beside)?;
                let pair = Pair {
                    local,
                    far: others,
                    alone_gbps,
                    local_gbps: GbPerSec(local_gbps),
                    far_gbps: GbPerSec(far_gbps),
                    far_alone_gbps: GbPerSec(bandwidth(slow, others).value(results)?),
                    level_pct: 0.0,
                    shared_cores: None,
                    sharing_gbps: None,
                };
                least = f64::min(least, 100.0 * pair.system(SHARE));
            }
        }
        Ok(least)
    })
}

/// The same where all cores have local threads, and the others are second threads of some of them.
fn on_second_threads(far: &'static [u32]) -> Figure {
    let [near, slow] = ["dram", "cxl0"].map(|tier| Stream::new(MACHINE, tier, Op::Ld));
    Figure::new("%", move |results| {
        let mut least = f64::INFINITY;
        for &far in far {
            let ask = Crowd {
                operator: Operator::Sum,
                from: TierName::dram(),
                tier: TierName::named("cxl0"),
                local: CORES,
                far,
            };
            let alone_gbps = GbPerSec(bandwidth(near, CORES).value(results)?);
            let far_alone_gbps = GbPerSec(bandwidth(slow, far).value(results)?);
            let system = move |seen: &Crowded| {
                let pair = Pair {
                    local: CORES,
                    far,
                    alone_gbps,
                    local_gbps: seen.local,
                    far_gbps: seen.far,
                    far_alone_gbps,
                    level_pct: 0.0,
                    shared_cores: None,
                    sharing_gbps: None,
                };
                Ok(100.0 * pair.on_shared_cores(CORES, seen).system(SHARE))
            };
            least = f64::min(least, results.read(MACHINE.into(), &ask, system)?);
        }
        Ok(least)
    })
}

/// The link of the servers with RDMA (NTF-006).
const RDMA: GbPerSec = GbPerSec(12.5);

/// The larger of the two shares of Figure 3a at which threads that poll slow no other, in percent.
fn held_over_link() -> Figure {
    let near = Stream::new("gold6130", "dram", Op::Ld);
    Figure::new("%", move |results| {
        let alone = GbPerSec(bandwidth(near, 16).value(results)?);
        let core = SharedCore {
            alone_gbps: GbPerSec(bandwidth(near, 1).value(results)?),
        };
        let holds = |share: &f64| {
            let pairs = (1..=16).map(|far| Pair::over_link((16, far, 16), alone, core, RDMA));
            let kept = pairs.map(|pair| 100.0 * pair.system_sharing(share / 100.0, Some(core)));
            kept.fold(f64::INFINITY, f64::min) >= KEPT_PCT
        };
        let held = [10.0, 5.0].into_iter().find(holds);
        held.ok_or_else(|| "neither 5 nor 10 % holds the bandwidth".to_owned())
    })
}

/// How many times as fast grouped joins are with their columns on the other socket as with those on CXL.
fn socket_over_cxl(queries: u32) -> Figure {
    let time = move |tier: &str| {
        let ask = Stage {
            tier: TierName::named(tier),
            to: TierName::dram(),
            operator: Operator::Join,
            threads: None,
            copier: Method::DsaAsync,
            copy_threads: None,
            queries: vec![queries],
            shared: Bytes::gib(1),
            own: Bytes::mib(64),
        };
        Figure::read("ms", MACHINE, ask, |found| {
            let grouped = found.runs.iter().find(|run| run.way == Way::Grouped);
            grouped
                .map(|run| run.time_ms)
                .ok_or_else(|| "no grouped queries".to_owned())
        })
    };
    crate::reproduce::figures::ratio(&time("cxl0"), &time("remote"))
}

pub(super) fn rules() -> Vec<Rule> {
    vec![
        Rule::predicted("NTF-010", held_over_link()).noting(POLLING),
        Rule::predicted("NTF-017", least(&[28], &[8])).noting(HALF),
        Rule::predicted("NTF-018", on_second_threads(&[1, 2, 4, 8])).noting(SECOND),
        Rule::predicted("NTF-020", least(&LOCAL, &FAR)).noting(WORST),
        Rule::predicted("NTF-023", socket_over_cxl(20)).noting(SOCKET),
    ]
}
