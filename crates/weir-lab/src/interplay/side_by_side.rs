//! Counters alone and beside: every ratio, as the paper's Table IV has them, and where requests wait.

use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::document::Record;
use weir_model::interplay::{QueueFill, Ratio};
use weir_model::units::LINE_BYTES;

/// One run's counters over its whole time.
pub struct Seen<'r> {
    counters: &'r CounterSet,
    /// Nanoseconds over which they ran.
    ns: f64,
}

/// A quantity of one run, or why there is none.
pub type Quantity = Result<f64, Unavailable>;

impl<'r> Seen<'r> {
    /// The counters of a record.
    pub fn in_record(record: &'r Record) -> Self {
        Self {
            counters: &record.counters,
            ns: record.samples.iter().map(|(window, _)| window.get()).sum(),
        }
    }

    /// Events a microsecond.
    pub fn rate(&self, counter: Counter) -> Quantity {
        let count = self.counters.get(counter)?;
        if self.ns > 0.0 {
            Ok(count as f64 / self.ns * 1e3)
        } else {
            Err(Unavailable::because("no time was counted"))
        }
    }

    /// Lines of 64 bytes as GB/s.
    pub fn lines_gbps(&self, counter: Counter) -> Quantity {
        Ok(self.rate(counter)? * LINE_BYTES as f64 / 1e3)
    }

    /// The mean time that something is in a queue, in nanoseconds (Little's law: occupancy over
    /// inserts).
    pub fn residency_ns(&self, occupancy: Counter, inserts: Counter) -> Quantity {
        let cycles = self.counters.ratio(occupancy, inserts)?;
        let clock = self.counters.get(Counter::ChaClockticks)?;
        if clock == 0 {
            return Err(Unavailable::because("the uncore clock stood still"));
        }
        Ok(cycles * self.ns / clock as f64)
    }

    /// The mean number of entries in a queue.
    pub fn entries(&self, occupancy: Counter) -> Quantity {
        self.counters.ratio(occupancy, Counter::ChaClockticks)
    }

    /// One counter's share of another.
    pub fn share(&self, of: Counter, all: Counter) -> Quantity {
        self.counters.ratio(of, all)
    }
}

/// Quantities that counters make together: name, unit, and how.
type Derived = (&'static str, &'static str, fn(&Seen<'_>) -> Quantity);

const DERIVED: &[Derived] = &[
    ("tor_residency.ia_miss", "ns", |s| {
        s.residency_ns(Counter::TorOccupancyIaMiss, Counter::TorInsertsIaMiss)
    }),
    ("tor_residency.ddr", "ns", |s| {
        s.residency_ns(Counter::TorOccupancyIaMissDdr, Counter::TorInsertsIaMissDdr)
    }),
    ("tor_residency.cxl", "ns", |s| {
        s.residency_ns(Counter::TorOccupancyIaMissCxl, Counter::TorInsertsIaMissCxl)
    }),
    ("tor_residency.remote", "ns", |s| {
        s.residency_ns(
            Counter::TorOccupancyIaMissRemote,
            Counter::TorInsertsIaMissRemote,
        )
    }),
    ("irq_wait", "ns", |s| {
        s.residency_ns(Counter::IrqOccupancy, Counter::IrqInserts)
    }),
    ("irq_rejected", "share", |s| {
        s.share(Counter::IrqRejected, Counter::IrqInserts)
    }),
    ("llc_hits", "share", |s| {
        s.share(Counter::TorInsertsIaHit, Counter::TorInsertsIa)
    }),
    ("dram_reads", "GB/s", |s| s.lines_gbps(Counter::CasRd)),
    ("dram_writes", "GB/s", |s| s.lines_gbps(Counter::CasWr)),
    ("cxl_reads", "GB/s", |s| s.lines_gbps(Counter::CxlRxMemData)),
    ("cxl_writes", "GB/s", |s| {
        s.lines_gbps(Counter::CxlTxMemData)
    }),
];

/// Every quantity and every counter that both runs have, what is made of several first.
pub fn ratios(solo: &Seen<'_>, corun: &Seen<'_>) -> Vec<Ratio> {
    let pair = |name: &str, unit: &str, solo: f64, corun: f64| Ratio {
        name: name.into(),
        solo,
        corun,
        ratio: (solo != 0.0).then(|| corun / solo),
        unit: unit.into(),
    };
    let derived = DERIVED.iter().filter_map(|(name, unit, of)| {
        // What nobody asked for has no mean time, and is nothing all the same.
        let (before, after) = (of(solo), of(corun));
        if before.is_err() && after.is_err() {
            return None;
        }
        Some(pair(
            name,
            unit,
            before.unwrap_or(0.0),
            after.unwrap_or(0.0),
        ))
    });
    let counted = Counter::ALL.iter().filter_map(|&counter| {
        let (before, after) = (solo.rate(counter).ok()?, corun.rate(counter).ok()?);
        let either = before != 0.0 || after != 0.0;
        either.then(|| pair(counter.name(), "1/us", before, after))
    });
    derived.chain(counted).collect()
}

/// Where requests wait, from the core outwards.
pub fn queues(solo: &Seen<'_>, corun: &Seen<'_>) -> Vec<QueueFill> {
    let places = [
        ("IRQ", Counter::IrqOccupancy),
        ("ToR dram", Counter::TorOccupancyIaMissDdr),
        ("ToR cxl", Counter::TorOccupancyIaMissCxl),
        ("ToR remote", Counter::TorOccupancyIaMissRemote),
    ];
    let filled = places.into_iter().filter_map(|(place, occupancy)| {
        Some(QueueFill {
            place: place.into(),
            solo: solo.entries(occupancy).ok()?,
            corun: corun.entries(occupancy).ok()?,
        })
    });
    filled.collect()
}
