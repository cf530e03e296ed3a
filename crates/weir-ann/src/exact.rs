//! The exact nearest vectors, and how many of them a search finds.

use crate::threads::in_order;
use crate::vectors::{Metric, Near, Vectors};

/// The `k` nearest of all vectors, the nearest first.
pub fn nearest(vectors: &Vectors, metric: Metric, query: &[f32], k: usize) -> Vec<Near> {
    let mut best: Vec<Near> = Vec::with_capacity(k + 1);
    for (id, row) in vectors.rows().enumerate() {
        keep(
            &mut best,
            k,
            Near::new(metric.distance(query, row), id as u32),
        );
    }
    best
}

/// The same for many queries on some threads.
pub fn all_nearest(
    vectors: &Vectors,
    metric: Metric,
    queries: &Vectors,
    k: usize,
    threads: usize,
) -> Vec<Vec<Near>> {
    in_order(
        threads,
        queries.len(),
        || (),
        |(), at| nearest(vectors, metric, queries.row(at as u32), k),
    )
}

fn keep(best: &mut Vec<Near>, k: usize, near: Near) {
    let is_in = |last: &Near| near.order(last).is_lt();
    if best.len() < k || best.last().is_some_and(is_in) {
        let at = best.partition_point(|other| other.order(&near).is_lt());
        best.insert(at, near);
        best.truncate(k);
    }
}

/// The `k` nearest of what hosts found in their parts, each with the first id of its part.
pub fn gather(parts: &[(u32, Vec<Near>)], k: usize) -> Vec<Near> {
    let mut best = Vec::with_capacity(k + 1);
    for (first, found) in parts {
        for near in found {
            keep(&mut best, k, Near::new(near.distance, first + near.id));
        }
    }
    best
}

/// The share of the exact `k` that were found (recall@k).
pub fn recall(exact: &[Near], found: &[Near]) -> f64 {
    let hit = exact
        .iter()
        .filter(|one| found.iter().any(|other| other.id == one.id));
    hit.count() as f64 / exact.len().max(1) as f64
}
