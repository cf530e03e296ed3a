//! Tenants of storage in a run: their requests, and the results.

use weir_model::access::Pattern;
use weir_model::capability::Feature;
use weir_model::machine::{MachineError, RunNotes, TenantProgress};
use weir_model::tenant::{Placement, Stream, Tenant};
use weir_model::topology::{TierKind, TierName};
use weir_model::units::Bytes;

use super::HostParts;
use crate::storage::{self, Load, Running, Times};
use crate::topology::list;

/// The requests of one tenant, before they begin.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// The tenant.
    pub tenant: usize,
    load: Load,
}

impl Request {
    /// The requests of a tenant; its part of the storage comes after the parts of `before`.
    ///
    /// # Errors
    /// The request is impossible for storage, or there is no storage.
    pub fn of(
        host: &HostParts,
        index: usize,
        (tenant, stream): (&Tenant, &Stream),
        before: &[Self],
    ) -> Result<Self, MachineError> {
        let refuse = |why: &str| {
            let name = &tenant.name;
            Err(MachineError::Request(format!("tenant `{name}`: {why}")))
        };
        let Pattern::Requests {
            bytes,
            depth,
            buffered,
        } = stream.pattern
        else {
            return refuse("a storage device is put requests to, not lines");
        };
        if buffered {
            return refuse(
                "requests of this host are direct; copies of the kernel are the model's",
            );
        }
        let Placement::Bind(name) = &tenant.placement else {
            return refuse("requests go to one storage device");
        };
        let tier = host.topology.tier(name);
        let tier = tier.ok_or_else(|| no_such_tier(host, name))?;
        if tier.kind != TierKind::Ssd {
            return refuse(&format!(
                "{name} is {}, and takes no requests",
                tier.kind.name()
            ));
        }
        if stream.reads.is_some() {
            return refuse("nothing is loaded along with requests to storage");
        }
        if stream.pause.get() > 0.0 {
            return refuse("requests follow each other at once and cannot pause");
        }
        let (block, set) = (bytes.get(), stream.working_set.get());
        if block == 0 || !block.is_multiple_of(512) || set < block || depth == 0 {
            return refuse(&format!(
                "requests of {bytes}, {depth} deep, in {}: a request is whole sectors of 512 B, and one at least is under way",
                stream.working_set
            ));
        }
        Ok(Self {
            tenant: index,
            load: Load {
                tenant: tenant.name.clone(),
                op: stream.op,
                cores: tenant.cores.clone(),
                // Whole requests, so that every part begins at a valid offset.
                set: Bytes(set - set % block),
                offset: before.iter().map(|r| r.load.end()).max().unwrap_or(0),
                block: bytes,
                depth,
            },
        })
    }
}

fn no_such_tier(host: &HostParts, name: &TierName) -> MachineError {
    if host.storage.is_none() && *name == TierName::ssd(0) {
        return MachineError::Missing {
            feature: Feature::Storage,
            reason: storage::unnamed().detail,
        };
    }
    MachineError::no_such_tier(name, &host.topology)
}

/// Running requests.
#[derive(Default)]
pub(super) struct Requests {
    all: Vec<Member>,
}

struct Member {
    tenant: usize,
    block: u64,
    running: Running,
    /// Bytes when the window began.
    began_at: u64,
    /// Latencies of requests when the window began; `None` if they are not known.
    times: Option<Times>,
    /// Why latencies are no longer read.
    silent: Option<String>,
}

impl Requests {
    /// Starts all of them, and returns while they get ready.
    pub fn start(host: &HostParts, requests: &[Request]) -> Result<Self, MachineError> {
        let Some(storage) = host.storage.as_ref().filter(|_| !requests.is_empty()) else {
            return Ok(Self { all: Vec::new() });
        };
        let loads: Vec<Load> = requests.iter().map(|r| r.load.clone()).collect();
        let running = storage.start(&loads)?;
        let members = requests
            .iter()
            .zip(running)
            .map(|(request, running)| Member {
                tenant: request.tenant,
                block: request.load.block.get(),
                running,
                began_at: 0,
                times: None,
                silent: None,
            });
        Ok(Self {
            all: members.collect(),
        })
    }

    /// Waits until the requests of all tenants run.
    pub fn await_flow(&mut self) -> Result<(), MachineError> {
        self.all.iter_mut().try_for_each(|m| m.running.await_flow())
    }

    /// The threads of each tenant's process, as the kernel numbers them.
    pub fn threads(&self) -> Vec<(usize, u32)> {
        let of = |member: &Member| {
            let (tenant, threads) = (member.tenant, member.running.threads());
            threads.into_iter().map(move |thread| (tenant, thread))
        };
        self.all.iter().flat_map(of).collect()
    }

    /// Reads the latencies until now, unless the end of another window did. This takes a few milliseconds, so
    /// it is done before a window and not in it.
    pub fn before_window(&mut self) {
        for member in &mut self.all {
            if member.times.is_none() {
                member.times = member.ask();
            }
        }
    }

    /// Counts before this moment are not used.
    pub fn begin_window(&mut self) -> Result<(), MachineError> {
        for member in &mut self.all {
            member.began_at = member.running.bytes()?;
        }
        Ok(())
    }

    /// Whether all of them still run.
    pub fn check(&mut self) -> Result<(), MachineError> {
        self.all.iter_mut().try_for_each(|m| m.running.check())
    }

    /// Adds the counts of each since the window began.
    pub fn end_window(&self, tenants: &mut [TenantProgress]) -> Result<(), MachineError> {
        for member in &self.all {
            let bytes = member.running.bytes()?.saturating_sub(member.began_at);
            if let Some(tenant) = tenants.get_mut(member.tenant) {
                tenant.bytes = Bytes(bytes);
                tenant.accesses = bytes / member.block;
            }
        }
        Ok(())
    }

    /// Adds the latencies of each since [`before_window`](Self::before_window).
    pub fn after_window(&mut self, tenants: &mut [TenantProgress]) {
        for member in &mut self.all {
            let Some(before) = member.times.take() else {
                continue;
            };
            let now = member.ask();
            if let (Some(now), Some(tenant)) = (&now, tenants.get_mut(member.tenant)) {
                tenant.latency = now.since(&before);
            }
            member.times = now;
        }
    }

    /// Stops all of them; the first failure is returned, and none remains.
    pub fn end(self, notes: &mut RunNotes) -> Result<(), MachineError> {
        let mut lost = None;
        for member in self.all {
            notes.warnings.extend(member.silent);
            match member.running.end() {
                Ok(warning) => notes.warnings.extend(warning),
                Err(error) => lost = lost.or(Some(error)),
            }
        }
        lost.map_or(Ok(()), Err)
    }
}

impl Member {
    fn ask(&mut self) -> Option<Times> {
        if self.silent.is_some() {
            return None;
        }
        let times = self.running.times();
        times.map_err(|why| self.silent = Some(why.reason)).ok()
    }
}

/// How the requests of a run are made.
pub(super) fn describe(
    host: &HostParts,
    tenants: usize,
    requests: &[Request],
    notes: &mut RunNotes,
) {
    let Some(storage) = &host.storage else {
        return;
    };
    for Request { load, .. } in requests {
        let subject = if tenants > 1 {
            format!("{}: ", load.tenant)
        } else {
            String::new()
        };
        let mut cpus = load.cores.clone();
        cpus.sort_unstable();
        let on = storage.describe();
        let (op, block, depth) = (load.op, load.block, load.depth);
        for text in [
            format!("{op} of {block}, {depth} deep, {on}"),
            format!("pinned to CPU {}", list::format(&cpus)),
            "bytes counted as requests reach the device".to_owned(),
            "latency from submission to completion, by fio, in bins of 1.6 %".to_owned(),
        ] {
            notes.conditions.push(format!("{subject}{text}"));
        }
    }
}
