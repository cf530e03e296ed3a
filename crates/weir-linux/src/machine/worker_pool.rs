//! The threads of a run, from the moment when all of them are ready until the last has ended.

mod limits;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use weir_model::capability::{Feature, Unavailable};
use weir_model::machine::{MachineError, RunNotes, TenantProgress};
use weir_model::page_move::MoveRequest;
use weir_model::tenant::Tenant;
use weir_model::units::{Bytes, LINE_BYTES};

use super::assignment::{self, Assignment, Job, Need};
use super::counting::Counts;
use super::pacer::Gate;
use super::pages::RegionMap;
use super::processes::Processes;
use super::recorder::Progress;
use super::requests::{self, Requests};
use super::run_changes::RunChanges;
use super::shared_line::SharedLine;
use super::ways::Ways;
use super::worker::{Done, Ready, Worker};
use super::{HostParts, notes};
use crate::clock;
use crate::memory::Region;
use crate::prefetch::Running;
use crate::steer::Release;

/// The reason for a thread that has ended.
const ENDED: &str = "it ended during the run";

/// One thread as the run sees it.
struct Member {
    tenant: usize,
    cpu: u32,
    progress: Arc<Progress>,
    counts: Counts,
    gate: Arc<Gate>,
    /// Whether it waits for a device or for other threads, and cannot be limited.
    never_waits: bool,
    /// Whether an action moved pages of its tenant.
    moved: Arc<AtomicBool>,
    thread: JoinHandle<Option<Done>>,
    /// Lines done when the window began.
    began_at: u64,
}

/// The facts of a tenant that every window needs.
struct TenantFacts {
    name: String,
    cores: Vec<u32>,
    timed: bool,
}

/// All threads of a run.
pub(super) struct WorkerPool {
    members: Vec<Member>,
    stop: Arc<AtomicBool>,
    tenants: Vec<TenantFacts>,
    /// Registers and resctrl groups that are changed for this run.
    changes: RunChanges,
    /// Tenants of storage, which are not threads of this program.
    requests: Requests,
    /// Parts of the last-level cache.
    ways: Ways,
    /// Every running thread, with its tenant.
    threads: Vec<(usize, u32)>,
    regions: RegionMap,
    /// Tenants that are processes of their own.
    processes: Option<Processes>,
    notes: RunNotes,
}

impl WorkerPool {
    /// Starts every thread, waits until all have their memory, and starts their loops together. If one cannot
    /// get ready, none runs.
    pub fn assemble(
        work: Assignment,
        tenants: &[Tenant],
        host: &Arc<HostParts>,
    ) -> Result<Self, MachineError> {
        let jobs = work.jobs;
        let mut kept = take_kept(host, &jobs);
        let fresh = jobs.iter().zip(&kept);
        let fresh = fresh.filter(|(_, kept)| kept.iter().any(Option::is_none));
        assignment::check_free_memory(host, fresh.map(|(job, _)| job))?;
        let shared = shared_lines(host, &jobs)?;
        let mut changes = RunChanges::of(host);
        let (ways, of_ways) = Ways::divide(host, &mut changes, tenants)?;
        // They take longest to get ready, and end themselves if the run does not begin.
        let mut requests = Requests::start(host, &work.requests)?;

        let processes = Processes::start(host, tenants)?;

        let prefetchers = switch_off(host, &mut changes, tenants);
        let stop = Arc::new(AtomicBool::new(false));
        let (report_to, reports) = mpsc::channel();
        let mut members = Vec::with_capacity(jobs.len());
        let mut gates: Vec<SyncSender<()>> = Vec::with_capacity(jobs.len());
        let mut failed = None;
        for (job, kept) in jobs.iter().zip(&mut kept) {
            let (report_to, kept) = (report_to.clone(), std::mem::take(kept));
            let (gate, go) = mpsc::sync_channel(1);
            let progress = Arc::new(Progress::new());
            let counts = Counts::default();
            let (gate_of_job, moved) = (Arc::clone(&job.gate), Arc::new(AtomicBool::new(false)));
            let worker = Worker {
                job: job.clone(),
                host: Arc::clone(host),
                progress: Arc::clone(&progress),
                counts: counts.clone(),
                stop: Arc::clone(&stop),
                moved: Arc::clone(&moved),
                shared: shared.get(&job.tenant).cloned(),
            };
            let spawned = std::thread::Builder::new()
                .name(format!("weir-cpu{}", job.cpu))
                .spawn(move || worker.work(kept, report_to, &go));
            match spawned {
                Ok(thread) => members.push(Member {
                    tenant: job.tenant,
                    cpu: job.cpu,
                    progress,
                    counts,
                    gate: gate_of_job,
                    never_waits: job.turn.is_some() || job.offload.is_some(),
                    moved,
                    thread,
                    began_at: 0,
                }),
                Err(cause) => {
                    failed = Some(MachineError::System {
                        what: format!("starting a thread for CPU {}", job.cpu),
                        cause: cause.to_string(),
                    });
                    break;
                }
            }
            gates.push(gate);
        }
        // Without the last sender, the channel ends when the last thread has reported.
        drop(report_to);
        let mut ready: Vec<Ready> = Vec::with_capacity(members.len());
        for report in &reports {
            match report {
                Ok(report) => ready.push(report),
                Err(error) => failed = failed.or(Some(error)),
            }
            if failed.is_some() || ready.len() == jobs.len() {
                break;
            }
        }
        if ready.len() < jobs.len() {
            drop(gates);
            for member in members {
                let gone = member.thread.join().is_err();
                if gone && failed.is_none() {
                    let name = tenants.get(member.tenant).map_or("?", |t| t.name.as_str());
                    failed = Some(MachineError::System {
                        what: format!("tenant `{name}`, the thread on CPU {}", member.cpu),
                        cause: "it ended before it was ready".into(),
                    });
                }
            }
            return Err(failed.unwrap_or_else(|| MachineError::System {
                what: "starting the threads".into(),
                cause: "one of them said nothing".into(),
            }));
        }
        let mut notes = notes::at_start(host, tenants, &jobs, &ready, &prefetchers);
        requests::describe(host, tenants.len(), &work.requests, &mut notes);
        notes.conditions.extend(of_ways.conditions);
        notes.warnings.extend(of_ways.warnings);
        notes.warnings.extend_from_slice(changes.restored());
        let mut threads: Vec<(usize, u32)> = ready.iter().map(|r| (r.tenant, r.thread)).collect();
        let flowing = requests.await_flow().and_then(|()| {
            threads.extend(requests.threads());
            ways.take(&mut changes, &threads)
        });
        // Threads whose channel is dropped never begin.
        if let Err(error) = flowing {
            drop(gates);
            for member in members {
                // It would only report that it never began.
                let _ = member.thread.join();
            }
            return Err(error);
        }
        for gate in gates {
            // An ended thread is found at the end of the first window.
            let _ = gate.send(());
        }
        Ok(Self {
            members,
            stop,
            tenants: tenants.iter().map(TenantFacts::of).collect(),
            changes,
            requests,
            ways,
            threads,
            regions: regions_of(host, &jobs, &mut ready),
            processes,
            notes,
        })
    }

    /// The position of the running tenant of a name.
    fn tenant(&self, name: &str) -> Result<usize, MachineError> {
        let index = self.tenants.iter().position(|facts| facts.name == name);
        index.ok_or_else(|| MachineError::Request(format!("no tenant `{name}` is running")))
    }

    /// The processors of a tenant.
    ///
    /// # Errors
    /// There is no such tenant.
    pub fn cores_of(&self, tenant: &str) -> Result<&[u32], MachineError> {
        let index = self.tenant(tenant)?;
        Ok(self.tenants.get(index).map_or(&[], |facts| &facts.cores))
    }

    /// Has pages of a tenant moved in the windows that follow.
    ///
    /// # Errors
    /// There is no such tenant, region or tier, or the kernel places no pages.
    pub fn move_pages(
        &mut self,
        host: &HostParts,
        tenant: &str,
        request: MoveRequest<'_>,
    ) -> Result<(), MachineError> {
        let index = self.tenant(tenant)?;
        host.policy
            .availability()
            .map_err(|why| MachineError::Missing {
                feature: Feature::NumaPolicy,
                reason: why.reason,
            })?;
        self.regions.request(index, request, &host.topology)?;
        for member in self.members.iter().filter(|m| m.tenant == index) {
            member.moved.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The tenants that are processes, if this is one of them.
    pub fn processes_with(&mut self, tenant: &str) -> Option<&mut Processes> {
        self.processes.as_mut().filter(|all| all.has(tenant))
    }

    /// The journal of the tenants that are processes, if there are any.
    pub fn journal(&self) -> Option<Release> {
        self.processes.as_ref().map(Processes::journal)
    }

    /// Whether pages are to move.
    pub fn is_moving(&self) -> bool {
        self.regions.is_busy()
    }

    /// Moves the next pages as far as their limit allows.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn step_moves(&mut self) -> Result<(), MachineError> {
        self.regions.step(clock::raw_nanos())
    }

    /// Adds to what each tenant did where its pages are.
    pub fn observe_regions(&mut self, host: &HostParts, tenants: &mut [TenantProgress]) {
        if let (Some(processes), false) = (&self.processes, self.is_moving()) {
            processes.read_regions(&host.root, &mut self.regions);
        }
        for (index, tenant) in tenants.iter_mut().enumerate() {
            tenant.regions = self.regions.observe(index, &host.topology);
        }
    }

    /// Counts before this moment are not used.
    ///
    /// # Errors
    /// Requests to storage cannot be counted.
    pub fn begin_window(&mut self) -> Result<(), MachineError> {
        self.requests.before_window();
        self.regions.begin_window(clock::raw_nanos());
        if let Some(processes) = &mut self.processes {
            processes.begin_window();
        }
        for member in &mut self.members {
            member.progress.take_latencies();
            member.counts.begin();
            member.began_at = member.progress.lines.load(Ordering::Relaxed);
        }
        self.requests.begin_window()
    }

    /// Whether every thread and every process still runs.
    ///
    /// # Errors
    /// One does not: which one, and its tenant.
    pub fn check(&mut self) -> Result<(), MachineError> {
        match self.members.iter().find(|m| m.thread.is_finished()) {
            Some(member) => Err(self.failed(member.tenant, member.cpu, ENDED)),
            None => self.requests.check(),
        }
    }

    fn failed(&self, tenant: usize, cpu: u32, cause: &str) -> MachineError {
        let name = self.tenants.get(tenant).map_or("?", |t| t.name.as_str());
        MachineError::System {
            what: format!("tenant `{name}`, the thread on CPU {cpu}"),
            cause: cause.to_owned(),
        }
    }

    /// The counts of each tenant since the window began.
    pub fn end_window(&mut self) -> Result<Vec<TenantProgress>, MachineError> {
        self.check()?;
        let mut tenants = vec![TenantProgress::default(); self.tenants.len()];
        self.requests.end_window(&mut tenants)?;
        if let Some(processes) = &mut self.processes {
            processes.end_window(&mut tenants)?;
        }
        for member in &self.members {
            let lines = member.progress.lines.load(Ordering::Relaxed);
            let (Some(tenant), Some(facts)) = (
                tenants.get_mut(member.tenant),
                self.tenants.get(member.tenant),
            ) else {
                continue;
            };
            let accesses = lines.saturating_sub(member.began_at);
            tenant.accesses += accesses;
            tenant.bytes = tenant.bytes + Bytes(accesses * LINE_BYTES);
            tenant.counters.add_up(&member.counts.end());
            if facts.timed {
                let latencies = member.progress.take_latencies();
                match &mut tenant.latency {
                    Some(all) => all.merge(&latencies),
                    none => *none = Some(latencies),
                }
            }
        }
        Ok(tenants)
    }

    /// Adds to the counts of each tenant what takes too long to read during the window: the latencies of
    /// requests to storage.
    pub fn after_window(&mut self, tenants: &mut [TenantProgress]) {
        self.requests.after_window(tenants);
    }

    /// Stops every thread and waits for it. Fails if a thread or a page is not what it was at the start.
    pub fn dismiss(mut self) -> Result<(RunNotes, Vec<Region>), MachineError> {
        self.stop.store(true, Ordering::Relaxed);
        let mut notes = std::mem::take(&mut self.notes);
        let mut regions = Vec::with_capacity(self.members.len());
        let mut lost = std::mem::take(&mut self.requests).end(&mut notes).err();
        if let Some(processes) = self.processes.take() {
            lost = lost.or(processes.end(&mut notes).err());
        }
        for member in std::mem::take(&mut self.members) {
            match member.thread.join() {
                Ok(Some(done)) => {
                    if let Err(cause) = &done.sound {
                        lost = lost.or(Some(self.failed(member.tenant, member.cpu, cause)));
                    }
                    notes::at_end(&mut notes, &done);
                    match done.placed {
                        Ok(()) => regions.extend(done.regions),
                        Err(error) => lost = lost.or(Some(error)),
                    }
                }
                Ok(None) | Err(_) => {
                    lost = lost.or(Some(self.failed(member.tenant, member.cpu, ENDED)))
                }
            }
        }
        match self.changes.end() {
            Ok(different) => (notes.warnings).extend(different.iter().map(ToString::to_string)),
            Err(why) => lost = lost.or(Some(MachineError::NotRestored(vec![why.reason]))),
        }
        match lost {
            Some(error) => Err(error),
            None => Ok((notes, regions)),
        }
    }
}

impl TenantFacts {
    fn of(tenant: &Tenant) -> Self {
        Self {
            name: tenant.name.clone(),
            cores: tenant.cores.clone(),
            timed: tenant.is_timed(),
        }
    }
}

/// The regions of all tenants, their arrays in the order of the threads.
fn regions_of(host: &HostParts, jobs: &[Job], ready: &mut [Ready]) -> RegionMap {
    let place = |cpu: u32| jobs.iter().position(|job| job.cpu == cpu);
    ready.sort_by_key(|ready| place(ready.cpu));
    let mut regions = RegionMap::default();
    for thread in ready {
        let local = host.topology.local_tier(thread.cpu);
        for (name, range, nodes) in std::mem::take(&mut thread.arrays) {
            regions.add(thread.tenant, name, &local, range, &nodes);
        }
    }
    regions
}

/// Switches the prefetchers off for the tenants that want them off; returns the register that does it, in words.
fn switch_off(
    host: &HostParts,
    changes: &mut RunChanges,
    tenants: &[Tenant],
) -> Result<Option<String>, Unavailable> {
    let quiet = tenants.iter().filter(|tenant| !tenant.prefetch);
    let cpus: Vec<u32> = quiet.flat_map(|t| t.cores.iter().copied()).collect();
    if cpus.is_empty() {
        return Ok(None);
    }
    let off = Running {
        l1: false,
        l2: false,
    };
    let switches = host.prefetchers.as_ref().map_err(Clone::clone)?;
    changes.make(|access| switches.set(access, &cpus, off))?;
    Ok(Some(switches.name()))
}

/// The line of each tenant whose threads share one.
fn shared_lines(
    host: &HostParts,
    jobs: &[Job],
) -> Result<BTreeMap<usize, Arc<SharedLine>>, MachineError> {
    let mut lines = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.turn.is_some()) {
        if let (false, Some(need)) = (lines.contains_key(&job.tenant), job.memory.first()) {
            let line = SharedLine::allocate(need, job.pages, &host.policy)?;
            lines.insert(job.tenant, Arc::new(line));
        }
    }
    Ok(lines)
}

/// Memory of the last run for each array that can use it; the rest is freed.
fn take_kept(host: &HostParts, jobs: &[Job]) -> Vec<Vec<Option<Region>>> {
    let mut kept = std::mem::take(&mut *host.kept.lock().unwrap_or_else(PoisonError::into_inner));
    let mut serve = |job: &Job, need: &Need| {
        let serves = |r: &Region| r.serves(need.bytes, job.pages, &need.shares, need.spills);
        let place = kept.iter().position(serves)?;
        Some(kept.swap_remove(place))
    };
    jobs.iter()
        .map(|job| {
            let own = job.memory.iter().filter(|_| job.turn.is_none());
            own.map(|need| serve(job, need)).collect()
        })
        .collect()
}
