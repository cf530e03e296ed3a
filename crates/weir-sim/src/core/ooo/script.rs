//! What a thread of a described program touches next.
//!
//! Lines are numbered through all of the program's regions (*virtual* lines); where one lies is
//! asked only when it leaves the core.

use weir_model::units::{Bytes, LINE_BYTES};
use weir_model::workload::{Order, Phase, Region, Workload};

use super::super::walk::{Place, Walk};
use super::residence::{Flow, Law, characteristic_time, popularity};
use crate::rng;

/// Lines of a page that an allocator hands out.
const PAGE: u64 = 4096 / LINE_BYTES;

/// A touch of one line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Visit {
    /// The line.
    pub line: u64,
    /// The line after the last of its region.
    pub end: u64,
    /// Accesses to it in a row.
    pub accesses: u32,
    /// Instructions from here to the next visit.
    pub gap: f64,
    /// Core cycles of an instruction.
    pub cpi: f64,
    /// Whether it is stored to, and if so past the caches.
    pub store: bool,
    /// See `store`.
    pub non_temporal: bool,
    /// The chain whose latest load has its address.
    pub after: Option<u16>,
    /// The chain that it belongs to.
    pub chain: u16,
    /// Whether a branch that waits for it is predicted wrong.
    pub mispredicted: bool,
    /// Lines from one access of its instruction to the next, where they are even; else zero.
    pub stride: u64,
    /// Whether its translation is not in the TLBs.
    pub walks: bool,
    /// Whether it is the first touch of its page.
    pub faults: bool,
    /// Share of such lines that the last-level cache has if L2 has not, of 2^32.
    pub cached: u32,
}

/// A region as one thread sees it.
struct Part {
    /// Its first line.
    base: u64,
    lines: u64,
    order: Order,
    accesses: u32,
    lines_per_element: u64,
    /// Lines from one element to the next in a sequential order.
    step: u64,
    stores: f64,
    non_temporal: f64,
    dependent: f64,
    mispredicted: f64,
    skew: f64,
    /// Scatters popular ranks.
    scatter: u64,
    /// Its first chain.
    chain: u16,
    /// The chain that indexes it.
    indexed_by: Option<u16>,
    /// Where each stream is.
    cursors: Vec<u64>,
    turn: usize,
    /// Share of pages that the TLBs do not reach.
    walks: f64,
    /// For the chance that the last-level cache has a line.
    flow: Flow,
    own: Flow,
    cached: f64,
}

/// A phase as one thread sees it.
struct Stretch {
    instructions: f64,
    cpi: f64,
    gap: f64,
    parts: Vec<Part>,
    /// Of each part, the chance that it or one before it is next.
    upto: Vec<f64>,
    /// Characteristic times of the last-level cache with the L2s, and of L2.
    times: (f64, f64),
}

/// What is left of an element.
#[derive(Debug, Clone, Copy)]
struct Rest {
    lines: u64,
    next: Visit,
}

/// The touches of a thread, without end.
pub struct Script {
    stretches: Vec<Stretch>,
    now: usize,
    /// Instructions of the stretch that are left.
    left: f64,
    rest: Option<Rest>,
    chance: u64,
    /// Where the memory of each region is: its first virtual line, and how to find a place.
    memory: Vec<(u64, Walk)>,
    chains: u16,
}

/// What of a machine decides which lines its caches hold.
#[derive(Debug, Clone, Copy)]
pub struct Shelter {
    /// Lines of L2, and of the part of the last-level cache that the program may fill.
    pub l2: f64,
    /// See `l2`.
    pub llc: f64,
    /// Bytes that the TLBs reach.
    pub tlb: Bytes,
}

impl Script {
    /// Thread `number` of a workload whose regions lie as `memory` says, in the order of
    /// [`Workload::memory`].
    pub fn new(
        work: &Workload,
        number: u32,
        memory: Vec<(u64, Walk)>,
        caches: Shelter,
        seed: u64,
    ) -> Self {
        let names: Vec<&str> = work.memory().into_iter().map(|(name, _)| name).collect();
        let mut chains = 0;
        let stretches: Vec<Stretch> = (work.phases.iter())
            .map(|phase| {
                let base = |region: &Region| {
                    let at = names.iter().position(|name| *name == region.name);
                    at.and_then(|i| memory.get(i)).map_or(1 << 20, |m| m.0)
                };
                stretch(phase, base, (number, work.threads), &mut chains, caches)
            })
            .collect();
        let left = stretches.first().map_or(0.0, |s| s.instructions);
        Self {
            stretches,
            now: 0,
            left,
            rest: None,
            chance: rng::mix(seed ^ (u64::from(number) << 32)),
            memory,
            chains,
        }
    }

    /// How many chains there are.
    pub fn chains(&self) -> u16 {
        self.chains
    }

    /// Where a line lies.
    pub fn place(&self, line: u64) -> Place {
        let (base, walk) = self.region(line);
        walk.place_of_offset((line - base).min(walk.lines() - 1))
    }

    fn region(&self, line: u64) -> &(u64, Walk) {
        let after = self.memory.partition_point(|(base, _)| *base <= line);
        &self.memory[after.saturating_sub(1)]
    }

    /// Whether memory has to be written when L2 gives a modified line up: the last-level cache keeps
    /// it if it is touched again in time.
    pub fn keeps(&mut self, line: u64) -> bool {
        let draw = self.draw();
        let stretch = &self.stretches[self.now];
        let of = |part: &&Part| (part.base..part.base + part.lines).contains(&line);
        let part = stretch.parts.iter().find(of);
        part.is_some_and(|part| draw < part.cached)
    }

    /// Chance in 0..1.
    #[inline]
    pub fn draw(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    #[inline]
    fn bits(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        rng::mix(self.chance)
    }

    /// The next touch.
    pub fn next(&mut self) -> Visit {
        if let Some(rest) = &mut self.rest {
            let visit = rest.next;
            rest.lines -= 1;
            rest.next.line += 1;
            if rest.lines == 0 {
                self.rest = None;
            }
            self.left -= visit.gap;
            return visit;
        }
        if self.left <= 0.0 {
            self.now = (self.now + 1) % self.stretches.len();
            self.left += self.stretches[self.now].instructions;
        }
        let draws = [self.bits(), self.bits(), self.bits()];
        let visit = self.start(draws);
        self.left -= visit.gap;
        visit
    }

    /// The first line of the next element.
    fn start(&mut self, [which, what, how]: [u64; 3]) -> Visit {
        let stretch = &mut self.stretches[self.now];
        let unit = |bits: u64, shift: u32| f64::from((bits >> shift) as u32) / 4_294_967_296.0;
        let choice = unit(which, 32);
        let p = (stretch.upto.iter())
            .position(|&upto| choice < upto)
            .unwrap_or(stretch.parts.len() - 1);
        let part = &mut stretch.parts[p];
        // Uneven, so that nothing locks step with anything.
        let gap = stretch.gap * f64::from(part.accesses) * (0.5 + unit(which, 0));
        let store = unit(what, 0) < part.stores;
        let mut visit = Visit {
            end: part.base + part.lines,
            accesses: part.accesses,
            gap,
            cpi: stretch.cpi,
            store,
            non_temporal: store && unit(how, 0) < part.non_temporal,
            mispredicted: !store && unit(how, 32) < part.mispredicted,
            chain: part.chain + part.turn as u16,
            cached: share(part.cached),
            ..Visit::default()
        };
        let dependent = unit(what, 32) < part.dependent;
        visit.after = match part.indexed_by {
            Some(chain) => Some(chain),
            None => dependent.then_some(visit.chain),
        };
        part.find_line(&mut visit, rng::mix(what ^ how), stretch.times);
        visit.walks = !part.order.is_run() && unit(rng::mix(how), 0) < part.walks;
        let streams = part.cursors.len();
        part.turn = (part.turn + 1) % streams;
        let (lines, order, step) = (part.lines_per_element, part.order, part.step);
        if visit.faults {
            return self.clear_page(visit);
        }
        if lines > 1 && (!order.is_run() || step != lines) {
            self.rest = Some(Rest {
                lines: (lines - 1).min(visit.end - visit.line - 1),
                next: Visit {
                    line: visit.line + 1,
                    // Near its first line: no new address, no new translation.
                    after: None,
                    mispredicted: false,
                    walks: false,
                    stride: 1,
                    ..visit
                },
            })
            .filter(|rest| rest.lines > 0);
        }
        visit
    }

    /// The kernel clears a page before its first touch: a store to each of its lines, in place of that
    /// touch.
    fn clear_page(&mut self, first: Visit) -> Visit {
        let clearing = Visit {
            accesses: 1,
            gap: 1.0,
            store: true,
            non_temporal: false,
            mispredicted: false,
            after: None,
            stride: 0,
            ..first
        };
        self.rest = Some(Rest {
            lines: PAGE - 1,
            next: Visit {
                line: first.line + 1,
                faults: false,
                ..clearing
            },
        });
        clearing
    }
}

/// A share of 2^32.
fn share(p: f64) -> u32 {
    (p * f64::from(u32::MAX)) as u32
}

impl Part {
    /// Which line is next, and how likely the last-level cache has it.
    fn find_line(&mut self, visit: &mut Visit, bits: u64, times: (f64, f64)) {
        let elements = (self.lines / self.lines_per_element).max(1);
        let below = |n: u64| ((u128::from(bits) * u128::from(n)) >> 64) as u64;
        let offset = match self.order {
            Order::Sequential | Order::Fresh => {
                let cursor = &mut self.cursors[self.turn];
                let offset = *cursor;
                *cursor += self.step;
                if *cursor + self.lines_per_element > self.lines {
                    *cursor = 0;
                }
                visit.stride = self.step;
                visit.faults = self.order == Order::Fresh && offset.is_multiple_of(PAGE);
                offset
            }
            Order::Random | Order::Chase => below(elements) * self.lines_per_element,
            Order::Zipf => {
                let rank = self.rank(bits, elements);
                let popularity = popularity(rank as f64, elements as f64, self.skew);
                visit.cached = share(conditional(
                    self.flow.hits_of(popularity, times.0),
                    self.own.hits_of(popularity, times.1),
                ));
                let scattered =
                    (u128::from(rank) * u128::from(self.scatter)) % u128::from(elements);
                scattered as u64 * self.lines_per_element
            }
        };
        visit.line = self.base + offset.min(self.lines - 1);
    }

    /// A rank by Zipf's law: the inverse of its integral.
    fn rank(&self, bits: u64, elements: u64) -> u64 {
        let u = (bits >> 11) as f64 / (1u64 << 53) as f64;
        let (low, high) = (0.5, elements as f64 + 0.5);
        let rank = if (self.skew - 1.0).abs() < 1e-6 {
            low * f64::powf(high / low, u)
        } else {
            let e = 1.0 - self.skew;
            let (a, b) = (f64::powf(low, e), f64::powf(high, e));
            (a + u * (b - a)).powf(1.0 / e)
        };
        ((rank - 0.5) as u64).min(elements - 1)
    }
}

/// The share of lines in the larger of two caches among those that are not in the smaller.
fn conditional(both: f64, l2: f64) -> f64 {
    if l2 > 0.999 {
        return both;
    }
    ((both - l2) / (1.0 - l2).max(1e-9)).clamp(0.0, 1.0)
}

fn stretch(
    phase: &Phase,
    base: impl Fn(&Region) -> u64,
    (number, threads): (u32, u32),
    chains: &mut u16,
    caches: Shelter,
) -> Stretch {
    let gap = 1000.0 / phase.apki;
    let total: f64 = phase.regions.iter().map(|r| r.share).sum();
    // Chances by element, since shares are of accesses.
    let weight = |r: &Region| r.share / total / accesses_of_pick(r);
    let picks: f64 = phase.regions.iter().map(weight).sum();
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
        upto += weight(region) / picks;
        ups.push(upto);
        let indexed_by = region.indexed_by.as_deref().and_then(chain_of);
        let mut part = part(region, base(region), (number, threads), *chains, indexed_by);
        *chains += region.streams as u16;
        let touched = weight(region) / picks * part.lines_per_element as f64;
        part.flow.rate = touched * f64::from(threads);
        part.own.rate = touched;
        let reach = caches.tlb.get() as f64 / region.bytes.get() as f64;
        part.walks = (1.0 - reach).max(0.0);
        parts.push(part);
    }
    let flows: Vec<Flow> = parts.iter().map(|p| p.flow).collect();
    let own: Vec<Flow> = parts.iter().map(|p| p.own).collect();
    let all = caches.llc + caches.l2 * f64::from(threads);
    let times = (
        characteristic_time(&flows, all),
        characteristic_time(&own, caches.l2),
    );
    for part in &mut parts {
        part.cached = conditional(part.flow.hits(times.0), part.own.hits(times.1));
    }
    Stretch {
        instructions: phase.instructions as f64,
        cpi: phase.cpi,
        gap,
        parts,
        upto: ups,
        times,
    }
}

/// Accesses of what is drawn at once: a line of a run, or an element.
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
    let law = match region.order {
        Order::Sequential => Law::Cyclic,
        Order::Random | Order::Chase => Law::Uniform,
        Order::Zipf => Law::Zipf(region.skew),
        Order::Fresh => Law::Once,
    };
    // A run with a stride touches only some of the lines.
    let touched = (lines / step * lines_per_element.min(step)).max(1) as f64;
    Part {
        base,
        lines,
        order: region.order,
        accesses: region.accesses_per_line() as u32,
        lines_per_element,
        step,
        stores: region.stores,
        non_temporal: region.non_temporal,
        dependent: region.dependent,
        mispredicted: region.mispredicted,
        skew: region.skew,
        scatter: coprime(elements),
        chain,
        indexed_by,
        cursors: (0..streams).map(first).collect(),
        turn: 0,
        walks: 0.0,
        flow: Flow {
            lines: touched,
            rate: 0.0,
            law,
        },
        own: Flow {
            // A thread goes through its own part of a run.
            lines: if run {
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

/// A number that shares no factor with `n`, near the golden ratio of it.
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
