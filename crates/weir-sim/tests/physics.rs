//! Stored answers are reused as long as the simulator computes the same: a change of its figures raises `PHYSICS`.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::machine::Testbed as _;
use weir_model::platform::Library;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Workloads;
use weir_sim::{PHYSICS, SimTestbed};

/// Bytes and accesses of a few tenants on two platforms, each alone, hashed.
fn figures() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (name, tier) in [("emr2s+cxl-a", "cxl0"), ("skx2s", "remote")] {
        let platform = Library::builtin().compose(name).unwrap();
        let testbed = SimTestbed::new(&platform).unwrap();
        let tier = TierName::named(tier);
        let chase = Pattern::Chase {
            locality: Locality::Random,
        };
        let mut tenants = Vec::new();
        for (op, pattern, threads) in [
            (Op::Ld, Pattern::Sequential, 4),
            (Op::NtSt, Pattern::Sequential, 2),
            (
                Op::St,
                Pattern::RandomBlock {
                    block: Bytes::kib(4),
                },
                3,
            ),
            (Op::Ld, chase, 1),
        ] {
            tenants.push(Tenant::on_first_cores(
                op,
                pattern,
                &tier,
                threads,
                Bytes::mib(64),
            ));
        }
        for name in ["bwaves-like", "gcc-like"] {
            let work = Workloads::builtin().get(name).unwrap().clone();
            let at = Placement::Bind(tier.clone());
            tenants.push(Tenant::running(work, vec![0], at));
        }
        for tenant in tenants {
            let mut machine = testbed.open(7).unwrap();
            machine.start(&[tenant]).unwrap();
            let seen = machine.observe(Nanos(20_000.0)).unwrap();
            for progress in seen.tenants {
                for number in [progress.bytes.get(), progress.accesses] {
                    hash = (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3);
                }
            }
        }
    }
    hash
}

#[test]
fn figures_change_only_with_the_version_of_the_physics() {
    let known = [(12, 15_507_506_102_764_990_038_u64)];
    let expected = known
        .iter()
        .find(|(version, _)| *version == PHYSICS)
        .map(|(_, hash)| *hash);
    assert_eq!(
        Some(figures()),
        expected,
        "the simulator computes other figures: raise weir_sim::PHYSICS and add its hash here"
    );
}
