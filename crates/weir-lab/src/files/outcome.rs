//! What `weir place files` finds, and how it is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::archive::ArchiveRow;
use super::io::{Access, Copies, Parts, State, System};
use crate::study::{About, Outcome};
use crate::view::{Axis, Only, Part, View, col};
use crate::{Severity, Verdict};

/// Reads and writes of files, by file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileTimes {
    /// The tier of the files.
    pub tier: TierName,
    /// Bytes of a read or write.
    pub size: Bytes,
    /// Dirty pages that a cache may have.
    pub cache: Bytes,
    /// Reads and writes.
    pub ios: Vec<IoRow>,
    /// How many times as fast FLAC is as others.
    pub gains: Vec<GainRow>,
    /// Archives of one file, as tar writes them; only where one thread is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<ArchiveRow>,
    /// The copies, as measured.
    pub copies: Vec<CopyRow>,
}

/// One read or write, by what takes its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoRow {
    /// The file system.
    pub system: System,
    /// What is asked.
    pub access: Access,
    /// Whether a cache has the data.
    pub state: State,
    /// Threads that do the same.
    pub threads: u32,
    /// All of the call.
    pub total: Nanos,
    /// The system call, and the file system's own records.
    pub software: Nanos,
    /// Copies.
    pub copy: Nanos,
    /// Pages of the cache: found, counted, marked.
    pub cache: Nanos,
    /// What a flush in the background adds.
    pub flush: Nanos,
    /// What a miss adds.
    pub miss: Nanos,
    /// Pages that are attached.
    pub attach: Nanos,
    /// The share of copies.
    pub copied_pct: f64,
    /// The call, and a store into each page of the buffer after it.
    pub stored_into: Nanos,
    /// All threads together.
    pub gbps: GbPerSec,
    /// The same of writes that go on, once the cache is full of dirty pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<GbPerSec>,
    /// When the cache is full of them, in seconds; missing where the medium takes all that is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_after_s: Option<f64>,
}

/// FLAC against ext4, ext4-DAX and NOVA, all of them warm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GainRow {
    /// What is asked.
    pub access: Access,
    /// Threads that do the same.
    pub threads: u32,
    /// Times as fast as the fastest of the others.
    pub over_best: f64,
    /// Times as fast as the slowest.
    pub over_worst: f64,
    /// Times as fast as the fastest, with one invalidation of the TLB for each call.
    pub batched: f64,
    /// The same between threads of one process.
    pub between_threads: f64,
    /// The same where each page of the buffer is stored into afterwards.
    pub stored_into: f64,
}

/// Copies of this many threads, all together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyRow {
    /// The threads.
    pub threads: u32,
    /// Between two places in DRAM.
    pub cached: GbPerSec,
    /// The same while one more thread copies to the tier.
    pub while_flushing: GbPerSec,
    /// From DRAM to the tier.
    pub to_medium: GbPerSec,
    /// From the tier to DRAM.
    pub from_medium: GbPerSec,
}

impl FileTimes {
    pub(super) fn new(tier: TierName, size: Bytes, cache: Bytes) -> Self {
        Self {
            tier,
            size,
            cache,
            ios: Vec::new(),
            gains: Vec::new(),
            archives: Vec::new(),
            copies: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        system: System,
        access: Access,
        state: State,
        copies: &Copies,
        parts: Parts,
    ) {
        let total = parts.total();
        let bytes = self.size.get() as f64 * f64::from(copies.threads);
        let gbps = GbPerSec(bytes / total.get());
        // What the medium does not take stays in the cache; without flushes all of it does.
        let taken = match system {
            System::Ext4Unflushed => GbPerSec(0.0),
            _ => copies.flush,
        };
        let fills = access == Access::Write && system.has_cache() && gbps > taken;
        let seconds = self.cache.get() as f64 / (gbps - taken).get() / 1e9;
        self.ios.push(IoRow {
            system,
            access,
            state,
            threads: copies.threads,
            total,
            software: parts.software,
            copy: parts.copy,
            cache: parts.cache,
            flush: parts.flush,
            miss: parts.miss,
            attach: parts.attach,
            copied_pct: 100.0 * parts.copied(),
            stored_into: total + parts.stores,
            gbps,
            sustained: (access == Access::Write).then(|| match fills {
                true => gbps.min(copies.flush),
                false => gbps,
            }),
            full_after_s: fills.then_some(seconds),
        });
    }

    /// How much less time FLAC's archives take than those of another file system, at most, in percent.
    pub fn archived_sooner(&self, than: System, state: State) -> Option<f64> {
        let time = |of: System, state: State, file: Bytes| {
            let is =
                |row: &&ArchiveRow| (row.system, row.state, row.file_bytes) == (of, state, file);
            self.archives.iter().find(is).map(|row| row.total)
        };
        let files = self.archives.iter().map(|row| row.file_bytes);
        let less = files.filter_map(|file| {
            Some(100.0 * (1.0 - time(System::Flac, state, file)? / time(than, state, file)?))
        });
        less.reduce(f64::max)
    }

    /// The row of a system, warm or cold.
    pub fn row(&self, of: System, access: Access, state: State, threads: u32) -> Option<&IoRow> {
        let mut rows = self.ios.iter();
        rows.find(|row| {
            (row.system, row.access, row.state, row.threads) == (of, access, state, threads)
        })
    }

    pub(super) fn compare(&mut self) {
        let threads = self.copies.iter().map(|row| row.threads);
        let gain = |(access, threads): (Access, u32)| {
            let time = |system| Some(self.row(system, access, State::Warm, threads)?.total);
            let others = [System::Ext4, System::Ext4Dax, System::Nova].map(time);
            let others: Vec<f64> = others.iter().flatten().map(|time| time.get()).collect();
            let best = others.iter().copied().fold(f64::INFINITY, f64::min);
            let flac = self.row(System::Flac, access, State::Warm, threads)?;
            Some(GainRow {
                access,
                threads,
                over_best: best / flac.total.get(),
                over_worst: others.iter().copied().fold(0.0, f64::max) / flac.total.get(),
                batched: best / time(System::FlacBatched)?.get(),
                between_threads: best / time(System::FlacThreads)?.get(),
                stored_into: best / flac.stored_into.get(),
            })
        };
        let cases = Access::ALL
            .iter()
            .flat_map(|&access| threads.clone().map(move |threads| (access, threads)));
        self.gains = cases.filter_map(gain).collect();
    }
}

const PARTS: [Part; 6] = [
    Part::new("software", "call", 0),
    Part::new("copy", "copy", 1),
    Part::new("cache", "page cache", 2),
    Part::new("flush", "flush", 3),
    Part::new("miss", "miss", 4),
    Part::new("attach", "attach", 5),
];

impl Outcome for FileTimes {
    const SCHEMA: &'static str = "weir/place-files/1";
    const TITLE: &'static str = "Files on a slower tier";
    const WORDS: &'static str = "Each bar is one read or write, made of what takes its time. Stores into the buffer afterwards are not part of it.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let of = |access| self.gains.iter().filter(move |row| row.access == access);
        let mut all = Vec::new();
        for access in Access::ALL {
            let gains = of(access).map(|row| {
                format!(
                    "{:.1} times as fast as the fastest copy with {}, {:.1} where each page is stored into afterwards, and {:.1} \
                     between threads of one process",
                    row.over_best,
                    counted(row.threads),
                    row.stored_into,
                    row.between_threads
                )
            });
            let gains: Vec<String> = gains.collect();
            if let Some(first) = gains.first() {
                let last = gains.last().filter(|_| gains.len() > 1);
                let last = last.map_or_else(String::new, |last| format!("; {last}"));
                let text = format!("attached pages are {first}{last}");
                all.push(note(&format!("{access}s"), text));
            }
        }
        let full = self.ios.iter().filter(|row| row.system == System::Flac);
        let mut full = full.filter_map(|row| Some((row, row.full_after_s?, row.sustained?)));
        if let Some((row, after, sustained)) = full.next_back() {
            let text = format!(
                "writes attach {:.0} GB/s with {}, of which {} takes {:.1}: {} are full of dirty pages after {after:.2} s",
                row.gbps.get(),
                counted(row.threads),
                self.tier,
                sustained.get(),
                self.cache
            );
            all.push(note("sustained writes", text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let fewest = || Only::Least("threads", &[]);
        let warm = || Only::Is("state", Value::from(State::Warm.name()));
        let size = self.size;
        let parts = || {
            let mut columns = vec![col("system"), col("state"), col("total")];
            columns.push(col("software").head("call"));
            columns.extend(["copy", "cache", "flush", "miss", "attach"].map(col));
            columns
        };
        vec![
            View::table(
                "ios",
                format!("What takes the time of {size}, fewest threads: {{access}}"),
                parts(),
            )
            .each(&["access"])
            .only(fewest()),
            View::stacks(
                "ios",
                format!("What takes the time of {size}, fewest threads: {{access}}"),
                &["system"],
                "state",
                (&PARTS, "time (ns)"),
            )
            .each(&["access"])
            .only(fewest()),
            View::grid(
                "ios",
                format!("All threads together, {size} each: {{access}}, warm"),
                "system",
                &["threads"],
                "gbps",
            )
            .each(&["access"])
            .only(warm())
            .on(crate::view::Medium::Text),
            View::lines(
                "ios",
                "Speed over threads: {access}, warm",
                ("threads", "threads"),
                ("gbps", "GB/s"),
                &["system"],
            )
            .each(&["access"])
            .only(warm())
            .axes(Axis::Counts, Axis::Log),
            View::table(
                "gains",
                "FLAC over the fastest of ext4, ext4-DAX and NOVA",
                [
                    "access",
                    "threads",
                    "over_best",
                    "over_worst",
                    "batched",
                    "between_threads",
                    "stored_into",
                ]
                .map(col)
                .to_vec(),
            ),
            View::grid(
                "archives",
                "Archive of one file, as tar writes it: {state}",
                "file_bytes",
                &["system"],
                "total",
            )
            .rows_are("file")
            .each(&["state"]),
            View::table(
                "ios",
                "Writes that go on",
                ["system", "threads", "gbps", "sustained", "full_after_s"]
                    .map(col)
                    .to_vec(),
            )
            .only(Only::Has("full_after_s")),
        ]
    }
}

fn counted(threads: u32) -> String {
    match threads {
        1 => "1 thread".into(),
        more => format!("{more} threads"),
    }
}
