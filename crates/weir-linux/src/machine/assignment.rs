//! From tenants to one job for each thread; a tenant that cannot run is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_model::access::{Dataflow, Op, Pattern, Timing};
use weir_model::capability::Feature;
use weir_model::machine::MachineError;
use weir_model::region::{DATA, SOURCE};
use weir_model::tenant::{Arrivals, Reads, Stream, Tenant, Work};
use weir_model::topology::{TierKind, TierName};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use super::HostParts;
use super::pacer::Gate;
use super::requests::Request;
use crate::dsa::WorkQueue;
use crate::dsa::queue::Style;
use crate::memory::{self, FreeMemory, HUGE, Pages, Share};
use crate::root::Reading;
use crate::topology::list;
use crate::topology::node::NODES;
use weir_loops::kernels::rounds::{self, Rounds, Shape};
use weir_loops::kernels::{self, Kernel, Random};

/// The job of one thread.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Its tenant.
    pub tenant: usize,
    /// The processor to which it is pinned.
    pub cpu: u32,
    pub kernel: Kernel,
    /// The loop, if lines are loaded together with those of the instruction.
    pub rounds: Option<Rounds>,
    /// The accelerator that does the work instead of the core, and how it is used.
    pub offload: Option<(WorkQueue, Style)>,
    pub pattern: Pattern,
    pub timing: Timing,
    pub pause: Nanos,
    /// What it is counted from.
    pub arrivals: Arrivals,
    /// What limits the thread.
    pub gate: Arc<Gate>,
    /// Memory of the instruction, then memory that is loaded together with it.
    pub memory: Vec<Need>,
    pub pages: Pages,
    pub seed: u64,
    /// The position of this thread among those that share a line, if a line is shared.
    pub turn: Option<Turn>,
}

/// Memory that a job needs.
#[derive(Debug, Clone)]
pub(super) struct Need {
    /// The region of its tenant.
    pub region: &'static str,
    /// Whether pages may be on other nodes when the node of the only share is full.
    pub spills: bool,
    pub bytes: Bytes,
    pub shares: Vec<Share>,
}

/// A position on a shared line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// This thread's position.
    pub place: usize,
    /// The number of threads.
    pub of: usize,
}

/// The jobs of all tenants of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Assignment {
    /// One job for each core of each tenant of memory.
    pub jobs: Vec<Job>,
    /// The requests of each tenant of storage.
    pub requests: Vec<Request>,
}

/// The job of each tenant.
pub(super) fn work(
    host: &HostParts,
    tenants: &[Tenant],
    seed: u64,
) -> Result<Assignment, MachineError> {
    if tenants.is_empty() {
        return Err(MachineError::Request("there is no tenant to start".into()));
    }
    let mut random = Random::new(seed);
    let mut taken: BTreeMap<u32, &str> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    let mut work = Assignment::default();
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
        if let Work::Scope(_) = tenant.work {
            continue;
        }
        if tenant.cores.is_empty() {
            return refuse("it has no core to run on".into());
        }
        if let Err(why) = take_cores(host, tenant, &mut taken) {
            return refuse(why);
        }
        let Some(stream) = tenant.work.stream() else {
            continue;
        };
        if let Err(why) =
            check_pattern(stream, tenant.cores.len()).and_then(|()| check_pace(stream))
        {
            return refuse(why);
        }
        if stream.op.is_storage() {
            let request = Request::of(host, index, (tenant, stream), &work.requests)?;
            work.requests.push(request);
            continue;
        }
        let offload = match offload(host, stream, tenant.cores.len()) {
            Err(MachineError::Request(why)) => return refuse(why),
            other => other?,
        };
        let kernel = match &offload {
            Some(_) => Kernel::offloaded(),
            None => kernels::select(stream.op, host.options.widest)?,
        };
        let rounds = match &stream.reads {
            Some(_) if offload.is_some() => None,
            Some(reads) => match rounds::select(stream.op, shape(reads), host.options.widest) {
                Err(MachineError::Request(why)) => return refuse(why),
                other => Some(other?),
            },
            None => None,
        };
        let memory = memory_of(host, tenant, stream)?;
        for (place, &cpu) in tenant.cores.iter().enumerate() {
            work.jobs.push(Job {
                tenant: index,
                cpu,
                kernel,
                rounds,
                offload: offload.clone(),
                pattern: stream.pattern,
                timing: stream.timing,
                pause: stream.pause,
                arrivals: stream.arrivals,
                gate: Arc::default(),
                memory: memory.clone(),
                pages: host.options.pages,
                seed: random.word(),
                turn: (stream.pattern == Pattern::SharedLine).then_some(Turn {
                    place,
                    of: tenant.cores.len(),
                }),
            });
        }
    }
    Ok(work)
}

/// Checks that a tenant may use its cores, and that no other tenant has them.
fn take_cores<'t>(
    host: &HostParts,
    tenant: &'t Tenant,
    taken: &mut BTreeMap<u32, &'t str>,
) -> Result<(), String> {
    for &cpu in &tenant.cores {
        match host.view.known_cpus().iter().find(|c| c.id == cpu) {
            None => return Err(format!("there is no CPU {cpu} online")),
            Some(c) if !c.allowed => {
                return Err(format!("this program may not run on CPU {cpu}"));
            }
            Some(_) => {}
        }
        if let Some(other) = taken.insert(cpu, &tenant.name) {
            return Err(format!("tenant `{other}` already uses CPU {cpu}"));
        }
    }
    Ok(())
}

fn check_pattern(stream: &Stream, threads: usize) -> Result<(), String> {
    let lines = stream.working_set.lines();
    let least = match (&stream.reads, stream.pattern) {
        (Some(reads), _) => u64::from(reads.lines).saturating_add(u64::from(reads.per)),
        (None, Pattern::Chase { .. }) => 2,
        (None, Pattern::FlushedBurst { lines }) => u64::from(lines),
        (None, _) => 1,
    };
    if lines < least {
        return Err(format!(
            "a working set of {} is too small; at least {} B are needed",
            stream.working_set,
            least * LINE_BYTES
        ));
    }
    match stream.pattern {
        timed if timed.is_timed() && stream.reads.is_some() => Err(format!(
            "{} is timed, so no other lines can be loaded with it",
            timed.name()
        )),
        Pattern::FlushedBurst { lines } if !(1..=Pattern::MOST_IN_BURST).contains(&lines) => {
            Err(format!(
                "a burst of {lines} lines; a burst has between 1 and {} lines",
                Pattern::MOST_IN_BURST
            ))
        }
        Pattern::SharedLine if stream.op != Op::Cas => Err(format!(
            "a shared line is handed over by cas, not by {}",
            stream.op
        )),
        Pattern::SharedLine if threads < 2 => Err("a shared line needs at least two cores".into()),
        Pattern::Requests { .. } if !stream.op.is_storage() => Err(format!(
            "requests go to a storage device; {} is an instruction",
            stream.op
        )),
        Pattern::Descriptors { .. } if stream.op != Op::Dsa => Err(format!(
            "descriptors are for an accelerator, not for {}",
            stream.op
        )),
        other if stream.op == Op::Dsa && !matches!(other, Pattern::Descriptors { .. }) => {
            Err(format!(
                "an accelerator is given descriptors, not {} lines",
                other.name()
            ))
        }
        Pattern::Chase { .. } if stream.op != Op::Ld => Err(format!(
            "a pointer chase consists of loads, not of {}",
            stream.op
        )),
        Pattern::Chase { .. } if lines > u64::from(u32::MAX) => Err(format!(
            "a chase over {} has more lines than a chain can number",
            stream.working_set
        )),
        Pattern::RandomBlock { block }
            if block.get() < LINE_BYTES
                || block.get() % LINE_BYTES != 0
                || block > stream.working_set =>
        {
            Err(format!(
                "a block of {} B must be a multiple of {LINE_BYTES} B and fit the working set of {}",
                block.get(),
                stream.working_set
            ))
        }
        _ => Ok(()),
    }
}

fn check_pace(stream: &Stream) -> Result<(), String> {
    let pause = stream.pause;
    if !(pause.get().is_finite() && pause.get() >= 0.0) {
        return Err(format!("{pause} is not a valid pause"));
    }
    if let Some(why) = stream.never_open() {
        return Err(format!("it {why}"));
    }
    let never = match stream.pattern {
        Pattern::SharedLine => "a shared line is passed on at once",
        Pattern::Descriptors { .. } => "an accelerator is always busy",
        _ => return Ok(()),
    };
    if pause.get() > 0.0 {
        return Err(format!("{never}, so it cannot pause"));
    }
    Ok(())
}

/// The work queue of a tenant's copies, if an accelerator makes them.
fn offload(
    host: &HostParts,
    stream: &Stream,
    threads: usize,
) -> Result<Option<(WorkQueue, Style)>, MachineError> {
    let Pattern::Descriptors {
        bytes,
        batch,
        in_flight,
    } = stream.pattern
    else {
        return Ok(None);
    };
    let one_for_one = Shape {
        loads: 1,
        per: 1,
        dataflow: Dataflow::Copy,
    };
    if stream.reads.as_ref().map(shape) != Some(one_for_one) {
        return Err(MachineError::Request(
            "descriptors copy: one line is read for each that is written".into(),
        ));
    }
    if stream.working_set.get() / 2 < bytes.get() {
        return Err(MachineError::Request(format!(
            "a working set of {} is smaller than two blocks of {bytes}",
            stream.working_set
        )));
    }
    let queue = host.view.dsa.get().map_err(|why| MachineError::Missing {
        feature: Feature::Dsa,
        reason: why.reason,
    })?;
    let style = Style {
        bytes: bytes.get(),
        batch,
        in_flight,
    };
    style.check(queue, threads).map_err(MachineError::Request)?;
    Ok(Some((queue.clone(), style)))
}

fn shape(reads: &Reads) -> Shape {
    Shape {
        loads: reads.lines as usize,
        per: reads.per as usize,
        dataflow: reads.dataflow,
    }
}

/// The arrays of one thread: the working set is divided in the proportion of lines in a round.
fn memory_of(
    host: &HostParts,
    tenant: &Tenant,
    stream: &Stream,
) -> Result<Vec<Need>, MachineError> {
    let need = |region, lines: u64| {
        Ok(Need {
            region,
            spills: tenant.placement_of(region).spills(),
            bytes: Bytes(lines * LINE_BYTES),
            shares: shares(host, (tenant, stream), region)?,
        })
    };
    let lines = stream.working_set.lines();
    let Some(reads) = &stream.reads else {
        return Ok(vec![match stream.pattern {
            Pattern::SharedLine => need(DATA, 1)?,
            _ => Need {
                bytes: stream.working_set,
                ..need(DATA, lines)?
            },
        }]);
    };
    let (loads, per) = (u64::from(reads.lines), u64::from(reads.per));
    let rounds = lines / (loads + per);
    Ok(vec![
        need(DATA, rounds * per)?,
        need(SOURCE, rounds * loads)?,
    ])
}

fn shares(
    host: &HostParts,
    (tenant, stream): (&Tenant, &Stream),
    region: &str,
) -> Result<Vec<Share>, MachineError> {
    let share = |name: &TierName, weight: u32| {
        let tier = host
            .topology
            .tier(name)
            .ok_or_else(|| MachineError::no_such_tier(name, &host.topology))?;
        if tier.kind == TierKind::Ssd {
            return Err(MachineError::Request(format!(
                "tenant `{}`: {name} is a storage device, and {} is an instruction on memory",
                tenant.name, stream.op
            )));
        }
        Ok(Share {
            tier: name.clone(),
            node: tier.node,
            weight,
        })
    };
    let core = tenant.cores.first().copied().unwrap_or(0);
    let local = host.topology.local_tier(core);
    let weights = tenant.placement_of(region).weights(&local);
    let shares: Vec<Share> = (weights.iter())
        .filter(|(_, weight)| *weight > 0)
        .map(|(name, weight)| share(name, *weight))
        .collect::<Result<_, _>>()?;
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

/// Checks that every node has enough free memory for its allocations.
pub(super) fn check_free_memory<'a>(
    host: &HostParts,
    jobs: impl Iterator<Item = &'a Job>,
) -> Result<(), MachineError> {
    let mut wanted: BTreeMap<Option<u32>, (TierName, u64)> = BTreeMap::new();
    let mut pages = Pages::Base;
    for job in jobs {
        pages = job.pages;
        let unit = match job.pages {
            Pages::Base => memory::base_page() as u64,
            Pages::Transparent | Pages::Reserved => HUGE as u64,
        };
        let mut want = |node, tier: &TierName, bytes: u64| {
            let entry = wanted.entry(node).or_insert_with(|| (tier.clone(), 0));
            entry.1 = entry.1.saturating_add(bytes);
        };
        for need in job.memory.iter().filter(|need| !need.spills) {
            if let (Pattern::Chase { .. }, Some(home)) = (job.pattern, host.topology.tiers.first())
            {
                // The order of a chase is drawn in local memory, four bytes for each line.
                want(home.node, &home.name, need.bytes.lines().saturating_mul(4));
            }
            let round: u64 = need.shares.iter().map(|s| u64::from(s.weight)).sum();
            let bytes = need.bytes.get().checked_next_multiple_of(unit);
            let bytes = u128::from(bytes.unwrap_or(u64::MAX));
            for share in &need.shares {
                let part = bytes * u128::from(share.weight) / u128::from(round.max(1));
                let part = u64::try_from(part).unwrap_or(u64::MAX);
                want(share.node, &share.tier, part);
            }
        }
    }
    for (node, (tier, wanted)) in wanted {
        check_there(host, node, &tier)?;
        let room = if pages == Pages::Reserved {
            Some(FreeMemory {
                free: reserved(host, node)?,
                limit: "reserved pages".into(),
                is_of_group: false,
            })
        } else {
            memory::free_memory(&host.root, node)
        };
        if let Some(room) = room.filter(|room| room.free.get() < wanted) {
            return Err(room.refuses(tier, Bytes(wanted)));
        }
    }
    Ok(())
}

/// Checks that a node still has memory: a CXL device may have gone since discovery.
fn check_there(host: &HostParts, node: Option<u32>, tier: &TierName) -> Result<(), MachineError> {
    let Some(node) = node else { return Ok(()) };
    let path = format!("{NODES}/has_memory");
    let there = host.root.text(&path).and_then(|text| list::parse(&text));
    match there.known() {
        Some(ids) if !ids.contains(&node) => Err(MachineError::Gone {
            tier: tier.clone(),
            reason: format!(
                "node {node} went offline; {path} lists {}",
                list::format(ids)
            ),
        }),
        _ => Ok(()),
    }
}

/// Free reserved pages of a node, in bytes.
fn reserved(host: &HostParts, node: Option<u32>) -> Result<Bytes, MachineError> {
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

/// The tier of an array's pages, for messages.
pub(super) fn tiers_of(need: &Need) -> String {
    let names: Vec<String> = need
        .shares
        .iter()
        .map(|share| match share.node {
            Some(node) => format!("node {node} (tier {})", share.tier),
            None => format!("tier {}", share.tier),
        })
        .collect();
    names.join(" and ")
}
