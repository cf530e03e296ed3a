//! `weir steer run` on a model as a study: a scenario under a controller, without control, and each side alone.

use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::view::{Axis, Only, View, col};
use weir_lab::{About, Ask, Lab, LabError, Outcome, Severity, Study, Verdict};
use weir_model::frame::Frame;
use weir_model::machine::Testbed;
use weir_model::metric::OwnMetric;
use weir_model::tenant::Tenant;
use weir_model::units::{GbPerSec, Nanos};

use crate::calibrate::{CalibrateError, calibrate};
use crate::controller::Controller;
use crate::document::{PhaseSummary, ProgramSummary, ScenarioOutcome, SideSummary};
use crate::guard::Bounds;
use crate::readings::Role;
use crate::record::WindowRecord;
use crate::registry::Policy;
use crate::scenario::ASKED;
use crate::scenario_run::{RunOptions, ScenarioRun, length, run_scenario, tier_names};
use crate::steered::{Actuators, Phase};

/// A scenario under a controller.
#[derive(Debug, Clone)]
pub struct Regulate {
    /// The scenario's name; [`ASKED`] of tenants that a user names.
    pub scenario: &'static str,
    /// Its phases, as far as they run.
    pub phases: Vec<Phase>,
    /// The programs that a user names among its tenants.
    pub programs: Vec<String>,
    /// The controller.
    pub policy: Policy,
    /// How it runs.
    pub options: RunOptions,
}

impl Regulate {
    /// The controller, with the values of the machine that it needs.
    ///
    /// # Errors
    /// The machine cannot be calibrated.
    pub fn controller(&self, testbed: &dyn Testbed) -> Result<Box<dyn Controller>, CalibrateError> {
        let RunOptions {
            seed,
            window,
            actuators,
            ..
        } = &self.options;
        let values = self.policy.values();
        let known = calibrate(testbed, *seed, *window, actuators.allocation, values)?;
        Ok(self.policy.controller(&known, actuators, Bounds::default()))
    }
}

/// What a run depends on.
#[derive(Serialize)]
struct Regulated<'a> {
    scenario: &'a str,
    controller: &'a str,
    lasts: Nanos,
    window: Nanos,
    period: Nanos,
    actuators: &'a Actuators,
    dry: bool,
    /// The tenants that a user names.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<Vec<(&'a Tenant, Role)>>,
    /// The version of how windows are sampled.
    sampling: u32,
    #[serde(skip)]
    study: &'a Regulate,
}

impl From<CalibrateError> for LabError {
    fn from(error: CalibrateError) -> Self {
        match error {
            CalibrateError::Machine(error) => error.into(),
            error => Self::Lacks(error.to_string()),
        }
    }
}

impl Ask for Regulated<'_> {
    type Got = ScenarioRun;
    const KIND: &'static str = "scenario under a controller";

    fn ask(&self, lab: &Lab<'_>) -> Result<ScenarioRun, LabError> {
        let (
            testbed,
            Regulate {
                phases, options, ..
            },
        ) = (lab.testbed(), self.study);
        let mut controller = self.study.controller(testbed)?;
        let of = length(phases, options.window);
        let mut go_on = |_| lab.step(of);
        let run = run_scenario(testbed, phases, controller.as_mut(), options, &mut go_on);
        Ok(run?)
    }
}

impl Study for Regulate {
    const VERB: &'static str = "steer run";
    type Output = ScenarioOutcome;

    fn run(&self, lab: &Lab<'_>) -> Result<ScenarioOutcome, LabError> {
        if lab.is_dry() {
            return Err(LabError::Dry);
        }
        let options = &self.options;
        let run = lab.answer(&Regulated {
            scenario: self.scenario,
            controller: self.policy.name(),
            lasts: self.phases.iter().map(|phase| phase.lasts).sum(),
            window: options.window,
            period: options.quota_period,
            actuators: &options.actuators,
            dry: options.dry,
            tenants: (self.scenario == ASKED).then(|| {
                let participants = self.phases.iter().flat_map(|phase| &phase.participants);
                participants
                    .map(|participant| (&participant.tenant, participant.role))
                    .collect()
            }),
            sampling: 2,
            study: self,
        })?;
        if lab.stopped() {
            lab.end_early();
        }
        let missed = |window: &&WindowRecord| window.sampled.as_ref().is_some_and(|s| s.missed);
        let (missed, all) = (run.windows.iter().filter(missed).count(), run.windows.len());
        if missed > 0 {
            let largest = run.windows.iter().filter_map(WindowRecord::error_pct);
            let largest = largest.fold(0.0, f64::max);
            lab.inexact(format!(
                "{missed} of {all} windows did not reach the sampling error that was asked for; the largest is \
                 {largest:.2} %"
            ));
        }
        Ok(ScenarioOutcome {
            scenario: self.scenario.into(),
            controller: self.policy.name().into(),
            dry: options.dry,
            tiers: tier_names(lab.topology()),
            windows: run.windows,
            phases: run.phases,
            summary: run.summary,
        })
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(self.programs.iter().map(String::as_str).collect())
    }
}

/// Windows in a row, with the means of their readings.
#[derive(Serialize, JsonSchema)]
struct WindowsRow<'a> {
    from_s: f64,
    t_s: f64,
    window_s: f64,
    fast_gbps: Option<f64>,
    slow_gbps: Option<f64>,
    fast_error_pct: Option<f64>,
    slow_error_pct: Option<f64>,
    error_pct: Option<f64>,
    fast_tor_ns: Option<f64>,
    slow_tor_ns: Option<f64>,
    all_tor_ns: Option<f64>,
    level: u32,
    quota_pct: f64,
    why: &'a str,
}

/// One side of a phase.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"settled_pct_of_alone": "settled_error_pct"}))]
struct SideRow<'a> {
    from_s: f64,
    to_s: f64,
    side: &'static str,
    #[serde(flatten)]
    summary: &'a SideSummary,
    settled_after_s: Option<f64>,
}

/// A described program in a phase.
#[derive(Serialize, JsonSchema)]
struct ProgramRow<'a> {
    from_s: f64,
    unit: &'a str,
    #[serde(flatten)]
    summary: &'a ProgramSummary,
}

/// A tenant in a window, or a limit that changed at its end.
#[derive(Serialize, JsonSchema)]
struct At<'a, T> {
    t_s: f64,
    #[serde(flatten)]
    row: &'a T,
}

/// A point of a picture over time.
#[derive(Default, Serialize, JsonSchema)]
struct TimeRow {
    t_s: f64,
    of: String,
    control: &'static str,
    gbps: Option<f64>,
    residency_ns: Option<f64>,
    left_pct: Option<f64>,
    level: Option<f64>,
    why: Option<String>,
}

/// Points of a line; more windows than this are taken together, so that a page stays small.
const POINTS: usize = 400;
/// Rows of the table over time.
const ROWS: usize = 48;

fn mean(windows: &[WindowRecord], of: impl Fn(&WindowRecord) -> Option<f64>) -> Option<f64> {
    let known: Vec<f64> = windows.iter().filter_map(of).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// A percentage, with the half-width of its interval if that is known.
fn sure(percent: f64, error: Option<f64>) -> String {
    match error {
        Some(error) => format!("{percent:.1} ±{error:.1} %"),
        None => format!("{percent:.1} %"),
    }
}

fn tor(windows: &[WindowRecord], of: &str) -> Option<f64> {
    mean(windows, |window| window.tor_ns.get(of).map(|ns| ns.get()))
}

impl ScenarioOutcome {
    fn row<'w>(&self, windows: &'w [WindowRecord]) -> Option<WindowsRow<'w>> {
        let (first, last) = (windows.first()?, windows.last()?);
        let from_s = first.t_s - first.window_s;
        let gbps = |tier: &str| mean(windows, |w| w.gbps.get(tier).map(|g| g.get()));
        // Of several windows the largest; their mean is no less sure.
        let error = |tier: &str| {
            let sampled = windows.iter().filter_map(|window| window.sampled.as_ref());
            let known = sampled.filter_map(|sampled| sampled.error_pct.get(tier).copied());
            known.reduce(f64::max)
        };
        Some(WindowsRow {
            from_s,
            t_s: last.t_s,
            window_s: match windows {
                [one] => one.window_s,
                _ => last.t_s - from_s,
            },
            fast_gbps: gbps(&self.tiers.fast),
            slow_gbps: gbps(&self.tiers.slow),
            fast_error_pct: error(&self.tiers.fast),
            slow_error_pct: error(&self.tiers.slow),
            error_pct: windows
                .iter()
                .filter_map(WindowRecord::error_pct)
                .reduce(f64::max),
            fast_tor_ns: tor(windows, &self.tiers.fast),
            slow_tor_ns: tor(windows, &self.tiers.slow),
            all_tor_ns: tor(windows, "all"),
            level: last.level,
            quota_pct: last.quota_pct,
            why: &last.why.rule,
        })
    }

    fn rows<'w>(&self, parts: impl Iterator<Item = &'w [WindowRecord]>) -> Vec<WindowsRow<'w>> {
        parts.filter_map(|windows| self.row(windows)).collect()
    }

    /// Windows in a row under the same limits; a phase begins a new row.
    fn in_force(&self) -> impl Iterator<Item = &[WindowRecord]> {
        let begins = |t: f64| {
            let near = |phase: &PhaseSummary| (phase.from_s - t).abs() < 1e-6;
            self.phases.iter().any(near)
        };
        self.windows.chunk_by(move |last, next| {
            last.quota_pct == next.quota_pct
                && last.level == next.level
                && last.gbps.len() == next.gbps.len()
                && !begins(next.t_s - next.window_s)
        })
    }

    fn within<T>(&self, of: impl Fn(&WindowRecord) -> &Vec<T>) -> Vec<At<'_, T>> {
        let rows = self.windows.iter().flat_map(|window| {
            let t_s = window.t_s;
            of(window).iter().map(move |row| At { t_s, row })
        });
        rows.collect()
    }

    fn sides(&self) -> Vec<SideRow<'_>> {
        let rows = self.phases.iter().flat_map(|phase| {
            SIDES.map(|(role, side)| SideRow {
                from_s: phase.from_s,
                to_s: phase.to_s,
                side,
                summary: side_of(phase, role),
                settled_after_s: phase.settle_s.or(phase.release_s),
            })
        });
        rows.filter(|row| !row.summary.tenants.is_empty()).collect()
    }

    fn programs(&self) -> Vec<ProgramRow<'_>> {
        let rows = self.phases.iter().flat_map(|phase| {
            phase.programs.iter().map(|summary| ProgramRow {
                from_s: phase.from_s,
                unit: summary.alone.as_ref().map_or("", |metric| &metric.unit),
                summary,
            })
        });
        rows.collect()
    }

    /// What pictures show: the windows, several taken together where there are many, and what a side has
    /// without the controller, over each phase.
    fn over_time(&self) -> Vec<TimeRow> {
        let together = self.windows.len().div_ceil(POINTS).max(1);
        let mut rows = Vec::new();
        for windows in self.windows.chunks(together) {
            let Some(last) = windows.last() else { continue };
            let at = |of: &str| TimeRow {
                t_s: last.t_s,
                of: of.into(),
                control: "controlled",
                why: Some(last.why.rule.clone()),
                ..TimeRow::default()
            };
            rows.extend(SIDES.map(|(role, name)| TimeRow {
                gbps: mean(windows, |w| w.drew(role).map(GbPerSec::get)),
                ..at(name)
            }));
            rows.extend(
                [&self.tiers.fast, &self.tiers.slow, "all"].map(|of| TimeRow {
                    residency_ns: tor(windows, of),
                    ..at(of)
                }),
            );
            rows.push(TimeRow {
                left_pct: mean(windows, |w| Some(w.quota_pct)),
                level: mean(windows, |w| Some(f64::from(w.level))),
                ..at("restrained")
            });
        }
        for phase in &self.phases {
            for (role, name) in SIDES {
                let side = side_of(phase, role);
                for (control, gbps) in [("alone", side.alone_gbps), ("no control", side.free_gbps)]
                {
                    rows.extend([phase.from_s, phase.to_s].map(|t_s| TimeRow {
                        t_s,
                        of: name.into(),
                        control,
                        gbps: gbps.map(GbPerSec::get),
                        why: Some(side.tenants.join(", ")),
                        ..TimeRow::default()
                    }));
                }
            }
        }
        rows
    }
}

const SIDES: [(Role, &str); 2] = [
    (Role::Protected, "protected"),
    (Role::Restrained, "restrained"),
];

fn side_of(phase: &PhaseSummary, role: Role) -> &SideSummary {
    match role {
        Role::Protected => &phase.protected,
        _ => &phase.restrained,
    }
}

impl Outcome for ScenarioOutcome {
    const SCHEMA: &'static str = "weir/steer/1";
    const TITLE: &'static str = "Steering";
    const WORDS: &'static str = "A scenario under a controller, window by window. Dashed is what the same tenants have alone, dotted what they \
                                 have together without limits.";

    fn answer(&self, about: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let summary = &self.summary;
        let dry = if self.dry {
            ", and no tenant was limited"
        } else {
            ""
        };
        let settled = match summary.settle_s {
            Some(settle) => format!("every phase settled within {settle:.2} s"),
            None => "not every phase settled".into(),
        };
        let sides = (
            summary.protected_pct_of_solo,
            summary.restrained_pct_of_solo,
        );
        let text = match (summary.protected_pct_without_limits, sides) {
            (Some(free), (Some(fast), Some(slow))) => format!(
                "without limits, protected tenants keep {} of their bandwidth alone; under {}, once settled, {}, and restrained \
                 tenants keep {}; {settled}{dry}",
                sure(free, summary.protected_error_without_limits),
                self.controller,
                sure(fast, summary.protected_error_pct),
                sure(slow, summary.restrained_error_pct),
            ),
            (_, (Some(fast), Some(slow))) => format!(
                "once settled, protected tenants keep {} of their bandwidth alone, restrained tenants {}; {settled}{dry}",
                sure(fast, summary.protected_error_pct),
                sure(slow, summary.restrained_error_pct),
            ),
            _ => format!("{settled}{dry}"),
        };
        let machine = &about.machine.name;
        let what = format!("{} on {machine}", self.scenario);
        let in_own_metric = |program: &ProgramSummary| {
            let words = |metric: &Option<OwnMetric>| metric.as_ref().map(OwnMetric::words);
            let text = format!(
                "alone {}; without limits {}; under {} {}",
                words(&program.alone)?,
                words(&program.free)?,
                self.controller,
                words(&program.settled)?
            );
            Some(note(&program.tenant, text))
        };
        let programs = self.phases.iter().flat_map(|phase| &phase.programs);
        let mut programs: Vec<Verdict> = programs.filter_map(in_own_metric).collect();
        // What the only protected tenant gets done says more than its bandwidth. Programs of the protected side come first.
        let first = match self.phases.as_slice() {
            [phase] if phase.protected.tenants.len() == 1 => (phase.programs.iter())
                .filter(|program| program.role == Role::Protected)
                .filter_map(in_own_metric)
                .count(),
            _ => 0,
        };
        let mut all: Vec<Verdict> = programs.drain(..first).collect();
        all.push(note(&what, text));
        all.extend(summary.release_s.map(|release| {
            let text = format!("all limits were removed within {release:.2} s");
            note("without protected tenants", text)
        }));
        all.extend(programs);
        let sampled = self
            .windows
            .iter()
            .filter_map(|window| window.sampled.as_ref());
        let parts = sampled.map(|sampled| (sampled.parts, sampled.simulated_s));
        if let Some((parts, simulated)) = parts.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))) {
            let text = format!(
                "the largest sampling error of a bandwidth in these windows, half of its 95 % interval, in percent; of each \
                 window at most {parts} parts were simulated, {:.2} ms together",
                simulated * 1e3
            );
            all.push(note("±", text));
        }
        let left = "the processor time that the limits left to restrained tenants";
        all.push(note("left", left.into()));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let Self { tiers, .. } = self;
        let over_time = vec![
            col("from_s").head("from"),
            col("t_s").head("to"),
            col("fast_gbps").head(tiers.fast.clone()),
            col("slow_gbps").head(tiers.slow.clone()),
            col("error_pct").head("±"),
            col("fast_tor_ns").head(format!("ToR {}", tiers.fast)),
            col("slow_tor_ns").head(format!("ToR {}", tiers.slow)),
            col("all_tor_ns").head("ToR all"),
            col("level"),
            col("quota_pct").head("left"),
        ];
        let sides = vec![
            col("from_s").head("from"),
            col("side"),
            col("alone_gbps").head("alone"),
            col("free_gbps").head("no control"),
            col("settled_gbps").head("controlled"),
            col("settled_pct_of_alone").head("% of alone"),
            col("swing_pct").head("swing"),
            col("settled_after_s").head("settled after"),
        ];
        let programs = vec![
            col("from_s").head("from"),
            col("tenant"),
            col("alone_rate").head("alone"),
            col("free_rate").head("no control"),
            col("settled_rate").head("controlled"),
            col("alone_ns_p99").head("p99\nalone").if_any(),
            col("free_ns_p99").head("p99\nno control").if_any(),
            col("settled_ns_p99").head("p99\ncontrolled").if_any(),
        ];
        let what = format!("{} under {}", self.scenario, self.controller);
        let line = |name: &str, y: &'static str, title: &str| {
            View::lines(
                "over_time",
                format!("{name}: {what}"),
                ("t_s", "time [s]"),
                (y, title),
                &["of", "control"],
            )
            .only(Only::Has(y))
            .axes(Axis::Linear, Axis::Linear)
        };
        vec![
            View::table(
                "in_force",
                "Windows in a row under the same limits",
                over_time,
            )
            .at_most(ROWS),
            View::table("phases", "Each phase, once settled", sides),
            View::table("programs", "Programs, in {unit}", programs).each(&["unit"]),
            line("Bandwidth", "gbps", "bandwidth [GB/s]"),
            line("Residency", "residency_ns", "in the Table of Requests [ns]"),
            line("Limits", "left_pct", "processor time left [%]"),
            line("Level", "level", "level of the controller"),
        ]
    }

    fn frames(&self) -> Vec<Frame> {
        vec![
            Frame::of("windows", &self.rows(self.windows.chunks(1))),
            Frame::of("in_force", &self.rows(self.in_force())),
            Frame::of("phases", &self.sides()),
            Frame::of("programs", &self.programs()),
            Frame::of("tenants", &self.within(|window| &window.tenants)),
            Frame::of("actions", &self.within(|window| &window.actions)),
            Frame::of("over_time", &self.over_time()),
        ]
    }
}
