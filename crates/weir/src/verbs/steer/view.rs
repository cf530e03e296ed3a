//! The status on a terminal: tiers, residency, the limited tenants and the reason.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use weir_model::units::GbPerSec;
use weir_steer::limit::words;
use weir_steer::readings::Role;
use weir_steer::record::{TenantRecord, WindowRecord};
use weir_steer::status::StatusDocument;

use crate::output::{WIDTH, figure, wrap};

/// Steps of a line of bars.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Windows in a line of bars.
const BACK: usize = 16;
/// Columns of a tenant's name.
const NAME: usize = 28;

/// The picture, line by line, each at most as wide as a terminal. At most `height` lines: limited tenants
/// come first, and tenants that do not fit are counted; missing capabilities come last.
pub fn view(status: &StatusDocument, height: usize) -> Vec<String> {
    let mut lines = vec![head(status)];
    match status.last() {
        None => lines.push("no window has passed yet".into()),
        Some(window) => {
            lines.extend(tiers(status, window));
            lines.extend(tiering(status));
            lines.push(String::new());
            lines.extend(why(window));
        }
    }
    lines.extend(status.troubles.iter().map(|t| format!("trouble: {t}")));
    if let Some(window) = status.last() {
        lines.push(String::new());
        let room = height.saturating_sub(lines.len()).max(3);
        lines.extend(tenants(window, room));
    }
    for lost in &status.lost {
        lines.extend(wrap(lost, "lacks: ", "  ").lines().map(str::to_owned));
    }
    lines.truncate(height.max(1));
    lines.iter().map(|line| cut(line, WIDTH)).collect()
}

fn head(status: &StatusDocument) -> String {
    let dry = if status.dry { ", none limited" } else { "" };
    format!(
        "{} under {}{dry} · {:.0} ms · {} windows, {} decisions, {} refusals",
        status.plant,
        status.controller,
        status.window_s * 1e3,
        status.windows,
        status.decisions,
        status.refusals
    )
}

fn tiers(status: &StatusDocument, window: &WindowRecord) -> Vec<String> {
    let back = || status.recent.iter().rev().take(BACK).rev();
    let mut lines = Vec::new();
    for of in [&status.tiers.fast, &status.tiers.slow, &"all".to_owned()] {
        let gbps = |w: &WindowRecord| w.gbps.get(of).map(|g| g.get());
        let tor = |w: &WindowRecord| w.tor_ns.get(of).map(|ns| ns.get());
        let mut line = fit(of, 10);
        line += &match gbps(window) {
            Some(now) => format!("{:>6} GB/s {}", figure(now), bars(0.0, back().map(gbps))),
            None => " ".repeat(12 + BACK),
        };
        line += &match tor(window) {
            Some(now) => format!("  ToR {:>6} ns {}", figure(now), bars(0.0, back().map(tor))),
            None => "  ToR not counted".into(),
        };
        lines.push(line);
    }
    let probe = |w: &WindowRecord| w.probe_ns.map(|ns| ns.get());
    if let Some(now) = probe(window) {
        lines.push(format!(
            "{}{}  load {:>5} ns {}",
            fit(&status.tiers.fast, 10),
            " ".repeat(12 + BACK),
            figure(now),
            bars(0.0, back().map(probe))
        ));
    }
    lines.push(format!(
        "{}{:>6} %    {}  level {}",
        fit("left", 10),
        figure(window.quota_pct),
        bars(100.0, back().map(|w| Some(w.quota_pct))),
        window.level
    ));
    lines
}

/// What the kernel promoted and demoted in the last second, of what it may.
fn tiering(status: &StatusDocument) -> Option<String> {
    let of = &status.tiering.as_ref()?.last;
    let rate = |rate: Option<GbPerSec>| {
        rate.map_or_else(|| "-".into(), |rate| format!("{:.3}", rate.get()))
    };
    let demoted = (of.counts.demoted).map_or_else(|| "-".into(), |pages| pages.to_string());
    Some(format!(
        "{}{} of {} GB/s ({:.0} %: {}), {demoted} pages demoted",
        fit("promoted", 10),
        rate(of.promoted_gbps),
        rate(of.in_force.promote_limit),
        of.part_pct,
        of.why
    ))
}

fn why(window: &WindowRecord) -> Vec<String> {
    let why = &window.why;
    let mut lines = vec![format!("because: {}", why.rule)];
    let compared = [
        (why.slow, "in the table"),
        (why.wait, "before the table"),
        (why.probe, "for a load of the fast tier"),
    ];
    for (time, what) in compared {
        if let (Some(time), Some(target)) = (time, why.target) {
            lines.push(format!(
                "         {time:.0} {what}, compared with {target:.0}"
            ));
        }
    }
    lines
}

fn tenants(window: &WindowRecord, room: usize) -> Vec<String> {
    let mut shown: Vec<&TenantRecord> = window.tenants.iter().collect();
    // Limited tenants first; a stable sort leaves the others in order.
    shown.sort_by_key(|tenant| tenant.held.is_free());
    let mut lines = vec![format!(
        "{} {:<10} {:>5} {:>6}  limit",
        fit("tenant", NAME),
        "role",
        "cores",
        "GB/s"
    )];
    let fits = match shown.len() < room {
        true => shown.len(),
        false => room.saturating_sub(2),
    };
    for tenant in &shown[..fits] {
        let role = match tenant.role {
            Role::Protected => "protected",
            Role::Restrained => "restrained",
            Role::Bystander => "bystander",
        };
        let held = match tenant.busy {
            true => words(&tenant.held),
            false => "idle".into(),
        };
        lines.push(format!(
            "{} {role:<10} {:>5} {:>6}  {held}",
            fit(&tenant.name, NAME),
            tenant.cores,
            tenant.gbps.map_or_else(|| "-".into(), |g| figure(g.get())),
        ));
    }
    if fits < shown.len() {
        lines.push(format!("and {} more", shown.len() - fits));
    }
    lines
}

/// A line of bars; the highest bar is the largest value, or `full` if that is larger; a gap where no value is
/// known.
fn bars(full: f64, values: impl Iterator<Item = Option<f64>>) -> String {
    let values: Vec<Option<f64>> = values.collect();
    let most = values
        .iter()
        .flatten()
        .fold(full, |most: f64, &v| most.max(v));
    let bar = |value: &Option<f64>| match value {
        Some(v) if most > 0.0 => {
            let step = (v / most * (BARS.len() - 1) as f64).round();
            BARS[(step.max(0.0) as usize).min(BARS.len() - 1)]
        }
        Some(_) => BARS[0],
        None => ' ',
    };
    let drawn: String = values.iter().map(bar).collect();
    format!("{drawn:<BACK$}")
}

/// A text in exactly this many columns; a longer one loses its middle.
fn fit(text: &str, columns: usize) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let mut text = match text.width() > columns {
        true => {
            let half = columns / 2;
            let tail: String = text.chars().rev().collect();
            let tail: String = cut(&tail, columns - half - 1).chars().rev().collect();
            format!("{}…{tail}", cut(&text, half))
        }
        false => text,
    };
    text.push_str(&" ".repeat(columns.saturating_sub(text.width())));
    text
}

/// As much of a line as fits into this many columns.
fn cut(line: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| match left.checked_sub(c.width().unwrap_or(0)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let clean = line.chars().filter(|c| !c.is_control());
    clean
        .take_while(fits)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use weir_model::units::Nanos;
    use weir_steer::record::TierNames;
    use weir_steer::{Limit, Share, Why};

    use super::*;

    pub fn window(tenants: Vec<TenantRecord>, t: f64) -> WindowRecord {
        WindowRecord {
            t_s: t,
            window_s: 0.25,
            gbps: [
                ("dram".into(), GbPerSec(84.2)),
                ("cxl0".into(), GbPerSec(24.1)),
            ]
            .into(),
            tor_ns: [("dram".into(), Nanos(121.0)), ("all".into(), Nanos(204.0))].into(),
            probe_ns: None,
            level: 1,
            quota_pct: 12.5,
            why: Why::compared("the slow tier fills the table", Nanos(1912.0), Nanos(480.0)),
            actions: Vec::new(),
            tenants,
            unseen: Vec::new(),
            sampled: None,
            tiering: None,
        }
    }

    pub fn tenant(name: &str, held: Limit) -> TenantRecord {
        TenantRecord {
            name: name.into(),
            role: Role::Restrained,
            cores: 16,
            busy: true,
            gbps: Some(GbPerSec(24.1)),
            error_pct: None,
            metric: None,
            held,
        }
    }

    pub fn status(recent: Vec<WindowRecord>) -> StatusDocument {
        StatusDocument {
            schema: StatusDocument::SCHEMA.into(),
            weir: "0".into(),
            pid: None,
            since: "2026-03-01T14:05:09Z".into(),
            plant: "host".into(),
            controller: "weir".into(),
            dry: false,
            window_s: 0.25,
            windows: 2,
            decisions: 1,
            refusals: 0,
            tiers: TierNames {
                fast: "dram".into(),
                slow: "cxl0".into(),
            },
            tenants: Vec::new(),
            lost: vec!["no counter of the table: loads from the fast tier are timed, which show that it is slow and not why".into()],
            tiering: None,
            troubles: ["no room on the disk".to_owned()].into(),
            log: None,
            metrics: None,
            recent: recent.into(),
        }
    }

    #[test]
    fn a_look_says_who_is_held_at_what_and_why() {
        let held = Limit {
            cores: Some(4),
            time: Share::of(0.5),
            ..Limit::FREE
        };
        let tenants = vec![
            tenant("unit:web.service", Limit::FREE),
            tenant("cgroup:/batch.slice", held),
        ];
        let status = status(vec![window(tenants.clone(), 0.25), window(tenants, 0.5)]);
        let expected = "\
host under weir · 250 ms · 2 windows, 1 decisions, 0 refusals
dram        84.2 GB/s ██                ToR    121 ns ██
cxl0        24.1 GB/s ██                ToR not counted
all                                     ToR    204 ns ██
left        12.5 %    ▂▂                level 1

because: the slow tier fills the table
         1912 ns in the table, compared with 480 ns
trouble: no room on the disk

tenant                       role       cores   GB/s  limit
cgroup:/batch.slice          restrained    16   24.1  4 cores, 50 % of the time
unit:web.service             restrained    16   24.1  free
lacks: no counter of the table: loads from the fast tier are timed, which show
  that it is slow and not why";
        assert_eq!(view(&status, 24).join("\n"), expected);
    }

    proptest! {
        #[test]
        fn a_look_fits_the_terminal(
            names in prop::collection::vec(".{0,60}", 0..90), trouble in ".{0,200}", height in 1usize..60
        ) {
            let tenants = names.iter().map(|name| tenant(name, Limit::FREE)).collect();
            let mut status = status(vec![window(tenants, 0.25)]);
            status.trouble(trouble);
            let lines = view(&status, height);
            prop_assert!(lines.len() <= height);
            for line in lines {
                prop_assert!(line.width() <= WIDTH, "{} {line:?}", line.width());
            }
        }
    }
}
