//! `weir place objects`: what a process of this host has in its memory, and on which tiers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_linux::Root;
use weir_linux::memory::ProcessObject;
use weir_linux::memory::objects::{leader, objects, started};
use weir_model::document::Document;
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::nodes::here;
use crate::shown::show;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir place objects --pid 4711
  weir place objects --pid 4711 --format json

An object is a mapped file, the heap, the stack, what the program itself has
named (PR_SET_VMA_ANON_NAME), or an anonymous mapping of 64 MiB and more; the
rest of the anonymous memory is `anon`.")]
pub struct Args {
    /// The process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,
}

/// What a process has in its memory: a `place objects` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessMemory {
    /// The process.
    pub process: u32,
    /// Its objects, the largest first.
    pub objects: Vec<ObjectLine>,
}

/// An object of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLine {
    /// Its name.
    pub object: String,
    /// Its addresses, all mappings together.
    pub bytes: Bytes,
    /// The part of them that is in memory.
    pub resident: Bytes,
    /// The tiers of that part, with their share of it.
    pub on: String,
}

impl Outcome for ProcessMemory {
    const SCHEMA: &'static str = "weir/place-objects/1";
    const TITLE: &'static str = "Objects of a process";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let resident: Bytes = self.objects.iter().map(|one| one.resident).sum();
        let text = format!("{resident} in memory, in {} objects", self.objects.len());
        vec![Verdict::new(
            Severity::Note,
            format!("process {}", self.process),
            text,
        )]
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("object"),
            col("bytes").head("size"),
            col("resident").head("in memory"),
            col("on"),
        ];
        vec![View::table(
            "objects",
            "Objects, the largest first",
            columns,
        )]
    }
}

/// The objects of a process.
///
/// # Errors
/// There is no such process, it has no memory of its own, or this user may not look at that.
pub(super) fn objects_of(root: &Root, process: u32) -> Result<Vec<ProcessObject>> {
    if started(root, process).is_none() {
        return Err(Failure::request(format!("there is no process {process}")));
    }
    if let Some(leader) = leader(root, process).filter(|leader| *leader != process) {
        return Err(Failure::request(format!(
            "{process} is a thread of process {leader}; name the process"
        )));
    }
    let found = objects(root, process)?;
    match found.is_empty() {
        true => Err(Failure::request(format!(
            "process {process} has no memory of its own"
        ))),
        false => Ok(found),
    }
}

/// Shows them.
///
/// # Errors
/// There is no such process, or this user may not look at its memory.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let host = here(context)?;
    let topology = host.view.topology()?;
    let found = objects_of(&host.root, args.pid)?;
    let output = ProcessMemory {
        process: args.pid,
        objects: found.iter().map(|one| line(one, &topology)).collect(),
    };
    let mut header = header(ProcessMemory::SCHEMA, context, &topology.processor);
    header.machine = host.identity;
    show(context, &Document { header, output }, None)
}

fn line(object: &ProcessObject, topology: &Topology) -> ObjectLine {
    let resident: Bytes = object.nodes.values().copied().sum();
    ObjectLine {
        object: object.name.clone(),
        bytes: object.bytes,
        resident,
        on: on_tiers(&object.nodes, topology),
    }
}

/// `dram` or `dram 75 %, cxl0 25 %`; empty where nothing is in memory.
pub(super) fn on_tiers(nodes: &BTreeMap<u32, Bytes>, topology: &Topology) -> String {
    let all: Bytes = nodes.values().copied().sum();
    let name = |node: u32| {
        let tier = topology.tiers.iter().find(|tier| tier.node == Some(node));
        tier.map_or_else(|| format!("node {node}"), |tier| tier.name.to_string())
    };
    let there: Vec<(&u32, &Bytes)> = nodes.iter().filter(|(_, bytes)| bytes.get() > 0).collect();
    match there.as_slice() {
        [(node, _)] => name(**node),
        several => {
            let part = |(node, bytes): &(&u32, &Bytes)| {
                let share = bytes.get() as f64 / all.get().max(1) as f64 * 100.0;
                format!("{} {share:.0} %", name(**node))
            };
            several.iter().map(part).collect::<Vec<_>>().join(", ")
        }
    }
}
