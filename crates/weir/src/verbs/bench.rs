//! `weir bench`: characterises a machine.

use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::{Subcommand, ValueEnum};
use weir_lab::{PointSpec, bandwidth, latency};
use weir_model::access::{Locality, Op};
use weir_model::capability::{Capability, Feature};
use weir_model::document::BenchDocument;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use crate::cli::Format;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::measure::measure;
use crate::output::{self, point_rows, print, seconds, to_csv, to_json, wrap};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench latency --quick
  weir bench bandwidth --on emr2s+cxl-a --op ld,nt_st --threads 1..32")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// How long one access takes on an idle machine, by working set.
    Latency(LatencyArgs),
    /// How many bytes a second threads move, by instruction and thread count.
    Bandwidth(BandwidthArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench latency
  weir bench latency --tier cxl0 --on emr2s+cxl-a --size 1M,64M,1G
  weir bench latency --op ld --locality random --format csv")]
struct LatencyArgs {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Instructions: ld, st_clwb, nt_st, ... [default: ld,st_clwb,nt_st].
    #[arg(long, value_delimiter = ',', value_name = "OP")]
    op: Vec<Op>,
    /// Working sets of the pointer chase: 48K, 2M, 1G [default: 4 KiB and up].
    #[arg(long, value_delimiter = ',', value_name = "SIZE")]
    size: Vec<Bytes>,
    /// How far one hop may reach [default: both].
    #[arg(long, value_delimiter = ',', value_enum)]
    locality: Vec<Reach>,
    /// Fewer and smaller working sets.
    #[arg(long)]
    quick: bool,
}

/// How far a hop of a pointer chase may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reach {
    /// Within what the TLB covers: no page walks in the figure.
    TlbFriendly,
    /// Anywhere in the working set: page walks are in the figure.
    Random,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench bandwidth --op ld --threads 1,2,4
  weir bench bandwidth --on spr2s+2xcxl-a --tier cxl0,cxl1 --threads 1..32
  weir bench bandwidth --no-prefetch --size 256M --format json")]
struct BandwidthArgs {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long, value_delimiter = ',', value_name = "TIER")]
    tier: Vec<String>,
    /// Instructions: ld, st, st_clwb, nt_st, movdir64b, cas [default: all].
    #[arg(long, value_delimiter = ',', value_name = "OP")]
    op: Vec<Op>,
    /// Thread counts and ranges: 1,2,4 or 1..32 [default: up to all cores].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    threads: Vec<Threads>,
    /// Bytes that one thread touches [default: enough to leave the caches].
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Switch the hardware prefetchers off.
    #[arg(long)]
    no_prefetch: bool,
    /// Fewer instructions and thread counts.
    #[arg(long)]
    quick: bool,
}

/// One thread count, or a range with both ends in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Threads(RangeInclusive<u32>);

/// No machine has more cores than this; a longer range is a typing error.
const MOST_THREADS: u32 = 4096;

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |part: &str| -> std::result::Result<u32, String> {
            match part.trim().parse() {
                Ok(n) if (1..=MOST_THREADS).contains(&n) => Ok(n),
                _ => Err(format!(
                    "`{part}` is no number of threads; write 4, or 1..32"
                )),
            }
        };
        let (from, to) = match text.split_once("..").or_else(|| text.split_once('-')) {
            Some((from, to)) => (number(from)?, number(to.trim_start_matches('='))?),
            None => (number(text)?, number(text)?),
        };
        if from > to {
            return Err(format!(
                "the range `{text}` runs backwards; write {to}..{from}"
            ));
        }
        Ok(Self(from..=to))
    }
}

/// Measures, keeps and prints.
///
/// # Errors
/// The request fits no machine, a figure could not be taken or kept, or the sweep was stopped.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let chosen = machine::choose(&context.global.on)?;
    let (verb, asked, plan) = match &args.what {
        What::Latency(args) => ("bench latency", &args.op, plan_latency(args, &chosen)?),
        What::Bandwidth(args) => ("bench bandwidth", &args.op, plan_bandwidth(args, &chosen)?),
    };
    let runnable = runnable(plan, asked, &chosen.identity.name, &chosen.capabilities);
    if let (true, Some(refused)) = (runnable.plan.is_empty(), &runnable.refused) {
        return Err(Failure::Missing(anyhow::anyhow!("{refused}")));
    }
    let measured = measure(context, verb, &chosen, &runnable.plan, runnable.notes)?;
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
    measured.verdict()?;
    match runnable.refused {
        Some(refused) => Err(Failure::Missing(anyhow::anyhow!("{refused}"))),
        None => Ok(()),
    }
}

fn plan_latency(args: &LatencyArgs, chosen: &Chosen) -> Result<Vec<PointSpec>> {
    let options = latency::Options {
        tiers: args.tier.iter().map(TierName::named).collect(),
        ops: args.op.clone(),
        sizes: args.size.clone(),
        localities: (args.locality.iter())
            .map(|reach| match reach {
                Reach::TlbFriendly => Locality::TlbFriendly,
                Reach::Random => Locality::Random,
            })
            .collect(),
        quick: args.quick,
    };
    latency::plan(&chosen.topology, &options).map_err(|error| Failure::Request(error.into()))
}

fn plan_bandwidth(args: &BandwidthArgs, chosen: &Chosen) -> Result<Vec<PointSpec>> {
    let options = bandwidth::Options {
        tiers: args.tier.iter().map(TierName::named).collect(),
        ops: args.op.clone(),
        threads: args
            .threads
            .iter()
            .flat_map(|range| range.0.clone())
            .collect(),
        working_set: args.size,
        prefetch: !args.no_prefetch,
        quick: args.quick,
    };
    bandwidth::plan(&chosen.topology, &options).map_err(|error| Failure::Request(error.into()))
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
            "`{op}` needs {}, which {machine} lacks: {}; leave it out of --op",
            capability.feature, capability.detail
        ))
    });
    let mut notes = Vec::new();
    for op in Op::ALL {
        let Some(capability) = missing(op) else {
            continue;
        };
        if plan.iter().any(|spec| spec.load.op == op) {
            notes.push(format!("{op} is left out: {}", capability.detail));
        }
    }
    let plan = plan
        .into_iter()
        .filter(|spec| missing(spec.load.op).is_none())
        .collect();
    Runnable {
        plan,
        notes,
        refused,
    }
}

/// The feature that an instruction needs beyond what every processor has.
fn needed(op: Op) -> Option<Feature> {
    match op {
        Op::Movdir64b => Some(Feature::Movdir64b),
        Op::Dsa => Some(Feature::Dsa),
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

    #[test]
    fn thread_counts_are_numbers_and_ranges() {
        assert_eq!("4".parse(), Ok(Threads(4..=4)));
        assert_eq!("1..32".parse(), Ok(Threads(1..=32)));
        assert_eq!("2-8".parse(), Ok(Threads(2..=8)));
        assert_eq!("1..=3".parse(), Ok(Threads(1..=3)));
    }

    #[test]
    fn a_thread_count_of_nonsense_says_what_to_write() {
        for text in ["0", "many", "8..2", "1..", "1..9999999", "-3", ""] {
            let error = text.parse::<Threads>().unwrap_err();
            assert!(error.contains(".."), "{text}: {error}");
        }
    }

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
