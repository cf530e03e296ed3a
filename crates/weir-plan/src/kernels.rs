//! `weir plan kernels`: what address ranges with a meaning save of a link, and what an early notice of a write hides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_coherence::cost::Parts;
use weir_kernels::kernels::{
    Buffer, Comparison, Compress, Digest, Expander, Log, Placement, Predicate, Project, Scan, Ssd,
    Transpose,
};
use weir_kernels::media::{PAGE, Times};
use weir_kernels::{Device, Fault, Kernel, Line, Mode};
use weir_lab::view::{View, col};
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::units::{Bytes, GbPerSec, Nanos};

/// The machine, as kernels see it.
#[derive(Debug, Clone, Copy)]
pub struct KernelMachine {
    /// What messages pass.
    pub parts: Parts,
    /// Media of the device.
    pub times: Times,
    /// Flash that is fast to write, for the kernel that has two kinds.
    pub fast: Times,
}

/// What kernels do on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelPlan {
    /// The machine.
    pub on: String,
    /// A page of its flash is read.
    pub flash_read: Nanos,
    /// And programmed.
    pub flash_program: Nanos,
    /// A row for each kernel.
    pub kernels: Vec<KernelRow>,
    /// Commits to a log, by what the device knows of a write before it comes.
    pub commits: Vec<CommitRow>,
}

/// A kernel at work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelRow {
    /// The kernel.
    pub kernel: String,
    /// What the host does.
    pub work: String,
    /// Bytes of lines that cross the link for it.
    pub with: Bytes,
    /// The same where the host does what the kernel does.
    pub without: Bytes,
    /// A request, in the mean, one after the other.
    pub latency: Nanos,
    /// All requests at the same time, or one after the other where they are stores.
    pub throughput: GbPerSec,
    /// What a request waits then for the kernel, in its queue of 16 and at the host.
    pub waits: Nanos,
    /// Requests that waited at the host since the queue was full.
    pub blocked: u64,
}

/// Commits of a line each to a log whose SRAM has room for a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommitRow {
    /// What the device does.
    pub device: String,
    /// What the host does between the store and the commit.
    pub work: Nanos,
    /// From the notice of a write to the write, in the mean; none where there is no notice.
    pub lead: Option<Nanos>,
    /// The longest commit.
    pub longest: Nanos,
    /// A commit in the mean.
    pub mean: Nanos,
    /// Messages by which the device asked for lines again, for each commit.
    pub rearms: f64,
}

/// Requests that a kernel's queue holds.
const DEPTH: usize = 16;
/// Commits of a row.
const COMMITS: u64 = 512;
/// Rows of 64 bytes of the tables.
const ROWS: u64 = 4096;

#[derive(Clone, Copy)]
enum Op {
    Load(u64),
    Put(u64),
    Flush(u64),
}

fn table() -> Vec<u8> {
    let cells = (0..8 * ROWS).map(|cell| cell.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48);
    cells.flat_map(u64::to_le_bytes).collect()
}

fn lines(count: u64, step: u64) -> Vec<Op> {
    (0..count).map(|line| Op::Load(line * step)).collect()
}

/// A kernel, what the host does with it, and what crosses the link without it.
struct Case<'a> {
    work: String,
    make: &'a dyn Fn() -> Box<dyn Kernel>,
    /// Stores before anything is counted.
    before: Vec<(u64, Line)>,
    ops: Vec<Op>,
    without: u64,
}

impl Case<'_> {
    fn device(&self, machine: &KernelMachine) -> Result<(Device, u64), Fault> {
        let mut device = Device::new(Mode::Type2, machine.parts, machine.times);
        let base = device.attach((self.make)(), DEPTH);
        for (at, line) in &self.before {
            device.put(base + at, line)?;
        }
        Ok((device, base))
    }

    fn row(&self, machine: &KernelMachine) -> Result<KernelRow, Fault> {
        let (mut device, base) = self.device(machine)?;
        let lines = device.data_lines();
        let began = device.now;
        for op in &self.ops {
            match *op {
                Op::Load(at) => drop(device.load(base + at)?),
                Op::Put(at) => device.put(base + at, &[at as u8; 64])?,
                Op::Flush(at) => device.flush(base + at, PAGE as u64)?,
            }
        }
        let after = device.data_lines();
        let moved = 64 * (after.0 - lines.0 + after.1 - lines.1);
        let count = self.ops.len() as f64;
        let mut took = (device.now - began) as f64;
        let latency = Nanos(took / count);
        // Loads again, all at the same time.
        let (mut all, base) = self.device(machine)?;
        let began = all.now;
        let mut last = began;
        for op in &self.ops {
            if let Op::Load(at) = *op {
                last = last.max(all.load_at(base + at, began)?.1);
            }
        }
        let counts = if last > began {
            took = (last - began) as f64;
            all.counts(base)?
        } else {
            device.counts(base)?
        };
        let bytes = self.ops.iter().map(|op| match op {
            Op::Flush(_) => PAGE as f64,
            _ => 64.0,
        });
        Ok(KernelRow {
            kernel: device_name(self.make),
            work: self.work.clone(),
            with: Bytes(moved),
            without: Bytes(self.without),
            latency,
            throughput: GbPerSec(bytes.sum::<f64>() / took.max(1.0)),
            waits: Nanos((counts.queued.1 + counts.blocked.1) as f64 / count),
            blocked: counts.blocked.0,
        })
    }
}

fn device_name(make: &dyn Fn() -> Box<dyn Kernel>) -> String {
    make().name().to_owned()
}

/// Lets every kernel work on a machine.
///
/// # Errors
/// A kernel refuses a request, which is a mistake of Weir.
pub fn run(on: String, machine: &KernelMachine) -> Result<KernelPlan, Fault> {
    let bytes = 64 * ROWS;
    let page = PAGE as u64;
    // One of 64 rows qualifies.
    let predicate = Predicate {
        column: 1,
        by: Comparison::Below,
        value: 1024,
    };
    let found = table()
        .chunks_exact(64)
        .filter(|row| predicate.holds(row))
        .count() as u64;
    let fast = machine.fast;
    let placed = move || Box::new(Placement::new(0, 64, 64, fast)) as Box<dyn Kernel>;
    let case = |work: String, make, ops, without| Case {
        work,
        make,
        before: Vec::new(),
        ops,
        without,
    };
    let cases = [
        case(
            "256 loads".into(),
            &(|| Box::new(Expander::new(1 << 20)) as Box<dyn Kernel>)
                as &dyn Fn() -> Box<dyn Kernel>,
            lines(256, 64),
            256 * 64,
        ),
        case(
            "a load of each of 64 pages of flash".into(),
            &|| Box::new(Ssd::new(0, 64, 16)),
            lines(64, page),
            64 * page,
        ),
        case(
            "16 dirty frames go to flash".into(),
            &|| Box::new(Buffer::new(0, 16)),
            (0..16).map(|frame| Op::Flush(frame * page)).collect(),
            // The host reads them from the device and writes them to a drive.
            16 * 2 * page,
        ),
        Case {
            work: format!("{found} of {ROWS} rows qualify"),
            make: &|| Box::new(Scan::new(table(), 64)),
            before: vec![(0, predicate.line())],
            ops: lines(found + 1, 64),
            without: bytes,
        },
        case(
            "2 of 8 columns".into(),
            &|| Box::new(Project::new(table(), 64, &[1, 5])),
            lines(ROWS / 4, 64),
            bytes,
        ),
        case(
            format!("a column of {ROWS} rows, 8 of 64 bytes"),
            &|| Box::new(Transpose::new(ROWS as usize, 8, 8)),
            (0..ROWS / 8)
                .map(|line| Op::Load(bytes + 64 * line))
                .collect(),
            bytes,
        ),
        case(
            "256 loads of compressed lines".into(),
            &|| Box::new(Compress::new(1 << 20)),
            lines(256, 64),
            256 * 64,
        ),
        case(
            format!("{COMMITS} commits of a line"),
            &|| Box::new(Log::new(0, 1 << 20, 256)),
            (0..COMMITS).map(|at| Op::Put(64 * at)).collect(),
            // A drive takes blocks.
            COMMITS * page,
        ),
        case(
            "64 stores to fast flash".into(),
            &placed,
            (0..64).map(|at| Op::Put(page * at)).collect(),
            64 * page,
        ),
        case(
            "sums of 1024 lines".into(),
            &|| Box::new(Digest::new(1024)),
            (0..128).map(|line| Op::Load(64 * (1024 + line))).collect(),
            64 * 1024,
        ),
    ];
    let kernels = cases
        .iter()
        .map(|case| case.row(machine))
        .collect::<Result<_, _>>()?;
    let program = machine.times.flash_program;
    let mut commits = Vec::new();
    for eighths in [0, 1, 2, 4, 6, 8, 12, 16] {
        let work = program * eighths / 8;
        for (device, mode, armed) in [
            ("Type 2, shares the line", Mode::Type2, true),
            ("Type 2, does not", Mode::Type2, false),
            ("Type 3", Mode::Type3, false),
        ] {
            commits.push(commit(machine, (device, mode, armed), work)?);
        }
    }
    Ok(KernelPlan {
        on,
        flash_read: Nanos(machine.times.flash_read as f64),
        flash_program: Nanos(program as f64),
        kernels,
        commits,
    })
}

fn commit(
    machine: &KernelMachine,
    (name, mode, armed): (&str, Mode, bool),
    work: u64,
) -> Result<CommitRow, Fault> {
    let mut device = Device::new(mode, machine.parts, machine.times);
    let base = device.attach(Box::new(Log::new(0, COMMITS, 64)), DEPTH);
    let mut times = Vec::new();
    for at in (0..COMMITS).map(|line| base + 64 * line) {
        if armed {
            device.arm(at)?;
        }
        // The host has read the line before, as one that writes to a ring of a log has.
        device.load(at)?;
        device.store(at, &[at as u8; 64])?;
        device.now += work;
        let began = device.now;
        device.evict(at)?;
        times.push((device.now - began) as f64);
    }
    let counts = device.counts(base)?;
    let leads = counts.leads.iter().sum::<u64>() as f64 / counts.leads.len() as f64;
    Ok(CommitRow {
        device: name.to_owned(),
        work: Nanos(work as f64),
        lead: (!counts.leads.is_empty()).then_some(Nanos(leads)),
        longest: Nanos(times.iter().copied().fold(0.0, f64::max)),
        mean: Nanos(times.iter().sum::<f64>() / COMMITS as f64),
        rearms: counts.rearms.1 as f64 / COMMITS as f64,
    })
}

impl Outcome for KernelPlan {
    const SCHEMA: &'static str = "weir/plan-kernels/1";
    const TITLE: &'static str = "Kernels of address ranges";
    const WORDS: &'static str = "What crosses the link where the device computes on access, and commits by how early it knows of them.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let of = |work: f64, name: &str| {
            let mut rows = self
                .commits
                .iter()
                .filter(|row| row.device.starts_with(name));
            rows.find(|row| row.work.get() >= work)
                .map(|row| row.longest)
        };
        let mut notes = Vec::new();
        if let (Some(early), Some(late)) = (
            of(self.flash_program.get(), "Type 2, shares"),
            of(0.0, "Type 3"),
        ) {
            let text = format!(
                "the longest commit takes {early:.0} if the device hears of the write early enough to program its flash first, and \
                 {late:.0} if it hears only when the line arrives"
            );
            notes.push(Verdict::new(Severity::Note, "early notice", text));
        }
        notes
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let kernels = vec![
            col("kernel"),
            col("work"),
            col("with"),
            col("without"),
            col("latency"),
        ];
        let queues = vec![
            col("kernel"),
            col("throughput").places(4),
            col("waits").head("waits for\nthe kernel"),
            col("blocked").head("queue\nfull"),
        ];
        let commits = vec![
            col("device"),
            col("work"),
            col("lead").empty("no notice"),
            col("longest"),
            col("mean"),
            col("rearms").head("messages\nto re-arm").places(1),
        ];
        vec![
            View::table(
                "kernels",
                "Bytes of lines on the link with a kernel and without",
                kernels,
            ),
            View::table("kernels", "All loads at the same time", queues),
            View::table(
                "commits",
                "Commits to a log, by the host's work between store and commit",
                commits,
            ),
            View::lines(
                "commits",
                "The longest commit, by the host's work between store and commit",
                ("work", "host's work (ns)"),
                ("longest", "longest commit (ns)"),
                &["device"],
            ),
        ]
    }
}
