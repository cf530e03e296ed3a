//! Everything that is noted of a stream of accesses.

use std::collections::VecDeque;

use weir_model::units::LINE_BYTES;

use crate::access::{Access, Sink};
use crate::l1::{L1, Left, Noted};
use crate::profile::Profile;
use crate::reuse::Reuse;
use crate::runs::Runs;
use crate::segments::{Segment, Segments};

/// Lines whose last use is known; of larger footprints a sample of lines is.
pub const LINES: usize = 1 << 16;
/// Lines of an access that are looked at: those of a page.
const LONGEST: u64 = 64;
/// Accesses after which it is asked whether the program still does the same.
pub const INTERVAL: u64 = 1 << 21;
/// Threads that are distinguished; more share their caches.
const THREADS: usize = 256;
/// A thread with fewer accesses than this share of the busiest is none of its own.
const IDLE: f64 = 0.1;
/// Lines of the largest cache whose misses a description should have (32 MiB).
const LARGEST: f64 = (1 << 19) as f64;
/// First uses, as a share of what leaves L1, below which all that is used was seen.
const STEADY: f64 = 0.01;
/// Uses beyond L1 after which that can be said.
const ENOUGH: f64 = 16_384.0;

/// Lines of a cache beyond which a line is far.
const FAR: u64 = 1 << 14;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Instructions that a core has under way (Golden Cove: a reorder buffer of 512).
pub const REACH: u64 = 512;
/// The same in accesses, where instructions are not counted.
pub const REACH_OF_ACCESSES: u64 = 150;

/// A thread, with a cache of its own.
#[derive(Debug)]
struct Thread {
    id: u64,
    l1: L1,
    accesses: u64,
    since: u64,
    instructions: u64,
    /// When it last jumped to far lines, to which page, and how many others each stands for.
    jumps: VecDeque<(u64, u64, f64)>,
}

impl Thread {
    /// Notes a jump to a far line; those that came before it within the reach of a core, and those of them in its page.
    fn jump(&mut self, now: u64, line: u64, weight: f64, loaded: bool) -> (f64, f64) {
        let (at, reach) = match self.instructions {
            0 => (now, REACH_OF_ACCESSES),
            counted => (counted, REACH),
        };
        while self
            .jumps
            .front()
            .is_some_and(|(then, ..)| then + reach < at)
        {
            self.jumps.pop_front();
        }
        // What waits for an address overlaps with nothing before it.
        if loaded {
            return (0.0, 0.0);
        }
        let page = line * LINE_BYTES / PAGE;
        let (mut before, mut near) = (0.0, 0.0);
        for &(_, other, weight) in &self.jumps {
            before += weight;
            near += if other == page { weight } else { 0.0 };
        }
        self.jumps.push_back((at, page, weight));
        (before, near)
    }

    fn new(id: u64) -> Self {
        Self {
            id,
            l1: L1::new(),
            accesses: 0,
            since: 0,
            instructions: 0,
            jumps: VecDeque::new(),
        }
    }
}

/// Takes accesses and notes what a description needs, in constant memory.
#[derive(Debug)]
pub struct Watch {
    threads: Vec<Thread>,
    thread: usize,
    runs: Runs,
    reuse: Reuse,
    /// What was noted since the last account, and before.
    here: Segment,
    segments: Segments,
    /// With cold caches, and with warm ones.
    profiles: [Profile; 2],
    now: u64,
    next: u64,
    /// Lines of the current window, and first uses among the latest ones, and among as many before.
    lines_of_window: f64,
    latest: (f64, f64),
    before: Option<f64>,
    warm: bool,
    instructions: [u64; 2],
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
            threads: vec![Thread::new(0)],
            thread: 0,
            runs: Runs::new(),
            reuse: Reuse::new(LINES),
            here: Segment::new(0),
            segments: Segments::new(),
            profiles: [Profile::default(), Profile::default()],
            now: 0,
            next: INTERVAL,
            lines_of_window: 0.0,
            latest: (0.0, 0.0),
            before: None,
            warm: true,
            instructions: [0, 0],
        }
    }

    /// The same, for a stream that is not to be parted.
    pub fn whole() -> Self {
        let mut watch = Self::new();
        watch.segments.part = false;
        watch
    }

    /// Begins a part of the trace that does not follow what was seen before. Until [`Watch::warmed`] its uses are noted, but
    /// are not among those of the profile: caches are cold.
    pub fn begin_window(&mut self, first: bool) {
        self.account();
        let left = self.threads.iter_mut().flat_map(|thread| thread.l1.empty());
        for left in left.collect::<Vec<_>>() {
            self.noted(left.line, &left.noted);
            self.stayed(&left);
        }
        self.segments.part = false;
        self.segments.add(&mut self.here, self.now);
        self.reuse.forget();
        self.segments.begin_window(first, self.now);
        self.here.began = self.now;
        self.lines_of_window = 0.0;
        (self.latest, self.before) = ((0.0, 0.0), None);
        self.warm = false;
    }

    /// Whether the largest cache that matters is full, or all that is used was seen: what is not known is a miss.
    pub fn is_steady(&self) -> bool {
        self.lines_of_window >= LARGEST || self.before.is_some_and(|first| first < STEADY)
    }

    /// Caches are warm from here on.
    pub fn warmed(&mut self) {
        self.warm = true;
    }

    /// What was seen with cold caches counts, too: there is nothing else.
    pub fn count_cold(&mut self) {
        let cold = std::mem::take(&mut self.profiles[0]);
        self.profiles[1].merge(&cold);
        self.instructions[1] += std::mem::take(&mut self.instructions[0]);
    }

    /// Accesses of the profile, and their instructions.
    pub fn profiled(&self) -> (u64, u64) {
        (self.profiles[1].accesses, self.instructions[1])
    }

    /// Accesses to lines.
    pub fn accesses(&self) -> u64 {
        self.now
    }

    /// Instructions.
    pub fn instructions(&self) -> u64 {
        self.instructions[0] + self.instructions[1]
    }

    /// Threads that were seen at work.
    pub fn threads(&self) -> u32 {
        let most = self.threads.iter().map(|one| one.accesses).max();
        let least = most.unwrap_or(0) as f64 * IDLE;
        let busy = |one: &&Thread| one.accesses > 0 && one.accesses as f64 >= least;
        (self.threads.iter().filter(busy).count() as u32).max(1)
    }

    /// Reuse distances of all accesses with warm caches.
    pub fn profile(&self) -> &Profile {
        &self.profiles[1]
    }

    /// How many lines each line stands for whose uses are known.
    pub fn weight(&self) -> f64 {
        self.reuse.weight()
    }

    /// Stretches in each of which the program does the same, and all of them as one.
    pub fn segments(&self) -> (Vec<Segment>, Segment) {
        self.segments.settled()
    }

    /// What is still in L1 was written, too.
    pub fn end(&mut self) {
        self.account();
        let left = self.threads.iter_mut().flat_map(|thread| thread.l1.empty());
        for left in left.collect::<Vec<_>>() {
            self.stayed(&left);
        }
        self.segments.add(&mut self.here, self.now);
    }

    /// Takes what was noted with the lines in L1.
    fn account(&mut self) {
        let granules = &mut self.here.granules;
        for thread in &mut self.threads {
            thread.l1.account(|line, noted| {
                granules.at(line * LINE_BYTES).note(noted);
            });
        }
        let index = usize::from(self.warm);
        let thread = &mut self.threads[self.thread];
        thread.accesses += self.now - thread.since;
        thread.since = self.now;
        self.here.accesses = self.now - self.here.began;
        // Accesses of the profile are those since the last account.
        let counted = self.profiles[0].accesses + self.profiles[1].accesses;
        self.profiles[index].accesses += self.now - counted;
    }

    #[inline]
    fn noted(&mut self, line: u64, noted: &Noted) {
        self.here.granules.at(line * LINE_BYTES).note(noted);
    }

    #[inline]
    fn stayed(&mut self, left: &Left) {
        if left.stay.written {
            let granule = self.here.granules.at(left.line * LINE_BYTES);
            granule.written += 1;
            granule.modified += u64::from(left.stay.loaded);
        }
    }

    /// An interval is over.
    #[cold]
    fn look(&mut self) {
        self.account();
        self.segments.add(&mut self.here, self.now);
        self.next = self.now + INTERVAL;
    }

    #[inline(always)]
    fn line(&mut self, line: u64, access: &Access) -> bool {
        self.now += 1;
        let l1 = &mut self.threads[self.thread].l1;
        match l1.hit(line, self.now, access.bytes.min(64), access.store) {
            true => false,
            false => {
                self.miss(line, access);
                true
            }
        }
    }

    #[inline(never)]
    fn miss(&mut self, line: u64, access: &Access) {
        let now = self.now;
        let mut front = 0;
        for thread in &self.threads {
            front += thread.l1.held;
        }
        let l1 = &mut self.threads[self.thread].l1;
        let left = l1.fill(line, now, access.bytes.min(64), access.store);
        let used = self.reuse.enter(line, now, front);
        if let Some(left) = left {
            self.reuse.leave(left.line, left.noted.time);
            self.noted(left.line, &left.noted);
            self.stayed(&left);
        }
        if let Some(used) = used {
            self.profiles[usize::from(self.warm)].add(&used);
            let first = match used.distance {
                None => used.weight,
                Some(_) => 0.0,
            };
            self.lines_of_window += first;
            self.latest = (self.latest.0 + first, self.latest.1 + used.weight);
            if self.latest.1 >= ENOUGH {
                self.before = Some(self.latest.0 / self.latest.1);
                self.latest = (0.0, 0.0);
            }
            self.here.used(line, now, &used);
        }
        self.profiles[usize::from(self.warm)].left += 1;
        let address = line * LINE_BYTES;
        let step = self.runs.step(line);
        if let Some(from) = access.from {
            self.here.origins.note(address, from);
        }
        let granule = self.here.granules.at(address);
        if let Some(used) = used
            && step == 0
            && used.distance.is_none_or(|distance| distance >= FAR)
        {
            let thread = &mut self.threads[self.thread];
            let (before, near) = thread.jump(now, line, used.weight, access.from.is_some());
            granule.far += used.weight;
            granule.before += before * used.weight;
            granule.near += near * used.weight;
        }
        granule.visits += 1;
        let loaded = u64::from(access.from.is_some());
        granule.loaded += loaded;
        granule.found += if step == 0 { loaded } else { 0 };
        if step > 0 {
            granule.follows += 1;
            granule.steps += step;
            self.here.follows += 1;
        }
        self.here.left += 1;
        if now >= self.next {
            self.look();
        }
    }
}

impl Sink for Watch {
    #[inline]
    fn instructions(&mut self, count: u64) {
        self.instructions[usize::from(self.warm)] += count;
        self.here.instructions += count;
        self.threads[self.thread].instructions += count;
    }

    fn thread(&mut self, id: u64) {
        if self.threads[self.thread].id == id && self.now > 0 {
            return;
        }
        let now = self.now;
        let before = &mut self.threads[self.thread];
        before.accesses += now - before.since;
        let known = self.threads.iter().position(|one| one.id == id);
        self.thread = known.unwrap_or_else(|| match self.threads.len() {
            // Nothing was seen of the one that there is without a word of threads.
            1 if now == 0 => {
                self.threads[0].id = id;
                0
            }
            THREADS => (id % THREADS as u64) as usize,
            more => {
                self.threads.push(Thread::new(id));
                more
            }
        });
        self.threads[self.thread].since = now;
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
