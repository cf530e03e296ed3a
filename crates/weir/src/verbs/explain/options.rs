//! What `weir explain` is asked for.

use std::path::PathBuf;

use weir_insight::studies::explain::Explain;
use weir_model::units::{Bytes, Nanos};

use crate::failure::{Failure, Result};
use crate::output::count;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir explain chase --on emr2s+cxl-a
  weir explain my-service.toml --on emr2s+cxl-a --tier dram
  weir explain redis-ycsb-a --on emr2s+cxl-a --rate 40k --beside cxl0:nt_st
  weir explain bfs-twitter --on emr2s+cxl-a --beside cxl0:llama-decode
  weir explain redis-ycsb-a --size 256M --for 10s    the real program here
  weir explain -I 1000 -- ./service --once
  weir explain --tier dram,cxl0 -- ./service --once
  weir explain --beside dram:nt_st -- ./service --once
  weir explain --beside dram:redis-ycsb-a -- ./service --once
  weir explain --pid 4242 -- sleep 10
  weir explain --counters local.csv --cpu spr
  weir explain --counters local.csv --against cxl.csv --cpu spr

A workload is the name of one that comes with Weir, or a file that describes
one. A model runs the description; on this host its real program is started,
loaded with data, observed for a time, and ended. A command runs on this host,
and is counted with all that it starts; it keeps its own input, output and
errors, and its exit code is passed on. Counters are what `weir counters
record` or `perf stat` wrote, as text, CSV (-x,) or JSON (-j).")]
pub struct Args {
    #[command(flatten)]
    pub(super) study: Explain,
    /// A command of this host and its arguments, after `--`.
    #[arg(last = true, value_name = "CMD", conflicts_with = "counters")]
    pub(super) command: Vec<String>,
    /// A process of this host, while the command runs; without one, until the process ends or Ctrl-C comes.
    #[arg(short, long, value_name = "PID", conflicts_with = "counters")]
    pub(super) pid: Option<u32>,
    /// Count in intervals of this many milliseconds, which shows phases.
    #[arg(short = 'I', long, value_name = "MS", conflicts_with = "counters",
          value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub(super) interval: Option<u64>,
    /// Observe a real program of this host for this time [default: 5s].
    #[arg(long = "for", value_name = "TIME", requires = "workload", conflicts_with_all = ["command", "counters", "pid"])]
    pub(super) lasts: Option<Nanos>,
    /// The size of the data of a real program of this host, and of one that runs with it [default: as described, at most half of
    /// the free memory].
    #[arg(long, value_name = "SIZE", requires = "workload", conflicts_with_all = ["command", "counters", "pid"])]
    pub(super) size: Option<Bytes>,
    /// What a lone chase takes on the memory of each run, in ns, as `weir bench latency` measures it: tells
    /// whether reads queue.
    #[arg(long, value_name = "NS", value_delimiter = ',', value_parser = idle)]
    pub(super) idle: Vec<f64>,
    /// Counters of a run on local memory.
    #[arg(long, value_name = "FILE")]
    pub(super) counters: Option<PathBuf>,
    /// Counters of the same work on another memory.
    #[arg(long, value_name = "FILE", requires = "counters")]
    pub(super) against: Option<PathBuf>,
    /// The microarchitecture that was counted on, such as spr, where the file
    /// does not tell.
    #[arg(long, value_name = "CPU", requires = "counters")]
    pub(super) cpu: Option<String>,
    /// Write the result here instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

impl Args {
    /// Refuses latencies that belong to no run or file.
    pub(super) fn check_idle(&self, explained: usize, what: &str) -> Result<()> {
        if self.idle.len() <= explained {
            return Ok(());
        }
        Err(Failure::request(format!(
            "--idle has {} latencies for {}: it takes one of each {what}'s memory",
            self.idle.len(),
            count(explained as u64, what)
        )))
    }
}

/// A latency in ns.
fn idle(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ns) if ns > 0.0 && ns.is_finite() => Ok(ns),
        _ => Err(format!("`{text}` is no number of nanoseconds above zero")),
    }
}
