//! Dependent loads over growing working sets: a staircase whose steps are the caches.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::Point;
use weir_model::machine::MachineKind;
use weir_model::platform::Host;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES};

use super::median;

/// Latency of dependent loads over a working set of local DRAM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chase {
    /// How far a hop may reach.
    pub locality: Locality,
    /// The working set.
    pub size: Bytes,
    /// Its pages, where they are known.
    pub page: Option<Bytes>,
    /// Latency of a hop, in ns.
    pub ns: f64,
    /// Half of its 95 % interval; 0 where it is not known.
    pub half: f64,
}

impl Chase {
    /// The figure of a point, where it is one.
    pub fn of(point: &Point, machine: MachineKind, page: Option<Bytes>) -> Option<Self> {
        let alone = point.beside.is_none() && point.source.is_none() && point.cache_ways.is_none();
        let is_near = point.socket == 0 && point.tier == TierName::dram();
        if point.experiment != "latency" || point.op != Op::Ld || !alone || !is_near {
            return None;
        }
        let named = |locality: &Locality| {
            let locality = *locality;
            Pattern::Chase { locality }.name() == point.pattern
        };
        let locality = [Locality::TlbFriendly, Locality::Random]
            .into_iter()
            .find(named)?;
        let latency = point.ns.filter(|_| point.error.is_none())?;
        // On a host a sample is the mean of many hops, and the mean of all has what interrupted some.
        let (ns, page) = match machine {
            MachineKind::Sim => (latency.mean, page),
            _ => (latency.p50, pages_of(&point.conditions)),
        };
        let size = point.wss_bytes?;
        (ns.get() > 0.0).then(|| Self {
            locality,
            size,
            page: page.filter(|page| page.get() > 0),
            ns: ns.get(),
            half: point.ci95.unwrap_or(0.0),
        })
    }
}

/// The pages of a working set on a host, where all are of one size.
fn pages_of(conditions: &[String]) -> Option<Bytes> {
    let said = conditions
        .iter()
        .find_map(|text| text.strip_prefix("pages of "))?;
    said.strip_suffix(" (transparent)")
        .or_else(|| said.strip_suffix(" (reserved)"))
        .unwrap_or(said)
        .parse()
        .ok()
}

/// Chases on a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chases {
    /// By working set, in any order.
    pub all: Vec<Chase>,
    /// Whether a hypervisor's tables are walked.
    pub is_guest: bool,
}

/// Two working sets are on one plateau if the larger one's hops take at most this many times those of the smaller one.
const PLATEAU: f64 = 1.25;
/// A figure of this relative interval says nothing.
const UNCERTAIN: f64 = 0.25;
/// A level's latency is that of its working set in the middle only if it is at most this part of the next level's.
pub const A_STEP: f64 = 0.7;
/// What a hypervisor maps where it has no larger pages.
pub const HOST_PAGE: Bytes = Bytes::kib(4);
/// Pages of which a line of page tables has the entries.
const ENTRIES: u64 = 8;
/// Half of the hops miss a cache of which a line is replaced at random when the working set is this many times its size: a line
/// survives n replacements with exp(-n / lines), and half of the hops replace one (ln 2 / 0.5).
const HALF_MISSES: f64 = 1.386;

/// Rounds in which a figure that follows from itself settles.
const ROUNDS: u32 = 60;
/// No more than one of fifty hops hits over a working set of so many times a cache.
const MOST_TIMES: f64 = 4.0;

/// The part of hops that hit a cache over a working set of so many times its size, of which a line is replaced at random.
fn hits(times: f64) -> f64 {
    (0..ROUNDS).fold(0.0, |hits: f64, _| (times * (hits - 1.0)).exp())
}

/// The part of a shared cache that a program can fill, where it is less than half: a hypervisor may give its guests a part, and
/// neighbours fill the cache as well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    /// The working set over which half of the hops go to memory.
    pub half_misses: Bytes,
    /// The part.
    pub bytes: f64,
}

impl Chases {
    /// By working set, within the reach of the TLBs or beyond.
    fn of(&self, locality: Locality) -> Vec<Chase> {
        let mut found: Vec<Chase> = (self.all.iter().copied())
            .filter(|chase| chase.locality == locality)
            .collect();
        found.sort_by_key(|chase| chase.size);
        found
    }

    /// The figure of a cache: of the working sets between the cache before it and half of itself, the one in the middle, or a
    /// smaller one where that has left the plateau already.
    pub fn within(&self, before: Bytes, cache: Bytes) -> Option<Chase> {
        let mut inside = self.of(Locality::TlbFriendly);
        inside.retain(|chase| {
            chase.size.get() >= 2 * before.get() && chase.size.get() <= cache.get() / 2
        });
        let middle = (before.get() as f64 * cache.get() as f64).sqrt();
        let nearest = |chase: &Chase| (chase.size.get() as f64 / middle.max(1.0)).ln().abs();
        let at = (inside.iter().enumerate())
            .min_by(|a, b| nearest(a.1).total_cmp(&nearest(b.1)))?
            .0;
        inside.truncate(at + 1);
        while let [.., smaller, last] = inside[..]
            && last.ns > PLATEAU * smaller.ns
        {
            inside.pop();
        }
        inside
            .pop()
            .filter(|chase| chase.half <= UNCERTAIN * chase.ns)
    }

    /// Latency of memory: the median of working sets of at least four times the last-level cache.
    pub fn memory(&self, llc: Bytes) -> Option<f64> {
        let beyond = self.of(Locality::TlbFriendly).into_iter();
        let beyond = beyond.filter(|chase| chase.size.get() >= llc.get().saturating_mul(4));
        let all: Vec<f64> = beyond.map(|chase| chase.ns).collect();
        (!all.is_empty()).then(|| median(&all))
    }

    /// What is left of a cache beyond a smaller one, where a hop that hits it and one to memory take this long; `None` where at least
    /// half is left, or the chases do not say.
    pub fn left(&self, (hit, memory): (f64, f64), smaller: Bytes, cache: Bytes) -> Option<Left> {
        let half_misses = self.crossing(f64::midpoint(hit, memory), smaller)?;
        let bytes = half_misses.get() as f64 / HALF_MISSES;
        (bytes < cache.get() as f64 / 2.0).then_some(Left { half_misses, bytes })
    }

    /// The most that is left where this working set does not fit it, so that its hops go to memory in part; `None` where it fits: then
    /// more hops hit over the next working set, or a smaller one beyond the smaller cache is on the same plateau.
    pub fn left_below(&self, within: Chase, memory: f64, smaller: Bytes) -> Option<Left> {
        let mut steps = self.of(Locality::TlbFriendly);
        steps.retain(|chase| chase.size.get() >= 2 * smaller.get());
        let [first, next, ..] = steps[..] else {
            return None;
        };
        if first.size < within.size {
            return None;
        }
        let larger = next.size.get() as f64 / within.size.get() as f64;
        let fall = |times: f64| hits(times) / hits(larger * times);
        let fell = |next: f64| (memory - within.ns) / (memory - next).max(f64::MIN_POSITIVE);
        if fell(next.ns) <= fall(1.0) {
            return None;
        }
        let at_least = fell(next.ns - next.half);
        let (mut times, mut above) = (1.0, MOST_TIMES);
        for _ in 0..ROUNDS {
            let middle = f64::midpoint(times, above);
            match fall(middle) < at_least {
                true => times = middle,
                false => above = middle,
            }
        }
        // What the smaller cache holds does not go to memory.
        let bytes = (within.size.get() as f64 / times).max(smaller.get() as f64);
        Some(Left {
            half_misses: Bytes((bytes * HALF_MISSES) as u64),
            bytes,
        })
    }

    /// The most that is left of a cache whose latency no working set shows: several take as long as memory does, from the one that is
    /// returned on.
    pub fn most_left(&self, memory: f64, smaller: Bytes, cache: Bytes) -> Option<Left> {
        let mut inside = self.of(Locality::TlbFriendly);
        inside.retain(|chase| chase.size > smaller && chase.size.get() <= cache.get() / 2);
        let far = |chase: &&Chase| chase.ns * PLATEAU >= memory;
        let [from, _, ..] = &inside[inside.len() - inside.iter().rev().take_while(far).count()..]
        else {
            return None;
        };
        Some(Left {
            half_misses: from.size,
            bytes: from.size.get() as f64,
        })
    }

    /// The working set, larger than this one, over which a hop takes this time, and over every larger one longer.
    fn crossing(&self, ns: f64, above: Bytes) -> Option<Bytes> {
        let steps = self.of(Locality::TlbFriendly);
        let at = steps.iter().rposition(|chase| chase.ns <= ns)?;
        let (before, after) = (steps.get(at)?, steps.get(at + 1)?);
        if after.size <= above {
            return None;
        }
        let part = ((ns - before.ns) / (after.ns - before.ns)).clamp(0.0, 1.0);
        let (low, high) = (
            (before.size.get() as f64).ln(),
            (after.size.get() as f64).ln(),
        );
        Some(Bytes((low + part * (high - low)).exp() as u64))
    }

    /// What walks of pages of some sizes add to a hop, in ns, one figure for each working set that the TLBs do not reach. Of
    /// a guest, those whose page tables fit half of L2: the others wait for them as well.
    pub fn walks(&self, host: &Host, pages: impl Fn(Bytes) -> bool) -> Vec<f64> {
        let near = self.of(Locality::TlbFriendly);
        let walked = self.of(Locality::Random).into_iter().filter_map(|random| {
            let page = random.page.filter(|page| pages(*page))?;
            let covers = if self.is_guest {
                page.min(HOST_PAGE)
            } else {
                page
            };
            let reach = u64::from(*host.tlb.entries) * covers.get();
            // Small pages are scattered over the guest's memory, and take entries in as many lines of the hypervisor's.
            let host_entries = if page > HOST_PAGE { ENTRIES } else { 1 };
            let lines = |page: Bytes, entries: u64| random.size.get() / page.get() / entries;
            let tables = LINE_BYTES * (lines(page, ENTRIES) + lines(HOST_PAGE, host_entries));
            if random.size.get() < 2 * reach || self.is_guest && tables > host.l2.size.get() / 2 {
                return None;
            }
            let same = |chase: &&Chase| chase.size == random.size && chase.page == random.page;
            let friendly = near.iter().find(same)?;
            let missed = 1.0 - reach as f64 / random.size.get() as f64;
            Some((random.ns - friendly.ns).max(0.0) / missed)
        });
        walked.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_known_from_the_conditions_where_all_are_of_one_size() {
        let page = |text: &str| pages_of(&["pinned to CPU 0".into(), text.into()]);
        assert_eq!(page("pages of 4 KiB"), Some(Bytes::kib(4)));
        assert_eq!(page("pages of 2 MiB (transparent)"), Some(Bytes::mib(2)));
        assert_eq!(page("pages of 2 MiB (reserved)"), Some(Bytes::mib(2)));
        let part =
            "pages of 2 MiB were asked for and make up 40 % (transparent); the rest are of 4 KiB";
        assert_eq!(page(part), None);
    }

    #[test]
    fn a_page_of_no_bytes_is_not_known() {
        let point = serde_json::json!({
            "experiment": "latency", "tier": "dram", "op": "ld", "pattern": "chase_random", "threads": 1,
            "prefetch": false, "samples": 1, "wss_bytes": 1 << 20,
            "ns": { "mean": 90.0, "p50": 90.0, "max": 90.0, "samples": 1 },
        });
        let point: Point = serde_json::from_value(point).unwrap();
        let chase = Chase::of(&point, MachineKind::Sim, Some(Bytes(0))).unwrap();
        assert_eq!(chase.page, None);
    }
}
