//! A workload with one of its regions on a tier of its own: what that tier serves is the region's, and how much longer
//! the rest takes is what it costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_model::counters::{Counter, CounterSet};
use weir_model::machine::MachineError;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::Nanos;
use weir_model::workload::Workload;

use super::{WorkloadOptions, watch};
use crate::{Ask, Lab, LabError};

/// A workload with all memory on a tier but for a region.
#[derive(Debug, Clone, Serialize)]
pub struct OneRegion<'a> {
    /// What runs. Its phases follow each other as it says.
    pub workload: &'a Workload,
    /// The tier of all other memory.
    pub tier: TierName,
    /// A region, and its tier.
    pub elsewhere: Option<(String, TierName)>,
    /// How it runs.
    pub options: &'a WorkloadOptions,
}

/// What was counted while it was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneRegionRun {
    /// Instructions of all threads.
    pub instructions: u64,
    /// The time that they took.
    pub time: Nanos,
    /// The cores' counters, and the uncore's.
    pub counters: CounterSet,
}

impl Ask for OneRegion<'_> {
    type Got = OneRegionRun;
    const KIND: &'static str = "workload with a region elsewhere";

    fn ask(&self, lab: &Lab<'_>) -> Result<OneRegionRun, LabError> {
        let mut machine = lab.testbed().open(self.options.seed)?;
        let placements = self.elsewhere.iter();
        let placements =
            placements.map(|(name, tier)| (name.clone(), Placement::Bind(tier.clone())));
        let cores = (0..self.workload.threads).collect();
        let tenant = Tenant {
            prefetch: self.options.prefetch,
            placements: placements.collect::<BTreeMap<_, _>>(),
            ..Tenant::running(
                self.workload.clone(),
                cores,
                Placement::Bind(self.tier.clone()),
            )
        };
        machine.start(std::slice::from_ref(&tenant))?;
        let seen = watch(
            &mut *machine,
            self.options.accesses * u64::from(self.workload.threads),
        );
        machine.stop()?;
        let (time, counters, _) = seen?;
        match counters.get(Counter::Instructions).unwrap_or(0) {
            0 => Err(MachineError::Request(format!(
                "`{}` came no instruction further in {time:.0}",
                self.workload.name
            ))
            .into()),
            instructions => Ok(OneRegionRun {
                instructions,
                time,
                counters,
            }),
        }
    }
}
