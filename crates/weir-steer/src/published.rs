//! Published figures of regulation, from the same experiments on models: what MIKU's controller and the
//! knobs of CXL-Interplay restore, and what they cost.

use weir_model::access::{Op, Pattern};
use weir_model::machine::Testbed;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Gigahertz, Nanos};

use crate::calibrate::{CalibrateError, calibrate, slow_placement};
use crate::controller::{Controller, Decision, Why};
use crate::drive::{Party, Phase, Step, drive};
use crate::guard::Bounds;
use crate::hold::{Hold, Share};
use crate::plant::{Means, PlantError};
use crate::roster::Policy;
use crate::scenario::{Scenario, ScenarioError};
use crate::sight::{Role, Sight};

/// Why a figure cannot be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unanswered {
    /// The machine could not be run.
    #[error(transparent)]
    Plant(#[from] PlantError),
    /// It could not be calibrated.
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    /// The scenario cannot be played there.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// A row: on which platform, what is measured, and what to know when comparing.
struct Row {
    id: &'static str,
    on: &'static str,
    what: What,
    note: &'static str,
}

/// What a row states.
#[derive(Clone, Copy)]
enum What {
    /// Seconds after which MIKU's holds stand, the least or the most over the three instructions.
    Settles { most: bool },
    /// The protected tenant of a scenario, in percent of what it does alone; without control or with MIKU.
    Protected(&'static str, Option<Policy>),
    /// The other one, with MIKU, in percent of what it does without control.
    Restrained(&'static str),
    /// Loads from DRAM beside non-temporal stores to CXL under a knob, in GB/s ...
    Restored(Knob),
    /// ... or in percent of what they draw alone.
    RestoredPct(Knob),
    /// What the stores give up for that, in GB/s.
    GivenUp(Knob),
}

/// A knob of CXL-Interplay (section V), set and left.
#[derive(Clone, Copy)]
enum Knob {
    /// Sixteen threads share one processor's time.
    Quota,
    /// The cores run at this part of their clock.
    Clock(f64),
    /// Bandwidth allocation at this share.
    Allocation(f64),
}

const A: &str = "miku-a";
/// The paper does not name the server; 13 GB/s of stores at a cost of 10 GB/s fit its system B.
const B: &str = "interplay-b";
const LLM: &str = "llm-decode";
const SQL: &str = "sql-scan";

const SEVERAL: &str = "the least and the most of ld, st and nt_st, as far as it holds them";
const ON_B: &str = "the server is not named: on system B, 16 threads of ld beside 16 of nt_st";
const STANDS_IN: &str =
    "a scan of columns stands in for the paper's queries, of which it names the worst";
const DECODES: &str = "the presets' decoding stands in for llama.cpp";

const fn row(id: &'static str, on: &'static str, what: What, note: &'static str) -> Row {
    Row { id, on, what, note }
}

const ROWS: &[Row] = &[
    row("MIK-054", A, What::Settles { most: false }, SEVERAL),
    row("MIK-055", A, What::Settles { most: true }, SEVERAL),
    row("MIK-063", A, What::Protected(LLM, None), DECODES),
    row(
        "MIK-064",
        A,
        What::Protected(LLM, Some(Policy::Miku)),
        DECODES,
    ),
    row(
        "MIK-073",
        A,
        What::Protected(SQL, Some(Policy::Miku)),
        STANDS_IN,
    ),
    row("MIK-074", A, What::Restrained(SQL), STANDS_IN),
    row("INT-116", B, What::Restored(Knob::Quota), ON_B),
    row("INT-117", B, What::RestoredPct(Knob::Quota), ON_B),
    row("INT-118", B, What::GivenUp(Knob::Quota), ON_B),
    row("INT-119", B, What::RestoredPct(Knob::Clock(0.4)), ON_B),
    row("INT-120", B, What::RestoredPct(Knob::Clock(0.2)), ON_B),
    row("INT-121", B, What::GivenUp(Knob::Allocation(0.1)), ON_B),
    row("INT-122", B, What::RestoredPct(Knob::Allocation(0.1)), ON_B),
    row("INT-125", B, What::Restored(Knob::Allocation(0.1)), ON_B),
    row("INT-126", B, What::RestoredPct(Knob::Allocation(0.1)), ON_B),
    row("INT-127", B, What::GivenUp(Knob::Allocation(0.1)), ON_B),
];

/// Rows that are answered here.
pub fn ids() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.id)
}

/// The platform that a row is answered on, and what to know when comparing.
pub fn about(id: &str) -> Option<(&'static str, &'static str)> {
    ROWS.iter()
        .find(|row| row.id == id)
        .map(|row| (row.on, row.note))
}

/// Our figure of a row, from a testbed of its platform whose long windows are sampled; `None` for a row that
/// is not answered here.
///
/// # Errors
/// The machine cannot be calibrated or run.
pub fn answer(id: &str, testbed: &dyn Testbed, seed: u64) -> Option<Result<f64, Unanswered>> {
    let row = ROWS.iter().find(|row| row.id == id)?;
    let bench = Bench { testbed, seed };
    Some(bench.figure(row.what))
}

/// What a pair of bandwidth tests of one instruction keeps of what each draws alone under a controller: the
/// one on DRAM and the one on the slow tier.
///
/// # Errors
/// The machine cannot be calibrated or run.
pub fn kept(
    policy: Policy,
    op: Op,
    testbed: &dyn Testbed,
    seed: u64,
) -> Result<(f64, f64), Unanswered> {
    let bench = Bench { testbed, seed };
    let pair = bench.streams(op, op)?;
    let alone = |i: usize| bench.mean(&pair[i..=i], None, 0);
    let under = |i| bench.mean(&pair, Some(policy), i);
    Ok((under(0)? / alone(0)?, under(1)? / alone(1)?))
}

/// MIKU's window (section 5.2), in which everything here is counted.
const WINDOW: Nanos = Nanos(1e9);
/// The period of a quota.
const PERIOD: Nanos = Nanos(1e8);
/// Windows that show a figure; the first is left out.
const SHOWN: u32 = 4;
/// Windows in which MIKU is to settle.
const WATCHED: u32 = 24;
/// Threads of either side in both papers.
const THREADS: usize = 16;
/// What a thread of a bandwidth test touches.
const WORKING_SET: Bytes = Bytes::mib(64);

struct Bench<'a> {
    testbed: &'a dyn Testbed,
    seed: u64,
}

impl Bench<'_> {
    fn figure(&self, what: What) -> Result<f64, Unanswered> {
        match what {
            What::Settles { most } => self.settles(most),
            What::Protected(scenario, policy) => {
                let pair = self.pair(scenario)?;
                let alone = self.mean(&pair[..1], None, 0)?;
                Ok(100.0 * (self.mean(&pair, policy, 0)? / alone))
            }
            What::Restrained(scenario) => {
                let pair = self.pair(scenario)?;
                let racing = self.mean(&pair, None, 1)?;
                Ok(100.0 * (self.mean(&pair, Some(Policy::Miku), 1)? / racing))
            }
            What::Restored(knob) => Ok(self.under(knob)?.0.get()),
            What::RestoredPct(knob) => {
                let alone = self.mean(&self.streams(Op::Ld, Op::NtSt)?[..1], None, 0)?;
                Ok(100.0 * (self.under(knob)?.0.get() / alone))
            }
            What::GivenUp(knob) => {
                let racing = self.mean(&self.streams(Op::Ld, Op::NtSt)?, None, 1)?;
                Ok(racing - self.under(knob)?.1.get())
            }
        }
    }

    /// Seconds after which MIKU's hold stands.
    fn settles(&self, most: bool) -> Result<f64, Unanswered> {
        let mut found: Option<f64> = None;
        for op in [Op::Ld, Op::St, Op::NtSt] {
            let steps = self.play(&self.streams(op, op)?, Some(Policy::Miku), WATCHED)?;
            let Some(last) = steps.last().map(|s| s.held[1]) else {
                continue;
            };
            // Who was never held had nothing to settle.
            let Some(moved) = steps.iter().rposition(|step| step.held[1] != last) else {
                continue;
            };
            let seconds = steps[moved].at.get() / WINDOW.get();
            let pick = |so_far: f64| {
                if most {
                    so_far.max(seconds)
                } else {
                    so_far.min(seconds)
                }
            };
            found = Some(found.map_or(seconds, pick));
        }
        Ok(found.unwrap_or(0.0))
    }

    /// Both bandwidths under a knob.
    fn under(&self, knob: Knob) -> Result<(GbPerSec, GbPerSec), Unanswered> {
        let pair = self.streams(Op::Ld, Op::NtSt)?;
        let clock = self
            .testbed
            .open(self.seed)
            .map_err(PlantError::from)?
            .topology()
            .clock;
        let hold = match knob {
            Knob::Quota => Hold {
                time: Share::of(1.0 / THREADS as f64),
                ..Hold::FREE
            },
            Knob::Clock(part) => Hold {
                clock: clock.map(|clock: Gigahertz| clock * part),
                ..Hold::FREE
            },
            Knob::Allocation(share) => Hold {
                allocation: Share::of(share),
                ..Hold::FREE
            },
        };
        let steps = self.run(&pair, &mut Fixed(hold), SHOWN + 1)?;
        let mean = |i: usize| {
            let shown = &steps[steps.len() - SHOWN as usize..];
            GbPerSec(shown.iter().map(|s| s.drew(i).get()).sum::<f64>() / f64::from(SHOWN))
        };
        Ok((mean(0), mean(1)))
    }

    /// A tenant's bandwidth in the mean of the last windows.
    fn mean(&self, parties: &[Party], policy: Option<Policy>, i: usize) -> Result<f64, Unanswered> {
        let windows = if policy.is_some() { WATCHED } else { SHOWN + 1 };
        let steps = self.play(parties, policy, windows)?;
        let shown = &steps[steps.len() - SHOWN as usize..];
        Ok(shown.iter().map(|s| s.drew(i).get()).sum::<f64>() / f64::from(SHOWN))
    }

    fn play(
        &self,
        parties: &[Party],
        policy: Option<Policy>,
        windows: u32,
    ) -> Result<Vec<Step>, Unanswered> {
        let mut controller = match policy {
            None => Policy::free(),
            Some(policy) => {
                let machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
                let means = Means::of_model(machine.topology());
                let known = calibrate(self.testbed, self.seed, WINDOW, means.allocation)?;
                policy.controller(&known, &means, Bounds::default())
            }
        };
        self.run(parties, controller.as_mut(), windows)
    }

    fn run(
        &self,
        parties: &[Party],
        controller: &mut dyn Controller,
        windows: u32,
    ) -> Result<Vec<Step>, Unanswered> {
        let phase = Phase {
            lasts: WINDOW * f64::from(windows),
            parties: parties.to_vec(),
        };
        let mut machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
        Ok(drive(
            machine.as_mut(),
            controller,
            &[phase],
            WINDOW,
            PERIOD,
        )?)
    }

    /// The tenants of a scenario's first phase.
    fn pair(&self, scenario: &str) -> Result<Vec<Party>, Unanswered> {
        let machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
        let scenario = Scenario::builtin(scenario, machine.topology())?;
        Ok(scenario
            .phases
            .into_iter()
            .next()
            .map_or(Vec::new(), |phase| phase.parties))
    }

    /// A bandwidth test on each tier.
    fn streams(&self, fast: Op, slow: Op) -> Result<Vec<Party>, Unanswered> {
        let machine = self.testbed.open(self.seed).map_err(PlantError::from)?;
        let topology = machine.topology();
        let beyond = slow_placement(topology).ok_or(CalibrateError::NoSlowTier)?;
        let threads = THREADS.min(topology.cores.len() / 2);
        let (first, rest) = topology.cores.split_at(threads);
        let stream = |name: &str, op, cores: &[u32], placement| Tenant {
            name: name.into(),
            cores: cores.to_vec(),
            placement,
            ..Tenant::on_first_cores(op, Pattern::Sequential, &TierName::dram(), 1, WORKING_SET)
        };
        let dram = Placement::Bind(TierName::dram());
        Ok(vec![
            Party {
                tenant: stream("fast", fast, first, dram),
                role: Role::Protected,
            },
            Party {
                tenant: stream("slow", slow, &rest[..threads], beyond),
                role: Role::Restrained,
            },
        ])
    }
}

/// A knob that is set and left.
struct Fixed(Hold);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn observe(&mut self, sight: &Sight) -> Decision {
        let held = |role| {
            if role == Role::Restrained {
                self.0
            } else {
                Hold::FREE
            }
        };
        Decision {
            holds: sight.tenants.iter().map(|t| held(t.role)).collect(),
            why: Why::rule("set and left"),
        }
    }
}
