//! Loads that the processor samples with their addresses: PEBS of Intel, IBS of AMD.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_model::capability::Unavailable;

use super::maps::Resident;
use crate::perf::sample::{Sampler, Source, source};
use crate::perf::{Every, Target, every_cpu};
use crate::root::Root;

/// How long loads are counted before the period is chosen.
const COUNTED: Duration = Duration::from_millis(300);
/// IBS takes multiples of 16, from 144 on (AMD PPR, `IbsOpMaxCnt`).
const PERIODS: (u64, u64) = (144, 16);

/// The period at which the busiest processor has this many samples a second.
fn period(events: &BTreeMap<u32, u64>, seconds: f64, per_s: u64) -> u64 {
    let most = events.values().max().copied().unwrap_or(0) as f64;
    let period = (most / seconds / per_s as f64) as u64;
    period.max(PERIODS.0).next_multiple_of(PERIODS.1)
}

/// Samples of every processor.
#[derive(Debug)]
pub(super) struct Samples {
    sampler: Sampler,
    /// Samples since the last [`scale`](Self::scale), of any process, and those that found no room in a ring.
    read: u64,
    lost: u64,
}

impl Samples {
    /// Opens sampling on every processor, with about this many samples a second on the busiest. All have one period, so that
    /// every sample stands for equally many loads.
    ///
    /// # Errors
    /// The processor samples no addresses, or the kernel refuses.
    pub fn begin(root: &Root, per_s: u64) -> Result<Self, Unavailable> {
        let (mut source, targets) = (source(root)?, every_cpu(root)?);
        source.every = Every::PerSecond(per_s);
        let mut events = BTreeMap::new();
        let mut sampler = Sampler::open(root, &source, &targets)?;
        let began = Instant::now();
        std::thread::sleep(COUNTED);
        sampler.drain(|sample| *events.entry(sample.cpu).or_insert(0_u64) += sample.events);
        drop(sampler);
        source.every = Every::Times(period(&events, began.elapsed().as_secs_f64(), per_s));
        Self::of(root, &source, &targets)
    }

    fn of(root: &Root, source: &Source, targets: &[Target]) -> Result<Self, Unavailable> {
        Ok(Self {
            sampler: Sampler::open(root, source, targets)?,
            read: 0,
            lost: 0,
        })
    }

    /// Adds what was sampled since the last look to the parts that it is in. A part's pages share its touches.
    pub fn look(&mut self, resident: &mut [Resident], granule: u64) {
        let read = &mut self.read;
        self.lost += self.sampler.drain(|sample| {
            *read += 1;
            let mut of = resident.iter_mut();
            let of = of.find(|of| of.process == sample.process);
            if let Some(part) = of.and_then(|of| of.part_of(sample.address, granule)) {
                part.touches += sample.events as f64 / part.pages as f64;
            }
        });
    }

    /// How many samples each one stands for that was read since the last call, with those that were lost.
    pub fn scale(&mut self) -> f64 {
        let (read, lost) = (self.read as f64, self.lost as f64);
        (self.read, self.lost) = (0, 0);
        if read > 0.0 { 1.0 + lost / read } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::topology::TierName;
    use weir_model::units::Bytes;

    use super::*;
    use crate::memory::{Policy, Region, Share, base_page};

    #[test]
    fn the_busiest_processor_sets_the_period() {
        let events = BTreeMap::from([(0, 6_000), (1, 3_000_000)]);
        assert_eq!(period(&events, 0.3, 1000), 10_000);
        assert_eq!(period(&events, 0.3, 999), 10_016);
        assert_eq!(period(&BTreeMap::new(), 0.3, 1000), 144);
    }

    /// First touches of pages stand in for loads: every kernel samples them.
    #[test]
    fn each_sample_is_added_to_the_part_with_its_address() {
        let root = Root::live();
        let page = base_page() as u64;
        let granule = 16 * page;
        let share = Share {
            tier: TierName::dram(),
            node: None,
            weight: 1,
        };
        let shares = std::slice::from_ref(&share);
        let memory = Region::untouched(Bytes(4 * granule), shares, &Policy::probe()).unwrap();
        let start = (memory.base() as u64).next_multiple_of(granule);
        let touch = |at: u64| {
            // SAFETY: a byte of the region, to which nothing else refers.
            unsafe { (at as *mut u8).write_volatile(1) };
        };
        // A part without resident pages is not looked at.
        (0..2).for_each(|part| touch(start + part * granule));
        let mut of = Resident::open(&root, 0, std::process::id(), page).unwrap();
        of.divide(&root, granule).unwrap();
        let targets = [Target::ThisThread];
        let mut samples = Samples::of(&root, &Source::page_faults(), &targets).unwrap();
        let mut all = vec![of];
        samples.look(&mut all, granule);
        (1..6).for_each(|n| touch(start + n * page));
        (1..3).for_each(|n| touch(start + granule + n * page));
        touch(start + 2 * granule);
        samples.look(&mut all, granule);
        let mut touches = |part: u64| {
            let part = all[0].part_of(start + part * granule, granule);
            part.map(|part| part.touches * part.pages as f64)
        };
        assert_eq!(
            (touches(0), touches(1), touches(2)),
            (Some(5.0), Some(2.0), None)
        );
        assert_eq!(samples.scale(), 1.0);
    }
}
