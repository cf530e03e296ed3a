//! What the assumed numbers do to the answers: each is set to both ends of its range while all others
//! stay as they are, and every row that depends on it is computed again.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::document::{AssumedRange, ParameterEffect, ReproduceRow, RowEffect};
use weir_model::machine::Testbed;
use weir_model::platform::{ParameterRow, Platform, Provenance};
use weir_model::published::Published;

use super::Engine;
use super::rule::{Asked, On};

/// One assumed parameter, wherever it is assumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumption {
    /// The dotted key, as in platform files.
    pub key: String,
    /// What the key means.
    pub meaning: String,
    /// The hosts and devices that assume it, and their ranges.
    pub ranges: Vec<AssumedRange>,
    /// Expressions of the platforms that are made of them.
    pub platforms: BTreeSet<String>,
}

/// One end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The lowest plausible value.
    Low,
    /// The highest.
    High,
}

impl End {
    /// The value at this end, as a platform file would have it.
    pub fn of(self, range: &AssumedRange) -> &str {
        match self {
            End::Low => &range.low,
            End::High => &range.high,
        }
    }
}

/// Opens a platform that may have one parameter at one end of its range.
pub type OpenVaried<'a> =
    dyn Fn(On, Option<(&Assumption, End)>) -> Result<Box<dyn Testbed>, String> + Sync + 'a;

/// What the assumed parameters do to the rows: the own part of a `reproduce --sensitivity` document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// Platforms used, by name, with their digests before any change.
    pub platforms: BTreeMap<String, String>,
    /// Assumed parameters, the one that matters most first.
    pub effects: Vec<ParameterEffect>,
    /// What makes the figures less than trustworthy.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// Whether it was stopped before every parameter was tried.
    #[serde(skip)]
    pub partial: bool,
}

/// Every parameter that one of these platforms assumes, by key.
pub fn assumptions<'p>(platforms: impl IntoIterator<Item = &'p Platform>) -> Vec<Assumption> {
    let mut by_key: BTreeMap<String, Assumption> = BTreeMap::new();
    for platform in platforms {
        let of_devices = platform
            .devices
            .iter()
            .flat_map(|device| device.parameters());
        let of_storage = platform
            .storage
            .iter()
            .flat_map(|device| device.parameters());
        let host = platform.host_parameters().into_iter();
        for row in host.chain(of_devices).chain(of_storage) {
            add(&mut by_key, platform, &row);
        }
    }
    by_key.into_values().collect()
}

fn add(by_key: &mut BTreeMap<String, Assumption>, platform: &Platform, row: &ParameterRow) {
    let Provenance::Assumed { low, high, .. } = &row.provenance else {
        return;
    };
    let assumption = by_key.entry(row.key.clone()).or_insert_with(|| Assumption {
        key: row.key.clone(),
        meaning: row.meaning.clone(),
        ranges: Vec::new(),
        platforms: BTreeSet::new(),
    });
    assumption.platforms.insert(platform.name.clone());
    if assumption.ranges.iter().all(|range| range.part != row.part) {
        assumption.ranges.push(AssumedRange {
            part: row.part.clone(),
            value: row.value.clone(),
            low: low.clone(),
            high: high.clone(),
        });
    }
}

/// Answers published rows with every assumption at its usual value, and again at both ends of each.
/// The engine's own way to open platforms opens the usual ones; rows that take minutes are left out.
pub fn sensitivity(
    engine: Engine<'_>,
    published: &[Published],
    assumptions: &[Assumption],
    open: &OpenVaried<'_>,
) -> Sensitivity {
    let inside = engine.lab.inside();
    let (lab, engine) = (
        engine.lab,
        Engine {
            lab: &inside,
            ..engine
        },
    );
    let mut usual = engine.rows(published);
    usual.rows.retain(|row| row.ours.is_some());
    let platforms = |asked: Vec<Asked>| asked.iter().map(|asked| asked.on.platform).collect();
    let asked: BTreeMap<&str, BTreeSet<&str>> = (engine.asks(published))
        .map(|(row, asked)| (row.id.as_str(), platforms(asked)))
        .collect();
    let mut effects = Vec::new();
    for assumption in assumptions {
        lab.step(assumptions.len());
        // Rows that are answered on a platform which makes the assumption.
        let depends = |row: &&Published| {
            let on = asked.get(row.id.as_str()).into_iter().flatten();
            usual.rows.iter().any(|ours| ours.id == row.id)
                && on.into_iter().any(|on| assumption.platforms.contains(*on))
        };
        let touched: Vec<Published> = published.iter().filter(depends).cloned().collect();
        if touched.is_empty() {
            continue;
        }
        let at = |end| {
            let varied = |on: On| open(on, Some((assumption, end)));
            let engine = Engine {
                open: &varied,
                ..engine
            };
            engine.rows(&touched)
        };
        let (low, high) = (at(End::Low), at(End::High));
        if low.partial || high.partial || lab.stopped() {
            break;
        }
        effects.push(effect(assumption, &usual.rows, &low.rows, &high.rows));
    }
    let partial = usual.partial || lab.stopped();
    effects.sort_by(|a, b| b.largest_pct.total_cmp(&a.largest_pct));
    Sensitivity {
        platforms: usual.platforms,
        effects,
        warnings: usual.warnings,
        partial,
    }
}

fn effect(
    assumption: &Assumption,
    usual: &[ReproduceRow],
    low: &[ReproduceRow],
    high: &[ReproduceRow],
) -> ParameterEffect {
    let find = |rows: &[ReproduceRow], id: &str| rows.iter().find(|row| row.id == id).cloned();
    let mut notes = BTreeSet::new();
    let mut rows: Vec<RowEffect> = Vec::new();
    for row in usual {
        let (Some(at_low), Some(at_high)) = (find(low, &row.id), find(high, &row.id)) else {
            continue;
        };
        let Some(ours) = row.ours else { continue };
        for end in [&at_low, &at_high] {
            if end.ours.is_none() && !end.note.is_empty() {
                notes.insert(end.note.clone());
            }
        }
        let (at_low, at_high) = (at_low.ours, at_high.ours);
        rows.push(RowEffect {
            id: row.id.clone(),
            published: row.published,
            ours,
            at_low,
            at_high,
            change_pct: change(ours, at_low, at_high),
        });
    }
    rows.sort_by(|a, b| b.change_pct.total_cmp(&a.change_pct));
    ParameterEffect {
        key: assumption.key.clone(),
        meaning: assumption.meaning.clone(),
        ranges: assumption.ranges.clone(),
        largest_pct: rows.first().map_or(0.0, |row| row.change_pct),
        rows,
        note: notes.into_iter().collect::<Vec<_>>().join("; "),
    }
}

/// The widest distance between any two of the three figures, in percent of the usual one.
fn change(ours: f64, low: Option<f64>, high: Option<f64>) -> f64 {
    let all = || [Some(ours), low, high].into_iter().flatten();
    let (least, most) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    if ours == 0.0 {
        0.0
    } else {
        (most - least) / ours.abs() * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_is_the_widest_distance_whichever_end_gives_it() {
        assert_eq!(change(100.0, Some(90.0), Some(130.0)), 40.0);
        assert_eq!(change(100.0, Some(110.0), Some(130.0)), 30.0);
        assert_eq!(change(-50.0, Some(-50.0), Some(-40.0)), 20.0);
        assert_eq!(change(100.0, None, Some(100.0)), 0.0);
        assert_eq!(change(0.0, Some(1.0), None), 0.0);
    }
}
