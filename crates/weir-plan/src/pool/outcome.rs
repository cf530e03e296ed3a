//! The document of `weir plan pool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Outcome, Severity, Verdict};

use super::seats::SOCKETS;
use super::stranding::{StrandedBucket, StrandedDay};
use super::verdict::Saving;
use crate::packing::PackingRow;
use crate::prices::Price;
use crate::trace::problems::ProblemCount;

/// Share of VMs without a machine above which the trace does not fit the cluster.
const REFUSED: f64 = 0.01;
/// Share of them above which the answer begins with that.
const MANY: f64 = 0.1;

/// What pools save on a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolPlan {
    /// A row for each policy and size of pools.
    pub savings: Vec<Saving>,
    /// Stranded memory by the cores that are rented.
    pub stranding: Vec<StrandedBucket>,
    /// Stranded memory by cluster and day.
    pub days: Vec<StrandedDay>,
    /// The packing bound at moments of the first cluster.
    pub packings: Vec<PackingRow>,
    /// Lines of traces with problems.
    pub problems: Vec<ProblemCount>,
    /// The prices.
    pub prices: Vec<Price>,
    /// Clusters that were replayed.
    pub clusters: u64,
    /// Machines of a cluster.
    pub machines: u32,
    /// Their size.
    pub machine_size: String,
    /// Arrivals and departures.
    pub events: u64,
    /// VMs that were placed.
    pub placed: u64,
    /// VMs for which no machine had room.
    pub refused: u64,
    /// Placed VMs that span two sockets, as no socket of their machine had room.
    #[serde(default)]
    pub spanning: u64,
    /// Mean share of the memory in use that is on another socket than its VM's cores.
    #[serde(default)]
    pub apart_pct: f64,
}

impl PoolPlan {
    /// The row of a policy and a size.
    pub fn saving(&self, policy: &str, sockets: u32) -> Option<&Saving> {
        let mut rows = self.savings.iter();
        rows.find(|row| row.policy == policy && row.sockets == sockets)
    }

    /// What is left over by the best size of pools under Pond's predictions.
    fn best(&self) -> Option<&Saving> {
        // Without pools no cluster had an answer.
        let pond = (self.savings.iter()).filter(|row| row.policy == "pond" && row.pools > 0);
        // Of equal ones the smallest: no pool is larger than the cluster.
        pond.rev()
            .max_by(|a, b| a.net.get().total_cmp(&b.net.get()))
    }

    /// The highest gain of packing, as a factor.
    pub fn packing_gain(&self) -> Option<f64> {
        let gains = self
            .packings
            .iter()
            .filter(|row| row.pool > 1)
            .map(|row| row.gain_fractional);
        gains.max_by(f64::total_cmp)
    }
}

impl Outcome for PoolPlan {
    const SCHEMA: &'static str = "weir/plan-pool/1";
    const TITLE: &'static str = "What pools save";
    const WORDS: &'static str =
        "Memory that is saved against all of it local, by policy and size of pools.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let mut notes = Vec::new();
        let seen = (self.placed + self.refused).max(1);
        if let Some(best) = self.best() {
            let without = match self.refused as f64 > MANY * seen as f64 {
                true => format!(
                    "without the {} of {seen} VMs that found no machine, ",
                    self.refused
                ),
                false => String::new(),
            };
            let within = |value: f64, half: Option<f64>, places: usize| match half {
                Some(half) => format!("{value:.places$} ± {half:.places$}"),
                None => format!("{value:.places$}"),
            };
            let saved = within(best.saved_pct, best.saved_ci95_pct, 1);
            let memory = within(best.saved_each_gib, best.saved_each_ci95_gib, 0);
            let money = best.net.get() / 1000.0;
            let half = best.net_ci95.map(|half| half.get() / 1000.0);
            let left = within(money, half, 1);
            let verb = if money > 0.0 { "pays" } else { "does not pay" };
            let (device, or) = match best.pays_below {
                Some(price) if price.get() >= 0.5 => (
                    format!("it pays with a device below {:.0} USD", price.get()),
                    "or",
                ),
                _ => ("it does not pay even with a free device".into(), "but"),
            };
            let dram = best.pays_above.map_or(String::new(), |price| {
                format!(", {or} with server memory above {:.2} USD/GB", price.get())
            });
            let each = match best.pools {
                1 => "the pool".to_owned(),
                pools => format!("each of {pools} pools"),
            };
            notes.push(note(
                &format!("a pool of {} sockets with the policy {} {verb}", best.sockets, best.policy),
                format!(
                    "{without}{memory} GiB of memory are saved for {each}, {saved} % against machines without a pool that are bought by the same \
                     rule and {:.1} % against the machines as they are, of which {:.1} % need no pool; {left} thousand USD are left over for each pool; \
                     {:.1} % of the VMs are slower than the margin; {device}{dram}",
                    best.against_now_pct, best.without_pct, best.slow_pct
                ),
            ));
        }
        if let (Some(best), Some(gain)) = (self.best(), self.packing_gain()) {
            notes.push(note(
                "both verdicts",
                difference(best, gain, &self.stranding),
            ));
        }
        if let Some((best, speed)) = self.best().and_then(|best| Some((best, best.release?))) {
            let text = format!(
                "each pool of {} sockets must release {speed}, so that 99.99 % of the VMs wait for no slice when they start; it has its \
                 peak and no buffer, with all in it that Pond predicts",
                best.sockets
            );
            notes.push(note("release of slices", text));
        }
        if self.clusters == 1 {
            let text = "one cluster gives none; name several traces with --trace, or generate some with --clusters";
            notes.push(note("intervals", text.into()));
        }
        let sockets = self.machines.saturating_mul(SOCKETS);
        let mut large: Vec<u32> = self.savings.iter().map(|row| row.sockets).collect();
        large.retain(|of_pool| *of_pool > sockets);
        large.sort_unstable();
        large.dedup();
        if !large.is_empty() {
            let large: Vec<String> = large.iter().map(u32::to_string).collect();
            let text = format!(
                "more than the {sockets} of a cluster of --machines {}; a row for {} sockets is for one pool of all {sockets}",
                self.machines,
                large.join(" or ")
            );
            notes.push(Verdict::new(Severity::Doubt, "sockets of a pool", text));
        }
        if self.spanning > 0 {
            let text = format!(
                "{:.1} % of the VMs when they are placed; {:.2} % of the memory in use is on another socket than the cores of its VM",
                100.0 * self.spanning as f64 / self.placed.max(1) as f64,
                self.apart_pct
            );
            notes.push(note("both sockets of a machine are used by", text));
        }
        if self.refused as f64 > REFUSED * seen as f64 {
            let text = format!(
                "{} of {seen} VMs found no machine with room, and are in no figure; add machines with --machines",
                self.refused
            );
            notes.push(Verdict::new(Severity::Doubt, "refused", text));
        }
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let savings = vec![
            col("policy"),
            col("sockets"),
            col("saved_pct").head("saved").signed(),
            col("against_now_pct").head("vs now").signed(),
            col("as_split_pct").head("split").signed(),
            col("kept_pct").head("kept").signed(),
            col("kept_uniform_pct").head("alike").signed(),
            col("pooled_pct").head("in pool"),
            col("slow_pct").head("slow VMs").places(1),
            col("net").head("left over").signed().places(0),
        ];
        let stranding = vec![
            col("cores_pct").head("cores"),
            col("days"),
            col("mean_pct").head("stranded"),
            col("p5_pct").head("p5"),
            col("p95_pct").head("p95"),
            col("spanning_pct").head("span sockets").places(1),
        ];
        let packings = vec![
            col("machine").head("snapshot"),
            col("pool").head("machines"),
            col("vms").head("VMs"),
            col("lower").head("pools >="),
            col("upper").head("pools <="),
            col("gain_fractional")
                .head("gain, emptiest\npool by its fill")
                .places(3),
        ];
        let problems = vec![
            col("problem").in_words(),
            col("lines"),
            col("first").head("first lines"),
            col("policy"),
        ];
        let lines = View::lines(
            "savings",
            "Memory saved by size of pools",
            ("sockets", "sockets that share a pool"),
            ("saved_pct", "memory saved (%)"),
            &["policy"],
        );
        vec![
            View::table(
                "savings",
                "Memory saved, and what is left over for a pool",
                savings,
            ),
            View::table(
                "stranding",
                "Stranded memory by cores that are rented",
                stranding,
            ),
            View::table("packings", "The packing bound of the same VMs", packings),
            View::table("problems", "Lines with problems", problems),
            lines.axes(Axis::Counts, Axis::Signed),
        ]
    }
}

/// Why the two verdicts on one trace differ.
fn difference(best: &Saving, gain: f64, stranding: &[StrandedBucket]) -> String {
    let days: u64 = stranding.iter().map(|bucket| bucket.days).sum();
    let stranded = stranding
        .iter()
        .map(|bucket| bucket.mean_pct * bucket.days as f64)
        .sum::<f64>();
    let stranded = match days {
        0 => "memory".to_owned(),
        days => format!("{:.1} % of the memory", stranded / days as f64),
    };
    let packed = 100.0 * (gain - 1.0);
    let as_split = best.as_split_pct.map_or(String::new(), |saved| {
        format!(
            " If all that may be in the pool is put there, though there is local memory for it, {saved:.1} % are saved: machines \
             must then have local memory for those VMs that may not use the pool, wherever they meet"
        )
    });
    format!(
        "pools save {:.1} %, packing gains {packed:.1} %. Packing keeps the memory for each core: it cannot see the \
         {stranded} that is stranded when cores are rented, nor that machines have their peaks at different \
         times.{as_split}. DIMM sizes and headroom are in neither",
        best.saved_pct
    )
}
