//! `weir place stage`: whether to copy columns from a slower tier to a faster one before queries read them.
//!
//! As the pipeline groups of *Near to Far* (DIMES 2023, section 5): queries that run one after the other share a large
//! column, and each has a small one of its own. A copier brings columns near while the query before is executed. With
//! `Q` queries, a shared column of `S` bytes and own ones of `o`, the slower tier is read for
//!
//! ```text
//! direct     Q (S + o)     the workers load from it
//! copied     Q (S + o)     each query has all of its columns copied
//! grouped    S + Q o       the shared column is copied once and kept
//! ```

mod outcome;
mod timeline;

pub use outcome::{StagedPart, StagedRun, Staging, Way};

use weir_model::access::{Op, Pattern};
use weir_model::topology::{Tier, TierName};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::movement::{ASYNC_DEPTH, Method, copy};
use crate::plan::or_usual;
use crate::study::Study;
use crate::together::{Operator, Part, SeenTogether, Together, tenant_of};
use crate::{Ask, Lab, LabError};
use timeline::{Course, Plan, Rates};

/// Say whether columns that queries share are copied from a slower tier first, or read there.
///
/// Queries run one after the other. Each reads the shared column and a small one of its own, by loads from the slower
/// tier (direct), or after a copier has brought them near: both for every query (copied), or the shared column once
/// (grouped). The copier works one query ahead.
#[derive(Debug, Clone, PartialEq, serde::Serialize, clap::Args)]
#[command(after_help = "\
Examples:
  weir place stage --on emr2s+cxl-a
  weir place stage --on spr8480+agilex-2x2666 --operator join --shared 2G \\
      --own 64M
  weir place stage --on emr2s+cxl-a --copier memcpy --copy-threads 5")]
pub struct Stage {
    /// The slower tier, which has the columns.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier to which they are copied.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub to: TierName,
    /// The operator: sum, filter or join; a host has sum only.
    #[arg(long, value_name = "OPERATOR", default_value = "sum")]
    pub operator: Operator,
    /// Threads that execute queries; without a copier, its threads execute them as well [default: all other cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// What copies: memcpy, nt_copy, movdir64b, dsa_sync, dsa_async.
    #[arg(long, value_name = "METHOD", default_value = "dsa_async")]
    pub copier: Method,
    /// Threads that copy, or that submit copies [default: 1 for dsa, else 5, as in the paper].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub copy_threads: Option<u32>,
    /// Numbers of queries [default: 1,2,5,10,20].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub queries: Vec<u32>,
    /// The column that all queries read.
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub shared: Bytes,
    /// The column that each query has of its own.
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub own: Bytes,
}

/// Numbers of queries of the paper's figure, up to 20.
const QUERIES: [u32; 5] = [1, 2, 5, 10, 20];
/// Threads that copy (section 5: five are pinned).
const COPY_THREADS: u32 = 5;
/// What a submission to the accelerator copies.
const DESCRIPTORS: Pattern = Pattern::Descriptors {
    bytes: Bytes::kib(4),
    batch: 16,
    in_flight: ASYNC_DEPTH,
};

impl Ask for Stage {
    type Got = Staging;
    const KIND: &'static str = "queries on copied columns";

    fn ask(&self, lab: &Lab<'_>) -> Result<Staging, LabError> {
        self.run(&lab.inside())
    }
}

/// What was measured of a part of the operator.
struct Measured {
    part: Part,
    direct: GbPerSec,
    /// Bytes that the slower tier was read for, of each byte of a column that was read there by loads.
    direct_far: Option<f64>,
    rates: Rates,
    /// The same of each byte that was copied with the workers.
    copied_far: Option<f64>,
}

impl Study for Stage {
    const VERB: &'static str = "place stage";
    type Output = Staging;

    fn run(&self, lab: &Lab<'_>) -> Result<Staging, LabError> {
        let topology = lab.topology();
        let find = |name: &TierName| {
            (topology.tier(name)).ok_or_else(|| LabError::unknown_tier(name, topology))
        };
        let (far, near) = (find(&self.tier)?, find(&self.to)?);
        if far.name == near.name {
            return Err(LabError::Nothing(format!(
                "{} is both tiers; name another one",
                far.name
            )));
        }
        if self.shared.get() == 0 && self.own.get() == 0 {
            return Err(LabError::Nothing(
                "queries on empty columns read nothing".into(),
            ));
        }
        let most = or_usual(&self.queries, &QUERIES).into_iter().max();
        let own = u64::from(most.unwrap_or(1)).saturating_mul(self.own.get());
        let columns = Bytes(self.shared.get().saturating_add(own));
        // The shared column is kept near, and the own ones pass.
        for (tier, bytes) in [(far, columns), (near, self.shared)] {
            if bytes > tier.capacity {
                lab.warn(format!(
                    "the columns on {} have {bytes}, and it has {}: more of such memory is assumed",
                    tier.name, tier.capacity
                ));
            }
        }
        let copy_threads = self.copy_threads.unwrap_or(match self.copier.op() {
            Op::Dsa => 1,
            _ => COPY_THREADS,
        });
        let cores = topology.cores.len() as u32;
        let threads = self
            .threads
            .unwrap_or(cores.saturating_sub(copy_threads).max(1));
        if threads + copy_threads > cores {
            return Err(LabError::Threads {
                threads: threads + copy_threads,
                cores: cores as usize,
            });
        }
        let pattern = match self.copier {
            Method::DsaAsync => DESCRIPTORS,
            Method::DsaSync => Pattern::Descriptors {
                bytes: Bytes::kib(4),
                batch: 16,
                in_flight: 1,
            },
            _ => Pattern::Sequential,
        };
        let load = copy(topology, far, near, self.copier.op(), pattern, copy_threads)?;
        let copier = tenant_of(&load, topology, threads)?;
        let mut parts = vec![self.operator.build(), self.operator.scan()];
        parts.dedup();
        let mut asks = vec![Together {
            tenants: vec![copier.clone()],
        }];
        for part in &parts {
            let of = |column: &Tier, threads| {
                part.tenant(topology, &column.name, &near.name, (0, threads))
            };
            let alone = of(near, threads)?;
            asks.push(Together {
                tenants: vec![of(far, threads + copy_threads)?],
            });
            asks.push(Together {
                tenants: vec![alone.clone()],
            });
            asks.push(Together {
                tenants: vec![alone, copier.clone()],
            });
        }
        let seen = lab.ask_all(&asks)?;
        let (copier_alone, rest) = seen.split_first().ok_or(LabError::Stopped)?;
        // A copy touches each byte twice, at its source and at its destination.
        let moved = |seen: &SeenTogether, tenant: usize| {
            let bytes = seen.bytes.get(tenant).copied().unwrap_or_default();
            seen.rate(bytes) / 2.0
        };
        let of_far = |seen: &SeenTogether, used: GbPerSec| {
            let read = seen.rate(seen.read_from(far.kind)?);
            (used.get() > 0.0).then(|| read / used)
        };
        let mut measured = Vec::new();
        for (&part, seen) in parts.iter().zip(rest.chunks(3)) {
            let [direct, alone, beside] = seen else {
                return Err(LabError::Stopped);
            };
            let rates = Rates {
                alone: part.rate(alone, 0),
                beside: part.rate(beside, 0),
                copier: moved(beside, 1),
            };
            measured.push(Measured {
                part,
                direct: part.rate(direct, 0),
                direct_far: of_far(direct, part.rate(direct, 0)),
                rates,
                copied_far: of_far(beside, rates.copier),
            });
        }
        let copier_gbps = moved(copier_alone, 0);
        let far_alone = of_far(copier_alone, copier_gbps);
        let mut runs = Vec::new();
        for &queries in &or_usual(&self.queries, &QUERIES) {
            let direct = self.direct(queries, &measured);
            runs.push(direct.clone());
            for way in [Way::Copied, Way::Grouped] {
                let run = self.staged(way, queries, &measured, (copier_gbps, far_alone));
                runs.push(StagedRun {
                    faster: direct.time_ms / run.time_ms,
                    ..run
                });
            }
        }
        Ok(Staging {
            from: far.name.clone(),
            to: near.name.clone(),
            operator: self.operator,
            copier: self.copier.name().to_owned(),
            copy_threads,
            threads,
            copier_gbps,
            shared_bytes: self.shared,
            own_bytes: self.own,
            parts: measured.iter().map(|one| one.line()).collect(),
            runs,
        })
    }
}

impl Measured {
    fn line(&self) -> StagedPart {
        StagedPart {
            part: self.part.name.to_owned(),
            direct_gbps: self.direct,
            near_gbps: self.rates.alone,
            beside_gbps: self.rates.beside,
            copier_gbps: self.rates.copier,
        }
    }
}

impl Stage {
    /// What each part reads in one query: the first the column of its own, the last the shared one.
    fn columns<'m>(&self, parts: &'m [Measured]) -> Vec<(Bytes, &'m Measured)> {
        match parts {
            [only] => vec![(
                Bytes(self.shared.get().saturating_add(self.own.get())),
                only,
            )],
            [build, scan, ..] => vec![(self.own, build), (self.shared, scan)],
            [] => Vec::new(),
        }
    }

    /// Workers that load all columns from the slower tier.
    fn direct(&self, queries: u32, parts: &[Measured]) -> StagedRun {
        let (mut time, mut far) = (Nanos(0.0), Some(0.0));
        for (bytes, of) in self.columns(parts) {
            let all = bytes.get() as f64 * f64::from(queries);
            time = time + Nanos(all / of.direct.get());
            far = far.zip(of.direct_far).map(|(sum, each)| sum + all * each);
        }
        StagedRun::of(
            Way::Direct,
            (queries, self.least(Way::Direct, queries)),
            far,
            Course {
                time,
                ..Course::default()
            },
        )
    }

    /// Workers that read near what a copier has brought.
    fn staged(
        &self,
        way: Way,
        queries: u32,
        parts: &[Measured],
        (copier_alone, far_alone): (GbPerSec, Option<f64>),
    ) -> StagedRun {
        let columns = self.columns(parts);
        let query: Vec<(Bytes, Rates)> = columns.iter().map(|(b, of)| (*b, of.rates)).collect();
        let both = Bytes(self.shared.get().saturating_add(self.own.get()));
        let copies: Vec<Bytes> = (0..queries)
            .map(|n| {
                if way == Way::Copied || n == 0 {
                    both
                } else {
                    self.own
                }
            })
            .collect();
        let course = Plan {
            query: &query,
            copies: &copies,
            copier_alone,
        }
        .run();
        // With workers the copier reads as much for each byte whatever they execute.
        let beside = columns.last().and_then(|(_, of)| of.copied_far);
        let far = far_alone.zip(beside);
        let far = far.map(|(alone, beside)| course.copied[0] * alone + course.copied[1] * beside);
        StagedRun::of(way, (queries, self.least(way, queries)), far, course)
    }

    /// Bytes that the slower tier has to be read for.
    fn least(&self, way: Way, queries: u32) -> Bytes {
        let all = |bytes: Bytes| bytes.get().saturating_mul(queries.into());
        Bytes(all(self.own).saturating_add(match way {
            Way::Grouped => self.shared.get(),
            Way::Direct | Way::Copied => all(self.shared),
        }))
    }
}
