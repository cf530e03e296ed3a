//! `weir place apply`: moves objects of a process of this host to tiers, and can take it back.
//!
//! Before a page moves, the places of all pages of the objects are written to a file, from which `weir place restore` moves
//! them back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_linux::heat::end_left;
use weir_linux::memory::objects::{objects, started, stretches};
use weir_linux::memory::{AddressRange, Mover, ProcessObject, free_on_node};
use weir_model::document::Document;
use weir_model::machine::MachineError;
use weir_model::tiering::MovedPages;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::objects::{objects_of, on_tiers};
use super::undo::{Noted, Undo};
use super::verify::{Gauge, Verified, Verify};
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::nodes::{all_here, here, node_of};
use crate::progress::Progress;
use crate::shown::show;
use crate::system::System;
use crate::verbs::moved;

/// Arguments of `weir place apply`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir place objects --pid 4711
  weir place apply --pid 4711 heap=cxl0 main.arrow=cxl0
  weir place apply --pid 4711 anon-7f3a40000000=cxl0 --rate 0.5 --undo moved.txt
  weir place apply --pid 4711 heap=cxl0 --verify
  weir place apply --pid 4711 heap=cxl0 --verify --measure ./requests-per-second
  weir place restore moved.txt

Exit codes: 1 where pages stayed, with the reason; 3 where this user may not
move them.")]
pub struct Args {
    /// The process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Objects, as `weir place objects` names them, and the tier of each.
    #[arg(required = true, value_name = "OBJECT=TIER", value_parser = wish)]
    objects: Vec<(String, TierName)>,
    /// Move at most this much in a second.
    #[arg(long, value_name = "GB/S", default_value = "1", value_parser = rate)]
    rate: GbPerSec,
    /// The file that says where pages were, for `weir place restore` [default: weir-place-PID.txt here].
    #[arg(long, value_name = "FILE")]
    undo: Option<PathBuf>,
    #[command(flatten)]
    verify: Verify,
}

/// Arguments of `weir place restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir place restore weir-place-4711.txt")]
pub struct RestoreArgs {
    /// A file that `weir place apply` or `weir place watch` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Move at most this much in a second.
    #[arg(long, value_name = "GB/S", default_value = "1", value_parser = rate)]
    rate: GbPerSec,
}

fn wish(text: &str) -> std::result::Result<(String, TierName), String> {
    match text.rsplit_once('=') {
        Some((object, tier)) if !object.is_empty() && !tier.is_empty() => {
            Ok((object.to_owned(), TierName::named(tier)))
        }
        _ => Err("it is an object and a tier, such as heap=cxl0".into()),
    }
}

pub(super) fn rate(text: &str) -> std::result::Result<GbPerSec, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1000.0).contains(&rate) => Ok(GbPerSec(rate)),
        _ => Err("it is from 0.001 to 1000 GB/s".into()),
    }
}

/// What became of objects that were moved: a `place apply` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceApplied {
    /// The process.
    pub process: u32,
    /// Each object.
    pub objects: Vec<Applied>,
    /// What a measure of the process was before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// An object, or a stretch of pages that was taken back, and what became of its pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// The object.
    pub object: String,
    /// Where it should be.
    pub tier: String,
    /// What became of its pages.
    #[serde(flatten)]
    pub pages: MovedPages,
    /// Why it ended before all were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Where it is now.
    pub on: String,
}

impl Applied {
    fn is_whole(&self) -> bool {
        self.ended.is_none() && self.pages.not_moved() == 0
    }
}

impl Outcome for PlaceApplied {
    const SCHEMA: &'static str = "weir/place-apply/1";
    const TITLE: &'static str = "Objects moved";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let verdict = |one: &Applied| {
            let text = match (&one.ended, moved::stayed(&one.pages)) {
                (Some(why), _) => format!("{why}; {} pages moved until then", one.pages.moved),
                (None, None) => format!("{} pages moved to {}", one.pages.moved, one.tier),
                (None, Some(stayed)) => format!(
                    "{} pages moved to {}, {} stayed: {stayed}",
                    one.pages.moved,
                    one.tier,
                    one.pages.not_moved()
                ),
            };
            let severity = match one.is_whole() {
                true => Severity::Note,
                false => Severity::Doubt,
            };
            Verdict::new(severity, &one.object, text)
        };
        let moved = self.objects.iter().map(verdict);
        moved
            .chain(self.verified.as_ref().map(Verified::verdict))
            .collect()
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let mut columns = vec![col("object"), col("tier").head("to")];
        columns.extend(moved::columns());
        columns.push(col("on"));
        vec![View::table(
            "objects",
            "Pages, and where the objects are now",
            columns,
        )]
    }
}

/// Moves objects.
///
/// # Errors
/// There is no such process, object or tier, this user may not move its pages, or pages stayed.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let host = here(context)?;
    let topology = host.view.topology()?;
    let tiers: Vec<TierName> = args.objects.iter().map(|(_, tier)| tier.clone()).collect();
    all_here(&host, &topology, &tiers)?;
    let known = objects_of(&host.root, args.pid)?;
    let mut wanted = Vec::new();
    for (place, (name, tier)) in args.objects.iter().enumerate() {
        if args.objects[..place].iter().any(|(other, _)| other == name) {
            return Err(Failure::request(format!(
                "object `{name}` is named twice; name one tier for it"
            )));
        }
        let found = known.iter().find(|one| one.name == *name);
        let object = found.ok_or_else(|| unknown(args.pid, name, &known))?;
        wanted.push((object, tier, node_of(&topology, tier)?));
    }
    room(&host, &wanted)?;
    let mut gauge = Gauge::open(&args.verify, &host.root, args.pid)?;
    let before = gauge
        .as_mut()
        .map(|gauge| gauge.measure(context))
        .transpose()?;
    let path = undo_file(args.undo.as_ref(), args.pid);
    let mut undo = Undo::create(&path, &host.root, args.pid)?;
    let mut note = || {
        let mut all = wanted.iter();
        all.try_for_each(|(object, ..)| undo.note(&stretches(object)?))
    };
    if let Err(why) = note() {
        undo.remove();
        return Err(why);
    }
    let mut done = Vec::new();
    for (object, tier, node) in wanted {
        let (pages, ended) = moves(
            &host,
            args.pid,
            &object.name,
            (node, &object.ranges),
            args.rate,
            context,
        );
        done.push(Applied {
            object: object.name.clone(),
            tier: tier.to_string(),
            pages,
            ended,
            on: String::new(),
        });
    }
    // Where they are now, as far as the process still runs.
    let after = objects(&host.root, args.pid).unwrap_or_default();
    for one in &mut done {
        let object = after.iter().find(|object| object.name == one.object);
        one.on = object.map_or_else(String::new, |object| on_tiers(&object.nodes, &topology));
    }
    context.note(&format!(
        "`weir place restore {}` moves them back",
        path.display()
    ));
    let verified = match (gauge, before) {
        (Some(mut gauge), Some(before)) if !context.stop.requested() => {
            gauge.settle(context);
            Some(gauge.compared(&before, context)?)
        }
        _ => None,
    };
    finish(args.pid, done, verified, &host, context)
}

/// The file that is written where the user names none.
pub(super) fn undo_file(named: Option<&PathBuf>, process: u32) -> PathBuf {
    named.map_or_else(
        || PathBuf::from(format!("weir-place-{process}.txt")),
        Clone::clone,
    )
}

/// Refuses objects for which a tier has no room: the kernel would move a part of them, or begin to swap.
fn room(host: &System, wanted: &[(&ProcessObject, &TierName, u32)]) -> Result<()> {
    let mut needed: BTreeMap<u32, (&TierName, u64)> = BTreeMap::new();
    for (object, tier, node) in wanted {
        let elsewhere = object.nodes.iter().filter(|(on, _)| *on != node);
        let bytes: Bytes = elsewhere.map(|(_, bytes)| *bytes).sum();
        needed.entry(*node).or_insert((tier, 0)).1 += bytes.get();
    }
    for (node, (tier, bytes)) in needed {
        let wanted = Bytes(bytes);
        if let Some(free) = free_on_node(&host.root, node).filter(|free| *free < wanted) {
            let tier = tier.clone();
            return Err(Failure::from(MachineError::NoMemory {
                tier,
                free,
                wanted,
                within: None,
            }));
        }
    }
    Ok(())
}

/// Moves objects back to where they were.
///
/// # Errors
/// The file is not of `weir place apply`, the process has ended, or pages stayed.
pub(super) fn restore(args: &RestoreArgs, context: &Context) -> Result<()> {
    let host = here(context)?;
    if end_left(&host.root) {
        context.note("DAMON, which a `weir` that was killed had left on, is ended");
    }
    let topology = host.view.topology()?;
    let Noted {
        process,
        began,
        nodes,
    } = Noted::read(&args.file)?;
    if started(&host.root, process) != Some(began) {
        return Err(Failure::request(format!(
            "process {process} of {} has ended: nothing is left to move back",
            args.file.display()
        )));
    }
    let mut done = Vec::new();
    // A node that has gone keeps no pages from the others.
    for (node, parts) in &nodes {
        let tier = on_tiers(&[(*node, Bytes(1))].into(), &topology);
        let object = format!("what was on {tier}");
        let (pages, ended) = moves(&host, process, &object, (*node, parts), args.rate, context);
        done.push(Applied {
            object,
            tier,
            pages,
            ended,
            on: String::new(),
        });
        if context.stop.requested() {
            break;
        }
    }
    finish(process, done, None, &host, context)
}

fn finish(
    process: u32,
    objects: Vec<Applied>,
    verified: Option<Verified>,
    host: &System,
    context: &Context,
) -> Result<()> {
    let stayed = objects.iter().filter(|one| !one.is_whole()).count();
    let output = PlaceApplied {
        process,
        objects,
        verified,
    };
    let mut header = header(PlaceApplied::SCHEMA, context, "");
    header.machine = host.identity.clone();
    show(context, &Document { header, output }, None)?;
    match (context.stop.requested(), stayed) {
        (true, _) => Err(Failure::Partial(
            "stopped: other pages were not moved".into(),
        )),
        (false, 0) => Ok(()),
        (false, _) => Err(Failure::work("not all pages are where they should be")),
    }
}

fn unknown(process: u32, name: &str, known: &[ProcessObject]) -> Failure {
    let names: Vec<&str> = known.iter().take(8).map(|one| one.name.as_str()).collect();
    Failure::request(format!(
        "process {process} has no object `{name}`; its largest are {}",
        names.join(", ")
    ))
}

/// Moves parts of a process to a node; what became of all pages, and why it ended early.
fn moves(
    host: &System,
    process: u32,
    what: &str,
    (node, parts): (u32, &[AddressRange]),
    rate: GbPerSec,
    context: &Context,
) -> (MovedPages, Option<String>) {
    let mut mover = match Mover::over(&host.root, process, parts, node, rate) {
        Ok(mover) => mover,
        Err(why) => return (MovedPages::default(), Some(why.to_string())),
    };
    let whole = mover.rest().get();
    let mut progress = Progress::percent(&format!("moving {what}"), context.global.quiet);
    let mut last = Instant::now();
    while !mover.is_over() && !context.stop.requested() {
        let now = Instant::now();
        mover.advance(&host.root, Nanos((now - last).as_secs_f64() * 1e9));
        last = now;
        let share = (whole - mover.rest().get()) as f64 / whole.max(1) as f64;
        progress.share(share);
        std::thread::sleep(STEP);
    }
    progress.end();
    (mover.counted(), mover.ended().map(ToString::to_string))
}

/// Between two steps of a move.
const STEP: std::time::Duration = std::time::Duration::from_millis(1);
