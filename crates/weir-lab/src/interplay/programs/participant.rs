//! A side of a pair with a program in it.

use weir_model::application_tenant::ApplicationTenant;
use weir_model::interplay::TierOp;
use weir_model::tenant::{Command, Placement, Tenant, Work};
use weir_model::topology::{TierName, Topology};
use weir_model::workload::{RealProgram, Workload};

use super::super::co_runners::{PlacedName, check};
use crate::LabError;

/// How long a figure of an application takes that answers requests, in seconds.
const SECONDS: f64 = 5.0;

/// What runs, and where its pages are.
#[derive(Debug, Clone, PartialEq)]
pub struct Participant {
    /// Its name as it was written: `dram+cxl0:redis-ycsb-a`.
    pub name: String,
    /// What runs.
    pub what: What,
}

/// What a side of a pair does.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// It repeats one instruction.
    Stream(TierOp),
    /// It runs a described program, whose pages are on these tiers, in turns of this many pages.
    Program(Box<Workload>, Vec<(TierName, u32)>),
    /// It runs a command of a host, whose memory is on these tiers.
    Command(Command, Vec<(TierName, u32)>),
    /// It runs a real application on a host.
    Application(Box<RealProgram>, Vec<(TierName, u32)>),
}

impl Participant {
    /// A described program with its pages placed.
    pub fn program(named: &PlacedName, workload: Workload) -> Self {
        Self {
            name: named.to_string(),
            what: What::Program(Box::new(workload), named.tiers.clone()),
        }
    }

    /// A command of a host with its memory placed.
    pub fn command(named: &PlacedName, command: Command) -> Self {
        Self {
            name: named.to_string(),
            what: What::Command(command, named.tiers.clone()),
        }
    }

    /// A real application of a host with its memory placed.
    pub fn application(named: &PlacedName, program: RealProgram) -> Self {
        Self {
            name: named.to_string(),
            what: What::Application(Box::new(program), named.tiers.clone()),
        }
    }

    /// A stream.
    pub fn stream(tier_op: TierOp) -> Self {
        Self {
            name: tier_op.to_string(),
            what: What::Stream(tier_op),
        }
    }

    /// Threads, or cores of a command, where a stream has `streams` and a command `commands`.
    pub fn threads(&self, streams: u32, commands: u32) -> u32 {
        match &self.what {
            What::Stream(_) => streams,
            What::Command(..) | What::Application(..) => commands,
            What::Program(workload, _) => workload.threads,
        }
    }

    /// The instruction and the tier that stand for it where a cause is looked for: a program mostly loads.
    pub(super) fn tier_op(&self) -> TierOp {
        match &self.what {
            What::Stream(tier_op) => tier_op.clone(),
            What::Program(_, tiers) | What::Command(_, tiers) | What::Application(_, tiers) => {
                TierOp {
                    tier: tiers
                        .first()
                        .map_or_else(TierName::dram, |(tier, _)| tier.clone()),
                    op: weir_model::access::Op::Ld,
                    from: None,
                    socket: 0,
                    host: 0,
                }
            }
        }
    }

    /// What it does, each phase for itself: a program that answers requests goes through its phases meanwhile.
    pub(super) fn phases(&self) -> Vec<Participant> {
        let What::Program(workload, tiers) = &self.what else {
            return vec![self.clone()];
        };
        if workload.requests.is_some() || workload.phases.len() == 1 {
            return vec![self.clone()];
        }
        let alone = |n| workload.phase_alone(n);
        let phases = (0..workload.phases.len()).filter_map(alone);
        let participant = |workload| Participant {
            name: self.name.clone(),
            what: What::Program(Box::new(workload), tiers.clone()),
        };
        phases.map(participant).collect()
    }

    /// The name of its only phase, or its own.
    pub(super) fn phase_name(&self) -> String {
        match &self.what {
            What::Program(work, _) if work.phases.len() == 1 => work.phases[0].name.clone(),
            _ => self.name.clone(),
        }
    }

    /// The real application on these cores of a host; `None` where it is none.
    ///
    /// # Errors
    /// The machine has no such tier.
    pub fn real(
        &self,
        topology: &Topology,
        cores: &[u32],
        seed: u64,
    ) -> Result<Option<ApplicationTenant>, LabError> {
        let What::Application(program, tiers) = &self.what else {
            return Ok(None);
        };
        Ok(Some(ApplicationTenant {
            name: self.name.clone(),
            program: (**program).clone(),
            cores: cores.to_vec(),
            placement: placement(topology, tiers)?,
            seconds: SECONDS,
            seed,
        }))
    }

    /// The tenant on these cores. Streams of `streams` threads have working sets as in the matrix.
    ///
    /// # Errors
    /// The machine has no such tier, or it takes no such instruction.
    pub fn tenant(&self, topology: &Topology, cores: &[u32]) -> Result<Tenant, LabError> {
        let tenant = match &self.what {
            What::Stream(tier_op) => {
                check(topology, tier_op)?;
                let tier = topology.tier(&tier_op.tier);
                let tier = tier.ok_or_else(|| LabError::unknown_tier(&tier_op.tier, topology))?;
                super::super::load(topology, tier, tier_op, cores.len() as u32).tenant(cores)
            }
            What::Program(workload, tiers) => {
                let placement = placement(topology, tiers)?;
                Tenant::running((**workload).clone(), cores.to_vec(), placement)
            }
            What::Application(..) => {
                return Err(LabError::Nothing(format!(
                    "`{}` is a real application, which is no tenant of a machine",
                    self.name
                )));
            }
            What::Command(command, tiers) => Tenant {
                placement: placement(topology, tiers)?,
                ..Tenant::of_host(
                    String::new(),
                    Work::Command(command.clone()),
                    cores.to_vec(),
                )
            },
        };
        Ok(Tenant {
            name: self.name.clone(),
            ..tenant
        })
    }
}

/// Pages on one tier, or in turns on several.
fn placement(topology: &Topology, tiers: &[(TierName, u32)]) -> Result<Placement, LabError> {
    let missing = |(tier, _): &&(TierName, u32)| topology.tier(tier).is_none();
    if let Some((tier, _)) = tiers.iter().find(missing) {
        return Err(LabError::unknown_tier(tier, topology));
    }
    Ok(match tiers {
        [(tier, _)] => Placement::Bind(tier.clone()),
        several => Placement::Interleave(several.to_vec()),
    })
}
