//! Graphs: a Kronecker generator, and two kernels of the GAP Benchmark Suite with their checks (Beamer, Asanović,
//! Patterson, arXiv 1508.03619).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use super::keys::unit;
use crate::kernels::Random;

/// Edges for each vertex, each stored at both its ends (Graph 500).
const EDGES: u64 = 16;
/// The chances of the first three quarters of the matrix (Graph 500).
const QUARTERS: [f64; 3] = [0.57, 0.19, 0.19];
/// Bytes of neighbours, their offset, a score and a contribution for each vertex.
pub const BYTES_PER_VERTEX: u64 = 2 * EDGES * 4 + 8 + 4 + 4;
const DAMPING: f32 = 0.85;
/// PageRank ends when a sweep changes all scores together by less.
pub const TOLERANCE: f64 = 1e-4;
const MOST_SWEEPS: usize = 100;
/// A level of the search looks from the vertices that lack a depth where more than one in so many is in it.
const MANY: usize = 20;
/// The depth of a vertex that was not reached.
pub const UNREACHED: u32 = u32::MAX;

/// An undirected graph: the neighbours of each vertex in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u64>,
    neighbours: Vec<u32>,
}

impl Graph {
    /// A Kronecker graph of `2^scale` vertices, the same for any number of threads. Loops are left out.
    pub fn kronecker(scale: u32, threads: usize, seed: u64) -> Self {
        let vertices = 1_usize << scale;
        let edges = vertices as u64 * EDGES;
        let zeros = |count: usize| (0..count).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
        let left = zeros(vertices);
        let for_each = |what: &(dyn Fn(u32, u32) + Sync)| {
            in_parts(threads, edges as usize, |from, to| {
                for edge in from..to {
                    let (a, b) = ends(scale, seed, edge as u64);
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
        thread::scope(|scope| {
            for (from, to) in parts(&offsets, threads) {
                let length = (offsets[to] - offsets[from]) as usize;
                let (own, later) = std::mem::take(&mut rest).split_at_mut(length);
                rest = later;
                let offsets = &offsets;
                scope.spawn(move || {
                    let start = offsets[from];
                    for vertex in from..to {
                        let range = (offsets[vertex] - start) as usize
                            ..(offsets[vertex + 1] - start) as usize;
                        own[range].sort_unstable();
                    }
                });
            }
        });
        Self {
            offsets,
            neighbours,
        }
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

    /// PageRank in the order of Gauss and Seidel: a vertex reads what others have in the same sweep. Also the number of
    /// sweeps.
    pub fn pagerank(&self, threads: usize) -> (Vec<f32>, usize) {
        let vertices = self.vertices();
        let (first, base) = (1.0 / vertices as f32, (1.0 - DAMPING) / vertices as f32);
        let mut scores = vec![first; vertices];
        let share = |vertex: usize, score: f32| score / self.of(vertex).len().max(1) as f32;
        let gives: Vec<AtomicU32> = (0..vertices)
            .map(|v| AtomicU32::new(share(v, first).to_bits()))
            .collect();
        let ranges = parts(&self.offsets, threads);
        for sweep in 1..=MOST_SWEEPS {
            let mut rest = scores.as_mut_slice();
            let changed: f64 = thread::scope(|scope| {
                let mut workers = Vec::new();
                for &(from, to) in &ranges {
                    let (own, later) = std::mem::take(&mut rest).split_at_mut(to - from);
                    rest = later;
                    let (gives, share) = (&gives, &share);
                    workers.push(scope.spawn(move || {
                        let mut changed = 0.0;
                        for (vertex, score) in (from..to).zip(own) {
                            let given: f32 = (self.of(vertex).iter())
                                .map(|&u| f32::from_bits(gives[u as usize].load(Relaxed)))
                                .sum();
                            let new = base + DAMPING * given;
                            changed += f64::from((new - *score).abs());
                            *score = new;
                            gives[vertex].store(share(vertex, new).to_bits(), Relaxed);
                        }
                        changed
                    }));
                }
                workers
                    .into_iter()
                    .map(|worker| worker.join().unwrap_or(f64::NAN))
                    .sum()
            });
            if changed < TOLERANCE {
                return (scores, sweep);
            }
        }
        (scores, MOST_SWEEPS)
    }

    /// How far scores are from their own next values, all together, computed by one thread in the other direction. Below
    /// the tolerance they are right: a sweep in any order changes them by less.
    pub fn pagerank_error(&self, scores: &[f32]) -> f64 {
        let vertices = self.vertices();
        let base = f64::from(1.0 - DAMPING) / vertices as f64;
        let mut given = vec![0.0_f64; vertices];
        for (vertex, &score) in scores.iter().enumerate() {
            let gives = f64::from(score) / self.of(vertex).len().max(1) as f64;
            for &to in self.of(vertex) {
                given[to as usize] += gives;
            }
        }
        let next = given.iter().map(|given| base + f64::from(DAMPING) * given);
        next.zip(scores)
            .map(|(next, &score)| (next - f64::from(score)).abs())
            .sum()
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
fn ends(scale: u32, seed: u64, edge: u64) -> (u32, u32) {
    let mut random = Random::new(seed ^ edge.wrapping_mul(0x9e6c_63d0_876a_68de));
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
    let (threads, work) = (threads.max(1), &work);
    thread::scope(|scope| {
        let start = |part: usize| {
            let (from, to) = (count * part / threads, count * (part + 1) / threads);
            scope.spawn(move || work(from, to))
        };
        let workers: Vec<_> = (0..threads).map(start).collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn threads_change_no_result(scale in 3_u32..10, seed: u64, threads in 2_usize..5) {
            let graph = Graph::kronecker(scale, 1, seed);
            prop_assert_eq!(&graph, &Graph::kronecker(scale, threads, seed));
            prop_assert_eq!(graph.arcs() as u64, graph.offsets[graph.vertices()]);
            for source in graph.sources(3, seed) {
                prop_assert_eq!(graph.depths(source, threads), graph.depths_serial(source));
            }
            let (scores, sweeps) = graph.pagerank(threads);
            prop_assert!(sweeps < MOST_SWEEPS);
            prop_assert!(graph.pagerank_error(&scores) < TOLERANCE);
        }

        #[test]
        fn a_wrong_score_is_seen(seed: u64, at: prop::sample::Index) {
            let graph = Graph::kronecker(6, 1, seed);
            let (mut scores, _) = graph.pagerank(1);
            let at = at.index(scores.len());
            scores[at] += 0.01;
            prop_assert!(graph.pagerank_error(&scores) > TOLERANCE);
        }
    }

    #[test]
    fn every_edge_has_both_its_ends() {
        let graph = Graph::kronecker(8, 2, 1);
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
