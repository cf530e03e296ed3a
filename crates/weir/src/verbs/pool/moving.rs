//! One slice into a VM, out of it, and back to the pool.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_plan::pool::owners::{Stage, Vm};

use super::dimm::{self, Unplugged};
use super::manager::{Manager, Repair};
use super::steps::{Done, Reached};
use super::world::Monitor;

/// How long a QEMU may keep memory mapped that it no longer has: it unmaps when none of its threads can look at it.
const UNMAP: Duration = Duration::from_secs(10);
/// The interval at which that is looked at.
const LOOK: Duration = Duration::from_millis(5);

impl Manager<'_> {
    /// Puts a permitted slice into a VM.
    pub(super) fn plug(&mut self, at: usize, vm: &Vm) -> std::result::Result<Done, Repair> {
        let began = Instant::now();
        let (range, path) = (self.pool.range(at), self.pool.file.path().to_owned());
        let limit = self.limit;
        let reached = &mut *self.reached;
        let monitor = of(&mut self.monitors, vm)?;
        let plugged = dimm::plug(monitor, at, &path, &range, vm.node, limit, &mut |step| {
            reached(at, step)
        });
        let guest_s = match plugged {
            Ok(online) => {
                if online.is_none() {
                    self.left.push(format!(
                        "slice {at}: the guest at {} has not brought it online in {:.0} s; it is the guest's as soon as its \
                         kernel does",
                        vm.socket,
                        limit.as_secs_f64()
                    ));
                }
                online.map(|time| time.as_secs_f64())
            }
            // It was never in the guest.
            Err(dimm::Failed::Refused(why)) => {
                self.pool
                    .change(|owners| owners.offline(at))
                    .map_err(Repair::End)?;
                self.clear_and_scrub(at)?;
                return Err(Repair::Left(why));
            }
            Err(dimm::Failed::Unknown(why)) => return Err(Repair::Left(why)),
            Err(dimm::Failed::Stopped(failure)) => return Err(Repair::End(failure)),
        };
        self.pool
            .change(|owners| owners.online(at))
            .map_err(Repair::End)?;
        self.reach(at, Reached::Online)?;
        Ok(Done {
            what: "added",
            guest_s,
            scrub_s: None,
            total_s: began.elapsed().as_secs_f64(),
        })
    }

    /// Takes a slice out of a VM which was asked for it, clears and scrubs it.
    pub(super) fn unplug(&mut self, at: usize, vm: &Vm) -> std::result::Result<Done, Repair> {
        let began = Instant::now();
        let limit = self.limit;
        let reached = &mut *self.reached;
        let monitor = of(&mut self.monitors, vm)?;
        match dimm::unplug(monitor, at, limit, &mut |step| reached(at, step)) {
            Ok(Unplugged::Gone) => {}
            Ok(Unplugged::Kept(why)) => {
                self.pool
                    .change(|owners| owners.kept(at))
                    .map_err(Repair::End)?;
                self.reach(at, Reached::Kept)?;
                return Err(Repair::Left(why));
            }
            Err(dimm::Failed::Refused(why) | dimm::Failed::Unknown(why)) => {
                return Err(Repair::Left(why));
            }
            Err(dimm::Failed::Stopped(failure)) => return Err(Repair::End(failure)),
        }
        let guest_s = began.elapsed().as_secs_f64();
        self.pool
            .change(|owners| owners.offline(at))
            .map_err(Repair::End)?;
        self.reach(at, Reached::Offline)?;
        let done = self.clear_and_scrub(at)?;
        Ok(Done {
            guest_s: Some(guest_s),
            total_s: began.elapsed().as_secs_f64(),
            ..done
        })
    }

    /// Takes a slice that no guest uses from every QEMU, makes it zero, and frees it.
    pub(super) fn clear_and_scrub(&mut self, at: usize) -> std::result::Result<Done, Repair> {
        let began = Instant::now();
        let slice = self.pool.owners().slices()[at].clone();
        let range = self.pool.range(at);
        if slice.stage == Stage::Clearing {
            if let Some(vm) = slice.vm.filter(|vm| self.world.runs(vm)) {
                self.monitor_of(&vm)?;
                dimm::remove(of(&mut self.monitors, &vm)?, at)
                    .map_err(|error| Repair::Left(error.to_string()))?;
                self.reach(at, Reached::Removed)?;
            }
            self.wait_until_unmapped(at)?;
            self.pool
                .change(|owners| owners.cleared(at))
                .map_err(Repair::End)?;
            self.reach(at, Reached::Cleared)?;
        }
        let scrub = Instant::now();
        let name = self.pool.file.path().display().to_string();
        let failed = |error| Repair::Left(format!("cannot scrub it in {name}: {error}"));
        self.pool.file.scrub(&range).map_err(failed)?;
        self.reach(at, Reached::Scrubbed)?;
        if let Some(byte) = self.pool.file.first_not_zero(&range).map_err(failed)? {
            return Err(Repair::Left(format!(
                "byte {byte} of {name} is not zero after it was scrubbed; a program may write there"
            )));
        }
        let scrub_s = scrub.elapsed().as_secs_f64();
        self.pool
            .change(|owners| owners.scrubbed(at))
            .map_err(Repair::End)?;
        self.reach(at, Reached::Free)?;
        Ok(Done {
            what: "released",
            guest_s: None,
            scrub_s: Some(scrub_s),
            total_s: began.elapsed().as_secs_f64(),
        })
    }

    fn wait_until_unmapped(&mut self, at: usize) -> std::result::Result<(), Repair> {
        let range = self.pool.range(at);
        let until = Instant::now() + UNMAP.min(self.limit);
        loop {
            let mapped = self.world.mapped_by(&self.pool.file, &range);
            let mapped =
                mapped.map_err(|error| Repair::Left(format!("cannot read /proc: {error}")))?;
            let Some(pid) = mapped.first() else {
                return Ok(());
            };
            if Instant::now() >= until {
                return Err(Repair::Left(format!(
                    "process {pid} still has it mapped; end that process, then `weir pool recover`"
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Connects to a VM, once.
    pub(super) fn monitor_of(&mut self, vm: &Vm) -> std::result::Result<(), Repair> {
        if let Entry::Vacant(entry) = self.monitors.entry(vm.socket.clone()) {
            match self.world.connect(Path::new(&vm.socket)) {
                Ok(monitor) => {
                    entry.insert(Some(monitor));
                }
                Err(error) => {
                    entry.insert(None);
                    return Err(Repair::Left(error.to_string()));
                }
            }
        }
        of(&mut self.monitors, vm).map(|_| ())
    }
}

/// The connection to a VM, if it is that VM which answers.
fn of<'m>(
    monitors: &'m mut BTreeMap<String, Option<Box<dyn Monitor>>>,
    vm: &Vm,
) -> std::result::Result<&'m mut dyn Monitor, Repair> {
    let left = |why: String| Repair::Left(why);
    let Some(Some(monitor)) = monitors.get_mut(&vm.socket) else {
        return Err(left(format!("the VM at {} does not answer", vm.socket)));
    };
    let found = monitor.process().map_err(|error| left(error.to_string()))?;
    if (found.pid, found.started) != (vm.pid, vm.started) {
        return Err(left(format!(
            "another VM, process {}, answers at {}, and process {} still runs",
            found.pid, vm.socket, vm.pid
        )));
    }
    Ok(monitor.as_mut())
}
