//! Gives slices to VMs and takes them back, in the order of `weir-plan/src/pool/owners.rs`.
//!
//! Each step is written into the table before the next one begins. A manager that was killed is followed by another
//! one, which first finishes what was under way ([`Manager::repair`]): what a QEMU has is asked of it, so that each
//! step may be done again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use weir_linux::vm::qmp::QmpError;
use weir_model::number;
use weir_plan::pool::owners::{Slice, Stage, Vm};

use super::dimm;
use super::steps::{Did, Done, Reached, Which};
use super::table::Pool;
use super::world::{Monitor, World};
use crate::failure::{Failure, Result};

impl From<QmpError> for Failure {
    fn from(error: QmpError) -> Self {
        match error {
            QmpError::Connect { .. } | QmpError::NotQmp { .. } => Failure::Request(error.into()),
            _ => Failure::Work(error.into()),
        }
    }
}

/// A manager of a pool.
pub struct Manager<'a> {
    /// The pool.
    pub pool: Pool,
    /// What was done, slice by slice.
    pub did: Vec<Did>,
    /// What could not be done, in words.
    pub left: Vec<String>,
    pub(super) world: &'a mut dyn World,
    /// Called after each step; ends the work if it fails.
    pub(super) reached: &'a mut dyn FnMut(usize, Reached) -> Result<()>,
    /// How long a guest may take.
    pub(super) limit: Duration,
    /// QEMU answers one client at a time, so that each has one connection. `None` where it could not be had.
    pub(super) monitors: BTreeMap<String, Option<Box<dyn Monitor>>>,
}

impl<'a> Manager<'a> {
    /// A manager that has done nothing yet.
    pub fn of(
        pool: Pool,
        world: &'a mut dyn World,
        limit: Duration,
        reached: &'a mut dyn FnMut(usize, Reached) -> Result<()>,
    ) -> Self {
        Self {
            pool,
            did: Vec::new(),
            left: Vec::new(),
            world,
            reached,
            limit,
            monitors: BTreeMap::new(),
        }
    }

    /// The running VM at a socket. Its node is the one that was given, that of the slices which it has,
    /// the one without processors, or 0.
    ///
    /// # Errors
    /// No process answers there.
    pub fn vm_at(&mut self, socket: &Path, node: Option<u32>) -> Result<Vm> {
        let absolute = std::path::absolute(socket)
            .map_err(|error| Failure::request(format!("{}: {error}", socket.display())))?;
        let name = absolute.display().to_string();
        let mut monitor = match self.monitors.remove(&name).flatten() {
            Some(monitor) => monitor,
            None => self.world.connect(&absolute)?,
        };
        let process = monitor.process()?;
        let without = dimm::node_without_processors(monitor.as_mut())?;
        self.monitors.insert(name.clone(), Some(monitor));
        let known = self.pool.owners().slices().iter().find_map(|slice| {
            let vm = slice.vm.as_ref()?;
            (vm.pid == process.pid && vm.started == process.started).then_some(vm.node)
        });
        Ok(Vm {
            socket: name,
            pid: process.pid,
            started: process.started,
            node: node.or(known).or(without).unwrap_or(0),
        })
    }

    /// Finishes what an earlier manager began, and takes back the slices of VMs that have ended. What cannot be
    /// finished now is noted, and stays as it is.
    ///
    /// # Errors
    /// The table cannot be written, or the work was stopped.
    pub fn repair(&mut self) -> Result<()> {
        let world = &*self.world;
        let gone = |slice: &Slice| slice.vm.as_ref().is_some_and(|vm| !world.runs(vm));
        let wanted = self
            .pool
            .owners()
            .which(|slice| slice.stage.is_under_way() || gone(slice));
        for at in wanted {
            match self.repair_one(at) {
                // A table that cannot be written, or a stop, ends everything.
                Err(Repair::End(failure)) => return Err(failure),
                Err(Repair::Left(why)) => self.left.push(format!("slice {at}: {why}")),
                Ok(done) => self.note(at, done),
            }
        }
        Ok(())
    }

    fn repair_one(&mut self, at: usize) -> std::result::Result<Done, Repair> {
        let slice = self.pool.owners().slices()[at].clone();
        let runs = slice.vm.as_ref().is_some_and(|vm| self.world.runs(vm));
        match (slice.stage, slice.vm) {
            (Stage::Adding, Some(vm)) if runs => {
                self.monitor_of(&vm)?;
                Ok(self.plug(at, &vm)?)
            }
            (Stage::Releasing, Some(vm)) if runs => {
                self.monitor_of(&vm)?;
                match self.unplug(at, &vm) {
                    // The refusal may be the guest's answer to the manager that was killed: it is asked once more.
                    Err(Repair::Left(_))
                        if self.pool.owners().slices()[at].stage == Stage::Owned =>
                    {
                        self.pool
                            .change(|owners| owners.ask_back(at))
                            .map_err(Repair::End)?;
                        self.reach(at, Reached::AskedBack)?;
                        self.unplug(at, &vm)
                    }
                    done => done,
                }
            }
            (stage, _) => {
                if matches!(stage, Stage::Adding | Stage::Owned | Stage::Releasing) {
                    self.pool
                        .change(|owners| owners.offline(at))
                        .map_err(Repair::End)?;
                    self.reach(at, Reached::Offline)?;
                }
                Ok(self.clear_and_scrub(at)?)
            }
        }
    }

    /// Gives free slices to a VM.
    ///
    /// # Errors
    /// Not enough are free, or QEMU refuses one; those before it stay with the VM.
    pub fn add(&mut self, vm: &Vm, count: usize) -> Result<()> {
        self.check_free(count)?;
        for _ in 0..count {
            for at in self.take(vm, 1)? {
                let done = self.plug(at, vm).map_err(Failure::from)?;
                self.note(at, done);
            }
        }
        Ok(())
    }

    /// Refuses to begin what cannot be finished.
    fn check_free(&self, count: usize) -> Result<Vec<usize>> {
        let owners = self.pool.owners();
        let mut free = owners.which(|slice| slice.stage == Stage::Free);
        if free.len() >= count {
            free.truncate(count);
            return Ok(free);
        }
        let under_way = owners.which(|slice| slice.stage.is_under_way()).len();
        let more = match under_way {
            0 => String::new(),
            n => format!("; {n} more are not given back yet, see `weir pool status`"),
        };
        Err(Failure::work(format!(
            "the request is for {}, and {} of {} are free{more}",
            number::count(count as u64, "slice"),
            free.len(),
            owners.slices().len(),
        )))
    }

    /// Permits a VM to use free slices, which it may map when this returns.
    ///
    /// # Errors
    /// Not enough are free.
    pub fn take(&mut self, vm: &Vm, count: usize) -> Result<Vec<usize>> {
        let free = self.check_free(count)?;
        self.pool
            .change(|owners| free.iter().try_for_each(|&at| owners.permit(at, vm)))?;
        for &at in &free {
            (self.reached)(at, Reached::Permitted)?;
            let room = self.pool.file.reserve(&self.pool.range(at));
            if let Err(error) = room {
                for &at in &free {
                    self.pool.change(|owners| owners.offline(at))?;
                    self.clear_and_scrub(at).map_err(Failure::from)?;
                }
                return Err(Failure::work(format!(
                    "there is no room for slice {at} in the file system of {}: {error}",
                    self.pool.file.path().display()
                )));
            }
            (self.reached)(at, Reached::Reserved)?;
        }
        Ok(free)
    }

    /// Takes slices back from a VM. Where it refuses one, the next is tried.
    ///
    /// # Errors
    /// The VM does not have as many, or refuses too many.
    pub fn release(&mut self, vm: &Vm, which: Which) -> Result<()> {
        let is_its = |slice: &Slice| {
            let its = slice.vm.as_ref();
            let its = its.is_some_and(|of| of.pid == vm.pid && of.started == vm.started);
            its && slice.stage == Stage::Owned
        };
        let mut its = self.pool.owners().which(is_its);
        // The newest is the likeliest to be unused.
        its.reverse();
        let count = match which {
            Which::Count(count) => count,
            Which::Slice(at) => {
                its.retain(|&of| of == at);
                if its.is_empty() {
                    return Err(Failure::request(format!(
                        "the VM at {} does not have slice {at}; `weir pool status` says which VM has which",
                        vm.socket
                    )));
                }
                1
            }
        };
        if its.len() < count {
            return Err(Failure::request(format!(
                "the VM at {} has {}; {count} cannot be taken back",
                vm.socket,
                number::count(its.len() as u64, "slice")
            )));
        }
        let mut refusals = Vec::new();
        let mut back = 0;
        for at in its {
            if back == count {
                break;
            }
            self.pool.change(|owners| owners.ask_back(at))?;
            (self.reached)(at, Reached::AskedBack)?;
            match self.unplug(at, vm) {
                Ok(done) => {
                    self.note(at, done);
                    back += 1;
                }
                Err(Repair::Left(why)) => refusals.push(format!("slice {at}: {why}")),
                Err(Repair::End(failure)) => return Err(failure),
            }
        }
        if back == count {
            self.left.extend(refusals);
            return Ok(());
        }
        Err(Failure::work(format!(
            "{back} of {} came back from {}; {}",
            number::count(count as u64, "slice"),
            vm.socket,
            refusals.join("; ")
        )))
    }

    pub(super) fn reach(&mut self, at: usize, step: Reached) -> std::result::Result<(), Repair> {
        (self.reached)(at, step).map_err(Repair::End)
    }

    pub(super) fn note(&mut self, at: usize, done: Done) {
        let vm = self.pool.owners().slices()[at].vm.as_ref();
        self.did.push(Did::of(at, done, vm));
    }
}

/// Why a slice is not done with.
pub(super) enum Repair {
    /// This slice stays as it is, for this reason.
    Left(String),
    /// Nothing more can be done.
    End(Failure),
}

impl From<Repair> for Failure {
    fn from(repair: Repair) -> Self {
        match repair {
            Repair::Left(why) => Failure::work(why),
            Repair::End(failure) => failure,
        }
    }
}
