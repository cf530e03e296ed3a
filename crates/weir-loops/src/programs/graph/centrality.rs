//! Betweenness centrality of the shortest paths from one source (Brandes, J. Mathematical Sociology 25, 2001).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Graph, UNREACHED, in_chunks};

impl Graph {
    /// For each vertex the share of shortest paths from the source that pass it, summed over all ends. Each level reads the
    /// counts of the one before it, then the scores of the one after it, so that threads change no sum.
    pub fn centrality(&self, source: u32, threads: usize) -> Vec<f64> {
        let depths = self.depths(source, threads);
        let mut levels: Vec<Vec<u32>> = Vec::new();
        for (vertex, &depth) in depths.iter().enumerate().filter(|(_, d)| **d != UNREACHED) {
            let depth = depth as usize;
            if levels.len() <= depth {
                levels.resize_with(depth + 1, Vec::new);
            }
            levels[depth].push(vertex as u32);
        }
        let zeros = || {
            (0..self.vertices())
                .map(|_| AtomicU64::new(0))
                .collect::<Vec<_>>()
        };
        let (paths, scores) = (zeros(), zeros());
        let get = |list: &[AtomicU64], at: u32| f64::from_bits(list[at as usize].load(Relaxed));
        let put = |list: &[AtomicU64], at: u32, value: f64| {
            list[at as usize].store(value.to_bits(), Relaxed);
        };
        put(&paths, source, 1.0);
        let beside = |vertex: u32, depth: u32| {
            let neighbours = self.of(vertex as usize).iter().copied();
            let depths = &depths;
            neighbours.filter(move |&u| depths[u as usize] == depth)
        };
        for (depth, level) in levels.iter().enumerate().skip(1) {
            in_chunks(threads, level.len(), |n| {
                let before = beside(level[n], depth as u32 - 1);
                put(&paths, level[n], before.map(|u| get(&paths, u)).sum());
            });
        }
        for (depth, level) in levels.iter().enumerate().rev().skip(1) {
            in_chunks(threads, level.len(), |n| {
                let (vertex, own) = (level[n], get(&paths, level[n]));
                let after = beside(vertex, depth as u32 + 1);
                let part = |v: u32| own / get(&paths, v) * (1.0 + get(&scores, v));
                put(&scores, vertex, after.map(part).sum());
            });
        }
        let bits = scores.into_iter().map(AtomicU64::into_inner);
        bits.map(f64::from_bits).collect()
    }

    /// The same by one thread, which pushes counts along a queue and scores back.
    pub fn centrality_serial(&self, source: u32) -> Vec<f64> {
        let vertices = self.vertices();
        let (mut paths, mut scores) = (vec![0.0; vertices], vec![0.0; vertices]);
        let mut depths = vec![UNREACHED; vertices];
        let (mut order, mut queue) = (Vec::new(), VecDeque::from([source]));
        depths[source as usize] = 0;
        paths[source as usize] = 1.0;
        while let Some(vertex) = queue.pop_front() {
            order.push(vertex);
            let next = depths[vertex as usize] + 1;
            for &to in self.of(vertex as usize) {
                if depths[to as usize] == UNREACHED {
                    depths[to as usize] = next;
                    queue.push_back(to);
                }
                if depths[to as usize] == next {
                    paths[to as usize] += paths[vertex as usize];
                }
            }
        }
        for &vertex in order.iter().rev() {
            let at = vertex as usize;
            let gives = (1.0 + scores[at]) / paths[at];
            for &before in self.of(at) {
                if depths[before as usize] + 1 == depths[at] {
                    scores[before as usize] += paths[before as usize] * gives;
                }
            }
        }
        scores
    }
}
