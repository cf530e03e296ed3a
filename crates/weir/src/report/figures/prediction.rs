//! Predicted against measured: of what constants were fitted on, of one workload, of many.

use weir_insight::documents::{PredictDocument, Predicted};
use weir_model::insight::{Bound, Micro, Rejected};

use super::causes;
use crate::output::{distinct, figure};
use crate::render::chart::Drawn;
use crate::report::chart::{
    Bar, BarChart, Cloud, Dot, Group, Look, ScatterChart, Stack, StackChart,
};
use crate::report::{Insight, Told};

/// The distances that accuracy is told for, in points.
const BANDS: [f64; 2] = [5.0, 10.0];

/// With more workloads than this, only those that are furthest off are drawn by cause.
const MOST_BY_CAUSE: usize = 12;

/// The micro-workloads of a calibration, and what its constants make of them.
pub fn calibrated(insight: &Insight) -> Vec<Drawn> {
    let Told::Calibrated(document) = &insight.told else {
        return Vec::new();
    };
    let model = &document.model;
    let clouds = [Micro::Chase, Micro::Store, Micro::List, Micro::Mixed].into_iter();
    let clouds = clouds.enumerate().map(|(place, micro)| {
        let fitted = model.fitted_on.iter().filter(|point| point.micro == micro);
        let dots = fitted.map(|point| Dot {
            name: point.name.clone(),
            x: point.slowdown_pct,
            y: point.fitted_pct,
            interval: None,
        });
        Cloud {
            name: micro.to_string(),
            look: Look::solid(place),
            dots: dots.collect(),
        }
    });
    let chart = ScatterChart {
        label: format!("Fit of the model from {} to {}", model.from, model.to),
        x_title: "measured slowdown [%]".into(),
        y_title: "fitted slowdown [%]".into(),
        bands: vec![BANDS[0]],
        clouds: clouds.filter(|cloud| !cloud.dots.is_empty()).collect(),
    };
    let name = format!(
        "What the constants make of it, {} to {}",
        model.from, model.to
    );
    vec![Drawn::new(name, chart)]
}

/// Predictions by cause, and against what was measured where it was.
pub fn predicted(insight: &Insight) -> Vec<Drawn> {
    let Told::Predicted(document) = &insight.told else {
        return Vec::new();
    };
    let mut drawn = Vec::new();
    let measured = || document.predictions.iter().filter(|p| p.measured.is_some());
    if measured().count() > 1 {
        let scatter = against_measured(
            document,
            "The model's predictions against measurements",
            |p| Some((p.slowdown_pct, p.interval_pct)),
        );
        drawn.push(Drawn::new("Predicted against measured", scatter));
        drawn.extend(accuracy(document));
    }
    drawn.push(by_cause(document));
    if measured().count() > 1 {
        let published = against_measured(
            document,
            "The published model's predictions against measurements",
            |p| Some((p.published?.slowdown_pct, None)),
        );
        if published.clouds.iter().any(|cloud| !cloud.dots.is_empty()) {
            drawn.push(Drawn::new("As published", published));
        }
        for of in Rejected::ALL {
            let told = |p: &Predicted| {
                let said = p.rejected.iter().find(|r| r.of == of)?;
                Some((said.slowdown_pct?, None))
            };
            let label = format!("Predictions by {of} against measurements");
            let scatter = against_measured(document, &label, told);
            if scatter.clouds.iter().any(|cloud| !cloud.dots.is_empty()) {
                drawn.push(Drawn::new(format!("Not to be used: {of}"), scatter));
            }
        }
    } else if let [only] = document.predictions.as_slice() {
        drawn.extend(beside_rejected(only));
    }
    drawn
}

/// What a predictor says, with its interval.
type Said = (f64, Option<[f64; 2]>);

fn against_measured(
    document: &PredictDocument,
    label: &str,
    said: impl Fn(&Predicted) -> Option<Said>,
) -> ScatterChart {
    let bounds = [
        ("waits for latency", Look::solid(0), Some(Bound::Latency)),
        (
            "waits for bandwidth",
            Look::solid(1),
            Some(Bound::Bandwidth),
        ),
        ("cannot be told", Look::solid(6), None),
    ];
    let clouds = bounds.into_iter().map(|(name, look, bound)| {
        let dots = document.predictions.iter().filter(|p| p.bound == bound);
        let dots = dots.filter_map(|p| {
            let (y, interval) = said(p)?;
            Some(Dot {
                name: p.workload.clone(),
                x: p.measured.as_ref()?.slowdown_pct,
                y,
                interval,
            })
        });
        Cloud {
            name: name.into(),
            look,
            dots: dots.collect(),
        }
    });
    ScatterChart {
        label: label.into(),
        x_title: format!("measured slowdown on {} [%]", document.to),
        y_title: "predicted slowdown [%]".into(),
        bands: BANDS.into(),
        clouds: clouds.filter(|cloud| !cloud.dots.is_empty()).collect(),
    }
}

/// How many workloads each predictor gets right.
fn accuracy(document: &PredictDocument) -> Option<Drawn> {
    let accuracy = document.accuracy.as_ref()?;
    let groups = accuracy.lines.iter().map(|line| {
        let bars = [
            ("5 points", 0, line.within_5_pct),
            ("10 points", 5, line.within_10_pct),
        ];
        let bars = bars.map(|(within, colour, share)| Bar {
            name: within.into(),
            look: Look::solid(colour),
            value: share,
            figure: format!("{share:.1}"),
            limit: None,
            reach: None,
            sign: None,
            tip: format!("{}: {share:.1} % within {within}", line.what),
        });
        let r = line
            .pearson
            .map_or(String::new(), |r| format!(", Pearson {r:.3}"));
        Group {
            name: format!(
                "{}{r}, mean error {} points",
                line.what,
                figure(line.mean_error_pct)
            ),
            bars: bars.into(),
        }
    });
    let chart = BarChart {
        label: "How many workloads each predictor gets right".into(),
        title: format!(
            "within so many points [% of {} workloads]",
            accuracy.latency_bound
        ),
        legend: Vec::new(),
        groups: groups.collect(),
    };
    Some(Drawn::new(
        "Workloads that do not wait for bandwidth",
        chart,
    ))
}

/// Predicted and measured slowdown by cause.
fn by_cause(document: &PredictDocument) -> Drawn {
    let few = document.predictions.len() <= MOST_BY_CAUSE;
    let worst = document
        .accuracy
        .iter()
        .flat_map(|accuracy| &accuracy.worst);
    let worst = distinct(worst);
    let chosen: Vec<&Predicted> = match few {
        true => document.predictions.iter().collect(),
        false if worst.is_empty() => slowest(document),
        false => (worst.into_iter())
            .filter_map(|name| document.predictions.iter().find(|p| p.workload == *name))
            .collect(),
    };
    let mut groups: Vec<(String, Vec<Stack>)> = (chosen.into_iter())
        .map(|p| (p.workload.clone(), bars(p)))
        .collect();
    let chart = StackChart {
        label: "Predicted slowdown by cause".into(),
        title: format!(
            "slowdown on {} [% of the cycles on {}]",
            document.to, document.from
        ),
        legend: causes::legend(causes::of_groups(&mut groups)),
        groups,
    };
    let name = match (few, document.accuracy.is_some()) {
        (true, _) => "Predicted slowdown by cause",
        (false, true) => "By cause, of those that are furthest off",
        (false, false) => "By cause, of the slowest",
    };
    Drawn::new(name, chart)
}

fn slowest(document: &PredictDocument) -> Vec<&Predicted> {
    let mut all: Vec<&Predicted> = document.predictions.iter().collect();
    all.sort_by(|a, b| b.slowdown_pct.total_cmp(&a.slowdown_pct));
    all.truncate(MOST_BY_CAUSE);
    all
}

fn bars(of: &Predicted) -> Vec<Stack> {
    let predicted = causes::as_predicted("predicted".into(), &of.components, of.slowdown_pct);
    let mut bars = vec![Stack {
        interval: of.interval_pct,
        ..predicted
    }];
    bars.extend(of.measured.as_ref().map(|measured| {
        causes::as_predicted(
            "measured".into(),
            &measured.components,
            measured.slowdown_pct,
        )
    }));
    bars
}

/// What each predictor says of one workload.
fn beside_rejected(of: &Predicted) -> Option<Drawn> {
    let bar = |name: String, colour: usize, value: f64| Bar {
        tip: format!("{name}: {} %", figure(value)),
        name,
        look: Look::solid(colour),
        value,
        figure: figure(value),
        limit: None,
        reach: None,
        sign: None,
    };
    let mut bars = vec![bar("the model".into(), 0, of.slowdown_pct)];
    let measured = of.measured.as_ref();
    bars.extend(measured.map(|m| bar("measured".into(), 2, m.slowdown_pct)));
    let before = bars.len();
    bars.extend(of.rejected.iter().filter_map(|r| {
        let value = r.slowdown_pct?;
        Some(bar(r.of.to_string(), 6, value))
    }));
    if bars.len() == before {
        return None;
    }
    let chart = BarChart {
        label: format!("What each predictor says of {}", of.workload),
        title: "slowdown [%]".into(),
        legend: Vec::new(),
        groups: vec![Group {
            name: of.workload.clone(),
            bars,
        }],
    };
    Some(Drawn::new(
        "Beside predictors that are not to be used",
        chart,
    ))
}
