//! Rows of regulation, answered on the platforms that they name.

use weir_model::access::Op;
use weir_model::platform::Library;
use weir_sim::{Sampling, SimTestbed};
use weir_steer::published::{Control, Knob, Pair};
use weir_steer::registry::Policy;

fn kept(on: &str, pair: Pair, control: Control) -> (f64, f64) {
    let platform = Library::builtin().compose(on).unwrap();
    let sampling = Sampling::of(&platform);
    let bed = SimTestbed::new(&platform).unwrap().sampled(sampling);
    pair.kept(control, &bed, 1).unwrap()
}

/// CXL-Interplay's result for its controls (section V): a quota and bandwidth allocation restore most, a
/// lower clock least.
#[test]
fn a_quota_restores_far_more_than_a_low_clock() {
    let under = |knob| {
        kept(
            "interplay-b",
            Pair::Streams(Op::Ld, Op::NtSt),
            Control::Knob(knob),
        )
        .0
    };
    let (quota, clock) = (under(Knob::Quota), under(Knob::Clock(0.4)));
    assert!(quota > 0.85, "{quota}");
    assert!(clock < 0.7 * quota, "{clock} against {quota}");
}

/// MIKU restores the fast tier against non-temporal stores (MIKU section 6: st and nt-st to at least 97 %).
#[test]
fn miku_gives_the_fast_tier_back() {
    let (fast, slow) = kept(
        "miku-a",
        Pair::Streams(Op::NtSt, Op::NtSt),
        Control::Policy(Policy::Miku),
    );
    assert!(fast > 0.97 && slow > 0.2, "{fast} {slow}");
}
