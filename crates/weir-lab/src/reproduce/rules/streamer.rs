//! STREAM on both sockets' DDR5 and on CXL, through libpmemobj and by nodes (STREAMer, arXiv 2308.10714).
//!
//! The paper's App-Direct is loads and stores in a mapped pool, without a flush. What it adds in the model is the
//! program: libpmemobj translates a handle to an address at each access of an element.

use weir_model::access::Op;
use weir_model::topology::{Affinity, TierName};
use weir_model::units::Nanos;

use crate::PointSpec;
use crate::reproduce::figures::{difference, excess_pct, ratio, shortfall_pct};
use crate::reproduce::points::gbps;
use crate::reproduce::rule::{Figure, Rule};
use crate::studies::stream::{Kernel, arrays, load};

const DDR5: &str = "streamer";
const DDR4: &str = "streamer-ddr4";

/// Time of the translations of a line's eight elements. `D_RW` of libpmemobj 1.x (`pmemobj_direct_inline` of
/// `libpmemobj/base.h`) is 16 instructions by `gcc -O`; they take four cycles at four in a cycle, and one thread of
/// such a processor runs at 3.8 GHz.
const TRANSLATION: Nanos = Nanos(8.0 * 16.0 / 4.0 / 3.8);

const SETS: &str = "sets the peak of its memory";
const TRANSLATES: &str = "App-Direct is the time of libpmemobj's translation of each handle, as its instructions take it";
const ONE_FAR: &str = "ours has more lines outstanding from one thread on far memory than the paper's: no public source has \
     the limit of the prefetchers there";
const POOL: &str =
    "ours has nothing that App-Direct costs where memory and not the program is the limit";
const FABRIC: &str = "what the other socket's DDR5 would have as DDR4, less what CXL has";
const UNEVEN: &str = "the paper's Scale and Triad are a fifth slower here than Copy and Add with the same traffic, which \
     ours are not";
const HALF_OR_TWO_THIRDS: &str = "the paper also says that DDR4 gives half of what DDR5 does (STR-006), which is a gain of 100 %; ours is between";
const UNEVEN_BOTH: &str = "the paper's Scale and Triad are 15 and 11 % slower here than Copy and Add with the same traffic, which \
     ours are not";

/// Where arrays are and threads run.
#[derive(Clone, Copy)]
struct Setting {
    platform: &'static str,
    tier: &'static str,
    /// Whether threads fill the first socket and go on to the other.
    both: bool,
    /// Whether the arrays are in a pool of libpmemobj.
    pool: bool,
}

const NUMA0: Setting = Setting {
    platform: DDR5,
    tier: "dram",
    both: false,
    pool: false,
};
const NUMA1: Setting = Setting {
    tier: "remote",
    ..NUMA0
};
const NUMA2: Setting = Setting {
    tier: "cxl0",
    ..NUMA0
};
const DDR4_0: Setting = Setting {
    platform: DDR4,
    ..NUMA0
};
const DDR4_1: Setting = Setting {
    platform: DDR4,
    ..NUMA1
};

impl Setting {
    const fn on_both(self) -> Self {
        Self { both: true, ..self }
    }

    const fn in_pool(self) -> Self {
        Self { pool: true, ..self }
    }

    /// What STREAM prints for a kernel, in MB/s.
    fn stream(self, kernel: Kernel, threads: u32) -> Figure {
        Figure::new("MB/s", move |results| {
            let opened = results.on(self.platform.into())?;
            let tier = (opened.topology.tier(&TierName::named(self.tier)))
                .ok_or_else(|| format!("platform {} has no tier {}", self.platform, self.tier))?;
            let set = arrays(&opened.topology, tier, kernel, threads);
            let mut load = load(&tier.name, Op::St, kernel, threads, set);
            // The first threads are on the first socket either way.
            if self.both && threads as usize > opened.topology.cores.len() {
                load = load.on_both_sockets(Affinity::Close);
            }
            if self.pool {
                load = load.pausing(TRANSLATION);
            }
            let spec = PointSpec::alone("stream", load);
            results.read(self.platform.into(), &spec, |done| Ok(gbps(done)? * 1e3))
        })
    }

    /// The mean of the four kernels, in GB/s.
    fn mean(self, threads: u32) -> Figure {
        let kernels = Kernel::ALL.map(|kernel| self.stream(kernel, threads));
        Figure::new("GB/s", move |results| {
            let sum: f64 = (kernels.iter())
                .map(|kernel| kernel.value(results))
                .sum::<Result<f64, String>>()?;
            Ok(sum / kernels.len() as f64 / 1e3)
        })
    }

    /// Rows of all kernels with these threads, in the order of the authors' files, from row `first` on.
    fn rows(self, first: u32, threads: &'static [u32]) -> impl Iterator<Item = Rule> {
        let points = threads
            .iter()
            .flat_map(|&n| Kernel::ALL.map(|kernel| (kernel, n)));
        (first..).zip(points).map(move |(row, (kernel, threads))| {
            let id = format!("STR-{row}");
            let figure = self.stream(kernel, threads);
            if SET_BY.contains(&row) {
                return Rule::calibrated(id, figure).noting(SETS);
            }
            let note = match (self.tier, self.platform, threads) {
                ("remote", DDR4, _) => UNEVEN,
                ("dram", DDR4, 20) => UNEVEN_BOTH,
                ("remote" | "cxl0", _, 1) => ONE_FAR,
                ("cxl0", _, _) if self.pool => POOL,
                (_, _, 1) if self.pool => TRANSLATES,
                _ => "",
            };
            Rule::predicted(id, figure).noting(note)
        })
    }
}

/// The rows that set the peak of a memory: Add of ten threads on the other socket's DDR5, CXL and local DDR5.
const SET_BY: [u32; 3] = [158, 182, 194];

pub(super) fn rules() -> Vec<Rule> {
    let one: &[u32] = &[1, 4, 10];
    let all: &[u32] = &[1, 4, 10, 20];
    let pool = [NUMA0, NUMA1, NUMA2].map(Setting::in_pool);
    let mut rules: Vec<Rule> = pool[0].rows(100, one).collect();
    rules.extend(pool[1].rows(112, one));
    rules.extend(pool[2].rows(124, one));
    rules.extend(pool[0].on_both().rows(136, &[20]));
    rules.extend(pool[1].on_both().rows(140, &[20]));
    rules.extend(pool[2].on_both().rows(144, &[20]));
    rules.extend(NUMA1.rows(148, one));
    rules.extend(DDR4_1.rows(160, one));
    rules.extend(NUMA2.rows(172, one));
    rules.extend(NUMA0.on_both().rows(184, all));
    rules.extend(DDR4_0.on_both().rows(200, all));
    rules.extend(NUMA2.on_both().rows(216, &[20]));
    rules.extend(claims(pool.map(|setting| setting.mean(10))));
    rules
}

/// What the text concludes, of the mean of the kernels with ten threads.
fn claims([local, other, cxl]: [Figure; 3]) -> Vec<Rule> {
    let (numa, ddr4) = (NUMA0.mean(10), DDR4_0.mean(10));
    let pct = |of: &Figure| {
        let of = of.clone();
        Figure::new("%", move |results| Ok(of.value(results)? * 100.0))
    };
    let both = |setting: Setting| setting.on_both().mean(20);
    let lead = difference(&NUMA2.mean(10), &DDR4_1.mean(10));
    let as_ddr4 = {
        let (other, share) = (other.clone(), ratio(&ddr4, &numa));
        Figure::new("GB/s", move |results| {
            Ok(other.value(results)? * share.value(results)?)
        })
    };
    let in_pool = |setting: Setting| both(setting.in_pool());
    vec![
        Rule::predicted("STR-005", shortfall_pct(&cxl, &local)),
        Rule::predicted("STR-006", pct(&ratio(&ddr4, &numa))),
        Rule::predicted("STR-007", local.clone()),
        Rule::predicted("STR-008", shortfall_pct(&other, &local)),
        Rule::predicted("STR-009", shortfall_pct(&cxl, &other)).noting(POOL),
        Rule::predicted("STR-010", excess_pct(&numa, &ddr4)).noting(HALF_OR_TWO_THIRDS),
        Rule::predicted("STR-011", difference(&as_ddr4, &cxl)).noting(FABRIC),
        Rule::predicted("STR-012", shortfall_pct(&in_pool(NUMA2), &in_pool(NUMA0))),
        Rule::predicted("STR-013", lead.clone()),
        Rule::predicted("STR-014", ratio(&NUMA1.mean(10), &DDR4_1.mean(10))),
        Rule::predicted("STR-015", shortfall_pct(&cxl, &NUMA2.mean(10))).noting(POOL),
        Rule::predicted("STR-016", ratio(&both(DDR4_0), &both(NUMA2))),
        Rule::predicted("STR-017", lead),
        Rule::predicted("STR-018", ratio(&numa, &ddr4)),
        Rule::predicted("STR-019", shortfall_pct(&NUMA2.mean(10), &numa)),
    ]
}
