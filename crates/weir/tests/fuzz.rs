//! Files that are damaged at random: every reader answers or explains, and none panics.
//!
//! Each target repeats until `WEIR_FUZZ_SECONDS` have passed (default 1); case N of a target follows from
//! `WEIR_FUZZ_SEED` (default 1) and N alone. A case that fails is written to a file, which the message names:
//!
//! ```text
//! WEIR_FUZZ_SECONDS=3600 WEIR_FUZZ_SEED=7 cargo test --release -p weir --test all fuzz::platform
//! ```

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::Place;
use weir_design::space::Space;
use weir_insight::slowdown::file as model_file;
use weir_linux::{Root, doctor, recording, topology};
use weir_model::counter_file::{self, ReadOptions};
use weir_model::events::EventLibrary;
use weir_model::platform::Library;
use weir_model::published::{self, measured};
use weir_model::units::Gigahertz;
use weir_model::workload::Workloads;
use weir_steer::config::{Config, Known};
use weir_steer::log::LogLine;

#[test]
fn platform() {
    let library = Library::builtin();
    let files = [files("platforms", "toml"), files("platforms/cores", "toml")].concat();
    fuzz("platform", &files, |text| {
        explained(library.check("fuzz.toml", text))
    });
}

#[test]
fn workload() {
    fuzz("workload", &files("workloads", "toml"), |text| {
        explained(Workloads::check("fuzz.toml", text))
    });
}

#[test]
fn design_space() {
    fuzz("design_space", &[crate::design::SPACE.to_owned()], |text| {
        explained(Space::read("fuzz.toml", text, &weir::verbs::design::MODELS))
    });
}

#[test]
fn event_table() {
    fuzz("event_table", &files("events", "toml"), |text| {
        explained(EventLibrary::check("fuzz.toml", text))
    });
}

#[test]
fn published_rows() {
    fuzz("published_rows", &files("published", "toml"), |text| {
        explained(published::parse("fuzz.toml", text))
    });
}

#[test]
fn measured_curves() {
    fuzz(
        "measured_curves",
        &files("published/measured", "csv"),
        |text| explained(measured::parse("fuzz.csv", text, Gigahertz(2.0))),
    );
}

#[test]
fn counter_file() {
    let library = EventLibrary::builtin();
    let cpu = Some("spr".to_owned());
    let options = ReadOptions { cpu, cgroup: None };
    let folder = "crates/weir-model/tests/perf_stat";
    let files = ["csv", "jsonl", "txt"]
        .map(|kind| files(folder, kind))
        .concat();
    fuzz("counter_file", &files, |text| {
        explained(counter_file::read("fuzz.csv", text, &options, &library));
    });
}

#[test]
fn files_of_other_tools() {
    use weir_lab::import::{Hints, Kind, read};
    let folder = "crates/weir-lab/src/import/samples";
    let mut all = ["csv", "json", "txt"]
        .map(|kind| files(folder, kind))
        .concat();
    all.push("31683.5\t308.5\n16000.25\t240.75\n".to_owned());
    let hints = Hints {
        clock: Some(Gigahertz(2.0)),
        reads: Some(70),
        ..Hints::default()
    };
    fuzz("files_of_other_tools", &all, |text| {
        for kind in Kind::ALL {
            explained(read(kind, "fuzz.txt", text, &hints));
        }
    });
}

#[test]
fn steer_configuration() {
    let machine =
        "kind = \"steer-machine\"\n[machine]\nfast = \"110 ns\"\nslow = \"400 ns\"\n".to_owned();
    let files = [files("docs/steer", "toml"), vec![machine]].concat();
    fuzz("steer_configuration", &files, |text| {
        explained(Config::read("fuzz.toml", text));
        explained(Known::read("fuzz.toml", text));
    });
}

/// What the kernel's files say is damaged too, so this covers the readers of sysfs and procfs.
#[test]
fn recorded_machine() {
    fuzz(
        "recorded_machine",
        &files("crates/weir-linux/tests/machines", "machine"),
        |text| match recording::parse("fuzz.machine", text) {
            Ok(tree) => {
                let root = Root::recorded(tree);
                let view = topology::discover(&root);
                let _ = (view.topology(), view.capabilities(), view.warnings());
                let _ = doctor::examine(&root, &view);
            }
            error => explained(error),
        },
    );
}

#[test]
fn rows_for_evaluation() {
    let rows = "workload,slowdown_pct,dram_pct,CPU_CLK_UNHALTED.THREAD\n# a comment\nscan,12.5,11,4000000000\n\"a,b\",0,,17\n";
    fuzz("rows_for_evaluation", &[rows.to_owned()], |text| {
        let _ = weir::evaluation::parse("fuzz.csv", text.as_bytes());
    });
}

#[test]
fn slowdown_model() {
    let place = Place::new();
    let path = place.path("model.json");
    let made = ["calibrate", "--on", "emr2s+cxl-a", "--held-out", "0", "-o"];
    place
        .run([&made[..], &[&path.to_string_lossy()]].concat())
        .expect(0);
    let model = std::fs::read_to_string(path).unwrap();
    fuzz("slowdown_model", &[model], |text| {
        explained(model_file::read("fuzz.json", text))
    });
}

/// A mistake behind what is damaged lets no experiment begin.
#[test]
fn sweep_file() {
    let sweep = "[[sweep]]\nexperiment = \"random\"\non = [\"emr2s+cxl-a\", \"memo\"]\nargs = { prefetch = false, size = \"256M\" }\n\
                 matrix = { op = [\"ld\", \"nt_st\"], block = [\"4K\"], threads = [1, \"4..8\"], tier = [\"cxl0\"] }\n";
    let place = Place::new();
    fuzz("sweep_file", &[sweep.to_owned()], |text| {
        let file = place.file(
            "sweep.toml",
            format!("{text}\n[[sweep]]\nexperiment = \"none\"\n"),
        );
        ends_well(&place, &["bench", "--file", &file.to_string_lossy()]);
    });
}

#[test]
fn trace() {
    let lackey = "==1== a\nI  0400,3\n L 04222cac,8\n S 1ffefff948,8\n M 0421c7cc,4\n".repeat(30);
    let view =
        "T1 read 8 byte(s) @ 0x7fff9f5fd9b0 by PC 0x1\nT1 ifetch 3 byte(s) @ 0x4000\n".repeat(30);
    let entry = |kind: u8, address: u64| [&[kind, 0, 8, 0][..], &address.to_le_bytes()].concat();
    let entries = [
        entry(25, 5),
        entry(10, 0x4000),
        entry(0, 0x70_0000),
        entry(1, 64),
    ]
    .concat();
    let mut champsim = [0_u8; 64];
    champsim[..3].copy_from_slice(b"\x01\x02\x40");
    champsim[32..36].copy_from_slice(&[0, 16, 32, 1]);
    let packets = b"gem5\x02\x0a\x00\x08\x08\x01\x10\x01\x18\x40\x20\x40".to_vec();
    let files = [
        lackey.into_bytes(),
        view.into_bytes(),
        entries,
        champsim.repeat(8),
        packets,
        b"LD 0x1234\nST 64\n3 128 64\n".to_vec(),
        b"r,4096,64,1\nw,64,8,2,7,9\n".to_vec(),
    ];
    fuzz_bytes("trace", &files, |bytes| {
        for format in weir_trace::Format::ALL {
            let read = || -> Result<(), weir_trace::Wrong> {
                let mut decoder = weir_trace::Decoder::new(format, bytes)?;
                let mut watch = weir_trace::Watch::new();
                let taken = decoder.decode(bytes, &mut watch)?;
                decoder.end(&bytes[taken..], &mut watch)?;
                watch.end();
                let origin = weir_trace::describe::Origin {
                    mappings: Default::default(),
                    name: "a".into(),
                    of: "a".into(),
                    format,
                    has_instructions: decoder.has_instructions(),
                    has_dependences: decoder.has_dependences(),
                    cpi: 0.5,
                };
                if let Ok(described) = weir_trace::describe::describe(&watch, &origin, true) {
                    let text = described.workload.to_toml(&described.remarks);
                    Workloads::check("a.toml", &text).unwrap_or_else(|error| panic!("{error}"));
                    let _ = weir_trace::check::check(&watch, &described, &origin, 1.0, 1, |_| true);
                }
                Ok(())
            };
            explained(read());
        }
    });
}

#[test]
fn decision_log() {
    let place = Place::new();
    // Of `weir steer run --on miku-a --scenario hash-map-r0 --for 1s --format json`, which takes a minute here.
    let windows = include_str!("common/windows.json");
    let windows: serde_json::Value = serde_json::from_str(windows).unwrap();
    let lines = windows.as_array().unwrap().iter().enumerate().map(|(n, window)| {
        let line = serde_json::json!({
            "schema": LogLine::SCHEMA, "n": n + 1, "at": "2026-03-01T14:05:09Z", "controller": "weir", "dry": false, "window": window,
        });
        format!("{line}\n")
    });
    let log: String = lines.collect();
    let whole = place.file("whole.jsonl", &log);
    place
        .run(["steer", "explain", "--log", &whole.to_string_lossy()])
        .expect(0);
    fuzz("decision_log", &[log], |text| {
        let file = place.file("steer.jsonl", text);
        ends_well(
            &place,
            &["steer", "explain", "--log", &file.to_string_lossy()],
        );
    });
}

#[test]
fn store() {
    let place = Place::new();
    place
        .run(["bench", "latency", "--on", "memo", "--quick"])
        .expect(0);
    let whole = std::fs::read(place.store()).unwrap();
    fuzz_bytes("store", &[whole], |bytes| {
        for left in ["runs.sqlite-wal", "runs.sqlite-shm"] {
            let _ = std::fs::remove_file(place.path(left));
        }
        place.file("runs.sqlite", bytes);
        ends_well(&place, &["runs", "list"]);
        ends_well(&place, &["runs", "show", "1"]);
    });
}

/// An error has words.
fn explained<T, E: Display>(read: Result<T, E>) {
    if let Err(error) = read {
        assert!(
            !error.to_string().trim().is_empty(),
            "an error without words"
        );
    }
}

/// The command ends with an exit code of its own, and a failure has words.
fn ends_well(place: &Place, arguments: &[&str]) {
    let done = place.run(arguments);
    assert!(
        matches!(done.code(), 0..=3),
        "{arguments:?}: {} {}",
        done.code(),
        done.err()
    );
    assert!(
        done.code() == 0 || !done.err().trim().is_empty(),
        "{arguments:?} fails without words"
    );
}

/// The files of a folder of the repository, by the end of their names.
fn files(folder: &str, end: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let mut paths: Vec<PathBuf> = (std::fs::read_dir(&folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == end))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no file .{end}", folder.display());
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

fn fuzz(target: &str, files: &[String], check: impl Fn(&str)) {
    let files: Vec<Vec<u8>> = files.iter().map(|text| text.clone().into_bytes()).collect();
    fuzz_bytes(target, &files, |bytes| {
        check(&String::from_utf8_lossy(bytes))
    });
}

/// Calls `check` with damaged files until the time is over.
fn fuzz_bytes(target: &str, files: &[Vec<u8>], check: impl Fn(&[u8])) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let seconds = number("WEIR_FUZZ_SECONDS").unwrap_or(1);
    let seed = number("WEIR_FUZZ_SEED").unwrap_or(1);
    let began = Instant::now();
    let mut cases = 0;
    while cases == 0 || began.elapsed() < Duration::from_secs(seconds) {
        let bytes = Damage {
            seed,
            case: cases,
            drawn: 0,
        }
        .apply(files);
        if catch_unwind(AssertUnwindSafe(|| check(&bytes))).is_err() {
            let kept = std::env::temp_dir().join(format!("weir-fuzz-{target}-{seed}-{cases}"));
            std::fs::write(&kept, &bytes).unwrap();
            panic!(
                "{target}: case {cases} of seed {seed} fails; its input is {}",
                kept.display()
            );
        }
        cases += 1;
    }
    println!("{target}: {cases} cases");
}

/// The damage of one case.
struct Damage {
    seed: u64,
    case: u64,
    drawn: u64,
}

impl Damage {
    fn below(&mut self, most: usize) -> usize {
        self.drawn += 1;
        let index = self.case << 32 | self.drawn;
        weir_sim::rng::below(self.seed, index, most.max(1) as u64) as usize
    }

    /// One of the files after one to eight changes: bytes turned, pieces removed, repeated or taken from another
    /// file, and numbers and marks that readers stumble over.
    fn apply(mut self, files: &[Vec<u8>]) -> Vec<u8> {
        const ODD: [&[u8]; 14] = [
            b"",
            b"\0",
            b"-1",
            b"1e400",
            b"nan",
            b"18446744073709551616",
            b"\"",
            b"[[",
            b"{",
            b"\n",
            b"=",
            b",",
            b"\xff\xfe",
            b"99999999999999999999999999999999999999",
        ];
        let mut bytes = files[self.below(files.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(32)).min(bytes.len());
            match self.below(5) {
                0 if at < end => bytes[at] ^= 1 << self.below(8),
                1 => bytes.truncate(at.max(bytes.len() / 2)),
                2 => drop(bytes.splice(at..end, ODD[self.below(ODD.len())].iter().copied())),
                3 => {
                    let other = &files[self.below(files.len())];
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(64)).min(other.len());
                    bytes.splice(at..at, other[from..to].iter().copied());
                }
                _ => drop(bytes.drain(at..end)),
            }
        }
        bytes
    }
}
