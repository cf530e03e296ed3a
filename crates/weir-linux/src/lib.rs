//! The real machine: the parts of this Linux server, and loads in real instructions on it.
//!
//! Three parts, of which the first two meet in [`machine`]:
//!
//! - **Discovery.** [`topology::discover`] reads `sysfs` and `procfs` below a [`root::Root`], which is `/`
//!   for this server and a file for a recorded one ([`recording`]). Something absent is a named missing
//!   capability, and something unreadable is a reason; neither is ever a zero. [`doctor`] says what would
//!   spoil a measurement or tiering, and the command that fixes it.
//! - **Load.** The loops of [`weir_loops`] run in [`machine`]; [`memory`] places their pages on a node and asks the kernel where they really are; [`pin`] and
//!   [`clock`] keep them on a core and time them; [`prefetch`] switches the prefetchers while they run;
//!   [`micro`] has the loops of calibration; [`storage`] sends requests to a device with `fio`; [`resctrl`]
//!   divides the last-level cache between tenants.
//!   [`output`] knows whether results can be printed; [`input`] reads until a stop is requested; [`piped`] reads what other programs write while they run, and ends them; [`tracer`] has those that tell of accesses.
//! - **Steering.** [`tiering`] counts what the kernel promotes and demotes. [`steer`] measures which tenants load which
//!   tier, limits tenants of this host, sets the kernel's tiering, and restores everything.
//! - **Virtual machines.** [`vm`] gives commands to a QEMU, and scrubs the memory that VMs share.
//!
//! Unsafe code is system calls and instructions.

#[cfg(not(target_os = "linux"))]
compile_error!("weir-linux reads sysfs and procfs, so it builds only for Linux");

pub mod app_direct;
pub mod application;
pub mod clock;
mod control;
pub mod doctor;
pub mod dsa;
pub mod heat;
pub mod input;
mod locked;
pub mod machine;
pub mod memory;
pub mod micro;
pub mod output;
pub mod perf;
pub mod pin;
pub mod piped;
pub mod prefetch;
mod process;
pub mod recording;
mod register;
pub mod resctrl;
pub mod root;
pub mod second_signal;
pub mod steer;
pub mod storage;
pub mod tiering;
pub mod topology;
pub mod tracer;
pub mod vm;

pub use machine::{LinuxTestbed, Options};
pub use root::{Reading, Root};
