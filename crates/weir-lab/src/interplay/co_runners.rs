//! Rows and columns: which tenants a matrix is made of.

use std::fmt;
use std::str::FromStr;

use weir_model::access::Op;
use weir_model::diagnostic::{closest, did_you_mean};
use weir_model::interplay::{Seat, TierOp, split_seat};
use weir_model::topology::{Tier, TierKind, TierName, Topology};
use weir_model::workload::{GROUPS, HOSTED, Hosted, Workloads};

use crate::LabError;

/// The usual tenants of memory (CXL-Interplay §III-A).
const MEMORY: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];
/// The usual tenants of a storage device.
const STORAGE: [Op; 2] = [Op::RandRead, Op::RandWrite];

/// A row or column as a user names it: one tenant, or all usual ones of a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoRunners {
    /// `dram:nt_st`.
    One(TierOp),
    /// `dram`, `remote@1` on the other socket, or `dram@host1` on another host.
    Tier(TierName, Seat),
    /// `dram:redis-ycsb-a`, or `dram=3+cxl0:my-program.toml`.
    Program(PlacedName),
}

impl FromStr for CoRunners {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if let Some(program) = PlacedName::read(text) {
            return program.map(CoRunners::Program);
        }
        if text.contains(':') {
            let of_workload = |why: String| match meant(text) {
                Some(meant) => format!("{why}; of the workloads, {meant}"),
                None if text.split_once(':').is_some_and(|(_, op)| unknown(op)) => {
                    format!("{why}; `weir workload list` has no workload of that name either")
                }
                None => why,
            };
            return text.parse().map(CoRunners::One).map_err(of_workload);
        }
        let (text, seat) = split_seat(text)?;
        if !text.is_empty() && text.chars().all(plain) {
            Ok(CoRunners::Tier(TierName::named(text), seat))
        } else {
            Err(format!(
                "`{text}` is no tenant: write TIER or TIER:OP, such as dram or dram:ld"
            ))
        }
    }
}

/// A program and its tiers as they are written: `dram=3+cxl0:redis-ycsb-a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedName {
    /// The tiers, with the pages in a row on each.
    pub tiers: Vec<(TierName, u32)>,
    /// The workload's name, or its file.
    pub program: String,
}

impl PlacedName {
    /// Reads `TIER[=PAGES][+TIER…]:NAME`; `None` where it names no workload of the library, no file, and no
    /// command, which is written `!NAME`.
    pub fn read(text: &str) -> Option<Result<Self, String>> {
        let (tiers, program) = text.split_once(':')?;
        let other = program.ends_with(".toml") || program.contains('/') || program.starts_with('!');
        let known = || {
            let library = Workloads::builtin();
            library.get(program).is_some()
                || Hosted::named(program).is_some()
                || GROUPS.iter().any(|(name, _, _)| *name == program)
        };
        if !other && !known() {
            return None;
        }
        let tier = |text: &str| match text.split_once('=') {
            None => Ok((TierName::named(text), 1)),
            Some((name, pages)) => match pages.parse() {
                Ok(pages @ 1..=255) => Ok((TierName::named(name), pages)),
                _ => Err(format!("`{pages}` is not a number of pages from 1 to 255")),
            },
        };
        let tiers: Result<Vec<_>, String> = tiers.split('+').map(tier).collect();
        Some(tiers.map(|tiers| Self {
            tiers,
            program: program.to_owned(),
        }))
    }
}

impl fmt::Display for PlacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tier = |(tier, pages): &(TierName, u32)| match pages {
            1 => tier.to_string(),
            pages => format!("{tier}={pages}"),
        };
        let tiers: Vec<String> = self.tiers.iter().map(tier).collect();
        write!(f, "{}:{}", tiers.join("+"), self.program)
    }
}

/// Whether a name without a seat or a source is no instruction.
fn unknown(op: &str) -> bool {
    !op.contains([':', '@']) && op.parse::<Op>().is_err()
}

/// Which workloads may be meant by a tenant whose name is none.
fn meant(text: &str) -> Option<String> {
    let (_, name) = text.split_once(':')?;
    let library = Workloads::builtin();
    let described = library.list().iter().map(|workload| workload.name.as_str());
    let hosted = HOSTED.iter().map(|hosted| hosted.name);
    let groups = GROUPS.iter().map(|(name, _, _)| *name);
    did_you_mean(&closest(name, described.chain(hosted).chain(groups)))
}

/// Every victim that these names stand for with every aggressor, each pair once. No names mean every
/// tier's usual tenants.
///
/// Where either side is left open, tenants of one tier are not combined, unless there is
/// one tier only: that they share it is no news.
///
/// # Errors
/// A tier is unknown or takes no such instruction, or no pair is left.
pub fn pairs(
    topology: &Topology,
    victims: &[CoRunners],
    aggressors: &[CoRunners],
) -> Result<Vec<(TierOp, TierOp)>, LabError> {
    let open = victims.is_empty() || aggressors.is_empty();
    let apart = open && topology.tiers.len() > 1;
    let (victims, aggressors) = (
        tier_ops(topology, victims)?,
        tier_ops(topology, aggressors)?,
    );
    let pairs: Vec<(TierOp, TierOp)> = (victims.iter())
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
pub fn tier_ops(topology: &Topology, named: &[CoRunners]) -> Result<Vec<TierOp>, LabError> {
    if named.is_empty() {
        return Ok(topology.tiers.iter().flat_map(usual).collect());
    }
    let mut tier_ops: Vec<TierOp> = Vec::new();
    for co_runners in named {
        let more = match co_runners {
            CoRunners::One(tier_op) => {
                check(topology, tier_op)?;
                vec![tier_op.clone()]
            }
            CoRunners::Program(program) => {
                let text = format!("`{program}` is a program, and no stream of the matrix");
                return Err(LabError::Nothing(text));
            }
            CoRunners::Tier(name, seat) => {
                let all: Vec<TierOp> = usual(known(topology, name)?)
                    .map(|tier_op| TierOp {
                        socket: seat.socket,
                        host: seat.host,
                        ..tier_op
                    })
                    .collect();
                for tier_op in &all {
                    check(topology, tier_op)?;
                }
                all
            }
        };
        for tier_op in more {
            if !tier_ops.contains(&tier_op) {
                tier_ops.push(tier_op);
            }
        }
    }
    Ok(tier_ops)
}

fn known<'t>(topology: &'t Topology, name: &TierName) -> Result<&'t Tier, LabError> {
    topology
        .tier(name)
        .ok_or_else(|| LabError::unknown_tier(name, topology))
}

/// The usual tenants of a tier.
pub(super) fn usual(tier: &Tier) -> impl Iterator<Item = TierOp> + use<> {
    let ops = match tier.kind {
        TierKind::Ssd => &STORAGE[..],
        _ => &MEMORY[..],
    };
    let tier = tier.name.clone();
    ops.iter().map(move |&op| TierOp {
        tier: tier.clone(),
        op,
        from: None,
        socket: 0,
        host: 0,
    })
}

/// Refuses what no machine can run: a tier that is not there, an instruction that it does not take.
pub(super) fn check(topology: &Topology, tier_op: &TierOp) -> Result<(), LabError> {
    let tier = known(topology, &tier_op.tier)?;
    let cannot = |why: String| Err(LabError::Nothing(format!("`{tier_op}` cannot be: {why}")));
    let storage = tier_op.op.is_storage();
    if topology.cores_of(tier_op.socket).is_empty() {
        return cannot("this machine has no other socket that tenants can be put on".into());
    }
    if topology.cores_of_host(tier_op.host).is_empty() {
        let hosts = topology.other_hosts.len() + 1;
        return cannot(format!(
            "this machine has {hosts} host{}; a model of two is `2xemr2s+cxl-a@switch`",
            if hosts == 1 { "" } else { "s, numbered from 0" }
        ));
    }
    if tier_op.host > 0 && storage {
        return cannot("storage devices of other hosts are not modelled".into());
    }
    if (tier.kind == TierKind::Ssd) != storage {
        let what = if storage {
            "a request to a storage device"
        } else {
            "an instruction on memory"
        };
        let kind = tier.kind.name();
        return cannot(format!("{} is {kind}, {} is {what}", tier.name, tier_op.op));
    }
    if let Some(from) = &tier_op.from
        && (storage || known(topology, from)?.kind == TierKind::Ssd)
    {
        return cannot("copies go between tiers of memory".into());
    }
    if tier_op.op == Op::Dsa {
        return cannot("an accelerator copies, see `weir bench movement`".into());
    }
    Ok(())
}
