//! `weir plan coherence`: whether the protocol of CXL keeps caches coherent, and what its transactions take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_coherence::check::{self, Checked, Fault};
use weir_coherence::cost::{self, Before, Cost, Parts};
use weir_coherence::message::Flit;
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::units::{Bytes, Nanos};

/// A walk takes as long as a visit to so many states.
const A_WALK: u64 = 6_000;
/// And a search for a planted mistake.
const A_MISTAKE: u64 = 30_000;

/// What is checked and counted.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct Coherence {
    /// Mistakes to plant, which the checker must find: no-wait, silent-filter,
    /// crossed-write, no-conflict, lost-write, ack-passes, no-answer, bias-flip,
    /// stale-memrd, bogus-data, snoop-passes-go, early-forward.
    #[arg(long = "break", value_delimiter = ',', value_name = "NAME")]
    pub faults: Vec<Fault>,
    /// Random walks of eight hosts, of 2000 steps each; --seed draws others.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub walks: u64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoherencePlan {
    /// The machine whose latencies are added up.
    pub on: String,
    /// From a core to the home agent and back.
    pub core: Nanos,
    /// From there to the device's controller, or back.
    pub link: Nanos,
    /// The device's DRAM.
    pub medium: Nanos,
    /// Protocols that were explored.
    pub checks: Vec<CheckRow>,
    /// The shortest ways to a broken rule, a step a row.
    pub ways: Vec<WayRow>,
    /// Transactions.
    pub transactions: Vec<TransactionRow>,
}

/// A protocol that was explored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRow {
    /// What was explored.
    pub explored: String,
    /// The planted mistake.
    pub fault: Option<String>,
    /// States that were seen; of random walks, steps.
    pub states: u64,
    /// Steps between them; absent where a rule is broken, since not all were followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The rule that is broken.
    pub broken: Option<String>,
}

/// A step on a way to a broken rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WayRow {
    /// The planted mistake.
    pub fault: String,
    /// Which step.
    pub step: u32,
    /// What happens.
    pub what: String,
}

/// What a transaction takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransactionRow {
    /// Whose memory: HDM-DB is shared by hosts, HDM-D of a Type-2 device, the other one of its host.
    pub memory: String,
    /// The transaction.
    pub transaction: String,
    /// Its messages.
    pub messages: String,
    /// What goes to devices, in flits of 68 bytes.
    pub down: Bytes,
    /// What comes from them.
    pub up: Bytes,
    /// What goes to devices, in flits of 256 bytes.
    pub down_256: Bytes,
    /// What comes from them.
    pub up_256: Bytes,
    /// Crossings of a link that follow each other.
    pub crossings: u64,
    /// What the requester waits.
    pub latency: Nanos,
}

impl Coherence {
    /// How many steps of progress it has: checks, walks and mistakes.
    pub fn steps(&self) -> usize {
        check::ALL.len() + self.walks as usize + self.faults.len()
    }

    /// Checks and counts; `None` if a stop was requested meanwhile. `reached` is told how many steps are done, and the share
    /// of the work that was done.
    pub fn run(
        &self,
        on: String,
        seed: u64,
        parts: Parts,
        mut reached: impl FnMut(usize, f64),
    ) -> Option<CoherencePlan> {
        let states: u64 = check::ALL.iter().map(|(_, states)| states).sum();
        let others = self.walks * A_WALK + self.faults.len() as u64 * A_MISTAKE;
        let (mut done, mut work) = (0, 0);
        let mut step = |steps, more| {
            done += steps;
            work += more;
            reached(done, work as f64 / (states + others) as f64);
        };
        let mut checked = Vec::new();
        for (check, states) in check::ALL {
            let mut before = 0;
            checked.push(check(&mut |visited| {
                step(0, visited as u64 - before);
                before = visited as u64;
            })?);
            step(1, states.saturating_sub(before));
        }
        if self.walks > 0 {
            let mut walked = || step(1, A_WALK);
            checked.push(check::walks(seed, self.walks, 2_000, &mut walked)?);
        }
        for &fault in &self.faults {
            checked.push(check::with(fault)?);
            step(1, A_MISTAKE);
        }
        let ways = checked.iter().flat_map(|one| {
            let steps = one.broken.iter().flat_map(|(_, steps)| steps);
            steps.enumerate().map(|(at, what)| WayRow {
                fault: one.fault.unwrap_or("none").into(),
                step: at as u32 + 1,
                what: what.clone(),
            })
        });
        Some(CoherencePlan {
            on,
            core: parts.core,
            link: parts.link,
            medium: parts.medium,
            ways: ways.collect(),
            checks: checked.iter().map(CheckRow::of).collect(),
            transactions: transactions(&parts),
        })
    }
}

impl CheckRow {
    fn of(one: &Checked) -> Self {
        Self {
            explored: one.what.clone(),
            fault: one.fault.map(str::to_owned),
            states: one.states,
            steps: one.steps,
            broken: one.broken.as_ref().map(|(rule, _)| (*rule).to_owned()),
        }
    }
}

fn transactions(parts: &Parts) -> Vec<TransactionRow> {
    let row = |memory: &str, transaction: &str, cost: &Cost| TransactionRow {
        memory: memory.to_owned(),
        transaction: transaction.to_owned(),
        messages: words(cost),
        down: cost.down(Flit::B68),
        up: cost.up(Flit::B68),
        down_256: cost.down(Flit::B256),
        up_256: cost.up(Flit::B256),
        crossings: cost.crossings(),
        latency: cost.latency(parts),
    };
    let shared = [
        ("load, no agent has it", Before::None, false, false),
        ("load, another modified it", Before::Dirty, false, false),
        ("store, no agent has it", Before::None, false, true),
        ("store, another has it alone", Before::Clean, false, true),
        ("store, another modified it", Before::Dirty, false, true),
        ("store, 7 others share it", Before::Sharers(7), true, true),
    ];
    let mut rows: Vec<TransactionRow> = shared
        .into_iter()
        .map(|(name, before, has, store)| row("HDM-DB", name, &cost::shared(before, has, store)))
        .collect();
    let leaves = [
        ("a clean line leaves a cache", cost::leaves(false, None)),
        ("a modified line leaves a cache", cost::leaves(true, None)),
        (
            "a modified line leaves the filter",
            cost::leaves(true, Some(1)),
        ),
    ];
    rows.extend(leaves.iter().map(|(name, cost)| row("HDM-DB", name, cost)));
    rows.extend(cost::type2().iter().map(|(kind, name, cost)| {
        let memory = match kind {
            weir_coherence::type2::Kind::Host => "host",
            weir_coherence::type2::Kind::Device => "HDM-D",
        };
        row(memory, name, cost)
    }));
    rows
}

fn words(cost: &Cost) -> String {
    let words = cost.messages().iter().map(|(message, count)| match count {
        1 => message.name.to_owned(),
        count => format!("{count} {}", message.name),
    });
    words.collect::<Vec<_>>().join(", ")
}

impl Outcome for CoherencePlan {
    const SCHEMA: &'static str = "weir/plan-coherence/1";
    const TITLE: &'static str = "Coherence";
    const WORDS: &'static str =
        "States of the protocol that were checked, and what its transactions take of a link.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let (planted, right): (Vec<_>, Vec<_>) =
            self.checks.iter().partition(|one| one.fault.is_some());
        let states: u64 = right.iter().map(|one| one.states).sum();
        let mut notes = Vec::new();
        // A mistake that was asked for is the question.
        for one in planted {
            let steps = self
                .ways
                .iter()
                .filter(|way| Some(&way.fault) == one.fault.as_ref());
            let fault = one.fault.clone().unwrap_or_default();
            notes.push(match &one.broken {
                Some(rule) => {
                    let text = format!("found: {rule}, after {} steps", steps.count());
                    Verdict::new(Severity::Note, fault.as_str(), text)
                }
                None => Verdict::new(
                    Severity::Wrong,
                    fault.as_str(),
                    "this mistake is not found".to_owned(),
                ),
            });
        }
        if let Some(wrong) = right.iter().find(|one| one.broken.is_some()) {
            let rule = wrong.broken.clone().unwrap_or_default();
            let text = format!(
                "{}: {rule}: please report this mistake of weir",
                wrong.explored
            );
            notes.push(Verdict::new(Severity::Wrong, "rules", text));
        } else {
            let text = format!(
                "in {states} states one host writes at a time, readers see the last write, the snoop filter tracks all that is \
                 cached, and everything under way ends"
            );
            notes.push(Verdict::new(Severity::Note, "rules", text));
        }
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let checks = vec![
            col("explored"),
            col("fault").head("mistake").if_any(),
            col("states"),
            col("steps"),
        ];
        let ways = vec![col("fault").head("mistake"), col("step"), col("what")];
        let transactions = vec![
            col("memory"),
            col("transaction"),
            col("down").head("to the\ndevice"),
            col("up").head("from it"),
            col("crossings").head("cross-\nings"),
            col("latency"),
        ];
        let title = format!(
            "What transactions take, in flits of 68 bytes; a crossing takes {:.0}, DRAM {:.0}",
            self.link, self.medium
        );
        vec![
            View::table("checks", "What was explored", checks),
            View::table("ways", "The shortest way to a broken rule", ways),
            View::table("transactions", title, transactions),
            View::table(
                "transactions",
                "Their messages",
                vec![col("memory"), col("transaction"), col("messages")],
            ),
        ]
    }
}
