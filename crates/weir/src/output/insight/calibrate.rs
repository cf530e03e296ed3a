//! Constants of the slowdown model.

use weir_insight::documents::CalibrateDocument;

use crate::output::{Column, Table, percent, wrap};

/// The constants, and how well they give back what they were fitted on.
pub fn calibrate(document: &CalibrateDocument) -> String {
    let model = &document.model;
    let c = &model.constants;
    let mut constants = Table::new(&[Column::words("constant"), Column::number("value")]);
    let exposed = model.exposed.as_ref();
    let misses = exposed.map(|exposed| {
        let c = exposed.constants;
        [
            ("growth, of a lone miss", c.growth),
            ("exposed, of hidden cycles", c.exposed),
            ("beside, another miss", c.beside),
        ]
    });
    let late = exposed.and_then(|exposed| exposed.late).map(|c| {
        [
            ("growth, of a late prefetch", c.growth),
            ("exposed, of cycles beside it", c.exposed),
        ]
    });
    for (name, value) in [
        ("k1, of DRAM", c.k1),
        ("k2, of the caches", c.k2),
        ("k3, of stores", c.k3),
        ("k4, of every workload", c.k4),
        ("p, overlap [clk]", c.p.get()),
        ("q, without overlap", c.q),
    ]
    .into_iter()
    .chain(misses.into_iter().flatten())
    .chain(late.into_iter().flatten())
    {
        constants.row([name.into(), format!("{value:.3}")]);
    }
    let mut text = wrap(
        &format!(
            "{}, {} to {}, counters of {}",
            model.machine.name, model.from, model.to, model.prefetch
        ),
        "",
        "  ",
    );
    text.push_str(&constants.to_string());
    text.push('\n');
    let mut fitted = Table::new(&[
        Column::words("micro-workload"),
        Column::number("measured\n%"),
        Column::number("fitted\n%"),
        Column::number("off\npoints"),
    ]);
    for point in &model.fitted_on {
        fitted.row([
            point.name.clone(),
            percent(point.slowdown_pct),
            percent(point.fitted_pct),
            percent(point.fitted_pct - point.slowdown_pct),
        ]);
    }
    text.push_str(&fitted.to_string());
    if let Some(held) = model.held_out_in_use() {
        let told = format!(
            "intervals that hold {:.0} % of workloads, from {} that nothing was fitted to: {:.0} % of the \
             prediction and {:.0} points more",
            held.coverage_pct,
            held.workloads,
            held.total.relative * 100.0,
            held.total.floor_pct
        );
        text.push_str(&wrap(&told, "- ", "  "));
    }
    text
}
