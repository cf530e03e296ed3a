//! Calibration of this host: real micro-workloads on two of its nodes, counted.

use weir_insight::forecast::COUNTERS;
use weir_insight::slowdown::Pair;
use weir_insight::two_tiers::{Tiers, form_of, model_of};
use weir_linux::memory::{self, Policy, Share};
use weir_linux::micro::{Chains, Micro, MicroRun};
use weir_linux::{perf, pin};
use weir_model::counters::Counter;
use weir_model::events::EventLibrary;
use weir_model::insight::{Micro as Kind, SlowdownModel};
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::insight::Going;
use crate::nodes::{node_of, pair_here};
use crate::system::System;

/// Memory of a micro-workload, where the caches are no larger than a quarter of it.
const BYTES: Bytes = Bytes::gib(1);

/// Lines that one touches: seconds of a chase.
const ACCESSES: u64 = 20_000_000;

/// What is counted besides the model's own: stalls of every level, for the causes on either node.
const MORE: [Counter; 2] = [Counter::StallsMemAny, Counter::TaskClock];

/// This host, its tiers, and what it is made of with the name that tables of events know its processor
/// by.
pub(super) struct CalibratedHost {
    pub(super) system: System,
    pub(super) tiers: Tiers,
    pub(super) topology: Topology,
}

/// Looks for what calibration needs: two nodes, counters of the cores, a processor whose prefetch counters
/// are known.
///
/// # Errors
/// The first that is missing.
pub(super) fn find(context: &Context, from: &TierName, to: &TierName) -> Result<CalibratedHost> {
    let (system, tiers) = pair_here(context, from, to)?;
    perf::probe_core().map_err(|why| {
        Failure::Missing(anyhow::anyhow!(
            "calibration counts stalls by level, and this processor's counters are not to be had: {why}"
        ))
    })?;
    let library = EventLibrary::builtin();
    let table = perf::table(&system.root, &library);
    let table = table.map_err(|why| Failure::Missing(anyhow::anyhow!("{why}")))?;
    let mut topology = system.view.topology()?;
    topology.processor = format!("{}, {}", table.name, topology.processor);
    form_of(&topology).map_err(|why| Failure::Missing(why.into()))?;
    Ok(CalibratedHost {
        system,
        tiers,
        topology,
    })
}

/// Runs the micro-workloads on both nodes and fits the constants. Nothing is held out: there is no
/// population of real programs to draw from.
///
/// # Errors
/// Memory or a processor is not to be had, counters are missing, or it was stopped.
pub(super) fn calibrate(
    host: &CalibratedHost,
    context: &Context,
    going: &Going<'_>,
) -> Result<SlowdownModel> {
    let library = EventLibrary::builtin();
    let root = &host.system.root;
    let table = perf::table(root, &library);
    let table = table.map_err(|why| Failure::Missing(anyhow::anyhow!("{why}")))?;
    let cpus = pin::allowed_cpus();
    let cpus = cpus.map_err(|why| Failure::work(why.reason))?;
    let counters = [&COUNTERS[..], &MORE].concat();
    let bench = MicroRun {
        root,
        table,
        counters: &counters,
        cpu: cpus.first().copied().unwrap_or(0),
        bytes: bytes(host)?,
        accesses: ACCESSES,
        seed: context.global.seed,
    };
    let policy = Policy::probe();
    let micros = micros();
    let mut pairs = Vec::new();
    for (kind, name, micro) in &micros {
        let on = |tier: &TierName| -> Result<_> {
            let share = Share {
                tier: tier.clone(),
                node: Some(node_of(&host.topology, tier)?),
                weight: 1,
            };
            Ok(bench.run(*micro, &share, &policy)?)
        };
        if !going.step(micros.len()) {
            return Err(Failure::Partial(
                "stopped before the micro-workloads were through".into(),
            ));
        }
        pairs.push(Pair {
            name: name.clone(),
            micro: *kind,
            local: on(&host.tiers.from)?,
            target: on(&host.tiers.to)?,
        });
    }
    let of = (&host.system.identity, &host.topology);
    Ok(model_of(&pairs, of, &host.tiers)?)
}

/// As much as both nodes have room for, and no more than is needed.
fn bytes(host: &CalibratedHost) -> Result<Bytes> {
    let mut bytes = BYTES;
    for tier in [&host.tiers.from, &host.tiers.to] {
        let node = node_of(&host.topology, tier)?;
        if let Some(room) = memory::free_memory(&host.system.root, Some(node)) {
            bytes = bytes.min(Bytes(room.free.get() / 2));
        }
    }
    Ok(bytes)
}

/// Every micro-workload at its intensities, as on models.
fn micros() -> Vec<(Kind, String, Micro)> {
    const WORK: [u32; 3] = [0, 8, 32];
    const STRIDES: [Bytes; 3] = [Bytes(64), Bytes(256), Bytes(512)];
    let chases = Chains::ALL.map(|chains| {
        let name = format!("chase-{}", chains.number());
        (Kind::Chase, name, Micro::Chase(chains))
    });
    let stores = WORK.map(|work| (Kind::Store, format!("store-w{work}"), Micro::Store { work }));
    let lists = WORK.into_iter().flat_map(|work| {
        STRIDES.map(|stride| {
            let name = format!("list-s{}-w{work}", stride.get());
            (Kind::List, name, Micro::List { stride, work })
        })
    });
    chases.into_iter().chain(stores).chain(lists).collect()
}
