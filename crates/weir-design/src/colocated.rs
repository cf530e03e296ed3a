//! Tenants that run with the workloads of every design, and the controller that may limit them.

use weir_lab::interplay::Participant;
use weir_lab::{Lab, LabError, PhaseRun, WorkloadOptions, WorkloadRun};
use weir_model::access::{Op, Pattern};
use weir_model::counters::{Counter, CounterSet};
use weir_model::interplay::TierOp;
use weir_model::latency::LatencyHistogram;
use weir_model::tenant::{Placement, Stream, Tenant, Work};
use weir_model::topology::Topology;
use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_model::workload::Workload;
use weir_steer::Role;
use weir_steer::registry::Policy;
use weir_steer::settled::{SeenSettled, Settled};

use crate::axis::placement;
use crate::space::{Does, Neighbour};

/// Memory that the probe draws lines from.
const PROBED: Bytes = Bytes::mib(64);
/// Loads of the probe in each phase.
pub(crate) const LOADS: u64 = 2_000;

impl Neighbour {
    fn tenant(&self, topology: &Topology, cores: &[u32]) -> Result<Tenant, LabError> {
        let pages = placement(&self.pages, topology).map_err(LabError::Failed)?;
        let tenant = match &self.does {
            Does::Program(workload) => {
                let mut workload = (**workload).clone();
                workload.threads = self.threads;
                Tenant::running(workload, cores.to_vec(), pages)
            }
            Does::Stream(op) => {
                let tier = match &pages {
                    Placement::Interleave(tiers) => tiers.first().map(|(tier, _)| tier.clone()),
                    Placement::Bind(tier) => Some(tier.clone()),
                    _ => None,
                };
                let tier = tier.unwrap_or_else(|| op.tier.clone());
                let participant = Participant::stream(TierOp { tier, ..op.clone() });
                Tenant {
                    placement: pages,
                    ..participant.tenant(topology, cores)?
                }
            }
        };
        Ok(Tenant {
            name: self.name.clone(),
            ..tenant
        })
    }
}

/// Loads that one core sends to the pages of a workload.
pub(crate) fn probe(workload: &Workload, core: u32, placement: &Placement) -> Tenant {
    Tenant {
        name: "probe".into(),
        work: Work::Stream(Stream::new(Op::Ld, Pattern::FlushedLine, PROBED)),
        ..Tenant::running(workload.clone(), vec![core], placement.clone())
    }
}

/// Workloads that run with tenants, under a controller.
pub struct Colocated<'a> {
    /// The tenants, which may be limited.
    pub neighbours: &'a [Neighbour],
    /// What limits them.
    pub controller: Policy,
    /// How the workloads run.
    pub options: &'a WorkloadOptions,
    /// A lab whose machine samples long windows.
    pub lab: &'a Lab<'a>,
}

impl Colocated<'_> {
    /// A whole period of a workload, each phase once the controller has settled, and the bandwidth of all tenants
    /// in that time. The counters of cores are the workload's.
    ///
    /// # Errors
    /// A tenant cannot be on this machine, the machine cannot be calibrated for the controller, or nothing happened.
    pub fn run(
        &self,
        workload: &Workload,
        pages: &Placement,
    ) -> Result<(WorkloadRun, GbPerSec), LabError> {
        let (mut phases, mut all) = (Vec::new(), CounterSet::default());
        let (mut time, mut bytes) = (Nanos(0.0), 0.0);
        for number in 0..workload.phases.len() {
            let Some(alone) = workload.phase_alone(number) else {
                continue;
            };
            let once = alone
                .phases
                .first()
                .map_or(0, |p| p.instructions * u64::from(alone.threads));
            let seen = self.settled(alone, pages, 0)?;
            let own = seen.tenants.first().cloned().unwrap_or_default();
            let ran = own.1.get(Counter::Instructions).unwrap_or(0);
            if ran == 0 {
                return Err(LabError::Failed(format!(
                    "`{}` came no instruction further in {:.0}",
                    workload.name, seen.time
                )));
            }
            let scale = once as f64 / ran as f64;
            let mut counters = seen.counters;
            for (counter, value) in own.1.iter() {
                counters.set(counter, value);
            }
            let touched: Bytes = seen.tenants.iter().skip(1).map(|(bytes, _)| *bytes).sum();
            bytes += touched.get() as f64 * scale;
            time = time + seen.time * scale;
            let counters = counters.scaled(scale);
            all.accumulate(&counters);
            phases.push(PhaseRun {
                phase: workload.phases[number].name.clone(),
                instructions: once,
                time: seen.time * scale,
                counters,
                uses: Vec::new(),
            });
        }
        let run = WorkloadRun {
            workload: workload.name.clone(),
            instructions: phases.iter().map(|own| own.instructions).sum(),
            time,
            counters: all,
            phases,
        };
        Ok((run, GbPerSec::from_bytes_in(Bytes(bytes as u64), time)))
    }

    /// The 99th percentile of loads from the workload's memory by one more core at the same time.
    ///
    /// # Errors
    /// As [`Colocated::run`], or there is no such core.
    pub fn p99(&self, workload: &Workload, pages: &Placement) -> Result<Nanos, LabError> {
        let mut all = LatencyHistogram::new();
        for number in 0..workload.phases.len() {
            if let Some(alone) = workload.phase_alone(number) {
                let seen = self.settled(alone, pages, LOADS)?;
                all.merge(&LatencyHistogram::from_buckets(&seen.latency));
            }
        }
        Ok(all.quantile(0.99))
    }

    fn settled(
        &self,
        workload: Workload,
        pages: &Placement,
        loads: u64,
    ) -> Result<SeenSettled, LabError> {
        let topology = self.lab.topology();
        let others: u32 = self.neighbours.iter().map(|own| own.threads).sum();
        let wanted = workload.threads + others + u32::from(loads > 0);
        if wanted as usize > topology.cores.len() {
            let probe = if loads > 0 {
                ", the probe of p99 one"
            } else {
                ""
            };
            return Err(LabError::Failed(format!(
                "`{}` has {} threads and its tenants {others}{probe}; this design has {} cores",
                workload.name,
                workload.threads,
                topology.cores.len()
            )));
        }
        let mut free = topology.cores.iter().copied();
        let mut take = |threads: u32| free.by_ref().take(threads as usize).collect::<Vec<u32>>();
        let own = Tenant {
            prefetch: self.options.prefetch,
            ..Tenant::running(workload.clone(), take(workload.threads), pages.clone())
        };
        let mut tenants = vec![(own, Role::Protected)];
        for (at, neighbour) in self.neighbours.iter().enumerate() {
            let mut tenant = neighbour.tenant(topology, &take(neighbour.threads))?;
            // Names are how limits find tenants.
            tenant.name = format!("{} {}", at + 1, tenant.name);
            tenants.push((tenant, Role::Restrained));
        }
        if loads > 0 {
            let core = take(1).first().copied().unwrap_or_default();
            tenants.push((probe(&workload, core, pages), Role::Bystander));
        }
        self.lab.answer(&Settled {
            tenants,
            controller: self.controller,
            loads,
        })
    }
}
