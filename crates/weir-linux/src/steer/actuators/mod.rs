//! The actuators: one file for each.
//!
//! | file | actuator |
//! |---|---|
//! | `time` | processor time: `cpu.max`, period included |
//! | `cores` | processors: `cpuset.cpus` |
//! | `allocation` | bandwidth and cache ways: a resctrl group of the tenant's own |
//! | `clock` | the clock of its processors: `scaling_max_freq` |
//! | `weights` | the interleaving of pages over nodes, for the whole machine |
//! | [`damon`] | schemes of DAMON that migrate hot and cold pages |
//! | [`tiering`] | the kernel's demotion and promotion, for the whole machine |
//!
//! Each takes a request, keeps the floors, writes through the journal and returns the value in force.

pub(crate) mod allocation;
pub(crate) mod clock;
pub(super) mod cores;
pub mod damon;
pub mod tiering;
pub(super) mod time;
pub(crate) mod weights;

use serde::{Deserialize, Serialize};
use weir_model::capability::Unavailable;

use super::group::{above, file};
use super::journalled_writes::JournalledWrites;
use crate::root::Root;

weir_model::named! {
    /// The means by which a tenant may be limited.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Actuator {
        /// Cores that it may run on at once (`cpuset.cpus`).
        Cores = "cores",
        /// Processor time (`cpu.max`).
        ProcessorTime = "processor_time",
        /// Bandwidth allocation (resctrl, MBA; SMBA if the processor has it).
        Bandwidth = "bandwidth",
        /// Ways of the last-level cache (resctrl, CAT).
        CacheWays = "cache_ways",
        /// Clock of its cores (`scaling_max_freq`).
        Clock = "clock",
    }
}

/// The machine and its journal.
#[derive(Debug)]
pub(crate) struct KernelAccess<'h> {
    pub root: &'h Root,
    pub writes: &'h mut JournalledWrites,
}

impl KernelAccess<'_> {
    /// Restores a value, if it was changed.
    pub fn put_back(&mut self, path: &str) -> Result<(), Unavailable> {
        match self.writes.put_back(path).first() {
            Some(not) => Err(Unavailable::because(not.to_string())),
            None => Ok(()),
        }
    }

    /// Whether Weir gave a group a controller: the settings in it go with the controller.
    pub fn has_given(&self, group: &str, controller: &str) -> bool {
        let above = above(group).map(|above| file(above, "cgroup.subtree_control"));
        let before = above.and_then(|path| self.writes.before(&path));
        before.is_some_and(|text| !text.split_whitespace().any(|known| known == controller))
    }

    /// Gives a group a controller, through all groups above it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn give(&mut self, group: &str, controller: &str) -> Result<(), Unavailable> {
        let mut way: Vec<&str> = Vec::new();
        let mut at = above(group);
        while let Some(group) = at {
            way.push(group);
            at = above(group);
        }
        for group in way.into_iter().rev() {
            let path = file(group, "cgroup.subtree_control");
            let text = self.root.text(&path);
            let has = |text: &str| text.split_whitespace().any(|name| name == controller);
            if text.known().is_some_and(|text| has(text)) {
                continue;
            }
            if !has(&self.writes.set(&path, &format!("+{controller}"))?) {
                let why = format!("{path} did not take +{controller}");
                return Err(Unavailable::because(why));
            }
        }
        Ok(())
    }
}
