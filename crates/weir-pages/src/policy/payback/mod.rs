//! Weir's own policy: a page moves only if the stall model says that the move pays back.
//!
//! What an access of a region costs on a tier is its latency divided by the accesses that are outstanding with it, and what
//! its traffic adds to the latency of every other access to that tier, which the slope of the tier's measured curve says.
//! The difference between the tiers is what an access gains on the fast one; it is negative where the fast tier is
//! congested. Three rules follow from it:
//!
//! - A page of the slow tier is promoted if its accesses gain more than its move costs and the price below, within the time
//!   for which pages have stayed so far. How often it is accessed is estimated from its hint fault and from all pages of its
//!   region ([`rates`]).
//! - Pages of a region whose accesses would gain on the slow tier go there, as many as the model says, and return when
//!   they would not: bandwidth-bound regions end up interleaved ([`spread`]).
//! - The fast node has a price: what a page on it must gain in a second ([`price`]). Pages of the fast node are sampled while
//!   candidates find no room. One that gains less than the price leaves if a candidate gains enough more to pay for both
//!   moves of the swap, and a new page of a region that gains no more takes spare room alone. Regions whose pages are alike are
//!   swapped without hint faults ([`swap`]).

use weir_model::units::Nanos;

use super::{Decision, Fault, Marks, Move, Placing, Policy, Scan, Seen};
use crate::Costs;
use crate::tier::{BASE, Tier, Watermarks};

mod price;
mod rates;
mod spread;
mod swap;

use rates::Rates;
use spread::gains;

/// The policy's state. No value of it is fitted to a workload.
#[derive(Debug, Clone)]
pub struct Payback {
    regions: Vec<Region>,
    /// What the kernel's work costs, and what the flushes of TLBs cost for a promotion and a demotion.
    costs: Costs,
    flushes: Nanos,
    /// For how long a promoted page is expected to stay, in seconds.
    stays_s: f64,
    /// The share of the largest rate at which pages are sampled, and that rate in bytes a second.
    scans: f64,
    most_scan: f64,
    /// For how many seconds yet room is made on the fast node.
    makes_room_s: f64,
    /// What a page on the fast node must gain in a second, in ns of thread time.
    price: f64,
    /// Free base pages below which the fast node lacks room.
    room: u64,
    lacks_room: bool,
    /// Base pages of the fast node.
    node: f64,
    /// Free memory that is kept for promotion, in ten-thousandths of the node.
    headroom: f64,
    /// What candidates of this interval gain in a second, and how many base pages they have.
    candidates: (f64, f64),
    /// What they save, less their moves, in ns.
    saves: f64,
    /// What a base page of those that found no room gains in a second; smoothed.
    asks: f64,
    /// The most that a new page gains in a second that found no room, in this interval.
    missed: f64,
    /// Base pages that may yet come to the fast node in this interval though they gain no more than the price.
    admits: f64,
    /// Whether new pages were placed in this interval that take spare room alone.
    waiting: bool,
    /// For how long room has been spare, in seconds.
    spare_s: f64,
    /// Base pages that found no room and for which none has left yet. As many are reclaimed. It is forgotten within a pass of
    /// sampling, which takes `pass_s`.
    backlog: f64,
    pass_s: f64,
    moves: Vec<Move>,
    window: Window,
}

/// What is known of a region.
#[derive(Debug, Clone, Copy)]
struct Region {
    /// What an access gains on the fast tier, in ns; smoothed.
    gain: Option<f64>,
    /// Accesses in a second to a base page of each tier, as event samples say, smoothed; and to all of them.
    density: [f64; 2],
    per_s: [f64; 2],
    /// How often its pages are accessed, by tier, and base pages in each.
    rates: [Rates; 2],
    base_pages: f64,
    /// Accesses in a visit: a hint fault tells when a page was visited.
    burst: f64,
    /// What a page gains in a second on the fast tier, on average.
    gains: f64,
    /// Base pages that are to go to the fast tier because of congestion, or from it if negative, and have not yet.
    owed: f64,
    /// The share of its pages on the fast tier, where it is interleaved.
    target: Option<f64>,
    /// Pages that were placed, and how long a page lives as far as that says, in seconds.
    placed: u64,
    placed_before: u64,
    pages_before: f64,
    lives_s: f64,
}

impl Default for Region {
    fn default() -> Self {
        Self {
            gain: None,
            density: [0.0; 2],
            per_s: [0.0; 2],
            rates: [Rates::default(); 2],
            base_pages: 1.0,
            burst: 1.0,
            gains: f64::INFINITY,
            owed: 0.0,
            target: None,
            placed: 0,
            placed_before: 0,
            pages_before: 0.0,
            lives_s: f64::INFINITY,
        }
    }
}

impl Region {
    /// The share of its pages that have its accesses, once enough of them were sampled.
    fn hot(&self) -> Option<f64> {
        match self.rates.map(|rates| rates.hot()) {
            [Some(a), Some(b)] => Some(a.min(b)),
            [a, b] => a.or(b),
        }
    }

    /// Whether enough of its pages were sampled, and they may all be alike.
    fn are_alike(&self) -> bool {
        self.hot().is_some() && self.rates.iter().all(Rates::may_be_alike)
    }

    /// What a base page of a tier gains in a second, on average.
    fn gains_on(&self, tier: usize, pages: [u64; 2]) -> f64 {
        self.gain.unwrap_or(0.0) * self.per_s[tier] / pages[tier].max(1) as f64
    }
}

/// Sums over some seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    seconds: f64,
    faults: f64,
    paying: f64,
    returned: f64,
    /// Thread time that promotions of it save, in ns, less that of the moves.
    saved: f64,
}

/// The part of a new reading in a smoothed one.
const SMOOTH: f64 = 0.25;
/// Accesses for each event sample: a prime near 10000, so that samples do not follow a loop's period.
const EVENT_PERIOD: f64 = 10_007.0;
/// Pages whose gains differ by less than this share are alike, and are not swapped: a region of 10 MB has hundreds of samples
/// in a second, which tell its rate to a few percent, and curves are known to a few percent as well.
const ALIKE: f64 = 0.1;
/// A pass of sampling takes this long, at least and at most.
const PASS_S: [f64; 2] = [1.0, 20.0];
/// How often sampling and the expected stay are set.
const EVERY_S: f64 = 10.0;
/// A page is expected to stay between these, at first the geometric mean.
const STAYS_S: [f64; 2] = [5.0, 500.0];
/// Sampling goes down to this share where it does not pay.
const LEAST_SCAN: f64 = 1.0 / 8.0;
/// Sampling takes this share of the program's time at most.
const SCAN_SHARE: f64 = 0.004;
/// Room for a new page pays if it saves this many times the cost of a move.
const ROOM_PAYS: f64 = 2.0;
/// Room is made for this long after it was found to pay.
const ROOM_S: f64 = 5.0;
/// Free memory that is kept for promotion at least, in ten-thousandths of the node.
const HEADROOM: f64 = 100.0;
/// Free memory that is kept for promotion at most, and at first.
const MOST_HEADROOM: f64 = 500.0;

impl Default for Payback {
    fn default() -> Self {
        Self {
            regions: Vec::new(),
            costs: Costs::default(),
            flushes: Nanos(0.0),
            stays_s: (STAYS_S[0] * STAYS_S[1]).sqrt(),
            scans: 1.0,
            most_scan: Scan::LINUX.bytes_per_s,
            makes_room_s: ROOM_S,
            price: 0.0,
            room: 0,
            lacks_room: false,
            node: 1.0,
            headroom: MOST_HEADROOM,
            candidates: (0.0, 0.0),
            saves: 0.0,
            asks: 0.0,
            missed: 0.0,
            admits: 0.0,
            waiting: false,
            spare_s: 0.0,
            backlog: 0.0,
            pass_s: PASS_S[1],
            moves: Vec::new(),
            window: Window::default(),
        }
    }
}

impl Payback {
    /// What sampling a page costs, in ns.
    fn sample_cost(&self) -> f64 {
        (self.costs.hint_fault + self.costs.unmap).get()
    }

    /// How long pages live; and whether room for new ones pays, which would be allocated on the slow node without it.
    fn watch_allocation(&mut self, seen: &Seen<'_>) {
        for (own, of) in self.regions.iter_mut().zip(seen.regions) {
            let pages = (of.pages[0] + of.pages[1]) as f64;
            // A page that takes the place of another ends the life of that one; one by which the region grows does not.
            let grown = (pages - own.pages_before).max(0.0) / own.base_pages;
            let placed = ((own.placed - own.placed_before) as f64 - grown).max(0.0);
            (own.placed_before, own.pages_before) = (own.placed, pages);
            own.lives_s = self.window.seconds * pages / own.base_pages / placed.max(1e-9);
            let density = (own.per_s[0] + own.per_s[1]) / pages.max(1.0);
            let saved = own.gain.unwrap_or(0.0) * density * own.lives_s;
            if placed > 0.0
                && of.pages[1] > 0
                && saved > ROOM_PAYS * (self.costs.moving(1) + self.flushes).get()
            {
                self.makes_room_s = EVERY_S + ROOM_S;
            }
        }
    }

    fn end_window(&mut self) {
        let w = std::mem::take(&mut self.window);
        // Pages that return were demoted too early: what is promoted now will not stay long either.
        let [least, most] = STAYS_S;
        let returned = w.returned / w.paying.max(1.0);
        let factor = if returned > 0.3 { 0.7 } else { 1.2 };
        if w.paying > 0.0 {
            self.stays_s = (self.stays_s * factor).clamp(least, most);
        }
        let cost = w.faults * self.sample_cost();
        let factor = if w.saved < 2.0 * cost { 0.7 } else { 2.0 };
        self.scans = (self.scans * factor).clamp(LEAST_SCAN, 1.0);
    }
}

impl Policy for Payback {
    fn place(&mut self, page: &Placing) -> Tier {
        if page.region >= self.regions.len() {
            self.regions.resize_with(page.region + 1, Region::default);
        }
        // What waits for room has it before new pages that gain less, and not before those that gain as much.
        let reserve = match self.regions[page.region].gains < self.asks * (1.0 - ALIKE) {
            true => self.reserve(),
            false => 2 * self.room,
        };
        let region = &mut self.regions[page.region];
        let nth = region.placed as f64;
        region.placed += 1;
        region.base_pages = page.base_pages as f64;
        let to = match region.target {
            Some(target) if ((nth + 1.0) * target).floor() <= (nth * target).floor() => Tier::Slow,
            // A new page takes no room of one that gains more. Where it gains about the price, it takes what is spare.
            None if region.gains * (1.0 - ALIKE) < self.price => {
                self.waiting = true;
                match page.free_fast <= reserve {
                    true => Tier::Slow,
                    false => Tier::Fast,
                }
            }
            _ => Tier::Fast,
        };
        if to == Tier::Fast && !page.fits && region.gains.is_finite() {
            self.missed = self.missed.max(region.gains);
        }
        to
    }

    fn scan(&self) -> Option<Scan> {
        Some(Scan {
            toptier: self.backlog >= 1.0,
            bytes_per_s: self.most_scan * self.scans,
            passes: Scan::LINUX.passes,
        })
    }

    fn marks(&self, marks: &Watermarks) -> Marks {
        let stop = marks.high + (marks.managed as f64 * self.headroom / 10_000.0) as u64;
        let linux = Marks {
            promote: marks.min,
            ..Marks::linux(marks)
        };
        match self.makes_room_s > 0.0 || self.price > 0.0 {
            true => Marks {
                allocate: marks.high,
                wake: Some(marks.high + (stop - marks.high) / 2),
                stop,
                wake_when_full: true,
                ..linux
            },
            false => linux,
        }
    }

    fn demotes(&self) -> bool {
        true
    }

    fn event_period(&self) -> Option<f64> {
        Some(EVENT_PERIOD)
    }

    fn sampled(&mut self, region: usize, tier: Tier) {
        if let Some(region) = self.regions.get_mut(region) {
            region.rates[tier as usize].sampled();
        }
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        self.window.faults += 1.0;
        let Some(region) = self.regions.get_mut(fault.region) else {
            return Decision::Keep;
        };
        region.rates[fault.tier as usize].fault(fault.latency_s);
        if region.target.is_some() {
            return Decision::Keep;
        }
        // What a base page of it gains in a second, and by how much that is more than the price, until it leaves again.
        let base = fault.base_pages as f64;
        let per_s = region.rates[fault.tier as usize].expected(fault.latency_s) * region.burst;
        let gain = region.gain.unwrap_or(0.0) * per_s / base;
        let cost = (self.costs.moving(fault.base_pages) + self.flushes).get();
        let stays_s = self.stays_s.min(region.lives_s / 2.0);
        // A page at the price takes room that is spare, or of a page below it.
        let fits =
            fault.tier == Tier::Slow && self.admits >= base && gain >= self.price * (1.0 - ALIKE);
        let price = if fits { 0.0 } else { self.price };
        let saved = (gain * (1.0 - ALIKE) - price) * base * stays_s;
        match fault.tier {
            // A swap costs two moves.
            Tier::Fast
                if self.backlog >= 1.0
                    && gain * (1.0 - ALIKE) < self.price
                    && (self.asks * (1.0 - ALIKE) - gain) * base * stays_s > 2.0 * cost =>
            {
                self.backlog = (self.backlog - base).max(0.0);
                Decision::Demote
            }
            Tier::Slow if saved > cost => {
                self.admits -= base;
                self.makes_room_s = ROOM_S;
                self.saves += saved - cost;
                self.candidates.0 += gain * base;
                self.candidates.1 += base;
                self.window.paying += 1.0;
                self.window.returned += f64::from(u8::from(fault.demoted));
                Decision::Promote
            }
            _ => Decision::Keep,
        }
    }

    fn observe(&mut self, seen: &Seen<'_>) {
        self.regions
            .resize_with(seen.regions.len(), Region::default);
        self.costs = *seen.costs;
        self.flushes = seen.costs.shootdown * f64::from(seen.threads) * 2.0;
        let pages_per_s = SCAN_SHARE * f64::from(seen.threads) * 1e9 / self.sample_cost();
        self.most_scan = Scan::LINUX.bytes_per_s.min(pages_per_s * BASE as f64);
        let gains = gains(seen);
        for ((own, gain), of) in self.regions.iter_mut().zip(gains).zip(seen.regions) {
            let smooth = if own.gain.is_some() { SMOOTH } else { 1.0 };
            let before = own.gain.unwrap_or(0.0);
            own.burst = of.burst;
            own.gain = Some(before + smooth * (gain - before));
            for t in 0..2 {
                // Rates of pages change slowly, how many are on a tier may change at once.
                let pages = of.pages[t].max(1) as f64;
                own.density[t] += (of.per_s[t] / pages - own.density[t]) * smooth;
                own.per_s[t] = own.density[t] * pages;
                let visits = own.density[t] * own.base_pages / of.burst;
                own.rates[t].observe(visits, seen.interval_s);
            }
            let pages = (of.pages[0] + of.pages[1]).max(1);
            own.gains = gain * (own.per_s[0] + own.per_s[1]) / pages as f64;
        }
        let pages: u64 = seen.regions.iter().map(|r| r.pages[0]).sum();
        self.node = (pages + seen.free_fast) as f64;
        let all: u64 = seen.regions.iter().flat_map(|r| r.pages).sum();
        self.pass_s =
            ((all * BASE) as f64 / (self.most_scan * self.scans)).clamp(PASS_S[0], PASS_S[1]);
        self.room = (self.node * HEADROOM / 2.0 / 10_000.0) as u64;
        self.moves.clear();
        self.interleave(seen);
        self.set_price(seen);
        self.swap(seen);
        self.makes_room_s -= seen.interval_s;
        self.window.seconds += seen.interval_s;
        if self.window.seconds >= EVERY_S {
            self.watch_allocation(seen);
            self.end_window();
        }
    }

    fn moves(&mut self) -> Vec<Move> {
        std::mem::take(&mut self.moves)
    }

    fn reclaims(&mut self) -> u64 {
        self.backlog.min(self.node / swap::PART) as u64
    }
}
