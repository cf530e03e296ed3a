//! Storage of this host as a tier: requests go to it through `fio`, one process for each tenant.
//!
//! No storage is used unless a user names it ([`Wish`]): a folder, in which a scratch file without a name
//! takes the requests, or a block device, which is only read unless its name is given a second time.
//!
//! | file | content |
//! |---|---|
//! | `place` | what a path is: its file system or device, and whether it can take requests |
//! | `scratch` | a file that never remains after the process |
//! | `fio` | the program: its version and arguments |
//! | `running` | the process: waited for, counted, stopped |
//! | `process_output` | its output, as it comes |
//! | `report` | the content of the output: bytes, and latencies of requests |

mod fio;
mod place;
mod process_output;
mod report;
mod running;
mod scratch;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use weir_model::access::Op;
use weir_model::capability::{Capability, Feature, Unavailable};
use weir_model::machine::MachineError;
use weir_model::topology::{Tier, TierKind, TierName};
use weir_model::units::Bytes;

use self::fio::Fio;
use self::place::Place;
use self::scratch::Scratch;
use crate::root::Root;

pub(crate) use self::report::Times;
pub(crate) use self::running::Running;

/// The effect of missing storage.
const COST: &str = "requests to a storage device cannot be measured";

/// The storage that a user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// A folder, in which a scratch file is made, or a block device.
    pub path: PathBuf,
    /// The block device a second time, if its content may be overwritten.
    pub write: Option<PathBuf>,
    /// The program that sends the requests; usually `fio` from the search path.
    pub program: PathBuf,
}

impl Wish {
    /// Storage at a path, through the installed `fio`. A device is only read.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            write: None,
            program: "fio".into(),
        }
    }
}

/// Storage that can take requests.
pub struct Storage {
    place: Place,
    fio: Result<Fio, Unavailable>,
    /// The scratch file, kept from run to run.
    scratch: Mutex<Option<Scratch>>,
}

/// The requests of one tenant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load {
    /// The tenant's name.
    pub tenant: String,
    pub op: Op,
    /// One thread on each.
    pub cores: Vec<u32>,
    /// Bytes of one thread's part; parts do not overlap.
    pub set: Bytes,
    /// The start of the first thread's part.
    pub offset: u64,
    /// Bytes of one request.
    pub block: Bytes,
    /// Requests that one thread keeps outstanding.
    pub depth: u32,
}

impl Load {
    /// The end of the last thread's part.
    pub fn end(&self) -> u64 {
        let all = self.set.get().saturating_mul(self.cores.len() as u64);
        self.offset.saturating_add(all)
    }
}

impl Storage {
    /// Examines the storage that a user names. Nothing is written, except an empty file without a name in a
    /// folder.
    ///
    /// # Errors
    /// There is no such folder or device, it cannot take direct requests, or this user may not use it. A
    /// missing `fio` is no error: it is a missing capability of this machine.
    pub fn find(root: &Root, wish: &Wish) -> Result<Self, MachineError> {
        Ok(Self {
            place: Place::find(root, wish)?,
            fio: Fio::find(root, &wish.program),
            scratch: Mutex::new(None),
        })
    }

    /// The tier to which experiments send requests.
    pub fn tier(&self) -> Tier {
        Tier {
            name: TierName::ssd(0),
            kind: TierKind::Ssd,
            node: None,
            capacity: self.place.capacity(),
            description: self.place.describe(),
            limits: None,
            programs_left: None,
        }
    }

    /// Whether it can take requests, and by which program.
    pub fn capability(&self) -> Capability {
        match &self.fio {
            Ok(fio) => Capability::present(
                Feature::Storage,
                format!("{} by {}", self.place.describe(), fio.describe()),
            ),
            Err(why) => Capability::missing(
                Feature::Storage,
                why.reason.clone(),
                COST,
                "apt-get install fio (3.0 or later)",
            ),
        }
    }

    /// Why write requests are refused, if they are.
    pub fn only_reads(&self) -> Option<String> {
        self.place.only_reads()
    }

    /// How requests are made, in words.
    pub(crate) fn describe(&self) -> String {
        let by = self
            .fio
            .as_ref()
            .map_or_else(|_| String::new(), Fio::describe);
        format!("{}, by {by}", self.place.describe())
    }

    /// Starts the requests of all tenants and returns while they get ready.
    ///
    /// # Errors
    /// Requests would write where they must not, do not fit, or the program does not start.
    pub(crate) fn start(&self, loads: &[Load]) -> Result<Vec<Running>, MachineError> {
        let fio = self.fio.as_ref().map_err(|why| MachineError::Missing {
            feature: Feature::Storage,
            reason: why.reason.clone(),
        })?;
        for load in loads {
            if let (true, Some(why)) = (writes(load.op), self.only_reads()) {
                let (tenant, op) = (&load.tenant, load.op);
                return Err(MachineError::Request(format!(
                    "tenant `{tenant}`: {op} is refused: {why}"
                )));
            }
        }
        let wanted = Bytes(loads.iter().map(Load::end).max().unwrap_or(0));
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let target = match &self.place {
            Place::Folder(folder) => {
                let file = match &mut *scratch {
                    Some(file) => file,
                    none => none.insert(Scratch::make(&folder.path)?),
                };
                file.grow(wanted)?;
                file.path()
            }
            Place::Device(device) => {
                if device.bytes < wanted {
                    return Err(MachineError::NoMemory {
                        tier: TierName::ssd(0),
                        free: device.bytes,
                        wanted,
                        within: None,
                    });
                }
                device.path.clone()
            }
        };
        loads
            .iter()
            .map(|load| Running::start(fio, &target, load))
            .collect()
    }
}

/// Whether an operation changes what is stored.
pub fn writes(op: Op) -> bool {
    matches!(op, Op::RandWrite | Op::SeqWrite)
}

/// The reason for a host without named storage.
pub fn unnamed() -> Capability {
    Capability::missing(
        Feature::Storage,
        "no storage is named, and Weir uses none without a request",
        COST,
        "name a folder or a block device: weir interplay --storage PATH",
    )
}

fn missing(reason: impl Into<String>) -> MachineError {
    MachineError::Missing {
        feature: Feature::Storage,
        reason: reason.into(),
    }
}

fn system(what: impl Into<String>, cause: impl ToString) -> MachineError {
    MachineError::System {
        what: what.into(),
        cause: cause.to_string(),
    }
}

#[cfg(test)]
mod tests;
