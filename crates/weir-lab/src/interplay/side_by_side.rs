//! Counters alone and together: every ratio, as the paper's Table IV has them, and where requests wait.
//!
//! Counters of the uncore belong to all tenants together. Those of the cores are each tenant's own, so
//! that what the victim's requests take is the victim's and no mean over both.

use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::interplay::{QueueFill, Ratio};
use weir_model::units::{Gigahertz, LINE_BYTES, Nanos};

use super::measured::Measured;

/// One run's counters over its whole time.
pub struct RunCounters<'r> {
    counters: &'r CounterSet,
    /// The cores' counters and the number of threads of each tenant, the victim first.
    tenants: Vec<(&'r CounterSet, u32)>,
    /// Nanoseconds over which they ran.
    ns: f64,
    clock: CoreClock,
}

/// What is known of the cores' clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CoreClock {
    /// The cores never halt, so that their cycles over the time are the clock.
    Counted,
    /// It is this; cores may halt between requests.
    Known(Gigahertz),
    /// Cores may halt, and it is not known.
    Unknown,
}

/// A quantity of one run, or why there is none.
pub type Quantity = Result<f64, Unavailable>;

impl<'r> RunCounters<'r> {
    /// The counters of a point.
    pub fn of(measured: &Measured<'r>) -> Self {
        let Measured { point, record } = measured;
        let beside = point.beside.as_ref().map(|beside| beside.threads);
        let threads = [Some(point.threads), beside].into_iter().flatten();
        Self {
            counters: &record.counters,
            tenants: record.tenants.iter().zip(threads).collect(),
            ns: record.samples.iter().map(|(window, _)| window.get()).sum(),
            clock: CoreClock::Counted,
        }
    }

    /// Counters of a machine in this time, and those of its tenants, each with its threads, the victim first.
    pub fn new(
        counters: &'r CounterSet,
        tenants: Vec<(&'r CounterSet, u32)>,
        window: Nanos,
        clock: CoreClock,
    ) -> Self {
        Self {
            counters,
            tenants,
            ns: window.get(),
            clock,
        }
    }

    /// One of a tenant's own counters, summed over core cycles, as the mean number in all its threads.
    fn held(&self, tenant: usize, occupancy: Counter) -> Quantity {
        let (own, _) = self.tenant(tenant)?;
        let held = own.get(occupancy)? as f64;
        let cycles = self.ns * self.cycles_per_ns(tenant)?;
        if cycles > 0.0 {
            Ok(held / cycles)
        } else {
            Err(Unavailable::because("the cores' clock stood still"))
        }
    }

    /// The clock of a tenant's cores, cycles a nanosecond.
    fn cycles_per_ns(&self, tenant: usize) -> Quantity {
        match self.clock {
            CoreClock::Known(clock) => Ok(clock.get()),
            CoreClock::Unknown => Err(Unavailable::because(
                "the cores halt between requests, and this machine does not tell their clock",
            )),
            CoreClock::Counted => {
                let (own, threads) = self.tenant(tenant)?;
                let cycles = own.get(Counter::Cycles)? as f64 / f64::from(threads);
                if cycles > 0.0 && self.ns > 0.0 {
                    Ok(cycles / self.ns)
                } else {
                    Err(Unavailable::because("the cores' clock stood still"))
                }
            }
        }
    }

    /// A tenant's own counters and its threads.
    fn tenant(&self, tenant: usize) -> Result<(&'r CounterSet, u32), Unavailable> {
        let missing = || Unavailable::because("this machine does not tell tenants apart");
        self.tenants.get(tenant).copied().ok_or_else(missing)
    }

    /// What a tenant's requests take on average: time outstanding over requests, in nanoseconds.
    fn latency_ns(&self, tenant: usize, (outstanding, requests): (Counter, Counter)) -> Quantity {
        let (own, _) = self.tenant(tenant)?;
        Ok(own.ratio(outstanding, requests)? / self.cycles_per_ns(tenant)?)
    }

    /// What a miss in L2 takes the victim: a read on demand, or one for ownership, or the time for which
    /// a posted store holds its buffer; whichever it does.
    pub fn l2_miss_ns(&self) -> Quantity {
        use Counter as C;
        let demand = (C::OffcoreOutstandingDemandDataRd, C::OffcoreDemandDataRd);
        let owned = (C::OffcoreOutstandingDemandRfo, C::OffcoreDemandRfo);
        let posted = (C::LfbOccupancy, C::StreamingWr);
        let first = self.latency_ns(0, demand);
        first.or_else(|why| {
            let rest = [owned, posted].into_iter();
            let mut rest = rest.filter_map(|pair| self.latency_ns(0, pair).ok());
            rest.next().ok_or(why)
        })
    }

    /// What a demand read that missed the last-level cache takes the victim once its slice has taken it.
    pub fn l3_miss_ns(&self) -> Quantity {
        let pair = (
            Counter::OffcoreOutstandingL3MissDemandDataRd,
            Counter::OffcoreL3MissDemandDataRd,
        );
        self.latency_ns(0, pair)
    }

    /// Of the victim's demand reads that left its cores, the share that hit the last-level cache.
    pub fn l3_hit_share(&self) -> Quantity {
        let (own, _) = self.tenant(0)?;
        own.ratio(Counter::L3Hit, Counter::OffcoreDemandDataRd)
    }

    /// Bytes of the last-level cache that the victim's lines fill.
    pub fn llc_bytes(&self) -> Quantity {
        let (own, _) = self.tenant(0)?;
        Ok(own.get(Counter::LlcOccupancy)? as f64)
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
type Derived = (&'static str, &'static str, fn(&RunCounters<'_>) -> Quantity);

const DERIVED: &[Derived] = &[
    ("victim.l2_miss_latency", "ns", |s| s.l2_miss_ns()),
    ("victim.l3_miss_latency", "ns", |s| s.l3_miss_ns()),
    ("victim.l3_hits", "share", |s| s.l3_hit_share()),
    ("victim.lfb", "entries", |s| {
        s.held(0, Counter::LfbOccupancy)
    }),
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
pub fn ratios(solo: &RunCounters<'_>, corun: &RunCounters<'_>) -> Vec<Ratio> {
    let pair = |name: &str, unit: &str, solo: f64, corun: f64| Ratio {
        name: name.into(),
        solo,
        corun,
        ratio: (solo != 0.0).then(|| corun / solo),
        unit: unit.into(),
    };
    let derived = DERIVED.iter().filter_map(|(name, unit, of)| {
        // What was not asked for has no mean time, and is nothing all the same.
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
    let levels = solo.llc_bytes().ok().zip(corun.llc_bytes().ok());
    let levels = levels.map(|(before, after)| pair("victim.llc_occupancy", "B", before, after));
    let events = Counter::ALL.iter().filter(|counter| !counter.is_level());
    let counted = events.filter_map(|&counter| {
        let (before, after) = (solo.rate(counter).ok()?, corun.rate(counter).ok()?);
        let either = before != 0.0 || after != 0.0;
        either.then(|| pair(counter.name(), "1/us", before, after))
    });
    derived.chain(levels).chain(counted).collect()
}

/// A place where requests are, and how many are there.
type Place = (&'static str, fn(&RunCounters<'_>) -> Quantity);

const PLACES: &[Place] = &[
    ("LFB victim", |s| s.buffers(0)),
    ("LFB aggressor", |s| s.buffers(1)),
    ("IRQ", |s| s.entries(Counter::IrqOccupancy)),
    ("ToR hit", |s| {
        let misses = s.entries(Counter::TorOccupancyIaMiss)?;
        Ok((s.entries(Counter::TorOccupancyIa)? - misses).max(0.0))
    }),
    ("ToR dram", |s| s.entries(Counter::TorOccupancyIaMissDdr)),
    ("ToR cxl", |s| s.entries(Counter::TorOccupancyIaMissCxl)),
    ("ToR remote", |s| {
        s.entries(Counter::TorOccupancyIaMissRemote)
    }),
    ("memory dram", |s| {
        let of = |occupancy| s.share(occupancy, Counter::MClockticks);
        Ok(of(Counter::RpqOccupancy)? + of(Counter::WpqOccupancy)?)
    }),
    ("memory cxl", |s| s.entries(Counter::CxlDeviceOccupancy)),
];

impl RunCounters<'_> {
    /// Buffers of a tenant's cores in use; where nothing counts all of them, those of its loads. A
    /// tenant that does not run has none.
    fn buffers(&self, tenant: usize) -> Quantity {
        if tenant > 0 && tenant == self.tenants.len() {
            return Ok(0.0);
        }
        let all = self.held(tenant, Counter::LfbOccupancy);
        all.or_else(|why| self.held(tenant, Counter::L1dPendMiss).map_err(|_| why))
    }
}

/// Where requests wait, from the core outwards.
pub fn queues(solo: &RunCounters<'_>, corun: &RunCounters<'_>) -> Vec<QueueFill> {
    let filled = PLACES.iter().filter_map(|(place, of)| {
        Some(QueueFill {
            place: (*place).into(),
            solo: of(solo).ok()?,
            corun: of(corun).ok()?,
        })
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten reads of 200 cycles each on a core of 2 GHz that runs for a quarter of a microsecond.
    fn read(clock: CoreClock) -> (Quantity, Quantity) {
        let mut own = CounterSet::default();
        own.set(Counter::OffcoreOutstandingDemandDataRd, 2000);
        own.set(Counter::OffcoreDemandDataRd, 10);
        own.set(Counter::LfbOccupancy, 2000);
        own.set(Counter::Cycles, 500);
        let all = CounterSet::default();
        let run = RunCounters::new(&all, vec![(&own, 1)], Nanos(1000.0), clock);
        (run.l2_miss_ns(), run.held(0, Counter::LfbOccupancy))
    }

    #[test]
    fn cores_that_halt_make_no_read_slower() {
        let known = read(CoreClock::Known(Gigahertz(2.0)));
        assert_eq!(known, (Ok(100.0), Ok(1.0)));
        let (latency, held) = read(CoreClock::Unknown);
        assert!(latency.is_err() && held.is_err());
        // What the cycles that were counted would say of a core that never halts.
        assert_eq!(read(CoreClock::Counted), (Ok(400.0), Ok(4.0)));
    }
}
