//! Platforms: machines as data, every number with its source.
//!
//! A platform is a [`Host`], the [`Device`]s behind its CXL ports and its [`StorageDevice`]s, each
//! read from one TOML file and put together by an expression such as `emr2s+2xcxl-a+cxl-d@remote`. A file separates what was
//! *measured* alone on the machine, one tier and one tenant at a time, from everything the model
//! must predict. A number without a public source is `assumed` and carries its plausible range.

mod assemble;
mod backing;
mod check;
mod compose;
mod definition;
mod device;
mod draft;
mod group;
mod host;
mod key;
mod library;
mod limits;
mod media;
mod parameters;
mod read;
mod reference;
mod scalar;
mod source_file;
mod sourced;
mod ssd;
mod topology;
mod vary;
mod words;

pub use crate::diagnostic::{Diagnostic, Mistakes};
pub use backing::Backing;
pub use compose::ComposeError;
pub use definition::Definition;
pub use device::{Controller, Device, DeviceMeasured, Link, Tail};
pub use draft::{Draft, steps};
pub use group::ParameterRow;
pub(crate) use group::{Group, Rows, keys};
pub use host::{
    Accelerator, BandwidthAllocation, Complexes, Core, DeviceIo, Dram, DramMeasured, Host, L1Cache,
    L2Cache, LastLevelCache, NarrowRemote, Prefetch, RemoteSocket, Switch, Tlb, Uncore,
};
pub use key::{FileKind, Key, Need, When};
pub use library::Library;
pub use library::name_of_file;
pub use media::{Media, MediaTiming};
pub use reference::ReferenceRow;
pub use scalar::Kind;
pub(crate) use scalar::{Parameter, Scalar};
pub(crate) use source_file::Values;
pub use sourced::{Provenance, Sourced};
pub use ssd::{STORAGE_BLOCK, StorageDevice, StorageMeasured};
pub use vary::VaryError;
pub use words::{ControllerKind, Medium, ReadLimit, Replacement, WritePolicy};

/// The curves of a log in `published/measured` that were taken on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredLog {
    /// The file: `eurosys24_mlc.csv`.
    pub log: String,
    /// The machine's name in it.
    pub name: String,
}

/// The devices of one tier and how the threads reach them.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The device, or one of several that are alike.
    pub device: Device,
    /// How many of them the host's HDM decoder interleaves as one tier (`@interleaved`): 1, 2, 4 or 8.
    pub ways: u32,
    /// Where they are attached.
    pub place: Place,
    /// By which ports several hosts reach them, behind a switch.
    pub ports: Ports,
}

impl Attached {
    /// Whether it is attached to another socket than the threads' own.
    pub fn is_remote(&self) -> bool {
        self.place == Place::Remote
    }
}

/// Where a device is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On a port of the threads' own socket.
    Local,
    /// On a port of another socket (`@remote`).
    Remote,
    /// On the machine's CXL switch, whose upstream link it shares with all devices there (`@switch`).
    Switch,
}

/// By which ports several hosts reach a device behind a switch. Every host has a range of its capacity for itself: a
/// logical device of the CXL specification (CXL 3.0, 2.4 and 2.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ports {
    /// One for each host: a multi-headed device.
    #[default]
    MultiHeaded,
    /// One for all hosts, which share its lanes: a multi-logical device (`@logical`).
    MultiLogical,
}

/// A whole machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// The expression that named it: `emr2s+cxl-a`.
    pub name: String,
    /// Hosts, all alike: each has its own cores, caches, DRAM and devices. Devices behind a switch are shared.
    pub hosts: u32,
    /// The server, or one of several.
    pub host: Host,
    /// Its CXL devices, a tier each; `cxl0` is the first.
    pub devices: Vec<Attached>,
    /// Its storage devices, a tier each; `ssd0` is the first.
    pub storage: Vec<StorageDevice>,
}
