//! Best-first search (CXL-ANNS, Algorithm 1), and the same with its update deferred (section 5.3).
//!
//! Algorithm 1 inserts all distances of a step, and then takes the nearest node that was not visited. Only the choice of
//! that node gates the next step. [`relaxed`] takes it from the array as it was and from the new distances, and inserts
//! these while the next distances are computed. A new node may be chosen only if the array would keep it. Both visit the
//! same nodes in the same order: the nearest of the new nodes is preceded in the updated array only by nodes of the old
//! array, so that it is kept exactly where the old array admits it, and no nearer new node can push out the nearest old one.
//!
//! The paper does not mention a set of the nodes that were met. Here each search has one, in all its forms, so that no
//! distance is computed twice. [`counting`] says what a search without it would do besides.

use weir_loops::distance::prefetch;

use crate::AnnError;
use crate::candidates::{Candidates, Met};
use crate::graph::Graph;
use crate::vectors::{Metric, Near, Vectors};

/// What a search walks on.
pub trait Adjacency {
    /// Where it begins.
    fn entry(&self) -> u32;

    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// The neighbours of a node.
    fn neighbours(&self, node: u32) -> &[u32];
}

impl Adjacency for Graph {
    fn entry(&self) -> u32 {
        Graph::entry(self)
    }

    fn nodes(&self) -> usize {
        self.len()
    }

    fn neighbours(&self, node: u32) -> &[u32] {
        Graph::neighbours(self, node)
    }
}

/// Distances of nodes from what is searched for.
pub trait Distances {
    /// That of one node.
    fn of(&self, id: u32) -> f32;

    /// Asks for what [`Distances::of`] will read.
    fn prefetch(&self, _: u32) {}
}

impl<F: Fn(u32) -> f32> Distances for F {
    fn of(&self, id: u32) -> f32 {
        self(id)
    }
}

/// Distances of a row from those of vectors in this host's memory.
#[derive(Debug, Clone, Copy)]
pub struct FromRow<'v> {
    /// Where nodes are.
    pub vectors: &'v Vectors,
    /// How they are apart.
    pub metric: Metric,
    /// What is searched for.
    pub row: &'v [f32],
}

impl Distances for FromRow<'_> {
    fn of(&self, id: u32) -> f32 {
        self.metric.distance(self.row, self.vectors.row(id))
    }

    fn prefetch(&self, id: u32) {
        prefetch(self.vectors.row(id));
    }
}

/// What a search did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Nodes in the order in which their lists were read.
    pub visited: Vec<u32>,
    /// Neighbours in those lists.
    pub neighbours: u64,
    /// Distances that were computed.
    pub distances: u64,
    /// Distances that entered the array.
    pub inserted: u64,
    /// Candidates that moved by one place for them.
    pub moved: u64,
    /// Neighbours that were met before and are near enough for the array, where this was counted: without a set of the nodes
    /// that were met each is looked up in the array.
    pub again: u64,
    /// Nodes, after the first, that were the nearest unvisited one of the array before the distances of the step before
    /// them were known.
    pub foreseen: u64,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The array: the nearest first.
    pub nearest: Vec<Near>,
    /// How it came about.
    pub trace: Trace,
}

/// How long the array is, and how many of it are asked for.
///
/// # Errors
/// More are asked for than the array has, or none.
pub fn check(k: usize, most: usize) -> Result<(), AnnError> {
    match k {
        0 => Err(AnnError::Bounds("k is at least 1".into())),
        _ if k > most => Err(AnnError::Bounds(format!(
            "k is {k}, more than the {most} candidates that a search keeps"
        ))),
        _ => Ok(()),
    }
}

/// A search in progress: what both forms share.
struct Walk<'s, G: ?Sized, D> {
    graph: &'s G,
    distance: D,
    met: &'s mut Met,
    array: Candidates,
    trace: Trace,
    /// Whether nodes that were met before are looked at again.
    again: bool,
}

impl<'s, G: Adjacency + ?Sized, D: Distances> Walk<'s, G, D> {
    fn begin(graph: &'s G, distance: D, most: usize, met: &'s mut Met) -> Self {
        met.clear();
        let entry = graph.entry();
        let mut array = Candidates::new(most.max(1));
        if met.meet(entry) {
            array.insert(Near::new(distance.of(entry), entry), false);
        }
        Self {
            graph,
            distance,
            met,
            array,
            trace: Trace::default(),
            again: false,
        }
    }

    /// Reads the list of a node and computes the distances of those not met before.
    fn expand(&mut self, node: u32, new: &mut Vec<Near>) {
        let list = self.graph.neighbours(node);
        self.trace.visited.push(node);
        self.trace.neighbours += list.len() as u64;
        new.clear();
        for &id in list {
            if self.met.meet(id) {
                self.distance.prefetch(id);
                new.push(Near::new(0.0, id));
            } else if self.again {
                let near = Near::new(self.distance.of(id), id);
                self.trace.again += u64::from(self.array.admits(near));
            }
        }
        for near in &mut *new {
            *near = Near::new(self.distance.of(near.id), near.id);
        }
        self.trace.distances += new.len() as u64;
    }

    fn insert(&mut self, near: Near, visited: bool) {
        let done = self.array.insert(near, visited);
        self.trace.inserted += u64::from(done.kept);
        self.trace.moved += done.moved as u64;
    }

    fn end(self) -> Found {
        Found {
            nearest: self.array.iter().collect(),
            trace: self.trace,
        }
    }
}

/// Algorithm 1: each step inserts its distances and then chooses the next node.
pub fn ordered(
    graph: &(impl Adjacency + ?Sized),
    distance: impl Distances,
    most: usize,
    met: &mut Met,
) -> Found {
    follow(Walk::begin(graph, distance, most, met))
}

/// The same, which also counts neighbours that were met before ([`Trace::again`]).
pub fn counting(
    graph: &(impl Adjacency + ?Sized),
    distance: impl Distances,
    most: usize,
    met: &mut Met,
) -> Found {
    let mut walk = Walk::begin(graph, distance, most, met);
    walk.again = true;
    follow(walk)
}

fn follow<G: Adjacency + ?Sized, D: Distances>(mut walk: Walk<'_, G, D>) -> Found {
    let mut new = Vec::new();
    let mut foreseen = None;
    while let Some(near) = walk.array.nearest_unvisited() {
        walk.trace.foreseen += u64::from(foreseen == Some(near.id));
        walk.array.visit_nearest();
        // What the array says before the distances of this step are there.
        foreseen = walk.array.nearest_unvisited().map(|near| near.id);
        walk.expand(near.id, &mut new);
        for &near in &new {
            walk.insert(near, false);
        }
    }
    walk.end()
}

/// The same with insertions deferred: a step chooses the next node first, and inserts its distances during the next one.
pub fn relaxed(
    graph: &(impl Adjacency + ?Sized),
    distance: impl Distances,
    most: usize,
    met: &mut Met,
) -> Found {
    let mut walk = Walk::begin(graph, distance, most, met);
    let (mut new, mut pending) = (Vec::new(), Vec::new());
    let mut current = walk.array.nearest_unvisited();
    walk.array.visit_nearest();
    // Of the pending distances, that of the node which was chosen.
    let mut chosen = None;
    while let Some(near) = current {
        walk.expand(near.id, &mut new);
        // While devices compute: insert what the step before found, and foresee.
        for &near in &pending {
            walk.insert(near, Some(near.id) == chosen);
        }
        let stale = walk.array.nearest_unvisited();
        // Urgent: the nearest of the array and of the new distances.
        let fresh = new.iter().copied().min_by(Near::order);
        let fresh = fresh.filter(|near| walk.array.admits(*near));
        let fresh = fresh.filter(|near| stale.is_none_or(|old| near.order(&old).is_lt()));
        if fresh.is_none() && stale.is_some() {
            walk.trace.foreseen += 1;
            walk.array.visit_nearest();
        }
        chosen = fresh.map(|near| near.id);
        current = fresh.or(stale);
        std::mem::swap(&mut pending, &mut new);
    }
    for &near in &pending {
        walk.insert(near, false);
    }
    walk.end()
}
