//! Workloads: what a program does to memory, as data.
//!
//! A description is a TOML file of some fifteen lines: phases, each with the rate at which it would
//! run if memory took no time, and the regions of memory that it touches meanwhile: how large, in
//! which order, with how much overlap. From these a machine's model derives hits, misses, stalls and
//! bandwidth; none of them is written down. `docs/workloads.md` has every key.

mod application;
mod hosted;
mod library;
mod population;
mod read;
mod requests;
mod schema;
mod write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use application::{Application, RealProgram};
pub use hosted::{GROUPS, HOSTED, Hosted};
pub use library::Workloads;
pub use population::{Population, population};
pub use requests::{Requests, Spread};
pub use schema::{FILE_KEYS, PHASE_KEYS, REGION_KEYS, REQUEST_KEYS};

use crate::units::{Bytes, LINE_BYTES};

/// What a program does to memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Its name: that of its file.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// The public characterisation it is derived from.
    pub source: String,
    /// What the source does not say, where something is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<String>,
    /// The real program that it describes, where a Linux host can run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// Which of its variants it describes, where not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Threads, each on a core of its own. They share the regions.
    pub threads: u32,
    /// `core.ipc` of the core whose cycles each `cpi` counts; `None` where they hold on every core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_ipc: Option<f64>,
    /// The requests that it answers, if its work comes in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// What it does, one after the other and again from the start.
    pub phases: Vec<Phase>,
}

/// A stretch of a program in which it does the same all the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Instructions of one thread before the next phase begins.
    pub instructions: u64,
    /// Core cycles of an instruction while every access hits L1.
    pub cpi: f64,
    /// Accesses to the regions in a thousand instructions. Those to the stack and to other lines that
    /// never leave L1 are not among them; their time is in `cpi`.
    pub apki: f64,
    /// Share of the instructions after a load that need its value, directly or through others: its
    /// forward slice. They wait while it misses; the others go on.
    #[serde(default = "usual_slice")]
    pub slice: f64,
    /// Share of the instructions whose result is in a vector register: floating point, SIMD, and loads for
    /// either.
    #[serde(default)]
    pub vector: f64,
    /// Branches that are predicted wrong in a thousand instructions, besides those that depend on an element
    /// of a region. What they cost while everything hits is in `cpi`; one in the slice of a load that
    /// misses stops what follows until the load is back.
    #[serde(default)]
    pub mispredicts: f64,
    /// What the accesses go to.
    pub regions: Vec<Region>,
}

/// The forward slice of a load where a description says nothing. When misses have filled a reorder buffer
/// of 192, about a third of 92 scheduler entries is still free: three in ten instructions wait (memory-bound
/// SPEC programs, Naithani et al., Precise Runahead Execution, HPCA 2020).
pub(crate) const fn usual_slice() -> f64 {
    0.3
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

const fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
const fn is_one(number: &u32) -> bool {
    *number == 1
}

/// A part of a program's memory, and how it is touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Its name, unique in the phase.
    pub name: String,
    /// What it belongs to, where one thing that is placed as a whole has several regions; itself unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Its size, of all threads together.
    pub bytes: Bytes,
    /// The order of its elements.
    pub order: Order,
    /// Share of the phase's accesses that go here.
    pub share: f64,
    /// Bytes that are touched at one place. Up to a line it is one access; more are one access for
    /// each line, in a row.
    pub element: Bytes,
    /// In which order the lines of one element are touched, where it has several.
    #[serde(default, skip_serializing_if = "Within::is_sequential")]
    pub within: Within,
    /// From one element to the next of a sequential order; as large as the element or larger.
    pub stride: Bytes,
    /// Share of the accesses that are stores.
    pub stores: f64,
    /// Share of the loaded elements that are stored to right after: read, modified, written. These stores are not among the
    /// accesses of the phase.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub modifies: f64,
    /// Share of the stores that go past the caches.
    pub non_temporal: f64,
    /// Independent runs of a sequential order, or independent chains of a chase or of dependent
    /// loads: what the program itself overlaps.
    pub streams: u32,
    /// Elements that are accessed one after the other before another region has its turn, as in an engine that processes a
    /// vector of rows at a time (Boncz, Zukowski and Nes, MonetDB/X100, CIDR 2005). Shares of accesses stay as they are.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub batch: u32,
    /// Exponent of a Zipf order; alpha of an apex order.
    pub skew: f64,
    /// Share of the elements whose address is loaded from the element before, of the same chain.
    pub dependent: f64,
    /// The region whose latest load has the address of an element here, as in `a[b[i]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexed_by: Option<String>,
    /// Share of the elements whose value decides a branch that is predicted wrong: nothing after it
    /// starts before the load is back.
    pub mispredicted: f64,
}

crate::named! {
    /// In which order the elements of a region are touched.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Order {
        /// Ascending, again from the start at the end.
        Sequential = "sequential",
        /// Drawn with equal chance.
        Random = "random",
        /// Each once, in an irregular order, and again in the same order: the next round of a list, or of a walk of pointers.
        Cycle = "cycle",
        /// Drawn by Zipf's law, the popular ones scattered.
        Zipf = "zipf",
        /// Drawn as Apex-Map does: of N elements the one at u^(1/alpha) N, u from 0 to 1, so that the first ones are the
        /// popular ones (Strohmaier and Shan, *Apex-Map*, SC 2005).
        Apex = "apex",
        /// Drawn with equal chance, each address loaded from the element before.
        Chase = "chase",
        /// Ascending through memory that was never touched before, as an allocator hands it out: every
        /// page is cleared when it is first touched, and no line is in any cache.
        Fresh = "fresh",
    }
}

crate::named! {
    /// In which order the lines of one element are touched.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Within {
        /// Ascending, as a copy does.
        #[default]
        Sequential = "sequential",
        /// In an order of their own, as objects that were allocated together and are found one by one.
        Random = "random",
    }
}

impl Within {
    /// Whether they ascend.
    #[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
    pub const fn is_sequential(&self) -> bool {
        matches!(self, Within::Sequential)
    }
}

impl Order {
    /// Whether lines follow each other without end.
    pub const fn is_run(self) -> bool {
        matches!(self, Order::Sequential | Order::Fresh)
    }

    /// Whether some elements are touched more often than others.
    pub const fn is_skewed(self) -> bool {
        matches!(self, Order::Zipf | Order::Apex)
    }
}

impl Workload {
    /// Bytes of all regions together. Regions of one name in several phases are the same memory, as
    /// large as the largest of them.
    pub fn footprint(&self) -> Bytes {
        self.memory().into_iter().map(|(_, bytes)| bytes).sum()
    }

    /// Every region of memory, by name, in the order in which the phases name them.
    pub fn memory(&self) -> Vec<(&str, Bytes)> {
        let mut memory: Vec<(&str, Bytes)> = Vec::new();
        for region in self.phases.iter().flat_map(|phase| &phase.regions) {
            match memory.iter_mut().find(|(name, _)| *name == region.name) {
                Some((_, bytes)) => *bytes = Bytes(bytes.get().max(region.bytes.get())),
                None => memory.push((&region.name, region.bytes)),
            }
        }
        memory
    }

    /// What is placed as a whole, in the order in which the phases name it: its name, its size, and its regions.
    pub fn objects(&self) -> Vec<(&str, Bytes, Vec<&str>)> {
        let regions = || self.phases.iter().flat_map(|phase| &phase.regions);
        let mut objects: Vec<(&str, Bytes, Vec<&str>)> = Vec::new();
        for (name, bytes) in self.memory() {
            let own = regions().filter(|region| region.name == name);
            let object = own.filter_map(|region| region.object.as_deref()).next();
            let object = object.unwrap_or(name);
            match objects.iter_mut().find(|(known, ..)| *known == object) {
                Some((_, all, names)) => {
                    *all = Bytes(all.get().saturating_add(bytes.get()));
                    names.push(name);
                }
                None => objects.push((object, bytes, vec![name])),
            }
        }
        objects
    }

    /// The region in which a real program keeps its data: the largest. Its elements are the records, and its skew is that
    /// of requests.
    pub fn data(&self) -> Option<&Region> {
        let regions = self.phases.iter().flat_map(|phase| &phase.regions);
        regions.rev().max_by_key(|region| region.bytes.get())
    }

    /// The share of requests that write its data.
    pub fn updates(&self) -> f64 {
        let said = self.requests.as_ref().and_then(|requests| requests.updates);
        said.or_else(|| Some(self.data()?.stores)).unwrap_or(0.0)
    }

    /// One of its phases for ever, as a workload of its own.
    pub fn phase_alone(&self, phase: usize) -> Option<Workload> {
        let only = self.phases.get(phase)?.clone();
        Some(Workload {
            phases: vec![only],
            ..self.clone()
        })
    }
}

impl Region {
    /// Lines of the region.
    pub fn lines(&self) -> u64 {
        self.bytes.lines().max(1)
    }

    /// Accesses that go to one line before the next line's turn, where elements follow each other.
    pub fn accesses_per_line(&self) -> u64 {
        if self.order.is_run() {
            (LINE_BYTES / self.stride.get().max(1)).max(1)
        } else {
            1
        }
    }

    /// Lines of one element.
    pub fn lines_per_element(&self) -> u64 {
        self.element.get().div_ceil(LINE_BYTES).max(1)
    }
}
