//! The latency of a load from the fast tier: dependent loads of this program's own, of lines that it has just
//! flushed, in short bursts spread over each window.
//!
//! It is the only reading without counters. It shows that the fast tier is slow; it does not show whose
//! requests cause that, nor how long those for the slow tier stay. A window costs [`BURSTS`] times [`LOADS`]
//! flushes and loads, and one wake-up per burst.

use weir_model::capability::Unavailable;
use weir_model::machine::MachineError;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};

use crate::clock::Clock;
use crate::memory::{Pages, Policy, Region, Share};
use crate::pin::{self, Pinned};
use crate::root::Root;
use crate::topology::list;
use weir_loops::kernels::{self, LINE, Random, chase};

/// Bursts in a window: a tenant that is limited by processor time runs for a part of each period, and one
/// burst would see either that part or the other.
pub(crate) const BURSTS: u32 = 8;
/// Loads of a burst, each of which waits for the one before.
const LOADS: usize = 32;
/// Bursts of which the shortest is returned.
const TRIES: u32 = 64;
/// From one line of the chain to its neighbour: beyond the pair of lines that processors fetch together.
const APART: usize = 4 * LINE;
/// A burst must take longer than this for each load: a line from a cache was not flushed.
const SHORTEST: Nanos = Nanos(1.0);

/// A chain of pointers on the fast tier, and the latencies of its loads in this window.
#[derive(Debug)]
pub(crate) struct Probe {
    /// The memory of the chains, which `chains` point into.
    region: Region,
    /// Lines of each burst's chain, in the order in which they are loaded.
    chains: Vec<Vec<usize>>,
    next: usize,
    clock: Clock,
    bursts: Vec<Nanos>,
    /// Keeps this thread near the memory.
    _near: Option<Pinned>,
}

impl Probe {
    /// Memory on the node of the fast tier, with the calling thread on its processors.
    ///
    /// # Errors
    /// The memory is not available there, or this thread cannot be moved there.
    pub fn open(root: &Root, node: Option<u32>) -> Result<Self, Unavailable> {
        let unavailable = |error: MachineError| Unavailable::because(error.to_string());
        let share = Share {
            tier: TierName::dram(),
            node,
            weight: 1,
        };
        let bytes = Bytes((BURSTS as usize * LOADS * APART) as u64);
        let policy = Policy::probe();
        let region =
            Region::allocate(bytes, Pages::Base, &[share], &policy).map_err(unavailable)?;
        let near = match node {
            Some(node) => near(root, node)?,
            None => None,
        };
        let mut random = Random::new(bytes.get());
        // Each chain has lines of every page.
        let chain = |burst: usize| {
            let order = chase::order(LOADS, weir_model::access::Locality::Random, &mut random);
            let line = |&i: &u32| (i as usize * BURSTS as usize + burst) * APART;
            order.iter().map(line).collect()
        };
        let chains: Vec<Vec<usize>> = (0..BURSTS as usize).map(chain).collect();
        for chain in &chains {
            for (&here, &to) in chain.iter().zip(chain.iter().skip(1).chain(chain.first())) {
                let (here, to) = (
                    region.base().wrapping_add(here),
                    region.base().wrapping_add(to),
                );
                // SAFETY: both are lines of the region, aligned, and not used by anything else.
                unsafe { here.cast::<*mut u8>().write(to) };
            }
        }
        Ok(Self {
            region,
            chains,
            next: 0,
            clock: Clock::best(),
            bursts: Vec::with_capacity(BURSTS as usize),
            _near: near,
        })
    }

    /// One burst. A burst that the kernel interrupted does not count.
    pub fn burst(&mut self) {
        let chain = &self.chains[self.next % self.chains.len()];
        self.next += 1;
        let line = |offset: usize| self.region.base().wrapping_add(offset);
        for &offset in chain {
            // SAFETY: a line of the region, which is mapped.
            unsafe { kernels::flush(line(offset)) };
        }
        let before = pin::preemptions();
        let began = self.clock.start();
        // SAFETY: the chain is closed, and each of its lines holds the address of the next.
        let last = unsafe { kernels::hops(line(chain[0]), LOADS / 8) };
        let ended = self.clock.stop();
        std::hint::black_box(last);
        if pin::preemptions() != before || self.bursts.len() == self.bursts.capacity() {
            return;
        }
        let each = self.clock.time(ended.saturating_sub(began)) / LOADS as f64;
        if each > SHORTEST {
            self.bursts.push(each);
        }
    }

    /// The shortest of many bursts, now.
    ///
    /// # Errors
    /// Every one of them was interrupted.
    pub fn shortest(&mut self) -> Result<Nanos, Unavailable> {
        let mut shortest: Option<Nanos> = None;
        for _ in 0..TRIES {
            self.bursts.clear();
            self.burst();
            let took = self.bursts.first().copied();
            shortest = [shortest, took].into_iter().flatten().reduce(Nanos::min);
        }
        self.bursts.clear();
        shortest.ok_or_else(broken_off)
    }

    /// The mean of this window's bursts without the longest, in which the processor may have done something
    /// else.
    ///
    /// # Errors
    /// There were too few.
    pub fn window(&mut self) -> Result<Nanos, Unavailable> {
        self.bursts.sort_by(|a, b| a.get().total_cmp(&b.get()));
        let kept = self.bursts.len().saturating_sub(1);
        let sum: f64 = self.bursts.drain(..).take(kept).map(Nanos::get).sum();
        if kept == 0 {
            return Err(broken_off());
        }
        Ok(Nanos(sum / kept as f64))
    }
}

fn broken_off() -> Unavailable {
    Unavailable::because("the kernel interrupted every burst of loads")
}

/// The calling thread on the processors of a node, as far as it may use them.
fn near(root: &Root, node: u32) -> Result<Option<Pinned>, Unavailable> {
    let cpus = root.text(&format!("/sys/devices/system/node/node{node}/cpulist"));
    let cpus = list::parse(cpus.get()?)?;
    let allowed = pin::allowed_cpus()?;
    let here: Vec<u32> = (allowed.iter().copied())
        .filter(|cpu| cpus.contains(cpu))
        .collect();
    if here.is_empty() {
        return Err(Unavailable::because(format!(
            "this program may run on none of the processors {} of the fast tier's node {node}",
            list::format(&cpus)
        )));
    }
    if here == allowed {
        return Ok(None);
    }
    let pinned = Pinned::to_any(&here);
    pinned
        .map(Some)
        .map_err(|error| Unavailable::because(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_timed_and_a_window_is_begun_anew() {
        let mut probe = Probe::open(&Root::live(), None).unwrap();
        assert!(probe.window().is_err(), "nothing was tried yet");
        for _ in 0..64 {
            probe.burst();
        }
        let seen = probe.window().unwrap();
        // From a line in a near cache to an emulated machine.
        assert!((1.0..1e6).contains(&seen.get()), "{seen}");
        assert!(probe.window().is_err(), "what was reported is gone");
    }

    #[test]
    fn every_chain_visits_each_of_its_lines_once_and_no_other() {
        let probe = Probe::open(&Root::live(), None).unwrap();
        let mut all: Vec<usize> = probe.chains.concat();
        all.sort_unstable();
        let lines: Vec<usize> = (0..BURSTS as usize * LOADS).map(|n| n * APART).collect();
        assert_eq!(all, lines);
        for chain in &probe.chains {
            let (mut at, mut seen) = (probe.region.base(), Vec::new());
            at = at.wrapping_add(chain[0]);
            for _ in 0..LOADS {
                seen.push(at.addr() - probe.region.base().addr());
                // SAFETY: a line of the chain, which holds the address of the next.
                at = unsafe { kernels::hop(at) };
            }
            assert_eq!(&seen, chain);
            assert_eq!(at.addr() - probe.region.base().addr(), chain[0]);
        }
    }
}
