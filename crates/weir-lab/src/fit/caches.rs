//! What a staircase of latencies shows of a machine: its clock, the latencies of its caches, the part of the last-level cache
//! that a guest has, and page walks.

use weir_model::platform::{Host, Provenance};
use weir_model::units::{Bytes, Cycles, Gigahertz, LINE_BYTES, Nanos};

use super::chase::{A_STEP, Chases, HOST_PAGE};
use super::median;
use super::outcome::FittedParameter;
use super::put::{Put, rounded};
use super::twin::{Twin, whole};

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
        put.nanos(None, "llc.latency", what, (chase.ns, chase.half));
    }
    let left = chases.left((hit, memory), *l2.size, reached);
    if let Some(left) = left.filter(|_| chases.is_guest) {
        let unit = u64::from(*llc.slices) * u64::from(*llc.ways) * LINE_BYTES;
        let shown = |bytes: f64| {
            let units = (bytes / unit as f64).round().max(1.0);
            whole(Bytes(units as u64 * unit))
        };
        let what = format!(
            "what is left of {reached} to this guest: half of the hops over {} go to memory",
            left.half_misses
        );
        let all = (left.bytes * complexes as f64, 0.0);
        put.value(None, "llc.size", &what, all, &shown);
    }
    l2_hit
}

/// What page walks take; of a guest, what the hypervisor's tables add.
fn walks(chases: &Chases, host: &Host, l2_hit: Nanos, put: &mut Put<'_>) {
    let longer = "what a random hop takes longer than one within the reach of the TLBs";
    if !chases.is_guest {
        let walks = chases.walks(host, |page| page == HOST_PAGE);
        if let Some(figure) = spread(&walks) {
            put.nanos(None, "tlb.walk", longer, figure);
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
        put.nanos(None, "tlb.nested", &what, figure);
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

#[cfg(test)]
mod tests {
    use weir_model::access::Locality;
    use weir_model::platform::{Library, Platform};

    use super::*;
    use crate::fit::chase::Chase;
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
}
