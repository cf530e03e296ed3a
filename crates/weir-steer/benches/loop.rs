//! The cost of a window with 64 tenants, without the plant: readings from counters, decision, record, line of
//! the log.

use criterion::{Criterion, criterion_group, criterion_main};
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::Observation;
use weir_model::units::{GbPerSec, Nanos};
use weir_steer::control_loop::ControlLoop;
use weir_steer::controllers::{Weir, WeirConfig};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::log::ChangeDetector;
use weir_steer::plant::{Actuators, AppliedLimit, NotPutBack, TenantOf};
use weir_steer::record::{TierNames, WindowRecord};
use weir_steer::{Limit, Plant, PlantError, Readings, Role, TenantReadings};

const TENANTS: usize = 64;
const WINDOW: Nanos = Nanos(250e6);

/// A plant at no cost: the same counters each window, doubled in every other window, so that there is
/// something to decide.
struct Nothing {
    tenants: Vec<TenantOf>,
    windows: u64,
}

impl Nothing {
    fn new() -> Self {
        let tenant = |i| TenantOf {
            name: format!("cgroup:/batch.slice/tenant-{i}.scope"),
            role: match i {
                0 => Role::Protected,
                _ => Role::Restrained,
            },
            cores: 4,
            actuators: Actuators::default(),
        };
        Self {
            tenants: (0..TENANTS).map(tenant).collect(),
            windows: 0,
        }
    }
}

impl Plant for Nothing {
    fn tenants(&self) -> &[TenantOf] {
        &self.tenants
    }

    fn observe(&mut self, window: Nanos) -> Result<Readings, PlantError> {
        self.windows += 1;
        let mut counters = CounterSet::default();
        for counter in Counter::ALL {
            counters.set(*counter, 1_000_000 * (1 + self.windows % 2));
        }
        let seen = Observation {
            window,
            tenants: Vec::new(),
            counters,
        };
        let readings = |tenant: &TenantOf| TenantReadings {
            role: tenant.role,
            cores: tenant.cores,
            busy: true,
            drew: match tenant.role {
                Role::Protected => Err(Unavailable::because("not counted")),
                _ => Ok(GbPerSec(1.0)),
            },
        };
        Ok(Readings::of(
            &seen,
            self.tenants.iter().map(readings).collect(),
        ))
    }

    fn apply(&mut self, limits: &[Limit]) -> Vec<AppliedLimit> {
        let after = |&limit: &Limit| AppliedLimit {
            requested: limit,
            applied: limit,
            refused: Vec::new(),
        };
        limits.iter().map(after).collect()
    }

    fn release(&mut self) -> Vec<NotPutBack> {
        Vec::new()
    }
}

fn window(c: &mut Criterion) {
    let tiers = TierNames {
        fast: "dram".into(),
        slow: "cxl0".into(),
    };
    let mut plant = Nothing::new();
    let tenants = plant.tenants().to_vec();
    let weir = Weir::new(WeirConfig::new(Nanos(110.0), Some(Nanos(260.0))));
    let mut controller = Guarded::new(weir, Bounds::default());
    let mut control_loop = ControlLoop::new(&mut plant, &mut controller, WINDOW);
    let mut news = ChangeDetector::default();
    c.bench_function("a window of 64 tenants", |b| {
        b.iter(|| {
            let step = control_loop.step().expect("it never fails");
            let record = WindowRecord::of(&step, &tenants, &tiers);
            let line = serde_json::to_string(&record).expect("it is JSON");
            (news.is_new(&record), line.len())
        });
    });
}

criterion_group!(benches, window);
criterion_main!(benches);
