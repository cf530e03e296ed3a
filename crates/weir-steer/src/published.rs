//! Rules for published rows of regulation: what MIKU's controller and the knobs of CXL-Interplay
//! restore, and what they cost.

use serde::{Deserialize, Serialize};
use weir_lab::reproduce::rule::{Figure, On, Rule};
use weir_lab::{Ask, Lab, LabError};
use weir_model::access::{Op, Pattern};
use weir_model::machine::{MachineError, Testbed};
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, Gigahertz, Nanos};
use weir_model::workload::Workloads;

use crate::calibrate::{CalibrateError, calibrate, slow_placement};
use crate::control_loop::{Step, run_phases};
use crate::controller::{Controller, Decision, Why};
use crate::guard::Bounds;
use crate::limit::{Limit, Share};
use crate::readings::{Readings, Role};
use crate::registry::Policy;
use crate::scenario::{Scenario, ScenarioError};
use crate::steered::{Actuators, Phase, SteeredTenant};

/// Why a figure cannot be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unanswered {
    /// The machine could not be run.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// It could not be calibrated.
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    /// The scenario cannot be played there.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// MIKU's window (section 5.2), in which everything here is counted.
const WINDOW: Nanos = Nanos(1e9);
/// The period of a quota.
const PERIOD: Nanos = Nanos(1e8);
/// Windows that show a figure; the first is left out.
const SHOWN: u32 = 4;
/// Windows in which a controller is to settle.
const WATCHED: u32 = 24;
/// Threads of either side in both papers.
const THREADS: usize = 16;
/// What a thread of a bandwidth test touches.
const WORKING_SET: Bytes = Bytes::mib(64);

/// Two tenants: one on DRAM, which is protected, and one on the slow tier, which may be restrained.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Pair {
    /// Bandwidth tests of 16 threads each.
    Streams(Op, Op),
    /// The first phase of a scenario.
    Scenario(&'static str),
    /// A program in place of the protected bandwidth test, with non-temporal stores to the slow tier.
    Program(&'static str),
}

/// Which of a pair run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Running {
    /// Both.
    Both,
    /// The protected one alone.
    Fast,
    /// The other one alone.
    Slow,
}

/// What regulates the pair.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Control {
    /// Nothing.
    Free,
    /// A controller.
    Policy(Policy),
    /// A knob of CXL-Interplay (section V), set and left.
    Knob(Knob),
}

/// A knob of CXL-Interplay.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Knob {
    /// Sixteen threads share one processor's time.
    Quota,
    /// The cores run at this part of their clock.
    Clock(f64),
    /// Bandwidth allocation at this share.
    Allocation(f64),
}

/// A pair that runs under some control.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Regulated {
    /// The tenants.
    pub pair: Pair,
    /// Which of them run.
    pub running: Running,
    /// What regulates them.
    pub control: Control,
}

/// What happened in its last windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Bandwidth of each tenant that ran, in GB/s; of a program the lines that it touched, wherever they were found.
    pub drew: Vec<f64>,
    /// Reads and writes of DRAM for all of them, in GB/s, if they were counted.
    pub dram: Option<f64>,
    /// Seconds after which the limit of the slow tenant did not change any more; `None` if it never
    /// changed.
    pub settled_s: Option<f64>,
}

impl Regulated {
    /// Runs it on a testbed whose long windows are sampled.
    ///
    /// # Errors
    /// The machine cannot be calibrated or run.
    pub fn run_on(&self, testbed: &dyn Testbed, seed: u64) -> Result<Outcome, Unanswered> {
        let mut machine = testbed.open(seed)?;
        let mut participants = self.pair.tenants(machine.topology())?;
        match self.running {
            Running::Both => {}
            Running::Fast => participants.truncate(1),
            Running::Slow => drop(participants.drain(..1)),
        }
        let (mut controller, windows): (Box<dyn Controller>, u32) = match self.control {
            Control::Free => (Policy::free(), SHOWN + 1),
            Control::Knob(knob) => (Box::new(Fixed(knob.limit(machine.topology()))), SHOWN + 1),
            Control::Policy(policy) => {
                let actuators = Actuators::of_model(machine.topology());
                let known =
                    calibrate(testbed, seed, WINDOW, actuators.allocation, policy.values())?;
                (
                    policy.controller(&known, &actuators, Bounds::default()),
                    WATCHED,
                )
            }
        };
        let tenants = participants.len();
        let lasts = WINDOW * f64::from(windows);
        let phase = Phase {
            lasts,
            participants,
        };
        let controller = controller.as_mut();
        let steps = run_phases(machine.as_mut(), controller, &[phase], WINDOW, PERIOD)?;
        let shown = &steps[steps.len().saturating_sub(SHOWN as usize)..];
        let mean = |i| shown.iter().map(|s| s.drew(i).get()).sum::<f64>() / f64::from(SHOWN);
        let of_dram = |step: &Step| Some(step.readings.fast.as_ref().ok()?.total().get());
        let dram = shown.iter().map(of_dram).sum::<Option<f64>>();
        let limit = |step: &Step| step.held.get(1).copied();
        let last = steps.last().and_then(limit);
        let changed = steps.iter().rfind(|step| limit(step) != last);
        Ok(Outcome {
            drew: (0..tenants).map(mean).collect(),
            dram: dram.map(|sum: f64| sum / f64::from(SHOWN)),
            settled_s: changed.map(|step| step.at.get() / WINDOW.get()),
        })
    }
}

impl Ask for Regulated {
    type Got = Outcome;
    const KIND: &'static str = "regulated pair and its DRAM";

    fn ask(&self, lab: &Lab<'_>) -> Result<Outcome, LabError> {
        let outcome = self.run_on(lab.testbed(), lab.seed());
        outcome.map_err(|error| LabError::Failed(error.to_string()))
    }
}

impl Pair {
    /// What each keeps, when both run under some control, of what it draws alone.
    ///
    /// # Errors
    /// The machine cannot be calibrated or run.
    pub fn kept(
        self,
        control: Control,
        testbed: &dyn Testbed,
        seed: u64,
    ) -> Result<(f64, f64), Unanswered> {
        let drew = |running, control, tenant: usize| {
            let regulated = Regulated {
                pair: self,
                running,
                control,
            };
            let outcome = regulated.run_on(testbed, seed)?;
            Ok::<_, Unanswered>(outcome.drew.get(tenant).copied().unwrap_or_default())
        };
        let fast = drew(Running::Both, control, 0)? / drew(Running::Fast, Control::Free, 0)?;
        let slow = drew(Running::Both, control, 1)? / drew(Running::Slow, Control::Free, 0)?;
        Ok((fast, slow))
    }

    fn tenants(self, topology: &Topology) -> Result<Vec<SteeredTenant>, Unanswered> {
        let (fast, slow) = match self {
            Pair::Scenario(name) => {
                let phases = Scenario::builtin(name, topology)?.phases.into_iter();
                return Ok(phases
                    .take(1)
                    .flat_map(|phase| phase.participants)
                    .collect());
            }
            Pair::Streams(fast, slow) => (fast, slow),
            Pair::Program(_) => (Op::Ld, Op::NtSt),
        };
        let slow_tier = slow_placement(topology).ok_or(CalibrateError::NoSlowTier)?;
        let threads = THREADS.min(topology.cores.len() / 2);
        let (first, rest) = topology.cores.split_at(threads);
        let stream = |name: &str, op, cores: &[u32], placement| Tenant {
            name: name.into(),
            cores: cores.to_vec(),
            placement,
            ..Tenant::on_first_cores(op, Pattern::Sequential, &TierName::dram(), 1, WORKING_SET)
        };
        let mut fast = stream("fast", fast, first, Placement::Bind(TierName::dram()));
        if let Pair::Program(name) = self {
            fast = program(name, &fast)?;
        }
        Ok(vec![
            SteeredTenant {
                tenant: fast,
                role: Role::Protected,
            },
            SteeredTenant {
                tenant: stream("slow", slow, &rest[..threads], slow_tier),
                role: Role::Restrained,
            },
        ])
    }
}

/// A program of the library in a tenant's place.
fn program(name: &'static str, place: &Tenant) -> Result<Tenant, ScenarioError> {
    let known = Workloads::builtin();
    let work = known.get(name).ok_or(ScenarioError::NoWorkload(name))?;
    let mut work = work.clone();
    work.name = place.name.clone();
    work.threads = place.cores.len() as u32;
    Ok(Tenant::running(
        work,
        place.cores.clone(),
        place.placement.clone(),
    ))
}

impl Knob {
    fn limit(self, topology: &Topology) -> Limit {
        let free = Limit::FREE;
        match self {
            Knob::Quota => Limit {
                time: Share::of(1.0 / THREADS as f64),
                ..free
            },
            Knob::Clock(part) => Limit {
                clock: topology.clock.map(|clock: Gigahertz| clock * part),
                ..free
            },
            Knob::Allocation(share) => Limit {
                allocation: Share::of(share),
                ..free
            },
        }
    }
}

/// A knob that is set and left.
struct Fixed(Limit);

impl Controller for Fixed {
    fn observe(&mut self, readings: &Readings) -> Decision {
        let limit = |role| match role {
            Role::Restrained => self.0,
            _ => Limit::FREE,
        };
        Decision {
            limits: readings.tenants.iter().map(|t| limit(t.role)).collect(),
            why: Why::rule("set and left"),
        }
    }
}

const SEVERAL: &str = "the least and the most of ld, st and nt_st, as far as it holds them";
const CLOCK: &str =
    "on system B; posted stores of 16 cores are far more than the device takes at any clock";
const ALLOCATED: &str = "on system B; single tenants show 2 GB/s a core at the least setting, which is more than the device takes";
const ON_B: &str = "the server is not named: on system B, 16 threads of ld with 16 of nt_st";
const STANDS_IN: &str =
    "a scan of columns represents the paper's queries, of which it names the worst";
const DECODES: &str = "llama.cpp as its loops were counted, in a build with AMX, of 4 bits on DRAM and of 16 on the card";
const ONE_PAIR: &str =
    "one pair represents the paper's queries, so the least and the most are the same";
const PAGE_RANK: &str = "PageRank of a synthetic graph on system B, 16 threads with 16 of nt_st";
const MAIL: &str = "filebench's mail server on system B, 16 threads with 16 of nt_st, of which the least setting lets more \
     pass than the device takes";

const A: On = On {
    platform: "miku-a",
    sampled: true,
};
/// The paper does not name the server; 13 GB/s of stores at a cost of 10 GB/s fit its system B.
const B: On = On {
    platform: "interplay-b",
    sampled: true,
};

/// A pair on a server.
#[derive(Clone, Copy)]
struct Case(On, Pair);

impl Case {
    /// The bandwidth of one of its tenants, in GB/s.
    fn drew(self, running: Running, control: Control, tenant: usize) -> Figure {
        let regulated = Regulated {
            pair: self.1,
            running,
            control,
        };
        Figure::read("GB/s", self.0, regulated, move |outcome| {
            let drew = outcome.drew.get(tenant).copied();
            drew.ok_or_else(|| "there is no such tenant".into())
        })
    }

    /// Reads and writes of DRAM without control, in GB/s.
    fn dram(self, running: Running) -> Figure {
        let regulated = Regulated {
            pair: self.1,
            running,
            control: Control::Free,
        };
        Figure::read("GB/s", self.0, regulated, |outcome| {
            let nothing = || "the traffic of DRAM was not counted".to_owned();
            outcome.dram.ok_or_else(nothing)
        })
    }

    /// What the protected tenant draws alone.
    fn alone(self) -> Figure {
        self.drew(Running::Fast, Control::Free, 0)
    }

    /// What the protected tenant draws under some control.
    fn fast(self, control: Control) -> Figure {
        self.drew(Running::Both, control, 0)
    }

    /// The same in percent of what it draws alone.
    fn fast_pct(self, control: Control) -> Figure {
        percent(self.fast(control), self.alone())
    }

    /// What the slow tenant draws under some control.
    fn slow(self, control: Control) -> Figure {
        self.drew(Running::Both, control, 1)
    }

    /// What the slow tenant gives up under a control.
    fn given_up(self, control: Control) -> Figure {
        let (free, held) = (self.slow(Control::Free), self.slow(control));
        Figure::new("GB/s", move |r| Ok(free.value(r)? - held.value(r)?))
    }
}

fn percent(figure: Figure, of: Figure) -> Figure {
    Figure::new("%", move |results| {
        Ok(100.0 * (figure.value(results)? / of.value(results)?))
    })
}

/// Seconds after which MIKU's limits do not change any more, the least or the most over the three
/// instructions; those whose limits never changed had nothing to settle.
fn settles(join: fn(f64, f64) -> f64) -> Figure {
    let settled = [Op::Ld, Op::St, Op::NtSt].map(|op| {
        let regulated = Regulated {
            pair: Pair::Streams(op, op),
            running: Running::Both,
            control: MIKU,
        };
        Figure::read("s", A, regulated, |outcome| {
            Ok(outcome.settled_s.unwrap_or(f64::NAN))
        })
    });
    Figure::new("s", move |results| {
        let settled = settled.iter().map(|figure| figure.value(results));
        let settled: Vec<f64> = settled.collect::<Result<_, String>>()?;
        let settled = settled.into_iter().filter(|seconds| !seconds.is_nan());
        Ok(settled.reduce(join).unwrap_or(0.0))
    })
}

const MIKU: Control = Control::Policy(Policy::Miku);

/// Every rule for rows of regulation.
pub fn rules() -> Vec<Rule> {
    let llm = Case(A, Pair::Scenario("llm-decode"));
    let sql = Case(A, Pair::Scenario("sql-scan"));
    let streams = Case(B, Pair::Streams(Op::Ld, Op::NtSt));
    let page_rank = Case(B, Pair::Program("pr-kron"));
    let mail = Case(B, Pair::Program("varmail"));
    let free = Control::Free;
    let quota = Control::Knob(Knob::Quota);
    let allocation = Control::Knob(Knob::Allocation(0.1));
    let clock = |part| streams.fast_pct(Control::Knob(Knob::Clock(part)));
    let sql_alone = sql.drew(Running::Slow, free, 0);
    let restrained = percent(sql.slow(MIKU), sql.slow(free));
    let rules = [
        ("MIK-054", settles(f64::min), SEVERAL),
        ("MIK-055", settles(f64::max), SEVERAL),
        ("MIK-063", llm.fast_pct(free), DECODES),
        ("MIK-064", llm.fast_pct(MIKU), DECODES),
        ("MIK-065", llm.dram(Running::Fast), DECODES),
        ("MIK-066", llm.dram(Running::Both), DECODES),
        ("MIK-071", sql.fast_pct(free), STANDS_IN),
        ("MIK-072", percent(sql.slow(free), sql_alone), STANDS_IN),
        ("MIK-073", sql.fast_pct(MIKU), STANDS_IN),
        ("MIK-074", restrained.clone(), ONE_PAIR),
        ("MIK-075", restrained, ONE_PAIR),
        ("INT-116", streams.fast(quota), ON_B),
        ("INT-117", streams.fast_pct(quota), ON_B),
        ("INT-118", streams.given_up(quota), ON_B),
        ("INT-119", clock(0.4), CLOCK),
        ("INT-120", clock(0.2), CLOCK),
        ("INT-121", streams.given_up(allocation), ALLOCATED),
        ("INT-122", streams.fast_pct(allocation), ALLOCATED),
        ("INT-123", page_rank.fast_pct(allocation), PAGE_RANK),
        ("INT-124", mail.fast_pct(allocation), MAIL),
        ("INT-125", streams.fast(allocation), ALLOCATED),
        ("INT-126", streams.fast_pct(allocation), ALLOCATED),
        ("INT-127", streams.given_up(allocation), ALLOCATED),
    ];
    let rules = rules.into_iter().map(|(id, figure, note)| Rule {
        is_slow: true,
        note,
        ..Rule::predicted(id, figure)
    });
    rules.collect()
}
