//! Connected components: Afforest (Sutton, Ben-Nun, Barak, IPDPS 2018), as in the GAP Benchmark Suite.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{Graph, in_chunks};
use crate::kernels::Random;

/// Neighbours of each vertex that are linked before the largest component is looked for.
const FIRST: usize = 2;
/// Vertices among which the most frequent component is looked for.
const SAMPLE: usize = 1024;

impl Graph {
    /// The least vertex of the component of each vertex.
    pub fn components(&self, threads: usize) -> Vec<u32> {
        let vertices = self.vertices();
        let parents: Vec<AtomicU32> = (0..vertices as u32).map(AtomicU32::new).collect();
        for n in 0..FIRST {
            in_chunks(threads, vertices, |v| {
                if let Some(&u) = self.of(v).get(n) {
                    link(&parents, v as u32, u);
                }
            });
            in_chunks(threads, vertices, |v| compress(&parents, v));
        }
        let largest = frequent(&parents);
        in_chunks(threads, vertices, |v| {
            if parents[v].load(Relaxed) != largest {
                let rest = self.of(v).iter().skip(FIRST);
                rest.for_each(|&u| link(&parents, v as u32, u));
            }
        });
        in_chunks(threads, vertices, |v| compress(&parents, v));
        parents.into_iter().map(AtomicU32::into_inner).collect()
    }

    /// The same by one thread, which searches from each vertex that has no component yet.
    pub fn components_serial(&self) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let mut labels = vec![NONE; self.vertices()];
        let mut stack = Vec::new();
        for first in 0..self.vertices() as u32 {
            if labels[first as usize] != NONE {
                continue;
            }
            labels[first as usize] = first;
            stack.push(first);
            while let Some(vertex) = stack.pop() {
                for &to in self.of(vertex as usize) {
                    if labels[to as usize] == NONE {
                        labels[to as usize] = first;
                        stack.push(to);
                    }
                }
            }
        }
        labels
    }
}

/// Makes two trees one: a root gets a parent with a lesser number, so that no cycle can arise.
fn link(parents: &[AtomicU32], a: u32, b: u32) {
    let (mut a, mut b) = (
        parents[a as usize].load(Relaxed),
        parents[b as usize].load(Relaxed),
    );
    while a != b {
        let (high, low) = (a.max(b), a.min(b));
        let place = &parents[high as usize];
        match place.compare_exchange(high, low, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(parent) if parent == low => return,
            Err(parent) => {
                a = parents[parent as usize].load(Relaxed);
                b = parents[low as usize].load(Relaxed);
            }
        }
    }
}

/// Has a vertex point to its root.
fn compress(parents: &[AtomicU32], vertex: usize) {
    loop {
        let parent = parents[vertex].load(Relaxed);
        let above = parents[parent as usize].load(Relaxed);
        if parent == above {
            return;
        }
        parents[vertex].store(above, Relaxed);
    }
}

/// The component that most of some vertices have. Any answer is right; this one saves the most work.
fn frequent(parents: &[AtomicU32]) -> u32 {
    let mut random = Random::new(parents.len() as u64);
    let drawn = (0..SAMPLE).map(|_| parents[random.below(parents.len())].load(Relaxed));
    let mut drawn: Vec<u32> = drawn.collect();
    drawn.sort_unstable();
    let runs = drawn.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).map_or(0, |run| run[0])
}
