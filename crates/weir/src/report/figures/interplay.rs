//! Who hurts whom: the matrix, and behind each cell its thread counts, queues and counters.

use maud::{Markup, html};
use weir_lab::interplay::{Matrix, sentence};
use weir_model::interplay::{At, Cell as Pair, Ratio, SurfacePoint};

use super::words::distinct;
use crate::output::{figure, percent};
use crate::render::chart::Drawn;
use crate::report::chart::{
    Cell, Chart, HeatChart, Look, Panel, Reach, Room, Sign, Stack, StackChart,
};
use crate::report::plate::as_table;
use crate::report::{Cited as _, Section};

/// The anchor of a cell's page of evidence.
fn anchor(section: &Section, place: usize) -> String {
    format!("cell-{}-{place}", section.run)
}

/// The matrix, and where requests wait in its deepest cell.
pub fn interplay(section: &Section) -> Vec<Drawn> {
    let Some(document) = &section.interplay else {
        return Vec::new();
    };
    let mut drawn = vec![Drawn::new("Who hurts whom", matrix(section, document))];
    let deepest = (document.cells.iter())
        .filter(|cell| !cell.queues.is_empty())
        .min_by(|a, b| {
            let change = |cell: &Pair| cell.change_pct.unwrap_or(0.0);
            change(a).total_cmp(&change(b))
        });
    drawn.extend(deepest.map(|cell| {
        let name = format!(
            "Where requests wait: {} with {}",
            cell.victim, cell.aggressor
        );
        Drawn::new(name, queues(cell))
    }));
    drawn
}

fn matrix(section: &Section, document: &Matrix) -> HeatChart {
    let cells = &document.cells;
    let rows = distinct(cells.iter().map(|c| &c.victim));
    let columns = distinct(cells.iter().map(|c| &c.aggressor));
    let filled = cells.iter().enumerate().map(|(place, pair)| {
        let cell = Cell {
            value: pair.change_pct,
            best: false,
            sign: match (pair.is_unstable(), pair.is_uncertain()) {
                (true, _) => Some(Sign::Noisy),
                (false, true) => Some(Sign::Uncertain),
                (false, false) => None,
            },
            tip: format!(
                "{} with {}: {}",
                pair.victim,
                pair.aggressor,
                sentence(pair)
            ),
            link: Some(format!("#{}", anchor(section, place))),
        };
        (&pair.victim, &pair.aggressor, cell)
    });
    HeatChart {
        label: format!("Who hurts whom on {}", section.machine()),
        title: "change of the victim's bandwidth [%]".into(),
        row_title: "victim".into(),
        column_title: "aggressor".into(),
        reach: Reach::Signed,
        panels: vec![panel(
            String::new(),
            (&rows, |participant| participant.to_string()),
            (&columns, |participant| participant.to_string()),
            filled.collect(),
        )],
    }
}

/// What may be part of a place, with its place among the colours. The same tier has the same colour in
/// the tables and at the memory.
const PARTS: [(&str, usize); 7] = [
    ("victim", 3),
    ("aggressor", 4),
    ("all", 6),
    ("hit", 2),
    ("dram", 0),
    ("cxl", 1),
    ("remote", 5),
];

/// Where requests are, alone and together: at the cores by tenant, in the ingress queues, in the tables
/// and at the memory by tier.
fn queues(cell: &Pair) -> StackChart {
    let headings = [
        ("LFB", "at the cores (fill buffers)"),
        ("IRQ", "in the ingress queues"),
        ("ToR", "in the Tables of Requests"),
        ("memory", "at the memory"),
    ];
    let mut legend: Vec<(String, Look)> = Vec::new();
    let mut groups = Vec::new();
    for (place, heading) in headings {
        let mut bars = ["alone", "beside"].map(|name| Stack {
            name: name.into(),
            parts: Vec::new(),
            interval: None,
        });
        let mut known = false;
        for queue in &cell.queues {
            let (queue_place, part) = queue.place.split_once(' ').unwrap_or((&queue.place, "all"));
            if queue_place != place {
                continue;
            }
            known = true;
            // What is nowhere is left out.
            if queue.solo == 0.0 && queue.corun == 0.0 {
                continue;
            }
            let number = legend.iter().position(|(name, _)| name == part);
            let number = number.unwrap_or_else(|| {
                let colour = PARTS.iter().find(|(name, _)| *name == part);
                legend.push((part.into(), Look::solid(colour.map_or(7, |(_, c)| *c))));
                legend.len() - 1
            });
            for (bar, length) in bars.iter_mut().zip([queue.solo, queue.corun]) {
                bar.parts.push((number, length));
            }
        }
        if known {
            groups.push((heading.to_owned(), bars.into()));
        }
    }
    StackChart {
        label: format!(
            "Where requests wait, {} alone and with {}",
            cell.victim, cell.aggressor
        ),
        title: "requests there, mean of the whole socket".into(),
        legend,
        groups,
    }
}

/// What stands behind each cell, folded: its verdict, every pair of thread counts, where requests wait,
/// and all counters side by side.
pub fn behind_cells(section: &Section) -> Markup {
    let Some(document) = &section.interplay else {
        return html! {};
    };
    html! {
        @for (place, cell) in document.cells.iter().enumerate() {
            details class="cell" {
                summary {
                    (cell.victim) " with " (cell.aggressor)
                    @if let Some(change) = cell.change_pct { ": " (percent(change)) " %" }
                }
                // A link to what lies in a folded part unfolds it.
                div id=(anchor(section, place)) {
                    p { (sentence(cell)) }
                    @for missing in &cell.verdict.unseen { p class="small" { (missing) } }
                    div class="plates" {
                        @let chart = surface(document, cell);
                        figure {
                            h3 { "Change by thread counts" }
                            div class="chart" { (chart.draw(Room::Wide)) (chart.draw(Room::Narrow)) }
                            figcaption { p class="origin" { (section.origin()) } }
                            (as_table(&chart))
                        }
                        @if !cell.queues.is_empty() {
                            @let chart = queues(cell);
                            figure {
                                h3 { "Where requests wait" }
                                div class="chart" { (chart.draw(Room::Wide)) (chart.draw(Room::Narrow)) }
                                figcaption { p class="origin" { (section.origin()) } }
                            (as_table(&chart))
                            }
                        }
                    }
                    @if !cell.ratios.is_empty() { (counters(&cell.ratios)) }
                }
            }
        }
    }
}

fn surface(document: &Matrix, cell: &Pair) -> HeatChart {
    let here = |p: &&SurfacePoint| p.victim == cell.victim && p.aggressor == cell.aggressor;
    let points: Vec<&SurfacePoint> = document.surface.iter().filter(here).collect();
    let company = |p: &SurfacePoint| {
        let At {
            aggressor_threads,
            aggressor_pause_ns,
            victim_ways,
            ..
        } = p.at;
        (aggressor_threads, aggressor_pause_ns.get(), victim_ways)
    };
    let rows = distinct(points.iter().map(|p| p.at.victim_threads));
    let columns = distinct(points.iter().map(|p| company(p)));
    let filled = points.iter().map(|p| {
        let gbps =
            |g: Option<weir_model::units::GbPerSec>| g.map_or("-".into(), |g| figure(g.get()));
        let cell = Cell {
            value: p.change_pct,
            best: cell.at == Some(p.at),
            sign: None,
            tip: format!(
                "victim {} threads, {} to {} GB/s\naggressor {} threads, {} to {} GB/s{}",
                p.at.victim_threads,
                gbps(p.solo_gbps),
                gbps(p.corun_gbps),
                p.at.aggressor_threads,
                gbps(p.aggressor_solo_gbps),
                gbps(p.aggressor_gbps),
                p.error.as_ref().map_or(String::new(), |e| format!("\n{e}")),
            ),
            link: None,
        };
        (p.at.victim_threads, company(p), cell)
    });
    HeatChart {
        label: format!(
            "Change by thread counts, {} with {}",
            cell.victim, cell.aggressor
        ),
        title: "change [%], framed: the cell's".into(),
        row_title: "victim threads".into(),
        column_title: "aggressor threads".into(),
        reach: Reach::Signed,
        panels: vec![panel(
            String::new(),
            (&rows, u32::to_string),
            (&columns, |&(threads, pause, ways)| match ways {
                Some(mask) => format!("{} ways", mask.count_ones()),
                None if points.iter().any(|p| p.at.victim_ways.is_some()) => "all ways".into(),
                None if pause > 0.0 => format!("{threads}, {pause:.0} ns"),
                None => threads.to_string(),
            }),
            filled.collect(),
        )],
    }
}

fn counters(ratios: &[Ratio]) -> Markup {
    html! {
        details {
            summary { "every counter, alone and beside" }
            div class="scroll" { table {
                thead { tr { th { "counter" } th { "unit" } th { "alone" } th { "beside" } th { "ratio" } } }
                tbody { @for ratio in ratios { tr {
                    td { (ratio.name) }
                    td { (ratio.unit) }
                    td { (figure(ratio.solo)) }
                    td { (figure(ratio.corun)) }
                    td { @if let Some(times) = ratio.ratio { (figure(times)) " x" } }
                } } }
            } }
        }
    }
}

/// A matrix of the values in the order given; cells that nothing fills are empty.
fn panel<R: PartialEq, C: PartialEq>(
    name: String,
    (rows, row_name): (&[R], impl Fn(&R) -> String),
    (columns, column_name): (&[C], impl Fn(&C) -> String),
    filled: Vec<(R, C, Cell)>,
) -> Panel {
    let mut cells: Vec<Vec<Option<Cell>>> = vec![vec![None; columns.len()]; rows.len()];
    for (row, column, cell) in filled {
        let at = rows.iter().position(|r| *r == row);
        let across = columns.iter().position(|c| *c == column);
        if let (Some(at), Some(across)) = (at, across)
            && let Some(place) = cells.get_mut(at).and_then(|row| row.get_mut(across))
        {
            *place = Some(cell);
        }
    }
    Panel {
        name,
        rows: rows.iter().map(row_name).collect(),
        columns: columns.iter().map(column_name).collect(),
        cells,
    }
}
