//! Changes for a run alone: registers of its processors, resctrl groups of its threads. They go through the journal of
//! measurements, which is opened for the first of them, so that `weir steer restore` restores them if the run is killed.

use std::path::PathBuf;

use weir_model::capability::Unavailable;

use super::HostParts;
use crate::prefetch::Switches;
use crate::root::Root;
use crate::steer::actuators::KernelAccess;
use crate::steer::{NotPutBack, SystemSettings};

/// The changes of a run; a drop restores everything.
#[derive(Debug)]
pub(super) struct RunChanges {
    root: Root,
    journal: Option<PathBuf>,
    settings: Option<SystemSettings>,
    /// What was restored of an earlier run.
    restored: Vec<String>,
}

impl RunChanges {
    /// No changes yet.
    pub fn of(host: &HostParts) -> Self {
        let of_switches = host.prefetchers.as_ref().map(Switches::root);
        Self {
            root: of_switches.unwrap_or(&host.root).clone(),
            journal: host.options.run_journal.clone(),
            settings: None,
            restored: Vec::new(),
        }
    }

    /// Makes a change.
    ///
    /// # Errors
    /// The kernel refuses, the journal cannot be written, or another measurement has it.
    pub fn make<T>(
        &mut self,
        change: impl FnOnce(&mut KernelAccess<'_>) -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        let settings = match &self.settings {
            Some(settings) => settings,
            None => {
                let folder = self.journal.as_deref().ok_or_else(|| {
                    Unavailable::because("no journal was named, by which it would be restored")
                })?;
                let opened = SystemSettings::open_for_run(&self.root, folder);
                let (settings, restored) =
                    opened.map_err(|why| Unavailable::because(why.to_string()))?;
                self.restored.extend(restored.done());
                self.restored.extend(restored.remarks());
                self.settings.insert(settings)
            }
        };
        settings.write(change)
    }

    /// What was restored of an earlier run that was killed, in words.
    pub fn restored(&self) -> &[String] {
        &self.restored
    }

    /// Restores everything, and returns what is left to other programs.
    ///
    /// # Errors
    /// Something could not be restored; the journal keeps it.
    pub fn end(self) -> Result<Vec<NotPutBack>, Unavailable> {
        self.settings
            .map_or(Ok(Vec::new()), SystemSettings::restore)
    }
}
