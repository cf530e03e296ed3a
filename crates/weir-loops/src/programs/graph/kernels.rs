//! The graph kernels as programs: the graph is made, each kernel runs, and its answer is compared with that of another
//! algorithm.

use std::io;
use std::time::{Duration, Instant};

use super::ranks::TOLERANCE;
use super::{BYTES_PER_VERTEX, Graph, Shape, UNREACHED};
use crate::programs::report::{Given, Report, Step};

/// Vertices have numbers of 32 bits.
const LARGEST_SCALE: u32 = 31;
/// How far two sums of the same numbers in another order may be apart, of the larger.
const ROUNDING: f64 = 1e-6;

/// What a repetition found: its time, vertices or what was counted, a digest, and whether the answer is right.
type Found = (Duration, u64, String, bool);

fn trials(
    given: &Given,
    report: &mut Report<'_>,
    mut trial: impl FnMut(&Graph, u32, &mut Report<'_>) -> io::Result<Found>,
) -> io::Result<()> {
    let scale = (given.bytes / BYTES_PER_VERTEX).max(16).ilog2();
    let scale = scale.min(LARGEST_SCALE);
    let shape = match given.variant.as_str() {
        "uniform" => Shape::Uniform,
        _ => Shape::Kronecker,
    };
    let graph = Graph::make(shape, scale, given.threads, given.seed);
    let name = given.variant.as_str();
    report.version(&format!(
        "{name} graph of 2^{scale} vertices, {} arcs",
        graph.arcs()
    ))?;
    let sources = graph.sources(given.trials as usize, given.seed);
    for n in 0..given.trials {
        let source = sources.get(n as usize).copied().unwrap_or(0);
        let (time, rows, check, right) = trial(&graph, source, report)?;
        let step = Step::trial(n, time, rows, check).of(graph.arcs() as u64, "arcs");
        report.figure(
            &step,
            right,
            "the answer differs from that of the serial reference",
        )?;
    }
    Ok(())
}

/// Times work, and has the places of all pages read after it.
fn timed<T>(report: &mut Report<'_>, work: impl FnOnce() -> T) -> io::Result<(T, Duration)> {
    let began = Instant::now();
    let found = work();
    let time = began.elapsed();
    report.look()?;
    Ok((found, time))
}

/// PageRank.
pub fn pagerank(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    trials(given, report, |graph, _, report| {
        let ((scores, sweeps), time) = timed(report, || graph.pagerank(given.threads))?;
        let right = graph.pagerank_error(&scores) < TOLERANCE;
        // Threads read scores of one sweep or the next, so that only the vertices are the same each time.
        let check = format!("after-{sweeps}-sweeps");
        Ok((time, graph.vertices() as u64, check, right))
    })
}

/// Breadth-first search.
pub fn bfs(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    trials(given, report, |graph, source, report| {
        let (depths, time) = timed(report, || graph.depths(source, given.threads))?;
        let reached = depths.iter().filter(|&&depth| depth != UNREACHED);
        let rows = reached.clone().count() as u64;
        let sum: u64 = reached.map(|&depth| u64::from(depth)).sum();
        Ok((
            time,
            rows,
            sum.to_string(),
            depths == graph.depths_serial(source),
        ))
    })
}

/// Connected components.
pub fn components(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    trials(given, report, |graph, _, report| {
        let (labels, time) = timed(report, || graph.components(given.threads))?;
        let own = |(vertex, label): (usize, &u32)| vertex as u32 == *label;
        let rows = labels.iter().enumerate().filter(|&one| own(one)).count();
        Ok((
            time,
            rows as u64,
            "-".into(),
            labels == graph.components_serial(),
        ))
    })
}

/// Betweenness centrality of the paths from one source.
pub fn centrality(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    trials(given, report, |graph, source, report| {
        let (scores, time) = timed(report, || graph.centrality(source, given.threads))?;
        let other = graph.centrality_serial(source);
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= ROUNDING * a.max(*b).max(1.0);
        let right = scores.iter().zip(&other).all(near);
        let rows = scores.iter().filter(|&&score| score > 0.0).count();
        Ok((time, rows as u64, "-".into(), right))
    })
}

/// Triangles.
pub fn triangles(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    trials(given, report, |graph, _, report| {
        let (count, time) = timed(report, || graph.triangles(given.threads))?;
        Ok((time, count, "-".into(), count == graph.triangles_serial()))
    })
}
