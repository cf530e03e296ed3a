//! What searches of a generated graph of a dataset's shape do: steps, distances, foresight, hops.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_lab::{Ask, Lab, LabError};

use crate::AnnError;
use crate::build::{Build, build};
use crate::candidates::Met;
use crate::datasets::{Dataset, generate};
use crate::exact::{all_nearest, recall};
use crate::files::{Element, read};
use crate::graph::Graph;
use crate::hops::Hops;
use crate::search::{FromRow, counting};
use crate::vectors::{Metric, Vectors};

/// Neighbours asked for: recall@10, as in the paper's Table 2.
pub const K: usize = 10;
/// Lengths of the candidate array that are looked at.
pub const CANDIDATES: [usize; 4] = [10, 20, 50, 150];
/// The length by which the steps of published searches are scaled: five times [`K`]. Nearly all steps are then near the
/// query, as those of the published lengths are in graphs of a billion nodes, and few of the generated nodes are met.
pub const SCALED: usize = 50;
/// Neighbours of a generated node at most: longer lists among few nodes would reach most of them.
pub const MOST_DEGREE: usize = 64;
/// Steps in which the share of reads by bytes of lists is kept.
const STEPS: usize = 100;

/// Searches of a generated graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Searches {
    /// Whose shape it has.
    pub dataset: Dataset,
    /// Nodes.
    pub nodes: usize,
    /// Searches.
    pub queries: usize,
    /// The file that has nodes and, after them, queries; generated where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<PathBuf>,
}

impl Searches {
    /// The vectors of nodes, and those of queries.
    ///
    /// # Errors
    /// The file cannot be read, or has other vectors or too few.
    pub fn data(&self, seed: u64) -> Result<(Vectors, Vectors), AnnError> {
        let shape = self.dataset.published();
        let wanted = self.nodes + self.queries;
        let Some(path) = &self.vectors else {
            return Ok(generate(wanted, shape.dims, shape.metric, seed)?.split(self.nodes));
        };
        let file = path.display().to_string();
        let element = Element::of(&file)?;
        let open = File::open(path).map_err(|error| AnnError::File {
            file: file.clone(),
            why: error.to_string(),
        })?;
        let all = read(&file, element, &mut BufReader::new(open), wanted)?;
        if all.dims() != shape.dims {
            return Err(AnnError::Dimensions {
                what: file,
                found: all.dims(),
                wanted: shape.dims,
            });
        }
        match all.len() < wanted {
            true => Err(AnnError::File {
                file,
                why: format!(
                    "it has {} vectors; {} nodes and {} queries are asked for",
                    all.len(),
                    self.nodes,
                    self.queries
                ),
            }),
            false => Ok(all.split(self.nodes)),
        }
    }

    /// The graph over the vectors of nodes. `go_on` is called with the nodes that are in it, and says whether to go on.
    ///
    /// # Errors
    /// The work was stopped.
    pub fn graph(
        &self,
        vectors: &Vectors,
        seed: u64,
        go_on: &dyn Fn(usize) -> bool,
    ) -> Result<Graph, AnnError> {
        let shape = self.dataset.published();
        let how = Build {
            degree: (shape.degree.round() as usize).min(MOST_DEGREE),
            candidates: MOST_DEGREE,
            seed,
            threads: threads(),
            ..Build::default()
        };
        build(vectors, shape.metric, how, go_on)
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What they did in the mean.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Walked {
    /// Neighbours of a node.
    pub degree: f64,
    /// By the length of the candidate array.
    pub at: Vec<AtCandidates>,
    /// Nodes, and share of the reads, at each hop.
    pub hops: Vec<(u64, f64)>,
    /// Share of the reads that the first hundredth of all bytes of lists serve in the order of hops, the first two, and so on.
    pub hits: Vec<f64>,
}

/// Searches with one length of the candidate array.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AtCandidates {
    /// The length.
    pub candidates: usize,
    /// Share of the exact neighbours that were found.
    pub recall: f64,
    /// Lists that were read.
    pub steps: f64,
    /// Share of the neighbours read that were new, so that a distance was computed.
    pub new: f64,
    /// Of the neighbours met before, the share that is near enough for the array.
    pub again: f64,
    /// Of a step, distances that entered the array.
    pub kept: f64,
    /// Share of the array that each of these moved.
    pub moved: f64,
    /// Share of the steps whose node was the nearest unvisited one before the last distances were known.
    pub foreseen: f64,
}

impl Walked {
    /// Searches with this length.
    pub fn with(&self, candidates: usize) -> Option<&AtCandidates> {
        self.at.iter().find(|at| at.candidates == candidates)
    }

    /// Share of the reads that lists of a share of all bytes serve.
    pub fn hit_share(&self, capacity: f64) -> f64 {
        let steps = self.hits.len() as f64;
        let at = capacity.clamp(0.0, 1.0) * steps;
        let value = |index: f64| match index as usize {
            0 => 0.0,
            index => self.hits.get(index - 1).copied().unwrap_or(1.0),
        };
        let (low, part) = (value(at.floor()), at.fract());
        low + part * (value(at.ceil()) - low)
    }
}

impl Ask for Searches {
    type Got = Walked;
    const KIND: &'static str = "searches of a graph, version 1";
    const ALL_THREADS: bool = true;

    fn ask(&self, lab: &Lab<'_>) -> Result<Walked, LabError> {
        let failed = |error: AnnError| LabError::Failed(error.to_string());
        let data = self.data(lab.seed());
        let (vectors, queries) = data.map_err(|error| LabError::Nothing(error.to_string()))?;
        let graph = self.graph(&vectors, lab.seed(), &|_| !lab.stopped());
        let graph = graph.map_err(|error| match lab.stopped() {
            true => LabError::Stopped,
            false => failed(error),
        })?;
        walk(self.dataset.published().metric, &vectors, &queries, &graph).map_err(failed)
    }
}

/// What searches of a graph do, with each length of the candidate array.
///
/// # Errors
/// The entry reaches no other node.
pub fn walk(
    metric: Metric,
    vectors: &Vectors,
    queries: &Vectors,
    graph: &Graph,
) -> Result<Walked, AnnError> {
    let hops = Hops::of(graph)?;
    let exact = all_nearest(vectors, metric, queries, K, threads());
    let mut met = Met::new(graph.len());
    let mut walked = Walked {
        degree: graph.degree(),
        ..Walked::default()
    };
    for candidates in CANDIDATES {
        let mut reads = vec![0_u64; graph.len()];
        let mut sum = crate::search::Trace::default();
        let (mut hit, mut steps) = (0.0, 0.0);
        for (query, exact) in queries.rows().zip(&exact) {
            let from = FromRow {
                vectors,
                metric,
                row: query,
            };
            let found = counting(graph, from, candidates, &mut met);
            hit += recall(exact, found.nearest.get(..K).unwrap_or(&found.nearest));
            steps += found.trace.visited.len() as f64;
            for &node in &found.trace.visited {
                if let Some(reads) = reads.get_mut(node as usize) {
                    *reads += 1;
                }
            }
            sum.neighbours += found.trace.neighbours;
            sum.distances += found.trace.distances;
            sum.inserted += found.trace.inserted;
            sum.moved += found.trace.moved;
            sum.again += found.trace.again;
            sum.foreseen += found.trace.foreseen;
        }
        let n = queries.len() as f64;
        walked.at.push(AtCandidates {
            candidates,
            recall: hit / n,
            steps: steps / n,
            new: sum.distances as f64 / sum.neighbours.max(1) as f64,
            again: sum.again as f64 / (sum.neighbours - sum.distances).max(1) as f64,
            kept: sum.inserted as f64 / steps,
            moved: sum.moved as f64 / sum.inserted.max(1) as f64 / candidates as f64,
            foreseen: sum.foreseen as f64 / (steps - n).max(1.0),
        });
        if candidates == SCALED {
            let all: u64 = reads.iter().sum();
            let histogram = hops.histogram(&reads);
            let share = |reads: u64| reads as f64 / all.max(1) as f64;
            walked.hops = histogram
                .iter()
                .map(|at| (at.nodes, share(at.reads)))
                .collect();
            let budget =
                |step: usize| (graph.bytes() as f64 * step as f64 / STEPS as f64).round() as u64;
            walked.hits = (1..=STEPS)
                .map(|step| hops.cache(graph, &reads, budget(step)).hit_share())
                .collect();
        }
    }
    Ok(walked)
}
