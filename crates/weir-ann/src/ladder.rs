//! What a step of a search costs in each variant of CXL-ANNS: a timeline of the host's core, the devices and what is under
//! way between them.
//!
//! Reads of lists and vectors come from the model ([`crate::times`]), what searches do from generated graphs
//! ([`crate::walked`]). What the paper does not print of the accelerator and of the host's own work is below, and is ours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{GbPerSec, Gigahertz, Nanos};

use crate::datasets::Published;
use crate::times::{ByTier, Times};
use crate::walked::AtCandidates;

weir_model::named! {
    /// What computes distances, where lists are, and what overlaps (section 6.1).
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Variant {
        /// All data on local memory of any size, and the host does everything: the paper's Orcl.
        Oracle = "oracle",
        /// The same with accelerators in local memory, prefetches and deferred updates: the pool can do no better.
        NearOracle = "near_oracle",
        /// Lists and vectors in the pool; the host does everything.
        Base = "base",
        /// Devices compute distances: EPAx.
        Epax = "epax",
        /// And lists of inner hops are on local memory.
        NoPrefetch = "no_prefetch",
        /// And the next list is foreseen and prefetched.
        Cache = "cache",
        /// And updates are deferred: CXLA, all of CXL-ANNS.
        Cxla = "cxla",
    }
}

/// Access of a device's controller to its own DRAM: row, column and burst of DDR4-3200 take 30 ns, its queue the rest. Ours.
const DEVICE_DRAM: Nanos = Nanos(50.0);
/// What the memory controllers of a device read: 85 % of four channels of DDR4-3200. Ours; four is the paper's.
const DEVICE_READ: GbPerSec = GbPerSec(87.0);
/// Elements that a distance unit takes in a cycle: a line of memory. The paper does not print the width of the tree. Ours.
const UNIT_WIDTH: f64 = 16.0;
/// Distance units of a device: ten processing elements of two (Table 1).
const UNITS: f64 = 20.0;
/// Clock of the accelerator (Table 1).
const DEVICE_CLOCK: Gigahertz = Gigahertz(1.0);
/// Cycles from the last element to the distance: the tree's levels, and the sum over lines. Ours.
const DEPTH: f64 = 12.0;
/// Data that a link of sixteen lanes carries. Ours; commands are so short that it hardly matters.
const LINK: GbPerSec = GbPerSec(54.7);
/// What a crossing by CXL.io, which carries doorbells, commands and results, takes beyond one by CXL.mem. A DMA read of 64 B
/// over PCIe takes 547 ns at the median (Neugebauer et al., SIGCOMM 2018), of which half of what is not memory is 229 ns; half
/// of what is not memory of a read of a CXL device, 214 to 271 ns, is 80 to 110 ns. Ours, and set after a first comparison.
const CXL_IO: Nanos = Nanos(130.0);
/// The core's time for a store to an uncached register of a device. Ours.
const DOORBELL: Nanos = Nanos(30.0);
/// Bytes of a command besides its node numbers. Ours.
const COMMAND: f64 = 16.0;
/// Bytes of a node number, and of a sub-distance.
const WORD: f64 = 4.0;
/// Clock of the host's cores (Table 1), for the counts of cycles below.
const HOST_CLOCK: Gigahertz = Gigahertz(3.6);
/// Cycles of a step of the binary search for the place of a candidate, half of them of branches that are predicted wrong. Ours.
const SEARCH_STEP: f64 = 10.0;
/// Bytes of a candidate: number, distance, and whether it was visited. Ours.
const CANDIDATE: f64 = 12.0;
/// Bytes of the array that are moved in a cycle. Ours.
const MOVED: f64 = 32.0;
/// Cycles of each insertion besides, and of a comparison that rejects a candidate. Ours.
const INSERT: f64 = 10.0;
/// See [`INSERT`].
const REJECT: f64 = 3.0;
/// Cycles to find the nearest unvisited candidate. Ours.
const SELECT: f64 = 20.0;
/// Cycles of a comparison while the nearest new distance is looked for. Ours.
const COMPARE: f64 = 2.0;
/// Cycles of a prefetch instruction. Ours.
const PREFETCH: f64 = 2.0;

/// Rounds in which what queries add to each other settles; each leaves at most half of the error.
const ROUNDS: usize = 60;

fn cycles(count: f64) -> Nanos {
    Nanos(count / HOST_CLOCK.get())
}

fn moved(bytes: f64, at: GbPerSec) -> Nanos {
    Nanos(bytes / at.get())
}

/// What a step of a search has to do, and how long its parts take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step<'a> {
    /// The dataset.
    pub shape: Published,
    /// What searches do.
    pub walk: &'a AtCandidates,
    /// How long reads take.
    pub times: &'a Times,
    /// Share of the reads of lists that local memory serves, where it has inner hops.
    pub hits: f64,
    /// Devices of the pool.
    pub devices: u32,
    /// Whether distances are computed once: with a set of the nodes that a search has met. Algorithm 1 as it is printed has
    /// none, and computes those of all neighbours of each list.
    pub once: bool,
}

/// The time of a step, by what it is spent on. The sum is all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parts {
    /// Reads of lists.
    pub traverse: Nanos,
    /// Reads of vectors, by the core or by devices.
    pub distance_memory: Nanos,
    /// Arithmetic of distances.
    pub distance_compute: Nanos,
    /// The candidate array.
    pub update: Nanos,
    /// Commands and results between host and devices.
    pub interface: Nanos,
}

impl Parts {
    /// All of it.
    pub fn total(&self) -> Nanos {
        self.traverse + self.distance_memory + self.distance_compute + self.update + self.interface
    }

    /// What distances take, without commands and results.
    pub fn distance(&self) -> Nanos {
        self.distance_memory + self.distance_compute
    }
}

/// A step of one variant.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Its time.
    pub parts: Parts,
    /// Of it, the time that the core waits for devices and has nothing to do.
    pub idle: Nanos,
    /// The core's time to foresee and prefetch; it is within the wait for devices.
    pub foresee: Nanos,
    /// Bytes that cross the links of the pool.
    pub link_bytes: f64,
    /// Bytes that devices read and keep to themselves.
    pub device_bytes: f64,
}

/// What queries of other cores add to a step.
#[derive(Debug, Clone, Copy)]
struct Others {
    /// Cores that read vectors at a time, this one among them.
    readers: f64,
    /// The wait for devices that are busy.
    queue: Nanos,
}

impl Others {
    /// No other query.
    const NONE: Self = Self {
        readers: 1.0,
        queue: Nanos(0.0),
    };
}

/// What devices do for a step, from the doorbell to the results.
struct Command {
    /// The core's stores.
    doorbells: Nanos,
    /// What the links and the host's memory take.
    way: Nanos,
    memory: Nanos,
    compute: Nanos,
    /// The core reads the results and adds them.
    poll: Nanos,
    sum: Nanos,
    bytes: f64,
}

impl Step<'_> {
    /// Distances of a step.
    pub fn distances(&self) -> f64 {
        self.shape.degree * if self.once { self.walk.new } else { 1.0 }
    }

    fn lines(&self) -> f64 {
        (self.shape.list_bytes() / 64.0).ceil()
    }

    /// Insertions of a step, as many as searches of a generated graph have, into an array of the published length.
    fn insertions(&self) -> Nanos {
        let most = f64::from(self.shape.candidates);
        let kept = self.walk.kept.min(self.distances());
        let place = INSERT + SEARCH_STEP * most.log2();
        let each = place + self.walk.moved * most * CANDIDATE / MOVED;
        // What was met before is found in the array where it is near enough, by the same search.
        let again = match self.once {
            true => 0.0,
            false => self.shape.degree * (1.0 - self.walk.new) * self.walk.again,
        };
        let rejected = (self.distances() - kept - again).max(0.0);
        cycles(kept * each + again * place + rejected * REJECT)
    }

    /// The command of a step over a way of this long in one direction.
    fn command(&self, way: Nanos) -> Command {
        let n = self.distances();
        let devices = f64::from(self.devices.max(1));
        let shards = f64::from(self.shape.shards()).min(devices);
        // A node's shards are on one group of devices; a command goes to each group that has a node of it.
        let groups = (devices / shards).floor().max(1.0);
        let rung = groups * (1.0 - (1.0 - 1.0 / groups).powf(n)) * shards;
        let read = self.shape.vector_bytes() * n / devices;
        let of_shard = self.shape.vector_bytes() / 4.0 / f64::from(self.shape.shards());
        let sub_distances = n * f64::from(self.shape.shards());
        let rounds = (sub_distances / devices / UNITS).ceil();
        let arithmetic = Nanos(rounds * (of_shard / UNIT_WIDTH).ceil() / DEVICE_CLOCK.get());
        let reading = moved(read, DEVICE_READ);
        let results = WORD * sub_distances;
        let fetched = COMMAND + WORD * n;
        // The doorbell, the fetch of the command from local memory, and the results.
        let crossings = way * 4.0
            + self.times.line.near
            + moved(fetched, LINK)
            + moved(results / devices, LINK);
        let result_lines = (results / 64.0 - 1.0).max(0.0);
        let overlapped = self.times.vector.near / (self.shape.vector_bytes() / 64.0).ceil();
        Command {
            doorbells: DOORBELL * rung,
            way: crossings,
            memory: DEVICE_DRAM + reading,
            compute: (arithmetic - reading).max(Nanos(0.0)) + Nanos(DEPTH / DEVICE_CLOCK.get()),
            poll: self.times.line.near + overlapped * result_lines,
            sum: cycles(sub_distances),
            bytes: rung * (fetched + WORD) + results,
        }
    }

    /// What a step takes in a variant, of a query alone.
    pub fn spent(&self, variant: Variant) -> Spent {
        self.spent_with(variant, Others::NONE)
    }

    /// The same while this many queries are searched, each on a core of its own; up to [`Times::cores`] are on one host, and
    /// more on hosts of their own that share the devices.
    ///
    /// Where cores read vectors, they share the channels: as many read at a time as the share of a step is that reads take.
    /// Devices serve the commands that they have at the same time, since all their processing elements read through the same
    /// memory controllers: a station of processor sharing in a closed network, whose mean does not depend on how service times
    /// are distributed (Baskett et al., JACM 1975). The mean is by the approximation of Bard and Schweitzer (1979): a command that comes
    /// to a device finds there what the others have in the mean. It fits a core that works while it waits.
    pub fn spent_among(&self, variant: Variant, queries: u32) -> Spent {
        let mut others = Others::NONE;
        let mut spent = self.spent(variant);
        if let Variant::Oracle | Variant::Base = variant {
            let cores = f64::from(queries.min(self.times.cores));
            for _ in 0..ROUNDS {
                let share = spent.parts.distance() / spent.parts.total();
                others.readers = (cores * share).max(1.0);
                spent = self.spent_with(variant, others);
            }
            return spent;
        }
        let busy = self.device_time();
        let number = f64::from(queries.saturating_sub(1));
        let (mut least, mut most) = (Nanos(0.0), busy * number);
        for _ in 0..ROUNDS {
            others.queue = (least + most) * 0.5;
            spent = self.spent_with(variant, others);
            // Little's law: what each of the others has there, in the mean.
            let there = (busy + others.queue) / spent.parts.total();
            match busy * (number * there) > others.queue {
                true => least = others.queue,
                false => most = others.queue,
            }
        }
        spent
    }

    fn spent_with(&self, variant: Variant, others: Others) -> Spent {
        let (list, line) = (self.times.list, self.times.line);
        let read = self.times.vector_among(others.readers);
        let n = self.distances();
        let (list_bytes, vector_bytes) = (self.shape.list_bytes(), self.shape.vector_bytes() * n);
        let insertions = self.insertions();
        let select = cycles(SELECT);
        if let Variant::Oracle | Variant::Base = variant {
            let in_pool = variant == Variant::Base;
            let of = |by: ByTier| if in_pool { by.far } else { by.near };
            let parts = Parts {
                traverse: of(list),
                distance_memory: (of(read) - read.cached).max(Nanos(0.0)) * n,
                distance_compute: read.cached * n,
                update: insertions + select,
                interface: Nanos(0.0),
            };
            return Spent {
                parts,
                link_bytes: if in_pool {
                    list_bytes + vector_bytes
                } else {
                    0.0
                },
                ..Spent::default()
            };
        }
        let is_local = variant == Variant::NearOracle;
        let one_way = |line: Nanos| ((line - DEVICE_DRAM) / 2.0).max(Nanos(0.0));
        let (way, list_there) = match is_local {
            true => (one_way(line.near), list.near),
            false => (one_way(line.far) + CXL_IO, list.far),
        };
        let (hits, foreseen) = match variant {
            Variant::NearOracle => (0.0, self.walk.foreseen),
            Variant::Epax => (0.0, 0.0),
            Variant::NoPrefetch => (self.hits, 0.0),
            _ => (self.hits, self.walk.foreseen),
        };
        let defers = matches!(variant, Variant::Cxla | Variant::NearOracle);
        let foresee = match variant {
            Variant::Cache | Variant::Cxla | Variant::NearOracle => {
                select + cycles(PREFETCH * self.lines()) * (1.0 - hits)
            }
            _ => Nanos(0.0),
        };
        let mut command = self.command(way);
        command.memory = command.memory + others.queue;
        let wait = command.way + command.memory + command.compute;
        // Within the wait: the core foresees, and inserts the distances of the step before.
        let hidden = match defers {
            true => foresee + insertions,
            false => foresee,
        };
        let late = (hidden - wait).max(Nanos(0.0));
        // A list that was foreseen is in the cache once its read from the pool is over.
        let waits_still = (foresee + list_there - list.cached - wait).max(Nanos(0.0));
        let from_there = (list.cached + waits_still) * foreseen + list_there * (1.0 - foreseen);
        let update = match defers {
            true => select + cycles(COMPARE * n) + late,
            false => insertions + select + late,
        };
        let parts = Parts {
            traverse: list.near * hits + from_there * (1.0 - hits),
            distance_memory: command.memory,
            distance_compute: command.compute + command.sum,
            update,
            interface: command.doorbells + command.way + command.poll,
        };
        let wasted = (1.0 - hits) * list_bytes * (1.0 - foreseen);
        let prefetched = matches!(variant, Variant::Cache | Variant::Cxla);
        Spent {
            parts,
            idle: (wait - hidden).max(Nanos(0.0)),
            foresee,
            link_bytes: match is_local {
                true => 0.0,
                // A list that was foreseen wrongly crosses in vain.
                false => {
                    (1.0 - hits) * list_bytes
                        + if prefetched { wasted } else { 0.0 }
                        + command.bytes
                }
            },
            device_bytes: vector_bytes,
        }
    }

    /// The time that a step keeps each device busy.
    pub fn device_time(&self) -> Nanos {
        let command = self.command(Nanos(0.0));
        command.memory - DEVICE_DRAM + command.compute - Nanos(DEPTH / DEVICE_CLOCK.get())
    }

    /// Steps of a search with the published number of candidates.
    pub fn steps(&self) -> f64 {
        f64::from(self.shape.candidates) * self.walk.steps / self.walk.candidates.max(1) as f64
    }

    /// Queries that this many hosts finish in a second, each on all cores, one query a core.
    pub fn queries_per_second(&self, variant: Variant, hosts: u32) -> f64 {
        let queries = hosts * self.times.cores;
        let query = self.spent_among(variant, queries).parts.total() * self.steps();
        f64::from(queries) / query.as_secs()
    }
}
