//! A controller at the wheel: windows observed, decisions applied, and read back.

use weir_model::action::{Action, Applied};
use weir_model::capability::Unavailable;
use weir_model::machine::{Machine, MachineError, Observation};
use weir_model::tenant::Tenant;
use weir_model::units::{GbPerSec, Nanos};

use crate::controller::{Controller, Decision};
use crate::hold::Hold;
use crate::sight::{Role, Sight, TenantSight};

/// A tenant and what it is to a controller.
#[derive(Debug, Clone)]
pub struct Party {
    /// The load.
    pub tenant: Tenant,
    /// Whether it is protected, or may be held.
    pub role: Role,
}

/// Tenants that run for a while.
#[derive(Debug, Clone)]
pub struct Phase {
    /// For how long.
    pub lasts: Nanos,
    /// Who runs. Who is not named has nothing to run.
    pub parties: Vec<Party>,
}

/// What happened in one window.
#[derive(Debug, Clone)]
pub struct Step {
    /// When the window ended, from the start.
    pub at: Nanos,
    /// Bandwidth of each party of the phase.
    pub drew: Vec<GbPerSec>,
    /// What was seen.
    pub sight: Sight,
    /// To what each party was held during the window.
    pub held: Vec<Hold>,
    /// What was decided at its end.
    pub decision: Decision,
    /// What became of it.
    pub applied: Vec<Applied>,
}

/// Runs phases one after another under a controller, a window at a time.
///
/// # Errors
/// The machine cannot run a phase's tenants, or failed under them.
pub fn drive(
    machine: &mut dyn Machine,
    controller: &mut dyn Controller,
    phases: &[Phase],
    window: Nanos,
    quota_period: Nanos,
) -> Result<Vec<Step>, MachineError> {
    let mut steps = Vec::new();
    let mut at = Nanos(0.0);
    for phase in phases {
        let tenants: Vec<Tenant> = phase.parties.iter().map(|p| p.tenant.clone()).collect();
        machine.start(&tenants)?;
        let mut held = vec![Hold::FREE; tenants.len()];
        let end = at + phase.lasts;
        while at < end {
            let seen = machine.observe(window)?;
            at = at + window;
            let drew = (seen.tenants.iter())
                .map(|t| t.bandwidth(seen.window))
                .collect();
            let sight = Sight::of(&seen, tenants_of(phase, &seen));
            let decision = controller.observe(&sight);
            let mut applied = Vec::new();
            for ((party, &now), &next) in phase.parties.iter().zip(&held).zip(&decision.holds) {
                for action in changes(&party.tenant.name, now, next, quota_period) {
                    applied.push(machine.act(&action)?);
                }
            }
            let before = std::mem::replace(&mut held, decision.holds.clone());
            steps.push(Step {
                at,
                drew,
                sight,
                held: before,
                decision,
                applied,
            });
        }
        machine.stop()?;
    }
    Ok(steps)
}

fn tenants_of(phase: &Phase, seen: &Observation) -> Vec<TenantSight> {
    (phase.parties.iter().zip(&seen.tenants))
        .map(|(party, progress)| TenantSight {
            role: party.role,
            cores: party.tenant.cores.len() as u32,
            busy: true,
            drew: if progress.accesses > 0 {
                Ok(progress.bandwidth(seen.window))
            } else {
                Err(Unavailable::because("it touched nothing"))
            },
        })
        .collect()
}

/// The actions that take a tenant from one hold to another.
pub fn changes(tenant: &str, from: Hold, to: Hold, period: Nanos) -> Vec<Action> {
    let name = || tenant.to_owned();
    let mut actions = Vec::new();
    if from.cores != to.cores {
        actions.push(Action::Cores {
            tenant: name(),
            cores: to.cores,
        });
    }
    if from.time != to.time {
        actions.push(Action::ProcessorTime {
            tenant: name(),
            share: to.time.get(),
            period,
        });
    }
    if from.clock != to.clock {
        actions.push(Action::Clock {
            tenant: name(),
            clock: to.clock,
        });
    }
    if from.allocation != to.allocation {
        actions.push(Action::Bandwidth {
            tenant: name(),
            percent: (to.allocation.get() * 100.0).round() as u32,
        });
    }
    actions
}
