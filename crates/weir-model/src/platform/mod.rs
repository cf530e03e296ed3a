//! Platforms: machines as data, every number with its source.
//!
//! A platform is a [`Host`] and the [`Device`]s behind its CXL ports, each read from one TOML file
//! and put together by an expression such as `emr2s+2xcxl-a@remote`. A file separates what was
//! *measured* alone on the machine, one tier and one tenant at a time, from everything the model
//! must predict. A number without a public source is `assumed` and carries its plausible range.

mod assemble;
mod check;
mod compose;
mod device;
mod embedded;
mod entry;
mod host;
mod library;
mod limits;
mod media;
mod parameters;
mod reference;
mod scalar;
mod schema;
mod source_file;
mod sourced;
mod topology;
mod vary;

pub use crate::diagnostic::{Diagnostic, Mistakes};
pub use assemble::Definition;
pub use compose::ComposeError;
pub use device::{Controller, ControllerKind, Device, DeviceMeasured, Link, ReadLimit, Tail};
pub use host::{
    Accelerator, Cache, Core, Dram, DramMeasured, Host, LastLevelCache, NarrowRemote, Prefetch,
    RemoteSocket, Tlb, Uncore,
};
pub use library::Library;
pub use media::{Media, MediaTiming};
pub use parameters::ParameterRow;
pub use reference::ReferenceRow;
pub use scalar::Kind;
pub use schema::{DEVICE_KEYS, FileKind, HOST_KEYS, Key, Need};
pub use source_file::MOST_BYTES;
pub use sourced::{Provenance, Sourced};
pub use vary::VaryError;

/// The curves of a log in `published/measured` that were taken on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredLog {
    /// The file: `eurosys24_mlc.csv`.
    pub log: String,
    /// The machine's name in it.
    pub name: String,
}

/// A device and how the threads reach it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The device.
    pub device: Device,
    /// Whether it hangs on another socket than the threads' own (`@remote`).
    pub remote: bool,
}

/// A whole machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// The expression that named it: `emr2s+cxl-a`.
    pub name: String,
    /// The server.
    pub host: Host,
    /// Its CXL devices; tier `cxl0` is the first.
    pub devices: Vec<Attached>,
}
