//! Pairs of bandwidth tests on the platforms of the library, one on each tier.

#![allow(dead_code, reason = "each test file uses its part")]

use std::fmt;

use weir_model::access::{Op, Pattern};
use weir_model::machine::Testbed;
use weir_model::platform::{Library, Platform};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::{Bytes, Nanos};
use weir_sim::{Sampling, SimTestbed};
use weir_steer::control_loop::{Step, run_phases};
use weir_steer::controllers::{Tuning, Weir, WeirConfig};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::knee::{Criteria, Knee, Measure};
use weir_steer::steered::{Phase, SteeredTenant};
use weir_steer::{Controller, Decision, Readings, Role, Share, Why};

/// A quarter of a second, as on a server.
pub const WINDOW: Nanos = Nanos(250e6);
/// What `cpu.max` has as its period by default.
pub const PERIOD: Nanos = Nanos(100e6);
/// Windows under control.
const WINDOWS: u32 = 12;
/// Windows alone; the first one is not counted.
const ALONE: u32 = 4;

/// Every host of the library that has CXL memory, and every device on a server that it was measured on.
pub fn platforms() -> &'static [&'static str] {
    &[
        "miku-a",
        "miku-b",
        "interplay-a",
        "interplay-b",
        "memo",
        "eurosys24",
        "micro23",
        "micro23-snc4",
        "micro23+micro23-b",
        "micro23+micro23-c",
        "emr2s+cxl-a",
        "emr2s+cxl-b",
        "emr2s+cxl-c",
        "emr2s+cxl-d",
        "spr2s+cxl-a",
        "skx2s+cxl-b",
    ]
}

/// The actuators, and the values that are known before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// Bandwidth allocation in the platform's steps; the device was measured alone.
    Allocation,
    /// The same without a measurement: the second time that the limit is needed counts.
    AllocationAlone,
    /// Cores and time; the device was measured alone.
    Cores,
}

/// The result of a pair, as parts of what each tenant gets alone.
#[derive(Debug, Clone)]
pub struct Cell {
    on: String,
    op: Op,
    /// Without control.
    free: (f64, f64),
    /// The fast tier, in the mean of the last windows.
    pub fast: f64,
    /// The slow tier.
    pub slow: f64,
    /// Windows after which the limit stays within 3 % of the last.
    pub settled: u32,
    /// The same for the first time, when nothing was known.
    pub learnt: u32,
    /// The difference of the fast tier between the halves of the rest.
    pub swings: f64,
    /// Windows from the end of the protected tenant until no tenant is limited.
    pub released: u32,
    /// The effect of one step of the actuator at the limit in force.
    step: f64,
}

/// Two tenants on a platform, and what each of them gets alone.
pub struct Pair<'a> {
    bench: &'a Bench,
    op: Op,
    participants: [SteeredTenant; 2],
    alone: (f64, f64),
}

impl<'a> Pair<'a> {
    pub fn new(bench: &'a Bench, op: Op) -> Self {
        let participants = [bench.fast(op), bench.slow(op)];
        let solo = |steered: &SteeredTenant| {
            let steps = bench.play(&mut Free, &[(ALONE, vec![steered.clone()])]);
            mean(&steps[1..], 0)
        };
        Self {
            alone: (solo(&participants[0]), solo(&participants[1])),
            bench,
            op,
            participants,
        }
    }

    /// Both without control, as parts of what each gets alone.
    fn free(&self) -> (f64, f64) {
        let steps = self
            .bench
            .play(&mut Free, &[(ALONE, self.participants.to_vec())]);
        self.part(&steps[1..])
    }

    fn part(&self, steps: &[Step]) -> (f64, f64) {
        (mean(steps, 0) / self.alone.0, mean(steps, 1) / self.alone.1)
    }

    /// Both under a controller, and then the restrained tenant by itself.
    pub fn run(&self, controller: &mut dyn Controller) -> Vec<Step> {
        let [_, slow] = &self.participants;
        let episode = [
            (WINDOWS, self.participants.to_vec()),
            (3, vec![slow.clone()]),
        ];
        let times = match self.bench.knees.is_empty() {
            true => 2,
            false => 1,
        };
        self.bench.play(controller, &vec![episode; times].concat())
    }

    /// The windows under control of the last episode of a run, and those after them.
    fn last_episode(steps: &[Step]) -> (&[Step], &[Step]) {
        steps[steps.len() - (WINDOWS + 3) as usize..].split_at(WINDOWS as usize)
    }

    /// The mean of the last windows of a run, as parts of what each tenant gets alone.
    pub fn kept(&self, steps: &[Step]) -> (f64, f64) {
        self.part(&Self::last_episode(steps).0[4..])
    }
}

impl Cell {
    /// A pair on a platform.
    pub fn measure(on: &str, op: Op, given: Given, seed: u64) -> Self {
        let bench = Bench::new(on, given, seed);
        let pair = Pair::new(&bench, op);
        let steps = pair.run(&mut bench.weir());
        let units = |s: &Step| s.held[1].units(bench.half);
        let settled = |held: &[Step]| {
            let last = units(&held[held.len() - 1]);
            let off = |s: &Step| (units(s) / last - 1.0).abs() > 0.03;
            held.iter().rposition(off).map_or(0, |k| k as u32 + 1)
        };
        let learnt = settled(&steps[..WINDOWS as usize]);
        let (held, after) = Pair::last_episode(&steps);
        let (fast, slow) = pair.kept(&steps);
        let last = units(&held[held.len() - 1]);
        // The fast tier's bandwidth varies between windows; the difference between the halves counts.
        let (early, late) = held[4..].split_at((held.len() - 4) / 2);
        let released = after.iter().take_while(|s| !s.held[1].is_free()).count();
        Self {
            on: on.into(),
            op,
            free: pair.free(),
            fast,
            slow,
            settled: settled(held),
            learnt,
            released: released as u32,
            swings: (mean(early, 0) / mean(late, 0) - 1.0).abs(),
            step: bench.step.map_or(1.0, Share::get) / last,
        }
    }

    /// A line for each cell, in percent of what each tier gives alone.
    pub fn table(cells: &[Cell]) -> String {
        let mut text = String::from(
            "platform           op      no control      weir            settled (first)  released\n",
        );
        for c in cells {
            let (free, held) = ((c.free.0, c.free.1), (c.fast, c.slow));
            text.push_str(&format!(
                "{:18} {:6} {:5.1} {:6.1}    {:5.1} {:6.1}    {:7} {:7} {:9}{}\n",
                c.on,
                c.op,
                free.0 * 100.0,
                free.1 * 100.0,
                held.0 * 100.0,
                held.1 * 100.0,
                c.settled,
                c.learnt,
                c.released,
                if c.misses() { "  misses" } else { "" }
            ));
        }
        text
    }

    fn misses(&self) -> bool {
        self.fast < 0.93 || self.slow < 0.88
    }
}

/// All cells together; a value above that of a tier alone counts as equal to it.
pub struct Summary {
    /// Geometric means.
    pub fast: f64,
    pub slow: f64,
    /// The least.
    pub worst_fast: f64,
    worst_slow: f64,
    /// Cells that settled within three windows.
    pub settled: usize,
    /// Cells that had settled within four the first time.
    pub learnt: usize,
    /// Cells whose fast tier stays within 3 %.
    pub steady: usize,
    /// Cells that were released within two.
    pub released: usize,
    /// Cells whose slow tier misses 88 % by more than the effect of one step of the actuator.
    pub beyond_a_step: usize,
    all: usize,
}

impl Summary {
    pub fn of(cells: &[Cell]) -> Self {
        let least = |of: fn(&Cell) -> f64| cells.iter().map(of).fold(1.0, f64::min);
        let geometric = |of: fn(&Cell) -> f64| {
            let logs: f64 = cells.iter().map(|c| of(c).min(1.0).ln()).sum();
            (logs / cells.len() as f64).exp()
        };
        let count = |of: fn(&Cell) -> bool| cells.iter().filter(|c| of(c)).count();
        Self {
            fast: geometric(|c| c.fast),
            slow: geometric(|c| c.slow),
            worst_fast: least(|c| c.fast),
            worst_slow: least(|c| c.slow),
            settled: count(|c| c.settled <= 3),
            learnt: count(|c| c.learnt <= 4),
            steady: count(|c| c.swings <= 0.03),
            released: count(|c| c.released <= 2),
            beyond_a_step: count(|c| c.slow * (1.0 + c.step) < 0.88),
            all: cells.len(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "geometric mean {:.1} {:.1}, worst {:.1} {:.1}; of {} cells {} settled within 3 windows \
             ({} within 4 the first time), {} steady, {} released within 2",
            self.fast * 100.0,
            self.slow * 100.0,
            self.worst_fast * 100.0,
            self.worst_slow * 100.0,
            self.all,
            self.settled,
            self.learnt,
            self.steady,
            self.released
        )
    }
}

/// A platform, measured with one tenant alone.
pub struct Bench {
    bed: SimTestbed,
    cores: Vec<u32>,
    half: u32,
    slow: Placement,
    rest: Nanos,
    pub knees: Vec<Knee>,
    step: Option<Share>,
    seed: u64,
}

impl Bench {
    pub fn new(on: &str, given: Given, seed: u64) -> Self {
        let platform = Library::builtin().compose(on).unwrap();
        Self::on(&platform, given, seed)
    }

    pub fn on(platform: &Platform, given: Given, seed: u64) -> Self {
        let sampling = Sampling::of(platform);
        let bed = SimTestbed::new(platform).unwrap().sampled(sampling);
        let topology = platform.topology();
        let step = (topology.allocation.map(Share::of)).filter(|_| given != Given::Cores);
        let mut bench = Self {
            bed,
            half: half(&topology),
            cores: topology.cores.clone(),
            slow: slow(&topology),
            rest: Nanos(0.0),
            knees: Vec::new(),
            step,
            seed,
        };
        bench.rest = bench.at_rest();
        if given != Given::AllocationAlone {
            bench.knees = bench.knees(Criteria::default());
        }
        bench
    }

    fn at_rest(&self) -> Nanos {
        let mut one = self.fast(Op::Ld);
        one.tenant.cores.truncate(1);
        one.tenant.prefetch = false;
        let steps = self.play(&mut Free, &[(1, vec![one])]);
        steps[0].readings.table.as_ref().unwrap().mean
    }

    /// The knees of the slow tier, recognised by these criteria.
    pub fn knees(&self, criteria: Criteria) -> Vec<Knee> {
        let cores = &self.slow(Op::Ld).tenant.cores;
        let measure = Measure {
            testbed: &self.bed,
            seed: self.seed,
            window: WINDOW,
            cores,
            placement: self.slow.clone(),
            step: self.step,
            chain: None,
            criteria,
        };
        measure.knees().unwrap()
    }

    pub fn weir(&self) -> Guarded<Weir> {
        self.tuned(Tuning::default(), self.knees.clone(), Bounds::default())
    }

    /// Weir's controller with these constants.
    pub fn tuned(&self, tuning: Tuning, knees: Vec<Knee>, bounds: Bounds) -> Guarded<Weir> {
        let config = WeirConfig {
            knees,
            step: self.step,
            tuning,
            ..WeirConfig::new(self.rest, None)
        };
        Guarded::new(Weir::new(config), bounds)
    }

    fn fast(&self, op: Op) -> SteeredTenant {
        let cores = &self.cores[..self.half as usize];
        self.steered(
            "fast",
            op,
            cores,
            Placement::Bind(TierName::dram()),
            Role::Protected,
        )
    }

    fn slow(&self, op: Op) -> SteeredTenant {
        let cores = &self.cores[self.half as usize..2 * self.half as usize];
        self.steered("slow", op, cores, self.slow.clone(), Role::Restrained)
    }

    fn steered(
        &self,
        name: &str,
        op: Op,
        cores: &[u32],
        at: Placement,
        role: Role,
    ) -> SteeredTenant {
        let (order, size) = (Pattern::Sequential, Bytes::mib(64));
        let mut tenant = Tenant::on_first_cores(op, order, &TierName::dram(), 1, size);
        tenant.name = name.into();
        tenant.cores = cores.to_vec();
        tenant.placement = at;
        SteeredTenant { tenant, role }
    }

    pub fn play(
        &self,
        controller: &mut dyn Controller,
        phases: &[(u32, Vec<SteeredTenant>)],
    ) -> Vec<Step> {
        let phase = |(windows, participants): &(u32, Vec<SteeredTenant>)| Phase {
            lasts: WINDOW * f64::from(*windows),
            participants: participants.clone(),
        };
        let phases: Vec<Phase> = phases.iter().map(phase).collect();
        let mut machine = self.bed.open(self.seed).unwrap();
        run_phases(&mut *machine, controller, &phases, WINDOW, PERIOD).unwrap()
    }
}

/// Sixteen cores for each tenant, as in the papers, or half of the cores; whole complexes if a last-level
/// cache belongs to some cores alone, so that the two tenants share only memory.
fn half(topology: &Topology) -> u32 {
    let half = (topology.cores.len() as u32 / 2).min(16);
    let shared = topology.caches.last().map_or(1, |cache| cache.shared_by);
    if shared < half {
        half / shared * shared
    } else {
        half
    }
}

fn slow(topology: &Topology) -> Placement {
    let tiers = topology.tiers.iter().filter(|t| t.kind == TierKind::Cxl);
    Placement::Interleave(tiers.map(|t| (t.name.clone(), 1)).collect())
}

fn mean(steps: &[Step], tenant: usize) -> f64 {
    steps.iter().map(|s| s.drew(tenant).get()).sum::<f64>() / steps.len() as f64
}

/// No control.
pub struct Free;

impl Controller for Free {
    fn observe(&mut self, readings: &Readings) -> Decision {
        Decision::free(
            readings.tenants.len(),
            Why::rule("no tenant is ever limited"),
        )
    }
}
