//! Advice on interleaving, for reading.

use weir_model::insight::{Bound, TuneDocument};

use super::signed;
use crate::output::{Column, Table, percent, wrap};

/// What each method says, and the curve where it was measured.
pub fn tune(document: &TuneDocument) -> String {
    let bound = match document.bound {
        Some(Bound::Latency) => "waits for latency: do not interleave it",
        Some(Bound::Bandwidth) => "waits for bandwidth",
        None => "what it waits for cannot be told",
    };
    let mut text = wrap(
        &format!("{}: {bound} ({})", document.workload, document.evidence),
        "",
        "  ",
    );
    let mut table = Table::new(&[
        Column::words("method"),
        Column::number("runs"),
        Column::number(format!("pages on {}\n%", document.to)),
        Column::number(format!("weights\n{}:{}", document.from, document.to)),
        Column::number("expected\n%"),
        Column::number("measured\n%"),
    ]);
    for advice in &document.advice {
        let [from, to] = advice.weights;
        table.row([
            advice.method.clone(),
            advice.runs.to_string(),
            format!("{:.1}", advice.share_pct),
            format!("{from}:{to}"),
            signed(advice.change_pct),
            signed(advice.measured_pct),
        ]);
    }
    text.push_str(&table.to_string());
    let noted = document
        .advice
        .iter()
        .filter(|advice| !advice.note.is_empty());
    for advice in noted {
        text.push_str(&wrap(
            &format!("{}: {}", advice.method, advice.note),
            "- ",
            "  ",
        ));
    }
    text.push_str(&wrap(
        "changes are of run time: below zero is faster",
        "- ",
        "  ",
    ));
    if !document.curve.is_empty() {
        text.push('\n');
        let mut table = Table::new(&[
            Column::number(format!("pages on {}\n%", document.to)),
            Column::number("measured\n%"),
            Column::number("closed form\n%"),
        ]);
        for tried in &document.curve {
            table.row([
                format!("{:.0}", tried.share_pct),
                percent(tried.change_pct),
                signed(tried.predicted_pct),
            ]);
        }
        text.push_str(&table.to_string());
    }
    text
}
