//! Explanations and predictions, for reading.

use serde::Serialize;
use weir_model::insight::{
    AccuracyLine, CalibrateDocument, Components, ExplainDocument, FitPoint, Micro, PredictDocument,
    Predicted,
};

use super::csv::Record;
use super::{Column, Table, figure, percent, wrap};

/// The causes in the order in which a request meets them.
const CAUSES: [(&str, fn(&Components) -> Option<f64>); 6] = [
    ("store", |c| c.store),
    ("L1", |c| c.l1),
    ("L2", |c| c.l2),
    ("L3", |c| c.l3),
    ("DRAM", |c| c.dram),
    ("other", |c| c.other),
];

fn one(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.1}"))
}

fn signed(value: Option<f64>) -> String {
    value.map_or("-".into(), percent)
}

/// Where cycles are lost, run beside run.
pub fn explain(document: &ExplainDocument) -> String {
    let mut text = String::new();
    let mut columns = vec![Column::words("cycles lost to")];
    for run in &document.runs {
        let name = run
            .tier
            .as_ref()
            .map_or(run.workload.as_str(), |tier| tier.as_str());
        columns.push(Column::number(format!("{name}\n%")));
    }
    let difference = document.difference.as_ref();
    if difference.is_some() {
        columns.push(Column::number("slowdown\npoints"));
    }
    let mut table = Table::new(&columns);
    for (name, of) in CAUSES {
        let mut row = vec![if name == "other" {
            "nothing of these".into()
        } else {
            name.to_owned()
        }];
        row.extend(document.runs.iter().map(|run| one(of(&run.lost))));
        row.extend(difference.map(|d| signed(of(&d.components))));
        table.row(row);
    }
    if let Some(difference) = difference {
        let mut row = vec!["all".to_owned()];
        row.extend(document.runs.iter().map(|_| String::new()));
        row.push(percent(difference.slowdown_pct));
        table.row(row);
    }
    text.push_str(&table.to_string());
    text.push('\n');
    text.push_str(&quantities(document).to_string());
    for run in &document.runs {
        let name = run
            .tier
            .as_ref()
            .map_or(run.workload.as_str(), |tier| tier.as_str());
        let bound = match run.bound {
            Some(bound) => format!("{name}: waits for {bound}: {}", run.evidence),
            None => format!("{name}: what it waits for cannot be told: {}", run.evidence),
        };
        text.push_str(&wrap(&bound, "- ", "  "));
        for untold in &run.untold {
            let told = format!(
                "{name}: `{}` is missing ({}): not told is {}",
                untold.counter, untold.why, untold.cost
            );
            text.push_str(&wrap(&told, "- ", "  "));
        }
    }
    if let Some(difference) = difference {
        text.push_str(&wrap(&summary(difference), "- ", "  "));
        if !difference.phases.is_empty() {
            text.push('\n');
            let phases = difference.phases.iter();
            text.push_str(&phase_table(
                "slowdown of",
                phases.map(|p| (p.phase.as_str(), Some(p.slowdown_pct), &p.components)),
            ));
        }
    } else if let Some(run) = document.runs.first().filter(|run| !run.phases.is_empty()) {
        text.push('\n');
        let phases = run.phases.iter();
        text.push_str(&phase_table(
            "cycles lost in",
            phases.map(|p| (p.phase.as_str(), None, &p.lost)),
        ));
    }
    text
}

fn summary(difference: &weir_model::insight::ExplainedDifference) -> String {
    let largest = CAUSES
        .iter()
        .filter_map(|(name, of)| Some((*name, of(&difference.components)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let mut told = format!("{} % slower", figure(difference.slowdown_pct));
    if let Some((name, points)) = largest {
        told.push_str(&format!(", most of it {name}: {points:.1} points"));
    }
    match difference.instructions {
        Some(ratio) if !(0.95..=1.05).contains(&ratio) => told.push_str(&format!(
            "; the second run has {ratio:.2} x the instructions, and both are compared for one"
        )),
        Some(_) => {}
        None => told
            .push_str("; instructions were not counted, and both runs are taken for the same work"),
    }
    told
}

fn phase_table<'a>(
    head: &'static str,
    phases: impl Iterator<Item = (&'a str, Option<f64>, &'a Components)>,
) -> String {
    let mut columns = vec![Column::words(head), Column::number("all\n%")];
    columns.extend(
        CAUSES
            .iter()
            .map(|(name, _)| Column::number(format!("{name}\n%"))),
    );
    let mut table = Table::new(&columns);
    for (name, all, components) in phases {
        let mut row = vec![name.to_owned(), signed(all)];
        row.extend(CAUSES.iter().map(|(_, of)| signed(of(components))));
        table.row(row);
    }
    table.to_string()
}

/// What stands behind the causes.
fn quantities(document: &ExplainDocument) -> Table {
    let mut columns = vec![Column::words("behind them")];
    for run in &document.runs {
        let name = run
            .tier
            .as_ref()
            .map_or(run.workload.as_str(), |tier| tier.as_str());
        columns.push(Column::number(name.to_owned()));
    }
    let mut table = Table::new(&columns);
    let mut row = |name: &str, of: &dyn Fn(&weir_model::insight::ExplainedRun) -> Option<f64>| {
        if document.runs.iter().any(|run| of(run).is_some()) {
            let mut cells = vec![name.to_owned()];
            cells.extend(
                document
                    .runs
                    .iter()
                    .map(|run| of(run).map_or("-".into(), figure)),
            );
            table.row(cells);
        }
    };
    row("time [ms]", &|r| r.time_ns.map(|t| t.get() / 1e6));
    row("instructions in a cycle", &|r| r.ipc);
    row("memory bandwidth [GB/s]", &|r| r.gbps.map(|b| b.get()));
    row("latency of a read beyond the core [clk]", &|r| {
        r.offcore_latency.map(|c| c.get())
    });
    row("the same, amortised [clk]", &|r| r.aol.map(|c| c.get()));
    row("demand reads at once", &|r| r.mlp);
    row("loads that find their line in flight [%]", &|r| {
        r.prefetch.fill_buffer_hits_pct
    });
    row("L1 prefetches from memory, 1000 instr.", &|r| {
        r.prefetch.l1_misses_pki
    });
    row("L2 prefetches from memory, 1000 instr.", &|r| {
        r.prefetch.l2_misses_pki
    });
    table
}

/// Predictions: one in full, several as a table, and how good they are.
pub fn predict(document: &PredictDocument) -> String {
    let mut text = String::new();
    if let [only] = document.predictions.as_slice() {
        text.push_str(&single(only, document));
    } else {
        text.push_str(&several(&document.predictions).to_string());
    }
    if let Some(accuracy) = document.accuracy.as_ref().filter(|a| a.workloads > 1) {
        text.push('\n');
        let mut table = Table::new(&[
            Column::words("predictor"),
            Column::number("within\n2 points %"),
            Column::number("within\n5 points %"),
            Column::number("within\n10 points %"),
            Column::number("Pearson"),
            Column::number("mean error\npoints"),
        ]);
        for line in &accuracy.lines {
            table.row(accuracy_row(line));
        }
        text.push_str(&table.to_string());
        let mut told = vec![format!(
            "{} workloads, of which {} do not wait for bandwidth and are in the table",
            accuracy.workloads, accuracy.latency_bound
        )];
        told.extend(
            accuracy
                .covered_pct
                .map(|c| format!("{c:.1} % lie in their interval")),
        );
        told.extend(accuracy.explained_pct.map(|e| {
            format!("of {e:.1} % the measured causes sum to the slowdown within 5 points")
        }));
        told.push(format!("furthest off: {}", accuracy.worst.join(", ")));
        for told in told {
            text.push_str(&wrap(&told, "- ", "  "));
        }
    }
    text
}

fn accuracy_row(line: &AccuracyLine) -> [String; 6] {
    [
        line.what.clone(),
        format!("{:.1}", line.within_2_pct),
        format!("{:.1}", line.within_5_pct),
        format!("{:.1}", line.within_10_pct),
        line.pearson.map_or("-".into(), |r| format!("{r:.3}")),
        format!("{:.1}", line.mean_error_pct),
    ]
}

fn single(predicted: &Predicted, document: &PredictDocument) -> String {
    let mut table = Table::new(&[
        Column::words(format!(
            "{}: {} to {}",
            predicted.workload, document.from, document.to
        )),
        Column::number("predicted\n%"),
        Column::number("measured\n%"),
    ]);
    let measured = predicted.measured.as_ref();
    let lines: [(&str, fn(&Components) -> Option<f64>); 4] = [
        ("store", |c| c.store),
        ("cache", |c| c.cache),
        ("DRAM", |c| c.dram),
        ("other", |c| c.other),
    ];
    for (name, of) in lines {
        table.row([
            name.into(),
            signed(of(&predicted.components)),
            signed(measured.and_then(|m| of(&m.components))),
        ]);
    }
    table.row([
        "slowdown".into(),
        percent(predicted.slowdown_pct),
        signed(measured.map(|m| m.slowdown_pct)),
    ]);
    for rejected in &predicted.rejected {
        table.row([
            format!("not to be used: {}", rejected.of),
            signed(rejected.slowdown_pct),
            String::new(),
        ]);
    }
    let mut text = table.to_string();
    if let Some([low, high]) = predicted.interval_pct {
        text.push_str(&wrap(
            &format!("between {} and {} %", percent(low), percent(high)),
            "- ",
            "  ",
        ));
    }
    text.push_str(&wrap(&bound(predicted), "- ", "  "));
    for warning in &predicted.warnings {
        text.push_str(&wrap(warning, "- ", "  "));
    }
    text
}

fn bound(predicted: &Predicted) -> String {
    use weir_model::insight::Bound;
    match predicted.bound {
        Some(Bound::Bandwidth) => format!(
            "waits for bandwidth ({}): the model is one of latency, and this prediction is not to be relied on",
            predicted.evidence
        ),
        Some(bound) => format!("waits for {bound}: {}", predicted.evidence),
        None => format!("what it waits for cannot be told: {}", predicted.evidence),
    }
}

fn several(predictions: &[Predicted]) -> Table {
    let mut table = Table::new(&[
        Column::words("workload"),
        Column::number("predicted\n%"),
        Column::number("from\n%"),
        Column::number("to\n%"),
        Column::number("measured\n%"),
        Column::number("DRAM\n%"),
        Column::number("cache\n%"),
        Column::number("store\n%"),
        Column::words("bound"),
    ]);
    for p in predictions {
        table.row([
            p.workload.clone(),
            percent(p.slowdown_pct),
            signed(p.interval_pct.map(|i| i[0])),
            signed(p.interval_pct.map(|i| i[1])),
            signed(p.measured.map(|m| m.slowdown_pct)),
            signed(p.components.dram),
            signed(p.components.cache),
            signed(p.components.store),
            p.bound.map_or("-".into(), |b| b.to_string()),
        ]);
    }
    table
}

/// The constants, and how well they give back what they were fitted on.
pub fn calibrate(document: &CalibrateDocument) -> String {
    let model = &document.model;
    let c = &model.constants;
    let mut constants = Table::new(&[Column::words("constant"), Column::number("value")]);
    for (name, value) in [
        ("k1, of DRAM", c.k1),
        ("k2, of the caches", c.k2),
        ("k3, of stores", c.k3),
        ("k4, of every workload", c.k4),
        ("p, overlap [clk]", c.p.get()),
        ("q, without overlap", c.q),
    ] {
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
    if let Some(held) = &model.held_out {
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

/// A micro-workload as a row.
#[derive(Debug, Serialize)]
pub struct FitRow<'a> {
    name: &'a str,
    micro: Micro,
    slowdown_pct: f64,
    fitted_pct: f64,
    aol_clk: Option<f64>,
}

impl Record for FitRow<'_> {
    const COLUMNS: &'static [&'static str] =
        &["name", "micro", "slowdown_pct", "fitted_pct", "aol_clk"];
}

/// A micro-workload as a row.
pub fn fit_row(point: &FitPoint) -> FitRow<'_> {
    FitRow {
        name: &point.name,
        micro: point.micro,
        slowdown_pct: point.slowdown_pct,
        fitted_pct: point.fitted_pct,
        aol_clk: point.aol.map(|c| c.get()),
    }
}

/// Lost cycles of a run, or slowdown, as a row.
#[derive(Debug, Serialize)]
pub struct CauseRow<'a> {
    what: &'a str,
    workload: &'a str,
    tier: Option<&'a str>,
    all_pct: Option<f64>,
    store_pct: Option<f64>,
    l1_pct: Option<f64>,
    l2_pct: Option<f64>,
    l3_pct: Option<f64>,
    dram_pct: Option<f64>,
    other_pct: Option<f64>,
}

impl Record for CauseRow<'_> {
    const COLUMNS: &'static [&'static str] = &[
        "what",
        "workload",
        "tier",
        "all_pct",
        "store_pct",
        "l1_pct",
        "l2_pct",
        "l3_pct",
        "dram_pct",
        "other_pct",
    ];
}

/// An explanation as rows: each run, then the slowdown.
pub fn explain_rows(document: &ExplainDocument) -> Vec<CauseRow<'_>> {
    fn row<'a>(
        what: &'a str,
        workload: &'a str,
        tier: Option<&'a str>,
        all: Option<f64>,
        c: &Components,
    ) -> CauseRow<'a> {
        CauseRow {
            what,
            workload,
            tier,
            all_pct: all,
            store_pct: c.store,
            l1_pct: c.l1,
            l2_pct: c.l2,
            l3_pct: c.l3,
            dram_pct: c.dram,
            other_pct: c.other,
        }
    }
    let mut rows: Vec<CauseRow<'_>> = (document.runs.iter())
        .map(|run| {
            row(
                "lost",
                &run.workload,
                run.tier.as_ref().map(|t| t.as_str()),
                None,
                &run.lost,
            )
        })
        .collect();
    if let (Some(difference), Some(run)) = (&document.difference, document.runs.last()) {
        let tier = run.tier.as_ref().map(|t| t.as_str());
        let all = Some(difference.slowdown_pct);
        rows.push(row(
            "slowdown",
            &run.workload,
            tier,
            all,
            &difference.components,
        ));
    }
    rows
}

/// A prediction as a row.
#[derive(Debug, Serialize)]
pub struct PredictedRow<'a> {
    workload: &'a str,
    slowdown_pct: f64,
    low_pct: Option<f64>,
    high_pct: Option<f64>,
    store_pct: Option<f64>,
    cache_pct: Option<f64>,
    dram_pct: Option<f64>,
    other_pct: Option<f64>,
    bound: Option<weir_model::insight::Bound>,
    measured_pct: Option<f64>,
}

impl Record for PredictedRow<'_> {
    const COLUMNS: &'static [&'static str] = &[
        "workload",
        "slowdown_pct",
        "low_pct",
        "high_pct",
        "store_pct",
        "cache_pct",
        "dram_pct",
        "other_pct",
        "bound",
        "measured_pct",
    ];
}

/// A prediction as a row.
pub fn predicted_row(p: &Predicted) -> PredictedRow<'_> {
    PredictedRow {
        workload: &p.workload,
        slowdown_pct: p.slowdown_pct,
        low_pct: p.interval_pct.map(|i| i[0]),
        high_pct: p.interval_pct.map(|i| i[1]),
        store_pct: p.components.store,
        cache_pct: p.components.cache,
        dram_pct: p.components.dram,
        other_pct: p.components.other,
        bound: p.bound,
        measured_pct: p.measured.map(|m| m.slowdown_pct),
    }
}
