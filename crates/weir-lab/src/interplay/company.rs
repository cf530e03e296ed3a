//! Rows and columns: which tenants a matrix is made of.

use std::str::FromStr;

use weir_model::access::Op;
use weir_model::interplay::{Party, split_socket};
use weir_model::topology::{Tier, TierKind, TierName, Topology};

use crate::LabError;

/// The usual tenants of memory (CXL-Interplay §III-A).
const MEMORY: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];
/// The usual tenants of a storage device.
const STORAGE: [Op; 2] = [Op::RandRead, Op::RandWrite];

/// A row or column as a user names it: one tenant, or all usual ones of a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Company {
    /// `dram:nt_st`.
    One(Party),
    /// `dram`, or `remote@1` on the other socket.
    Tier(TierName, u32),
}

impl FromStr for Company {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if text.contains(':') {
            return text.parse().map(Company::One);
        }
        let (text, socket) = split_socket(text)?;
        if !text.is_empty() && text.chars().all(plain) {
            Ok(Company::Tier(TierName::named(text), socket))
        } else {
            Err(format!(
                "`{text}` is no tenant: write TIER or TIER:OP, such as dram or dram:ld"
            ))
        }
    }
}

/// Every victim that these names stand for beside every aggressor, each pair once. No names mean every
/// tier's usual tenants.
///
/// Where either side is left open, tenants of one tier are not set beside each other, unless there is
/// one tier only: that they share it is no news.
///
/// # Errors
/// A tier is unknown or takes no such instruction, or no pair is left.
pub fn pairs(
    topology: &Topology,
    victims: &[Company],
    aggressors: &[Company],
) -> Result<Vec<(Party, Party)>, LabError> {
    let open = victims.is_empty() || aggressors.is_empty();
    let apart = open && topology.tiers.len() > 1;
    let (victims, aggressors) = (parties(topology, victims)?, parties(topology, aggressors)?);
    let pairs: Vec<(Party, Party)> = (victims.iter())
        .flat_map(|v| aggressors.iter().map(|a| (v.clone(), a.clone())))
        .filter(|(v, a)| !apart || v.tier != a.tier)
        .collect();
    if pairs.is_empty() {
        return Err(LabError::Nothing(
            "no victim meets an aggressor of another tier: name both with --victims and --aggressors"
                .into(),
        ));
    }
    Ok(pairs)
}

/// The tenants that names stand for, each once; no names mean all usual ones.
fn parties(topology: &Topology, named: &[Company]) -> Result<Vec<Party>, LabError> {
    if named.is_empty() {
        return Ok(topology.tiers.iter().flat_map(usual).collect());
    }
    let mut parties: Vec<Party> = Vec::new();
    for company in named {
        let more = match company {
            Company::One(party) => {
                check(topology, party)?;
                vec![party.clone()]
            }
            Company::Tier(name, socket) => {
                let all: Vec<Party> = usual(known(topology, name)?)
                    .map(|party| Party {
                        socket: *socket,
                        ..party
                    })
                    .collect();
                for party in &all {
                    check(topology, party)?;
                }
                all
            }
        };
        for party in more {
            if !parties.contains(&party) {
                parties.push(party);
            }
        }
    }
    Ok(parties)
}

fn known<'t>(topology: &'t Topology, name: &TierName) -> Result<&'t Tier, LabError> {
    topology
        .tier(name)
        .ok_or_else(|| LabError::unknown_tier(name, topology))
}

/// The usual tenants of a tier.
pub(super) fn usual(tier: &Tier) -> impl Iterator<Item = Party> + use<> {
    let ops = match tier.kind {
        TierKind::Ssd => &STORAGE[..],
        _ => &MEMORY[..],
    };
    let tier = tier.name.clone();
    ops.iter().map(move |&op| Party {
        tier: tier.clone(),
        op,
        from: None,
        socket: 0,
    })
}

/// Refuses what no machine can run: a tier that is not there, an instruction that it does not take.
pub(super) fn check(topology: &Topology, party: &Party) -> Result<(), LabError> {
    let tier = known(topology, &party.tier)?;
    let cannot = |why: String| Err(LabError::Nothing(format!("`{party}` cannot be: {why}")));
    let storage = party.op.is_storage();
    if topology.cores_of(party.socket).is_empty() {
        return cannot("this machine has no other socket that tenants can be put on".into());
    }
    if (tier.kind == TierKind::Ssd) != storage {
        let what = if storage {
            "a request to a storage device"
        } else {
            "an instruction on memory"
        };
        let kind = tier.kind.describe();
        return cannot(format!("{} is {kind}, {} is {what}", tier.name, party.op));
    }
    if let Some(from) = &party.from
        && (storage || known(topology, from)?.kind == TierKind::Ssd)
    {
        return cannot("copies go between tiers of memory".into());
    }
    if party.op == Op::Dsa {
        return cannot("an accelerator copies, see `weir bench movement`".into());
    }
    Ok(())
}
