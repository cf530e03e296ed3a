//! Tenants that a machine refuses, and the reasons.

use weir_model::access::{Op, Pattern};
use weir_model::capability::{Capability, Feature};
use weir_model::machine::MachineError;
use weir_model::tenant::{Placement, Reads, Stream, Tenant, Work};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::workload::Workload;

/// Refuses requests that make no sense on this machine.
pub fn tenants(tenants: &[Tenant], topology: &Topology) -> Result<(), MachineError> {
    let request = |text: String| Err(MachineError::Request(text));
    let hosts = topology.other_hosts.len() + 1;
    let all = topology.cores.len() * hosts + topology.other_cores.len();
    // First and second threads of each core.
    let mut used = [vec![None; all], vec![None; all]];
    check_sockets(tenants, topology)?;
    for (i, tenant) in tenants.iter().enumerate() {
        let name = &tenant.name;
        if tenants[..i].iter().any(|t| t.name == *name) {
            return request(format!("two tenants are called `{name}`"));
        }
        if tenant.cores.is_empty() {
            return request(format!("tenant `{name}` has no cores"));
        }
        for &core in &tenant.cores {
            let used = &mut used[usize::from(tenant.second_threads)];
            let Some(owner) = used.get_mut(core as usize) else {
                return request(format!(
                    "tenant `{name}` asks for core {core}, but there are {all} cores, numbered from 0"
                ));
            };
            if let Some(other) = owner.replace(name) {
                return request(format!(
                    "tenants `{other}` and `{name}` both ask for core {core}"
                ));
            }
        }
        let hosts = || tenant.cores.iter().map(|&core| topology.host_of(core));
        if hosts().min() != hosts().max() {
            return request(format!(
                "tenant `{name}` has cores of several hosts; a tenant is on one"
            ));
        }
        match &tenant.work {
            Work::Stream(stream) => check_stream(tenant, stream, topology)?,
            Work::Program(program) => check_program(tenant, program, topology)?,
            Work::Command(_) | Work::Scope(_) => {
                return request(format!(
                    "tenant `{name}` is {}, which only a host has; a model runs streams and described programs",
                    tenant.work.describe()
                ));
            }
        }
        placement(name, &tenant.placement)?;
        check_placements(tenant, topology)?;
    }
    Ok(())
}

/// Refuses placements of regions that a tenant does not have, or on a tier that is not memory.
fn check_placements(tenant: &Tenant, topology: &Topology) -> Result<(), MachineError> {
    let regions = tenant.regions();
    for (region, of_region) in &tenant.placements {
        let name = &tenant.name;
        if !regions.iter().any(|r| r.name == *region) {
            let names: Vec<&str> = regions.iter().map(|r| r.name.as_str()).collect();
            return Err(MachineError::Request(format!(
                "tenant `{name}` has no region `{region}`; its regions are: {}",
                names.join(", ")
            )));
        }
        placement(name, of_region)?;
        if let Some(device) = storage_in(of_region.tiers(), topology) {
            return Err(MachineError::Request(format!(
                "tenant `{name}` has `{region}` on {device}, a storage device"
            )));
        }
    }
    Ok(())
}

/// Refuses streams which make no sense on this machine.
fn check_stream(tenant: &Tenant, stream: &Stream, topology: &Topology) -> Result<(), MachineError> {
    let name = &tenant.name;
    let request = |text: String| Err(MachineError::Request(text));
    if stream.working_set.lines() == 0 {
        return request(format!(
            "tenant `{name}` has a working set of {}, less than one line",
            stream.working_set
        ));
    }
    if stream.pattern.is_timed() && !timed(stream.op, stream.pattern) {
        return request(format!(
            "tenant `{name}`: {} cannot be timed with {}",
            stream.op,
            stream.pattern.name()
        ));
    }
    let storage = check_requests(stream, &tenant.placement, topology);
    let of_stream = storage.and_then(|()| check_descriptors(stream));
    let of_stream = of_stream.and_then(|()| check_burst(stream));
    if let Err(why) = of_stream {
        return request(format!("tenant `{name}` {why}"));
    }
    if stream.pattern == Pattern::SharedLine && tenant.cores.len() < 2 {
        return request(format!(
            "tenant `{name}` has one thread, but a shared line needs two"
        ));
    }
    if !(0.0..=MOST_PAUSE).contains(&stream.pause.get()) {
        return request(format!(
            "tenant `{name}` pauses for {} ns; a pause is between 0 and one second",
            stream.pause.get()
        ));
    }
    if let Some(why) = stream.never_open() {
        return request(format!("tenant `{name}` {why}"));
    }
    if let Some(reads) = &stream.reads {
        check_reads(stream, reads).or_else(|why| request(format!("tenant `{name}` {why}")))?;
        placement(name, &reads.from)?;
    }
    Ok(())
}

/// Refuses devices on the ports of the first socket together with tenants on the other socket.
fn check_sockets(tenants: &[Tenant], topology: &Topology) -> Result<(), MachineError> {
    let is_elsewhere =
        |core: &u32| topology.other_cores.contains(core) || topology.host_of(*core) > 0;
    let is_beyond = |t: &Tenant| t.cores.iter().any(is_elsewhere);
    let of_device = |t: &&Tenant| {
        let pattern = t.work.stream().map(|stream| stream.pattern);
        matches!(
            pattern,
            Some(Pattern::Requests { .. } | Pattern::Descriptors { .. })
        )
    };
    match (
        tenants.iter().find(of_device),
        tenants.iter().find(|t| is_beyond(t)),
    ) {
        (Some(device), Some(beyond)) => Err(MachineError::Request(format!(
            "tenant `{}` uses storage or an accelerator; the model does not support this while tenant `{}` is \
             on another socket or host",
            device.name, beyond.name
        ))),
        _ => Ok(()),
    }
}

/// The longest pause between two lines, in nanoseconds.
const MOST_PAUSE: f64 = 1e9;
/// The longest round of a program.
const MOST_LINES: u32 = 256;

/// Refuses descriptors without an accelerator's instruction, an accelerator's instruction without
/// descriptors, and descriptors of size zero.
fn check_descriptors(stream: &Stream) -> Result<(), String> {
    let why = match (stream.op, stream.pattern) {
        (
            Op::Dsa,
            Pattern::Descriptors {
                bytes,
                batch,
                in_flight,
            },
        ) => {
            let copies = |r: &Reads| r.lines == r.per;
            if bytes.lines() == 0 || batch == 0 || in_flight == 0 {
                "has descriptors of size zero".into()
            } else if bytes.get().saturating_mul(u64::from(batch)) > MOST_SUBMITTED {
                "submits more than 4 GiB at once".into()
            } else if !stream.reads.as_ref().is_some_and(copies) {
                "has descriptors without a source; it must read as many lines as it writes".into()
            } else {
                return Ok(());
            }
        }
        (Op::Dsa, pattern) => format!("gives {} to an accelerator", pattern.name()),
        (op, Pattern::Descriptors { .. }) => format!("gives descriptors to {op}"),
        _ => return Ok(()),
    };
    Err(why)
}

/// Refuses programs with more or fewer threads than cores.
fn check_program(
    tenant: &Tenant,
    work: &Workload,
    topology: &Topology,
) -> Result<(), MachineError> {
    if let Some(device) = storage_in(tenant.placement.tiers(), topology) {
        return Err(MachineError::Request(format!(
            "tenant `{}` has its memory on {device}, a storage device",
            tenant.name
        )));
    }
    if work.footprint().lines() == 0 {
        return Err(MachineError::Request(format!(
            "tenant `{}` has regions of {}, less than one line",
            tenant.name,
            work.footprint()
        )));
    }
    if work.threads as usize == tenant.cores.len() {
        return Ok(());
    }
    Err(MachineError::Request(format!(
        "`{}` has {} threads, but tenant `{}` has {} cores",
        work.name,
        work.threads,
        tenant.name,
        tenant.cores.len()
    )))
}

/// The largest storage request in bytes, and the most bytes that one thread keeps outstanding.
const MOST_REQUESTED: u64 = 1 << 20;
const MOST_DEPTH: u32 = 1024;

/// Refuses storage requests without a storage device's instruction, the instruction without requests,
/// requests of size zero, and memory instructions on a storage device.
fn check_requests(
    stream: &Stream,
    placement: &Placement,
    topology: &Topology,
) -> Result<(), String> {
    let reads = stream.reads.as_ref().map(|reads| &reads.from);
    let touched = std::iter::once(placement).chain(reads);
    let why = match (stream.op.is_storage(), stream.pattern) {
        (true, Pattern::Requests { bytes, depth, .. }) => {
            if bytes.lines() == 0 || bytes.get() > MOST_REQUESTED {
                format!("has requests of {bytes}; a request is between one line and 1 MiB")
            } else if !(1..=MOST_DEPTH).contains(&depth) {
                format!(
                    "keeps {depth} requests outstanding; the number is between 1 and {MOST_DEPTH}"
                )
            } else if stream.reads.is_some() {
                "copies with requests; copies go between tiers of memory".into()
            } else if stream.pause.get() != 0.0 {
                "pauses between requests; the model does not support that".into()
            } else {
                return Ok(());
            }
        }
        (true, pattern) => format!("uses a storage device for {}", pattern.name()),
        (false, Pattern::Requests { .. }) => format!("gives storage requests to {}", stream.op),
        (false, _) => match storage_in(touched.flat_map(Placement::tiers), topology) {
            Some(name) => format!(
                "has {} on {name}, a storage device; which accepts requests such as randread",
                stream.op
            ),
            None => return Ok(()),
        },
    };
    Err(why)
}

/// The first of these tiers which is a storage device.
fn storage_in<'a>(
    mut tiers: impl Iterator<Item = &'a TierName>,
    topology: &Topology,
) -> Option<&'a TierName> {
    let is_storage = |name: &&TierName| {
        let tier = topology.tier(name);
        tier.is_some_and(|tier| tier.kind == TierKind::Ssd)
    };
    tiers.find(is_storage)
}

/// Refuses bursts of zero accesses, of more than a core can have outstanding, and of more lines than there
/// are.
fn check_burst(stream: &Stream) -> Result<(), String> {
    let Pattern::FlushedBurst { lines } = stream.pattern else {
        return Ok(());
    };
    let most = u64::from(Pattern::MOST_IN_BURST).min(stream.working_set.lines());
    if (1..=most).contains(&u64::from(lines)) {
        return Ok(());
    }
    Err(format!(
        "has bursts of {lines} lines; a burst is between 1 and {most} lines"
    ))
}

/// The most bytes of one submission.
const MOST_SUBMITTED: u64 = 4 << 30;

fn check_reads(stream: &Stream, reads: &Reads) -> Result<(), String> {
    let why = if reads.lines == 0 || reads.per == 0 {
        "reads a mix with a part that is zero".into()
    } else if reads.lines > MOST_LINES || reads.per > MOST_LINES {
        format!("has rounds of more than {MOST_LINES} lines")
    } else if stream.pattern.is_timed() {
        format!(
            "times single accesses ({}); other accesses cannot be combined with them",
            stream.pattern.name()
        )
    } else if matches!(stream.op, Op::Cas | Op::UcLd) {
        "mixes loads with atomics or uncached loads, which overlap with no other access".into()
    } else {
        return Ok(());
    };
    Err(why)
}

/// Refuses placements that put pages nowhere.
pub fn placement(name: &str, placement: &Placement) -> Result<(), MachineError> {
    if *placement != Placement::FirstTouch && placement.tiers().next().is_none() {
        return Err(MachineError::Request(format!(
            "tenant `{name}` is placed on no tier"
        )));
    }
    match placement {
        Placement::Interleave(weights) if weights.iter().all(|(_, w)| *w == 0) => {
            Err(MachineError::Request(format!(
                "tenant `{name}` interleaves with weights that are all zero"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses instructions that the platform's processor lacks.
pub fn instructions(tenants: &[Tenant], capabilities: &[Capability]) -> Result<(), MachineError> {
    let lacks = |feature| {
        capabilities
            .iter()
            .find(|c| c.feature == feature && !c.present)
    };
    for (feature, op) in [(Feature::Movdir64b, Op::Movdir64b), (Feature::Dsa, Op::Dsa)] {
        if let Some(capability) = lacks(feature)
            && tenants
                .iter()
                .filter_map(|t| t.work.stream())
                .any(|s| s.op == op)
        {
            return Err(MachineError::Missing {
                feature,
                reason: capability.detail.clone(),
            });
        }
    }
    Ok(())
}

/// Whether single accesses of this kind are timed: chases load; flushed lines accept any instruction but
/// atomics.
fn timed(op: Op, pattern: Pattern) -> bool {
    match pattern {
        Pattern::Chase { .. } => op.is_load(),
        Pattern::FlushedLine => !matches!(op, Op::Cas | Op::Dsa),
        Pattern::FlushedBurst { .. } => !matches!(op, Op::Cas | Op::Dsa | Op::UcLd),
        Pattern::SharedLine => matches!(op, Op::Cas | Op::St),
        _ => false,
    }
}
