//! `weir bench stream --dax`: STREAM in a file of persistent memory.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::anyhow;
use weir_lab::LabError;
use weir_lab::app_direct::{AppDirect, KernelRow, Reopened, bytes_counted};
use weir_lab::stream::Stream;
use weir_linux::app_direct::stream::{KERNELS, MOST_TIMES, Run, Timed};
use weir_linux::app_direct::{Mapping, Pool, Wanted};
use weir_model::document::Document;
use weir_model::durable::Durable;
use weir_model::machine::MachineError;
use weir_model::topology::Topology;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use crate::context::Context;
use crate::disturbance;
use crate::driver::header_of;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::machine::{self, HOST};
use crate::output::count;
use crate::progress::Progress;
use crate::studies::STREAM_DAX;
use weir_lab::Outcome as _;

/// What `stream` takes besides the arguments of its study.
#[derive(Debug, clap::Args)]
pub struct DaxArgs {
    /// Arrays in this file, folder of a mount, or DAX device of this host,
    /// which is mapped; by MAP_SYNC where that is possible.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["tiers", "kernels", "ops", "working_set", "no_prefetch"])]
    pub dax: Option<PathBuf>,
    /// What is done for each block that is written, along with none: block
    /// writes it back, transaction keeps its old bytes in a log until then.
    #[arg(long, value_name = "HOW", value_delimiter = ',', requires = "dax")]
    durable: Vec<Durable>,
    /// Bytes that are made durable at once.
    #[arg(long, value_name = "SIZE", default_value = "4K", requires = "dax")]
    block: Bytes,
    /// Elements of an array [default: STREAM's rule, four times the caches].
    #[arg(long, value_name = "N", requires = "dax", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    elements: Option<u64>,
    /// How often each kernel runs; the first time does not count.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "dax", value_parser = clap::value_parser!(u32).range(2..=i64::from(MOST_TIMES)))]
    times: u32,
    /// Write back although the file has no MAP_SYNC: what is written then
    /// survives the program, but not a loss of power.
    #[arg(long, requires = "dax")]
    force: bool,
}

/// The smallest array of STREAM's rule, in elements.
const LEAST: u64 = 1 << 20;

/// Measures, keeps and prints.
///
/// # Errors
/// The arguments do not fit this host or the file, durability is not to be had there, or the values were wrong.
pub fn run(
    args: &DaxArgs,
    path: &std::path::Path,
    stream: &Stream,
    context: &Context,
) -> Result<()> {
    if context.global.on != HOST {
        return Err(Failure::request(format!(
            "--dax is of this host; {} is a model, and has no files",
            context.global.on
        )));
    }
    let chosen = machine::choose(HOST)?;
    let topology = &chosen.topology;
    let places = stream.places(topology).map_err(of_lab)?;
    let most = (places.iter().map(|place| place.cores(topology).len()).min()).unwrap_or_default();
    let threads = stream.thread_counts(most).map_err(of_lab)?;
    let block = args.block.get();
    if block == 0 || !block.is_multiple_of(64) || block > 1 << 20 {
        return Err(Failure::request(format!(
            "--block {}: a block is a multiple of 64 B, up to 1 MiB",
            args.block
        )));
    }
    let keeping = Keeping::begin(context, STREAM_DAX)?;
    let elements = args.elements.unwrap_or_else(|| by_rule(topology));
    let pool = Pool::open(&Wanted {
        path: path.to_owned(),
        elements,
        block: args.block,
    })?;
    let asks_durable = args.durable.iter().any(|&durable| durable != Durable::None);
    if asks_durable && !pool.mapping().is_durable() && !args.force {
        let path = pool.path().display().to_string();
        let why = match pool.mapping() {
            Mapping::VolatileDax => format!("{path} is {}", Mapping::VolatileDax),
            _ => format!("{path} cannot be mapped with MAP_SYNC"),
        };
        pool.discard();
        return Err(Failure::Missing(anyhow!(
            "{why}, so that no write-back makes it durable: it needs a DAX mount of persistent memory (ext4 or xfs \
             with -o dax) or a DAX device of it; --force measures all the same"
        )));
    }
    let reopened = pool.existed().then(|| {
        let left = pool.recover();
        Reopened {
            durable: left.durable,
            undone: left.undone,
            old: left.old,
            new: left.new,
            torn: left.torn,
        }
    });
    let mut found = AppDirect {
        kernels: Vec::new(),
        path: pool.path().display().to_string(),
        mapping: pool.mapping().name().into(),
        is_durable: pool.mapping().is_durable(),
        write_back: pool.write_back().into(),
        elements,
        block_bytes: args.block,
        reopened,
    };
    let mut kinds = args.durable.clone();
    kinds.push(Durable::None);
    kinds.sort_unstable();
    kinds.dedup();
    let mut header = header_of(AppDirect::SCHEMA, context, &chosen);
    (header.warnings).extend(disturbance::before_measuring(context));
    let runs = places.len() * threads.len() * kinds.len();
    // What a run asks before its first pass of the kernels, and before each of the others.
    let passes = 1 + KERNELS * args.times as usize;
    let progress = Progress::begin(STREAM_DAX, runs, context.global.quiet);
    let reached = Mutex::new((progress, 0));
    let stop = || {
        let mut held = reached.lock().unwrap_or_else(PoisonError::into_inner);
        let (progress, done) = &mut *held;
        progress.step(*done / passes, runs, *done as f64 / (runs * passes) as f64);
        *done += 1;
        context.stop.requested()
    };
    'all: for place in &places {
        for &threads in &threads {
            let cores = place.cores(topology);
            let mut plain: Vec<f64> = Vec::new();
            for &durable in &kinds {
                let run = Run {
                    cpus: &cores[..threads as usize],
                    durable,
                    times: args.times,
                };
                let timed = match pool.stream(&run, &stop) {
                    Err(MachineError::Interrupted) if !found.kernels.is_empty() => break 'all,
                    timed => timed?,
                };
                let best: Vec<f64> = timed.iter().map(|timed| best_of(timed).0).collect();
                if durable == Durable::None {
                    plain.clone_from(&best);
                }
                // Blocks of the thread that has most.
                let blocks = elements.div_ceil(block / 8).div_ceil(u64::from(threads));
                for (at, timed) in timed.iter().enumerate() {
                    let (least, mean) = best_of(timed);
                    let rate = |seconds: f64| {
                        GbPerSec::from_bytes_in(
                            bytes_counted(timed.kernel, elements),
                            Nanos(seconds * 1e9),
                        )
                    };
                    found.kernels.push(KernelRow {
                        kernel: timed.kernel,
                        threads,
                        socket: place.socket(),
                        affinity: place.affinity(),
                        durable,
                        gbps: rate(least),
                        mean_gbps: rate(mean),
                        durable_ns: (durable != Durable::None)
                            .then(|| (least - plain[at]) * 1e9 / blocks as f64),
                    });
                }
            }
        }
    }
    let (progress, _) = reached.into_inner().unwrap_or_else(PoisonError::into_inner);
    progress.end();
    let kept = found.kernels.len() / KERNELS;
    header.partial = kept < runs;
    let torn = found
        .reopened
        .as_ref()
        .is_some_and(|left| left.durable == Some(Durable::Transaction) && left.torn > 0);
    keeping.put(
        Document {
            header,
            output: found,
        },
        None,
    )?;
    match torn {
        true => Err(Failure::Illegal),
        false if kept < runs => Err(Failure::Partial(format!(
            "stopped: {kept} of {} are kept",
            count(runs as u64, "run")
        ))),
        false => Ok(()),
    }
}

fn of_lab(error: LabError) -> Failure {
    match error {
        LabError::Lacks(_) => Failure::Missing(error.into()),
        error => Failure::Request(error.into()),
    }
}

/// The best and the mean time without the first, in seconds.
fn best_of(timed: &Timed) -> (f64, f64) {
    let counted = &timed.seconds[1..];
    let best = counted.iter().copied().fold(f64::INFINITY, f64::min);
    (best, counted.iter().sum::<f64>() / counted.len() as f64)
}

/// Elements of an array that is four times the caches of all sockets.
fn by_rule(topology: &Topology) -> u64 {
    let cores = topology.cores.len() as u32;
    let caches = weir_lab::plan::caches_in_reach(topology, cores).get();
    let sockets = u64::from(topology.sockets.max(1));
    (4 * caches * sockets / 8).max(LEAST)
}
