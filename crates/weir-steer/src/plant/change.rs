//! From one hold to another: the actions, and what became of them.

use weir_model::action::{Action, Applied};
use weir_model::units::Nanos;

use super::AppliedLimit;
use crate::limit::{Limit, Share};

/// Takes a tenant from one hold to another by `act`, which says why where it refuses. What is refused stays
/// as it was. `period` is after how long its processor time is given anew.
pub fn change(
    tenant: &str,
    from: Limit,
    to: Limit,
    period: Nanos,
    mut act: impl FnMut(&Action) -> Result<Applied, String>,
) -> AppliedLimit {
    let mut after = AppliedLimit {
        requested: to,
        applied: to,
        refused: Vec::new(),
    };
    for action in changes(tenant, from, to, period) {
        match act(&action) {
            Ok(Applied { applied, .. }) => take_over(&mut after.applied, &applied),
            Err(why) => {
                undo(&mut after.applied, &action, from);
                after.refused.push(why);
            }
        }
    }
    after
}

/// The actions that take a tenant from one hold to another.
fn changes(tenant: &str, from: Limit, to: Limit, period: Nanos) -> Vec<Action> {
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

/// A hold as the machine says it is.
fn take_over(limit: &mut Limit, applied: &Action) {
    match *applied {
        Action::Cores { cores, .. } => limit.cores = cores,
        Action::ProcessorTime { share, .. } => limit.time = Share::of(share),
        Action::Clock { clock, .. } => limit.clock = clock,
        Action::Bandwidth { percent, .. } => {
            limit.allocation = Share::of(f64::from(percent) / 100.0)
        }
        _ => {}
    }
}

/// A hold without what was refused.
fn undo(limit: &mut Limit, refused: &Action, from: Limit) {
    match refused {
        Action::Cores { .. } => limit.cores = from.cores,
        Action::ProcessorTime { .. } => limit.time = from.time,
        Action::Clock { .. } => limit.clock = from.clock,
        Action::Bandwidth { .. } => limit.allocation = from.allocation,
        _ => {}
    }
}
