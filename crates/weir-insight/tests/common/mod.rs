//! Counters of a core that follows the slowdown model exactly, with constants that are known.
#![allow(dead_code)]

use weir_insight::slowdown::{Calibration, Pair};
use weir_lab::{Bench, Lab};
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::{Constants, ExposedModel, Micro, PrefetchForm, SlowdownModel};
use weir_model::machine::{Identity, MachineKind, Testbed};
use weir_model::platform::Library;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Cycles;
use weir_sim::SimTestbed;

/// A simulated platform.
pub struct Simulated {
    testbed: SimTestbed,
    identity: Identity,
    topology: Topology,
}

impl Simulated {
    /// The one of this expression.
    pub fn new(platform: &str) -> Self {
        let mut library = Library::builtin();
        let platform = library.change(platform).unwrap();
        let testbed = SimTestbed::new(&library.compose(&platform).unwrap()).unwrap();
        let machine = testbed.open(1).unwrap();
        let (identity, topology) = (machine.identity(), machine.topology().clone());
        drop(machine);
        Self {
            testbed,
            identity,
            topology,
        }
    }

    /// A lab on it that stores nothing.
    pub fn lab(&self) -> Lab<'_> {
        let bench = Bench {
            testbed: &self.testbed,
            machine: &self.identity,
            topology: &self.topology,
            capabilities: &[],
            seed: 1,
            rounds: 1,
        };
        Lab::new(bench, &())
    }
}

/// Many, so that whole numbers say nothing of their own.
pub const CYCLES: f64 = 1e13;

/// Chases of several overlaps, some of which work between hops: share of cycles stalled during misses,
/// amortised latency, share of cycles in which something is executed meanwhile.
pub const CHASES: [(f64, f64, f64); 5] = [
    (0.9, 300.0, 0.0),
    (0.6, 290.0, 0.3),
    (0.8, 150.0, 0.1),
    (0.4, 100.0, 0.5),
    (0.6, 30.0, 0.4),
];

/// What a program does, as far as the model sees.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// P4 / P1.
    pub miss_stalls: f64,
    /// P12 / P11, in cycles.
    pub aol: f64,
    /// Stalls of the level that the prefetchers feed, as a share of cycles.
    pub level_stalls: f64,
    /// FB_HIT / (FB_HIT + L1_MISS).
    pub fill_buffer_hits: f64,
    /// Share of prefetches from memory.
    pub from_memory: f64,
    /// Share of prefetches that are the L1 prefetchers'.
    pub by_l1: f64,
    /// P7 / P1.
    pub store: f64,
}

pub const IDLE: Program = Program {
    miss_stalls: 0.0,
    aol: 100.0,
    level_stalls: 0.0,
    fill_buffer_hits: 0.0,
    from_memory: 0.0,
    by_l1: 0.0,
    store: 0.0,
};

pub const CONSTANTS: Constants = Constants {
    k1: 1.0,
    k2: 2.5,
    k3: 0.8,
    k4: 0.0,
    p: Cycles(24.67),
    q: 0.87,
};

impl Program {
    /// The program's slowdown by stores, caches and DRAM under these constants.
    pub fn slowdown(&self, constants: &Constants, form: PrefetchForm) -> [f64; 3] {
        let by_l1 = match form {
            PrefetchForm::Skylake => 1.0,
            PrefetchForm::SapphireRapids => self.by_l1,
        };
        let overlap = 1.0 / (constants.p.get() / self.aol + constants.q);
        [
            constants.k3 * self.store,
            constants.k2 * self.level_stalls * self.fill_buffer_hits * self.from_memory * by_l1,
            constants.k1 * self.miss_stalls * overlap,
        ]
    }

    /// Counted on local memory.
    pub fn local(&self, form: PrefetchForm) -> CounterSet {
        self.counted(form, 1.0, [0.0; 3])
    }

    /// Counted on the other memory: the same work, with these parts of the local cycles on top.
    pub fn counted(&self, form: PrefetchForm, whole: f64, more: [f64; 3]) -> CounterSet {
        let [store, cache, dram] = more;
        let l3 = self.miss_stalls + dram;
        // The level that prefetchers feed is below L2 on Skylake and below L3 since.
        let (l2, l1d) = match form {
            PrefetchForm::Skylake => (l3, l3 + self.level_stalls + cache),
            PrefetchForm::SapphireRapids => {
                let l2 = l3 + self.level_stalls + cache;
                (l2, l2)
            }
        };
        let prefetches = 1e11;
        let l1 = prefetches * self.by_l1;
        let loads = 1e12;
        let reads = 1e8 + CYCLES * self.miss_stalls / 450.0;
        let mut set = CounterSet::default();
        let mut put = |counter, value: f64| set.set(counter, value.round() as u64);
        put(Counter::Cycles, CYCLES * whole);
        put(Counter::Instructions, 8e12);
        put(Counter::StallsMemAny, CYCLES * l1d);
        put(Counter::StallsL1dMiss, CYCLES * l1d);
        put(Counter::StallsL2Miss, CYCLES * l2);
        put(Counter::StallsL3Miss, CYCLES * l3);
        put(Counter::BoundOnStores, CYCLES * (self.store + store));
        put(Counter::FbHit, loads * self.fill_buffer_hits);
        put(Counter::L1Miss, loads * (1.0 - self.fill_buffer_hits));
        put(Counter::L3Miss, reads);
        put(Counter::OffcoreDemandDataRd, reads);
        put(Counter::OffcoreCyclesDemandDataRd, reads * self.aol);
        put(
            Counter::OffcoreOutstandingDemandDataRd,
            reads * 300.0_f64.max(self.aol),
        );
        put(Counter::OffcoreDataRd, 2.0 * reads);
        put(
            Counter::OffcoreOutstandingDataRd,
            2.0 * reads * 300.0_f64.max(self.aol),
        );
        put(Counter::OffcoreDemandRfo, reads);
        put(Counter::OffcoreOutstandingDemandRfo, reads * 400.0);
        put(Counter::HwpfL1d, l1);
        put(Counter::CasRd, 2.0 * reads);
        match form {
            PrefetchForm::Skylake => put(Counter::HwpfL1dL3Hit, l1 * (1.0 - self.from_memory)),
            PrefetchForm::SapphireRapids => {
                put(Counter::HwpfL2, prefetches - l1);
                put(Counter::TorInsertsIaDrdPref, prefetches);
                put(
                    Counter::TorInsertsIaMissDrdPref,
                    prefetches * self.from_memory,
                );
            }
        }
        set
    }

    /// On both memories.
    pub fn pair(&self, micro: Micro, constants: &Constants, form: PrefetchForm) -> Pair {
        let more = self.slowdown(constants, form);
        let whole = 1.0 + more.iter().sum::<f64>() + constants.k4;
        Pair {
            name: format!("{micro}"),
            micro,
            local: self.local(form),
            target: self.counted(form, whole, more),
        }
    }
}

/// The three kinds of micro-workload, with chases of several overlaps.
pub fn micros(constants: &Constants, form: PrefetchForm) -> Vec<Pair> {
    let chase = |miss_stalls, aol| Program {
        miss_stalls,
        aol,
        ..IDLE
    };
    let list = Program {
        miss_stalls: 0.05,
        aol: 150.0,
        level_stalls: 0.4,
        fill_buffer_hits: 0.7,
        from_memory: 0.6,
        by_l1: 0.5,
        ..IDLE
    };
    let store = Program {
        store: 0.6,
        miss_stalls: 0.02,
        ..IDLE
    };
    [
        (chase(0.9, 250.0), Micro::Chase),
        (chase(0.8, 70.0), Micro::Chase),
        (chase(0.6, 35.0), Micro::Chase),
        (store, Micro::Store),
        (list, Micro::List),
    ]
    .map(|(program, micro)| program.pair(micro, constants, form))
    .to_vec()
}

pub fn machine(name: &str) -> Identity {
    Identity {
        kind: MachineKind::Sim,
        name: name.into(),
        digest: format!("digest of {name}"),
    }
}

/// A model file of a calibration.
pub fn model(calibration: Calibration, form: PrefetchForm) -> SlowdownModel {
    SlowdownModel {
        schema: SlowdownModel::SCHEMA.into(),
        weir: "0".into(),
        machine: machine("emr2s+cxl-a"),
        processor: "a core of formulas".into(),
        from: TierName::dram(),
        to: TierName::cxl(0),
        prefetch: form,
        constants: calibration.constants,
        exposed: calibration.exposed.map(|constants| ExposedModel {
            constants,
            late: calibration.late,
            held_out: None,
        }),
        unloaded: calibration.unloaded,
        aol_range: calibration.aol_range,
        fitted_on: calibration.fitted_on,
        held_out: None,
        rejected: calibration.rejected,
        interleave: None,
        notes: calibration.notes,
    }
}
