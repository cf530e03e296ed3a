//! A profile in words, tables and pictures.

use weir_lab::view::{Axis, Medium, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::units::Bytes;
use weir_pages::PageKind;

use super::{Profile, ProfileInterval, ProfileSource};

/// Rows of a table before it is cut.
const ROWS: usize = 12;
/// Rows of touch rates before they are cut.
const RATES: usize = 40;

fn named(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Anon => "anonymous memory",
        PageKind::File => "file pages",
    }
}

impl Profile {
    /// The last interval of a type.
    fn last(&self, kind: PageKind) -> Option<&ProfileInterval> {
        self.intervals.iter().rfind(|row| row.kind == kind)
    }

    fn temperature(&self) -> Option<String> {
        let last: Vec<&ProfileInterval> = PageKind::ALL
            .into_iter()
            .filter_map(|kind| self.last(kind))
            .collect();
        let sum = |of: fn(&ProfileInterval) -> Bytes| last.iter().map(|row| of(row)).sum::<Bytes>();
        let all = sum(|row| row.allocated);
        if all.get() == 0 {
            return None;
        }
        let share = |of: Bytes| 100.0 * of.get() as f64 / all.get() as f64;
        let mut text = format!(
            "of {all} at the end, {:.1} % is hot (touched in the last {} s), {:.1} % warm (in the last {} s) and {:.1} % cold",
            share(sum(|row| row.hot)),
            short(self.hot_s),
            share(sum(|row| row.warm)),
            short(self.warm_s),
            share(sum(|row| row.cold)),
        );
        let both = last.iter().filter(|row| row.allocated.get() > 0);
        let both: Vec<String> = both
            .map(|row| {
                let hot = 100.0 * row.hot.get() as f64 / row.allocated.get() as f64;
                format!("{hot:.1} % of {} is hot", named(row.kind))
            })
            .collect();
        if both.len() > 1 {
            text.push_str(&format!("; {}", both.join(", ")));
        }
        Some(text)
    }
}

/// Seconds to a thousandth: `6`, `0.6`.
pub(in crate::tier) fn short(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

impl Outcome for Profile {
    const SCHEMA: &'static str = "weir/tier-profile/1";
    const TITLE: &'static str = "Touched pages";
    const WORDS: &'static str = "Which memory was touched how often, by the kind of page: hot, warm and cold memory over time, and the addresses \
                                 that were touched.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let doubt = |about: &str, text: String| Verdict::new(Severity::Doubt, about, text);
        let mut all = Vec::new();
        match self.temperature() {
            Some(text) => all.push(note(&self.of, text)),
            None => all.push(doubt(&self.of, "no allocated memory was seen".into())),
        }
        if self.seconds < self.warm_s {
            let text = format!(
                "it lasted {0} s: what is cold was not touched in these {0} s, and may have been in the last {1} s",
                short(self.seconds),
                short(self.warm_s)
            );
            all.push(doubt("profile", text));
        }
        all.push(note("seen by", self.how.clone()));
        if let Some(most) = self.most_per_s {
            let text = format!("at most {most:.3} of a page in a second can be distinguished");
            all.push(note("touches", text));
        }
        if self.source == ProfileSource::Trace {
            let text = "memory counts as allocated from its first access in the trace";
            all.push(note("allocated", text.into()));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let line = |y: &'static str, title: &str| {
            View::lines(
                "intervals",
                format!("{title}: {}", self.of),
                ("t_s", "time [s]"),
                (y, "share of allocated memory [%]"),
                &["kind"],
            )
            .axes(Axis::Linear, Axis::Linear)
        };
        vec![
            View::table(
                "within",
                "Memory touched in the last seconds, on average",
                vec![
                    col("kind"),
                    col("last_s").head("last"),
                    col("touched"),
                    col("touched_pct").head("of allocated"),
                ],
            ),
            View::table(
                "reaccess",
                "Touches by the time since the touch before (none: first touches)",
                vec![
                    col("kind"),
                    col("after_s").head("more than").empty("none"),
                    col("until_s").head("at most").empty("none"),
                    col("touched").head("touched,\nall intervals"),
                    col("share_pct").head("share"),
                ],
            ),
            View::table(
                "rates",
                "Memory by touches of a page in a second",
                vec![
                    col("region"),
                    col("kind"),
                    col("from_per_s").head("from").places(3),
                    col("to_per_s").head("to").places(3),
                    col("mean_per_s").head("mean").places(3),
                    col("memory"),
                    col("memory_pct").head("of region"),
                    col("touches_pct").head("of touches"),
                ],
            )
            .at_most(RATES),
            View::table(
                "intervals",
                "Memory by interval",
                vec![
                    col("t_s").head("t"),
                    col("kind"),
                    col("allocated"),
                    col("touched"),
                    col("hot"),
                    col("warm"),
                    col("cold"),
                ],
            )
            .at_most(ROWS),
            line("hot_pct", "Hot memory"),
            line("cold_pct", "Cold memory"),
            View::lines(
                "intervals",
                format!("Allocated memory: {}", self.of),
                ("t_s", "time [s]"),
                ("allocated", "allocated [bytes]"),
                &["kind"],
            )
            .axes(Axis::Linear, Axis::Sizes),
            View::grid(
                "heat",
                format!(
                    "Memory touched in an interval, by address and time: {}",
                    self.of
                ),
                "address",
                &["t_s"],
                "touched_pct",
            )
            .rows_are("from address")
            .on(Medium::Page),
        ]
    }
}
