//! A scenario that was played, for reading and as rows.

use serde::Serialize;
use weir_model::units::GbPerSec;
use weir_steer::document::{PhaseSummary, SideSummary, SteerDocument};
use weir_steer::record::{TierNames, WindowRecord};

use super::{Column, Table, figure, wrap};

/// Rows of the table over time.
const ROWS: usize = 48;

/// What was reached, and how: windows in a row that were held alike are one row.
pub fn steer(document: &SteerDocument) -> String {
    let machine = document.header.name();
    let dry = if document.dry { ", nobody held" } else { "" };
    let mut text = wrap(
        &format!(
            "{} on {machine} under {}{dry}",
            document.scenario, document.controller
        ),
        "",
        "  ",
    );
    text.push('\n');
    text.push_str(&over_time(document));
    text.push('\n');
    text.push_str(&sides(&document.phases));
    text.push_str(&wrap(&together(document), "", "  "));
    text
}

/// Windows in a row in which the same was in force.
struct Stretch<'a> {
    windows: Vec<&'a WindowRecord>,
}

fn stretches(document: &SteerDocument) -> Vec<Stretch<'_>> {
    let mut found: Vec<Stretch<'_>> = Vec::new();
    let begins = |t: f64| {
        let near = |phase: &PhaseSummary| (phase.from_s - t).abs() < 1e-6;
        document.phases.iter().any(near)
    };
    for window in &document.windows {
        let same = |last: &&WindowRecord| {
            last.quota_pct == window.quota_pct
                && last.level == window.level
                && last.gbps.len() == window.gbps.len()
                && !begins(window.t_s - window.window_s)
        };
        let goes_on = (found.last().and_then(|s| s.windows.last())).is_some_and(same);
        match found.last_mut() {
            Some(stretch) if goes_on => stretch.windows.push(window),
            _ => found.push(Stretch {
                windows: vec![window],
            }),
        }
    }
    found
}

impl Stretch<'_> {
    fn mean(&self, of: impl Fn(&WindowRecord) -> Option<f64>) -> String {
        let known: Vec<f64> = self.windows.iter().filter_map(|w| of(w)).collect();
        if known.is_empty() {
            return "-".into();
        }
        figure(known.iter().sum::<f64>() / known.len() as f64)
    }

    fn row(&self, tiers: &TierNames) -> [String; 9] {
        let gbps = |tier: &str| self.mean(|w| w.gbps.get(tier).map(|g| g.get()));
        let tor = |of: &str| self.mean(|w| w.tor_ns.get(of).map(|ns| ns.get()));
        let first = self.windows[0];
        let last = self.windows[self.windows.len() - 1];
        [
            format!("{:.2}", first.t_s - first.window_s),
            format!("{:.2}", last.t_s),
            gbps(&tiers.fast),
            gbps(&tiers.slow),
            tor(&tiers.fast),
            tor(&tiers.slow),
            tor("all"),
            last.level.to_string(),
            figure(first.quota_pct),
        ]
    }
}

fn over_time(document: &SteerDocument) -> String {
    let TierNames { fast, slow } = &document.tiers;
    let mut table = Table::new(&[
        Column::number("from\ns"),
        Column::number("to\ns"),
        Column::number(format!("{fast}\nGB/s")),
        Column::number(format!("{slow}\nGB/s")),
        Column::number(format!("ToR {fast}\nns")),
        Column::number(format!("ToR {slow}\nns")),
        Column::number("ToR all\nns"),
        Column::number("level"),
        Column::number("left\n%"),
    ]);
    let stretches = stretches(document);
    for stretch in stretches.iter().take(ROWS) {
        table.row(stretch.row(&document.tiers));
    }
    let mut text = table.to_string();
    if stretches.len() > ROWS {
        let more = format!(
            "and {} more; --format csv has every window",
            stretches.len() - ROWS
        );
        text.push_str(&wrap(&more, "", ""));
    }
    text
}

fn sides(phases: &[PhaseSummary]) -> String {
    let mut table = Table::new(&[
        Column::number("from\ns"),
        Column::words("side"),
        Column::number("alone\nGB/s"),
        Column::number("no control\nGB/s"),
        Column::number("held\nGB/s"),
        Column::number("of alone\n%"),
        Column::number("swing\npoints"),
        Column::number("settled\nafter s"),
    ]);
    let gbps = |g: Option<GbPerSec>| g.map_or_else(|| "-".into(), |g| figure(g.get()));
    let number = |x: Option<f64>| x.map_or_else(|| "-".into(), figure);
    let mut row = |phase: &PhaseSummary, name: &str, side: &SideSummary, settled: Option<f64>| {
        if side.tenants.is_empty() {
            return;
        }
        table.row([
            figure(phase.from_s),
            name.into(),
            gbps(side.alone_gbps),
            gbps(side.free_gbps),
            gbps(side.settled_gbps),
            number(side.settled_pct_of_alone),
            number(side.swing_pct),
            settled.map_or_else(|| "-".into(), |s| format!("{s:.2}")),
        ]);
    };
    for phase in phases {
        let settled = phase.settle_s.or(phase.release_s);
        row(phase, "protected", &phase.protected, settled);
        row(phase, "restrained", &phase.restrained, settled);
    }
    table.to_string()
}

fn together(document: &SteerDocument) -> String {
    let summary = &document.summary;
    let mut told = Vec::new();
    if let (Some(fast), Some(slow)) = (
        summary.protected_pct_of_solo,
        summary.restrained_pct_of_solo,
    ) {
        told.push(format!(
            "Once settled, the protected have {fast:.1} % of what they have alone, those who may be held \
             {slow:.1} %."
        ));
    }
    told.push(match summary.settle_s {
        Some(settle) => format!("Every phase settled within {settle:.2} s."),
        None => "Not every phase settled.".into(),
    });
    if let Some(release) = summary.release_s {
        told.push(format!(
            "Without a protected tenant, all limits were removed within {release:.2} s."
        ));
    }
    told.push("\"left\" is the running that those who may be held were left.".into());
    told.join(" ")
}

/// A window, flat.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SteerRow<'a> {
    t_s: f64,
    window_s: f64,
    fast_gbps: Option<GbPerSec>,
    slow_gbps: Option<GbPerSec>,
    fast_tor_ns: Option<f64>,
    slow_tor_ns: Option<f64>,
    all_tor_ns: Option<f64>,
    level: u32,
    quota_pct: f64,
    why: &'a str,
}

/// Every window as a row.
pub fn steer_rows(document: &SteerDocument) -> impl Iterator<Item = SteerRow<'_>> {
    let TierNames { fast, slow } = &document.tiers;
    document.windows.iter().map(move |window| {
        let tor = |of: &str| window.tor_ns.get(of).map(|ns| ns.get());
        SteerRow {
            t_s: window.t_s,
            window_s: window.window_s,
            fast_gbps: window.gbps.get(fast).copied(),
            slow_gbps: window.gbps.get(slow).copied(),
            fast_tor_ns: tor(fast),
            slow_tor_ns: tor(slow),
            all_tor_ns: tor("all"),
            level: window.level,
            quota_pct: window.quota_pct,
            why: &window.why.rule,
        }
    })
}
