//! The checks, and the verdict that follows from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::disturbance::worst;
use weir_model::frame::Frame;
use weir_model::number::{count, figure};
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Nanos};

use super::expected::{Expected, PlatformLike, What};
use crate::study::{About, Outcome, lists};
use crate::view::{Medium, Only, View, col};
use crate::{Severity, Verdict};

/// A figure that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"value": "ci95"}))]
pub struct Figure {
    /// The tier.
    pub tier: TierName,
    /// Which figure.
    pub what: What,
    /// Its unit.
    pub unit: String,
    /// Absent where it could not be measured.
    pub value: Option<f64>,
    /// Half of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<f64>,
    /// Why it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What the firmware reports of a tier (HMAT, access class 0).
#[derive(Debug, Clone, PartialEq)]
pub struct Firmware {
    /// The tier.
    pub tier: TierName,
    /// Latency of a read.
    pub latency: Option<Nanos>,
    /// Bandwidth of reads.
    pub read: Option<GbPerSec>,
    /// Bandwidth of writes.
    pub write: Option<GbPerSec>,
}

/// What the machine did in an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct Before {
    /// The run, as it is called in the answer.
    pub run: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// How much worse a figure may be, as a share.
    pub worse: f64,
    /// Whether it was a quick run of `weir accept`; `None` of another verb.
    pub quick: Option<bool>,
}

/// A figure against what is expected of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The tier.
    pub tier: TierName,
    /// Which figure.
    pub what: What,
    /// Its unit.
    pub unit: String,
    /// The least that is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// What was measured; absent where it could not be.
    pub found: Option<f64>,
    /// What expects it.
    pub source: String,
    /// Whether it is as expected.
    pub passed: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Whether a server is what was bought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// What it should be, by the file.
    pub summary: String,
    /// Everything that was measured.
    pub figures: Vec<Figure>,
    /// Everything that was expected.
    pub checks: Vec<Check>,
}

impl Acceptance {
    /// Whether something was expected, and all of it is so.
    pub fn passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.passed)
    }

    /// Whether a disturbance may be why figures are not as expected: it makes latencies longer and bandwidths smaller.
    fn explained_by(&self, disturbance: &str) -> String {
        let is_worse = |check: &&Check| match (check.what, check.found) {
            (What::Latency, Some(found)) => check.most.is_some_and(|most| found > most),
            (What::Read | What::Write, Some(found)) => {
                check.least.is_some_and(|least| found < least)
            }
            _ => false,
        };
        let wrong = self.checks.iter().filter(|check| !check.passed);
        let (all, explained) = (wrong.clone().count(), wrong.filter(is_worse).count());
        let part = match explained {
            _ if all == 0 => "",
            0 => ", which explains none of them",
            _ if explained == all => ", which may be why",
            _ => ", which may be why for some",
        };
        format!("; the machine was disturbed{part}: {disturbance}")
    }
}

/// The figure of a tier, where it was measured.
fn found<'a>(figures: &'a [Figure], tier: &TierName, what: What) -> Option<&'a Figure> {
    let mut own = figures.iter().filter(|figure| figure.tier == *tier);
    own.find(|figure| figure.what == what)
}

fn check(
    (tier, what): (&TierName, What),
    (least, most): (Option<f64>, Option<f64>),
    figures: &[Figure],
    source: String,
) -> Check {
    let figure = found(figures, tier, what);
    let value = figure.and_then(|figure| figure.value);
    let why = match (figure, value) {
        (None, _) => Some(format!("this machine has no tier {tier}")),
        (Some(figure), None) => {
            let unknown = || "it could not be measured".to_owned();
            Some(figure.error.clone().unwrap_or_else(unknown))
        }
        (_, Some(value)) => {
            let off = |bound: f64| 100.0 * (value / bound - 1.0).abs();
            let low = least.filter(|&least| value < least);
            let high = most.filter(|&most| value > most);
            low.map(|bound| format!("{:.1} % too low", off(bound)))
                .or_else(|| high.map(|bound| format!("{:.1} % too high", off(bound))))
        }
    };
    Check {
        tier: tier.clone(),
        what,
        unit: what.unit().to_owned(),
        least,
        most,
        found: value,
        source,
        passed: why.is_none(),
        why,
    }
}

/// What a file promises.
pub fn promised(expected: &Expected, figures: &[Figure]) -> Vec<Check> {
    let one = |promise: &super::Promised| {
        let bound = Some(promise.bound);
        let bounds = match promise.what {
            What::Latency => (None, bound),
            What::Read | What::Write | What::Capacity => (bound, None),
        };
        let source = promise.source.clone();
        check((&promise.tier, promise.what), bounds, figures, source)
    };
    expected.promised.iter().map(one).collect()
}

/// A figure that may differ to both sides: placement that follows a figure which is too good is wrong as well.
fn near(
    (tier, what): (&TierName, What),
    wanted: f64,
    within: f64,
    figures: &[Figure],
    source: &str,
) -> Check {
    let bounds = (Some(wanted / (1.0 + within)), Some(wanted * (1.0 + within)));
    let source = format!("{source}: {wanted:.1}");
    check((tier, what), bounds, figures, source)
}

/// What the firmware says. A tier of which it says nothing has no check.
pub fn of_firmware(firmware: &[Firmware], within: f64, figures: &[Figure]) -> Vec<Check> {
    let mut all = Vec::new();
    for said in firmware {
        let three = [
            (What::Latency, said.latency.map(|ns| ns.get())),
            (What::Read, said.read.map(|gbps| gbps.get())),
            (What::Write, said.write.map(|gbps| gbps.get())),
        ];
        for (what, wanted) in three {
            if let Some(wanted) = wanted {
                let of = (&said.tier, what);
                all.push(near(of, wanted, within, figures, "HMAT"));
            }
        }
    }
    all
}

/// What a platform does. Its capacity is that of the machine that was described, and no expectation.
pub fn like(wanted: &PlatformLike, theirs: &[Figure], figures: &[Figure]) -> Vec<Check> {
    let known = (theirs.iter()).filter(|figure| figure.what != What::Capacity);
    let one = |figure: &Figure| {
        let value = figure.value?;
        let of = (&figure.tier, figure.what);
        Some(near(of, value, wanted.within, figures, &wanted.name))
    };
    known.filter_map(one).collect()
}

/// By how much a figure may be worse by chance: both intervals.
fn noise(then: &Figure, now: Option<&Figure>) -> f64 {
    then.ci95.unwrap_or(0.0) + now.and_then(|now| now.ci95).unwrap_or(0.0)
}

/// The figures whose intervals allow more than [`Before::worse`], each with what they allow.
pub fn scattered(before: &Before, figures: &[Figure]) -> Vec<String> {
    let one = |then: &Figure| {
        let now = found(figures, &then.tier, then.what).filter(|now| now.value.is_some());
        let share = noise(then, Some(now?)) / then.value?;
        let percent = figure(share * 100.0);
        (share > before.worse).then(|| format!("{} {} by {percent} %", then.tier, then.what))
    };
    before.figures.iter().filter_map(one).collect()
}

/// What the machine did before: no figure may be worse by more than is allowed and by more than both intervals.
pub fn since(before: &Before, figures: &[Figure]) -> Vec<Check> {
    let one = |then: &Figure| {
        let value = then.value?;
        let now = found(figures, &then.tier, then.what);
        let allowed = (before.worse * value).max(noise(then, now));
        let bounds = match then.what {
            What::Latency => (None, Some(value + allowed)),
            What::Read | What::Write | What::Capacity => (Some(value - allowed), None),
        };
        let source = format!("{}: {value:.1}", before.run);
        Some(check((&then.tier, then.what), bounds, figures, source))
    };
    before.figures.iter().filter_map(one).collect()
}

/// Charts on the page, each of figures in one unit.
const CHARTS: [(&str, &str, &[&str]); 2] = [
    ("Latency", "ns", &["latency"]),
    ("Bandwidth", "GB/s", &["read", "write"]),
];

/// A figure, or a bound of it, as a bar.
#[derive(Serialize, JsonSchema)]
struct BarRow {
    /// The tier.
    tier: TierName,
    /// Which figure.
    what: What,
    /// `measured`, `at least` or `at most`.
    by: &'static str,
    /// In the figure's unit.
    value: f64,
}

impl Acceptance {
    /// What was measured, and the strictest bounds of it.
    fn bars(&self) -> Vec<BarRow> {
        let of = |figure: &Figure| {
            let checks = || {
                self.checks
                    .iter()
                    .filter(|c| c.tier == figure.tier && c.what == figure.what)
            };
            [
                ("measured", figure.value),
                (
                    "at least",
                    checks().filter_map(|check| check.least).reduce(f64::max),
                ),
                (
                    "at most",
                    checks().filter_map(|check| check.most).reduce(f64::min),
                ),
            ]
            .into_iter()
            .filter_map(|(by, value)| {
                Some(BarRow {
                    tier: figure.tier.clone(),
                    what: figure.what,
                    by,
                    value: value?,
                })
            })
            .collect::<Vec<_>>()
        };
        self.figures.iter().flat_map(of).collect()
    }
}

impl Outcome for Acceptance {
    const SCHEMA: &'static str = "weir/accept/1";
    const TITLE: &'static str = "Acceptance";
    const WORDS: &'static str = "Idle latency, best bandwidth and capacity of each tier, against what was expected of them.";

    fn answer(&self, about: About<'_>) -> Vec<Verdict> {
        let (right, all) = (
            self.checks.iter().filter(|check| check.passed).count(),
            self.checks.len(),
        );
        let of = match self.summary.as_str() {
            "" => String::new(),
            summary => format!(" ({summary})"),
        };
        // A capacity is read, not measured.
        let measured = self.figures.iter().filter(|f| f.what != What::Capacity);
        let none = measured.clone().all(|figure| figure.value.is_none());
        let missing = measured.filter(|figure| figure.value.is_none()).count();
        let text = match (all, self.passed()) {
            _ if none => format!("no figure was taken{of}"),
            (0, _) if missing > 0 => {
                format!("{} could not be taken{of}", count(missing as u64, "figure"))
            }
            (0, _) => format!(
                "measured{of}: nothing is expected of this machine yet; --against names a file, --baseline this run later"
            ),
            (1, true) => format!("passed: the figure is as expected{of}"),
            (_, true) => format!("passed: all {all} figures are as expected{of}"),
            (1, false) => format!("failed: the figure is not as expected{of}"),
            (_, false) => format!("failed: {right} of {all} figures are as expected{of}"),
        };
        let text = match worst(about.warnings) {
            Some(what) if !self.passed() => text + &self.explained_by(what),
            _ => text,
        };
        let mut verdicts = vec![Verdict::new(Severity::Note, "accept", text)];
        let wrong = self.checks.iter().filter(|check| !check.passed);
        verdicts.extend(wrong.map(|check| {
            let why = check.why.as_deref().unwrap_or_default();
            let text = match (check.found, check.least, check.most) {
                (Some(found), least, most) => {
                    let bound = match (least.filter(|&least| found < least), most) {
                        (Some(least), _) => format!("at least {least:.1}"),
                        (None, Some(most)) => format!("at most {most:.1}"),
                        (None, None) => String::new(),
                    };
                    format!(
                        "{found:.1} {}, {why}: {bound} is expected by {}",
                        check.unit, check.source
                    )
                }
                _ => format!("{why}; it is expected by {}", check.source),
            };
            let about = format!("{} {}", check.tier, check.what);
            Verdict::new(Severity::Doubt, about, text)
        }));
        verdicts
    }

    /// Checks are the main list, and figures where there are none.
    fn frames(&self) -> Vec<Frame> {
        let mut all = lists(self);
        let main = match self.checks.is_empty() {
            true => "figures",
            false => "checks",
        };
        all.sort_by_key(|list| list.name != main);
        all.push(Frame::of("bars", &self.bars()));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let checks = View::table(
            "checks",
            "Figures against what is expected",
            vec![
                col("tier"),
                col("what").head("figure"),
                col("found"),
                col("least").if_any(),
                col("most").if_any(),
                col("unit"),
                col("source"),
                col("passed"),
            ],
        );
        let figures = View::table(
            "figures",
            "Figures",
            vec![
                col("tier"),
                col("what").head("figure"),
                col("value"),
                col("unit"),
                col("error").if_any(),
            ],
        );
        let mut all = match self.checks.is_empty() {
            true => vec![figures],
            false => vec![checks, figures.on(Medium::Page)],
        };
        all.extend(CHARTS.map(|(title, axis, whats)| {
            View::bars("bars", title, &["tier", "what"], "by", ("value", axis))
                .only(Only::OneOf("what", whats))
        }));
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn figure(what: What, value: f64) -> Figure {
        Figure {
            tier: TierName::cxl(0),
            what,
            unit: what.unit().into(),
            value: Some(value),
            ci95: None,
            error: None,
        }
    }

    proptest! {
        /// A better figure never fails where a worse one passes.
        #[test]
        fn better_is_never_refused(bound in 1.0_f64..1e3, found in 1.0_f64..1e3, more in 0.0_f64..1e3) {
            for what in What::ALL {
                let expected = Expected {
                    promised: vec![super::super::Promised {
                        tier: TierName::cxl(0), what, bound, source: "a data sheet".into(),
                    }],
                    ..Expected::default()
                };
                let before = Before { run: "run 1".into(), figures: vec![figure(what, bound)], worse: 0.05, quick: None };
                let better = match what {
                    What::Latency => (found - more).max(0.1),
                    What::Read | What::Write | What::Capacity => found + more,
                };
                let (found, better) = ([figure(what, found)], [figure(what, better)]);
                prop_assert!(!promised(&expected, &found)[0].passed || promised(&expected, &better)[0].passed);
                prop_assert!(!since(&before, &found)[0].passed || since(&before, &better)[0].passed);
            }
        }

        /// Whether two figures are near does not depend on which of them is the one that is expected.
        #[test]
        fn nearness_is_symmetric(a in 1.0_f64..1e3, b in 1.0_f64..1e3, within in 0.01_f64..1.0) {
            let wanted = PlatformLike { name: "emr2s".into(), at: 0, within };
            let (one, other) = ([figure(What::Read, a)], [figure(What::Read, b)]);
            // At the very edge the last digit decides.
            prop_assume!(((a / b).max(b / a) / (1.0 + within) - 1.0).abs() > 1e-9);
            prop_assert_eq!(like(&wanted, &one, &other)[0].passed, like(&wanted, &other, &one)[0].passed);
        }
    }

    #[test]
    fn a_tier_that_is_missing_and_a_figure_that_failed_are_no_pass() {
        let expected = Expected::read(
            "x.toml",
            "kind = \"acceptance\"\n[[tier]]\nname = \"cxl1\"\nread = \"20 GB/s\"\nsource = \"order\"\n",
        );
        let expected = expected.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let checks = promised(&expected, &[figure(What::Read, 30.0)]);
        assert!(
            !checks[0].passed && checks[0].why.as_deref() == Some("this machine has no tier cxl1")
        );
        let broken = Figure {
            tier: TierName::cxl(1),
            value: None,
            error: Some("no memory".into()),
            ..figure(What::Read, 0.0)
        };
        let checks = promised(&expected, &[broken]);
        assert!(!checks[0].passed && checks[0].why.as_deref() == Some("no memory"));
    }

    /// A baseline that scatters lets every server pass, which is said.
    #[test]
    fn intervals_that_are_wider_than_what_may_be_lost_are_named() {
        let before = |ci95| Before {
            run: "run 1".into(),
            figures: vec![Figure {
                ci95: Some(ci95),
                ..figure(What::Read, 20.0)
            }],
            worse: 0.05,
            quick: None,
        };
        let now = [figure(What::Read, 12.0)];
        assert!(since(&before(9.0), &now)[0].passed);
        assert_eq!(scattered(&before(9.0), &now), ["cxl0 read by 45.0 %"]);
        assert_eq!(scattered(&before(0.9), &now), [""; 0]);
    }

    #[test]
    fn a_failure_on_a_disturbed_machine_says_so_first() {
        let said = |what, passed, bounds: (Option<f64>, Option<f64>)| {
            let check = Check {
                tier: TierName::dram(),
                what,
                unit: what.unit().into(),
                least: bounds.0,
                most: bounds.1,
                found: Some(100.0),
                source: "data sheet".into(),
                passed,
                why: None,
            };
            let found = Acceptance {
                summary: String::new(),
                figures: vec![figure(what, 100.0)],
                checks: vec![check],
            };
            let (machine, topology) = Default::default();
            let warnings = [weir_model::disturbance::waited(1, 0.62)];
            let about = About {
                machine: &machine,
                topology: &topology,
                warnings: &warnings,
            };
            found.answer(about)[0].text.clone()
        };
        let slow = said(What::Latency, false, (None, Some(90.0)));
        let disturbed = "; the machine was disturbed, which may be why: the thread on CPU 1 waited for its processor 62 % of";
        assert!(
            slow.starts_with("failed: ") && slow.contains(disturbed),
            "{slow}"
        );
        let fast = said(What::Read, false, (None, Some(90.0)));
        assert!(
            fast.contains("disturbed, which explains none of them: "),
            "{fast}"
        );
        let passed = said(What::Latency, true, (None, Some(110.0)));
        assert!(!passed.contains("disturbed"), "{passed}");
    }

    #[test]
    fn an_answer_without_a_measured_figure_says_so() {
        let none = Figure {
            value: None,
            ..figure(What::Read, 0.0)
        };
        let said = |figures: Vec<Figure>| {
            let found = Acceptance {
                summary: String::new(),
                checks: Vec::new(),
                figures,
            };
            let (machine, topology) = Default::default();
            let about = About {
                machine: &machine,
                topology: &topology,
                warnings: &[],
            };
            found.answer(about)[0].text.clone()
        };
        let (capacity, latency) = (figure(What::Capacity, 128.0), figure(What::Latency, 200.0));
        assert_eq!(said(vec![none.clone(), capacity]), "no figure was taken");
        assert_eq!(said(vec![none, latency]), "1 figure could not be taken");
    }

    #[test]
    fn noise_is_no_regression_and_a_loss_beyond_it_is() {
        let then = Figure {
            ci95: Some(2.0),
            ..figure(What::Read, 20.0)
        };
        let before = Before {
            run: "run 1".into(),
            figures: vec![then],
            worse: 0.05,
            quick: None,
        };
        assert!(since(&before, &[figure(What::Read, 18.5)])[0].passed);
        assert!(!since(&before, &[figure(What::Read, 17.5)])[0].passed);
    }
}
