//! The micro-workloads of calibration (SupMario, arXiv 2409.14317 §5.6) in real instructions: random pointer
//! chases, stores to memory that was never touched, and lists in address order. Each is counted without its
//! preparation.

use std::hint::black_box;

use weir_model::access::{Locality, Op};
use weir_model::counters::{Counter, CounterSet};
use weir_model::events::EventTable;
use weir_model::machine::MachineError;
use weir_model::units::Bytes;

use crate::memory::{Pages, Policy, Region, Share, base_page};
use crate::perf::{Session, Target};
use crate::pin::Pinned;
use crate::root::Root;
use weir_loops::kernels::{self, Data, LINE, Random, chase};

/// A micro-workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Micro {
    /// Random pointer chains, several at once.
    Chase(Chains),
    /// Page after page of fresh memory: a store to every line, and some multiplications for each line.
    Store {
        /// Multiplications.
        work: u32,
    },
    /// A list in address order, with some multiplications at each node.
    List {
        /// Lines from one node to the next.
        stride: Bytes,
        /// Multiplications.
        work: u32,
    },
}

/// How many chains are chased at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "numbers")]
pub enum Chains {
    One,
    Two,
    Four,
    Eight,
    Sixteen,
}

impl Chains {
    /// Every number of chains.
    pub const ALL: [Chains; 5] = [
        Chains::One,
        Chains::Two,
        Chains::Four,
        Chains::Eight,
        Chains::Sixteen,
    ];

    /// As a number.
    pub const fn number(self) -> usize {
        match self {
            Chains::One => 1,
            Chains::Two => 2,
            Chains::Four => 4,
            Chains::Eight => 8,
            Chains::Sixteen => 16,
        }
    }
}

/// Where and how long they run, and what is counted.
#[derive(Debug)]
pub struct MicroRun<'a> {
    /// The host.
    pub root: &'a Root,
    /// Events of its processor.
    pub table: &'a EventTable,
    /// The counters.
    pub counters: &'a [Counter],
    /// The processor on which they run.
    pub cpu: u32,
    /// Memory of each: larger than the caches.
    pub bytes: Bytes,
    /// Lines that each accesses while it is counted.
    pub accesses: u64,
    /// The seed of the order of a chase.
    pub seed: u64,
}

impl MicroRun<'_> {
    /// Runs a micro-workload with its memory on one node, and counts it.
    ///
    /// # Errors
    /// The processor is not available, or the memory does not exist, or the node has none left.
    pub fn run(
        &self,
        micro: Micro,
        share: &Share,
        policy: &Policy,
    ) -> Result<CounterSet, MachineError> {
        let _pinned = Pinned::to(self.cpu)?;
        let shares = std::slice::from_ref(share);
        match micro {
            Micro::Chase(chains) => {
                let region = Region::allocate(self.bytes, Pages::Transparent, shares, policy)?;
                let mut random = Random::new(self.seed);
                let order = chase::order(self.lines(&region), Locality::Random, &mut random);
                Ok(self.chase(&region, &order, chains))
            }
            Micro::List { stride, work } => {
                let region = Region::allocate(self.bytes, Pages::Transparent, shares, policy)?;
                let apart = (stride.get() as usize / LINE).max(1);
                let lines = 0..self.lines(&region) as u32;
                let order: Vec<u32> = lines.step_by(apart).collect();
                Ok(self.list(&region, &order, work))
            }
            Micro::Store { work } => self.store(shares, policy, work),
        }
    }

    fn lines(&self, region: &Region) -> usize {
        region.bytes().get() as usize / LINE
    }

    /// The counts of this thread while it runs a function.
    fn counted(&self, body: impl FnOnce()) -> CounterSet {
        let mut session = Session::open(
            self.root,
            Some(self.table),
            self.counters,
            &[Target::ThisThread],
        );
        session.start();
        body();
        Session::counters(Some(self.table), &session.total(), false)
    }

    fn chase(&self, region: &Region, order: &[u32], chains: Chains) -> CounterSet {
        match chains {
            Chains::One => self.chase_of::<1>(region, order),
            Chains::Two => self.chase_of::<2>(region, order),
            Chains::Four => self.chase_of::<4>(region, order),
            Chains::Eight => self.chase_of::<8>(region, order),
            Chains::Sixteen => self.chase_of::<16>(region, order),
        }
    }

    fn chase_of<const N: usize>(&self, region: &Region, order: &[u32]) -> CounterSet {
        let base = region.base();
        // SAFETY: `order` has lines of the region, which is writable and this function's alone.
        let first = unsafe { chase::link(base, order) };
        // The same cycle for all chains, entered at different places.
        let mut at: [*mut u8; N] = std::array::from_fn(|chain| {
            let line = order.get(chain * order.len() / N);
            line.map_or(first, |&line| base.wrapping_add(line as usize * LINE))
        });
        let hops = self.accesses / N as u64;
        self.counted(|| {
            for _ in 0..hops {
                for place in &mut at {
                    // SAFETY: every line of the circle holds the address of another one.
                    *place = unsafe { place.cast::<*mut u8>().read() };
                }
            }
            black_box(&at);
        })
    }

    fn list(&self, region: &Region, order: &[u32], work: u32) -> CounterSet {
        // SAFETY: `order` has lines of the region, which is writable and this function's alone.
        let mut at = unsafe { chase::link(region.base(), order) };
        self.counted(|| {
            let mut sum = 1;
            for _ in 0..self.accesses {
                // SAFETY: every line of the circle holds the address of another one.
                at = unsafe { at.cast::<*mut u8>().read() };
                sum = multiplied(sum, work);
            }
            black_box((at, sum));
        })
    }

    fn store(
        &self,
        shares: &[Share],
        policy: &Policy,
        work: u32,
    ) -> Result<CounterSet, MachineError> {
        let page = base_page();
        let lines = page / LINE;
        let pages = (self.accesses as usize / lines).max(1);
        let region = Region::untouched(Bytes((pages * page) as u64), shares, policy)?;
        let kernel = kernels::select(Op::St, None)?;
        let mut data = Data::new(self.seed);
        Ok(self.counted(|| {
            let mut sum = 1;
            for index in 0..pages {
                let first = region.base().wrapping_add(index * page);
                // SAFETY: the page lies within the region, which is writable and this function's alone.
                unsafe { kernel.run(first, lines, &mut data) };
                for _ in 0..lines {
                    sum = multiplied(sum, work);
                }
            }
            black_box(sum);
        }))
    }
}

/// Multiplications, each of which waits for the one before.
#[inline(always)]
fn multiplied(mut value: u64, times: u32) -> u64 {
    for _ in 0..times {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    value
}

#[cfg(test)]
mod tests {
    use weir_model::events::EventLibrary;
    use weir_model::topology::TierName;

    use super::*;

    fn run(micro: Micro) -> CounterSet {
        let library = EventLibrary::builtin();
        let bench = MicroRun {
            root: &Root::live(),
            table: library.get("spr").unwrap(),
            counters: &[Counter::TaskClock, Counter::PageFaults],
            cpu: crate::pin::allowed_cpus().unwrap()[0],
            bytes: Bytes::mib(4),
            accesses: 100_000,
            seed: 1,
        };
        let share = Share {
            tier: TierName::dram(),
            node: Some(0),
            weight: 1,
        };
        bench.run(micro, &share, &Policy::probe()).unwrap()
    }

    #[test]
    fn fresh_memory_is_touched_while_it_is_counted_and_other_memory_before() {
        let chains = Chains::ALL.map(Micro::Chase);
        let lists = [64, 256].map(|stride| Micro::List {
            stride: Bytes(stride),
            work: 2,
        });
        let faults = |micro| run(micro).get(Counter::PageFaults);
        // If this user may not count, each counter has a reason instead.
        let Ok(fresh) = faults(Micro::Store { work: 1 }) else {
            return;
        };
        let pages = 100_000 * LINE / base_page();
        assert!(fresh >= pages as u64, "{fresh} of {pages}");
        for micro in chains.into_iter().chain(lists) {
            let faulted = faults(micro).unwrap_or(0);
            assert!(faulted < 100, "{micro:?}: {faulted}");
        }
    }
}
