//! The rows of `interplay` with programs: what they mean, and how they are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::interplay::ChangeClass;

use super::pair::ProgramPair;
use crate::study::{About, Outcome};
use crate::view::{Axis, View, col};
use crate::{Severity, Verdict};

/// The rows of `interplay` with programs: the own part of a `weir/interplay-programs/1` document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramTable {
    /// One for each victim alone, and with each aggressor.
    pub pairs: Vec<ProgramPair>,
    /// The latency of victims whose requests arrive by themselves, by how many do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadPoint>,
}

/// The latency of requests at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// The victim, and what runs with it.
    pub who: String,
    /// Thousands of requests that arrive in a second.
    pub offered_k_per_s: f64,
    /// 99 % are answered within this many microseconds.
    pub p99_us: f64,
    /// The mean, in microseconds.
    pub mean_us: f64,
}

impl LoadPoint {
    /// Every victim at each load, alone, and with each aggressor.
    pub(super) fn all(pairs: &[ProgramPair]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for pair in pairs {
            let beside = pair
                .aggressor
                .as_ref()
                .map(|other| format!("{} with {other}", pair.victim));
            let alone = (Some(pair.victim.clone()), pair.ns_alone);
            for (who, ns) in [alone, (beside, pair.ns_beside)] {
                let (Some(who), Some(offered), Some(ns)) = (who, pair.offered_per_s, ns) else {
                    continue;
                };
                let Some(p99) = ns.p99 else { continue };
                let point = Self {
                    who,
                    offered_k_per_s: offered / 1e3,
                    p99_us: p99.get() / 1e3,
                    mean_us: ns.mean.get() / 1e3,
                };
                // A victim is alone once, whatever it is combined with.
                if !all.contains(&point) {
                    all.push(point);
                }
            }
        }
        all
    }
}

impl Outcome for ProgramTable {
    const SCHEMA: &'static str = "weir/interplay-programs/1";
    const TITLE: &'static str = "Programs together";
    const WORDS: &'static str = "Each row has what a program gets done alone and with another tenant, in its own metric. \
        The latency of a request is from its arrival to its answer, with the time that it waits for a free thread.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: String, text: String| Verdict::new(Severity::Note, about, text);
        let mut all = Vec::new();
        let mut beside: Vec<&ProgramPair> = self
            .pairs
            .iter()
            .filter(|p| p.aggressor.is_some() && p.change_pct.is_some())
            .collect();
        let harmed = |pair: &&&ProgramPair| pair.class.is_some_and(|c| c < ChangeClass::None);
        let change = |pair: &ProgramPair| pair.change_pct.unwrap_or(0.0);
        let at = |pair: &ProgramPair| {
            let rate = pair.offered_per_s;
            rate.map_or_else(String::new, |rate| format!(" at {rate:.0}/s"))
        };
        beside.sort_by(|a, b| {
            (a.class, a.harm_pct())
                .partial_cmp(&(b.class, b.harm_pct()))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(worst) = beside.first() {
            let harmed = beside.iter().filter(harmed).count();
            let lead = match (harmed, &worst.aggressor) {
                (0, _) if beside.iter().any(|pair| pair.is_lost_in_spread()) => format!(
                    "uncertain: repetitions of {} pairs differ by more than the change; repeat with --repeat 7 on a \
                     quiet host",
                    beside
                        .iter()
                        .filter(|pair| pair.is_lost_in_spread())
                        .count()
                ),
                (0, _) if beside.len() == 1 => "the pair loses no more than 5 %".into(),
                (0, _) => format!("of {} pairs, none loses more than 5 %", beside.len()),
                (_, aggressor) => format!(
                    "{} with {}; {harmed} of {} pairs lose more than 5 % or wait that much longer",
                    match ChangeClass::of(change(worst)) < ChangeClass::None {
                        true => format!(
                            "{} loses most, {:.1} % of its {}",
                            worst.victim,
                            -change(worst),
                            worst.unit
                        ),
                        // As many requests are answered, each later.
                        false => format!(
                            "requests of {}{} wait longest{}",
                            worst.victim,
                            at(worst),
                            worst
                                .p99_change()
                                .map_or_else(String::new, |p99| format!(", {p99},"))
                        ),
                    },
                    aggressor.as_deref().unwrap_or_default(),
                    beside.len()
                ),
            };
            all.push(note("programs".into(), lead));
        }
        for pair in &beside {
            let about = format!(
                "{}{} with {}",
                pair.victim,
                at(pair),
                pair.aggressor.as_deref().unwrap_or_default()
            );
            all.extend(pair.sentence().map(|text| note(about, text)));
        }
        let alone = || self.pairs.iter().filter(|p| p.aggressor.is_none());
        let mut victims: Vec<&String> = alone().map(|pair| &pair.victim).collect();
        victims.dedup();
        for victim in victims {
            let own = alone().filter(|pair| pair.victim == *victim);
            let words: Vec<String> = own
                .filter_map(|pair| Some(format!("{}{}", pair.alone_in_words()?, at(pair))))
                .collect();
            if !words.is_empty() {
                all.push(note(format!("{victim} alone"), words.join("; ")));
            }
        }
        for pair in &self.pairs {
            let beside = pair.aggressor.as_ref();
            let about = beside.map_or_else(
                || pair.victim.clone(),
                |other| format!("{} with {other}", pair.victim),
            );
            let failed = pair.failed.as_ref();
            all.extend(failed.map(|why| Verdict::new(Severity::Doubt, about, why.clone())));
        }
        for pair in self
            .pairs
            .iter()
            .filter(|p| p.saturated && p.aggressor.is_none())
        {
            let text = format!(
                "{:.0} {} are answered of {:.0} that arrive: the queue grows without end",
                pair.alone.unwrap_or(0.0),
                pair.unit,
                pair.offered_per_s.unwrap_or(0.0)
            );
            all.push(note(pair.victim.clone(), text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let runs = self.pairs.iter().any(|pair| pair.run_s_alone.is_some());
        let served = self.pairs.iter().any(|pair| pair.ns_alone.is_some());
        let rates = self.pairs.iter().any(|pair| pair.offered_per_s.is_some());
        let several = self.pairs.iter().any(|pair| pair.aggressor.is_some());
        let mut columns = Vec::new();
        if several {
            columns.push(col("aggressor").head("beside").empty("alone"));
        } else {
            columns.push(col("victim"));
        }
        if rates {
            columns.push(col("offered_per_s").head("arrive").places(0).if_any());
        }
        if runs {
            columns.push(col("run_s_alone").head("run\nalone").if_any());
            if several {
                columns.push(col("run_s_beside").head("run\nbeside").if_any());
            }
        }
        if self.pairs.iter().any(|pair| pair.spread_pct.is_some()) {
            columns.push(col("spread_pct").head("spread"));
        }
        columns.push(col("alone"));
        if several {
            columns.extend([
                col("beside"),
                col("change_pct").head("change").signed(),
                col("aggressor_change_pct")
                    .head("other's\nchange")
                    .signed()
                    .if_any(),
            ]);
        }
        if served {
            columns.extend([
                col("ns_alone_p50").head("p50\nalone").if_any(),
                col("ns_alone_p99").head("p99\nalone").if_any(),
            ]);
            if several {
                columns.push(col("ns_beside_p99").head("p99\nbeside").if_any());
            }
            let of = match several {
                true => ["p99_beside_low", "p99_beside_high"],
                false => ["p99_alone_low", "p99_alone_high"],
            };
            for (column, head) in of.into_iter().zip(["at\nleast", "at\nmost"]) {
                columns.push(col(column).head(head).if_any());
            }
        }
        // A table for each victim leaves room for its figures.
        let (title, each): (_, &[&str]) = match several {
            true => (
                "{victim} alone and with others, in {unit}",
                &["victim", "unit"],
            ),
            false => ("What programs get done, in {unit}", &["unit"]),
        };
        let mut views = vec![View::table("pairs", title, columns).each(each)];
        if !self.loads.is_empty() {
            let curve = View::lines(
                "loads",
                "Latency of requests by how many arrive: p99",
                (
                    "offered_k_per_s",
                    "thousands of requests that arrive a second",
                ),
                ("p99_us", "us"),
                &["who"],
            );
            views.push(curve.axes(Axis::Linear, Axis::Auto));
        }
        // Of several loads the curve says more.
        if several && !rates {
            views.push(View::bars(
                "pairs",
                "Change of what a program gets done",
                &["victim"],
                "aggressor",
                ("change_pct", "%"),
            ));
        }
        let lost = |of: &str| -> Vec<crate::view::Col> {
            let name = |part: &'static str, of: &str| match (of, part) {
                ("alone", "cpi") => "lost_alone_cpi",
                ("alone", "stores") => "lost_alone_stores",
                ("alone", "l2") => "lost_alone_l2",
                ("alone", "l3") => "lost_alone_l3",
                ("alone", _) => "lost_alone_dram",
                (_, "cpi") => "lost_beside_cpi",
                (_, "stores") => "lost_beside_stores",
                (_, "l2") => "lost_beside_l2",
                (_, "l3") => "lost_beside_l3",
                _ => "lost_beside_dram",
            };
            let heads = [
                ("cpi", "CPI"),
                ("stores", "stores"),
                ("l2", "L2"),
                ("l3", "L3"),
                ("dram", "DRAM"),
            ];
            heads
                .into_iter()
                .map(|(part, head)| col(name(part, of)).head(head))
                .collect()
        };
        if self.pairs.iter().any(|pair| pair.lost_alone.is_some()) {
            let mut columns = vec![col("victim")];
            let (of, title) = match several {
                true => (
                    "beside",
                    "Cycles of an instruction lost with others, by what they wait for",
                ),
                false => (
                    "alone",
                    "Cycles of an instruction lost, by what they wait for",
                ),
            };
            if several {
                columns.push(col("aggressor").head("beside"));
            }
            columns.extend(lost(of));
            views.push(View::table("pairs", title, columns));
        }
        views
    }
}
