//! A device or a switch disappears while hosts use it: what was asked of it ends with an error that its tenants count, and
//! nothing else changes.

use proptest::prelude::*;
use weir_model::access::Op;
use weir_model::counters::Counter;
use weir_model::platform::{Platform, Sourced};
use weir_model::tenant::Tenant;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use crate::common::*;

const HEADED: &str = "2xemr2s+cxl-a@switch";
const LOGICAL: &str = "2xemr2s+cxl-a@switch@logical";
/// Cores of a host.
const CORES: u32 = 32;
/// The window from the start of a run in which something fails, in microseconds.
const WINDOW: f64 = 60.0;

fn on(host: u32, op: Op, tier: &str, from: u32, threads: u32) -> Tenant {
    let first = host * CORES + from;
    Tenant {
        name: format!("{op}@{tier} of host {host}"),
        ..stream(op, tier, first..first + threads)
    }
}

fn us(time: f64) -> Option<Sourced<Nanos>> {
    Some(Sourced::from_source(Nanos::from_micros(time), "what if"))
}

/// The platform, whose first device disappears then.
fn card(expression: &str, at: f64) -> Platform {
    let mut platform = platform(expression);
    platform.devices[0].device.fails_at = us(at);
    platform
}

/// The platform, whose switch disappears then.
fn switch(expression: &str, at: f64) -> Platform {
    let mut platform = platform(expression);
    platform.host.switch.fails_at = us(at);
    platform
}

fn seen(platform: &Platform, tenants: &[Tenant], seed: u64) -> Measured {
    run(&bed_of(platform), tenants, 0.0, WINDOW, seed)
}

impl Measured {
    /// Of one of a tenant's own counters.
    fn own(&self, tenant: usize, counter: Counter) -> f64 {
        self.0.tenants[tenant].counters.get(counter).unwrap_or(0) as f64
    }

    fn lines(&self, tenant: usize) -> f64 {
        (self.0.tenants[tenant].bytes.get() / LINE_BYTES) as f64
    }

    /// All that is said of a tenant.
    fn all(&self, tenant: usize) -> String {
        let own = &self.0.tenants[tenant];
        let counters: Vec<_> = own
            .counters
            .iter()
            .filter(|(c, _)| ![Counter::MediumPoison, Counter::CxlLostWrites].contains(c))
            .collect();
        format!("{:?} {} {counters:?}", own.bytes, own.accesses)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Each request is answered once: by the device, or by the root port in its place.
    #[test]
    fn each_line_is_answered_by_the_device_or_counted_as_lost(
        expression in prop::sample::select(&[HEADED, LOGICAL][..]),
        at in 5.0_f64..50.0,
        threads in 1_u32..12,
        seed in any::<u64>(),
    ) {
        let tenants = [
            on(0, Op::Ld, "cxl0", 0, threads),
            on(0, Op::NtSt, "cxl0", 16, threads),
            on(1, Op::Ld, "cxl0", 0, threads),
            on(1, Op::NtSt, "cxl0", 16, threads),
        ];
        for platform in [card(expression, at), switch(expression, at)] {
            let seen = seen(&platform, &tenants, seed);
            let both = |of: &dyn Fn(usize) -> f64, at: [usize; 2]| at.map(of).iter().sum::<f64>();
            for (tenants, counter, served) in [
                ([0, 2], Counter::MediumPoison, Counter::CxlDeviceReads),
                ([1, 3], Counter::CxlLostWrites, Counter::CxlDeviceWrites),
            ] {
                let asked = both(&|t| seen.lines(t), tenants);
                let lost = both(&|t| seen.own(t, counter), tenants);
                let served = seen.count(served);
                // What was under way when the device failed it served in vain; what is under way at the end is in neither.
                prop_assert!((served + lost - asked).abs() < 3_000.0, "{counter}: {asked} {served} {lost}");
                prop_assert!(lost > 0.2 * asked * (1.0 - at / WINDOW), "{counter}: {asked} {lost}");
                for tenant in tenants {
                    prop_assert!(seen.own(tenant, counter) > 0.0);
                }
            }
            // The counters of a host are those of its tenants.
            let own = seen.own(0, Counter::MediumPoison) + seen.own(1, Counter::MediumPoison);
            prop_assert_eq!(seen.count(Counter::MediumPoison), own);
        }
    }

    /// What does not use the device never learns of it, to the bit.
    #[test]
    fn a_neighbour_in_its_own_memory_goes_on_as_if_nothing_had_failed(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::NtSt][..]),
        at in 5.0_f64..50.0,
        threads in 1_u32..24,
        seed in any::<u64>(),
    ) {
        let tenants = [on(1, op, "dram", 0, threads), on(0, Op::Ld, "cxl0", 0, 16)];
        let whole = seen(&platform(HEADED), &tenants, seed);
        for platform in [card(HEADED, at), switch(HEADED, at)] {
            let seen = seen(&platform, &tenants, seed);
            prop_assert_eq!(seen.all(0), whole.all(0));
            prop_assert_eq!(seen.own(0, Counter::MediumPoison), 0.0);
            prop_assert!(seen.own(1, Counter::MediumPoison) > 0.0);
        }
    }

    /// A failure that is still to come changes nothing, to the bit.
    #[test]
    fn nothing_happens_before_it_fails(
        op in prop::sample::select(&[Op::Ld, Op::St, Op::NtSt][..]),
        threads in 1_u32..16,
        seed in any::<u64>(),
    ) {
        let tenants = [on(0, op, "cxl0", 0, threads), on(1, op, "cxl0", 0, threads)];
        let whole = seen(&platform(HEADED), &tenants, seed);
        for platform in [card(HEADED, WINDOW + 10.0), switch(HEADED, WINDOW + 10.0)] {
            let seen = seen(&platform, &tenants, seed);
            for tenant in 0..2 {
                prop_assert_eq!(seen.all(tenant), whole.all(tenant));
                prop_assert_eq!(seen.own(tenant, Counter::MediumPoison) + seen.own(tenant, Counter::CxlLostWrites), 0.0);
            }
        }
    }
}

#[test]
fn accesses_a_second_times_latency_are_those_outstanding_across_the_failure() {
    let threads = 8;
    let tenant = |host: u32| Tenant {
        name: format!("host {host}"),
        ..chase("cxl0", host * CORES..host * CORES + threads, Bytes::gib(1))
    };
    for platform in [card(HEADED, 30.0), switch(LOGICAL, 30.0)] {
        let seen = seen(&platform, &[tenant(0), tenant(1)], 3);
        for host in 0..2 {
            let outstanding = seen.accesses(host) / seen.0.window.get() * seen.ns(host);
            assert_near("accesses", outstanding, f64::from(threads), 0.02);
            let poison = seen.own(host, Counter::MediumPoison);
            assert!(poison > 0.3 * seen.accesses(host), "{poison}");
        }
    }
}

#[test]
fn a_switch_takes_all_devices_behind_it_along_and_no_other() {
    let expression = "emr2s+cxl-a@switch+cxl-d@switch+cxl-b";
    let tiers = platform(expression).topology().tiers;
    let names: Vec<_> = tiers
        .iter()
        .map(|t| t.name.to_string())
        .filter(|n| n.starts_with("cxl"))
        .collect();
    assert_eq!(names, ["cxl0", "cxl1", "cxl2"]);
    let tenants: Vec<_> = (0..3)
        .map(|n| on(0, Op::Ld, &names[n as usize], 8 * n, 4))
        .collect();
    let poison = |platform: &Platform| {
        let seen = seen(platform, &tenants, 1);
        [0, 1, 2].map(|tenant| seen.own(tenant, Counter::MediumPoison) > 0.0)
    };
    assert_eq!(poison(&switch(expression, 20.0)), [true, true, false]);
    assert_eq!(poison(&card(expression, 20.0)), [true, false, false]);
    // Whichever comes first.
    let mut both = card(expression, 20.0);
    both.host.switch.fails_at = us(90.0);
    assert_eq!(poison(&both), [true, false, false]);
}

#[test]
fn stores_through_caches_and_media_lose_what_they_write_back() {
    for expression in [HEADED, "2xemr2s+cxl-ssd-znand@switch"] {
        let tenants = [on(0, Op::St, "cxl0", 0, 8), on(1, Op::Ld, "cxl0", 0, 8)];
        let seen = seen(&card(expression, 20.0), &tenants, 5);
        assert!(seen.own(0, Counter::CxlLostWrites) > 100.0);
        assert!(seen.own(0, Counter::MediumPoison) > 100.0);
        assert!(seen.own(1, Counter::MediumPoison) > 100.0);
        assert_eq!(seen.own(1, Counter::CxlLostWrites), 0.0);
    }
}

/// Requests to the device filled the tables of their host; errors come back at once.
#[test]
fn a_tenant_of_dram_on_the_same_host_is_faster_without_the_device() {
    let tenants = [
        on(0, Op::Ld, "dram", 0, 8),
        on(0, Op::Ld, "cxl0", 8, 8),
        on(0, Op::NtSt, "cxl0", 16, 4),
    ];
    let whole = seen(&platform(HEADED), &tenants, 1);
    let late = seen(&card(HEADED, 30.0), &tenants, 1);
    println!(
        "{} GB/s, {} where the device is gone after half",
        whole.gbps(0),
        late.gbps(0)
    );
    assert!(late.gbps(0) > 1.05 * whole.gbps(0));
    assert_eq!(late.own(0, Counter::MediumPoison), 0.0);
}
