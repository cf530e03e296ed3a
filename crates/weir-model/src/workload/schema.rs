//! Every key of a workload file: what it takes, within which bounds, and what it means.
//!
//! Reading, checking and the reference in `docs/workloads.md` all come from these tables.

use crate::platform::{Key, Kind, Need, When};

macro_rules! keys {
    ($($path:literal: $kind:ident $low:literal to $high:literal, $need:ident, $example:literal, $meaning:literal;)+) => {
        &[$(Key {
            path: $path,
            kind: Kind::$kind,
            bounds: Some(($low as f64, $high as f64)),
            need: Need::$need,
            when: When::Always,
            example: $example,
            meaning: $meaning,
        },)+]
    };
}

/// Keys of the whole file, besides `kind`, `summary`, `source`, `assumed`, `requests` and `phase`.
pub const FILE_KEYS: &[Key] = keys! {
    "threads": Count 1 to 1024, Defaulted, "4", "Threads, each on a core of its own. They share the regions. 1 unless given.";
    "core_ipc": Number 0.1 to 10.0, Defaulted, "1", "`core.ipc` of the core whose cycles `cpi` counts (`weir platforms show`); a core with twice as much takes half of the cycles. Unless given `cpi` holds on every core.";
};

/// Keys of the file's `[requests]`, besides `unit` and `spread`.
pub const REQUEST_KEYS: &[Key] = keys! {
    "instructions": Count 100 to 1000000000000.0, Defaulted, "40_000", "Instructions of one request, the mean of all; those of all phases together unless given.";
    "per_second": Number 0.001 to 1000000000.0, Defaulted, "50_000", "Requests that arrive in a second, at random times, for all threads together: an open loop. Unless given the loop is closed: a thread has its next request as soon as it has thought.";
    "clients": Count 1 to 100000, Defaulted, "12", "Clients that send the requests of `per_second` in equal parts, each at equal intervals and with one request under way: if its turn comes before the answer, it sends the next request when it has the answer. Unless given requests arrive at random times, whether or not earlier ones are answered.";
    "think": Time 0.0 to 1e11, Defaulted, "1 ms", "In a closed loop, the mean time between an answer and the thread's next request; 0 unless given.";
    "updates": Share 0.0 to 1.0, Defaulted, "0.5", "Share of the requests that write, for the real application; the `stores` of its data unless given.";
    "locked": Share 0.0 to 1.0, Defaulted, "0.1", "Share of a request's instructions under the program's lock, which one thread has at a time; 0 unless given.";
};

/// Keys of a `[[phase]]`, besides `name` and `regions`.
pub const PHASE_KEYS: &[Key] = keys! {
    "instructions": Count 1000 to 1000000000000.0, Defaulted, "300_000_000", "Instructions of one thread before the next phase; 10^9 unless given.";
    "cpi": Number 0.1 to 100.0, Required, "0.5", "Core cycles of an instruction while every access hits L1.";
    "apki": Number 0.01 to 1000.0, Required, "80", "Accesses to the regions in a thousand instructions; those that never leave L1 are in `cpi`.";
    "slice": Share 0.0 to 1.0, Defaulted, "0.3", "Share of the instructions after a load that need its value, directly or through others. 0.3 unless given.";
    "vector": Share 0.0 to 1.0, Defaulted, "0.4", "Share of the instructions whose result is in a vector register: floating point, SIMD, and loads for either. 0 unless given.";
    "mispredicts": Number 0.0 to 100.0, Defaulted, "5", "Branches predicted wrong in a thousand instructions, without those in `regions`; what they cost while everything hits is in `cpi`. 0 unless given.";
};

/// Keys of one of a phase's `regions`, besides `name`, `object`, `order`, `within` and `indexed_by`.
pub const REGION_KEYS: &[Key] = keys! {
    "bytes": Size 64 to 1125899906842624.0, Required, "4 GiB", "Its size, of all threads together.";
    "share": Share 0.0 to 1.0, Defaulted, "0.5", "Share of the phase's accesses; of several regions they are taken in proportion. 1 unless given.";
    "element": Size 1 to 1048576, Defaulted, "64 B", "Bytes touched at one place: one access up to a line, else one for each line in a row. 8 B unless given.";
    "stride": Size 1 to 1073741824, Derived, "256 B", "From one element to the next, where the order is sequential; as large as the element unless given.";
    "stores": Share 0.0 to 1.0, Defaulted, "0.3", "Share of the accesses that are stores; 0 unless given.";
    "modifies": Share 0.0 to 1.0, Defaulted, "0.5", "Share of the loaded elements that are stored to right after (read, modify, write), where an element is at most a line; these stores are not in `apki`. 0 unless given.";
    "non_temporal": Share 0.0 to 1.0, Defaulted, "1", "Share of the stores that go past the caches; 0 unless given.";
    "streams": Count 1 to 64, Defaulted, "4", "Independent runs of a sequential order, or chains of dependent loads: what the program itself overlaps. 1 unless given.";
    "batch": Count 1 to 1000000, Defaulted, "2048", "Elements that are accessed one after the other before another region has its turn: those of one vector, in an engine that processes a vector of rows at a time. 1 unless given.";
    "skew": Number 0.0 to 3.0, Defaulted, "0.8", "Exponent of a Zipf order, 0.99 unless given; alpha of an apex order, 0.001 to 1, 1 (equal chance) unless given.";
    "dependent": Share 0.0 to 1.0, Defaulted, "0.5", "Share of the elements whose address is loaded from the element before, of the same chain; all of a chase, else 0 unless given.";
    "mispredicted": Share 0.0 to 1.0, Defaulted, "0.1", "Share of the elements whose value decides a branch that is predicted wrong; 0 unless given.";
};
