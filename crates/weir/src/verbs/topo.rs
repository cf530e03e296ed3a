//! `weir topo`: the parts of a machine, and the capabilities that it lacks.

mod nodes;

use std::fmt::Write as _;

use serde::Serialize;
use weir_model::capability::Capability;
use weir_model::machine::{Identity, MachineKind};
use weir_model::topology::{Tier, Topology};

use crate::context::{Context, Format};
use crate::documents::TopoDocument;
use crate::failure::Result;
use crate::output::{Column, Table, figure, print_text, to_csv, to_json, wrap};
use crate::system;
use crate::{machine, storage};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir topo
  weir topo --storage /var/tmp
  weir topo --on emr2s+2xcxl-a
  weir topo --on 2xemr2s+cxl-a@switch          two hosts that share a device
  weir topo --on my-server.machine             a recording (doctor --record)
  weir topo --format json | jq '.topology.tiers[].name'")]
pub struct Args {
    #[command(flatten)]
    storage: storage::Named,
}

/// Shows the machine.
///
/// # Errors
/// There is no such machine, or it cannot be read.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let on = &context.global.on;
    let wish = args.storage.wish();
    let document = match system::find(on)? {
        Some(system) if wish.is_none() => {
            let topology = system.view.topology()?;
            TopoDocument {
                nodes: nodes::lines(&system.view, &topology),
                warnings: system.view.warnings(),
                ..document(system.identity, topology, system.view.capabilities())
            }
        }
        Some(system) => {
            let chosen = machine::choose_with(on, wish)?;
            TopoDocument {
                nodes: nodes::lines(&system.view, &chosen.topology),
                warnings: system.view.warnings(),
                ..document(chosen.identity, chosen.topology, chosen.capabilities)
            }
        }
        None => {
            let chosen = machine::choose_with(on, wish)?;
            document(chosen.identity, chosen.topology, chosen.capabilities)
        }
    };
    for warning in &document.warnings {
        context.note(&format!("warning: {warning}"));
    }
    print_text(&match context.global.format {
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(document.topology.tiers.iter().map(TierRow::from))?,
        Format::Table => {
            let parts = describe(&document.machine, &document.topology);
            format!("{parts}\n{}", capabilities(&document.capabilities))
        }
    })
}

fn document(machine: Identity, topology: Topology, capabilities: Vec<Capability>) -> TopoDocument {
    TopoDocument {
        schema: TopoDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        machine,
        topology,
        nodes: Vec::new(),
        capabilities,
        warnings: Vec::new(),
    }
}

/// A tier as one row of CSV.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct TierRow<'a> {
    tier: &'a str,
    kind: &'a str,
    node: Option<u32>,
    capacity_bytes: u64,
    description: &'a str,
    limit_read_gbps: Option<f64>,
    limit_write_gbps: Option<f64>,
    limit_total_gbps: Option<f64>,
    limit_basis: Option<&'a str>,
}

impl<'a> From<&'a Tier> for TierRow<'a> {
    fn from(tier: &'a Tier) -> Self {
        let limits = tier.limits.as_ref();
        Self {
            tier: tier.name.as_str(),
            kind: tier.kind.name(),
            node: tier.node,
            capacity_bytes: tier.capacity.get(),
            description: &tier.description,
            limit_read_gbps: limits.map(|l| l.read.get()),
            limit_write_gbps: limits.map(|l| l.write.get()),
            limit_total_gbps: limits.map(|l| l.total.get()),
            limit_basis: limits.map(|l| l.basis.as_str()),
        }
    }
}

/// The parts of the machine, in at most 80 columns.
pub fn describe(identity: &Identity, topology: &Topology) -> String {
    let mut text = heading(identity, topology);
    let _ = write!(text, "\n{}", tiers(topology));
    if !topology.caches.is_empty() {
        let _ = write!(text, "\n{}", caches(topology));
    }
    text
}

/// The capabilities, present and missing: each missing one with its effect and its remedy.
fn capabilities(capabilities: &[Capability]) -> String {
    let mut text = String::new();
    let (present, missing): (Vec<_>, Vec<_>) = capabilities.iter().partition(|c| c.present);
    if !present.is_empty() {
        let names: Vec<&str> = present.iter().map(|c| c.feature.name()).collect();
        text.push_str(&wrap(&names.join(", "), "has     ", "        "));
    }
    for capability in missing {
        let Capability {
            feature,
            detail,
            cost,
            remedy,
            ..
        } = capability;
        text.push_str(&wrap(
            &format!("{feature}: {detail}"),
            "lacks   ",
            "        ",
        ));
        for (label, line) in [("costs:", cost), ("remedy:", remedy)] {
            if !line.is_empty() {
                text.push_str(&wrap(&format!("{label} {line}"), "        ", "          "));
            }
        }
    }
    text
}

/// The missing capabilities, by name.
pub fn lacking(capabilities: &[Capability]) -> String {
    let missing: Vec<&str> = (capabilities.iter())
        .filter(|c| !c.present)
        .map(|c| c.feature.name())
        .collect();
    if missing.is_empty() {
        return String::new();
    }
    wrap(
        &format!("{}; see weir topo", missing.join(", ")),
        "lacks   ",
        "        ",
    )
}

fn heading(identity: &Identity, topology: &Topology) -> String {
    let kind = match identity.kind {
        MachineKind::Host if identity.name == machine::HOST => "this machine",
        MachineKind::Host => "recorded machine",
        MachineKind::Sim => "simulated",
    };
    let mut line = format!(
        "{} ({kind}): {}, {}, {}",
        identity.name,
        topology.processor,
        count(topology.sockets as usize, "socket"),
        count(topology.cores.len(), "usable core"),
    );
    let hosts = topology.other_hosts.len() + 1;
    if hosts > 1 {
        let _ = write!(line, ", one of {hosts} hosts");
    }
    if let Some(clock) = topology.clock {
        let _ = write!(line, ", {} GHz", figure(clock.get()));
    }
    let _ = write!(line, ", pages of {}", topology.page);
    wrap(&line, "", "  ")
}

/// A number of things in words: `1 socket`, `2 sockets`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn tiers(topology: &Topology) -> Table {
    let mut table = Table::new(&[
        Column::words("tier"),
        Column::words("kind"),
        Column::number("node"),
        Column::number("capacity"),
        Column::number("read limit\nGB/s"),
        Column::words("made of"),
    ]);
    for tier in &topology.tiers {
        let limits = tier.limits.as_ref();
        table.row([
            tier.name.to_string(),
            tier.kind.name().into(),
            tier.node.map_or("-".into(), |node| node.to_string()),
            tier.capacity.to_string(),
            limits.map_or("-".into(), |l| figure(l.read.get())),
            tier.description.clone(),
        ]);
    }
    table
}

fn caches(topology: &Topology) -> Table {
    let mut table = Table::new(&[
        Column::words("cache"),
        Column::number("size"),
        Column::number("ways"),
        Column::number("cores that share it"),
    ]);
    for cache in &topology.caches {
        table.row([
            cache.name.clone(),
            cache.size.to_string(),
            cache.ways.map_or("-".into(), |ways| ways.to_string()),
            cache.shared_by.to_string(),
        ]);
    }
    table
}
