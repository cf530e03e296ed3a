//! The simulation: what happens in an interval, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_model::units::{Bytes, Nanos};

use crate::lru::Lru;
use crate::page::{At, Pages};
use crate::policy::{Marks, Policy, RegionSeen, Seen, Thresholds};
use crate::random::Draws;
use crate::record::{Interval, Summary};
use crate::requests::Moment;
use crate::tier::{BASE, Memory, Tier, Watermarks};
use crate::traffic::{Demand, Flow};
use crate::workload::{PageKind, PagedWorkload, Region};
use crate::{Costs, PagesError, Vmstat};

mod allocate;
mod mix;
mod promote;
mod reclaim;
mod request;
mod scan;

use mix::Mix;
pub use scan::{Sampler, Scan};

/// A machine of two tiers.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// The node of the processor.
    pub fast: Memory,
    /// The node without one.
    pub slow: Memory,
    /// Whether anonymous pages can be swapped out.
    pub swap: bool,
    /// What the kernel's work costs.
    pub costs: Costs,
    /// What was calibrated for Alto.
    pub thresholds: Thresholds,
}

impl Host {
    fn memory(&self, tier: Tier) -> &Memory {
        match tier {
            Tier::Fast => &self.fast,
            Tier::Slow => &self.slow,
        }
    }
}

/// How a simulation runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How long, in seconds of simulated time.
    pub seconds: f64,
    /// The length of an interval in seconds, 0.01 to 10.
    pub interval_s: f64,
    /// Seed of every random choice.
    pub seed: u64,
}

/// A touch that is drawn: visits to a page of the band at which it happens, as sortable bits, and the page.
type Touch = Reverse<(u64, u32)>;

/// What an interval's work on pages has cost so far.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    /// Thread time, and the part of it that waits for pages that are read back.
    stall_ns: f64,
    read_back_ns: f64,
    copied_from: [f64; 2],
    copied_to: [f64; 2],
}

/// Background reclaim of a node.
#[derive(Debug, Clone, Default)]
struct Kswapd {
    awake: bool,
    lru: Lru,
    /// Time that it has left, or has used too much.
    budget_ns: f64,
    /// Runs in a row that freed next to nothing, and the interval until which it has given up.
    failures: u32,
    rests_until: usize,
}

/// A workload on a host under a policy.
pub struct Simulation<'a> {
    workload: &'a PagedWorkload,
    host: &'a Host,
    policy: Box<dyn Policy>,
    options: Options,
    pages: Pages,
    marks: [Watermarks; 2],
    acts: Marks,
    kswapd: [Kswapd; 2],
    touches: Vec<BinaryHeap<Touch>>,
    /// The page that is sampled next.
    sampled: u64,
    /// By region the page that a request of user space looks at next, and by band the rank at which the device's
    /// counters go on.
    requested: Vec<u64>,
    counted: Vec<u64>,
    /// Pages that may be sampled and are not yet.
    sampling: f64,
    nth: u64,
    /// Parts of pages by which each region's ranks are to drift, and pages of each to be renewed.
    drifting: Vec<f64>,
    renewing: Vec<f64>,
    work: Work,
    /// Thread time that earlier intervals could not hold.
    debt_ns: f64,
    flow: Flow,
    moment: Moment,
    /// Accesses of each page by band in the last interval, and visits with this many accesses each.
    rates: Vec<f64>,
    visits: Vec<f64>,
    bursts: Vec<f64>,
    draws: Draws,
    /// Of event samples.
    events: Draws,
    counters: Vmstat,
    intervals: Vec<Interval>,
}

impl<'a> Simulation<'a> {
    /// At time zero, with nothing allocated.
    ///
    /// # Errors
    /// The workload or the host is not in order, or the interval is out of its range.
    pub fn new(
        workload: &'a PagedWorkload,
        host: &'a Host,
        policy: Box<dyn Policy>,
        options: Options,
    ) -> Result<Self, PagesError> {
        workload.check()?;
        host.fast.check()?;
        host.slow.check()?;
        let wrong = |what, why: &str| {
            Err(PagesError::Machine {
                what,
                why: why.into(),
            })
        };
        if !(0.01..=10.0).contains(&options.interval_s) {
            return wrong("interval", "must be between 0.01 s and 10 s");
        }
        if !(options.seconds >= options.interval_s && options.seconds <= 1e7) {
            return wrong(
                "seconds",
                "must be an interval at least, and 10 million at most",
            );
        }
        let bytes: u64 = workload
            .regions
            .iter()
            .map(|r| r.bytes.get() / r.page.get())
            .sum();
        if bytes >= 1 << 32 {
            return wrong("pages", "more than 2^32 pages; use pages of 2 MiB");
        }
        let all = host.fast.capacity + host.slow.capacity;
        let marks = Tier::ALL.map(|tier| Watermarks::of(host.memory(tier).capacity, all));
        let pages = Pages::new(workload);
        let bands = pages.counts.len();
        Ok(Self {
            acts: policy.marks(&marks[0]),
            workload,
            host,
            policy,
            options,
            marks,
            kswapd: Default::default(),
            touches: vec![BinaryHeap::new(); bands],
            sampled: 0,
            requested: vec![0; workload.regions.len()],
            counted: vec![0; bands],
            sampling: 0.0,
            nth: 0,
            drifting: vec![0.0; workload.regions.len()],
            renewing: vec![0.0; workload.regions.len()],
            work: Work::default(),
            debt_ns: 0.0,
            flow: Flow::default(),
            moment: Moment::default(),
            rates: vec![0.0; bands],
            visits: vec![0.0; bands],
            bursts: (workload.regions.iter()).flat_map(Region::bursts).collect(),
            draws: Draws::new(options.seed),
            events: Draws::new(options.seed ^ 0x0065_7665_6e74_7300),
            counters: Vmstat::default(),
            intervals: Vec::new(),
            pages,
        })
    }

    /// Bytes of state that are kept for each page.
    pub const BYTES_A_PAGE: usize = Pages::BYTES_A_PAGE;

    /// How many intervals the run has.
    pub fn length(&self) -> usize {
        (self.options.seconds / self.options.interval_s).round() as usize
    }

    /// Runs to the end, or until `go_on` says no. It is asked before each interval.
    pub fn run(&mut self, mut go_on: impl FnMut() -> bool) -> Summary {
        while self.intervals.len() < self.length() && go_on() {
            self.step();
        }
        Summary::of(&self.intervals, self.options.interval_s, self.counters)
    }

    /// The intervals so far.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// What the last interval offered a request.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// Counters from the start.
    pub fn counters(&self) -> &Vmstat {
        &self.counters
    }

    /// Free memory of a node, in base pages.
    pub fn free(&self, tier: Tier) -> u64 {
        let managed = self.marks[tier as usize].managed;
        managed.saturating_sub(self.pages.used(At::from(tier)))
    }

    /// Watermarks of a node.
    pub fn watermarks(&self, tier: Tier) -> Watermarks {
        self.marks[tier as usize]
    }

    /// Memory by place: in the fast tier, in the slow one, and out.
    pub fn placed(&self) -> [Bytes; 3] {
        [At::Fast, At::Slow, At::Out].map(|at| Bytes(self.pages.used(at) * BASE))
    }

    /// Memory that the workload has allocated.
    pub fn allocated(&self) -> Bytes {
        let extents = self.pages.extents.iter();
        Bytes(extents.map(|e| e.allocated * e.base * BASE).sum())
    }

    /// One interval: touches of the last one take effect, pages are allocated while background reclaim runs, requests of
    /// the policy are met, pages are sampled, and then threads run.
    pub fn step(&mut self) {
        let before = self.counters;
        self.work = Work::default();
        self.acts = self.policy.marks(&self.marks[0]);
        self.take_touches();
        self.count_hot();
        self.allocate_and_reclaim();
        self.requests();
        self.sample();
        let threads = f64::from(self.workload.threads);
        let interval_ns = self.options.interval_s * 1e9;
        let moved = (self.counters.promoted() + self.counters.demoted())
            - (before.promoted() + before.demoted());
        let flushes = moved as f64 * self.host.costs.shootdown.get() * threads;
        let owed = self.work.stall_ns + flushes + self.debt_ns;
        // A thread that only waits for the kernel still advances.
        let most = 0.95 * threads * interval_ns;
        self.debt_ns = (owed - most).max(0.0);
        let mix = self.mix();
        let demand = Demand {
            thread_ns: threads * interval_ns - owed.min(most),
            compute_ns: (self.workload).compute_ns(
                &self.host.fast,
                self.pages.now as f64 * self.options.interval_s,
            ),
            interval_ns,
            split: mix.split,
            copied_from: self.work.copied_from,
            copied_to: self.work.copied_to,
        };
        let flow = demand.solve([&self.host.fast.curve, &self.host.slow.curve]);
        self.flow = flow;
        let faults = |of: &Vmstat| of.numa_hint_faults + of.pswpin;
        self.moment = Moment {
            accesses: flow.accesses,
            waits: mix.split.waits,
            latency: flow.latency,
            compute: Nanos(demand.compute_ns),
            kernel: Nanos(owed.min(most)),
            faults: (faults(&self.counters) - faults(&before)) as f64,
        };
        for (rate, (weight, pages)) in self.rates.iter_mut().zip(&mix.bands) {
            *rate = match *pages > 0.0 {
                true => flow.accesses * weight / pages,
                false => 0.0,
            };
        }
        let rates = self.rates.iter().zip(&self.bursts);
        for (visits, (rate, burst)) in self.visits.iter_mut().zip(rates) {
            *visits = rate / burst;
        }
        self.pages.advance(&self.visits);
        self.record(&before, &mix, owed.min(most) / (threads * interval_ns));
        let all_per_s = flow.accesses / self.options.interval_s;
        let regions: Vec<RegionSeen> = (mix.regions.iter().zip(&self.workload.regions))
            .map(|(of, region)| RegionSeen {
                per_s: of.shares.map(|share| self.sampled_rate(share * all_per_s)),
                pages: of.pages,
                writes: region.writes,
                mlp: region.mlp,
                burst: region.burst,
            })
            .collect();
        let free_fast = self.free(Tier::Fast);
        let since = self.counters.since(&before);
        self.policy.observe(&Seen {
            interval_s: self.options.interval_s,
            latency: flow.latency,
            gbps: flow.gbps,
            curves: [&self.host.fast.curve, &self.host.slow.curve],
            wait: flow.wait,
            pressure: self.work.read_back_ns / (threads * interval_ns),
            threads: self.workload.threads,
            free_fast,
            failed_full: since.pgmigrate_fail_dst_node_full,
            reclaimed: since.pgdemote_kswapd,
            costs: &self.host.costs,
            thresholds: self.host.thresholds,
            regions: &regions,
        });
    }

    /// A rate as event samples tell it, whose time the next interval owes.
    fn sampled_rate(&mut self, per_s: f64) -> f64 {
        let Some(period) = self.policy.event_period() else {
            return per_s;
        };
        let interval_s = self.options.interval_s;
        let samples = self.events.poisson(per_s * interval_s / period);
        self.debt_ns += samples * self.host.costs.event.get();
        samples * period / interval_s
    }

    fn record(&mut self, before: &Vmstat, mix: &Mix, kernel: f64) {
        let Flow {
            accesses,
            latency,
            gbps,
            error,
            ..
        } = self.flow;
        let anon = |at: At| {
            let list = self.pages.lists[at as usize][PageKind::Anon as usize];
            Bytes((list[0] + list[1]) * BASE)
        };
        self.intervals.push(Interval {
            t_s: self.pages.now as f64 * self.options.interval_s,
            maccesses: accesses / 1e6,
            local_pct: mix.split.shares[0] * 100.0,
            fast_ns: latency[0],
            slow_ns: latency[1],
            fast_gbps: gbps[0],
            slow_gbps: gbps[1],
            kernel_pct: kernel * 100.0,
            fixed_point_error: error,
            promoted: self.counters.promoted() - before.promoted(),
            demoted: self.counters.demoted() - before.demoted(),
            hint_faults: self.counters.numa_hint_faults - before.numa_hint_faults,
            fast_free: Bytes(self.free(Tier::Fast) * BASE),
            fast_anon: anon(At::Fast),
            anon: anon(At::Fast) + anon(At::Slow) + anon(At::Out),
        });
    }
}
