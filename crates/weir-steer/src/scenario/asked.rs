//! Tenants that a user names: streams and described programs, all at the same time.

use weir_lab::LabError;
use weir_lab::interplay::{Participant, What};
use weir_model::tenant::Tenant;
use weir_model::topology::Topology;
use weir_model::units::Nanos;

use super::two_groups::{protected, restrained};
use crate::steered::Phase;

/// The name of a scenario of tenants that a user names.
pub const ASKED: &str = "tenants";

/// Threads of a stream at most, unless they are asked for: those of the papers.
const STREAMS: u32 = 16;

/// One phase with these tenants on cores of their own. A stream has `threads`; with 0 the streams have what the programs
/// leave, 16 each at most.
///
/// # Errors
/// The machine has too few cores or no such tier, or a tenant is none of a model.
pub fn asked(
    protect: &[Participant],
    restrain: &[Participant],
    (threads, lasts): (u32, Nanos),
    on: &Topology,
) -> Result<Vec<Phase>, LabError> {
    let all = || protect.iter().chain(restrain);
    if let Some(participant) =
        all().find(|participant| matches!(participant.what, What::Command(..)))
    {
        let why = format!(
            "`{}` is a command, which runs on a host and on no model",
            participant.name
        );
        return Err(LabError::Nothing(why));
    }
    let streams = all()
        .filter(|participant| matches!(participant.what, What::Stream(_)))
        .count() as u32;
    let programs: u32 = all().map(|participant| participant.threads(0, 0)).sum();
    let cores = on.cores.len() as u32;
    let left = cores.saturating_sub(programs);
    let each = match threads {
        0 => (left / streams.max(1)).min(STREAMS),
        threads => threads,
    };
    if programs > cores || streams > 0 && (each == 0 || each.saturating_mul(streams) > left) {
        return Err(LabError::Nothing(format!(
            "the programs have {programs} threads and {streams} streams {each} each, and the machine has {cores} cores"
        )));
    }
    let mut free = on.cores.iter().copied();
    let mut tenants: Vec<Tenant> = Vec::new();
    for participant in all() {
        let own: Vec<u32> = free
            .by_ref()
            .take(participant.threads(each, 0) as usize)
            .collect();
        let mut tenant = participant.tenant(on, &own)?;
        let alike = tenants
            .iter()
            .filter(|t| t.name.starts_with(&tenant.name))
            .count();
        if alike > 0 {
            tenant.name = format!("{} ({})", tenant.name, alike + 1);
        }
        tenants.push(tenant);
    }
    let of_restrained = tenants.split_off(protect.len());
    let participants = (tenants.into_iter().map(protected))
        .chain(of_restrained.into_iter().map(restrained))
        .collect();
    Ok(vec![Phase {
        lasts,
        participants,
    }])
}
