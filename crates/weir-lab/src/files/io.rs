//! What one read or write of a file takes in each file system, part by part.
//!
//! The file systems are those of FLAC (DIMES 2023), sections 2 and 4. Copies were measured on the machine; the rest are
//! [`Costs`] of the kernel for each call and page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::costs::Costs;

/// A page of the cache.
pub const PAGE: Bytes = Bytes::kib(4);
/// The file of FLAC's section 2, 10 GB.
const FILE: Bytes = Bytes(10_000_000_000);

weir_model::named! {
    /// A file system.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum System {
        /// ext4 with its page cache, flushed in the background.
        Ext4 = "ext4",
        /// The same while nothing is flushed.
        Ext4Unflushed = "ext4-unflushed",
        /// ext4 without a page cache.
        Ext4Dax = "ext4-dax",
        /// NOVA: no page cache, new places for what is written.
        Nova = "nova",
        /// FLAC between processes: pages are attached, each with an invalidation of one TLB entry.
        Flac = "flac",
        /// FLAC with one invalidation for each read or write, which the paper plans.
        FlacBatched = "flac-batched",
        /// FLAC between threads of one process: each invalidation interrupts the other threads.
        FlacThreads = "flac-threads",
    }
}

weir_model::named! {
    /// What is asked of a file.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Access {
        /// A read.
        Read = "read",
        /// A write of data that is there.
        Write = "write",
    }
}

weir_model::named! {
    /// Whether a cache has the data.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum State {
        /// It has; or there is no cache.
        Warm = "warm",
        /// It has not.
        Cold = "cold",
    }
}

impl System {
    /// Whether data is cached in DRAM.
    pub const fn has_cache(self) -> bool {
        !matches!(self, System::Ext4Dax | System::Nova)
    }

    /// Whether pages are attached and not copied.
    pub const fn attaches(self) -> bool {
        matches!(
            self,
            System::Flac | System::FlacBatched | System::FlacThreads
        )
    }
}

/// What copies of one read or write take with this many threads that copy at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copies {
    /// The threads.
    pub threads: u32,
    /// Between the program's memory and the cache.
    pub cached: Nanos,
    /// The same while one more thread copies to the medium.
    pub while_flushing: Nanos,
    /// From DRAM to the medium.
    pub to_medium: Nanos,
    /// From the medium to DRAM.
    pub from_medium: Nanos,
    /// What one thread copies to the medium.
    pub flush: GbPerSec,
}

impl Copies {
    /// What copies of a part of the bytes take.
    pub fn part(&self, part: f64) -> Self {
        Self {
            cached: self.cached * part,
            while_flushing: self.while_flushing * part,
            to_medium: self.to_medium * part,
            from_medium: self.from_medium * part,
            ..*self
        }
    }
}

/// The times of one read or write, by what takes them. Their sum is that of the call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parts {
    /// The system call, and records of the file system for it.
    pub software: Nanos,
    /// Copies between the program and cache or medium.
    pub copy: Nanos,
    /// Pages of the cache: found, counted, marked.
    pub cache: Nanos,
    /// What a flush in the background adds.
    pub flush: Nanos,
    /// What a miss of the cache adds.
    pub miss: Nanos,
    /// Pages that are attached.
    pub attach: Nanos,
    /// What stores into every page afterwards add: faults and copies of single pages. Not part of the call.
    pub stores: Nanos,
}

impl Parts {
    /// The call.
    pub fn total(&self) -> Nanos {
        self.software + self.copy + self.cache + self.flush + self.miss + self.attach
    }

    /// The share of copies.
    pub fn copied(&self) -> f64 {
        self.copy / self.total()
    }
}

/// What a read or write of `size` bytes takes.
pub fn io(
    system: System,
    access: Access,
    state: State,
    size: Bytes,
    copies: &Copies,
    costs: &Costs,
) -> Parts {
    let pages = size.get().div_ceil(PAGE.get()) as f64;
    let software = costs.enter;
    match system {
        System::Ext4 | System::Ext4Unflushed => {
            let of_page = match access {
                Access::Read => costs.read,
                Access::Write => costs.write,
            };
            let mut parts = Parts {
                software,
                copy: copies.cached,
                cache: of_page * pages,
                ..Parts::default()
            };
            if state == State::Cold {
                parts.miss = copies.from_medium + costs.insert * pages;
            }
            if (system, access) == (System::Ext4, Access::Write) {
                let slower = (copies.while_flushing - copies.cached).max(Nanos(0.0));
                parts.flush = slower + costs.redirty * pages;
                parts.flush = parts.flush + waits(parts.total(), size, copies, costs);
            }
            parts
        }
        System::Ext4Dax | System::Nova => {
            let (call, of_page) = match (system, access) {
                // A read only searches an index.
                (_, Access::Read) => (Nanos(0.0), Nanos(0.0)),
                (System::Ext4Dax, Access::Write) => (costs.ext4_dax, Nanos(0.0)),
                (_, Access::Write) => (costs.nova, costs.nova_page),
            };
            Parts {
                software: software + call + of_page * pages,
                copy: match access {
                    Access::Read => copies.from_medium,
                    Access::Write => copies.to_medium,
                },
                ..Parts::default()
            }
        }
        System::Flac | System::FlacBatched | System::FlacThreads => {
            let others = match (system, copies.threads) {
                (System::FlacThreads, 2..) => costs.shootdown,
                _ => Nanos(0.0),
            };
            let (of_page, once) = match system {
                System::FlacBatched => (Nanos(0.0), costs.invalidate_all),
                _ => (costs.invalidate + others, Nanos(0.0)),
            };
            // What a store copies is where the frame is.
            let of_all = match state {
                State::Warm => copies.cached,
                State::Cold => copies.from_medium,
            };
            Parts {
                software,
                attach: (costs.entry + costs.count + of_page) * pages + once,
                // The flush attaches the dirty pages to its own buffer, under the lock of their file.
                flush: match access {
                    Access::Read => Nanos(0.0),
                    Access::Write => costs.entry * pages,
                },
                stores: costs.fault * pages + of_all,
                ..Parts::default()
            }
        }
    }
}

/// How long a write waits on average for pages that a flush holds. The more is written, the more a flush has to write,
/// so that this is where writes and flush agree.
fn waits(without: Nanos, size: Bytes, copies: &Copies, costs: &Costs) -> Nanos {
    let bytes = size.get() as f64;
    let mut wait = 0.0;
    for _ in 0..64 {
        let rate = f64::from(copies.threads) * bytes / (without.get() + wait);
        let held = (costs.held.get() as f64).min(rate * costs.period.get());
        let meets = ((held + bytes) / FILE.get() as f64).min(1.0);
        let flush = copies.flush.get();
        let is_flushing = (rate / flush).min(1.0);
        // Halfway to the next value, as the full step may swing.
        wait = (wait + meets * is_flushing * held / flush / 2.0) / 2.0;
    }
    Nanos(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn costs() -> Costs {
        Costs::builtin().unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }

    /// Times in microseconds: cached, while flushing, to the medium, from it; and the rate of a flush.
    fn copies(threads: u32, [a, b, c, d]: [f64; 4], flush: f64) -> Copies {
        let time = |us: f64| Nanos(us * 1e3);
        Copies {
            threads,
            cached: time(a),
            while_flushing: time(b),
            to_medium: time(c),
            from_medium: time(d),
            flush: GbPerSec(flush),
        }
    }

    fn any_copies() -> impl Strategy<Value = Copies> {
        (1_u32..64, prop::array::uniform4(1.0..1e5), 0.1..100.0)
            .prop_map(|(n, times, flush)| copies(n, times, flush))
    }

    fn cases() -> impl Iterator<Item = (System, Access, State)> {
        let accesses = System::ALL
            .into_iter()
            .flat_map(|of| Access::ALL.map(|access| (of, access)));
        accesses.flat_map(|(of, access)| State::ALL.map(|state| (of, access, state)))
    }

    proptest! {
        #[test]
        fn parts_are_no_less_than_nothing_and_add_up(copies in any_copies(), pages in 1_u64..4096) {
            for (system, access, state) in cases() {
                let parts = io(system, access, state, Bytes(pages * 4096), &copies, &costs());
                let all = [parts.software, parts.copy, parts.cache, parts.flush, parts.miss, parts.attach];
                prop_assert!(all.iter().all(|part| part.get().is_finite() && *part >= Nanos(0.0)), "{parts:?}");
                let sum: Nanos = all.into_iter().sum();
                prop_assert!((sum - parts.total()).get().abs() <= 1e-9 * sum.get());
                prop_assert!((0.0..=1.0).contains(&parts.copied()));
            }
        }

        #[test]
        fn attached_pages_take_the_same_time_whatever_their_data_takes(
            one in any_copies(), other in any_copies(), pages in 1_u64..4096,
        ) {
            let other = Copies { threads: one.threads, ..other };
            for (system, access, state) in cases().filter(|(system, ..)| system.attaches()) {
                let total = |copies| io(system, access, state, Bytes(pages * 4096), copies, &costs()).total();
                prop_assert_eq!(total(&one), total(&other));
            }
        }

        #[test]
        fn a_slower_medium_makes_attached_pages_gain_more_over_copies_from_it(
            copies in any_copies(), slower in 1.01..100.0,
        ) {
            let gain = |copies: &Copies, access| {
                let time = |of| io(of, access, State::Warm, Bytes::mib(2), copies, &costs()).total();
                time(System::Nova) / time(System::Flac)
            };
            let slow = Copies {
                to_medium: copies.to_medium * slower,
                from_medium: copies.from_medium * slower,
                ..copies
            };
            for access in Access::ALL {
                prop_assert!(gain(&slow, access) > gain(&copies, access));
            }
        }

        #[test]
        fn a_flush_that_holds_more_pages_delays_writes_no_less(copies in any_copies(), held in 4096_u64..1 << 34) {
            let flush = |held| {
                let costs = Costs { held: Bytes(held), ..costs() };
                io(System::Ext4, Access::Write, State::Warm, Bytes::mib(2), &copies, &costs).flush
            };
            prop_assert!(flush(held * 2).get() >= flush(held).get() * (1.0 - 1e-6));
        }
    }

    #[test]
    fn a_write_and_the_flush_behind_it_agree_on_the_wait() {
        let costs = Costs {
            held: Bytes(10_000_000_000),
            ..costs()
        };
        let copies = copies(1, [206.0, 206.0, 228.0, 284.0], 9.2);
        let (size, without) = (Bytes::mib(2), Nanos(380e3));
        let wait = waits(without, size, &copies, &costs);
        let rate = size.get() as f64 / (without + wait).get();
        let dirty = rate * costs.period.get();
        let again =
            (dirty + size.get() as f64) / FILE.get() as f64 * (rate / 9.2) * dirty / 9.2 / 2.0;
        assert!((wait.get() - again).abs() < 1e-3 * again, "{wait} {again}");
    }
}
