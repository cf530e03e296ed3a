//! From tenants to one job for each thread, with everything refused that cannot run.

use std::collections::BTreeMap;

use weir_model::access::{Op, Pattern};
use weir_model::capability::Feature;
use weir_model::machine::MachineError;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES};

use super::Host;
use crate::kernels::{self, Kernel, Random};
use crate::memory::{self, HUGE, Pages, Share};
use crate::root::Reading;

/// What one thread is to do.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Which tenant's thread it is.
    pub tenant: usize,
    /// Where it is pinned.
    pub cpu: u32,
    pub kernel: Kernel,
    pub pattern: Pattern,
    pub working_set: Bytes,
    pub pages: Pages,
    pub shares: Vec<Share>,
    pub seed: u64,
}

/// One job for each core of each tenant.
pub(super) fn jobs(host: &Host, tenants: &[Tenant], seed: u64) -> Result<Vec<Job>, MachineError> {
    if tenants.is_empty() {
        return Err(MachineError::Request("there is no tenant to start".into()));
    }
    let mut random = Random::new(seed);
    let mut taken: BTreeMap<u32, &str> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    let mut jobs = Vec::new();
    for (index, tenant) in tenants.iter().enumerate() {
        let refuse = |why: String| {
            Err(MachineError::Request(format!(
                "tenant `{}`: {why}",
                tenant.name
            )))
        };
        if names.contains(&tenant.name.as_str()) {
            return refuse("another tenant has the same name".into());
        }
        names.push(&tenant.name);
        if tenant.cores.is_empty() {
            return refuse("it has no core to run on".into());
        }
        let offloads = matches!(tenant.pattern, Pattern::Descriptors { .. });
        if tenant.reads.is_some() || offloads || tenant.pattern == Pattern::SharedLine {
            return refuse("this machine has no such load yet".into());
        }
        if let Err(why) = check_pattern(tenant) {
            return refuse(why);
        }
        let kernel = kernels::select(tenant.op, host.options.widest)?;
        let shares = shares(host, tenant)?;
        for &cpu in &tenant.cores {
            match host.view.known_cpus().iter().find(|c| c.id == cpu) {
                None => return refuse(format!("there is no CPU {cpu} online")),
                Some(c) if !c.allowed => {
                    return refuse(format!("this program may not run on CPU {cpu}"));
                }
                Some(_) => {}
            }
            if let Some(other) = taken.insert(cpu, &tenant.name) {
                return refuse(format!("CPU {cpu} is taken by `{other}`"));
            }
            jobs.push(Job {
                tenant: index,
                cpu,
                kernel,
                pattern: tenant.pattern,
                working_set: tenant.working_set,
                pages: host.options.pages,
                shares: shares.clone(),
                seed: random.word(),
            });
        }
    }
    Ok(jobs)
}

fn check_pattern(tenant: &Tenant) -> Result<(), String> {
    let lines = tenant.working_set.lines();
    let least = if matches!(tenant.pattern, Pattern::Chase { .. }) {
        2
    } else {
        1
    };
    if lines < least {
        return Err(format!(
            "a working set of {} is too small; at least {} B are needed",
            tenant.working_set,
            least * LINE_BYTES
        ));
    }
    match tenant.pattern {
        Pattern::Chase { .. } if tenant.op != Op::Ld => Err(format!(
            "a pointer chase is made of loads, not of {}",
            tenant.op
        )),
        Pattern::Chase { .. } if lines > u64::from(u32::MAX) => Err(format!(
            "a chase over {} has more lines than a chain can number",
            tenant.working_set
        )),
        Pattern::RandomBlock { block }
            if block.get() < LINE_BYTES
                || block.get() % LINE_BYTES != 0
                || block > tenant.working_set =>
        {
            Err(format!(
                "a block of {} B must be a multiple of {LINE_BYTES} B and fit the working set of {}",
                block.get(),
                tenant.working_set
            ))
        }
        _ => Ok(()),
    }
}

fn shares(host: &Host, tenant: &Tenant) -> Result<Vec<Share>, MachineError> {
    let share = |name: &TierName, weight: u32| {
        let tier = host
            .topology
            .tier(name)
            .ok_or_else(|| MachineError::no_such_tier(name, &host.topology))?;
        Ok(Share {
            tier: name.clone(),
            node: tier.node,
            weight,
        })
    };
    let shares = match &tenant.placement {
        Placement::Bind(name) => vec![share(name, 1)?],
        Placement::Interleave(weights) => weights
            .iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(name, weight)| share(name, *weight))
            .collect::<Result<_, _>>()?,
    };
    if shares.is_empty() {
        return Err(MachineError::Request(format!(
            "tenant `{}`: no tier has a weight in its interleaving",
            tenant.name
        )));
    }
    let only_home = shares.iter().all(|s| s.tier == TierName::dram());
    match host.policy.availability() {
        Err(why) if !only_home => Err(MachineError::Missing {
            feature: Feature::NumaPolicy,
            reason: why.reason,
        }),
        _ => Ok(shares),
    }
}

/// Checks that every node has room for what is to be allocated on it.
pub(super) fn check_room<'a>(
    host: &Host,
    jobs: impl Iterator<Item = &'a Job>,
) -> Result<(), MachineError> {
    let mut wanted: BTreeMap<Option<u32>, (TierName, u64)> = BTreeMap::new();
    let mut pages = Pages::Base;
    for job in jobs {
        pages = job.pages;
        let round: u64 = job.shares.iter().map(|s| u64::from(s.weight)).sum();
        let unit = match job.pages {
            Pages::Base => memory::base_page() as u64,
            Pages::Transparent | Pages::Reserved => HUGE as u64,
        };
        let bytes = job
            .working_set
            .get()
            .checked_next_multiple_of(unit)
            .unwrap_or(u64::MAX);
        if let (Pattern::Chase { .. }, Some(home)) = (job.pattern, host.topology.tiers.first()) {
            // The order of a chase is drawn in local memory, four bytes for each line.
            let entry = wanted
                .entry(home.node)
                .or_insert_with(|| (home.name.clone(), 0));
            entry.1 = entry
                .1
                .saturating_add(job.working_set.lines().saturating_mul(4));
        }
        for share in &job.shares {
            let part = u128::from(bytes) * u128::from(share.weight) / u128::from(round.max(1));
            let part = u64::try_from(part).unwrap_or(u64::MAX);
            let entry = wanted
                .entry(share.node)
                .or_insert_with(|| (share.tier.clone(), 0));
            entry.1 = entry.1.saturating_add(part);
        }
    }
    for (node, (tier, wanted)) in wanted {
        let free = if pages == Pages::Reserved {
            Some(reserved(host, node)?)
        } else {
            memory::room(&host.root, node).map(|room| room.free)
        };
        if let Some(free) = free.filter(|free| free.get() < wanted) {
            return Err(MachineError::NoMemory {
                tier,
                free,
                wanted: Bytes(wanted),
            });
        }
    }
    Ok(())
}

/// Free reserved pages of a node, in bytes.
fn reserved(host: &Host, node: Option<u32>) -> Result<Bytes, MachineError> {
    let base = match node {
        Some(id) => format!("/sys/devices/system/node/node{id}/hugepages/hugepages-2048kB"),
        None => "/sys/kernel/mm/hugepages/hugepages-2048kB".to_owned(),
    };
    let count = |name: &str| host.root.value::<u64>(&format!("{base}/{name}"));
    match (count("nr_hugepages"), count("free_hugepages")) {
        (Reading::Known(all), Reading::Known(free)) if all > 0 => {
            Ok(Bytes(free.saturating_mul(HUGE as u64)))
        }
        _ => Err(MachineError::Missing {
            feature: Feature::ReservedHugePages,
            reason: format!("no pages of 2 MiB are reserved ({base}/nr_hugepages)"),
        }),
    }
}

/// The tier that a job's pages are on, for messages.
pub(super) fn tiers_of(job: &Job) -> String {
    let names: Vec<String> = job
        .shares
        .iter()
        .map(|share| match share.node {
            Some(node) => format!("node {node} (tier {})", share.tier),
            None => format!("tier {}", share.tier),
        })
        .collect();
    names.join(" and ")
}
