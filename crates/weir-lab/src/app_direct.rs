//! What `weir bench stream --dax` finds: STREAM in a mapped file, and the time that durability adds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::access::Dataflow;
use weir_model::durable::Durable;
use weir_model::topology::Affinity;
use weir_model::units::{Bytes, GbPerSec};

use crate::studies::stream::Kernel;
use crate::view::{Axis, Medium, View, col};
use crate::{About, Outcome, Severity, Verdict};

/// STREAM in a mapped file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppDirect {
    /// One for each kernel, thread count and durability.
    pub kernels: Vec<KernelRow>,
    /// The file.
    pub path: String,
    /// How it is mapped: a DAX device (of volatile memory), MAP_SYNC, or a shared mapping without MAP_SYNC.
    pub mapping: String,
    /// Whether a line that was written back is durable without a system call.
    pub is_durable: bool,
    /// The instruction that writes lines back.
    pub write_back: String,
    /// Elements of an array, 8 bytes each.
    pub elements: u64,
    /// Bytes that are made durable at once.
    pub block_bytes: Bytes,
    /// What an earlier run left in the file, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Reopened>,
}

/// What an earlier run left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reopened {
    /// What that run did for each block; absent where it ended before its arrays had their first values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<Durable>,
    /// Blocks whose transaction had not ended, which have their old values again.
    pub undone: u64,
    /// Blocks that the kernel under way had not written.
    pub old: u64,
    /// Blocks of all arrays that have the newest values.
    pub new: u64,
    /// Blocks that are neither as a whole.
    pub torn: u64,
}

/// A kernel with this many threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelRow {
    /// The kernel.
    pub kernel: Dataflow,
    /// Threads.
    pub threads: u32,
    /// The socket they are of, 0 for the one whose DRAM is tier `dram`.
    #[serde(default, skip_serializing_if = "weir_model::topology::is_first")]
    pub socket: u32,
    /// In which order they took the cores of both sockets; absent where one socket has all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// What is done for each block that is written.
    pub durable: Durable,
    /// The best time, as STREAM prints it: bytes of the program, the first time left out.
    pub gbps: GbPerSec,
    /// The same of the mean time.
    pub mean_gbps: GbPerSec,
    /// What durability adds to a block of one thread, by the best times, in ns; absent for `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_ns: Option<f64>,
}

impl AppDirect {
    fn best(&self, durable: Durable) -> Option<&KernelRow> {
        let own = self.kernels.iter().filter(|row| row.durable == durable);
        own.filter(|row| row.kernel == Dataflow::Triad)
            .max_by(|a, b| a.gbps.get().total_cmp(&b.gbps.get()))
    }
}

/// The factor to bandwidth from a time: STREAM counts the arrays that are read and the one that is written.
pub fn bytes_counted(kernel: Dataflow, elements: u64) -> Bytes {
    let sources = (Kernel::ALL.iter())
        .find(|one| one.dataflow() == kernel)
        .map_or(1, |one| one.sources());
    Bytes(8 * elements * (u64::from(sources) + 1))
}

impl Outcome for AppDirect {
    const SCHEMA: &'static str = "weir/app-direct/1";
    const TITLE: &'static str = "STREAM in a mapped file";
    const WORDS: &'static str =
        "Bytes as STREAM counts them. Durable is what is done for each block that is written.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text| Verdict::new(Severity::Note, about, text);
        let mut all = Vec::new();
        if let Some(plain) = self.best(Durable::None) {
            let costs = [Durable::Block, Durable::Transaction].map(|durable| {
                let row = self.best(durable)?;
                let left = 100.0 * row.gbps.get() / plain.gbps.get();
                Some(format!(
                    "durable by {durable} {:.1} GB/s, {left:.0} % of that",
                    row.gbps.get()
                ))
            });
            let mut parts = vec![format!("triad {:.1} GB/s", plain.gbps.get())];
            parts.extend(costs.into_iter().flatten());
            all.push(note("best", parts.join("; ")));
        }
        let by = format!("{}, written back by {}", self.mapping, self.write_back);
        all.push(match self.is_durable {
            true => note("mapped", by),
            false => Verdict::new(
                Severity::Doubt,
                "mapped",
                format!("{by}: what is written survives the program, but not a loss of power"),
            ),
        });
        if let Some(left) = &self.reopened {
            all.push(left.verdict());
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let title = "bandwidth, as STREAM counts [GB/s]";
        vec![
            View::grid(
                "kernels",
                "By threads, durable: {durable}",
                "threads",
                &["kernel"],
                "gbps",
            )
            .each(&["durable"])
            .on(Medium::Text),
            View::table(
                "kernels",
                format!(
                    "Time that durability adds to {} of one thread",
                    self.block_bytes
                ),
                vec![
                    col("durable"),
                    col("threads"),
                    col("kernel"),
                    col("durable_ns").head("added"),
                ],
            )
            .only(crate::view::Only::Has("durable_ns")),
            View::lines(
                "kernels",
                "STREAM by threads, durable: {durable}",
                ("threads", "threads"),
                ("gbps", title),
                &["kernel"],
            )
            .each(&["durable"])
            .axes(Axis::Counts, Axis::Linear),
        ]
    }
}

impl Reopened {
    fn verdict(&self) -> Verdict {
        let Self {
            undone,
            old,
            new,
            torn,
            ..
        } = self;
        let Some(durable) = self.durable else {
            let text = "an earlier run ended before its arrays had their first values".to_owned();
            return Verdict::new(Severity::Note, "reopened", text);
        };
        let text = format!(
            "an earlier run (durable: {durable}) left {new} new blocks, {old} old ones and {torn} that are half new; {undone} undone by the log"
        );
        // Only a transaction promises whole blocks.
        let severity = match (*torn > 0, durable) {
            (true, Durable::Transaction) => Severity::Wrong,
            _ => Severity::Note,
        };
        Verdict::new(severity, "reopened", text)
    }
}
