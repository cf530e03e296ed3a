//! File systems on persistent memory (FLAC, DIMES 2023).
//!
//! Copies are those of the model of the paper's server; what the kernel does is the data of [`files`](crate::files).

use crate::files::io::{Access, State, System};
use crate::files::{FileTimes, Files, GainRow, IoRow};
use crate::reproduce::rule::{Figure, Rule};

const MACHINE: &str = "flac+flac-pm";

const MOST: &str = "the greatest gain, over the slowest file system with 16 threads";
const FLOOR: &str = "the same; published is a lower bound";
const ATTACHING: &str = "the least gain, with one thread. The paper's leaves 17 ns a page to a write and 40 ns to a read, in which an \
     entry moves (13 ns), frames are counted and the TLB is invalidated (assumed at 10 and 50 ns)";
const ARCHIVER: &str = "by records of 10 KiB, as GNU tar's are; the paper does not say how its port reads, and whether caches have the file";
const TAX: &str = "a page in the cache takes 190 ns, as on Linux in a virtual machine; the paper's kernel is not stated";
const HELD: &str = "in ext4 a flush holds 8 MiB at a time. With all pages of a flush locked until they are written, as the paper \
     describes page caches, the loss is 41 % (`weir place files --on flac --held 10G`)";

fn of(
    unit: &'static str,
    read: impl Fn(&FileTimes) -> Option<f64> + Send + Sync + 'static,
) -> Figure {
    Figure::read(unit, MACHINE, Files::default(), move |times| {
        read(times).ok_or_else(|| "no such read or write".into())
    })
}

/// How much less time an archive takes, at most, with files that caches have.
fn sooner(than: System) -> Figure {
    of("%", move |times| times.archived_sooner(than, State::Warm))
}

fn largest(all: impl Iterator<Item = f64>) -> Option<f64> {
    all.reduce(f64::max)
}

fn least(all: impl Iterator<Item = f64>) -> Option<f64> {
    all.reduce(f64::min)
}

/// The greatest gain over any file system.
fn most() -> Figure {
    of("x", |times| {
        largest(times.gains.iter().map(|row| row.over_worst))
    })
}

/// The least gain over all file systems.
fn gain(access: Access) -> Figure {
    let over = |row: &GainRow| row.over_best;
    of("x", move |times| {
        least(
            times
                .gains
                .iter()
                .filter(|row| row.access == access)
                .map(over),
        )
    })
}

/// Shares of copies with one thread, of systems that have a page cache or none.
fn copied(times: &FileTimes, has_cache: bool) -> impl Iterator<Item = f64> {
    let is_of = move |row: &&IoRow| {
        let system = row.system;
        row.threads == 1 && !system.attaches() && system.has_cache() == has_cache
    };
    times.ios.iter().filter(is_of).map(|row| row.copied_pct)
}

/// What is lost of the speed of one thread where a time grows, in percent.
fn loss(times: &FileTimes, (from, to): (System, State), access: Access) -> Option<f64> {
    let usual = match access {
        Access::Read => System::Ext4,
        Access::Write => System::Ext4Unflushed,
    };
    let before = times.row(usual, access, State::Warm, 1)?.total;
    let after = times.row(from, access, to, 1)?.total;
    Some(100.0 * (1.0 - before / after))
}

fn by_flush(times: &FileTimes) -> Option<f64> {
    loss(times, (System::Ext4, State::Warm), Access::Write)
}

fn by_misses(times: &FileTimes) -> Option<f64> {
    loss(times, (System::Ext4, State::Cold), Access::Read)
}

pub(super) fn rules() -> Vec<Rule> {
    vec![
        Rule::predicted("FLA-001", most()).noting(MOST),
        Rule::predicted("FLA-002", most()).noting(FLOOR),
        Rule::predicted("FLA-003", sooner(System::Nova)).noting(ARCHIVER),
        Rule::predicted("FLA-004", sooner(System::Ext4)).noting(ARCHIVER),
        Rule::predicted("FLA-008", gain(Access::Write)).noting(ATTACHING),
        Rule::predicted("FLA-009", gain(Access::Read)).noting(ATTACHING),
        Rule::predicted("FLA-010", of("%", |times| largest(copied(times, true)))).noting(TAX),
        Rule::predicted("FLA-011", of("%", |times| least(copied(times, true)))),
        Rule::predicted("FLA-012", of("%", |times| largest(copied(times, false)))),
        Rule::predicted(
            "FLA-013",
            of("%", |times| Some(by_flush(times)?.min(by_misses(times)?))),
        )
        .noting(HELD),
        Rule::predicted(
            "FLA-014",
            of("%", |times| Some(100.0 - least(copied(times, true))?)),
        ),
        Rule::predicted("FLA-015", of("%", by_flush)).noting(HELD),
        Rule::predicted("FLA-016", of("%", by_misses)),
    ]
}
