//! Weir's own policy: a page moves only if the stall model says that the move pays back.
//!
//! What an access of a region costs on a tier is its latency divided by the accesses that are outstanding with it, and what
//! its traffic adds to the latency of every other access to that tier, which the slope of the tier's measured curve says.
//! The difference between the tiers is what an access gains on the fast one; it is negative where the fast tier is
//! congested. Three rules follow from it:
//!
//! - A page of the slow tier is promoted if its accesses gain more than its move costs, within the time for which pages have
//!   stayed so far.
//! - Pages of a region whose accesses would gain on the slow tier go there in small steps, and return when they would
//!   not: bandwidth-bound regions end up interleaved.
//! - The fast node has a price: what a page on it must gain in a second. It rises while candidates find no room, and falls
//!   while there is some. Pages of the fast node are sampled then as well, and those that gain less are demoted.

use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use super::{Decision, Fault, Marks, Move, Placing, Policy, RegionSeen, Scan, Seen};
use crate::Costs;
use crate::tier::{BASE, Tier, TierCurve, Watermarks};

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
    /// What candidates of this interval gain in a second that found no room, and how many base pages they have.
    blocked: (f64, f64),
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
    /// What a page gains in a second on the fast tier, on average.
    gains: f64,
    /// Base pages that go to the other tier in an interval because of congestion, and where to.
    step: f64,
    towards: Option<Tier>,
    /// The share of its pages on the fast tier, where it is interleaved.
    target: Option<f64>,
    /// Pages that were placed, and how long a page lives as far as that says, in seconds.
    placed: u64,
    placed_before: u64,
    lives_s: f64,
}

impl Default for Region {
    fn default() -> Self {
        Self {
            gain: None,
            gains: f64::INFINITY,
            step: 0.0,
            towards: None,
            target: None,
            placed: 0,
            placed_before: 0,
            lives_s: f64::INFINITY,
        }
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

/// Gains within this share of the fast tier's latency are none: curves are known to a few percent.
const DEAD_BAND: f64 = 0.04;
/// The part of a new reading in a smoothed one.
const SMOOTH: f64 = 0.25;
/// Steps of interleaving, as shares of a region in an interval.
const FIRST_STEP: f64 = 0.005;
const LEAST_STEP: f64 = 0.0005;
const MOST_STEP: f64 = 0.02;
/// A candidate must gain so many times the price, and a page that is to go less than it: a swap costs two moves, and one time
/// until a fault says little about how often a page is accessed.
const MARGIN: f64 = 3.0;
/// A price below which there is none, in ns of thread time in a second.
const NO_PRICE: f64 = 0.1;
/// By which factors the price rises and falls in a second.
const RISE: f64 = 1.5;
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
/// A promotion counts for so many times its cost at most: the time until one fault says how often a page is accessed only
/// roughly.
const MOST_SAVED: f64 = 30.0;
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
            blocked: (0.0, 0.0),
            backlog: 0.0,
            moves: Vec::new(),
            window: Window::default(),
        }
    }
}

/// By how many ns latency rises for another GB/s.
fn slope(curve: &TierCurve, gbps: GbPerSec, read_share: f64) -> f64 {
    let more = (gbps.get() * 0.02).max(0.5);
    let at = |gbps: f64| curve.latency(GbPerSec(gbps), read_share).get();
    (at(gbps.get() + more) - at((gbps.get() - more).max(0.0))) / (gbps.get().min(more) + more)
}

/// What an access of each region gains on the fast tier, in ns.
fn gains(seen: &Seen<'_>) -> Vec<f64> {
    let delays = [0, 1].map(|t| {
        // Accesses in a second, by those outstanding with each: ns that each ns of latency costs in a second.
        let exposed: f64 = seen.regions.iter().map(|r| r.per_s[t] / r.mlp).sum();
        let lines: f64 = seen.regions.iter().map(|r| r.per_s[t]).sum();
        let written: f64 = seen.regions.iter().map(|r| r.per_s[t] * r.writes).sum();
        let read_share = if lines > 0.0 {
            lines / (lines + written)
        } else {
            1.0
        };
        // ns for each byte in a second.
        slope(seen.curves[t], seen.gbps[t], read_share) * exposed / 1e9
    });
    let of = |region: &RegionSeen| {
        let own = (seen.latency[1] - seen.latency[0]).get() / region.mlp;
        let bytes = LINE_BYTES as f64 * (1.0 + region.writes);
        own + (delays[1] - delays[0]) * bytes
    };
    seen.regions.iter().map(of).collect()
}

impl Payback {
    /// Moves pages of the region that gains most by it, while the fast tier is congested or was.
    fn interleave(&mut self, seen: &Seen<'_>) {
        let mut best: Option<(usize, Tier, f64)> = None;
        for (n, (own, of)) in self.regions.iter().zip(seen.regions).enumerate() {
            let dead = DEAD_BAND * seen.latency[0].get() / of.mlp;
            let Some(gain) = own.gain.filter(|gain| gain.abs() > dead) else {
                continue;
            };
            let (to, from) = match gain > 0.0 {
                true => (Tier::Fast, 1),
                false => (Tier::Slow, 0),
            };
            // Pages return by steps only where they had left by them; others wait for their hint faults.
            if of.pages[from] == 0 || (to == Tier::Fast && own.target.is_none()) {
                continue;
            }
            let by_page = gain.abs() * of.per_s[from] / of.pages[from] as f64;
            if best.is_none_or(|(.., most)| by_page > most) {
                best = Some((n, to, by_page));
            }
        }
        let Some((n, to, _)) = best else { return };
        let of = &seen.regions[n];
        let all = (of.pages[0] + of.pages[1]) as f64;
        let own = &mut self.regions[n];
        // The step grows while it keeps its direction, and shrinks when that turns.
        let step = match own.towards {
            Some(before) if before == to => own.step * 1.2,
            Some(_) => own.step * 0.4,
            None => FIRST_STEP * all,
        };
        own.step = step.clamp(LEAST_STEP * all, MOST_STEP * all);
        own.towards = Some(to);
        own.target = Some(of.pages[0] as f64 / all);
        self.moves.push(Move {
            region: n,
            to,
            base_pages: own.step as u64,
        });
    }

    /// Sets the price of the fast node.
    fn set_price(&mut self, seen: &Seen<'_>) {
        let (gain, wanted) = std::mem::take(&mut self.blocked);
        self.lacks_room = seen.free_fast < self.room;
        self.backlog = (self.backlog + wanted) * (-seen.interval_s / FORGET_S).exp();
        if self.price == 0.0 && wanted > 0.0 {
            self.price = gain / wanted / MARGIN / 100.0;
        } else if self.lacks_room && self.backlog >= 1.0 {
            self.price *= RISE.powf(seen.interval_s);
        } else {
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
            let placed = (own.placed - own.placed_before) as f64;
            own.placed_before = own.placed;
            own.lives_s = self.window.seconds * pages / placed.max(1e-9);
            let density = (of.per_s[0] + of.per_s[1]) / pages.max(1.0);
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
        match region.target {
            Some(target) if ((nth + 1.0) * target).floor() <= (nth * target).floor() => Tier::Slow,
            // A new page takes no room of one that gains more.
            None if self.lacks_room && region.gains < self.price => Tier::Slow,
            _ => Tier::Fast,
        }
    }

    fn scan(&self) -> Option<Scan> {
        Some(Scan {
            toptier: self.backlog >= 1.0,
            bytes_per_s: self.most_scan * self.scans,
        })
    }

    fn marks(&self, marks: &Watermarks) -> Marks {
        let stop = marks.high + marks.managed * HEADROOM / 10_000;
        let linux = Marks {
            promote: marks.min,
            ..Marks::linux(marks)
        };
        match self.makes_room_s > 0.0 {
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

    fn fault(&mut self, fault: &Fault) -> Decision {
        self.window.faults += 1.0;
        let Some(region) = self.regions.get_mut(fault.region) else {
            return Decision::Keep;
        };
        if region.target.is_some() {
            return Decision::Keep;
        }
        // What a base page of it gains in a second, if it is accessed as often as the time until its fault says.
        let base = fault.base_pages as f64;
        let gain = region.gain.unwrap_or(0.0) / fault.latency_s.max(1e-6) / base;
        let cost = (self.costs.moving(fault.base_pages) + self.flushes).get();
        let saved = gain * base * self.stays_s.min(region.lives_s / 2.0) - cost;
        match fault.tier {
            Tier::Fast if self.backlog >= 1.0 && gain < self.price => {
                self.backlog -= base;
                Decision::Demote
            }
            Tier::Slow if saved > 0.0 && gain > MARGIN * self.price => {
                self.makes_room_s = ROOM_S;
                self.window.saved += saved.min(cost * MOST_SAVED);
                if self.lacks_room {
                    self.blocked.0 += gain * base;
                    self.blocked.1 += base;
                }
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
            own.gain = Some(match own.gain {
                Some(before) => before + SMOOTH * (gain - before),
                None => gain,
            });
            let pages = (of.pages[0] + of.pages[1]).max(1);
            own.gains = gain * (of.per_s[0] + of.per_s[1]) / pages as f64;
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
