//! The tuners: Caption's trace and its laws, and best-shot's lines.

mod common;

use common::{IDLE, Program};
use proptest::prelude::*;
use weir_insight::Run;
use weir_insight::interleave::best_shot::{self, Swept, fit, latency_bound_slowdown, shoot};
use weir_insight::interleave::caption::{Caption, Did, Settings, State};
use weir_model::capability::Unavailable;
use weir_model::counters::Counter;
use weir_model::insight::{PrefetchForm, Pressure};
use weir_model::units::Cycles;

fn pressure(reads: f64, stores: f64) -> Pressure {
    Pressure {
        reads: Cycles(reads),
        stores: Cycles(stores),
    }
}

fn exactly(mean: f64) -> State {
    State { mean, noise: 0.0 }
}

/// Tunes on a workload whose figure depends on the weights alone.
fn climb(caption: &mut Caption, figure: impl Fn(u32) -> f64, tunings: u32) -> Vec<u32> {
    let mut seen = vec![caption.weights().slow];
    for _ in 0..tunings {
        let figure = figure(caption.weights().slow);
        seen.push(caption.tune(exactly(figure), true).slow);
    }
    seen
}

/// The published trace (Figure 12b): 9.1, 28.6, 41.2, 37.5, 33.3 %, better, better, worse, better.
#[test]
fn the_published_trace() {
    let mut caption = Caption::new(Settings::default());
    let mut trace = vec![caption.weights()];
    for figure in [10.0, 11.0, 10.5, 10.8] {
        trace.push(caption.tune(exactly(figure), true));
    }
    let slow: Vec<u32> = trace.iter().map(|w| w.slow).collect();
    assert_eq!(slow, [1, 4, 7, 6, 5]);
    let percent: Vec<String> = trace
        .iter()
        .map(|w| format!("{:.1}", w.share() * 100.0))
        .collect();
    assert_eq!(percent, ["9.1", "28.6", "41.2", "37.5", "33.3"]);
}

#[test]
fn without_new_pages_history_stands_still() {
    let mut caption = Caption::new(Settings::default());
    caption.tune(exactly(10.0), true);
    let first = caption.tune(exactly(11.0), false);
    for _ in 0..5 {
        assert_eq!(caption.tune(exactly(11.0), false), first, "history moved");
    }
    // The figure is still measured against 10, and the step still taken from 4.
    assert_eq!(caption.tune(exactly(9.0), false).slow, 3);
    assert_eq!(caption.tune(exactly(11.0), true).slow, 7);
    assert_eq!(caption.tune(exactly(12.0), true).slow, 10);
}

#[test]
fn changes_within_the_noise_are_none() {
    let mut caption = Caption::new(Settings::default());
    caption.tune(
        State {
            mean: 10.0,
            noise: 0.3,
        },
        true,
    );
    let held = caption.tune(
        State {
            mean: 9.8,
            noise: 0.3,
        },
        true,
    );
    assert_eq!((held.slow, caption.did()), (4, Some(Did::Held)));
    assert!(caption.is_settled());
    // Still measured against 10, so that small losses add up.
    caption.tune(
        State {
            mean: 9.3,
            noise: 0.3,
        },
        true,
    );
    assert_eq!(caption.did(), Some(Did::Back));
}

#[test]
fn another_phase_begins_anew() {
    let mut caption = Caption::new(Settings::default());
    climb(&mut caption, |slow| 10.0 + f64::from(slow), 3);
    let reset = caption.tune(exactly(100.0), true);
    assert_eq!((reset.slow, caption.did()), (1, Some(Did::Reset)));
    assert_eq!(caption.tune(exactly(101.0), true).slow, 4);
}

#[test]
fn a_latency_bound_workload_drifts_to_the_lower_bound() {
    let mut caption = Caption::new(Settings::default());
    let seen = climb(&mut caption, |slow| 10.0 - 0.1 * f64::from(slow), 12);
    assert_eq!(seen.last(), Some(&1), "{seen:?}");
}

proptest! {
    /// One peak, anywhere: found within ten tunings to one unit, and held from then on.
    #[test]
    fn the_climb_converges_within_ten_steps(peak in 1..=20_u32, steep in 0.5..4.0_f64) {
        let figure = |slow: u32| 100.0 - steep * (f64::from(slow) - f64::from(peak)).abs();
        let mut caption = Caption::new(Settings { sudden: 10.0, ..Settings::default() });
        let seen = climb(&mut caption, figure, 20);
        for slow in &seen[10..] {
            prop_assert!(slow.abs_diff(peak) <= 1, "peak {peak}: {seen:?}");
        }
    }

    #[test]
    fn bounds_hold_whatever_is_measured(figures in prop::collection::vec(-1e6..1e6_f64, 1..60)) {
        let mut caption = Caption::new(Settings::default());
        for (n, figure) in figures.into_iter().enumerate() {
            let weights = caption.tune(exactly(figure), n % 3 != 0);
            prop_assert!((1..=20).contains(&weights.slow));
            prop_assert_eq!(weights.local, 10);
        }
    }

    /// Noise below the dead band never moves it.
    #[test]
    fn a_flat_figure_is_held(noise in prop::collection::vec(-0.1..0.1_f64, 5..40)) {
        let mut caption = Caption::new(Settings::default());
        caption.tune(State { mean: 50.0, noise: 0.2 }, true);
        let place = caption.weights();
        for n in noise {
            prop_assert_eq!(caption.tune(State { mean: 50.0 + n, noise: 0.2 }, true), place);
        }
    }

    #[test]
    fn best_shot_gives_back_the_planes_it_was_fitted_on(
        slope in 1e-4..1e-3_f64,
        gain in 1e-4..1e-3_f64,
        reads in 100.0..800.0_f64,
        stores in 0.0..300.0_f64,
    ) {
        let swept: Vec<Swept> = [(100.0, 0.0), (300.0, 0.0), (500.0, 300.0), (800.0, 100.0)]
            .map(|(reads, stores)| Swept {
                pressure: pressure(reads, stores),
                share: slope * (reads + 0.5 * stores),
                gain: gain * (reads + 2.0 * stores),
            })
            .to_vec();
        let fit = fit(&swept).unwrap();
        let shot = shoot(&fit, pressure(reads, stores));
        let (share, wanted) = (slope * (reads + 0.5 * stores), gain * (reads + 2.0 * stores));
        if wanted > 0.011 {
            let (found, predicted) = shot.unwrap();
            prop_assert!((found - share.min(fit.most)).abs() < 1e-9);
            prop_assert!((predicted - wanted).abs() < 1e-9);
        } else if wanted < 0.009 {
            prop_assert_eq!(shot, None);
        }
    }

    #[test]
    fn what_latency_bound_work_loses_is_linear_in_the_share(slowdown in 0.0..3.0_f64, share in 0.0..=0.5_f64) {
        let half = latency_bound_slowdown(slowdown, share);
        prop_assert!((latency_bound_slowdown(slowdown, 2.0 * share) - 2.0 * half).abs() < 1e-12);
        prop_assert_eq!(latency_bound_slowdown(slowdown, 1.0), slowdown);
    }
}

#[test]
fn planes_are_not_carried_beyond_what_was_swept() {
    let swept = [
        (100.0, 0.0, 0.1, 0.02),
        (500.0, 0.0, 0.4, 0.3),
        (400.0, 200.0, 0.45, 0.4),
    ]
    .map(|(reads, stores, share, gain)| Swept {
        pressure: pressure(reads, stores),
        share,
        gain,
    });
    let fit = fit(&swept).unwrap();
    assert_eq!(
        shoot(&fit, pressure(500.0, 0.0)),
        shoot(&fit, pressure(5000.0, 0.0))
    );
    assert!(best_shot::fit(&swept[..2]).is_err());
}

#[test]
fn kernels_that_hardly_store_say_nothing_of_stores_by_themselves() {
    let swept =
        [(200.0, 0.0, 0.3), (400.0, 4.0, 0.38), (600.0, 1.0, 0.5)].map(|(reads, stores, share)| {
            Swept {
                pressure: pressure(reads, stores),
                share,
                gain: (reads + stores) / 1000.0,
            }
        });
    let fit = fit(&swept).unwrap();
    assert_eq!(
        shoot(&fit, pressure(300.0, 0.0)),
        shoot(&fit, pressure(0.0, 300.0))
    );
}

#[test]
fn pressure_is_stalls_times_latency() {
    let program = Program {
        miss_stalls: 0.4,
        store: 0.1,
        ..IDLE
    };
    let counters = program.local(PrefetchForm::SapphireRapids);
    let pressure = best_shot::pressure(&Run::of(&counters).unwrap()).unwrap();
    // Reads take 300 cycles in the common part, ownership 400.
    assert!((pressure.reads.get() - 0.4 * 300.0).abs() < 1e-3);
    assert!((pressure.stores.get() - 0.1 * 400.0).abs() < 1e-3);
    let mut blind = counters.clone();
    blind.set_unavailable(
        Counter::OffcoreDemandRfo,
        Unavailable::because("no such event"),
    );
    let error = best_shot::pressure(&Run::of(&blind).unwrap()).unwrap_err();
    assert!(error.to_string().contains("no such event"));
}
