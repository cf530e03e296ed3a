//! Nearest neighbours by a walk over layers of a proximity graph, in the manner of HNSW (Malkov and Yashunin, TPAMI 2020).
//!
//! The vectors are made as a tree: each of a layer is near one of the layer above. So the neighbours of a vector are among
//! those below its parent and its parent's neighbours, and the graph is made in a time that grows as the number of vectors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use weir_model::latency::LatencyHistogram;
use weir_model::units::Nanos;

use super::report::{Given, Report, Step};
use super::threads::tasks;
use crate::kernels::Random;

const DIMENSIONS: usize = 128;
/// Links of a vector.
const LINKS: usize = 32;
/// Vectors near one of the layer above.
const CHILDREN: usize = 16;
/// Vectors whose links a thread makes at once.
const PART: usize = 256;
/// Vectors that a search keeps, and that it answers with.
const BEAM: usize = 64;
const ANSWERS: usize = 10;
/// Searches of a repetition, and those that are compared with all vectors.
const SEARCHES: usize = 4096;
const COMPARED: usize = 32;
/// The least part of the true neighbours that a search on such a graph finds.
const LEAST_RECALL: f64 = 0.5;

/// A layer: vectors, and their links.
#[derive(Default)]
struct Layer {
    vectors: Vec<[f32; DIMENSIONS]>,
    links: Vec<[u32; LINKS]>,
}

/// A vector: the bits of its distance, whose order is that of the numbers, before its own number.
type Near = u64;
/// What a thread found: how long its searches took, and the answer of each.
type Found = (LatencyHistogram, Vec<(usize, Vec<Near>)>);

/// The vector of this number, at the square of its distance.
fn near(layer: &Layer, at: usize, from: &[f32; DIMENSIONS]) -> Near {
    u64::from(distance(from, &layer.vectors[at])) << 32 | at as u64
}

/// The number of a vector.
fn number(near: Near) -> usize {
    near as u32 as usize
}

fn distance(a: &[f32; DIMENSIONS], b: &[f32; DIMENSIONS]) -> u32 {
    let mut parts = [0.0_f32; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for at in 0..8 {
            parts[at] += (a[at] - b[at]) * (a[at] - b[at]);
        }
    }
    parts.iter().sum::<f32>().to_bits()
}

/// A vector at a distance from another one that is drawn.
fn beside(from: &[f32; DIMENSIONS], spread: f32, random: &mut Random) -> [f32; DIMENSIONS] {
    std::array::from_fn(|at| {
        let drawn = (random.word() >> 40) as f32 / (1_u32 << 24) as f32;
        from[at] + spread * (drawn - 0.5)
    })
}

/// The layers, from the smallest.
fn make(vectors: usize, threads: usize, seed: u64) -> Vec<Layer> {
    let mut sizes = vec![vectors];
    while let Some(&size) = sizes.last().filter(|&&size| size > LINKS) {
        sizes.push(size.div_ceil(CHILDREN));
    }
    let mut layers: Vec<Layer> = Vec::new();
    for (depth, &size) in sizes.iter().rev().enumerate() {
        let above = layers.last();
        let spread = 0.7_f32.powi(depth as i32);
        let origin = [0.0; DIMENSIONS];
        let vector = |at: usize| {
            let mut random = Random::new(seed ^ ((depth as u64) << 48) ^ at as u64);
            beside(
                above.map_or(&origin, |above| &above.vectors[at / CHILDREN]),
                spread,
                &mut random,
            )
        };
        let mut layer = Layer {
            vectors: (0..size).map(vector).collect(),
            links: Vec::new(),
        };
        let link = |at: usize| {
            let own = &layer.vectors[at];
            let parents = match above {
                Some(above) => {
                    let parent = at / CHILDREN;
                    let mut all = vec![parent];
                    all.extend(above.links[parent].iter().map(|&link| link as usize));
                    all
                }
                None => (0..size.div_ceil(CHILDREN)).collect(),
            };
            let below = parents
                .iter()
                .flat_map(|&p| p * CHILDREN..((p + 1) * CHILDREN).min(size));
            let others = below.filter(|&other| other != at);
            let mut all: Vec<Near> = others.map(|other| near(&layer, other, own)).collect();
            all.sort_unstable();
            all.dedup();
            // Where there are few, the last one is named again.
            let nth = |n: usize| {
                all.get(n)
                    .or(all.last())
                    .map_or(at as u32, |near| *near as u32)
            };
            std::array::from_fn(nth)
        };
        let links = tasks(threads, size.div_ceil(PART), |part| {
            let all = part * PART..((part + 1) * PART).min(size);
            all.map(link).collect::<Vec<[u32; LINKS]>>()
        });
        layer.links = links.concat();
        layers.push(layer);
    }
    layers
}

/// The nearest vectors that a walk finds: down the layers by the nearest one, then with a beam.
fn search(layers: &[Layer], query: &[f32; DIMENSIONS], seen: &mut [u32], turn: u32) -> Vec<Near> {
    let mut at = 0_usize;
    for (depth, layer) in layers.iter().enumerate() {
        if depth > 0 {
            at *= CHILDREN;
        }
        if depth + 1 == layers.len() {
            break;
        }
        let mut best = near(layer, at, query);
        loop {
            let links = layer.links[number(best)].iter();
            let nearest = links.map(|&to| near(layer, to as usize, query)).min();
            match nearest.filter(|&nearest| nearest >> 32 < best >> 32) {
                Some(nearest) => best = nearest,
                None => break,
            }
        }
        at = number(best);
    }
    let Some(layer) = layers.last() else {
        return Vec::new();
    };
    let first = near(layer, at, query);
    seen[at] = turn;
    let mut open = BinaryHeap::from([Reverse(first)]);
    let mut best = BinaryHeap::from([first]);
    while let Some(Reverse(nearest)) = open.pop() {
        if best.len() >= BEAM && best.peek().is_some_and(|&worst| nearest > worst) {
            break;
        }
        for &to in &layer.links[number(nearest)] {
            if std::mem::replace(&mut seen[to as usize], turn) == turn {
                continue;
            }
            let found = near(layer, to as usize, query);
            if best.len() < BEAM || best.peek().is_some_and(|worst| found < *worst) {
                open.push(Reverse(found));
                best.push(found);
                if best.len() > BEAM {
                    best.pop();
                }
            }
        }
    }
    let mut found = best.into_sorted_vec();
    found.truncate(ANSWERS);
    found
}

/// Makes the graph, and searches it.
pub fn run(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    let each = (DIMENSIONS + LINKS) as u64 * 4;
    let vectors = (given.bytes / each).clamp(1024, 1 << 31) as usize;
    let layers = make(vectors, given.threads, given.seed);
    let Some(lowest) = layers.last() else {
        return Ok(());
    };
    let mut random = Random::new(!given.seed);
    let query = |_| {
        let beside_of = random.below(vectors);
        beside(
            &lowest.vectors[beside_of],
            0.7_f32.powi(layers.len() as i32),
            &mut random,
        )
    };
    let queries: Vec<_> = (0..SEARCHES).map(query).collect();
    let exact: Vec<Vec<Near>> = tasks(given.threads, COMPARED, |n| {
        let mut all: Vec<Near> = (0..vectors)
            .map(|at| near(lowest, at, &queries[n]))
            .collect();
        all.sort_unstable();
        all.truncate(ANSWERS);
        all
    });
    let mut has_version = false;
    for trial in 0..given.trials {
        let next = AtomicUsize::new(0);
        let began = Instant::now();
        let found: Vec<Found> = tasks(given.threads, given.threads, |_| {
            let (mut latency, mut found) = (LatencyHistogram::new(), Vec::new());
            let mut seen = vec![u32::MAX; vectors];
            loop {
                let n = next.fetch_add(1, Relaxed);
                let Some(query) = queries.get(n) else {
                    return (latency, found);
                };
                let sent = Instant::now();
                let answer = search(&layers, query, &mut seen, n as u32);
                latency.record(Nanos(sent.elapsed().as_secs_f64() * 1e9));
                found.push((n, answer));
            }
        });
        let time = began.elapsed();
        report.look()?;
        let mut latency = LatencyHistogram::new();
        let (mut hits, mut check, mut right) = (0, 0_u64, true);
        for (its, found) in found {
            latency.merge(&its);
            for (n, answer) in found {
                // Distances are computed anew, and ascend.
                right &= answer.len() == ANSWERS && answer.is_sorted();
                for &one in &answer {
                    let at = number(one);
                    right &= near(lowest, at, &queries[n]) == one;
                    check = check.wrapping_add(Random::new((n << 32 | at) as u64).word());
                }
                if let Some(exact) = exact.get(n) {
                    hits += answer.iter().filter(|one| exact.contains(one)).count();
                }
            }
        }
        let recall = hits as f64 / (COMPARED * ANSWERS) as f64;
        if !std::mem::replace(&mut has_version, true) {
            report.version(&format!(
                "{vectors} vectors of {DIMENSIONS} numbers, {LINKS} links, {} layers, recall {:.0} %",
                layers.len(),
                recall * 100.0
            ))?;
        }
        let step = Step::trial(trial, time, SEARCHES as u64, format!("{check:x}"));
        let step = step.of(SEARCHES as u64, "searches").each(&latency);
        let otherwise = format!("distances are wrong, or recall is {recall}");
        report.figure(&step, right && recall >= LEAST_RECALL, &otherwise)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_most_of_the_nearest_whatever_the_threads() {
        let layers = make(3000, 3, 7);
        let lowest = layers.last().unwrap();
        assert!(lowest.links == make(3000, 1, 7).last().unwrap().links);
        let mut seen = vec![u32::MAX; 3000];
        let mut random = Random::new(1);
        let mut hits = 0;
        for turn in 0..50 {
            let query = beside(&lowest.vectors[random.below(3000)], 0.1, &mut random);
            let mut all: Vec<Near> = (0..3000).map(|at| near(lowest, at, &query)).collect();
            all.sort_unstable();
            let found = search(&layers, &query, &mut seen, turn);
            hits += found
                .iter()
                .filter(|one| all[..ANSWERS].contains(one))
                .count();
        }
        assert!(hits > 400, "{hits} of 500");
    }
}
