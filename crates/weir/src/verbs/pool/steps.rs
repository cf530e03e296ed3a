//! The steps of a slice, as a manager tells of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plan::pool::owners::Vm;

/// A step that has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// The table permits the VM to use the slice.
    Permitted,
    /// The file system keeps room for it.
    Reserved,
    /// QEMU has it mapped.
    Mapped,
    /// The guest has a module of memory with it.
    Plugged,
    /// The table says that the guest uses it.
    Online,
    /// The table says that the guest is to return it.
    AskedBack,
    /// The guest was asked.
    Unplugging,
    /// The table says that the guest keeps it.
    Kept,
    /// The table says that no guest uses it.
    Offline,
    /// QEMU has it no longer.
    Removed,
    /// The table says that no VM has it mapped.
    Cleared,
    /// It was made zero.
    Scrubbed,
    /// The table says that it is free.
    Free,
}

/// Which slices are asked back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// This many, the newest first.
    Count(usize),
    /// This one.
    Slice(usize),
}

/// What was done with a slice, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    /// In a word.
    pub what: &'static str,
    /// Of this, seconds that the guest took.
    pub guest_s: Option<f64>,
    /// Of this, seconds in which the slice was made zero and read.
    pub scrub_s: Option<f64>,
    /// Seconds.
    pub total_s: f64,
}

/// What was done with a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Did {
    /// Its number.
    pub slice: usize,
    /// `added` or `released`.
    pub what: String,
    /// The socket of the VM that has it now; absent if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// Seconds that the guest took to bring it online or offline; absent if no guest did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "s"))]
    pub guest_s: Option<f64>,
    /// Seconds in which it was made zero, and read; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "s"))]
    pub scrub_s: Option<f64>,
    /// Seconds from the first step to the last.
    #[schemars(extend("x-unit" = "s"))]
    pub total_s: f64,
}

impl Did {
    /// What was done with a slice that a VM has now.
    pub fn of(slice: usize, done: Done, vm: Option<&Vm>) -> Self {
        Self {
            slice,
            what: done.what.into(),
            vm: vm.map(|vm| vm.socket.clone()),
            guest_s: done.guest_s,
            scrub_s: done.scrub_s,
            total_s: done.total_s,
        }
    }
}
