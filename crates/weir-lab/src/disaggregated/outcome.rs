//! What `weir place disaggregated` finds, and how it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};

use super::methods::{Method, Parts};
use super::programs::ProgramRow;
use crate::study::{About, Outcome};
use crate::view::{Part, View, col};
use crate::{Severity, Verdict};

/// Memory of another server, by method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disaggregation {
    /// The tier of the device.
    pub tier: TierName,
    /// Accesses of a method and a size.
    pub accesses: Vec<AccessRow>,
    /// Working sets.
    pub sets: Vec<SetRow>,
    /// Programs, by method.
    pub programs: Vec<ProgramRow>,
}

/// One access, by what takes its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccessRow {
    /// The method.
    pub method: Method,
    /// Bytes that it reads.
    pub payload: Bytes,
    /// All of it.
    pub total: Nanos,
    /// Caches of the core.
    pub cache: Nanos,
    /// Waiting for a free entry of the last-level cache's misses.
    pub stall: Nanos,
    /// Link, switch and controllers of the device.
    pub cxl: Nanos,
    /// Memory, and transfers between it and an adapter.
    pub memory: Nanos,
    /// Adapters and network.
    pub network: Nanos,
    /// The library, the server of a key-value store, or the kernel.
    pub software: Nanos,
    /// Copies between buffers.
    pub copy: Nanos,
}

impl AccessRow {
    pub(super) fn of(method: Method, payload: Bytes, parts: Parts) -> Self {
        Self {
            method,
            payload,
            total: parts.total(),
            cache: parts.cache,
            stall: parts.stall,
            cxl: parts.cxl,
            memory: parts.memory,
            network: parts.network,
            software: parts.software,
            copy: parts.copy,
        }
    }
}

/// Loads of a line at random in a working set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetRow {
    /// Its size.
    pub working_set: Bytes,
    /// On local memory.
    pub local: Nanos,
    /// On the device.
    pub cxl: Nanos,
    /// By reads over RDMA without a library, which no cache answers.
    pub rdma: Nanos,
}

const PARTS: [Part; 7] = [
    Part::new("cache", "caches", 0),
    Part::new("stall", "stall", 1),
    Part::new("cxl", "CXL", 2),
    Part::new("memory", "memory", 3),
    Part::new("network", "network", 4),
    Part::new("software", "software", 5),
    Part::new("copy", "copy", 6),
];

impl Outcome for Disaggregation {
    const SCHEMA: &'static str = "weir/place-disaggregated/1";
    const TITLE: &'static str = "Disaggregated memory";
    const WORDS: &'static str = "Each bar is one access, made of what takes its time. RDMA and swap move data by adapters, a key-value store by a server.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let least = self.accesses.iter().map(|row| row.payload.get()).min();
        let of = |method| {
            let mut rows = self.accesses.iter();
            rows.find(|row| row.method == method && Some(row.payload.get()) == least)
        };
        let mut all = Vec::new();
        if let (Some(local), Some(cxl), Some(rdma), Some(swap)) = (
            of(Method::Local),
            of(Method::Cxl),
            of(Method::Rdma),
            of(Method::Swap),
        ) {
            all.push(note(
                "an access",
                format!(
                    "{} of {} take {:.0} ns, {:.1} times local memory; RDMA takes {:.0} times as long, of which the \
                     library is {:.0} %, and a swapped page {:.0} times",
                    cxl.payload,
                    self.tier,
                    cxl.total.get(),
                    cxl.total / local.total,
                    rdma.total / cxl.total,
                    100.0 * (rdma.software / rdma.total),
                    swap.total / cxl.total
                ),
            ));
        }
        let programs = self.programs.iter();
        let gains: Vec<String> = programs
            .filter(|row| row.method == Method::Cxl && row.of_swap_pct > 0.0)
            .map(|row| format!("{} {:.1}", row.program, 100.0 / row.of_swap_pct))
            .collect();
        if !gains.is_empty() {
            let text = format!("faster over CXL than with swap: {} times", gains.join(", "));
            all.push(note("programs", text));
        }
        all.push(note(
            "prototype",
            "on every machine adapters, libraries, a server and the kernel take what they take on the prototype of \
             DirectCXL, whose cores run at 100 MHz"
                .into(),
        ));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        vec![
            View::table(
                "accesses",
                "An access by method and size",
                vec![
                    col("method"),
                    col("payload"),
                    col("total"),
                    col("cache"),
                    col("stall"),
                    col("cxl"),
                    col("memory"),
                    col("network").head("net-\nwork"),
                    col("software").head("soft-\nware"),
                    col("copy"),
                ],
            ),
            View::stacks(
                "accesses",
                "What takes the time of an access",
                &["method"],
                "payload",
                (&PARTS, "latency (ns)"),
            ),
            View::table(
                "sets",
                "A line at random, by working set",
                vec![
                    col("working_set"),
                    col("local"),
                    col("cxl"),
                    col("rdma").head("rdma, without\nlibrary and copy"),
                ],
            ),
            View::table(
                "programs",
                "A Get of memdb, or 1000 instructions of a thread, with the data in memory of another server",
                vec![
                    col("program"),
                    col("method"),
                    col("time"),
                    col("of_swap_pct").head("of swap"),
                    col("own"),
                    col("device"),
                    col("network"),
                    col("software"),
                    col("requests"),
                ],
            ),
        ]
    }
}
