//! The accesses of a thread of a described program.
//!
//! Lines are numbered through all of the program's regions (*virtual* lines); the place of a line is computed
//! only when its request leaves the core.

use weir_model::workload::{Region, Workload};

use super::super::walk::Walk;
use super::che_approximation::Flow;
use super::parts::{CacheCapacity, ENTRIES, PAGE, Part, PhaseParts, phase_parts};
use super::visit::{Rest, Visit};
use crate::clock::Ps;
use crate::line::Place;
use crate::rng;

/// The first line of a region that has no memory.
const NO_MEMORY: u64 = 1 << 20;

/// The endless sequence of accesses of a thread.
pub struct Script {
    phases: Vec<PhaseParts>,
    now: usize,
    /// Instructions left in the current phase.
    left: f64,
    rest: Option<Rest>,
    /// The part whose elements come, and how many still do before another has its turn.
    batch: (usize, u32),
    chance: u64,
    /// The memory of each region: its first virtual line, and how to find the place of a line.
    memory: Vec<(u64, Walk)>,
    /// The first lines again, but for that of the first region: those of the next three, and the others.
    bases: [u64; 3],
    more_bases: Vec<u64>,
    chains: u16,
    /// The first line of its page tables, and log2 of the lines for whose pages one of them has the entries.
    tables: u64,
    table_bits: u32,
    /// The same of the hypervisor's, which has none of this number if there is no hypervisor.
    host_tables: u64,
    host_bits: u32,
    /// log2 of the lines that an entry of the TLBs covers.
    tlb_bits: u32,
}

impl Script {
    /// Thread `number` of a workload with regions as in `memory`, in the order of [`Workload::memory`].
    pub fn new(
        work: &Workload,
        number: u32,
        memory: Vec<(u64, Walk)>,
        caches: CacheCapacity,
        seed: u64,
    ) -> Self {
        let names: Vec<&str> = work.memory().into_iter().map(|(name, _)| name).collect();
        let mut chains = 0;
        let phases: Vec<PhaseParts> = (work.phases.iter().enumerate())
            .map(|(n, phase)| {
                let base = |region: &Region| {
                    let at = names.iter().position(|name| *name == region.name);
                    at.and_then(|i| memory.get(i)).map_or(NO_MEMORY, |m| m.0)
                };
                let mut parts = phase_parts(
                    phase,
                    base,
                    (number, work.threads),
                    &mut chains,
                    caches,
                    seed,
                );
                for part in &mut parts.parts {
                    part.visit.phase = n as u16;
                }
                parts
            })
            .collect();
        let left = phases.first().map_or(0.0, |s| s.instructions);
        let ends = memory.iter().map(|(base, walk)| base + walk.lines());
        let tables = ends.max().unwrap_or(0).max(NO_MEMORY) + PAGE;
        let table_bits = caches.page_bits + ENTRIES.ilog2();
        let host_tables = match caches.host_bits {
            Some(_) => tables + (tables >> table_bits) + 1,
            None => u64::MAX,
        };
        Self {
            tables,
            table_bits,
            host_tables,
            host_bits: caches.host_bits.unwrap_or_default(),
            tlb_bits: caches.tlb_bits,
            phases,
            now: 0,
            left,
            rest: None,
            batch: (0, 0),
            chance: rng::mix(seed ^ (u64::from(number) << 32)),
            bases: std::array::from_fn(|i| memory.get(i + 1).map_or(u64::MAX, |(base, _)| *base)),
            more_bases: memory.iter().skip(4).map(|(base, _)| *base).collect(),
            memory,
            chains,
        }
    }

    /// The alpha of the memory that has an extent which begins at this line of a tier, if its order is that of Apex-Map.
    pub fn apex_at(&self, tier: usize, first: u64) -> Option<f64> {
        let begins = |(of, line, _): (u8, u64, u64)| usize::from(of) == tier && line == first;
        let has = |walk: &Walk| walk.extents().any(begins);
        let (base, _) = self.memory.iter().find(|(_, walk)| has(walk))?;
        let parts = self.phases.iter().flat_map(|phase| &phase.parts);
        parts.filter(|part| part.base == *base).find_map(Part::apex)
    }

    /// The number of chains.
    pub fn chains(&self) -> u16 {
        self.chains
    }

    /// Its phases.
    pub fn phases(&self) -> &[PhaseParts] {
        &self.phases
    }

    /// What the program accesses in its current phase while its threads run this many instructions a picosecond each: lines
    /// a picosecond.
    pub fn flows(&self, pace: f64) -> Vec<Flow> {
        let phase = &self.phases[self.now];
        let picks = pace / phase.instructions_per_pick;
        let faster = |flow: Flow| Flow {
            rate: flow.rate * picks,
            ..flow
        };
        phase.flows().map(faster).collect()
    }

    /// The last-level cache has these flows of others, too, in lines a picosecond, while this program runs at `pace` in its
    /// current phase.
    pub fn share(&mut self, pace: f64, others: &[Flow], in_other_l2: f64) {
        let now = self.phases[self.now].cpi;
        for phase in &mut self.phases {
            let picks = pace * now / phase.cpi / phase.instructions_per_pick;
            let slower = |flow: &Flow| Flow {
                rate: flow.rate / picks,
                ..*flow
            };
            let others: Vec<Flow> = others.iter().map(slower).collect();
            phase.share(&others, in_other_l2);
        }
    }

    /// The program may fill this many lines of the last-level cache from now on. It has them for itself until
    /// [`Script::share`] says otherwise.
    pub fn set_llc(&mut self, lines: f64) {
        for phase in &mut self.phases {
            phase.set_llc(lines);
        }
    }

    /// The phase of the next access, as a position in [`Script::phases`].
    pub fn phase(&self) -> usize {
        self.now
    }

    /// Goes on to where the program is after this time, with these instructions a picosecond in each phase. Returns
    /// whether that is another phase.
    pub fn skip(&mut self, time: Ps, rates: &[f64]) -> bool {
        let (before, lasts) = (self.now, |phase: usize| {
            self.phases[phase].instructions / rates[phase]
        });
        let cycle: f64 = (0..self.phases.len()).map(lasts).sum();
        let mut time = time as f64 % cycle;
        for _ in 0..=self.phases.len() {
            let to_end = self.left.max(0.0) / rates[self.now];
            if time < to_end {
                self.left -= time * rates[self.now];
                break;
            }
            time -= to_end;
            self.now = (self.now + 1) % self.phases.len();
            self.left = self.phases[self.now].instructions;
        }
        let changed = self.now != before;
        if changed {
            (self.rest, self.batch) = (None, (0, 0));
        }
        changed
    }

    /// Instructions left in the current phase.
    pub fn left_mut(&mut self) -> &mut f64 {
        &mut self.left
    }

    /// The number of its regions.
    pub fn regions(&self) -> usize {
        self.memory.len()
    }

    /// The region and the place of a line. Page tables have no memory of their own here: a line of theirs is where a line of
    /// the pages is whose entries it has, since the kernel takes both from the same nodes.
    #[inline(always)]
    pub fn locate(&self, line: u64) -> (usize, Place) {
        let line = match line.checked_sub(self.tables) {
            Some(_) => self.translated(line),
            None => line,
        };
        let region = self.region_of(line);
        let (base, walk) = &self.memory[region];
        let place = walk.place_of_offset(line.saturating_sub(*base).min(walk.lines() - 1));
        (region, place)
    }

    /// A line of the pages whose entries a line of page tables has.
    fn translated(&self, table: u64) -> u64 {
        let (first, bits) = match table < self.host_tables {
            true => (self.tables, self.table_bits),
            false => (self.host_tables, self.host_bits),
        };
        let number = table - first;
        number << bits | rng::mix(number) >> (64 - bits)
    }

    /// The line of the page tables that has the entry of a line's page.
    #[inline]
    pub fn table(&self, line: u64) -> u64 {
        self.tables + (line >> self.table_bits)
    }

    /// The line of the hypervisor's tables that has the entry of a line's page, after this line of the program's tables;
    /// zero without a hypervisor, and after its tables.
    pub fn host_table(&self, line: u64, after: u64) -> u64 {
        match self.host_tables {
            u64::MAX => 0,
            first if after >= first => 0,
            first => first + (line >> self.host_bits),
        }
    }

    /// Whether both lines are in the same page.
    #[inline]
    pub fn share_page(&self, a: u64, b: u64) -> bool {
        (a ^ b) >> self.tlb_bits == 0
    }

    /// No line is at or after this one: the last page of a region may be cleared beyond the region, and the page
    /// tables come last.
    pub fn end(&self) -> u64 {
        match self.host_tables {
            u64::MAX => self.table(self.tables) + 1,
            first => first + (first >> self.host_bits) + 1,
        }
    }

    /// The region of a line that is not of the page tables.
    #[inline(always)]
    pub fn region_of(&self, line: u64) -> usize {
        // A program has few regions, whose first lines ascend.
        let [a, b, c] = self.bases.map(|base| usize::from(base <= line));
        match a + b + c {
            3 => 3 + self.more_bases.partition_point(|&base| base <= line),
            region => region,
        }
    }

    /// Whether memory must be written when L2 evicts a modified line: the last-level cache keeps the line if
    /// it is accessed again in time.
    pub fn keeps(&mut self, line: u64) -> bool {
        let draw = self.draw();
        let phase_parts = &self.phases[self.now];
        let of = |part: &&Part| (part.base..part.base + part.lines).contains(&line);
        let part = phase_parts.parts.iter().find(of);
        part.is_some_and(|part| draw < part.cached)
    }

    /// A random value in 0..1.
    #[inline]
    pub fn draw(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    #[inline]
    fn bits(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        rng::mix(self.chance)
    }

    /// Writes the next access into `visit`.
    #[inline(always)]
    pub fn next(&mut self, visit: &mut Visit) {
        if let Some(rest) = &mut self.rest {
            *visit = rest.next;
            rest.step();
            if rest.lines == 0 {
                self.rest = None;
            }
            self.left -= visit.gap;
            return;
        }
        if self.left <= 0.0 {
            self.now = (self.now + 1) % self.phases.len();
            self.left += self.phases[self.now].instructions;
            self.batch = (0, 0);
        }
        let draws = [self.bits(), self.bits(), self.bits()];
        self.start(draws, visit);
        self.left -= visit.gap;
    }

    /// The first line of the next element.
    #[inline(always)]
    fn start(&mut self, [which, what, how]: [u64; 3], visit: &mut Visit) {
        let tlb_bits = self.tlb_bits;
        let phase_parts = &mut self.phases[self.now];
        let half = |bits: u64, shift: u32| u64::from((bits >> shift) as u32);
        let choice = half(which, 32);
        let at = match self.batch.1 {
            0 => {
                let next = phase_parts.choose(choice);
                self.batch = (next, phase_parts.parts[next].batch - 1);
                next
            }
            left => {
                self.batch.1 = left - 1;
                self.batch.0
            }
        };
        let part = &mut phase_parts.parts[at];
        // The distance varies, so that nothing falls into step with anything else.
        let gap = part.gap * (0.5 + half(which, 0) as f64 / 4_294_967_296.0);
        let store = half(what, 0) < part.stores;
        *visit = part.visit;
        visit.gap = gap;
        visit.store = store;
        visit.non_temporal = store && half(how, 0) < part.non_temporal;
        visit.mispredicted = !store && half(how, 32) < part.mispredicted;
        visit.chain += part.turn as u16;
        let dependent = half(what, 32) < part.dependent;
        visit.after = match part.indexed_by {
            Some(chain) => Some(chain),
            None => dependent.then_some(visit.chain),
        };
        part.find_line(visit, what ^ how, phase_parts.times);
        visit.walks = match part.order.is_run() {
            // A run enters a page, and has none of its former pages in the TLBs.
            true => {
                let before = visit.line.wrapping_sub(part.step);
                part.walks > 0 && (visit.line ^ before) >> tlb_bits > 0
            }
            false => part.walks > 0 && half(rng::mix(how), 0) < part.walks,
        };
        let streams = part.cursors.len();
        part.turn += 1;
        if part.turn == streams {
            part.turn = 0;
        }
        if !part.may_go_on {
            return;
        }
        let (lines, order, step) = (part.lines_per_element, part.order, part.step);
        let shuffle = part.shuffle;
        let modifies = part.modifies > 0 && !visit.store && half(rng::mix(!how), 0) < part.modifies;
        if visit.faults {
            return self.clear_page(visit);
        }
        if modifies {
            // Stores of the same accesses, one instruction each; the address is known.
            self.rest = Some(Rest {
                lines: 1,
                next: Visit {
                    store: true,
                    gap: f64::from(visit.accesses),
                    after: None,
                    mispredicted: false,
                    walks: false,
                    stride: 0,
                    ..*visit
                },
                around: None,
            });
            return;
        }
        if lines > 1 && (!order.is_run() || step != lines) {
            let first = visit.line;
            let mut rest = Rest {
                lines: (lines - 1).min(visit.end - first - 1),
                next: Visit {
                    line: first + 1,
                    // Near its first line: no new address, no new translation.
                    after: None,
                    mispredicted: false,
                    walks: false,
                    stride: 1,
                    ..*visit
                },
                around: None,
            };
            if shuffle > 0 {
                rest.next.line = first + shuffle;
                rest.next.stride = 0;
                rest.around = Some((first, lines, shuffle));
            }
            self.rest = Some(rest).filter(|rest| rest.lines > 0);
        }
    }

    /// The kernel clears a page before its first access: a store to each of its lines, in place of that
    /// access. Its own pages are large.
    #[cold]
    fn clear_page(&mut self, visit: &mut Visit) {
        let first = *visit;
        let clearing = Visit {
            accesses: 1,
            gap: 1.0,
            store: true,
            non_temporal: false,
            mispredicted: false,
            walks: false,
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
            around: None,
        });
        *visit = clearing;
    }
}
