//! Advice in words and tables.

use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::number::count;

use super::{Advised, PolicyGain};

/// The first variations are in the middle of all ranges, and near both ends of the share of stalled time, on which a gain
/// depends most.
const LEAST_VARIATIONS: u32 = 3;
/// Gains that are not worth a change.
const WORTH_PCT: f64 = 2.0;
/// A profile that lacks the rates of more of its touches does not tell.
const COARSE_PCT: f64 = 50.0;

impl Advised {
    /// The policy that gains most.
    pub fn best(&self) -> Option<&PolicyGain> {
        let others = self.policies.iter().filter(|p| p.policy != "first-touch");
        others.max_by(|a, b| a.gain_pct.total_cmp(&b.gain_pct))
    }

    /// What to do, in words.
    pub fn verdict(&self) -> String {
        let Some(best) = self.best() else {
            return "there is no policy other than first touch".into();
        };
        let PolicyGain {
            policy,
            gain_pct,
            low_pct,
            high_pct,
            ..
        } = best;
        let range = format!("{gain_pct:+.1} % over first touch ({low_pct:+.1} to {high_pct:+.1})");
        if *low_pct > 0.0 && *gain_pct >= WORTH_PCT {
            return format!("use {policy}, {range}");
        }
        let most = self.policies.iter().map(|p| p.high_pct).fold(0.0, f64::max);
        if most <= WORTH_PCT {
            return format!(
                "do not tier this: first touch is within {most:.1} % of the best policy"
            );
        }
        let why = match self.unknown_pct > COARSE_PCT {
            true => "the profile is too coarse to tell; sample accesses (--sampler events)",
            false => "the profile does not tell; give narrower ranges (--mlp, --stalled, --writes)",
        };
        format!("{why}: {policy} has {range}")
    }
}

impl Outcome for Advised {
    const SCHEMA: &'static str = "weir/tier-advice/1";
    const TITLE: &'static str = "Advice on tiering";
    const WORDS: &'static str = "What policies of page placement would gain over first touch on workloads that have the \
                                 profile, and how much fast memory they need.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let doubt = |about: &str, text: String| Verdict::new(Severity::Doubt, about, text);
        let mut all = vec![note(&self.of, self.verdict())];
        if self.unknown_pct > COARSE_PCT {
            let text = format!(
                "{:.0} % of the touches are of pages that were touched in nearly every look: how often is not known",
                self.unknown_pct
            );
            all.push(doubt("profile", text));
        }
        if self.profile_s < self.seconds {
            let text = format!(
                "it lasted {} s, and {} s are simulated: nothing is known of slower changes",
                self.profile_s, self.seconds
            );
            all.push(doubt("profile", text));
        }
        if self.variations < LEAST_VARIATIONS && self.assumed.iter().any(|of| of.low < of.high) {
            let text = format!(
                "{} {} not reach the ends of what the profile does not say, so that it may be outside of its interval; \
                 {LEAST_VARIATIONS} or more --variations do",
                count(u64::from(self.variations), "workload"),
                if self.variations == 1 { "does" } else { "do" }
            );
            all.push(doubt("gain", text));
        }
        all.push(match self.needed {
            Some(fast) => note(
                "memory",
                format!(
                    "{fast} of {} in {} are enough for a loss of {} % at most",
                    self.memory, self.fast, self.loss_pct
                ),
            ),
            None => note(
                "memory",
                format!("no size tried has a loss of {} % at most", self.loss_pct),
            ),
        });
        let text = format!(
            "medians and extremes of {} that would have the profile, over {} s; the interval is wider by what rebuilding \
             them may get wrong",
            count(u64::from(self.variations), "workload"),
            self.seconds
        );
        all.push(note("gain", text));
        if !self.sizes.is_empty() {
            let text = "by size of the memory it is that of one of these workloads, in the middle of all ranges, and by policy the \
                        median of all";
            all.push(note("loss", text.into()));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        vec![
            View::table(
                "policies",
                format!(
                    "Accesses against first touch, with {} in {}",
                    self.fast_memory, self.fast
                ),
                vec![
                    col("policy"),
                    col("gain_pct").head("gain").signed(),
                    col("low_pct").head("from").signed(),
                    col("high_pct").head("to").signed(),
                    col("rebuilt_pct").head("± rebuilt"),
                    col("loss_pct").head("loss").signed(),
                    col("local_pct").head("local"),
                ],
            ),
            View::table(
                "sizes",
                format!(
                    "Loss against all memory in {}, in the middle of all ranges",
                    self.fast
                ),
                vec![
                    col("policy"),
                    col("fast").head("memory"),
                    col("fast_pct").head("of all"),
                    col("loss_pct").head("loss").signed(),
                ],
            ),
            View::lines(
                "sizes",
                format!("Loss against all memory in {}", self.fast),
                ("fast_pct", "fast memory [% of the workload's]"),
                ("loss_pct", "loss [%]"),
                &["policy"],
            )
            .axes(Axis::Linear, Axis::Linear),
            View::table(
                "assumed",
                "What the profile does not say",
                vec![col("what"), col("low").head("from"), col("high").head("to")],
            ),
        ]
    }
}
