//! Published rows, the rules that answer them, and the platform files whose parameters come from them.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::Place;
use weir::verbs::reproduce::rules;
use weir_lab::lab::NoMachine;
use weir_lab::reproduce::Engine;
use weir_lab::reproduce::rule::{Asked, On, Rule, find};
use weir_lab::{Bench, Lab};
use weir_model::document::RowKind;
use weir_model::machine::{Identity, Testbed};
use weir_model::platform::{Library, Provenance};
use weir_model::published::{Published, PublishedKind, builtin_rows};
use weir_model::topology::Topology;
use weir_sim::SimTestbed;

fn rows() -> BTreeMap<String, Published> {
    let rows = builtin_rows().into_iter();
    rows.map(|row| (row.id.clone(), row)).collect()
}

/// The ids of published rows in a text.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| {
        let id = word.split_once('-');
        id.is_some_and(|(paper, number)| {
            paper.len() == 3
                && paper.bytes().all(|b| b.is_ascii_uppercase())
                && number.len() == 3
                && number.parse::<u32>().is_ok()
        })
    })
}

/// Every row that sets a parameter: named by its source, or by the reason why it is assumed; with the
/// file and the key.
fn sets() -> Vec<(String, String)> {
    let mut sets = Vec::new();
    for definition in Library::builtin().list() {
        for parameter in definition.parameters() {
            let text = match &parameter.provenance {
                Provenance::Source(text) => text,
                Provenance::Assumed { why, .. } => why,
            };
            let place = format!("{} of {}", parameter.key, parameter.part);
            sets.extend(ids(text).map(|id| (id.to_owned(), place.clone())));
        }
    }
    sets
}

#[test]
fn a_row_that_sets_a_parameter_is_not_called_predicted() {
    let rules = rules();
    let sets = sets();
    assert!(sets.len() > 100, "only {} rows are named", sets.len());
    for (id, place) in sets {
        let kind = find(&rules, &id).map(|rule| rule.kind);
        let honest = !matches!(kind, Some(RowKind::Predicted | RowKind::Replayed));
        assert!(honest, "{id} sets {place}, and is called {kind:?}");
    }
}

/// Rows of kind `calibration` were measured on one tier with one tenant; all others may not set anything.
#[test]
fn no_parameter_comes_from_a_result_or_a_claim() {
    let rows = rows();
    for (id, place) in sets() {
        let row = rows.get(&id);
        let row = row.unwrap_or_else(|| panic!("{place} names {id}, which is not published"));
        let what = (&row.what, &row.condition);
        assert_eq!(
            row.kind,
            PublishedKind::Calibration,
            "{id} sets {place}: {what:?}"
        );
    }
}

#[test]
fn a_calibrated_row_sets_a_parameter() {
    let named: BTreeSet<String> = sets().into_iter().map(|(id, _)| id).collect();
    for rule in rules()
        .iter()
        .filter(|rule| rule.kind == RowKind::Calibrated)
    {
        // Pins, area and power are no parameters of a platform.
        let number = rule.id.trim_end_matches(char::is_lowercase);
        let of_parts = weir_design::silicon::BUILTIN.contains(number);
        assert!(
            named.contains(&rule.id) || of_parts,
            "{} sets nothing",
            rule.id
        );
    }
}

/// Idle latencies are parameters, so that arithmetic of them predicts nothing.
#[test]
fn a_row_of_idle_latencies_alone_is_not_called_predicted() {
    let rules = rules();
    for (row, asks) in asks() {
        let Some(rule) = find(&rules, &row.id) else {
            continue;
        };
        let words = [
            "chase",
            "\"threads\":1,",
            "1073741824",
            "\"least_accesses\":0",
        ];
        let is_idle = |ask: &Asked| words.iter().all(|word| ask.what.contains(word));
        if !asks.is_empty() && asks.iter().all(is_idle) {
            assert_ne!(rule.kind, RowKind::Predicted, "{}", row.id);
        }
    }
}

#[test]
fn no_row_has_two_rules_and_every_rule_answers_a_row_in_its_unit() {
    let rows = rows();
    let mut seen = BTreeSet::new();
    for rule in rules() {
        let Some(figure) = &rule.figure else { continue };
        assert!(seen.insert(rule.id.clone()), "{} has two rules", rule.id);
        let row = rows
            .get(&rule.id)
            .unwrap_or_else(|| panic!("no row {}", rule.id));
        assert_eq!(figure.unit, row.unit, "{}", rule.id);
    }
    assert!(seen.len() > 200);
}

fn open(on: On) -> Result<Box<dyn Testbed>, String> {
    let mut library = Library::builtin();
    let plain = library
        .change(on.platform)
        .map_err(|error| error.to_string())?;
    let platform = library.compose(&plain);
    let testbed = SimTestbed::new(&platform.map_err(|error| error.to_string())?);
    Ok(Box::new(testbed.map_err(|error| error.to_string())?))
}

/// What each published row asks of a machine. Rows of pools are answered without one, by replays that take long.
fn asks() -> Vec<(Published, Vec<Asked>)> {
    let of_pools = weir_plan::published::rules();
    let mut rules = rules();
    rules.retain(|rule| find(&of_pools, &rule.id).is_none());
    let bench = Bench {
        testbed: &NoMachine,
        machine: &Identity::default(),
        topology: &Topology::default(),
        capabilities: &[],
        seed: 1,
        rounds: 1,
    };
    let engine = Engine {
        rules: &rules,
        open: &open,
        lab: &Lab::new(bench, &()),
        with_slow: true,
    };
    let rows = builtin_rows();
    let asks = engine.asks(&rows);
    asks.map(|(row, asked)| (row.clone(), asked)).collect()
}

/// Papers some of whose rows are arithmetic of figures with sources, and ask nothing of a machine.
const ARITHMETIC: [&str; 2] = ["directcxl", "post-optane"];

/// A rule that names a tier which its platform does not have would never get a figure. Rows of pools, sizes of
/// datasets, and pins, area and power of parts are answered without a machine.
#[test]
fn every_rule_asks_for_something_that_its_platform_has() {
    let (rules, of_pools) = (rules(), weir_plan::published::rules());
    let of_sizes = weir_ann::published::identities();
    let of_parts = weir_design::published::rules();
    for (row, asks) in asks() {
        let rule = find(&rules, &row.id).filter(|rule| rule.figure.is_some());
        let asks_nothing = rule.is_none_or(|rule| {
            let is_of = |rules: &[Rule]| find(rules, &rule.id).is_some();
            rule.kind == RowKind::Replayed
                || is_of(&of_pools)
                || is_of(&of_sizes)
                || is_of(&of_parts)
        });
        let is_arithmetic = rule.is_some_and(|rule| rule.kind == RowKind::Identity)
            && ARITHMETIC.contains(&row.paper.as_str());
        assert!(
            asks.is_empty() == asks_nothing || (asks.is_empty() && is_arithmetic),
            "{}",
            row.id
        );
    }
}

/// What chance does to a row shows in another seed.
#[test]
fn rows_of_programs_have_the_seed_of_the_command() {
    let place = Place::new();
    let answered = |seed: &str| {
        let arguments = [
            "reproduce",
            "memo",
            "--only",
            "MEM-069",
            "--format",
            "csv",
            "--seed",
            seed,
        ];
        place.run(arguments).expect(0).out()
    };
    assert_ne!(answered("1"), answered("2"));
}

#[test]
fn the_gain_of_a_card_depends_on_a_bandwidth_that_is_assumed_and_the_row_says_so() {
    let place = Place::new();
    let row = place.run("reproduce memo --only MEM-078 --format json");
    let note = row.expect(0).json()["rows"][0]["note"].to_string();
    let cpi = |read: &str, tier: &str| -> f64 {
        let on = format!("--on memo-snc4,dram.read={read}GB/s --threads 32 --tier {tier}");
        let run = place.run(format!("workload run merci {on} --format json").as_str());
        run.expect(0).json()["whole"]["cpi"].as_f64().unwrap()
    };
    for (read, gains, said) in [
        ("52", 11.0..14.0, "12 to 13 %"),
        ("60", 4.0..8.0, "5 to 7 %"),
    ] {
        let gain = 100.0 * (cpi(read, "dram") / cpi(read, "dram=4,cxl0=1") - 1.0);
        assert!(gains.contains(&gain), "{read} GB/s: {gain:.1} %");
        assert!(note.contains(&format!("{said} with {read} GB/s")), "{note}");
    }
}

#[test]
fn a_figure_that_keeps_a_bound_is_said_to_do_so() {
    let place = Place::new();
    let rows = place.run("reproduce flac --only FLA-011 --only FLA-003");
    let out = rows.expect(0).out();
    let said = "- FLA-011: the published figure is a bound, and ours keeps it: 0.0 % off";
    assert!(out.contains(said), "{out}");
    let json = place.run("reproduce flac --only FLA-011 --only FLA-003 --format json");
    let rows = json.expect(0).json()["rows"].clone();
    let keeps = |id: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["id"] == id).unwrap()["keeps_bound"].clone()
    };
    assert_eq!(
        (keeps("FLA-011"), keeps("FLA-003")),
        (true.into(), ().into())
    );
}
