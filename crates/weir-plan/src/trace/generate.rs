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
//! | memory of a core | 2, 4, 8, 16 GiB for 10, 35, 45, 10 % of the VMs | assumed: clouds sell families of these ratios |
//! | cores of a VM | 1, 2, 4, 8, 16, 32, each half as frequent as the one before | assumed |
//! | lifetimes | 80 % of 1 h, 20 % of 5 days in the mean, exponential | assumed |
//! | utilisation | a level for each cluster from 60 to 95 % of the cores, 5 % more or less over a day | assumed; Figure 2a of Pond shows 60 to 90 % |
//! | difference of clusters | each family's weight times 0.5 to 2 | assumed |
//! | shift | from its day on, families of 2 and 4 GiB are twice as frequent | assumed; Pond says that it strands memory |
//! | machine | 96 cores, 768 GiB | two sockets of Pond's Intel server with 384 GB each (PON-069); hardware threads of 24 cores a socket |

use super::random::Random;
use super::{GIB, Machine, Trace, Vm};
use crate::PlanError;
use crate::error::within;

/// Seconds of a day.
pub const DAY: f64 = 86_400.0;
/// Share of VMs that stay within 5 % with all memory in the pool, at 182 % of the latency (PON-012).
pub const INSENSITIVE: f64 = 0.43;
/// The machine of generated traces.
pub const MACHINE: Machine = Machine {
    millicores: 96_000,
    memory_mib: 768 * GIB,
};
/// Points of the distribution of untouched memory: this share of VMs has less than that untouched, in percent.
const UNTOUCHED: [(f64, f64); 4] = [(0.0, 0.0), (0.12, 20.0), (0.5, 50.0), (1.0, 100.0)];
/// GiB of a core, with the share of VMs.
const FAMILIES: [(u32, f64); 4] = [(2, 0.10), (4, 0.35), (8, 0.45), (16, 0.10)];
/// Cores of VMs, with their weights.
const CORES: [(u32, f64); 6] = [
    (1, 32.0),
    (2, 16.0),
    (4, 8.0),
    (8, 4.0),
    (16, 2.0),
    (32, 1.0),
];
/// Mean lifetimes in seconds, with the share of VMs.
const LIVES: [(f64, f64); 2] = [(3600.0, 0.8), (5.0 * DAY, 0.2)];
/// Least and most of the cores that are rented, by cluster.
const UTILISATION: (f64, f64) = (0.60, 0.95);
/// Part by which the rate of arrivals changes over a day.
const DAILY: f64 = 0.05;
/// Share of VMs whose customer has others.
const WITH_HISTORY: f64 = 0.8;
/// VMs of a customer with history, in the mean.
const OF_CUSTOMER: f64 = 50.0;
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

impl Generate {
    /// The trace.
    ///
    /// # Errors
    /// A parameter is outside its bounds.
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
        within(
            "--insensitive",
            self.insensitive,
            (0.0, 1.0),
            "0 % to 100 %",
        )?;
        let mut random = Random::new(self.seed);
        let mut families = FAMILIES;
        for (_, weight) in &mut families {
            // Evenly between half and double on a logarithmic scale.
            *weight *= 2f64.powf(2.0 * random.share() - 1.0);
        }
        let level = UTILISATION.0 + (UTILISATION.1 - UTILISATION.0) * random.share();
        let cores = f64::from(self.machines) * f64::from(MACHINE.millicores) / 1000.0;
        let life: f64 = mean(&LIVES);
        let size: f64 = mean(&CORES.map(|(cores, weight)| (f64::from(cores), weight)));
        // Little's law: the VMs that are there are rate times lifetime.
        let rate = level * cores / (size * life);
        let end = self.days * DAY;
        let mut trace = Trace::default();
        let mut customers = Customers::default();
        // The VMs that are there at the beginning: long ones are more likely to be met.
        let met = LIVES.map(|(mean, share)| (mean, share * mean));
        let there = (rate * life).round() as u64;
        for _ in 0..there {
            let life = random.choose(&met).unwrap_or(DAY);
            let departure = random.exponential(life);
            trace.push(self.vm(&mut random, &mut customers, &families, (0.0, departure)));
        }
        let mut now = 0.0;
        let mut shifted = false;
        loop {
            let daily = 1.0 + DAILY * (now / DAY * std::f64::consts::TAU).sin();
            now += random.exponential(1.0 / (rate * daily));
            if now >= end {
                break;
            }
            if !shifted && now >= self.shift_day * DAY {
                shifted = true;
                families[0].1 *= 2.0;
                families[1].1 *= 2.0;
            }
            let life = random.choose(&LIVES).unwrap_or(DAY);
            let departure = now + random.exponential(life);
            trace.push(self.vm(&mut random, &mut customers, &families, (now, departure)));
        }
        Ok(trace)
    }

    fn vm(
        &self,
        random: &mut Random,
        customers: &mut Customers,
        families: &[(u32, f64)],
        (arrival, departure): (f64, f64),
    ) -> Vm {
        let cores = random.choose(&CORES).unwrap_or(1);
        let family = random.choose(families).unwrap_or(4);
        let (customer, usual) = customers.next(random);
        // Reflected at the ends, so that the marginal stays even.
        let quantile = (usual + SPREAD * (random.share() - 0.5)).abs();
        let quantile = if quantile > 1.0 {
            2.0 - quantile
        } else {
            quantile
        };
        let arrival = arrival as u32;
        Vm {
            arrival,
            departure: (departure as u32).max(arrival + 1),
            millicores: cores * 1000,
            memory_mib: cores * family * GIB,
            customer,
            kind: (cores.ilog2() * 8 + family.ilog2()) as u16,
            touched_pct: touched_pct(quantile),
            insensitive: Some(random.share() < self.insensitive),
        }
    }
}

fn mean(weighted: &[(f64, f64)]) -> f64 {
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
    fn next(&mut self, random: &mut Random) -> (u32, f64) {
        let has_history = random.share() < WITH_HISTORY;
        let is_new = self.frequent.is_empty() || random.share() < 1.0 / OF_CUSTOMER;
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
    fn the_marginals_are_the_published_ones() {
        let trace = Generate {
            machines: 64,
            days: 20.0,
            ..Generate::default()
        }
        .run()
        .unwrap();
        let share = |is: &dyn Fn(&Vm) -> bool| {
            trace.vms().filter(|vm| is(vm)).count() as f64 / trace.len() as f64
        };
        let near = |found: f64, wanted: f64| {
            assert!((found - wanted).abs() < 0.02, "{found} is not {wanted}")
        };
        near(share(&|vm| vm.touched_pct > 80), 0.12);
        near(share(&|vm| vm.touched_pct > 50), 0.50);
        near(share(&|vm| vm.insensitive == Some(true)), 0.43);
        let mut of: HashMap<u32, u32> = HashMap::new();
        trace
            .vms()
            .for_each(|vm| *of.entry(vm.customer).or_default() += 1);
        near(share(&|vm| of[&vm.customer] > 1), 0.80);
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
        let (again, problems) =
            super::super::read::read("g", super::super::read::Format::Own, text.as_slice())
                .unwrap();
        assert_eq!(again.len(), trace.len());
        assert!(problems.counts().is_empty(), "{problems:?}");
    }
}
