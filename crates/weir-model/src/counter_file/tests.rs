//! What `perf` writes is read, and what is no number stays none.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::counters::Counter::{self, *};
use crate::counters::RunningShare;
use crate::units::Nanos;

static LIBRARY: LazyLock<EventLibrary> = LazyLock::new(EventLibrary::builtin);

fn with(text: &str, cpu: Option<&str>) -> Result<CountersDocument, CounterFileError> {
    let options = ReadOptions {
        cpu: cpu.map(str::to_owned),
        cgroup: None,
    };
    read("f", text, &options, &LIBRARY)
}

fn ok(text: &str) -> CountersDocument {
    with(text, None).unwrap_or_else(|error| panic!("{error}"))
}

fn why(document: &CountersDocument, counter: Counter) -> String {
    document.total.get(counter).unwrap_err().reason
}

/// A machine that has no counters but the kernel's: six forms that its `perf` 6.1 wrote.
#[test]
fn every_form_of_perf_stat_is_read() {
    let text = ok(include_str!("../../tests/perf_stat/text.txt"));
    assert!((400_000..5_000_000).contains(&text.total.get(TaskClock).unwrap()));
    assert!((40..80).contains(&text.total.get(PageFaults).unwrap()));
    assert_eq!(text.total.get(CpuMigrations), Ok(0));
    assert!(why(&text, Cycles).contains("does not support it"));
    assert!(text.elapsed.is_some_and(|elapsed| elapsed > Nanos(1e7)));
    assert_eq!(
        (text.cpu.clone(), text.cpu_known_by),
        (None, KnownBy::Nothing)
    );

    for file in [
        include_str!("../../tests/perf_stat/interval.csv"),
        include_str!("../../tests/perf_stat/interval.jsonl"),
    ] {
        let series = ok(file);
        assert_eq!(series.intervals.len(), 3);
        assert!(series.notes.is_empty(), "{:?}", series.notes);
        let faults = |n: usize| series.intervals[n].counters.get(PageFaults);
        // It slept through the second interval: nothing to count is no count of zero.
        assert!(faults(1).unwrap_err().reason.contains("nothing ran"));
        assert_eq!(
            series.total.get(PageFaults).unwrap(),
            faults(0).unwrap() + faults(2).unwrap()
        );
        let length: f64 = series.intervals.iter().map(|i| i.length.get()).sum();
        assert_eq!(length, series.intervals[2].end.get());
    }

    let cpus = ok(include_str!("../../tests/perf_stat/per-cpu.csv"));
    let sockets = ok(include_str!("../../tests/perf_stat/per-socket.csv"));
    for machine in [cpus, sockets] {
        // Two processors for 50 ms.
        let clock = machine.total.get(TaskClock).unwrap();
        assert!((90_000_000..200_000_000).contains(&clock), "{clock}");
    }
    assert!(
        ok(include_str!("../../tests/perf_stat/repeated.txt"))
            .total
            .get(PageFaults)
            .is_ok()
    );
}

#[test]
fn hardware_events_become_portable_counters_with_their_share() {
    let file = "\
# weir cpu spr
1,234,567,890      cycles                    #    3.2 GHz                  (49.97%)
      <not counted>      MEM_LOAD_RETIRED.L1_HIT                           (0.00%)
        1,000      cpu/event=0xd1,umask=0x08,name=misses/                  (25.00%)
          500      r840d1:u                                                (30.00%)
        7,000      mem_load_retired.fb_hit                                 (9.90%)
           90      UNC_UPI_RxL_FLITS.ALL_DATA [uncore_upi_0]
           45      UNC_UPI_RxL_FLITS.ALL_DATA [uncore_upi_1]
        2,400      uncore_cha_0/event=0x1/
        2,600      uncore_cha_1/event=0x1/
       10.001000 seconds time elapsed
";
    let document = ok(file);
    assert_eq!(document.cpu.as_deref(), Some("sapphire-rapids"));
    assert_eq!(document.cpu_known_by, KnownBy::Header);
    let total = &document.total;
    assert_eq!(total.get(Cycles), Ok(1_234_567_890));
    assert_eq!(total.running_share(Cycles), RunningShare(0.4997));
    assert_eq!(total.get(L1Miss), Ok(1_000));
    assert_eq!(total.get(UpiRxData), Ok(15));
    assert_eq!(total.get(ChaClockticks), Ok(2_500));
    assert!(why(&document, L1Hit).contains("line 3: it was never on a hardware counter"));
    assert!(why(&document, FbHit).contains("9.9 %"));
    assert!(why(&document, HwpfL1dL3Hit).contains("cannot count it"));
    assert!(why(&document, L2Hit).contains("was not counted"));
    let unknown: Vec<_> = document
        .events
        .iter()
        .filter(|e| e.known_as.is_none())
        .collect();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert_eq!(
        (unknown[0].event.as_str(), unknown[0].line),
        ("r840d1:u", Some(5))
    );
}

#[test]
fn commas_inside_an_event_do_not_end_a_field() {
    let csv = "\
1.000100,5000,,cpu/event=0xa3,umask=0x14,cmask=20/u,1000100,100.00,,
1.000100,7,,CYCLE_ACTIVITY.STALLS_L3_MISS,1000100,50.00,,
2.000200,6000,,cpu/event=0xa3,umask=0x14,cmask=20/u,1000100,100.00,,
2.000200,8,,CYCLE_ACTIVITY.STALLS_L3_MISS,1000100,100.00,,
";
    let document = with(csv, Some("skx")).unwrap();
    assert_eq!(document.total.get(StallsMemAny), Ok(11_000));
    assert_eq!(document.total.get(StallsL3Miss), Ok(15));
    assert_eq!(
        document.total.running_share(StallsL3Miss),
        RunningShare(0.5)
    );
    assert_eq!(document.intervals[1].counters.get(StallsMemAny), Ok(6_000));
    assert_eq!(document.intervals[1].length, Nanos(1_000_100_000.0));
    // Skylake and Cascade Lake have the events with the same meaning; Sapphire Rapids has no such.
    let guessed = ok(csv);
    assert_eq!(guessed.cpu.as_deref(), Some("skylake-sp"));
    assert_eq!(guessed.cpu_known_by, KnownBy::Events);
    assert!(
        guessed.notes[0].contains("cascade-lake"),
        "{:?}",
        guessed.notes
    );
}

#[test]
fn thousands_are_separated_in_many_ways() {
    for number in [
        "1,234,567",
        "1.234.567",
        "1'234'567",
        "1\u{202f}234\u{202f}567",
        "1\u{a0}234\u{a0}567",
        "1234567",
    ] {
        let document = ok(&format!("  {number}      page-faults    # 1,2 K/sec\n"));
        assert_eq!(document.total.get(PageFaults), Ok(1_234_567), "{number}");
    }
    for (time, nanos) in [
        ("0,59", 590_000),
        ("1.234,50", 1_234_500_000),
        ("1,234.50", 1_234_500_000),
    ] {
        let document = ok(&format!("  {time} msec task-clock # 0,8 CPUs utilized\n"));
        assert_eq!(document.total.get(TaskClock), Ok(nanos), "{time}");
    }
    for number in ["1,23", "1234,567"] {
        assert!(with(&format!("  {number}      page-faults\n"), None).is_err());
    }
}

#[test]
fn what_is_no_count_stays_none() {
    let one = |value: &str| {
        let text = format!("{value},,page-faults,1,100.00,,\n5,,context-switches,1,100.00,,\n");
        let document = ok(&text);
        assert_eq!(document.total.get(ContextSwitches), Ok(5));
        why(&document, PageFaults)
    };
    assert!(one("-3").contains("line 1: -3 is a negative difference"));
    assert!(one("18446744073709551000").contains("negative difference"));
    assert!(one("281474976710000").contains("just below 2^48: the counter wrapped"));
    assert!(one("<not supported>").contains("does not support"));
    let joules = ok("  12.5 Joules power/energy-pkg/\n 5 page-faults\n");
    assert!(
        joules
            .events
            .iter()
            .any(|e| e.why.as_deref().is_some_and(|w| w.contains("Joules")))
    );
    let zero = ok("0,,cycles,1,100.00,,\n");
    assert!(why(&zero, Cycles).contains("zero cycles"));
    let short = ok(" 5 page-faults\n 0.000700000 seconds time elapsed\n");
    assert!(short.notes[0].contains("within a millisecond"));
}

#[test]
fn another_microarchitecture_than_claimed_is_an_error() {
    let spr = "100,,MEMORY_ACTIVITY.STALLS_L3_MISS,1,100.00,,\n";
    let error = with(spr, Some("skx")).unwrap_err().to_string();
    assert!(
        error.contains("f:1: the event is one of sapphire-rapids"),
        "{error}"
    );
    assert!(
        error.contains("the chosen processor is skylake-sp"),
        "{error}"
    );
    let error = with("# weir cpu emr\n5,,cycles,1,100.00,,\n", Some("skx")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("counted on emerald-rapids, not on skylake-sp")
    );
    let both = format!("{spr}5,,ls_not_halted_cyc,1,100.00,,\n");
    assert!(
        with(&both, None)
            .unwrap_err()
            .to_string()
            .contains("several microarchitectures")
    );
    assert!(
        with(spr, Some("vax"))
            .unwrap_err()
            .to_string()
            .contains("no events are known of `vax`")
    );
    // The encoding of loads that missed is the same on all Intel cores; that of reads offcore is not.
    let old = "5,,cpu/event=0xb0,umask=0x1/,1,100.00,,\n";
    assert!(
        with(old, Some("spr"))
            .unwrap_err()
            .to_string()
            .contains("skylake-sp")
    );
}

#[test]
fn control_groups_are_not_added_up() {
    let text = "5,,page-faults,a.slice,1,100.00,,\n7,,page-faults,b.slice,1,100.00,,\n";
    let error = with(text, None).unwrap_err().to_string();
    assert!(
        error.contains("--cgroup") && error.contains("a.slice, b.slice"),
        "{error}"
    );
    let options = ReadOptions {
        cgroup: Some("b.slice".into()),
        cpu: None,
    };
    let one = read("f", text, &options, &LIBRARY).unwrap();
    assert_eq!(one.total.get(PageFaults), Ok(7));
}

#[test]
fn two_runs_in_one_file_are_not_added_up() {
    let text = "2.0,5,,page-faults,1,100.00,,\n1.0,5,,page-faults,1,100.00,,\n";
    assert!(
        with(text, None)
            .unwrap_err()
            .to_string()
            .contains("f:2: time goes back")
    );
    // Appended without intervals: with the heading that `perf` writes, as text, or with what both count alone.
    let run = "100,,cycles,1,100.00,,\n50,,instructions,1,100.00,,\n";
    let heading = "# started on Sat Nov 28 12:12:20 2026\n\n";
    let text =
        "\n Performance counter stats for './job':\n\n 100 cycles\n\n 4.0 seconds time elapsed\n\n";
    for (twice, line) in [
        ([heading, run, heading, run].concat(), 5),
        (
            [heading, "5,,page-faults,1,100.00,,\n", heading, run].concat(),
            4,
        ),
        ([text, text].concat(), 9),
        ([run, run].concat(), 3),
        ([run, run, run].concat(), 3),
    ] {
        let error = with(&twice, None).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("f:{line}: ")) && error.contains("more than one run"),
            "{error}"
        );
    }
    // Alone each is read, and so is an event that each unit has.
    for once in [[heading, run].concat(), text.to_owned()] {
        assert_eq!(ok(&once).total.get(Cycles), Ok(100));
    }
    let units =
        "5,,UNC_CHA_CLOCKTICKS,1,100.00,,\n7,,UNC_CHA_TOR_INSERTS.IA,1,100.00,,\n".repeat(2);
    with(&units, Some("spr")).unwrap();
}

#[test]
fn an_event_of_two_groups_is_counted_once() {
    let text = "100,,cycles,1,20.00,,\n110,,cycles,1,40.00,,\n";
    let document = ok(text);
    assert_eq!(document.total.get(Cycles), Ok(110));
    assert_eq!(document.total.running_share(Cycles), RunningShare(0.4));
    // Of one processor of several the better one is not the sum of all.
    let text =
        "CPU0,100,,cycles,1,20.00,,\nCPU1,200,,cycles,1,20.00,,\nCPU0,110,,cycles,1,40.00,,\n";
    assert_eq!(ok(text).total.get(Cycles), Ok(300));
}

#[test]
fn a_variance_is_no_control_group() {
    let document = ok("5,,page-faults,0.50%,1,100.00,,\n7,,context-switches,1.20%,1,100.00,,\n");
    assert_eq!(document.total.get(PageFaults), Ok(5));
    assert_eq!(document.total.get(ContextSwitches), Ok(7));
}

#[test]
fn the_own_document_comes_back_as_it_was() {
    let document = with("# weir cpu spr\n5,,cycles,1,50.00,,\n", None).unwrap();
    let text = serde_json::to_string_pretty(&document).unwrap();
    assert_eq!(ok(&text), document);
    let error = with(&text, Some("skx")).unwrap_err().to_string();
    assert!(
        error.contains("on sapphire-rapids, not on skylake-sp"),
        "{error}"
    );
    let newer = text.replace("weir/counters/1", "weir/counters/9");
    assert!(
        with(&newer, None)
            .unwrap_err()
            .to_string()
            .contains("this version reads")
    );
    let other = text.replace("weir/counters/1", "weir/bench/1");
    assert!(
        with(&other, None)
            .unwrap_err()
            .to_string()
            .contains("not of counters")
    );
    let cut = &text[..text.len() / 2];
    assert!(matches!(
        with(cut, None),
        Err(CounterFileError::Line { .. })
    ));
}

const SAMPLES: [&str; 4] = [
    include_str!("../../tests/perf_stat/text.txt"),
    include_str!("../../tests/perf_stat/interval.csv"),
    include_str!("../../tests/perf_stat/interval.jsonl"),
    include_str!("../../tests/perf_stat/per-socket.csv"),
];

proptest! {
    #[test]
    fn garbage_is_an_error_and_never_a_panic(text in "\\PC{0,200}") {
        prop_assert!(with(&text, None).is_err() || text.bytes().any(|b| b.is_ascii_digit()));
    }

    #[test]
    fn garbage_that_looks_like_counters_is_read_or_refused(
        text in "([0-9<][0-9.,' a-z>]{0,12}[,; \t]){1,6}(cycles|page-faults|cpu/event=0x1,umask=2/|r14a3)[,;%() 0-9.]{0,20}\n"
    ) {
        let _ = with(&text, Some("spr"));
    }

    #[test]
    fn truncated_and_spoiled_files_are_read_or_refused(
        which in 0_usize..4, cut in 0_usize..1_500, put in "\\PC{0,8}",
    ) {
        let whole = SAMPLES[which];
        let cut = (0..=cut.min(whole.len())).rev().find(|&at| whole.is_char_boundary(at)).unwrap_or(0);
        let _ = with(&whole[..cut], None);
        let _ = with(&format!("{}{put}{}", &whole[..cut], &whole[cut..]), None);
    }

    /// What is counted in parts is the sum of the parts, in whatever form.
    #[test]
    fn forms_agree(counts in proptest::collection::vec(0_u64..1 << 40, 1..6)) {
        let mut csv = String::new();
        let mut json = String::new();
        let mut text = String::new();
        for (n, count) in (1..).zip(&counts) {
            csv += &format!("{n}.5,{count},,page-faults,1,100.00,,\n");
            json += &format!(
                "{{\"interval\": {n}.5, \"counter-value\": \"{count}.000000\", \"unit\": \"\", \
                 \"event\": \"page-faults\", \"event-runtime\": 1, \"pcnt-running\": 100.00}}\n"
            );
            text += &format!("     {n}.500000000 {count:>18}      page-faults    # 1 K/sec\n");
        }
        let sum = counts.iter().sum::<u64>();
        for form in [csv, json, text] {
            let document = with(&form, None).unwrap();
            prop_assert_eq!(document.total.get(PageFaults), Ok(sum));
            prop_assert_eq!(document.intervals.len(), counts.len());
        }
    }
}
