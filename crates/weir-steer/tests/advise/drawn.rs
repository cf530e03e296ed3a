//! Advice on workloads drawn at random and on presets, against what a simulation of them gives.

use weir_model::units::Bytes;
use weir_pages::policy::Thresholds;
use weir_pages::{PagedWorkload, population, presets};
use weir_steer::tier::Replay;
use weir_steer::tier::advise::{Advise, OfRegion, PolicyGain, Span};
use weir_steer::tier::profile::SamplerName;

use super::{SECONDS, advise, curves, gain, profile, study};

/// What an operator reads from counters: of each region, and the share of time that waits for memory over all phases.
fn give_counters(study: &mut Advise, workload: &PagedWorkload) {
    let one = |value| Span {
        low: value,
        high: value,
    };
    let of = |n: usize, value: f64| {
        let name = &workload.regions[n].name;
        let before = workload.regions[..n]
            .iter()
            .filter(|r| r.name == *name)
            .count();
        OfRegion {
            region: Some(match before {
                0 => name.clone(),
                before => format!("{name} {}", before + 1),
            }),
            span: one(value),
        }
    };
    let wait = |share: &dyn Fn(usize) -> f64| -> f64 {
        let regions = workload.regions.iter().enumerate();
        regions.map(|(n, region)| share(n) / region.mlp).sum()
    };
    // By the definition of a workload its share is that of its accesses without phases.
    let compute = wait(&|n| workload.regions[n].accesses) * (1.0 / workload.stalled - 1.0);
    let times = 0..SECONDS as usize;
    let waits = times.map(|t| wait(&|n| workload.share_at(n, t as f64)));
    let waits = waits.sum::<f64>() / SECONDS;
    study.stalled = one(waits / (waits + compute));
    let regions = || workload.regions.iter().enumerate();
    study.mlp = regions().map(|(n, r)| of(n, r.mlp)).collect();
    study.writes = regions().map(|(n, r)| of(n, r.writes)).collect();
    // Small regions are together in a profile.
    let profile = study.profile.as_ref().unwrap();
    let is_there = |of: &OfRegion| {
        profile
            .regions
            .iter()
            .any(|r| Some(&r.region) == of.region.as_ref())
    };
    study.mlp.retain(is_there);
    study.writes.retain(is_there);
}

/// Accesses of the workload itself in a second.
fn speed(workload: &PagedWorkload, fast: Option<Bytes>, policy: &str) -> f64 {
    let replay = Replay {
        workload: workload.clone(),
        policy: policy.into(),
        fast,
        seconds: SECONDS,
        curves: curves(),
        seed: 4242,
        version: 0,
    };
    let run = replay.run(Thresholds::default(), || true);
    run.unwrap().maccesses_per_s
}

/// Gains over first touch of the workload itself.
fn truth(workload: &PagedWorkload, fast: Bytes, policy: &str) -> f64 {
    let run = |policy| speed(workload, Some(fast), policy);
    (run(policy) / run("first-touch") - 1.0) * 100.0
}

/// A prediction of a policy's gain, and what it is.
struct Predicted {
    name: String,
    counters: bool,
    policy: &'static str,
    truth: f64,
    gain: PolicyGain,
}

impl Predicted {
    fn error(&self) -> f64 {
        (self.gain.gain_pct - self.truth).abs()
    }

    /// Gains of less than a point have no sign.
    fn sign_is_right(&self) -> bool {
        let sign = |pct: f64| if pct.abs() < 1.0 { 0.0 } else { pct.signum() };
        sign(self.gain.gain_pct) == sign(self.truth) || self.error() < 1.0
    }

    fn is_inside(&self) -> bool {
        (self.gain.low_pct - 1.0..=self.gain.high_pct + 1.0).contains(&self.truth)
    }
}

/// The advice on workloads that are drawn, with true counters and this many variations, and without counters and this many.
fn measure(
    seed: u64,
    numbers: impl Iterator<Item = u64>,
    size: Bytes,
    variations: [u32; 2],
) -> Vec<Predicted> {
    let mut all = Vec::new();
    for n in numbers {
        let drawn = population::draw(seed, n, size);
        let fast = drawn.fast_memory();
        let profile = profile(&drawn.workload, SamplerName::Events, SECONDS);
        let truths =
            ["tpp", "payback"].map(|policy| (policy, truth(&drawn.workload, fast, policy)));
        for counters in [true, false] {
            let mut study = study(profile.clone(), fast);
            study.variations = variations[usize::from(!counters)];
            if study.variations == 0 {
                continue;
            }
            if drawn.fast > 1.0 {
                study.variations = 1;
            }
            if counters {
                give_counters(&mut study, &drawn.workload);
            }
            let advised = advise(&study, false);
            let of_best = advised.best().unwrap().policy.as_str();
            let of_best = truths
                .iter()
                .find(|(policy, _)| *policy == of_best)
                .unwrap()
                .1;
            let most = truths.iter().map(|(_, truth)| *truth).fold(0.0, f64::max);
            let said = match advised.verdict() {
                use_it if use_it.starts_with("use ") => {
                    match of_best >= 1.0 && most - of_best < 3.0 {
                        true => "use, right",
                        false => "use, wrong",
                    }
                }
                not if not.starts_with("do not ") => match most < 3.0 {
                    true => "do not, right",
                    false => "do not, wrong",
                },
                _ => "does not tell",
            };
            println!(
                "{} counters {counters} advice: {said}: {}",
                drawn.workload.name,
                advised.verdict()
            );
            for (policy, truth) in truths {
                let gain = gain(&advised, policy).clone();
                let name = drawn.workload.name.clone();
                let of = Predicted {
                    name,
                    counters,
                    policy,
                    truth,
                    gain,
                };
                println!(
                    "{} counters {} {}: truth {:+.1}, predicted {:+.1} ({:+.1} to {:+.1}){}",
                    of.name,
                    of.counters,
                    of.policy,
                    of.truth,
                    of.gain.gain_pct,
                    of.gain.low_pct,
                    of.gain.high_pct,
                    if of.error() > 3.0 { " MISS" } else { "" }
                );
                all.push(of);
            }
        }
    }
    // Where no policy gains or loses anything, as with room for everything, nothing is to be predicted.
    let moves = |p: &&Predicted| all.iter().any(|q| q.name == p.name && q.truth.abs() > 0.05);
    for counters in [true, false] {
        let of = || all.iter().filter(moves).filter(|p| p.counters == counters);
        let share = |is: &dyn Fn(&&Predicted) -> bool| {
            100.0 * of().filter(is).count() as f64 / of().count() as f64
        };
        println!(
            "counters {counters}, {} gains: within 3 points {:.0} %, sign right {:.0} %, inside {:.0} %, mean error {:.1}",
            of().count(),
            share(&|p| p.error() <= 3.0),
            share(&|p| p.sign_is_right()),
            share(&|p| p.is_inside()),
            of().map(Predicted::error).sum::<f64>() / of().count() as f64,
        );
    }
    all
}

/// `WEIR_DRAWN=0..24 cargo test -p weir-steer --test all -- --ignored --nocapture advise::` is of the documentation.
#[test]
#[ignore = "simulates 24 workloads for minutes; for the documentation, by hand"]
fn many_drawn_workloads() {
    let given = |name: &str, usual: &str| std::env::var(name).unwrap_or(usual.into());
    let numbers = |text: String| -> Vec<u64> {
        let parts = text.split(['.', ',']).filter(|part| !part.is_empty());
        parts.map(|part| part.parse().unwrap()).collect()
    };
    let seed = numbers(given("WEIR_SEED", "1"))[0];
    let drawn = numbers(given("WEIR_DRAWN", "0..24"));
    let variations = numbers(given("WEIR_VARIATIONS", "3,9"));
    measure(
        seed,
        drawn[0]..drawn[1],
        Bytes::mib(512),
        [variations[0] as u32, variations[1] as u32],
    );
}

#[test]
fn a_drawn_workload_is_predicted_from_its_profile() {
    let all = measure(1, 4..5, Bytes::mib(256), [1, 0]);
    for of in all.iter().filter(|of| of.counters) {
        assert!(
            of.error() <= 4.0,
            "{}, {}: {:+.1} for {:+.1}",
            of.name,
            of.policy,
            of.gain.gain_pct,
            of.truth
        );
    }
}

/// `cargo test --release -p weir-steer --test all -- --ignored --nocapture advise::presets` is of the documentation.
#[test]
#[ignore = "simulates presets for minutes; for the documentation, by hand"]
fn presets_and_sizes() {
    let named =
        std::env::var("WEIR_PRESETS").unwrap_or("cache1,cache2,data-warehouse,stream,web1".into());
    for name in named.split(',') {
        let workload = presets::by_name(name, Bytes::mib(256)).unwrap();
        let fast = Bytes(workload.peak().get() / 2);
        let profile = profile(&workload, SamplerName::Events, SECONDS);
        let mut study = study(profile, fast);
        study.variations = 2;
        give_counters(&mut study, &workload);
        let advised = advise(&study, true);
        println!("{name}: {}", advised.verdict());
        for policy in ["tpp", "payback"] {
            let gain = gain(&advised, policy);
            let truth = truth(&workload, fast, policy);
            println!(
                "{name} {policy}: truth {truth:+.1}, predicted {:+.1} ({:+.1} to {:+.1})",
                gain.gain_pct, gain.low_pct, gain.high_pct
            );
        }
        let all = speed(&workload, None, "first-touch");
        for row in &advised.sizes {
            let loss = 100.0 * (1.0 - speed(&workload, Some(row.fast), &row.policy) / all);
            println!(
                "{name} {} {:.0} %: loss {loss:.1}, predicted {:.1}",
                row.policy, row.fast_pct, row.loss_pct
            );
        }
    }
}
