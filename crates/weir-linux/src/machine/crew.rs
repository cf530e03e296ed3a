//! The threads of a run, from the moment when all of them are ready until the last has gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use weir_model::latency::LatencyHistogram;
use weir_model::machine::{MachineError, RunNotes, TenantProgress};
use weir_model::tenant::Tenant;
use weir_model::units::{Bytes, LINE_BYTES};

use super::assignment::{self, Job};
use super::worker::{Done, Progress, Ready, Worker};
use super::{Host, notes};
use crate::memory::Region;

/// One thread as the run sees it.
struct Member {
    tenant: usize,
    cpu: u32,
    progress: Arc<Progress>,
    thread: JoinHandle<Option<Done>>,
    /// Lines done when the window began.
    began_at: u64,
}

/// All threads of a run.
pub(super) struct Crew {
    members: Vec<Member>,
    stop: Arc<AtomicBool>,
    tenants: usize,
    timed: Vec<bool>,
    notes: RunNotes,
}

impl Crew {
    /// Starts every thread, waits until all have their memory, and lets them go together. If one
    /// cannot get ready, none runs.
    pub fn assemble(
        jobs: Vec<Job>,
        tenants: &[Tenant],
        host: &Arc<Host>,
    ) -> Result<Self, MachineError> {
        let mut kept = take_kept(host, &jobs);
        let fresh = jobs.iter().zip(&kept).filter(|(_, kept)| kept.is_none());
        assignment::check_room(host, fresh.map(|(job, _)| job))?;

        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let mut members = Vec::with_capacity(jobs.len());
        let mut gates: Vec<SyncSender<()>> = Vec::with_capacity(jobs.len());
        let mut failed = None;
        for (job, kept) in jobs.iter().zip(&mut kept) {
            let (tell, kept) = (tell.clone(), kept.take());
            let (gate, go) = mpsc::sync_channel(1);
            let progress = Arc::new(Progress::new());
            let worker = Worker {
                job: job.clone(),
                host: Arc::clone(host),
                progress: Arc::clone(&progress),
                stop: Arc::clone(&stop),
            };
            let spawned = std::thread::Builder::new()
                .name(format!("weir-cpu{}", job.cpu))
                .spawn(move || worker.work(kept, &tell, &go));
            match spawned {
                Ok(thread) => members.push(Member {
                    tenant: job.tenant,
                    cpu: job.cpu,
                    progress,
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
        // With the last sender gone, the channel ends when the last thread has spoken.
        drop(tell);
        let mut ready: Vec<Ready> = Vec::with_capacity(members.len());
        for report in &told {
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
                let _ = member.thread.join();
            }
            return Err(failed.unwrap_or_else(|| MachineError::System {
                what: "starting the threads".into(),
                cause: "one of them ended before it was ready".into(),
            }));
        }
        let notes = notes::at_start(host, tenants, &jobs, &ready);
        for gate in gates {
            // A thread that is gone is found at the end of the first window.
            let _ = gate.send(());
        }
        Ok(Self {
            members,
            stop,
            tenants: tenants.len(),
            timed: tenants.iter().map(|t| t.pattern.is_timed()).collect(),
            notes,
        })
    }

    /// What happened until now does not count.
    pub fn begin_window(&mut self) {
        for member in &mut self.members {
            swap_latencies(&member.progress);
            member.began_at = member.progress.lines.load(Ordering::Relaxed);
        }
    }

    /// What each tenant did since the window began.
    pub fn end_window(&mut self) -> Result<Vec<TenantProgress>, MachineError> {
        let mut tenants = vec![TenantProgress::default(); self.tenants];
        for member in &self.members {
            let lines = member.progress.lines.load(Ordering::Relaxed);
            if member.thread.is_finished() {
                return Err(MachineError::System {
                    what: format!("the thread on CPU {}", member.cpu),
                    cause: "it ended during the run".into(),
                });
            }
            let Some(tenant) = tenants.get_mut(member.tenant) else {
                continue;
            };
            let accesses = lines.saturating_sub(member.began_at);
            tenant.accesses += accesses;
            tenant.bytes = tenant.bytes + Bytes(accesses * LINE_BYTES);
            if self.timed.get(member.tenant) == Some(&true) {
                let latencies = swap_latencies(&member.progress);
                match &mut tenant.latency {
                    Some(all) => all.merge(&latencies),
                    none => *none = Some(latencies),
                }
            }
        }
        Ok(tenants)
    }

    /// Stops every thread and waits for it.
    pub fn dismiss(self) -> Result<(RunNotes, Vec<Region>), MachineError> {
        self.stop.store(true, Ordering::Relaxed);
        let mut notes = self.notes;
        let mut regions = Vec::with_capacity(self.members.len());
        let mut lost = None;
        for member in self.members {
            match member.thread.join() {
                Ok(Some(done)) => {
                    notes::at_end(&mut notes, &done);
                    regions.push(done.region);
                }
                Ok(None) | Err(_) => lost = Some(member.cpu),
            }
        }
        match lost {
            Some(cpu) => Err(MachineError::System {
                what: format!("stopping the thread on CPU {cpu}"),
                cause: "it had failed".into(),
            }),
            None => Ok((notes, regions)),
        }
    }
}

/// Takes what was recorded and leaves an empty distribution; the new one is made before the lock
/// is taken, so that the thread is not held up.
fn swap_latencies(progress: &Progress) -> LatencyHistogram {
    let mut latencies = LatencyHistogram::new();
    let mut shared = progress
        .latency
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    std::mem::swap(&mut *shared, &mut latencies);
    drop(shared);
    latencies
}

/// Memory of the last run for each job that it serves; the rest goes back to the kernel.
fn take_kept(host: &Host, jobs: &[Job]) -> Vec<Option<Region>> {
    let mut kept = std::mem::take(&mut *host.kept.lock().unwrap_or_else(PoisonError::into_inner));
    jobs.iter()
        .map(|job| {
            let serves = |r: &Region| r.serves(job.working_set, job.pages, &job.shares);
            let place = kept.iter().position(serves)?;
            Some(kept.swap_remove(place))
        })
        .collect()
}
