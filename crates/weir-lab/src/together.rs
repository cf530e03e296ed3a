//! Tenants that run at the same time until their bandwidths are steady: what studies of several kinds of work ask.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::access::{Op, Pattern};
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::{Goal, Machine, MachineError, Observation};
use weir_model::region::RegionUse;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, LINE_BYTES, Nanos};
use weir_model::workload::Workloads;

use crate::room::working_set;
use crate::statistics::Estimate;
use crate::{Ask, Lab, LabError, Load};

/// Tenants on one machine at the same time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Together {
    /// What runs; the interval of the first decides how long all are watched.
    pub tenants: Vec<Tenant>,
}

/// What was seen of [`Together`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenTogether {
    /// How long the tenants were watched.
    pub time: Nanos,
    /// Bytes that the program of each tenant touched.
    pub bytes: Vec<Bytes>,
    /// What each tenant did in its regions, where it is a described program.
    pub uses: Vec<Vec<RegionUse>>,
    /// What the machine counted.
    pub counters: CounterSet,
}

impl Ask for Together {
    type Got = SeenTogether;
    const KIND: &'static str = "tenants together";

    fn ask(&self, lab: &Lab<'_>) -> Result<SeenTogether, LabError> {
        let mut machine = lab.testbed().open(lab.seed())?;
        machine.start(&self.tenants)?;
        let seen = watch(&mut *machine);
        machine.stop()?;
        let seen = seen?;
        Ok(SeenTogether {
            time: seen.window,
            bytes: seen.tenants.iter().map(|tenant| tenant.bytes).collect(),
            uses: seen.tenants.into_iter().map(|tenant| tenant.uses).collect(),
            counters: seen.counters,
        })
    }
}

fn watch(machine: &mut dyn Machine) -> Result<Observation, MachineError> {
    let pacing = machine.pacing(Goal::Bandwidth);
    machine.observe(pacing.warm_up)?;
    let mut all = machine.observe(pacing.window)?;
    let of = |seen: &Observation| seen.tenants.first().map(|t| t.bandwidth(seen.window).get());
    let mut samples = vec![of(&all).unwrap_or_default()];
    for taken in 1..pacing.most_windows.max(2) {
        let reached = Estimate::of(samples.iter().copied()).and_then(|e| e.relative_ci());
        let tight = reached.is_some_and(|share| share <= pacing.relative_ci);
        if taken >= pacing.least_windows.max(2) && tight {
            break;
        }
        let next = machine.observe(pacing.window)?;
        samples.push(of(&next).unwrap_or_default());
        all.extend(next);
    }
    Ok(all)
}

impl SeenTogether {
    /// Bytes per nanosecond.
    pub fn rate(&self, bytes: Bytes) -> GbPerSec {
        GbPerSec::from_bytes_in(bytes, self.time)
    }

    /// Bytes of lines that were read from a tier of this kind by any tenant, or `None` where the machine does not
    /// count them.
    pub fn read_from(&self, kind: TierKind) -> Option<Bytes> {
        let counter = match kind {
            TierKind::Dram => Counter::CasRd,
            TierKind::Remote => Counter::UpiRxData,
            TierKind::Cxl => Counter::CxlRxMemData,
            TierKind::RemoteCxl | TierKind::CpuLess | TierKind::Ssd => return None,
        };
        let lines = self.counters.get(counter).ok()?;
        Some(Bytes(lines * LINE_BYTES))
    }
}

weir_model::named! {
    /// An operator of a database whose input is a column.
    #[derive(Default, Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Operator {
        /// The sum of a column: loads in order.
        #[default]
        Sum = "sum",
        /// A predicate over a column, with a bit vector as its result.
        Filter = "filter",
        /// A hash join: a table that is built of a small column and probed by a large one.
        Join = "join",
    }
}

impl std::str::FromStr for Operator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Operator::ALL.map(Operator::name).join(", ");
        Operator::named(&text.to_lowercase())
            .ok_or_else(|| format!("no operator is called `{text}`; known are {known}"))
    }
}

/// A part of an operator that reads a column of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its name: `probe`.
    pub name: &'static str,
    /// Its description among the workloads and the region that is its input; `None` for a stream of loads.
    described: Option<(&'static str, &'static str)>,
}

impl Operator {
    /// What reads the large column.
    pub const fn scan(self) -> Part {
        let (name, described) = match self {
            Operator::Sum => ("sum", None),
            Operator::Filter => ("filter", Some(("scan-column", "column"))),
            Operator::Join => ("probe", Some(("hash-join-probe", "tuples"))),
        };
        Part { name, described }
    }

    /// What reads the small column: the same, except in a join.
    pub const fn build(self) -> Part {
        match self {
            Operator::Join => Part {
                name: "build",
                described: Some(("hash-join-build", "tuples")),
            },
            _ => self.scan(),
        }
    }
}

impl Part {
    /// Threads on cores from `first` on, their column on one tier, and what they keep (a hash table, a bit vector)
    /// on another.
    ///
    /// # Errors
    /// The machine has no such tier or too few cores.
    pub fn tenant(
        self,
        topology: &Topology,
        column: &TierName,
        state: &TierName,
        (first, threads): (u32, u32),
    ) -> Result<Tenant, LabError> {
        let tier =
            (topology.tier(column)).ok_or_else(|| LabError::unknown_tier(column, topology))?;
        let set = working_set(topology, tier, threads);
        let Some((preset, region)) = self.described else {
            let load = Load::new(column, Op::Ld, Pattern::Sequential, threads, set);
            return tenant_of(&load, topology, first);
        };
        let library = Workloads::builtin();
        let mut work = library
            .get(preset)
            .cloned()
            .ok_or_else(|| LabError::Nothing(format!("there is no description of `{preset}`")))?;
        work.threads = threads;
        let regions = work.phases.iter_mut().flat_map(|phase| &mut phase.regions);
        for column in regions.filter(|of| of.name == region) {
            // As large as the buffers of the other operators: no cache holds it, and any tier does.
            column.bytes = Bytes(set.get().saturating_mul(threads.into()));
        }
        let placement = Placement::Bind(state.clone());
        let placements = BTreeMap::from([(region.to_owned(), Placement::Bind(column.clone()))]);
        Ok(Tenant {
            name: format!("{}@{column}", self.name),
            placements,
            ..Tenant::running(work, cores(topology, (first, threads))?, placement)
        })
    }

    /// How fast a tenant of [`Together`] went through its column.
    pub fn rate(self, seen: &SeenTogether, tenant: usize) -> GbPerSec {
        let bytes = match self.described {
            None => seen.bytes.get(tenant).copied().unwrap_or_default(),
            Some((_, region)) => {
                let uses = seen.uses.get(tenant).map_or(&[][..], Vec::as_slice);
                let read = uses
                    .iter()
                    .filter(|own| own.region == region)
                    .map(|own| own.read);
                Bytes(read.sum::<u64>() * LINE_BYTES)
            }
        };
        seen.rate(bytes)
    }
}

/// The tenant that a load is on cores from `first` on.
///
/// # Errors
/// There are too few cores.
pub(crate) fn tenant_of(load: &Load, topology: &Topology, first: u32) -> Result<Tenant, LabError> {
    Ok(load.tenant(&cores(topology, (first, load.threads))?))
}

fn cores(topology: &Topology, (first, threads): (u32, u32)) -> Result<Vec<u32>, LabError> {
    let all = &topology.cores;
    let end = first.saturating_add(threads) as usize;
    let own = all.get(first as usize..end).filter(|own| !own.is_empty());
    own.map(<[u32]>::to_vec).ok_or(LabError::Threads {
        threads: first.saturating_add(threads),
        cores: all.len(),
    })
}
