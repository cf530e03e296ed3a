//! Sums over buffers of two tiers by threads of either (Near to Far, DIMES 2023).

use weir_model::access::Op;
use weir_model::units::GbPerSec;

use crate::offload::Pair;
use crate::reproduce::figures::bandwidth;
use crate::reproduce::points::{Stream, gbps, gbps_beside};
use crate::reproduce::rule::{Figure, Rule};

const WORST: &str = "the worst of 14, 28 and 42 local threads with 4, 8 and 14 others on free cores; the card has its two modules \
                     on two channels";

const LOCAL: [u32; 3] = [14, 28, 42];
const FAR: [u32; 3] = [4, 8, 14];
/// The size of remote buffers, of local ones.
const SHARE: f64 = 0.1;

/// The least bandwidth of the system, of that of the local threads alone, in percent.
fn least() -> Figure {
    let platform = "spr8480+agilex-2x2666";
    let [near, far] = ["dram", "cxl0"].map(|tier| Stream::new(platform, tier, Op::Ld));
    Figure::new("%", move |results| {
        let mut least = f64::INFINITY;
        for local in LOCAL {
            let alone_gbps = GbPerSec(bandwidth(near, local).value(results)?);
            for others in FAR {
                let beside = Some((far, others));
                let local_gbps = near.read(local, beside, results, gbps)?;
                let far_gbps = near.read(local, beside, results, gbps_beside)?;
                let pair = Pair {
                    local,
                    far: others,
                    alone_gbps,
                    local_gbps: GbPerSec(local_gbps),
                    far_gbps: GbPerSec(far_gbps),
                    level_pct: 0.0,
                };
                least = f64::min(least, 100.0 * pair.system(SHARE));
            }
        }
        Ok(least)
    })
}

pub(super) fn rules() -> Vec<Rule> {
    vec![Rule::predicted("NTF-020", least()).noting(WORST)]
}
