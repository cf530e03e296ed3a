//! Tenants on a simulated machine, and their counts.

// Every test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use std::ops::Range;

use weir_model::access::{Locality, Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::{Machine, Observation};
use weir_model::platform::{Library, Platform, Sourced};
use weir_model::tenant::Tenant;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_sim::{SimMachine, SimTestbed};

/// The built-in platform of this expression.
pub fn platform(expression: &str) -> Platform {
    Library::builtin()
        .compose(expression)
        .unwrap_or_else(|e| panic!("{expression}: {e}"))
}

/// A machine factory of a platform.
pub fn bed_of(platform: &Platform) -> SimTestbed {
    SimTestbed::new(platform).unwrap_or_else(|e| panic!("{}: {e}", platform.name))
}

/// A machine factory of a built-in platform.
pub fn bed(expression: &str) -> SimTestbed {
    bed_of(&platform(expression))
}

/// The platform with another number of ToR entries per slice.
pub fn with_tor(expression: &str, entries: u32) -> Platform {
    let mut platform = platform(expression);
    platform.host.uncore.tor = Sourced::from_source(entries, "what if");
    platform
}

/// Threads that stream over 256 MiB each, far beyond every cache, prefetchers on.
pub fn stream(op: Op, tier: &str, cores: Range<u32>) -> Tenant {
    let mut tenant = Tenant::on_first_cores(
        op,
        Pattern::Sequential,
        &TierName::named(tier),
        1,
        Bytes::mib(256),
    );
    tenant.cores = cores.collect();
    tenant
}

/// The same with prefetchers off.
pub fn plain_stream(op: Op, tier: &str, cores: Range<u32>) -> Tenant {
    Tenant {
        prefetch: false,
        ..stream(op, tier, cores)
    }
}

/// Threads that chase pointers within reach of the TLB.
pub fn chase(tier: &str, cores: Range<u32>, working_set: Bytes) -> Tenant {
    Tenant {
        name: format!("chase@{tier}"),
        ..stream(Op::Ld, tier, cores)
    }
    .with_stream(|s| {
        s.pattern = Pattern::Chase {
            locality: Locality::TlbFriendly,
        };
        s.working_set = working_set;
    })
}

/// One thread's single accesses to lines that were just flushed.
pub fn flushed(op: Op, tier: &str) -> Tenant {
    stream(op, tier, 0..1).with_stream(|s| s.pattern = Pattern::FlushedLine)
}

/// The same with several accesses at once.
pub fn burst(op: Op, tier: &str, lines: u32) -> Tenant {
    flushed(op, tier).with_stream(|s| s.pattern = Pattern::FlushedBurst { lines })
}

/// The counts of a machine in `window_us` after `warm_up_us`.
pub fn run(
    bed: &SimTestbed,
    tenants: &[Tenant],
    warm_up_us: f64,
    window_us: f64,
    seed: u64,
) -> Measured {
    let mut machine = SimMachine::new(bed, seed);
    machine
        .start(tenants)
        .unwrap_or_else(|e| panic!("{tenants:?}: {e}"));
    if warm_up_us > 0.0 {
        machine.observe(Nanos::from_micros(warm_up_us)).unwrap();
    }
    Measured(machine.observe(Nanos::from_micros(window_us)).unwrap())
}

/// The counts in steady state, after enough time for the deepest queue to fill.
pub fn steady(bed: &SimTestbed, tenants: &[Tenant]) -> Measured {
    run(bed, tenants, 30.0, 60.0, 1)
}

/// Bandwidth of one tenant alone, in GB/s.
pub fn gbps(bed: &SimTestbed, tenant: Tenant) -> f64 {
    steady(bed, &[tenant]).gbps(0)
}

/// Mean latency of a tenant that times its accesses, over enough accesses for tails and refreshes to have
/// their share.
pub fn latency(bed: &SimTestbed, tenant: Tenant) -> f64 {
    run(bed, &[tenant], 5.0, 2000.0, 1).ns(0)
}

/// An observation with the sums that the tests need.
pub struct Measured(pub Observation);

impl Measured {
    /// A tenant's bandwidth in GB/s.
    pub fn gbps(&self, tenant: usize) -> f64 {
        self.0.tenants[tenant].bandwidth(self.0.window).get()
    }

    /// A tenant's accesses.
    pub fn accesses(&self, tenant: usize) -> f64 {
        self.0.tenants[tenant].accesses as f64
    }

    /// A tenant's mean latency in ns.
    pub fn ns(&self, tenant: usize) -> f64 {
        let latency = self.0.tenants[tenant].latency.as_ref();
        latency.expect("a pattern that is timed").mean().get()
    }

    /// A counter.
    pub fn count(&self, counter: Counter) -> f64 {
        self.0.counters.get(counter).unwrap() as f64
    }

    /// Entries of an uncore queue, averaged over the window.
    pub fn mean_level(&self, occupancy: Counter) -> f64 {
        self.count(occupancy) / self.count(Counter::ChaClockticks)
    }

    /// How long an entry stayed in an uncore queue, in ns.
    pub fn residency(&self, occupancy: Counter, inserts: Counter) -> f64 {
        let clock = self.count(Counter::ChaClockticks) / self.0.window.get();
        self.count(occupancy) / self.count(inserts) / clock
    }

    /// Residency of DDR misses in the ToR, in ns.
    pub fn ddr_residency(&self) -> f64 {
        self.residency(Counter::TorOccupancyIaMissDdr, Counter::TorInsertsIaMissDdr)
    }

    /// Residency of CXL misses in the ToR, in ns.
    pub fn cxl_residency(&self) -> f64 {
        self.residency(Counter::TorOccupancyIaMissCxl, Counter::TorInsertsIaMissCxl)
    }

    /// Lines that a counter counted, as GB/s.
    pub fn line_rate(&self, lines: Counter) -> f64 {
        self.count(lines) * LINE_BYTES as f64 / self.0.window.get()
    }
}

/// Asserts that two figures agree to a share of the second.
#[track_caller]
pub fn assert_near(what: &str, ours: f64, expected: f64, share: f64) {
    let off = ours / expected - 1.0;
    assert!(
        off.abs() <= share,
        "{what}: {ours:.2} for {expected:.2} ({:+.1} %, allowed {:.1} %)",
        off * 100.0,
        share * 100.0
    );
}
