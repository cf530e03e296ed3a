//! `weir place apply`: moves objects of a process of this host to tiers, and can take it back.
//!
//! Before a page moves, the places of all pages of the objects are written to a file, from which `weir place restore` moves
//! them back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_linux::memory::objects::{objects, started, stretches};
use weir_linux::memory::{AddressRange, Mover, ProcessObject};
use weir_model::document::Document;
use weir_model::tiering::MovedPages;
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Nanos};

use super::objects::{missing, on_tiers};
use crate::context::{Context, say};
use crate::failure::{Failure, Result};
use crate::insight::header;
use crate::nodes::{all_here, here, node_of};
use crate::progress::Progress;
use crate::studies::show;
use crate::system::System;

/// Arguments of `weir place apply`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir place objects --pid 4711
  weir place apply --pid 4711 heap=cxl0 main.arrow=cxl0
  weir place apply --pid 4711 anon-7f3a40000000=cxl0 --rate 0.5 --undo moved.txt
  weir place restore moved.txt

Exit codes: 1 where pages stayed, with the reason; 3 where this user may not move them.")]
pub struct Args {
    /// The process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
    /// Objects, as `weir place objects` names them, and the tier of each.
    #[arg(required = true, value_name = "OBJECT=TIER", value_parser = wish)]
    objects: Vec<(String, TierName)>,
    /// Move at most so much in a second.
    #[arg(long, value_name = "GB/S", default_value = "1", value_parser = rate)]
    rate: GbPerSec,
    /// The file that says where pages were, for `weir place restore` [default: weir-place-PID.txt here].
    #[arg(long, value_name = "FILE")]
    undo: Option<PathBuf>,
}

/// Arguments of `weir place restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir place restore weir-place-4711.txt")]
pub struct RestoreArgs {
    /// A file that `weir place apply` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Move at most so much in a second.
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

fn rate(text: &str) -> std::result::Result<GbPerSec, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1000.0).contains(&rate) => Ok(GbPerSec(rate)),
        _ => Err("it is from 0.001 to 1000 GB/s".into()),
    }
}

/// Parts of a process's memory, and a node for each.
type Parts = Vec<(AddressRange, u32)>;

/// What became of objects that were moved: a `place apply` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceApplied {
    /// The process.
    pub process: u32,
    /// Each object.
    pub objects: Vec<Applied>,
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
            let text = match (&one.ended, one.pages.not_moved()) {
                (Some(why), _) => format!("{why}; {} pages moved until then", one.pages.moved),
                (None, 0) => format!("{} pages moved to {}", one.pages.moved, one.tier),
                (None, stayed) => format!(
                    "{} pages moved to {}, {stayed} stayed: {} busy or pinned, {} without room, {} shared with other \
                     processes, {} refused",
                    one.pages.moved,
                    one.tier,
                    one.pages.busy,
                    one.pages.full,
                    one.pages.shared,
                    one.pages.refused
                ),
            };
            let severity = match one.is_whole() {
                true => Severity::Note,
                false => Severity::Doubt,
            };
            Verdict::new(severity, &one.object, text)
        };
        self.objects.iter().map(verdict).collect()
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("object"),
            col("tier").head("to"),
            col("moved"),
            col("there"),
            col("absent"),
            col("busy"),
            col("full"),
            col("shared"),
            col("refused"),
            col("on"),
        ];
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
    let known = objects(&host.root, args.pid).map_err(missing)?;
    let mut wanted = Vec::new();
    for (name, tier) in &args.objects {
        let found = known.iter().find(|one| one.name == *name);
        let object = found.ok_or_else(|| unknown(args.pid, name, &known))?;
        wanted.push((object, tier, node_of(&topology, tier)?));
    }
    let named = || PathBuf::from(format!("weir-place-{}.txt", args.pid));
    let undo = args.undo.clone().unwrap_or_else(named);
    let moved = wanted.iter().map(|(object, ..)| *object);
    note(&undo, args.pid, &host, moved)?;
    let mut done = Vec::new();
    for (object, tier, node) in wanted {
        let parts: Vec<(AddressRange, u32)> =
            (object.ranges.iter().map(|range| (range.clone(), node))).collect();
        let (pages, ended) = moves(&host, &object.name, &parts, args.rate, context);
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
        undo.display()
    ));
    finish(args.pid, done, &host, context)
}

/// Moves objects back to where they were.
///
/// # Errors
/// The file is not of `weir place apply`, the process has ended, or pages stayed.
pub(super) fn restore(args: &RestoreArgs, context: &Context) -> Result<()> {
    let host = here(context)?;
    let topology = host.view.topology()?;
    let (process, began, parts) = noted(&args.file)?;
    if started(&host.root, process) != Some(began) {
        return Err(Failure::request(format!(
            "process {process} of {} has ended: nothing is left to move back",
            args.file.display()
        )));
    }
    let (pages, ended) = moves(&host, "pages", &parts, args.rate, context);
    let mut tiers: Vec<String> = (parts.iter())
        .map(|(_, node)| on_tiers(&[(*node, weir_model::units::Bytes(1))].into(), &topology))
        .collect();
    tiers.sort();
    tiers.dedup();
    let done = Applied {
        object: "all that moved".into(),
        tier: tiers.join(", "),
        pages,
        ended,
        on: String::new(),
    };
    finish(process, vec![done], &host, context)
}

fn finish(process: u32, objects: Vec<Applied>, host: &System, context: &Context) -> Result<()> {
    let stayed = objects.iter().filter(|one| !one.is_whole()).count();
    let output = PlaceApplied { process, objects };
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

/// Moves each part to its node; what became of all pages, and why it ended early.
fn moves(
    host: &System,
    what: &str,
    parts: &[(AddressRange, u32)],
    rate: GbPerSec,
    context: &Context,
) -> (MovedPages, Option<String>) {
    let mut progress =
        Progress::begin(&format!("moving {what}"), parts.len(), context.global.quiet);
    let mut all = MovedPages::default();
    let mut ended = None;
    for (index, (range, node)) in parts.iter().enumerate() {
        let mut mover = match Mover::open(&host.root, range.clone(), *node, rate) {
            Ok(mover) => mover,
            Err(why) => {
                ended = Some(why.to_string());
                break;
            }
        };
        let mut last = Instant::now();
        while !mover.is_over() && !context.stop.requested() {
            let now = Instant::now();
            mover.advance(&host.root, Nanos((now - last).as_secs_f64() * 1e9));
            last = now;
            std::thread::sleep(STEP);
        }
        all += mover.counted();
        if let Some(why) = mover.ended() {
            ended = Some(why.to_string());
            break;
        }
        if context.stop.requested() {
            break;
        }
        progress.step(
            index + 1,
            parts.len(),
            (index + 1) as f64 / parts.len().max(1) as f64,
        );
    }
    progress.end();
    (all, ended)
}

/// Between two steps of a move.
const STEP: std::time::Duration = std::time::Duration::from_millis(1);

/// The first line of a file that says where pages were.
const HEAD: &str = "weir place apply 1";

/// Writes where the pages of objects are, before any moves.
fn note<'a>(
    file: &Path,
    process: u32,
    host: &System,
    objects: impl Iterator<Item = &'a ProcessObject>,
) -> Result<()> {
    let began = started(&host.root, process)
        .ok_or_else(|| Failure::request(format!("there is no process {process}")))?;
    let mut text = format!("{HEAD}\nprocess {process} started {began}\n");
    for object in objects {
        for (range, node) in stretches(object).map_err(missing)? {
            text.push_str(&format!("{range} {node}\n"));
        }
    }
    let written = || -> std::io::Result<()> {
        // What an earlier move has noted is not replaced: it is what has to be taken back first.
        let mut file = std::fs::File::create_new(file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    written().map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::request(format!(
            "{} is there already, of an earlier move; take that back with `weir place restore`, remove it, or name \
             another with --undo",
            file.display()
        )),
        _ => Failure::Work(
            anyhow::Error::new(error).context(format!("cannot write {}", file.display())),
        ),
    })
}

/// Reads such a file: the process, when it started, and its pages.
fn noted(file: &Path) -> Result<(u32, u64, Parts)> {
    let cannot = |error: std::io::Error| {
        Failure::Request(
            anyhow::Error::new(error).context(format!("cannot read {}", file.display())),
        )
    };
    let odd = |line: usize| {
        Failure::request(format!(
            "{}, line {line}: this is not what `weir place apply` writes",
            file.display()
        ))
    };
    let lines = BufReader::new(std::fs::File::open(file).map_err(cannot)?).lines();
    let (mut process, mut parts) = (None, Vec::new());
    for (number, line) in lines.enumerate() {
        let line = line.map_err(cannot)?;
        match number {
            0 if line == HEAD => {}
            1 => {
                let words: Vec<&str> = line.split(' ').collect();
                process = match words.as_slice() {
                    ["process", id, "started", began] => id.parse().ok().zip(began.parse().ok()),
                    _ => None,
                };
                process.ok_or_else(|| odd(2))?;
            }
            n if n > 1 => {
                let part = line.split_once(' ').and_then(|(range, node)| {
                    Some((range.parse::<AddressRange>().ok()?, node.parse().ok()?))
                });
                parts.push(part.ok_or_else(|| odd(number + 1))?);
            }
            _ => return Err(odd(1)),
        }
    }
    let (process, began) = process.ok_or_else(|| odd(1))?;
    if parts.is_empty() {
        say("weir: warning: no page of it was in memory");
    }
    Ok((process, began, parts))
}
