//! Memory and money that pools save, over all clusters, with the prices at which they break even.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::statistics::student_t975;
use weir_model::units::{Bytes, Usd};

use super::books::Needs;
use super::replay::Replayed;
use super::split::Policy;
use crate::prices::Prices;
use crate::trace::GIB;

/// What money depends on.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'p> {
    /// Machines of a cluster.
    pub machines: u32,
    /// Prices of parts.
    pub prices: &'p Prices,
    /// Price of the pool's memory as a share of that of a server's.
    pub price_ratio: f64,
}

/// A policy with pools of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"saved_pct": "saved_ci95_pct"}))]
pub struct Saving {
    /// What decides where memory is.
    pub policy: String,
    /// Sockets that share a pool.
    pub sockets: u32,
    /// Local memory of all machines: equal ones with the least memory with which VMs find room.
    pub local: Bytes,
    /// Memory of all pools, equal ones as well.
    pub pool: Bytes,
    /// Memory that is saved, against the least with all of it local; 0 where more is needed.
    pub saved: Bytes,
    /// The same in percent, below 0 where more is needed.
    pub saved_pct: f64,
    /// Half of the 95 % interval of it over clusters; absent for one cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_ci95_pct: Option<f64>,
    /// What is saved if VMs stay on the machines on which they are placed without a pool, and each machine and each pool
    /// has memory for its own peak.
    pub peaks_pct: f64,
    /// Pool memory that these peaks need more because slices are released after their VM has left.
    pub buffer: Bytes,
    /// Mean share of the memory in use that is in the pool.
    pub pooled_pct: f64,
    /// VMs that are slower than the margin, as the predictions let expect.
    pub slow_pct: f64,
    /// Pools of all clusters.
    pub pools: u64,
    /// What is left over for each pool, after its device, cables and cards.
    pub net: Usd,
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
    for (at, policy) in policies.iter().enumerate().skip(1) {
        for (size, &sockets) in sockets.iter().enumerate() {
            rows.push(saving(policy, at, (size, sockets), replayed, terms));
        }
    }
    rows
}

fn saving(
    policy: &Policy,
    at: usize,
    (size, sockets): (usize, u32),
    replayed: &[Replayed],
    terms: &Terms<'_>,
) -> Saving {
    let mib = u64::from(GIB);
    let of_pool = sockets / super::SOCKETS;
    let pools = u64::from(terms.machines.div_ceil(of_pool));
    let machines = u64::from(terms.machines);
    let (mut base, mut local, mut pool) = (0, 0, 0);
    let (mut peaks_base, mut peaks, mut late) = (0, 0, 0);
    let (mut slow, mut placed, mut pooled) = (0.0, 0.0, (0.0, 0.0));
    let mut shares = Vec::new();
    for replayed in replayed {
        let (Some(all_local), Some(needs)) = (replayed.needs.first(), replayed.needs.get(at))
        else {
            continue;
        };
        let of_pools = needs.pools.get(size).map_or(0, |pools| pools.0);
        peaks_base += all_local.local;
        peaks += needs.local + of_pools * mib;
        late += of_pools - needs.at_once.get(size).copied().unwrap_or(0).min(of_pools);
        slow += needs.slow * replayed.placed as f64;
        placed += replayed.placed as f64;
        pooled = (pooled.0 + needs.pooled.0, pooled.1 + needs.pooled.1);
        let least = |needs: &Needs, size: usize| needs.least.get(size).copied().flatten();
        let (Some(whole), Some(least)) = (least(all_local, 0), least(needs, size)) else {
            continue;
        };
        let (before, own, shared) = (
            whole.local_mib * machines,
            least.local_mib * machines,
            least.slices * mib * pools,
        );
        base += before;
        local += own;
        pool += shared;
        shares.push(100.0 * share_saved(before, own + shared));
    }
    let bytes = |mib: u64| Bytes::mib(mib);
    let all_pools = pools * shares.len() as u64;
    let gib = |mib: u64| mib as f64 / mib_of_gib();
    let of_one = |all: f64| all / all_pools.max(1) as f64;
    // Server memory that is not bought, less what the pool's costs, in GB of server memory for a pool.
    let worth = of_one(gib(base) - gib(local) - gib(pool) * terms.price_ratio);
    let parts = terms.prices.of_server() * f64::from(of_pool.min(terms.machines));
    let gross = terms.prices.server_dram * worth;
    let device = gross - parts - terms.prices.operation;
    let needed = terms.prices.of_pool() + parts;
    Saving {
        policy: policy.to_string(),
        sockets,
        local: bytes(local),
        pool: bytes(pool),
        saved: bytes(base.saturating_sub(local + pool)),
        saved_pct: 100.0 * share_saved(base, local + pool),
        saved_ci95_pct: half_width(&shares),
        peaks_pct: 100.0 * share_saved(peaks_base, peaks),
        buffer: bytes(late * mib),
        pooled_pct: 100.0 * pooled.0 / f64::max(pooled.1, 1.0),
        slow_pct: 100.0 * slow / f64::max(placed, 1.0),
        pools: all_pools,
        net: gross - needed,
        pays_below: (device.get() > 0.0).then_some(device),
        pays_above: (worth > 0.0).then(|| needed / worth),
    }
}

fn mib_of_gib() -> f64 {
    f64::from(GIB)
}

fn share_saved(base: u64, needed: u64) -> f64 {
    match base {
        0 => 0.0,
        base => 1.0 - needed as f64 / base as f64,
    }
}

/// Half of the 95 % interval of a mean.
fn half_width(values: &[f64]) -> Option<f64> {
    let count = values.len();
    if count < 2 {
        return None;
    }
    let n = count as f64;
    let mean = values.iter().sum::<f64>() / n;
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
    use crate::pool::provision::Memory;

    fn needs(local: u64, pools: u64) -> Needs {
        let mib = u64::from(GIB);
        Needs {
            local: 8 * local * mib,
            pools: vec![(2 * pools, pools)],
            at_once: vec![2 * pools - u64::from(pools > 0)],
            slow: 0.02,
            pooled: (1.0, 4.0),
            least: vec![Some(Memory {
                local_mib: local * mib,
                slices: pools,
                of_pool: 4,
            })],
        }
    }

    fn replayed(base: u64) -> Replayed {
        Replayed {
            placed: 10,
            refused: 0,
            events: 20,
            days: Vec::new(),
            needs: vec![needs(base, 0), needs(base / 2, base)],
            stopped_at: None,
        }
    }

    #[test]
    fn money_and_break_even_prices_by_hand() {
        let mut prices = Prices::builtin().unwrap();
        prices.card = Usd(100.0);
        let terms = Terms {
            machines: 8,
            prices: &prices,
            price_ratio: 0.5,
        };
        let policies = [Policy::AllLocal, Policy::Fixed(0.5)];
        let rows = savings(&policies, &[8], &[replayed(4000)], &terms);
        let row = &rows[0];
        // Eight machines of 4000 GiB become eight of 2000 and two pools of 4000.
        assert_eq!(
            (row.saved, row.saved_pct, row.pools),
            (Bytes::gib(8000), 25.0, 2)
        );
        assert_eq!(
            (row.saved_ci95_pct, row.buffer, row.peaks_pct),
            (None, Bytes::gib(1), 25.0)
        );
        // A pool: 4 x 2000 GB less than before, 4000 of the pool at half price, at 3 USD; less 38,500 and four cards.
        assert_eq!(row.net, Usd(18_000.0 - 38_500.0 - 400.0));
        assert_eq!(row.pays_below, Some(Usd(17_600.0)));
        assert_eq!(row.pays_above, Some(Usd(38_900.0 / 6000.0)));
        assert_eq!(row.slow_pct, 2.0);
    }

    #[test]
    fn clusters_give_an_interval() {
        let prices = Prices::builtin().unwrap();
        let terms = Terms {
            machines: 8,
            prices: &prices,
            price_ratio: 1.0,
        };
        let policies = [Policy::AllLocal, Policy::Fixed(0.5)];
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
        assert!((half_width(&[1.0, 3.0]).unwrap() - 12.71).abs() < 0.01);
    }
}
