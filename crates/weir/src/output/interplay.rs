//! The matrix of who hurts whom as tables, and what each cell means in words.

use std::fmt::Write as _;

use weir_model::interplay::{Cause, Cell, InterplayDocument};
use weir_model::topology::TierName;

use super::points::{FIGURES_ABREAST, Grid, reasons};
use super::{Column, Table, figure, percent, wrap};

/// Everything that a terminal shows of a matrix.
pub fn interplay(document: &InterplayDocument) -> String {
    let mut text = String::new();
    let cells = &document.cells;
    for (victim, aggressor) in distinct(cells.iter().map(|c| (&c.victim.tier, &c.aggressor.tier))) {
        let block = |c: &&Cell| c.victim.tier == *victim && c.aggressor.tier == *aggressor;
        let block: Vec<&Cell> = cells.iter().filter(block).collect();
        grid(&mut text, victim, aggressor, &block);
    }
    latencies(&mut text, cells);
    words(&mut text, cells);
    reasons(&document.points, &mut text);
    text
}

/// Rows of one victim tier by columns of one aggressor tier.
fn grid(text: &mut String, victim: &TierName, aggressor: &TierName, cells: &[&Cell]) {
    let rows = distinct(cells.iter().map(|c| &c.victim));
    let columns = distinct(cells.iter().map(|c| &c.aggressor));
    let filled = cells.iter().filter_map(|cell| {
        let row = rows.iter().position(|r| **r == cell.victim)?;
        let column = columns.iter().position(|c| **c == cell.aggressor)?;
        let change = cell.change_pct.map_or("!".into(), |change| {
            let sign = if cell.is_unstable() { "~" } else { "" };
            format!("{}{sign}", percent(change))
        });
        Some((row, column, change))
    });
    let grid = Grid::of(filled);
    let title = format!(
        "Bandwidth of {victim} beside {aggressor}: change in %, the largest over thread counts"
    );
    grid.show(
        text,
        &title,
        FIGURES_ABREAST,
        (&Column::words("victim"), &|&row| rows[row].to_string()),
        &|&column| columns[column].to_string(),
    );
}

/// What a dependent load takes, where it was timed.
fn latencies(text: &mut String, cells: &[Cell]) {
    let mut table = Table::new(&[
        Column::words("chase in"),
        Column::words("beside"),
        Column::number("threads"),
        Column::number("mean\nalone [ns]"),
        Column::number("mean\nbeside [ns]"),
        Column::number("p99\nalone [ns]"),
        Column::number("p99\nbeside [ns]"),
    ]);
    // Several victims of a tier share its chase: the one beside most threads is shown.
    let pair = |cell: &Cell| (cell.victim.tier.clone(), cell.aggressor.clone());
    for of_pair in distinct(cells.iter().map(pair)) {
        let timed = cells.iter().filter(|cell| pair(cell) == of_pair);
        let most = timed
            .filter_map(|cell| Some((cell.ns?, cell.at?.aggressor_threads)))
            .max_by_key(|(_, threads)| *threads);
        let Some((ns, threads)) = most else {
            continue;
        };
        let p99 =
            |p99: Option<weir_model::units::Nanos>| p99.map_or("-".into(), |ns| figure(ns.get()));
        table.row([
            of_pair.0.to_string(),
            of_pair.1.to_string(),
            threads.to_string(),
            figure(ns.solo_mean.get()),
            figure(ns.corun_mean.get()),
            p99(ns.solo_p99),
            p99(ns.corun_p99),
        ]);
    }
    if !table.is_empty() {
        let _ = write!(
            text,
            "\nLatency of one thread that chases pointers\n{table}"
        );
    }
}

/// Each cell that changed, with why; the others in one line.
fn words(text: &mut String, cells: &[Cell]) {
    text.push('\n');
    for cell in cells {
        if cell.verdict.cause != Cause::Unharmed {
            text.push_str(&wrap(&sentence(cell), "- ", "  "));
        }
    }
    let unharmed = cells.iter().filter(|c| c.verdict.cause == Cause::Unharmed);
    let names: Vec<String> = unharmed
        .map(|c| format!("{} beside {}", c.victim, c.aggressor))
        .collect();
    if !names.is_empty() {
        text.push_str(&wrap(
            &format!("unharmed: {}", names.join(", ")),
            "- ",
            "  ",
        ));
    }
    let mut unseen: Vec<&str> = Vec::new();
    for missing in cells.iter().flat_map(|c| &c.verdict.unseen) {
        if !unseen.contains(&missing.as_str()) {
            unseen.push(missing);
            text.push_str(&wrap(missing, "- ", "  "));
        }
    }
}

/// `dram:ld beside cxl0:nt_st: -92.9 % (206 to 14.6 GB/s, 16 and 16 threads), deep suppression;
/// ToR/IRQ congestion: ...`
pub fn sentence(cell: &Cell) -> String {
    let mut text = format!("{} beside {}: ", cell.victim, cell.aggressor);
    match (&cell.error, cell.change_pct, cell.at) {
        (Some(error), ..) => {
            text.push_str(error);
            return text;
        }
        (None, Some(change), Some(at)) => {
            let gbps = |g: Option<weir_model::units::GbPerSec>| figure(g.map_or(0.0, |g| g.get()));
            let _ = write!(
                text,
                "{} % ({} to {} GB/s, {} and {} threads), {}",
                percent(change),
                gbps(cell.solo_gbps),
                gbps(cell.corun_gbps),
                at.victim_threads,
                at.aggressor_threads,
                cell.class.map_or("", |class| class.describe())
            );
        }
        _ => text.push_str("no figure"),
    }
    if cell.is_unstable() {
        text.push_str(", repetitions disagree");
    }
    let _ = write!(text, ". {}", cell.verdict.cause);
    if !cell.verdict.evidence.is_empty() {
        let _ = write!(text, ": {}", cell.verdict.evidence.join("; "));
    }
    text
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}
