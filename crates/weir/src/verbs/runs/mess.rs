//! Latency under load as the curves of Mess: a file for each tier and share of reads, `bwlat_N.txt`, with bandwidth in MB/s
//! and latency in cycles of a clock of 1 GHz, the most bandwidth first.

use std::collections::BTreeMap;
use std::path::Path;

use weir_model::access::Pattern;

use super::streamer::write_all;
use crate::failure::{Failure, Result};
use crate::store::StoredRun;
use crate::stored;

/// Writes the curves of a run.
///
/// # Errors
/// It has none, or several files and no folder for them, or one cannot be written.
pub fn write(run: &StoredRun, output: Option<&Path>) -> Result<()> {
    let document = stored::bench_document(run)?;
    let loads = || {
        document
            .points
            .iter()
            .filter_map(|point| point.beside.as_ref())
    };
    let first = loads().next().map(|load| load.threads);
    let several = loads().any(|load| Some(load.threads) != first);
    let mut curves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for point in &document.points {
        let Some(beside) = (point.beside.as_ref())
            .filter(|load| load.tier == point.tier && load.pattern == Pattern::Sequential.name())
        else {
            continue;
        };
        if let (Some(ns), Some(traffic)) = (&point.ns, beside.traffic_gbps) {
            let percent = (beside.read_share * 100.0).round();
            // Temporal stores make half of the lines reads, or more; other stores of such a share have a curve of their own.
            let posted = beside.op.is_posted() && percent >= 50.0;
            let nt = if posted { "-nt" } else { "" };
            let mut name = format!("{}{nt}-bwlat_{percent}.txt", point.tier);
            // One curve is of one number of threads.
            if several {
                name = format!("{}x{name}", beside.threads);
            }
            let curve = curves.entry(name).or_default();
            curve.push((traffic.get() * 1e3, ns.mean.get()));
        }
    }
    if curves.is_empty() {
        let id = run.summary.id;
        let why = format!("run {id} has no latency under load; `weir bench loaded` measures it");
        return Err(Failure::request(why));
    }
    let text = |mut curve: Vec<(f64, f64)>| -> String {
        curve.sort_by(|a, b| b.0.total_cmp(&a.0));
        let lines = curve.iter().map(|(mb_s, ns)| format!("{mb_s}\t{ns}\n"));
        lines.collect()
    };
    let texts = curves.into_iter().map(|(name, curve)| (name, text(curve)));
    write_all(run, &texts.collect(), output)
}
