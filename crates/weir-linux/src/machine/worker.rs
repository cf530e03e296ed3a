//! One thread of a tenant: gets its memory, waits for the start, and repeats its instruction in
//! small blocks until told to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use weir_model::access::{Locality, Pattern};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::MachineError;
use weir_model::units::{Bytes, Nanos};

use super::Host;
use super::assignment::Job;
use crate::clock::{self, Clock};
use crate::kernels::{self, Blocks, Data, LINE, Random, chase};
use crate::memory::Region;
use crate::pin::{self, Pinned};

/// Lines between two looks at the stop flag: 64 KiB, some microseconds of traffic.
const CHUNK_LINES: usize = 1024;
/// Time that one sample of a chase should last, so that reading the clock is a small part of it.
const SAMPLE: Nanos = Nanos(2000.0);
/// Fewest and most hops in a sample.
const HOPS: (usize, usize) = (32, 4096);
/// Quiet time between a flush and the timed access: the flush's own write-back must be over.
const QUIET: Nanos = Nanos(1000.0);
/// A sample that took longer than this is looked into: was something else on the processor?
const SUSPECT: Nanos = Nanos(50_000.0);
/// Readings that tell what the timer itself costs.
const TIMER_READINGS: usize = 1001;

/// What a thread tells while it runs. Alone on its cache lines, two of them for the prefetcher
/// that fetches pairs.
#[repr(align(128))]
pub(super) struct Progress {
    pub lines: AtomicU64,
    pub latency: Mutex<LatencyHistogram>,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            lines: AtomicU64::new(0),
            latency: Mutex::new(LatencyHistogram::new()),
        }
    }

    fn add(&self, lines: usize) {
        // One writer, so that a load and a store do.
        let before = self.lines.load(Ordering::Relaxed);
        self.lines.store(before + lines as u64, Ordering::Relaxed);
    }
}

/// Writes samples down, except those in which the kernel gave the processor to somebody else:
/// what they tell is no latency of memory.
struct Recorder<'a> {
    progress: &'a Progress,
    preemptions: i64,
    left_out: u64,
}

impl<'a> Recorder<'a> {
    fn new(progress: &'a Progress) -> Self {
        Self {
            progress,
            preemptions: pin::preemptions(),
            left_out: 0,
        }
    }

    /// A sample over `accesses` accesses that took `time` together.
    fn record(&mut self, time: Nanos, accesses: usize) {
        self.progress.add(accesses);
        if time > SUSPECT {
            let before = std::mem::replace(&mut self.preemptions, pin::preemptions());
            if self.preemptions != before {
                self.left_out += 1;
                return;
            }
        }
        let latency = time / accesses as f64;
        let mut shared = self
            .progress
            .latency
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        shared.record(latency);
    }
}

/// What a thread says once its memory is in place.
pub(super) struct Ready {
    pub tenant: usize,
    pub bytes: Bytes,
    pub verified: bool,
    pub pages: String,
    pub timing: Timing,
}

/// How a thread times, found out before the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Timing {
    /// Not at all.
    None,
    /// A sample is the mean of some hops.
    Hops { hops: usize, clock: Clock },
    /// One access at a time, less what the timer costs.
    Single { timer: Nanos, clock: Clock },
}

/// What a thread leaves behind.
pub(super) struct Done {
    pub cpu: u32,
    pub region: Region,
    /// Time it spent on its processor, and time that passed.
    pub on_cpu: Nanos,
    pub elapsed: Nanos,
    /// Timed samples that were left out, because another thread ran meanwhile.
    pub left_out: u64,
}

/// Everything that a thread is given.
pub(super) struct Worker {
    pub job: Job,
    pub host: Arc<Host>,
    pub progress: Arc<Progress>,
    pub stop: Arc<AtomicBool>,
}

impl Worker {
    /// Gets ready, waits for `go`, and runs until told to stop; `None` if the run never began.
    pub fn work(
        self,
        kept: Option<Region>,
        ready: &Sender<Result<Ready, MachineError>>,
        go: &Receiver<()>,
    ) -> Option<Done> {
        let (pinned, region, task) = match self.prepare(kept) {
            Ok(prepared) => prepared,
            Err(error) => {
                // Nobody listens any more only if another thread failed first.
                let _ = ready.send(Err(error));
                return None;
            }
        };
        let told = ready.send(Ok(Ready {
            tenant: self.job.tenant,
            bytes: region.bytes(),
            verified: region.is_verified(),
            pages: region.describe_pages(&self.host.root),
            timing: task.timing(),
        }));
        // A closed gate means that another thread could not get ready.
        told.ok().and_then(|()| go.recv().ok())?;

        let (cpu_began, began) = (clock::thread_nanos(), clock::raw_nanos());
        let left_out = task.repeat(&self, &region);
        let done = Done {
            cpu: self.job.cpu,
            region,
            on_cpu: Nanos(clock::thread_nanos().saturating_sub(cpu_began) as f64),
            elapsed: Nanos(clock::raw_nanos().saturating_sub(began) as f64),
            left_out,
        };
        drop(pinned);
        Some(done)
    }

    fn prepare(&self, kept: Option<Region>) -> Result<(Pinned, Region, Task), MachineError> {
        let pinned = Pinned::to(self.job.cpu)?;
        let job = &self.job;
        let region = match kept {
            // Pages may have moved since the last run.
            Some(mut region) => {
                region.verify(&self.host.policy)?;
                region
            }
            None => Region::allocate(job.working_set, job.pages, &job.shares, &self.host.policy)?,
        };
        let task = Task::prepare(job, &region);
        Ok((pinned, region, task))
    }
}

/// The loop of one pattern.
enum Task {
    Sequential {
        lines: usize,
    },
    Scattered {
        blocks: Blocks,
        fenced: bool,
    },
    Chase {
        first: *mut u8,
        eights: usize,
        clock: Clock,
        timer: Nanos,
    },
    Single {
        lines: usize,
        clock: Clock,
        timer: Nanos,
    },
}

impl Task {
    fn prepare(job: &Job, region: &Region) -> Self {
        // Not more than was asked for, though the region is rounded up to whole pages.
        let lines = (job.working_set.min(region.bytes()).get() as usize / LINE).max(1);
        match job.pattern {
            Pattern::Sequential | Pattern::SharedLine | Pattern::Descriptors { .. } => {
                Task::Sequential { lines }
            }
            Pattern::RandomLine => Task::Scattered {
                blocks: Blocks {
                    lines: 1,
                    count: lines,
                },
                fenced: false,
            },
            Pattern::RandomBlock { block } => {
                let block = (block.get() as usize / LINE).clamp(1, lines);
                Task::Scattered {
                    blocks: Blocks {
                        lines: block,
                        count: lines / block,
                    },
                    fenced: job.kernel.op.is_posted(),
                }
            }
            Pattern::Chase { locality } => Self::chase(job, region, lines, locality),
            Pattern::FlushedLine => {
                let clock = Clock::best();
                let mut data = Data::new(job.seed);
                let cost = || {
                    let began = clock.start();
                    // SAFETY: no line is touched.
                    unsafe { job.kernel.run_settled(region.base(), 0, &mut data) };
                    clock.stop().saturating_sub(began)
                };
                Task::Single {
                    lines,
                    clock,
                    timer: typical(clock, cost),
                }
            }
        }
    }

    fn chase(job: &Job, region: &Region, lines: usize, locality: Locality) -> Self {
        let clock = Clock::best();
        let order = chase::order(lines, locality, &mut Random::new(job.seed));
        // SAFETY: the order numbers lines of the region, which is this thread's own.
        let first = unsafe { chase::link(region.base(), &order) };
        drop(order);
        let timer = typical(clock, || {
            let began = clock.start();
            clock.stop().saturating_sub(began)
        });
        // How many hops make a sample: one pass over a part of the chain tells their length.
        let trial = HOPS.1 / 8;
        let began = clock.start();
        // SAFETY: `first` is a line of the chain.
        let reached = unsafe { kernels::hops(first, trial) };
        let hop = clock.time(clock.stop().saturating_sub(began)).get() / HOPS.1 as f64;
        let hops = (SAMPLE.get() / hop.max(0.1)) as usize;
        Task::Chase {
            first: reached,
            eights: hops.clamp(HOPS.0, HOPS.1).div_ceil(8),
            clock,
            timer,
        }
    }

    fn timing(&self) -> Timing {
        match *self {
            Task::Sequential { .. } | Task::Scattered { .. } => Timing::None,
            Task::Chase { eights, clock, .. } => Timing::Hops {
                hops: eights * 8,
                clock,
            },
            Task::Single { clock, timer, .. } => Timing::Single { timer, clock },
        }
    }

    /// Repeats the loop until the stop flag is up; says how many timed samples were left out.
    fn repeat(self, worker: &Worker, region: &Region) -> u64 {
        let (kernel, base) = (worker.job.kernel, region.base());
        let (progress, stop) = (&*worker.progress, &*worker.stop);
        let mut random = Random::new(worker.job.seed);
        let mut data = Data::new(random.word());
        let mut recorder = Recorder::new(progress);
        let goes_on = || !stop.load(Ordering::Relaxed);
        match self {
            Task::Sequential { lines } => {
                let mut at = 0;
                while goes_on() {
                    let mut todo = CHUNK_LINES;
                    while todo > 0 {
                        let run = todo.min(lines - at);
                        // SAFETY: `at + run` is at most `lines`, all of them the region's.
                        unsafe { kernel.run(base.add(at * LINE), run, &mut data) };
                        todo -= run;
                        at = if at + run == lines { 0 } else { at + run };
                    }
                    progress.add(CHUNK_LINES);
                }
            }
            Task::Scattered { blocks, fenced } => {
                let times = (CHUNK_LINES / blocks.lines).max(1);
                while goes_on() {
                    // SAFETY: the blocks were cut from the region.
                    unsafe {
                        kernel.scatter(base, blocks, times, fenced, &mut random, &mut data);
                    }
                    progress.add(times * blocks.lines);
                }
            }
            Task::Chase {
                first,
                eights,
                clock,
                timer,
            } => {
                let (mut line, hops) = (first, eights * 8);
                while goes_on() {
                    let began = clock.start();
                    // SAFETY: `line` is a line of the chain.
                    line = unsafe { kernels::hops(line, eights) };
                    let time = less(clock.time(clock.stop().saturating_sub(began)), timer);
                    recorder.record(time, hops);
                }
            }
            Task::Single {
                lines,
                clock,
                timer,
            } => {
                while goes_on() {
                    let line = base.wrapping_add(random.below(lines) * LINE);
                    // SAFETY: the line is one of the region's. Reading it first brings the
                    // translation in, so that the access and no page walk is timed.
                    let ticks = unsafe {
                        line.cast::<u64>().read_volatile();
                        kernels::flush(line);
                        rest(clock);
                        let began = clock.start();
                        kernel.run_settled(line, 1, &mut data);
                        clock.stop().saturating_sub(began)
                    };
                    recorder.record(less(clock.time(ticks), timer), 1);
                }
            }
        }
        recorder.left_out
    }
}

/// Lets a flush's write-back get through.
fn rest(clock: Clock) {
    let began = clock.start();
    while clock.time(clock.start().saturating_sub(began)) < QUIET {
        std::hint::spin_loop();
    }
}

/// What a reading usually gives: the mean without the tenth at either end. A median would be one
/// of the clock's own steps, which are 10 ns on some machines.
fn typical(clock: Clock, mut reading: impl FnMut() -> u64) -> Nanos {
    let mut readings: Vec<u64> = (0..TIMER_READINGS).map(|_| reading()).collect();
    readings.sort_unstable();
    let tenth = TIMER_READINGS / 10;
    let middle = &readings[tenth..TIMER_READINGS - tenth];
    clock.time(middle.iter().sum()) / middle.len() as f64
}

/// A time without what reading the clock cost, and never negative.
fn less(time: Nanos, timer: Nanos) -> Nanos {
    (time - timer).max(Nanos(0.0))
}
