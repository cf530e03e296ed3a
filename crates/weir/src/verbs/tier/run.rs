//! `weir tier run`: sets the kernel's own tiering on this host, counts what it does, and restores it.

use weir_lab::Outcome;
use weir_linux::Root;
use weir_linux::memory::{base_page, has_memory};
use weir_linux::steer::{JournalError, SystemSettings, TierSettings};
use weir_linux::tiering::{self, Demotion, Scheme};
use weir_model::document::Document;
use weir_model::tiering::KernelTiering;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use super::moves::Moving;
use super::requests::{Args, Demote, Weight};
use super::schemes::Migrating;
use super::watch::{Asked, Counted, watch};
use super::windows::{Tiered, in_words};
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::nodes::{all_here, here, node_of};
use crate::session::say;
use crate::studies::TIER_RUN;
use crate::system::System;

/// Sets the kernel's tiering, counts windows, restores it.
///
/// # Errors
/// The kernel lacks a setting, it may not be changed, or it could not be restored.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let host = here(context)?;
    let root = &host.root;
    let topology = host.view.topology()?;
    let wanted = args.settings();
    check_times(args)?;
    let weights = weights(args, &host, &topology)?;
    let wanted = TierSettings {
        tiering: wanted,
        weights: (weights.iter()).map(|(node, _, n)| (*node, *n)).collect(),
    };
    wanted.check(root)?;
    let demotion = demotion(args, &wanted.tiering, root)?;
    let movings = Moving::all(args, &host, &topology)?;
    let migrating = Migrating::all(args, &host, &topology)?;
    let keeping = Keeping::begin(context, TIER_RUN)?;
    let before = tiering::in_force(root);
    // Schemes work while the next one is being set.
    let began = Counted::now(root)?;
    let mut settings = None;
    let mut in_force = before;
    if !wanted.is_empty() || !migrating.is_empty() {
        let (mut held, restored) = SystemSettings::open(root, &args.journal).map_err(refused)?;
        for path in &restored.put_back {
            context.note(&format!("restored what an earlier run had left: {path}"));
        }
        restored
            .remarks()
            .for_each(|remark| say(&format!("weir: warning: {remark}")));
        in_force = wanted.set(&mut held)?;
        if !migrating.is_empty() {
            let schemes: Vec<Scheme> = migrating.iter().map(|of| of.scheme).collect();
            let nodes: Vec<u32> = topology.tiers.iter().filter_map(|tier| tier.node).collect();
            held.set_schemes(&schemes, args.schemes_of.as_ref(), &nodes)?;
        }
        settings = Some(held);
    }
    let weights: Vec<(TierName, u32)> = weights
        .into_iter()
        .map(|(_, tier, weight)| (tier, weight))
        .collect();
    context.note(&format!("in force: {}", in_words(&in_force, &weights)));
    let mut asked = Asked {
        ends: args.lasts.is_none()
            && !movings.is_empty()
            && settings.is_none()
            && demotion.is_empty(),
        demotion,
        movings,
        migrating,
    };
    let counted = watch(args, root, &topology, began, &mut asked, context);
    // Whatever was counted, the settings are restored first.
    let different = settings.map_or(Ok(Vec::new()), SystemSettings::restore);
    let counted = counted?;
    let mut header = header(Tiered::SCHEMA, context, &topology.processor);
    header.machine = host.identity;
    header.topology = topology;
    let not = different.as_ref().map_or(&[][..], Vec::as_slice);
    header.warnings = not.iter().map(ToString::to_string).collect();
    for tier in &header.topology.tiers {
        if let Some(node) = tier.node.filter(|node| !has_memory(root, *node)) {
            let warning = format!("node {node} ({}) has no memory: it went offline", tier.name);
            say(&format!("weir: warning: {warning}"));
            header.warnings.push(warning);
        }
    }
    let output = Tiered {
        windows: counted.windows,
        rooms: counted.rooms,
        moves: counted.moves,
        schemes: counted.schemes,
        before,
        in_force,
        page: Bytes(base_page() as u64),
        weights,
    };
    keeping.put(Document { header, output }, None)?;
    different.map(drop).map_err(|why| Failure::work(why.reason))
}

fn refused(error: JournalError) -> Failure {
    Failure::Work(error.into())
}

fn check_times(args: &Args) -> Result<()> {
    if !(0.1..=3600.0).contains(&args.window.as_secs()) {
        return Err(Failure::request("--window is from 100 ms to an hour"));
    }
    if args
        .lasts
        .is_some_and(|lasts| lasts.get() < args.window.get())
    {
        return Err(Failure::request("--for is shorter than one --window"));
    }
    if !(0.0..=100.0).contains(&args.pressure) {
        return Err(Failure::request("--pressure is from 0 to 100 percent"));
    }
    Ok(())
}

/// The nodes, tiers and weights.
fn weights(args: &Args, host: &System, topology: &Topology) -> Result<Vec<(u32, TierName, u32)>> {
    let names: Vec<TierName> = args.weights.iter().map(|weight| weight.0.clone()).collect();
    all_here(host, topology, &names)?;
    let one = |Weight(tier, weight): &Weight| Ok((node_of(topology, tier)?, tier.clone(), *weight));
    args.weights.iter().map(one).collect()
}

/// The groups whose pages are demoted.
fn demotion(args: &Args, wanted: &KernelTiering, root: &Root) -> Result<Demotion> {
    let demotes = wanted.demotion.or(tiering::in_force(root).demotion);
    if !args.demote.is_empty() && demotes != Some(true) {
        return Err(Failure::request(
            "demotion is off, so that --demote would write pages to swap or drop them; add --demotion on",
        ));
    }
    let of = args.demote.iter();
    let of: Vec<_> = of
        .map(|Demote(scope, rate)| (scope.clone(), *rate))
        .collect();
    Demotion::find(root, &of, args.pressure).map_err(Failure::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Args {
        let words = [&["run"], words].concat();
        <Words as clap::Parser>::try_parse_from(words).unwrap().args
    }

    #[test]
    fn a_group_whose_pressure_is_not_counted_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let top = folder.path().join("sys/fs/cgroup");
        let group = top.join("cold");
        std::fs::create_dir_all(&group).unwrap();
        for folder in [&top, &group] {
            std::fs::write(folder.join("cgroup.procs"), "").unwrap();
            std::fs::write(folder.join("cgroup.controllers"), "memory\n").unwrap();
        }
        std::fs::write(group.join("memory.reclaim"), "").unwrap();
        let args = args(&["--demotion", "on", "--demote", "cgroup:/cold=1 GB/s"]);
        let found = || demotion(&args, &args.settings(), &root);
        let why = found().unwrap_err();
        assert_eq!(why.code(), 3);
        assert!(
            format!("{why:?}").contains("cold/memory.pressure"),
            "{why:?}"
        );
        std::fs::write(group.join("memory.pressure"), "some total=5\n").unwrap();
        assert!(!found().unwrap().is_empty());
    }
}
