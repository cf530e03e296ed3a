//! Laws of profiles: what is conserved, what an order of addresses may change, and known patterns.

use std::sync::Arc;

use proptest::prelude::*;
use weir_model::heat::SeenPages;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_pages::workload::{Band, Growth};
use weir_pages::{PageKind, PagedWorkload, Region, TierCurve};
use weir_steer::tier::profile::{
    History, Looked, Profile, ProfileOf, ProfileSource, ProfileTimes, SamplerName, Times,
};

fn of(hot_s: f64, warm_s: f64) -> ProfileOf {
    ProfileOf {
        source: ProfileSource::Trace,
        of: "a pattern".into(),
        how: String::new(),
        hot_s,
        warm_s,
        granule: Bytes::kib(4),
        most_per_s: None,
    }
}

/// For each interval, the pages that are there and how often each was touched.
type Pattern = Vec<Vec<Option<u8>>>;

fn profile_of(pattern: &Pattern, address: impl Fn(usize) -> u64) -> Profile {
    let mut history = History::new(1.0);
    let region: Arc<str> = "a".into();
    for interval in pattern {
        for (page, touches) in interval.iter().enumerate() {
            if let Some(touches) = touches {
                history.add(&SeenPages {
                    space: 0,
                    start: address(page),
                    bytes: Bytes(4096 * (1 + page as u64 % 3)),
                    page: Bytes::kib(4),
                    file: page % 2 == 1,
                    region: Arc::clone(&region),
                    touches: f64::from(*touches),
                    frame: 0,
                });
            }
        }
        history.next_interval();
    }
    history.profile(of(2.0, 4.0))
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let page = prop::option::weighted(0.8, 0u8..3);
    prop::collection::vec(prop::collection::vec(page, 40), 1..80)
}

fn bytes<'a>(of: impl Iterator<Item = &'a Bytes>) -> u64 {
    of.map(|bytes| bytes.get()).sum()
}

proptest! {
    // Each draws thousands of touches.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hot_warm_and_cold_memory_are_all_memory(pattern in patterns()) {
        let profile = profile_of(&pattern, |page| page as u64 * 4096);
        prop_assert_eq!(profile.intervals.len(), 2 * pattern.len());
        for row in &profile.intervals {
            let parts = row.hot.get() + row.warm.get() + row.cold.get();
            prop_assert_eq!(parts, row.allocated.get());
            prop_assert!(row.touched <= row.hot);
        }
        for (interval, rows) in pattern.iter().zip(profile.intervals.chunks(2)) {
            let there = interval.iter().enumerate().filter(|(_, page)| page.is_some());
            let there: u64 = there.map(|(page, _)| 4096 * (1 + page as u64 % 3)).sum();
            prop_assert_eq!(bytes(rows.iter().map(|row| &row.allocated)), there);
        }
    }

    #[test]
    fn every_touch_is_in_the_histogram_and_in_the_rates(pattern in patterns()) {
        let profile = profile_of(&pattern, |page| page as u64 * 4096);
        for kind in PageKind::ALL {
            let touched = profile.intervals.iter().filter(|row| row.kind == kind);
            let counted = profile.reaccess.iter().filter(|row| row.kind == kind);
            prop_assert_eq!(
                bytes(counted.map(|row| &row.touched)),
                bytes(touched.map(|row| &row.touched))
            );
        }
        // Memory times touches in a second, times the seconds that a page was there.
        let mut expected = 0.0;
        for page in 0..40 {
            let there = pattern.iter().filter_map(|interval| interval[page]);
            let seconds = there.clone().count().max(1) as f64;
            let touches: f64 = there.map(f64::from).sum();
            expected += touches / seconds * 4096.0 * (1 + page % 3) as f64;
        }
        let rates = profile.rates.iter().map(|row| row.mean_per_s * row.memory.get() as f64);
        let rates: f64 = rates.sum();
        prop_assert!((rates - expected).abs() <= 1e-6 * expected.max(1.0), "{} {}", rates, expected);
    }

    #[test]
    fn an_order_of_addresses_changes_where_memory_is_only(
        pattern in patterns(), order in Just((0..40u64).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut own = profile_of(&pattern, |page| page as u64 * 4096);
        let mut other = profile_of(&pattern, |page| order[page] * 4096);
        // Sums of floating-point numbers depend on their order.
        for (a, b) in own.rates.iter().zip(&mut other.rates) {
            prop_assert!((a.mean_per_s - b.mean_per_s).abs() < 1e-9);
            prop_assert!((a.touches_pct - b.touches_pct).abs() < 1e-9);
            (b.mean_per_s, b.touches_pct) = (a.mean_per_s, a.touches_pct);
        }
        other.heat = own.heat.clone();
        // Regions are in the order of addresses.
        for profile in [&mut own, &mut other] {
            profile.regions.sort_by_key(|row| row.kind as u8);
            profile.bands.sort_by_key(|row| row.kind as u8);
            profile.parts.sort_by_key(|row| row.kind as u8);
        }
        for (a, b) in own.bands.iter().zip(&mut other.bands) {
            prop_assert!((a.per_s - b.per_s).abs() <= 1e-6 * a.per_s);
            prop_assert!(a.memory.get().abs_diff(b.memory.get()) <= 1 + a.memory.get() / 100_000);
            (b.per_s, b.memory, b.places) = (a.per_s, a.memory, a.places.clone());
        }
        for (a, b) in own.parts.iter().zip(&mut other.parts) {
            prop_assert!((a.touches_per_s - b.touches_per_s).abs() <= 1e-6 * a.touches_per_s);
            b.touches_per_s = a.touches_per_s;
        }
        prop_assert_eq!(own, other);
    }
}

#[test]
fn a_page_cools_when_its_time_is_over_and_its_return_is_counted() {
    let mut pattern = vec![vec![Some(0)]; 8];
    pattern[0][0] = Some(1);
    pattern[6][0] = Some(1);
    let profile = profile_of(&pattern, |page| page as u64);
    let anon = profile
        .intervals
        .iter()
        .filter(|row| row.kind == PageKind::Anon);
    let heat = anon.map(|row| (row.hot.get() > 0, row.warm.get() > 0));
    let heat: Vec<(bool, bool)> = heat.collect();
    let (hot, warm, cold) = ((true, false), (false, true), (false, false));
    assert_eq!(heat, [hot, hot, warm, warm, cold, cold, hot, hot]);
    let gaps: Vec<_> = (profile.reaccess.iter())
        .map(|row| (row.after_s, row.until_s))
        .collect();
    assert_eq!(gaps, [(None, None), (Some(4.0), Some(8.0))]);
    // Of the seven times that have two seconds before them three have a touch in these.
    let mut within = profile.within.iter();
    let hot = within.find(|row| row.kind == PageKind::Anon && row.last_s == 2.0);
    assert!((hot.unwrap().touched_pct - 300.0 / 7.0).abs() < 1e-9);
}

#[test]
fn a_heat_map_shows_where_and_when() {
    let quarter = |interval: usize| {
        let page = |page| Some(u8::from(page < 64 && interval < 60));
        (0..256).map(page).collect::<Vec<_>>()
    };
    let pattern: Pattern = (0..120).map(quarter).collect();
    let profile = profile_of(&pattern, |page| page as u64 * 4096);
    assert_eq!(profile.heat.len(), 32 * 60);
    for cell in &profile.heat {
        let address = u64::from_str_radix(&cell.address, 16).unwrap();
        // The part at the border has pages of both.
        if address / 4096 < 56 || address / 4096 >= 64 {
            let touched = address / 4096 < 64 && cell.t_s <= 60.0;
            assert_eq!(
                cell.touched_pct,
                if touched { 100.0 } else { 0.0 },
                "{cell:?}"
            );
        }
    }
}

/// A simulation in which a share of anonymous pages has all accesses, and a twentieth of file pages.
fn simulated(share: f64, sampler: SamplerName) -> Profile {
    let region = |name: &str, kind, hot| Region {
        name: name.into(),
        kind,
        bytes: Bytes::mib(64),
        page: Bytes::kib(4),
        accesses: 0.5,
        writes: 0.3,
        mlp: 2.0,
        burst: 1.0,
        band_bursts: Vec::new(),
        band_places: Vec::new(),
        bands: vec![
            Band {
                pages: hot,
                accesses: 1.0,
            },
            Band {
                pages: 1.0 - hot,
                accesses: 0.0,
            },
        ],
        growth: Growth::NONE,
        lifetime_s: None,
        drift_per_hour: 0.0,
    };
    let workload = PagedWorkload {
        name: "a pattern".into(),
        about: String::new(),
        threads: 4,
        stalled: 0.25,
        phases: Vec::new(),
        regions: vec![
            region("a", PageKind::Anon, share),
            region("f", PageKind::File, 0.05),
        ],
    };
    looked(workload, sampler, 20, 2.0)
}

fn looked(workload: PagedWorkload, sampler: SamplerName, intervals: usize, hot_s: f64) -> Profile {
    let looked = Looked {
        workload,
        sampler,
        every: match sampler {
            SamplerName::Events => 200.0,
            SamplerName::Bits => 1.0,
        },
        pages: 1 << 13,
        times: Times {
            intervals,
            interval_s: 1.0,
            hot_s,
            warm_s: 2.0 * hot_s,
        },
        curve: TierCurve::of_queue(Nanos(100.0), GbPerSec(200.0)),
        seed: 1,
        version: 0,
    };
    looked.run(|| true).unwrap()
}

#[test]
fn a_known_share_of_touched_pages_is_found_within_three_points() {
    for sampler in [SamplerName::Bits, SamplerName::Events] {
        for share in [0.1, 0.25, 0.6] {
            let profile = simulated(share, sampler);
            for row in &profile.intervals {
                let wanted = if row.kind == PageKind::Anon {
                    100.0 * share
                } else {
                    5.0
                };
                let allocated = row.allocated.get() as f64 / Bytes::mib(64).get() as f64;
                assert!((allocated - 1.0).abs() < 0.01, "{sampler:?}: {row:?}");
                assert!((row.hot_pct - wanted).abs() < 3.0, "{sampler:?}: {row:?}");
                assert!(
                    (row.cold_pct - 100.0 + wanted).abs() < 3.0,
                    "{sampler:?}: {row:?}"
                );
            }
        }
    }
}

#[test]
fn sampled_accesses_are_as_many_as_there_are() {
    let profile = simulated(0.25, SamplerName::Events);
    // 4 threads that wait a quarter of their time for 100 ns with two accesses at once.
    let accesses = 4.0 * 0.25 * 2.0 / 100e-9;
    let seen = profile
        .rates
        .iter()
        .map(|row| row.mean_per_s * row.memory.get() as f64 / 4096.0);
    let seen: f64 = seen.sum();
    assert!((seen / accesses - 1.0).abs() < 0.05, "{seen} {accesses}");
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let time = |seconds: f64| Some(Nanos(seconds * 1e9));
    let check = |of: ProfileTimes| of.check(600.0, 0.25).map_err(|error| error.to_string());
    let usual = check(ProfileTimes::default()).unwrap();
    assert_eq!((usual.intervals, usual.interval_s), (60, 10.0));
    assert_eq!((usual.hot_s, usual.warm_s), (60.0, 120.0));
    let short = ProfileTimes {
        lasts: time(1.0),
        interval: time(2.0),
        ..ProfileTimes::default()
    };
    assert!(
        check(short)
            .unwrap_err()
            .contains("shorter than one --interval")
    );
    let many = ProfileTimes {
        lasts: time(1e5),
        interval: time(1.0),
        ..ProfileTimes::default()
    };
    assert!(check(many).unwrap_err().contains("at most 4096"));
    let cold = ProfileTimes {
        hot: time(30.0),
        warm: time(10.0),
        ..ProfileTimes::default()
    };
    assert!(check(cold).unwrap_err().contains("--warm"));
    let fine = ProfileTimes {
        hot: time(5.0),
        interval: time(10.0),
        ..ProfileTimes::default()
    };
    assert!(check(fine).unwrap_err().contains("--hot"));
}

proptest! {
    #[test]
    fn parts_of_the_time_keep_all_touches_and_memory(pattern in patterns()) {
        let profile = profile_of(&pattern, |page| page as u64 * 8192);
        let mut before = 0.0;
        let ends = profile.parts.iter().map(|row| row.t_s);
        let ends: std::collections::BTreeMap<u64, f64> = ends.map(|t| (t.to_bits(), t)).collect();
        prop_assert!(ends.len() <= 16);
        let mut seen = 0.0;
        for t in ends.into_values() {
            let here = profile.parts.iter().filter(|row| row.t_s == t);
            seen += here.map(|row| row.touches_per_s).sum::<f64>() * (t - before);
            before = t;
        }
        let touches = |interval: &Vec<Option<u8>>| -> f64 {
            let each = interval.iter().enumerate();
            each.map(|(page, n)| f64::from(n.unwrap_or(0)) * (1 + page % 3) as f64).sum()
        };
        let wanted: f64 = pattern.iter().map(touches).sum();
        prop_assert!((seen - wanted).abs() < 1e-3 * wanted.max(1.0), "{} {}", seen, wanted);
        let rows = profile.rates.iter().map(|row| &row.memory);
        prop_assert_eq!(bytes(profile.regions.iter().map(|row| &row.memory)), bytes(rows));
    }
}

#[test]
fn pages_that_become_hot_have_arrived() {
    // The hot pages are always ten next to each other, which move on by this many over the profile.
    let moved = |moved: usize| -> Pattern {
        let at = |n: usize| n * moved / 400;
        let hot = |n: usize, page: usize| (at(n)..at(n) + 10).contains(&page);
        let interval = |n: usize| {
            (0..40)
                .map(|page| Some(if hot(n, page) { 1 } else { 0 }))
                .collect()
        };
        (0..400).map(interval).collect()
    };
    for (by, arrived) in [(0, 0.0), (10, 25.0)] {
        let mut pattern = moved(by);
        // Pages of one size: the odd ones, which are of files, are left out.
        for interval in &mut pattern {
            interval
                .iter_mut()
                .skip(1)
                .step_by(2)
                .for_each(|page| *page = None);
        }
        let profile = profile_of(&pattern, |page| page as u64 * 16384);
        let found = profile.regions[0].arrived_pct.unwrap();
        assert!((found - arrived).abs() < 6.0, "{by}: {found}");
    }
}

/// Two regions of one name: the hot set of the first drifts, and pages of the second live for ten seconds.
fn changing(drift_per_hour: f64) -> Profile {
    let region = |bands: &[(f64, f64)], lifetime_s, drift_per_hour| Region {
        name: "heap".into(),
        kind: PageKind::Anon,
        bytes: Bytes::mib(64),
        page: Bytes::kib(4),
        accesses: 0.5,
        writes: 0.3,
        mlp: 2.0,
        burst: 1.0,
        band_bursts: Vec::new(),
        band_places: Vec::new(),
        bands: (bands.iter())
            .map(|&(pages, accesses)| Band { pages, accesses })
            .collect(),
        growth: Growth::NONE,
        lifetime_s,
        drift_per_hour,
    };
    let workload = PagedWorkload {
        name: "changing".into(),
        about: String::new(),
        threads: 4,
        stalled: 0.25,
        phases: Vec::new(),
        regions: vec![
            region(&[(0.1, 0.9), (0.9, 0.1)], None, drift_per_hour),
            region(&[(1.0, 1.0)], Some(10.0), 0.0),
        ],
    };
    looked(workload, SamplerName::Events, 160, 16.0)
}

#[test]
fn bands_are_those_of_the_workload_with_and_without_drift() {
    for drift in [0.0, 12.0] {
        let profile = changing(drift);
        let bands = profile.bands.iter().filter(|band| band.region == "heap");
        let (mut hot, mut cold) = ((0.0, 0.0), (0.0, 0.0));
        // 20 million accesses in a second, half of them to this region.
        let mean = 1e7 / (64.0 * 256.0);
        for band in bands {
            let of = if band.per_s > mean {
                &mut hot
            } else {
                &mut cold
            };
            of.0 += band.memory.get() as f64;
            of.1 += band.memory.get() as f64 * band.per_s;
        }
        let share = 100.0 * hot.0 / (hot.0 + cold.0);
        let touches = 100.0 * hot.1 / (hot.1 + cold.1);
        assert!(
            (share - 10.0).abs() < 1.5,
            "{drift}: {share} {:?}",
            profile.bands
        );
        assert!((touches - 90.0).abs() < 2.0, "{drift}: {touches}");
        // Rates of samples would be spread by 4 % even without drift; most cold pages are within 10 %.
        let near = profile.bands.iter().filter(|band| {
            band.region == "heap" && (band.per_s / (0.1 / 0.9 * mean) - 1.0).abs() < 0.1
        });
        let near: f64 = near.map(|band| band.memory.get() as f64).sum();
        assert!(near > 0.85 * cold.0, "{drift}: {:?}", profile.bands);
        let arrived = profile.regions[0].arrived_pct.unwrap();
        let wanted = 10.0 * drift * 160.0 / 3600.0;
        assert!(
            (arrived - wanted).abs() < 0.5,
            "{drift}: {arrived} {wanted}"
        );
    }
}

#[test]
fn regions_of_one_name_are_apart_and_renewed_memory_is_seen() {
    let profile = changing(0.0);
    let names: Vec<&str> = profile.regions.iter().map(|r| r.region.as_str()).collect();
    assert_eq!(names, ["heap", "heap 2"]);
    for (name, wanted) in [("heap", 0.0), ("heap 2", 16.0)] {
        let parts = profile.parts.iter().filter(|part| part.region == name);
        let appeared: u64 = parts.map(|part| part.appeared.get()).sum();
        let times = appeared as f64 / Bytes::mib(64).get() as f64;
        assert!((times - wanted).abs() < 0.5, "{name}: {times}");
    }
}
