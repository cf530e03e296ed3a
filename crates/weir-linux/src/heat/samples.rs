//! Loads that the processor samples with their addresses: PEBS of Intel, IBS of AMD.

use weir_model::capability::Unavailable;

use super::maps::Resident;
use crate::perf::sample::{Sampler, Source, source};
use crate::perf::{Every, Target, every_cpu};
use crate::root::Root;

/// Samples of every processor.
#[derive(Debug)]
pub(super) struct Samples {
    sampler: Sampler,
    /// Samples since the last [`scale`](Self::scale), of any process, and those that found no room in a ring.
    read: u64,
    lost: u64,
}

impl Samples {
    /// Opens sampling on every processor, with so many samples a second.
    ///
    /// # Errors
    /// The processor samples no addresses, or the kernel refuses.
    pub fn begin(root: &Root, per_s: u64) -> Result<Self, Unavailable> {
        let source = Source {
            every: Every::PerSecond(per_s),
            ..source(root)?
        };
        Self::of(root, &source, &every_cpu(root)?)
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
