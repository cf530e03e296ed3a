//! Which rows are answered, and how.

use crate::registry::Policy;

/// A row: on which platform, what is measured, and what to know when comparing.
pub(super) struct Row {
    pub id: &'static str,
    pub on: &'static str,
    pub what: What,
    pub note: &'static str,
}

/// What a row states.
#[derive(Clone, Copy)]
pub(super) enum What {
    /// Seconds after which MIKU's holds stand, the least or the most over the three instructions.
    Settles { most: bool },
    /// The protected tenant of a scenario, in percent of what it does alone; without control or with MIKU.
    Protected(&'static str, Option<Policy>),
    /// The other one, with MIKU, in percent of what it does without control.
    Restrained(&'static str),
    /// The other one without control, in percent of what it does alone.
    Racing(&'static str),
    /// What the protected tenant of a scenario draws, in GB/s: alone ...
    Alone(&'static str),
    /// ... and without control.
    Free(&'static str),
    /// A program on DRAM beside non-temporal stores to CXL under a knob, in percent of what it does alone.
    Program(&'static str, Knob),
    /// Loads from DRAM beside non-temporal stores to CXL under a knob, in GB/s ...
    Restored(Knob),
    /// ... or in percent of what they draw alone.
    RestoredPct(Knob),
    /// What the stores give up for that, in GB/s.
    GivenUp(Knob),
}

/// A knob of CXL-Interplay (section V), set and left.
#[derive(Clone, Copy)]
pub(super) enum Knob {
    /// Sixteen threads share one processor's time.
    Quota,
    /// The cores run at this part of their clock.
    Clock(f64),
    /// Bandwidth allocation at this share.
    Allocation(f64),
}

const A: &str = "miku-a";
/// The paper does not name the server; 13 GB/s of stores at a cost of 10 GB/s fit its system B.
const B: &str = "interplay-b";
const LLM: &str = "llm-decode";
const SQL: &str = "sql-scan";

const SEVERAL: &str = "the least and the most of ld, st and nt_st, as far as it holds them";
const CLOCK: &str =
    "on system B; posted stores of 16 cores are far more than the device takes at any clock";
const ALLOCATED: &str = "on system B; single tenants show 2 GB/s a core at the least setting, which is more than the device takes";
const ON_B: &str = "the server is not named: on system B, 16 threads of ld beside 16 of nt_st";
const STANDS_IN: &str =
    "a scan of columns stands in for the paper's queries, of which it names the worst";
const DECODES: &str = "the presets' decoding stands in for llama.cpp; its cores keep two thirds of the table's entries";
const ONE_PAIR: &str =
    "one pair stands in for the paper's queries, so that the least and the most are one";
const PAGE_RANK: &str = "PageRank of a synthetic graph on system B, 16 threads beside 16 of nt_st";

const fn row(id: &'static str, on: &'static str, what: What, note: &'static str) -> Row {
    Row { id, on, what, note }
}

pub(super) const ROWS: &[Row] = &[
    row("MIK-054", A, What::Settles { most: false }, SEVERAL),
    row("MIK-055", A, What::Settles { most: true }, SEVERAL),
    row("MIK-063", A, What::Protected(LLM, None), DECODES),
    row(
        "MIK-064",
        A,
        What::Protected(LLM, Some(Policy::Miku)),
        DECODES,
    ),
    row("MIK-065", A, What::Alone(LLM), DECODES),
    row("MIK-066", A, What::Free(LLM), DECODES),
    row("MIK-071", A, What::Protected(SQL, None), STANDS_IN),
    row("MIK-072", A, What::Racing(SQL), STANDS_IN),
    row(
        "MIK-073",
        A,
        What::Protected(SQL, Some(Policy::Miku)),
        STANDS_IN,
    ),
    row("MIK-074", A, What::Restrained(SQL), ONE_PAIR),
    row("MIK-075", A, What::Restrained(SQL), ONE_PAIR),
    row("INT-116", B, What::Restored(Knob::Quota), ON_B),
    row("INT-117", B, What::RestoredPct(Knob::Quota), ON_B),
    row("INT-118", B, What::GivenUp(Knob::Quota), ON_B),
    row("INT-119", B, What::RestoredPct(Knob::Clock(0.4)), CLOCK),
    row("INT-120", B, What::RestoredPct(Knob::Clock(0.2)), CLOCK),
    row(
        "INT-121",
        B,
        What::GivenUp(Knob::Allocation(0.1)),
        ALLOCATED,
    ),
    row(
        "INT-122",
        B,
        What::RestoredPct(Knob::Allocation(0.1)),
        ALLOCATED,
    ),
    row(
        "INT-123",
        B,
        What::Program("pr-kron", Knob::Allocation(0.1)),
        PAGE_RANK,
    ),
    row(
        "INT-125",
        B,
        What::Restored(Knob::Allocation(0.1)),
        ALLOCATED,
    ),
    row(
        "INT-126",
        B,
        What::RestoredPct(Knob::Allocation(0.1)),
        ALLOCATED,
    ),
    row(
        "INT-127",
        B,
        What::GivenUp(Knob::Allocation(0.1)),
        ALLOCATED,
    ),
];
