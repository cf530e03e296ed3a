//! `weir tier` as a process: policies on a model, the kernel's tiering on this host, and what is said of wrong requests.

mod common;

use common::{Place, with};
use weir::verbs::tier::Tiered;
use weir_model::document::Document;
use weir_steer::tier::Simulated;

const SMALL: &str = "tier simulate --on emr2s+cxl-a --size 256MiB --seconds 60";

#[test]
fn policies_are_compared_and_what_is_stored_says_the_same() {
    let place = Place::new();
    let all = with(SMALL, "--policy first-touch,tpp --format json");
    let printed = place.run(&all).expect(0).out();
    let printed: Document<Simulated> = serde_json::from_str(&printed).unwrap();
    let names: Vec<&str> = (printed.output.policies.iter())
        .map(|policy| policy.policy.as_str())
        .collect();
    assert_eq!(names, ["first-touch", "tpp"]);
    let [none, tpp] = &printed.output.policies[..] else {
        panic!("{names:?}")
    };
    assert!(tpp.settled_local_pct > none.settled_local_pct);
    assert!(tpp.demoted_pages > 0 && none.demoted_pages == 0);
    let stored = place.run("runs show 1 --format json").expect(0).out();
    let stored: Document<Simulated> = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored.output, printed.output);
    let page = place.run("runs show 1").expect(0).out();
    assert!(page.contains("first-touch"), "{page}");
    // Nothing is simulated again.
    let again = place.run(&all).expect(0).out();
    let again: Document<Simulated> = serde_json::from_str(&again).unwrap();
    assert_eq!(again.output, printed.output);
}

#[test]
fn without_settings_the_kernels_tiering_is_only_counted() {
    let place = Place::new();
    let run = place.run("tier run --for 300ms --window 100ms --format json");
    let run: Document<Tiered> = serde_json::from_str(&run.expect(0).out()).unwrap();
    assert_eq!(run.output.before, run.output.in_force);
    assert!(run.output.windows.len() >= 3);
    let stored = place.run("runs show 1 --format json").expect(0).out();
    let stored: Document<Tiered> = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored.output, run.output);
}

#[test]
fn wrong_requests_are_refused_with_what_is_right() {
    let place = Place::new();
    for (request, code, said) in [
        ("tier simulate", 3, "--on emr2s+cxl-a"),
        (
            "tier simulate --on emr2s+cxl-a --workload web9",
            2,
            "cache1",
        ),
        ("tier simulate --on emr2s+cxl-a --policy tpq", 2, "tpp"),
        ("tier simulate --on emr2s+cxl-a --ratio 2", 2, "FAST:SLOW"),
        ("tier simulate --on emr2s", 2, "cxl0"),
        ("tier run --on emr2s", 2, "host"),
        ("tier run --window 10ms", 2, "100 ms"),
        ("tier run --for 10ms", 2, "--window"),
        ("tier run --weights dram=0", 2, "1 to 255"),
        ("tier run --promote-limit 0GB/s", 2, "more than 0"),
        ("tier run --demote cgroup:/nobody", 2, "SCOPE=RATE"),
    ] {
        let err = place.run(request).expect(code).err();
        assert!(err.contains(said), "{request}: {err}");
    }
}
