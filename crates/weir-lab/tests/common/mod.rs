//! A machine of formulas: two tiers whose every figure is known in advance, with noise drawn from
//! the seed that the machine was opened with. A tenant that is timed waits the longer the more the
//! one with it draws.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_lab::{Finished, Watcher};
use weir_model::access::{Locality, Op, Pattern};
use weir_model::action::{Action, Applied};
use weir_model::capability::{Capability, Feature};
use weir_model::counters::{Counter, CounterSet};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::{
    Goal, Identity, Machine, MachineError, MachineKind, Observation, Pacing, RunNotes,
    TenantProgress, Testbed,
};
use weir_model::tenant::{Placement, Stream, Tenant};
use weir_model::topology::{CacheLevel, Limits, Tier, TierKind, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, Gigahertz, Nanos};

/// Uncore clock of the toy, in GHz.
pub const UNCORE_GHZ: f64 = 2.0;
/// A saturated CXL device holds a request this many times its idle latency.
pub const CXL_BACKLOG: f64 = 9.0;
/// A page walk of a random hop.
pub const WALK_NS: f64 = 40.0;

/// What the toy's figures are.
#[derive(Debug, Clone)]
pub struct Toy {
    pub dram_ns: f64,
    pub dram_gbps: f64,
    pub cxl_ns: f64,
    pub cxl_gbps: f64,
    /// Loads from CXL fall to 0.7 of their peak past this many threads.
    pub cxl_declines_past: u32,
    /// Every machine that is opened is slower than the one before by this share.
    pub slower_each_time: f64,
    /// The CXL device goes away while the machine of this number runs: its pages move to DRAM.
    pub cxl_leaves_during: usize,
    /// Opened so far.
    pub opened: Arc<AtomicUsize>,
    /// The share that a tenant loses with another, and how far that is off to either side: by the seed, or in turn.
    pub loss: f64,
    pub loss_sways: f64,
    pub turns: Option<Arc<AtomicUsize>>,
    /// Half-width of the uniform noise, as a share.
    pub noise: f64,
    /// Machines that may run at once.
    pub parallelism: usize,
    pub cores: u32,
}

impl Default for Toy {
    fn default() -> Self {
        Self {
            dram_ns: 110.0,
            dram_gbps: 200.0,
            cxl_ns: 220.0,
            cxl_gbps: 20.0,
            cxl_declines_past: 12,
            slower_each_time: 0.0,
            cxl_leaves_during: usize::MAX,
            opened: Arc::default(),
            loss: 0.0,
            loss_sways: 0.0,
            turns: None,
            noise: 0.01,
            parallelism: 1,
            cores: 32,
        }
    }
}

impl Toy {
    pub fn topology(&self) -> Topology {
        let tier = |name: TierName, kind, capacity, read: f64, idle: f64| Tier {
            name,
            kind,
            node: None,
            capacity,
            description: "a formula".into(),
            limits: Some(Limits {
                read: GbPerSec(read * 1.2),
                write: GbPerSec(read * 1.2),
                total: GbPerSec(read * 1.2),
                idle: Some(Nanos(idle)),
                basis: "formula".into(),
            }),
            programs_left: None,
        };
        let cache = |name: &str, size, shared_by| CacheLevel {
            name: name.into(),
            size,
            ways: None,
            shared_by,
        };
        Topology {
            other_cores: Vec::new(),
            other_hosts: Vec::new(),
            processor: "toy".into(),
            sockets: 1,
            cores: (0..self.cores).collect(),
            clock: Some(Gigahertz(2.0)),
            allocation: None,
            caches: vec![
                cache("L1d", Bytes::kib(48), 1),
                cache("L2", Bytes::mib(2), 1),
                cache("L3", Bytes::mib(60), self.cores),
            ],
            tiers: vec![
                tier(
                    TierName::dram(),
                    TierKind::Dram,
                    Bytes::gib(128),
                    self.dram_gbps,
                    self.dram_ns,
                ),
                tier(
                    TierName::cxl(0),
                    TierKind::Cxl,
                    Bytes::gib(16),
                    self.cxl_gbps,
                    self.cxl_ns,
                ),
            ],
            page: Bytes::kib(4),
        }
    }
}

impl Testbed for Toy {
    fn open(&self, seed: u64) -> Result<Box<dyn Machine>, MachineError> {
        let before = self.opened.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(ToyMachine {
            toy: self.clone(),
            topology: self.topology(),
            running: Vec::new(),
            chance: seed,
            // One bit of the seed, mixed.
            up: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1,
            slower: 1.0 + self.slower_each_time * before as f64,
            before,
        }))
    }

    fn parallelism(&self) -> usize {
        self.parallelism
    }
}

struct ToyMachine {
    toy: Toy,
    topology: Topology,
    running: Vec<Tenant>,
    chance: u64,
    up: bool,
    slower: f64,
    before: usize,
}

impl ToyMachine {
    /// What a tenant with another keeps of its bandwidth.
    fn kept(&self) -> f64 {
        let sways = if self.up {
            self.toy.loss_sways
        } else {
            -self.toy.loss_sways
        };
        if self.running.len() > 1 {
            1.0 - self.toy.loss + sways
        } else {
            1.0
        }
    }

    /// A factor around 1.
    fn noise(&mut self) -> f64 {
        self.chance = self
            .chance
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let unit = (self.chance >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + self.toy.noise * (2.0 * unit - 1.0)
    }

    fn idle(&self, tenant: &Tenant) -> f64 {
        if is_cxl(tenant) {
            self.toy.cxl_ns
        } else {
            self.toy.dram_ns
        }
    }

    fn latency(&self, tenant: &Tenant) -> f64 {
        let idle = self.idle(tenant);
        match stream(tenant).pattern {
            Pattern::Chase { locality } => {
                let levels = [2.0, 6.0, 30.0];
                let fits = self
                    .topology
                    .caches
                    .iter()
                    .position(|cache| stream(tenant).working_set <= cache.size);
                let walk = match locality {
                    Locality::Random if stream(tenant).working_set > Bytes::mib(8) => WALK_NS,
                    _ => 0.0,
                };
                fits.map_or(idle, |level| levels[level]) + walk
            }
            // Between neighbours a line goes faster than between the ends of the chip.
            Pattern::SharedLine => {
                let apart = tenant.cores.iter().max().zip(tenant.cores.iter().min());
                40.0 + apart.map_or(0.0, |(high, low)| f64::from(high - low))
            }
            _ if stream(tenant).op == Op::StClwb => 2.6 * idle,
            _ => idle,
        }
    }

    /// Bytes of the program, with what the caches bring for it in the tier's way.
    fn bandwidth(&self, tenant: &Tenant) -> f64 {
        let threads = tenant.cores.len() as u32;
        let line = self.idle(tenant) / 12.0 + stream(tenant).pause.get();
        let one = 64.0 / line;
        let peak = if is_cxl(tenant) {
            self.toy.cxl_gbps
        } else {
            self.toy.dram_gbps
        };
        let declined =
            is_cxl(tenant) && stream(tenant).op == Op::Ld && threads > self.toy.cxl_declines_past;
        (one * f64::from(threads)).min(peak) * if declined { 0.7 } else { 1.0 } / wires(tenant)
    }

    /// Twice the idle latency at 9/10 of the peak, as in a queue.
    fn waiting(&self, timed: &Tenant) -> f64 {
        let beside = self
            .running
            .iter()
            .filter(|t| !stream(t).pattern.is_timed());
        let drawn: f64 = beside
            .filter(|t| is_cxl(t) == is_cxl(timed))
            .map(|t| self.bandwidth(t) * wires(t))
            .sum();
        let peak = if is_cxl(timed) {
            self.toy.cxl_gbps
        } else {
            self.toy.dram_gbps
        };
        let load = (drawn / peak).min(0.99);
        1.0 + load / (1.0 - load) / 9.0
    }
}

/// Bytes across the wires for each of the program.
fn wires(tenant: &Tenant) -> f64 {
    match &stream(tenant).reads {
        None => stream(tenant).op.traffic_factor(),
        Some(reads) => {
            let (loaded, touched) = (f64::from(reads.lines), f64::from(reads.per));
            (loaded + touched * stream(tenant).op.traffic_factor()) / (loaded + touched)
        }
    }
}

/// What a tenant does: this machine runs streams only.
fn stream(tenant: &Tenant) -> &Stream {
    tenant.work.stream().expect("a stream")
}

fn is_cxl(tenant: &Tenant) -> bool {
    tenant.placement == Placement::Bind(TierName::cxl(0))
}

impl Machine for ToyMachine {
    fn identity(&self) -> Identity {
        Identity {
            kind: MachineKind::Sim,
            name: "toy".into(),
            digest: "0".into(),
        }
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn capabilities(&self) -> &[Capability] {
        &[]
    }

    fn pacing(&self, _: Goal) -> Pacing {
        Pacing {
            warm_up: Nanos::from_micros(5.0),
            window: Nanos::from_micros(100.0),
            least_windows: 3,
            most_windows: 40,
            relative_ci: 0.005,
        }
    }

    fn start(&mut self, tenants: &[Tenant]) -> Result<(), MachineError> {
        if tenants.iter().any(|tenant| tenant.work.stream().is_none()) {
            return Err(MachineError::Request("only streams run here".into()));
        }
        let mut taken = Vec::new();
        for tenant in tenants {
            self.check(tenant)?;
            if is_cxl(tenant) && self.before > self.toy.cxl_leaves_during {
                return Err(MachineError::Gone {
                    tier: TierName::cxl(0),
                    reason: "the toy took it away".into(),
                });
            }
            for core in &tenant.cores {
                if taken.contains(core) || !self.topology.cores.contains(core) {
                    return Err(MachineError::Request(format!("core {core} is not free")));
                }
                taken.push(*core);
            }
        }
        self.running = tenants.to_vec();
        let timed = tenants.iter().any(|t| stream(t).pattern.is_timed());
        if let (Some(turns), 2, false) = (&self.toy.turns, tenants.len(), timed) {
            self.up = turns.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        }
        Ok(())
    }

    fn observe(&mut self, window: Nanos) -> Result<Observation, MachineError> {
        if self.running.is_empty() {
            return Err(MachineError::Request("nothing runs".into()));
        }
        let running = self.running.clone();
        let mut counters = CounterSet::default();
        counters.set(Counter::ChaClockticks, (window.get() * UNCORE_GHZ) as u64);
        let tenants = running.iter().map(|tenant| {
            let progress = self.progress(tenant, window);
            if is_cxl(tenant) {
                let backlog = if stream(tenant).pattern.is_timed() {
                    1.0
                } else {
                    CXL_BACKLOG
                };
                let cycles = self.toy.cxl_ns * backlog * UNCORE_GHZ;
                counters.set(Counter::TorInsertsIaMissCxl, progress.accesses);
                let occupancy = (progress.accesses as f64 * cycles) as u64;
                counters.set(Counter::TorOccupancyIaMissCxl, occupancy);
            }
            progress
        });
        let tenants = tenants.collect();
        Ok(Observation::of(window, tenants, counters))
    }

    fn act(&mut self, _: &Action) -> Result<Applied, MachineError> {
        Err(MachineError::Request("the toy has no knobs".into()))
    }

    fn stop(&mut self) -> Result<RunNotes, MachineError> {
        let running = std::mem::take(&mut self.running);
        if self.before == self.toy.cxl_leaves_during && running.iter().any(is_cxl) {
            return Err(MachineError::Misplaced {
                tier: TierName::cxl(0),
                misplaced: 1,
                pages: 1,
                detail: "1 on node 0".into(),
            });
        }
        Ok(RunNotes {
            conditions: vec!["formula".into()],
            warnings: Vec::new(),
        })
    }
}

impl ToyMachine {
    fn check(&self, tenant: &Tenant) -> Result<(), MachineError> {
        let feature = match stream(tenant).op {
            Op::Movdir64b => Some((Feature::Movdir64b, "the toy has no 64-byte stores")),
            Op::Dsa => Some((Feature::Dsa, "the toy has no accelerator")),
            _ => None,
        };
        if let Some((feature, reason)) = feature {
            let reason = reason.into();
            return Err(MachineError::Missing { feature, reason });
        }
        for name in tenant.placement.tiers() {
            let tier = self.topology.tier(name);
            let tier = tier.ok_or_else(|| MachineError::no_such_tier(name, &self.topology))?;
            let wanted = Bytes(stream(tenant).working_set.get() * tenant.cores.len() as u64);
            if wanted > tier.capacity {
                return Err(MachineError::NoMemory {
                    tier: tier.name.clone(),
                    free: tier.capacity,
                    wanted,
                    within: None,
                });
            }
        }
        Ok(())
    }

    fn progress(&mut self, tenant: &Tenant, window: Nanos) -> TenantProgress {
        let mut progress = TenantProgress::default();
        let noise = self.noise();
        if stream(tenant).pattern.is_timed() {
            let mut latency = LatencyHistogram::new();
            let mean = self.latency(tenant) * self.waiting(tenant) * self.slower * noise;
            progress.accesses = (window.get() / mean) as u64;
            latency.record_many(Nanos(mean), progress.accesses);
            progress.latency = Some(latency);
        } else {
            let gbps = self.bandwidth(tenant) / self.slower * noise * self.kept();
            progress.accesses = (gbps * window.get() / 64.0) as u64;
        }
        progress.bytes = Bytes(progress.accesses * 64);
        progress
    }
}

/// Counts what it sees and says stop after a number of points.
pub struct StopAfter {
    pub points: usize,
    pub seen: AtomicUsize,
}

impl StopAfter {
    pub fn new(points: usize) -> Self {
        Self {
            points,
            seen: AtomicUsize::new(0),
        }
    }
}

impl Watcher for StopAfter {
    fn finished(&self, _: &Finished, _: usize) {
        self.seen.fetch_add(1, Ordering::SeqCst);
    }

    fn stop(&self) -> bool {
        self.seen.load(Ordering::SeqCst) >= self.points
    }
}
