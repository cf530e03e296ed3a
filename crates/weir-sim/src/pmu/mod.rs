//! Counters of the uncore and the cores. Each event is counted where it happens.

mod cores;

use weir_model::counters::{Counter, CounterSet};

use crate::clock::Ps;
use crate::line::Kind;
use crate::memory::TierCounts;
use crate::params::{Params, TierClass};

pub use cores::CoreCounts;

/// Classes of ToR entries, as the hardware's filters distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TorClass {
    /// Hits in the last-level cache.
    Hit,
    /// Lines of devices on ports which no tier has to answer: no core asked for them.
    Io,
    /// Requests of another socket for slices of this one.
    Remote,
    /// Misses that go to DRAM of this socket.
    MissDdr,
    /// Misses that go to CXL memory.
    MissCxl,
    /// Misses that go to another socket.
    MissRemote,
    /// Lines that the last-level cache evicts; no core asked for them.
    Evict,
}

impl TorClass {
    const COUNT: usize = TorClass::Evict as usize + 1;

    /// A miss that goes to a tier of this class.
    pub fn miss(tier: TierClass) -> Self {
        match tier {
            TierClass::Ddr => TorClass::MissDdr,
            TierClass::Cxl => TorClass::MissCxl,
            TierClass::Remote => TorClass::MissRemote,
        }
    }
}

/// A number of things and its integral over time. Each thing that leaves adds its time, and each thing that
/// comes subtracts its time, so both cost one addition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Level {
    came: u64,
    left: u64,
    entry_times: u64,
    exit_times: u64,
}

impl Level {
    /// One thing comes.
    #[inline]
    pub fn up(&mut self, now: Ps) {
        self.came += 1;
        self.entry_times = self.entry_times.wrapping_add(now);
    }

    /// One thing leaves.
    #[inline]
    pub fn down(&mut self, now: Ps) {
        self.left += 1;
        self.exit_times = self.exit_times.wrapping_add(now);
    }

    /// How many things came.
    pub fn arrivals(&self) -> u64 {
        self.came
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.came - self.left
    }

    /// The integral so far: number times time, in picoseconds.
    pub fn area(&self, now: Ps) -> u64 {
        // Sums may wrap; their difference is right as long as it fits. A thing that comes after `now`
        // subtracts its waiting time; with almost nothing else in the queue the result would be below zero.
        let present = self.count().wrapping_mul(now);
        let area = (self.exit_times)
            .wrapping_sub(self.entry_times)
            .wrapping_add(present);
        area.cast_signed().max(0).cast_unsigned()
    }
}

/// Counters of the uncore of a host since it started.
#[derive(Debug, Clone, Default)]
pub struct HostCounts {
    /// Entries of all ToRs, by class.
    tor: [Level; TorClass::COUNT],
    /// Entries of all ingress queues.
    pub irq: Level,
    /// Requests that found it full.
    pub irq_rejected: u64,
}

/// All counters of a machine since it started.
#[derive(Debug, Clone)]
pub struct Pmu {
    /// Those of each host; there is a place for every number, so that no look-up checks whether there is one.
    hosts: Box<[HostCounts; 1 << u8::BITS]>,
    /// Counters of the cores, one set for each thread.
    pub cores: Vec<CoreCounts>,
}

impl Pmu {
    /// All counters at zero, for this number of threads.
    pub fn new(threads: usize) -> Self {
        Self {
            hosts: Box::new(std::array::from_fn(|_| HostCounts::default())),
            cores: vec![CoreCounts::default(); threads],
        }
    }

    /// The counters of a host's uncore.
    #[inline(always)]
    pub fn of(&mut self, host: u8) -> &mut HostCounts {
        &mut self.hosts[usize::from(host)]
    }

    /// The occupancy of a class of requests of a host.
    #[inline(always)]
    pub fn tor(&mut self, host: u8, class: TorClass) -> &mut Level {
        &mut self.hosts[usize::from(host)].tor[class as usize]
    }

    /// The counters of a host at `now` as hardware would show them: those of its `cores`, and those of the uncore. If
    /// the cores of both sockets have work, the counters of both are added; `crossed` is the number of lines
    /// that crossed between them.
    pub fn read(
        &self,
        now: Ps,
        host: u32,
        cores: &[CoreCounts],
        tiers: &[TierCounts],
        crossed: Option<[u64; 2]>,
        p: &Params,
    ) -> CounterSet {
        let uncore_cycles = |ps: u64| (ps as f64 / 1e3 * p.uncore.clock_ghz) as u64;
        let dram_cycles = |ps: u64| (ps as f64 / 1e3 * p.dram_clock_ghz) as u64;
        let none = HostCounts::default();
        let own = self.hosts.get(host as usize).unwrap_or(&none);
        let [hit, io, _, ddr, cxl, remote, evict] = &own.tor;
        let inserts = [hit, ddr, cxl, remote].map(|l| l.arrivals());
        let areas = [hit, ddr, cxl, remote].map(|l| l.area(now));
        let mut all = CoreCounts::default();
        for core in cores {
            all.add(core);
        }
        let mut set = all.read(now, cores.len(), p);
        let mut put = |counter, value| set.set(counter, value);
        // Every request with a ToR entry came through an ingress queue. Requests of the other socket have a
        // queue of their own.
        let others = io.arrivals() + evict.arrivals();
        let irq_inserts = inserts.iter().sum::<u64>() + others + own.irq.count();
        put(Counter::IrqInserts, irq_inserts);
        put(Counter::IrqOccupancy, uncore_cycles(own.irq.area(now)));
        put(Counter::IrqRejected, own.irq_rejected);
        put(Counter::TorInsertsIa, inserts.iter().sum());
        put(Counter::TorOccupancyIa, uncore_cycles(areas.iter().sum()));
        put(Counter::TorInsertsIaHit, inserts[0]);
        put(Counter::TorInsertsIaMiss, inserts[1..].iter().sum());
        put(
            Counter::TorOccupancyIaMiss,
            uncore_cycles(areas[1..].iter().sum()),
        );
        put(Counter::TorInsertsIaMissDdr, inserts[1]);
        put(Counter::TorOccupancyIaMissDdr, uncore_cycles(areas[1]));
        put(Counter::TorInsertsIaMissCxl, inserts[2]);
        put(Counter::TorOccupancyIaMissCxl, uncore_cycles(areas[2]));
        put(Counter::TorInsertsIaMissRemote, inserts[3]);
        put(Counter::TorOccupancyIaMissRemote, uncore_cycles(areas[3]));
        let (prefetches, missed) = all.prefetched();
        put(Counter::TorInsertsIaDrdPref, prefetches);
        put(Counter::TorInsertsIaMissDrdPref, missed);
        put(Counter::TorInsertsEvict, evict.arrivals());
        put(Counter::TorInsertsIaWcilf, all.left(&[Kind::Wcilf]));
        put(Counter::TorInsertsIaWbmtoi, all.left(&[Kind::WbMtoI]));
        put(Counter::ChaClockticks, uncore_cycles(now));

        let sum = |class: TierClass, f: fn(&TierCounts) -> u64| -> u64 {
            let classes = p
                .tiers
                .iter()
                .enumerate()
                .map(|(i, tier)| match &p.sockets {
                    Some(sockets) if crossed.is_some() => sockets.tiers[i].tier.class,
                    _ => tier.class,
                });
            classes
                .zip(tiers)
                .filter(|(of, _)| *of == class)
                .map(|(_, c)| f(c))
                .sum()
        };
        put(Counter::CasRd, sum(TierClass::Ddr, |c| c.dram.reads));
        put(Counter::CasWr, sum(TierClass::Ddr, |c| c.dram.writes));
        put(
            Counter::ActCount,
            sum(TierClass::Ddr, |c| c.dram.activations),
        );
        put(
            Counter::RpqOccupancy,
            dram_cycles(sum(TierClass::Ddr, |c| c.dram.read_queue_time)),
        );
        put(Counter::MClockticks, dram_cycles(now));
        put(
            Counter::CxlDeviceOccupancy,
            uncore_cycles(sum(TierClass::Cxl, |c| c.device_time)),
        );
        put(
            Counter::WpqOccupancy,
            dram_cycles(sum(TierClass::Ddr, |c| c.dram.write_queue_time)),
        );
        if p.longest_miss().is_some() {
            let mut of = |counter, part| put(counter, sum(TierClass::Cxl, part));
            of(Counter::MediumHits, |c| c.media.hits);
            of(Counter::MediumMisses, |c| c.media.misses);
            of(Counter::MediumReads, |c| c.media.reads);
            of(Counter::MediumPrograms, |c| c.media.programs);
            of(Counter::MediumCopies, |c| c.media.copies);
            of(Counter::MediumErases, |c| c.media.erases);
            of(Counter::MediumLost, |c| c.media.lost);
        }
        let of_cores = |of: fn(&CoreCounts) -> u64| cores.iter().map(of).sum();
        if p.longest_miss().is_some() || p.fails() {
            put(Counter::MediumPoison, of_cores(|core| core.poisoned));
        }
        if p.fails() {
            put(Counter::CxlLostWrites, of_cores(|core| core.lost));
        }
        if p.hosts > 1 {
            let mut of = |counter, part| put(counter, sum(TierClass::Cxl, part));
            of(Counter::CxlDeviceReads, |c| c.served[0]);
            of(Counter::CxlDeviceWrites, |c| c.served[1]);
        }
        put(Counter::CxlRxMemData, sum(TierClass::Cxl, |c| c.lines_in));
        put(Counter::CxlTxMemData, sum(TierClass::Cxl, |c| c.lines_out));
        put(
            Counter::CxlTxMemReq,
            sum(TierClass::Cxl, |c| c.requests_out),
        );
        let [came, left] = crossed.unwrap_or_else(|| {
            [
                sum(TierClass::Remote, |c| c.lines_in),
                sum(TierClass::Remote, |c| c.lines_out),
            ]
        });
        put(Counter::UpiRxData, came);
        put(Counter::UpiTxData, left);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_to_come_leaves_no_less_than_nothing() {
        let mut level = Level::default();
        level.up(150);
        assert_eq!(level.area(100), 0, "it comes after the window");
        assert_eq!(level.area(170), 20);
        level.down(180);
        assert_eq!(level.area(1000), 30);
    }
}
