//! Advice from profiles: laws, and what it says of workloads drawn at random against what a simulation of them gives.

use weir_lab::LabError;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_pages::workload::{Band, Growth};
use weir_pages::{PageKind, PagedWorkload, Region, TierCurve, population};
use weir_steer::tier::advise::{Advise, Advised, OfRegion, PolicyGain, Runs, Span};
use weir_steer::tier::profile::{Looked, Profile, SamplerName, Times};
use weir_steer::tier::{Replay, Replayed};

const SECONDS: f64 = 150.0;

fn curves() -> [TierCurve; 2] {
    let curve = |ns, gbps| TierCurve::of_queue(Nanos(ns), GbPerSec(gbps));
    [curve(110.0, 200.0), curve(270.0, 24.0)]
}

/// A profile of a workload under first touch, with room in the fast tier for everything.
fn profile(workload: &PagedWorkload, sampler: SamplerName, seconds: f64) -> Profile {
    let looked = Looked {
        workload: workload.clone(),
        sampler,
        every: if sampler == SamplerName::Events {
            200.0
        } else {
            1.0
        },
        pages: 1 << 16,
        times: Times {
            intervals: seconds as usize,
            interval_s: 1.0,
            hot_s: 15.0,
            warm_s: 30.0,
        },
        curve: curves()[0].clone(),
        seed: 77,
        version: 0,
    };
    looked.run(|| true).unwrap()
}

fn study(profile: Profile, fast: Bytes) -> Advise {
    Advise {
        source: String::new(),
        ratio: "1:1".parse().unwrap(),
        fast_memory: Some(fast),
        loss: 5.0,
        policies: ["first-touch", "tpp", "payback"].map(String::from).to_vec(),
        mlp: Vec::new(),
        stalled: "0.1..0.9".parse().unwrap(),
        writes: Vec::new(),
        threads: "4..32".parse().unwrap(),
        variations: 5,
        seconds: SECONDS as u32,
        fast: "dram".parse().unwrap(),
        slow: "cxl0".parse().unwrap(),
        profile: Some(Box::new(profile)),
    }
}

fn replay(asks: &[Replay]) -> Result<Vec<Replayed>, LabError> {
    asks.iter().map(|ask| ask.run(|| true)).collect()
}

fn look(asks: &[Looked]) -> Result<Vec<Profile>, LabError> {
    asks.iter().map(|ask| ask.run(|| true)).collect()
}

const RUNS: Runs<'static> = Runs {
    replay: &replay,
    look: &look,
};

fn advise(study: &Advise, with_sizes: bool) -> Advised {
    study.advise(&curves(), 1, with_sizes, RUNS).unwrap()
}

fn gain<'a>(advised: &'a Advised, policy: &str) -> &'a PolicyGain {
    advised
        .policies
        .iter()
        .find(|gain| gain.policy == policy)
        .unwrap()
}

/// What an operator reads from counters: of each region, and the share of time that waits for memory over all phases.
fn told(study: &mut Advise, workload: &PagedWorkload) {
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
}

/// Gains over first touch of the workload itself.
fn truth(workload: &PagedWorkload, fast: Bytes, policy: &str) -> f64 {
    let run = |policy: &str| {
        let replay = Replay {
            workload: workload.clone(),
            policy: policy.into(),
            fast: Some(fast),
            seconds: SECONDS,
            curves: curves(),
            seed: 4242,
            version: 0,
        };
        replay.run(|| true).unwrap().maccesses_per_s
    };
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

/// The advice on workloads that are drawn, with true counters and so many variations, and without counters and so many.
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
                told(&mut study, &drawn.workload);
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

/// `WEIR_DRAWN=0..24 cargo test -p weir-steer --test advise -- --ignored --nocapture` is of the documentation.
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

fn workload(name: &str, region: Region) -> PagedWorkload {
    PagedWorkload {
        name: name.into(),
        about: String::new(),
        threads: 8,
        stalled: 0.5,
        regions: vec![region],
        phases: Vec::new(),
    }
}

/// 256 MiB, of which a share of the pages has a share of the accesses.
fn heap(pages: f64, accesses: f64) -> PagedWorkload {
    let band = |pages, accesses| Band { pages, accesses };
    let region = Region {
        name: "heap".into(),
        kind: PageKind::Anon,
        bytes: Bytes::mib(256),
        page: Bytes::kib(4),
        accesses: 1.0,
        writes: 0.2,
        mlp: 2.0,
        bands: match pages < 1.0 {
            true => vec![band(1.0 - pages, 1.0 - accesses), band(pages, accesses)],
            false => vec![band(1.0, 1.0)],
        },
        growth: Growth::NONE,
        lifetime_s: None,
        drift_per_hour: 0.0,
    };
    workload("heap", region)
}

fn of_heap(pages: f64, accesses: f64, fast: Bytes) -> Advise {
    let profile = profile(&heap(pages, accesses), SamplerName::Events, 40.0);
    let mut study = study(profile, fast);
    study.variations = 3;
    study.seconds = 40;
    study
}

#[test]
fn more_fast_memory_never_raises_the_loss() {
    let advised = advise(&of_heap(0.2, 0.99999, Bytes::mib(128)), true);
    for policy in ["first-touch", &advised.best().unwrap().policy] {
        let of = advised.sizes.iter().filter(|row| row.policy == policy);
        let losses: Vec<f64> = of.map(|row| row.loss_pct).collect();
        assert!(
            losses.len() >= 7 && losses[0] > losses[6] + 5.0,
            "{losses:?}"
        );
        assert!(
            losses.windows(2).all(|two| two[1] <= two[0] + 1.0),
            "{policy}: {losses:?}"
        );
    }
    let needed = advised.needed.unwrap();
    assert!(needed < Bytes::mib(240), "{advised:?}");
}

#[test]
fn what_is_touched_evenly_gains_nothing_by_promotion() {
    let advised = advise(&of_heap(1.0, 1.0, Bytes::mib(128)), false);
    assert!(gain(&advised, "tpp").high_pct < 1.0, "{advised:?}");
}

#[test]
fn what_fits_into_the_fast_tier_is_not_tiered() {
    let advised = advise(&of_heap(0.2, 0.99999, Bytes::mib(300)), false);
    assert!(
        advised
            .verdict()
            .starts_with("do not tier this: first touch is within 0.0 %"),
        "{}",
        advised.verdict()
    );
}

#[test]
fn hot_pages_that_came_last_are_promoted_and_equal_seeds_agree() {
    let study = of_heap(0.2, 0.99999, Bytes::mib(128));
    let advised = advise(&study, false);
    assert!(
        advised.verdict().starts_with("use "),
        "{}",
        advised.verdict()
    );
    assert!(advised.best().unwrap().low_pct > 5.0, "{advised:?}");
    assert_eq!(advised, advise(&study, false));
    let other = study.advise(&curves(), 2, false, RUNS).unwrap();
    assert_ne!(advised.policies, other.policies);
}

#[test]
fn a_profile_without_rates_widens_the_range() {
    let of = |sampler| {
        let profile = profile(&heap(0.3, 0.8), sampler, 40.0);
        let mut study = study(profile, Bytes::mib(128));
        (study.variations, study.seconds) = (4, 40);
        let advised = advise(&study, false);
        let gain = gain(&advised, "tpp");
        (gain.high_pct - gain.low_pct, advised.unknown_pct)
    };
    let (bits, events) = (of(SamplerName::Bits), of(SamplerName::Events));
    assert!(bits.1 > 90.0 && events.1 == 0.0, "{bits:?} {events:?}");
}

#[test]
fn a_few_drawn_workloads_are_predicted_from_their_profiles() {
    let all = measure(1, 4..6, Bytes::mib(256), [2, 0]);
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

#[test]
fn what_is_no_profile_is_refused() {
    let good = of_heap(0.2, 0.99999, Bytes::mib(128));
    let said = |change: &dyn Fn(&mut Advise)| {
        let mut study = good.clone();
        change(&mut study);
        study
            .advise(&curves(), 1, false, RUNS)
            .unwrap_err()
            .to_string()
    };
    let profile =
        |study: &mut Advise, change: &dyn Fn(&mut Profile)| change(study.profile.as_mut().unwrap());
    for (said, wanted) in [
        (said(&|s| s.profile = None), "name a profile"),
        (said(&|s| profile(s, &|p| p.regions.clear())), "no memory"),
        (
            said(&|s| profile(s, &|p| p.seconds = 1.5)),
            "shorter than two",
        ),
        (said(&|s| s.fast_memory = Some(Bytes(0))), "16 MiB"),
        (said(&|s| s.stalled = "0".parse().unwrap()), "--stalled"),
        (said(&|s| s.mlp = vec!["0.5".parse().unwrap()]), "--mlp"),
        (
            said(&|s| s.mlp = vec!["stack=2".parse().unwrap()]),
            "there are heap",
        ),
        (said(&|s| s.policies = vec!["tpq".into()]), "tpp"),
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    for text in ["", "a", "3..2", "-1", "nan", "1..inf"] {
        assert!(text.parse::<Span>().is_err(), "{text}");
    }
}
