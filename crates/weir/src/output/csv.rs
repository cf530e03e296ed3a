//! Results as rows of comma-separated values, with a head.

use serde::Serialize;
use weir_model::document::Point;

use crate::failure::Result;

/// One figure, flat. Columns that do not apply are empty.
#[derive(Debug, Serialize)]
pub struct PointRow<'a> {
    machine: &'a str,
    experiment: &'a str,
    tier: &'a str,
    op: &'a str,
    pattern: &'a str,
    threads: u32,
    block_bytes: Option<u64>,
    wss_bytes: Option<u64>,
    read_share: Option<f64>,
    prefetch: bool,
    gbps: Option<f64>,
    mean_ns: Option<f64>,
    p50_ns: Option<f64>,
    p90_ns: Option<f64>,
    p99_ns: Option<f64>,
    p999_ns: Option<f64>,
    p9999_ns: Option<f64>,
    p99999_ns: Option<f64>,
    max_ns: Option<f64>,
    ci95: Option<f64>,
    samples: u32,
    theory_limit: Option<f64>,
    theory_basis: Option<&'a str>,
    conditions: String,
    error: Option<&'a str>,
}

/// Points as flat rows.
pub fn point_rows<'a>(
    machine: &'a str,
    points: &'a [Point],
) -> impl Iterator<Item = PointRow<'a>> + 'a {
    points.iter().map(move |p| {
        let ns = p.ns.as_ref();
        PointRow {
            machine,
            experiment: p.experiment.name(),
            tier: p.tier.as_str(),
            op: p.op.name(),
            pattern: &p.pattern,
            threads: p.threads,
            block_bytes: p.block_bytes.map(|b| b.get()),
            wss_bytes: p.wss_bytes.map(|b| b.get()),
            read_share: p.read_share,
            prefetch: p.prefetch,
            gbps: p.gbps.map(|g| g.get()),
            mean_ns: ns.map(|l| l.mean.get()),
            p50_ns: ns.map(|l| l.p50.get()),
            p90_ns: ns.and_then(|l| l.p90).map(|q| q.get()),
            p99_ns: ns.and_then(|l| l.p99).map(|q| q.get()),
            p999_ns: ns.and_then(|l| l.p999).map(|q| q.get()),
            p9999_ns: ns.and_then(|l| l.p9999).map(|q| q.get()),
            p99999_ns: ns.and_then(|l| l.p99999).map(|q| q.get()),
            max_ns: ns.map(|l| l.max.get()),
            ci95: p.ci95,
            samples: p.samples,
            theory_limit: p.theory.as_ref().map(|t| t.limit),
            theory_basis: p.theory.as_ref().map(|t| t.basis.as_str()),
            conditions: p.conditions.join("; "),
            error: p.error.as_deref(),
        }
    })
}

/// Rows as text, their field names as the head.
///
/// # Errors
/// A row has fields that do not flatten.
pub fn to_csv<R: Serialize>(rows: impl IntoIterator<Item = R>) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer
            .serialize(row)
            .map_err(|error| anyhow::Error::new(error).context("cannot write CSV"))?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| anyhow::Error::new(error.into_error()).context("cannot write CSV"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
