//! `weir bench`: characterises a machine. One file for each experiment's arguments.

mod all;
mod bandwidth;
mod file;
mod latency;
mod loaded;
mod movement;
mod random;
mod share;
mod stream;
mod tail;
mod threads;

use std::path::PathBuf;

use clap::Subcommand;
use weir_lab::{LabError, PointSpec};
use weir_model::access::Op;
use weir_model::capability::{Capability, Feature};
use weir_model::document::BenchDocument;
use weir_model::machine::MachineKind;
use weir_model::topology::{TierName, Topology};

use crate::cli::Format;
use crate::context::Context;
use crate::estimate::agree;
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::measure::{Measured, measure_rounds};
use crate::output::{self, point_rows, print, seconds, to_csv, to_json, wrap};

use file::Earlier;
pub use threads::Threads;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench all --quick
  weir bench latency --quick
  weir bench bandwidth --on emr2s+cxl-a --op ld,nt_st --threads 1..32
  weir bench --file sweep.toml")]
pub struct Args {
    /// Sweeps by name from a file, in place of an experiment (docs/sweeps.md).
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Measure only what an earlier run of the file lacks: this one, or the newest.
    #[arg(long, value_name = "RUN", num_args = 0..=1, requires = "file")]
    resume: Option<Option<String>>,
    /// Start a sweep of very many figures without being asked.
    #[arg(long, global = true)]
    yes: bool,
    /// How often each figure is measured, others in between [default: 5 on a
    /// real machine, 1 on a model].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// How long one access takes on an idle machine, by working set.
    Latency(latency::Args),
    /// How long single requests take, to p99.999, alone and beside others.
    Tail(tail::Args),
    /// How many bytes a second threads move, by instruction and thread count.
    Bandwidth(bandwidth::Args),
    /// How latency grows with the bandwidth that others draw, by mix.
    Loaded(loaded::Args),
    /// How many bytes a second threads move in blocks at random.
    Random(random::Args),
    /// STREAM's four kernels.
    Stream(stream::Args),
    /// How fast bytes are copied within and between tiers, by method.
    Movement(movement::Args),
    /// How long two cores take to hand one line over.
    Share(share::Args),
    /// Every experiment, in one document.
    All(all::Args),
}

/// Repetitions on a real machine: enough to see that they disagree.
const ROUNDS_ON_HOST: u32 = 5;

impl Args {
    /// How often each figure is measured on this machine.
    fn rounds(&self, chosen: &Chosen) -> u32 {
        self.repeat.unwrap_or(match chosen.identity.kind {
            MachineKind::Host => ROUNDS_ON_HOST,
            // A model repeats itself.
            MachineKind::Sim => 1,
        })
    }
}

/// What is to be measured.
struct Request {
    /// The verb, for the store.
    verb: &'static str,
    plan: Vec<PointSpec>,
    /// Instructions that were asked for by name.
    asked: Vec<Op>,
    /// What was left out, and why.
    notes: Vec<String>,
}

impl What {
    fn request(&self, topology: &Topology) -> std::result::Result<Request, LabError> {
        let one = |verb, plan, asked: &[Op]| Request {
            verb,
            plan,
            asked: asked.to_vec(),
            notes: Vec::new(),
        };
        Ok(match self {
            What::Latency(args) => one("bench latency", args.plan(topology)?, &args.op),
            What::Tail(args) => one("bench tail", args.plan(topology)?, &[]),
            What::Bandwidth(args) => one("bench bandwidth", args.plan(topology)?, &args.op),
            What::Loaded(args) => one("bench loaded", args.plan(topology)?, &[]),
            What::Random(args) => one("bench random", args.plan(topology)?, &args.op),
            What::Stream(args) => one("bench stream", args.plan(topology)?, &args.op),
            What::Movement(args) => one("bench movement", args.plan(topology)?, &args.asked()),
            What::Share(args) => one("bench share", args.plan(topology)?, &[]),
            What::All(args) => {
                let (plan, notes) = args.plan(topology)?;
                Request {
                    notes,
                    ..one("bench all", plan, &[])
                }
            }
        })
    }
}

/// Tiers by the names that were typed.
fn names(typed: &[String]) -> Vec<TierName> {
    typed.iter().map(TierName::named).collect()
}

/// Measures, keeps and prints.
///
/// # Errors
/// The request fits no machine, a figure could not be taken or kept, or the sweep was stopped.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let what = match (&args.what, &args.file) {
        (Some(what), None) => what,
        (None, Some(path)) => {
            let earlier = match &args.resume {
                None => Earlier::Leave,
                Some(run) => Earlier::TakeUp(run.as_deref()),
            };
            return file::run(path, earlier, args, context);
        }
        (Some(_), Some(_)) => {
            return Err(Failure::request(
                "--file names its experiments itself; leave the experiment or the file out",
            ));
        }
        (None, None) => {
            return Err(Failure::request(
                "name an experiment, such as `weir bench latency`, or a file of sweeps with --file; see `weir bench --help`",
            ));
        }
    };
    let chosen = machine::choose(&context.global.on)?;
    let request = what
        .request(&chosen.topology)
        .map_err(|error| no_request(error, &chosen))?;
    let verb = request.verb;
    let (runnable, notes) = planned(request, &chosen)?;
    let rounds = args.rounds(&chosen);
    agree(context, &chosen, &runnable.plan, rounds, args.yes)?;
    let measured = measure_rounds(context, verb, &chosen, &runnable.plan, rounds, notes)?;
    show(context, &measured)?;
    measured.verdict()?;
    match runnable.refused {
        Some(refused) => Err(Failure::Missing(anyhow::anyhow!("{refused}"))),
        None => Ok(()),
    }
}

/// Why there is no request: a wrong one, or one for a tier that this machine could have.
fn no_request(error: LabError, chosen: &Chosen) -> Failure {
    match &error {
        LabError::UnknownTier { name, .. } if chosen.identity.kind == MachineKind::Host => {
            machine::no_tier(name, error.to_string(), &chosen.capabilities)
        }
        _ => Failure::Request(error.into()),
    }
}

/// The part of a request that the machine can run, and what was left out.
fn planned(request: Request, chosen: &Chosen) -> Result<(Runnable, Vec<String>)> {
    let runnable = runnable(
        request.plan,
        &request.asked,
        &chosen.identity.name,
        &chosen.capabilities,
    );
    if let (true, Some(refused)) = (runnable.plan.is_empty(), &runnable.refused) {
        return Err(Failure::Missing(anyhow::anyhow!("{refused}")));
    }
    let notes = [request.notes, runnable.notes.clone()].concat();
    Ok((runnable, notes))
}

/// Prints what was measured on several machines: one document for one, a list for more.
fn show_all(context: &Context, measured: &[Measured]) -> Result<()> {
    if let [one] = measured {
        return show(context, one);
    }
    match context.global.format {
        Format::Json => print(&to_json(
            &measured.iter().map(|m| &m.document).collect::<Vec<_>>(),
        )?),
        Format::Csv => print(&to_csv(measured.iter().flat_map(|m| {
            let document = &m.document;
            point_rows(&document.header.machine.name, &document.points)
        }))?),
        Format::Table => {
            for (at, measured) in measured.iter().enumerate() {
                let gap = if at == 0 { "" } else { "\n" };
                print(&format!(
                    "{gap}On {}\n\n",
                    measured.document.header.machine.name
                ))?;
                show(context, measured)?;
            }
            Ok(())
        }
    }
}

/// Prints what was measured.
///
/// # Errors
/// Standard output cannot be written to.
pub fn show(context: &Context, measured: &Measured) -> Result<()> {
    print(&match context.global.format {
        Format::Table => table(&measured.document),
        Format::Json => to_json(&measured.document)?,
        Format::Csv => {
            let document = &measured.document;
            to_csv(point_rows(&document.header.machine.name, &document.points))?
        }
    })?;
    if context.global.format == Format::Table {
        context.note(&format!(
            "run {} took {}; `weir report {}` draws it",
            measured.run,
            seconds(measured.document.header.elapsed_s),
            measured.run
        ));
    }
    Ok(())
}

/// The part of a plan that a machine's processor can run.
pub struct Runnable {
    /// The points that are left.
    pub plan: Vec<PointSpec>,
    /// A line for each instruction that was left out.
    pub notes: Vec<String>,
    /// Why the request cannot be met in full: an instruction that was asked for by name is missing.
    pub refused: Option<String>,
}

/// Drops the points whose instruction the processor lacks. That is a note where Weir chose the
/// instruction, and a request that cannot be met in full where the user did, in `asked`.
pub fn runnable(
    plan: Vec<PointSpec>,
    asked: &[Op],
    machine: &str,
    capabilities: &[Capability],
) -> Runnable {
    let missing = |op: Op| {
        let feature = needed(op)?;
        capabilities
            .iter()
            .find(|c| c.feature == feature && !c.present)
    };
    let refused = asked.iter().find_map(|&op| {
        let capability = missing(op)?;
        Some(format!(
            "`{op}` needs {}, which {machine} lacks: {}; leave it out",
            capability.feature, capability.detail
        ))
    });
    let mut notes = Vec::new();
    for op in Op::ALL.into_iter().chain([Op::Dsa]).chain(Op::STORAGE) {
        let Some(capability) = missing(op) else {
            continue;
        };
        if plan.iter().any(|spec| uses(spec, op)) {
            notes.push(format!("{op} is left out: {}", capability.detail));
        }
    }
    let plan = plan
        .into_iter()
        .filter(|spec| {
            let beside = spec.beside.as_ref().and_then(|load| missing(load.op));
            missing(spec.load.op).is_none() && beside.is_none()
        })
        .collect();
    Runnable {
        plan,
        notes,
        refused,
    }
}

fn uses(spec: &PointSpec, op: Op) -> bool {
    spec.load.op == op || spec.beside.as_ref().is_some_and(|load| load.op == op)
}

/// The feature that an instruction needs beyond what every processor has.
fn needed(op: Op) -> Option<Feature> {
    match op {
        Op::Movdir64b => Some(Feature::Movdir64b),
        Op::Dsa => Some(Feature::Dsa),
        Op::RandRead | Op::RandWrite | Op::SeqRead | Op::SeqWrite => Some(Feature::Storage),
        Op::StClwb => Some(Feature::Clwb),
        Op::Ld | Op::St | Op::NtSt | Op::Cas => None,
    }
}

/// Tables of the figures, and under them what they mean.
pub fn table(document: &BenchDocument) -> String {
    let mut text = output::points::tables(&document.points);
    let verdicts = weir_lab::verdicts(&document.header.topology, &document.points);
    if !verdicts.is_empty() && !text.is_empty() {
        text.push('\n');
    }
    for verdict in verdicts {
        text.push_str(&wrap(
            &format!("{}: {}", verdict.about, verdict.text),
            "- ",
            "  ",
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_lab::Load;
    use weir_model::access::Pattern;
    use weir_model::document::Experiment;
    use weir_model::units::Bytes;

    #[test]
    fn an_instruction_that_the_machine_lacks_is_left_out_or_refused_if_asked_for() {
        let lacks = [Capability::missing(Feature::Movdir64b, "no flag", "", "")];
        let spec = |op| {
            let tier = TierName::dram();
            let load = Load::new(&tier, op, Pattern::Sequential, 1, Bytes::mib(64));
            PointSpec::alone(Experiment::Bandwidth, load)
        };
        let plan = vec![spec(Op::Ld), spec(Op::Movdir64b)];
        let left = runnable(plan.clone(), &[], "host", &lacks);
        assert_eq!(left.plan, [spec(Op::Ld)]);
        assert_eq!(left.notes, ["movdir64b is left out: no flag"]);
        assert_eq!(left.refused, None);

        let refused = runnable(plan.clone(), &[Op::Ld, Op::Movdir64b], "host", &lacks);
        assert_eq!(refused.plan, [spec(Op::Ld)]);
        assert!(refused.refused.unwrap().contains("no flag"));

        let has = [Capability::present(Feature::Movdir64b, "cpuid")];
        let all = runnable(plan, &[Op::Movdir64b], "host", &has);
        assert_eq!((all.plan.len(), all.refused), (2, None));
    }
}
