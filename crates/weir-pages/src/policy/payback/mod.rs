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
//! - The fast node has a price: what a page on it must gain in a second. It rises while candidates find no room and no page
//!   is known to be below it, and falls while there is some. Pages of the fast node are sampled then as well. One that gains
//!   less leaves if a candidate gains so much more that the swap pays for both moves, and a new page of a region that gains
//!   less is placed on the slow node.

use weir_model::units::Nanos;

use super::{Decision, Fault, Marks, Move, Placing, Policy, Scan, Seen};
use crate::Costs;
use crate::tier::{BASE, Tier, Watermarks};

mod rates;
mod spread;

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
    /// Whether all room that is kept for promotion is free.
    spare: bool,
    /// What candidates of this interval gain in a second, and how many base pages they have.
    candidates: (f64, f64),
    /// What they save, less their moves, in ns.
    saves: f64,
    /// What a base page of those that found no room gains in a second; smoothed.
    asks: f64,
    /// Base pages that found no room and for which none has left yet. It is forgotten within a pass of sampling.
    backlog: f64,
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
/// A price below which there is none, in ns of thread time in a second.
const NO_PRICE: f64 = 0.1;
/// By which factors the price rises in a second, and falls while room is spare; and falls otherwise. Rates of pages differ by
/// factors of thousands, so it must cross a factor of 100 in a few passes of sampling; a pass of Linux' takes 1 s or more.
const RISE: f64 = 2.0;
const FALL: f64 = 1.05;
/// A pass of sampling takes about so long.
const FORGET_S: f64 = 20.0;
/// How often sampling and the expected stay are set.
const EVERY_S: f64 = 10.0;
/// A page is expected to stay between these, at first the geometric mean.
const STAYS_S: [f64; 2] = [5.0, 500.0];
/// Sampling goes down to this share where it does not pay.
const LEAST_SCAN: f64 = 1.0 / 8.0;
/// Sampling takes this share of the program's time at most.
const SCAN_SHARE: f64 = 0.004;
/// Room for a new page pays if it saves so many times the cost of a move.
const ROOM_PAYS: f64 = 2.0;
/// Room is made for so long after it was found to pay.
const ROOM_S: f64 = 5.0;
/// Free memory that is kept for promotion, in ten-thousandths of the node.
const HEADROOM: u64 = 100;

impl Default for Payback {
    fn default() -> Self {
        Self {
            regions: Vec::new(),
            costs: Costs::default(),
            flushes: Nanos(0.0),
            stays_s: (STAYS_S[0] * STAYS_S[1]).sqrt(),
            scans: 1.0,
            most_scan: Scan::LINUX.bytes_per_s,
            makes_room_s: 0.0,
            price: 0.0,
            room: 0,
            lacks_room: false,
            spare: true,
            candidates: (0.0, 0.0),
            saves: 0.0,
            asks: 0.0,
            backlog: 0.0,
            moves: Vec::new(),
            window: Window::default(),
        }
    }
}

impl Payback {
    /// Sets the price of the fast node.
    fn set_price(&mut self, seen: &Seen<'_>) {
        let (gain, wanted) = std::mem::take(&mut self.candidates);
        // Where reclaim finds pages that are not accessed, room comes without a price.
        let unmet = seen.failed_full.saturating_sub(seen.reclaimed) as f64;
        // What found no room saves nothing.
        let moved = 1.0 - (seen.failed_full as f64 / wanted.max(1.0)).min(1.0);
        self.window.saved += std::mem::take(&mut self.saves) * moved;
        if seen.failed_full > 0 && wanted > 0.0 {
            self.asks += (gain / wanted - self.asks) * SMOOTH;
        }
        self.lacks_room = unmet > 0.0 || seen.free_fast < self.room;
        // Free memory says that the price is too high, unmet demand that it is too low.
        self.spare = seen.free_fast > 2 * self.room;
        self.backlog = match self.spare {
            true => 0.0,
            false => (self.backlog + unmet) * (-seen.interval_s / FORGET_S).exp(),
        };
        // Pages that are below the price leave once sampling has reached them: it need not rise for them.
        let leaving: u64 = (self.regions.iter().zip(seen.regions))
            .filter(|(own, of)| own.target.is_none() && own.gains_on(0, of.pages) < self.price)
            .map(|(_, of)| of.pages[0])
            .sum();
        let rises = unmet > 0.0 && (leaving as f64) < self.backlog;
        if unmet > 0.0 && self.price == 0.0 {
            self.price = gain / wanted.max(1.0) / 100.0;
        } else if rises {
            self.price *= RISE.powf(seen.interval_s);
        } else if self.spare {
            self.price /= RISE.powf(seen.interval_s);
        } else if unmet == 0.0 {
            self.price /= FALL.powf(seen.interval_s);
        }
        if self.price < NO_PRICE {
            self.price = 0.0;
        }
    }

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
        let region = &mut self.regions[page.region];
        let nth = region.placed as f64;
        region.placed += 1;
        region.base_pages = page.base_pages as f64;
        match region.target {
            Some(target) if ((nth + 1.0) * target).floor() <= (nth * target).floor() => Tier::Slow,
            // A new page takes no room of one that gains more.
            None if !self.spare && region.gains < self.price => Tier::Slow,
            _ => Tier::Fast,
        }
    }

    fn scan(&self) -> Option<Scan> {
        Some(Scan {
            toptier: self.backlog >= 1.0,
            bytes_per_s: self.most_scan * self.scans,
            passes: 1.0,
        })
    }

    fn marks(&self, marks: &Watermarks) -> Marks {
        let stop = marks.high + marks.managed * HEADROOM / 10_000;
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
        let saved = (gain - self.price) * base * stays_s;
        match fault.tier {
            // A swap costs two moves.
            Tier::Fast
                if self.backlog >= 1.0
                    && gain < self.price
                    && (self.asks * (1.0 - ALIKE) - gain) * base * stays_s > 2.0 * cost =>
            {
                self.backlog -= base;
                Decision::Demote
            }
            Tier::Slow if saved > cost => {
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
        self.room = (pages + seen.free_fast) * HEADROOM / 2 / 10_000;
        self.moves.clear();
        self.interleave(seen);
        self.set_price(seen);
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
}
