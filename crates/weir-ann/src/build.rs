//! Construction of a graph: Vamana (DiskANN, NeurIPS 2019) in batches, and a path from the entry to every node, as NSG
//! has one (VLDB 2019).
//!
//! All nodes of a batch search the graph as it was before the batch, so that the result does not depend on the number of
//! threads (ParlayANN, PPoPP 2024). Lists are filled up to the degree with the nearest of what pruning left out.

use crate::AnnError;
use crate::candidates::Met;
use crate::graph::{Graph, MOST_NEIGHBOURS};
use crate::hops::{levels, spread};
use crate::search::{Adjacency, FromRow, ordered};
use crate::threads::in_order;
use crate::vectors::{Metric, Near, Vectors};
use weir_loops::distance::prefetch;
use weir_model::random::Random;

/// How a graph is built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Build {
    /// Neighbours that a node has.
    pub degree: usize,
    /// Candidates of the searches by which a node finds its neighbours.
    pub candidates: usize,
    /// A neighbour is left out where another one is this many times closer to it than the node is; squared, as distances are.
    pub alpha: f32,
    /// What chance is drawn from.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            degree: 32,
            candidates: 64,
            alpha: 1.2,
            seed: 1,
            threads: 2,
        }
    }
}

/// The largest batch, as a share of all nodes.
const BATCH: usize = 50;
/// Lists may be longer than the degree by a third until they are pruned again.
const SLACK: usize = 3;

/// A graph that is built.
struct Draft<'v> {
    vectors: &'v Vectors,
    build: Build,
    entry: u32,
    lists: Vec<Vec<u32>>,
}

impl Adjacency for Draft<'_> {
    fn entry(&self) -> u32 {
        self.entry
    }

    fn nodes(&self) -> usize {
        self.lists.len()
    }

    fn neighbours(&self, node: u32) -> &[u32] {
        self.lists.get(node as usize).map_or(&[], Vec::as_slice)
    }
}

/// Builds a graph over vectors. `progress` is called with the nodes that are in it, and says whether to go on.
///
/// The graph of angular distances is built over directions: for vectors of one length both have the same order.
///
/// # Errors
/// A number is out of its bounds, or the work was stopped.
pub fn build(
    vectors: &Vectors,
    metric: Metric,
    build: Build,
    progress: &dyn Fn(usize) -> bool,
) -> Result<Graph, AnnError> {
    if !(2..=MOST_NEIGHBOURS).contains(&build.degree) || build.candidates < 2 {
        return Err(AnnError::Bounds(format!(
            "a node has from 2 to {MOST_NEIGHBOURS} neighbours, which it finds among at least 2 candidates"
        )));
    }
    let directions;
    let vectors = match metric {
        Metric::L2 => vectors,
        Metric::Angular => {
            directions = vectors.directions();
            &directions
        }
    };
    let entry = medoid(vectors, build.threads);
    let mut draft = Draft {
        vectors,
        build,
        entry,
        lists: vec![Vec::new(); vectors.len()],
    };
    let mut order: Vec<u32> = (0..vectors.len() as u32).collect();
    let mut chance = Random::new(build.seed);
    for at in (1..order.len()).rev() {
        order.swap(at, chance.below(at + 1));
    }
    order.retain(|node| *node != entry);
    let largest = (vectors.len() / BATCH).max(1);
    let mut done = 0;
    while done < order.len() {
        let size = (done + 1).min(largest).min(order.len() - done);
        let batch = order.get(done..done + size).unwrap_or_default();
        draft.add(batch);
        done += size;
        if !progress(done) {
            return Err(AnnError::Bounds("the work was stopped".into()));
        }
    }
    draft.trim();
    draft.connect();
    Graph::new(entry, draft.lists)
}

/// The vector nearest to the mean of all.
fn medoid(vectors: &Vectors, threads: usize) -> u32 {
    let mut mean = vec![0.0_f64; vectors.dims()];
    for row in vectors.rows() {
        mean.iter_mut()
            .zip(row)
            .for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let mean: Vec<f32> = mean
        .iter()
        .map(|sum| (sum / vectors.len() as f64) as f32)
        .collect();
    let near = in_order(
        threads,
        vectors.len(),
        || (),
        |(), at| {
            Near::new(
                Metric::L2.distance(&mean, vectors.row(at as u32)),
                at as u32,
            )
        },
    );
    near.into_iter()
        .min_by(Near::order)
        .map_or(0, |near| near.id)
}

impl Draft<'_> {
    fn distance(&self, a: u32, b: u32) -> f32 {
        Metric::L2.distance(self.vectors.row(a), self.vectors.row(b))
    }

    /// The candidates of a search for a node, without itself.
    fn search(&self, node: u32, met: &mut Met) -> Vec<Near> {
        let from = FromRow {
            vectors: self.vectors,
            metric: Metric::L2,
            row: self.vectors.row(node),
        };
        let mut near = ordered(self, from, self.build.candidates, met).nearest;
        near.retain(|one| one.id != node);
        near
    }

    /// Of candidates, the nearest first, those that no chosen one is much closer to; then the nearest of the others.
    fn prune(&self, near: &[Near]) -> Vec<u32> {
        let degree = self.build.degree;
        let mut chosen: Vec<u32> = Vec::with_capacity(degree);
        let mut left = Vec::new();
        for one in near {
            if chosen.len() == degree {
                break;
            }
            let covers =
                |&other: &u32| self.build.alpha * self.distance(other, one.id) <= one.distance;
            match chosen.iter().any(covers) {
                true => left.push(one.id),
                false => chosen.push(one.id),
            }
        }
        let room = degree - chosen.len();
        chosen.extend(left.into_iter().take(room));
        chosen
    }

    /// The same of a list.
    fn prune_list(&self, node: u32, list: &[u32]) -> Vec<u32> {
        list.iter().for_each(|&id| prefetch(self.vectors.row(id)));
        let near = list
            .iter()
            .map(|&id| Near::new(self.distance(node, id), id));
        let mut near: Vec<Near> = near.collect();
        near.sort_unstable_by(Near::order);
        self.prune(&near)
    }

    fn add(&mut self, batch: &[u32]) {
        let threads = self.build.threads;
        let this = &*self;
        let met = || Met::new(this.lists.len());
        let found = in_order(threads, batch.len(), met, |met, at| {
            let node = batch.get(at).copied().unwrap_or(this.entry);
            this.prune(&this.search(node, met))
        });
        let mut back: Vec<(u32, u32)> = Vec::new();
        for (&node, list) in batch.iter().zip(found) {
            back.extend(list.iter().map(|&to| (to, node)));
            self.put(node, list);
        }
        back.sort_unstable();
        let groups: Vec<&[(u32, u32)]> = back.chunk_by(|a, b| a.0 == b.0).collect();
        let most = self.build.degree + self.build.degree / SLACK;
        let this = &*self;
        let merged = in_order(
            threads,
            groups.len(),
            || (),
            |(), at| {
                let group = groups.get(at).copied().unwrap_or_default();
                let to = group.first().map_or(this.entry, |(to, _)| *to);
                let mut list = this.neighbours(to).to_vec();
                let new = group.iter().map(|(_, from)| *from);
                let new: Vec<u32> = new.filter(|from| !list.contains(from)).collect();
                list.extend(new);
                match list.len() > most {
                    true => (to, this.prune_list(to, &list)),
                    false => (to, list),
                }
            },
        );
        for (to, list) in merged {
            self.put(to, list);
        }
    }

    fn put(&mut self, node: u32, list: Vec<u32>) {
        if let Some(own) = self.lists.get_mut(node as usize) {
            *own = list;
        }
    }

    /// Prunes the lists that are longer than the degree.
    fn trim(&mut self) {
        let this = &*self;
        let trimmed = in_order(
            self.build.threads,
            self.lists.len(),
            || (),
            |(), at| {
                let list = this.neighbours(at as u32);
                (list.len() > this.build.degree).then(|| this.prune_list(at as u32, list))
            },
        );
        for (node, list) in trimmed.into_iter().enumerate() {
            if let Some(list) = list {
                self.put(node as u32, list);
            }
        }
    }

    /// Gives each node that the entry does not reach an edge from one near to it that it does reach, in the order of
    /// numbers, as NSG grows its tree.
    fn connect(&mut self) {
        let mut level = levels(self);
        let mut met = Met::new(self.lists.len());
        for node in 0..self.lists.len() as u32 {
            if level.get(node as usize).is_some_and(Option::is_some) {
                continue;
            }
            // All that a search from the entry finds is reached.
            let near = self.search(node, &mut met);
            let mut with_room = near
                .iter()
                .filter(|one| self.neighbours(one.id).len() < MOST_NEIGHBOURS);
            let from = with_room.next().map_or(self.entry, |one| one.id);
            if let Some(list) = self.lists.get_mut(from as usize) {
                list.truncate(MOST_NEIGHBOURS - 1);
                list.push(node);
            }
            let next = level.get(from as usize).copied().flatten().unwrap_or(0) + 1;
            spread(self, &mut level, node, next);
        }
    }
}
