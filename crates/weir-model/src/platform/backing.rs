//! A medium behind the DRAM of a CXL device, which then is a cache of the medium's pages.

use super::scalar::{Parameter, Scalar};
use super::{Medium, Provenance, Replacement, WritePolicy, keys};
use crate::units::{Bytes, GbPerSec, Nanos};

keys! {
    /// The medium, and the DRAM as a cache of its pages.
    Backing {
        /// Medium behind the device's DRAM, which then is a cache of its pages: `z-nand`, `tlc` or `optane`. `capacity` is that of the medium, and `idle` the latency of a line in the cache.
        medium: paired Medium = "backing.medium", "z-nand";
        /// Size of that cache.
        cache: paired Bytes = "backing.cache", "4 GiB", 65536 to 1125899906842624.0;
        /// Bytes that it reads from the medium and writes back together.
        page: defaulted Bytes = "backing.page", "4 KiB", 256 to 1048576;
        /// Ways of a set of the cache.
        ways: defaulted u32 = "backing.ways", "16", 1 to 256;
        /// Which page of a set leaves: `lru` or `random`.
        replacement: defaulted Replacement = "backing.replacement", "lru";
        /// When a written page goes to the medium: `back` when it leaves the cache, `through` as soon as it is written.
        write: defaulted WritePolicy = "backing.write", "back";
        /// Pages that it reads from the medium at once; further misses wait.
        misses: defaulted u32 = "backing.misses", "64", 1 to 65536;
        /// Programs of the medium under way and waiting for their dies; a miss whose victim finds no place waits.
        write_backs: defaulted u32 = "backing.write_backs", "64", 1 to 65536;
        /// What a miss takes in the controller besides the medium's own time.
        firmware: defaulted Nanos = "backing.firmware", "1 us", 0 to 10000000;
        /// Channels between controller and medium.
        channels: paired u32 = "backing.channels", "8", 1 to 1024;
        /// Data that one of them carries, in either direction.
        channel_rate: defaulted GbPerSec = "backing.channel_rate", "1.2 GB/s", 0.01 to 1000.0;
        /// Dies on all channels together.
        dies: paired u32 = "backing.dies", "64", 1 to 65536;
        /// Planes of a die, each of which works on its own.
        planes: derived u32 = "backing.planes", "1", 1 to 16;
        /// What a die reads or programs at once.
        unit: derived Bytes = "backing.unit", "4 KiB", 64 to 1048576;
        /// How long a die reads that.
        read: derived Nanos = "backing.read", "3 us", 10 to 10000000;
        /// How long it programs that.
        program: derived Nanos = "backing.program", "100 us", 10 to 100000000;
        /// How long a die takes to suspend a program, an erase or a copy for a read with the hint that it is deterministic.
        suspend: defaulted Nanos = "backing.suspend", "5 us", 0 to 1000000;
        /// How long it erases a block. A medium without blocks is written in place.
        erase: optional Nanos = "backing.erase", "3 ms", 1000 to 1000000000;
        /// Pages of `unit` in a block.
        block: optional u32 = "backing.block", "256", 8 to 65536;
        /// Blocks beyond those that hold `capacity`, as a share of these.
        spare: defaulted f64 = "backing.spare", "0.07", 0.02 to 4.0;
        /// Erases that a block stands on average. Without it blocks do not wear out.
        endurance: optional u32 = "backing.endurance", "3000", 1 to 100000000;
        /// Share of `endurance` by which the best and the worst block differ from it.
        endurance_spread: defaulted f64 = "backing.endurance_spread", "0.1", 0.0 to 0.9;
        /// Share of `endurance` that each block has been erased when a run begins.
        worn: defaulted f64 = "backing.worn", "0", 0.0 to 2.0;
        /// Share of the pages that the medium can no longer read: lines of them come with poison.
        failing: defaulted f64 = "backing.failing", "3e-12", 0.0 to 1.0;
        /// Share of a die's blocks that are free when garbage collection begins.
        collect_at: defaulted f64 = "backing.collect_at", "0.02", 0.0 to 0.5;
        /// Share that are free when it ends.
        collect_to: defaulted f64 = "backing.collect_to", "0.04", 0.0 to 0.6;
    }
}

const Z_NAND: &str = "Samsung at ISSCC 2018 (Cheong et al.), as printed in AnandTech's review of the 983 ZET: tR 3 us, \
                      tPROG 100 us, pages of 2 or 4 kB";
const TLC: &str = "Samsung's 64-layer V-NAND, as printed in AnandTech's review of the 983 ZET: tR 60 us, tPROG 700 us, \
                   pages of 16 kB";
const OPTANE: &str = "Yang et al., FAST 2020: lines of 256 B inside a module";

fn source(text: &str) -> Provenance {
    Provenance::Source(text.into())
}

fn assumed(low: &str, high: &str, why: &str) -> Provenance {
    let [low, high, why] = [low, high, why].map(str::to_owned);
    Provenance::Assumed { low, high, why }
}

impl Medium {
    /// The values that files leave out, by key.
    pub(super) fn values(self) -> Vec<(&'static str, Scalar, Provenance)> {
        let time = |us| Nanos::from_micros(us).to_scalar();
        let size = |bytes| Bytes(bytes).to_scalar();
        let planes = |n: u32| {
            let why = "not published of this part; two to four planes of flash read on their own";
            ("backing.planes", n.to_scalar(), assumed("1", "4", why))
        };
        match self {
            Medium::ZNand => vec![
                ("backing.read", time(3.0), source(Z_NAND)),
                ("backing.program", time(100.0), source(Z_NAND)),
                ("backing.unit", size(4096), source(Z_NAND)),
                planes(1),
                (
                    "backing.erase",
                    time(3000.0),
                    assumed(
                        "1 ms",
                        "3 ms",
                        "not published; FEMU has 3 ms for one bit a cell",
                    ),
                ),
                (
                    "backing.block",
                    192_u32.to_scalar(),
                    assumed(
                        "128",
                        "768",
                        "not published; four pages for each of 48 layers",
                    ),
                ),
                (
                    "backing.endurance",
                    50_000_u32.to_scalar(),
                    assumed(
                        "50000",
                        "100000",
                        "not published; data sheets of flash of one bit a cell have 50,000 to 100,000 (Samsung OneNAND \
                         KFW4G16Q2M, Toshiba SLC NAND)",
                    ),
                ),
            ],
            Medium::Tlc => vec![
                ("backing.read", time(60.0), source(TLC)),
                ("backing.program", time(700.0), source(TLC)),
                ("backing.unit", size(16_384), source(TLC)),
                planes(2),
                (
                    "backing.erase",
                    time(5000.0),
                    assumed(
                        "3 ms",
                        "10 ms",
                        "not published; FEMU has 5 ms for three bits a cell",
                    ),
                ),
                (
                    "backing.block",
                    768_u32.to_scalar(),
                    assumed(
                        "576",
                        "1536",
                        "not published; twelve pages for each of 64 layers",
                    ),
                ),
                (
                    "backing.endurance",
                    3000_u32.to_scalar(),
                    assumed(
                        "1000",
                        "10000",
                        "not published; 1,000 is usual for planar flash of three bits a cell (AnandTech 6459), and cells \
                         that are stacked stand several times as many",
                    ),
                ),
            ],
            Medium::Optane => vec![
                (
                    "backing.read",
                    time(0.136),
                    assumed(
                        "100 ns",
                        "200 ns",
                        "not published; a random read of a module takes 136 ns more than one that its buffer \
                         answers (Yang et al., FAST 2020: 305 and 169 ns)",
                    ),
                ),
                (
                    "backing.program",
                    time(0.39),
                    assumed(
                        "300 ns",
                        "1 us",
                        "not published; a module writes at 0.35 of the rate of its reads (Yang et al., FAST \
                         2020: 2.3 and 6.6 GB/s)",
                    ),
                ),
                ("backing.unit", size(256), source(OPTANE)),
                planes(1),
            ],
        }
    }
}

impl Backing {
    /// Pages of the cache that a device of this capacity can still program before its blocks are worn out; `None` where
    /// nothing wears.
    pub fn programs_left(&self, capacity: Bytes) -> Option<u64> {
        let endurance = f64::from(**self.endurance.as_ref()?);
        let pages = capacity.get() as f64 / self.page.get() as f64 * (1.0 + *self.spare);
        Some((pages * endurance * (1.0 - *self.worn).max(0.0)) as u64)
    }

    /// Keys that a file gives together or not at all.
    pub(super) const PARTS: [&str; 4] = [
        "backing.medium",
        "backing.cache",
        "backing.channels",
        "backing.dies",
    ];

    /// Values that contradict each other: the key, the mistake, and what to do.
    pub(super) fn contradictions(
        &self,
        capacity: Bytes,
    ) -> Vec<(&'static str, String, &'static str)> {
        let (page, unit, cache) = (self.page.get(), self.unit.get(), self.cache.get());
        let mut wrong = Vec::new();
        for (key, size) in [("backing.page", page), ("backing.unit", unit)] {
            if !size.is_power_of_two() {
                let message = format!("`{key}` is {}, which is not a power of two", Bytes(size));
                wrong.push((key, message, "pages are 256 B, 4 KiB, 16 KiB, and so on"));
            }
        }
        if cache < page * u64::from(*self.ways) {
            let message = format!("a cache of {} has no room for a set", *self.cache);
            wrong.push(("backing.cache", message, "a set has `ways` times `page`"));
        }
        if cache > capacity.get() {
            let message = format!("a cache of {} is larger than its medium", *self.cache);
            wrong.push(("backing.cache", message, "`capacity` is that of the medium"));
        }
        if !self.dies.is_multiple_of(*self.channels) {
            let message = format!(
                "{} dies are not the same number on {} channels",
                *self.dies, *self.channels
            );
            wrong.push((
                "backing.dies",
                message,
                "`dies` counts those of all channels",
            ));
        }
        if self.endurance.is_some() && self.block.is_none() {
            let message = "`backing.endurance` is of blocks, and the medium has none".to_owned();
            wrong.push((
                "backing.endurance",
                message,
                "give `backing.block` and `backing.erase`, or leave it out",
            ));
        }
        if *self.worn > 0.0 && self.endurance.is_none() {
            let message =
                "`backing.worn` is a share of `backing.endurance`, which is not known".to_owned();
            wrong.push(("backing.worn", message, "give `backing.endurance`"));
        }
        if self.erase.is_some() != self.block.is_some() {
            let message =
                "`backing.erase` and `backing.block` are possible only together".to_owned();
            wrong.push((
                "backing.block",
                message,
                "a medium without blocks is written in place",
            ));
        }
        if self.erase.is_some() && page > unit {
            let message = format!(
                "a page of {} is more than a page of flash, {}",
                *self.page, *self.unit
            );
            wrong.push((
                "backing.page",
                message,
                "a page of flash holds one or more pages of the cache",
            ));
        }
        if self.collect_to.value < self.collect_at.value {
            let message =
                "garbage collection ends with fewer free blocks than it begins with".to_owned();
            wrong.push(("backing.collect_to", message, "give at least `collect_at`"));
        }
        wrong
    }
}
