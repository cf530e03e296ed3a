//! Where cycles are lost, and to what a slower memory loses more of them; over time where a workload has
//! phases.

use weir_insight::documents::{ExplainDocument, ExplainedRun};

use super::causes::{self, LEVELS};
use crate::render::chart::Drawn;
use crate::report::chart::{Stack, StackChart, Stretch, Strip, StripChart};
use crate::report::{Insight, Told};

/// Slowdown by cause, of every explanation that compares two memories: SupMario's Figure 8.
pub fn slowdowns(insights: &[Insight]) -> Option<Drawn> {
    let mut groups: Vec<(String, Vec<Stack>)> = Vec::new();
    for insight in insights {
        let Told::Explained(document) = &insight.told else {
            continue;
        };
        let (Some(difference), [local, other, ..]) =
            (&document.difference, document.runs.as_slice())
        else {
            continue;
        };
        let heading = match (&local.tier, &other.tier) {
            (Some(from), Some(to)) => format!("{}: {from} to {to}", insight.machine()),
            _ => insight.machine().to_owned(),
        };
        let mut bars = vec![causes::by_level(
            other.workload.clone(),
            &difference.components,
            difference.slowdown_pct,
        )];
        bars.extend(difference.phases.iter().map(|phase| {
            let name = format!("its {}", phase.phase);
            causes::by_level(name, &phase.components, phase.slowdown_pct)
        }));
        match groups.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, all)) => all.extend(bars),
            None => groups.push((heading, bars)),
        }
    }
    let chart = StackChart {
        label: "Slowdown by cause".into(),
        title: "slowdown [% of the cycles on local memory]".into(),
        legend: causes::legend(causes::of_groups(&mut groups)),
        groups,
    };
    (!chart.groups.is_empty()).then(|| Drawn::new("Slowdown by cause", chart))
}

/// What each run loses by itself, and over time where it has phases.
pub fn explained(insight: &Insight) -> Vec<Drawn> {
    let Told::Explained(document) = &insight.told else {
        return Vec::new();
    };
    if !document.runs.iter().any(ExplainedRun::counts_cycles) {
        return Vec::new();
    }
    let name = document.runs.first().map_or("", |run| &run.workload);
    let bars = (document.runs.iter()).map(|run| Stack {
        name: tier_of(run),
        parts: causes::parts(&run.lost, &LEVELS),
        interval: None,
    });
    let mut groups = vec![(name.to_owned(), bars.collect())];
    let chart = StackChart {
        label: format!("Cycles that {name} loses, by cause"),
        title: "cycles lost [% of the run's own]".into(),
        legend: causes::legend(causes::of_groups(&mut groups)),
        groups,
    };
    let mut drawn = vec![Drawn::new(format!("Cycles lost by {name}"), chart)];
    drawn.extend(over_time(name, document));
    drawn
}

fn tier_of(run: &ExplainedRun) -> String {
    run.tier
        .as_ref()
        .map_or(run.workload.clone(), ToString::to_string)
}

/// The phases of each run in order, all on one axis of time: the slower run reaches further.
fn over_time(name: &str, document: &ExplainDocument) -> Option<Drawn> {
    let slower = 1.0 + document.difference.as_ref().map_or(0.0, |d| d.slowdown_pct) / 100.0;
    let mut strips: Vec<Strip> = (document.runs.iter().enumerate())
        .filter(|(_, run)| run.phases.len() > 1)
        .map(|(place, run)| Strip {
            name: format!("on {}", tier_of(run)),
            stretches: (run.phases.iter())
                .map(|phase| Stretch {
                    name: phase.phase.clone(),
                    length: phase.share_pct * if place == 0 { 1.0 } else { slower },
                    parts: causes::parts(&phase.lost, &LEVELS),
                })
                .collect(),
        })
        .collect();
    if strips.is_empty() {
        return None;
    }
    let stretches = strips.iter_mut().flat_map(|strip| &mut strip.stretches);
    let legend = causes::legend(stretches.flat_map(|stretch| &mut stretch.parts));
    let chart = StripChart {
        label: format!("What {name} loses over time"),
        x_title: "time [% of the run on the first tier]".into(),
        y_title: "cycles lost [% of the phase's own]".into(),
        legend,
        strips,
    };
    Some(Drawn::new(format!("Phases of {name}"), chart))
}
