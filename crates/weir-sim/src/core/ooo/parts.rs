//! The regions of a described program as one thread sees them, and which line of a region is next.

use weir_model::units::LINE_BYTES;
use weir_model::workload::{Order, Phase, Region, Within};

use super::che_approximation::{Flow, Law, Popularity, Ranking, characteristic_time};
use super::ranks::Ranks;
use super::tlb::{self, PageFlow};
use super::visit::Visit;
use crate::rng::{self, Permutation};

/// Lines of a page that an allocator hands out.
pub const PAGE: u64 = 4096 / LINE_BYTES;

/// Entries of a page table in one line.
pub const ENTRIES: u64 = 8;

/// The figures of a machine that decide which lines its caches hold.
#[derive(Debug, Clone, Copy)]
pub struct CacheCapacity {
    /// Lines of L2, and of the part of the last-level cache that the program may fill.
    pub l2: f64,
    /// See `l2`.
    pub llc: f64,
    /// Entries of the TLBs.
    pub tlb: f64,
    /// log2 of the lines of a page of the machine.
    pub page_bits: u32,
    /// The same of what an entry of the TLBs covers.
    pub tlb_bits: u32,
    /// The same of the memory for which a line of the hypervisor's tables has the entries, in a virtual machine.
    pub host_bits: Option<u32>,
}

/// A region as one thread sees it.
pub struct Part {
    /// Its first line.
    pub base: u64,
    pub lines: u64,
    pub order: Order,
    /// What all accesses to it have in common.
    pub visit: Visit,
    /// Whether other lines or stores may follow the first access to an element.
    pub may_go_on: bool,
    /// Instructions of an element's accesses to a line, on average.
    pub gap: f64,
    pub lines_per_element: u64,
    /// Lines from one line of an element to the next, where they do not ascend; else zero.
    pub shuffle: u64,
    /// Lines from one element to the next in a sequential order.
    pub step: u64,
    /// Elements before another part has its turn.
    pub batch: u32,
    /// Chances, each as the number of 32 random bits below which it comes true.
    pub stores: u64,
    pub modifies: u64,
    pub non_temporal: u64,
    pub dependent: u64,
    pub mispredicted: u64,
    /// Its elements.
    elements: u64,
    /// Which element is next, if some are more popular than others.
    ranks: Option<Ranks>,
    /// The order in which a cycle has them.
    cycle: Option<Permutation>,
    /// Spreads popular ranks over the region; 1 where they are its first elements.
    scatter: u64,
    /// The chain that holds its indices.
    pub indexed_by: Option<u16>,
    /// The position of each stream.
    pub cursors: Vec<Cursor>,
    pub turn: usize,
    /// Pages that the TLBs do not cover, as a chance.
    pub walks: u64,
    /// For the probability that the last-level cache has a line.
    flow: Flow,
    /// The same of one thread.
    own: Flow,
    pub cached: f64,
}

/// A stream: its next line, and the part of the region in which it cycles.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    next: u64,
    from: u64,
    to: u64,
}

/// A phase as one thread sees it.
pub struct PhaseParts {
    pub instructions: f64,
    pub cpi: f64,
    pub slice: f64,
    pub vector: f64,
    pub mispredicts: f64,
    pub parts: Vec<Part>,
    /// For each part, the chance that this part or an earlier one is next after a batch.
    upto: Vec<u64>,
    /// Where to look for a number of 32 bits among them, by its first six bits.
    guide: [u8; 64],
    /// Instructions of one random choice.
    pub instructions_per_pick: f64,
    /// Characteristic times of the last-level cache with the L2s, and of L2.
    pub times: (f64, f64),
    /// Whether the first of them was computed.
    known: bool,
    threads: u32,
    caches: CacheCapacity,
    /// Lines that the last-level cache holds, if lines that may be in an L2 as well do not decide.
    pub held: Option<f64>,
}

/// The widest range of the lines held, as a share of their most, whose middle is stated.
const HELD_WITHIN: f64 = 0.1;

/// Lines in the last-level cache: all that are in a cache, with or without those that are in an L2.
fn held(all: f64, in_l2: f64, caches: CacheCapacity) -> Option<f64> {
    let most = all.min(caches.llc);
    let least = (all - in_l2).clamp(0.0, most);
    (most - least <= HELD_WITHIN * most).then(|| f64::midpoint(least, most))
}

/// The number of 32 random bits below which a chance comes true: the smallest that is not below its share of
/// 2^32.
fn chance(p: f64) -> u64 {
    (p * 4_294_967_296.0).ceil() as u64
}

/// A share of 2^32.
pub fn share(p: f64) -> u32 {
    of_u32(p) as u32
}

/// The same before it is rounded down.
fn of_u32(p: f64) -> f64 {
    p * f64::from(u32::MAX)
}

impl Part {
    /// The next line, and the probability that the last-level cache has it. `chance` is any number.
    #[inline(always)]
    pub fn find_line(&mut self, visit: &mut Visit, chance: u64, times: (f64, f64)) {
        let offset = match (self.order, &self.ranks) {
            (Order::Sequential | Order::Fresh, _) => {
                let cursor = &mut self.cursors[self.turn];
                let offset = cursor.next;
                cursor.next += self.step;
                if cursor.next + self.lines_per_element > cursor.to {
                    cursor.next = cursor.from;
                }
                if self.order == Order::Fresh {
                    visit.faults = offset.is_multiple_of(PAGE);
                }
                offset
            }
            (Order::Cycle, _) => {
                let cursor = &mut self.cursors[self.turn];
                let element = cursor.next;
                cursor.next += 1;
                if cursor.next >= cursor.to {
                    cursor.next = cursor.from;
                }
                let order = self.cycle.as_ref();
                order.map_or(element, |order| order.at(element)) * self.lines_per_element
            }
            (_, Some(ranks)) => {
                let rank = ranks.rank(rng::mix(chance));
                visit.cached = match ranks.share(rank) {
                    Some(cached) => cached,
                    None => self.cached_of(ranks.popularity, rank as f64, times) as u32,
                };
                let scattered = match rank.checked_mul(self.scatter) {
                    Some(product) => product % self.elements,
                    None => {
                        let product = u128::from(rank) * u128::from(self.scatter);
                        (product % u128::from(self.elements)) as u64
                    }
                };
                scattered * self.lines_per_element
            }
            _ => {
                let bits = u128::from(rng::mix(chance));
                let element = (bits * u128::from(self.elements)) >> 64;
                element as u64 * self.lines_per_element
            }
        };
        visit.line = self.base + offset.min(self.lines - 1);
    }

    /// What one of so many threads accesses, by pages of this many lines.
    fn pages(&self, threads: f64, page: f64) -> PageFlow {
        let (element, step) = (self.lines_per_element as f64, self.step as f64);
        let visits = self.own.rate / element;
        let (elements, rate, per_page) = match self.order {
            // A run enters page after page of the thread's own part.
            Order::Sequential | Order::Fresh => (
                self.lines as f64 / threads / step.max(page),
                visits * (step / page).min(1.0),
                1.0,
            ),
            // Popular elements are neighbours.
            Order::Apex => (
                self.lines as f64 / page,
                visits * (element / page).max(1.0),
                1.0,
            ),
            // An element takes pages of its own.
            _ if element >= page => (self.own.lines / page, visits * element / page, 1.0),
            _ => (self.own.lines / element, visits, page / element),
        };
        PageFlow::new(elements, rate, self.own.law, per_page)
    }

    /// Its alpha, if its order is that of Apex-Map.
    pub fn apex(&self) -> Option<f64> {
        match self.flow.law {
            Law::Ranked(Ranking::Apex(alpha)) => Some(alpha),
            _ => None,
        }
    }

    /// Share of 2^32 of the accesses to the line of a rank that the last-level cache answers.
    #[inline(never)]
    fn cached_of(&self, popularity: Popularity, rank: f64, times: (f64, f64)) -> f64 {
        let popularity = popularity.of(rank);
        of_u32(conditional(
            self.flow.hits_of(popularity, times.0),
            self.own.hits_of(popularity, times.1),
        ))
    }

    /// Share of 2^32 of the page walks whose line of the page tables the last-level cache has and L2 has not.
    /// A line of theirs has the entries of `table_bits` (log2) lines. The tables are too small to change the characteristic
    /// times.
    fn cached_tables(&self, times: (f64, f64), table_bits: u32) -> u32 {
        if self.order.is_run() {
            // Such a line is used as long after its last use as the lines of its pages.
            return self.visit.cached;
        }
        let hits = |flow: &Flow, time| {
            let tables = Flow {
                lines: (flow.lines / (1_u64 << table_bits) as f64).max(1.0),
                rate: flow.rate * self.walks as f64 / 4_294_967_296.0,
                law: flow.law,
            };
            tables.hits(time)
        };
        share(conditional(
            hits(&self.flow, times.0),
            hits(&self.own, times.1),
        ))
    }

    /// Computes what its accesses find in caches of these characteristic times.
    fn set_times(&mut self, times: (f64, f64)) {
        self.cached = conditional(self.flow.hits(times.0), self.own.hits(times.1));
        self.visit.cached = share(self.cached);
        if let Some(mut ranks) = self.ranks.take() {
            let popularity = ranks.popularity;
            let in_l2 = |rank| self.own.hits_of(popularity.of(rank), times.1);
            ranks.set_shares(
                |rank| self.cached_of(popularity, rank, times),
                |rank| in_l2(rank) < SMOOTH,
            );
            self.ranks = Some(ranks);
        }
    }
}

/// A share of hits in L2 below which the share of other hits is computed without loss.
const SMOOTH: f64 = 0.99;

/// Of the lines that are not in the smaller of two caches, the share that is in the larger.
fn conditional(both: f64, l2: f64) -> f64 {
    if l2 > 0.999 {
        return both;
    }
    ((both - l2) / (1.0 - l2).max(1e-9)).clamp(0.0, 1.0)
}

/// A phase as thread `number` of `threads` sees it; its chains have the numbers from `chains` on, and `seed`
/// selects where its streams start in their parts of a region.
pub fn phase_parts(
    phase: &Phase,
    base: impl Fn(&Region) -> u64,
    (number, threads): (u32, u32),
    chains: &mut u16,
    caches: CacheCapacity,
    seed: u64,
) -> PhaseParts {
    let gap = 1000.0 / phase.apki;
    let total: f64 = phase.regions.iter().map(|r| r.share).sum();
    // Probabilities per element, since shares are of accesses.
    let weight = |r: &Region| r.share / total / accesses_of_pick(r);
    let picks: f64 = phase.regions.iter().map(weight).sum();
    let turns = |r: &Region| weight(r) / f64::from(r.batch.max(1));
    let all_turns: f64 = phase.regions.iter().map(turns).sum();
    let mut upto = 0.0;
    let first_chain = *chains;
    let chain_of = |name: &str| {
        let mut chain = first_chain;
        for region in &phase.regions {
            if region.name == name {
                return Some(chain);
            }
            chain += region.streams as u16;
        }
        None
    };
    let mut ups = Vec::new();
    let mut parts = Vec::new();
    for region in &phase.regions {
        upto += turns(region) / all_turns;
        ups.push(chance(upto));
        let indexed_by = region.indexed_by.as_deref().and_then(chain_of);
        let mut part = part(
            region,
            base(region),
            (number, threads),
            *chains,
            indexed_by,
            seed,
        );
        *chains += region.streams as u16;
        let touched = weight(region) / picks * part.lines_per_element as f64;
        part.gap = gap * f64::from(part.visit.accesses);
        part.flow.rate = touched * f64::from(threads);
        part.own.rate = touched;
        parts.push(part);
    }
    let page = f64::from(1 << caches.tlb_bits);
    let of = |part: &Part| part.pages(f64::from(threads), page);
    let pages: Vec<PageFlow> = parts.iter().map(of).collect();
    let in_tlbs = tlb::characteristic_time(&pages, caches.tlb);
    for (part, pages) in parts.iter_mut().zip(&pages) {
        part.walks = chance((1.0 - pages.hits(in_tlbs)).max(0.0));
    }
    // The last is next if no other is.
    if let Some(last) = ups.last_mut() {
        *last = u64::MAX;
    }
    let own: Vec<Flow> = parts.iter().map(|p| p.own).collect();
    let mut parts = PhaseParts {
        held: None,
        instructions: phase.instructions as f64,
        cpi: phase.cpi,
        slice: phase.slice,
        vector: phase.vector,
        mispredicts: phase.mispredicts / 1000.0 * phase.slice,
        instructions_per_pick: gap / picks,
        parts,
        guide: std::array::from_fn(|n| {
            let passed = ups.iter().take_while(|&&upto| upto <= (n as u64) << 26);
            passed.count().min(usize::from(u8::MAX)) as u8
        }),
        upto: ups,
        times: (0.0, characteristic_time(&own, caches.l2)),
        known: false,
        threads,
        caches,
    };
    parts.share(&[], 0.0);
    parts
}

impl PhaseParts {
    /// The part that 32 random bits choose.
    #[inline(always)]
    pub fn choose(&self, choice: u64) -> usize {
        let mut part = usize::from(self.guide[(choice >> 26) as usize % 64]);
        while self.upto.get(part).is_some_and(|&upto| choice >= upto) {
            part += 1;
        }
        part
    }

    /// What its threads access, lines in the time of a choice of one thread.
    pub fn flows(&self) -> impl Iterator<Item = Flow> {
        self.parts.iter().map(|part| part.flow)
    }

    /// Its program may fill this many lines of the last-level cache.
    pub fn set_llc(&mut self, lines: f64) {
        self.caches.llc = lines;
        self.share(&[], 0.0);
    }

    /// Computes what its accesses find in a last-level cache in which these other flows are, whose cores have this many lines
    /// in their L2s.
    pub fn share(&mut self, others: &[Flow], in_other_l2: f64) {
        let own: Vec<Flow> = self.parts.iter().map(|part| part.own).collect();
        let all: Vec<Flow> = self.flows().chain(others.iter().copied()).collect();
        let caches = self.caches;
        let threads = f64::from(self.threads);
        let capacity = caches.llc + caches.l2 * threads + in_other_l2;
        let time = characteristic_time(&all, capacity);
        let near = |a: f64, b: f64| a.is_finite() && (a - b).abs() <= SAME * a;
        if self.known && (time == self.times.0 || near(time, self.times.0)) {
            return;
        }
        self.known = true;
        self.times.0 = time;
        let times = self.times;
        for part in &mut self.parts {
            part.set_times(times);
            part.visit.table_cached = part.cached_tables(times, caches.page_bits + ENTRIES.ilog2());
            if let Some(bits) = caches.host_bits {
                part.visit.host_cached = part.cached_tables(times, bits);
            }
        }
        let occupied = |flows: &[Flow], time| flows.iter().map(|f| f.occupies(time)).sum::<f64>();
        let flows: Vec<Flow> = self.flows().collect();
        self.held = held(
            occupied(&flows, time),
            threads * occupied(&own, times.1),
            caches,
        );
    }
}

/// A change of the characteristic time that changes no hit worth the work.
const SAME: f64 = 0.01;

/// Accesses of one random choice: the lines of a run, or one element.
fn accesses_of_pick(region: &Region) -> f64 {
    let lines = region.lines_per_element();
    if region.order.is_run() && region.stride == region.element {
        region.accesses_per_line() as f64
    } else {
        (lines * region.accesses_per_line()) as f64
    }
}

fn part(
    region: &Region,
    base: u64,
    (number, threads): (u32, u32),
    chain: u16,
    indexed_by: Option<u16>,
    seed: u64,
) -> Part {
    let lines = region.lines();
    let run = region.order.is_run();
    let dense = region.stride == region.element;
    let lines_per_element = if run && dense {
        1
    } else {
        region.lines_per_element().min(lines)
    };
    let step = if run && !dense {
        (region.stride.get() / LINE_BYTES).max(1)
    } else {
        1
    };
    let elements = (lines / lines_per_element).max(1);
    let streams = u64::from(region.streams);
    let all = u64::from(threads) * streams;
    let first = |stream: u64| {
        let turn = u64::from(number) * streams + stream;
        let offset = (u128::from(lines) * u128::from(turn) / u128::from(all)) as u64;
        offset / PAGE * PAGE
    };
    let cursor = |stream: u64| {
        let from = first(stream);
        let to = first(stream + 1).max(from + PAGE).min(lines);
        // Threads have no fixed distance from each other. If they started together, and their parts were
        // whole rounds of interleaved pages, all would always be on the same tier.
        let pages = (to.saturating_sub(from) / PAGE).max(1);
        let turn = u64::from(number) * streams + stream;
        let skipped = rng::mix(rng::mix(seed ^ base) ^ turn) % pages;
        Cursor {
            next: from + skipped * PAGE,
            from,
            to,
        }
    };
    // A cycle has elements in place of lines.
    let cycle = region.order == Order::Cycle;
    let of_cycle = |stream: u64| {
        let turn = u64::from(number) * streams + stream;
        let at = |turn: u64| (u128::from(elements) * u128::from(turn) / u128::from(all)) as u64;
        let (from, to) = (at(turn), at(turn + 1).max(at(turn) + 1));
        let skipped = rng::mix(rng::mix(seed ^ base) ^ turn) % (to - from);
        Cursor {
            next: from + skipped,
            from,
            to,
        }
    };
    let law = match region.order {
        Order::Sequential | Order::Cycle => Law::Cyclic,
        Order::Random | Order::Chase => Law::Uniform,
        Order::Zipf => Law::Ranked(Ranking::Zipf(region.skew)),
        Order::Apex => Law::Ranked(Ranking::Apex(region.skew)),
        Order::Fresh => Law::Once,
    };
    // A run with a stride accesses only some of the lines.
    let touched = (lines / step * lines_per_element.min(step)).max(1) as f64;
    Part {
        base,
        lines,
        order: region.order,
        visit: Visit {
            end: base + lines,
            accesses: region.accesses_per_line() as u32,
            chain,
            stride: if run { step } else { 0 },
            ..Visit::default()
        },
        may_go_on: region.modifies > 0.0
            || region.order == Order::Fresh
            || lines_per_element > 1 && (!run || step != lines_per_element),
        gap: 0.0,
        lines_per_element,
        shuffle: match region.within {
            // Of one or two lines there is no other order.
            Within::Random if lines_per_element > 2 => coprime(lines_per_element),
            _ => 0,
        },
        step,
        batch: region.batch.max(1),
        stores: chance(region.stores),
        modifies: chance(region.modifies),
        non_temporal: chance(region.non_temporal),
        dependent: chance(region.dependent),
        mispredicted: chance(region.mispredicted),
        elements,
        cycle: cycle.then(|| Permutation::new(elements, rng::mix(base))),
        ranks: match law {
            Law::Ranked(ranking) => Some(Ranks::new(elements, ranking)),
            _ => None,
        },
        scatter: match region.order {
            Order::Apex => 1,
            _ => coprime(elements),
        },
        indexed_by,
        cursors: match cycle {
            true => (0..streams).map(of_cycle).collect(),
            false => (0..streams).map(cursor).collect(),
        },
        turn: 0,
        walks: 0,
        flow: Flow {
            lines: touched,
            rate: 0.0,
            law,
        },
        own: Flow {
            // A thread accesses its own part of a run or a cycle.
            lines: if run || cycle {
                touched / f64::from(threads)
            } else {
                touched
            },
            rate: 0.0,
            law,
        },
        cached: 0.0,
    }
}

/// A number that has no common factor with `n`, close to its golden section.
fn coprime(n: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut k = (n as f64 * 0.618_033_988_75) as u64 | 1;
    while gcd(k, n) != 1 {
        k += 2;
    }
    k
}
