//! The programs of COAXIAL (arXiv 2305.05033, Table 4) as workloads.
//!
//! Each is described by its misses of the last-level cache alone: what hits is in its cycles of an instruction. Of two
//! parameters that are not public one is set for each program, so that the simulated baseline has the IPC of the paper
//! at its misses: of programs on arrays the cycles of an instruction that hits, of others the share of misses that wait
//! for the one before. Both follow from the baseline alone; speedups are predictions. A cache of half the size has the same
//! misses: the paper prints them for one size.

use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::{Order, Phase, Region, Requests, Spread, Within, Workload};

const TABLE: &str = include_str!("programs.csv");

/// More than any last-level cache.
const MEMORY: Bytes = Bytes::gib(24);

/// Cores of the simulated server: each runs a copy of the program.
pub const CORES: u32 = 12;

/// How the addresses of misses come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines that follow each other.
    Arrays,
    /// Lines anywhere, whose indices follow each other.
    Indexed,
    /// Lines anywhere, some of which have the address of the next, or decide a branch that is predicted wrong.
    Pointers,
}

/// A program of Table 4.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The suite that it is of.
    pub suite: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Instructions of a core in a cycle, in the baseline.
    pub ipc: f64,
    /// Misses of the last-level cache in 1000 instructions, in the baseline.
    pub mpki: f64,
    /// How the addresses of its misses come about.
    pub kind: Kind,
    /// Cycles of an instruction where nothing misses.
    pub cpi: f64,
    /// Further ones, calibrated.
    pub more: f64,
    /// Share of the misses whose address comes from the miss before.
    pub serial: f64,
    /// Share of the missed lines that are written.
    pub stores: f64,
    /// Lines that are missed at once.
    pub together: u32,
}

/// The programs, in the order of the paper.
///
/// # Errors
/// A line of the table cannot be read; which one.
pub fn programs() -> Result<Vec<Program>, String> {
    let lines = TABLE.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.starts_with('#'));
    let program = |(at, line): (usize, &'static str)| {
        read(line).ok_or_else(|| format!("programs.csv, line {}: {line}", at + 1))
    };
    lines.skip(1).map(program).collect()
}

fn read(line: &'static str) -> Option<Program> {
    let mut fields = line.split(',');
    let (suite, name) = (fields.next()?, fields.next()?);
    let number = |fields: &mut dyn Iterator<Item = &'static str>| fields.next()?.parse().ok();
    Some(Program {
        suite,
        name,
        ipc: number(&mut fields)?,
        mpki: number(&mut fields)?,
        kind: match fields.next()? {
            "arrays" => Kind::Arrays,
            "indexed" => Kind::Indexed,
            "pointers" => Kind::Pointers,
            _ => return None,
        },
        cpi: number(&mut fields)?,
        more: number(&mut fields)?,
        serial: number(&mut fields)?,
        stores: number(&mut fields)?,
        together: fields.next()?.parse().ok()?,
    })
}

/// Instructions of such a request. The distance between two accesses varies by half, so that it is never shorter.
const SHORT: u32 = 10;

/// Share of the requests of [`arrivals`] that read a line; the others read none, and none reads two.
pub const READING: f64 = 0.5;

/// Reads of lines anywhere in memory that arrive at random times, so many in a second, on so many cores: an open loop as
/// long as hardly any core has two of them.
pub fn arrivals(cores: u32, per_second: f64) -> Workload {
    let mut workload = Program {
        name: "arrivals",
        mpki: 1e3 * READING / f64::from(SHORT),
        cpi: 0.25,
        ..Program::lone()
    }
    .workload(cores);
    workload.requests = Some(Requests {
        unit: "read".into(),
        instructions: u64::from(SHORT),
        spread: Spread::Fixed,
        per_second: Some(per_second / READING),
        think: Nanos(0.0),
        locked: 0.0,
        updates: None,
    });
    workload
}

impl Program {
    /// One read at a time: its latency is that of idle memory.
    pub const fn lone() -> Self {
        Self {
            suite: "",
            name: "lone",
            ipc: 0.0,
            mpki: 1.0,
            kind: Kind::Pointers,
            cpi: 1.0,
            more: 0.0,
            serial: 1.0,
            stores: 0.0,
            together: 1,
        }
    }

    /// It on so many cores.
    pub fn workload(&self, cores: u32) -> Workload {
        let element = Bytes(u64::from(self.together) * LINE_BYTES);
        Workload {
            name: self.name.to_lowercase(),
            summary: format!("{} of {}", self.name, self.suite),
            source: "COAXIAL (arXiv 2305.05033) Table 4".into(),
            assumed: None,
            application: None,
            variant: None,
            threads: cores,
            requests: None,
            phases: vec![Phase {
                name: "all".into(),
                instructions: 200_000_000,
                cpi: self.cpi + self.more,
                apki: self.mpki,
                slice: 0.3,
                vector: 0.0,
                mispredicts: 0.0,
                regions: vec![Region {
                    name: "missed".into(),
                    object: None,
                    bytes: MEMORY,
                    order: match self.kind {
                        Kind::Arrays => Order::Sequential,
                        Kind::Indexed | Kind::Pointers => Order::Random,
                    },
                    share: 1.0,
                    element,
                    within: Within::Sequential,
                    stride: element,
                    stores: self.stores,
                    modifies: 0.0,
                    non_temporal: 0.0,
                    streams: 1,
                    skew: 0.99,
                    dependent: self.serial,
                    indexed_by: None,
                    mispredicted: 0.0,
                }],
            }],
        }
    }
}
