//! The arguments of `weir namespace`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;
use weir_model::units::{Bytes, Nanos};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A pool is a DAX device, such as /dev/dax0.0, or a file. Its table is in its own
memory, so that hosts which share the memory need nothing else
(docs/namespaces.md).

Examples:
  weir namespace init /dev/dax0.0 --hosts a,b
  weir namespace create /dev/dax0.0 table --size 4GiB --hosts b
  weir namespace list /dev/dax0.0
  weir namespace run /dev/dax0.0 table -- ./engine
  weir namespace hand-over /dev/dax0.0 table --to b
  weir namespace destroy /dev/dax0.0 table
  weir namespace gc /dev/dax0.0                 after a process or host has died")]
pub struct Args {
    /// The name of this host in the pool [default: the kernel's].
    #[arg(
        long,
        value_name = "NAME",
        global = true,
        env = "WEIR_HOST",
        hide_env = true
    )]
    pub(super) host: Option<String>,
    #[command(subcommand)]
    pub(super) what: What,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Make a pool of a device or file; what it has is lost.
    Init(InitArgs),
    /// Admit one more host.
    Admit(AdmitArgs),
    /// Make a namespace of zeros.
    Create(CreateArgs),
    /// Show the pool: its hosts and namespaces, and which processes have them open.
    #[command(visible_alias = "show")]
    List(ListArgs),
    /// Grow a namespace where it is, move it, or shrink it.
    Resize(ResizeArgs),
    /// Change who may open a namespace, and how long it is kept.
    #[command(visible_alias = "chmod")]
    Change(ChangeArgs),
    /// Make another host the owner of a namespace.
    HandOver(HandOverArgs),
    /// Release a namespace: its range is zero before it is free.
    Destroy(Named),
    /// Release what dead processes and hosts had, and finish their scrubs.
    Gc(PoolArgs),
    /// Fill a namespace with a text.
    Fill(FillArgs),
    /// Check that what is free is zero, or that a namespace has a text.
    Verify(VerifyArgs),
    /// Run a command, with the place of the namespace in its environment, and hold the namespace open.
    Run(RunArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir namespace gc /dev/dax0.0")]
pub(super) struct PoolArgs {
    /// The pool: its device or file.
    #[arg(value_name = "POOL")]
    pub(super) pool: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir namespace destroy /dev/dax0.0 table")]
pub(super) struct Named {
    /// The pool: its device or file.
    #[arg(value_name = "POOL")]
    pub(super) pool: PathBuf,
    /// The namespace.
    pub(super) name: String,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir namespace init /dev/dax0.0 --hosts a,b --lease 30s
  weir namespace init /dev/shm/pool --size 1GiB")]
pub(super) struct InitArgs {
    /// The device or file.
    #[arg(value_name = "POOL")]
    pub(super) pool: PathBuf,
    /// The size of the pool [default: all of the device or file]; a file that is absent gets it.
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Option<Bytes>,
    /// What offsets and sizes are multiples of [default: what the device maps at least].
    #[arg(long, value_name = "SIZE")]
    pub(super) unit: Option<Bytes>,
    /// Hosts that are admitted besides this one.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) hosts: Vec<String>,
    /// The most hosts that may be admitted, with this one.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(super) most_hosts: u32,
    /// How long a host may show no sign of life before it counts as dead.
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub(super) lease: Nanos,
    /// The most that one user may have.
    #[arg(long, value_name = "SIZE")]
    pub(super) quota: Option<Bytes>,
    /// Namespaces that the table has room for.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) room: u32,
    /// Make it though there is a pool, or processes have the device open.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir namespace admit /dev/dax0.0 c")]
pub(super) struct AdmitArgs {
    /// The pool: its device or file.
    #[arg(value_name = "POOL")]
    pub(super) pool: PathBuf,
    /// The name of the host to admit.
    #[arg(value_name = "NAME")]
    pub(super) name: String,
}

/// How long a namespace is kept.
#[derive(Debug, clap::Args)]
pub(super) struct Kept {
    /// Keep it until it is destroyed, which is the default of a new one.
    #[arg(long, conflicts_with_all = ["with", "lease"])]
    pub(super) keep: bool,
    /// Keep it as long as this process of this host lives, and any process has it open.
    #[arg(
        long = "while",
        value_name = "PID",
        id = "with",
        conflicts_with = "lease"
    )]
    pub(super) with: Option<u32>,
    /// Keep it for this time, and for as long as it is open.
    #[arg(long, value_name = "TIME")]
    pub(super) lease: Option<Nanos>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
It gets the smallest free range that has room. Its bytes are zero.

Examples:
  weir namespace create /dev/dax0.0 table --size 4GiB --mode 640
  weir namespace create /dev/dax0.0 scratch --size 1GiB --while 4711")]
pub(super) struct CreateArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// Its size, rounded up to the pool's unit.
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Bytes,
    /// What its offset is a multiple of, a power of two.
    #[arg(long, value_name = "SIZE")]
    pub(super) align: Option<Bytes>,
    /// Permission bits in octal, as those of files.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode)]
    pub(super) mode: u32,
    /// Hosts besides this one that may open it.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) hosts: Vec<String>,
    #[command(flatten)]
    pub(super) kept: Kept,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is changed, so that it needs no name of this host.

Examples:
  weir namespace list /dev/dax0.0
  weir namespace list /dev/dax0.0 table --format json")]
pub(super) struct ListArgs {
    /// The pool: its device or file.
    #[arg(value_name = "POOL")]
    pub(super) pool: PathBuf,
    /// Only this namespace.
    pub(super) name: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
It moves only if no process has it open, and shrinks only then.

Example:
  weir namespace resize /dev/dax0.0 table --size 8GiB")]
pub(super) struct ResizeArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// Its new size, rounded up to the pool's unit.
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Bytes,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir namespace change /dev/dax0.0 table --mode 660 --gid 100
  weir namespace change /dev/dax0.0 table --hosts b,c
  weir namespace change /dev/dax0.0 scratch --keep")]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// Permission bits in octal.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(super) mode: Option<u32>,
    /// The user who owns it.
    #[arg(long, value_name = "N")]
    pub(super) uid: Option<u32>,
    /// Its group.
    #[arg(long, value_name = "N")]
    pub(super) gid: Option<u32>,
    /// All hosts besides the owner that may open it; `none` for none.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) hosts: Option<Vec<String>>,
    #[command(flatten)]
    pub(super) kept: Kept,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The owner may do it, and any host when the owner has been silent for the lease
of the pool. Handles that were open before are refused after it.

Example:
  weir namespace hand-over /dev/dax0.0 table --to b")]
pub(super) struct HandOverArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// The host that is to own it.
    #[arg(long, value_name = "NAME")]
    pub(super) to: String,
    /// Do it though processes have it open; their mappings stay, but are refused.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  weir namespace fill /dev/dax0.0 table --text 'of host a '")]
pub(super) struct FillArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// The text, which is repeated.
    #[arg(long)]
    pub(super) text: String,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir namespace verify /dev/dax0.0
  weir namespace verify /dev/dax0.0 table --text 'of host a '")]
pub(super) struct VerifyArgs {
    /// The pool: its device or file.
    #[arg(value_name = "POOL")]
    pub(super) pool: PathBuf,
    /// A namespace whose content is checked.
    #[arg(requires = "text")]
    pub(super) name: Option<String>,
    /// What it should be filled with.
    #[arg(long, requires = "name")]
    pub(super) text: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command finds WEIR_NAMESPACE_FILE, WEIR_NAMESPACE_OFFSET and
WEIR_NAMESPACE_BYTES in its environment, and maps them with MAP_SHARED.

Example:
  weir namespace run /dev/dax0.0 table -- sh -c 'echo $WEIR_NAMESPACE_OFFSET'")]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) named: Named,
    /// The command will only read it.
    #[arg(long)]
    pub(super) read_only: bool,
    /// The command, and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

fn mode(text: &str) -> std::result::Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "it must be 0 to 777 in octal".into())
}
