//! What a device's tail costs a program, against a device of the same mean latency without one.

use weir_lab::{Placed, WorkloadOptions};
use weir_model::platform::Library;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::Nanos;
use weir_model::workload::Workloads;
use weir_sim::SimTestbed;

/// A device with such a share of its reads delayed, by 2 us in the mean; the mean of all is the same.
fn device(share: &str) -> String {
    let text = include_str!("../../../platforms/cxl-b.toml");
    let line = |line: &str| match line.split_once(" = ") {
        Some(("share", _)) => format!("share = {share}"),
        Some(("mean", _)) => "mean = \"2000 ns\"".to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(|l| line(l) + "\n").collect()
}

fn time(share: &str, workload: &str) -> Nanos {
    let mut library = Library::builtin();
    library.add("tailed.toml", &device(share)).unwrap();
    let platform = library.compose("emr2s+tailed").unwrap();
    let testbed = SimTestbed::new(&platform).unwrap();
    let workloads = Workloads::builtin();
    let options = WorkloadOptions::default();
    let workload = workloads.get(workload).unwrap();
    let placed = Placed {
        placement: Placement::Bind(TierName::named("cxl0")),
        ..Placed::local(workload, &options)
    };
    placed.run_on(&testbed).unwrap().time
}

/// How many times as long it takes with the tail.
fn longer(workload: &str) -> f64 {
    time("0.02", workload) / time("0", workload)
}

#[test]
fn one_read_after_another_pays_the_mean() {
    let longer = longer("chase");
    assert!((longer - 1.0).abs() < 0.03, "{longer}");
}

#[test]
fn who_overlaps_waits_for_the_last() {
    let longer = longer("mcf-like");
    assert!(longer > 1.2, "{longer}");
}
