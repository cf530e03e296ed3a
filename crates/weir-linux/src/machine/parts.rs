//! How to measure, and what all machines of one testbed share.

use std::path::PathBuf;
use std::sync::Mutex;

use weir_model::capability::{Capability, Unavailable};
use weir_model::counters::CounterSet;
use weir_model::machine::Identity;
use weir_model::topology::Topology;

use super::counting::Plan;
use crate::memory::{Pages, Policy, Region};
use crate::prefetch::Switches;
use crate::root::Root;
use crate::storage::{Storage, Wish};
use crate::topology::HostView;
use weir_loops::kernels::Isa;

/// How to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The page size of working sets.
    pub pages: Pages,
    /// The widest vector instructions to use; `None` for the widest that the processor executes at full
    /// width.
    pub widest: Option<Isa>,
    /// Length of windows and warm-ups, as a multiple of the usual: 0.25 for a quick look, 4 for a
    /// careful one.
    pub budget: f64,
    /// Storage that may take requests.
    pub storage: Option<Wish>,
    /// The folder of the journal by which changed settings are restored; without one no setting of the whole
    /// system is changed.
    pub journal: Option<PathBuf>,
    /// The same for what a run changes for its own threads: registers of their processors, resctrl groups. It is another
    /// folder, since another process may steer this host meanwhile.
    pub run_journal: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pages: Pages::default(),
            widest: None,
            budget: 1.0,
            storage: None,
            journal: None,
            run_journal: None,
        }
    }
}

/// What all machines of one testbed share.
pub(super) struct HostParts {
    pub root: Root,
    pub options: Options,
    pub view: HostView,
    pub topology: Topology,
    pub identity: Identity,
    pub capabilities: Vec<Capability>,
    pub policy: Policy,
    /// The storage that the user named.
    pub storage: Option<Storage>,
    /// The switches of the prefetchers, or why they are not available.
    pub prefetchers: Result<Switches, Unavailable>,
    /// Counters, all of them with the reason why they have no value.
    pub counters: CounterSet,
    /// What is counted for each thread.
    pub counted: Plan,
    /// Memory of the last run, which the next one can often reuse.
    pub kept: Mutex<Vec<Region>>,
}
