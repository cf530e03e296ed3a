//! Advice in words and tables.

use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::number::count;

use super::{Advised, FIRST, PolicyGain};
use crate::tier::profile::outcome::short;

/// The policy that is a bound for kernels, and that none has.
const OWN: &str = "payback";

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
        let others = self.policies.iter().filter(|p| p.policy != FIRST);
        others.max_by(|a, b| a.gain_pct.total_cmp(&b.gain_pct))
    }

    /// What a kernel can do, where the policy that gains most is Weir's own.
    fn of_kernels(&self) -> Option<String> {
        let best = self.best()?;
        if best.policy != OWN || best.gain_pct < WORTH_PCT {
            return None;
        }
        let others = self
            .policies
            .iter()
            .filter(|p| ![FIRST, OWN].contains(&p.policy.as_str()));
        let next = others.max_by(|a, b| a.gain_pct.total_cmp(&b.gain_pct));
        let next = next.map_or_else(String::new, |next| {
            format!("; of the others {} has most, {}", next.policy, next.range())
        });
        Some(format!(
            "no kernel has this policy, which is Weir's own: its gain is what placement could give{next}"
        ))
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
            ..
        } = best;
        let range = best.range();
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

impl PolicyGain {
    fn range(&self) -> String {
        format!(
            "{:+.1} % over first touch ({:+.1} to {:+.1})",
            self.gain_pct, self.low_pct, self.high_pct
        )
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
        all.extend(self.of_kernels().map(|text| note(OWN, text)));
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
                short(self.profile_s),
                short(self.seconds)
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
                    "{fast} of {} in {} are enough for a loss of {} % at most with {}",
                    self.memory,
                    self.fast,
                    self.loss_pct,
                    self.best().map_or(FIRST, |best| &best.policy)
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

#[cfg(test)]
mod tests {
    use weir_model::topology::TierName;
    use weir_model::units::Bytes;

    use super::*;

    fn said(gains: &[(&str, f64)]) -> String {
        let gain = |&(policy, gain): &(&str, f64)| PolicyGain {
            policy: policy.into(),
            gain_pct: gain,
            low_pct: gain - 1.0,
            high_pct: gain + 1.0,
            rebuilt_pct: 0.1,
            loss_pct: 1.0,
            local_pct: 50.0,
        };
        let advised = Advised {
            policies: gains.iter().map(gain).collect(),
            sizes: Vec::new(),
            assumed: Vec::new(),
            of: "cache1".into(),
            // Three intervals of 1.7 s.
            profile_s: 5.1 + 5e-16,
            memory: Bytes::mib(100),
            unknown_pct: 0.0,
            fast: TierName::dram(),
            slow: TierName::cxl(0),
            fast_memory: Bytes::mib(20),
            loss_pct: 5.0,
            needed: Some(Bytes::mib(20)),
            variations: 9,
            seconds: 60.0,
        };
        let (machine, topology) = Default::default();
        let about = About {
            machine: &machine,
            topology: &topology,
            warnings: &[],
        };
        let all: Vec<String> = (advised.answer(about).iter())
            .map(|verdict| format!("{}: {}", verdict.about, verdict.text))
            .collect();
        all.join("\n")
    }

    #[test]
    fn advice_for_a_policy_that_no_kernel_has_names_the_best_of_the_others() {
        let own = said(&[
            (FIRST, 0.0),
            ("tpp", 30.3),
            ("interleave:1:1", -0.1),
            (OWN, 36.1),
        ]);
        for words in [
            "cache1: use payback, +36.1 %",
            "payback: no kernel has this policy",
            "of the others tpp has most, +30.3 % over first touch (+29.3 to +31.3)",
            "for a loss of 5 % at most with payback",
            "it lasted 5.1 s, and 60 s are simulated",
        ] {
            assert!(own.contains(words), "{own}");
        }
        let other = said(&[(FIRST, 0.0), ("tpp", 30.3), (OWN, 29.0)]);
        assert!(!other.contains("no kernel"), "{other}");
        assert!(other.contains("at most with tpp"), "{other}");
    }
}
