//! Several hosts on one device, as a process.

use crate::common::Place;
use serde_json::Value;

const TWO: &str = "2xemr2s+cxl-a@switch@logical";

#[test]
fn a_host_is_slowed_in_the_shared_device_and_nowhere_else() {
    let place = Place::new();
    let json = |arguments: String| -> Value { place.run(arguments.as_str()).expect(0).json() };
    let topology = json(format!("topo --on {TWO} --format json"));
    let other = topology["topology"]["other_hosts"][0].as_array().unwrap();
    assert_eq!((other.len(), &other[0]), (32, &Value::from(32)));
    let heading = place
        .run(format!("topo --on {TWO}").as_str())
        .expect(0)
        .out();
    assert!(heading.contains("one of 2 hosts"), "{heading}");

    let document = json(format!(
        "interplay --on {TWO} --victims dram:ld,cxl0:ld --aggressors cxl0:ld@host1 --threads 8 --format json"
    ));
    let cells = document["cells"].as_array().unwrap();
    let [dram, cxl] = cells.as_slice() else {
        panic!("{document}")
    };
    assert_eq!(dram["change_pct"], 0.0, "{dram}");
    assert_eq!(dram["aggressor"]["host"], 1);
    assert_eq!(dram["class"], "none");
    assert!(cxl["change_pct"].as_f64().unwrap() < -40.0, "{cxl}");
    assert_eq!(cxl["verdict"]["cause"], "device_saturation");
    let evidence = cxl["verdict"]["evidence"].to_string();
    assert!(evidence.contains("another host fills"), "{evidence}");
    let table = place.run("runs show last").expect(0).out();
    assert!(table.contains("cxl0:ld@host1"), "{table}");

    let loaded = json(format!(
        "bench loaded --on {TWO} --host 1 --tier cxl0 --mix reads --threads 8 --pause 0ns --format json"
    ));
    let points = loaded["points"].as_array().unwrap();
    let mean = |at: usize| points[at]["ns"]["mean"].as_f64().unwrap();
    assert_eq!(points[1]["beside"]["host"], 1);
    assert!(mean(1) > 1.2 * mean(0), "{} {}", mean(0), mean(1));
}

#[test]
fn a_host_that_is_not_there_is_explained() {
    let place = Place::new();
    for (arguments, why) in [
        (
            format!("interplay --on {TWO} --victims cxl0:ld@host2 --aggressors cxl0:ld"),
            "this machine has 2 hosts",
        ),
        (
            "interplay --on emr2s+cxl-a --victims cxl0:ld@host1 --aggressors cxl0:ld".into(),
            "this machine has 1 host;",
        ),
        (
            format!("interplay --on {TWO} --victims cxl0:ld@hostile --aggressors cxl0:ld"),
            "is no socket and no host",
        ),
        (
            format!("bench loaded --on {TWO} --host 2"),
            "this machine has no host 2",
        ),
        ("topo --on 9xemr2s".into(), "a machine has 1 to 8"),
        (
            "bench bandwidth --on 8xemr2s+4xcxl-a@switch".into(),
            "at most 32 are simulated",
        ),
    ] {
        let failed = place.run(arguments.as_str());
        assert!(failed.err().contains(why), "{arguments}: {}", failed.err());
        assert_ne!(failed.code(), 0, "{arguments}");
    }
}

#[test]
fn a_pair_without_a_figure_is_said_to_have_none() {
    let place = Place::new();
    let done = place.run(
        "interplay --on 2xemr2s,switch.fails_at=30us+cxl-a@switch --victims dram:ld,cxl0:ld \
         --aggressors cxl0:ld@host1 --threads 8 --quick",
    );
    assert_eq!(done.code(), 1);
    let out = String::from_utf8_lossy(&done.0.stdout).into_owned();
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("no more than 5 %; 1 pair without a figure"),
        "{out}"
    );
    assert!(!said.contains("the pair loses"), "{out}");
}
