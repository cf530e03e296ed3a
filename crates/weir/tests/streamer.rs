//! STREAM on both sockets, STREAMer's files, and STREAM in a mapped file, as a process.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Done, Place, signal, text};

const BOTH: &str = "bench stream --on streamer --sockets 0,1 --kernel triad";

/// The bandwidth of each thread count, and the affinity.
fn by_threads(document: &Value, affinity: &str) -> Vec<(u64, f64)> {
    let points = document["points"].as_array().unwrap().iter();
    points
        .filter(|point| point["affinity"] == affinity)
        .map(|point| {
            (
                point["threads"].as_u64().unwrap(),
                point["gbps"].as_f64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn threads_of_the_other_socket_bend_the_curves_where_theirs_begins() {
    let place = Place::new();
    let words = format!(
        "{BOTH} --tier dram,remote --threads 8,10,12,20 --affinity close,spread --format json"
    );
    let document = place.run(words.as_str()).expect(0).json();
    let points = document["points"].as_array().unwrap();
    for (affinity, tier) in [("close", "dram"), ("close", "remote"), ("spread", "dram")] {
        let own = points.iter().filter(|point| point["tier"] == tier).cloned();
        let own = serde_json::json!({ "points": own.collect::<Vec<_>>() });
        let curve = by_threads(&own, affinity);
        let at = |threads: u64| curve.iter().find(|point| point.0 == threads).unwrap().1;
        match (affinity, tier) {
            // Within the socket more threads change little; those of the other one have their lines far away.
            ("close", "dram") => {
                assert!((at(10) / at(8) - 1.0).abs() < 0.06, "{curve:?}");
                assert!(at(20) < 0.95 * at(10), "{curve:?}");
            }
            ("close", _) => assert!(at(20) > 1.05 * at(10), "{curve:?}"),
            // Half of eight threads are on the other socket already.
            _ => assert!((at(20) / at(8) - 1.0).abs() < 0.1, "{curve:?}"),
        }
    }
    let message = place.run(format!("{BOTH} --tier dram --threads 10,20").as_str());
    let message = message.expect(0).out();
    assert!(
        message.contains("beyond the 10 cores of the first socket"),
        "{message}"
    );
    assert!(message.contains("both sockets, close"), "{message}");
}

#[test]
fn the_second_socket_is_asked_for_in_words_that_make_sense() {
    let place = Place::new();
    place
        .run("bench stream --on streamer --affinity close")
        .refuses(2, &["--sockets 0,1"]);
    place
        .run("bench stream --on hotstorage22 --sockets 1")
        .refuses(3, &["no second socket"]);
    place
        .run(format!("{BOTH} --threads 21").as_str())
        .refuses(2, &["21 threads", "20"]);
    place
        .run(format!("{BOTH} --affinity near").as_str())
        .refuses(2, &["close or spread"]);
    let words = "bench stream --on streamer --sockets 1 --tier remote --kernel copy --threads 10 --format json";
    let own = place.run(words).expect(0).json()["points"][0].clone();
    assert_eq!(own["socket"], 1);
    let words = "bench stream --on streamer --tier dram --kernel copy --threads 10 --format json";
    let near = place.run(words).expect(0).json()["points"][0]["gbps"].as_f64();
    // What is remote for the first socket is near for the next.
    let ratio = own["gbps"].as_f64().unwrap() / near.unwrap();
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn a_run_is_written_as_streamers_files_and_compared_with_one() {
    let place = Place::new();
    let words = "bench stream --on streamer --tier cxl0 --threads 1,10";
    place.run(words).expect(0);
    place
        .run("runs export last --as streamer -o data.csv")
        .expect(0);
    let written = text(&place.path("data.csv"));
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines[0], "threads,copy,scale,add,triad");
    assert!(
        lines[1].starts_with("1,") && lines[2].starts_with("10,"),
        "{written}"
    );
    let message = place.run("runs compare last data.csv").expect(0).out();
    assert!(message.contains("figures is 0.0 %"), "{message}");
    let paper = "threads,copy,scale,add,triad\n10,9743.6,9647.6,11230.2,11130.2\n";
    place.file("paper.csv", paper);
    let rows = place
        .run("runs compare last paper.csv --format csv")
        .expect(0);
    assert_eq!(rows.out().lines().count(), 5);
    place.file("other.csv", "threads,copy,scale,add,triad\n7,1,2,3,4\n");
    place
        .run("runs compare last other.csv")
        .refuses(2, &["no thread count in common"]);
    place
        .run("bench stream --on streamer --threads 1 --quick")
        .expect(0);
    place
        .run("runs export last --as streamer")
        .refuses(2, &["3 files (cxl0, dram, remote)", "-o"]);
    std::fs::create_dir(place.path("all")).unwrap();
    place.run("runs export last --as streamer -o all").expect(0);
    assert!(place.path("all/remote.csv").exists());
    place
        .run("bench latency --on streamer --quick --tier dram")
        .expect(0);
    place
        .run("runs export last --as streamer")
        .refuses(2, &["no figures of STREAM"]);
}

const DAX: &str = "bench stream --dax pool --elements 30000 --threads 1 --times 3 --format json";

#[test]
fn a_mapped_file_keeps_its_arrays_for_the_next_run() {
    let place = Place::new();
    let first = place.run(DAX).expect(0).json();
    assert_eq!(first["schema"], "weir/app-direct/1");
    assert!(first.get("reopened").is_none(), "{first:#}");
    let kernels = first["kernels"].as_array().unwrap();
    let names: Vec<&str> = kernels
        .iter()
        .map(|row| row["kernel"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["copy", "scale", "add", "triad"]);
    assert!(
        kernels
            .iter()
            .all(|row| row["gbps"].as_f64().unwrap() > 0.0)
    );
    let again = place.run(format!("{DAX} --durable block,transaction --force").as_str());
    let again = again.expect(0).json();
    // 30000 elements are 59 blocks of 4 KiB in each of three arrays.
    let left = serde_json::json!({"durable": "none", "undone": 0, "old": 0, "new": 177, "torn": 0});
    assert_eq!(again["reopened"], left);
    let kinds: BTreeSet<&str> = (again["kernels"].as_array().unwrap().iter())
        .map(|row| row["durable"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, BTreeSet::from(["block", "none", "transaction"]));
    // It is shown again as it was printed, and is one of STREAMer's files.
    let shown = place.run("runs show last --format json").expect(0).json();
    assert_eq!(shown["kernels"], again["kernels"]);
    std::fs::create_dir(place.path("all")).unwrap();
    place.run("runs export last --as streamer -o all").expect(0);
    assert!(place.path("all/transaction.csv").exists());
}

#[test]
fn what_cannot_be_is_refused_and_no_file_of_others_is_touched() {
    let place = Place::new();
    let asks = |more: &str| format!("bench stream --dax {more} --elements 30000 --threads 1");
    place
        .run("bench stream --dax pool --on streamer")
        .refuses(2, &["streamer is a model"]);
    place
        .run(asks("missing/pool").as_str())
        .refuses(2, &["missing/pool"]);
    // A file in /dev would be memory that looks like a device.
    place
        .run(asks("/dev/weir-nothing").as_str())
        .refuses(2, &["no device /dev/weir-nothing"]);
    assert!(!std::path::Path::new("/dev/weir-nothing").exists());
    place.file("notes", "mine");
    place
        .run(asks("notes").as_str())
        .refuses(2, &["notes", "remove it"]);
    assert_eq!(text(&place.path("notes")), "mine");
    // As a block device such as /dev/pmem0, a pipe has no bytes of its own.
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for path in ["pipe", "/dev/zero"] {
        let said = format!("{path} is neither a file nor a DAX device");
        place.run(asks(path).as_str()).refuses(2, &[&said]);
    }
    assert!(place.path("pipe").exists());
    place
        .run(asks("pool --block 100B").as_str())
        .refuses(2, &["multiple of 64 B"]);
    place
        .run(asks("pool --tier dram").as_str())
        .refuses(2, &["--tier"]);
    place
        .run("bench stream --durable block")
        .refuses(2, &["--dax"]);
    // On a file system without DAX nothing makes it durable.
    let done = place.run(asks("pool --durable block").as_str());
    if !done.err().is_empty() && done.code() != 0 {
        done.refuses(3, &["MAP_SYNC", "--force"]);
        assert!(!place.path("pool").exists());
    }
}

/// Whether a run writes blocks by transactions now, as the sixth word of its pool's header says; those without durability
/// come first.
fn writes_transactions(place: &Place) -> bool {
    let mut header = [0; 48];
    let file = std::fs::File::open(place.path("pool"));
    file.and_then(|mut file| file.read_exact(&mut header))
        .is_ok()
        && header[40] == 2
}

#[test]
fn a_stopped_run_on_a_mapped_file_keeps_what_was_measured() {
    let place = Place::new();
    let child = place.start(
        "bench stream --dax pool --elements 400000 --threads 1 --times 200 --durable transaction --force",
    );
    let patience = Instant::now() + Duration::from_secs(180);
    while !writes_transactions(&place) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    let done = Done(child.wait_with_output().unwrap()).expect(1);
    assert!(done.out().contains("durable: none"), "{}", done.out());
    for words in [
        "bench stream --dax: 2 steps",
        "stopped: 1 of 2 runs are kept",
    ] {
        assert!(done.err().contains(words), "{}", done.err());
    }
    let kept = place.run("runs show last --format json").expect(0).json();
    assert_eq!(kept["partial"], true);
    assert_eq!(kept["kernels"].as_array().unwrap().len(), 4);
}

/// A run is killed while it writes blocks by transactions: after the undo logs each block is old or new.
#[test]
fn a_killed_transaction_leaves_every_block_old_or_new() {
    let place = Place::new();
    let words = "bench stream --dax pool --elements 400000 --threads 1 --times 200 --block 64K \
                 --durable transaction --force";
    let reopen =
        "bench stream --dax pool --elements 400000 --threads 1 --times 2 --block 64K --format json";
    let (mut seen, mut attempts) = (0, 0);
    let patience = Instant::now() + Duration::from_secs(180);
    while seen < 3 {
        assert!(
            Instant::now() < patience,
            "no run was killed while it wrote blocks"
        );
        let mut child = place.start(words);
        while !writes_transactions(&place) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        attempts += 1;
        std::thread::sleep(Duration::from_millis(7 * attempts));
        signal(&child, "KILL");
        child.wait().unwrap();
        if !place.path("pool").exists() {
            continue;
        }
        let document = place.run(reopen).expect(0).json();
        let left = &document["reopened"];
        if left["durable"] != "transaction" {
            continue;
        }
        let count = |name: &str| left[name].as_u64().unwrap();
        assert_eq!(count("torn"), 0, "{left:#}");
        // 400000 elements are 49 blocks of 64 KiB.
        assert_eq!(count("old") + count("new"), 147, "{left:#}");
        assert!(count("undone") <= 1, "{left:#}");
        seen += 1;
    }
}
