//! A study on the simulator: its front, its store, and what it says.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use common::{MODELS, SMALL, WITH_TENANT, read};
use weir_design::outcome::Designs;
use weir_design::study::DesignStudy;
use weir_lab::lab::NoMachine;
use weir_lab::{About, Bench, Keeper, Lab, LabError, Outcome, Study};
use weir_model::machine::Identity;
use weir_model::topology::Topology;

/// A store in memory, which may ask for a stop after this many answers.
#[derive(Default)]
struct Store {
    answers: Mutex<BTreeMap<String, String>>,
    recalled: Mutex<usize>,
    kinds: Mutex<BTreeSet<String>>,
    most: Option<usize>,
}

impl Keeper for Store {
    fn recall(&self, address: &str) -> Option<String> {
        let found = self.answers.lock().unwrap().get(address).cloned();
        *self.recalled.lock().unwrap() += usize::from(found.is_some());
        found
    }

    fn keep(&self, kind: &str, address: &str, body: &str) {
        self.kinds.lock().unwrap().insert(kind.to_owned());
        self.answers
            .lock()
            .unwrap()
            .insert(address.to_owned(), body.to_owned());
    }

    fn stop(&self) -> bool {
        self.most
            .is_some_and(|most| self.answers.lock().unwrap().len() >= most)
    }
}

fn run(text: &str, store: &Store) -> Result<(Designs, bool), LabError> {
    let space = read(text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let study = DesignStudy {
        accesses: 1000,
        space: Some((space, MODELS)),
        ..DesignStudy::default()
    };
    let (machine, topology) = (Identity::default(), Topology::default());
    let bench = Bench {
        testbed: &NoMachine,
        machine: &machine,
        topology: &topology,
        capabilities: &[],
        seed: 1,
        rounds: 1,
    };
    let lab = Lab::new(bench, store);
    let found = study.run(&lab)?;
    Ok((found, lab.into_notes().partial))
}

fn whole(text: &str, store: &Store) -> Designs {
    let (found, partial) = run(text, store).unwrap_or_else(|error| panic!("{error}"));
    assert!(!partial);
    found
}

fn conclusion(found: &Designs) -> String {
    let (machine, topology) = (Identity::default(), Topology::default());
    let about = About {
        machine: &machine,
        topology: &topology,
        warnings: &[],
    };
    found
        .answer(about)
        .iter()
        .map(|verdict| format!("{}: {}\n", verdict.about, verdict.text))
        .collect()
}

#[test]
fn more_bandwidth_costs_more_and_the_cheapest_design_is_on_the_front() {
    let found = whole(SMALL, &Store::default());
    assert_eq!(found.designs.len(), 6);
    // Pages on a tier that the design does not have.
    let impossible: Vec<_> = found
        .designs
        .iter()
        .filter(|own| own.standing == "impossible")
        .collect();
    assert_eq!(impossible.len(), 1);
    assert_eq!(
        impossible[0].why.as_deref(),
        Some("this design has no tier `cxl`")
    );
    let of = |cards: &str, pages: &str| {
        let own = found
            .designs
            .iter()
            .find(|own| own.values == [cards, pages]);
        own.unwrap_or_else(|| panic!("{cards} {pages}"))
    };
    let base = of("0", "dram");
    assert!(base.front && base.speed == Some(1.0));
    // Cards that hold no page cost money and nothing else.
    let idle = of("2", "dram");
    assert!(!idle.front && idle.dollars > base.dollars, "{idle:?}");
    // A thread waits longer for pages on a card.
    let far = of("1", "dram=3,cxl=1");
    assert!(far.speed < Some(0.95) && far.speed > Some(0.3), "{far:?}");
    let text = conclusion(&found);
    assert!(text.contains("on the front of speed and dollars"), "{text}");
    assert!(
        text.contains("`cards`") && text.contains("of 1 there are no figures"),
        "{text}"
    );
    let frames = found.frames();
    let designs = frames
        .iter()
        .find(|frame| frame.name == "designs")
        .expect("designs");
    assert_eq!(designs.number(&designs.rows[2], "cards"), Some(1.0));
}

#[test]
fn a_stopped_study_goes_on_and_another_space_takes_what_it_shares() {
    let mut store = Store {
        most: Some(2),
        ..Store::default()
    };
    let stopped = run(SMALL, &store);
    assert!(matches!(stopped, Ok((_, true)) | Err(LabError::Stopped)));
    store.most = None;
    let again = whole(SMALL, &store);
    // The first design, with which speed is compared, is asked for twice in each run.
    assert!(*store.recalled.lock().unwrap() >= 4);
    assert_eq!(again, whole(SMALL, &Store::default()));
    let before = store.answers.lock().unwrap().len();
    let wider = SMALL
        .replace("values = [0, 1, 2]", "values = [0, 1, 2, 4]")
        .replace("\"dram\", ", "");
    let wider = wider.replace(
        "kind = \"design\"",
        "kind = \"design\"\nsearch = \"random\"\npoints = 4",
    );
    let wider = wider.replace("values = [0, ", "values = [");
    whole(&wider, &store);
    assert_eq!(store.answers.lock().unwrap().len(), before + 1);
}

#[test]
fn constraints_that_no_design_meets_are_said() {
    let text = SMALL.replacen(
        "[[objective]]",
        "[[constraint]]\nobjective = \"watts\"\nmost = 10\n\n[[objective]]",
        1,
    );
    let found = whole(&text, &Store::default());
    assert!(found.designs.iter().all(|own| !own.front && !own.feasible));
    let text = conclusion(&found);
    assert!(
        text.contains("none of 6 designs meets every constraint"),
        "{text}"
    );
    assert!(
        text.contains("watts: at most 10 W is allowed; the designs have"),
        "{text}"
    );
}

#[test]
fn figures_of_parts_need_no_workload() {
    let text = SMALL
        .replace("[[workload]]\nname = \"scan-column\"\n", "")
        .replace("name = \"speed\"", "name = \"pins\"");
    let found = whole(&text, &Store::default());
    assert!(
        found
            .designs
            .iter()
            .all(|own| own.pins.is_some() == own.why.is_none() && own.watts.is_none())
    );
    assert_eq!(found.designs[0].pins, Some(8.0 * 160.0));
}

#[test]
fn a_probe_has_the_latency_of_memory_under_load() {
    let text = SMALL
        .replace("values = [0, 1, 2]", "values = [1]")
        .replace("name = \"dollars\"", "name = \"p99\"");
    let found = whole(&text, &Store::default());
    let [near, mixed] = found.designs.as_slice() else {
        panic!("{:?}", found.designs)
    };
    let p99 = |own: &weir_design::outcome::Design| own.p99_ns.unwrap_or_default();
    // Every fourth page is on the device, which answers in 214 ns without load.
    assert!(
        p99(near) > 100.0 && p99(mixed) > 200.0 && p99(mixed) > p99(near),
        "{near:?} {mixed:?}"
    );
}

#[test]
fn figures_of_two_workloads_follow_from_those_of_each() {
    let of = |workloads: &[(&str, f64)]| {
        let named = |(name, weight): &(&str, f64)| {
            format!("[[workload]]\nname = \"{name}\"\nweight = {weight}\n")
        };
        let named: String = workloads.iter().map(named).collect();
        let wanted = ["watts", "edp", "p99"].map(|o| format!("[[objective]]\nname = \"{o}\"\n"));
        let text = SMALL
            .replace("values = [0, 1, 2]", "values = [1]")
            .replace("[[workload]]\nname = \"scan-column\"\n", &named)
            .replace("[[objective]]\nname = \"dollars\"\n", &wanted.concat());
        let found = whole(&text, &Store::default());
        let [_, mixed] = found.designs.as_slice() else {
            panic!("{found:?}")
        };
        let (watts, edp) = (mixed.watts.unwrap(), mixed.edp.unwrap());
        // Speed is of the design without pages on the card; the product has the square of cycles per instruction.
        (
            watts,
            (edp / watts).sqrt(),
            mixed.speed.unwrap(),
            mixed.p99_ns.unwrap(),
        )
    };
    let names = ["scan-column", "gups"];
    let [one, other] = names.map(|name| of(&[(name, 1.0)]));
    assert!(one.2 != other.2 && one.1 != other.1, "{one:?} {other:?}");
    let both = of(&[(names[0], 1.0), (names[1], 3.0)]);
    let mean = |a: f64, b: f64| (a + 3.0 * b) / 4.0;
    let geometric = |a: f64, b: f64| mean(a.ln(), b.ln()).exp();
    let expected = [
        (both.0, mean(one.0, other.0)),
        (both.1, geometric(one.1, other.1)),
        (both.2, geometric(one.2, other.2)),
        (both.3, one.3.max(other.3)),
    ];
    for (found, expected) in expected {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn every_card_is_paid_for() {
    let price = "[[axis]]\nkey = \"price.card\"\nvalues = [0, 500]\n\n[[workload]]";
    let text = SMALL
        .replace("\"dram\", \"dram=3,cxl=1\"", "\"dram\"")
        .replacen("[[workload]]", price, 1);
    let found = whole(&text, &Store::default());
    let dollars = |cards: &str, price: &str| {
        let is_it = |own: &&weir_design::outcome::Design| own.values == [cards, "dram", price];
        found.designs.iter().find(is_it).unwrap().dollars.unwrap()
    };
    for (cards, paid) in [("0", 0.0), ("1", 500.0), ("2", 1000.0)] {
        assert_eq!(dollars(cards, "500") - dollars(cards, "0"), paid, "{cards}");
    }
    assert!(dollars("2", "0") > dollars("1", "0"));
}

/// The designs of a space, by their first value.
fn by_controller(found: &Designs) -> BTreeMap<&str, (f64, f64)> {
    let designs = found.designs.iter();
    designs
        .map(|own| {
            let figures = (own.speed.unwrap_or(0.0), own.neighbour_gbps.unwrap_or(0.0));
            (own.values[0].as_str(), figures)
        })
        .collect()
}

#[test]
fn a_controller_gives_the_workload_what_it_takes_from_tenants_and_a_stopped_study_goes_on() {
    let mut store = Store {
        most: Some(1),
        ..Store::default()
    };
    let stopped = run(WITH_TENANT, &store);
    assert!(matches!(stopped, Ok((_, true)) | Err(LabError::Stopped)));
    store.most = None;
    let found = whole(WITH_TENANT, &store);
    assert!(*store.recalled.lock().unwrap() >= 1);
    assert_eq!(found, whole(WITH_TENANT, &store), "from the store");
    let of = by_controller(&found);
    let (free, held) = (of["none"], of["miku"]);
    assert!(free.0 == 1.0 && held.0 > 1.1, "{of:?}");
    assert!(held.1 < free.1, "{of:?}");
    let text = conclusion(&found);
    assert!(
        text.contains("2 of 2 designs are on the front of speed and neighbour"),
        "{text}"
    );
}

/// What a design says that cannot be measured.
fn whys(text: &str) -> Vec<String> {
    let found = whole(text, &Store::default());
    assert!(found.designs.iter().all(|own| own.standing == "impossible"));
    let whys = found.designs.iter().filter_map(|own| own.why.clone());
    whys.collect()
}

#[test]
fn a_design_that_cannot_have_its_tenants_or_controller_is_kept_with_the_reason() {
    let bare = WITH_TENANT.replace("base = \"emr2s+cxl-a\"", "base = \"emr2s\"");
    assert_eq!(whys(&bare), ["this design has no tier `cxl0`"; 2]);
    let local = bare
        .replace("cxl0:nt_st", "dram:nt_st")
        .replace("\"none\", ", "");
    let why = whys(&local);
    assert!(
        why[0].contains("no CXL tier on its first socket"),
        "{why:?}"
    );
    let crowded = bare
        .replace("cxl0:nt_st", "dram:nt_st")
        .replace("threads = 8", "threads = 30");
    assert_eq!(
        whys(&crowded),
        ["`scan-column` has 8 threads and its tenants 30; this design has 32 cores"; 2]
    );
}

#[test]
fn speed_is_compared_with_the_first_design_that_can_be_and_pages_without_a_tier_are_no_design() {
    let text = |objective: &str| {
        let axes = [("cards", "0, 1"), ("policy", "\"dram=1,cxl=1\", \"dram\"")];
        let axes =
            axes.map(|(key, values)| format!("[[axis]]\nkey = \"{key}\"\nvalues = [{values}]\n"));
        let workload = "[[workload]]\nname = \"scan-column\"\n[[objective]]\nname = ";
        format!(
            "kind = \"design\"\nbase = \"emr2s+cxl-a\"\n{}{workload}\"{objective}\"\n",
            axes.join("")
        )
    };
    for objective in ["speed", "dollars"] {
        let found = whole(&text(objective), &Store::default());
        let [first, rest @ ..] = found.designs.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(first.standing, "impossible", "{objective}");
        let why = first.why.as_deref();
        assert_eq!(why, Some("this design has no tier `cxl`"), "{objective}");
        assert!(rest.iter().all(|own| own.feasible), "{found:?}");
        let is_compared = objective == "speed";
        assert_eq!(rest[0].speed, is_compared.then_some(1.0));
    }
}

#[test]
fn without_tenants_a_space_asks_for_what_it_always_asked() {
    let (store, other) = (Store::default(), Store::default());
    let found = whole(SMALL, &store);
    let kinds: Vec<String> = store.kinds.lock().unwrap().iter().cloned().collect();
    assert_eq!(kinds, ["workload"]);
    let named = SMALL.replacen("base =", "controller = \"none\"\nbase =", 1);
    assert_eq!(found, whole(&named, &other));
    assert_eq!(
        *store.answers.lock().unwrap(),
        *other.answers.lock().unwrap()
    );
}

/// By how much a controller changes the speed of a scan, and what it is without.
fn gain(controller: &str, op: &str, threads: u32) -> f64 {
    let text = WITH_TENANT
        .replace("\"miku\"", &format!("{controller:?}"))
        .replace("cxl0:nt_st", op)
        .replace("threads = 8", &format!("threads = {threads}"));
    let found = whole(&text, &Store::default());
    by_controller(&found)[controller].0
}

/// What sampling leaves open.
const NOISE: f64 = 0.03;

#[test]
fn a_controller_never_lowers_the_speed_of_what_it_protects() {
    let gained = gain("isolation", "cxl0:ld", 4);
    assert!(gained > 1.0 - NOISE, "{gained}");
}

#[test]
#[ignore = "minutes: every controller, instruction and number of threads"]
fn no_controller_ever_lowers_the_speed_of_what_it_protects() {
    let mut missed = Vec::new();
    for controller in [
        "weir",
        "miku",
        "quota",
        "frequency",
        "allocation",
        "isolation",
    ] {
        for op in ["cxl0:ld", "cxl0:st", "cxl:nt_st", "cxl0:redis-ycsb-a"] {
            for threads in [4, 16] {
                let gained = gain(controller, op, threads);
                eprintln!("{controller} {op} {threads}: {gained:.3}");
                if gained < 1.0 - NOISE {
                    missed.push(format!("{controller} {op} {threads}: {gained:.3}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
