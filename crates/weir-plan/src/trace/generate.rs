//! A trace of one cluster whose marginals are published where they are, and assumed where they are not.
//!
//! | marginal | value | source |
//! |---|---|---|
//! | days of a trace | 75 | Pond, section 3.1 |
//! | day of the shift of workloads | 36 | Pond, Figure 2b |
//! | untouched memory of the median VM | 50 % | Pond, section 3.2 (PON-021) |
//! | VMs with less than 20 % untouched | 12 % | Pond, section 6.4.2 (PON-087): the fixed share of 20 % over-predicts for them |
//! | VMs that stay within 5 % on the pool | 43 % at 182 % of the latency, 37 % at 222 % | Pond, section 1 (PON-012, PON-013) |
//! | VMs of customers with history | 80 % | Pond, section 6.1 (PON-062) |
//! | VMs of such a customer | 81 | VMs by deployments, Azure's public VM trace of 2019 |
//! | cores of a VM, memory of a VM | `CORES`, `MEMORY` | bars of Azure 2019 in the analysis of that trace, by their heights |
//! | cores and memory together | `SIZES` | 2, 4 and 8 GiB a core, as Azure sells them (series F, D and E); joined by proportional fitting, so that either says nothing about the other beyond what is sold: assumed |
//! | lifetimes | `LIVES` | the curve of Azure 2019 in that analysis up to 100 h; beyond, so that the mean is that of the trace, 60.3 h |
//! | VMs that are deployed together | `TOGETHER` | the curve of Azure 2019 in that analysis; that at most 20 are in one cluster is assumed. In the trace of 2017 a tenant's VMs that arrive within 5 min are 4.1 in the mean, 92 % of one size, and 70 % of neighbours live equally long (traces of github.com/huaweicloud/trace_generation_rnn): here all arrive and leave at once |
//! | sensitivity of VMs that are deployed together | equal | assumed; VMs of a subscription are much alike (Cortez et al., Resource Central, SOSP 2017) |
//! | utilisation | a level for each cluster from 60 to 90 % of the cores, 5 % more or less over a day; the mean of many machines: with fewer than 16 the VMs that come at once may ask for twice the cores there are | assumed; Figure 2a of Pond shows 60 to 90 % |
//! | difference of clusters | each size's weight times an eighth to 8 | set, with the memory of a machine, by stranded memory |
//! | shift | from its day on, VMs of 2 GiB a core are twice as frequent | assumed; Pond says that it strands memory |
//! | cores of a machine | 96 | hardware threads of two sockets of Pond's Intel server with 24 cores each (section 6.1) |
//! | memory of a machine | 472 GiB | set, with the difference of clusters, by stranded memory, to within 1.5 points: 6 % where 75 % of the cores are rented, above 10 % at 85 %, 25 % as the 95th percentile (PON-023 to 025) |

use super::{GIB, Machine, Trace, Vm};
use crate::PlanError;
use crate::error::within;
use weir_model::random::Random;
use weir_model::stop;

/// Seconds of a day.
pub const DAY: f64 = 86_400.0;
/// Seconds of an hour.
const HOUR: f64 = 3600.0;
/// VMs of the longest trace, all of which are in memory.
const MOST_VMS: f64 = 1e8;
/// Share of VMs that stay within 5 % with all memory in the pool, at 182 % of the latency (PON-012).
pub const INSENSITIVE: f64 = 0.43;
/// The machine of generated traces.
pub const MACHINE: Machine = Machine {
    millicores: 96_000,
    memory_mib: 472 * GIB,
};
/// Points of the distribution of untouched memory: this share of VMs has less than that untouched, in percent.
const UNTOUCHED: [(f64, f64); 4] = [(0.0, 0.0), (0.12, 20.0), (0.5, 50.0), (1.0, 100.0)];
/// Share of VMs in percent by the most cores of their bucket.
const CORES: [(u32, f64); 5] = [(2, 58.0), (4, 23.0), (8, 12.0), (24, 6.0), (u32::MAX, 0.9)];
/// The same by the most GiB.
const MEMORY: [(u32, f64); 6] = [
    (2, 12.0),
    (4, 16.6),
    (8, 32.7),
    (32, 29.0),
    (64, 6.4),
    (u32::MAX, 3.2),
];
/// Cores and GiB of VMs that are sold.
const SIZES: [(u32, u32); 16] = [
    (1, 2),
    (2, 4),
    (2, 8),
    (2, 16),
    (4, 8),
    (4, 16),
    (4, 32),
    (8, 16),
    (8, 32),
    (8, 64),
    (16, 32),
    (16, 64),
    (16, 128),
    (32, 64),
    (32, 128),
    (32, 256),
];
/// Rounds of fitting; 100 are within a ten-thousandth of both marginals.
const ROUNDS: u32 = 100;
/// A cluster has at most this many times each size's share, and at least the inverse.
const DIFFERENCE: f64 = 8.0;
/// GiB of a core up to which VMs are more frequent after the shift.
const SHIFTED: u32 = 2;
/// Points of the distribution of lifetimes: this share of VMs lives no longer than this many hours.
const LIVES: [(f64, f64); 8] = [
    (0.0, 1.0 / 12.0),
    (0.64, 1.0),
    (0.71, 2.0),
    (0.78, 5.0),
    (0.83, 10.0),
    (0.885, 20.0),
    (0.90, 30.0),
    (0.917, 100.0),
];
/// Mean hours of VMs that live longer than the last point, beyond it.
const LONG: f64 = 585.0;
/// VMs that are deployed together, with the share of deployments.
const TOGETHER: [(u32, f64); 7] = [
    (1, 0.47),
    (2, 0.16),
    (3, 0.08),
    (4, 0.05),
    (7, 0.12),
    (15, 0.055),
    (20, 0.065),
];
/// Days before the trace from which on VMs arrive, so that long ones are there at its beginning.
const BEFORE: f64 = 120.0;
/// Least and most of the cores that are rented, by cluster.
const UTILISATION: (f64, f64) = (0.60, 0.90);
/// Part by which the rate of arrivals changes over a day.
const DAILY: f64 = 0.05;
/// Share of deployments of customers that have others; the first one of each has no history, so that of the VMs 80 % have.
const WITH_HISTORY: f64 = 0.99;
/// VMs of a customer with history, in the mean.
const OF_CUSTOMER: f64 = 81.0;
/// How far a VM's untouched memory is from its customer's usual one, in shares of all VMs.
const SPREAD: f64 = 0.2;
/// The golden ratio, whose multiples are spread evenly.
const GOLDEN: f64 = 1.618_033_988_749_895;

/// What is generated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Generate {
    /// Seed of all random numbers; another one is another cluster.
    pub seed: u64,
    /// Machines of the cluster.
    pub machines: u32,
    /// Its length.
    pub days: f64,
    /// The day of the shift; beyond the last for none.
    pub shift_day: f64,
    /// Share of VMs that are insensitive to the pool's latency.
    pub insensitive: f64,
}

impl Default for Generate {
    fn default() -> Self {
        Self {
            seed: 1,
            machines: 64,
            days: 75.0,
            shift_day: 36.0,
            insensitive: INSENSITIVE,
        }
    }
}

/// Touched memory at a quantile of VMs, in percent; quantile 0 touches all.
pub fn touched_pct(quantile: f64) -> u8 {
    let above = UNTOUCHED
        .iter()
        .position(|(share, _)| quantile <= *share)
        .unwrap_or(UNTOUCHED.len() - 1);
    let ((x0, y0), (x1, y1)) = (UNTOUCHED[above.saturating_sub(1)], UNTOUCHED[above.max(1)]);
    let untouched = y0 + (y1 - y0) * ((quantile - x0) / (x1 - x0)).clamp(0.0, 1.0);
    (100.0 - untouched).round() as u8
}

/// Cores and GiB of VMs, with their share: sizes that are sold, fitted to both marginals in turn (Deming and Stephan, On a
/// Least Squares Adjustment of a Sampled Frequency Table, 1940).
fn kinds() -> [((u32, u32), f64); SIZES.len()] {
    let mut kinds = SIZES.map(|size| (size, 1.0));
    for _ in 0..ROUNDS {
        fit(&mut kinds, &CORES, |size| size.0);
        fit(&mut kinds, &MEMORY, |size| size.1);
    }
    kinds
}

/// Scales the weights of each bucket to its share.
fn fit(kinds: &mut [((u32, u32), f64)], shares: &[(u32, f64)], of: fn((u32, u32)) -> u32) {
    let mut above = 0;
    for &(most, share) in shares {
        let within = |size: (u32, u32)| (above + 1..=most).contains(&of(size));
        let of_bucket = kinds.iter().filter(|(size, _)| within(*size));
        let sum: f64 = of_bucket.map(|(_, weight)| weight).sum();
        for (_, weight) in kinds.iter_mut().filter(|(size, _)| within(*size)) {
            *weight *= share / sum;
        }
        above = most;
    }
}

impl Generate {
    /// The trace.
    ///
    /// # Errors
    /// A parameter is outside its bounds, there are too many VMs, or a stop was requested.
    pub fn run(&self) -> Result<Trace, PlanError> {
        within(
            "--days",
            self.days,
            (1e-3, 3650.0),
            "above 0 and at most 3650 days",
        )?;
        within(
            "--machines",
            f64::from(self.machines),
            (1.0, 1e6),
            "1 to 1000000",
        )?;
        // On an infinite day nothing shifts.
        if self.shift_day.is_sign_negative() || !self.shift_day.is_infinite() {
            let later = (0.0, f64::INFINITY);
            within("--shift-day", self.shift_day, later, "0 or a later day")?;
        }
        within(
            "--insensitive",
            self.insensitive,
            (0.0, 1.0),
            "0 % to 100 %",
        )?;
        let mut random = Random::new(self.seed);
        let mut kinds = kinds();
        for (_, weight) in &mut kinds {
            // Evenly on a logarithmic scale.
            *weight *= DIFFERENCE.powf(2.0 * random.share() - 1.0);
        }
        let level = UTILISATION.0 + (UTILISATION.1 - UTILISATION.0) * random.share();
        let cores = f64::from(self.machines) * f64::from(MACHINE.millicores) / 1000.0;
        let size = mean(kinds.map(|((cores, _), weight)| (f64::from(cores), weight)));
        let together = mean(TOGETHER.map(|(vms, weight)| (f64::from(vms), weight)));
        // Little's law: the VMs that are there are rate times lifetime.
        let rate = level * cores / (size * mean_life() * together);
        let vms = rate * together * self.days * DAY;
        if vms > MOST_VMS {
            return Err(PlanError::OutOfBounds {
                what: "the trace",
                found: format!("of some {:.0} million VMs", vms / 1e6),
                wanted: "of at most 100 million; take fewer --days or --machines".into(),
            });
        }
        let mut trace = Trace::default();
        let mut customers = Customers::default();
        let mut now = -BEFORE * DAY;
        let mut shifted = false;
        loop {
            let daily = 1.0 + DAILY * (now / DAY * std::f64::consts::TAU).sin();
            now += random.exponential(1.0 / (rate * daily));
            if now >= self.days * DAY {
                break;
            }
            if stop::requested() {
                return Err(PlanError::Stopped);
            }
            if !shifted && now >= self.shift_day * DAY {
                shifted = true;
                for ((cores, gib), weight) in &mut kinds {
                    if *gib <= SHIFTED * *cores {
                        *weight *= 2.0;
                    }
                }
            }
            self.deploy(&mut random, &mut customers, &kinds, now, &mut trace);
        }
        trace.sort();
        Ok(trace)
    }

    /// VMs that one customer deploys at once; those that left before the trace began are not in it.
    fn deploy(
        &self,
        random: &mut Random,
        customers: &mut Customers,
        kinds: &[((u32, u32), f64)],
        now: f64,
        trace: &mut Trace,
    ) {
        let count = random.choose(&TOGETHER).unwrap_or(1);
        let (cores, gib) = random.choose(kinds).unwrap_or((1, 2));
        let departure = now + life(random.share(), random);
        let insensitive = random.share() < self.insensitive;
        let (customer, usual) = customers.next(random, count);
        for _ in 0..count {
            // Reflected at the ends, so that the marginal stays even.
            let quantile = (usual + SPREAD * (random.share() - 0.5)).abs();
            let quantile = if quantile > 1.0 {
                2.0 - quantile
            } else {
                quantile
            };
            if departure < 1.0 {
                continue;
            }
            let arrival = now.max(0.0) as u32;
            trace.push(Vm {
                arrival,
                departure: (departure as u32).max(arrival + 1),
                millicores: cores * 1000,
                memory_mib: gib * GIB,
                customer,
                kind: (cores.ilog2() * 16 + gib.ilog2()) as u16,
                touched_pct: touched_pct(quantile),
                insensitive: Some(insensitive),
            });
        }
    }
}

/// The lifetime at a quantile of VMs, in seconds.
fn life(quantile: f64, random: &mut Random) -> f64 {
    let (last, longest) = LIVES[LIVES.len() - 1];
    if quantile >= last {
        return HOUR * (longest + random.exponential(LONG));
    }
    let pairs = LIVES.iter().zip(&LIVES[1..]);
    let mut found = pairs.filter(|(_, (share, _))| quantile < *share);
    found.next().map_or(HOUR * longest, |((x0, y0), (x1, y1))| {
        HOUR * (y0 + (y1 - y0) * (quantile - x0) / (x1 - x0))
    })
}

/// The mean lifetime in seconds.
fn mean_life() -> f64 {
    let (last, longest) = LIVES[LIVES.len() - 1];
    let pairs = LIVES.iter().zip(&LIVES[1..]);
    let short: f64 = pairs
        .map(|((x0, y0), (x1, y1))| (x1 - x0) * (y0 + y1) / 2.0)
        .sum();
    HOUR * (short + (1.0 - last) * (longest + LONG))
}

fn mean<const N: usize>(weighted: [(f64, f64); N]) -> f64 {
    let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    weighted
        .iter()
        .map(|(value, weight)| value * weight)
        .sum::<f64>()
        / total
}

/// Customers, each with its usual share of untouched memory.
#[derive(Debug, Default)]
struct Customers {
    usual: Vec<f64>,
    frequent: Vec<u32>,
}

impl Customers {
    /// The customer of this many VMs.
    fn next(&mut self, random: &mut Random, count: u32) -> (u32, f64) {
        let has_history = random.share() < WITH_HISTORY;
        let chance = f64::from(count) / OF_CUSTOMER;
        let is_new = self.frequent.is_empty() || random.share() < chance;
        if has_history && !is_new {
            let at = (random.share() * self.frequent.len() as f64) as usize;
            let customer = self.frequent[at.min(self.frequent.len() - 1)];
            return (customer, self.usual[customer as usize]);
        }
        let customer = self.usual.len() as u32;
        // Spread evenly over all quantiles, so that few frequent customers do not shift the marginal.
        let nth = if has_history {
            self.frequent.len()
        } else {
            self.usual.len()
        };
        let usual = (GOLDEN * (nth + 1) as f64).fract();
        self.usual.push(usual);
        if has_history {
            self.frequent.push(customer);
        }
        (customer, usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn small(seed: u64) -> Trace {
        let generate = Generate {
            seed,
            machines: 16,
            days: 10.0,
            ..Generate::default()
        };
        generate.run().unwrap()
    }

    #[test]
    fn a_trace_that_no_memory_holds_is_refused() {
        let endless = Generate {
            machines: 1_000_000,
            days: 3650.0,
            ..Generate::default()
        };
        let message = endless.run().unwrap_err().to_string();
        assert!(message.contains("at most 100 million"), "{message}");
    }

    #[test]
    fn the_marginals_are_the_published_ones() {
        let clusters = (1..=8).map(|seed| Generate {
            seed,
            ..Generate::default()
        });
        let clusters: Vec<Trace> = clusters.map(|one| one.run().unwrap()).collect();
        let vms = || clusters.iter().flat_map(Trace::vms);
        let all = vms().count() as f64;
        let share = |is: &dyn Fn(&Vm) -> bool| vms().filter(|vm| is(vm)).count() as f64 / all;
        let near = |found: f64, wanted: f64| {
            assert!((found - wanted).abs() < 0.02, "{found} is not {wanted}")
        };
        near(share(&|vm| vm.touched_pct > 80), 0.12);
        near(share(&|vm| vm.touched_pct > 50), 0.50);
        near(share(&|vm| vm.insensitive == Some(true)), 0.43);
        // A VM has history if its customer had one in an earlier deployment.
        let (mut later, mut with_history) = (0.0, 0.0);
        for trace in &clusters {
            let mut first: HashMap<u32, u32> = HashMap::new();
            for vm in trace.vms() {
                let first = *first.entry(vm.customer).or_insert(vm.arrival);
                later += f64::from(vm.arrival > 0);
                with_history += f64::from(first < vm.arrival);
            }
        }
        let with_history = with_history / later;
        assert!((0.77..0.83).contains(&with_history), "{with_history}");
        for ((cores, gib), percent) in kinds() {
            let of = |vm: &Vm| (vm.millicores, vm.memory_mib) == (cores * 1000, gib * GIB);
            // Each cluster has its own weights.
            let found = 100.0 * share(&of);
            assert!(
                (percent / 64.0..percent * 64.0).contains(&found),
                "{found} is not {percent}"
            );
        }
    }

    #[test]
    fn sizes_have_both_marginals() {
        let kinds = kinds();
        let has = |shares: &[(u32, f64)], of: fn((u32, u32)) -> u32| {
            for (at, &(most, share)) in shares.iter().enumerate() {
                let above = at.checked_sub(1).map_or(0, |at| shares[at].0);
                let within = kinds
                    .iter()
                    .filter(|(size, _)| of(*size) > above && of(*size) <= most);
                let found: f64 = within.map(|(_, weight)| weight).sum();
                assert!(
                    (found - share).abs() < 0.1,
                    "up to {most}: {found} is not {share}"
                );
            }
        };
        has(&CORES, |size| size.0);
        has(&MEMORY, |size| size.1);
    }

    #[test]
    fn lifetimes_have_the_mean_of_the_public_trace_and_its_quantiles() {
        // Azure's public VM trace of 2019: 162,465,708 hours of 2,695,548 VMs.
        assert!(
            (mean_life() / HOUR - 60.3).abs() < 0.5,
            "{}",
            mean_life() / HOUR
        );
        let mut random = Random::new(1);
        let lives: Vec<f64> = (0..20_000)
            .map(|_| life(random.share(), &mut random))
            .collect();
        let below = |hours: f64| {
            let count = lives.iter().filter(|life| **life <= hours * HOUR).count();
            count as f64 / lives.len() as f64
        };
        for (share, hours) in &LIVES[1..] {
            assert!(
                (below(*hours) - share).abs() < 0.01,
                "{hours} h: {}",
                below(*hours)
            );
        }
        let mean = lives.iter().sum::<f64>() / lives.len() as f64;
        assert!((mean / mean_life() - 1.0).abs() < 0.05, "{}", mean / HOUR);
    }

    #[test]
    fn a_cluster_is_as_full_at_its_beginning_as_later() {
        let (mut early, mut late) = (0.0, 0.0);
        for seed in 0..32 {
            let generate = Generate {
                seed,
                shift_day: f64::INFINITY,
                ..Generate::default()
            };
            let trace = generate.run().unwrap();
            let cores = |day: f64| {
                let at = (day * DAY) as u32;
                let there = trace
                    .vms()
                    .filter(|vm| vm.arrival <= at && at < vm.departure);
                there.map(|vm| f64::from(vm.millicores)).sum::<f64>()
            };
            early += cores(1.0);
            late += cores(60.0);
        }
        assert!((early / late - 1.0).abs() < 0.1, "{early} {late}");
    }

    #[test]
    fn a_seed_gives_one_trace_and_another_seed_another() {
        assert_eq!(small(3), small(3));
        assert_ne!(small(3), small(4));
    }

    #[test]
    fn a_generated_trace_is_in_order_and_written_as_a_trace_that_is_read() {
        let trace = small(1);
        assert!(
            trace
                .vms()
                .zip(trace.vms().skip(1))
                .all(|(a, b)| a.arrival <= b.arrival)
        );
        assert!(trace.vms().all(|vm| vm.arrival < vm.departure));
        let mut text = Vec::new();
        trace.write(&mut text).unwrap();
        let (again, problems) = super::super::read::read(
            "g",
            super::super::read::Format::Own,
            MACHINE,
            text.as_slice(),
        )
        .unwrap();
        assert_eq!(again.len(), trace.len());
        assert!(problems.counts().is_empty(), "{problems:?}");
    }
}
