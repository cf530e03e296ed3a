//! What is measured: one line of the table for each way to use what was read or written.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::IO;
use crate::variants::{FILES, Memory, Outcome, Variant};

const PAGE: usize = 4096;

/// What is done with each 2 MB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Read, and not looked at.
    Read,
    /// Read, and a byte of each page loaded.
    ReadTouch,
    /// Read, and all bytes summed.
    ReadSum,
    /// Read, and a byte of each page stored.
    ReadStore,
    /// The same, where the store knows beforehand.
    ReadModify,
    /// Nothing of it in the cache; a byte of each page loaded.
    ReadCold,
    /// Written as it was left by the write before.
    Write,
    /// All bytes stored into fresh frames, and written.
    Fill,
    /// All bytes stored into the buffer as the last write left it, and written.
    Refill,
    /// As `Fill`, while dirty pages are flushed.
    FillFlushed,
    /// A file of this many bytes read, and written to an archive.
    Copy(usize),
    /// Bytes of memory copied by the program itself, for the share of copies.
    Memcpy,
}

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    pub usage: Use,
    pub threads: usize,
}

/// What one round of a line took.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Microseconds of a read or write, as each of the threads sees it.
    pub micros: f64,
    /// Microseconds of processor time of the thread; that of flushes and loads behind it is not in it.
    pub cpu: f64,
    /// Minor faults for each.
    pub faults: f64,
    /// Bytes that system calls copied for each.
    pub called: f64,
}

/// One round of a line, for one variant.
pub struct Sample {
    pub round: usize,
    pub line: Line,
    pub variant: String,
    pub figures: Figures,
}

impl Line {
    pub fn all(threads: &[usize]) -> Vec<Self> {
        let one = |usage| Self { usage, threads: 1 };
        let singles = [
            Use::Memcpy,
            Use::Read,
            Use::ReadTouch,
            Use::ReadSum,
            Use::ReadStore,
            Use::ReadModify,
        ];
        let writes = [
            Use::Write,
            Use::Fill,
            Use::Refill,
            Use::FillFlushed,
            Use::ReadCold,
        ];
        let copies = [4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20].map(Use::Copy);
        let mut lines: Vec<Self> = singles
            .into_iter()
            .chain(writes)
            .chain(copies)
            .map(one)
            .collect();
        for usage in [Use::Read, Use::ReadSum, Use::Write, Use::Fill] {
            lines.extend(
                threads
                    .iter()
                    .filter(|threads| **threads > 1)
                    .map(|&threads| Self { usage, threads }),
            );
        }
        lines
    }

    /// Its name in the table.
    pub fn name(&self) -> String {
        match self.usage {
            Use::Read => "read, not touched".to_owned(),
            Use::ReadTouch => "read, each page touched".to_owned(),
            Use::ReadSum => "read, all bytes summed".to_owned(),
            Use::ReadStore => "read, a store in each page".to_owned(),
            Use::ReadModify => "the same, said before".to_owned(),
            Use::ReadCold => "cold read, pages touched".to_owned(),
            Use::Write => "write, not stored into".to_owned(),
            Use::Fill => "fill fresh pages, write".to_owned(),
            Use::Refill => "fill written pages, write".to_owned(),
            Use::FillFlushed => "the same, while flushing".to_owned(),
            Use::Copy(bytes) if bytes < 1 << 20 => format!("copy a file of {} KB", bytes >> 10),
            Use::Copy(bytes) => format!("copy a file of {} MB", bytes >> 20),
            Use::Memcpy => "memcpy".to_owned(),
        }
    }

    /// One round; `None` where the variant has no such thing.
    pub fn measure(&self, variant: &Variant, ops: usize) -> Outcome<Option<Figures>> {
        if matches!(self.usage, Use::ReadCold | Use::FillFlushed) && !variant.cached() {
            return Ok(None);
        }
        if self.usage == Use::Memcpy && !matches!(variant, Variant::Calls { .. }) {
            return Ok(None);
        }
        if self.usage == Use::ReadCold {
            variant.drop_caches()?;
        }
        let figures = if self.usage == Use::FillFlushed {
            variant.while_flushing(|| self.run(variant, ops))?
        } else {
            self.run(variant, ops)?
        };
        if matches!(
            self.usage,
            Use::Write | Use::Fill | Use::Refill | Use::FillFlushed | Use::Copy(_)
        ) {
            variant.settle()?;
        }
        if self.usage == Use::ReadCold {
            // What was cold is warm for the next line.
            let mut memory = variant.memory()?;
            for block in 0..FILES * variant.blocks() {
                let (file, at) = (block % FILES, (block / FILES * IO) as u64);
                variant.read(file, at, IO, &mut memory)?;
                touch(memory.bytes());
            }
        }
        Ok(Some(figures))
    }

    fn run(&self, variant: &Variant, ops: usize) -> Outcome<Figures> {
        let ops = match self.usage {
            Use::Copy(bytes) => (ops * IO / bytes).clamp(1, 8 * ops),
            _ => ops,
        };
        let start = Barrier::new(self.threads);
        let work = |thread: usize| -> Outcome<(Instant, Instant, Counters)> {
            let prepared = self.prepare(variant, thread);
            // Also where it failed, or the others would wait.
            start.wait();
            let mut memory = prepared?;
            let mut random = 0x2545_f491_4f6c_dd1d_u64.wrapping_mul(thread as u64 + 1);
            let before = Counters::of_this_thread();
            let began = Instant::now();
            for nth in 0..ops {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let block = (random >> 33) as usize % variant.blocks();
                let (thread, block) = match self.usage {
                    // Each block once, or it is warm.
                    Use::ReadCold => (nth % FILES, nth / FILES % variant.blocks()),
                    _ => (thread, block),
                };
                self.once(variant, thread, block, &mut memory)?;
            }
            let ended = Instant::now();
            Ok((began, ended, Counters::of_this_thread().since(before)))
        };
        let work = &work;
        let threads = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|thread| scope.spawn(move || work(thread)))
                .collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| "a thread panicked")?);
            joined.collect::<Outcome<Vec<_>>>()
        })?;
        let began = threads.iter().map(|(began, ..)| *began).min();
        let ended = threads.iter().map(|(_, ended, _)| *ended).max();
        let wall = began
            .zip(ended)
            .map_or(Duration::ZERO, |(began, ended)| ended - began);
        let all = (ops * self.threads) as f64;
        let sum = |counter: fn(&Counters) -> f64| {
            threads
                .iter()
                .map(|(.., counters)| counter(counters))
                .sum::<f64>()
                / all
        };
        Ok(Figures {
            micros: wall.as_secs_f64() * 1e6 / ops as f64,
            cpu: sum(|counters| counters.cpu_micros),
            faults: sum(|counters| counters.faults as f64),
            called: sum(|counters| counters.called as f64),
        })
    }

    /// Memory as the measured reads or writes find it.
    fn prepare(&self, variant: &Variant, thread: usize) -> Outcome<Memory> {
        let flushed = self.usage == Use::FillFlushed;
        let mut memory = if flushed {
            variant.flushing_memory()?
        } else {
            variant.memory()?
        };
        // What is written lies in frames of the cache, as the write before left it.
        if matches!(self.usage, Use::Write | Use::Refill) {
            memory.renew()?;
            memory.bytes_mut().fill(1);
        }
        // The first one maps and allocates what later ones find.
        if self.usage != Use::ReadCold {
            self.once(variant, thread, 0, &mut memory)?;
        }
        Ok(memory)
    }

    fn once(
        &self,
        variant: &Variant,
        file: usize,
        block: usize,
        memory: &mut Memory,
    ) -> Outcome<()> {
        let at = (block * IO) as u64;
        match self.usage {
            Use::Read => variant.read(file, at, IO, memory)?,
            Use::ReadTouch | Use::ReadCold => {
                variant.read(file, at, IO, memory)?;
                touch(memory.bytes());
            }
            Use::ReadSum => {
                variant.read(file, at, IO, memory)?;
                black_box(sum(memory.bytes()));
            }
            Use::ReadStore | Use::ReadModify => {
                if self.usage == Use::ReadModify {
                    variant.read_to_modify(file, at, IO, memory)?;
                } else {
                    variant.read(file, at, IO, memory)?;
                }
                memory
                    .bytes_mut()
                    .iter_mut()
                    .step_by(PAGE)
                    .for_each(|byte| *byte = byte.wrapping_add(1));
            }
            Use::Write => variant.write(file, at, IO, memory, false)?,
            Use::Fill | Use::FillFlushed => {
                memory.renew()?;
                memory.bytes_mut().fill(block as u8);
                variant.write(file, at, IO, memory, self.usage == Use::FillFlushed)?;
            }
            Use::Refill => {
                memory.bytes_mut().fill(block as u8);
                variant.write(file, at, IO, memory, false)?;
            }
            Use::Copy(bytes) => {
                // A header of a page, so that data stays aligned, as a port of tar would write it.
                for from in (0..bytes).step_by(IO) {
                    let len = IO.min(bytes - from);
                    let (source, at) = (
                        from / IO / variant.blocks(),
                        from / IO % variant.blocks() * IO,
                    );
                    variant.read((file + source) % FILES, at as u64, len, memory)?;
                    variant.write(FILES, (PAGE + from) as u64, len, memory, false)?;
                }
            }
            Use::Memcpy => {
                // From memory of its own; the cache of a file is as cold or as warm.
                let other = SOURCE.get_or_init(|| vec![1; 16 * IO]);
                memory
                    .bytes_mut()
                    .copy_from_slice(&other[block % 16 * IO..][..IO]);
                black_box(memory.bytes());
            }
        }
        Ok(())
    }
}

static SOURCE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();

fn touch(bytes: &[u8]) {
    bytes.iter().step_by(PAGE).for_each(|byte| {
        black_box(*byte);
    });
}

fn sum(bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    bytes.chunks_exact(8).map(word).fold(0, u64::wrapping_add)
}

/// What the kernel counts of a thread.
#[derive(Debug, Clone, Copy)]
struct Counters {
    cpu_micros: f64,
    /// Minor faults.
    faults: u64,
    /// Bytes that system calls read and wrote.
    called: u64,
}

impl Counters {
    fn of_this_thread() -> Self {
        // The times of getrusage(2) are counted in ticks, those of the clock are exact.
        // SAFETY: plain structures that the calls fill.
        let (usage, time) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            let mut time: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
            (usage, time)
        };
        let io = std::fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
        let field = |name| {
            let mut found = io.lines().filter_map(|line: &str| line.strip_prefix(name));
            found
                .next()
                .and_then(|value| value.trim().parse::<u64>().ok())
                .unwrap_or(0)
        };
        Self {
            cpu_micros: time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3,
            faults: usage.ru_minflt as u64,
            called: field("rchar:") + field("wchar:"),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu_micros: self.cpu_micros - before.cpu_micros,
            faults: self.faults - before.faults,
            called: self.called - before.called,
        }
    }
}
