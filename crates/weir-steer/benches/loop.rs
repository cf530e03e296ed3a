//! The cost of a window with 64 tenants, without the machine: readings from counters, decision, record, line of
//! the log.

#[path = "../tests/common/machine.rs"]
mod machine;

use criterion::{Criterion, criterion_group, criterion_main};
use machine::MadeUp;
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::{Observation, ProcessProgress, TenantProgress};
use weir_model::tenant::{Tenant, Work};
use weir_model::units::{Bytes, Nanos};
use weir_steer::Role;
use weir_steer::control_loop::ControlLoop;
use weir_steer::controllers::{Weir, WeirConfig};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::log::ChangeDetector;
use weir_steer::record::{TierNames, WindowRecord};
use weir_steer::scope::Scope;
use weir_steer::steered::{Steered, SteeredTenant};

const TENANTS: usize = 64;
const WINDOW: Nanos = Nanos(250e6);

fn participant(i: usize) -> SteeredTenant {
    let group = format!("/batch.slice/tenant-{i}.scope");
    SteeredTenant {
        tenant: Tenant::of_host(
            format!("cgroup:{group}"),
            Work::Scope(Scope::Cgroup(group)),
            vec![0; 4],
        ),
        role: match i {
            0 => Role::Protected,
            _ => Role::Restrained,
        },
    }
}

/// A window of the same counters, doubled in every other window, so that there is something to decide.
fn observation(window: Nanos, number: u64) -> Observation {
    let mut counters = CounterSet::default();
    for counter in Counter::ALL {
        counters.set(*counter, 1_000_000 * (1 + number % 2));
    }
    let progress = |i| TenantProgress {
        process: Some(ProcessProgress {
            ran: Ok(window),
            traffic: match i {
                0 => Err(Unavailable::because("not counted")),
                _ => Ok(Bytes(window.get() as u64)),
            },
            cores: 4,
            busy: true,
            uses: Ok(Vec::new()),
            ended: None,
            limits: Vec::new(),
        }),
        ..TenantProgress::default()
    };
    let tenants = (0..TENANTS).map(progress).collect();
    Observation::of(window, tenants, counters)
}

fn window(c: &mut Criterion) {
    let tiers = TierNames {
        fast: "dram".into(),
        slow: "cxl0".into(),
    };
    let mut number = 0;
    let mut machine = MadeUp::new(|window| {
        number += 1;
        Ok(observation(window, number))
    });
    let participants = (0..TENANTS).map(participant).collect();
    let mut steered = Steered::running(&mut machine, participants, Nanos(100e6));
    let tenants = steered.tenants().to_vec();
    let weir = Weir::new(WeirConfig::new(Nanos(110.0), Some(Nanos(260.0))));
    let mut controller = Guarded::new(weir, Bounds::default());
    let mut control_loop = ControlLoop::new(&mut steered, &mut controller, WINDOW);
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
