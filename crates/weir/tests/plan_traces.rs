//! Traces of `weir plan` as a process: every format, bad lines and files, and traces that do not end.

use std::io::Write as _;
use std::process::Stdio;

use crate::common::{Place, text};

fn rows<'d>(document: &'d serde_json::Value, list: &str) -> &'d Vec<serde_json::Value> {
    document[list].as_array().unwrap()
}

#[test]
fn a_generated_trace_is_written_and_gives_the_figures_of_its_cluster() {
    let place = Place::new();
    place
        .run("plan trace -o cluster.csv --machines 8 --days 3")
        .expect(0);
    let of = |words: &str| {
        let json = place.run(words).expect(0).json();
        (json["placed"].clone(), json["savings"].clone())
    };
    assert_eq!(
        of("plan pool --trace cluster.csv --machines 8 --format json"),
        of("plan pool --machines 8 --days 3 --format json")
    );
    // As Parquet it is the same.
    place
        .run("plan trace --trace cluster.csv -o cluster.parquet --machines 8")
        .expect(0);
    assert!(
        std::fs::read(place.path("cluster.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
    assert_eq!(
        of("plan pool --trace cluster.csv --machines 8 --format json"),
        of("plan pool --trace cluster.parquet --machines 8 --format json")
    );
    place
        .run("plan packing --trace cluster.parquet --as azure-vm")
        .refuses(
            2,
            &["cluster.parquet is Parquet, which has the columns arrival_s"],
        );
    // What is compressed is unpacked.
    let packed = |from: &str, to: &str| {
        let packed = std::process::Command::new("gzip")
            .arg("-c")
            .arg(place.path(from))
            .output();
        std::fs::write(place.path(to), packed.unwrap().stdout).unwrap();
    };
    packed("cluster.csv", "cluster.csv.gz");
    assert_eq!(
        of("plan pool --trace cluster.csv --machines 8 --format json"),
        of("plan pool --trace cluster.csv.gz --machines 8 --format json")
    );
    packed("cluster.csv.gz", "twice.gz");
    place.run("plan pool --trace twice.gz").refuses(
        2,
        &["twice.gz: what is read begins like a file of gzip: it was compressed twice"],
    );
    // A file that is refused at its head is not unpacked to its end, which nothing would read.
    place.file(
        "wrong",
        format!("arrival_s,cores\n{}", "0,2\n".repeat(100_000)),
    );
    packed("wrong", "wrong.gz");
    place
        .run("plan pool --trace wrong.gz")
        .refuses(2, &["wrong.gz:1: there is no column `departure_s`"]);
    let whole = std::fs::read(place.path("cluster.csv.gz")).unwrap();
    std::fs::write(place.path("cut.gz"), &whole[..whole.len() / 2]).unwrap();
    place.run("plan pool --trace cut.gz --machines 8").refuses(
        2,
        &["cut.gz: the compressed trace was cut off or is damaged"],
    );
    place.file(
        "latin.csv",
        b"arrival_s,departure_s,cores,memory_gib\n0,9,2,8\n0,\xe9,2,8\n",
    );
    place
        .run("plan pool --trace latin.csv")
        .refuses(2, &["latin.csv:3: not text in UTF-8"]);
    place.file("cut.parquet", "PAR1 and no more");
    place
        .run("plan packing --trace cut.parquet")
        .refuses(2, &["cut.parquet is no Parquet file that can be read"]);
    let again = of("plan pool --machines 8 --days 3 --seed 2 --format json");
    assert_ne!(again, of("plan pool --machines 8 --days 3 --format json"));
}

#[test]
fn bad_lines_are_warned_of_by_number_and_bad_files_are_refused() {
    let place = Place::new();
    let good = "arrival_s,departure_s,cores,memory_gib\n0,900,2,8\n0,1000,4,16\n";
    place.file(
        "t.csv",
        format!("{good}9,3,2,8\n10,20,200,8\n11,20,2,lots\n"),
    );
    let done = place.run("plan pool --trace t.csv --machines 4").expect(0);
    for words in [
        "ends before its beginning: 1 in all, first line 4",
        "larger than a machine: 1 in all, first line 5; left out",
        "unreadable: 1 in all, first line 6; in line 6 `memory_gib` is `lots`; left out",
    ] {
        assert!(done.err().contains(words), "{}", done.err());
    }
    let drawn = "t.csv: what 2 VMs touch, or whether the pool slows them, is not in the trace";
    assert!(done.err().contains(drawn), "{}", done.err());
    let shown = place.run("runs show last --format json").expect(0).json();
    assert!(shown["warnings"].to_string().contains(drawn), "{shown}");
    assert!(
        done.out().contains("ends before beginning"),
        "{}",
        done.out()
    );
    let done = place
        .run("plan trace --trace t.csv -o left.csv --format json -q")
        .expect(0);
    let warned = done.err();
    assert!(warned.contains("first line 4"), "{warned}");
    let written = done.json();
    let json = |text: &str| serde_json::json!(text);
    assert_eq!(
        (&written["schema"], &written["file"], &written["vms"]),
        (
            &json("weir/plan-trace/1"),
            &json("left.csv"),
            &serde_json::json!(2)
        )
    );
    assert!(written["left_out"].to_string().contains("first line 4"));
    place.file(
        "mib.csv",
        "arrival_s,departure_s,cores,memory_gib\n0,900,2,8192\n",
    );
    place
        .run("plan pool --trace mib.csv")
        .refuses(2, &["another unit than GiB"]);
    // Without a VM there is nothing to answer.
    place
        .run("plan pool --trace t.csv --machine 2:1GiB")
        .refuses(
            2,
            &[
                "t.csv: no VM fits into a machine of 2 cores, 1 GiB",
                "--machine",
            ],
        );
    // A machine of which no core is rented for an hour has no stranded memory to speak of.
    place.file(
        "one.csv",
        "arrival_s,departure_s,cores,memory_gib\n0,900,2,8\n",
    );
    let one = place.run("plan pool --trace one.csv --machines 4 --pools 4 --format json");
    assert_eq!(rows(&one.expect(0).json(), "stranding").len(), 0);
    let shown = place.run("runs show last").expect(0).out();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("it cannot see the memory that is stranded when"),
        "{shown}"
    );
    place
        .run("plan pool --trace none.csv")
        .refuses(2, &["none.csv"]);
    place
        .run("plan pool --machine 96:lots")
        .refuses(2, &["96:472GiB", "lots"]);
    place
        .run("plan pool --pools 9")
        .refuses(2, &["multiple of the 2 sockets"]);
    place
        .run("plan packing --trace t.csv --as azure-packing")
        .refuses(2, &["t.csv is no Azure packing trace"]);
    place.file(
        "azure.csv",
        "a,s,d,0,600,9,9,9,Unknown,2,8\nb,s,d,0,600,9,9,9,Unknown,2,8\n",
    );
    place
        .run("plan trace --trace azure.csv --as azure-vm -o own.csv")
        .expect(0);
    assert!(text(&place.path("own.csv")).starts_with("arrival_s,departure_s,cores,memory_gib"));
    place.file(
        "borg.json",
        r#"{"time":"5000000","type":"SCHEDULE","collection_id":"7","instance_index":"0","priority":"103","resource_request":{"cpus":0.25,"memory":0.5}}"#,
    );
    place
        .run("plan trace --trace borg.json --as google-2019 -o borg.csv")
        .refuses(2, &["below production priority"]);
    place
        .run("plan trace --trace borg.json --as google-2019 --low-priority -o borg.csv")
        .expect(0);
    assert!(text(&place.path("borg.csv")).contains("\n5,,24,236,7,103,"));
}

#[test]
fn a_trace_without_an_end_is_given_up_at_ctrl_c() {
    let place = Place::new();
    let mut command = place.command("plan pool --trace -");
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut sink = child.stdin.take().unwrap();
    let lines = std::thread::spawn(move || {
        let mut lines = 0;
        sink.write_all(b"arrival_s,departure_s,cores,memory_gib\n")
            .unwrap();
        while sink.write_all(b"0,9,2,8\n").is_ok() {
            lines += 1;
        }
        lines
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    crate::common::signal(&child, "INT");
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("- was not read to its end"), "{said}");
    assert!(lines.join().unwrap() > 0);
}

#[test]
fn a_plan_of_no_cluster_of_too_many_or_of_options_that_change_nothing_is_refused() {
    let place = Place::new();
    let small = "--machines 4 --days 2";
    place
        .run(format!("plan trace -o c.csv {small}").as_str())
        .expect(0);
    place.file(
        "short.csv",
        "arrival_s,departure_s,cores,memory_gib\n0,9,2,4\n90,99,2,4\n",
    );
    std::fs::create_dir(place.path("folder")).unwrap();
    for (words, said) in [
        ("plan pool --clusters 0", "0 is not in 1..=10000"),
        ("plan pool --clusters 4000000000", "is not in 1..=10000"),
        ("plan packing --trace c.csv --days 3", "--days <DAYS>"),
        (
            "plan trace --trace c.csv --shift-day 3 -o d.csv",
            "--shift-day <DAY>",
        ),
        (
            "plan packing --trace short.csv --at 0.0006",
            "no VM of short.csv is there after 51 s; name another moment with --at",
        ),
        (
            "plan packing --trace folder",
            "folder is a folder; name a trace in it",
        ),
        (
            "plan trace -o folder --days 2 --machines 4",
            "cannot write folder",
        ),
        (
            "plan latency --core 2s",
            "must be above 0 ns and at most 1 s",
        ),
    ] {
        place.run(words).refuses(2, &[said]);
    }
}
