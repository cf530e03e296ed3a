//! STREAM on the arrays of a pool, by threads that each write their own blocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;

use weir_loops::kernels::durable::{SCALAR, block as write_block};
use weir_model::access::Dataflow;
use weir_model::durable::Durable;
use weir_model::machine::MachineError;
use weir_model::units::LINE_BYTES;

use super::Pool;
use super::layout::{LOGS, Log, READY};
use crate::pin::Pinned;

/// A kernel, and the arrays that it writes and reads: a, b, c are 0, 1, 2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub kernel: Dataflow,
    pub to: u64,
    pub from: [u64; 2],
}

/// STREAM's order.
pub(super) const STEPS: [Step; 4] = [
    Step {
        kernel: Dataflow::Copy,
        to: 2,
        from: [0, 0],
    },
    Step {
        kernel: Dataflow::Scale,
        to: 1,
        from: [2, 2],
    },
    Step {
        kernel: Dataflow::Add,
        to: 2,
        from: [0, 1],
    },
    Step {
        kernel: Dataflow::Triad,
        to: 0,
        from: [1, 2],
    },
];

/// How many kernels there are.
pub const KERNELS: usize = STEPS.len();

/// What the arrays have at first: STREAM sets them to 1, 2 and 0, and then doubles the first.
pub(super) const FIRST: [f64; 3] = [2.0, 2.0, 0.0];

/// How often a run may repeat the kernels: the values grow by 15 each time.
pub const MOST_TIMES: u32 = 200;

/// One run of the kernels.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The processors, one thread on each.
    pub cpus: &'a [u32],
    /// What is done for each block.
    pub durable: Durable,
    /// How often each kernel runs, 2 to [`MOST_TIMES`].
    pub times: u32,
}

/// How long a kernel took each time, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// The kernel.
    pub kernel: Dataflow,
    /// Each time, in order.
    pub seconds: Vec<f64>,
}

impl Pool {
    /// Gives the arrays their first values, runs the kernels, and checks every element.
    ///
    /// # Errors
    /// A thread cannot be pinned, an element is not what STREAM makes of it, or `stop` said so.
    pub fn stream(
        &self,
        run: &Run<'_>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Timed>, MachineError> {
        let threads = run.cpus.len();
        if threads == 0 || threads as u64 > LOGS || !(2..=MOST_TIMES).contains(&run.times) {
            return Err(MachineError::Request(format!(
                "{threads} threads and {} times: a pool takes 1 to {LOGS} threads, and 2 to {MOST_TIMES} times",
                run.times
            )));
        }
        // From here until all is written the values mean nothing.
        let mut header = self.header();
        header.ready = 0;
        self.put_header(header);
        let together = Together {
            barrier: Barrier::new(threads),
            stopped: AtomicBool::new(false),
            seconds: Mutex::new(vec![Vec::new(); STEPS.len()]),
            failed: Mutex::new(None),
        };
        std::thread::scope(|scope| {
            for (thread, &cpu) in run.cpus.iter().enumerate() {
                let together = &together;
                scope.spawn(move || self.work(thread, cpu, run, together, stop));
            }
        });
        let failed = together.failed.into_inner();
        if let Some(error) = failed.unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        self.check(run.times)?;
        let seconds = together.seconds.into_inner();
        let seconds = seconds.unwrap_or_else(PoisonError::into_inner);
        let timed = STEPS.iter().zip(seconds);
        Ok(timed
            .map(|(step, seconds)| Timed {
                kernel: step.kernel,
                seconds,
            })
            .collect())
    }

    fn work(
        &self,
        thread: usize,
        cpu: u32,
        run: &Run<'_>,
        together: &Together,
        stop: &(dyn Fn() -> bool + Sync),
    ) {
        let pinned = Pinned::to(cpu);
        if let Err(error) = &pinned {
            together.fail(error.clone());
        }
        let blocks = self.layout.blocks();
        let part = |n: usize| (blocks as u128 * n as u128 / run.cpus.len() as u128) as u64;
        let own = part(thread)..part(thread + 1);
        for block in own.clone() {
            self.begin(block, run.durable);
        }
        if together.all_arrived(thread, stop) {
            return;
        }
        if thread == 0 {
            let mut header = self.header();
            (header.ready, header.durable) = (READY, run.durable as u64);
            self.put_header(header);
        }
        for _ in 0..run.times {
            for (at, step) in STEPS.iter().enumerate() {
                if together.all_arrived(thread, stop) {
                    return;
                }
                let began = Instant::now();
                for block in own.clone() {
                    self.write(*step, block, run.durable, thread as u64);
                }
                together.barrier.wait();
                if thread == 0 {
                    let took = began.elapsed().as_secs_f64();
                    let mut seconds =
                        (together.seconds.lock()).unwrap_or_else(PoisonError::into_inner);
                    seconds[at].push(took);
                }
            }
        }
    }

    /// Gives a block of each array its first values.
    fn begin(&self, block: u64, durable: Durable) {
        let (first, count) = self.layout.block(block);
        for (array, value) in (0..).zip(FIRST) {
            let to = self.array(array).wrapping_add(first as usize);
            for i in 0..count as usize {
                // SAFETY: the block is inside the array, and this thread's own.
                unsafe { *to.add(i) = value };
            }
            if durable != Durable::None {
                // SAFETY: as above.
                unsafe { self.write_back.persist(to.cast(), count as usize * 8) };
            }
        }
    }

    /// Writes a block, and makes it durable.
    fn write(&self, step: Step, block: u64, durable: Durable, thread: u64) {
        let (first, count) = self.layout.block(block);
        let count = count as usize;
        let at = |array: u64| self.array(array).wrapping_add(first as usize);
        let (to, sources) = (at(step.to), step.from.map(at));
        if durable == Durable::Transaction {
            self.keep_old(thread, step.to, block);
        }
        // SAFETY: the blocks are inside their arrays; each block is written by one thread, and no array is read
        // and written by one kernel.
        unsafe {
            write_block(step.kernel, to, sources[0], sources[1], count);
            if durable != Durable::None {
                self.write_back.persist(to.cast(), count * 8);
            }
        }
        if durable == Durable::Transaction {
            self.forget_old(thread);
        }
    }

    /// Copies a block into the thread's log: the bytes first, and once they are durable the word that says so.
    pub(super) fn keep_old(&self, thread: u64, array: u64, block: u64) {
        let (first, count) = self.layout.block(block);
        let (log, old) = self.log(thread);
        let from = self.array(array).wrapping_add(first as usize);
        let bytes = LINE_BYTES as usize + count as usize * 8;
        // SAFETY: a log holds a line and a block, and is this thread's own, as the block is.
        unsafe {
            log.write_volatile(Log {
                valid: 0,
                array,
                block,
            });
            from.copy_to_nonoverlapping(old, count as usize);
            self.write_back.persist(log.cast(), bytes);
            (&raw mut (*log).valid).write_volatile(1);
            self.write_back.persist(log.cast(), size_of::<Log>());
        }
    }

    /// The transaction has ended: the new bytes stay.
    pub(super) fn forget_old(&self, thread: u64) {
        let (log, _) = self.log(thread);
        // SAFETY: the log is this thread's own.
        unsafe {
            (&raw mut (*log).valid).write_volatile(0);
            self.write_back.persist(log.cast(), size_of::<Log>());
        }
    }

    /// STREAM's check of the results.
    fn check(&self, times: u32) -> Result<(), MachineError> {
        let mut expected = FIRST;
        for step in (0..times).flat_map(|_| STEPS) {
            expected = after(expected, step);
        }
        for (array, (name, value)) in (0..).zip(["a", "b", "c"].into_iter().zip(expected)) {
            let is_wrong = |found: &f64| ((found - value) / value).abs() > 1e-13 || found.is_nan();
            let elements = self.elements(array);
            if let Some(at) = elements.iter().position(is_wrong) {
                return Err(MachineError::System {
                    what: "the values are wrong after STREAM".into(),
                    cause: format!("{name}[{at}] is {}, and must be {value}", elements[at]),
                });
            }
        }
        Ok(())
    }
}

/// The values of the arrays after a kernel.
pub(super) fn after(mut values: [f64; 3], step: Step) -> [f64; 3] {
    let [first, second] = step.from.map(|array| values[array as usize]);
    values[step.to as usize] = match step.kernel {
        Dataflow::Scale => SCALAR * first,
        Dataflow::Add => first + second,
        Dataflow::Triad => first + SCALAR * second,
        Dataflow::Copy | Dataflow::Apart => first,
    };
    values
}

/// What the threads of a run share.
struct Together {
    barrier: Barrier,
    stopped: AtomicBool,
    seconds: Mutex<Vec<Vec<f64>>>,
    failed: Mutex<Option<MachineError>>,
}

impl Together {
    fn fail(&self, error: MachineError) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert(error);
    }

    /// Waits for all threads; whether they end, on which all agree.
    fn all_arrived(&self, thread: usize, stop: &(dyn Fn() -> bool + Sync)) -> bool {
        if thread == 0 && stop() {
            self.fail(MachineError::Interrupted);
        }
        // A thread that fails does so before it arrives.
        if self.barrier.wait().is_leader() {
            let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            self.stopped.store(failed.is_some(), Ordering::SeqCst);
        }
        self.barrier.wait();
        self.stopped.load(Ordering::SeqCst)
    }
}
