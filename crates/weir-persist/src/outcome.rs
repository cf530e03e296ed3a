//! What was found, as a document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::number::count;

use crate::checker::{CounterExample, Tally};
use crate::event::hex;
use crate::platform::Platform;

/// A store in the counter-example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoreRow {
    /// Whether it had arrived in the pool.
    pub arrived: bool,
    /// The program's line, or that of the trace.
    pub store: String,
    /// Bytes from the begin of the pool.
    pub offset: u64,
    /// Its bytes, in hexadecimal digits.
    pub value: String,
}

/// The states of a program's pool after crashes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersistCheck {
    /// Stores of the counter-example that no flush had ensured; empty where there is none.
    pub stores: Vec<StoreRow>,
    /// The trace.
    pub trace: String,
    /// The rules.
    pub platform: String,
    /// Whether every state that was looked at is legal.
    pub consistent: bool,
    /// The last event before the crash of the counter-example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_after: Option<String>,
    /// The host that crashed, where hosts share the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashed_host: Option<u16>,
    /// The last mark before that crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// What recovery said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Events that were read.
    pub events: u64,
    /// Stores among them.
    pub stored: u64,
    /// Fences among them.
    pub fences: u64,
    /// Crash points that were looked at.
    pub crash_points: u64,
    /// States that recovery was asked about.
    pub states: u64,
    /// Crash points of which some states were left out.
    pub cut_short: u64,
    /// States of which recovery said nothing.
    pub unchecked: u64,
}

impl PersistCheck {
    /// What a checker found in a trace.
    pub fn of(
        trace: &str,
        platform: Platform,
        tally: Tally,
        found: Option<&CounterExample>,
    ) -> Self {
        let rows = found
            .map(|found| found.stores.as_slice())
            .unwrap_or_default();
        Self {
            stores: (rows.iter())
                .map(|store| StoreRow {
                    arrived: store.arrived,
                    store: store.place.to_string(),
                    offset: store.at,
                    value: hex(&store.bytes),
                })
                .collect(),
            trace: trace.to_owned(),
            platform: platform.name().to_owned(),
            consistent: found.is_none(),
            crash_after: found.map(|found| found.after.to_string()),
            crashed_host: found.and_then(|found| found.host),
            mark: found
                .map(|found| found.mark.clone())
                .filter(|mark| !mark.is_empty()),
            said: found.map(|found| found.said.clone()),
            // The size of the pool is the head of a trace, and no event of it.
            events: tally.events.saturating_sub(1),
            stored: tally.stores,
            fences: tally.fences,
            crash_points: tally.crash_points,
            states: tally.states,
            cut_short: tally.cut_short,
            unchecked: tally.unchecked,
        }
    }
}

impl Outcome for PersistCheck {
    const SCHEMA: &'static str = "weir/persist-check/1";
    const TITLE: &'static str = "Memory after crashes";
    const WORDS: &'static str =
        "Stores before the crash that no flush had ensured, and whether they had arrived.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let verdict = |severity, about: &str, text| Verdict::new(severity, about, text);
        let all = format!(
            "{} of {} on {}, {}",
            count(self.states, "state"),
            count(self.crash_points, "crash point"),
            self.platform,
            count(self.stored, "store")
        );
        let mut answer = match (&self.crash_after, &self.said) {
            (Some(after), Some(said)) => {
                let missing: Vec<&str> = (self.stores.iter())
                    .filter(|store| !store.arrived)
                    .map(|store| store.store.as_str())
                    .collect();
                let without = match missing[..] {
                    [] => "with all stores before it".to_owned(),
                    _ => format!("without {}", missing.join(", ")),
                };
                let who = self
                    .crashed_host
                    .map_or_else(String::new, |host| format!(" of host {host}"));
                let text = format!(
                    "a crash{who} after {after}, {without}, leaves an illegal state: {said}"
                );
                vec![
                    verdict(Severity::Note, "not consistent", text),
                    verdict(Severity::Note, "looked at until then", all),
                ]
            }
            _ if self.cut_short + self.unchecked > 0 => vec![verdict(
                Severity::Note,
                "nothing illegal was found",
                format!("not every state was looked at; {all}"),
            )],
            _ => vec![verdict(
                Severity::Note,
                "consistent",
                format!("all is legal in {all}"),
            )],
        };
        if self.cut_short > 0 {
            let text = format!(
                "of {} some states were left out: there are more than --states, or more than {} stored words of a line are under way",
                count(self.cut_short, "crash point"),
                crate::line::MOST_MISSING
            );
            answer.push(verdict(Severity::Doubt, "not all states", text));
        }
        if self.unchecked > 0 {
            let were = if self.unchecked == 1 { "was" } else { "were" };
            let text = format!(
                "{} {were} not given to the command; allow more with --images",
                count(self.unchecked, "state")
            );
            answer.push(verdict(Severity::Doubt, "not all images", text));
        }
        // Nothing is looked at behind a counter-example, where fences may be.
        if self.fences == 0 && self.consistent {
            let (lacks, text) = match Platform::named(&self.platform)
                .is_some_and(Platform::needs_sync)
            {
                true => (
                    "no sync",
                    "the trace has no `sync`, which alone ensures anything there",
                ),
                false => (
                    "no fence",
                    "the trace has nothing that waits for a flush, so that none is ever ensured",
                ),
            };
            answer.push(verdict(Severity::Doubt, lacks, text.to_owned()));
        }
        answer
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let columns = vec![
            col("arrived").head("arrived"),
            col("store").head("store"),
            col("offset").head("offset (B)"),
            col("value").head("value"),
        ];
        vec![View::table(
            "stores",
            "Stores that no flush had ensured",
            columns,
        )]
    }
}
