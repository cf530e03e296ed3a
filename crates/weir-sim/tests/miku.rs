//! What MIKU (arXiv 2503.17864) measures at the queues of its platform A.

use crate::common::*;
use weir_model::access::Op;
use weir_model::counters::Counter;
use weir_model::tenant::Tenant;

/// Pearson's coefficient of correlation.
fn correlation(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (sx, sy) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
    let (mx, my) = (sx / n, sy / n);
    let sum = |f: fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - mx, p.1 - my)).sum::<f64>();
    sum(|x, y| x * y) / (sum(|x, _| x * x) * sum(|_, y| y * y)).sqrt()
}

#[test]
fn insertions_into_the_tables_follow_the_total_bandwidth() {
    // §4.2: r > 0.99, DRAM and CXL alone and together, from a few threads to far too many.
    let bed = bed("miku-a");
    for op in [Op::Ld, Op::St, Op::NtSt] {
        let mut points = Vec::new();
        for (dram, cxl) in [
            (1, 0),
            (4, 0),
            (16, 0),
            (0, 4),
            (0, 16),
            (4, 4),
            (16, 4),
            (16, 16),
        ] {
            let tenants: Vec<Tenant> = [("dram", 0..dram), ("cxl0", 16..16 + cxl)]
                .into_iter()
                .filter(|(_, cores)| !cores.is_empty())
                .map(|(tier, cores)| stream(op, tier, cores))
                .collect();
            let seen = run(&bed, &tenants, 30.0, 30.0, 1);
            let gbps: f64 = (0..tenants.len()).map(|t| seen.gbps(t)).sum();
            points.push((seen.line_rate(Counter::TorInsertsIa), gbps));
        }
        let r = correlation(&points);
        assert!(r > 0.99, "{op}: r = {r:.4} of {points:.1?}");
    }
}
