//! `weir place offload`: how much of an operator's data may be on a slower tier, read from there by threads of its own.
//!
//! As in *Near to Far* (DIMES 2023): each thread reads a buffer of its own, those on the slower tier are a share `f` of the
//! others, and all begin together. Of threads that read `l` and `s` bytes in a nanosecond,
//!
//! ```text
//! T = B max(1 / l, f / s)                time until the last thread is done, with B bytes a local thread
//! W = (L + f S) B / T                    bandwidth of the system with L local threads and S others
//! ```
//!
//! No time is lost while `f` is below `s / l`: with as many threads on either tier, the ratio of their bandwidths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::access::{Op, Pattern};
use weir_model::topology::{TierName, Topology};
use weir_model::units::GbPerSec;

use crate::plan::{Load, PointSpec};
use crate::studies::bandwidth::working_set;
use crate::study::{About, Outcome, Study};
use crate::view::{View, col};
use crate::{Finished, Lab, LabError, Severity, Verdict};

/// Say how much of an operator's data may be on a slower tier, with threads of its own there.
///
/// Threads on either tier read buffers at once. The time until the last one is done says which share of data the
/// slower tier can take before the whole slows.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir place offload --on emr2s+cxl-a
  weir place offload --on emr2s+cxl-a --share 10%,15% --local 8,16 --far 1,2,4,8,16")]
pub struct Offload {
    /// The slower tier.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier of the other threads.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// Bytes of a buffer on the slower tier, of those of another [default: half the ratio of the bandwidths, the ratio,
    /// and twice it].
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", value_parser = percent)]
    pub share: Vec<f64>,
    /// Numbers of threads on the other tier [default: a quarter, half and three quarters of the cores].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub local: Vec<u32>,
    /// Numbers of threads on the slower tier [default: 1, 2, 4 ... half of the cores].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub far: Vec<u32>,
}

/// A share in percent.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1000.0 => Ok(share),
        _ => Err("it is above 0 and at most 1000 percent, such as 10%".into()),
    }
}

/// How much may be on the slower tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offloaded {
    /// The tier of the local threads.
    pub from: TierName,
    /// The slower tier.
    pub to: TierName,
    /// The most that the first gave to any number of threads.
    pub near_gbps: GbPerSec,
    /// The most that the other gave.
    pub far_gbps: GbPerSec,
    /// The ratio of the two: the share of data that the slower tier should take.
    pub ratio_pct: f64,
    /// Threads on both, what they drew together, and which share would make both end at once.
    pub pairs: Vec<Pair>,
    /// The bandwidth of the system by share, of that without the slower tier.
    pub cells: Vec<Cell>,
}

/// So many threads on either tier at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Local threads.
    pub local: u32,
    /// Threads on the slower tier.
    pub far: u32,
    /// What the local threads read alone.
    pub alone_gbps: GbPerSec,
    /// What they read beside the others.
    pub local_gbps: GbPerSec,
    /// What the others read.
    pub far_gbps: GbPerSec,
    /// The share of a buffer at which both end at once, in percent.
    pub level_pct: f64,
}

/// The bandwidth of the system at a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Bytes of a buffer on the slower tier, in percent of those of another.
    pub share_pct: f64,
    /// Local threads.
    pub local: u32,
    /// Threads on the slower tier.
    pub far: u32,
    /// The bandwidth of the system, in percent of that of the local threads alone.
    pub system_pct: f64,
}

impl Pair {
    /// Of the bandwidth of the local threads alone, that of the system where buffers on the slower tier have this share.
    pub fn system(&self, share: f64) -> f64 {
        let [local, far] = [f64::from(self.local), f64::from(self.far)];
        // Time for a byte of a local buffer, in nanoseconds.
        let each = |gbps: GbPerSec, threads: f64| threads / gbps.get().max(1e-9);
        let time = each(self.local_gbps, local).max(share * each(self.far_gbps, far));
        (local + share * far) / local * each(self.alone_gbps, local) / time
    }
}

impl Study for Offload {
    const VERB: &'static str = "place offload";
    type Output = Offloaded;

    fn run(&self, lab: &Lab<'_>) -> Result<Offloaded, LabError> {
        let topology = lab.topology();
        let (local, far) = self.threads(topology)?;
        let stream = |tier: &TierName, threads| stream(topology, tier, threads);
        let mut asks = Vec::new();
        for &n in &local {
            asks.push(PointSpec::alone("offload", stream(&self.from, n)?));
        }
        for &n in &far {
            asks.push(PointSpec::alone("offload", stream(&self.tier, n)?));
        }
        let cores = topology.cores.len() as u32;
        let mut counts = Vec::new();
        for &one in &local {
            for &other in far.iter().filter(|&&other| one + other <= cores) {
                counts.push((one, other));
                let near = PointSpec::alone("offload", stream(&self.from, one)?);
                asks.push(near.beside(stream(&self.tier, other)?));
            }
        }
        let done = lab.ask_all(&asks)?;
        let mut given = Vec::new();
        for one in &done {
            given.push(gbps(one)?);
        }
        let (alone, rest) = given.split_at(local.len());
        let (alone_far, together) = rest.split_at(far.len());
        let most = |all: &[(GbPerSec, GbPerSec)]| {
            all.iter().fold(GbPerSec(0.0), |most, one| most.max(one.0))
        };
        let (near_gbps, far_gbps) = (most(alone), most(alone_far));
        let ratio = far_gbps / near_gbps;
        let pairs: Vec<Pair> = (counts.iter().zip(together))
            .filter_map(|(&(one, other), &(local_gbps, far_gbps))| {
                let at = local.iter().position(|&n| n == one)?;
                let each = far_gbps.get() / f64::from(other);
                Some(Pair {
                    local: one,
                    far: other,
                    alone_gbps: alone.get(at)?.0,
                    local_gbps,
                    far_gbps,
                    level_pct: 100.0 * each / (local_gbps.get() / f64::from(one)).max(1e-9),
                })
            })
            .collect();
        let shares = match self.share.as_slice() {
            [] => [0.5, 1.0, 2.0]
                .map(|times| tenths(100.0 * ratio * times))
                .to_vec(),
            shares => shares.to_vec(),
        };
        let cell = |share_pct: f64, pair: &Pair| Cell {
            share_pct,
            local: pair.local,
            far: pair.far,
            system_pct: 100.0 * pair.system(share_pct / 100.0),
        };
        let cells = shares
            .iter()
            .flat_map(|&share| pairs.iter().map(move |pair| cell(share, pair)));
        Ok(Offloaded {
            from: self.from.clone(),
            to: self.tier.clone(),
            near_gbps,
            far_gbps,
            ratio_pct: 100.0 * ratio,
            cells: cells.collect(),
            pairs,
        })
    }
}

impl Offload {
    /// Numbers of threads on either tier.
    fn threads(&self, topology: &Topology) -> Result<(Vec<u32>, Vec<u32>), LabError> {
        let cores = topology.cores.len() as u32;
        if cores < 2 {
            return Err(LabError::Nothing(
                "threads on two tiers at once need two cores".into(),
            ));
        }
        if self.from == self.tier {
            return Err(LabError::Nothing(format!(
                "{} is not slower than itself; name another tier",
                self.tier
            )));
        }
        let quarters = (1..4).map(|n| (cores * n / 4).max(1)).collect();
        let doubled = (0..).map(|n| 1 << n).take_while(|n| 2 * n <= cores);
        let mut all = [(&self.local, quarters), (&self.far, doubled.collect())].map(
            |(asked, usual): (&Vec<u32>, Vec<u32>)| match asked.as_slice() {
                [] => usual,
                asked => asked.to_vec(),
            },
        );
        for threads in &mut all {
            threads.sort_unstable();
            threads.dedup();
        }
        let [local, far] = all;
        let least = |of: &[u32]| of.first().copied().unwrap_or(1);
        if least(&local) + least(&far) > cores {
            return Err(LabError::Nothing(format!(
                "{} threads need as many cores, and there are {cores}",
                least(&local) + least(&far)
            )));
        }
        Ok((local, far))
    }
}

/// In tenths, of which there is one at least.
fn tenths(share_pct: f64) -> f64 {
    (share_pct * 10.0).round().max(1.0) / 10.0
}

/// Threads that read buffers of a tier.
fn stream(topology: &Topology, tier: &TierName, threads: u32) -> Result<Load, LabError> {
    let of = (topology.tier(tier)).ok_or_else(|| LabError::unknown_tier(tier, topology))?;
    let set = working_set(topology, of, threads);
    Ok(Load::new(tier, Op::Ld, Pattern::Sequential, threads, set))
}

/// What a load read, and the one beside it.
fn gbps(done: &Finished) -> Result<(GbPerSec, GbPerSec), LabError> {
    let point = &done.point;
    let beside = point.beside.as_ref().and_then(|beside| beside.gbps);
    match (point.gbps, &point.error) {
        (Some(gbps), _) => Ok((gbps, beside.unwrap_or(GbPerSec(0.0)))),
        (None, why) => Err(LabError::Failed(why.clone().unwrap_or_default())),
    }
}

/// A bandwidth is kept where no more than this share of it is lost.
const KEPT_PCT: f64 = 99.0;

impl Outcome for Offloaded {
    const SCHEMA: &'static str = "weir/place-offload/1";
    const TITLE: &'static str = "Off-loading";
    const WORDS: &'static str = "How much of the data that threads read may be on a slower tier, where other threads read \
                                 it at the same time.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let Self { from, to, .. } = self;
        let mut all = vec![note(
            "share",
            format!(
                "let threads on {to} have {:.1} % of the data of as many threads on {from}: {:.1} of {:.0} GB/s",
                self.ratio_pct,
                self.far_gbps.get(),
                self.near_gbps.get()
            ),
        )];
        let lost = |cell: &&Cell| cell.system_pct < KEPT_PCT;
        let below = self
            .cells
            .iter()
            .filter(|cell| cell.share_pct <= tenths(self.ratio_pct));
        let worst = below
            .filter(lost)
            .min_by(|a, b| a.system_pct.total_cmp(&b.system_pct));
        if let Some(cell) = worst {
            all.push(note(
                "loss",
                format!(
                    "at {:.1} % with {} local threads and {} on {to} the system has {:.0} % of its bandwidth: each of \
                     those has less of {to} than a local thread has of {from}",
                    cell.share_pct, cell.local, cell.far, cell.system_pct
                ),
            ));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let (from, to) = (&self.from, &self.to);
        vec![
            View::table(
                "pairs",
                format!("Threads on {from} and {to} at once; the share at which both end at once"),
                vec![
                    col("local").head("local\nthreads"),
                    col("far").head("far\nthreads"),
                    col("alone_gbps").head("local\nalone"),
                    col("local_gbps").head("local"),
                    col("far_gbps").head("far"),
                    col("level_pct").head("share"),
                ],
            ),
            View::grid(
                "cells",
                "Bandwidth with far buffers of {share_pct} %, of the local threads alone",
                "local",
                &["far"],
                "system_pct",
            )
            .each(&["share_pct"])
            .rows_are("local threads"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn time_is_lost_only_above_the_share_at_which_both_end_at_once(
            local in 1_u32..100, far in 1_u32..100, near in 1.0..500.0f64, slow in 0.1..200.0f64, part in 0.01..3.0f64
        ) {
            let pair = Pair {
                local,
                far,
                alone_gbps: GbPerSec(near),
                local_gbps: GbPerSec(near),
                far_gbps: GbPerSec(slow),
                level_pct: 100.0 * slow / f64::from(far) / (near / f64::from(local)),
            };
            let level = pair.level_pct / 100.0;
            let at = pair.system(level * part);
            // Below it all of the far data come for nothing; above, the system waits for them.
            let gained = 1.0 + level * part * f64::from(far) / f64::from(local);
            if part <= 1.0 {
                prop_assert!((at - gained).abs() < 1e-9 * gained);
            } else {
                prop_assert!(at < gained && at <= pair.system(level) + 1e-9);
            }
            // Never more than both tiers give.
            prop_assert!(at <= (1.0 + slow / near) * (1.0 + 1e-9));
        }
    }
}
