//! `weir tier profile`: which pages are touched how often, on a model, in processes of this host, or in a trace.

use std::path::PathBuf;

use weir_linux::heat::Regions;
use weir_model::scope::Scope;
use weir_model::units::Nanos;
use weir_steer::tier::profile::ProfileModel;

/// Arguments.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Workloads: web1, cache1, cache2, data-warehouse, stream, bc-twitter, bc-urand,
tc-kron, tc-twitter, gpt2; and described programs, as for `weir tier simulate`.

Examples:
  weir tier profile --on emr2s+cxl-a --workload cache1
  weir tier profile --on emr2s+cxl-a --workload redis-ycsb-a --for 60s
  weir tier profile --on emr2s+cxl-a --workload web1 --sampler events
  weir tier profile --target pid:4711 --for 60s
  weir tier profile --target cgroup:/batch.slice --for 10min --max-regions 4000
  weir tier profile --trace accesses.csv --interval 1s

A target needs root. Loads that the processor samples (PEBS, IBS) come first,
then DAMON, idle-page bits and accessed bits of the kernel. A trace is a CSV
file with the columns time_s, address and kind (anon or file).

Exit codes: 3 where the kernel has no mechanism that sees touches.")]
pub struct Args {
    #[command(flatten)]
    pub study: ProfileModel,
    /// Running processes of this host: cgroup:/PATH, unit:NAME, container:ID or pid:NUMBER.
    #[arg(long, value_name = "SCOPE", conflicts_with_all = ["trace", "workload"])]
    pub target: Option<Scope>,
    /// A recorded trace of accesses.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "lasts"])]
    pub trace: Option<PathBuf>,
    /// Of a target: the least number of DAMON's regions in each process.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..))]
    pub min_regions: u32,
    /// Of a target: the largest number of DAMON's regions in each process; more tell smaller parts apart.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(3..=100_000))]
    pub max_regions: u32,
    /// Of a target: the time between two samples of DAMON.
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    pub sample: Nanos,
    /// Of a target: loads that the busiest processor samples in a second, if it can; each costs about a microsecond there.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=10_000))]
    pub loads_per_s: u64,
}

impl Args {
    /// Whether processes of this host or a trace are profiled.
    pub(super) fn is_of_host(&self) -> bool {
        self.target.is_some() || self.trace.is_some()
    }

    /// What DAMON is asked for.
    pub(super) fn regions(&self) -> Regions {
        Regions {
            least: self.min_regions,
            most: self.max_regions,
            sample: self.sample,
        }
    }
}
