//! Which cuts of memory can be bought: a processor takes equal DIMMs in all channels (A Case Against CXL Memory
//! Pooling, section 3.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, Usd};

use crate::prices::Prices;

/// Sizes of DIMMs that are sold, in GB.
pub const SIZES: [u32; 5] = [32, 48, 64, 96, 128];

/// Servers whose memory is cut, and the pool they get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fleet {
    /// Servers that share the pool.
    pub servers: u32,
    /// Sockets of a server.
    pub sockets: u32,
    /// Channels of a socket.
    pub channels: u32,
    /// The DIMM that servers have now, in GB.
    pub dimm: u32,
    /// Channels of the pool.
    pub pool_channels: u32,
    /// Share of all memory that the pool saves.
    pub saved: f64,
    /// Price of the pool's memory as a share of that of a server's.
    pub price_ratio: f64,
}

/// A smaller DIMM, and what it leaves of the saving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cut {
    /// The DIMM in servers.
    pub dimm: Bytes,
    /// Memory of a server with it.
    pub server: Bytes,
    /// What a server has less than now.
    pub cut_pct: f64,
    /// What the pool must have, so that only the saving is missing, in percent of the memory now.
    pub need_pool_pct: f64,
    /// What the pool must have.
    pub need_pool: Bytes,
    /// The DIMM in the pool that exceeds this least; absent where no pool is needed.
    pub pool_dimm: Option<Bytes>,
    /// What the pool has with DIMMs in all its channels.
    pub have_pool: Bytes,
    /// Memory that is not bought, in percent of the memory now; below zero where more is bought.
    pub net_pct: f64,
    /// What is left over after pool, cables and cards.
    pub net: Usd,
}

impl Fleet {
    /// Memory of a server with this DIMM, in GB.
    pub fn server_gb(&self, dimm: u32) -> u64 {
        u64::from(self.sockets) * u64::from(self.channels) * u64::from(dimm)
    }

    /// Every smaller DIMM, the largest first.
    pub fn cuts(&self, prices: &Prices) -> Vec<Cut> {
        let smaller = SIZES.iter().rev().filter(|size| **size < self.dimm);
        smaller.map(|&size| self.cut(size, prices)).collect()
    }

    fn cut(&self, dimm: u32, prices: &Prices) -> Cut {
        let now = self.server_gb(self.dimm) as f64 * f64::from(self.servers);
        let cut = 1.0 - f64::from(dimm) / f64::from(self.dimm);
        let need = now * (cut - self.saved).max(0.0);
        let filled = |&size: &u32| {
            let step = f64::from(self.pool_channels) * f64::from(size);
            // Of a need that is met exactly, rounding must not make one step more.
            (size, (need / step - 1e-9).ceil().max(0.0) * step)
        };
        let (pool_dimm, have) = match need > 0.0 {
            true => (SIZES.iter().map(filled))
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .map_or((None, 0.0), |(size, have)| (Some(size), have)),
            false => (None, 0.0),
        };
        let money = prices.server_dram * (now * cut - have * self.price_ratio)
            - prices.of_server() * f64::from(self.servers)
            - prices.of_pool();
        let gib = |gb: f64| Bytes((gb * (1u64 << 30) as f64).round() as u64);
        Cut {
            dimm: Bytes::gib(u64::from(dimm)),
            server: Bytes::gib(self.server_gb(dimm)),
            cut_pct: 100.0 * cut,
            need_pool_pct: 100.0 * need / now,
            need_pool: gib(need),
            pool_dimm: pool_dimm.map(|size| Bytes::gib(u64::from(size))),
            have_pool: gib(have),
            net_pct: 100.0 * (cut - have / now),
            net: money,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GENOA: Fleet = Fleet {
        servers: 32,
        sockets: 2,
        channels: 12,
        dimm: 128,
        pool_channels: 12,
        saved: 0.09,
        price_ratio: 1.0,
    };

    #[test]
    fn the_smallest_cut_of_128_gb_dimms_is_a_quarter() {
        let cuts = GENOA.cuts(&Prices::builtin().unwrap());
        let first = &cuts[0];
        assert_eq!(first.dimm, Bytes::gib(96));
        assert!((first.cut_pct - 25.0).abs() < 1e-9 && (first.need_pool_pct - 16.0).abs() < 1e-9);
        // 0.16 x 32 x 3072 GB = 15,728.64 GB; twelve channels of 96 GB make steps of 1152 GB, of which 14 are needed, but
        // 41 steps of 384 GB (32 GB DIMMs) are the nearest.
        assert_eq!(first.have_pool, Bytes::gib(15_744));
        assert_eq!(first.pool_dimm, Some(Bytes::gib(32)));
        assert_eq!(cuts.len(), 4);
    }

    #[test]
    fn what_is_left_over_is_the_memory_saved_less_pool_and_parts_of_all_servers() {
        let mut prices = Prices::builtin().unwrap();
        (prices.cables, prices.card) = (Usd(20.0), Usd(30.0));
        let half = Fleet {
            price_ratio: 0.5,
            ..GENOA
        };
        // A quarter of 32 servers of 3072 GB, and the 15,744 GB of the pool at half the price.
        let memory = prices.server_dram.get() * (24_576.0 - 7_872.0);
        let wanted = memory - 32.0 * 50.0 - prices.of_pool().get();
        assert!((half.cuts(&prices)[0].net.get() - wanted).abs() < 1e-6);
    }

    #[test]
    fn a_need_that_is_met_exactly_takes_no_step_more() {
        let prices = Prices::builtin().unwrap();
        for steps in 1..64u32 {
            // From DIMMs of 96 GB to 64 GB, of 73,728 GB; a step is twelve DIMMs of 32 GB.
            let saved = 1.0 / 3.0 - 384.0 * f64::from(steps) / 73_728.0;
            let fleet = Fleet {
                dimm: 96,
                saved,
                ..GENOA
            };
            let have = fleet.cuts(&prices)[0].have_pool;
            assert_eq!(have, Bytes::gib(384 * u64::from(steps)));
        }
    }

    #[test]
    fn a_socket_has_the_published_sizes() {
        let one = Fleet {
            sockets: 1,
            ..GENOA
        };
        assert_eq!(
            [64, 96, 128].map(|dimm| one.server_gb(dimm)),
            [768, 1152, 1536]
        );
    }

    proptest! {
        #[test]
        fn a_pool_has_what_it_needs_and_less_than_a_step_more(
            servers in 1..64u32, channels in 1..16u32, pool_channels in 1..16u32, saved in 0.0..0.3f64,
        ) {
            let fleet = Fleet { servers, channels, pool_channels, saved, ..GENOA };
            for cut in fleet.cuts(&Prices::builtin().unwrap()) {
                prop_assert!(cut.have_pool.0 + 1024 >= cut.need_pool.0);
                let step = Bytes::gib(u64::from(pool_channels) * u64::from(SIZES[0]));
                prop_assert!(cut.have_pool.0 <= cut.need_pool.0 + step.0 + 1024);
                prop_assert!(cut.net_pct <= 100.0 * saved.max(cut.cut_pct / 100.0) + 1e-6);
            }
        }
    }
}
