//! One thread of a tenant: it gets its memory, waits for the start, and repeats its loop until it is stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use weir_model::machine::MachineError;
use weir_model::units::{Bytes, Nanos};

use super::HostParts;
use super::assignment::Job;
use super::counting::Counts;
use super::recorder::{LeftOut, Progress};
use super::shared_line::SharedLine;
use super::task::{Task, Timed};
use crate::clock::{self, Clock, Moment};
use crate::memory::{PageRange, Region};
use crate::pin::{self, Pinned};

/// The report of a thread when its memory is in place.
pub(super) struct Ready {
    pub tenant: usize,
    /// Its number in the kernel.
    pub thread: u32,
    pub bytes: Bytes,
    pub verified: bool,
    /// The page sizes, in words: of the memory of its instruction, and of the memory that is loaded together
    /// with it.
    pub pages: Vec<String>,
    pub timed: Timed,
    pub cpu: u32,
    /// Its arrays, with the pages on each node.
    pub arrays: Vec<(&'static str, PageRange, BTreeMap<u32, u64>)>,
}

/// The result of a thread.
pub(super) struct Done {
    pub cpu: u32,
    pub regions: Vec<Region>,
    /// Time it spent on its processor, and time that passed.
    pub on_cpu: Nanos,
    pub elapsed: Nanos,
    /// Timed samples that were left out.
    pub left_out: LeftOut,
    /// Whether its loop ran until it was stopped, and the clocks of its processor agreed.
    pub sound: Result<(), String>,
    /// Whether every page is still where it was when the run began.
    pub placed: Result<(), MachineError>,
}

/// The inputs of a thread.
pub(super) struct Worker {
    pub job: Job,
    pub host: Arc<HostParts>,
    pub progress: Arc<Progress>,
    pub stop: Arc<AtomicBool>,
    /// Whether an action moved pages of its tenant.
    pub moved: Arc<AtomicBool>,
    /// The counters of its core.
    pub counts: Counts,
    /// The line that its tenant's threads share, if they share one.
    pub shared: Option<Arc<SharedLine>>,
}

impl Worker {
    /// Gets ready, waits for `go`, and runs until it is stopped; `None` if the run never began.
    ///
    /// Owns `ready` and drops it before it waits, so that a thread that dies on the way is noticed.
    pub fn work(
        self,
        kept: Vec<Option<Region>>,
        ready: Sender<Result<Ready, MachineError>>,
        go: &Receiver<()>,
    ) -> Option<Done> {
        let (pinned, regions, task) = match self.prepare(kept) {
            Ok(prepared) => prepared,
            Err(error) => {
                // The receiver has gone only if another thread failed first.
                let _ = ready.send(Err(error));
                return None;
            }
        };
        self.counts.open(&self.host.root, &self.host.counted);
        let shared = self.shared.as_ref().map(|line| line.region());
        let all = || regions.iter().chain(shared);
        let sent = ready.send(Ok(Ready {
            tenant: self.job.tenant,
            thread: pin::thread(),
            bytes: all().map(Region::bytes).sum(),
            verified: all().all(Region::is_verified),
            pages: all()
                .map(|region| region.describe_pages(&self.host.root))
                .collect(),
            timed: task.timed(),
            cpu: self.job.cpu,
            arrays: (self.job.memory.iter().zip(all()))
                .filter(|_| self.job.turn.is_none_or(|turn| turn.place == 0))
                .map(|(need, region)| (need.region, region.range(), region.nodes().clone()))
                .collect(),
        }));
        drop(ready);
        // A closed channel means that another thread could not get ready.
        sent.ok().and_then(|()| go.recv().ok())?;

        let clock = Clock::best();
        let moment = Moment::now(clock);
        let (cpu_began, began) = (clock::thread_nanos(), clock::raw_nanos());
        let ended = task.repeat(&self.progress, &self.stop);
        let (on_cpu, elapsed) = (
            clock::thread_nanos().saturating_sub(cpu_began),
            clock::raw_nanos().saturating_sub(began),
        );
        let mut regions = match &ended.failure {
            // An accelerator that may still write to this memory must not reach its next owner.
            Some((_, true)) => {
                std::mem::forget(regions);
                Vec::new()
            }
            _ => regions,
        };
        let sound = Moment::now(clock).check_since(moment, clock);
        // Memory that goes offline, a changed cpuset or a daemon may move pages during a run.
        let placed = if self.moved.load(Ordering::Relaxed) {
            // An action moved them; the next run gets memory of its own.
            regions.clear();
            Ok(())
        } else {
            let mut placed = regions.iter_mut().map(|r| r.verify(&self.host.policy));
            placed.find(Result::is_err).unwrap_or(Ok(()))
        };
        let done = Done {
            cpu: self.job.cpu,
            regions,
            on_cpu: Nanos(on_cpu as f64),
            elapsed: Nanos(elapsed as f64),
            left_out: ended.left_out,
            sound: ended.failure.map_or(sound, |(why, _)| Err(why)),
            placed,
        };
        drop(pinned);
        Some(done)
    }

    fn prepare(
        &self,
        kept: Vec<Option<Region>>,
    ) -> Result<(Pinned, Vec<Region>, Task), MachineError> {
        let pinned = Pinned::to(self.job.cpu)?;
        let (job, policy) = (&self.job, &self.host.policy);
        if let (Some(line), Some(turn)) = (&self.shared, job.turn) {
            return Ok((
                pinned,
                Vec::new(),
                Task::sharing(job, Arc::clone(line), turn),
            ));
        }
        let mut kept = kept.into_iter();
        let mut regions = Vec::with_capacity(job.memory.len());
        for need in &job.memory {
            regions.push(match kept.next().flatten() {
                // Pages may have moved since the last run.
                Some(mut region) => {
                    region.verify(policy)?;
                    region
                }
                None => {
                    let spills = need.spills;
                    Region::placed(need.bytes, job.pages, &need.shares, spills, policy)?
                }
            });
        }
        let task = Task::of(job, &regions, &self.host.root)?;
        Ok((pinned, regions, task))
    }
}
