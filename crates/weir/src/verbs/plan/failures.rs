//! `weir plan failures`: parts fail at random moments of replayed traces.

use std::path::PathBuf;

use weir_model::toml::MOST_BYTES;
use weir_model::units::Nanos;
use weir_plan::cost::percent;
use weir_plan::failures::classes::{Allocated, RELEASE_MS};
use weir_plan::failures::compared::{self, Speeds};
use weir_plan::failures::inject::{Failed, Placed};
use weir_plan::failures::part::Part;
use weir_plan::failures::rates::Rates;
use weir_plan::failures::{FailurePlan, Topology};
use weir_plan::latency::Latency;
use weir_plan::pool::cluster;
use weir_plan::pool::events::events;
use weir_plan::pool::replay::replay;
use weir_plan::trace::Trace;

use super::traces::{self, prices};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::files;
use crate::keeping::Keeping;
use crate::progress::Progress;
use crate::studies::PLAN_FAILURES;

/// Share of a cluster's progress that its replay is.
const REPLAY: f64 = 0.2;
/// Share after which classes of memory come, where they are asked for.
const CLASSES: f64 = 0.4;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
At each moment one part of each kind fails, alone: a machine, a page of its
DIMMs, a device, the switch, a link and the manager of a pool. VMs that lose
memory are killed, or notified where it is optional, and killed ones are started
again where there is room. A row is for one cluster.

Examples:
  weir plan failures --trace cluster.csv --pools 8,16,32
  weir plan failures --share 50% --optional 100%
  weir plan failures --devices 4 --interleaved --rates my.toml
  weir plan failures --classes --pools 16 --optional 50%")]
pub(super) struct Args {
    #[command(flatten)]
    traces: traces::Options,
    /// Sizes of pools, in sockets that share one.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SOCKETS",
        default_value = "8,16,32"
    )]
    pools: Vec<u32>,
    /// Share of each VM's memory in the pool.
    #[arg(long, value_name = "PERCENT", default_value = "30%", value_parser = percent)]
    share: f64,
    /// VMs that go on without what they have in the pool, such as a cache.
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    optional: f64,
    /// Devices of a pool.
    #[arg(long, value_name = "N", default_value_t = 2)]
    devices: u32,
    /// Spread each VM over all devices of its pool; else it is on one.
    #[arg(long)]
    interleaved: bool,
    /// Put a switch before pools of every size; else before those above 16 sockets.
    #[arg(long)]
    switched: bool,
    /// Compare classes of allocation too: local only, targeted pool, transparent, spill, remote swap.
    #[arg(long)]
    classes: bool,
    /// What a page fault of remote swap adds to a load; paging takes tens of microseconds a page
    /// (Memory Disaggregation: Advances and Open Challenges, section 2.3).
    #[arg(long, value_name = "TIME", default_value = "10 us", value_parser = fault)]
    fault: Nanos,
    /// Random moments of each trace at which parts fail.
    #[arg(long, value_name = "N", default_value_t = 200)]
    moments: u32,
    /// A file of failure rates in place of those that come with Weir.
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// A file of prices in place of those that come with Weir.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

/// Replays, breaks, keeps and prints.
///
/// # Errors
/// An argument is outside its bounds, a file cannot be read, or the work was stopped.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let mut sockets = args.pools.clone();
    sockets.sort_unstable();
    sockets.dedup();
    let topology = Topology {
        sockets,
        machines: args.traces.machines,
        machine: args.traces.machine,
        share: args.share,
        optional: args.optional,
        devices: args.devices,
        interleaved: args.interleaved,
        switched: args.switched,
        moments: args.moments,
        seed: context.global.seed,
    };
    topology.check()?;
    let rates = rates(args)?;
    let prices = prices(args.prices.as_deref())?;
    let keeping = Keeping::begin(context, PLAN_FAILURES)?;
    let away_s = rates
        .of(Part::Manager)
        .map_or(0.0, |rate| rate.down_hours * 3600.0);
    let count = args.traces.count();
    let mut progress = Progress::begin("plan failures", count, context.global.quiet);
    let (mut clusters, mut failed, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..count {
        if context.stop.requested() {
            break;
        }
        let mut traced = args.traces.cluster(at, context)?;
        let trace = std::mem::take(&mut traced.trace);
        let mut go_on = |share: f64| {
            progress.step(at, count, (at as f64 + share) / count.max(1) as f64);
            !context.stop.requested()
        };
        let asked = (&topology, args.classes);
        let (of_parts, of_classes) = broken(asked, &trace, away_s, &mut go_on)?;
        failed.extend(of_parts);
        classes.push(of_classes);
        clusters.push(traced);
    }
    progress.end();
    let mut output = FailurePlan::new(&topology, &clusters, &failed, (&rates, &prices));
    if args.classes {
        let speeds = Speeds {
            latency: Latency::default(),
            fault: args.fault,
        };
        output.classes = compared::rows(&topology, &classes, &speeds);
    }
    let words = format!(
        "the figures are of {} moments of {} clusters of {count}",
        output.moments,
        clusters.len()
    );
    traces::put(keeping, context, &clusters, output, words)
}

/// A cluster: what parts take down, and what classes of memory need and lose.
type Of = (Vec<Failed>, Vec<Allocated>);

fn broken(
    (topology, classes): (&Topology, bool),
    trace: &Trace,
    away_s: f64,
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<Of> {
    let events = events(trace);
    let cluster = (topology.machine, topology.machines as usize);
    let replayed = replay(trace, &events, cluster, &mut |share| go_on(share * REPLAY))?;
    if replayed.stopped_at.is_some() {
        return Ok((Vec::new(), Vec::new()));
    }
    let placed = Placed {
        trace,
        events: &events,
        machines: &replayed.machines,
    };
    let until = if classes { CLASSES } else { 1.0 };
    let mut later = |share| go_on(REPLAY + share * (until - REPLAY));
    let failed = topology.inject(&placed, away_s, &mut later)?;
    if !classes {
        return Ok((failed, Vec::new()));
    }
    let placed = cluster::Placed {
        trace,
        events: &events,
        machines: &replayed.machines,
        machine: topology.machine,
        count: topology.machines as usize,
        release_ms: RELEASE_MS,
    };
    let mut later = |share| go_on(until + share * (1.0 - until));
    Ok((failed, topology.classes(&placed, &mut later)?))
}

/// The time of a fault.
fn fault(text: &str) -> std::result::Result<Nanos, String> {
    let fault: Nanos = text.parse().map_err(|why| format!("{why}"))?;
    match (0.0..=1e9).contains(&fault.get()) {
        true => Ok(fault),
        false => Err("a fault takes 0 ns to 1 s".into()),
    }
}

/// The rates of a file, or those that come with Weir.
fn rates(args: &Args) -> Result<Rates> {
    let read = match &args.rates {
        None => Rates::builtin(),
        Some(file) => {
            let text = files::text(file, "file of failure rates", MOST_BYTES)?;
            Rates::read(&file.display().to_string(), &text)
        }
    };
    read.map_err(|mistakes| Failure::request(mistakes.to_string()))
}
