//! Regions: named parts of a tenant's memory, where their pages are, and what moved between tiers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Pattern;
use crate::tenant::{Placement, Stream, Tenant, Work};
use crate::topology::TierName;
use crate::units::{Bytes, LINE_BYTES, Nanos};

/// A named part of a tenant's memory: an object of a program, an array of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Its name, unique in the tenant.
    pub name: String,
    /// Its size, of all threads together.
    pub bytes: Bytes,
    /// Where its pages are when the tenant starts.
    pub placement: Placement,
}

/// The region that a stream's instruction touches.
pub const DATA: &str = "data";
/// The region from which a stream loads lines along with those.
pub const SOURCE: &str = "source";

/// Pages of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// All of them.
    All,
    /// Those of a region.
    Region(String),
    /// Those of a region in a range. A page belongs to the range if its first byte does.
    Range {
        /// The region.
        region: String,
        /// From this byte of the region.
        offset: Bytes,
        /// Bytes in the range.
        bytes: Bytes,
    },
}

/// The pages of one region in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionPages {
    /// The region.
    pub region: String,
    /// The tiers that have or had pages of it, in the machine's order.
    pub tiers: Vec<TierPages>,
}

/// The pages of a region on one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TierPages {
    /// The tier.
    pub tier: TierName,
    /// Bytes in pages that are there at the end of the window.
    pub resident: Bytes,
    /// Bytes in pages that an action moved there in the window.
    pub moved_in: Bytes,
    /// Bytes in pages that an action moved away in the window.
    pub moved_out: Bytes,
}

/// What a program did in one region in one window, all its threads together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionUse {
    /// The region.
    pub region: String,
    /// Lines that were read from memory, for loads, for stores and by prefetchers.
    pub read: u64,
    /// Lines that were written to memory.
    pub written: u64,
    /// Time of all threads in which nothing was dispatched, because the oldest load, or the oldest store of a full store
    /// buffer, waited for a line of this region from memory. Processors sample it as the retire latency of a load (Intel,
    /// Software Developer's Manual, volume 3B, "PEBS retire latency").
    pub waited: Nanos,
    /// Loads and stores that were waited for.
    pub waits: u64,
}

impl RegionUse {
    /// Adds the regions of another window or phase.
    pub fn merge(all: &mut Vec<Self>, more: &[Self]) {
        for more in more {
            match all.iter_mut().find(|own| own.region == more.region) {
                Some(own) => {
                    own.read += more.read;
                    own.written += more.written;
                    own.waited = own.waited + more.waited;
                    own.waits += more.waits;
                }
                None => all.push(more.clone()),
            }
        }
    }

    /// This many times as much.
    pub fn times(&self, factor: f64) -> Self {
        let times = |n: u64| (n as f64 * factor).round() as u64;
        Self {
            region: self.region.clone(),
            read: times(self.read),
            written: times(self.written),
            waited: self.waited * factor,
            waits: times(self.waits),
        }
    }
}

impl RegionPages {
    /// Bytes that are resident on a tier.
    pub fn resident(&self, tier: &TierName) -> Bytes {
        let there = self.tiers.iter().find(|pages| pages.tier == *tier);
        there.map_or(Bytes(0), |pages| pages.resident)
    }

    /// Bytes of all tiers.
    pub fn total(&self) -> Bytes {
        self.tiers.iter().map(|pages| pages.resident).sum()
    }

    /// The window after this one, as one with it: what moved is added, what is resident is the later.
    pub fn extend(&mut self, next: Self) {
        for mut later in next.tiers {
            match self.tiers.iter_mut().find(|own| own.tier == later.tier) {
                Some(own) => {
                    later.moved_in = Bytes(own.moved_in.get() + later.moved_in.get());
                    later.moved_out = Bytes(own.moved_out.get() + later.moved_out.get());
                    *own = later;
                }
                None => self.tiers.push(later),
            }
        }
    }
}

impl Tenant {
    /// Its regions, where it says itself what they are: of a stream what it touches ([`DATA`]) and what it
    /// loads along with that ([`SOURCE`]), of a program those of its description. The regions of a
    /// command and of a scope are what the machine finds, by the names that it gives them.
    pub fn regions(&self) -> Vec<Region> {
        match &self.work {
            Work::Stream(stream) => self.of_stream(stream),
            Work::Program(program) => {
                let region = |(name, bytes): (&str, Bytes)| Region {
                    name: name.to_owned(),
                    bytes,
                    placement: self.placement_of(name).clone(),
                };
                program.memory().into_iter().map(region).collect()
            }
            Work::Command(_) | Work::Scope(_) => Vec::new(),
        }
    }

    /// Where the pages of a region are when the tenant starts.
    pub fn placement_of(&self, region: &str) -> &Placement {
        if let (
            SOURCE,
            Work::Stream(Stream {
                reads: Some(reads), ..
            }),
        ) = (region, &self.work)
        {
            return &reads.from;
        }
        self.placements.get(region).unwrap_or(&self.placement)
    }

    fn of_stream(&self, stream: &Stream) -> Vec<Region> {
        let threads = match stream.pattern {
            _ if stream.op.is_storage() => return Vec::new(),
            Pattern::SharedLine => 1,
            _ => self.cores.len() as u64,
        };
        let region = |name: &str, lines: u64| Region {
            name: name.to_owned(),
            bytes: Bytes((lines * LINE_BYTES).saturating_mul(threads)),
            placement: self.placement_of(name).clone(),
        };
        let all = stream.working_set.lines();
        let Some(reads) = &stream.reads else {
            return vec![region(DATA, all)];
        };
        let (loaded, touched) = (u128::from(reads.lines), u128::from(reads.per));
        let own = (u128::from(all) * touched / (loaded + touched).max(1)) as u64;
        vec![region(DATA, own), region(SOURCE, all - own)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::access::{Dataflow, Op};
    use crate::tenant::Reads;

    fn pages(tier: u32, resident: u64, moved_in: u64, moved_out: u64) -> TierPages {
        TierPages {
            tier: TierName::cxl(tier as usize),
            resident: Bytes(resident),
            moved_in: Bytes(moved_in),
            moved_out: Bytes(moved_out),
        }
    }

    proptest! {
        #[test]
        fn the_regions_of_a_stream_are_its_working_set(
            lines in 2u64..1 << 40,
            (loaded, touched) in (1u32..256, 1u32..256),
            threads in 1u32..64,
        ) {
            let tier = TierName::dram();
            let set = Bytes(lines * LINE_BYTES);
            let tenant = Tenant::on_first_cores(Op::St, Pattern::Sequential, &tier, threads, set);
            let all = lines * LINE_BYTES * u64::from(threads);
            prop_assert_eq!(tenant.regions()[0].bytes, Bytes(all));
            let from = Placement::Bind(TierName::cxl(0));
            let mixed = tenant.with_stream(|s| {
                s.reads = Some(Reads {
                    lines: loaded,
                    per: touched,
                    from: from.clone(),
                    dataflow: Dataflow::Apart,
                });
            });
            let regions = mixed.regions();
            prop_assert_eq!(regions.iter().map(|r| r.bytes).sum::<Bytes>(), Bytes(all));
            prop_assert_eq!(&regions[1].placement, &from);
            // Of a round's lines each region has its part, to a line.
            let [own, source] = [0, 1].map(|n| i128::from(regions[n].bytes.lines() / u64::from(threads)));
            let off = own * i128::from(loaded) - source * i128::from(touched);
            prop_assert!(off.abs() < i128::from(loaded + touched), "{own} {source}");
        }

        #[test]
        fn windows_that_follow_each_other_balance_as_one(
            moves in prop::collection::vec((0u32..4, 0u32..4, 0u64..1000), 1..20),
        ) {
            let mut resident = [10_000u64; 4];
            let mut all: Option<RegionPages> = None;
            for (from, to, bytes) in moves {
                let bytes = bytes.min(resident[from as usize]);
                resident[from as usize] -= bytes;
                resident[to as usize] += bytes;
                let of = |tier: u32| {
                    let moved = |is: bool| if is { bytes } else { 0 };
                    pages(tier, resident[tier as usize], moved(tier == to), moved(tier == from))
                };
                let window = RegionPages { region: "a".into(), tiers: (0..4).map(of).collect() };
                match &mut all {
                    Some(all) => all.extend(window),
                    None => all = Some(window),
                }
            }
            let all = all.unwrap_or_default();
            prop_assert_eq!(all.total(), Bytes(40_000));
            for pages in &all.tiers {
                let (now, came) = (pages.resident.get(), pages.moved_in.get());
                prop_assert_eq!(now + pages.moved_out.get(), 10_000 + came);
            }
        }
    }

    #[test]
    fn twice_the_use_is_that_of_two_windows() {
        let of = |region: &str| RegionUse {
            region: region.into(),
            read: 1,
            written: 2,
            waited: Nanos(3.0),
            waits: 4,
        };
        let mut all = vec![of("a")];
        RegionUse::merge(&mut all, &[of("a"), of("b")]);
        assert_eq!(all, [of("a").times(2.0), of("b")]);
        assert_eq!((all[0].waited, all[0].waits), (Nanos(6.0), 8));
    }

    #[test]
    fn a_region_is_placed_by_its_own_word_first() {
        let tier = TierName::dram();
        let set = Bytes::mib(1);
        let mut tenant = Tenant::on_first_cores(Op::Ld, Pattern::Sequential, &tier, 1, set);
        assert_eq!(tenant.placement_of(DATA), &Placement::Bind(tier));
        tenant.placements.insert(DATA.into(), Placement::FirstTouch);
        assert_eq!(tenant.regions()[0].placement, Placement::FirstTouch);
        let stored = tenant.with_stream(|s| s.op = Op::SeqRead);
        assert!(stored.regions().is_empty(), "a storage device has no pages");
    }
}
