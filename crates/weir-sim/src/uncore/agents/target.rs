//! The destinations of requests, by the number of their tier.

use crate::pmu::TorClass;

/// The destination of requests of a host.
#[derive(Clone)]
pub(super) struct Target {
    /// The host.
    pub host: u8,
    /// The position of its memory among all, which hosts may share.
    pub memory: u8,
    /// The ToR class of misses with this destination.
    pub class: TorClass,
    /// Slices over which its lines are spread, and the first of them.
    pub spread: u32,
    pub first_slice: u16,
    /// How many more requests in the tables may wait for it before prefetches from it are throttled; below
    /// zero, they are.
    pub slack: i64,
    pub holds: u32,
    /// Its bit in [`Uncore::distressed`](super::Uncore::distressed).
    pub bit: u32,
}

impl Target {
    /// One more request waits for it.
    #[inline(always)]
    pub fn begin(&mut self, distressed: &mut u32) {
        self.slack -= 1;
        if self.slack < 0 {
            *distressed |= self.bit;
        }
    }

    /// One request less waits for it.
    #[inline(always)]
    pub fn end(&mut self, distressed: &mut u32) {
        self.slack += 1;
        if self.slack == 0 {
            *distressed &= !self.bit;
        }
    }
}

/// All of them. There is a place for every number of a tier, so that no look-up checks whether there is one.
pub(super) struct Targets {
    places: Box<[Target; 1 << u8::BITS]>,
    number: usize,
}

impl Targets {
    /// These, the first for tier 0.
    pub fn new(targets: &[Target]) -> Self {
        let none = Target {
            host: 0,
            memory: 0,
            class: TorClass::Hit,
            spread: 1,
            first_slice: 0,
            slack: 0,
            holds: 0,
            bit: 0,
        };
        let mut places = Box::new(std::array::from_fn(|_| none.clone()));
        for (place, target) in places.iter_mut().zip(targets) {
            *place = target.clone();
        }
        Self {
            number: targets.len().min(places.len()),
            places,
        }
    }

    /// Every one.
    pub fn iter(&self) -> impl Iterator<Item = &Target> {
        self.places[..self.number].iter()
    }
}

impl std::ops::Index<u8> for Targets {
    type Output = Target;
    #[inline(always)]
    fn index(&self, tier: u8) -> &Target {
        &self.places[usize::from(tier)]
    }
}

impl std::ops::IndexMut<u8> for Targets {
    #[inline(always)]
    fn index_mut(&mut self, tier: u8) -> &mut Target {
        &mut self.places[usize::from(tier)]
    }
}
