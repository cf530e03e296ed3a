//! Theory with measurement, and verdicts.

mod common;
#[path = "study/staircase.rs"]
mod staircase;

use common::Toy;
use proptest::prelude::*;
use weir_lab::loaded::{self, Mix};
use weir_lab::statistics::Estimate;
use weir_lab::studies::verdicts;
use weir_lab::theory::{bandwidth_limit, beside};
use weir_lab::{Finished, Load, PointSpec, PointStudy as _, Severity, Verdict, run};
use weir_lab::{bandwidth, latency, movement, random, share, tail};
use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::{Point, Steadiness};
use weir_model::latency::{LatencyHistogram, LatencySummary};
use weir_model::topology::{Limits, TierName};
use weir_model::units::{Bytes, GbPerSec, Nanos};

fn all_points(toy: &Toy) -> Vec<Point> {
    let topology = toy.topology();
    let mut plan = latency::Latency::default().plan(&topology).unwrap();
    plan.extend(bandwidth::Bandwidth::default().plan(&topology).unwrap());
    run(toy, &plan, 3, &())
        .into_iter()
        .map(|done: Finished| done.point)
        .collect()
}

fn judged(toy: &Toy, about: &str) -> Vec<Verdict> {
    let all = verdicts(&all_points(toy), &toy.topology());
    all.into_iter()
        .filter(|verdict| verdict.about == about)
        .collect()
}

fn spec(op: Op, pattern: Pattern, working_set: Bytes) -> PointSpec {
    let load = Load::new(&TierName::dram(), op, pattern, 1, working_set);
    PointSpec::alone("latency", load.prefetch(false))
}

fn estimate(mean: f64, ci95: f64) -> Estimate {
    Estimate {
        mean,
        ci95: Some(ci95),
        samples: 10,
    }
}

proptest! {
    #[test]
    fn no_instruction_may_move_more_than_its_wires(
        read in 1.0..400.0_f64, write in 1.0..400.0_f64, total in 1.0..400.0_f64,
    ) {
        let limits = Limits {
            read: GbPerSec(read), write: GbPerSec(write), total: GbPerSec(total),
            idle: None, basis: String::new(),
        };
        for op in Op::ALL.into_iter().chain([Op::NtLd]).chain(Op::STORAGE) {
            let limit = bandwidth_limit(op, &limits).0.get();
            prop_assert!(limit * op.traffic_factor() <= total + 1e-9);
            let only_reads = op.is_load() || matches!(op, Op::RandRead | Op::SeqRead);
            if only_reads || op.reads_for_ownership() {
                prop_assert!(limit <= read);
            }
            if only_reads {
                prop_assert_eq!(limit, read.min(total), "{}", op);
            } else {
                prop_assert!(limit <= write);
            }
        }
    }

    #[test]
    fn more_samples_of_one_spread_make_the_interval_narrower(pairs in 1_usize..200) {
        let of = |pairs: usize| {
            Estimate::of(std::iter::repeat_n([9.0, 11.0], pairs).flatten()).unwrap().ci95.unwrap()
        };
        prop_assert!(of(pairs + 1) < of(pairs));
    }

    #[test]
    fn the_least_latency_of_a_chase_grows_with_its_working_set(mib in 63_u64..4096) {
        let topology = Toy::default().topology();
        let limit = |mib| {
            let chase = Pattern::Chase { locality: Locality::Random };
            beside(&spec(Op::Ld, chase, Bytes::mib(mib)), &estimate(500.0, 1.0), &topology)
                .unwrap().limit
        };
        prop_assert!(limit(mib) < limit(mib + 1));
        prop_assert!(limit(mib) < 110.0);
    }
}

#[test]
fn figures_that_the_caches_take_part_in_have_no_theory_of_memory() {
    let topology = Toy::default().topology();
    let chase = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    let ns = estimate(100.0, 1.0);
    assert_eq!(
        beside(&spec(Op::Ld, chase, Bytes::mib(32)), &ns, &topology),
        None
    );
    assert_eq!(
        beside(
            &spec(Op::Ld, Pattern::Sequential, Bytes::mib(100)),
            &ns,
            &topology
        ),
        None
    );
    assert!(
        beside(
            &spec(Op::Ld, Pattern::Sequential, Bytes::mib(200)),
            &ns,
            &topology
        )
        .is_some()
    );
    // A fenced posted store is done before its line has arrived.
    assert_eq!(
        beside(
            &spec(Op::NtSt, Pattern::FlushedLine, Bytes::mib(64)),
            &ns,
            &topology
        ),
        None
    );
}

#[test]
fn a_limit_is_beaten_only_beyond_the_interval() {
    let topology = Toy::default().topology();
    let flushed = spec(Op::Ld, Pattern::FlushedLine, Bytes::mib(64));
    let beaten = |mean, ci| {
        beside(&flushed, &estimate(mean, ci), &topology)
            .unwrap()
            .beaten
    };
    assert!(beaten(100.0, 5.0));
    assert!(!beaten(108.0, 5.0));
    assert!(!beaten(120.0, 5.0));
    let stream = spec(Op::Ld, Pattern::Sequential, Bytes::gib(1));
    let beaten = |mean, ci| {
        beside(&stream, &estimate(mean, ci), &topology)
            .unwrap()
            .beaten
    };
    assert!(beaten(250.0, 5.0));
    assert!(!beaten(243.0, 5.0));
}

#[test]
fn the_share_of_a_limit_is_in_percent_whichever_way_is_better() {
    let topology = Toy::default().topology();
    let share = |pattern, mean| {
        let set = Bytes::gib(1);
        beside(&spec(Op::Ld, pattern, set), &estimate(mean, 1.0), &topology)
            .unwrap()
            .share_pct
    };
    assert!((share(Pattern::Sequential, 120.0) - 50.0).abs() < 1e-9);
    assert!((share(Pattern::FlushedLine, 220.0) - 50.0).abs() < 1e-9);
}

#[test]
fn a_declining_curve_is_reported_with_its_knee_and_its_loss() {
    let found = judged(&Toy::default(), "cxl0 ld");
    assert_eq!(found.len(), 1, "{found:?}");
    // 12 lines of 64 B in 220 ns are 3.49 GB/s for each thread: six reach 20 GB/s.
    let text = &found[0].text;
    assert!(
        text.contains("reached with 6 threads (1 to 32 tried)"),
        "{text}"
    );
    assert!(
        text.contains("declines past 12") && text.contains("(-3"),
        "{text}"
    );
}

#[test]
fn a_fall_within_its_noise_is_no_decline() {
    let toy = Toy::default();
    let mut points = all_points(&toy);
    let curve = |p: &&mut Point| p.tier == TierName::cxl(0) && p.op == Op::Ld && p.gbps.is_some();
    for point in points.iter_mut().filter(curve) {
        point.ci95 = Some(4.0);
    }
    let found = verdicts(&points, &toy.topology());
    let found = found
        .iter()
        .find(|verdict| verdict.about == "cxl0 ld")
        .unwrap();
    assert!(!found.text.contains("declines"), "{found:?}");
}

#[test]
fn a_curve_that_still_rises_is_not_called_saturated() {
    let toy = Toy {
        dram_gbps: 1000.0,
        ..Toy::default()
    };
    let found = judged(&toy, "dram ld");
    assert!(found[0].text.contains("still rising"), "{found:?}");
    let found = judged(&Toy::default(), "dram ld");
    assert!(!found[0].text.contains("still rising"), "{found:?}");
}

/// Bandwidth of caches was called that of the tier, with advice on its threads.
#[test]
fn bandwidth_of_less_memory_than_the_caches_hold_is_not_called_that_of_the_tier() {
    let toy = Toy::default();
    let topology = toy.topology();
    let asked = |set| bandwidth::Bandwidth {
        ops: vec![Op::Ld, Op::NtSt],
        working_set: Some(set),
        ..bandwidth::Bandwidth::default()
    };
    let found = |set| {
        let done = run(&toy, &asked(set).plan(&topology).unwrap(), 3, &());
        let points: Vec<Point> = done.into_iter().map(|done: Finished| done.point).collect();
        verdicts(&points, &topology)
    };
    let about = |all: &[Verdict], about: &str| -> Vec<String> {
        let own = all.iter().filter(|verdict| verdict.about == about);
        own.map(|verdict| verdict.text.clone()).collect()
    };
    let small = found(Bytes::kib(64));
    let [text] = &about(&small, "cxl0 ld")[..] else {
        panic!("{small:?}")
    };
    assert!(
        text.ends_with("from caches in part") && !text.contains("declines"),
        "{text}"
    );
    // Stores that pass the caches by are of the tier.
    assert!(!about(&small, "cxl0 nt_st")[0].contains("caches"));
    let doubts = about(&small, "caches");
    assert!(doubts[0].contains("less memory than twice what the caches hold"));
    assert!(about(&found(Bytes::gib(1)), "caches").is_empty());
}

#[test]
fn tiers_are_compared_with_dram_and_stores_with_each_other() {
    let found = judged(&Toy::default(), "cxl0 against dram");
    let text = &found[0].text;
    assert!(text.starts_with("2.0") || text.starts_with("1.9"), "{text}");
    assert!(text.contains("the load bandwidth"), "{text}");
    let found = judged(&Toy::default(), "cxl0 stores");
    assert!(
        found[0].text.contains("move 2.0x what ordinary ones do"),
        "{found:?}"
    );
    let found = judged(&Toy::default(), "cxl0 latency");
    assert!(
        found.iter().any(|v| v.text.contains("clwb takes 2.6x")),
        "{found:?}"
    );
}

#[test]
fn the_answer_comes_first_and_then_what_matters_most() {
    let toy = Toy {
        noise: 0.6,
        ..Toy::default()
    };
    let mut points = all_points(&toy);
    let theory = points
        .iter_mut()
        .find_map(|point| point.theory.as_mut())
        .unwrap();
    theory.beaten = true;
    let found = verdicts(&points, &toy.topology());
    assert_eq!(found[0].severity, Severity::Note);
    assert!(found[1..].is_sorted_by(|a, b| a.severity >= b.severity));
    assert_eq!(found[1].severity, Severity::Wrong);
    assert!(found.iter().any(|verdict| verdict.about == "noise"));
    let missing = found
        .iter()
        .find(|verdict| verdict.text.starts_with("no figure"))
        .unwrap();
    assert!(missing.about.starts_with("24 points"), "{missing:?}");
}

#[test]
fn a_quiet_machine_raises_no_doubt_but_for_what_it_lacks() {
    let found = verdicts(&all_points(&Toy::default()), &Toy::default().topology());
    let doubts: Vec<&Verdict> = found
        .iter()
        .filter(|v| v.severity > Severity::Note)
        .collect();
    assert_eq!(doubts.len(), 1, "{doubts:#?}");
    assert!(
        doubts[0].text.contains("movdir64b is missing"),
        "{doubts:?}"
    );
}

/// A point of an experiment without its figure.
fn blank(spec: &PointSpec) -> Point {
    Point {
        error: None,
        ..weir_lab::figure::failed(spec, "")
    }
}

fn latencies(p50: f64, p999: f64) -> LatencySummary {
    let mut all = LatencyHistogram::new();
    all.record_many(Nanos(p50), 99_800);
    all.record_many(Nanos(p999), 200);
    all.summary().unwrap()
}

#[test]
fn a_loaded_latency_doubles_where_the_queue_says() {
    let toy = Toy::default();
    let options = loaded::Loaded {
        tiers: vec![TierName::cxl(0)],
        mixes: vec![Mix::Reads, "2:1".parse().unwrap()],
        threads: vec![8.into()],
        ..loaded::Loaded::default()
    };
    let plan = options.plan(&toy.topology()).unwrap();
    let points: Vec<Point> = run(&toy, &plan, 3, &())
        .into_iter()
        .map(|d| d.point)
        .collect();
    let found = verdicts(&points, &toy.topology());
    let under_load: Vec<&Verdict> = found
        .iter()
        .filter(|v| v.about == "cxl0 under load")
        .collect();
    assert_eq!(under_load.len(), 2, "{found:#?}");
    for verdict in under_load {
        // The toy's queue doubles the wait at 9/10 of 20 GB/s, whatever the mix.
        let words: Vec<&str> = verdict.text.split(' ').collect();
        let at = words.iter().position(|word| *word == "at").unwrap();
        let gbps: f64 = words[at + 1].parse().unwrap();
        assert!((gbps / 18.0 - 1.0).abs() < 0.08, "{}", verdict.text);
    }
    for point in points.iter().filter(|p| p.beside.is_some()) {
        let beside = point.beside.as_ref().unwrap();
        let factor = if beside.read_share < 1.0 { 1.5 } else { 1.0 };
        let traffic = beside.traffic_gbps.unwrap().get();
        assert!((traffic / beside.gbps.unwrap().get() / factor - 1.0).abs() < 1e-9);
        assert!(point.theory.is_some(), "{point:?}");
    }
}

#[test]
fn a_tail_that_grows_with_load_is_reported_with_its_company() {
    let topology = Toy::default().topology();
    let plan = tail::Tail::default().plan(&topology).unwrap();
    let mut points: Vec<Point> = plan.iter().map(blank).collect();
    for point in &mut points {
        let company = point.threads + point.beside.as_ref().map_or(0, |b| b.threads) - 1;
        let reach = if point.tier == TierName::dram() {
            30.0
        } else {
            30.0 + 10.0 * f64::from(company)
        };
        point.ns = Some(latencies(200.0, 200.0 + reach));
    }
    let found = verdicts(&points, &topology);
    let of = |about: &str| &found.iter().find(|v| v.about == about).unwrap().text;
    assert!(of("dram tail").contains("does not grow"), "{found:?}");
    let cxl = of("cxl0 tail");
    assert!(cxl.contains("(1.0x the 230 ns of dram)"), "{cxl}");
    assert!(cxl.contains("grows with load"), "{cxl}");
    assert!(cxl.contains("32 readers") || cxl.contains("31 "), "{cxl}");
    // The gap of DRAM is 30 ns whatever runs with it; CXL's grows by 10 ns for each. A distribution keeps
    // values to half a percent.
    let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.05;
    let scores = tail::scores(&points);
    let [dram, cxl] = scores.as_slice() else {
        panic!("{scores:?}");
    };
    assert_eq!(dram.growth, Some(1.0));
    assert!(near(dram.score, 30.0 / 200.0), "{dram:?}");
    let most = points
        .iter()
        .filter_map(|p| p.beside.as_ref().map(|b| b.threads))
        .max()
        .unwrap();
    let worst = 30.0 + 10.0 * f64::from(most);
    assert!(near(cxl.readers_ns.unwrap().get(), worst), "{cxl:?}");
    assert!(near(cxl.score, worst / 200.0), "{cxl:?}");
    assert!(near(cxl.growth.unwrap(), worst / 30.0), "{cxl:?}");
    // Nothing alone, no score: growth and medians are of that.
    let company: Vec<Point> = points.into_iter().filter(|p| p.beside.is_some()).collect();
    assert!(tail::scores(&company).is_empty());
}

#[test]
fn a_block_past_which_larger_ones_are_worse_is_named() {
    let topology = Toy::default().topology();
    let options = random::Random {
        tiers: vec![TierName::cxl(0)],
        ops: vec![Op::NtSt],
        threads: vec![1.into(), 2.into()],
        ..random::Random::default()
    };
    let plan = options.plan(&topology).unwrap();
    let mut points: Vec<Point> = plan.iter().map(blank).collect();
    for point in &mut points {
        let kib = point.block_bytes.unwrap().get() as f64 / 1024.0;
        let falls = point.threads == 2 && kib > 32.0;
        point.gbps = Some(GbPerSec(if falls { 5.0 } else { 4.0 + kib / 16.0 }));
        point.ci95 = Some(0.1);
    }
    let found = verdicts(&points, &topology);
    let verdict = found
        .iter()
        .find(|v| v.about == "cxl0 nt_st at random")
        .unwrap();
    assert!(
        verdict
            .text
            .starts_with("the best block is 32 KiB with 2 threads (6.0 GB/s"),
        "{verdict:?}"
    );
    assert!(!verdict.text.contains("1 thread "), "{verdict:?}");
    // Within the noise nothing is said of which is worse.
    for point in &mut points {
        point.ci95 = Some(2.0);
    }
    let found = verdicts(&points, &topology);
    let verdict = found
        .iter()
        .find(|v| v.about == "cxl0 nt_st at random")
        .unwrap();
    assert_eq!(
        verdict.text,
        "no block is better than the largest by more than 5 % and the noise"
    );
}

#[test]
fn figures_whose_intervals_overlap_give_no_advice_and_no_multiple() {
    let topology = Toy::default().topology();
    let plan = bandwidth::Bandwidth::default().plan(&topology).unwrap();
    let found = |half: f64| {
        let mut points: Vec<Point> = plan.iter().map(blank).collect();
        for point in &mut points {
            point.gbps = Some(GbPerSec(if point.op == Op::NtSt { 14.0 } else { 10.0 }));
            point.ci95 = Some(half);
        }
        let all = verdicts(&points, &topology);
        let stores = all.into_iter().find(|v| v.about == "dram stores");
        stores.unwrap().text
    };
    assert!(
        found(1.0).contains("move data here with nt_st"),
        "{}",
        found(1.0)
    );
    let noise = found(3.0);
    assert!(
        noise.contains("not known") && noise.contains("14.0 ±3.00"),
        "{noise}"
    );
    assert!(!noise.contains("1.4x"), "{noise}");
}

#[test]
fn copies_are_advised_by_pair() {
    let topology = Toy::default().topology();
    let plan = movement::Movement::default().plan(&topology).unwrap();
    let mut points: Vec<Point> = plan.iter().map(blank).collect();
    for point in &mut points {
        let offloaded = point.batch.is_some_and(|batch| batch > 1);
        let near = point.source == Some(TierName::dram());
        point.gbps = Some(GbPerSec(if offloaded && near { 30.0 } else { 10.0 }));
        point.ci95 = Some(0.1);
    }
    let found = verdicts(&points, &topology);
    let of = |about: &str| &found.iter().find(|v| v.about == about).unwrap().text;
    assert!(of("dram to cxl0").contains("moves 3.0x that"), "{found:#?}");
    assert!(of("cxl0 to dram").contains("gives no more"), "{found:#?}");
}

#[test]
fn figures_that_do_not_agree_are_named() {
    let topology = Toy::default().topology();
    let plan = share::Share::default().plan(&topology).unwrap();
    let mut points: Vec<Point> = plan.iter().map(blank).collect();
    for point in &mut points {
        point.ns = Some(latencies(60.0, 70.0));
        point.steadiness = Some(Steadiness::Steady);
    }
    assert!(
        verdicts(&points, &topology)
            .iter()
            .all(|v| v.severity == Severity::Note)
    );
    for point in &mut points[..5] {
        point.steadiness = Some(Steadiness::Bimodal);
    }
    let found = verdicts(&points, &topology);
    assert_eq!(found[1].about, "bimodal");
    assert!(
        found[1].text.starts_with("5 of 66 figures (dram cas"),
        "{found:?}"
    );
    assert!(
        found[1].text.contains("cores 0 and 2") && found[1].text.contains("2 more"),
        "{found:?}"
    );
}

#[test]
fn a_copy_is_bounded_by_the_slower_of_its_ends() {
    let topology = Toy::default().topology();
    let all = run(
        &Toy::default(),
        &movement::Movement::default().plan(&topology).unwrap(),
        1,
        &(),
    );
    let limit = |source: TierName, dest: TierName, kernel: &str| {
        let point = all.iter().map(|done| &done.point).find(|p| {
            p.source == Some(source.clone())
                && p.tier == dest
                && p.kernel.as_deref() == Some(kernel)
        });
        point.unwrap().theory.as_ref().unwrap().limit
    };
    let (dram, cxl) = (TierName::dram(), TierName::cxl(0));
    // Each tier carries 1.2 times its formula in all: 24 GB/s for CXL.
    assert!((limit(dram.clone(), cxl.clone(), "nt_copy") - 24.0).abs() < 1e-9);
    assert!((limit(cxl.clone(), dram.clone(), "nt_copy") - 24.0).abs() < 1e-9);
    assert!((limit(dram, cxl.clone(), "memcpy") - 12.0).abs() < 1e-9);
    assert!((limit(cxl.clone(), cxl, "memcpy") - 8.0).abs() < 1e-9);
}
