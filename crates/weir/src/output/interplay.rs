//! The matrix of who hurts whom as tables, and what each cell means in words.

use std::cmp::Ordering;
use std::fmt::Write as _;

use weir_model::access::Pattern;
use weir_model::document::Point;
use weir_model::interplay::{
    Cause, Cell, CellLatency, InterplayDocument, SurfacePoint, TierOp, TimedPoint,
};
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Nanos};

use super::{Column, Table, distinct, figure, percent, wrap};

/// Columns of changes that fit next to the name of a victim.
const ABREAST: usize = 6;

/// Everything that a terminal shows of a matrix.
pub fn interplay(document: &InterplayDocument) -> String {
    let mut text = String::new();
    let cells = &document.cells;
    for (victim, aggressor) in distinct(cells.iter().map(|c| (&c.victim.tier, &c.aggressor.tier))) {
        let block = |c: &&Cell| c.victim.tier == *victim && c.aggressor.tier == *aggressor;
        let block: Vec<&Cell> = cells.iter().filter(block).collect();
        grid(&mut text, victim, aggressor, &block);
    }
    latencies(&mut text, &document.latencies);
    requests(&mut text, cells);
    by_ways(&mut text, &document.surface);
    words(&mut text, cells);
    reasons(&document.points, &mut text);
    text
}

/// Rows of one victim tier by columns of one aggressor tier.
fn grid(text: &mut String, victim: &TierName, aggressor: &TierName, cells: &[&Cell]) {
    let mut rows = distinct(cells.iter().map(|c| &c.victim));
    let columns = distinct(cells.iter().map(|c| &c.aggressor));
    rows.dedup();
    let change = |row: &TierOp, column: &TierOp| {
        let of_pair = |c: &&&Cell| c.victim == *row && c.aggressor == *column;
        cells.iter().find(of_pair).map_or(String::new(), |cell| {
            let undecided = if cell.is_undecided() { "?" } else { "" };
            let unstable = if cell.is_unstable() { "~" } else { "" };
            let change = cell.change_pct.map(percent);
            change.map_or("!".into(), |change| {
                format!("{change}{undecided}{unstable}")
            })
        })
    };
    let title = format!(
        "Bandwidth of {victim} with {aggressor}: change in %, the largest over thread counts"
    );
    for part in columns.chunks(ABREAST) {
        let heads = part.iter().map(|column| Column::number(column.to_string()));
        let heads: Vec<Column> = std::iter::once(Column::words("victim"))
            .chain(heads)
            .collect();
        let mut table = Table::new(&heads);
        for row in &rows {
            let changes = part.iter().map(|column| change(row, column));
            table.row(std::iter::once(row.to_string()).chain(changes));
        }
        titled(text, &title, &table);
    }
}

/// What timed accesses take, beside most threads of each aggressor.
fn latencies(text: &mut String, timed: &[TimedPoint]) {
    let kind = |t: &TimedPoint| (t.pattern.clone(), t.socket, t.across);
    for (pattern, socket, across) in distinct(timed.iter().map(kind)) {
        let mut table = latency_table("in", "ns");
        let of_pattern = || {
            let wanted = (pattern.clone(), socket, across);
            timed.iter().filter(move |t| kind(t) == wanted)
        };
        for (tier, aggressor) in distinct(of_pattern().map(|t| (&t.tier, &t.aggressor))) {
            let pair = of_pattern().filter(|t| (&t.tier, &t.aggressor) == (tier, aggressor));
            let Some(most) = pair.max_by(|a, b| {
                let draws = |t: &TimedPoint| (t.aggressor_threads, -t.aggressor_pause_ns.get());
                draws(a).partial_cmp(&draws(b)).unwrap_or(Ordering::Equal)
            }) else {
                continue;
            };
            let threads = most.aggressor_threads;
            latency_row(&mut table, tier, aggressor, threads, &most.ns, 1.0);
        }
        let what = match pattern == Pattern::SharedLine.name() {
            true if across => "Handing a line over between cores of two sockets, one way",
            true => "Handing a line over between two cores, one way",
            false => "Latency of one thread that chases pointers",
        };
        let where_from = match socket {
            0 => String::new(),
            socket => format!(", on socket {socket}"),
        };
        titled(text, &format!("{what}{where_from}"), &table);
    }
}

/// What requests to storage take, where the cell's change is.
fn requests(text: &mut String, cells: &[Cell]) {
    let mut table = latency_table("of", "us");
    for cell in cells.iter().filter(|cell| cell.victim.op.is_storage()) {
        if let (Some(ns), Some(at)) = (&cell.ns, cell.at) {
            let (victim, aggressor) = (&cell.victim, &cell.aggressor);
            latency_row(&mut table, victim, aggressor, at.aggressor_threads, ns, 1e3);
        }
    }
    if !table.is_empty() {
        let what = "Latency of requests to storage, from submission to completion";
        titled(text, what, &table);
    }
}

fn latency_table(subject: &'static str, unit: &str) -> Table {
    let number = |what: &str| Column::number(format!("{what}\n[{unit}]"));
    Table::new(&[
        Column::words(subject),
        Column::words("beside"),
        Column::number("threads"),
        number("mean\nalone"),
        number("mean\nbeside"),
        number("p99\nalone"),
        number("p99\nbeside"),
    ])
}

/// One row, in units of so many nanoseconds.
fn latency_row(
    table: &mut Table,
    subject: impl ToString,
    aggressor: impl ToString,
    threads: u32,
    ns: &CellLatency,
    unit: f64,
) {
    let told = |ns: Nanos| figure(ns.get() / unit);
    let p99 = |p99: Option<Nanos>| p99.map_or("-".into(), told);
    table.row([
        subject.to_string(),
        aggressor.to_string(),
        threads.to_string(),
        told(ns.solo_mean),
        told(ns.corun_mean),
        p99(ns.solo_p99),
        p99(ns.corun_p99),
    ]);
}

/// Both sides by the victim's share of the last-level cache, where that was divided.
fn by_ways(text: &mut String, surface: &[SurfacePoint]) {
    let mut table = Table::new(&[
        Column::words("victim"),
        Column::words("aggressor"),
        Column::number("ways"),
        Column::number("victim\n[GB/s]"),
        Column::number("aggressor\n[GB/s]"),
        Column::number("sum\n[GB/s]"),
    ]);
    let pairs = |p: &SurfacePoint| (p.victim.clone(), p.aggressor.clone());
    let divided: Vec<_> = (surface.iter().filter(|p| p.at.victim_ways.is_some()))
        .map(pairs)
        .collect();
    for point in surface.iter().filter(|p| divided.contains(&pairs(p))) {
        let count = |ways: Option<u32>| ways.map_or("all".into(), |m| m.count_ones().to_string());
        let gbps = |g: Option<GbPerSec>| g.map_or(0.0, |g| g.get());
        let (one, other) = (gbps(point.corun_gbps), gbps(point.aggressor_gbps));
        table.row([
            point.victim.to_string(),
            point.aggressor.to_string(),
            format!(
                "{} + {}",
                count(point.at.victim_ways),
                count(point.at.aggressor_ways)
            ),
            figure(one),
            figure(other),
            figure(one + other),
        ]);
    }
    if !table.is_empty() {
        titled(
            text,
            "By ways of the last-level cache, victim's + aggressor's",
            &table,
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
    if cells.iter().any(Cell::is_undecided) {
        text.push_str("- ? marks a change whose interval reaches another class\n");
    }
    if cells.iter().any(Cell::is_unstable) {
        text.push_str("- ~ marks a change whose repetitions disagree\n");
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
            let gbps = |g: Option<GbPerSec>| figure(g.map_or(0.0, |g| g.get()));
            let _ = write!(
                text,
                "{} % ({} to {} GB/s, {} and {} threads), {}",
                percent(change),
                gbps(cell.solo_gbps),
                gbps(cell.corun_gbps),
                at.victim_threads,
                at.aggressor_threads,
                cell.describe_class()
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

fn titled(text: &mut String, title: &str, table: &Table) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&wrap(title, "", "  "));
    let _ = write!(text, "{table}");
}

/// Why figures are missing or cannot be right, each reason once.
fn reasons(points: &[Point], text: &mut String) {
    let mut failed: Vec<(&str, String, usize)> = Vec::new();
    for point in points {
        let Some(error) = &point.error else { continue };
        match failed.iter_mut().find(|(seen, _, _)| seen == error) {
            Some((_, _, count)) => *count += 1,
            None => failed.push((error, format!("{} on {}", point.op, point.tier), 1)),
        }
    }
    if !failed.is_empty() {
        text.push('\n');
    }
    for (error, what, count) in failed {
        let more = if count > 1 {
            format!(" and {} more", count - 1)
        } else {
            String::new()
        };
        text.push_str(&wrap(&format!("{what}{more}: {error}"), "! ", "  "));
    }
    let beaten = points
        .iter()
        .filter(|p| p.theory.as_ref().is_some_and(|t| t.beaten))
        .count();
    if beaten > 0 {
        text.push_str(&wrap(
            &format!("{beaten} figures beat their limit and cannot be right"),
            "\n? ",
            "  ",
        ));
    }
}
