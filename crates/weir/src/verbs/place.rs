//! `weir place`: puts memory on tiers by a policy, and checks whether the kernel placed it as requested.

mod advise;
pub mod apply;
pub mod live;
mod neighbours;
pub mod objects;
mod seen;
mod undo;
pub mod verify;
pub mod watch;
pub mod watched;

use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Subcommand, ValueEnum};
use weir_ann::study::NeighbourSearch;
use weir_lab::coherence;
use weir_lab::disaggregated::Disaggregated;
use weir_lab::files::Files;
use weir_lab::levels::Levels;
use weir_lab::offload::Offload;
use weir_lab::stage::Stage;
use weir_linux::memory::{self, KernelPolicy, PlacementCheck, Policy, Share, Trial};
use weir_linux::topology::HostView;
use weir_model::machine::{Identity, MachineKind};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use crate::context::{Context, Format};
use crate::documents::{NodePages, PlaceDocument, PlaceStep};
use crate::failure::{Failure, Result};
use crate::machine::{self, HOST};
use crate::nodes::{all_here, node_of};
use crate::output::{Column, Table, print_as, to_csv, to_json, wrap};
use crate::session::say;
use crate::store::RunId;
use crate::{studies, system};

/// The interval at which a held placement checks for a stop request.
const LOOK: Duration = Duration::from_millis(50);

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  weir place advise gpt2-decode --on emr2s+cxl-a   which objects may live there
  weir place objects --pid 4711                  what a process has where
  weir place advise --pid 4711                   what of it is touched least
  weir place apply --pid 4711 heap=cxl0
  weir place watch --pid 4711                    moves what is cold, and back
  weir place offload --on emr2s+cxl-a            which share, with threads there
  weir place stage --on emr2s+cxl-a              whether to copy columns first
  weir place levels --on emr2s+cxl-a+cxl-a@switch    objects of a database
  weir place share --on emr2s+cxl-a@switch       what hosts pay for coherence
  weir place files --on flac                     page cache, DAX, attached pages
  weir place neighbours --on emr2s+2xcxl-d@interleaved@switch   graphs in a pool
  weir place --tier cxl0 --size 64M
  weir place --tier dram=3,cxl0=1                every fourth page on cxl0
  weir place --policy interleave --tier dram,cxl0
  weir place --tier cxl0 --move-to dram

Exit codes: 1 where a page is not where it should be, or the kernel refused."
)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Tiers, as `weir topo` names them; with `=N`, N pages in a row.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "TIER[=N]",
        default_value = "dram"
    )]
    tier: Vec<Weighted>,
    /// The policy: what places the pages, and how.
    #[arg(long, value_enum, default_value_t = By::Bind)]
    policy: By,
    /// The size of the memory.
    #[arg(long, value_name = "SIZE", default_value = "16M")]
    size: Bytes,
    /// Then move every page to this tier; several tiers are used one after the other.
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    move_to: Vec<String>,
    /// Then keep the memory for this many seconds, and check it again.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    hold: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say which objects of a workload, or of a process, may live on a slower tier.
    Advise(Box<advise::Args>),
    /// Show what a process of this host has in its memory, and on which tiers.
    Objects(objects::Args),
    /// Move objects of a process of this host to tiers.
    Apply(apply::Args),
    /// Keep cold objects of a process on a slower tier, and hot ones on the fast tier.
    Watch(watch::Args),
    /// Move objects back to where they were.
    Restore(apply::RestoreArgs),
    /// Say how much of an operator's data may be on a slower tier, with threads of its own there.
    Offload(Box<Offload>),
    /// Say whether columns that queries share are copied from a slower tier first, or read there.
    Stage(Box<Stage>),
    /// Say what each kind of a database's objects loses on each slower tier.
    Levels(Box<Levels>),
    /// Count what hosts that share memory pay for coherence, structure by structure.
    Share(Box<coherence::Share>),
    /// Compare methods that reach memory of another server: CXL, RDMA, a key-value store, swap.
    Disaggregated(Box<Disaggregated>),
    /// Compare file systems on a slower tier: page cache, direct access, attached pages.
    Files(Box<Files>),
    /// Say what each step of a nearest-neighbour search costs with its data in a pool.
    Neighbours(Box<NeighbourSearch>),
}

/// Whether searches are asked for on this host.
fn are_on_host(args: &Args, context: &Context) -> bool {
    matches!(args.what, Some(What::Neighbours(_)))
        && machine::host_pages(&context.global.on).is_some()
}

/// What places pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Weir, as in its experiments: each page is bound to a tier, and tiers alternate by their weights.
    Bind,
    /// The kernel: one tier as long as it has free memory.
    Preferred,
    /// The kernel: tiers alternate page by page.
    Interleave,
    /// The kernel: tiers alternate by the system's weights.
    WeightedInterleave,
}

impl By {
    fn kernel(self) -> Option<KernelPolicy> {
        match self {
            By::Bind => None,
            By::Preferred => Some(KernelPolicy::Preferred),
            By::Interleave => Some(KernelPolicy::Interleave),
            By::WeightedInterleave => Some(KernelPolicy::WeightedInterleave),
        }
    }
}

/// A tier and its number of consecutive pages.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Weighted {
    tier: TierName,
    weight: Option<u32>,
}

impl FromStr for Weighted {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (tier, weight) = match text.split_once('=') {
            None => (text, None),
            Some((tier, number)) => match number.parse() {
                Ok(weight) if (1..=255).contains(&weight) => (tier, Some(weight)),
                _ => return Err(format!("`{number}` is not a number of pages from 1 to 255")),
            },
        };
        Ok(Self {
            tier: TierName::named(tier),
            weight,
        })
    }
}

impl What {
    /// The study that runs on any machine, where it is one.
    fn study(&self) -> Option<&dyn studies::Whole> {
        Some(match self {
            Self::Offload(study) => &**study,
            Self::Stage(study) => &**study,
            Self::Levels(study) => &**study,
            Self::Share(study) => &**study,
            Self::Disaggregated(study) => &**study,
            Self::Files(study) => &**study,
            Self::Neighbours(study) => &**study,
            _ => return None,
        })
    }
}

/// Runs what a stopped run of advice still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    if let Some(What::Advise(args)) = &args.what {
        return advise::resume(args, context, run);
    }
    match args.what.as_ref().and_then(What::study) {
        Some(study) if !are_on_host(args, context) => study.resume(context, run),
        _ => Err(Failure::request(
            "placed memory is gone when its run ends; place it again",
        )),
    }
}

/// Places, moves, holds and checks.
///
/// # Errors
/// There is no such tier or no free memory on it, the kernel refused, or a page is on another node.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        Some(What::Advise(args)) => return advise::run(args, context),
        Some(What::Objects(args)) => return objects::run(args, context),
        Some(What::Apply(args)) => return apply::run(args, context),
        Some(What::Watch(args)) => return watch::run(args, context),
        Some(What::Restore(args)) => return apply::restore(args, context),
        Some(What::Neighbours(study)) if are_on_host(args, context) => {
            return neighbours::run(study, context);
        }
        _ => {}
    }
    if let Some(study) = args.what.as_ref().and_then(What::study) {
        let chosen = machine::choose(&context.global.on)?;
        return study.complete(context, &chosen);
    }
    let system = system::find(&context.global.on)?.filter(|system| !system.is_recorded());
    let system = system.ok_or_else(|| {
        Failure::request("memory is placed on the machine on which Weir runs; remove --on")
    })?;
    let topology = system.view.topology()?;
    let names: Vec<TierName> = wanted(args).collect();
    all_here(&system, &topology, &names)?;
    check_room(args, &system.root, &topology)?;
    let mut trial = place(args, &system.view, &topology)?;
    let mut steps = vec![step("placed", &topology, &trial.look()?)];
    for name in &args.move_to {
        trial.move_to(node_of(&topology, &TierName::named(name))?)?;
        steps.push(step(&format!("moved to {name}"), &topology, &trial.look()?));
    }
    if let Some(seconds) = args.hold {
        hold(&trial, seconds, context);
        steps.push(step("at the end", &topology, &trial.look()?));
    }
    let document = PlaceDocument {
        schema: PlaceDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        machine: Identity {
            kind: MachineKind::Host,
            name: HOST.into(),
            ..system.identity
        },
        policy: name_of(args.policy),
        bytes: trial.bytes().get(),
        page_bytes: memory::base_page() as u64,
        steps,
    };
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(&document)?,
            Format::Csv => to_csv(rows(&document))?,
            Format::Table => table(&document),
        },
    )?;
    verdict(&document)
}

fn name_of(policy: By) -> String {
    let value = policy.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Every tier that is named.
fn wanted(args: &Args) -> impl Iterator<Item = TierName> {
    let moved = args.move_to.iter().map(TierName::named);
    args.tier.iter().map(|w| w.tier.clone()).chain(moved)
}

/// Refuses a size for which the kernel would kill a process.
fn check_room(args: &Args, root: &weir_linux::Root, topology: &Topology) -> Result<()> {
    // The kernel may put all pages on one of the nodes.
    for tier in wanted(args) {
        let node = node_of(topology, &tier)?;
        let room = memory::free_memory(root, Some(node));
        if let Some(room) = room.filter(|room| room.free < args.size) {
            return Err(room.refuses(tier, args.size).into());
        }
    }
    Ok(())
}

fn place(args: &Args, view: &HostView, topology: &Topology) -> Result<Trial> {
    let can = Policy::probe();
    let Some(kernel) = args.policy.kernel() else {
        let shares = args.tier.iter().map(|weighted| {
            Ok(Share {
                node: Some(node_of(topology, &weighted.tier)?),
                tier: weighted.tier.clone(),
                weight: weighted.weight.unwrap_or(1),
            })
        });
        let shares = shares.collect::<Result<Vec<_>>>()?;
        return Ok(Trial::bound(args.size, &shares, &can)?);
    };
    if args.tier.iter().any(|tier| tier.weight.is_some()) {
        return Err(Failure::request(
            "the kernel uses the system's weights (/sys/kernel/mm/mempolicy/weighted_interleave); give weights with --policy bind",
        ));
    }
    if kernel == KernelPolicy::Preferred && args.tier.len() > 1 {
        return Err(Failure::request(
            "--policy preferred takes one tier; several may be bound or interleaved",
        ));
    }
    let weights = match (kernel, view.interleave_weights.get()) {
        (KernelPolicy::WeightedInterleave, Err(why)) => {
            return Err(Failure::Missing(anyhow::anyhow!(
                "the kernel has no weighted interleave, which needs Linux 6.9 or later: {why}"
            )));
        }
        (_, weights) => weights.map_or(&[][..], Vec::as_slice),
    };
    let nodes = args.tier.iter().map(|w| node_of(topology, &w.tier));
    let nodes = nodes.collect::<Result<Vec<_>>>()?;
    Ok(Trial::under(kernel, args.size, &nodes, weights, &can)?)
}

/// Keeps the memory for a while, or until a stop is requested.
fn hold(trial: &Trial, seconds: u32, context: &Context) {
    say(&format!(
        "process {} holds {} at {:x} for {seconds} s",
        std::process::id(),
        trial.bytes(),
        trial.address()
    ));
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds.into()) && !context.stop.requested() {
        std::thread::sleep(LOOK);
    }
}

fn step(what: &str, topology: &Topology, seen: &PlacementCheck) -> PlaceStep {
    let mut numbers: Vec<u32> = seen
        .asked
        .keys()
        .chain(seen.found.keys())
        .copied()
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let pages = |node: u32| NodePages {
        node,
        tier: (topology.tiers.iter())
            .find(|tier| tier.node == Some(node))
            .map(|tier| tier.name.clone()),
        asked: seen.asked.get(&node).copied().unwrap_or(0),
        found: seen.found.get(&node).copied().unwrap_or(0),
    };
    PlaceStep {
        what: what.to_owned(),
        nodes: numbers.into_iter().map(pages).collect(),
        misplaced: seen.misplaced,
        refused: (seen.refused.iter())
            .map(|(why, pages)| format!("{pages} pages: {why}"))
            .collect(),
    }
}

/// A node after a step as one row of CSV.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct NodePagesRow<'a> {
    step: &'a str,
    node: u32,
    tier: Option<&'a str>,
    pages_asked: u64,
    pages_found: u64,
}

fn rows(document: &PlaceDocument) -> impl Iterator<Item = NodePagesRow<'_>> {
    document.steps.iter().flat_map(|step| {
        step.nodes.iter().map(|pages| NodePagesRow {
            step: &step.what,
            node: pages.node,
            tier: pages.tier.as_ref().map(TierName::as_str),
            pages_asked: pages.asked,
            pages_found: pages.found,
        })
    })
}

fn table(document: &PlaceDocument) -> String {
    let mut table = Table::new(&[
        Column::words("step"),
        Column::words("tier"),
        Column::number("node"),
        Column::number("pages asked"),
        Column::number("pages found"),
    ]);
    for row in rows(document) {
        table.row([
            row.step.to_owned(),
            row.tier.unwrap_or("-").to_owned(),
            row.node.to_string(),
            row.pages_asked.to_string(),
            row.pages_found.to_string(),
        ]);
    }
    let refusals = document.steps.iter().flat_map(|step| {
        let line = |why: &String| wrap(&format!("{}: {why}", step.what), "", "  ");
        step.refused.iter().map(line)
    });
    let refusals: String = refusals.collect();
    let title = format!(
        "{} placed by policy {}, in pages of {}",
        Bytes(document.bytes),
        document.policy,
        Bytes(document.page_bytes)
    );
    format!("{title}\n\n{table}{refusals}")
}

/// Whether the kernel placed the memory as requested.
fn verdict(document: &PlaceDocument) -> Result<()> {
    let Some(step) = document.steps.iter().find(|step| step.misplaced > 0) else {
        return Ok(());
    };
    let asked: u64 = step.nodes.iter().map(|pages| pages.asked).sum();
    let found = step.nodes.iter().filter(|pages| pages.found > 0);
    let found = found.map(|pages| format!("{} on node {}", pages.found, pages.node));
    let message: Vec<String> = found.chain(step.refused.iter().cloned()).collect();
    Err(Failure::work(format!(
        "the kernel did not place the memory as requested: {}, {} of {asked} pages are on other nodes; {}",
        step.what,
        step.misplaced,
        message.join(", ")
    )))
}
