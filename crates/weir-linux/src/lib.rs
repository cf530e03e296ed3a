//! The real machine: what this Linux server is made of, and loads in real instructions on it.
//!
//! Three parts, of which the first two meet in [`machine`]:
//!
//! - **Looking.** [`topology::discover`] reads `sysfs` and `procfs` below a [`root::Root`], which
//!   is `/` for this server and a file for a recorded one ([`recording`]). What is absent is a
//!   named missing capability, and what cannot be read is a reason; neither is ever a zero.
//!   [`doctor`] says what would spoil a measurement or tiering, and the command that mends it.
//! - **Loading.** [`kernels`] are loops of one memory instruction each, chosen at run time by what
//!   the processor has; [`memory`] places their pages on a node and asks the kernel where they
//!   really are; [`pin`] and [`clock`] hold them on a core and time them; [`prefetch`] switches
//!   the prefetchers for as long as they run; [`micro`] has the loops of calibration; [`storage`] has `fio` put requests to a device;
//!   [`resctrl`] divides the last-level cache between tenants.
//! - **Steering.** [`steer`] sees who presses on which tier, holds tenants of this host, and puts
//!   everything back.
//!
//! This is the only crate of Weir with `unsafe` code: system calls and instructions.

#[cfg(not(target_os = "linux"))]
compile_error!("weir-linux reads sysfs and procfs, and so builds for Linux only");

pub mod clock;
mod control;
pub mod doctor;
pub mod dsa;
pub mod kernels;
pub mod machine;
pub mod memory;
pub mod micro;
pub mod perf;
pub mod pin;
pub mod prefetch;
mod process;
pub mod recording;
pub mod resctrl;
pub mod root;
pub mod steer;
pub mod storage;
pub mod topology;

pub use machine::{LinuxTestbed, Options};
pub use root::{Reading, Root};
