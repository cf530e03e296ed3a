//! An in-memory database with its column store, its working memory, or both on far memory (DaMoN 2022 and 2023).
//!
//! The database of the papers is not public. `column-olap` and `postgres-tpcc` stand for its queries and transactions: engines
//! whose instructions and accesses were counted, by what of their memory is tables and what is working memory (docs/workloads.md).

use std::collections::BTreeMap;

use serde::Serialize;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES};
use weir_model::workload::{Region, Workload, Workloads};

use crate::reproduce::figures::ratio;
use crate::reproduce::rule::{Figure, Rule};
use crate::workload::{Placed, WorkloadOptions, WorkloadRun};
use crate::{Ask, Lab, LabError};

const ENGINE: &str = "another engine stands for the paper's, and a stream of queries keeps an eighth of the cores busy";
const SWEEP: &str = "another engine and TPC-H stand for the paper's; the mean of 1, 2, 4, 8, 16 and 32 requests, each of which \
     keeps an eighth of the cores busy";
const ATTACHED: &str =
    "ours is the first count of streams with nine tenths of the traffic of eight";

const TRANSACTIONS: &str = "another engine stands for the paper's, in which cores are the limit, and neither locks nor the log; \
     the largest loss of those that the row names";

/// Lines that all threads of a run access together while they are watched: rows come in batches, so that few lines are few
/// independent draws.
const LINES: u64 = 1_600_000;

/// Tables, and what queries work in.
const TABLES: &str = "main";
const WORKING: &str = "heap";
/// The part of it that each thread has for itself, whatever the number of streams.
const OF_A_THREAD: &str = "vectors";

/// The preset of queries.
fn queries() -> Option<Workload> {
    Workloads::builtin().get("column-olap").cloned()
}

/// The regions of these objects.
fn regions(workload: &Workload, objects: &[&str]) -> Vec<String> {
    let all = workload.objects().into_iter();
    let own = all.filter(|(object, ..)| objects.contains(object));
    own.flat_map(|(.., regions)| regions)
        .map(str::to_owned)
        .collect()
}

/// An engine on this many cores, with some of its objects elsewhere.
#[derive(Debug, Clone, Serialize)]
struct Engine {
    workload: Workload,
    placements: BTreeMap<String, Placement>,
    options: WorkloadOptions,
}

impl Ask for Engine {
    type Got = WorkloadRun;
    const KIND: &'static str = "engine";

    fn ask(&self, lab: &Lab<'_>) -> Result<WorkloadRun, LabError> {
        let options = WorkloadOptions {
            seed: lab.seed(),
            ..self.options.clone()
        };
        let placed = Placed {
            placements: self.placements.clone(),
            ..Placed::local(&self.workload, &options)
        };
        placed.ask(lab)
    }
}

/// A server, and the far memory that it has.
#[derive(Clone, Copy)]
struct Server {
    platform: &'static str,
    /// Its devices, or the other socket.
    far: &'static [&'static str],
    cores: u32,
}

const CARD_22: Server = Server {
    platform: "sap22+sap22-card",
    far: &["cxl0"],
    cores: 44,
};
const REMOTE_22: Server = Server {
    far: &["remote"],
    ..CARD_22
};
const CARD_23: Server = Server {
    platform: "sap23+sap23-card",
    far: &["cxl0"],
    cores: 56,
};
const REMOTE_23: Server = Server {
    far: &["remote"],
    ..CARD_23
};

impl Server {
    /// An engine on so many cores, with these objects on far memory.
    fn engine(self, workload: Workload, threads: u32, far: &[&str]) -> Engine {
        let tiers = self.far.iter().map(|tier| (TierName::named(*tier), 1));
        let there = Placement::Interleave(tiers.collect());
        Engine {
            placements: (regions(&workload, far).into_iter())
                .map(|region| (region, there.clone()))
                .collect(),
            workload: Workload {
                threads,
                ..workload
            },
            options: WorkloadOptions {
                accesses: LINES / u64::from(threads),
                ..WorkloadOptions::default()
            },
        }
    }

    /// The throughput of transactions that is lost on all cores with these objects on far memory.
    fn lost_transactions(self, far: &[&str]) -> Figure {
        let Some(workload) = Workloads::builtin().get("postgres-tpcc").cloned() else {
            return Figure::new("%", |_| Err("there is no such preset".into()));
        };
        let time = |far: &[&str]| {
            let engine = self.engine(workload.clone(), self.cores, far);
            Figure::read("ns", self.platform, engine, |run| Ok(run.time.get()))
        };
        let left = ratio(&time(&[]), &time(far));
        Figure::new("%", move |results| Ok(100.0 * (1.0 - left.value(results)?)))
    }

    /// A figure of an engine with these objects on far memory, while this many streams of queries run.
    fn figure(
        self,
        unit: &'static str,
        streams: u32,
        far: &[&str],
        read: impl Fn(&WorkloadRun) -> f64 + Send + Sync + 'static,
    ) -> Figure {
        let Some(mut workload) = queries() else {
            return Figure::new(unit, |_| Err("there is no such preset".into()));
        };
        let all = workload
            .phases
            .iter_mut()
            .flat_map(|phase| &mut phase.regions);
        // All read the same tables, and each stream has memory of its own to work in.
        let of_a_stream = |region: &&mut Region| {
            region.object.as_deref() == Some(WORKING) && region.name != OF_A_THREAD
        };
        for region in all.filter(of_a_stream) {
            region.bytes = Bytes(region.bytes.get() * u64::from(streams));
        }
        let threads = (self.cores * streams).div_ceil(8).min(self.cores);
        let engine = self.engine(workload, threads, far);
        Figure::read(unit, self.platform, engine, move |run| Ok(read(run)))
    }

    /// How much longer queries take with these objects on far memory.
    fn slower(self, streams: u32, far: &[&str]) -> Figure {
        let time = |far: &[&str]| self.figure("ns", streams, far, |run| run.time.get());
        ratio(&time(far), &time(&[]))
    }

    /// The throughput that is left.
    fn left(self, streams: u32, far: &[&str]) -> Figure {
        let slower = self.slower(streams, far);
        Figure::new("norm.", move |results| Ok(1.0 / slower.value(results)?))
    }

    /// The throughput that is lost.
    fn lost(self, streams: u32, far: &[&str]) -> Figure {
        let left = self.left(streams, far);
        Figure::new("%", move |results| Ok(100.0 * (1.0 - left.value(results)?)))
    }

    /// What these objects draw from memory while they are on far memory.
    fn traffic(self, streams: u32, far: &'static [&'static str], written_only: bool) -> Figure {
        let regions = queries().map_or_else(Vec::new, |workload| regions(&workload, far));
        let drawn = move |run: &WorkloadRun| {
            let uses = run.phases.iter().flat_map(|phase| &phase.uses);
            let own = uses.filter(|own| regions.contains(&own.region));
            let read = |read: u64| if written_only { 0 } else { read };
            let lines: u64 = own.map(|own| read(own.read) + own.written).sum();
            GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), run.time).get()
        };
        self.figure("GB/s", streams, far, drawn)
    }

    /// The mean loss of throughput over the paper's sweep of requests at once.
    fn lost_over_sweep(self) -> Figure {
        let each = [1, 2, 4, 8, 16, 32].map(|requests| self.lost(requests, &[TABLES]));
        Figure::new("%", move |results| {
            let mut sum = 0.0;
            for loss in &each {
                sum += loss.value(results)?;
            }
            Ok(sum / each.len() as f64)
        })
    }

    /// The first count of streams that draw nearly what eight do.
    fn saturated(self) -> Figure {
        let far = &[TABLES, WORKING];
        let each = [1, 2, 4, 8].map(|streams| (streams, self.traffic(streams, far, false)));
        Figure::new("streams", move |results| {
            let mut drawn = Vec::new();
            for (streams, traffic) in &each {
                drawn.push((f64::from(*streams), traffic.value(results)?));
            }
            let most = drawn.iter().fold(0.0, |most: f64, (_, of)| most.max(*of));
            let first = drawn.iter().find(|(_, traffic)| *traffic >= 0.9 * most);
            first
                .map(|(streams, _)| *streams)
                .ok_or_else(|| "nothing is drawn".into())
        })
    }
}

pub(super) fn rules() -> Vec<Rule> {
    let (main, heap): (&[&str], &[&str]) = (&[TABLES], &[WORKING]);
    let olap = |id, figure| Rule::predicted(id, figure).noting(ENGINE);
    let slowed = |streams, far| {
        let slower = CARD_23.slower(streams, far);
        Figure::new("%", move |results| {
            Ok(100.0 * (slower.value(results)? - 1.0))
        })
    };
    let norm = |figure: Figure| Figure::new("norm.", move |results| figure.value(results));
    vec![
        Rule::predicted("SPA-001", CARD_22.lost_transactions(&["tables"])).noting(TRANSACTIONS),
        Rule::predicted("SPE-001", CARD_23.lost_transactions(&["tables", WORKING]))
            .noting(TRANSACTIONS),
        Rule::predicted("SPA-003", CARD_22.lost_over_sweep()).noting(SWEEP),
        Rule::predicted("SPA-005", REMOTE_22.lost_over_sweep()).noting(SWEEP),
        olap("SPE-011", CARD_23.traffic(8, &[TABLES], true)),
        Rule::predicted("SPE-014", CARD_23.saturated()).noting(ATTACHED),
        olap("SPE-016", norm(CARD_23.slower(1, main))),
        olap("SPE-017", norm(CARD_23.slower(1, heap))),
        olap("SPE-019", slowed(1, main)),
        olap("SPE-020", slowed(1, heap)),
        olap("SPE-022", CARD_23.left(8, main)),
        olap("SPE-023", CARD_23.left(8, heap)),
        olap("SPE-025", CARD_23.lost(8, main)),
        olap("SPE-026", CARD_23.lost(8, heap)),
        olap("SPE-029", REMOTE_23.left(8, main)),
        olap("SPE-030", REMOTE_23.left(8, heap)),
        olap("SPE-032", REMOTE_23.lost(8, main)),
        olap("SPE-033", REMOTE_23.lost(8, heap)),
    ]
}
