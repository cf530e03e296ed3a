//! `weir workload import` and `record` as processes: formats, packed and damaged traces, what is written, what is left.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Place, signal, text};
use weir_model::document::Document;
use weir_trace::check::Imported;

/// Two arrays: one is passed again and again, the other is read at random.
fn lackey(accesses: u64) -> String {
    let mut all = String::from("==1== Lackey\n");
    let mut random = 1_u64;
    for n in 0..accesses {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let place = match n % 2 {
            0 => 0x10_0000_0000 + n / 2 * 64 % (2 << 20),
            _ => 0x20_0000_0000 + (random >> 33) % (4 << 20) / 8 * 8,
        };
        let kind = if n % 4 == 1 { 'S' } else { 'L' };
        all.push_str(&format!(
            "I  00400000,4\nI  00400004,4\n {kind} {place:x},8\n"
        ));
    }
    all
}

fn installed(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok()
}

#[test]
fn memory_that_no_region_describes_has_a_name() {
    let place = Place::new();
    let mut all = String::new();
    let mut random = 1_u64;
    for n in 0..120_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Six large parts, and three lines between two of them.
        let at = match n % 2000 {
            0 => 0x25_0000_0000 + n / 2000 % 3 * 64,
            _ => 0x10_0000_0000 * (n % 6 + 1) + (random >> 33) % (1 << 20) / 8 * 8,
        };
        all.push_str(&format!("I  00400000,4\n L {at:x},8\n"));
    }
    place.file("parts.lackey", all);
    let done = place.run("workload import parts.lackey --format json");
    let found: Document<Imported> = serde_json::from_str(&done.expect(0).out()).unwrap();
    let names: Vec<&str> = (found.output.regions.iter())
        .map(|row| row.region.as_str())
        .collect();
    assert_eq!(names, ["m1", "m2", "m3", "m4", "m5", "m6", "others", "all"]);
}

#[test]
fn a_trace_becomes_a_description_that_runs() {
    let place = Place::new();
    place.file("two.lackey", lackey(400_000));
    let json = place
        .run("workload import two.lackey --format json")
        .expect(0);
    assert!(json.err().contains("wrote two.toml"), "{}", json.err());
    // Parts in a hundred are no figures.
    assert!(!json.err().contains("100 steps"), "{}", json.err());
    let found: Document<Imported> = serde_json::from_str(&json.out()).unwrap();
    let regions = &found.output.workload.phases[0].regions;
    let orders: Vec<&str> = regions.iter().map(|r| r.order.name()).collect();
    assert_eq!(orders, ["sequential", "random"]);
    let near =
        |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.1, "{found} {wanted}");
    near(regions[0].bytes.0 as f64, (2 << 20) as f64);
    near(regions[1].bytes.0 as f64, (4 << 20) as f64);
    near(regions[1].stores, 0.5);
    for row in found
        .output
        .misses
        .iter()
        .filter(|row| row.trace_mpki > 1.0)
    {
        near(row.described_mpki, row.trace_mpki);
    }
    place.run("workload check two.toml").expect(0);
    place
        .run("workload run two.toml --on emr2s+cxl-a --accesses 1000")
        .expect(0);
    // The run is kept, and is shown again.
    let again = place.run("runs show 1").expect(0).out();
    assert!(again.contains("two"), "{again}");
    let wide = again.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    // Its chart has the trace and the description.
    place.run("report 1 -o page.html").expect(0);
    let words = "whether the description misses in caches of";
    let page = text(&place.path("page.html"));
    assert_eq!(page.matches(words).count(), 1);
    for series in ["trace", "description"] {
        assert!(page.contains(&format!("<td>{series}</td>")), "{series}");
    }
    // A second one must be named.
    place
        .run("workload import two.lackey")
        .refuses(2, &["two.toml is there already", "-o"]);
    place
        .run("workload import two.lackey -o two.toml")
        .expect(0);
}

#[test]
fn packed_traces_are_unpacked_and_damaged_ones_are_reported() {
    let place = Place::new();
    let plain = place.file("t.lackey", lackey(60_000));
    place
        .run("workload import t.lackey -o plain.toml -q")
        .expect(0);
    // A full disk costs no description.
    let full = place.run("workload import t.lackey -o /dev/full").expect(1);
    assert!(full.out().contains("kind = \"workload\""), "{}", full.err());
    assert!(
        full.err().contains("cannot write /dev/full"),
        "{}",
        full.err()
    );
    for (tool, end) in [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst")] {
        if !installed(tool) {
            eprintln!("{tool} is not installed");
            continue;
        }
        let packed = Command::new(tool)
            .arg("-c")
            .arg(&plain)
            .output()
            .unwrap()
            .stdout;
        place.file(&format!("t.lackey.{end}"), &packed);
        let said = place
            .run(format!("workload import t.lackey.{end} -o {tool}.toml").as_str())
            .expect(0);
        assert!(!said.err().contains("warning"), "{}", said.err());
        let same = |name: &str| {
            text(&place.path(name))
                .lines()
                .skip(3)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(same(&format!("{tool}.toml")), same("plain.toml"));
        place.file("cut", &packed[..packed.len() / 2]);
        let said = place.run("workload import cut -o cut.toml").expect(0).err();
        assert!(said.contains("was cut off"), "{said}");
        let mut again = Command::new(tool)
            .arg("-c")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        again.stdin.take().unwrap().write_all(&packed).unwrap();
        place.file("twice", again.wait_with_output().unwrap().stdout);
        place
            .run("workload import twice -o twice.toml")
            .refuses(2, &["compressed twice", tool]);
        assert!(!place.path("twice.toml").exists());
    }
    place.file("empty", "");
    place
        .run("workload import empty")
        .refuses(2, &["empty: it is empty"]);
    place
        .run("workload import missing")
        .refuses(2, &["cannot read the trace missing"]);
    place.file("prose", "It was a dark night.\nNothing moved.\n");
    place
        .run("workload import prose")
        .refuses(2, &["--as", "lackey"]);
    place
        .run("workload import prose --as lackey")
        .refuses(2, &["line 1"]);
    place
        .run("workload import t.lackey --as champsim -o x.toml")
        .refuses(2, &["byte 8", "looks like lackey"]);
    place
        .run("workload import t.lackey --as perf")
        .refuses(2, &["ramulator"]);
}

#[test]
fn what_unpacks_a_trace_may_be_missing() {
    let place = Place::new();
    place.file("t.zst", b"\x28\xb5\x2f\xfd----");
    let mut command = place.command("workload import t.zst -o t.toml");
    let done = command.env("PATH", place.path("nothing")).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("apt-get install zstd"), "{said}");
}

#[test]
fn a_share_of_a_trace_is_looked_at_in_windows() {
    let place = Place::new();
    // Windows are of 64 MiB, so that records of 64 bytes are a trace of 320 MiB.
    let mut record = [0_u8; 64];
    record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
    let mut file = std::io::BufWriter::new(std::fs::File::create(place.path("big")).unwrap());
    let mut random = 1_u64;
    for _ in 0..5 << 20 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let address = 0x10_0000_0000 + (random >> 33) % (8 << 20) / 8 * 8;
        record[32..40].copy_from_slice(&address.to_le_bytes());
        file.write_all(&record).unwrap();
    }
    file.flush().unwrap();
    let json = place
        .run("workload import big --share 50% -o big.toml --format json")
        .expect(0);
    let found: Document<Imported> = serde_json::from_str(&json.out()).unwrap();
    let looked_at = found.output.looked_at_pct;
    assert!((50.0..61.0).contains(&looked_at), "{looked_at}");
    let regions = &found.output.workload.phases[0].regions;
    assert_eq!(regions.len(), 1);
    assert!(
        (regions[0].bytes.0 as f64 / (8 << 20) as f64 - 1.0).abs() < 0.1,
        "{}",
        regions[0].bytes
    );
}

#[test]
fn standard_input_is_read() {
    let place = Place::new();
    let mut child = place
        .command("workload import - -o piped.toml")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lackey(50_000).as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(
        done.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(text(&place.path("piped.toml")).contains("lackey trace of standard input"));
}

#[test]
fn a_command_is_recorded_until_it_ends_or_the_time_is_over() {
    let tracers = [
        ("qemu", "qemu-x86_64", "qemu-user", "30 to 300 times slower"),
        (
            "lackey",
            "valgrind",
            "valgrind",
            "1000 to 3000 times slower",
        ),
    ];
    for (with, tool, package, slower) in tracers {
        let place = Place::new();
        if !installed(tool) || (with == "qemu" && !installed("cc")) {
            let done = place.run(&["workload", "record", "--with", with, "--", "true"][..]);
            done.refuses(
                3,
                &[
                    "apt-get install",
                    if installed(tool) { "gcc" } else { package },
                ],
            );
            continue;
        }
        let record = |more: &[&str]| {
            let words = ["workload", "record", "--with", with];
            place.run(&[&words, more].concat()[..])
        };
        let done = record(&["-o", "sum.toml", "--", "sh", "-c", "true"]).expect(0);
        assert!(done.err().contains(slower), "{}", done.err());
        assert!(text(&place.path("sum.toml")).contains("sh -c true, from a trace"));
        let failing = ["-o", "fails.toml", "--", "sh", "-c", "exit 3"];
        let failed = record(&failing).expect(3);
        assert!(
            failed.err().contains("ended with exit code 3"),
            "{}",
            failed.err()
        );
        // As the kernel does where memory is short: nobody has asked for it.
        let killed = ["-o", "killed.toml", "--", "sh", "-c", "kill -KILL $$"];
        let killed = record(&killed).expect(137).err();
        assert!(killed.contains("ended with signal 9"), "{killed}");
        let again = place.run(&["runs", "show", "2"][..]).expect(0).out();
        let words: Vec<&str> = again.split_whitespace().collect();
        assert!(words.join(" ").contains("sh -c 'exit 3'"), "{again}");
        let began = Instant::now();
        let endless = ["--", "sh", "-c", "while :; do :; done"];
        let asked =
            record(&[&["--for", "2s", "-o", "endless.toml"][..], &endless].concat()).expect(0);
        assert!(!asked.err().contains("ended with"), "{}", asked.err());
        assert!(began.elapsed() < Duration::from_secs(60));
        record(&["-o", "no.toml", "--", "no-such-program"]).refuses(2, &["no-such-program"]);
    }
}

#[test]
fn a_script_is_recorded_by_its_interpreter_and_what_is_not_followed_is_named() {
    let place = Place::new();
    if !installed("qemu-x86_64") || !installed("cc") || !installed("valgrind") {
        return;
    }
    let record = |with: &str, words: &[&str]| {
        let all = [
            &["workload", "record", "--with", with, "-o", "o.toml", "--"][..],
            words,
        ]
        .concat();
        place.run(&all[..]).expect(0).err()
    };
    for (name, first) in [("plain", "#!/bin/sh"), ("found", "#!/usr/bin/env sh")] {
        let script = place.file(name, format!("{first}\necho $1 > said\n"));
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = record("qemu", &[&script.display().to_string(), name]);
        assert!(said.contains("only its interpreter is followed"), "{said}");
        assert!(!said.contains("another program"), "{said}");
        assert_eq!(text(&place.path("said")), format!("{name}\n"));
    }
    for with in ["qemu", "lackey"] {
        let said = record(with, &["sh", "-c", "exec sleep 1"]);
        assert!(said.contains("`sh` became another program, /"), "{said}");
        let said = record(with, &["sh", "-c", "sleep 1; true"]);
        assert!(said.contains("`sh` started other processes"), "{said}");
    }
    // What cannot be started is named before the tracer starts.
    let place = Place::new();
    for (name, text, said) in [
        ("lost", "#!/no/such/shell\n", "there is no `/no/such/shell`"),
        ("env", "#!/usr/bin/env no-such\n", "there is no `no-such`"),
        ("words", "true\n", "neither a program of this machine"),
        ("plain", "true\n", "it is not executable"),
    ] {
        let file = place.file(name, text);
        let mode = if name == "plain" { 0o644 } else { 0o755 };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        place
            .run(format!("workload record --with qemu -- ./{name}").as_str())
            .refuses(2, &[name, said]);
    }
    std::fs::create_dir(place.path("folder")).unwrap();
    place
        .run("workload record -- ./folder")
        .refuses(2, &["it is a folder"]);
    // One that another program has killed was not described to its end.
    let killed = [
        "workload",
        "record",
        "--with",
        "qemu",
        "-o",
        "o.toml",
        "--",
        "sh",
        "-c",
        "kill -9 $$",
    ];
    let said = place.run(killed).expect(137).err();
    assert!(said.contains("ended with signal 9"), "{said}");
    assert!(said.contains("without up to 8192"), "{said}");
}

/// A list in random order, or the same nodes by an index that is computed.
const NODES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long more[7]; };
int main(int count, char **words)
{
    long n = 1 << 17, at = 0;
    unsigned long drawn = 1, sum = 0;
    struct node *all = malloc(n * sizeof *all), *node = all;

    for (long i = 0; i < n; i++)
        all[i].next = &all[(i * 77773 + 12345) % n];
    for (long i = 0; i < 8 * n; i++) {
        if (count > 1) {
            drawn = drawn * 6364136223846793005UL + 1442695040888963407UL;
            sum += (unsigned long)all[(drawn >> 40) % n].next;
        } else {
            node = node->next;
        }
    }
    printf("%lu %p\n", sum, (void *)node);
}
"#;

#[test]
fn qemu_tells_addresses_that_were_loaded_from_those_that_were_computed() {
    let place = Place::new();
    if !installed("qemu-x86_64") || !installed("cc") || !cfg!(target_arch = "x86_64") {
        return;
    }
    std::fs::write(place.path("nodes.c"), NODES).unwrap();
    let compiler = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(place.path("nodes"))
        .arg(place.path("nodes.c"))
        .status();
    assert!(compiler.unwrap().success());
    let nodes = place.path("nodes").display().to_string();
    let record = |file: &str, more: &[&str]| {
        let words = ["workload", "record", "--with", "qemu", "-o", file, "--"];
        place
            .run(&[&words[..], &[nodes.as_str()], more].concat()[..])
            .expect(0);
        text(&place.path(file))
    };
    let (list, index) = (record("list.toml", &[]), record("index.toml", &["index"]));
    // The nodes have most accesses of both.
    let figure = |line: &str, key: &str| -> Option<f64> {
        let (_, rest) = line.split_once(&format!("{key} = "))?;
        rest[..rest.find([',', ' ', '}'])?].parse().ok()
    };
    let nodes_of = |file: &str| {
        let share = |line: &str| figure(line, "share").unwrap_or(0.0);
        let regions = file.lines().filter(|line| line.contains("share = "));
        let most = regions.max_by(|a, b| share(a).total_cmp(&share(b)));
        figure(most.unwrap_or_else(|| panic!("{file}")), "dependent").unwrap_or(0.0)
    };
    assert!(nodes_of(&list) > 0.8, "{list}");
    assert!(nodes_of(&index) < 0.01, "{index}");
    assert!(!list.contains("no address is loaded"), "{list}");
}

#[test]
fn ctrl_c_ends_the_tracer_and_describes_what_was_seen() {
    let place = Place::new();
    if !installed("valgrind") {
        return;
    }
    let words = [
        "workload",
        "record",
        "--children",
        "-o",
        "c.toml",
        "--",
        "sh",
        "-c",
        "sleep 987654 & while :; do :; done",
    ];
    let mut child = place.start(&words[..]);
    std::thread::sleep(Duration::from_secs(4));
    signal(&child, "INT");
    let status = child.wait().unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(text(&place.path("c.toml")).contains("apki"));
    let left = Command::new("pgrep")
        .args(["-f", "sleep 987654"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}
