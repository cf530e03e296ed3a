//! How long a core takes for a list and for a vector, on each tier: described programs on the model.
//!
//! Vectors are also read by many cores at the same time, which wait for each other in the channels.
//!
//! A list's address follows from the distances of the step before, so that lists wait for each other. The addresses of
//! vectors are in the list, so that the core's buffers decide how many lines are under way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_lab::{Ask, Lab, LabError, Placed, WorkloadOptions};
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::{Order, Phase, Region, Within, Workload};

use crate::datasets::Dataset;

/// Instructions for each neighbour of a list: its number is loaded and looked up among the nodes that were met.
const PER_NEIGHBOUR: f64 = 6.0;
/// Instructions for each line of a vector: with registers of 128 bits four loads, four differences, four products with sums,
/// and four for the loop.
const PER_LINE: f64 = 16.0;
/// Instructions for each vector: the sum of partial sums, and the store of the distance.
const PER_VECTOR: f64 = 12.0;
/// Cycles of an instruction while all data are in the first cache.
const CPI: f64 = 0.4;
/// Memory of lists or vectors, of which caches hold nothing.
const LARGE: Bytes = Bytes::gib(16);
/// The same where the first cache holds all.
const SMALL: Bytes = Bytes::kib(16);
/// Lines that each thread touches while it is watched.
const ACCESSES: u64 = 20_000;
/// The same where many threads read, which together are as many as one.
const ACCESSES_OF_EACH: u64 = 3_000;
/// Shares of the cores that read vectors at the same time, in eighths; between them the time is interpolated.
const EIGHTHS: [u32; 4] = [4, 6, 7, 8];

/// The times of a dataset on one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    /// Whose lists and vectors.
    pub dataset: Dataset,
    /// The tier of local memory.
    pub near: TierName,
    /// The tier of the pool.
    pub far: TierName,
}

/// One thing in the first cache, on local memory, and in the pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ByTier {
    /// In the first cache: what the instructions take.
    pub cached: Nanos,
    /// On local memory.
    pub near: Nanos,
    /// In the pool.
    pub far: Nanos,
}

/// How long a core takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// A line whose address was just loaded.
    pub line: ByTier,
    /// A list, whose address was just known.
    pub list: ByTier,
    /// One of the vectors of a list.
    pub vector: ByTier,
    /// The same while this many cores read vectors, in ascending order.
    pub vectors_among: Vec<(u32, ByTier)>,
    /// The cores.
    pub cores: u32,
}

/// What a program goes through: elements of these bytes, and the instructions for each.
struct Loop {
    name: &'static str,
    element: f64,
    instructions: f64,
    waits: bool,
    vector: f64,
}

impl Loop {
    fn lines(&self) -> f64 {
        (self.element / LINE_BYTES as f64).ceil()
    }

    fn workload(&self, bytes: Bytes, threads: u32) -> Workload {
        let region = Region {
            name: self.name.into(),
            object: None,
            bytes,
            order: Order::Random,
            share: 1.0,
            element: Bytes(self.element.round() as u64),
            within: Within::Sequential,
            stride: Bytes(self.element.round() as u64),
            stores: 0.0,
            modifies: 0.0,
            non_temporal: 0.0,
            streams: 1,
            batch: 1,
            skew: 1.0,
            dependent: if self.waits { 1.0 } else { 0.0 },
            indexed_by: None,
            mispredicted: if self.waits { 1.0 } else { 0.0 },
        };
        let each = self.instructions + self.lines();
        let phase = Phase {
            name: self.name.into(),
            instructions: 1_000_000,
            cpi: CPI,
            apki: 1000.0 * self.lines() / each,
            slice: 0.3,
            vector: self.vector,
            mispredicts: 0.0,
            regions: vec![region],
        };
        Workload {
            name: format!("neighbours-{}", self.name),
            summary: "A part of a search for nearest neighbours".into(),
            source: "CXL-ANNS (USENIX ATC 2023), Algorithm 1".into(),
            assumed: None,
            application: None,
            variant: None,
            threads,
            core_ipc: None,
            requests: None,
            phases: vec![phase],
        }
    }
}

impl Timing {
    fn loops(&self) -> [Loop; 3] {
        let shape = self.dataset.published();
        [
            Loop {
                name: "line",
                element: LINE_BYTES as f64,
                instructions: 2.0,
                waits: true,
                vector: 0.0,
            },
            Loop {
                name: "list",
                element: shape.list_bytes(),
                instructions: PER_NEIGHBOUR * shape.degree,
                waits: true,
                vector: 0.0,
            },
            Loop {
                name: "vector",
                element: shape.vector_bytes(),
                instructions: PER_VECTOR
                    + PER_LINE * (shape.vector_bytes() / LINE_BYTES as f64).ceil(),
                waits: false,
                vector: 0.75,
            },
        ]
    }
}

impl Times {
    /// A vector while this many cores read vectors.
    pub fn vector_among(&self, readers: f64) -> ByTier {
        let mut below = (1.0, self.vector);
        for &(threads, by) in &self.vectors_among {
            let at = f64::from(threads);
            if at >= readers {
                let share = ((readers - below.0) / (at - below.0).max(1.0)).clamp(0.0, 1.0);
                let between = |low: Nanos, high: Nanos| low + (high - low) * share;
                return ByTier {
                    near: between(below.1.near, by.near),
                    far: between(below.1.far, by.far),
                    ..by
                };
            }
            below = (at, by);
        }
        below.1
    }
}

impl Ask for Timing {
    type Got = Times;
    const KIND: &'static str = "times of lists and vectors, version 2";

    fn ask(&self, lab: &Lab<'_>) -> Result<Times, LabError> {
        let lab = lab.inside();
        let cores = lab.topology().cores.len() as u32;
        let time_of = |one: &Loop, threads: u32, bytes: Bytes, tier: &TierName| {
            // The paper's machine has no prefetcher, and vectors of a few lines in random order train none elsewhere.
            let options = WorkloadOptions {
                prefetch: false,
                accesses: if threads > 1 {
                    ACCESSES_OF_EACH
                } else {
                    ACCESSES
                },
                seed: lab.seed(),
            };
            let workload = one.workload(bytes, threads);
            let run = lab.answer(&Placed {
                workload: &workload,
                placement: Placement::Bind(tier.clone()),
                placements: BTreeMap::new(),
                options: &options,
            })?;
            let phase = run.phases.first().ok_or(LabError::Stopped)?;
            let each = one.instructions + one.lines();
            let of_each = phase.instructions as f64 / f64::from(threads);
            Ok::<_, LabError>(phase.time * (each / of_each))
        };
        let time = |one: &Loop, bytes, tier: &TierName| time_of(one, 1, bytes, tier);
        let by_tier = |one: &Loop| {
            Ok::<_, LabError>(ByTier {
                cached: time(one, SMALL, &self.near)?,
                near: time(one, LARGE, &self.near)?,
                far: time(one, LARGE, &self.far)?,
            })
        };
        let [line, list, vector] = self.loops();
        let alone = by_tier(&vector)?;
        let mut counts = EIGHTHS.map(|eighths| (cores * eighths / 8).max(1)).to_vec();
        counts.dedup();
        let beside = counts.into_iter().map(|threads| {
            let by = ByTier {
                near: time_of(&vector, threads, LARGE, &self.near)?,
                far: time_of(&vector, threads, LARGE, &self.far)?,
                ..alone
            };
            Ok((threads, by))
        });
        Ok(Times {
            line: by_tier(&line)?,
            list: by_tier(&list)?,
            vector: alone,
            vectors_among: beside.collect::<Result<_, LabError>>()?,
            cores,
        })
    }
}
