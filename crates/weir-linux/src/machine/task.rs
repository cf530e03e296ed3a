//! The loop of one thread: its instruction in its order of lines, until it is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_model::access::{Dataflow, Locality, Pattern, Timing};
use weir_model::machine::MachineError;
use weir_model::units::Nanos;

use super::assignment::{Job, Turn};
use super::pacer::Pacer;
use super::recorder::{LeftOut, Progress, Recorder};
use super::shared_line::SharedLine;
use super::timer::Timer;
use crate::clock::Clock;
use crate::dsa::queue::Copier;
use crate::memory::Region;
use crate::root::Root;
use weir_loops::kernels::rounds::{self, Arrays, Rounds};
use weir_loops::kernels::{self, Blocks, Data, Kernel, LINE, Random, chase};

/// Lines between two reads of the stop flag: 64 KiB, some microseconds of traffic.
const CHUNK_LINES: usize = 1024;
/// The duration of one sample of a chase, so that reading the clock is a small part of it.
const SAMPLE: Nanos = Nanos(2000.0);
/// Fewest and most hops in a sample.
const HOPS: (usize, usize) = (32, 4096);
/// Quiet time between a flush and the timed access: the flush's own write-back must be over.
const QUIET: Nanos = Nanos(1000.0);
/// Rounds of turns on a shared line in one sample.
const ROUNDS_OF_TURNS: usize = 16;

/// How a thread times, decided before the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Timed {
    /// Not at all.
    Nothing,
    /// A sample is the mean of some hops.
    Hops { hops: usize, timer: Timer },
    /// Each hop alone.
    Hop { timer: Timer },
    /// One flushed line at a time.
    Single { timer: Timer },
    /// Several flushed lines at once; a sample is their time divided by their number.
    Burst { lines: usize, timer: Timer },
    /// A sample is the mean of some hand-overs.
    SharedLine { handovers: usize, timer: Timer },
}

/// The loop of one pattern, ready to run.
pub(super) struct Task {
    kernel: Kernel,
    base: *mut u8,
    lines: usize,
    seed: u64,
    pacer: Pacer,
    work: Work,
}

enum Work {
    Sequential,
    Scattered {
        blocks: Blocks,
        fenced: bool,
    },
    Rounds {
        rounds: Rounds,
        arrays: Arrays,
        /// Rounds that the arrays hold.
        count: usize,
        /// Rounds in a block drawn at random and whether a fence ends it; `None` for all in order.
        block: Option<(usize, bool)>,
    },
    Hops {
        first: *mut u8,
        eights: usize,
        timer: Timer,
    },
    Hop {
        first: *mut u8,
        timer: Timer,
    },
    Single {
        timer: Timer,
    },
    Burst {
        lines: usize,
        timer: Timer,
    },
    SharedLine {
        line: Arc<SharedLine>,
        turn: Turn,
        rounds: usize,
        timer: Timer,
    },
    Offloaded {
        copier: Copier,
        from: *const u8,
        /// Blocks that the arrays hold.
        count: usize,
    },
}

/// The result of a loop.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Samples that were left out.
    pub left_out: LeftOut,
    /// Why it ended early, and whether something may still write to its memory.
    pub failure: Option<(String, bool)>,
}

impl Task {
    /// The task of a job on memory of its own: first the memory of its instruction, then the memory that is
    /// loaded together with it.
    ///
    /// # Errors
    /// The accelerator is not available.
    pub fn of(job: &Job, regions: &[Region], root: &Root) -> Result<Self, MachineError> {
        let lacks = || MachineError::System {
            what: format!("the loop of the thread on CPU {}", job.cpu),
            cause: "it has fewer arrays than it needs".into(),
        };
        let region = regions.first().ok_or_else(lacks)?;
        let wanted = job.memory.first().ok_or_else(lacks)?.bytes;
        // Not more than was requested, though the region is rounded up to whole pages.
        let lines = (wanted.min(region.bytes()).get() as usize / LINE).max(1);
        let work = match (job.rounds, job.pattern) {
            _ if job.offload.is_some() => {
                Self::offloaded(job, regions, lines, root)?.ok_or_else(lacks)?
            }
            (Some(rounds), pattern) => {
                Self::rounds(rounds, job, regions, lines, pattern).ok_or_else(lacks)?
            }
            (
                None,
                Pattern::Sequential
                | Pattern::SharedLine
                | Pattern::Descriptors { .. }
                | Pattern::Requests { .. },
            ) => Work::Sequential,
            (None, Pattern::RandomLine) => Work::Scattered {
                blocks: Blocks {
                    lines: 1,
                    count: lines,
                },
                fenced: false,
            },
            (None, Pattern::RandomBlock { block }) => {
                let block = (block.get() as usize / LINE).clamp(1, lines);
                Work::Scattered {
                    blocks: Blocks {
                        lines: block,
                        count: lines / block,
                    },
                    fenced: job.kernel.op.is_posted(),
                }
            }
            (None, Pattern::Chase { locality }) => Self::chase(job, region, lines, locality),
            (None, Pattern::FlushedLine) => {
                let clock = Clock::best();
                let mut data = Data::new(job.seed);
                let timer = Timer::of(clock, || {
                    let began = clock.start();
                    // SAFETY: no line is touched.
                    unsafe { job.kernel.run_settled(region.base(), 0, &mut data) };
                    clock.stop().saturating_sub(began)
                });
                Work::Single { timer }
            }
            (None, Pattern::FlushedBurst { lines: burst }) => {
                let clock = Clock::best();
                let mut data = Data::new(job.seed);
                let timer = Timer::of(clock, || {
                    let began = clock.start();
                    // SAFETY: no line is touched.
                    unsafe { job.kernel.burst_settled(&[], &mut data) };
                    clock.stop().saturating_sub(began)
                });
                Work::Burst {
                    lines: (burst as usize).clamp(1, lines),
                    timer,
                }
            }
        };
        Ok(Self::new(job, region, lines, work))
    }

    /// The task of a job that shares its line.
    pub fn sharing(job: &Job, line: Arc<SharedLine>, turn: Turn) -> Self {
        let work = Work::SharedLine {
            line: Arc::clone(&line),
            turn,
            rounds: match job.timing {
                Timing::Averaged => ROUNDS_OF_TURNS,
                Timing::Each => 1,
            },
            timer: Timer::alone(Clock::best()),
        };
        Self::new(job, line.region(), 1, work)
    }

    fn new(job: &Job, region: &Region, lines: usize, work: Work) -> Self {
        Self {
            kernel: job.kernel,
            base: region.base(),
            lines,
            seed: job.seed,
            pacer: Pacer::new(job.pause, job.arrivals, Arc::clone(&job.gate)),
            work,
        }
    }

    fn rounds(
        rounds: Rounds,
        job: &Job,
        regions: &[Region],
        lines: usize,
        pattern: Pattern,
    ) -> Option<Work> {
        let [touched, loaded] = regions else {
            return None;
        };
        let count = (lines / rounds.shape.per).max(1);
        let loaded_lines = count * rounds.shape.loads;
        if rounds.shape.dataflow != Dataflow::Apart {
            // SAFETY: the region holds that many lines, and this thread alone uses it.
            unsafe { rounds::make_numbers(loaded.base(), loaded_lines) };
        }
        let block = match pattern {
            Pattern::RandomBlock { block } => {
                let block = (block.get() as usize / LINE).div_ceil(rounds.shape.per);
                Some((block.clamp(1, count), job.kernel.op.is_posted()))
            }
            Pattern::RandomLine => Some((1, false)),
            _ => None,
        };
        Some(Work::Rounds {
            rounds,
            arrays: Arrays {
                loaded: loaded.base(),
                stride: count * LINE,
                touched: touched.base(),
            },
            count,
            block,
        })
    }

    fn offloaded(
        job: &Job,
        regions: &[Region],
        lines: usize,
        root: &Root,
    ) -> Result<Option<Work>, MachineError> {
        let (Some((queue, style)), [_, loaded]) = (&job.offload, regions) else {
            return Ok(None);
        };
        Ok(Some(Work::Offloaded {
            copier: Copier::open(root, queue, *style)?,
            from: loaded.base(),
            count: (lines * LINE / style.bytes as usize).max(1),
        }))
    }

    fn chase(job: &Job, region: &Region, lines: usize, locality: Locality) -> Work {
        let clock = Clock::best();
        let order = chase::order(lines, locality, &mut Random::new(job.seed));
        // SAFETY: the order numbers lines of the region, which is this thread's own.
        let first = unsafe { chase::link(region.base(), &order) };
        drop(order);
        if job.timing == Timing::Each {
            return Work::Hop {
                first,
                timer: Timer::around_a_hop(clock),
            };
        }
        let timer = Timer::alone(clock);
        // The number of hops in a sample: one pass over a part of the chain shows their length.
        let trial = HOPS.1 / 8;
        let began = clock.start();
        // SAFETY: `first` is a line of the chain.
        let reached = unsafe { kernels::hops(first, trial) };
        let hop = clock.time(clock.stop().saturating_sub(began)).get() / HOPS.1 as f64;
        let hops = (SAMPLE.get() / hop.max(0.1)) as usize;
        Work::Hops {
            first: reached,
            eights: hops.clamp(HOPS.0, HOPS.1).div_ceil(8),
            timer,
        }
    }

    /// The kind of its samples.
    pub fn timed(&self) -> Timed {
        match &self.work {
            Work::Sequential
            | Work::Scattered { .. }
            | Work::Rounds { .. }
            | Work::Offloaded { .. } => Timed::Nothing,
            &Work::Hops { eights, timer, .. } => Timed::Hops {
                hops: eights * 8,
                timer,
            },
            &Work::Hop { timer, .. } => Timed::Hop { timer },
            &Work::Single { timer } => Timed::Single { timer },
            &Work::Burst { lines, timer } => Timed::Burst { lines, timer },
            &Work::SharedLine {
                turn,
                rounds,
                timer,
                ..
            } => Timed::SharedLine {
                handovers: rounds * turn.of,
                timer,
            },
        }
    }

    /// Repeats the loop until the stop flag is set; returns its result.
    pub fn repeat(self, progress: &Progress, stop: &AtomicBool) -> Ended {
        let Self {
            kernel,
            base,
            lines,
            seed,
            mut pacer,
            work,
        } = self;
        let mut random = Random::new(seed);
        let mut data = Data::new(random.word());
        let goes_on = || !stop.load(Ordering::Relaxed);
        let mut recorder = None;
        let mut failure = None;
        match work {
            Work::Sequential => {
                let mut at = 0;
                let chunk = pacer.lines(CHUNK_LINES);
                while goes_on() {
                    let mut todo = chunk;
                    while todo > 0 {
                        let run = todo.min(lines - at);
                        // SAFETY: `at + run` is at most `lines`, all of them the region's.
                        unsafe { kernel.run(base.add(at * LINE), run, &mut data) };
                        todo -= run;
                        at = if at + run == lines { 0 } else { at + run };
                    }
                    progress.add(chunk);
                    pacer.rest(chunk, stop);
                }
            }
            Work::Scattered { blocks, fenced } => {
                let times = (pacer.lines(CHUNK_LINES) / blocks.lines).max(1);
                while goes_on() {
                    // SAFETY: the blocks were cut from the region.
                    unsafe {
                        kernel.scatter(base, blocks, times, fenced, &mut random, &mut data);
                    }
                    progress.add(times * blocks.lines);
                    pacer.rest(times * blocks.lines, stop);
                }
            }
            Work::Rounds {
                rounds,
                arrays,
                count,
                block: None,
            } => {
                let in_round = rounds.shape.lines();
                let chunk = (pacer.lines(CHUNK_LINES) / in_round).max(1);
                let mut at = 0;
                while goes_on() {
                    let run = chunk.min(count - at);
                    // SAFETY: `at + run` is at most `count`, and the arrays hold that many.
                    unsafe { rounds.run(arrays, at, run, &mut data) };
                    at = if at + run == count { 0 } else { at + run };
                    progress.add(run * in_round);
                    pacer.rest(run * in_round, stop);
                }
            }
            Work::Rounds {
                rounds,
                arrays,
                count,
                block: Some((block, fenced)),
            } => {
                let in_block = rounds.shape.lines() * block;
                let times = (pacer.lines(CHUNK_LINES) / in_block).max(1);
                while goes_on() {
                    for _ in 0..times {
                        let from = random.below(count / block) * block;
                        // SAFETY: `from + block` is at most `count`, and the arrays hold that many.
                        unsafe { rounds.run(arrays, from, block, &mut data) };
                        if fenced {
                            kernels::store_fence();
                        }
                    }
                    progress.add(times * in_block);
                    pacer.rest(times * in_block, stop);
                }
            }
            Work::Hops {
                first,
                eights,
                timer,
            } => {
                let (mut line, hops, clock) = (first, eights * 8, timer.clock);
                let recorder = recorder.insert(Recorder::new(progress, timer));
                while goes_on() {
                    let began = clock.start();
                    // SAFETY: `line` is a line of the chain.
                    line = unsafe { kernels::hops(line, eights) };
                    recorder.record(began, clock.stop(), hops);
                    pacer.rest(hops, stop);
                }
            }
            Work::Hop { first, timer } => {
                let (mut line, clock) = (first, timer.clock);
                let recorder = recorder.insert(Recorder::new(progress, timer));
                while goes_on() {
                    // The first hops after samples were recorded may be slowed by the recording. SAFETY:
                    // `line` is a line of the chain, here and below.
                    line = unsafe { kernels::hops(line, 1) };
                    recorder.record_each(|| {
                        pacer.rest(1, stop);
                        let began = clock.start();
                        // SAFETY: as above.
                        line = unsafe { kernels::hop(line) };
                        (began, clock.stop())
                    });
                }
            }
            Work::Single { timer } => {
                let clock = timer.clock;
                let recorder = recorder.insert(Recorder::new(progress, timer));
                while goes_on() {
                    let line = base.wrapping_add(random.below(lines) * LINE);
                    // SAFETY: the line is one of the region's. Reading it first brings the translation in, so
                    // that the access is timed without a page walk.
                    let began = unsafe {
                        line.cast::<u64>().read_volatile();
                        kernels::flush(line);
                        rest(clock);
                        let began = clock.start();
                        kernel.run_settled(line, 1, &mut data);
                        began
                    };
                    recorder.record(began, clock.stop(), 1);
                    pacer.rest(1, stop);
                }
            }
            Work::Burst {
                lines: burst,
                timer,
            } => {
                let clock = timer.clock;
                let recorder = recorder.insert(Recorder::new(progress, timer));
                let mut chosen = vec![base; burst];
                // Each thread starts in a part of its own, so that no two access the same line.
                let part = lines / burst;
                while goes_on() {
                    for (n, line) in chosen.iter_mut().enumerate() {
                        *line = base.wrapping_add((n * part + random.below(part)) * LINE);
                        // SAFETY: the line is one of the region's, here and below. It is read for
                        // its translation.
                        unsafe {
                            line.cast::<u64>().read_volatile();
                            kernels::flush(*line);
                        }
                    }
                    rest(clock);
                    let began = clock.start();
                    // SAFETY: as above.
                    unsafe { kernel.burst_settled(&chosen, &mut data) };
                    recorder.record(began, clock.stop(), burst);
                    pacer.rest(burst, stop);
                }
            }
            Work::SharedLine {
                line,
                turn,
                rounds,
                timer,
            } => {
                let recorder = recorder.insert(Recorder::new(progress, timer));
                line.take_turns(turn, rounds, timer.clock, stop, recorder);
            }
            Work::Offloaded {
                copier,
                from,
                count,
            } => {
                // A line that is read and written counts twice.
                let done = |bytes: u64| progress.add(2 * bytes as usize / LINE);
                // SAFETY: both arrays hold `count` blocks, were filled, and are this thread's own.
                failure = unsafe { copier.copy(from, base, count, stop, done) }.err();
            }
        }
        Ended {
            left_out: recorder.map(|r| r.left_out).unwrap_or_default(),
            failure,
        }
    }
}

/// Waits for the write-back of a flush.
fn rest(clock: Clock) {
    let began = clock.start();
    while clock.time(clock.start().saturating_sub(began)) < QUIET {
        std::hint::spin_loop();
    }
}
