//! Everything that is noted of a stream of accesses.

use weir_model::units::LINE_BYTES;

use crate::access::{Access, Sink};
use crate::granule::{Granule, Granules, begin_of, range_of};
use crate::l1::{self, Found, L1};
use crate::reuse::{Profile, Reuse};
use crate::runs::Runs;

/// Lines whose last use is known; of larger footprints a sample of lines is.
pub const LINES: usize = 1 << 16;
/// Lines of an access that are looked at: those of a page.
const LONGEST: u64 = 64;

/// Takes accesses and notes what a description needs, in constant memory.
#[derive(Debug)]
pub struct Watch {
    l1: L1,
    runs: Runs,
    reuse: Reuse,
    granules: Granules,
    profile: Profile,
    /// Distances of accesses by their time: the sum of weights, and of distances.
    distances: Vec<(f64, f64)>,
    instructions: u64,
    accesses: u64,
    stores: u64,
    last: u64,
    now: u64,
    windows: u64,
    warm: bool,
    profiled: (u64, u64),
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// Nothing was seen yet.
    pub fn new() -> Self {
        Self {
            l1: L1::new(),
            runs: Runs::new(),
            reuse: Reuse::new(LINES),
            granules: Granules::new(),
            profile: Profile::default(),
            distances: vec![(0.0, 0.0); crate::granule::TIMES],
            instructions: 0,
            accesses: 0,
            stores: 0,
            last: u64::MAX,
            now: 0,
            windows: 1,
            warm: true,
            profiled: (0, 0),
        }
    }

    /// Begins a part of the trace that does not follow what was seen before. Until [`Watch::warmed`] its uses are noted, but
    /// are not among those of the profile: caches are cold.
    pub fn begin_window(&mut self, first: bool) {
        self.reuse.forget();
        self.windows += u64::from(!first);
        self.warm = false;
    }

    /// Caches are warm from here on.
    pub fn warmed(&mut self) {
        self.warm = true;
    }

    /// Accesses of the profile, and their instructions.
    pub fn profiled(&self) -> (u64, u64) {
        self.profiled
    }

    /// Accesses to lines.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Those that store.
    pub fn stores(&self) -> u64 {
        self.stores
    }

    /// Instructions.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Accesses between two beginnings.
    pub fn length(&self) -> f64 {
        self.accesses as f64 / self.windows as f64
    }

    /// Reuse distances of all accesses with warm caches.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How many lines each line stands for whose uses are known.
    pub fn weight(&self) -> f64 {
        self.reuse.weight()
    }

    /// Granules by their first address, and the bytes of one.
    pub fn granules(&self) -> (Vec<(u64, &Granule)>, u64) {
        (self.granules.sorted(), 1 << self.granules.shift())
    }

    /// The lines of a part of the address space whose uses are known, with how often each was used.
    pub fn lines(&self, from: u64, to: u64) -> Vec<u32> {
        let here = from / LINE_BYTES..to.div_ceil(LINE_BYTES);
        let lines = self.reuse.lines();
        lines
            .filter(|(line, _)| here.contains(line))
            .map(|(_, known)| known.uses)
            .collect()
    }

    /// Accesses since the last use of a line of which so many other lines were used since; `None` where no access has
    /// such a distance, or a longer one.
    pub fn time_of(&self, lines: u64) -> Option<f64> {
        let mut before = (1.0, 0.0);
        for (range, (weight, sum)) in self.distances.iter().enumerate() {
            if *weight == 0.0 {
                continue;
            }
            let distance = sum / weight;
            let time = begin_of(range) * 1.19;
            if distance >= lines as f64 {
                // Between two ranges distances grow about as a power of time.
                let (time_before, distance_before): (f64, f64) = before;
                if distance_before < 1.0 {
                    return Some(time);
                }
                let part =
                    (lines as f64 / distance_before).ln() / (distance / distance_before).ln();
                return Some(time_before * (time / time_before).powf(part.clamp(0.0, 1.0)));
            }
            before = (time, distance);
        }
        None
    }

    /// What is still in L1 was written, too.
    pub fn end(&mut self) {
        let written: Vec<u64> = self.l1.written().collect();
        for line in written {
            self.granules.at(line * LINE_BYTES).written += 1;
        }
    }

    #[inline]
    fn line(&mut self, line: u64, access: &Access) -> bool {
        self.now += 1;
        let moved = line != self.last;
        self.last = line;
        let found = match moved || access.store {
            true => self.l1.access(line, access.store),
            false => Found::Hit,
        };
        let used = self.reuse.use_line(line, self.now);
        self.accesses += 1;
        self.profiled.0 += u64::from(self.warm);
        let address = line * LINE_BYTES;
        let shift = self.granules.shift();
        let granule = self.granules.at(address);
        granule.accesses += 1;
        granule.uses += u64::from(moved);
        granule.bytes += u64::from(access.bytes);
        if access.store {
            self.stores += 1;
            granule.stores += 1;
        }
        if let Some(used) = used {
            if self.warm {
                self.profile.add(&used);
            }
            match used.distance {
                None => granule.first += used.weight,
                Some(distance) if distance >= l1::LINES => {
                    let range = range_of(used.time);
                    granule.times[range] += used.weight as f32;
                    let (weight, sum) = &mut self.distances[range];
                    *weight += used.weight;
                    *sum += used.weight * distance as f64;
                }
                Some(_) => {}
            }
        }
        let Found::Miss { written } = found else {
            return false;
        };
        granule.visits += 1;
        if let Some(from) = access.from {
            granule.loaded_from(address >> shift, from >> shift);
        }
        let step = self.runs.step(line);
        if step > 0 {
            granule.follows += 1;
            granule.steps += step;
        }
        if let Some(line) = written {
            self.granules.at(line * LINE_BYTES).written += 1;
        }
        true
    }
}

impl Sink for Watch {
    #[inline]
    fn instructions(&mut self, count: u64) {
        self.instructions += count;
        self.profiled.1 += if self.warm { count } else { 0 };
    }

    #[inline]
    fn access(&mut self, access: Access) -> bool {
        let first = access.address / LINE_BYTES;
        let last = access
            .address
            .saturating_add(u64::from(access.bytes.max(1)) - 1)
            / LINE_BYTES;
        let mut left = self.line(first, &access);
        if last != first {
            for line in first + 1..=last.min(first + LONGEST) {
                left |= self.line(line, &access);
            }
        }
        left
    }
}
