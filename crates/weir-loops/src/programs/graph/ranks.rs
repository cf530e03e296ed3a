//! PageRank.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{Graph, parts};
use crate::programs::threads;

const DAMPING: f32 = 0.85;
/// PageRank ends when a sweep changes all scores together by less.
pub(super) const TOLERANCE: f64 = 1e-4;
pub(super) const MOST_SWEEPS: usize = 100;

impl Graph {
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
            let mut own_of = Vec::new();
            for &(from, to) in &ranges {
                let (own, later) = std::mem::take(&mut rest).split_at_mut(to - from);
                rest = later;
                own_of.push((from, own));
            }
            let changed = threads::parts(threads, own_of, |(from, own)| {
                let mut changed = 0.0;
                for (vertex, score) in (from..).zip(own) {
                    let given: f32 = (self.of(vertex).iter())
                        .map(|&u| f32::from_bits(gives[u as usize].load(Relaxed)))
                        .sum();
                    let new = base + DAMPING * given;
                    changed += f64::from((new - *score).abs());
                    *score = new;
                    gives[vertex].store(share(vertex, new).to_bits(), Relaxed);
                }
                changed
            });
            let changed: f64 = changed.into_iter().sum();
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
}
