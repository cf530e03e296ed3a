//! What the kernel's tiering did: `weir/tier-run/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::tiering::{KernelTiering, TieringCounts};
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::moves::{self, ROWS, TierMove};
use super::schemes::{self, TierScheme};

/// The own part of a `tier run` document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tiered {
    /// Every window, in order.
    pub windows: Vec<TierWindow>,
    /// Free memory of each tier at the end of each window.
    pub rooms: Vec<TierRoom>,
    /// What became of parts of memory that were to move, in each window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<TierMove>,
    /// What schemes of DAMON did in each window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemes: Vec<TierScheme>,
    /// The settings before.
    pub before: KernelTiering,
    /// The settings in force.
    pub in_force: KernelTiering,
    /// The size of a page that is counted.
    pub page: Bytes,
    /// Weights of interleaving in force, where they were set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<(TierName, u32)>,
}

/// A window. What the kernel does not count is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierWindow {
    /// Its end, in seconds since the kernel's counts were first read, before anything was set.
    pub t_s: f64,
    /// Its length.
    pub window_s: f64,
    /// What was counted in it.
    #[serde(flatten)]
    pub counts: TieringCounts,
    /// The share of the time in which some task waited for memory, in percent.
    pub pressure_pct: Option<f64>,
    /// What the kernel was asked to demote, in bytes.
    pub asked: Bytes,
}

/// Free memory of a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierRoom {
    /// The end of the window, in seconds.
    pub t_s: f64,
    /// The tier.
    pub tier: TierName,
    /// Its node.
    pub node: u32,
    /// Free memory of the node.
    pub free: Bytes,
}

impl Tiered {
    fn sum(&self, count: impl Fn(&TieringCounts) -> Option<u64>) -> Option<u64> {
        self.windows
            .iter()
            .map(|window| count(&window.counts))
            .sum()
    }

    fn pages(&self, pages: Option<u64>, what: &str) -> String {
        match pages {
            Some(pages) => {
                let bytes = Bytes(pages * self.page.get());
                format!("{what} {pages} pages ({bytes})")
            }
            None => format!("does not count what it {what}"),
        }
    }
}

/// Settings in words.
pub fn in_words(settings: &KernelTiering, weights: &[(TierName, u32)]) -> String {
    let demotion = settings
        .demotion
        .map(|on| format!("demotion {}", if on { "on" } else { "off" }));
    let balancing = settings
        .balancing
        .map(|mode| format!("NUMA balancing {mode}"));
    let limit = settings
        .promote_limit
        .map(|limit| format!("promotion limited to {:.3} GB/s", limit.get()));
    let weights: Vec<String> = weights
        .iter()
        .map(|(tier, weight)| format!("{tier}={weight}"))
        .collect();
    let weights = (!weights.is_empty()).then(|| format!("weights {}", weights.join(",")));
    let all: Vec<String> = [demotion, balancing, limit, weights]
        .into_iter()
        .flatten()
        .collect();
    match all.is_empty() {
        true => "the kernel has no tiering".into(),
        false => all.join(", "),
    }
}

impl Outcome for Tiered {
    const SCHEMA: &'static str = "weir/tier-run/1";
    const TITLE: &'static str = "The kernel's tiering";
    const WORDS: &'static str = "Pages that the kernel promoted to fast and demoted to slow tiers in each window, and free memory of each tier.";

    fn answer(&self, about: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let lasted: f64 = self.windows.iter().map(|window| window.window_s).sum();
        let promoted = self.pages(self.sum(|counts| counts.promoted), "promoted");
        let demoted = self.pages(self.sum(|counts| counts.demoted), "demoted");
        let text = format!("in {lasted:.1} s the kernel {promoted} and {demoted}");
        let mut all = vec![note("tiering", text)];
        all.push(note("in force", in_words(&self.in_force, &self.weights)));
        if self.before != self.in_force {
            all.push(note("before", in_words(&self.before, &[])));
        }
        all.extend(moves::answer(&self.moves, self.page));
        all.extend(schemes::answer(&self.schemes));
        let nodes = about
            .topology
            .tiers
            .iter()
            .filter(|tier| tier.node.is_some());
        if nodes.count() < 2 {
            let text = "memory of one node only: no page can be promoted or demoted";
            all.push(Verdict::new(Severity::Doubt, "this host", text));
        }
        let found = (
            self.sum(|counts| counts.candidates)
                .filter(|&found| found > 0),
            self.sum(|counts| counts.promoted),
        );
        if let (Some(found), Some(promoted)) = found {
            let text =
                format!("{found} pages were hot enough to promote; {promoted} were promoted");
            all.push(note("promotion", text));
        }
        if let Some(failed) = self
            .sum(|counts| counts.failed)
            .filter(|&failed| failed > 0)
        {
            let text = format!(
                "{failed} pages could not be moved: their new node is full, or they are in use by the kernel"
            );
            all.push(Verdict::new(Severity::Doubt, "migration", text));
        }
        if let Some(swapped) = self
            .sum(|counts| counts.swapped)
            .filter(|&swapped| swapped > 0)
        {
            let text =
                format!("{swapped} pages went to swap: slow tiers are full, or demotion is off");
            all.push(Verdict::new(Severity::Doubt, "swap", text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let line = |title: &str, y: &'static str, what: &str| {
            View::lines("windows", title, ("t_s", "time [s]"), (y, what), &[])
        };
        vec![
            View::table(
                "windows",
                "Pages in each window",
                vec![
                    col("t_s").head("t"),
                    col("promoted"),
                    col("candidates").head("hot"),
                    col("demoted"),
                    col("hint_faults").head("hint faults"),
                    col("migrated"),
                    col("failed"),
                    col("swapped"),
                    col("pressure_pct").head("pressure"),
                    col("asked"),
                ],
            )
            .at_most(ROWS),
            moves::table(),
            schemes::table(),
            line("Promotion", "promoted", "pages promoted in a window"),
            line("Demotion", "demoted", "pages demoted in a window"),
            View::lines(
                "rooms",
                "Free memory",
                ("t_s", "time [s]"),
                ("free", "free memory [bytes]"),
                &["tier"],
            )
            .axes(Axis::Linear, Axis::Sizes),
        ]
    }
}
