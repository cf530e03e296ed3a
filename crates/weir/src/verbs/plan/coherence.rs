//! `weir plan coherence` and `weir plan kernels`: the machine whose latencies and media they take.

use weir_coherence::cost::Parts;
use weir_kernels::media::Times;
use weir_model::platform::{Backing, Device, Place, Platform};
use weir_model::units::Nanos;
use weir_plan::coherence::Coherence;
use weir_plan::kernels::{self, KernelMachine};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::keeping;
use crate::machine;
use crate::progress::Progress;
use crate::studies::{PLAN_COHERENCE, PLAN_KERNELS};

/// DRAM with its controller, of a load that takes what `dram.idle` says: as in `weir plan latency` (Pond, Figure 7).
const DRAM: Nanos = Nanos(45.0);
/// A line of SRAM: assumed, as no device is known.
const SRAM_NS: u64 = 10;

/// What `coherence` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every state of small machines is visited, and random walks go through larger
ones. A mistake that is planted with --break must be found; the shortest way
to the broken rule is printed.

Examples:
  weir plan coherence
  weir plan coherence --break no-wait,crossed-write
  weir plan coherence --on emr2s+cxl-b --format csv")]
pub(super) struct CoherenceArgs {
    /// The machine whose latencies are added up: a host and a CXL device.
    #[arg(long, value_name = "PLATFORM", default_value = "emr2s+cxl-a")]
    on: String,
    #[command(flatten)]
    study: Coherence,
}

/// What `kernels` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Kernels are those of Database Kernels (CIDR 2024), which has no measurements
of them; the figures are of a model of a device that is not sold.

Examples:
  weir plan kernels
  weir plan kernels --on emr2s+cxl-ssd-znand --format csv")]
pub(super) struct KernelsArgs {
    /// The machine: a host and a CXL device with flash behind its DRAM.
    #[arg(long, value_name = "PLATFORM", default_value = "emr2s+cxl-ssd-tlc")]
    on: String,
}

pub(super) fn coherence(args: &CoherenceArgs, context: &Context) -> Result<()> {
    let platform = machine::compose(&args.on)?;
    let (parts, _) = parts(&args.on, &platform)?;
    let of = args.study.steps();
    let mut progress = Progress::begin("plan coherence", of, context.global.quiet);
    let seed = context.global.seed;
    let found = (args.study).run(args.on.clone(), seed, parts, |done, share| {
        progress.step(done, of, share);
    });
    progress.end();
    let found = found.ok_or_else(|| Failure::Partial("stopped; nothing is kept".into()))?;
    keeping::found(context, PLAN_COHERENCE, found)
}

pub(super) fn kernels(args: &KernelsArgs, context: &Context) -> Result<()> {
    let platform = machine::compose(&args.on)?;
    let (parts, device) = parts(&args.on, &platform)?;
    let backing = device.backing.as_ref().ok_or_else(|| {
        Failure::request(format!(
            "no flash is behind the device of {}; take one such as emr2s+cxl-ssd-znand",
            args.on
        ))
    })?;
    // The kernel that has two kinds of flash takes Z-NAND as the one of a bit a cell.
    let fast = machine::compose("emr2s+cxl-ssd-znand")?;
    let fast = fast
        .devices
        .iter()
        .find_map(|own| own.device.backing.as_ref());
    let machine = KernelMachine {
        parts,
        times: times(device, backing),
        fast: times(device, fast.unwrap_or(backing)),
    };
    let found =
        kernels::run(args.on.clone(), &machine).map_err(|fault| Failure::Work(fault.into()))?;
    keeping::found(context, PLAN_KERNELS, found)
}

/// What a load of the machine's first CXL device passes, from the latencies of both.
fn parts<'a>(on: &str, platform: &'a Platform) -> Result<(Parts, &'a Device)> {
    let Some(attached) = platform.devices.first() else {
        return Err(Failure::request(format!(
            "{on} has no CXL device; add one, as in emr2s+cxl-a"
        )));
    };
    if attached.place != Place::Local {
        return Err(Failure::request(format!(
            "the device of {on} must be on a port of the host itself"
        )));
    }
    let idle = platform.host.dram.measured.idle.value;
    let link = (attached.device.measured.idle.value - idle) / 2.0;
    let parts = Parts {
        core: Nanos((idle - DRAM).get().max(0.0)),
        link: Nanos(link.get().max(0.0)),
        medium: DRAM.min(idle),
    };
    Ok((parts, &attached.device))
}

fn times(device: &Device, backing: &Backing) -> Times {
    let whole = |time: Nanos| time.get().round().max(1.0) as u64;
    let line = device
        .measured
        .read
        .as_ref()
        .map_or(1.0, |read| 64.0 / read.value.get());
    Times {
        sram: SRAM_NS,
        dram: whole(DRAM),
        dram_line: whole(Nanos(line)),
        flash_read: whole(backing.read.value),
        flash_program: whole(backing.program.value),
        dies: (backing.dies.value * backing.planes.value) as usize,
    }
}
