//! The configuration: correct values are read exactly, mistakes are reported with line and key, and garbage
//! gives only a list of mistakes.

use proptest::prelude::*;
use weir_model::tiering::Balancing;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use weir_steer::config::{Config, Known, NotKnown, TierConfig, TierController};
use weir_steer::knee::Knee;
use weir_steer::registry::Policy;
use weir_steer::{Grain, Share};

const WHOLE: &str = r#"
kind = "steer"

[control]
controller = "miku"
window = "500 ms"
period = "20 ms"
floor_pct = 10
keep_fast_pct = 99
keep_slow_pct = 60
dwell = 2
silence = 4

[tenants]
protect = ["unit:db.service"]
restrain = ["cgroup:/batch.slice", "container:3f2a91c4d07b", "pid:4711"]
own_groups = true

[machine]
fast = "110 ns"
slow_read = "300 ns"

[log]
path = "/var/log/weir/steer.jsonl"
most = "1 MiB"
keep = 2

[status]
socket = "/run/weir/a.sock"

[metrics]
listen = "127.0.0.1:9999"

[journal]
folder = "/var/lib/weir/a"
"#;

#[test]
fn a_whole_file_is_read_as_it_stands() {
    let config = Config::read("steer.toml", WHOLE).unwrap();
    assert_eq!(config.policy, Policy::Miku);
    assert_eq!(config.window, Nanos(5e8));
    assert_eq!(config.period, Nanos(2e7));
    assert_eq!(config.bounds.floor, Share::of(0.1));
    let keep = config.bounds.keep;
    assert_eq!((keep.fast, keep.slow), (Share::of(0.99), Share::of(0.6)));
    assert_eq!((config.bounds.dwell, config.bounds.silence), (2, 4));
    let restrain: Vec<String> = config.restrain.iter().map(ToString::to_string).collect();
    assert_eq!(
        restrain,
        ["cgroup:/batch.slice", "container:3f2a91c4d07b", "pid:4711"]
    );
    assert!(config.own_groups && !Config::default().own_groups);
    let log = config.log.as_ref().unwrap();
    assert_eq!((log.most, log.keep), (Bytes::mib(1), 2));
    assert_eq!(config.metrics.unwrap().port(), 9999);
    let known = config.known.calibration(config.policy).unwrap();
    assert_eq!(known.slow_write, Nanos(600.0), "twice that of a load");
}

#[test]
fn the_example_in_the_documentation_is_right() {
    let text = include_str!("../../../docs/steer/steer.toml");
    assert_eq!(Config::read("steer.toml", text).unwrap().metrics, None);
    // A service needs more than the two lines that are commented out.
    let text = text.replace("# [metrics]", "[metrics]");
    let config = Config::read("steer.toml", &text.replace("# listen", "listen")).unwrap();
    assert_eq!(config.tier, None);
    let tier: String = (text.lines().skip_while(|line| *line != "# [tier]"))
        .take_while(|line| !line.is_empty())
        .map(|line| format!("{}\n", line.trim_start_matches("# ")))
        .collect();
    let tier = Config::read("steer.toml", &format!("kind = \"steer\"\n{tier}")).unwrap();
    let (tier, usual) = (tier.tier.unwrap(), TierConfig::default());
    assert_eq!((tier.controller, tier.alto), (usual.controller, usual.alto));
    assert_eq!((tier.pressure, tier.demote.len()), (usual.pressure, 1));
    let usual = Config::default();
    assert_eq!(config.bounds, usual.bounds, "its values are the usual ones");
    assert_eq!((config.window, config.period), (usual.window, usual.period));
    assert_eq!(
        (config.socket, config.journal),
        (usual.socket, usual.journal)
    );
    assert_eq!(config.metrics, Some(Config::usual_metrics()));
}

#[test]
fn what_is_left_out_is_as_usual() {
    let config = Config::read("steer.toml", "kind = \"steer\"\n[metrics]\n").unwrap();
    assert_eq!(config.policy, Policy::Weir);
    assert!(config.metrics.unwrap().ip().is_loopback());
    let missing = config.known.calibration(Policy::Weir).unwrap_err();
    assert_eq!(
        missing,
        NotKnown {
            controller: "weir",
            key: "fast"
        }
    );
    assert!(config.known.calibration(Policy::Isolation).is_ok());
}

/// Each mistake alone: the text of the file, and the expected message, with its line.
#[test]
fn every_mistake_is_reported_with_its_line_and_key() {
    for (text, line, expected) in [
        ("", 1, "missing key `kind`"),
        ("kind = \"host\"\n", 1, "not a configuration of steering"),
        (
            "kind = \"steer\"\nwindow = \"1 s\"\n",
            2,
            "`window` is not a key",
        ),
        (
            "kind = \"steer\"\n[control]\nfloor_pct = 101\n",
            3,
            "`control.floor_pct` must be a number between 1 and 100",
        ),
        (
            "kind = \"steer\"\n[control]\nwindow = 250\n",
            3,
            "`control.window` must be a time such as \"250 ms\"",
        ),
        (
            "kind = \"steer\"\n[control]\nwindow = \"1 ns\"\n",
            3,
            "`control.window` must be between",
        ),
        (
            "kind = \"steer\"\n[control]\ncontroler = \"weir\"\n",
            3,
            "did you mean `controller`?",
        ),
        (
            "kind = \"steer\"\n[control]\ncontroller = \"wier\"\n",
            3,
            "did you mean `weir`? known are weir, miku",
        ),
        (
            "kind = \"steer\"\ncontrol = 3\n",
            2,
            "`control` must be a table",
        ),
        (
            "kind = \"steer\"\n[tenants]\nprotect = \"unit:a.service\"\n",
            3,
            "must be a list of scopes",
        ),
        (
            "kind = \"steer\"\n[tenants]\nprotect = [\"a\"]\n",
            3,
            "cgroup:/PATH",
        ),
        (
            "kind = \"steer\"\n[tenants]\nprotect = [\"pid:7\"]\nrestrain = [\"pid:7\"]\n",
            4,
            "`pid:7` cannot be both protected and restrained",
        ),
        (
            "kind = \"steer\"\n[tenants]\nrestrain = [\"cgroup:/a\",\n \"cgroup:/a/b\"]\n",
            4,
            "`cgroup:/a/b`, restrained, overlaps `cgroup:/a`, restrained",
        ),
        (
            "kind = \"steer\"\n[tenants]\nrestrain = [\"pid:7\", \"pid:7\"]\n",
            3,
            "`pid:7` is restrained twice",
        ),
        (
            "kind = \"steer\"\n[metrics]\nlisten = \"0.0.0.0:1\"\n",
            3,
            "add `anywhere = true`",
        ),
        (
            "kind = \"steer\"\n[metrics]\nlisten = \"here\"\n",
            3,
            "must be an address and a port",
        ),
        (
            "kind = \"steer\"\n[log]\npath = \"steer.jsonl\"\n",
            3,
            "a path that starts at the root",
        ),
        (
            "kind = \"steer\"\n[log]\nmost = \"1 B\"\npath = \"/a\"\n",
            3,
            "between 64 KiB and 16 GiB",
        ),
        (
            "kind = \"steer\"\n[tier]\ndemotion = true\n",
            3,
            "`tier.demotion` must be",
        ),
        (
            "kind = \"steer\"\n[tier]\nbalancing = \"tierring\"\n",
            3,
            "did you mean `tiering`?",
        ),
        (
            "kind = \"steer\"\n[tier]\npromote_limit = \"0 GB/s\"\n",
            3,
            "`tier.promote_limit` must be between",
        ),
        (
            "kind = \"steer\"\n[tier]\ncontroller = \"alto\"\n",
            3,
            "add `promote_limit",
        ),
        (
            "kind = \"steer\"\n[tier]\nalto_low = 120\n",
            3,
            "must be less than `alto_high` (100)",
        ),
        (
            "kind = \"steer\"\n[tier]\nweights = { dram = 300 }\n",
            3,
            "`tier.weights.dram` must be",
        ),
        (
            "kind = \"steer\"\n[tier]\ndemote = [{ scope = \"cgroup:/a\", rate = \"1 GB/s\" }]\n",
            3,
            "add `demotion = \"on\"`",
        ),
        (
            "kind = \"steer\"\n[tier]\ndemotion = \"on\"\n[[tier.demote]]\nscope = \"cgroup:/a\"\n",
            4,
            "missing key `tier.demote.rate`",
        ),
        (
            "kind = \"steer\"\n[tier]\npromote_limits = \"1 GB/s\"\n",
            3,
            "did you mean `promote_limit`?",
        ),
        ("kind = \"steer\"\n[control\n", 2, "not valid TOML"),
    ] {
        let mistakes = Config::read("steer.toml", text).unwrap_err();
        let all = mistakes.to_string();
        assert!(all.contains(expected), "{text:?}:\n{all}");
        let found = mistakes.shown.iter().any(|m| m.line == line);
        assert!(found, "line {line} of {text:?}:\n{all}");
    }
}

#[test]
fn the_table_of_tiering_is_read_as_it_stands() {
    let text = "kind = \"steer\"\n[tier]\ncontroller = \"alto\"\ndemotion = \"on\"\nbalancing = \"tiering\"\n\
                promote_limit = \"0.1 GB/s\"\nweights = { dram = 3, cxl0 = 1 }\nalto_high = 95\npressure_pct = 1\n\
                [[tier.demote]]\nscope = \"cgroup:/batch.slice\"\nrate = \"50 MB/s\"\n";
    let tier = Config::read("steer.toml", text).unwrap().tier.unwrap();
    assert_eq!(tier.controller, TierController::Alto);
    assert_eq!(tier.settings.demotion, Some(true));
    assert_eq!(tier.settings.balancing, Some(Balancing::Tiering));
    assert_eq!(tier.settings.promote_limit, Some(GbPerSec(0.1)));
    let weights: Vec<String> = (tier.weights.iter())
        .map(|(tier, weight)| format!("{tier}={weight}"))
        .collect();
    assert_eq!(weights, ["dram=3", "cxl0=1"]);
    assert_eq!((tier.alto.low.get(), tier.alto.high.get()), (40.0, 95.0));
    assert_eq!(tier.pressure, 1.0);
    let [(scope, rate)] = &tier.demote[..] else {
        panic!("{:?}", tier.demote);
    };
    assert_eq!(scope.to_string(), "cgroup:/batch.slice");
    assert_eq!(*rate, GbPerSec(0.05));
    let none = Config::read("steer.toml", "kind = \"steer\"\n").unwrap();
    assert_eq!(none.tier, None);
}

#[test]
fn metrics_may_be_reached_from_elsewhere_if_that_is_wanted() {
    let text = "kind = \"steer\"\n[metrics]\nlisten = \"0.0.0.0:1\"\nanywhere = true\n";
    assert!(Config::read("steer.toml", text).is_ok());
}

proptest! {
    #[test]
    fn garbage_is_a_list_of_mistakes(text in "\\PC{0,200}") {
        if let Err(mistakes) = Config::read("steer.toml", &text) {
            prop_assert!(!mistakes.shown.is_empty());
        }
    }

    #[test]
    fn a_file_that_was_cut_or_altered_never_panics(at in 0usize..700, with in "\\PC{0,6}") {
        let at = (0..=at.min(WHOLE.len())).rev().find(|&i| WHOLE.is_char_boundary(i)).unwrap_or(0);
        let cut = Config::read("steer.toml", &WHOLE[..at]);
        let altered = Config::read("steer.toml", &format!("{}{with}{}", &WHOLE[..at], &WHOLE[at..]));
        for mistakes in [cut.err(), altered.err()].into_iter().flatten() {
            let lines = WHOLE.lines().count() + 1;
            prop_assert!(mistakes.shown.iter().all(|m| (1..=lines).contains(&m.line)));
        }
    }
}

/// Knees in order of their share of writes, with figures that a file keeps.
fn knees() -> impl Strategy<Value = Vec<Knee>> {
    let grain = prop_oneof![
        Just(Grain::Time),
        Just(Grain::Wide(Share::of(0.1))),
        Just(Grain::Narrow(Share::of(0.05))),
    ];
    let knee = (
        1u32..4000,
        10u32..9000,
        1u32..60_000,
        prop::option::of(1u32..64),
        grain,
    );
    prop::collection::vec(knee, 0..4).prop_map(|knees| {
        let of =
            |(i, (rest, residency, gives, much, grain)): (usize, (u32, u32, u32, _, _))| Knee {
                writes: i as f64 / 4.0,
                rest: Nanos(f64::from(rest)),
                residency: Nanos(f64::from(residency)),
                gives: GbPerSec(f64::from(gives) / 8.0),
                units: f64::from(rest) / 8.0,
                much: Option::map(much, |much: u32| f64::from(much)),
                grain,
            };
        knees.into_iter().enumerate().map(of).collect()
    })
}

proptest! {
    #[test]
    fn what_was_measured_is_read_back_and_the_configuration_goes_before_it(
        knees in knees(), fast in prop::option::of(1u32..5000), slow in prop::option::of(1u32..5000),
    ) {
        let ns = |time: Option<u32>| time.map(|time| Nanos(f64::from(time) / 2.0 + 1.0));
        let known = Known {
            measured: Some("2026-03-01T14:05:09Z".into()),
            digest: Some("0123456789abcdef".into()),
            fast: ns(fast),
            fast_loaded: ns(fast),
            slow: ns(slow),
            slow_read: ns(slow),
            slow_write: ns(slow),
            knees,
            from: None,
        };
        let text = known.to_toml();
        let read = Known::read("machine.toml", &text);
        prop_assert_eq!(read.as_ref(), Ok(&known), "{}", text);
        let knees = known.knees.iter().rev().copied().collect();
        let reversed = Known { knees, ..known.clone() }.to_toml();
        prop_assert_eq!(Known::read("machine.toml", &reversed).unwrap(), known.clone());
        prop_assert_eq!(&Known::default().or(known.clone()), &known);
        let own = Known { fast: Some(Nanos(7.0)), ..Known::default() };
        let both = own.or(known.clone());
        prop_assert_eq!(both.fast, Some(Nanos(7.0)));
        prop_assert_eq!((both.slow, &both.knees), (known.slow, &known.knees));
        let calibration = both.calibration(Policy::Weir).unwrap();
        prop_assert_eq!(&calibration.knees, &known.knees);
        // A configuration has the same table.
        let pasted = text.replace("steer-machine", "steer");
        prop_assert_eq!(Config::read("steer.toml", &pasted).unwrap().known, known);
    }

    #[test]
    fn garbage_in_a_knee_is_a_list_of_mistakes(
        lines in prop::collection::vec(
            "(writes|rest|residency|gives|units|much|grain|step|x) = (1|-1|0.5|\"time\"|\"wide\"|\"9 ns\"|\"1 GB/s\"|\\[\\]|.{0,8})\n",
            0..9,
        ),
    ) {
        let text = format!("kind = \"steer-machine\"\n[[machine.knee]]\n{}", lines.concat());
        match Known::read("machine.toml", &text) {
            Ok(known) => prop_assert_eq!(known.knees.len(), 1),
            Err(mistakes) => prop_assert!(!mistakes.to_string().is_empty()),
        }
    }
}

#[test]
fn a_description_of_a_machine_describes_nothing_else() {
    for (text, said) in [
        ("kind = \"steer\"\n", "not a description of a machine"),
        ("kind = \"steer-machine\"\n[tenants]\n", "not a key"),
        (
            "kind = \"steer-machine\"\n[machine]\nfrom = \"/a\"\n",
            "cannot name a third",
        ),
        (
            "kind = \"steer-machine\"\n[[machine.knee]]\nwrites = 0\n",
            "missing key `machine.knee.rest`",
        ),
    ] {
        let why = Known::read("machine.toml", text).unwrap_err().to_string();
        assert!(why.contains(said), "{text}: {why}");
    }
}
