//! The mesh: how long a message takes from a core to a slice.
//!
//! Cores and slices are on a near-square grid: a slice on every tile, and the cores spread evenly. A hop
//! costs one mesh cycle vertically and two horizontally (as on Skylake-SP and later). The mesh has no queues
//! here, because its links are never the bottleneck of the modelled traffic. Core complexes have no mesh: a
//! core is near its own slice and far from all others.

use crate::clock::Ps;

/// One-way delays from each core to each slice.
pub struct Mesh {
    delays: Vec<Ps>,
    slices: usize,
    /// Cores of one socket.
    cores: usize,
}

impl Mesh {
    /// A mesh of `slices` tiles with `cores` cores on them, `hop` per vertical hop. The tiles of each of several
    /// `clusters` are side by side, two clusters in a row, like the chiplets of a processor.
    pub fn new(cores: u32, slices: u32, hop: Ps, clusters: u32) -> Self {
        let each = (slices / clusters.max(1)).max(1);
        let columns = (f64::from(each).sqrt().ceil() as u32).max(1);
        let place = |tile: u32| {
            let (cluster, tile) = (tile / each, tile % each);
            let (x, y) = (tile % columns, tile / columns);
            (
                x + cluster % 2 * columns,
                y + cluster / 2 * each.div_ceil(columns),
            )
        };
        let mut delays = Vec::with_capacity((cores * slices) as usize);
        for core in 0..cores {
            let (cx, cy) = place(core * slices / cores.max(1));
            for slice in 0..slices {
                let (sx, sy) = place(slice);
                let hops = 2 * cx.abs_diff(sx) + cy.abs_diff(sy);
                delays.push(hop * Ps::from(hops + 1));
            }
        }
        Self {
            delays,
            slices: slices as usize,
            cores: cores.max(1) as usize,
        }
    }

    /// Core complexes in place of a mesh: each is one slice, `hop` from its own cores and `crossing` from all
    /// others.
    pub fn of_complexes(cores: u32, complexes: u32, hop: Ps, crossing: Ps) -> Self {
        let each = (cores / complexes.max(1)).max(1);
        let delay = |core, slice| match core / each == slice {
            true => hop,
            false => crossing,
        };
        Self {
            delays: (0..cores)
                .flat_map(|core| (0..complexes).map(move |slice| delay(core, slice)))
                .collect(),
            slices: complexes as usize,
            cores: cores.max(1) as usize,
        }
    }

    /// This many sockets or hosts, each with such a mesh. The numbers of cores and slices continue on the next.
    /// Delays are known within one of them only.
    pub fn times(mut self, parts: u32) -> Self {
        // The slices of the second part start at `slices`; the table has one row more than its cores.
        let mut next = vec![0; self.slices];
        next.extend_from_slice(&self.delays);
        (1..parts).for_each(|_| self.delays.extend_from_slice(&next));
        self
    }

    /// One-way delay.
    #[inline]
    pub fn delay(&self, core: u16, slice: u16) -> Ps {
        self.delays[core as usize * self.slices + slice as usize]
    }

    /// One-way delay from a core to the tile of another core.
    pub fn between(&self, from: u16, to: u16) -> Ps {
        let (socket, to) = (to as usize / self.cores, to as usize % self.cores);
        let tile = socket * self.slices + to * self.slices / self.cores;
        self.delay(from, tile as u16)
    }

    /// Mean one-way delay from a core to the first `among` slices.
    pub fn mean_from(&self, core: u16, among: u32) -> f64 {
        let from = core as usize * self.slices;
        let row = &self.delays[from..from + among as usize];
        row.iter().sum::<Ps>() as f64 / f64::from(among)
    }
}

/// The slice of a line, among those that hold lines of its tier. The real hash is an undocumented XOR of
/// address bits and nearly uniform; so is this one.
#[inline]
pub fn slice_of(line: u64, tier: u8, slices: u32) -> u16 {
    let h = (line ^ (u64::from(tier) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (((h >> 32) * u64::from(slices)) >> 32) as u16
}
