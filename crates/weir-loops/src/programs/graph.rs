//! Graphs: their generator, and kernels of the GAP Benchmark Suite with their checks (Beamer, Asanović, Patterson, arXiv
//! 1508.03619).

mod centrality;
mod components;
pub mod kernels;
mod ranks;
mod triangles;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::keys::unit;
use super::threads::{self, ranges, tasks};
use crate::kernels::Random;

/// Edges for each vertex, each stored at both its ends (Graph 500).
const EDGES: u64 = 16;
/// The chances of the first three quarters of the matrix (Graph 500).
const QUARTERS: [f64; 3] = [0.57, 0.19, 0.19];
/// Bytes of neighbours, their offset, a score and a contribution for each vertex.
pub const BYTES_PER_VERTEX: u64 = 2 * EDGES * 4 + 8 + 4 + 4;
/// A level of the search looks from the vertices that lack a depth where more than one in this many is in it.
const MANY: usize = 20;
/// The depth of a vertex that was not reached.
pub const UNREACHED: u32 = u32::MAX;

/// How likely an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Few vertices have most edges (Graph 500).
    Kronecker,
    /// All are equally likely.
    Uniform,
}

/// Vertices that a thread takes at once.
const CHUNK: usize = 256;

/// An undirected graph: the neighbours of each vertex in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u64>,
    neighbours: Vec<u32>,
}

impl Graph {
    /// A graph of `2^scale` vertices, the same for any number of threads. Loops are left out, and edges are there once.
    pub fn make(shape: Shape, scale: u32, threads: usize, seed: u64) -> Self {
        let vertices = 1_usize << scale;
        let edges = vertices as u64 * EDGES;
        let zeros = |count: usize| (0..count).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
        let left = zeros(vertices);
        let for_each = |what: &(dyn Fn(u32, u32) + Sync)| {
            in_parts(threads, edges as usize, |from, to| {
                for edge in from..to {
                    let (a, b) = ends(shape, scale, seed, edge as u64);
                    if a != b {
                        what(a, b);
                        what(b, a);
                    }
                }
            });
        };
        for_each(&|a, _| {
            left[a as usize].fetch_add(1, Relaxed);
        });
        let mut offsets = Vec::with_capacity(vertices + 1);
        let mut sum = 0;
        for degree in &left {
            offsets.push(sum);
            sum += u64::from(degree.load(Relaxed));
        }
        offsets.push(sum);
        let filled = zeros(sum as usize);
        for_each(&|a, b| {
            let place = offsets[a as usize] + u64::from(left[a as usize].fetch_sub(1, Relaxed)) - 1;
            filled[place as usize].store(b, Relaxed);
        });
        // The same memory: no element changes its size.
        let mut neighbours: Vec<u32> = filled.into_iter().map(AtomicU32::into_inner).collect();
        let mut rest = neighbours.as_mut_slice();
        let mut lists = Vec::new();
        for (from, to) in parts(&offsets, threads) {
            let length = (offsets[to] - offsets[from]) as usize;
            let (own, later) = std::mem::take(&mut rest).split_at_mut(length);
            rest = later;
            lists.push((from, to, own));
        }
        threads::parts(threads, lists, |(from, to, own)| {
            for vertex in from..to {
                let at = |vertex: usize| (offsets[vertex] - offsets[from]) as usize;
                own[at(vertex)..at(vertex + 1)].sort_unstable();
            }
        });
        let mut graph = Self {
            offsets,
            neighbours,
        };
        graph.merge_equal();
        graph
    }

    /// Leaves of equal neighbours one.
    fn merge_equal(&mut self) {
        let (mut from, mut kept) = (0, 0_usize);
        for vertex in 0..self.vertices() {
            let (to, start) = (self.offsets[vertex + 1] as usize, kept);
            for at in from..to {
                let neighbour = self.neighbours[at];
                if kept == start || self.neighbours[kept - 1] != neighbour {
                    self.neighbours[kept] = neighbour;
                    kept += 1;
                }
            }
            from = to;
            self.offsets[vertex + 1] = kept as u64;
        }
        self.neighbours.truncate(kept);
    }

    /// How many vertices it has.
    pub fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many neighbours all have together.
    pub fn arcs(&self) -> usize {
        self.neighbours.len()
    }

    fn of(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }

    /// Vertices that have neighbours, drawn at random.
    pub fn sources(&self, count: usize, seed: u64) -> Vec<u32> {
        let mut random = Random::new(seed);
        let drawn = std::iter::repeat_with(|| random.below(self.vertices())).take(1 << 20);
        drawn
            .filter(|&vertex| !self.of(vertex).is_empty())
            .map(|vertex| vertex as u32)
            .take(count)
            .collect()
    }

    /// The depth of every vertex below a source: from the level to its neighbours, or, where the level is large, from the
    /// vertices that lack a depth to the level.
    pub fn depths(&self, source: u32, threads: usize) -> Vec<u32> {
        let vertices = self.vertices();
        let depths: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(UNREACHED)).collect();
        depths[source as usize].store(0, Relaxed);
        let mut level = vec![source];
        let mut depth = 0;
        while !level.is_empty() {
            let (next, depths) = (depth + 1, &depths);
            level = if level.len() * MANY > vertices {
                in_parts(threads, vertices, |from, to| {
                    let lacks = (from..to).filter(|&v| depths[v].load(Relaxed) == UNREACHED);
                    let found = lacks.filter(|&v| {
                        self.of(v)
                            .iter()
                            .any(|&u| depths[u as usize].load(Relaxed) == depth)
                    });
                    found
                        .inspect(|&v| depths[v].store(next, Relaxed))
                        .map(|v| v as u32)
                        .collect::<Vec<_>>()
                })
            } else {
                in_parts(threads, level.len(), |from, to| {
                    let ends = level[from..to].iter().flat_map(|&v| self.of(v as usize));
                    let first = |&&u: &&u32| {
                        let place = &depths[u as usize];
                        place.load(Relaxed) == UNREACHED
                            && place
                                .compare_exchange(UNREACHED, next, Relaxed, Relaxed)
                                .is_ok()
                    };
                    ends.filter(first).copied().collect::<Vec<_>>()
                })
            }
            .concat();
            depth = next;
        }
        depths.into_iter().map(AtomicU32::into_inner).collect()
    }

    /// The same by one thread, with a queue.
    pub fn depths_serial(&self, source: u32) -> Vec<u32> {
        let mut depths = vec![UNREACHED; self.vertices()];
        depths[source as usize] = 0;
        let mut queue = std::collections::VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            let next = depths[vertex as usize] + 1;
            for &to in self.of(vertex as usize) {
                if depths[to as usize] == UNREACHED {
                    depths[to as usize] = next;
                    queue.push_back(to);
                }
            }
        }
        depths
    }
}

/// The ends of an edge, whose bits are drawn one after the other.
fn ends(shape: Shape, scale: u32, seed: u64, edge: u64) -> (u32, u32) {
    let mut random = Random::new(seed ^ edge.wrapping_mul(0x9e6c_63d0_876a_68de));
    if shape == Shape::Uniform {
        let mut end = || random.below(1 << scale) as u32;
        return (end(), end());
    }
    let [a, b, c] = QUARTERS;
    let (mut from, mut to) = (0, 0);
    for _ in 0..scale {
        let drawn = unit(&mut random);
        let (down, right) = if drawn < a {
            (0, 0)
        } else if drawn < a + b {
            (0, 1)
        } else if drawn < a + b + c {
            (1, 0)
        } else {
            (1, 1)
        };
        (from, to) = (from << 1 | down, to << 1 | right);
    }
    // Numbers say nothing of degrees: an odd factor permutes them.
    let mask = (1_u64 << scale) - 1;
    let scatter = |vertex: u32| (u64::from(vertex).wrapping_mul(0x9e37_79b1) & mask) as u32;
    (scatter(from), scatter(to))
}

/// Ranges of vertices that have about equally many neighbours.
fn parts(offsets: &[u64], threads: usize) -> Vec<(usize, usize)> {
    let (vertices, arcs) = (offsets.len() - 1, offsets[offsets.len() - 1]);
    let threads = threads.max(1);
    let bound = |part: usize| match part == threads {
        true => vertices,
        false => offsets
            .partition_point(|&at| at < arcs * part as u64 / threads as u64)
            .min(vertices),
    };
    (0..threads)
        .map(|part| (bound(part), bound(part + 1).max(bound(part))))
        .collect()
}

/// Work on equal ranges, each by a thread.
fn in_parts<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize, usize) -> T + Sync,
) -> Vec<T> {
    let threads = threads.max(1);
    tasks(threads, threads, |part| {
        work(count * part / threads, count * (part + 1) / threads)
    })
}

/// Work on each number below a count, by the thread that is free.
fn in_chunks(threads: usize, count: usize, work: impl Fn(usize) + Sync) {
    ranges(threads, count, CHUNK, &|from, to| {
        (from..to).for_each(&work)
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ranks::{MOST_SWEEPS, TOLERANCE};
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn threads_change_no_result(scale in 3_u32..10, seed: u64, threads in 2_usize..5, uniform: bool) {
            let shape = if uniform { Shape::Uniform } else { Shape::Kronecker };
            let graph = Graph::make(shape, scale, 1, seed);
            prop_assert_eq!(&graph, &Graph::make(shape, scale, threads, seed));
            prop_assert_eq!(graph.arcs() as u64, graph.offsets[graph.vertices()]);
            for source in graph.sources(3, seed) {
                prop_assert_eq!(graph.depths(source, threads), graph.depths_serial(source));
                let scores = graph.centrality(source, threads);
                prop_assert_eq!(&scores, &graph.centrality(source, 1));
                for (a, b) in scores.iter().zip(graph.centrality_serial(source)) {
                    prop_assert!((a - b).abs() <= 1e-9 * b.max(1.0), "{a} {b}");
                }
            }
            prop_assert_eq!(graph.components(threads), graph.components_serial());
            prop_assert_eq!(graph.triangles(threads), graph.triangles_serial());
            let (scores, sweeps) = graph.pagerank(threads);
            prop_assert!(sweeps < MOST_SWEEPS);
            prop_assert!(graph.pagerank_error(&scores) < TOLERANCE);
        }

        #[test]
        fn a_wrong_score_is_seen(seed: u64, at: prop::sample::Index) {
            let graph = Graph::make(Shape::Kronecker, 6, 1, seed);
            let (mut scores, _) = graph.pagerank(1);
            let at = at.index(scores.len());
            scores[at] += 0.01;
            prop_assert!(graph.pagerank_error(&scores) > TOLERANCE);
        }
    }

    #[test]
    fn a_small_graph_has_its_known_answers() {
        // A square with one diagonal, and a pair next to it.
        let lists: [&[u32]; 6] = [&[1, 2, 3], &[0, 2], &[0, 1, 3], &[0, 2], &[5], &[4]];
        let mut graph = Graph {
            offsets: vec![0],
            neighbours: Vec::new(),
        };
        for list in lists {
            graph.neighbours.extend(list);
            graph.offsets.push(graph.neighbours.len() as u64);
        }
        assert_eq!(graph.triangles(2), 2);
        assert_eq!(graph.components(2), [0, 0, 0, 0, 4, 4]);
        // Of the two paths from 1 to 3 one passes 0, the other 2.
        assert_eq!(graph.centrality(1, 2), [0.5, 3.0, 0.5, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn every_edge_has_both_its_ends() {
        let graph = Graph::make(Shape::Kronecker, 8, 2, 1);
        for vertex in 0..graph.vertices() {
            for &to in graph.of(vertex) {
                assert!(
                    graph
                        .of(to as usize)
                        .binary_search(&(vertex as u32))
                        .is_ok()
                );
            }
        }
    }
}
