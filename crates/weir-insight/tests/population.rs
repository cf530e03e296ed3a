//! What the model is worth on simulated machines: calibrated on the micro-workloads alone, tried on a
//! population. `docs/predict.md` has the figures; the bounds here are what holds on every pair.
//!
//! Run with `cargo test --release -p weir-insight --test all -- --ignored population::`. `WEIR_POPULATIONS=3` draws only the
//! population of seed 3, `WEIR_WORKLOADS=100` this many workloads of it.

use crate::common;

use common::Simulated;
use weir_insight::documents::{Accuracy, AccuracyLine, Predicted};
use weir_insight::forecast::{accuracy, compare};
use weir_insight::interleave::caption::Settings;
use weir_insight::interleave::closed_form;
use weir_insight::tune;
use weir_insight::two_tiers::{Tiers, calibrate_machine, on_both, options, unloaded};
use weir_lab::{Lab, LabError};
use weir_model::insight::{Micro, SlowdownModel};
use weir_model::topology::TierName;
use weir_model::workload::Population;

/// How many workloads are drawn of each population; `WEIR_WORKLOADS` says another number.
fn workloads() -> usize {
    let said = std::env::var("WEIR_WORKLOADS").ok();
    said.map_or(300, |text| text.parse().expect("a number"))
}

/// What draws the population that the bounds are of, and one on which no choice was made.
const SEEDS: [u64; 2] = [1, 3];

fn seeds() -> Vec<u64> {
    let only = std::env::var("WEIR_POPULATIONS").ok();
    let only = only.map(|text| text.parse::<u64>().expect("a seed"));
    only.map_or(SEEDS.to_vec(), |seed| vec![seed])
}

fn tiers(to: &str) -> Tiers {
    Tiers {
        from: TierName::dram(),
        to: TierName::named(to),
    }
}

fn tried(platform: &str, to: &str) -> Vec<Accuracy> {
    let simulated = Simulated::new(platform);
    let lab = simulated.lab();
    let model = calibrate_machine(&lab, &tiers(to), 200, 0.9).unwrap();
    for point in &model.fitted_on {
        assert!(point.micro != Micro::Mixed);
        // Lists of which a few late lines cause all stalls: the published form misses them by 40 and 80.
        let off = point.fitted_pct - point.slowdown_pct;
        assert!(point.micro != Micro::List || off.abs() < 25.0, "{point:?}");
    }
    println!("{platform} {to}: {:?} {:?}", model.constants, model.exposed);
    let judged = |seed| judged(&lab, &model, (platform, to), seed);
    seeds().into_iter().map(judged).collect()
}

fn judged(
    lab: &Lab<'_>,
    model: &SlowdownModel,
    (platform, to): (&str, &str),
    seed: u64,
) -> Accuracy {
    let drawn = |of: Population| {
        let ran = on_both(lab, &of.draw(seed, workloads()), &tiers(to), &options(1)).unwrap();
        ran.into_iter().map(move |ran| {
            let (local, target) = (&ran.local, &ran.target);
            Predicted {
                population: Some(of),
                ..compare(model, &local.workload, &local.counters, &target.counters).unwrap()
            }
        })
    };
    let mut predicted: Vec<Predicted> = drawn(Population::Whole).collect();
    let slowed = |by: f64| {
        let more = |p: &&Predicted| p.measured.as_ref().is_some_and(|m| m.slowdown_pct > by);
        predicted.iter().filter(more).count() * 100 / predicted.len()
    };
    println!(
        "slowed by more than 5, 10, 20, 50 %: {:?} % of them",
        [5.0, 10.0, 20.0, 50.0].map(slowed)
    );
    // Of 265 real workloads 15 % on CXL-A, 20 % on CXL-B (SUP-135, SUP-136).
    if to == "cxl0" {
        assert!((5..=30).contains(&slowed(50.0)), "{} %", slowed(50.0));
    }
    predicted.extend(drawn(Population::MemoryHeavy));
    let far = |p: &&Predicted| p.warnings.iter().any(|w| w.contains("unlike"));
    println!(
        "unlike what was held out: {}",
        predicted.iter().filter(far).count()
    );
    let accuracy = accuracy(&predicted).unwrap();
    for line in &accuracy.populations {
        println!("{platform} {to}, seed {seed}: {line:?}");
    }
    println!(
        "{platform} {to}, seed {seed}: {} workloads, {} latency-bound, {:?} % covered, {:?} % explained, worst {:?}",
        accuracy.workloads,
        accuracy.latency_bound,
        accuracy.covered_pct,
        accuracy.explained_pct,
        accuracy.worst
    );
    for line in &accuracy.lines {
        println!(
            "{:16} {:5.1} {:5.1} {:5.1} {:?} {:.2}",
            line.what,
            line.within_2_pct,
            line.within_5_pct,
            line.within_10_pct,
            line.pearson,
            line.mean_error_pct
        );
    }
    accuracy
}

fn line<'a>(accuracy: &'a Accuracy, what: &str) -> &'a AccuracyLine {
    accuracy
        .lines
        .iter()
        .find(|line| line.what == what)
        .unwrap()
}

/// What must hold of either population: this many percent within five points for DRAM and within ten for the
/// total, both in proportion to what was measured; and whatever the pair, the form by exposed cycles is
/// better than the published one, causes account for the slowdown, intervals hold what they promise within
/// what chance does to 300 workloads, and no rejected predictor comes near.
fn hold(tried: &[Accuracy], dram: f64, whole: f64) {
    for accuracy in tried {
        holds(accuracy, dram, whole);
    }
}

fn holds(accuracy: &Accuracy, dram: f64, whole: f64) {
    assert_eq!(accuracy.workloads, workloads());
    assert!(accuracy.explained_pct.unwrap() >= 95.0);
    // Of 250 workloads of which nine in ten are held, chance leaves fewer than 85 % once in 200 times; the factor
    // of the intervals comes from 100, and varies by chance, too.
    for line in &accuracy.populations {
        assert!(line.covered_pct.unwrap() >= 80.0, "{line:?}");
    }
    let total = line(accuracy, "total");
    assert!(line(accuracy, "DRAM").within_5_pct >= dram);
    assert!(total.within_10_pct >= whole);
    let published = line(accuracy, "published DRAM");
    assert!(line(accuracy, "DRAM").within_5_pct >= published.within_5_pct);
    assert!(line(accuracy, "DRAM").mean_error_pct < published.mean_error_pct);
    let published = line(accuracy, "published total");
    assert!(total.mean_error_pct < published.mean_error_pct);
    for what in ["DRAM", "total"] {
        assert!(line(accuracy, what).pearson.unwrap() > 0.95, "{what}");
    }
    for rejected in ["LLC MPKI", "read bandwidth", "TMA DRAM-bound"] {
        let theirs = line(accuracy, rejected);
        assert!(
            theirs.within_10_pct + 15.0 <= total.within_10_pct,
            "{rejected}: {} with {}",
            theirs.within_10_pct,
            total.within_10_pct
        );
    }
}

#[test]
#[ignore = "runs 1400 simulated workloads for minutes; CI runs a sample of them"]
fn emerald_rapids_with_cxl_a() {
    hold(&tried("emr2s+cxl-a", "cxl0"), 88.0, 94.0);
}

#[test]
#[ignore = "runs 1400 simulated workloads for minutes; CI runs a sample of them"]
fn emerald_rapids_with_cxl_b() {
    // The calibrating chases have one region each; programs of several walk their page tables more often, and lose more.
    hold(&tried("emr2s+cxl-b", "cxl0"), 82.0, 87.0);
}

#[test]
#[ignore = "runs 1400 simulated workloads for minutes; CI runs a sample of them"]
fn skylake_with_its_other_socket() {
    hold(&tried("skx2s", "remote"), 95.0, 97.0);
}

/// Streams that fill local memory: the closed form, from a run on either tier alone, comes within three
/// points of the best share that was tried, and Caption within five after at most ten tunings.
#[test]
#[ignore = "runs 300 simulated workloads for minutes; CI runs a sample of them"]
fn interleaving_finds_what_a_sweep_finds() {
    let simulated = Simulated::new("skx2s");
    let lab = &simulated.lab();
    let tiers = tiers("remote");
    let cores = lab.topology().cores.len() as u32;
    let options = options(1);
    let unloaded = unloaded(lab, &tiers, &options).unwrap();
    let stream = weir_insight::micro::streams(cores)
        .into_iter()
        .find(|w| w.threads == cores)
        .unwrap();
    let shares = tune::shares(tune::ROUND);
    let runs = tune::sweep(lab, &stream, &tiers, &shares, &options).unwrap();
    let (local, slow) = (&runs[0], &runs[runs.len() - 1]);
    let change = |run| tune::change(local, run);
    let best = runs.iter().map(change).fold(0.0, f64::min);
    let classes = tune::classes(local, slow, unloaded).unwrap();
    let (share, _) = closed_form::best(&classes);
    let weights = weir_insight::interleave::Weights::nearest(share, tune::ROUND);
    let there = tune::run_at(lab, &stream, &tiers, weights, &options).unwrap();
    assert!(
        change(&there) <= best + 0.03,
        "{share}: {} and not {best}",
        change(&there)
    );
    let speed = |weights| {
        let run = tune::run_at(lab, &stream, &tiers, weights, &options)?;
        Ok::<_, LabError>(local.time / run.time)
    };
    let climbed = tune::climb_by(Settings::default(), &|_| true, speed).unwrap();
    assert!(climbed.tried.len() <= 10);
    let settled = 1.0 / climbed.settled().unwrap().1 - 1.0;
    // Which threads are on which tier at once is chance, another for every round of pages; it moves a
    // run by some points, and a climber that compares neighbours stops early for it.
    assert!(settled <= best + 0.05, "{best} and not {climbed:?}");
}
