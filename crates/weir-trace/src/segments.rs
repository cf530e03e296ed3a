//! Stretches of a trace in each of which the program does the same.
//!
//! At the end of each interval the rates of what left L1 are compared with those of the stretch before: by whether lines
//! follow each other, and by reuse distance, whose classes end at the caches that matter. A stretch ends where a quarter of
//! them differs. First uses have no distance and count as any, so that memory which is filled is no stretch of its own. An
//! interval that is like neither neighbour has a change within, and goes to the nearer. So a phase that is shorter
//! than two intervals is not seen, nor is a smaller change.

use weir_model::units::LINE_BYTES;

use crate::granule::{Granules, TIMES, begin_of, range_of};
use crate::l1;
use crate::origins::Origins;
use crate::reuse::Use;

/// The share of rates from which a program does something else.
const CHANGE: f64 = 0.25;
/// Uses beyond L1 below which rates are not compared.
const FEW: f64 = 2000.0;
/// Stretches that are distinguished; of more the most alike neighbours become one.
const MOST: usize = 6;
/// Upper ends of the classes of distances, in lines: 1, 8, 32 MiB.
const CLASSES: [u64; 3] = [1 << 14, 1 << 17, 1 << 19];

/// A use of a line whose last use was before the stretch.
#[derive(Debug, Clone, Copy)]
struct Crossing {
    line: u64,
    /// When it was used before.
    before: u64,
    time: u64,
    distance: u64,
    weight: f64,
}

/// What was noted of a stretch.
#[derive(Debug, Clone)]
pub struct Segment {
    /// By parts of the address space.
    pub granules: Granules,
    /// Where addresses were loaded.
    pub origins: Origins,
    /// Distances of uses by their time: the sum of weights, and of distances.
    distances: Vec<(f64, f64)>,
    /// By class of distance; the last are first uses.
    classes: [f64; CLASSES.len() + 2],
    crossing: Vec<Crossing>,
    /// Uses that left L1.
    pub left: u64,
    /// Those whose line follows the one before.
    pub follows: u64,
    /// Accesses before it.
    pub began: u64,
    /// Accesses.
    pub accesses: u64,
    /// Instructions.
    pub instructions: u64,
    /// Parts that do not follow each other.
    pub windows: u64,
    intervals: u32,
}

impl Segment {
    /// Nothing was noted since this many accesses.
    pub fn new(began: u64) -> Self {
        Self {
            granules: Granules::new(),
            origins: Origins::default(),
            distances: vec![(0.0, 0.0); TIMES],
            classes: [0.0; CLASSES.len() + 2],
            crossing: Vec::new(),
            left: 0,
            follows: 0,
            began,
            accesses: 0,
            instructions: 0,
            windows: 0,
            intervals: 0,
        }
    }

    /// Accesses between two beginnings.
    pub fn length(&self) -> f64 {
        self.accesses as f64 / self.windows.max(1) as f64
    }

    /// Notes a use beyond L1.
    #[inline]
    pub fn used(&mut self, line: u64, now: u64, used: &Use) {
        let Some(distance) = used.distance else {
            self.classes[CLASSES.len() + 1] += used.weight;
            self.granules.at(line * LINE_BYTES).first += used.weight;
            return;
        };
        let class = CLASSES.iter().filter(|&&end| distance >= end).count();
        self.classes[class] += used.weight;
        let use_of = Crossing {
            line,
            before: now - used.time,
            time: used.time,
            distance,
            weight: used.weight,
        };
        self.take(use_of);
    }

    #[inline]
    fn take(&mut self, of: Crossing) {
        if of.before < self.began {
            self.crossing.push(of);
            return;
        }
        let range = range_of(of.time);
        self.granules.at(of.line * LINE_BYTES).times[range] += of.weight as f32;
        if of.distance >= l1::LINES {
            let (weight, sum) = &mut self.distances[range];
            *weight += of.weight;
            *sum += of.weight * of.distance as f64;
        }
    }

    /// Adds what follows.
    fn merge(&mut self, next: &mut Segment) {
        self.granules.merge(&next.granules);
        self.origins.merge(&next.origins);
        for (mine, theirs) in self.distances.iter_mut().zip(&next.distances) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
        for (mine, theirs) in self.classes.iter_mut().zip(&next.classes) {
            *mine += theirs;
        }
        for one in next.crossing.drain(..) {
            self.take(one);
        }
        self.left += next.left;
        self.follows += next.follows;
        self.accesses += next.accesses;
        self.instructions += next.instructions;
        self.windows += next.windows;
        self.intervals += next.intervals;
    }

    /// How far what it does is from what another does, from 0 to 1.
    fn differs(&self, other: &Segment) -> f64 {
        let pace = |one: &Segment| match one.instructions {
            0 => one.accesses.max(1) as f64,
            some => some as f64,
        };
        let (mine, theirs) = (pace(self), pace(other));
        let known = |one: &Segment| one.classes.iter().sum::<f64>();
        let all = known(self) / mine + known(other) / theirs;
        if known(self).max(known(other)) < FEW || all <= 0.0 {
            return 0.0;
        }
        let apart = |a: f64, b: f64| (a / mine - b / theirs).abs();
        let last = CLASSES.len() + 1;
        let classes = (self.classes.iter().zip(&other.classes)).take(last);
        let distances = classes.map(|(&a, &b)| apart(a, b)).sum::<f64>()
            - (self.classes[last] / mine + other.classes[last] / theirs);
        let runs = |one: &Segment| one.follows as f64;
        let jumps = |one: &Segment| (one.left - one.follows) as f64;
        let left = self.left as f64 / mine + other.left as f64 / theirs;
        let orders = apart(runs(self), runs(other)) + apart(jumps(self), jumps(other));
        (distances / all).max(orders / left.max(1e-300))
    }

    /// Uses whose line was used last before the stretch are its first.
    fn settle(&mut self) {
        for one in std::mem::take(&mut self.crossing) {
            self.granules.at(one.line * LINE_BYTES).first += one.weight;
        }
    }

    /// Accesses since the last use of a line of which this many other lines were used since; `None` where no access has
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
                    return Some((time * lines as f64 / distance).max(1.0));
                }
                let part =
                    (lines as f64 / distance_before).ln() / (distance / distance_before).ln();
                return Some(time_before * (time / time_before).powf(part.clamp(0.0, 1.0)));
            }
            before = (time, distance);
        }
        None
    }
}

/// Stretches one after the other.
#[derive(Debug)]
pub(crate) struct Segments {
    all: Vec<Segment>,
    /// Whether the stream is parted.
    pub part: bool,
    windows: u64,
}

impl Segments {
    pub fn new() -> Self {
        Self {
            all: Vec::new(),
            part: true,
            windows: 1,
        }
    }

    /// A window begins.
    pub fn begin_window(&mut self, first: bool, now: u64) {
        self.windows += u64::from(!first);
        if let Some(last) = self.all.last_mut() {
            // Nothing is known of what was used before it.
            last.began = now;
        }
    }

    /// Adds an interval, which is empty then and begins now.
    pub fn add(&mut self, here: &mut Segment, now: u64) {
        here.intervals = 1;
        let mut part = std::mem::replace(here, Segment::new(now));
        if part.accesses == 0 {
            return;
        }
        let Some(mut last) = self.all.pop() else {
            self.all.push(part);
            return;
        };
        if !self.part || last.differs(&part) < CHANGE {
            last.merge(&mut part);
            self.all.push(last);
            return;
        }
        match self.all.last_mut() {
            // It had a change within.
            Some(before) if last.intervals == 1 => {
                if before.differs(&last) < last.differs(&part) {
                    before.merge(&mut last);
                } else {
                    last.merge(&mut part);
                    part = last;
                }
                if before.differs(&part) < CHANGE {
                    before.merge(&mut part);
                    return;
                }
            }
            _ => self.all.push(last),
        }
        self.all.push(part);
        if self.all.len() > MOST {
            let apart = |at: &usize| self.all[*at].differs(&self.all[at + 1]);
            let nearest = (0..self.all.len() - 1).min_by(|a, b| apart(a).total_cmp(&apart(b)));
            if let Some(at) = nearest {
                let mut next = self.all.remove(at + 1);
                self.all[at].merge(&mut next);
            }
        }
    }

    /// All, and all as one.
    pub fn settled(&self) -> (Vec<Segment>, Segment) {
        let mut parts = self.all.clone();
        let mut whole = Segment::new(0);
        whole.began = parts.first().map_or(0, |first| first.began);
        for part in &self.all {
            whole.merge(&mut part.clone());
        }
        whole.windows = self.windows;
        for part in parts.iter_mut().chain([&mut whole]) {
            part.settle();
        }
        (parts, whole)
    }
}
