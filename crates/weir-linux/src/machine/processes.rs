//! Tenants that are processes of this host: commands that a run starts, and scopes that exist already. They are
//! observed and limited through [`steer`](crate::steer), with its journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command as Start, Stdio};

use weir_model::action::{Action, Actuators, Applied};
use weir_model::capability::{Feature, Unavailable};
use weir_model::events::EventLibrary;
use weir_model::machine::{Machine, MachineError, ProcessProgress, RunNotes, TenantProgress};
use weir_model::scope::Scope;
use weir_model::tenant::{Command, Placement, Tenant, Work};
use weir_model::topology::TierName;
use weir_model::units::Nanos;

use super::HostParts;
use super::pages::RegionMap;
use crate::clock::raw_nanos;
use crate::memory::{PageRange, ProgramPolicy, base_page};
use crate::pin::Pinned;
use crate::process::EndOfChild;
use crate::root::Root;
use crate::steer::actuators::Actuator;
use crate::steer::group;
use crate::steer::{Host, HostConfig, HostError, Release, TenantScope};
use weir_loops::child::end_with_this_thread;

/// The most of a process's list of mappings that is read, and the most processes of a tenant.
const LONGEST: u64 = 16 << 20;
const MOST: usize = 64;

/// The processes of a run.
pub(super) struct Processes {
    /// What observes and limits them; where the host has no control groups, why only their ends are known.
    host: Result<Host, MachineError>,
    members: Vec<Member>,
    /// Why nothing may be limited, if that is so.
    only_observed: Option<String>,
}

/// One tenant.
struct Member {
    tenant: usize,
    name: String,
    scope: Scope,
    child: Option<Child>,
    end: Option<EndOfChild>,
    /// The tier of the cores that touch its pages first.
    local: TierName,
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended before.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Processes {
    /// Starts the commands of a run, and finds its scopes; `None` without either.
    ///
    /// # Errors
    /// A command does not start, a scope names nothing, or the kernel has no control groups.
    pub fn start(host: &HostParts, tenants: &[Tenant]) -> Result<Option<Self>, MachineError> {
        let mut members = Vec::new();
        for (index, tenant) in tenants.iter().enumerate() {
            if tenant.work.is_of_host() && tenant.cache_ways.is_some() {
                return Err(MachineError::Request(format!(
                    "tenant `{}`: cache ways of {} are set while it runs",
                    tenant.name,
                    tenant.work.describe()
                )));
            }
            let (scope, child, began) = match &tenant.work {
                Work::Stream(_) | Work::Program(_) => continue,
                Work::Scope(scope) => (scope.clone(), None, 0),
                Work::Command(command) => {
                    let began = raw_nanos();
                    let child = start(host, tenant, command)?;
                    (Scope::Pid(child.id()), Some(child), began)
                }
            };
            let end = child
                .as_ref()
                .map(|child| EndOfChild::of(child.id(), began));
            let end = end.transpose().map_err(|error| MachineError::System {
                what: "starting a thread that waits for a command".into(),
                cause: error.to_string(),
            })?;
            members.push(Member {
                tenant: index,
                name: tenant.name.clone(),
                scope,
                child,
                end,
                local: host
                    .topology
                    .local_tier(tenant.cores.first().copied().unwrap_or(0)),
            });
        }
        if members.is_empty() {
            return Ok(None);
        }
        let open = |restrain, journal| {
            let config = HostConfig {
                tenants: (members.iter())
                    .map(|member| TenantScope {
                        name: member.name.clone(),
                        scope: member.scope.clone(),
                        restrain,
                    })
                    .collect(),
                actuators: Actuator::ALL.to_vec(),
                // Processes that the run did not start stay in their groups.
                own_groups: members.iter().all(|member| member.child.is_some()),
                dwell: Nanos(0.0),
                look_at_pages: 0,
                identity: host.identity.clone(),
                topology: host.topology.clone(),
                ..HostConfig::default()
            };
            Host::open(&host.root, config, &EventLibrary::builtin(), journal)
        };
        let journal: Option<&Path> = host.options.journal.as_deref();
        let limited = match journal {
            Some(folder) => open(true, Some(folder)).map_err(|why| why.to_string()),
            None => Err("no journal was named, by which limits would be restored".to_owned()),
        };
        let (host, only_observed) = match limited {
            Ok((host, _)) => (Ok(host), None),
            Err(why) => {
                let host = open(false, None).map(|(host, _)| host);
                let host = host.map_err(|error| refused(&error));
                // A scope is there to be observed. A command also has an end.
                match host {
                    Err(error) if members.iter().any(|member| member.child.is_none()) => {
                        return Err(error);
                    }
                    host => (host, Some(why)),
                }
            }
        };
        Ok(Some(Self {
            host,
            members,
            only_observed,
        }))
    }

    /// What happened until now does not count.
    pub fn begin_window(&mut self) {
        if let Ok(host) = &mut self.host {
            host.observe(Nanos(0.0));
        }
    }

    /// Adds what each did since the window began.
    ///
    /// # Errors
    /// They cannot be observed.
    pub fn end_window(&mut self, tenants: &mut [TenantProgress]) -> Result<(), MachineError> {
        let seen = match &mut self.host {
            Ok(host) => Machine::observe(host, Nanos(0.0))?.tenants,
            Err(why) => vec![unobserved(why); self.members.len()],
        };
        for (member, own) in self.members.iter().zip(seen) {
            if let Some(tenant) = tenants.get_mut(member.tenant) {
                *tenant = own;
                if let Some(process) = &mut tenant.process {
                    process.ended = member.end.as_ref().and_then(EndOfChild::known);
                }
            }
        }
        Ok(())
    }

    /// Reads which pages each process has, and where.
    pub fn read_regions(&self, root: &Root, regions: &mut RegionMap) {
        for member in &self.members {
            let processes = match (&member.scope, self.group_of(member)) {
                (Scope::Pid(process), _) => vec![*process],
                (_, Some(path)) => group::processes(root, path),
                (_, None) => Vec::new(),
            };
            regions.forget(member.tenant);
            for process in processes.into_iter().take(MOST) {
                for (name, range, nodes) in mappings(root, process) {
                    regions.add(member.tenant, &name, &member.local, range, &nodes);
                }
            }
        }
    }

    fn group_of(&self, member: &Member) -> Option<&str> {
        let host = self.host.as_ref().ok()?;
        let own = host.tenants().iter().find(|t| t.name() == member.name);
        own.map(|tenant| tenant.group())
    }

    /// The journal by which they are limited, empty if they are only observed.
    pub fn journal(&self) -> Release {
        match &self.host {
            Ok(host) => host.releaser(),
            Err(_) => Release::default(),
        }
    }

    /// Whether a tenant is one of these.
    pub fn has(&self, tenant: &str) -> bool {
        self.members.iter().any(|member| member.name == tenant)
    }

    /// Limits a tenant, or lets it go, and says what is in force.
    ///
    /// # Errors
    /// The tenant cannot be limited so.
    pub fn act(&mut self, action: &Action) -> Result<Applied, MachineError> {
        let feature = match action {
            Action::Bandwidth { .. } | Action::CacheWays { .. } => Feature::Resctrl,
            Action::Clock { .. } => Feature::ClockControl,
            _ => Feature::ControlGroups,
        };
        let missing = |reason| MachineError::Missing { feature, reason };
        if let Some(why) = &self.only_observed {
            return Err(missing(why.clone()));
        }
        match &mut self.host {
            Ok(host) => host.act(action).map_err(|why| missing(why.reason)),
            Err(why) => Err(why.clone()),
        }
    }

    /// Restores every limit, and ends the commands that are left.
    ///
    /// # Errors
    /// What could not be restored; the journal keeps it.
    pub fn end(mut self, notes: &mut RunNotes) -> Result<(), MachineError> {
        notes.conditions.extend(self.members.iter().map(|member| {
            let is = if member.child.is_some() {
                "a command, "
            } else {
                ""
            };
            format!("{}: {is}{}", member.name, member.scope)
        }));
        match &mut self.host {
            Ok(host) => host.stop().map(drop),
            Err(why) => {
                notes
                    .warnings
                    .push(format!("commands are not counted: {why}"));
                Ok(())
            }
        }
    }

    /// The actuators by which one of them can be limited.
    pub fn actuators(&self, tenant: &str) -> Actuators {
        match (&self.only_observed, &self.host) {
            (None, Ok(host)) => host.actuators(tenant),
            _ => Actuators::default(),
        }
    }
}

/// Of a command of which only its end is known.
fn unobserved(why: &MachineError) -> TenantProgress {
    let unknown = || Unavailable::because(why.to_string());
    TenantProgress {
        process: Some(ProcessProgress {
            ran: Err(unknown()),
            traffic: Err(unknown()),
            cores: 0,
            busy: true,
            uses: Err(unknown()),
            ended: None,
            limits: Vec::new(),
        }),
        ..TenantProgress::default()
    }
}

fn refused(error: &HostError) -> MachineError {
    match error {
        HostError::Refused(_) => MachineError::Request(error.to_string()),
        HostError::Missing(_) | HostError::Journal(_) => MachineError::Missing {
            feature: Feature::ControlGroups,
            reason: error.to_string(),
        },
    }
}

/// Starts a command on a tenant's cores, its memory placed.
fn start(host: &HostParts, tenant: &Tenant, command: &Command) -> Result<Child, MachineError> {
    let request = |why: String| MachineError::Request(format!("tenant `{}`: {why}", tenant.name));
    if !tenant.placements.is_empty() {
        return Err(request(
            "a command has no regions before it runs; place them then".into(),
        ));
    }
    let policy = policy_of(host, &tenant.placement).map_err(|error| match error {
        MachineError::Request(why) => request(why),
        other => other,
    })?;
    let mut start = Start::new(&command.program);
    start
        .args(&command.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    end_with_this_thread(&mut start);
    // A child inherits the processors and the policy of the thread that starts it.
    let pinned = Pinned::to_any(&tenant.cores)?;
    let child = match policy {
        Some(policy) => policy.around(|| start.spawn()),
        None => start.spawn(),
    };
    drop(pinned);
    child.map_err(|error| request(format!("`{}` does not start: {error}", command.program)))
}

/// The policy of the kernel for a placement.
pub(super) fn policy_of(
    host: &HostParts,
    placement: &Placement,
) -> Result<Option<ProgramPolicy>, MachineError> {
    let node = |name: &TierName| {
        let tier = host.topology.tier(name);
        let tier = tier.ok_or_else(|| MachineError::no_such_tier(name, &host.topology))?;
        tier.node.ok_or_else(|| MachineError::Missing {
            feature: Feature::NumaPolicy,
            reason: format!("the kernel has no memory node for {name}"),
        })
    };
    Ok(match placement {
        Placement::FirstTouch => None,
        Placement::Bind(tier) => Some(ProgramPolicy::bind(node(tier)?)),
        Placement::Preferred(tier) => Some(ProgramPolicy::preferred(node(tier)?)),
        Placement::Interleave(weights) => {
            let used = weights.iter().filter(|(_, weight)| *weight > 0);
            let nodes: Vec<u32> = used
                .clone()
                .map(|(tier, _)| node(tier))
                .collect::<Result<_, _>>()?;
            let mut all = used.map(|(_, weight)| weight);
            let first = all.next();
            if first.is_none() {
                return Err(MachineError::Request(
                    "no tier has a weight in its interleaving".into(),
                ));
            }
            if all.all(|weight| Some(weight) == first) {
                Some(ProgramPolicy::interleave(&nodes))
            } else {
                // By the weights of the system, which an action sets.
                Some(ProgramPolicy::weighted(&nodes))
            }
        }
    })
}

/// The mappings of a process that have pages: the name of the region, and its pages on each node.
fn mappings(root: &Root, process: u32) -> Vec<(String, PageRange, BTreeMap<u32, u64>)> {
    let read = |name: &str| root.head(&format!("/proc/{process}/{name}"), LONGEST);
    let (maps, nodes) = (read("maps"), read("numa_maps"));
    match (maps.known(), nodes.known()) {
        (Some(maps), Some(nodes)) => joined(maps, nodes, process),
        _ => Vec::new(),
    }
}

/// `maps` says where a mapping ends, `numa_maps` where its pages are.
fn joined(maps: &str, nodes: &str, process: u32) -> Vec<(String, PageRange, BTreeMap<u32, u64>)> {
    let number = |text| usize::from_str_radix(text, 16).ok();
    let bounds = maps.lines().filter_map(|line| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        Some((number(from)?, number(to)?))
    });
    let ends: BTreeMap<usize, usize> = bounds.collect();
    let page = base_page();
    let mut all = Vec::new();
    for line in nodes.lines() {
        let mut words = line.split_whitespace();
        let Some(start) = words.next().and_then(number) else {
            continue;
        };
        let (mut name, mut size, mut on) = ("anonymous".to_owned(), page as u64, Vec::new());
        for word in words {
            match word.split_once('=') {
                Some(("file", path)) => {
                    name = path.rsplit('/').next().unwrap_or(path).to_owned();
                }
                Some(("kernelpagesize_kB", kib)) => {
                    size = kib
                        .parse::<u64>()
                        .map_or(size, |kib| kib.saturating_mul(1024));
                }
                Some((node, pages)) => {
                    let node = node
                        .strip_prefix('N')
                        .and_then(|node| node.parse::<u32>().ok());
                    on.extend(node.zip(pages.parse::<u64>().ok()));
                }
                None if word == "heap" || word == "stack" => name = word.to_owned(),
                None => {}
            }
        }
        let Some(&end) = ends.get(&start).filter(|_| !on.is_empty()) else {
            continue;
        };
        let each = (size / page as u64).max(1);
        let nodes = on
            .into_iter()
            .map(|(node, pages)| (node, pages.saturating_mul(each)));
        let range = PageRange {
            process: Some(process),
            start,
            pages: end.saturating_sub(start) / page,
            unit: 1,
        };
        all.push((name, range, nodes.collect()));
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mappings_have_names_ends_and_nodes() {
        let maps = "1000-5000 rw-p 00000000 00:00 0 [heap]\n\
                    8000-9000 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n\
                    a000-c000 rw-p 00000000 00:00 0\n";
        let nodes = "1000 default heap anon=3 dirty=3 N0=1 N2=2 kernelpagesize_kB=4\n\
                     8000 default file=/usr/lib/libc.so.6 mapped=1 N0=1 kernelpagesize_kB=4\n\
                     a000 default\nb000 default anon=1 N0=1 kernelpagesize_kB=4\n";
        let found = joined(maps, nodes, 7);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["heap", "libc.so.6"]);
        let (_, heap, pages) = &found[0];
        assert_eq!((heap.process, heap.start), (Some(7), 0x1000));
        assert_eq!(heap.pages, 0x4000 / base_page());
        assert_eq!(pages, &BTreeMap::from([(0, 1), (2, 2)]));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_read(maps in "([0-9a-f]{0,17}-?[0-9a-f]{0,17} .{0,9}\n){0,5}", nodes in "([0-9a-f]{0,17} (N|file|kernelpagesize_kB|heap|.)=?[0-9]{0,21}[ \n]){0,9}") {
            joined(&maps, &nodes, 1);
        }
    }
}
