//! What a manager sees of VMs: their QEMUs, and which have memory mapped. Tests have a world of their own.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_linux::vm::qmp::{Event, Qmp, QmpError};
use weir_linux::vm::{Identity, PoolFile};
use weir_plan::pool::owners::Vm;

/// A QEMU that takes commands.
pub trait Monitor {
    /// Has a command done, and returns its answer.
    ///
    /// # Errors
    /// QEMU refuses, does not answer in time, or has ended.
    fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError>;

    /// The next event; `None` if none comes until then.
    ///
    /// # Errors
    /// QEMU has ended.
    fn event(&mut self, until: Instant) -> Result<Option<Event>, QmpError>;

    /// Its process.
    ///
    /// # Errors
    /// It cannot be seen from here.
    fn process(&self) -> Result<Identity, QmpError>;
}

impl Monitor for Qmp {
    fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        Qmp::execute(self, command, arguments)
    }

    fn event(&mut self, until: Instant) -> Result<Option<Event>, QmpError> {
        Qmp::event(self, until)
    }

    fn process(&self) -> Result<Identity, QmpError> {
        Qmp::process(self)
    }
}

/// VMs, and the processes that have memory mapped.
pub trait World {
    /// Connects to a QEMU.
    ///
    /// # Errors
    /// It does not answer.
    fn connect(&mut self, socket: &Path) -> Result<Box<dyn Monitor>, QmpError>;

    /// Whether a VM still runs.
    fn runs(&self, vm: &Vm) -> bool;

    /// The processes that have a part of a pool mapped.
    ///
    /// # Errors
    /// The kernel does not say.
    fn mapped_by(&self, file: &PoolFile, range: &Range<u64>) -> io::Result<Vec<u32>>;
}

/// This host.
#[derive(Debug)]
pub struct Host {
    /// The longest time for an answer of a QEMU.
    pub limit: Duration,
}

impl World for Host {
    fn connect(&mut self, socket: &Path) -> Result<Box<dyn Monitor>, QmpError> {
        Ok(Box::new(Qmp::connect(socket, self.limit)?))
    }

    fn runs(&self, vm: &Vm) -> bool {
        let identity = Identity {
            pid: vm.pid,
            started: vm.started,
        };
        // This process is a VM once it has become a QEMU.
        identity.pid != std::process::id() && identity.runs()
    }

    fn mapped_by(&self, file: &PoolFile, range: &Range<u64>) -> io::Result<Vec<u32>> {
        file.mapped_by(range)
    }
}
