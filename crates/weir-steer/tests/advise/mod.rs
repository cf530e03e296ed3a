//! Advice from profiles: laws; in `drawn`, what it says of workloads that are known.

mod drawn;

use weir_lab::LabError;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_pages::policy::Thresholds;
use weir_pages::workload::{Band, Growth};
use weir_pages::{PageKind, PagedWorkload, Region, TierCurve};
use weir_steer::tier::advise::{Advise, Advised, PolicyGain, Runs, Span};
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
        pages: 1 << 18,
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
        lasts: Nanos(SECONDS * 1e9),
        fast: "dram".parse().unwrap(),
        slow: "cxl0".parse().unwrap(),
        profile: Some(Box::new(profile)),
    }
}

fn replay(asks: &[Replay]) -> Result<Vec<Replayed>, LabError> {
    let thresholds = Thresholds::default();
    asks.iter()
        .map(|ask| ask.run(thresholds, || true))
        .collect()
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
        burst: 1.0,
        band_bursts: Vec::new(),
        band_places: Vec::new(),
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
    study.lasts = Nanos(40e9);
    study.stalled = "0.4..0.6".parse().unwrap();
    study.mlp = vec!["2..5".parse().unwrap()];
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
fn hot_pages_at_the_end_of_a_region_are_rebuilt_there() {
    // The first 51.2 of 64 parts are cold.
    let place = |cold: f64| vec![cold, 1.0 - cold];
    let parts: Vec<Vec<f64>> = (0..64)
        .map(|part| place((51.2 - f64::from(part)).clamp(0.0, 1.0)))
        .collect();
    let mut workload = heap(0.2, 0.999);
    workload.regions[0].band_places = [(0, 51.2), (1, 12.8)]
        .map(|(band, all)| parts.iter().map(|part| part[band] / all).collect())
        .to_vec();
    let mut study = study(
        profile(&workload, SamplerName::Events, 40.0),
        Bytes::mib(128),
    );
    (study.variations, study.lasts) = (1, Nanos(5e9));
    study.policies = vec!["first-touch".into()];
    let local = |study: &Advise| gain(&advise(study, false), "first-touch").local_pct;
    assert!(local(&study) < 3.0, "{}", local(&study));
    // Spread evenly are those that drift, and those of a profile that does not say where they are.
    let profile = study.profile.as_mut().unwrap();
    profile.regions[0].arrived_pct = Some(0.1);
    assert!((40.0..60.0).contains(&local(&study)), "{}", local(&study));
    let profile = study.profile.as_mut().unwrap();
    profile.regions[0].arrived_pct = None;
    (profile.bands.iter_mut()).for_each(|band| band.places.clear());
    assert!((40.0..60.0).contains(&local(&study)), "{}", local(&study));
}

#[test]
fn a_profile_without_rates_says_so() {
    let unknown = |sampler| {
        let profile = profile(&heap(0.3, 0.8), sampler, 40.0);
        let mut study = study(profile, Bytes::mib(128));
        (study.variations, study.lasts) = (1, Nanos(5e9));
        advise(&study, false).unknown_pct
    };
    assert!(unknown(SamplerName::Bits) > 90.0);
    assert_eq!(unknown(SamplerName::Events), 0.0);
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
