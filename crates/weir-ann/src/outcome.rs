//! What `weir place neighbours` finds, and how it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{Part, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::statistics::Estimate;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};

use crate::datasets::Dataset;
use crate::host::run::Measured;
use crate::host::timed::{How, Ticks};
use crate::ladder::{Parts, Step, Variant};
use crate::walked::Walked;

/// Searches for nearest neighbours with their data in a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbours {
    /// The tier of the pool.
    pub tier: TierName,
    /// The tier of local memory.
    pub from: TierName,
    /// Nodes of the generated graphs.
    pub nodes: u32,
    /// Local memory for lists of neighbours.
    pub budget_bytes: Bytes,
    /// A query of each dataset in each variant.
    pub ladder: Vec<LadderRow>,
    /// Lists that local memory holds.
    pub caches: Vec<HopCacheRow>,
    /// What searches of the generated graphs do, by the length of the candidate array.
    pub foresight: Vec<Foresight>,
    /// Nodes and reads by hops from the entry, with the length by which published searches are scaled.
    pub hops: Vec<AtHopRow>,
    /// Hosts that share the devices; none where a host was measured.
    pub hosts: Vec<HostsRow>,
    /// How a host was measured; absent on a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_host: Option<OnHost>,
}

/// How a host was measured. A thread stands in for the accelerator of each device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnHost {
    /// The processor of the thread that searches.
    pub cpu: u32,
    /// Processors of the threads that stand in for devices of local memory.
    pub near_cpus: Vec<u32>,
    /// The same of the pool.
    pub pool_cpus: Vec<u32>,
    /// Whether the node of the pool has these processors; they are of the node nearest to it otherwise.
    pub is_at_pool: bool,
    /// Whether some of the threads share a processor: they sleep until they are woken, and commands take as long as that.
    pub shares_cpus: bool,
    /// Whether the kernel confirmed the node of every page.
    pub is_verified: bool,
    /// Length of the candidate array.
    pub candidates: u32,
    /// Searches of each dataset.
    pub queries: u32,
    /// How often each variant was placed and measured.
    pub repetitions: u32,
    /// What a look at the clock takes, in nanoseconds; it is taken off each part.
    pub clock_ns: f64,
    /// Searches that found other neighbours than Algorithm 1 in ordinary memory.
    pub differing: u32,
}

/// A query in one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"query_us": "query_ci95"}))]
pub struct LadderRow {
    /// The dataset.
    pub dataset: Dataset,
    /// What computes distances, where lists are, and what overlaps.
    pub variant: Variant,
    /// Its time, in microseconds: the sum of the next five.
    pub query_us: f64,
    /// Reads of lists.
    pub traverse_us: f64,
    /// Reads of vectors, by the core or by devices.
    pub distance_memory_us: f64,
    /// Arithmetic of distances.
    pub distance_compute_us: f64,
    /// The candidate array.
    pub update_us: f64,
    /// Commands and results between host and devices.
    pub interface_us: f64,
    /// The time as a multiple of `oracle`.
    pub of_oracle: f64,
    /// Of the time, how much the core waits for devices with nothing to do, in percent.
    pub idle_pct: f64,
    /// Bytes that cross the links of the pool.
    pub link_bytes: f64,
    /// Bytes that devices read and keep to themselves.
    pub device_bytes: f64,
    /// On a host: half of the 95 % interval of `query_us` over repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_ci95: Option<f64>,
    /// On a host: the time of the same query without a look at the clock within it, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed_us: Option<f64>,
    /// On a host: lists that the query reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<f64>,
    /// On a host: doorbells of devices that the query rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doorbells: Option<f64>,
}

impl LadderRow {
    /// A query of a dataset.
    pub fn of(dataset: Dataset, variant: Variant, step: &Step<'_>, oracle: Nanos) -> Self {
        let spent = step.spent(variant);
        let (steps, parts) = (step.steps(), spent.parts);
        let us = |time: Nanos| time.get() * steps / 1e3;
        Self {
            dataset,
            variant,
            query_us: us(parts.total()),
            traverse_us: us(parts.traverse),
            distance_memory_us: us(parts.distance_memory),
            distance_compute_us: us(parts.distance_compute),
            update_us: us(parts.update),
            interface_us: us(parts.interface),
            of_oracle: parts.total() / oracle,
            idle_pct: 100.0 * (spent.idle / parts.total()),
            link_bytes: (spent.link_bytes * steps).round(),
            device_bytes: (spent.device_bytes * steps).round(),
            query_ci95: None,
            untimed_us: None,
            steps: None,
            doorbells: None,
        }
    }

    /// A query of a dataset as a host measured it in some repetitions, the mean of `queries`; `None` without one.
    /// `of_oracle` follows from that of `oracle`.
    pub fn measured(
        (dataset, variant): (Dataset, Variant),
        all: &[Measured],
        (ticks, queries): (Ticks, usize),
        pool: Option<Pool>,
    ) -> Option<Self> {
        let n = queries.max(1) as f64;
        let parts: Vec<(Parts, Nanos)> = all.iter().map(|one| one.parts(ticks)).collect();
        let laps = &all.first()?.laps;
        let mean = |of: &dyn Fn(&(Parts, Nanos)) -> Nanos| {
            let each = parts.iter().map(|one| of(one).get() / n / 1e3);
            Estimate::of(each)
        };
        let query = mean(&|(parts, _)| parts.total())?;
        let idle = mean(&|(_, idle)| *idle)?;
        let untimed = all
            .iter()
            .map(|one| (ticks.tick * one.whole as f64).get() / n / 1e3);
        let how = How::from(variant);
        let vector_bytes = dataset.published().vector_bytes() * laps.computed as f64;
        // Each command is read by every device, which returns a word for each node of it.
        let command_words = 2.0 * (laps.computed * laps.device.len() as u64) as f64;
        let (crossing, kept) = match (how.by_devices, pool) {
            (false, _) | (true, Some(Pool::Far)) => (vector_bytes, 0.0),
            (true, None | Some(Pool::WithCpus)) => (4.0 * command_words, vector_bytes),
        };
        let link = pool.map_or(0.0, |_| 4.0 * laps.pool_words as f64 + crossing);
        Some(Self {
            dataset,
            variant,
            query_us: query.mean,
            traverse_us: mean(&|(parts, _)| parts.traverse)?.mean,
            distance_memory_us: mean(&|(parts, _)| parts.distance_memory)?.mean,
            distance_compute_us: mean(&|(parts, _)| parts.distance_compute)?.mean,
            update_us: mean(&|(parts, _)| parts.update)?.mean,
            interface_us: mean(&|(parts, _)| parts.interface)?.mean,
            of_oracle: 1.0,
            idle_pct: 100.0 * idle.mean / query.mean,
            link_bytes: (link / n).round(),
            device_bytes: (kept / n).round(),
            query_ci95: query.ci95,
            untimed_us: Some(Estimate::of(untimed)?.mean),
            steps: Some(laps.steps as f64 / n),
            doorbells: Some(laps.doorbells as f64 / n),
        })
    }
}

/// The node of a pool that is not local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// It has processors, on which the threads of devices are.
    WithCpus,
    /// It has none, so that what these threads read crosses its link.
    Far,
}

/// Lists that local memory holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopCacheRow {
    /// The dataset.
    pub dataset: Dataset,
    /// Bytes of all lists at the published size, in GB.
    pub graph_gb: f64,
    /// Of them, what local memory holds, in percent.
    pub capacity_pct: f64,
    /// Reads of lists that it serves, in percent.
    pub hit_pct: f64,
}

/// Searches of a generated graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Foresight {
    /// Whose shape it has.
    pub dataset: Dataset,
    /// Length of the candidate array.
    pub candidates: u32,
    /// Of the ten nearest, how many are found, in percent.
    pub recall_pct: f64,
    /// Lists that a search reads.
    pub steps: f64,
    /// Of the neighbours in them, how many are new, in percent: their distances are computed.
    pub new_pct: f64,
    /// Distances of a step that enter the array.
    pub kept: f64,
    /// Steps whose node was the nearest unvisited candidate before the last distances were known, in percent.
    pub foreseen_pct: f64,
}

/// Nodes at this many hops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtHopRow {
    /// Whose shape the graph has.
    pub dataset: Dataset,
    /// Hops from the entry.
    pub hop: u32,
    /// Nodes there.
    pub nodes: u64,
    /// Reads of their lists, in percent of all.
    pub reads_pct: f64,
}

/// Hosts that share devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsRow {
    /// The dataset.
    pub dataset: Dataset,
    /// Hosts, each with all cores of the machine.
    pub hosts: u32,
    /// Devices.
    pub devices: u32,
    /// Queries that `cxla` finishes in a second, with one on each core at all times.
    pub queries_per_s: f64,
    /// The same with twice the devices.
    pub with_twice_the_devices: f64,
}

impl Neighbours {
    /// Of no dataset yet.
    pub fn none(tier: TierName, from: TierName, nodes: u32, budget_bytes: Bytes) -> Self {
        Self {
            tier,
            from,
            nodes,
            budget_bytes,
            ladder: Vec::new(),
            caches: Vec::new(),
            foresight: Vec::new(),
            hops: Vec::new(),
            hosts: Vec::new(),
            on_host: None,
        }
    }

    /// Adds what searches of a dataset do, and the share of its lists that local memory holds and of reads that they serve.
    pub fn put_walked(&mut self, dataset: Dataset, walked: &Walked, capacity: f64, hits: f64) {
        let shape = dataset.published();
        self.caches.push(HopCacheRow {
            dataset,
            graph_gb: shape.vectors * shape.list_bytes() / 1e9,
            capacity_pct: 100.0 * capacity,
            hit_pct: 100.0 * hits,
        });
        self.foresight.extend(walked.at.iter().map(|at| Foresight {
            dataset,
            candidates: at.candidates as u32,
            recall_pct: 100.0 * at.recall,
            steps: at.steps,
            new_pct: 100.0 * at.new,
            kept: at.kept,
            foreseen_pct: 100.0 * at.foreseen,
        }));
        let hops = (0..).zip(&walked.hops);
        self.hops.extend(hops.map(|(hop, (nodes, reads))| AtHopRow {
            dataset,
            hop,
            nodes: *nodes,
            reads_pct: 100.0 * reads,
        }));
    }

    /// The mean over datasets of a figure of a variant.
    pub fn mean(&self, variant: Variant, of: impl Fn(&LadderRow) -> f64) -> Option<f64> {
        let rows = self.ladder.iter().filter(|row| row.variant == variant);
        let all: Vec<f64> = rows.map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }
}

impl Neighbours {
    /// How long a query of a variant takes, in words: a multiple only where intervals of each dataset allow it.
    fn times_of_oracle(&self, variant: Variant) -> Option<String> {
        let times = self.mean(variant, |row| row.of_oracle)?;
        let ends = |row: &LadderRow| {
            let half = row.query_ci95.unwrap_or(f64::INFINITY);
            (row.query_us - half, row.query_us + half)
        };
        let are_apart = |row: &LadderRow| {
            let oracle = self.ladder.iter();
            let oracle = oracle.filter(|one| one.dataset == row.dataset);
            let mut oracle = oracle
                .filter(|one| one.variant == Variant::Oracle)
                .map(ends);
            let (low, high) = ends(row);
            oracle.all(|(least, most)| high < least || most < low)
        };
        let mut rows = self.ladder.iter().filter(|row| row.variant == variant);
        Some(match rows.all(are_apart) {
            true => format!("{times:.2} times as long as"),
            false => "as long, within the intervals, as".into(),
        })
    }

    /// What a host showed.
    fn answer_on(&self, host: &OnHost) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let doubt = |about: &str, text| Verdict::new(Severity::Doubt, about, text);
        let mut all = Vec::new();
        let of = |variant| self.times_of_oracle(variant);
        if let (Some(base), Some(cxla)) = (of(Variant::Base), of(Variant::Cxla)) {
            let text = format!(
                "with all data on {} a query takes {base} with all on {}; with distances computed by threads, lists of inner \
                 hops on {}, prefetches and deferred updates it takes {cxla} that",
                self.tier, self.from, self.from
            );
            all.push(note("pool", text));
        }
        if self.tier == self.from {
            let text = format!(
                "{} is also the pool: the ladder shows what threads and commands cost, and nothing of a slower memory",
                self.tier
            );
            all.push(doubt("tier", text));
        }
        let list = |cpus: &[u32]| {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            cpus.join(", ")
        };
        let place = match host.is_at_pool {
            true => "at the pool",
            false => "of the node nearest to the pool, which has none of its own",
        };
        let text = format!(
            "a thread stands in for the accelerator of each device, on processors {} {place}; the search is on {}",
            list(&host.pool_cpus),
            host.cpu
        );
        all.push(note("devices", text));
        let sums: f64 = self.ladder.iter().map(|row| row.query_us).sum();
        let untimed: f64 = self.ladder.iter().filter_map(|row| row.untimed_us).sum();
        let text = format!(
            "a look at the clock takes {:.0} ns, which is taken off each part; the same searches without a look take {:.2} \
             times the sum of all parts",
            host.clock_ns,
            untimed / sums
        );
        all.push(note("clock", text));
        if host.shares_cpus {
            let text =
                "there are fewer processors than threads: some share one, and a command takes as long as waking them"
                    .to_owned();
            all.push(doubt("processors", text));
        }
        if !host.is_verified {
            let text = "the kernel did not confirm on which node pages are".to_owned();
            all.push(doubt("placement", text));
        }
        if host.differing > 0 {
            let text = format!(
                "{} searches found other neighbours than Algorithm 1 in ordinary memory",
                host.differing
            );
            all.push(Verdict::new(Severity::Wrong, "neighbours", text));
        }
        all
    }
}

/// What the time of a query is made of.
const PARTS: [Part; 5] = [
    Part::new("traverse_us", "lists", 0),
    Part::new("distance_memory_us", "vectors", 1),
    Part::new("distance_compute_us", "arithmetic", 2),
    Part::new("update_us", "update", 3),
    Part::new("interface_us", "commands", 4),
];

impl Outcome for Neighbours {
    const SCHEMA: &'static str = "weir/place-neighbours/1";
    const TITLE: &'static str = "Nearest neighbours in a pool";
    const WORDS: &'static str = "A query for nearest neighbours, whose graph and vectors are in the pool, by the technique that is \
                                 added, after CXL-ANNS.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        if let Some(host) = &self.on_host {
            return self.answer_on(host);
        }
        let of = |variant| self.mean(variant, |row| row.of_oracle).unwrap_or(0.0);
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let (base, cxla) = (of(Variant::Base), of(Variant::Cxla));
        let lists = match self.caches.iter().any(|one| one.capacity_pct >= 1.0) {
            true => format!(" lists of inner hops on {},", self.from),
            false => String::new(),
        };
        let pool = format!(
            "with all data on {} a query takes {base:.1} times as long as on local memory of any size; with distances computed \
             by devices,{lists} prefetches and deferred updates {cxla:.2} times",
            self.tier
        );
        let near = format!(
            "with accelerators in local memory of any size it would take {:.2} times as long",
            of(Variant::NearOracle)
        );
        let mut all = vec![note("pool", pool), note("accelerators", near)];
        let poor = self.caches.iter().filter(|one| one.capacity_pct < 100.0);
        let text: Vec<String> = poor
            .map(|one| {
                format!(
                    "{:.0} % of the reads of lists of {}, and holds {:.0} % of their bytes",
                    one.hit_pct, one.dataset, one.capacity_pct
                )
            })
            .collect();
        if !text.is_empty() {
            let text = format!("{} serves {}", self.from, text.join("; "));
            all.push(note("lists", text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        vec![
            View::grid(
                "ladder",
                "Time of a query, as a multiple of that on local memory of any size",
                "dataset",
                &["variant"],
                "of_oracle",
            ),
            View::table(
                "ladder",
                "Where the time goes: {dataset}, microseconds",
                vec![
                    col("variant"),
                    col("query_us").head("query"),
                    col("traverse_us").head("lists"),
                    col("distance_memory_us").head("vectors"),
                    col("distance_compute_us").head("arith-\nmetic"),
                    col("update_us").head("update"),
                    col("interface_us").head("com-\nmands"),
                    col("idle_pct").head("idle\n%"),
                ],
            )
            .each(&["dataset"]),
            View::stacks(
                "ladder",
                "Time of a query",
                &["dataset"],
                "variant",
                (&PARTS, "microseconds"),
            ),
            View::table(
                "caches",
                format!(
                    "Lists of inner hops in {} of {}",
                    self.budget_bytes, self.from
                ),
                vec![
                    col("dataset"),
                    col("graph_gb").head("lists\nGB"),
                    col("capacity_pct").head("held\n%"),
                    col("hit_pct").head("reads\nserved %"),
                ],
            ),
            View::table(
                "foresight",
                format!("Searches of generated graphs of {} nodes", self.nodes),
                vec![
                    col("dataset"),
                    col("candidates").head("candi-\ndates"),
                    col("recall_pct").head("recall\n@10 %"),
                    col("steps"),
                    col("new_pct").head("new\n%"),
                    col("kept").head("kept\na step"),
                    col("foreseen_pct").head("foreseen\n%"),
                ],
            ),
            View::table(
                "hops",
                "Nodes and reads by hops from the entry",
                vec![
                    col("dataset"),
                    col("hop"),
                    col("nodes"),
                    col("reads_pct").head("reads\n%"),
                ],
            ),
            View::table(
                "hosts",
                "Queries a second of hosts that share devices, one on each core",
                vec![
                    col("dataset"),
                    col("hosts"),
                    col("devices"),
                    col("queries_per_s").head("queries"),
                    col("with_twice_the_devices").head("with twice\nthe devices"),
                ],
            ),
        ]
    }
}
