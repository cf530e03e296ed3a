//! Programs whose data are in memory of another server, by each method (DirectCXL, section 4.3).
//!
//! A program runs on the model with all data on local memory, and with its large data on the device. What other methods
//! take follows from the first of these runs: each page that it touches and that is not resident is swapped in, and each
//! element is a request to a key-value store.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::region::RegionUse;
use weir_model::tenant::Placement;
use weir_model::topology::{Tier, TierName};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::{Order, Region, Workload, Workloads};

use super::methods::{Method, Methods, PAGE, Parts};
use crate::room::check_regions;
use crate::{Ask, Lab, LabError, Placed, WorkloadOptions, WorkloadRun};

/// Lines that each thread touches in a phase while it is watched.
const ACCESSES: u64 = 40_000;
/// A sequential array is requested in pieces of this size.
const PIECE: u64 = 2048;
/// Regions below this are code, buffers and other data that stay local.
const LOCAL: Bytes = Bytes::mib(64);

weir_model::named! {
    /// A program of the paper, by the description that stands for it.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Program {
        /// Embedding tables of a recommendation model: the preset `dlrm-embedding`.
        Dlrm = "dlrm",
        /// Gets from a database in memory, by what the paper says of one.
        MemDb = "memdb",
        /// Breadth-first search: the preset `bfs-kron`.
        Graph = "graph",
    }
}

impl std::str::FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| format!("`{text}` is not dlrm, memdb or graph"))
    }
}

impl Program {
    /// Its description; `None` of the database, of which the paper says what a Get takes.
    fn workload(self, threads: u32) -> Option<Workload> {
        let name = match self {
            Program::Dlrm => "dlrm-embedding",
            Program::Graph => "bfs-kron",
            Program::MemDb => return None,
        };
        let work = Workloads::builtin().get(name)?.clone();
        let threads = work.threads.min(threads).max(1);
        Some(Workload { threads, ..work })
    }

    /// Refuses tiers that have no room for it: local memory for all of it, and the device for its large data.
    ///
    /// # Errors
    /// One has not.
    pub fn check_room(self, cores: u32, local: &Tier, device: &Tier) -> Result<(), LabError> {
        let Some(work) = self.workload(cores) else {
            return Ok(());
        };
        let memory = work.memory();
        let large = memory.iter().filter(|(_, bytes)| *bytes >= LOCAL);
        let bytes: Bytes = large.map(|(_, bytes)| *bytes).sum();
        let what = |part: &str| format!("{part} of {self} (`{}`)", work.name);
        check_regions(&what("all data"), work.footprint(), local)?;
        check_regions(&what("the large data"), bytes, device)
    }

    /// Whether its data can be had by requests for keys. Engines of graphs walk pointers.
    pub const fn has_keys(self) -> bool {
        !matches!(self, Program::Graph)
    }
}

/// A program with all data on local memory, or its large data on another tier.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramOn {
    /// The program.
    pub program: Program,
    /// Where its large data are.
    pub tier: TierName,
}

impl Ask for ProgramOn {
    type Got = WorkloadRun;
    const KIND: &'static str = "program of disaggregated memory, version 1";

    fn ask(&self, lab: &Lab<'_>) -> Result<WorkloadRun, LabError> {
        let work = self.program.workload(lab.topology().cores.len() as u32);
        let work =
            work.ok_or_else(|| LabError::Nothing(format!("no description of {}", self.program)))?;
        let options = WorkloadOptions {
            accesses: ACCESSES,
            seed: lab.seed(),
            ..WorkloadOptions::default()
        };
        let large = work
            .memory()
            .into_iter()
            .filter(|(_, bytes)| *bytes >= LOCAL);
        let at = |name: &str| (name.to_owned(), Placement::Bind(self.tier.clone()));
        let placements: BTreeMap<_, _> = large.map(|(name, _)| at(name)).collect();
        Placed {
            placements,
            ..Placed::local(&work, &options)
        }
        .ask(lab)
    }
}

/// The time of a program by one method: of 1000 instructions of a thread, or of one Get.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramRow {
    /// The program.
    pub program: Program,
    /// The method.
    pub method: Method,
    /// All of it.
    pub time: Nanos,
    /// Of the time with swap, percent.
    pub of_swap_pct: f64,
    /// What it takes with all data on local memory.
    pub own: Nanos,
    /// Loads of the device beyond those of local memory.
    pub device: Nanos,
    /// Network, adapters and their transfers.
    pub network: Nanos,
    /// The kernel, or a server.
    pub software: Nanos,
    /// Requests, or pages swapped in.
    pub requests: f64,
}

/// What a program does in 1000 instructions of a thread, or in one Get.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// With all data on local memory.
    pub own: Nanos,
    /// More, with them on the device.
    pub device: Nanos,
    /// Pages that are not resident.
    pub faults: f64,
    /// Requests to a key-value store, and their mean bytes; `None` where data have no keys.
    pub requests: Option<(f64, Bytes)>,
}

impl Work {
    /// A Get of the paper's database, whose misses take as long as these loads.
    pub fn get(methods: &Methods, local: Nanos, device: Nanos) -> Self {
        Self {
            own: methods.own + local * methods.missing,
            device: (device - local) * methods.missing,
            faults: methods.missing,
            requests: Some((1.0, methods.value)),
        }
    }

    /// A described program, from its run on local memory and that on the device; `None` of the database.
    pub fn of(
        program: Program,
        runs: (&WorkloadRun, &WorkloadRun),
        methods: &Methods,
        cores: u32,
    ) -> Option<Self> {
        let work = program.workload(cores)?;
        let (local, device) = runs;
        let touched = Touched::of(&work, local, methods.resident);
        // Threads wait for their own requests.
        let each = 1000.0 / local.instructions.max(1) as f64;
        let time = |time: Nanos| time * (each * f64::from(work.threads));
        Some(Self {
            own: time(local.time),
            device: time(Nanos((device.time - local.time).get().max(0.0))),
            faults: touched.faults * each,
            requests: (program.has_keys()).then_some((touched.requests * each, touched.value)),
        })
    }

    /// Its rows: each method that it can use.
    pub fn rows(&self, program: Program, methods: &Methods) -> Vec<ProgramRow> {
        let row = |method, requests: f64, device: Nanos, parts: Parts| {
            let network = (parts.network + parts.memory) * requests;
            let software = parts.software * requests;
            ProgramRow {
                program,
                method,
                time: self.own + network + software + device,
                of_swap_pct: 0.0,
                own: self.own,
                device,
                network,
                software,
                requests,
            }
        };
        let none = Nanos(0.0);
        let mut rows = vec![
            row(Method::Local, 0.0, none, Parts::default()),
            row(Method::Cxl, 0.0, self.device, Parts::default()),
        ];
        if let Some((requests, value)) = self.requests {
            rows.push(row(
                Method::KeyValue,
                requests,
                none,
                methods.key_value(value),
            ));
        }
        rows.push(row(Method::Swap, self.faults, none, methods.swap()));
        let swap = rows.last().map_or(Nanos(1.0), |row| row.time);
        for row in &mut rows {
            row.of_swap_pct = 100.0 * (row.time / swap);
        }
        rows
    }
}

/// What a run touches of its large data.
struct Touched {
    /// Pages that are not resident.
    faults: f64,
    /// Elements, or pieces of a sequential array.
    requests: f64,
    /// Mean bytes of a request.
    value: Bytes,
}

impl Touched {
    fn of(work: &Workload, run: &WorkloadRun, resident: Bytes) -> Self {
        let phases = work.phases.iter().zip(&run.phases);
        let large: Vec<(&Region, &RegionUse)> = phases
            .flat_map(|(phase, ran)| {
                let large = phase.regions.iter().filter(|region| region.bytes >= LOCAL);
                large.filter_map(|region| {
                    let used = ran.uses.iter().find(|used| used.region == region.name)?;
                    Some((region, used))
                })
            })
            .collect();
        let pages: Vec<f64> = large
            .iter()
            .map(|(region, used)| pages(region, used))
            .collect();
        let all: f64 = pages.iter().sum();
        let (mut faults, mut requests, mut bytes) = (0.0, 0.0, 0.0);
        for ((region, used), &pages) in large.iter().zip(&pages) {
            let share = if all > 0.0 { pages / all } else { 0.0 };
            faults += pages * (1.0 - held(region, resident.get() as f64 * share));
            let size = piece(region) as f64;
            let count = used.read as f64 * LINE_BYTES as f64 / size.max(LINE_BYTES as f64);
            requests += count;
            bytes += count * size;
        }
        Self {
            faults,
            requests,
            value: Bytes((bytes / f64::max(requests, 1.0)) as u64),
        }
    }
}

/// Bytes of one request.
fn piece(region: &Region) -> u64 {
    match region.order {
        Order::Sequential | Order::Fresh => region.element.get().max(PIECE),
        _ => region.element.get(),
    }
}

/// Pages that lines from memory belong to, each counted when the order comes to it.
fn pages(region: &Region, used: &RegionUse) -> f64 {
    let together = match region.order {
        Order::Sequential | Order::Fresh => PAGE.get(),
        _ => region.element.get().clamp(LINE_BYTES, PAGE.get()),
    };
    used.read as f64 * LINE_BYTES as f64 / together as f64
}

/// The share of a region's accesses that go to its resident pages, which are the most popular ones. The popular elements of
/// Zipf's law are scattered: each resident page has one of them, and else its part of all others.
fn held(region: &Region, resident: f64) -> f64 {
    let share = (resident / region.bytes.get() as f64).min(1.0);
    match region.order {
        _ if share >= 1.0 => 1.0,
        Order::Sequential | Order::Fresh | Order::Cycle => 0.0,
        Order::Zipf => {
            let elements = region.bytes.get() as f64 / region.element.get().max(1) as f64;
            let popular = (resident / PAGE.get() as f64 / elements).min(1.0);
            let popular = popular.powf((1.0 - region.skew).max(0.0));
            popular + (1.0 - popular) * share
        }
        Order::Apex | Order::Random | Order::Chase => share,
    }
}
