//! `weir plan pool`: clusters are replayed side by side, one a thread.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use weir_lab::Outcome as _;
use weir_lab::plan::distinct;
use weir_model::document::Header;
use weir_plan::cost::percent;
use weir_plan::pool::replay::Replayed;
use weir_plan::pool::split::Predictions;
use weir_plan::pool::{PoolPlan, Pools, Traced, whole};
use weir_plan::trace::Trace;

use super::traces::{self, prices};
use crate::context::Context;
use crate::driver::header;
use crate::failure::Result;
use crate::keeping::Keeping;
use crate::output::count as counted;
use crate::progress::Progress;
use crate::studies::PLAN_POOL;

/// Parts of a cluster in the progress.
const PARTS: usize = 100;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Policies: a fixed share of each VM in the pool; pond, with the mispredictions
that are given; oracle, which knows the future. All memory local is 100 %.

Examples:
  weir plan pool --trace cluster.csv --pools 8,16,32
  weir plan pool --clusters 10 --days 75 --marked 20% --untouched 15%
  weir plan pool --trace packing.sqlite --as azure-packing --machines 400")]
pub(super) struct Args {
    #[command(flatten)]
    traces: traces::Options,
    /// Sizes of pools, in sockets that share one.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SOCKETS",
        default_value = "8,16,32,64"
    )]
    pools: Vec<u32>,
    /// Fixed shares that are compared.
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", default_value = "15%,50%", value_parser = percent)]
    fixed: Vec<f64>,
    /// VMs that are marked as insensitive, and are in the pool as a whole.
    #[arg(long, value_name = "PERCENT", default_value = "30%", value_parser = percent)]
    marked: f64,
    /// VMs that are marked and are sensitive.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    false_positives: f64,
    /// Mean untouched memory that is predicted for VMs that are not marked.
    #[arg(long, value_name = "PERCENT", default_value = "20%", value_parser = percent)]
    untouched: f64,
    /// VMs for which too much untouched memory is predicted.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    over_predicted: f64,
    /// Milliseconds until a slice of 1 GiB is released and can be given away again.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    release_ms: u32,
    /// A file of prices in place of those that come with Weir.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Price of the pool's memory, of a server's.
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = percent)]
    pool_price: f64,
}

/// Replays, keeps and prints.
///
/// # Errors
/// An argument is outside its bounds, a trace cannot be read, or the work was stopped.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    let pools = Pools {
        sockets: distinct(args.pools.iter().copied()),
        machines: args.traces.machines,
        machine: args.traces.machine,
        fixed: distinct(args.fixed.iter().copied()),
        predictions: Predictions {
            marked: args.marked,
            false_positives: args.false_positives,
            untouched: args.untouched,
            over_predicted: args.over_predicted,
        },
        release_ms: args.release_ms,
        price_ratio: args.pool_price,
        seed: context.global.seed,
    };
    pools.check()?;
    let prices = prices(args.prices.as_deref())?;
    let keeping = Keeping::begin(context, PLAN_POOL)?;
    let count = args.traces.count();
    let work = Work {
        args,
        pools: &pools,
        context,
        keeping: Mutex::new(keeping),
        header: header(PoolPlan::SCHEMA, context, ""),
        recalled: AtomicUsize::new(0),
        next: AtomicUsize::new(0),
        done: Mutex::new((0..count).map(|_| None).collect()),
        progress: Mutex::new((
            Progress::begin("plan pool", count, context.global.quiet),
            vec![0.0; count],
        )),
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(count.max(1));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work.take());
        }
    });
    let (progress, _) = work
        .progress
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    progress.end();
    let keeping = work
        .keeping
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let recalled = work.recalled.into_inner();
    if recalled > 0 {
        context.note(&format!(
            "earlier runs replayed {recalled} of {}, and kept what they found",
            counted(count as u64, "cluster")
        ));
    }
    let done = work
        .done
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let done: Vec<(Traced, Replayed)> = done.into_iter().flatten().collect::<Result<_>>()?;
    let (clusters, replayed) = whole(done);
    let output = pools.conclude(&clusters, &replayed, &prices)?;
    let words = format!(
        "the figures are of {} of {count} clusters, which were replayed to their end",
        replayed.len()
    );
    traces::put(keeping, context, &clusters, output, words)
}

/// A cluster that was replayed.
type Cluster = Result<(Traced, Replayed)>;

struct Work<'w> {
    args: &'w Args,
    pools: &'w Pools,
    context: &'w Context,
    keeping: Mutex<Keeping<'w>>,
    /// Of the run, which is begun when a cluster is kept.
    header: Header,
    /// Clusters that an earlier run has replayed.
    recalled: AtomicUsize,
    next: AtomicUsize,
    done: Mutex<Vec<Option<Cluster>>>,
    /// The bar, and the share of each cluster that is done.
    progress: Mutex<(Progress, Vec<f64>)>,
}

impl<'w> Work<'w> {
    /// Takes clusters until there are none.
    fn take(&self) {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.args.traces.count() || self.context.stop.requested() {
                return;
            }
            let cluster = self.cluster(at);
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = done.get_mut(at) {
                *place = Some(cluster);
            }
        }
    }

    fn cluster(&self, at: usize) -> Cluster {
        let mut traced = self.args.traces.cluster(at, self.context)?;
        let address = self.pools.address(&traced.trace);
        // The store is free for the others while this cluster is replayed.
        let known = self.keeping().recall(&address);
        let replayed = match known {
            Some(known) => {
                self.recalled.fetch_add(1, Ordering::Relaxed);
                known
            }
            None => {
                let replayed = self.pools.replay(&traced.trace, &mut |share| {
                    self.step(at, share);
                    !self.context.stop.requested()
                })?;
                if replayed.stopped_at.is_none() {
                    // Where the store does not take it, the end of the run says so.
                    drop(self.keeping().keep(&self.header, &address, &replayed));
                }
                replayed
            }
        };
        self.step(at, 1.0);
        // The packing bound is of the first; the others need no more memory.
        if at > 0 {
            traced.trace = Trace::default();
        }
        Ok((traced, replayed))
    }

    fn keeping(&self) -> MutexGuard<'_, Keeping<'w>> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, at: usize, share: f64) {
        let mut held = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (progress, shares) = &mut *held;
        if let Some(place) = shares.get_mut(at) {
            *place = share;
        }
        let of = shares.len();
        let finished = shares.iter().filter(|share| **share >= 1.0).count();
        let whole = shares.iter().sum::<f64>() / of.max(1) as f64;
        let shown = (whole * PARTS as f64).floor() / PARTS as f64;
        progress.step(finished, of, shown);
    }
}
