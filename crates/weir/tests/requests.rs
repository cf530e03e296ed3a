//! Wrong requests: each is refused with code 2, says what and where, and measures nothing.

use crate::common::{Done, Place, SMALL, with};
use weir_model::access::{Op, Pattern};
use weir_model::capability::Feature;
use weir_model::machine::MachineError;
use weir_model::tenant::Tenant;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

/// A command and those below it, with the words that name each. A name of another command, such as `steer`, is hidden.
fn commands(words: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
    found.push((words.to_owned(), command.clone()));
    let below = command.get_subcommands();
    for one in below.filter(|one| !one.is_hide_set() && one.get_name() != "help") {
        commands(&format!("{words} {}", one.get_name()), one, found);
    }
}

#[test]
fn every_verb_has_help_of_80_columns_with_an_example() {
    let mut all = Vec::new();
    commands("weir", &weir::embed::commands(), &mut all);
    assert!(all.len() > 100, "{}", all.len());
    for (words, mut command) in all {
        // Clap breaks what is longer, whatever its columns.
        let examples = command.get_after_help().map(ToString::to_string);
        let examples = examples.unwrap_or_default();
        assert!(examples.contains("Example"), "{words} has no example");
        let help = command.render_long_help().to_string();
        for line in examples.lines().chain(help.lines()) {
            assert!(line.chars().count() <= 80, "{words} is too wide: {line}");
        }
        // Of several, Clap shows blanks in between, which are not what is typed.
        for argument in command.get_arguments() {
            let defaults = argument.get_default_values();
            assert!(defaults.len() <= 1, "{words} {argument}: {defaults:?}");
        }
    }
    let place = Place::new();
    let help = place.run(["place", "levels", "--help"]).expect(0).out();
    assert!(help.contains("\n  weir place levels"), "{help}");
    // What is added to a study's arguments has no words for the whole.
    let stream = place.run(["bench", "stream", "--help"]).expect(0).out();
    let first = stream.lines().next().unwrap_or_default();
    assert!(first.contains("STREAM"), "{stream}");
}

#[test]
fn completions_know_every_verb() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(["completions", shell]).expect(0).out();
        assert!(
            script.contains("reproduce") && script.contains("bandwidth"),
            "{shell}"
        );
        // What no help has is not offered either.
        for hidden in [
            "--part ", "--part=", "-l part ", "--head ", "--head=", "-l head ",
        ] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
    }
    // Files are offered where one may be named, and for no number.
    let zsh = place.run("completions zsh").expect(0).out();
    let offers = |option: &str, with: &str| {
        let lines: Vec<&str> = zsh.lines().filter(|l| l.contains(option)).collect();
        assert!(
            !lines.is_empty() && lines.iter().all(|l| l.contains(with)),
            "{lines:?}"
        );
    };
    offers("--threads=", ":'");
    offers("--on=", ":_default'");
}

#[test]
fn a_machine_with_other_values_says_so_and_a_wrong_value_says_where() {
    let place = Place::new();
    let on = "micro23-snc4,uncore.cluster_tiers=2+cxl-a@remote,channels=1";
    let seen = place.run(["topo", "--on", on]).expect(0).out();
    assert!(
        seen.contains("dram1") && seen.contains("uncore.cluster_tiers=2"),
        "{seen}"
    );
    // Neither the size nor the slices are possible with the other value of the file.
    let on = "emr2s,llc.size=1MiB,llc.slices=1,llc.ways=16,l2.size=512KiB";
    let seen = place.run(["topo", "--on", on]).expect(0).out();
    assert!(seen.contains("L3       1 MiB    16"), "{seen}");
    for (on, said) in [
        ("emr2s,uncore.clok=1GHz", "no key `uncore.clok`"),
        ("miku-b,llc.size=32MiB,llc.slices=1", "and 1 slices"),
        ("emr2s,uncore.tor", "no KEY=VALUE"),
        ("emr2s,", "no KEY=VALUE"),
        ("emr2s+cxl-a,", "no KEY=VALUE"),
        ("emr2s,uncore.clock=99GHz", "emr2s:1:20"),
        ("emr2s+cxl-a,media=ddr3-1333", "ddr3-1600"),
    ] {
        let done = place.run(["topo", "--on", on]);
        done.refuses(2, &[said]);
    }
}

#[test]
fn an_unknown_verb_or_option_is_refused() {
    let place = Place::new();
    place.run("measure").refuses(2, &["measure"]);
    place.run("topo --speed").refuses(2, &["--speed"]);
    // The nearest name is `--head`, which no help has.
    let tip = place.run("bench latency --threads 2").expect(2).err();
    assert!(
        tip.contains("'--threads'") && !tip.contains("--head"),
        "{tip}"
    );
    place.run("topo --format xml").refuses(2, &["xml", "json"]);
}

#[test]
fn a_value_that_is_no_number_is_refused_in_words() {
    let place = Place::new();
    for (words, said) in [
        (
            "topo --seed=-1",
            "'-1' for '--seed <N>': a seed is a whole number from 0 to 18446744073709551615",
        ),
        ("topo --seed -1", "a seed is a whole number from 0 to"),
        ("topo --seed abc", "a seed is a whole number from 0 to"),
        (
            "runs list --limit x",
            "invalid value 'x' for '--limit <N>': it is a whole number, such as 3",
        ),
        ("runs list --limit 0", "for '--limit <N>': 0 is not in 1.."),
        (
            "plan pool --pools 99999999999999999999",
            "for '--pools <SOCKETS>': it is too large",
        ),
        (
            "plan cost --gb-per-vcpu 4GB",
            "'4GB' for '--gb-per-vcpu <GB>': it is a number, such as 0.5",
        ),
    ] {
        place.run(words).refuses(2, &[said]);
    }
}

#[test]
fn an_error_that_would_change_nothing_is_refused_for_that() {
    let place = Place::new();
    place
        .run("plan latency --error 1%")
        .refuses(2, &["this command has no figure that it changes"]);
    place
        .run("bench latency --error 1%")
        .refuses(2, &["host is measured in whole windows"]);
}

#[test]
fn an_unknown_instruction_names_the_known() {
    let place = Place::new();
    place
        .run("bench bandwidth --op prefetch")
        .refuses(2, &["prefetch", "nt_st"]);
}

#[test]
fn an_unknown_tier_names_the_known() {
    let place = Place::new();
    for what in [
        "latency",
        "tail",
        "bandwidth",
        "loaded",
        "random",
        "stream",
        "movement",
        "share",
        "all",
    ] {
        place
            .run(["bench", what, "--on", "emr2s+cxl-a", "--tier", "cxl7"])
            .refuses(2, &["cxl7", "dram", "cxl0"]);
    }
    assert!(!place.store().exists(), "a refused request leaves no run");
}

#[test]
fn an_unknown_platform_suggests_one() {
    let place = Place::new();
    place.run("topo --on emr2").refuses(2, &["emr2", "emr2s"]);
    place.run("topo --on emr2s+cxl-z").refuses(2, &["cxl-z"]);
    place.run("topo --on cxl-a").refuses(2, &["host"]);
    place
        .run(["topo", "--on", ""])
        .refuses(2, &["names nothing"]);
    place
        .run("tour --on emr2s --beside emr2")
        .refuses(2, &["--beside", "emr2s"]);
    place.file("gnr.toml", "");
    for on in ["gnr", "2xgnr,uncore.tor=40", "emr2s+gnr@remote"] {
        place.run(["topo", "--on", on]).refuses(
            2,
            &[
                "--on: no platform or device is called `gnr`",
                "`./gnr.toml`",
            ],
        );
    }
}

#[test]
fn a_program_that_is_larger_than_its_tier_is_named_with_its_line() {
    let place = Place::new();
    let large = include_str!("../../../workloads/chase.toml").replace("4 GiB", "400 GiB");
    place.file("large.toml", large);
    for asked in [
        "interplay --on emr2s+cxl-a --victims dram:chase --aggressors dram:large.toml --quick",
        "steer run --on emr2s+cxl-a --protect dram:large.toml --restrain cxl0:chase",
    ] {
        let said =
            "large.toml:8: `bytes` of the region `ring` is 400 GiB: tier `dram` has 128 GiB free";
        place
            .run(asked)
            .refuses(2, &[said, "name a model with more memory"]);
    }
}

#[test]
fn a_resumed_program_that_is_larger_than_its_tier_is_named_with_its_line() {
    let place = Place::new();
    let chase = include_str!("../../../workloads/chase.toml");
    place.file("large.toml", chase);
    for asked in [
        "workload run large.toml --on emr2s+cxl-a",
        "interplay --on emr2s+cxl-a --victims dram:large.toml --quick",
    ] {
        place.run(asked).expect(0);
    }
    let db = rusqlite::Connection::open(place.store()).unwrap();
    db.execute_batch(
        "UPDATE runs SET state = 'partial', planned = 0, kept = 0; DELETE FROM results;",
    )
    .unwrap();
    place.file("large.toml", chase.replace("4 GiB", "400 GiB"));
    let said =
        "large.toml:8: `bytes` of the region `ring` is 400 GiB: tier `dram` has 128 GiB free";
    for run in ["1", "2"] {
        let words = format!("runs resume {run}");
        let resumed = place.run(words.as_str()).expect(2).err();
        let has_remedy = resumed.contains("or name a model with more memory");
        assert!(resumed.contains(said) && has_remedy, "{resumed}");
    }
}

#[test]
fn a_remedy_is_not_of_another_machine() {
    let seen = Place::new().run("topo --on skx2s").expect(0).out();
    assert!(
        seen.contains("`+ssd-nvme4`") && !seen.contains("emr2s"),
        "{seen}"
    );
}

#[test]
fn thread_counts_beyond_the_machine_are_refused() {
    let place = Place::new();
    place
        .run(with(SMALL, "--threads 4000"))
        .refuses(2, &["4000"]);
    place.run(with(SMALL, "--threads 0")).refuses(2, &["1..32"]);
    place
        .run(with(SMALL, "--threads=-1"))
        .refuses(2, &["`-1` is no number of threads"]);
    place
        .run(with(SMALL, "--size fast"))
        .refuses(2, &["fast", "MiB"]);
    place
        .run(with(SMALL, ["--size", "3 ns"]))
        .refuses(2, &["time"]);
}

#[test]
fn an_unknown_paper_or_row_is_refused() {
    let place = Place::new();
    place
        .run("reproduce shakespeare")
        .refuses(2, &["shakespeare", "memo"]);
    place
        .run("reproduce memo shakespeare")
        .refuses(2, &["shakespeare", "memo"]);
    place
        .run("reproduce memo --only SUP-0")
        .refuses(2, &["SUP-0", "memo"]);
    place.run("reproduce --only XYZ-1").refuses(2, &["XYZ-1"]);
    // Rows that say what was configured.
    place
        .run("reproduce interplay --only INT-00")
        .refuses(2, &["none of these 9 rows has a figure"]);
    place
        .run(["reproduce", "--only", ""])
        .refuses(2, &["not an empty text"]);
}

#[test]
fn a_platform_file_of_garbage_is_explained_at_line_and_column() {
    let place = Place::new();
    place.file("words.toml", "to be\nor not to be\n");
    place
        .run("platforms check words.toml")
        .refuses(2, &["words.toml:1:"]);
    place
        .run("topo --on words.toml")
        .refuses(2, &["words.toml:1:"]);
    place
        .run("topo --on emr2s+./words.toml")
        .refuses(2, &["words.toml:1:"]);

    place.file("bytes.toml", b"kind = \"cxl\"\nsummary = \"\xff\xfe\"\n");
    place
        .run("platforms check bytes.toml")
        .refuses(2, &["bytes.toml:2:12", "UTF-8"]);
    place
        .run("platforms check nowhere.toml")
        .refuses(2, &["nowhere.toml", "No such file"]);
    place.run("platforms check .").refuses(2, &["folder"]);

    let host = include_str!("../../../platforms/emr2s.toml");
    place.file(
        "ours.toml",
        host.replacen('\n', "\ndefault_devices = [\"cxl-a\", \"clx-b\"]\n", 1),
    );
    for words in ["platforms check ours.toml", "topo --on ./ours.toml"] {
        place.run(words).refuses(2, &["clx-b"]);
    }
    place.run("platforms check ours.toml").refuses(
        2,
        &["ours.toml:2:29", "default_devices", "did you mean `cxl-b`?"],
    );
}

#[test]
fn a_huge_platform_file_is_refused_without_being_read() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("huge.toml")).unwrap();
    file.set_len(100 << 30).unwrap();
    let mut limited = place.under_shell("ulimit -v 4000000", "topo --on huge.toml");
    Done(limited.output().unwrap()).refuses(2, &["huge.toml", "the most for a platform file"]);
}

#[test]
fn files_without_an_end_are_refused() {
    let place = Place::new();
    for arguments in [
        "bench --file /dev/zero",
        "counters show /dev/zero",
        "platforms check /dev/zero",
        "workload check /dev/zero",
        "predict --model /dev/zero --counters /dev/zero",
    ] {
        // Limits what a mistake would take of this machine.
        let mut limited = place.under_shell("ulimit -v 4000000", arguments);
        Done(limited.output().unwrap()).refuses(2, &["/dev/zero is longer than"]);
    }
}

#[test]
fn spaces_around_the_parts_of_a_machine_mean_nothing() {
    let place = Place::new();
    let named = |on: &str| {
        let words = ["topo", "--format", "json", "--on", on];
        place.run(words).expect(0).json()["machine"].clone()
    };
    assert_eq!(named(" emr2s + cxl-a "), named("emr2s+cxl-a"));
}

#[test]
fn more_memory_than_a_tier_has_is_refused_before_anything_runs() {
    let place = Place::new();
    for arguments in [
        "bench bandwidth --op ld --threads 1 --size 1000T",
        "bench latency --size 48K,1000T",
        "bench stream --size 1000T",
        "interplay --quick --size 1000T",
    ] {
        for on in ["emr2s+cxl-a", "host"] {
            let arguments = with(arguments, ["--on", on]);
            place
                .run(arguments)
                .refuses(2, &["of memory are wanted", "`dram` has"]);
        }
    }
    assert!(!place.store().exists());
}

#[test]
fn loads_past_the_caches_are_refused_before_anything_runs_where_memory_has_no_such_mapping() {
    let place = Place::new();
    for (on, says) in [
        ("emr2s+cxl-a --tier cxl0", "cxl0 has no such mapping"),
        ("host --tier dram", "`uc_ld` is for models"),
    ] {
        place
            .run(format!("bench latency --op uc_ld --on {on}"))
            .refuses(2, &[says]);
    }
    assert!(!place.store().exists());
}

#[test]
fn a_host_with_one_tier_is_not_calibrated_for_steering() {
    let place = Place::new();
    let topo = place.run("topo --format json").expect(0).json();
    if topo["topology"]["tiers"].as_array().unwrap().len() == 1 {
        place
            .run("steer calibrate")
            .refuses(3, &["one tier of memory"]);
    }
}

#[test]
fn a_missing_model_is_reported_with_the_command_that_makes_it() {
    let place = Place::new();
    place.run("predict chase --on skx2s --tier remote").refuses(
        2,
        &[
            "skx2s.dram-remote.json",
            "`weir calibrate --on skx2s --tier remote` makes one",
        ],
    );
    let named = "predict chase --on skx2s --tier remote --model a.json --store b.sqlite";
    place.run(named).refuses(
        2,
        &["`weir calibrate --on skx2s --tier remote -o a.json --store b.sqlite` makes one"],
    );
}

#[test]
fn checked_files_are_a_document_too() {
    let place = Place::new();
    place.file("bad.toml", "kind = 1\n");
    place.file("good.toml", include_str!("../../../workloads/chase.toml"));
    let done = place.run("workload check good.toml bad.toml --format json");
    let files = done.expect(2).json()["files"].clone();
    assert_eq!(files[0]["name"], "good");
    let mistakes = files[1]["mistakes"].as_str().unwrap();
    assert!(mistakes.contains("bad.toml:1:"), "{mistakes}");
}

#[test]
fn a_missing_run_is_reported_with_what_there_is() {
    let place = Place::new();
    place
        .run("runs show 1")
        .refuses(2, &["no runs", "weir bench"]);
    place.run("report").refuses(2, &["no runs"]);
    assert!(!place.store().exists(), "looking makes no store");
    place.run(SMALL).expect(0);
    place
        .run("runs show 77")
        .refuses(2, &["77", "newest run is 1"]);
    place.run("report nothing").refuses(2, &["nothing"]);
}

#[test]
fn an_instruction_that_the_host_lacks_is_a_missing_capability() {
    let place = Place::new();
    let topo = place.run("topo --format json").expect(0).json();
    let capabilities = topo["capabilities"].as_array().unwrap();
    let movdir64b = capabilities
        .iter()
        .find(|c| c["feature"] == "movdir64b")
        .unwrap();
    let asked = place.run("bench bandwidth --op movdir64b --threads 1 --size 1M --repeat 1");
    if movdir64b["present"] == false {
        asked.refuses(3, &["movdir64b", "leave it out"]);
    } else {
        asked.expect(0);
    }
}

#[test]
fn what_a_processor_lacks_is_left_out_and_refused_only_if_asked_for() {
    let place = Place::new();
    let skylake = ["bench", "bandwidth", "--on", "skx2s", "--threads", "1"];
    let json = ["--format", "json", "--tier", "dram"];
    let unasked = place.run(with(skylake, json)).expect(0);
    assert!(
        unasked
            .err()
            .contains("movdir64b is left out: skylake-server")
    );
    let points = unasked.json()["points"].as_array().unwrap().clone();
    assert!(points.len() == 5 && points.iter().all(|p| p["error"].is_null()));

    // Asked for by name: what can be had is shown and kept, and the request is not met.
    let asked = with(skylake, "--op ld,movdir64b");
    let asked = place.run(with(&asked, json)).expect(3);
    assert!(
        asked
            .err()
            .contains("`movdir64b` needs movdir64b, which skx2s lacks")
    );
    assert_eq!(asked.json()["points"].as_array().unwrap().len(), 1);
    let runs = place.run("runs list --format json").json();
    assert_eq!(
        (&runs["runs"][0]["kept"], &runs["runs"][0]["partial"]),
        (&1.into(), &false.into())
    );

    place
        .run(with(skylake, "--op movdir64b"))
        .refuses(3, &["skylake-server does not have it", "leave it out"]);
}

#[test]
fn the_model_of_a_processor_without_an_instruction_refuses_it() {
    let start = |platform: &str| {
        let testbed = weir::machine::simulate(platform).unwrap();
        let mut machine = testbed.open(1).unwrap();
        let tenant = Tenant::on_first_cores(
            Op::Movdir64b,
            Pattern::Sequential,
            &TierName::dram(),
            1,
            Bytes::mib(64),
        );
        machine.start(&[tenant])
    };
    let missing = matches!(
        start("skx2s"),
        Err(MachineError::Missing {
            feature: Feature::Movdir64b,
            ..
        })
    );
    assert!(missing);
    assert_eq!(start("spr2s"), Ok(()));
}

#[test]
fn a_request_that_an_experiment_cannot_meet_is_refused() {
    let place = Place::new();
    let model = ["--on", "emr2s+cxl-a"];
    for (arguments, words) in [
        (&["loaded", "--mix", "1:2"][..], &["1:2", "1:2nt"][..]),
        (&["loaded", "--pause", "5 GB"], &["5 GB"]),
        (&["loaded", "--arrivals", "often"], &["often", "open"]),
        (&["loaded", "--pattern", "chase"], &["chase", "random"]),
        (&["loaded", "--threads", "32"], &["32 threads", "31"]),
        (&["random", "--block", "100B"], &["100 B", "64 B"]),
        (
            &["movement", "--method", "rep_movsb"],
            &["rep_movsb", "memcpy"],
        ),
        (&["movement", "--batch", "0"], &["no descriptors"]),
        (&["movement", "--source", "cxl9"], &["cxl9", "dram"]),
        (&["share", "--cores", "1,1"], &["named twice"]),
        (&["share", "--cores", "0,999"], &["no core 999"]),
        (&["stream", "--kernel", "dot"], &["dot", "triad"]),
        (&["stream", "--op", "ld"], &["st or nt_st"]),
        (&["tail", "--beside", "dancers"], &["dancers", "writers"]),
        (&["latency", "--repeat", "0"], &["0"]),
    ] {
        let arguments = [&["bench"][..], arguments, &model[..]].concat();
        place.run(&arguments).refuses(2, words);
    }
    assert!(!place.store().exists(), "a refused request leaves no run");
}
