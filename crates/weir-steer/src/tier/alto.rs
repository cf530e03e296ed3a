//! Rules for published rows of Alto (SupMario section 6.4): its parameters, and programs under it and under others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_lab::reproduce::figures::{excess_pct, greatest, least};
use weir_lab::reproduce::rule::{Figure, Rule};
use weir_lab::{Ask, Lab, LabError};
use weir_model::tiering::promotion;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Cycles};
use weir_pages::policy::Alto;
use weir_pages::presets::graphs;

use super::{Replay, Replayed, curves, thresholds};

/// The thresholds that Alto has on a machine.
#[derive(Debug, Clone, Copy, Serialize)]
struct Thresholds {
    /// As in [`Programs`].
    version: u32,
}

/// Both thresholds, and how many candidates of a group pass at the first step.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Parameters {
    low: Cycles,
    high: Cycles,
    first_step: u32,
}

impl Ask for Thresholds {
    type Got = Parameters;
    const KIND: &'static str = "thresholds of Alto";

    fn ask(&self, lab: &Lab<'_>) -> Result<Parameters, LabError> {
        let own = thresholds(lab);
        let promotion::Alto { low, high } = own.alto;
        let first = low + (high - low) / f64::from(Alto::STEPS);
        Ok(Parameters {
            low,
            high,
            first_step: own.allowed(own.clock.time(first)),
        })
    }
}

fn parameter(id: &str, unit: &'static str, read: fn(&Parameters) -> f64) -> Rule {
    let ask = Thresholds {
        version: weir_pages::VERSION,
    };
    // The example is of the machine with Skylake cores.
    let figure = Figure::read(unit, "skx2s", ask, move |got| Ok(read(got)));
    Rule::identity(id, figure).noting(OWN)
}

/// A program under policies of which one is all memory on the fast tier, one all of it on the slow tier.
#[derive(Debug, Clone, Copy, Serialize)]
struct Programs {
    program: &'static str,
    slow: &'static str,
    policies: &'static [&'static str],
    version: u32,
}

const LINUX: &str = "first-touch";
const TPP: &str = "tpp";
const ALTO: &str = "alto";
const NUMA: &str = "numa-balancing";
const NOMAD: &str = "nomad";
/// With all memory on the slow tier.
const ALL_SLOW: &str = "all-slow";
const ALL: &[&str] = &[LINUX, TPP, ALTO, NUMA, NOMAD, ALL_SLOW];
/// The fast tier is slightly larger than the hot set (section 6.4); by how much is assumed (2 to 20 %).
const LARGER: f64 = 1.05;

impl Ask for Programs {
    type Got = BTreeMap<String, Replayed>;
    const KIND: &'static str = "a program of Alto's evaluation under policies";

    fn ask(&self, lab: &Lab<'_>) -> Result<Self::Got, LabError> {
        let lacks = || LabError::Nothing(format!("no program `{}`", self.program));
        let workload = graphs::by_name(self.program).ok_or_else(lacks)?;
        let hot = workload.hot_set().get() as f64;
        let [fast, slow] = curves(
            &lab.inside(),
            &[TierName::dram(), TierName::named(self.slow)],
        )?;
        let one = |policy: &str| {
            let everywhere = policy == ALL_SLOW;
            let replay = Replay {
                workload: workload.clone(),
                policy: if everywhere { LINUX } else { policy }.into(),
                fast: (!everywhere).then_some(Bytes((hot * LARGER) as u64)),
                seconds: graphs::ENDS_S,
                curves: [if everywhere { &slow } else { &fast }, &slow].map(Clone::clone),
                seed: lab.seed(),
                version: self.version,
            };
            Ok((policy.to_owned(), replay.ask(lab)?))
        };
        self.policies.iter().map(|policy| one(policy)).collect()
    }
}

/// Where programs run: the paper's card, or the other socket in its place.
#[derive(Clone, Copy)]
struct On(&'static str, &'static str, &'static [&'static str]);

const CARD: On = On("emr2s+cxl-a", "cxl0", ALL);
const SOCKET: On = On("skx2s", "remote", &[TPP, ALTO]);

/// A program.
#[derive(Clone, Copy)]
struct Case(&'static str, On);

impl Case {
    fn read(self, unit: &'static str, policy: &'static str, of: fn(&Replayed) -> f64) -> Figure {
        let Self(program, On(platform, slow, policies)) = self;
        let programs = Programs {
            program,
            slow,
            policies,
            version: weir_pages::VERSION,
        };
        Figure::read(unit, platform, programs, move |got| {
            Ok(of(got.get(policy).ok_or("the policy did not run")?))
        })
    }

    /// How much longer it takes under a policy than under another, in percent.
    fn slower(self, policy: &'static str, than: &'static str) -> Figure {
        let speed = |policy| self.read("M/s", policy, |got| got.maccesses_per_s);
        excess_pct(&speed(than), &speed(policy))
    }
}

fn all(on: On, of: impl Fn(Case) -> Figure) -> Vec<Figure> {
    let names = graphs::NAMES.iter();
    names.map(|(name, _)| of(Case(name, on))).collect()
}

/// The middle one of three.
fn middle(three: [Figure; 3]) -> Figure {
    Figure::new("%", move |results| {
        let values = three.iter().map(|figure| figure.value(results));
        let mut values = values.collect::<Result<Vec<f64>, String>>()?;
        values.sort_by(f64::total_cmp);
        Ok(values[1])
    })
}

const OWN: &str = "a parameter of Weir's own Alto";
const PROGRAM: &str = "a preset made from what the paper and the programs' sources say; its threads, waits and \
                       length are assumed";
const THRASH: &str = "a preset, as for SUP-215; a fault and a move take 4.5 µs here, so that the 65,536 pages that Linux samples \
                      in a second cost 7 % of four threads' time: losses as published need about 39 µs a page";
const TWO: &str = "of tc-twitter and GPT-2, since the text does not name the three others; their presets allocate \
                   cold memory first, which fills the fast tier, so that Linux is the slower one";
const FIVE: &str = "of five presets, since the text does not name the three other programs; as for SUP-227, a page \
                    costs less than in the paper";
const MORE: &str =
    "the paper does not say how much more memory is on the card, nor of which program";
const NOT_A_RESULT: &str = "is how the evaluation was made, not a figure of the policy";

/// Every rule for rows of Alto.
pub(super) fn rules() -> Vec<Rule> {
    let [bc_twitter, bc_urand, tc_kron, tc_twitter, gpt2] =
        ["bc-twitter", "bc-urand", "tc-kron", "tc-twitter", "gpt2"].map(|name| Case(name, CARD));
    let gain = |case: Case| case.slower(TPP, ALTO);
    let over_linux = |case: Case| case.slower(LINUX, ALTO);
    let loss = |case: Case| case.slower(ALTO, LINUX);
    let three = || [bc_twitter, bc_urand, tc_kron].map(over_linux);
    let others = || [tc_twitter, gpt2].map(loss).to_vec();
    let most = |on, policy, than| greatest(all(on, |case| case.slower(policy, than)));
    let predicted = [
        (
            "215",
            tc_twitter.read("pages/s", TPP, |got| got.promoted_per_s as f64),
            PROGRAM,
        ),
        (
            "216",
            tc_twitter.read("s", TPP, |got| got.promoted_most_s),
            PROGRAM,
        ),
        ("227", gain(tc_kron), THRASH),
        ("228", gain(gpt2), THRASH),
        ("229", over_linux(bc_twitter), THRASH),
        ("230", over_linux(bc_urand), THRASH),
        ("231", over_linux(tc_kron), THRASH),
        ("232", least(three().to_vec()), THRASH),
        ("233", middle(three()), THRASH),
        ("234", greatest(three().to_vec()), THRASH),
        ("235", least(others()), TWO),
        ("236", greatest(others()), TWO),
        ("237", bc_twitter.slower(TPP, ALL_SLOW), THRASH),
        ("239", most(SOCKET, TPP, ALTO), FIVE),
        ("240", most(CARD, TPP, LINUX), FIVE),
        ("241", most(CARD, NUMA, LINUX), FIVE),
        ("242", most(CARD, NOMAD, LINUX), FIVE),
        ("243", most(CARD, TPP, ALTO), FIVE),
    ];
    let predicted = predicted.into_iter().map(|(row, figure, note)| Rule {
        is_slow: true,
        note,
        ..Rule::predicted(format!("SUP-{row}"), figure)
    });
    let mut rules = vec![
        parameter("SUP-217", "cycles", |own| own.low.get()),
        parameter("SUP-218", "cycles", |own| own.high.get()),
        parameter("SUP-219", "steps", |_| f64::from(Alto::STEPS)),
        parameter("SUP-220", "pages", |_| f64::from(Alto::GROUP)),
        parameter("SUP-221", "of 10 pages", |own| f64::from(own.first_step)),
        parameter("SUP-222", "s", |_| Alto::EVERY_S),
    ];
    rules.extend(predicted);
    rules.extend(Rule::not_modelled("SUP", [238], MORE));
    rules.extend(Rule::not_modelled("SUP", 223..=226, NOT_A_RESULT));
    rules
}
