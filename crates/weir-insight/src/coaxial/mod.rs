//! The programs of COAXIAL (arXiv 2305.05033, Table 4) as workloads.
//!
//! Each is described by its misses of the last-level cache alone: what hits is in its cycles of an instruction. Its cores
//! run copies of one trace from the same place, so that all of them miss in the same phases and compute in the others. While
//! a program misses, it misses as often as STREAM, which does nothing else ([`DENSE`]). One parameter is set for each
//! program, so that the simulated baseline has the IPC of the paper: the cycles of an instruction in the phase without
//! misses. It follows from the baseline alone; speedups are predictions. A cache of half the size has the same misses: the
//! paper prints them for one size.

use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::{Order, Phase, Region, Requests, Spread, Within, Workload};

const TABLE: &str = include_str!("programs.csv");

/// Misses in 1000 instructions of a program in its phase with misses: the mean of the four STREAM kernels in Table 4.
pub const DENSE: f64 = 58.5;

/// Instructions of a whole program.
const INSTRUCTIONS: f64 = 2e8;

/// More than any last-level cache.
const MEMORY: Bytes = Bytes::gib(24);

/// What a phase without misses accesses: a part of L1.
const KEPT: Bytes = Bytes::kib(16);

/// Cores of the simulated server: each runs a copy of the program.
pub const CORES: u32 = 12;

/// How the addresses of misses come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines that follow each other.
    Arrays,
    /// Lines anywhere.
    Scattered,
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
    /// Cycles of an instruction that hits, in the phase with misses.
    pub cpi: f64,
    /// Cycles of an instruction in the phase without misses, calibrated.
    pub apart: f64,
    /// Misses in 1000 instructions of the phase with misses; calibrated where it is below [`DENSE`].
    pub dense: f64,
    /// Share of the misses whose address comes from the miss before.
    pub dependent: f64,
    /// Share of the misses that decide a branch which is predicted wrong.
    pub wrong: f64,
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
            "scattered" => Kind::Scattered,
            _ => return None,
        },
        cpi: number(&mut fields)?,
        apart: number(&mut fields)?,
        dense: number(&mut fields)?,
        dependent: number(&mut fields)?,
        wrong: number(&mut fields)?,
        stores: number(&mut fields)?,
        together: fields.next()?.parse().ok()?,
    })
}

/// Instructions of such a request. The distance between two accesses varies by half, so that it is never shorter.
const SHORT: u32 = 10;

/// Share of the requests of [`arrivals`] that read a line; the others read none, and none reads two.
pub const READING: f64 = 0.5;

/// Reads of lines anywhere in memory that arrive at random times, this many in a second, on this many cores: an open loop as
/// long as hardly any core has two of them.
pub fn arrivals(cores: u32, per_second: f64) -> Workload {
    let mut workload = Program {
        name: "arrivals",
        mpki: 1e3 * READING / f64::from(SHORT),
        cpi: 0.25,
        ..Program::lone()
    }
    .steady(cores);
    workload.requests = Some(Requests {
        unit: "read".into(),
        instructions: u64::from(SHORT),
        spread: Spread::Fixed,
        per_second: Some(per_second / READING),
        clients: None,
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
            kind: Kind::Scattered,
            cpi: 1.0,
            apart: 1.0,
            dense: 1.0,
            dependent: 1.0,
            wrong: 0.0,
            stores: 0.0,
            together: 1,
        }
    }

    /// It on this many cores, in a phase with misses and one without. Each is far longer than any queue.
    pub fn workload(&self, cores: u32) -> Workload {
        let missing = (self.mpki / self.dense).min(1.0);
        let mut workload = self.steady(cores);
        let misses = &mut workload.phases[0];
        misses.apki = self.mpki / missing;
        misses.instructions = (INSTRUCTIONS * missing) as u64;
        if missing < 1.0 {
            let mut computes = misses.clone();
            computes.name = "computes".into();
            computes.instructions = (INSTRUCTIONS * (1.0 - missing)) as u64;
            computes.cpi = self.apart;
            computes.regions = vec![Region {
                name: "kept".into(),
                bytes: KEPT,
                dependent: 0.0,
                mispredicted: 0.0,
                ..misses.regions[0].clone()
            }];
            workload.phases.push(computes);
        }
        workload
    }

    /// It on this many cores, with misses throughout.
    pub fn steady(&self, cores: u32) -> Workload {
        let element = Bytes(u64::from(self.together) * LINE_BYTES);
        Workload {
            name: self.name.to_lowercase(),
            summary: format!("{} of {}", self.name, self.suite),
            source: "COAXIAL (arXiv 2305.05033) Table 4".into(),
            assumed: None,
            application: None,
            variant: None,
            threads: cores,
            core_ipc: None,
            requests: None,
            phases: vec![Phase {
                name: "misses".into(),
                instructions: INSTRUCTIONS as u64,
                cpi: self.cpi,
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
                        Kind::Scattered => Order::Random,
                    },
                    share: 1.0,
                    element,
                    within: Within::Sequential,
                    stride: element,
                    stores: self.stores,
                    modifies: 0.0,
                    non_temporal: 0.0,
                    streams: 1,
                    batch: 1,
                    skew: 0.99,
                    dependent: self.dependent,
                    indexed_by: None,
                    mispredicted: self.wrong,
                }],
            }],
        }
    }
}
