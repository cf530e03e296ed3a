//! The list of workloads, and what one of them says.

use std::fmt::Write as _;

use serde::Serialize;
use weir_model::units::Bytes;
use weir_model::workload::{
    Application, GROUPS, HOSTED, Hosted, Region, Requests, Spread, Workload, Workloads,
};

use crate::context::Format;
use crate::documents::{WorkloadDocument, WorkloadLine, WorkloadsDocument};
use crate::failure::Result;
use crate::named::find;
use crate::output::{Column, Table, print_as, print_text, to_csv, to_json, wrap};

pub(super) fn list(format: Format) -> Result<()> {
    let library = Workloads::builtin();
    let line = |w: &Workload| WorkloadLine {
        name: w.name.clone(),
        bytes: w.footprint().get(),
        phases: w.phases.len(),
        program: w.application,
        summary: w.summary.clone(),
    };
    let mut workloads: Vec<WorkloadLine> = library.list().iter().map(line).collect();
    workloads.extend(HOSTED.iter().map(|hosted| WorkloadLine {
        name: hosted.name.to_owned(),
        bytes: hosted.bytes().get(),
        phases: 0,
        program: Some(hosted.real().application),
        summary: hosted.summary.to_owned(),
    }));
    workloads.extend(GROUPS.iter().map(|(name, summary, _)| WorkloadLine {
        name: (*name).to_owned(),
        bytes: 0,
        phases: 0,
        program: None,
        summary: (*summary).to_owned(),
    }));
    workloads.sort_by(|a, b| a.name.cmp(&b.name));
    print_as(
        format,
        &match format {
            Format::Json => to_json(&WorkloadsDocument {
                schema: WorkloadsDocument::SCHEMA.into(),
                weir: env!("CARGO_PKG_VERSION").into(),
                workloads,
            })?,
            Format::Csv => to_csv(workloads)?,
            Format::Table => {
                let heads = [
                    Column::words("name"),
                    Column::number("memory"),
                    Column::words("on a host"),
                    Column::words("what"),
                ];
                let mut table = Table::new(&heads);
                for line in workloads {
                    let memory = match line.bytes {
                        0 => String::new(),
                        bytes => Bytes(bytes).to_string(),
                    };
                    let program = line.program.map_or("", Application::name).to_owned();
                    table.row([line.name, memory, program, line.summary]);
                }
                table.to_string()
            }
        },
    )
}

/// A workload without a description.
pub(super) fn show_hosted(hosted: &Hosted, format: Format) -> Result<()> {
    if format != Format::Table {
        return find(hosted.name).map(drop);
    }
    let program = hosted.real();
    let text = format!(
        "{}: {}\napplication: {} ({}), which `weir workload run` runs on a host with {} of data\n",
        hosted.name, hosted.summary, program.application, program.variant, program.bytes
    );
    print_text(&text)
}

/// The workloads of a group.
pub(super) fn show_group((name, summary, members): &(&str, &str, &[&str])) -> Result<()> {
    let members = format!(
        "{}, which `weir workload run {name}` runs one after the other",
        members.join(", ")
    );
    print_text(&format!(
        "{name}: {summary}\n{}\n",
        wrap(&members, "workloads: ", "  ")
    ))
}

pub(super) fn show(workload: &Workload, format: Format) -> Result<()> {
    print_as(
        format,
        &match format {
            Format::Json => to_json(&WorkloadDocument {
                schema: WorkloadDocument::SCHEMA.into(),
                weir: env!("CARGO_PKG_VERSION").into(),
                workload: workload.clone(),
            })?,
            Format::Csv => to_csv(regions(workload))?,
            Format::Table => page(workload),
        },
    )
}

/// A region as a row.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct RegionRow {
    phase: String,
    region: String,
    bytes: u64,
    order: &'static str,
    share: f64,
    element_bytes: u64,
    stores: f64,
    streams: u32,
    dependent: f64,
    mispredicted: f64,
}

fn regions(workload: &Workload) -> impl Iterator<Item = RegionRow> {
    let of = |phase: &str, r: &Region| RegionRow {
        phase: phase.to_owned(),
        region: r.name.clone(),
        bytes: r.bytes.get(),
        order: r.order.name(),
        share: r.share,
        element_bytes: r.element.get(),
        stores: r.stores,
        streams: r.streams,
        dependent: r.dependent,
        mispredicted: r.mispredicted,
    };
    let rows = workload.phases.iter().flat_map(move |phase| {
        let name = phase.name.clone();
        phase.regions.iter().map(move |r| of(&name, r))
    });
    rows.collect::<Vec<_>>().into_iter()
}

fn page(workload: &Workload) -> String {
    let mut text = wrap(
        &format!("{}: {}", workload.name, workload.summary),
        "",
        "  ",
    );
    text.push_str(&wrap(&format!("from {}", workload.source), "", "  "));
    if let Some(assumed) = &workload.assumed {
        text.push_str(&wrap(&format!("assumed: {assumed}"), "", "  "));
    }
    if let Some(application) = workload.application {
        let _ = writeln!(
            text,
            "application: {application}, which `weir workload run` runs on a host"
        );
    }
    if let Some(of) = &workload.requests {
        text.push_str(&wrap(&requests(of), "", "  "));
    }
    for phase in &workload.phases {
        let line = format!(
            "{}: {} instructions, CPI {} without memory, {} accesses in 1000",
            phase.name,
            number(phase.instructions),
            phase.cpi,
            phase.apki
        );
        let _ = write!(text, "\n{}", wrap(&line, "", "  "));
        let _ = write!(
            text,
            "{} of the instructions after a load need it",
            share(phase.slice)
        );
        if phase.vector > 0.0 {
            let _ = write!(text, ", {} compute on vectors", share(phase.vector));
        }
        let _ = match phase.mispredicts {
            0.0 => writeln!(text),
            n => writeln!(text, ", {n} mispredicted branches in 1000"),
        };
        let heads = [
            Column::words("region"),
            Column::number("size"),
            Column::words("order"),
            Column::number("share"),
            Column::number("stores"),
            Column::words("more"),
        ];
        let mut table = Table::new(&heads);
        for region in &phase.regions {
            table.row([
                region.name.clone(),
                region.bytes.to_string(),
                region.order.name().to_owned(),
                share(region.share),
                share(region.stores),
                more(region),
            ]);
        }
        let _ = write!(text, "{table}");
    }
    text
}

/// How long requests are, and when they come.
fn requests(of: &Requests) -> String {
    let come = match (of.per_second, of.clients) {
        (Some(rate), None) => format!("{rate} a second at random times"),
        (Some(rate), Some(1)) => {
            format!("{rate} a second from a client that waits for each answer")
        }
        (Some(rate), Some(n)) => {
            format!("{rate} a second from {n} clients, of which each waits for its answers")
        }
        (None, _) if of.think.get() > 0.0 => {
            format!("a thread has the next one {} after an answer", of.think)
        }
        (None, _) => "a thread has the next one when it has answered".into(),
    };
    let length = match of.spread {
        Spread::Fixed => "",
        Spread::Exponential => " in the mean, spread exponentially",
    };
    let locked = match of.locked {
        0.0 => String::new(),
        locked => format!(", {} of it under a lock", share(locked)),
    };
    let each = number(of.instructions);
    format!(
        "each {}: {each} instructions{length}{locked}; {come}",
        of.unit
    )
}

/// A large number, with one digit after the point.
fn number(n: u64) -> String {
    let n = n as f64;
    match n {
        _ if n >= 1e9 => format!("{:.1} G", n / 1e9),
        _ if n >= 1e6 => format!("{:.1} M", n / 1e6),
        _ if n >= 1e3 => format!("{:.1} k", n / 1e3),
        _ => format!("{n}"),
    }
}

/// A share of a whole, in percent.
fn share(of: f64) -> String {
    match of {
        of if of > 0.0 && of < 0.005 => "below 1 %".into(),
        of => format!("{:.0} %", of * 100.0),
    }
}

/// Other properties of a region, if they differ from the defaults.
fn more(region: &Region) -> String {
    let mut parts = vec![format!("{} each", region.element)];
    if let Some(object) = &region.object {
        parts.push(format!("of {object}"));
    }
    if region.modifies > 0.0 {
        parts.push(format!("{} stored to after", share(region.modifies)));
    }
    if region.streams > 1 {
        parts.push(format!("{} streams", region.streams));
    }
    if region.batch > 1 {
        parts.push(format!("{} in a row", region.batch));
    }
    if region.dependent > 0.0 {
        parts.push(format!("{} dependent", share(region.dependent)));
    }
    if let Some(by) = &region.indexed_by {
        parts.push(format!("indexed by {by}"));
    }
    if region.mispredicted > 0.0 {
        parts.push(format!("{} mispredicted", share(region.mispredicted)));
    }
    parts.join(", ")
}
