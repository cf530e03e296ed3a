//! What dependent loads over growing working sets say of a machine: its clock, latencies of its caches, the part of the
//! last-level cache that a guest has, and page walks.

use weir_model::access::{Locality, Op, Pattern};
use weir_model::document::Point;
use weir_model::machine::MachineKind;
use weir_model::platform::{Host, Provenance};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Cycles, Gigahertz, LINE_BYTES, Nanos};

use super::median;
use super::outcome::FittedParameter;
use super::put::{Put, rounded};
use super::twin::{Twin, whole};

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
            page,
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

/// A level's latency is that of its working set in the middle only if it is at most this part of the next level's.
const A_STEP: f64 = 0.7;
/// Two working sets are on one plateau if the larger one's hops take at most this many times those of the smaller one.
const PLATEAU: f64 = 1.25;
/// A figure of this relative interval says nothing.
const UNCERTAIN: f64 = 0.25;
/// Half of the hops miss a cache of which a line is replaced at random when the working set is this many times its size: a line
/// survives n replacements with exp(-n / lines), and half of the hops replace one (ln 2 / 0.5).
const HALF_MISSES: f64 = 1.386;
/// What a hypervisor maps where it has no larger pages.
const HOST_PAGE: Bytes = Bytes::kib(4);
/// Pages of which a line of page tables has the entries.
const ENTRIES: u64 = 8;

/// Puts what chases say into the files of a machine, of which all else is known.
pub fn apply(chases: &Chases, from: &str, host: &Host, twin: &mut Twin) -> Vec<FittedParameter> {
    let mut put = Put::new(from, twin);
    let l2_hit = caches(chases, host, &mut put);
    walks(chases, host, l2_hit, &mut put);
    put.done
}

/// The clock and the latencies of caches, of which that of L2 is returned.
fn caches(chases: &Chases, host: &Host, put: &mut Put<'_>) -> Nanos {
    let (l1, l2, llc) = (&host.l1, &host.l2, &host.llc);
    let complexes = u64::from(host.uncore.complexes.as_ref().map_or(1, |c| c.count.value));
    // A core fills the cache of its complex alone.
    let reached = Bytes(llc.size.get() / complexes);
    let mut clock = host.core.clock.value;
    if let Some(chase) = chases.within(Bytes(0), *l1.size)
        && matches!(l1.latency.provenance, Provenance::Source(_))
    {
        let hit = l1.latency.value;
        clock = Gigahertz(hit.0 / chase.ns);
        let figure = (clock.get(), clock.get() * chase.half / chase.ns);
        let what = format!("{hit} of an L1 hit over the time of a hop in L1");
        put.value(None, "core.clock", &what, figure, &|ghz| {
            Gigahertz(rounded(ghz)).to_string()
        });
    }
    let mut l2_hit = clock.time(*l2.latency);
    let shared = chases.within(*l2.size, reached);
    if let Some(chase) = chases.within(*l1.size, *l2.size)
        && shared.is_none_or(|next| chase.ns < A_STEP * next.ns)
    {
        l2_hit = Nanos(chase.ns);
        let cycles = (chase.ns * clock.get(), chase.half * clock.get());
        put.value(None, "l2.latency", "a hop in L2", cycles, &|cycles| {
            Cycles((cycles * 10.0).round() / 10.0).to_string()
        });
    }
    let Some(memory) = chases.memory(reached) else {
        return l2_hit;
    };
    let mut hit = llc.latency.get();
    if let Some(chase) = shared.filter(|chase| chase.ns < A_STEP * memory) {
        hit = chase.ns;
        let what = "a hop in the last-level cache";
        put.nanos("llc.latency", what, (chase.ns, chase.half));
    }
    let half_misses = chases.crossing(f64::midpoint(hit, memory), *l2.size);
    // A hypervisor may give its guests a part, and neighbours fill the cache as well.
    if let Some(size) = half_misses.filter(|_| chases.is_guest) {
        let left = size.get() as f64 / HALF_MISSES;
        if left < reached.get() as f64 / 2.0 {
            let unit = u64::from(*llc.slices) * u64::from(*llc.ways) * LINE_BYTES;
            let shown = |bytes: f64| {
                let units = (bytes / unit as f64).round().max(1.0);
                whole(Bytes(units as u64 * unit))
            };
            let what = format!(
                "what is left of {reached} to this guest: half of the hops over {size} go to memory"
            );
            let all = (left * complexes as f64, 0.0);
            put.value(None, "llc.size", &what, all, &shown);
        }
    }
    l2_hit
}

/// What page walks take; of a guest, what the hypervisor's tables add.
fn walks(chases: &Chases, host: &Host, l2_hit: Nanos, put: &mut Put<'_>) {
    let longer = "what a random hop takes longer than one within the reach of the TLBs";
    if !chases.is_guest {
        let walks = chases.walks(host, |page| page == HOST_PAGE);
        if let Some(figure) = spread(&walks) {
            put.nanos("tlb.walk", longer, figure);
        }
        return;
    }
    // With large pages the tables of the guest stay in L1; with small ones two pages are looked up.
    let line = l2_hit.get();
    let large = chases.walks(host, |page| page > HOST_PAGE);
    let small = chases.walks(host, |page| page <= HOST_PAGE);
    let once =
        (large.iter().map(|ns| ns - line)).chain(small.iter().map(|ns| (ns - 2.0 * line) / 2.0));
    let once: Vec<f64> = once.map(|ns| ns.max(0.0)).collect();
    if let Some(figure) = spread(&once) {
        let what = format!("{longer}, without the lines of the tables");
        put.nanos("tlb.nested", &what, figure);
    }
}

/// The median of some values, and half of what they span.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let (least, most) = (
        values.iter().copied().reduce(f64::min)?,
        values.iter().copied().reduce(f64::max)?,
    );
    Some((median(values), (most - least) / 2.0))
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
    fn within(&self, before: Bytes, cache: Bytes) -> Option<Chase> {
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
    fn memory(&self, llc: Bytes) -> Option<f64> {
        let beyond = self.of(Locality::TlbFriendly).into_iter();
        let beyond = beyond.filter(|chase| chase.size.get() >= llc.get().saturating_mul(4));
        let all: Vec<f64> = beyond.map(|chase| chase.ns).collect();
        (!all.is_empty()).then(|| median(&all))
    }

    /// The working set, larger than this one, over which a hop takes this time.
    fn crossing(&self, ns: f64, above: Bytes) -> Option<Bytes> {
        let steps = self.of(Locality::TlbFriendly);
        let at = steps
            .iter()
            .position(|chase| chase.size > above && chase.ns > ns)?;
        let (after, before) = (steps.get(at)?, steps.get(at.checked_sub(1)?)?);
        let part = ((ns - before.ns) / (after.ns - before.ns)).clamp(0.0, 1.0);
        let (low, high) = (
            (before.size.get() as f64).ln(),
            (after.size.get() as f64).ln(),
        );
        Some(Bytes((low + part * (high - low)).exp() as u64))
    }

    /// What walks of pages of some sizes add to a hop, in ns, one figure for each working set that the TLBs do not reach. Of
    /// a guest, those whose page tables fit half of L2: the others wait for them as well.
    fn walks(&self, host: &Host, pages: impl Fn(Bytes) -> bool) -> Vec<f64> {
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
    use weir_model::platform::{Library, Platform};

    use super::*;
    use crate::fit::outcome::How;

    fn chase(locality: Locality, size: Bytes, page: Bytes, ns: f64) -> Chase {
        Chase {
            locality,
            size,
            page: Some(page),
            ns,
            half: 0.0,
        }
    }

    fn applied(chases: &Chases) -> impl Fn(&str) -> Option<f64> + use<> {
        let library = Library::builtin();
        let platform: Platform = library.compose("miku-b").unwrap();
        let mut twin = Twin::based_on(&library, &platform, "mine").unwrap();
        let done = apply(chases, "run 1", &platform.host, &mut twin);
        assert!(done.iter().all(|p| p.how == How::Measured));
        twin.compose(&library).unwrap();
        move |key| {
            let found = done.iter().find(|p| p.key == key)?;
            found.value.split(' ').next()?.parse().ok()
        }
    }

    /// Hops over a working set, of which the last-level cache keeps what random replacement keeps.
    fn staircase(llc: Bytes, hit: f64, memory: f64) -> Vec<Chase> {
        let sizes = (2..21).map(|n| Bytes::kib(1 << n));
        let of = |size: Bytes| {
            let mut missed = 1.0;
            for _ in 0..1000 {
                missed = 1.0 - (-missed * size.get() as f64 / llc.get() as f64).exp();
            }
            let ns = match size {
                size if size <= Bytes::kib(32) => 1.25,
                size if size <= Bytes::mib(1) => 4.375,
                _ => hit + missed * (memory - hit),
            };
            chase(Locality::TlbFriendly, size, Bytes::kib(4), ns)
        };
        sizes.map(of).collect()
    }

    #[test]
    fn latencies_of_caches_and_the_clock_are_those_of_the_staircase() {
        let mut chases = Chases {
            all: staircase(Bytes::mib(32), 15.0, 120.0),
            is_guest: false,
        };
        let value = applied(&chases);
        // An L1 hit takes four cycles.
        assert_eq!(
            (value("core.clock"), value("l2.latency")),
            (Some(3.2), Some(14.0))
        );
        assert!((value("llc.latency").unwrap() - 15.0).abs() < 1.5);
        assert_eq!(value("llc.size"), None);
        // What scatters says nothing.
        for chase in &mut chases.all {
            chase.half = chase.ns;
        }
        assert_eq!(applied(&chases)("l2.latency"), None);
    }

    #[test]
    fn a_guest_has_a_part_of_the_cache() {
        let part = Bytes::mib(3);
        let chases = |is_guest| Chases {
            all: staircase(part, 15.0, 120.0),
            is_guest,
        };
        let found = applied(&chases(true))("llc.size").unwrap();
        // Each of the complexes has as much.
        let mib = found / 1024.0 / 12.0;
        assert!((mib / 3.0 - 1.0).abs() < 0.25, "{mib} MiB");
        assert_eq!(applied(&chases(false))("llc.size"), None);
    }

    #[test]
    fn both_sizes_of_pages_say_what_a_hypervisors_tables_add() {
        // Measured in a guest whose hypervisor has pages of 4 KiB, over 16 MiB, 64 MiB, 256 MiB and 1 GiB.
        let added = [
            (Bytes::mib(2), [37.0, 50.0, 68.0, 221.0]),
            (Bytes::kib(4), [81.0, 170.0, 254.0, 338.0]),
        ];
        let figures = |pages: &[(Bytes, [f64; 4])]| {
            let of = |&(page, ns): &(Bytes, [f64; 4])| {
                ns.into_iter()
                    .zip([16, 64, 256, 1024])
                    .flat_map(move |(ns, mib)| {
                        [
                            chase(Locality::TlbFriendly, Bytes::mib(mib), page, 100.0),
                            chase(Locality::Random, Bytes::mib(mib), page, 100.0 + ns),
                        ]
                    })
            };
            pages.iter().flat_map(of).collect()
        };
        let found = |is_guest, pages: &[(Bytes, [f64; 4])]| {
            let all = figures(pages);
            applied(&Chases { all, is_guest })
        };
        for pages in [&added[..1], &added[..]] {
            let nested = found(true, pages)("tlb.nested").unwrap();
            assert!((30.0..80.0).contains(&nested), "{nested} ns");
            assert_eq!(found(true, pages)("tlb.walk"), None);
        }
        // Large pages within the reach of the TLBs say nothing of walks.
        assert_eq!(found(false, &added[..1])("tlb.walk"), None);
        assert!(found(false, &added)("tlb.walk").unwrap() > 200.0);
    }

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
}
