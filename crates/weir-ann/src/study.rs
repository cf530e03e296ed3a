//! `weir place neighbours`: what each step of a nearest-neighbour search costs with its data in a pool, variant by variant.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Serialize;
use weir_lab::plan::distinct;
use weir_lab::{Ask, Lab, LabError, Study};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use crate::datasets::Dataset;
use crate::ladder::{Step, Variant};
use crate::outcome::{HostsRow, LadderRow, Neighbours};
use crate::times::{Times, Timing};
use crate::walked::{K, SCALED, Searches, Walked};

/// Say what each step of a nearest-neighbour search costs with its data in a pool.
///
/// CXL-ANNS (USENIX ATC 2023) has graph and vectors in a pool behind a switch. Each of its techniques is one more variant:
/// devices compute distances (epax), lists of inner hops are on local memory (no_prefetch), the next list is foreseen
/// (cache), updates of candidates are deferred (cxla). A generated graph says what searches do, the model how long reads
/// take. The result is for the billion vectors and the candidates of the published datasets. On a host the same searches of
/// the generated graph are timed, with a thread near the pool in the place of each device.
#[derive(Debug, Clone, PartialEq, Serialize, clap::Args)]
#[command(after_help = "\
Examples:
  weir place neighbours --on cxl-anns+4xcxl-anns-device@interleaved@switch
  weir place neighbours --on emr2s+2xcxl-d@interleaved@switch \\
      --dataset bigann --budget 64G
  weir place neighbours --tier cxl0 --dataset bigann --nodes 1000000")]
pub struct NeighbourSearch {
    /// Datasets: bigann, yandex-t, yandex-d, meta-s, ms-t, ms-s [default: all].
    #[arg(long = "dataset", value_delimiter = ',', value_name = "DATASET")]
    pub datasets: Vec<Dataset>,
    /// The tier of the pool.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier of local memory.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// Local memory for lists of neighbours [default: 15/16 of the tier].
    #[arg(long, value_name = "SIZE")]
    pub budget: Option<Bytes>,
    /// Devices of the pool [default: as published, 4, or 8 for meta-s].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub devices: Option<u32>,
    /// Nodes of the generated graphs.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(300..=10_000_000))]
    pub nodes: u32,
    /// Searches of each.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub queries: u32,
    /// Compute no distance twice, by a set of the nodes that a search has met;
    /// Algorithm 1 as it is printed has none.
    #[arg(long)]
    pub once: bool,
    /// A file of vectors (fvecs, bvecs, ivecs) with nodes and, after them, queries, in place of
    /// generated ones; for one dataset.
    #[arg(long, value_name = "FILE")]
    pub vectors: Option<PathBuf>,
}

/// Local memory that is left for lists: the rest is the system's, and holds candidate arrays. Ours; the paper takes all
/// pages that are free.
const BUDGET: f64 = 15.0 / 16.0;
/// Hosts that share a pool (section 6.4).
const HOSTS: [u32; 5] = [1, 2, 3, 4, 6];

/// A dataset: what its searches do, and what they cost on the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steps {
    /// The dataset.
    pub dataset: Dataset,
    /// The tier of local memory.
    pub near: TierName,
    /// That of the pool.
    pub far: TierName,
    /// Nodes of the generated graph.
    pub nodes: u32,
    /// Searches of it.
    pub queries: u32,
    /// The file that has nodes and queries, if they are not generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<PathBuf>,
    /// Its length and the second of its last change, so that another file is another ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamp: Option<(u64, u64)>,
}

impl Steps {
    /// A dataset on a machine with a pool, as `weir place neighbours` looks at it by default.
    pub fn usual(dataset: Dataset) -> Self {
        Self {
            dataset,
            near: TierName::dram(),
            far: TierName::named("cxl0"),
            nodes: 10_000,
            queries: 200,
            vectors: None,
            stamp: None,
        }
    }
}

impl Ask for Steps {
    type Got = (Walked, Times);
    const KIND: &'static str = "steps of a nearest-neighbour search, version 2";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<Self::Got, LabError> {
        let lab = lab.inside();
        let walked = lab.answer(&Searches {
            dataset: self.dataset,
            nodes: self.nodes as usize,
            queries: self.queries as usize,
            vectors: self.vectors.clone(),
        })?;
        let times = lab.answer(&Timing {
            dataset: self.dataset,
            near: self.near.clone(),
            far: self.far.clone(),
        })?;
        Ok((walked, times))
    }
}

/// A file's length and the second of its last change.
fn stamp(file: &Path) -> Result<(u64, u64), LabError> {
    let wrong = |error: std::io::Error| LabError::Nothing(format!("{}: {error}", file.display()));
    let data = std::fs::metadata(file).map_err(wrong)?;
    let since = data.modified().map_err(wrong)?.duration_since(UNIX_EPOCH);
    Ok((data.len(), since.map_or(0, |since| since.as_secs())))
}

/// Bytes of local memory for lists.
pub fn budget_of(capacity: Bytes) -> Bytes {
    Bytes((capacity.get() as f64 * BUDGET) as u64)
}

/// Share of a dataset's lists that a budget holds, by bytes.
pub fn capacity_share(dataset: Dataset, budget: Bytes) -> f64 {
    let shape = dataset.published();
    (budget.get() as f64 / (shape.vectors * shape.list_bytes())).min(1.0)
}

/// A step of a dataset's searches.
///
/// # Errors
/// The searches were not of the length by which they are scaled.
pub fn step_of<'a>(
    dataset: Dataset,
    (walked, times): (&'a Walked, &'a Times),
    budget: Bytes,
    devices: Option<u32>,
    once: bool,
) -> Result<Step<'a>, String> {
    let shape = dataset.published();
    let walk = walked.with(SCALED).ok_or("no searches to scale by")?;
    Ok(Step {
        shape,
        walk,
        times,
        hits: walked.hit_share(capacity_share(dataset, budget)),
        devices: devices.unwrap_or(shape.devices),
        once,
    })
}

impl Study for NeighbourSearch {
    const VERB: &'static str = "place neighbours";
    type Output = Neighbours;

    fn run(&self, lab: &Lab<'_>) -> Result<Neighbours, LabError> {
        let topology = lab.topology();
        let find = |name: &TierName| {
            (topology.tier(name)).ok_or_else(|| LabError::unknown_tier(name, topology))
        };
        let (near, far) = (find(&self.from)?, find(&self.tier)?);
        if near.name == far.name {
            return Err(LabError::Nothing(format!(
                "{} is both the pool and local memory; name another tier",
                far.name
            )));
        }
        let budget = self.budget.unwrap_or(budget_of(near.capacity));
        if budget > near.capacity {
            return Err(LabError::Nothing(format!(
                "--budget is {budget}, but {} has {}",
                near.name, near.capacity
            )));
        }
        let datasets = match self.datasets.is_empty() {
            true => Dataset::ALL.to_vec(),
            false => distinct(self.datasets.iter().copied()),
        };
        let stamp = self.vectors.as_deref().map(stamp).transpose()?;
        let asks: Vec<Steps> = (datasets.iter())
            .map(|&dataset| Steps {
                dataset,
                near: near.name.clone(),
                far: far.name.clone(),
                nodes: self.nodes,
                queries: self.queries,
                vectors: self.vectors.clone(),
                stamp,
            })
            .collect();
        if self.vectors.is_some() && asks.len() != 1 {
            return Err(LabError::Nothing(
                "--vectors has the vectors of one dataset; name it with --dataset".into(),
            ));
        }
        let answers = lab.ask_all(&asks)?;
        let mut found = Neighbours::none(far.name.clone(), near.name.clone(), self.nodes, budget);
        for (&dataset, (walked, times)) in datasets.iter().zip(&answers) {
            let shape = dataset.published();
            let bytes = shape.vectors * (shape.list_bytes() + shape.vector_bytes());
            if bytes > far.capacity.get() as f64 {
                lab.warn(format!(
                    "{dataset} has {}, and {} {}: more of such memory is assumed",
                    Bytes(bytes as u64),
                    far.name,
                    far.capacity
                ));
            }
            let step = step_of(dataset, (walked, times), budget, self.devices, self.once)
                .map_err(LabError::Failed)?;
            let oracle = step.spent(Variant::Oracle).parts.total();
            for variant in Variant::ALL {
                found
                    .ladder
                    .push(LadderRow::of(dataset, variant, &step, oracle));
            }
            found.put_walked(dataset, walked, capacity_share(dataset, budget), step.hits);
            for hosts in HOSTS {
                found.hosts.push(HostsRow {
                    dataset,
                    hosts,
                    devices: step.devices,
                    queries_per_s: step.queries_per_second(Variant::Cxla, hosts),
                    with_twice_the_devices: Step {
                        devices: 2 * step.devices,
                        ..step
                    }
                    .queries_per_second(Variant::Cxla, hosts),
                });
            }
            if walked.with(K).is_some_and(|at| at.recall < 0.9)
                && walked.at.iter().all(|at| at.recall < 0.9)
            {
                lab.warn(format!("{dataset}: no search of the generated graph finds nine tenths of the neighbours"));
            }
        }
        Ok(found)
    }
}
