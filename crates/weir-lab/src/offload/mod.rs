//! `weir place offload`: how much of an operator's data may be on a slower tier, read from there by threads of its own.
//!
//! As in *Near to Far* (DIMES 2023): each thread reads a buffer of its own, those on the slower tier are a share `f` of the
//! others, and all begin together. Of threads that read `l` and `s` bytes in a nanosecond,
//!
//! ```text
//! T >= B max(1 / l, f / s)               time until the last thread is done, with B bytes a local thread
//! W = (L + f S) B / T                    bandwidth of the system with L local threads and S others
//! ```
//!
//! Little time is lost while `f` is below `s / l`: with as many threads on either tier, the ratio of their bandwidths. Threads
//! go on as if alone once those of the other tier are done.
//!
//! On models, second threads of cores may have the slower tier where no core is free ([`Offload::hyper_threads`]): the local
//! threads on those cores have half of what is divided between two threads, and end last.
//!
//! Memory of another server over RDMA is no tier of a machine. A network card writes it into local memory, and a thread
//! asks for it and polls until it is there ([`Pair::over_link`]), for which it needs a core: `T` is also
//! `B (1 / b + f / s)` where it shares the core of a local thread, which alone reads `b` bytes in a nanosecond.

mod crowd;
mod outcome;
mod pair;

pub use crowd::{Crowd, Crowded};
pub use outcome::{Cell, KEPT_PCT, Offloaded};
pub use pair::{Pair, SharedCore};

use weir_model::access::{Op, Pattern};
use weir_model::topology::{TierName, Topology};
use weir_model::units::GbPerSec;

use crate::plan::{Load, PointSpec};
use crate::room::working_set;
use crate::study::Study;
use crate::together::{Operator, Together};
use crate::{Finished, Lab, LabError};

/// Say how much of an operator's data may be on a slower tier, with threads of its own there.
///
/// Threads on either tier read buffers at once. The time until the last one is done says which share of data the
/// slower tier can take before the whole slows.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir place offload --on emr2s+cxl-a
  weir place offload --on emr2s+cxl-a --share 10%,15% --local 8,16 \\
      --far 1,2,4,8,16
  weir place offload --on emr2s+cxl-a --operator join
  weir place offload --on spr8480+agilex-2666 --local 56 --far 8,28 \\
      --hyper-threads
  weir place offload --on gold6130 --rdma 12.5GB/s --share 5%,10% --local 8,16")]
pub struct Offload {
    /// The slower tier.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier of the other threads.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// The operator: sum, filter or join, of which far threads have the probing column far; a host has sum only.
    #[arg(long, value_name = "OPERATOR", default_value = "sum")]
    pub operator: Operator,
    /// The slower memory is another server's, over a link of this bandwidth; threads poll until data have arrived.
    #[arg(long, value_name = "BANDWIDTH", conflicts_with = "tier", value_parser = link)]
    pub rdma: Option<GbPerSec>,
    /// Bytes of a buffer on the slower tier, of those of another [default: half the ratio of the bandwidths, the ratio,
    /// and twice it].
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", value_parser = percent)]
    pub share: Vec<f64>,
    /// Numbers of threads on the other tier [default: a quarter, half and three quarters of the cores; with
    /// --hyper-threads all of them, too; with --rdma half of them and all].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub local: Vec<u32>,
    /// Numbers of threads on the slower tier [default: 1, 2, 4 ... half of the cores].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub far: Vec<u32>,
    /// Where no core is free, put threads on the slower tier on the second threads of cores, of which local threads have the
    /// first; models only.
    #[arg(long, conflicts_with = "rdma")]
    pub hyper_threads: bool,
}

/// A share in percent.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1000.0 => Ok(share),
        _ => Err("it is above 0 and at most 1000 percent, such as 10%".into()),
    }
}

/// The bandwidth of a link.
fn link(text: &str) -> Result<GbPerSec, String> {
    match text.parse::<GbPerSec>() {
        Ok(gbps) if gbps.get() > 0.0 => Ok(gbps),
        Ok(_) => Err("a link carries something, such as 12.5GB/s".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Threads that run at the same time: on the faster tier, on the slower one, or on both.
#[derive(Debug, Clone, Copy)]
enum Workers {
    Near(u32),
    Far(u32),
    Both(u32, u32),
}

impl Study for Offload {
    const VERB: &'static str = "place offload";
    type Output = Offloaded;

    fn run(&self, lab: &Lab<'_>) -> Result<Offloaded, LabError> {
        let topology = lab.topology();
        let (local, far) = self.threads(topology)?;
        let cores = topology.cores.len() as u32;
        let (near_gbps, far_gbps, core, pairs) = match self.rdma {
            None => self.on_tiers(lab, &local, &far)?,
            Some(link) => {
                let all: Vec<Workers> = local
                    .iter()
                    .chain(&[1])
                    .map(|&n| Workers::Near(n))
                    .collect();
                let given = self.measure(lab, &all)?;
                let near = most(given.get(..local.len()).unwrap_or_default());
                let alone_gbps = given.last().map_or(GbPerSec(0.0), |one| one.0);
                let core = SharedCore { alone_gbps };
                let with = |(&one, alone): (&u32, &(GbPerSec, GbPerSec))| {
                    let fits = far.iter().filter(move |&&other| one + other <= 2 * cores);
                    let alone = alone.0;
                    fits.map(move |&n| Pair::over_link((one, n, cores), alone, core, link))
                        .collect::<Vec<_>>()
                };
                let pairs = local.iter().zip(&given).flat_map(with).collect();
                (near, link, Some(core), pairs)
            }
        };
        let ratio = far_gbps / near_gbps;
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
            system_pct: 100.0 * pair.system_sharing(share_pct / 100.0, core),
        };
        let cells = shares
            .iter()
            .flat_map(|&share| pairs.iter().map(move |pair| cell(share, pair)));
        Ok(Offloaded {
            operator: self.operator,
            from: self.from.clone(),
            to: match self.rdma {
                Some(_) => TierName::named("rdma"),
                None => self.tier.clone(),
            },
            near_gbps,
            far_gbps,
            ratio_pct: 100.0 * ratio,
            cells: cells.collect(),
            pairs,
        })
    }
}

/// Bandwidths, what one thread alone has where that is known, and threads on both.
type Measured = (GbPerSec, GbPerSec, Option<SharedCore>, Vec<Pair>);

/// The most of what was read.
fn most(given: &[(GbPerSec, GbPerSec)]) -> GbPerSec {
    given
        .iter()
        .fold(GbPerSec(0.0), |most, one| most.max(one.0))
}

impl Offload {
    /// Threads on two tiers of the machine, each on a core of its own.
    fn on_tiers(&self, lab: &Lab<'_>, local: &[u32], far: &[u32]) -> Result<Measured, LabError> {
        let cores = lab.topology().cores.len() as u32;
        let counts = local
            .iter()
            .flat_map(|&one| far.iter().map(move |&other| (one, other)));
        let fits = |one: u32, other: u32| {
            one + other <= cores || self.hyper_threads && one.max(other) <= cores
        };
        let counts: Vec<_> = counts.filter(|(one, other)| fits(*one, *other)).collect();
        let (counts, crowded): (Vec<_>, Vec<_>) = counts
            .into_iter()
            .partition(|(one, other)| one + other <= cores);
        let near = local.iter().map(|&n| Workers::Near(n));
        let alone = near.chain(far.iter().map(|&n| Workers::Far(n)));
        let all: Vec<Workers> = alone
            .chain(counts.iter().map(|&(n, m)| Workers::Both(n, m)))
            .collect();
        let given = self.measure(lab, &all)?;
        let (alone, rest) = given.split_at(local.len());
        let (alone_far, together) = rest.split_at(far.len());
        let pair = |(one, other): (u32, u32), own: GbPerSec, far_gbps: GbPerSec| {
            let at = local.iter().position(|&n| n == one)?;
            let at_far = far.iter().position(|&n| n == other)?;
            let each = far_gbps.get() / f64::from(other);
            Some(Pair {
                local: one,
                far: other,
                alone_gbps: alone.get(at)?.0,
                local_gbps: own,
                far_gbps,
                far_alone_gbps: alone_far.get(at_far)?.0,
                level_pct: 100.0 * each / (own.get() / f64::from(one)).max(1e-9),
                shared_cores: None,
                sharing_gbps: None,
            })
        };
        let on_own = (counts.iter().zip(together))
            .filter_map(|(&counts, &(own, far_gbps))| pair(counts, own, far_gbps));
        let mut pairs: Vec<Pair> = on_own.collect();
        let crowd = |&(local, far): &(u32, u32)| Crowd {
            operator: self.operator,
            from: self.from.clone(),
            tier: self.tier.clone(),
            local,
            far,
        };
        let asks: Vec<Crowd> = crowded.iter().map(crowd).collect();
        let seen = lab.ask_all(&asks)?;
        pairs.extend(crowded.iter().zip(&seen).filter_map(|(&counts, seen)| {
            let with_others = pair(counts, seen.local, seen.far)?;
            Some(with_others.on_shared_cores(cores, seen))
        }));
        pairs.sort_by_key(|pair| (pair.local, pair.far));
        Ok((most(alone), most(alone_far), None, pairs))
    }

    /// How fast each group of workers goes through its columns: the first of two, and the second.
    fn measure(
        &self,
        lab: &Lab<'_>,
        all: &[Workers],
    ) -> Result<Vec<(GbPerSec, GbPerSec)>, LabError> {
        let topology = lab.topology();
        if self.operator == Operator::Sum {
            let load = |tier: &TierName, threads| stream(topology, tier, threads);
            let ask = |workers: &Workers| {
                Ok(match *workers {
                    Workers::Near(n) => PointSpec::alone("offload", load(&self.from, n)?),
                    Workers::Far(n) => PointSpec::alone("offload", load(&self.tier, n)?),
                    Workers::Both(n, m) => PointSpec::alone("offload", load(&self.from, n)?)
                        .beside(load(&self.tier, m)?),
                })
            };
            let asks = all.iter().map(ask).collect::<Result<Vec<_>, LabError>>()?;
            return lab.ask_all(&asks)?.iter().map(gbps).collect();
        }
        let part = self.operator.scan();
        let of = |tier, at| part.tenant(topology, tier, &self.from, at);
        let ask = |workers: &Workers| {
            let tenants = match *workers {
                Workers::Near(n) => vec![of(&self.from, (0, n))?],
                Workers::Far(n) => vec![of(&self.tier, (0, n))?],
                Workers::Both(n, m) => vec![of(&self.from, (0, n))?, of(&self.tier, (n, m))?],
            };
            Ok(Together { tenants })
        };
        let asks = all.iter().map(ask).collect::<Result<Vec<_>, LabError>>()?;
        let seen = lab.ask_all(&asks)?;
        Ok(seen
            .iter()
            .map(|one| (part.rate(one, 0), part.rate(one, 1)))
            .collect())
    }

    /// Numbers of threads on either tier.
    fn threads(&self, topology: &Topology) -> Result<(Vec<u32>, Vec<u32>), LabError> {
        let cores = topology.cores.len() as u32;
        if cores < 2 {
            return Err(LabError::Nothing(
                "threads on two tiers at once need two cores".into(),
            ));
        }
        if self.rdma.is_none() && self.from == self.tier {
            return Err(LabError::same_tier(&self.tier));
        }
        let quarters = match self.rdma {
            Some(_) => vec![cores / 2, cores],
            None => (1..if self.hyper_threads { 5 } else { 4 })
                .map(|n| (cores * n / 4).max(1))
                .collect(),
        };
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
        if self.rdma.is_some() || self.hyper_threads {
            let both = local.iter().chain(&far);
            return match both.copied().max().filter(|&most| most > cores) {
                Some(threads) => Err(LabError::Threads {
                    threads,
                    cores: cores as usize,
                }),
                None => Ok((local, far)),
            };
        }
        if least(&local) + least(&far) > cores {
            return Err(LabError::Nothing(format!(
                "{} threads need as many cores, and there are {cores}; on a model --hyper-threads puts two on one",
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

/// What a load read, and the one with it.
fn gbps(done: &Finished) -> Result<(GbPerSec, GbPerSec), LabError> {
    let point = &done.point;
    let beside = point.beside.as_ref().and_then(|beside| beside.gbps);
    match (point.gbps, &point.error) {
        (Some(gbps), _) => Ok((gbps, beside.unwrap_or(GbPerSec(0.0)))),
        (None, why) => Err(LabError::Failed(why.clone().unwrap_or_default())),
    }
}
