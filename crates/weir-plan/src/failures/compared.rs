//! Classes of memory side by side: what each needs, how long a load takes, and what it loses with a pool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, Nanos};

use super::Topology;
use super::classes::{Allocated, Class, Loss, Touched};
use super::tally::words;
use crate::latency::{Build, Latency};
use crate::pool::SOCKETS;
use crate::pool::stranding::percentile;
use crate::trace::GIB;

/// A class of memory, with pools of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRow {
    /// How memory is allocated.
    pub class: String,
    /// Sockets that share a pool; 0 without one.
    pub sockets: u32,
    /// The same in words.
    pub pool: String,
    /// Clusters for whose VMs there is room.
    pub clusters: u64,
    /// Memory of all machines of these clusters, of equal ones the least.
    pub own: Bytes,
    /// Memory of all their pools.
    pub shared: Bytes,
    /// What is saved against machines without pools, below 0 where more is needed.
    pub saved_pct: f64,
    /// Mean share of the memory of VMs that is in the pool.
    pub pooled_pct: f64,
    /// Mean time of a load where what a VM touches is spread evenly over its memory.
    pub load: Nanos,
    /// The same as a multiple of local memory.
    pub times_local: f64,
    /// Mean time of a load where a VM has in the pool first what it never touches.
    pub load_cold: Nanos,
    /// The same as a multiple of local memory.
    pub times_local_cold: f64,
    /// VMs that the loss of one device of a pool kills, in the mean.
    pub killed_partial: f64,
    /// VMs that it tells, which lose optional memory and go on; absent where no memory is optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_partial: Option<f64>,
    /// VMs that the loss of a whole pool kills, in the mean.
    pub killed_total: f64,
    /// The same at the 99th percentile.
    pub killed_total_p99: f64,
    /// VMs that it tells; absent where no memory is optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_total: Option<f64>,
}

/// How long loads take: from local memory and pools, and what a fault adds.
#[derive(Debug, Clone, PartialEq)]
pub struct Speeds {
    /// Loads.
    pub latency: Latency,
    /// What a fault adds to the load that brings a page in.
    pub fault: Nanos,
}

impl Speeds {
    /// Mean time of a load of which this share is of memory in the pool.
    fn load(&self, class: Class, sockets: u32, share: f64, topology: &Topology) -> Nanos {
        let build = match topology.switched {
            true => Build::switched(sockets),
            false => Build::of(sockets),
        };
        let fault = match class {
            Class::Swap => self.fault,
            _ => Nanos(0.0),
        };
        let local = self.latency.local();
        let pool = self.latency.load("", sockets, build).total + fault;
        // Swapped memory is read locally once it is there.
        let added = match class {
            Class::Swap => pool,
            _ => pool - local,
        };
        local + added * share
    }
}

/// A row for each class and size of pools; the classes of each cluster are in one order.
pub fn rows(topology: &Topology, clusters: &[Vec<Allocated>], speeds: &Speeds) -> Vec<ClassRow> {
    let clusters = clusters.iter().filter(|classes| !classes.is_empty());
    let clusters: Vec<&Vec<Allocated>> = clusters.collect();
    let count = clusters.first().map_or(0, |classes| classes.len());
    (0..count)
        .filter_map(|at| row(topology, &clusters, at, speeds))
        .collect()
}

fn row(
    topology: &Topology,
    clusters: &[&Vec<Allocated>],
    at: usize,
    speeds: &Speeds,
) -> Option<ClassRow> {
    let machines = u64::from(topology.machines);
    let first = clusters.first()?.get(at)?;
    let pools = match first.sockets {
        0 => 0,
        sockets => machines / u64::from((sockets / SOCKETS).max(1)),
    };
    let (mut count, mut base, mut own, mut shared) = (0u64, 0.0, 0u64, 0u64);
    let (mut pooled, mut touched) = ((0.0, 0.0), Touched::default());
    let mut losses: Vec<(Loss, Loss)> = Vec::new();
    for classes in clusters {
        let (local, of) = (classes.first()?.memory?, classes.get(at)?);
        let Some(memory) = of.memory else { continue };
        count += 1;
        base += (local.local_mib * machines) as f64;
        own += memory.local_mib * machines;
        shared += memory.slices * u64::from(GIB) * pools;
        pooled = (pooled.0 + of.pooled.0, pooled.1 + of.pooled.1);
        touched.even += of.touched.even;
        touched.cold += of.touched.cold;
        touched.all += of.touched.all;
        losses.extend(&of.losses);
    }
    if count == 0 {
        return None;
    }
    let share = |(part, all): (f64, f64)| if all > 0.0 { part / all } else { 0.0 };
    let load = |share| speeds.load(first.class, first.sockets, share, topology);
    let mean = |of: fn(&(Loss, Loss)) -> u64| {
        losses.iter().map(|loss| of(loss) as f64).sum::<f64>() / losses.len().max(1) as f64
    };
    let mut total: Vec<f64> = losses.iter().map(|loss| loss.1.killed as f64).collect();
    total.sort_by(f64::total_cmp);
    let (even, cold) = (
        load(share((touched.even, touched.all))),
        load(share((touched.cold, touched.all))),
    );
    let optional = topology.optional > 0.0;
    let local = speeds.latency.local();
    Some(ClassRow {
        class: first.class.name().to_owned(),
        sockets: first.sockets,
        pool: match first.sockets {
            0 => "no pool".into(),
            sockets => words(sockets),
        },
        clusters: count,
        own: Bytes::mib(own),
        shared: Bytes::mib(shared),
        saved_pct: 100.0 * (1.0 - (own + shared) as f64 / f64::max(base, 1.0)),
        pooled_pct: 100.0 * share(pooled),
        load: even,
        times_local: even / local,
        load_cold: cold,
        times_local_cold: cold / local,
        killed_partial: mean(|loss| loss.0.killed),
        told_partial: optional.then(|| mean(|loss| loss.0.told)),
        killed_total: mean(|loss| loss.1.killed),
        killed_total_p99: percentile(&total, 0.99),
        told_total: optional.then(|| mean(|loss| loss.1.told)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::room::Memory;
    use proptest::prelude::*;

    fn topology(switched: bool) -> Topology {
        Topology {
            sockets: vec![8],
            machines: 8,
            machine: crate::trace::generate::MACHINE,
            share: 0.5,
            optional: 0.5,
            devices: 2,
            interleaved: false,
            switched,
            moments: 2,
            seed: 1,
        }
    }

    fn speeds(fault: f64) -> Speeds {
        Speeds {
            latency: Latency::default(),
            fault: Nanos(fault),
        }
    }

    fn allocated(class: Class, sockets: u32, (local, slices): (u64, u64)) -> Allocated {
        let lost = |killed, told| Loss { killed, told };
        Allocated {
            class,
            sockets,
            memory: Some(Memory {
                local_mib: local * u64::from(GIB),
                slices,
                of_pool: 4,
            }),
            pooled: (1.0, 4.0),
            touched: Touched {
                even: 2.0,
                cold: 1.0,
                all: 8.0,
            },
            losses: vec![(lost(1, 0), lost(2, 1)), (lost(0, 1), lost(4, 1))],
        }
    }

    #[test]
    fn rows_by_hand() {
        let none = Allocated {
            memory: None,
            ..allocated(Class::Swap, 8, (0, 0))
        };
        let cluster = |last| {
            vec![
                allocated(Class::Local, 0, (100, 0)),
                allocated(Class::Transparent, 8, (50, 100)),
                last,
            ]
        };
        let clusters = [
            cluster(allocated(Class::Swap, 8, (50, 100))),
            cluster(none),
            Vec::new(),
        ];
        let rows = rows(&topology(false), &clusters, &speeds(10_000.0));
        // Two clusters of eight machines; each has two pools.
        assert_eq!(
            (rows[1].own, rows[1].shared, rows[1].saved_pct),
            (Bytes::gib(800), Bytes::gib(400), 25.0)
        );
        // A quarter of the loads takes 70 ns more, or 155 and a fault.
        assert_eq!(
            (rows[1].load, rows[1].load_cold),
            (Nanos(102.5), Nanos(93.75))
        );
        assert_eq!(rows[2].load, Nanos(85.0 + 0.25 * 10_155.0));
        assert_eq!((rows[1].clusters, rows[2].clusters), (2, 1));
        let losses = (rows[1].killed_partial, rows[1].told_partial);
        assert_eq!(losses, (0.5, Some(0.5)));
        assert_eq!((rows[1].killed_total, rows[1].killed_total_p99), (3.0, 4.0));
    }

    proptest! {
        #[test]
        fn swap_is_never_faster_than_load_and_store_and_a_pool_never_than_local_memory(
            share in 0.0..=1.0f64, sockets in 2..64u32, fault in 0.0..1e6f64, switched: bool,
        ) {
            let (topology, speeds) = (topology(switched), speeds(fault));
            let load = |class| speeds.load(class, sockets, share, &topology).get();
            let (local, pool, swap) = (load(Class::Local), load(Class::Spill), load(Class::Swap));
            prop_assert!(speeds.latency.local().get() <= pool && pool <= swap, "{local} {pool} {swap}");
        }
    }
}
