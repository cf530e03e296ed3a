//! Sweeps from files: the same points as flags, taken up where they stopped, mistakes reported at once.

use crate::common::{Done, Place, signal, with};

const SMALL: &str = r#"
[[sweep]]
experiment = "bandwidth"
on = "emr2s+cxl-a"
matrix = { op = ["ld", "nt_st"], threads = [1, 2], tier = ["dram", "cxl0"] }
args = { prefetch = false, size = "64M" }
"#;

const AS_FLAGS: &str = "bench bandwidth --on emr2s+cxl-a --op ld,nt_st --threads 1,2 --tier dram,cxl0 \
    --no-prefetch --size 64M --format json";

const LONG: &str = r#"
[[sweep]]
experiment = "bandwidth"
on = "emr2s+2xcxl-a"
matrix = { op = ["ld", "nt_st"], threads = ["1..6"] }
"#;

#[test]
fn a_file_gives_the_points_that_flags_give() {
    let place = Place::new();
    place.file("sweep.toml", SMALL);
    let by_file = place
        .run("bench --file sweep.toml --format json")
        .expect(0)
        .json();
    let by_flags = place.run(AS_FLAGS).expect(0).json();
    assert_eq!(by_file["points"].as_array().unwrap().len(), 8);
    assert_eq!(by_file["points"], by_flags["points"]);
}

#[test]
fn a_value_that_is_given_twice_is_taken_once() {
    let place = Place::new();
    let sweep = |values: &str| {
        let on = "on = \"emr2s,core.count=4\"";
        let args = "args = { tier = \"dram\", size = \"64M\" }";
        format!("[[sweep]]\nexperiment = \"bandwidth\"\n{on}\nmatrix = {{ {values} }}\n{args}\n")
    };
    let twice = sweep("op = [\"ld\", \"ld\"], threads = [1, \"1..2\"]");
    let again = sweep("op = [\"ld\"], threads = [2]");
    place.file("sweep.toml", twice + &again);
    for words in [
        "bench --file sweep.toml",
        "bench bandwidth --on emr2s,core.count=4 --tier dram,dram --op ld,ld --threads 1,1..2 --size 64M",
    ] {
        let done = place.run(with(words, "--format json")).expect(0).json();
        let points = done["points"].as_array().unwrap();
        let threads: Vec<u64> = points
            .iter()
            .map(|p| p["threads"].as_u64().unwrap())
            .collect();
        assert_eq!(threads, [1, 2], "{words}");
    }
}

#[test]
fn several_machines_are_several_runs() {
    let place = Place::new();
    place.file(
        "sweep.toml",
        r#"
[[sweep]]
experiment = "bandwidth"
on = ["emr2s", "spr2s"]
matrix = { op = ["ld"], threads = [1], tier = ["dram"] }
"#,
    );
    let documents = place
        .run("bench --file sweep.toml --format json")
        .expect(0)
        .json();
    let names: Vec<&str> = (documents.as_array().unwrap().iter())
        .map(|document| document["machine"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["emr2s", "spr2s"]);
    let compared = place.run("runs compare 1 2 --format json").expect(0).json();
    assert_eq!(
        compared["comparisons"][0]["figures"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let table = place.run("runs compare 1 2").expect(0).out();
    assert!(table.contains("1 figure in both"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

#[test]
fn a_run_that_was_killed_is_taken_up_and_ends_as_if_it_had_not_been() {
    let place = Place::new();
    place.file("sweep.toml", LONG);
    let whole = place
        .run("bench --file sweep.toml --format json")
        .expect(0)
        .json();

    let other = Place::new();
    other.file("sweep.toml", LONG);
    for _ in 0..2 {
        let arguments = match other.store().exists() {
            true => "bench --file sweep.toml --resume",
            false => "bench --file sweep.toml",
        };
        let before = kept(&other);
        let mut child = other.start(arguments);
        other.wait_for_figures(before + 2);
        signal(&child, "KILL");
        child.wait().unwrap();
    }
    assert!(kept(&other) < whole["points"].as_array().unwrap().len() as u64);
    let resumed = other.run("runs resume last --format json").expect(0).json();
    assert_eq!(resumed["points"], whole["points"]);
    assert_eq!(resumed["partial"], false);
    // Nothing is missing now, and asking again changes nothing.
    let again = other
        .run("bench --file sweep.toml --resume 1 --format json")
        .expect(0)
        .json();
    assert_eq!(again, resumed);
    let runs = other.run("runs list --format json").json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}

fn kept(place: &Place) -> u64 {
    if !place.store().exists() {
        return 0;
    }
    let runs = place.run("runs list --format json").expect(0);
    runs.json()["runs"][0]["kept"].as_u64().unwrap_or(0)
}

#[test]
fn a_run_of_flags_is_taken_up_too() {
    let place = Place::new();
    let sweep = "bench bandwidth --on emr2s --op ld,nt_st --threads 1..8";
    let child = place.start(sweep);
    place.wait_for_figures(1);
    signal(&child, "INT");
    Done(child.wait_with_output().unwrap()).expect(1);
    let resumed = place.run("runs resume 1 --format json").expect(0).json();
    let whole = place.run(with(sweep, "--format json")).expect(0).json();
    assert_eq!(resumed["points"], whole["points"]);
}

#[test]
fn another_file_is_not_taken_for_the_same() {
    let place = Place::new();
    place.file("sweep.toml", SMALL);
    place.run("bench --file sweep.toml").expect(0);
    place.file("sweep.toml", SMALL.replace("[1, 2]", "[1, 3]"));
    place
        .run("bench --file sweep.toml --resume")
        .refuses(2, &["sweep.toml", "leave --resume out"]);
    place
        .run("bench --file sweep.toml --resume 1")
        .refuses(2, &["run 1", "sweep.toml", "runs resume 1"]);
}

#[test]
fn mistakes_are_reported_in_one_pass_with_their_places() {
    let place = Place::new();
    place.file(
        "sweep.toml",
        r#"
[[sweep]]
experiment = "randon"
[[sweep]]
experiment = "random"
matrix = { op = ["ld", "nt_ts"], blocks = ["4K"], threads = [], tier = 3 }
args = { prefetch = "no" }
[[swep]]
"#,
    );
    place.run("bench --file sweep.toml").refuses(
        2,
        &[
            "sweep.toml:3:14",
            "did you mean `random`",
            "sweep.toml:6:24",
            "nt_ts",
            "did you mean `block`",
            "empty list",
            "`sweep.matrix.tier` must be a list",
            "`sweep.args.prefetch` must be true or false",
            "did you mean `sweep`",
            "mistakes in sweep.toml",
        ],
    );
    let named = "[[sweep]]\nexperiment = \"bandwidth\"\non = \"emr2s+cxl-a\"\n";
    let named = |args: &str| format!("{named}args = {{ {args} }}\n");
    place.file(
        "machine.toml",
        named("tier = \"cxl9\"") + &named("threads = 1000"),
    );
    place.run("bench --file machine.toml").refuses(
        2,
        &[
            "machine.toml:2: `bandwidth --tier=cxl9` on emr2s+cxl-a",
            "--threads=1000` on emr2s+cxl-a",
        ],
    );
    place.file(
        "unknown.toml",
        "[[sweep]]\nexperiment = \"nodes\"\non = [\n\"spr2s\",\n\"emr3s\", \"host@1g\"]\n",
    );
    let said = place.run("bench --file unknown.toml").expect(2).err();
    for words in [
        "no platform or device is called `emr3s`",
        "host@1g is not a name of this host",
    ] {
        assert!(
            said.contains(&format!("unknown.toml:5: on: {words}")),
            "{said}"
        );
    }
    assert!(!said.contains("--on"), "{said}");
    place.file("many.toml", named("threads = \"8000\""));
    place
        .run("bench --file many.toml")
        .refuses(2, &["many.toml:4:20", "`8000` is more than 4096 threads"]);
    let outside =
        "[[sweep]]\nexperiment = \"bandwidth\"\nsize = \"64M\"\nprefetch = false\nsizes = 1\n";
    place.file("outside.toml", outside);
    place.run("bench --file outside.toml").refuses(
        2,
        &[
            "outside.toml:3:1",
            "`size` is an option of `bandwidth`",
            "write it in `args = { size = … }`",
            "outside.toml:4:1",
            "`sweep.sizes` is not a key",
            "3 mistakes in",
        ],
    );
    place.file("named.toml", named("threads = 1"));
    place
        .run("bench --file named.toml --on emr2s")
        .refuses(2, &["--on emr2s has no effect", "named.toml"]);
    place
        .run("bench --file none.toml")
        .refuses(2, &["none.toml", "No such file"]);
    place
        .run("bench --file sweep.toml latency")
        .refuses(2, &["--file"]);
}

#[test]
fn very_many_points_are_said_before_they_start_and_refused_without_yes() {
    let place = Place::new();
    let sizes: Vec<String> = (0..400).map(|n| format!("\"{}K\"", 64 + n)).collect();
    let sweep = format!(
        "[[sweep]]\nexperiment = \"random\"\non = \"emr2s\"\nmatrix = {{ op = [\"ld\"], \
         threads = [\"1..32\"], block = [{}], tier = [\"dram\"] }}\n",
        sizes.join(", ")
    );
    place.file("sweep.toml", sweep);
    place
        .run("bench --file sweep.toml")
        .refuses(2, &["12800 figures", "in the store", "--yes"]);
    assert!(!place.store().exists());
}
