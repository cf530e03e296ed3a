//! Run time over the share of pages that lie on a slower tier, with what each method advises.

use weir_insight::documents::{Advice, Tuned};
use weir_model::document::Document;

use crate::output::{figure, percent};
use crate::render::chart::Drawn;
use crate::report::chart::{Limit, LineChart, Look, Sample, Series, Spread, Stroke, Wall};
use crate::report::{Insight, Told};

/// The measured curve, that of the closed form, and the share of each method on it.
pub fn interleaved(insight: &Insight) -> Vec<Drawn> {
    let Told::Tuned(Document { output: tuned, .. }) = &insight.told else {
        return Vec::new();
    };
    let mut series = curves(tuned);
    let mut walls = Vec::new();
    for advice in &tuned.advice {
        match advice.measured_pct.or(advice.change_pct) {
            Some(change) => series.push(advised(advice, change)),
            // What is only known to the right is a mark all the way up.
            None => walls.push(Wall {
                x: advice.share_pct,
                name: format!("{}: {:.0} %", advice.method, advice.share_pct),
            }),
        }
    }
    let chart = LineChart {
        label: format!("Interleaving of {}", tuned.workload),
        x_title: format!("pages on {} [%], the others on {}", tuned.to, tuned.from),
        x: Spread::Linear,
        x_reach: vec![0.0, 100.0],
        y_title: "change of run time [%], below zero is faster".into(),
        y: Spread::Signed,
        y_reach: vec![0.0],
        series,
        walls,
        limits: vec![Limit {
            y: 0.0,
            name: format!("all on {}", tuned.from),
        }],
    };
    vec![Drawn::new(
        format!(
            "Interleaving of {} over {} and {}",
            tuned.workload, tuned.from, tuned.to
        ),
        chart,
    )]
}

fn curves(tuned: &Tuned) -> Vec<Series> {
    let sample = |share: f64, change: f64, how: &str| Sample {
        x: share,
        y: change,
        ci95: None,
        sign: None,
        tip: format!("{share:.0} % of the pages: {} % {how}", percent(change)),
    };
    let curve = |name: &str, colour, stroke, samples: Vec<Sample>| Series {
        name: name.into(),
        look: Look { colour, stroke },
        samples,
        outline: Vec::new(),
    };
    let tried = tuned.curve.iter();
    let measured = tried.map(|t| sample(t.share_pct, t.change_pct, "measured"));
    let tried = tuned.curve.iter();
    let closed = tried.filter_map(|t| {
        let predicted = t.predicted_pct?;
        Some(sample(t.share_pct, predicted, "by the closed form"))
    });
    let curves = [
        curve("measured", 6, Stroke::Solid, measured.collect()),
        curve("closed form's curve", 5, Stroke::Dashed, closed.collect()),
    ];
    let drawn = curves.into_iter().filter(|curve| !curve.samples.is_empty());
    drawn.collect()
}

/// A method's share, where it was measured; else where the method expects it.
fn advised(advice: &Advice, change: f64) -> Series {
    let how = match advice.measured_pct {
        Some(_) => "measured",
        None => "expected",
    };
    let method = advice.method.as_str();
    let known = [
        "best-shot",
        "closed form",
        "caption",
        "bandwidth-proportional",
    ];
    let place = known.iter().position(|name| *name == method);
    let share = advice.share_pct;
    let expected = advice.change_pct.map_or(String::new(), |expected| {
        format!("\nexpected: {} %", percent(expected))
    });
    Series {
        name: format!("{method}: {share:.0} %, {} % {how}", percent(change)),
        look: Look::solid(place.unwrap_or(7)),
        samples: vec![Sample {
            x: share,
            y: change,
            ci95: None,
            sign: None,
            tip: format!(
                "{method}\n{} % of the pages\n{how}: {} %{expected}",
                figure(share),
                percent(change)
            ),
        }],
        outline: Vec::new(),
    }
}
