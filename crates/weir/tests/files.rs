//! Reads and writes of files on a slower tier, by file system.

use serde_json::Value;

use crate::common::Place;

fn times(place: &Place, words: &str) -> Value {
    place
        .run(format!("place files --format json {words}"))
        .expect(0)
        .json()
}

/// A figure of a row that has these words.
fn figure(list: &Value, of: &[(&str, &str)], threads: u64, key: &str) -> f64 {
    let mut rows = list.as_array().unwrap().iter();
    let row = rows
        .find(|row| row["threads"] == threads && of.iter().all(|(key, word)| row[key] == *word));
    row.unwrap_or_else(|| panic!("{of:?} {threads}"))[key]
        .as_f64()
        .unwrap()
}

#[test]
fn parts_add_up_and_copies_take_no_less_than_the_machine_allows() {
    let place = Place::new();
    let found = times(&place, "--on flac --threads 1,4");
    let rows = found["ios"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * (7 + 6 + 4));
    for row in rows {
        let parts = ["software", "copy", "cache", "flush", "miss", "attach"];
        let sum: f64 = parts.map(|key| row[key].as_f64().unwrap()).iter().sum();
        let total = row["total"].as_f64().unwrap();
        assert!((sum - total).abs() < 1e-6 * total, "{row}");
    }
    let stream = place
        .run("bench bandwidth --on flac --tier dram --op nt_st --threads 1 --format json")
        .expect(0)
        .json();
    let stream = stream["points"][0]["gbps"].as_f64().unwrap();
    let copied = figure(&found["copies"], &[], 1, "cached");
    assert!(
        copied <= stream * 1.02 && copied > stream / 4.0,
        "{copied} {stream}"
    );
    // Four threads copy more than the medium takes, and attached pages need no copy.
    let of = |system, key| {
        figure(
            &found["ios"],
            &[("system", system), ("access", "write")],
            4,
            key,
        )
    };
    assert!(of("flac", "gbps") > 4.0 * of("nova", "gbps"));
    assert!(of("flac", "sustained") <= figure(&found["copies"], &[], 1, "to_medium") * 1.1);
    assert!(of("flac", "full_after_s") < of("ext4", "full_after_s"));
    let page = place.run("report 1 -o -").expect(0).out();
    assert!(page.contains("<h1>Files on a slower tier: flac"));
    let again = times(&Place::new(), "--on flac --threads 1,4");
    assert_eq!(again["ios"], found["ios"]);
}

#[test]
fn a_slower_medium_and_a_cache_that_holds_more_pages_cost_what_copies_take() {
    let place = Place::new();
    let near = times(&place, "--on flac --threads 1");
    let medium = include_str!("../../../platforms/flac-pm.toml");
    let slow = medium.replace(
        r#""305 ns", assumed = ["170 ns", "350 ns"]"#,
        r#""3000 ns", assumed = ["170 ns", "3000 ns"]"#,
    );
    assert_ne!(slow, medium);
    place.file("slow.toml", slow);
    let far = times(&place, "--on flac+./slow.toml --threads 1 --held 10G");
    let read = |found: &Value, system| {
        figure(
            &found["ios"],
            &[("system", system), ("access", "read"), ("state", "warm")],
            1,
            "total",
        )
    };
    let gain = |found: &Value| read(found, "ext4-dax") / read(found, "flac");
    assert!(
        gain(&far) > 1.5 * gain(&near),
        "{} {}",
        gain(&far),
        gain(&near)
    );
    let flush = |found: &Value| {
        figure(
            &found["ios"],
            &[("system", "ext4"), ("access", "write")],
            1,
            "flush",
        )
    };
    assert!(flush(&far) > 2.0 * flush(&near));
}

#[test]
fn a_size_that_is_no_page_and_a_tier_that_has_no_files_are_refused() {
    let place = Place::new();
    for (words, says) in [
        ("--size 5K", "multiple of 4 KiB"),
        ("--size 2G", "up to 1 GiB"),
        ("--tier dram", "slower tier"),
        ("--tier cxl7", "cxl7"),
        ("--threads 40", "40"),
    ] {
        let err = place
            .run(format!("place files --on flac {words}"))
            .expect(2)
            .err();
        assert!(err.contains(says), "{words}: {err}");
    }
}
