//! Laws of the tables that come with Weir, and of how events are found in them.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::counters::{CounterSet, RunningShare};

static LIBRARY: LazyLock<EventLibrary> = LazyLock::new(EventLibrary::builtin);

fn table(name: &str) -> EventTable {
    LIBRARY.get(name).unwrap().clone()
}

#[test]
fn every_processor_of_the_platform_library_has_a_table() {
    for name in crate::platform::Library::builtin().microarchitectures() {
        let table = LIBRARY.of_model(name);
        assert!(table.is_ok_and(|table| !table.cpus.is_empty()), "{name}");
    }
    assert!(LIBRARY.of_model("vax-11").is_err());
}

#[test]
fn every_table_that_comes_with_weir_is_without_mistake_and_speaks_of_every_counter() {
    for name in library::TABLES {
        let table = EventLibrary::check(name, library::text(name))
            .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        for counter in Counter::ALL.iter().filter(|counter| counter.is_event()) {
            assert!(table.rules.contains_key(counter), "{name}: {counter}");
        }
        // Two events with one encoding would be distinguished by chance.
        for event in table.events.values() {
            let same = |other: &&Event| other.pmu == event.pmu && other.fields == event.fields;
            assert_eq!(
                table.events.values().filter(same).count(),
                1,
                "{name}: {}",
                event.name
            );
        }
    }
    assert_eq!(LIBRARY.tables().len(), library::TABLES.len());
}

#[test]
fn the_names_of_tables_are_listed_once() {
    let message = LIBRARY.get("vax").unwrap_err().reason;
    let (_, names) = message.split_once("known are ").unwrap();
    let mut names: Vec<&str> = names.split(", ").collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{message}");
    assert!(
        names.contains(&"zen4") && names.contains(&"spr"),
        "{message}"
    );
}

#[test]
fn processors_are_distinguished_down_to_the_stepping() {
    let library = &*LIBRARY;
    let of = |vendor: &str, family, model, stepping| {
        let vendor = vendor.to_owned();
        let cpu = CpuId {
            vendor,
            family,
            model,
            stepping,
        };
        library.of(&cpu).map(|table| table.name.clone())
    };
    assert_eq!(of("GenuineIntel", 6, 0x55, 4).unwrap(), "skylake-sp");
    assert_eq!(of("GenuineIntel", 6, 0x55, 7).unwrap(), "cascade-lake");
    assert_eq!(of("GenuineIntel", 6, 0xcf, 2).unwrap(), "emerald-rapids");
    assert_eq!(of("AuthenticAMD", 25, 17, 1).unwrap(), "zen4");
    assert_eq!(of("AuthenticAMD", 26, 2, 0).unwrap(), "zen5");
    assert_eq!(of("0x41", 8, 0xd4f, 0).unwrap(), "neoverse-v2");
    // Milan is Zen 3, and Client Skylake another core.
    assert!(of("AuthenticAMD", 25, 1, 1).is_err());
    assert!(of("GenuineIntel", 6, 0x5e, 3).is_err());
}

#[test]
fn encodings_are_those_of_the_manuals() {
    // Intel SDM volume 3, and the uncore performance monitoring guides.
    let spr = table("spr");
    let fields = |name: &str| {
        spr.events[name]
            .fields
            .clone()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let of = |pairs: &[(&str, u64)]| {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), *v))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        fields("MEM_LOAD_RETIRED.FB_HIT"),
        of(&[("event", 0xd1), ("umask", 0x40)])
    );
    assert_eq!(
        fields("MEMORY_ACTIVITY.STALLS_L3_MISS"),
        of(&[("cmask", 9), ("event", 0x47), ("umask", 9)])
    );
    assert_eq!(
        fields("OCR.HWPF_L2.ANY_RESPONSE"),
        of(&[("event", 0x2a), ("offcore_rsp", 0x10070), ("umask", 1)])
    );
    assert_eq!(
        fields("UNC_CHA_TOR_INSERTS.IA_MISS"),
        of(&[("event", 0x35), ("umask", 0xc001_fe01)])
    );
}

#[test]
fn an_event_is_found_however_perf_spells_it() {
    let skx = table("skx");
    let found = |text: &str| {
        Spelled::read(text)
            .find(&skx)
            .map(|event| event.name.as_str())
    };
    let stalls = Some("CYCLE_ACTIVITY.STALLS_MEM_ANY");
    assert_eq!(found("cycle_activity.stalls_mem_any"), stalls);
    assert_eq!(found("CYCLE_ACTIVITY.STALLS_MEM_ANY:u"), stalls);
    assert_eq!(found("cpu/event=0xa3,umask=0x14,cmask=20/"), stalls);
    assert_eq!(
        found("cpu/event=0xa3,umask=0x14,cmask=0x14,name=mine/u"),
        stalls
    );
    assert_eq!(found("cpu/cycle_activity.stalls_mem_any/"), stalls);
    assert_eq!(found("r140014a3"), Some("CYCLE_ACTIVITY.STALLS_MEM_ANY"));
    assert_eq!(
        found("r14a3"),
        None,
        "without its threshold it is another event"
    );
    assert_eq!(found("cycles:u"), Some("CPU_CLK_UNHALTED.THREAD"));
    assert_eq!(
        found("uncore_cha_3/event=0x35,umask=0x21/"),
        Some("UNC_CHA_TOR_INSERTS.IA_MISS")
    );
    assert_eq!(
        found("unc_cha_tor_inserts.ia_miss [uncore_cha_3]"),
        Some("UNC_CHA_TOR_INSERTS.IA_MISS")
    );
    assert_eq!(found("uncore_imc/event=0x35,umask=0x21/"), None);
    let spelled = Spelled::read("uncore_cha_3/event=0x35/");
    assert_eq!(
        (spelled.pmu.as_deref(), spelled.unit),
        (Some("uncore_cha"), Some(3))
    );
    assert_eq!(
        Spelled::read("page-faults:u").software(),
        Some(Counter::PageFaults)
    );
}

#[test]
fn a_groups_events_have_counters_all_at_once() {
    for table in LIBRARY.tables() {
        let [free, watched] = [false, true].map(|watchdog| Budget::of(table, watchdog).core);
        assert_eq!(watched + 1, free, "{}", table.name);
        for watchdog in [false, true] {
            let budget = Budget::of(table, watchdog);
            let groups = groups(table, Counter::ALL, budget);
            let mut seen = std::collections::BTreeSet::new();
            for group in &groups {
                let programmable = group.iter().filter(|event| !event.fixed).count();
                let room = if group[0].is_core() {
                    budget.core
                } else {
                    budget.uncore
                };
                assert!(programmable <= room as usize, "{}: {group:?}", table.name);
                let low = group.iter().filter(|event| event.on == Some(0..=3)).count();
                assert!(low <= 4, "{}: {group:?}", table.name);
                assert!(group.iter().all(|event| event.pmu == group[0].pmu));
                for event in group {
                    assert!(seen.insert(&event.name), "{} twice", event.name);
                }
            }
            // Nothing that can be counted is left out.
            for &counter in Counter::ALL {
                for event in table.events_of(counter) {
                    assert!(seen.contains(&event.name), "{}: {}", table.name, event.name);
                }
            }
        }
    }
}

#[test]
fn a_difference_below_zero_and_zero_cycles_are_reasons() {
    let zen = table("zen4");
    let amount = |value| Amount {
        value: Ok(value),
        running: RunningShare(0.5),
        units: Some(1),
    };
    let counted = |all, l2, ccx, cycles| {
        let amounts: Amounts = [
            ("ls_dmnd_fills_from_sys.all", all),
            ("ls_dmnd_fills_from_sys.local_l2", l2),
            ("ls_dmnd_fills_from_sys.local_ccx", ccx),
            ("ls_not_halted_cyc", cycles),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), amount(value)))
        .collect();
        Meaning {
            table: &zen,
            of_all: false,
        }
        .of(&amounts)
    };
    let good = counted(100, 60, 30, 5);
    assert_eq!(good.get(Counter::L3Miss), Ok(10));
    assert_eq!(good.running_share(Counter::L3Miss), RunningShare(0.5));
    let bad = counted(100, 80, 30, 0);
    assert!(
        bad.get(Counter::L3Miss)
            .unwrap_err()
            .reason
            .contains("negative: 100 less 110")
    );
    assert!(
        bad.get(Counter::Cycles)
            .unwrap_err()
            .reason
            .contains("zero cycles")
    );
    // Not mentioned, unless every counter is asked for.
    assert_eq!(good.missing().count(), 0);
    let all = Meaning {
        table: &zen,
        of_all: true,
    }
    .of(&Amounts::new());
    let events = Counter::ALL.iter().filter(|counter| counter.is_event());
    assert_eq!(all.missing().count(), events.count());
}

#[test]
fn of_formulas_whose_events_are_all_there_the_first_is_meant() {
    let emr = table("emerald-rapids");
    let amount = |value| Amount {
        value: Ok(value),
        running: RunningShare::WHOLE,
        units: None,
    };
    let both = [("MEMORY", 7), ("CYCLE", 9)]
        .map(|(of, value)| (format!("{of}_ACTIVITY.STALLS_L3_MISS"), amount(value)));
    let set = Meaning {
        table: &emr,
        of_all: false,
    }
    .of(&Amounts::from(both));
    assert_eq!(set.get(Counter::StallsL3Miss), Ok(7));
}

#[test]
fn a_clock_is_the_units_mean_and_nothing_where_their_number_is_unknown() {
    let spr = table("spr");
    let clock = |units| {
        let amount = Amount {
            value: Ok(600),
            running: RunningShare::WHOLE,
            units,
        };
        let amounts = Amounts::from([("UNC_CHA_CLOCKTICKS".to_owned(), amount)]);
        let set: CounterSet = Meaning {
            table: &spr,
            of_all: false,
        }
        .of(&amounts);
        set.get(Counter::ChaClockticks)
    };
    assert_eq!(clock(Some(60)), Ok(10));
    assert!(clock(None).unwrap_err().reason.contains("--no-merge"));
}

proptest! {
    #[test]
    fn garbage_is_a_mistake_and_never_a_panic(text in "\\PC{0,300}") {
        prop_assert!(EventLibrary::check("x.toml", &text).is_err());
        let _ = Formula::parse(&text);
        let spelled = Spelled::read(&text);
        prop_assert!(spelled.find(&table("spr")).is_none() || !text.is_empty());
    }

    #[test]
    fn a_broken_table_says_where(cut in 0_usize..12_000, put in "\\PC{0,12}") {
        let name = library::TABLES[3];
        let mut text = library::text(name).to_owned();
        let mut cut = cut.min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.insert_str(cut, &put);
        match EventLibrary::check(name, &text) {
            Ok(table) => prop_assert!(!table.rules.is_empty()),
            Err(mistakes) => prop_assert!(mistakes.shown.iter().all(|m| m.line >= 1)),
        }
    }

    #[test]
    fn a_truncated_table_is_a_mistake(cut in 0_usize..8_000) {
        let name = library::TABLES[3];
        let text = library::text(name);
        let cut = (0..=cut.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        prop_assert!(EventLibrary::check(name, &text[..cut]).is_err());
    }

    #[test]
    fn what_a_table_prints_for_perf_is_found_again(pick in 0_usize..1_000) {
        for table in LIBRARY.tables() {
            let event = table.events.values().nth(pick % table.events.len()).unwrap();
            let spelled = Spelled::read(&event.perf());
            prop_assert_eq!(spelled.find(table), Some(event));
        }
    }
}
