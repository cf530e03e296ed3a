//! Memory and money that pools save, over all clusters, with the prices at which they break even.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::statistics::student_t975;
use weir_model::units::{Bytes, GbPerSec, Usd};

use super::kept::{Kept, share_saved};
use super::replay::Replayed;
use super::room::Memory;
use super::seats::SOCKETS;
use super::split::Policy;
use crate::prices::Prices;
use crate::trace::{GIB, Machine};

/// What money depends on.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'p> {
    /// Machines of a cluster.
    pub machines: u32,
    /// Their size.
    pub machine: Machine,
    /// Prices of parts.
    pub prices: &'p Prices,
    /// Price of the pool's memory as a share of that of a server's.
    pub price_ratio: f64,
}

/// A policy with pools of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {
    "saved_pct": "saved_ci95_pct", "saved_each_gib": "saved_each_ci95_gib", "net": "net_ci95"
}))]
pub struct Saving {
    /// What decides where memory is.
    pub policy: String,
    /// Sockets that share a pool.
    pub sockets: u32,
    /// Memory of all machines without pools: equal ones with the least memory with which VMs find room.
    pub without: Bytes,
    /// Local memory of all machines with pools, by the same rule.
    pub local: Bytes,
    /// Memory of all pools, equal ones as well.
    pub pool: Bytes,
    /// Memory that is saved; 0 where more is needed.
    pub saved: Bytes,
    /// The same in percent, below 0 where more is needed.
    pub saved_pct: f64,
    /// Half of the 95 % interval of it over clusters; absent for one cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_ci95_pct: Option<f64>,
    /// Memory that is saved for each pool, in GiB; below 0 where more is needed.
    #[serde(default)]
    pub saved_each_gib: f64,
    /// Half of the 95 % interval of it over clusters; absent for one cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_each_ci95_gib: Option<f64>,
    /// What is saved against the machines of the trace, whose memory was not chosen by its VMs.
    pub against_now_pct: f64,
    /// The part of that which is saved by less memory in each machine, without a pool.
    pub without_pct: f64,
    /// What is saved if all that may be in the pool is there, though there is local memory for it; absent where that needs
    /// more than whole machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_split_pct: Option<f64>,
    /// What is saved if each VM stays on its machine with all that may be in the pool there, and each machine and pool has
    /// its own peak: the simulation that Pond publishes. Below 0 where more is needed.
    #[serde(default)]
    pub kept_pct: f64,
    /// The same if all machines have the highest peak of one, and all pools too.
    #[serde(default)]
    pub kept_uniform_pct: f64,
    /// VMs that touch what they then have in the pool.
    #[serde(default)]
    pub touching_pct: f64,
    /// How fast each pool must then release slices of VMs that have left, so that 99.99 % of the VMs wait for none when they
    /// start: the least of 1, 2, 5, 10 MB/s and so on. Absent where 1 TB/s is not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<GbPerSec>,
    /// Pool memory that is needed because slices are released after their VM has left.
    pub buffer: Bytes,
    /// Mean share of the memory in use that may be in the pool.
    pub may_pct: f64,
    /// Mean share of the memory in use that is there.
    pub pooled_pct: f64,
    /// VMs that are slower than the margin, as the predictions let expect.
    pub slow_pct: f64,
    /// The same if all that may be in the pool were there.
    pub slow_as_split_pct: f64,
    /// Pools of all clusters.
    pub pools: u64,
    /// What is left over for each pool, after its device, cables and cards.
    pub net: Usd,
    /// Half of the 95 % interval of it over clusters; absent for one cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_ci95: Option<Usd>,
    /// Price of a pool's device at which nothing is left over; absent where even a free one costs.
    pub pays_below: Option<Usd>,
    /// Price of a GB of server memory at which nothing is left over; absent where none does.
    pub pays_above: Option<Usd>,
}

/// Every policy with every size of pools.
pub fn savings(
    policies: &[Policy],
    sockets: &[u32],
    replayed: &[Replayed],
    terms: &Terms<'_>,
) -> Vec<Saving> {
    let mut rows = Vec::new();
    for (at, policy) in policies.iter().enumerate() {
        for (size, &sockets) in sockets.iter().enumerate() {
            rows.push(saving(policy, (at, size), sockets, replayed, terms));
        }
    }
    rows
}

fn saving(
    policy: &Policy,
    (at, size): (usize, usize),
    sockets: u32,
    replayed: &[Replayed],
    terms: &Terms<'_>,
) -> Saving {
    let mib = u64::from(GIB);
    let of_pool = sockets / SOCKETS;
    let pools = u64::from(terms.machines.div_ceil(of_pool));
    let machines = u64::from(terms.machines);
    let gib = |mib: u64| mib as f64 / f64::from(GIB);
    let memory = |memory: Memory| (memory.local_mib * machines, memory.slices * mib * pools);
    let (mut base, mut local, mut pool, mut late) = (0, 0, 0, 0);
    let (mut slow, mut placed, mut pooled) = ((0.0, 0.0), 0.0, (0.0, 0.0, 0.0));
    let (mut shares, mut each, mut worths) = (Vec::new(), Vec::new(), Vec::new());
    let mut as_split = (0, 0);
    let (mut kept, mut of_kept) = (Kept::default(), 0);
    for replayed in replayed {
        let needs = &replayed.needs;
        if let Some(found) = needs.kept.get(at).and_then(|sizes| sizes.get(size)) {
            kept.add(found);
            of_kept += replayed.placed;
        }
        let need = needs.with.get(at).and_then(|sizes| sizes.get(size));
        let (Some(without), Some(Some(need))) = (needs.without, need) else {
            continue;
        };
        slow = (slow.0 + need.slow.0, slow.1 + need.slow.1);
        placed += replayed.placed as f64;
        pooled.0 += need.pooled.0;
        pooled.1 += need.pooled.1;
        pooled.2 += need.pooled.2;
        let (before, (own, shared)) = (without * machines, memory(need.least));
        if let Some(least) = need.as_split {
            let (own, shared) = memory(least);
            as_split = (as_split.0 + before, as_split.1 + own + shared);
        }
        base += before;
        local += own;
        pool += shared;
        late += need.buffer * pools;
        shares.push(100.0 * share_saved(before, own + shared));
        let less = gib(before) - gib(own);
        each.push((less - gib(shared)) / pools as f64);
        worths.push((less - gib(shared) * terms.price_ratio) / pools as f64);
    }
    let now = u64::from(terms.machine.memory_mib) * machines * shares.len() as u64;
    let bytes = |mib: u64| Bytes::mib(mib);
    let all_pools = pools * shares.len() as u64;
    // Server memory that is not bought, less what the pool's costs, in GB of server memory for a pool.
    let worth = mean(&worths);
    let parts = terms.prices.of_server() * f64::from(of_pool.min(terms.machines));
    let gross = terms.prices.server_dram * worth;
    let device = gross - parts - terms.prices.operation;
    let needed = terms.prices.of_pool() + parts;
    Saving {
        policy: policy.to_string(),
        sockets,
        without: bytes(base),
        local: bytes(local),
        pool: bytes(pool),
        saved: bytes(base.saturating_sub(local + pool)),
        saved_pct: 100.0 * share_saved(base, local + pool),
        saved_ci95_pct: half_width(&shares),
        saved_each_gib: mean(&each),
        saved_each_ci95_gib: half_width(&each),
        against_now_pct: 100.0 * share_saved(now, local + pool),
        without_pct: 100.0 * share_saved(now, base),
        as_split_pct: (as_split.0 > 0).then(|| 100.0 * share_saved(as_split.0, as_split.1)),
        kept_pct: 100.0 * kept.summed.saved(),
        kept_uniform_pct: 100.0 * kept.uniform.saved(),
        touching_pct: 100.0 * kept.touching as f64 / f64::max(of_kept as f64, 1.0),
        release: kept.starts.needed(),
        buffer: bytes(late * mib),
        may_pct: 100.0 * pooled.1 / f64::max(pooled.2, 1.0),
        pooled_pct: 100.0 * pooled.0 / f64::max(pooled.2, 1.0),
        slow_pct: 100.0 * slow.0 / f64::max(placed, 1.0),
        slow_as_split_pct: 100.0 * slow.1 / f64::max(placed, 1.0),
        pools: all_pools,
        net: gross - needed,
        net_ci95: half_width(&worths).map(|half| terms.prices.server_dram * half),
        pays_below: (device.get() > 0.0).then_some(device),
        pays_above: (worth > 0.0).then(|| needed / worth),
    }
}

/// The mean; 0 of nothing.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Half of the 95 % interval of a mean.
fn half_width(values: &[f64]) -> Option<f64> {
    let count = values.len();
    if count < 2 {
        return None;
    }
    let n = count as f64;
    let mean = mean(values);
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    let freedom = u32::try_from(count - 1).unwrap_or(u32::MAX);
    Some(student_t975(freedom) * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::kept::Provision;
    use crate::pool::release::Starts;
    use crate::pool::replay::{Need, Needs};

    /// Half of the memory stays with the machines, and a pool has as much as one had before.
    fn replayed(base: u64) -> Replayed {
        let mib = u64::from(GIB);
        let least = Memory {
            local_mib: base / 2 * mib,
            slices: base,
            of_pool: 4,
        };
        let as_split = Memory {
            slices: base / 2,
            ..least
        };
        let need = Need {
            least,
            as_split: Some(as_split),
            buffer: 1,
            slow: (0.2, 0.4),
            pooled: (1.0, 2.0, 4.0),
        };
        let summed = Provision {
            without_mib: 100,
            local_mib: 60,
            pool_mib: 30,
        };
        let kept = Kept {
            summed,
            uniform: Provision {
                pool_mib: 50,
                ..summed
            },
            touching: 1,
            starts: Starts::default(),
        };
        let needs = Needs {
            without: Some(base * mib),
            kept: vec![vec![kept]],
            with: vec![vec![Some(need)]],
        };
        Replayed {
            placed: 10,
            refused: 0,
            spanning: 0,
            apart: (0.0, 0.0),
            events: 20,
            days: Vec::new(),
            machines: Vec::new(),
            needs,
            stopped_at: None,
        }
    }

    #[test]
    fn money_and_break_even_prices_by_hand() {
        let mut prices = Prices::builtin().unwrap();
        prices.card = Usd(100.0);
        let terms = Terms {
            machines: 8,
            machine: Machine {
                millicores: 96_000,
                memory_mib: 8000 * GIB,
            },
            prices: &prices,
            price_ratio: 0.5,
        };
        let policies = [Policy::Fixed(0.5)];
        let rows = savings(&policies, &[8], &[replayed(4000)], &terms);
        let row = &rows[0];
        // Eight machines of 4000 GiB become eight of 2000 and two pools of 4000.
        assert_eq!(
            (row.saved, row.saved_pct, row.pools),
            (Bytes::gib(8000), 25.0, 2)
        );
        assert_eq!(
            (row.saved_ci95_pct, row.buffer, row.as_split_pct),
            (None, Bytes::gib(2), Some(37.5))
        );
        assert_eq!(
            (row.saved_each_gib, row.saved_each_ci95_gib),
            (4000.0, None)
        );
        // A pool: 4 x 2000 GB less than before, 4000 of the pool at half price, at 3 USD; less 38,500 and four cards.
        assert_eq!(row.net, Usd(18_000.0 - 38_500.0 - 400.0));
        assert_eq!(row.pays_below, Some(Usd(17_600.0)));
        assert_eq!(row.pays_above, Some(Usd(38_900.0 / 6000.0)));
        assert_eq!((row.slow_pct, row.slow_as_split_pct), (2.0, 4.0));
        assert_eq!((row.against_now_pct, row.without_pct), (62.5, 50.0));
        assert_eq!((row.may_pct, row.pooled_pct), (50.0, 25.0));
        let kept = [row.kept_pct, row.kept_uniform_pct, row.touching_pct];
        for (found, wanted) in kept.into_iter().zip([10.0, -10.0, 10.0]) {
            assert!((found - wanted).abs() < 1e-9, "{kept:?}");
        }
    }

    #[test]
    fn clusters_give_an_interval() {
        let prices = Prices::builtin().unwrap();
        let terms = Terms {
            machines: 8,
            machine: Machine {
                millicores: 96_000,
                memory_mib: 8000 * GIB,
            },
            prices: &prices,
            price_ratio: 1.0,
        };
        let policies = [Policy::Fixed(0.5)];
        let rows = savings(
            &policies,
            &[8],
            &[replayed(4000), replayed(4000), replayed(4000)],
            &terms,
        );
        assert_eq!(
            (rows[0].saved_pct, rows[0].saved_ci95_pct),
            (25.0, Some(0.0))
        );
        // Two pools save 2000, then 4000 GB of 2000 and 4000 for each machine; a device costs the same.
        let rows = savings(&policies, &[8], &[replayed(2000), replayed(4000)], &terms);
        let each = half_width(&[2000.0, 4000.0]);
        assert_eq!(
            (rows[0].saved_each_gib, rows[0].saved_each_ci95_gib),
            (3000.0, each)
        );
        assert_eq!(rows[0].net_ci95, each.map(|gib| prices.server_dram * gib));
        assert!((half_width(&[1.0, 3.0]).unwrap() - 12.71).abs() < 0.01);
    }
}
