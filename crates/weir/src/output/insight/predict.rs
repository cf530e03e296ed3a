//! How slow workloads would be, and how good that is.

use weir_insight::documents::{AccuracyLine, PredictDocument, Predicted};
use weir_model::insight::Bound;

use super::{Part, signed};
use crate::output::{Column, Table, percent, wrap};

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
    let lines: [(&str, Part); 4] = [
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
    if let Some(published) = &predicted.published {
        table.row([
            "as published".into(),
            percent(published.slowdown_pct),
            String::new(),
        ]);
    }
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
