//! Laws of a sweep: what a point's result may depend on, and what survives.

mod common;

use common::{StopAfter, Toy};
use proptest::prelude::*;
use weir_lab::figure::figure;
use weir_lab::{Load, PointSpec, PointStudy as _, bandwidth, latency, run, run_rounds, steadiness};
use weir_model::access::{Op, Pattern};
use weir_model::capability::Feature;
use weir_model::counters::{Counter, CounterSet};
use weir_model::document::{Record, Steadiness};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

fn bandwidth_plan(toy: &Toy) -> Vec<PointSpec> {
    bandwidth::Bandwidth::default()
        .plan(&toy.topology())
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn one_seed_gives_one_result_on_any_number_of_threads(seed: u64, parallelism in 2_usize..9) {
        let alone = Toy::default();
        let together = Toy { parallelism, ..Toy::default() };
        let plan = bandwidth_plan(&alone);
        prop_assert_eq!(run(&alone, &plan, seed, &()), run(&together, &plan, seed, &()));
    }

    #[test]
    fn a_point_alone_equals_the_point_in_a_sweep(seed: u64, at: prop::sample::Index) {
        let toy = Toy { parallelism: 2, ..Toy::default() };
        let mut plan = bandwidth_plan(&toy);
        plan.extend(latency::Latency::default().plan(&toy.topology()).unwrap());
        let sweep = run(&toy, &plan, seed, &());
        let chosen = at.get(&sweep);
        let alone = run(&toy, std::slice::from_ref(&chosen.spec), seed, &());
        prop_assert_eq!(&alone[0].point, &chosen.point);
        prop_assert_eq!(&alone[0].record, &chosen.record);
    }

    #[test]
    fn another_seed_draws_other_chance(seed in 0..u64::MAX) {
        let toy = Toy::default();
        let plan = &bandwidth_plan(&toy)[..1];
        let (one, other) = (run(&toy, plan, seed, &()), run(&toy, plan, seed + 1, &()));
        prop_assert_ne!(&one[0].record.samples, &other[0].record.samples);
    }

    #[test]
    fn what_finished_before_a_stop_is_kept_in_plan_order(points in 0_usize..20, parallelism in 1_usize..4) {
        let toy = Toy { parallelism, ..Toy::default() };
        let plan = bandwidth_plan(&toy);
        let kept = run(&toy, &plan, 1, &StopAfter::new(points));
        // Points under way when the stop came are finished or given up.
        prop_assert!(kept.len() >= points && kept.len() < points + parallelism);
        prop_assert!(kept.is_sorted_by_key(|done| done.index));
        let whole = run(&toy, &plan, 1, &());
        for done in &kept {
            prop_assert_eq!(done, &whole[done.index]);
        }
    }

    #[test]
    fn the_figure_is_the_formula_within_its_noise(threads in 1_u32..33, seed: u64) {
        let toy = Toy::default();
        let options = bandwidth::Bandwidth {
            tiers: vec![TierName::dram()],
            ops: vec![Op::Ld],
            threads: vec![threads.into()],
            ..bandwidth::Bandwidth::default()
        };
        let plan = options.plan(&toy.topology()).unwrap();
        let gbps = run(&toy, &plan, seed, &())[0].point.gbps.unwrap().get();
        let formula = (64.0 * 12.0 / 110.0 * f64::from(threads)).min(200.0);
        prop_assert!((gbps / formula - 1.0).abs() <= toy.noise, "{gbps} {formula}");
    }
}

#[test]
fn a_point_that_the_machine_refuses_carries_the_reason_and_the_sweep_goes_on() {
    let toy = Toy::default();
    let plan = bandwidth_plan(&toy);
    let all = run(&toy, &plan, 1, &());
    assert_eq!(all.len(), plan.len());
    for done in &all {
        let refused = done.spec.load.op == Op::Movdir64b;
        assert_eq!(done.point.error.is_some(), refused, "{}", done.spec);
        assert_eq!(done.point.gbps.is_none(), refused, "{}", done.spec);
        assert_eq!(
            done.missing,
            refused.then_some(Feature::Movdir64b),
            "{}",
            done.spec
        );
    }
    let error = all
        .iter()
        .find_map(|done| done.point.error.clone())
        .unwrap();
    assert_eq!(error, "movdir64b is missing: the toy has no 64-byte stores");
}

#[test]
fn unknown_tiers_and_impossible_thread_counts_in_a_plan_are_errors_of_the_point() {
    let toy = Toy::default();
    let point = |tier: TierName, threads, size| {
        let load = Load::new(&tier, Op::Ld, Pattern::Sequential, threads, size);
        PointSpec::alone("bandwidth", load)
    };
    let elsewhere = point(TierName::cxl(7), 1, Bytes::mib(64));
    let crowd = point(TierName::dram(), 33, Bytes::mib(64));
    let nobody = point(TierName::dram(), 0, Bytes::mib(64));
    let too_big = point(TierName::dram(), 1, Bytes::gib(999));
    let all = run(&toy, &[elsewhere, crowd, nobody, too_big], 1, &());
    assert!(all.iter().all(|done| done.missing.is_none()));
    let errors: Vec<&str> = all
        .iter()
        .map(|done| done.point.error.as_deref().unwrap())
        .collect();
    assert!(
        errors[0].contains("no tier `cxl7` here; there are dram, cxl0"),
        "{errors:?}"
    );
    assert!(
        errors[1].contains("33 threads") && errors[1].contains("32 cores"),
        "{errors:?}"
    );
    assert!(errors[2].contains("0 threads"), "{errors:?}");
    assert!(errors[3].contains("128 GiB free"), "{errors:?}");
}

#[test]
fn windows_are_taken_until_the_interval_is_as_tight_as_asked() {
    let plan = |toy: &Toy| bandwidth_plan(toy)[..1].to_vec();
    let quiet = Toy {
        noise: 0.0001,
        ..Toy::default()
    };
    let loud = Toy {
        noise: 0.3,
        ..Toy::default()
    };
    let quiet = &run(&quiet, &plan(&quiet), 1, &())[0].point;
    let loud = &run(&loud, &plan(&loud), 1, &())[0].point;
    assert_eq!(quiet.samples, 3);
    assert_eq!(loud.samples, 40);
    assert!(quiet.conditions == ["formula"], "{quiet:?}");
    assert!(loud.conditions[1].contains("was wanted"), "{loud:?}");
    assert!(loud.ci95.unwrap() > quiet.ci95.unwrap());
}

#[test]
fn a_kept_record_gives_its_point_again() {
    let toy = Toy::default();
    let mut plan = bandwidth_plan(&toy);
    plan.extend(latency::Latency::default().plan(&toy.topology()).unwrap());
    for done in run(&toy, &plan, 1, &())
        .iter()
        .filter(|done| done.point.error.is_none())
    {
        let mut again = figure(&done.spec, &done.record, &toy.topology());
        again.conditions.clone_from(&done.point.conditions);
        assert_eq!(again, done.point, "{}", done.spec);
    }
}

#[test]
fn a_point_whose_own_tenant_lost_lines_has_an_error_and_no_figure() {
    let toy = Toy::default();
    let plan = bandwidth_plan(&toy);
    let done = &run(&toy, &plan[..1], 1, &())[0];
    let counted = |read: u64, written: u64| {
        let mut set = CounterSet::default();
        set.set(Counter::MediumPoison, read);
        set.set(Counter::CxlLostWrites, written);
        set
    };
    let of = |tenants: Vec<CounterSet>| {
        let record = Record {
            tenants,
            ..done.record.clone()
        };
        figure(&done.spec, &record, &toy.topology())
    };
    let lost = of(vec![counted(7, 3), counted(0, 0)]);
    let error = lost.error.unwrap();
    assert!(
        error.contains("7 lines came with poison, 3 written lines are lost"),
        "{error}"
    );
    assert_eq!(lost.gbps, None);
    // What a neighbour lost is not its own.
    let whole = of(vec![counted(0, 0), counted(7, 3)]);
    assert!(whole.error.is_none() && whole.gbps.is_some(), "{whole:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn rounds_repeat_every_point_and_average_the_repetitions(seed: u64, rounds in 2_u32..6) {
        let toy = Toy::default();
        let plan = &bandwidth_plan(&toy)[..6];
        let seen = StopAfter::new(usize::MAX);
        let sweep = run_rounds(&toy, plan, seed, rounds, &seen);
        prop_assert_eq!(seen.seen.load(std::sync::atomic::Ordering::SeqCst), 6 * rounds as usize);
        prop_assert_eq!(&sweep.warnings, &Vec::<String>::new());
        for done in &sweep.finished {
            prop_assert_eq!(done.point.repetitions, rounds);
            prop_assert_eq!(done.point.samples, rounds);
            prop_assert_eq!(done.record.repetitions.len() as u32, rounds);
            let windows: u32 = done.record.repetitions.iter().sum();
            prop_assert_eq!(windows as usize, done.record.samples.len());
            let means = steadiness::means(&done.record);
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            prop_assert!((done.point.gbps.unwrap().get() / mean - 1.0).abs() < 1e-12);
            // Each round draws chance of its own.
            prop_assert!(means.windows(2).any(|pair| pair[0] != pair[1]));
            prop_assert!(done.point.conditions.iter().all(|c| !c.contains("repetitions")));
            let mut again = figure(&done.spec, &done.record, &toy.topology());
            again.conditions.clone_from(&done.point.conditions);
            prop_assert_eq!(&again, &done.point);
        }
    }

    #[test]
    fn a_tier_that_goes_away_takes_only_its_own_figures_along(seed: u64, leaves in 0_usize..40) {
        let toy = Toy { cxl_leaves_during: leaves, ..Toy::default() };
        let plan = bandwidth_plan(&toy);
        let of = |tier| plan.iter().filter(move |spec| spec.load.tier == tier).take(2).cloned();
        let plan: Vec<_> = of(TierName::dram()).chain(of(TierName::cxl(0))).collect();
        let rounds = 4;
        let sweep = run_rounds(&toy, &plan, seed, rounds, &());
        prop_assert_eq!(sweep.finished.len(), plan.len());
        for done in &sweep.finished {
            if done.spec.load.tier == TierName::dram() {
                prop_assert_eq!(&done.lost, &None);
                prop_assert_eq!(done.point.repetitions, rounds);
                continue;
            }
            // What was measured before stays; no figure of moved pages is among it.
            let expected = &done.point.error.clone().or(done.lost.clone());
            if let Some(why) = expected {
                prop_assert!(why.contains("is gone") || why.contains("lie elsewhere"), "{why}");
                prop_assert!(done.point.repetitions < rounds);
            } else {
                prop_assert_eq!(done.point.repetitions, rounds);
            }
        }
    }

    #[test]
    fn one_round_is_a_plain_sweep(seed: u64) {
        let toy = Toy::default();
        let plan = &bandwidth_plan(&toy)[..4];
        prop_assert_eq!(run_rounds(&toy, plan, seed, 1, &()).finished, run(&toy, plan, seed, &()));
    }

    #[test]
    fn a_stop_between_rounds_keeps_what_each_point_has(stop in 1_usize..30) {
        let toy = Toy::default();
        let plan = &bandwidth_plan(&toy)[..6];
        let kept = run_rounds(&toy, plan, 1, 5, &StopAfter::new(stop)).finished;
        prop_assert_eq!(kept.len(), stop.min(6));
        let repetitions: u32 = kept.iter().map(|done| done.point.repetitions).sum();
        prop_assert_eq!(repetitions as usize, stop.min(30));
        for done in &kept {
            let says = format!("{} of 5 repetitions", done.point.repetitions);
            let said = done.point.conditions.iter().filter(|c| c.contains("repetitions")).count();
            prop_assert_eq!(said, usize::from(done.point.repetitions < 5));
            prop_assert_eq!(done.point.conditions.contains(&says), done.point.repetitions < 5);
        }
    }
}

#[test]
fn a_machine_that_slows_down_between_rounds_is_reported() {
    let toy = Toy {
        slower_each_time: 0.002,
        ..Toy::default()
    };
    let plan = &bandwidth_plan(&toy)[..6];
    let sweep = run_rounds(&toy, plan, 1, 5, &());
    assert_eq!(sweep.warnings.len(), 2, "{:?}", sweep.warnings);
    assert!(
        sweep.warnings[0].contains("the machine changed"),
        "{:?}",
        sweep.warnings
    );
    let drifting = |done: &weir_lab::Finished| done.point.steadiness == Some(Steadiness::Drifting);
    assert!(sweep.finished.iter().all(drifting));
    // The same figures may be of a model, which does not change.
    let points: Vec<_> = (sweep.finished.iter())
        .map(|done| done.point.clone())
        .collect();
    let said = weir_lab::studies::verdicts(&points, &toy.topology());
    let drifting = said.iter().find(|verdict| verdict.about == "drifting");
    let text = &drifting.unwrap().text;
    assert!(text.contains("on a model it is chance"), "{text}");
}

#[test]
fn a_refusal_is_refused_in_every_round_and_once_in_the_result() {
    let toy = Toy::default();
    let plan: Vec<PointSpec> = bandwidth_plan(&toy)
        .into_iter()
        .filter(|spec| spec.load.op == Op::Movdir64b)
        .take(1)
        .collect();
    let done = &run_rounds(&toy, &plan, 1, 3, &()).finished[0];
    assert_eq!(done.missing, Some(Feature::Movdir64b));
    assert_eq!(done.point.repetitions, 1);
    assert!(done.point.error.is_some());
}
