//! The arguments of `weir pool`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;
use weir_model::units::{Bytes, Nanos};

use super::guest::Shape;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A pool is a file on tmpfs, hugetlbfs or a disk, or a DAX device. A VM is named
by the socket at which its QEMU takes commands: -qmp
unix:SOCKET,server=on,wait=off

Examples:
  weir pool create /dev/shm/pool --size 4GiB --slice 1GiB
  weir pool start /dev/shm/pool --vm a.qmp --memory 8GiB --untouched 30% \\
      -- qemu-system-x86_64 -M q35 -accel kvm -drive file=a.img
  weir pool add /dev/shm/pool --vm a.qmp --slices 1
  weir pool release /dev/shm/pool --vm a.qmp --slices 2
  weir pool status /dev/shm/pool
  weir pool recover /dev/shm/pool              after a crash of a VM or of weir
  weir pool arguments --memory 8GiB --untouched 30%    without a pool's file")]
pub struct Args {
    #[command(subcommand)]
    pub(super) what: What,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Make a pool of a file or a device.
    Create(CreateArgs),
    /// Start a guest whose node without processors has slices of a pool.
    Start(StartArgs),
    /// Give free slices to a VM that runs.
    Add(AddArgs),
    /// Take slices back from a VM, and scrub them.
    Release(ReleaseArgs),
    /// Finish what was interrupted, and scrub the slices of VMs that have ended.
    Recover(RecoverArgs),
    /// Show which VM owns which slice.
    Status(StatusArgs),
    /// Print QEMU's arguments for a guest with a node without processors.
    Arguments(ArgumentsArgs),
}

/// The pool that is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The pool: its file or device.
    #[arg(value_name = "POOL")]
    pub(super) file: PathBuf,
    /// The table of owners [default: POOL.slices].
    #[arg(long, value_name = "FILE")]
    pub(super) table: Option<PathBuf>,
}

/// How long others may take.
#[derive(Debug, clap::Args)]
pub(super) struct Patience {
    /// How long a guest may take to bring a slice online or offline, and a QEMU to answer.
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub(super) limit: Nanos,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is new, and takes room as VMs get its slices. With --scrub it is one
that is there, or a device: all of it is overwritten.

Examples:
  weir pool create /dev/shm/pool --size 4GiB --slice 1GiB
  weir pool create /dev/dax0.0 --table /var/lib/weir/dax0.0.slices --scrub")]
pub(super) struct CreateArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// The size of the pool; with --scrub the file's, if it is not given.
    #[arg(long, value_name = "SIZE", required_unless_present = "scrub")]
    pub(super) size: Option<Bytes>,
    /// The size of a slice; guests take whole blocks of memory, which are 128 MiB or more.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(super) slice: Bytes,
    /// Overwrite what is there.
    #[arg(long)]
    pub(super) scrub: bool,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "weir pool start [OPTIONS] --vm <SOCKET> --memory <SIZE> <POOL> -- <QEMU>",
    after_help = "\
This process becomes the program: it ends when the VM does, and a program that
goes to the background (-daemonize) is taken for a VM that has ended.

Example:
  weir pool start /dev/shm/pool --vm a.qmp --memory 8GiB --untouched 30% \\
      -- qemu-system-x86_64 -M q35 -accel kvm -drive file=a.img"
)]
pub(super) struct StartArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// The socket at which QEMU will take commands.
    #[arg(long, value_name = "SOCKET")]
    pub(super) vm: PathBuf,
    #[command(flatten)]
    pub(super) shape: Shape,
    #[command(flatten)]
    pub(super) patience: Patience,
    /// QEMU, and its arguments besides memory, nodes and processors.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(super) program: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir pool add /dev/shm/pool --vm a.qmp --slices 2")]
pub(super) struct AddArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// The VM: the socket at which its QEMU takes commands.
    #[arg(long, value_name = "SOCKET")]
    pub(super) vm: PathBuf,
    /// How many slices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) slices: usize,
    /// The guest's node that gets them [default: that of its other slices, or the one without processors].
    #[arg(long, value_name = "NODE")]
    pub(super) node: Option<u32>,
    #[command(flatten)]
    pub(super) patience: Patience,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A slice whose memory the guest cannot move away stays with the guest. Guests can
move what they brought online as movable:
  echo online_movable > /sys/devices/system/memory/auto_online_blocks

Examples:
  weir pool release /dev/shm/pool --vm a.qmp --slices 2
  weir pool release /dev/shm/pool --vm a.qmp --slice 5")]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// The VM: the socket at which its QEMU takes commands.
    #[arg(long, value_name = "SOCKET")]
    pub(super) vm: PathBuf,
    /// How many slices; the newest are asked for first.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) slices: usize,
    /// This slice.
    #[arg(long, value_name = "SLICE", conflicts_with = "slices")]
    pub(super) slice: Option<usize>,
    #[command(flatten)]
    pub(super) patience: Patience,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir pool recover /dev/shm/pool

Exit codes: 1 if something is still under way.")]
pub(super) struct RecoverArgs {
    #[command(flatten)]
    pub(super) named: Named,
    #[command(flatten)]
    pub(super) patience: Patience,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir pool status /dev/shm/pool
  weir pool status /dev/shm/pool --format json | jq '.slices[].stage'")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    pub(super) named: Named,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The pool's memory is then of this host, and has no manager: the guest has it
until it ends.

Examples:
  weir pool arguments --memory 8GiB --untouched 30%
  weir pool arguments --memory 8GiB --pool 2GiB --pool-node 2 --distance 18
  qemu-system-x86_64 $(weir pool arguments --memory 2GiB --pool 1GiB) -drive …

What is printed is a line for a shell, whatever --format says.")]
pub(super) struct ArgumentsArgs {
    #[command(flatten)]
    pub(super) shape: Shape,
    /// The size of a slice.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(super) slice: Bytes,
    /// The host's node for the pool's memory, such as that of a CXL device.
    #[arg(long, value_name = "NODE")]
    pub(super) pool_node: Option<u32>,
}
