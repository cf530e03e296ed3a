//! `weir counters` as a process: commands are counted or it is said why not, and files are read.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::common::{Place, is_installed};

#[test]
fn a_command_is_counted_and_its_words_are_its_own() {
    let place = Place::new();
    let done = place
        .run([
            "counters", "record", "--format", "json", "-o", "c.json", "--", "echo", "its own",
        ])
        .expect(0);
    assert_eq!(done.out(), "its own\n");
    let shown = place
        .run("counters show c.json --format json")
        .expect(0)
        .json();
    assert_eq!(shown["schema"], "weir/counters/1");
    assert_eq!(
        (&shown["of"], &shown["exit_status"]),
        (&"echo its own".into(), &0.into())
    );
    let (values, missing) = (&shown["total"]["values"], &shown["total"]["unavailable"]);
    // A value or a reason, and no zero in place of either.
    for counter in ["page-faults", "task-clock", "context-switches"] {
        let value = values[counter].as_u64();
        assert!(
            value.is_some() || missing[counter]["reason"].is_string(),
            "{counter}: {shown}"
        );
    }
    if let Some(faults) = values["page-faults"].as_u64() {
        assert!((10..100_000).contains(&faults), "{faults}");
    }
    if values["cycles"].is_null() && shown["cpu"].is_string() {
        let why = missing["cycles"]["reason"].as_str().unwrap();
        assert!(why.contains("PMU") || why.contains("permit"), "{why}");
    }
    let table = place.run("counters show c.json").expect(0).out();
    assert!(table.contains("counted    echo its own"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

#[test]
fn a_command_that_fails_passes_its_exit_code_on_and_is_counted_all_the_same() {
    let place = Place::new();
    let count = |script: &str| {
        place.run([
            "counters", "record", "-o", "c.json", "--", "sh", "-c", script,
        ])
    };
    let failed = count("exit 7").expect(7);
    assert!(failed.err().contains("exit status 7"), "{}", failed.err());
    assert!(
        place
            .run("counters show c.json")
            .expect(0)
            .out()
            .contains("counter")
    );
    // One that a signal ended has no code of its own; shells say 128 and the signal.
    let killed = count("kill -TERM $$").expect(143).err();
    assert!(killed.contains("was killed by signal 15"), "{killed}");
    place
        .run("counters record -- /nowhere/to/be/found")
        .refuses(2, &["cannot run `/nowhere/to/be/found`"]);
    place.run("counters record").expect(2);
    place
        .run("counters record -o no/counts -- touch ran")
        .refuses(2, &["cannot write no/counts"]);
    assert!(!place.path("ran").exists());
    place
        .run("counters record --counters cycels -- true")
        .refuses(
            2,
            &["no counter is called `cycels`", "did you mean `cycles`"],
        );
    place
        .run("counters record --on emr2s -- true")
        .refuses(2, &["on this host alone"]);
}

#[test]
fn a_request_to_stop_ends_the_command_and_nothing_goes_on_alone() {
    let place = Place::new();
    let count = |more: &[&str], script: &str| {
        let words = ["counters", "record", "-o", "c.json"];
        place.run([&words, more, &["--", "sh", "-c", script]].concat())
    };
    for signal in ["TERM", "INT"] {
        for more in [&[][..], &["-I", "10"]] {
            let script = format!("trap 'exit 9' TERM; kill -{signal} $PPID; sleep 5 & wait");
            let asked = count(more, &script).expect(9);
            assert!(asked.err().contains("asked to end"), "{}", asked.err());
        }
    }
    // A second request does not wait. What the command has open is closed when this returns.
    let deaf = "trap '' TERM; for i in $(seq 30); do kill -TERM $PPID; sleep 0.1; done; echo >late";
    count(&[], deaf).expect(130);
    assert!(!place.path("late").exists());
}

#[test]
fn a_process_and_the_machine_are_counted_while_a_command_runs() {
    let place = Place::new();
    let mut busy = std::process::Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let pid = busy.id().to_string();
    let json = |arguments: &[&str]| {
        let head = ["counters", "record", "--format", "json"];
        place.run([&head, arguments].concat()).expect(0).json()
    };
    let process = json(&["--pid", &pid, "--", "sleep", "0.1"]);
    let machine = json(&["--all", "--", "sleep", "0.1"]);
    let alone = json(&["--", "sleep", "0.1"]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    let clock = |document: &serde_json::Value| document["total"]["values"]["task-clock"].as_u64();
    // Where this user may count at all: the loop computes, and `sleep` does not.
    if let (Some(process), Some(alone)) = (clock(&process), clock(&alone)) {
        assert!(process > alone, "{process} and {alone}");
    }
    if let (Some(machine), Some(alone)) = (clock(&machine), clock(&alone)) {
        assert!(machine > alone, "{machine} and {alone}");
    }
    assert!(machine["of"].as_str().unwrap().starts_with("this machine"));
    place
        .run("counters record --pid 4194999 -- true")
        .refuses(2, &["/proc/4194999/task"]);
}

#[test]
fn phases_are_intervals() {
    let place = Place::new();
    let script = "for i in 1 2 3 4 5; do sleep 0.02; done";
    place
        .run([
            "counters", "record", "-I", "20", "-o", "c.json", "--", "sh", "-c", script,
        ])
        .expect(0);
    let shown = place
        .run("counters show c.json --format json")
        .expect(0)
        .json();
    let intervals = shown["intervals"].as_array().unwrap();
    assert!(intervals.len() >= 2, "{shown}");
    let rows = place
        .run("counters show c.json --format csv")
        .expect(0)
        .out();
    assert!(
        rows.starts_with("end_s,counter,value,running_pct,missing\n"),
        "{rows}"
    );
}

#[test]
fn what_is_listed_for_perf_is_read_back() {
    let place = Place::new();
    for cpu in ["skx", "icx", "spr", "emr", "gnr", "zen4", "zen5", "grace"] {
        let listed = place
            .run([
                "counters", "list", "--cpu", cpu, "--uncore", "--format", "json",
            ])
            .expect(0)
            .json();
        let commands = listed["commands"].as_array().unwrap();
        let name = listed["cpu"].as_str().unwrap();
        let mut file = format!("# weir cpu {name}\n");
        let mut events = 0;
        for command in commands {
            let command = command.as_str().unwrap();
            assert!(
                command.contains("perf stat") && command.ends_with("-- CMD"),
                "{command}"
            );
            // As perf writes it, with the name of each event.
            for event in command.split("name=").skip(1) {
                let event = event.split('/').next().unwrap();
                file += &format!("1.0,1000,,{event},1000,100.00,,\n");
                events += 1;
            }
        }
        assert!(events > 5, "{cpu}: {events}");
        place.file("there.csv", &file);
        let shown = place
            .run("counters show there.csv --format json")
            .expect(0)
            .json();
        assert_eq!(shown["cpu"], name);
        // Everything that is listed as countable has a value, but for differences of equals.
        for line in listed["counters"].as_array().unwrap() {
            let counter = line["counter"].as_str().unwrap();
            let hardware =
                line["is"].is_string() && !line["is"].as_str().unwrap().contains("kernel");
            let value = &shown["total"]["values"][counter];
            let mean = line["is"].as_str().is_some_and(|is| is.starts_with("mean"));
            let difference = line["is"].as_str().is_some_and(|is| is.contains(" - "));
            assert!(
                !hardware || mean || difference || value.is_u64(),
                "{cpu} {counter}: {value}"
            );
        }
        let table = place
            .run(["counters", "list", "--cpu", cpu])
            .expect(0)
            .out();
        let listing = table.split("Source:").next().unwrap();
        assert!(
            listing.lines().all(|line| line.chars().count() <= 80),
            "{listing}"
        );
    }
}

#[test]
fn files_that_cannot_be_trusted_are_refused_with_their_line() {
    let place = Place::new();
    place
        .run("counters show missing.csv")
        .refuses(2, &["cannot read the file of counters missing.csv"]);
    place.file("empty.csv", "");
    place
        .run("counters show empty.csv")
        .refuses(2, &["empty.csv", "no line has a counter"]);
    place.file(
        "other.csv",
        "5,,MEMORY_ACTIVITY.STALLS_L3_MISS,1,100.00,,\n",
    );
    place.run("counters show other.csv --cpu skx").refuses(
        2,
        &[
            "other.csv:1:",
            "sapphire-rapids",
            "the chosen processor is skylake-sp",
        ],
    );
    place
        .run("counters show other.csv --cpu vax")
        .refuses(2, &["no events are known of `vax`", "spr"]);
    place.file("cut.json", "{\"schema\": \"weir/counters/1\", \"of\"");
    place
        .run("counters show cut.json")
        .refuses(2, &["cut.json:1:"]);
    place.file("bytes.csv", [0xff, 0xfe, 0x00]);
    place
        .run("counters show bytes.csv")
        .refuses(2, &["bytes.csv:", "not text in UTF-8"]);
}

#[test]
fn the_line_for_perf_counts_what_a_prediction_reads() {
    let place = Place::new();
    for cpu in ["spr", "emr", "gnr"] {
        let listed = place.run(format!("counters list --cpu {cpu} --format json"));
        let listed = listed.expect(0).json();
        let line = listed["commands"][0].as_str().unwrap().to_owned();
        for counter in weir_insight::forecast::COUNTERS {
            let mut known = listed["counters"].as_array().unwrap().iter();
            let known = known.find(|c| c["counter"] == counter.name()).unwrap();
            let Some(event) = known["is"].as_str() else {
                continue;
            };
            let first = event.split([' ', ';']).next().unwrap().trim_matches('(');
            assert!(line.contains(first), "{cpu}: {first} is not in\n{line}");
        }
    }
}

#[test]
fn the_counters_of_a_model_are_those_of_its_processor() {
    let place = Place::new();
    let listed = |arguments: &str| {
        let listed = place.run(format!("counters list {arguments} --format json"));
        listed.expect(0).json()
    };
    assert_eq!(listed("--on emr2s+cxl-a"), listed("--cpu emr"));
    assert_eq!(listed("--on memo+none"), listed("--cpu spr"));
    assert_eq!(listed("--on gold6130"), listed("--cpu skx"));
    // Its cores are RISC-V, and described with those of Skylake where the paper says nothing.
    place.run("counters list --on directcxl").refuses(
        2,
        &[
            "directcxl has cores that are described with those of skylake-server",
            "--cpu",
        ],
    );
    // A microarchitecture that is named is the one that is meant.
    assert_eq!(listed("--on emr2s --cpu zen4"), listed("--cpu zen4"));
    place.run("counters list --on nope").refuses(2, &["nope"]);
}

#[test]
fn time_has_its_unit_and_a_dash_is_standard_output() {
    let place = Place::new();
    let record = "counters record --counters task-clock";
    let table = place.run(format!("{record} -- true")).expect(0).out();
    assert!(table.contains(" ns"), "{table}");
    let document = place.run(format!("{record} -o - -- true")).expect(0).json();
    assert!(document["total"]["values"]["task-clock"].is_u64());
}

/// A counter of a unit outside the cores that is named was left out of the command without a word.
#[test]
fn what_is_named_is_in_the_command_wherever_it_is_counted() {
    let place = Place::new();
    let listed = |counters: &str| {
        let listed = place.run(format!(
            "counters list --cpu spr --counters {counters} --format json"
        ));
        listed.expect(0).json()["commands"].clone()
    };
    let both = listed("cycles,unc_cha_clockticks");
    assert!(
        both[0]
            .as_str()
            .unwrap()
            .contains("CPU_CLK_UNHALTED.THREAD")
    );
    assert!(both[1].as_str().unwrap().contains("UNC_CHA_CLOCKTICKS"));
    let outside = listed("unc_cha_clockticks");
    assert_eq!(outside.as_array().unwrap().len(), 1);
    assert!(outside[0].as_str().unwrap().contains("UNC_CHA_CLOCKTICKS"));
}

/// The terminal sends Ctrl-C to the command as well, which may have its own way to end.
#[test]
fn ctrl_c_at_the_terminal_is_left_to_a_command_that_handles_it() {
    if !is_installed("script") {
        return;
    }
    let place = Place::new();
    let handles = "trap 'echo int' INT; trap 'echo term; exit 3' TERM; echo begun; until [ \"$line\" = end ]; do read line; done";
    let script = place.file("handles.sh", handles);
    let command = format!(
        "{} counters record -- bash {}",
        env!("CARGO_BIN_EXE_weir"),
        script.display()
    );
    let mut terminal = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("WEIR_STORE", place.store())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut typed, mut shown) = (
        terminal.stdin.take().unwrap(),
        terminal.stdout.take().unwrap(),
    );
    let mut all = String::new();
    let mut until = |words: &str| {
        while !all.contains(words) {
            let mut byte = [0];
            shown.read_exact(&mut byte).unwrap();
            all.push(char::from(byte[0]));
        }
        all.clone()
    };
    until("begun");
    typed.write_all(b"\x03").unwrap();
    // Until then a request to end would have come.
    until("this waits for");
    typed.write_all(b"end\n").unwrap();
    drop(typed);
    let ended = terminal.wait().unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert!(all.contains("int") && !all.contains("term"), "{all}{rest}");
    assert!(ended.success(), "{ended}: {all}{rest}");
}
