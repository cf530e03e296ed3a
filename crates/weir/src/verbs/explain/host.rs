//! Commands and processes of this host, counted and explained at once.

use std::time::Duration;

use weir_insight::documents::Explained;
use weir_insight::explain::{COUNTERS, CountedRun};
use weir_lab::Outcome as _;
use weir_lab::interplay::{CoRunners, Participant, What};
use weir_linux::memory::ProgramPolicy;
use weir_linux::perf::session::NOTHING_RAN;
use weir_linux::pin::Pinned;
use weir_model::application_tenant::ApplicationTenant;
use weir_model::counter_file::CountersDocument;
use weir_model::counters::Counter;
use weir_model::document::{Document, Header};
use weir_model::machine::{Machine, RunningApplication};
use weir_model::tenant::Tenant;
use weir_model::topology::TierName;
use weir_model::units::{Cycles, Nanos};

use super::super::participants::{participants, prepare};
use super::options::Args;
use crate::context::Context;
use crate::counting::{self, Count};
use crate::driver;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::insight;
use crate::machine::{self, Chosen};
use crate::nodes::{all_here, here, node_of};
use crate::session::say;

/// Runs or watches, and explains.
///
/// # Errors
/// The command cannot be started, the process is not there, a tier is no node here, or nothing can be
/// counted or timed. That the command failed is in the document.
pub(super) fn explain(args: &Args, context: &Context) -> Result<Document<Explained>> {
    counting::on_this_host(context, "weir explain")?;
    if args.study.no_prefetch {
        return Err(Failure::request(
            "--no-prefetch is of a model: the prefetchers of this host are switched for all that runs on it",
        ));
    }
    let host = here(context)?;
    let topology = host.view.topology()?;
    let names = args.study.tiers.as_slice();
    let places: Vec<Option<(TierName, ProgramPolicy)>> = match names {
        [] => vec![None],
        _ if args.pid.is_some() => {
            return Err(Failure::request(
                "the memory of a process that runs stays where it is; leave --tier out",
            ));
        }
        [_] | [_, _] => {
            all_here(&host, &topology, names)?;
            if let [from, to] = names {
                insight::tiers(&topology, from, to)?;
            }
            let place = |name: &TierName| {
                let node = node_of(&topology, name)?;
                Ok(Some((name.clone(), ProgramPolicy::bind(node))))
            };
            names.iter().map(place).collect::<Result<_>>()?
        }
        _ => return Err(Failure::request("name one tier, or two to compare")),
    };
    let neighbour = Neighbour::of(args, context)?;
    if neighbour.is_some() && places.len() > 1 {
        return Err(Failure::request(
            "with another tenant a command runs on one tier; name one with --tier",
        ));
    }
    let places = match neighbour {
        Some(_) => vec![places[0].clone(), places[0].clone()],
        None => places,
    };
    args.check_idle(places.len(), "run")?;
    let mut seen = Vec::new();
    let mut head = header(Explained::SCHEMA, context, &topology.processor);
    head.machine = host.identity.clone();
    head.warnings
        .extend(neighbour.iter().flat_map(|other| other.warnings.clone()));
    for (index, place) in places.iter().enumerate() {
        let pinned = neighbour.as_ref().map(|other| Pinned::to_any(&other.left));
        let pinned = pinned.transpose()?;
        let runs = neighbour.as_ref().filter(|_| index > 0);
        let beside = runs.map(|other| other.start(context)).transpose()?;
        let counted = Count {
            command: &args.command,
            pid: args.pid,
            others: &[],
            lasts: None,
            all: false,
            every: args.interval.map(Duration::from_millis),
            counters: &COUNTERS,
            policy: place.as_ref().map(|(_, policy)| policy),
        }
        .run(&context.stop)?;
        if let Some(pid) = args.pid
            && (counted.total.get(Counter::TaskClock)).is_err_and(|why| why.reason == NOTHING_RAN)
        {
            return Err(Failure::request(format!(
                "process {pid} used no processor time while it was counted, so that there is nothing to explain"
            )));
        }
        drop(pinned);
        if let Some(beside) = beside {
            head.warnings.extend(beside.end()?);
        }
        let tier = place.as_ref().map(|(tier, _)| tier);
        let of = |note: &String| match tier {
            Some(tier) if names.len() > 1 => format!("on {tier}: {note}"),
            _ => note.clone(),
        };
        head.warnings.extend(counted.notes.iter().map(of));
        seen.push(CountedRun {
            tier: tier.cloned(),
            beside: runs.map(|other| other.name.clone()),
            // How long it was looked at says nothing of a process that runs on.
            time: counted.elapsed.filter(|_| args.pid.is_none()),
            unloaded: (args.idle.get(index)).and_then(|&ns| unloaded(&counted, Nanos(ns))),
            ..CountedRun::of_file(&counted)
        });
        // To watch a process until Ctrl-C comes is what was asked for.
        if context.stop.requested() && !args.command.is_empty() {
            head.partial = true;
            break;
        }
        if counted.exit_status.is_some_and(|code| code != 0) {
            if index + 1 < places.len() {
                let left = match neighbour {
                    Some(_) => "with the other tenant",
                    None => "on the other tier",
                };
                say(&format!("weir: the command failed, and is not run {left}"));
            }
            break;
        }
    }
    document(&seen, head)
}

/// What runs with a command, and the cores that it leaves.
pub(super) struct Neighbour {
    chosen: Chosen,
    pub name: String,
    load: Load,
    pub left: Vec<u32>,
    /// What is worth knowing of its size.
    pub warnings: Vec<String>,
}

enum Load {
    Stream(Tenant),
    Application(ApplicationTenant),
}

/// A neighbour at work.
pub(super) enum Beside {
    Stream(Box<dyn Machine>),
    Application(Box<dyn RunningApplication>),
}

/// How long a stream runs before the command begins.
const LEAD: Nanos = Nanos(200e6);

impl Neighbour {
    /// The stream or application that was asked for, on the second half of the cores, 16 at most.
    pub fn of(args: &Args, context: &Context) -> Result<Option<Self>> {
        if args.study.beside.is_none() {
            return Ok(None);
        }
        let chosen = machine::choose(&context.global.on)?;
        let Some(mut participant) = beside(args, &chosen)? else {
            return Ok(None);
        };
        let warnings = prepare(
            std::slice::from_mut(&mut participant),
            (args.size, 2),
            &chosen,
            context,
        )?;
        if matches!(participant.what, What::Program(..)) {
            return Err(Failure::request(format!(
                "`{}` runs on a model; on this host a command is explained with a stream, as dram:nt_st, or \
                 a workload whose real program the host runs, as dram:redis-ycsb-a",
                participant.name
            )));
        }
        let cores = chosen.topology.cores.clone();
        let (left, others) = cores.split_at(cores.len() / 2);
        if left.is_empty() {
            return Err(Failure::Missing(anyhow::anyhow!(
                "a command and a tenant with it need two cores, and this host has {}",
                cores.len()
            )));
        }
        let others = &others[..others.len().min(16)];
        let topology = &chosen.topology;
        let load =
            (participant.real(topology, others, context.global.seed)).and_then(|real| match real {
                Some(application) => Ok(Load::Application(application)),
                None => Ok(Load::Stream(participant.tenant(topology, others)?)),
            });
        Ok(Some(Self {
            load: load.map_err(|error| driver::refusal(error, &chosen))?,
            name: participant.name,
            left: left.to_vec(),
            warnings,
            chosen,
        }))
    }

    /// It works until it is ended.
    pub fn start(&self, context: &Context) -> Result<Beside> {
        let testbed = &self.chosen.testbed;
        Ok(match &self.load {
            Load::Stream(tenant) => {
                let mut machine = testbed.open(context.global.seed)?;
                machine.start(std::slice::from_ref(tenant))?;
                machine.observe(LEAD)?;
                Beside::Stream(machine)
            }
            Load::Application(tenant) => {
                let stop = || context.stop.requested();
                let mut application = testbed.application(tenant, &stop)?;
                application.begin(&stop)?;
                Beside::Application(application)
            }
        })
    }
}

impl Beside {
    /// Ends it, and gives its warnings.
    pub fn end(self) -> Result<Vec<String>> {
        Ok(match self {
            Self::Stream(mut machine) => machine.stop()?.warnings,
            Self::Application(mut application) => {
                application.end()?;
                Vec::new()
            }
        })
    }
}

/// What a lone chase takes, in cycles of the cores that were counted.
pub(super) fn unloaded(counted: &CountersDocument, idle: Nanos) -> Option<Cycles> {
    let get = |counter| Some(counted.total.get(counter).ok()? as f64);
    let per_ns = get(Counter::Cycles)? / get(Counter::TaskClock).filter(|&ns| ns > 0.0)?;
    Some(Cycles(idle.get() * per_ns))
}

/// The document of counted runs.
///
/// # Errors
/// The counters cannot be of a run.
pub(super) fn document(seen: &[CountedRun], header: Header) -> Result<Document<Explained>> {
    let output = Explained::of(seen)?;
    Ok(Document { header, output })
}

/// The tenant that runs with what is explained.
pub(super) fn beside(args: &Args, chosen: &Chosen) -> Result<Option<Participant>> {
    let named = args.study.beside.as_slice();
    for side in named {
        if let CoRunners::Program(placed) = side
            && placed.program.starts_with('!')
        {
            return Err(Failure::request(format!(
                "`{placed}` is a command; a program is explained with a stream or a workload, and `weir interplay --command` \
                 measures commands with each other"
            )));
        }
    }
    let mut participants = participants(named, chosen, &[])?;
    match (participants.pop(), participants.is_empty()) {
        (found, true) => Ok(found),
        (_, false) => Err(Failure::request(
            "a tier alone means several tenants; give --beside one, as cxl0:nt_st",
        )),
    }
}
