//! The document of `weir plan failures`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};

use super::Topology;
use super::classes::Class;
use super::compared::ClassRow;
use super::inject::Failed;
use super::part::Part;
use super::rates::{Rate, Rates};
use super::tally::{self, PartFailure, SecondCopy};
use crate::pool::Traced;
use crate::prices::{Price, Prices};
use crate::trace::problems::ProblemCount;

/// What failures take down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailurePlan {
    /// A row for each part and size of pools.
    pub failures: Vec<PartFailure>,
    /// What second copies of the pools' memory cost and save.
    pub copies: Vec<SecondCopy>,
    /// Classes by which memory may be allocated, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassRow>,
    /// How often parts fail.
    pub rates: Vec<Rate>,
    /// The prices.
    pub prices: Vec<Price>,
    /// Lines of traces with problems.
    pub problems: Vec<ProblemCount>,
    /// Clusters that were replayed.
    pub clusters: u64,
    /// Machines of a cluster.
    pub machines: u32,
    /// Their size, with their part of the pool.
    pub machine_size: String,
    /// Share of each VM's memory in the pool.
    pub share_pct: f64,
    /// Share of the VMs that go on without it.
    pub optional_pct: f64,
    /// Devices of a pool.
    pub devices: u32,
    /// Whether a VM's memory is spread over all of them.
    pub interleaved: bool,
    /// Moments at which parts failed, of all clusters.
    pub moments: u64,
    /// Hours until a VM is back that is started on another machine.
    pub restart_hours: f64,
    /// Years over which a second copy is paid off.
    pub life_years: f64,
}

impl FailurePlan {
    /// What all clusters together say.
    pub fn new(
        topology: &Topology,
        clusters: &[Traced],
        failed: &[Failed],
        (rates, prices): (&Rates, &Prices),
    ) -> Self {
        let failures = tally::parts(topology, failed, rates);
        let of_machines = |one: &&Failed| {
            one.broken.part == Part::Machine && Some(&one.sockets) == topology.sockets.first()
        };
        Self {
            copies: tally::copies(topology, &failures, rates, prices),
            failures,
            classes: Vec::new(),
            rates: rates.list.clone(),
            prices: prices.list.clone(),
            problems: clusters
                .iter()
                .flat_map(|traced| traced.problems.clone())
                .collect(),
            clusters: clusters.len() as u64,
            machines: topology.machines,
            machine_size: topology.machine.words(),
            share_pct: 100.0 * topology.share,
            optional_pct: 100.0 * topology.optional,
            devices: topology.devices,
            interleaved: topology.interleaved,
            moments: failed.iter().filter(of_machines).count() as u64,
            restart_hours: rates.restart_hours,
            life_years: rates.life_years,
        }
    }

    /// The row of a part in pools of a size; 0 for parts of no pool.
    pub fn failure(&self, part: Part, sockets: u32) -> Option<&PartFailure> {
        let mut rows = self.failures.iter();
        rows.find(|row| row.part == part.name() && row.sockets == sockets)
    }

    /// What classes of memory save, cost and lose, with pools of a size.
    fn of_classes(&self, sockets: u32) -> Vec<Verdict> {
        let row = |class: Class, sockets| {
            let mut rows = self.classes.iter();
            rows.find(|row| row.class == class.name() && row.sockets == sockets)
        };
        let (Some(local), Some(open), Some(swap)) = (
            row(Class::Local, 0),
            row(Class::Transparent, sockets),
            row(Class::Swap, sockets),
        ) else {
            return Vec::new();
        };
        let text = format!(
            "{:.1} % of memory with pools of {sockets} sockets; a load takes {:.2} times as long as from local memory where pages \
             that are touched are spread evenly ({:.2} where what is never touched is in the pool first), by remote swap {:.1} times ({:.1}); the \
             loss of a pool hits {:.1} VMs, and none where all memory is local",
            open.saved_pct,
            open.times_local,
            open.times_local_cold,
            swap.times_local,
            swap.times_local_cold,
            open.killed_total + open.told_total.unwrap_or(0.0)
        );
        let mut notes = vec![Verdict::new(
            Severity::Note,
            "transparent allocation saves",
            text,
        )];
        if local.clusters < self.clusters {
            notes.push(Verdict::new(
                Severity::Doubt,
                "classes",
                format!(
                    "they are of {} clusters of {}; in the others VMs find no room on machines as they are",
                    local.clusters, self.clusters
                ),
            ));
        }
        notes
    }

    /// VM-hours lost in a year by parts of pools of a size, or of none where that is 0: by the rates, and with the lowest
    /// and the highest.
    fn hours(&self, sockets: u32) -> [f64; 3] {
        let rows = self.failures.iter().filter(|row| row.sockets == sockets);
        rows.fold([0.0; 3], |sum, row| {
            [
                sum[0] + row.vm_hours,
                sum[1] + row.vm_hours_low,
                sum[2] + row.vm_hours_high,
            ]
        })
    }
}

impl Outcome for FailurePlan {
    const SCHEMA: &'static str = "weir/plan-failures/1";
    const TITLE: &'static str = "What failures take down";
    const WORDS: &'static str = "VMs that the failure of a part kills, by size of pools, and VM-hours that are lost in a year.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let mut notes = Vec::new();
        let sizes = self.failures.iter().map(|row| row.sockets).max();
        let largest = sizes.unwrap_or_default();
        let one = self.failure(Part::Machine, 0);
        if let (Some(device), Some(one)) = (self.failure(Part::Device, largest), one) {
            let times = match one.killed > 0.0 && device.killed > 0.0 {
                true => format!(", {:.1} times a machine", device.killed / one.killed),
                false => String::new(),
            };
            let told = match device.told > 0.0 {
                true => format!(", and notifies {:.1} by an exception", device.told),
                false => String::new(),
            };
            let text = format!(
                "{:.1} VMs in the mean, {:.0} at the 99th percentile{times}{told}; {:.1} find no room until it is back. A machine \
                 kills {:.1}",
                device.killed, device.killed_p99, device.refused, one.killed
            );
            notes.push(note(
                &format!("a device of a pool of {largest} sockets kills"),
                text,
            ));
            let (pools, own) = (self.hours(largest), self.hours(0));
            let range = |[at, low, high]: [f64; 3]| format!("{at:.1} ({low:.1} to {high:.1})");
            let text = format!(
                "{} by pools of {largest} sockets, {} by machines and their DIMMs, of {} machines, with most rates assumed",
                range(pools),
                range(own),
                self.machines
            );
            notes.push(note("VM-hours lost in a year", text));
        }
        if let Some(copy) = self.copies.iter().find(|copy| copy.sockets == largest) {
            let each = copy.of_hour.map_or(String::new(), |usd| {
                format!(", {:.0} USD for each", usd.get())
            });
            let text = format!(
                "{:.0} USD a year ({} of memory over {} years) and saves {:.1} VM-hours of failing devices{each}; writes to the \
                 pool are doubled",
                copy.a_year.get(),
                copy.memory,
                self.life_years,
                copy.vm_hours
            );
            notes.push(note("a second copy of the pools' memory costs", text));
        }
        notes.extend(self.of_classes(largest));
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let failures = vec![
            col("part"),
            col("pool"),
            col("parts"),
            col("killed").places(1),
            col("killed_p99").head("p99").places(0),
            col("killed_pct").head("of all").places(1),
            col("told").head("notified").places(1).if_any(),
            col("waiting").places(1).if_any(),
            col("refused").head("no room").places(1),
            col("vm_hours").head("VM-h").places(1),
        ];
        let copies = vec![
            col("pool"),
            col("memory"),
            col("devices"),
            col("a_year").head("USD/year").places(0),
            col("vm_hours").head("VM-h saved").places(1),
            col("of_hour").head("USD/VM-h").places(0).empty("none"),
        ];
        let classes = vec![
            col("class"),
            col("sockets"),
            col("saved_pct").head("saved").signed(),
            col("pooled_pct").head("in pool"),
            col("times_local").head("x local").places(2),
            col("times_local_cold").head("cold").places(2),
            col("killed_partial").head("device").places(1),
            col("killed_total").head("all").places(1),
            col("told_partial")
                .head("device notifies")
                .places(1)
                .if_any(),
            col("told_total").head("pool notifies").places(1).if_any(),
        ];
        let rates = vec![
            col("part"),
            col("rate_pct").head("a year"),
            col("low_pct").head("low"),
            col("high_pct").head("high"),
            col("down_hours").head("hours down"),
        ];
        let problems = vec![
            col("problem").in_words(),
            col("lines"),
            col("first").head("first lines"),
            col("policy"),
        ];
        let bars = |title, value| View::bars("failures", title, &["pool"], "part", value);
        vec![
            View::table(
                "failures",
                "What a failure takes down, and VM-hours lost in a year",
                failures,
            ),
            View::table("copies", "A second copy of the pools' memory", copies),
            View::table(
                "classes",
                "Classes of memory: load time, and VMs killed with a device or a pool",
                classes,
            ),
            View::table("rates", "How often parts fail", rates),
            View::table("problems", "Lines with problems", problems),
            bars("VMs that a failure kills", ("killed", "VMs killed")),
            bars("VM-hours lost in a year", ("vm_hours", "VM-hours a year")),
            View::bars(
                "copies",
                "What a second copy costs for each VM-hour that it saves",
                &[],
                "pool",
                ("of_hour", "USD"),
            ),
        ]
    }
}
