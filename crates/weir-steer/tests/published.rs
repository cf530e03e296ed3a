//! Published rows of regulation are answered on the platforms that they name.

use weir_model::access::Op;
use weir_model::platform::Library;
use weir_sim::{Sampling, SimTestbed};
use weir_steer::published::{about, answer, ids, kept};
use weir_steer::registry::Policy;

fn figure(id: &str) -> f64 {
    let (on, _) = about(id).unwrap();
    let platform = Library::builtin().compose(on).unwrap();
    let sampling = Sampling::of(&platform);
    let bed = SimTestbed::new(&platform).unwrap().sampled(sampling);
    answer(id, &bed, 1).unwrap().unwrap()
}

/// CXL-Interplay's result for its controls (section V): a quota and bandwidth allocation restore most, a
/// lower clock least.
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

/// MIKU restores the fast tier against non-temporal stores (MIKU section 6: st and nt-st to at least 97 %).
#[test]
fn miku_gives_the_fast_tier_back() {
    let platform = Library::builtin().compose("miku-a").unwrap();
    let sampling = Sampling::of(&platform);
    let bed = SimTestbed::new(&platform).unwrap().sampled(sampling);
    let (fast, slow) = kept(Policy::Miku, Op::NtSt, &bed, 1).unwrap();
    assert!(fast > 0.97 && slow > 0.2, "{fast} {slow}");
}
