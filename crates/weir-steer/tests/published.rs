//! Published rows of regulation are answered on the platforms that they name.

use weir_model::platform::Library;
use weir_sim::{Sampling, SimTestbed};
use weir_steer::published::{about, answer, ids};

fn figure(id: &str) -> f64 {
    let (on, _) = about(id).unwrap();
    let platform = Library::builtin().compose(on).unwrap();
    let bed = SimTestbed::new(&platform)
        .unwrap()
        .sampled(Sampling::default());
    answer(id, &bed, 1).unwrap().unwrap()
}

/// What CXL-Interplay finds of its knobs (section V): a quota and bandwidth allocation restore most, a lower
/// clock least.
#[test]
fn a_quota_restores_far_more_than_a_low_clock() {
    let (quota, clock) = (figure("INT-117"), figure("INT-119"));
    assert!(quota > 85.0, "{quota}");
    assert!(clock < 0.7 * quota, "{clock} against {quota}");
}

#[test]
fn every_row_is_published() {
    let published = weir_model::published::builtin_rows();
    for id in ids() {
        assert!(published.iter().any(|row| row.id == id), "{id}");
    }
    assert!(about("MIK-001").is_none());
}

#[test]
#[ignore = "prints every row, for documentation"]
fn print_every_row() {
    for row in weir_model::published::builtin_rows() {
        if ids().any(|id| id == row.id) {
            println!(
                "{} {} {} {}: {:.1}",
                row.id,
                row.what,
                row.value,
                row.unit,
                figure(&row.id)
            );
        }
    }
}

/// MIKU, as published, and frequency scaling beside Weir (MIKU section 6, CXL-Interplay section V).
#[test]
#[ignore = "prints what controllers keep, for documentation"]
fn print_every_policy() {
    use weir_model::access::Op;
    use weir_steer::published::kept;
    use weir_steer::roster::Policy;
    let platform = Library::builtin().compose("miku-a").unwrap();
    let bed = SimTestbed::new(&platform)
        .unwrap()
        .sampled(Sampling::default());
    for policy in [Policy::Miku, Policy::Quota] {
        for op in [Op::Ld, Op::St, Op::NtSt] {
            let (fast, slow) = kept(policy, op, &bed, 1).unwrap();
            println!(
                "{:10} {op:6} {:5.1} {:5.1}",
                policy.name(),
                fast * 100.0,
                slow * 100.0
            );
        }
    }
}
