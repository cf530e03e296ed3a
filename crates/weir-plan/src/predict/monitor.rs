//! The monitor of quality of service: finds VMs that touch pool memory against the prediction and are slowed by it, and gives
//! each local memory once (Pond, sections 4.2 and 4.3, part B).
//!
//! [`Monitor::look`] decides from readings alone. [`simulate`] replays a trace with it, besides the replay of `weir plan pool`:
//!
//! | what | value | source |
//! |---|---|---|
//! | time between looks | 30 min | Pond, section 5: the hypervisor's access bits are scanned that often (PON-065) |
//! | copying a GiB to local memory | 50 ms | Pond, section 4.2 |
//! | VMs that touch their pool memory and are slowed | a quarter | Pond, section 6.5 (PON-098) |
//! | when a VM touches its memory | on arrival | assumed: traces say how much it touches, not when |
//! | whether counters tell a slowed VM | always | assumed |
//! | local memory of a machine | its memory, less the mean share of the pool | assumed: Pond does not say how it is bought |

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::untouched::{Predicted, is_over};
use crate::pool::cluster::Cluster;
use crate::pool::split::SLOWED;
use crate::trace::{GIB, Machine, STAYS, Trace};
use weir_model::random::Random;

/// How the monitor works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Monitor {
    /// Seconds between two looks at a VM.
    pub every_s: u32,
    /// Milliseconds in which a GiB is copied to local memory.
    pub copy_ms: u32,
}

impl Default for Monitor {
    fn default() -> Self {
        Self {
            every_s: 1800,
            copy_ms: 50,
        }
    }
}

/// Where a VM's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// Local memory, in MiB.
    pub local_mib: u32,
    /// Memory in the pool, in MiB.
    pub pool_mib: u32,
    /// Whether it was repaired.
    pub repaired: bool,
}

/// What is seen of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Memory that it has touched, in MiB.
    pub touched_mib: u32,
    /// Whether its counters say that it is slowed by more than the margin.
    pub slowed: bool,
    /// Local memory that its machine has free, in MiB.
    pub free_local_mib: u32,
}

/// What is done about a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and its counters are not asked: it touches local memory only.
    Fits,
    /// Nothing: its counters say that it is not slowed, or it was repaired before.
    Keep,
    /// Its pool memory is copied to local memory of its machine.
    Copy,
    /// It is migrated to a machine that has local memory for all of it.
    Migrate,
}

impl Monitor {
    /// Looks at a VM. Local memory is used first, so that a VM touches its pool from its local size on.
    pub fn look(&self, vm: &Watched, reading: Reading) -> Decision {
        if vm.pool_mib == 0 || reading.touched_mib <= vm.local_mib {
            return Decision::Fits;
        }
        if vm.repaired || !reading.slowed {
            return Decision::Keep;
        }
        match reading.free_local_mib >= vm.pool_mib {
            true => Decision::Copy,
            false => Decision::Migrate,
        }
    }

    /// How long copying takes.
    pub fn copy_time_ms(&self, mib: u32) -> f64 {
        f64::from(mib) / f64::from(GIB) * f64::from(self.copy_ms)
    }
}

/// What the monitor did at one target of over-predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MonitorRow {
    /// The cluster.
    pub cluster: String,
    /// Over-predictions that are allowed.
    pub target_pct: f64,
    /// VMs with pool memory.
    pub vms: u64,
    /// VMs that touch it, whose counters are asked.
    pub asked: u64,
    /// Those of them that are slowed by more than the margin.
    pub slowed: u64,
    /// VMs whose pool memory was copied to their machine.
    pub copied: u64,
    /// VMs that went to another machine, since theirs had no room.
    pub migrated: u64,
    /// Looks at which no machine had room for a slowed VM; it is tried again at the next.
    pub no_room: u64,
    /// Slowed VMs that left before they were repaired.
    pub left: u64,
    /// VMs that were repaired, of all that arrived.
    pub repaired_pct: f64,
    /// Mean time of a copy; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_mean_ms: Option<f64>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_most_ms: Option<f64>,
    /// Mean time from the arrival of a VM to its repair; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_mean_s: Option<f64>,
}

/// A trace whose days have predictions, on the machines of a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'t> {
    /// Its name.
    pub cluster: &'t str,
    /// The VMs.
    pub trace: &'t Trace,
    /// What was predicted for them.
    pub predicted: &'t [Predicted],
    /// The size of a machine.
    pub machine: Machine,
    /// How many there are.
    pub machines: usize,
    /// What decides which VMs are slowed.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Leave,
    Look,
}

/// Watches the VMs of the days that have predictions, for one target by its place and its percent; other VMs are all local.
pub fn simulate(
    watch: &Watch<'_>,
    (target, target_pct): (usize, f64),
    monitor: &Monitor,
) -> MonitorRow {
    let trace = watch.trace;
    let slices = slices(watch, target);
    let smallest = trace.vms().map(|vm| vm.millicores).min().unwrap_or(1);
    let mut state = State {
        cluster: Cluster::new(watch.machine, watch.machines, smallest),
        local_used: vec![0; watch.machines],
        cores_used: vec![0; watch.machines],
        local_size: local_size(watch, &slices),
        millicores: watch.machine.millicores,
        there: (0..trace.len()).map(|_| None).collect(),
        counted: Counted::default(),
    };
    let mut events: BinaryHeap<Reverse<(u32, Event, usize)>> = BinaryHeap::new();
    let mut judged = 0u64;
    for (place, vm) in trace.vms().enumerate() {
        while let Some(&Reverse((at, event, of))) =
            events.peek().filter(|next| next.0.0 <= vm.arrival)
        {
            events.pop();
            state.on(watch, monitor, (at, event, of), &mut events);
        }
        judged += u64::from(slices[place].is_some());
        let Some(host) = state.cluster.best_fit(&vm) else {
            continue;
        };
        state.cluster.add(host, &vm);
        let pool_mib = slices[place].unwrap_or(0) * GIB;
        let local_mib = vm.memory_mib - pool_mib.min(vm.memory_mib);
        state.local_used[host] += u64::from(local_mib);
        state.cores_used[host] += vm.millicores;
        // Its own random number: what happens to one VM does not change another.
        let mut random =
            Random::new(watch.seed ^ (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let over = is_over(&vm, pool_mib / GIB);
        let slowed = over && random.share() < SLOWED;
        state.there[place] = Some(There {
            host,
            watched: Watched {
                local_mib,
                pool_mib,
                repaired: false,
            },
            slowed,
        });
        state.counted.vms += u64::from(pool_mib > 0);
        state.counted.asked += u64::from(over);
        state.counted.slowed += u64::from(slowed);
        if vm.departure != STAYS {
            events.push(Reverse((vm.departure, Event::Leave, place)));
        }
        // One that fits is looked at as well, but nothing comes of it.
        if over {
            let first = (vm.arrival / monitor.every_s + 1).saturating_mul(monitor.every_s);
            events.push(Reverse((first, Event::Look, place)));
        }
    }
    let end = trace.last_arrival();
    while let Some(Reverse((at, event, of))) = events.pop().filter(|next| next.0.0 <= end) {
        state.on(watch, monitor, (at, event, of), &mut events);
    }
    state.counted.row(watch.cluster, target_pct, judged)
}

/// Slices of each VM; `None` where nothing was predicted.
fn slices(watch: &Watch<'_>, target: usize) -> Vec<Option<u32>> {
    let mut slices = vec![None; watch.trace.len()];
    for day in watch.predicted {
        let Some(of_target) = day.slices.get(target) else {
            continue;
        };
        for (place, predicted) in day.places.clone().zip(of_target) {
            slices[place] = Some(*predicted);
        }
    }
    slices
}

/// Local memory of a machine in MiB: what is left of it when the mean share of the pool is not bought.
fn local_size(watch: &Watch<'_>, slices: &[Option<u32>]) -> u64 {
    let (mut pool, mut all) = (0.0, 0.0);
    for (vm, slices) in watch.trace.vms().zip(slices) {
        if let Some(slices) = slices {
            pool += f64::from(*slices) * f64::from(GIB);
            all += f64::from(vm.memory_mib);
        }
    }
    let share = 1.0 - pool / f64::max(all, 1.0);
    (f64::from(watch.machine.memory_mib) * share).ceil() as u64
}

#[derive(Debug, Clone, Copy)]
struct There {
    host: usize,
    watched: Watched,
    slowed: bool,
}

struct State {
    cluster: Cluster,
    local_used: Vec<u64>,
    cores_used: Vec<u32>,
    local_size: u64,
    millicores: u32,
    /// VMs that are there, by their places in the trace.
    there: Vec<Option<There>>,
    counted: Counted,
}

#[derive(Debug, Default)]
struct Counted {
    vms: u64,
    asked: u64,
    slowed: u64,
    copied: u64,
    migrated: u64,
    no_room: u64,
    left: u64,
    copy_ms: f64,
    copy_most_ms: f64,
    found_s: f64,
}

impl Counted {
    fn row(&self, cluster: &str, target_pct: f64, judged: u64) -> MonitorRow {
        let repaired = self.copied + self.migrated;
        let copied = self.copied as f64;
        MonitorRow {
            cluster: cluster.to_owned(),
            target_pct,
            vms: self.vms,
            asked: self.asked,
            slowed: self.slowed,
            copied: self.copied,
            migrated: self.migrated,
            no_room: self.no_room,
            left: self.left,
            repaired_pct: 100.0 * repaired as f64 / judged.max(1) as f64,
            copy_mean_ms: (self.copied > 0).then(|| self.copy_ms / copied),
            copy_most_ms: (self.copied > 0).then_some(self.copy_most_ms),
            found_mean_s: (repaired > 0).then(|| self.found_s / repaired as f64),
        }
    }
}

impl State {
    fn on(
        &mut self,
        watch: &Watch<'_>,
        monitor: &Monitor,
        (at, event, place): (u32, Event, usize),
        events: &mut BinaryHeap<Reverse<(u32, Event, usize)>>,
    ) {
        let (Some(mut there), Some(vm)) = (self.there[place], watch.trace.get(place)) else {
            return;
        };
        if event == Event::Leave {
            self.cluster
                .remove(there.host, vm.millicores, vm.memory_mib);
            self.local_used[there.host] -= u64::from(there.watched.local_mib);
            self.cores_used[there.host] -= vm.millicores;
            self.counted.left += u64::from(there.slowed && !there.watched.repaired);
            self.there[place] = None;
            return;
        }
        let free = |local_used: u64| {
            (self.local_size.saturating_sub(local_used)).min(u64::from(u32::MAX)) as u32
        };
        let reading = Reading {
            touched_mib: (u64::from(vm.memory_mib) * u64::from(vm.touched_pct.min(100)))
                .div_ceil(100) as u32,
            slowed: there.slowed,
            free_local_mib: free(self.local_used[there.host]),
        };
        let pool = there.watched.pool_mib;
        match monitor.look(&there.watched, reading) {
            Decision::Fits | Decision::Keep => return,
            Decision::Copy => {
                let ms = monitor.copy_time_ms(pool);
                self.local_used[there.host] += u64::from(pool);
                self.counted.copied += 1;
                self.counted.copy_ms += ms;
                self.counted.copy_most_ms = self.counted.copy_most_ms.max(ms);
            }
            Decision::Migrate => {
                // The machine that is left keeps the memory of the VM out of the search only by its own size.
                let has_room = |host: &usize| {
                    *host != there.host
                        && self.local_size.saturating_sub(self.local_used[*host])
                            >= u64::from(vm.memory_mib)
                        && self.millicores - self.cores_used[*host] >= vm.millicores
                        && self.cluster.used_memory(*host) + vm.memory_mib
                            <= watch.machine.memory_mib
                };
                let Some(to) = (0..self.local_used.len()).find(has_room) else {
                    self.counted.no_room += 1;
                    let next = at.saturating_add(monitor.every_s);
                    events.push(Reverse((next, Event::Look, place)));
                    return;
                };
                self.cluster
                    .remove(there.host, vm.millicores, vm.memory_mib);
                self.local_used[there.host] -= u64::from(there.watched.local_mib);
                self.cores_used[there.host] -= vm.millicores;
                self.cluster.add(to, &vm);
                self.local_used[to] += u64::from(vm.memory_mib);
                self.cores_used[to] += vm.millicores;
                there.host = to;
                self.counted.migrated += 1;
            }
        }
        self.counted.found_s += f64::from(at - vm.arrival);
        there.watched = Watched {
            local_mib: vm.memory_mib,
            pool_mib: 0,
            repaired: true,
        };
        self.there[place] = Some(there);
        // A repaired VM is looked at again, and found to fit.
        let next = at.saturating_add(monitor.every_s);
        events.push(Reverse((next, Event::Look, place)));
    }
}

#[cfg(test)]
mod tests;
