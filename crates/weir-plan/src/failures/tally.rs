//! VMs and hours that failures cost, over all moments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, Usd};

use super::Topology;
use super::inject::Failed;
use super::part::Part;
use super::rates::Rates;
use crate::pool::SOCKETS;
use crate::pool::stranding::percentile;
use crate::prices::Prices;
use crate::trace::GIB;

/// What the failure of a part does, in pools of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartFailure {
    /// The part.
    pub part: String,
    /// Sockets that share a pool; 0 where the part is of no pool.
    pub sockets: u32,
    /// The same in words.
    pub pool: String,
    /// Parts of a cluster.
    pub parts: u64,
    /// VMs that are killed, in the mean over moments.
    pub killed: f64,
    /// The same at the 99th percentile.
    pub killed_p99: f64,
    /// Mean share of the VMs of the cluster that are killed.
    pub killed_pct: f64,
    /// VMs that lose optional memory, get an exception, and go on without it.
    pub told: f64,
    /// VMs that arrive while the manager is away, and wait for their slices.
    pub waiting: f64,
    /// Killed VMs that find room elsewhere.
    pub restarted: f64,
    /// Killed VMs that find none before the part is back.
    pub refused: f64,
    /// The same at the 99th percentile.
    pub refused_p99: f64,
    /// Machines that are down.
    pub hosts: f64,
    /// Failures of all these parts of a cluster in a year.
    pub a_year: f64,
    /// VM-hours that they cost in a year.
    pub vm_hours: f64,
    /// The same with the lowest rate.
    pub vm_hours_low: f64,
    /// The same with the highest rate.
    pub vm_hours_high: f64,
}

/// What a second copy of a pool's memory costs and saves, for a cluster with pools of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondCopy {
    /// Sockets that share a pool.
    pub sockets: u32,
    /// The same in words.
    pub pool: String,
    /// Memory of the copies.
    pub memory: Bytes,
    /// Devices that are bought for them: none where a pool has two.
    pub devices: u64,
    /// What memory and devices cost.
    pub price: Usd,
    /// The same for a year of their life.
    pub a_year: Usd,
    /// Writes that reach the pool, as a factor.
    pub writes: f64,
    /// VM-hours in a year that are not lost: those of failing devices. Switches and links stay as they are.
    pub vm_hours: f64,
    /// What one of them costs; absent where none is saved.
    pub of_hour: Option<Usd>,
}

/// A row for each part and size of pools.
pub fn parts(topology: &Topology, failed: &[Failed], rates: &Rates) -> Vec<PartFailure> {
    let mut rows = Vec::new();
    for part in Part::ALL {
        let sizes = match part.of_pool() {
            true => topology.sockets.as_slice(),
            false => topology.sockets.get(..1).unwrap_or_default(),
        };
        for &sockets in sizes {
            let of = failed
                .iter()
                .filter(|one| one.sockets == sockets && one.broken.part == part);
            let of: Vec<&Failed> = of.collect();
            rows.extend(row(topology, (part, sockets), &of, rates));
        }
    }
    rows
}

fn row(
    topology: &Topology,
    (part, sockets): (Part, u32),
    failed: &[&Failed],
    rates: &Rates,
) -> Option<PartFailure> {
    let rate = rates.of(part).filter(|_| !failed.is_empty())?;
    let mean = |of: &dyn Fn(&Failed) -> f64| {
        failed.iter().map(|one| of(one)).sum::<f64>() / failed.len() as f64
    };
    let p99 = |of: fn(&Failed) -> u64| {
        let mut all: Vec<f64> = failed.iter().map(|one| of(one) as f64).collect();
        all.sort_by(f64::total_cmp);
        percentile(&all, 0.99)
    };
    let parts = topology.count(part, (sockets / SOCKETS) as usize);
    let (restarted, refused) = (
        mean(&|one| one.harm.restarted as f64),
        mean(&|one| one.harm.refused as f64),
    );
    let waiting = mean(&|one| one.harm.waiting as f64);
    // VMs that wait for a manager have arrived at any time since it is away.
    let hours = restarted * rates.restart_hours
        + refused * rate.down_hours
        + waiting * rate.down_hours / 2.0;
    let a_year = |pct: f64| parts as f64 * pct / 100.0;
    Some(PartFailure {
        part: part.name().to_owned(),
        sockets: if part.of_pool() { sockets } else { 0 },
        pool: match part.of_pool() {
            true => words(sockets),
            false => "no pool".into(),
        },
        parts,
        killed: mean(&|one| one.harm.killed as f64),
        killed_p99: p99(|one| one.harm.killed),
        killed_pct: 100.0 * mean(&|one| one.harm.killed as f64 / one.harm.there.max(1) as f64),
        told: mean(&|one| one.harm.told as f64),
        waiting,
        restarted,
        refused,
        refused_p99: p99(|one| one.harm.refused),
        hosts: mean(&|one| one.harm.hosts as f64),
        a_year: a_year(rate.rate_pct),
        vm_hours: a_year(rate.rate_pct) * hours,
        vm_hours_low: a_year(rate.low_pct) * hours,
        vm_hours_high: a_year(rate.high_pct) * hours,
    })
}

/// What second copies cost and save, a row for each size of pools.
pub fn copies(
    topology: &Topology,
    rows: &[PartFailure],
    rates: &Rates,
    prices: &Prices,
) -> Vec<SecondCopy> {
    let machines = f64::from(topology.machines);
    let gib = machines * f64::from(topology.machine.memory_mib) * topology.share / f64::from(GIB);
    let copy = |&sockets: &u32| {
        let pools = u64::from(topology.machines / (sockets / SOCKETS).max(1));
        // A copy on the same device does not count as a copy.
        let devices = if topology.devices == 1 { pools } else { 0 };
        let price = prices.server_dram * gib + prices.pool_device * devices as f64;
        let a_year = price * rates.life_years.recip();
        let device = |row: &&PartFailure| row.sockets == sockets && row.part == Part::Device.name();
        let vm_hours = rows.iter().find(device).map_or(0.0, |row| row.vm_hours);
        SecondCopy {
            sockets,
            pool: words(sockets),
            memory: Bytes::mib((gib * f64::from(GIB)) as u64),
            devices,
            price,
            a_year,
            writes: 2.0,
            vm_hours,
            of_hour: (vm_hours > 0.0).then(|| Usd(a_year.get() / vm_hours)),
        }
    };
    match topology.share > 0.0 {
        true => topology.sockets.iter().map(copy).collect(),
        false => Vec::new(),
    }
}

/// The size of a pool in words.
pub(super) fn words(sockets: u32) -> String {
    format!("{sockets} sockets")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failures::inject::Harm;
    use crate::failures::part::Broken;
    use crate::trace::Machine;

    #[test]
    fn hours_are_those_of_starting_again_of_the_repair_and_of_half_a_wait() {
        let topology = Topology {
            sockets: vec![4],
            machines: 8,
            machine: Machine {
                millicores: 8000,
                memory_mib: 32 * GIB,
            },
            share: 0.5,
            optional: 0.0,
            devices: 1,
            interleaved: false,
            switched: false,
            moments: 1,
            seed: 1,
        };
        let failed = Failed {
            sockets: 4,
            broken: Broken {
                part: Part::Device,
                machine: 0,
                device: 0,
                page: 0.0,
            },
            harm: Harm {
                there: 10,
                killed: 3,
                restarted: 2,
                refused: 1,
                waiting: 4,
                ..Harm::default()
            },
        };
        let mut rates = Rates::builtin().unwrap();
        (rates.restart_hours, rates.life_years) = (0.5, 5.0);
        let of = rates
            .list
            .iter_mut()
            .find(|rate| rate.part == "pool device");
        let of = of.unwrap();
        (of.low_pct, of.rate_pct, of.high_pct, of.down_hours) = (1.0, 2.0, 8.0, 10.0);
        let rows = parts(&topology, &[failed], &rates);
        let row = &rows[0];
        // Four pools; 2 x 0.5 h, 1 x 10 h, and 4 x 5 h.
        let hours = [row.vm_hours_low, row.vm_hours, row.vm_hours_high];
        for (found, wanted) in hours.into_iter().zip([1.24, 2.48, 9.92]) {
            assert!((found - wanted).abs() < 1e-9, "{row:?}");
        }
        let prices = Prices::builtin().unwrap();
        let copy = &copies(&topology, &rows, &rates, &prices)[0];
        assert_eq!(copy.devices, 4);
        assert!((copy.price.get() - 5.0 * copy.a_year.get()).abs() < 1e-6);
    }
}
