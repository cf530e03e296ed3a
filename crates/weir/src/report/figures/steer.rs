//! A scenario over time: bandwidth of both tiers, residency in the Table of Requests, what the held were left,
//! and the controller's level.

use weir_model::units::GbPerSec;
use weir_steer::document::{SideSummary, SteerDocument};
use weir_steer::readings::Role;
use weir_steer::record::WindowRecord;

use crate::output::figure;
use crate::render::chart::Drawn;
use crate::report::chart::{LineChart, Look, Sample, Series, Spread, Stroke};
use crate::report::{Insight, Told};

/// Points of a line; more windows than this are taken together, so that a page stays small.
const POINTS: usize = 400;

/// Bandwidth of the protected and of those who may be held, residencies, what was left, and levels.
pub fn steered(insight: &Insight) -> Vec<Drawn> {
    let Told::Steered(document) = &insight.told else {
        return Vec::new();
    };
    let what = format!("{} under {}", document.scenario, document.controller);
    let bandwidth = vec![
        line("the protected", 0, document, |w| gbps(w, Role::Protected)),
        line("who may be held", 1, document, |w| {
            gbps(w, Role::Restrained)
        }),
    ];
    let references = [
        reference("protected alone", 0, Stroke::Dashed, document, |p| {
            (&p.protected, p.protected.alone_gbps)
        }),
        reference("protected, nobody held", 0, Stroke::Dotted, document, |p| {
            (&p.protected, p.protected.free_gbps)
        }),
        reference("restrained alone", 1, Stroke::Dashed, document, |p| {
            (&p.restrained, p.restrained.alone_gbps)
        }),
        reference(
            "restrained, nobody held",
            1,
            Stroke::Dotted,
            document,
            |p| (&p.restrained, p.restrained.free_gbps),
        ),
    ];
    let tor = |of: &str, colour| {
        let of = of.to_owned();
        line(&of.clone(), colour, document, move |w| {
            w.tor_ns.get(&of).map(|ns| ns.get())
        })
    };
    let tiers = &document.tiers;
    let residency = vec![tor(&tiers.fast, 0), tor(&tiers.slow, 1), tor("all", 6)];
    let left = vec![line("left", 3, document, |w| Some(w.quota_pct))];
    let level = vec![line("level", 4, document, |w| Some(f64::from(w.level)))];
    [
        (
            "Bandwidth",
            "bandwidth [GB/s]",
            bandwidth.into_iter().chain(references).collect::<Vec<_>>(),
        ),
        ("Residency", "in the Table of Requests [ns]", residency),
        ("Hold", "running left [%]", left),
        ("Level", "level", level),
    ]
    .into_iter()
    .map(|(name, y_title, series)| {
        let title = format!("{name}: {what}");
        Drawn::new(title.clone(), chart(title, y_title, series))
    })
    .collect()
}

fn chart(label: String, y_title: &str, mut series: Vec<Series>) -> LineChart {
    series.retain(|series| !series.samples.is_empty());
    LineChart {
        label,
        x_title: "time [s]".into(),
        x: Spread::Linear,
        x_reach: vec![0.0],
        y_title: y_title.into(),
        y: Spread::Linear,
        y_reach: vec![0.0],
        series,
        walls: Vec::new(),
        limits: Vec::new(),
    }
}

fn gbps(window: &WindowRecord, role: Role) -> Option<f64> {
    window.drew(role).map(GbPerSec::get)
}

/// A line over the windows; where there are many, over means of a few.
fn line(
    name: &str,
    colour: usize,
    document: &SteerDocument,
    of: impl Fn(&WindowRecord) -> Option<f64>,
) -> Series {
    let together = document.windows.len().div_ceil(POINTS).max(1);
    let sample = |windows: &[WindowRecord]| {
        let known: Vec<f64> = windows.iter().filter_map(&of).collect();
        let (first, last) = (windows.first()?, windows.last()?);
        if known.is_empty() {
            return None;
        }
        let y = known.iter().sum::<f64>() / known.len() as f64;
        Some(Sample {
            x: last.t_s,
            y,
            ci95: None,
            sign: None,
            tip: format!(
                "{name}: {}\n{:.2} to {:.2} s\n{}",
                figure(y),
                first.t_s - first.window_s,
                last.t_s,
                last.why.rule
            ),
        })
    };
    Series {
        name: name.into(),
        look: Look::solid(colour),
        samples: document
            .windows
            .chunks(together)
            .filter_map(sample)
            .collect(),
        outline: Vec::new(),
    }
}

/// What a side has without the controller: a level line over each phase.
fn reference(
    name: &str,
    colour: usize,
    stroke: Stroke,
    document: &SteerDocument,
    of: impl Fn(&weir_steer::document::PhaseSummary) -> (&SideSummary, Option<GbPerSec>),
) -> Series {
    let samples = document.phases.iter().flat_map(|phase| {
        let (side, gbps) = of(phase);
        let ends = gbps.map(|gbps| [(phase.from_s, gbps), (phase.to_s, gbps)]);
        let tenants = side.tenants.join(", ");
        ends.into_iter().flatten().map(move |(x, gbps)| Sample {
            x,
            y: gbps.get(),
            ci95: None,
            sign: None,
            tip: format!("{name}: {}\n{tenants}", figure(gbps.get())),
        })
    });
    Series {
        name: name.into(),
        look: Look { colour, stroke },
        samples: samples.collect(),
        outline: Vec::new(),
    }
}
