//! `weir tier population`: policies of page placement on workloads that are drawn at random.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{Medium, Only, View, col};
use weir_lab::{About, Lab, LabError, Outcome, Severity, Study, Verdict};
use weir_model::number::{count, percent};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_pages::{TierCurve, by_name, population};

use super::replay::{Replay, Replayed};
use super::{curves::curves_of_two, trial::bad, trial::lasts, trial::sized};

/// Policies of page placement on workloads drawn at random.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
The seed says which workloads are drawn: --seed 2 draws others.

Examples:
  weir tier population --on emr2s+cxl-a
  weir tier population --on emr2s+cxl-a --seed 2 --count 48
  weir tier population --on skx2s --slow remote --policy tpp,colloid,payback")]
pub struct Population {
    /// Workloads.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// Policies. Each is compared with the best of the others, and all with first touch [default: first-touch, tpp, alto,
    /// colloid, interleave:4:1, interleave:2:1, interleave:1:1, payback].
    #[arg(
        long = "policy",
        value_delimiter = ',',
        value_name = "POLICY",
        default_value = "first-touch,tpp,alto,colloid,interleave:4:1,interleave:2:1,interleave:1:1,payback",
        hide_default_value = true
    )]
    pub policies: Vec<String>,
    /// Memory of each workload.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = sized)]
    pub size: Bytes,
    /// Simulated time.
    #[arg(long = "for", value_name = "TIME", default_value = "150s", value_parser = lasts)]
    pub lasts: Nanos,
    /// The tier of the fast node.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub fast: TierName,
    /// The tier of the slow node.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub slow: TierName,
}

/// Policies on workloads drawn at random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The policies over all workloads.
    pub policies: Vec<Overall>,
    /// Each policy on each workload.
    pub workloads: Vec<OnOne>,
    /// Workloads.
    pub count: u32,
    /// The seed that they are drawn with.
    pub drawn_with: u64,
    /// Memory of each.
    pub size: Bytes,
    /// Simulated time in seconds.
    pub seconds: f64,
    /// The fast tier.
    pub fast: TierName,
    /// The slow tier.
    pub slow: TierName,
    /// Latency under load that the simulation used, of the fast and the slow tier.
    pub curves: [TierCurve; 2],
}

/// A policy over all workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overall {
    /// Its name.
    pub policy: String,
    /// By how much more is accessed in a second than under first touch: the geometric mean.
    #[schemars(extend("x-unit" = "%"))]
    pub gain_pct: f64,
    /// Its accesses against those of the best of the other policies, on the workload where that is least.
    #[schemars(extend("x-unit" = "%"))]
    pub least_pct: f64,
    /// Workloads on which it is below the best of the others by more than 1 %.
    pub below: u32,
    /// Workloads on which it is above the best of the others.
    pub best: u32,
}

/// A policy on a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnOne {
    /// The workload.
    pub workload: String,
    /// Memory of the fast tier, of that of the workload.
    #[schemars(extend("x-unit" = "%"))]
    pub fast_pct: f64,
    /// The policy.
    pub policy: String,
    /// By how much more it accesses in a second than first touch.
    #[schemars(extend("x-unit" = "%"))]
    pub gain_pct: f64,
    /// Its accesses against those of the best of the other policies.
    #[schemars(extend("x-unit" = "%"))]
    pub against_best_pct: f64,
    /// Share of accesses that the fast tier served.
    #[schemars(extend("x-unit" = "%"))]
    pub local_pct: f64,
}

const FIRST: &str = "first-touch";
/// A difference that counts.
const BELOW_PCT: f64 = -1.0;

fn than(a: f64, b: f64) -> f64 {
    (a / b.max(1e-12) - 1.0) * 100.0
}

impl Population {
    /// First touch, and the policies that were asked for.
    fn names(&self) -> Result<Vec<&str>, LabError> {
        let mut names = vec![FIRST];
        for name in &self.policies {
            by_name(name).map_err(bad)?;
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        match names.len() {
            1 => Err(LabError::Nothing(
                "name a policy besides first-touch".into(),
            )),
            _ => Ok(names),
        }
    }
}

/// The policies on a workload, in the order of what each did; the first one is first touch.
fn on_one(workload: &str, fast: f64, names: &[&str], did: &[Replayed]) -> Vec<OnOne> {
    let speeds = || did.iter().map(|got| got.maccesses_per_s).enumerate();
    let row = |(n, name): (usize, &&str)| {
        let others = speeds().filter(|(other, _)| *other != n);
        OnOne {
            workload: workload.into(),
            fast_pct: 100.0 * fast,
            policy: (*name).into(),
            gain_pct: than(did[n].maccesses_per_s, did[0].maccesses_per_s),
            against_best_pct: than(
                did[n].maccesses_per_s,
                others.map(|(_, speed)| speed).fold(0.0, f64::max),
            ),
            local_pct: did[n].local_pct,
        }
    };
    names.iter().enumerate().map(row).collect()
}

impl Overall {
    fn of(policy: &str, rows: &[OnOne]) -> Self {
        let own: Vec<&OnOne> = rows.iter().filter(|row| row.policy == policy).collect();
        let logs: f64 = own.iter().map(|row| (row.gain_pct / 100.0).ln_1p()).sum();
        let count = |is: &dyn Fn(f64) -> bool| {
            own.iter().filter(|row| is(row.against_best_pct)).count() as u32
        };
        Self {
            policy: policy.into(),
            gain_pct: (logs / own.len().max(1) as f64).exp_m1() * 100.0,
            least_pct: (own.iter().map(|row| row.against_best_pct)).fold(f64::INFINITY, f64::min),
            below: count(&|pct| pct < BELOW_PCT),
            best: count(&|pct| pct > 0.0),
        }
    }
}

impl Compared {
    /// The policies by falling gain.
    fn order(&self) -> Vec<&Overall> {
        let mut order: Vec<&Overall> = self.policies.iter().collect();
        order.sort_by(|a, b| b.gain_pct.total_cmp(&a.gain_pct));
        order
    }
}

impl Study for Population {
    const VERB: &'static str = "tier population";
    type Output = Compared;

    fn run(&self, lab: &Lab<'_>) -> Result<Compared, LabError> {
        let names = self.names()?;
        let curves = curves_of_two(lab, &[self.fast.clone(), self.slow.clone()])?;
        let drawn: Vec<population::Drawn> = (0..self.count)
            .map(|n| population::draw(lab.seed(), u64::from(n), self.size))
            .collect();
        let asks: Vec<Replay> = drawn
            .iter()
            .flat_map(|drawn| names.iter().map(move |name| (drawn, *name)))
            .map(|(drawn, name)| Replay {
                workload: drawn.workload.clone(),
                policy: name.into(),
                fast: Some(drawn.fast_memory()),
                seconds: self.lasts.as_secs(),
                curves: curves.clone(),
                seed: lab.seed(),
                version: weir_pages::VERSION,
            })
            .collect();
        let done = lab.ask_all(&asks)?;
        let workloads: Vec<OnOne> = (drawn.iter().zip(done.chunks(names.len())))
            .flat_map(|(of, did)| on_one(&of.workload.name, of.fast, &names, did))
            .collect();
        Ok(Compared {
            policies: (names.iter())
                .map(|name| Overall::of(name, &workloads))
                .collect(),
            workloads,
            count: self.count,
            drawn_with: lab.seed(),
            size: self.size,
            seconds: self.lasts.as_secs(),
            fast: self.fast.clone(),
            slow: self.slow.clone(),
            curves,
        })
    }
}

impl Outcome for Compared {
    const SCHEMA: &'static str = "weir/tier-population/1";
    const TITLE: &'static str = "Tiering of drawn workloads";
    const WORDS: &'static str = "Policies of page placement on workloads that are drawn at random, each with a fast tier of its \
                                 own size.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let order = self.order();
        let (Some(best), Some(next)) = (order.first(), order.get(1)) else {
            return Vec::new();
        };
        let what = count(u64::from(self.count), "workload");
        // What a table with one decimal does not tell apart.
        let alike: Vec<&str> = (order.iter())
            .filter(|policy| best.gain_pct - policy.gain_pct < 0.05)
            .map(|policy| policy.policy.as_str())
            .collect();
        let gain = match (alike.contains(&FIRST), alike.as_slice()) {
            (true, [_]) => format!(
                "no policy gains over first touch in the geometric mean; {} comes closest, {} %",
                next.policy,
                percent(next.gain_pct)
            ),
            (true, _) => {
                "no policy gains over first touch in the geometric mean, by 0.05 % or more".into()
            }
            (false, [_]) => format!(
                "{} gains {:.1} % over first touch in the geometric mean, {:.1} % more than {}, the next best policy",
                best.policy,
                best.gain_pct,
                than(100.0 + best.gain_pct, 100.0 + next.gain_pct),
                next.policy
            ),
            (false, alike) => format!(
                "{} gain {:.1} % over first touch in the geometric mean, and differ by less than 0.05 %",
                alike.join(", "),
                best.gain_pct
            ),
        };
        let mut all = vec![Verdict::new(Severity::Note, what.as_str(), gain)];
        let rows = self
            .workloads
            .iter()
            .filter(|row| row.policy == best.policy);
        let least = rows.min_by(|a, b| a.against_best_pct.total_cmp(&b.against_best_pct));
        if let Some(least) = least.filter(|_| best.below > 0) {
            let text = format!(
                "on {} of them another policy is more than 1 % better, by most on {} ({:+.1} %)",
                best.below, least.workload, least.against_best_pct
            );
            all.push(Verdict::new(Severity::Doubt, best.policy.as_str(), text));
        }
        let text = format!(
            "of {} each, over {} s, drawn with seed {}",
            self.size, self.seconds, self.drawn_with
        );
        all.push(Verdict::new(Severity::Note, what.as_str(), text));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let title = "Accesses against first touch";
        let best = self.order().first().map_or(FIRST, |best| &best.policy);
        vec![
            View::table(
                "policies",
                title,
                vec![
                    col("policy"),
                    col("gain_pct").head("gain").signed(),
                    col("best").head("best on"),
                    col("below").head("below on"),
                    col("least_pct").head("least").signed(),
                ],
            )
            .words("`below on`: workloads on which the best other policy is more than 1 % better; `least`: against it, where worst."),
            View::table(
                "workloads",
                format!("{best} by workload"),
                vec![
                    col("workload"),
                    col("fast_pct").head("fast memory"),
                    col("gain_pct").head("gain").signed(),
                    col("against_best_pct").head("against best other").signed(),
                    col("local_pct").head("local"),
                ],
            )
            .only(Only::Is("policy", best.into())),
            View::grid("workloads", title, "workload", &["policy"], "gain_pct").on(Medium::Page),
        ]
    }
}

#[cfg(test)]
mod tests {
    use weir_model::machine::Identity;
    use weir_model::topology::Topology;
    use weir_model::units::GbPerSec;

    use super::*;

    fn said(gains: &[(&str, f64)]) -> String {
        let overall = |(policy, gain_pct): &(&str, f64)| Overall {
            policy: (*policy).into(),
            gain_pct: *gain_pct,
            least_pct: 0.0,
            below: 0,
            best: 0,
        };
        let curve = |ns| TierCurve::of_queue(Nanos(ns), GbPerSec(100.0));
        let compared = Compared {
            policies: gains.iter().map(overall).collect(),
            workloads: Vec::new(),
            count: 3,
            drawn_with: 1,
            size: Bytes::gib(1),
            seconds: 9.0,
            fast: "dram".parse().unwrap(),
            slow: "cxl0".parse().unwrap(),
            curves: [curve(100.0), curve(200.0)],
        };
        let about = About {
            machine: &Identity::default(),
            topology: &Topology::default(),
            warnings: &[],
        };
        compared.answer(about)[0].text.clone()
    }

    #[test]
    fn policies_that_do_as_well_are_named_together() {
        assert_eq!(
            said(&[
                (FIRST, 0.0),
                ("tpp", 6.14),
                ("alto", 6.15),
                ("payback", 6.12),
                ("colloid", 5.0)
            ]),
            "alto, tpp, payback gain 6.2 % over first touch in the geometric mean, and differ by less than 0.05 %"
        );
        assert!(
            said(&[(FIRST, 0.0), ("tpp", 0.001), ("alto", 0.0)]).starts_with("no policy gains")
        );
        assert!(said(&[(FIRST, 0.0), ("tpp", 6.0), ("alto", 4.0)]).starts_with("tpp gains 6.0 %"));
        assert!(said(&[(FIRST, 0.0), ("tpp", -6.0)]).ends_with("tpp comes closest, -6.0 %"));
    }
}
