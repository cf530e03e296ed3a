//! Sampled accesses: which process accessed which memory, as the hardware records it several times a second
//! (PEBS, Intel SDM volume 3, chapter "Performance monitoring"; IBS, AMD PPR).
//!
//! [`source()`] finds the event, and a [`Sampler`] opens it on every processor. The kernel writes into a ring
//! for each of them, which is read once a window; a full ring loses the newest samples.

mod ring;
mod source;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_model::capability::Unavailable;

use super::attributes::Attributes;
use super::event::{Open, Target};
use super::refusal;
use crate::memory::base_page;
use crate::root::Root;

pub use ring::Sample;
pub use source::{Source, source};

/// Pages of a ring after its first page; a power of two, as the kernel requires.
const PAGES: usize = 8;
/// Where the first page says how far the kernel has written, and how far this program has read (`struct
/// perf_event_mmap_page`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Samples of several processors or threads.
#[derive(Debug)]
pub struct Sampler {
    rings: Vec<Ring>,
    /// Other events that must be open at the same time.
    _leaders: Vec<Open>,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Opens a source on each target.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open(root: &Root, source: &Source, targets: &[Target]) -> Result<Self, Unavailable> {
        let refused = |error: io::Error| refusal::of_event(root, &source.unit, &error);
        let (mut rings, mut leaders) = (Vec::new(), Vec::new());
        for &target in targets {
            let leader = match source.auxiliary {
                Some(encoded) => {
                    let scope = super::event::Scope::All;
                    Some(Open::one(encoded, target, None, scope).map_err(refused)?)
                }
                None => None,
            };
            let open = open(source, target, leader.as_ref()).map_err(refused)?;
            rings.push(Ring::of(open.into()).map_err(refused)?);
            leaders.extend(leader);
        }
        Ok(Self {
            rings,
            _leaders: leaders,
            buffer: Vec::new(),
        })
    }

    /// Passes every sample since the last call to `each`, and returns how many were lost.
    pub fn drain(&mut self, mut each: impl FnMut(Sample)) -> u64 {
        let mut lost = 0_u64;
        for ring in &self.rings {
            ring.copy(&mut self.buffer);
            lost = lost.saturating_add(ring::read(&self.buffer, &mut each));
        }
        lost
    }
}

/// Opens an event whose samples are recorded, in every mode.
fn open(source: &Source, target: Target, leader: Option<&Open>) -> io::Result<Open> {
    let Source {
        encoded,
        every,
        precise,
        ..
    } = *source;
    let attributes = Attributes::sampling(encoded, every, ring::WANTED, precise);
    let pid_and_cpu = match target {
        Target::ThisThread | Target::Children => (0, -1),
        Target::Task(pid) => (i64::from(pid), -1),
        Target::Cpu(cpu) => (-1, i64::from(cpu)),
    };
    Open::with(&attributes, pid_and_cpu, leader)
}

/// The memory that the kernel writes samples into.
#[derive(Debug)]
struct Ring {
    base: NonNull<u8>,
    page: usize,
    _file: File,
}

// SAFETY: the mapping belongs to this value alone, and the kernel does not mind which thread reads it.
unsafe impl Send for Ring {}

impl Ring {
    fn of(file: File) -> io::Result<Self> {
        let page = base_page();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing else.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (1 + PAGES) * page,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            page,
            _file: file,
        })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        let word = self.base.as_ptr().wrapping_add(offset).cast();
        // SAFETY: an aligned word of the mapping's first page, which the kernel and this program only touch
        // as a whole, and which lives as long as this value.
        unsafe { AtomicU64::from_ptr(word) }
    }

    /// Reads everything that was written since the last call.
    fn copy(&self, to: &mut Vec<u8>) {
        to.clear();
        let length = (PAGES * self.page) as u64;
        // Data written before the head is visible after the head was read.
        let head = self.word(HEAD).load(Ordering::Acquire);
        let tail = self.word(TAIL).load(Ordering::Relaxed);
        let count = head.wrapping_sub(tail).min(length);
        let mut at = tail;
        while at != tail.wrapping_add(count) {
            let offset = at % length;
            let run = (length - offset).min(tail.wrapping_add(count).wrapping_sub(at));
            let from = self.base.as_ptr().wrapping_add(self.page + offset as usize);
            // SAFETY: `run` bytes of the ring from `from` on do not pass its end, and the kernel leaves what
            // lies between tail and head alone until the tail has moved.
            to.extend_from_slice(unsafe { std::slice::from_raw_parts(from, run as usize) });
            at = at.wrapping_add(run);
        }
        self.word(TAIL).store(head, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let bytes = (1 + PAGES) * self.page;
        // SAFETY: the mapping was made in `of` with this length, and nothing else refers to it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use weir_model::topology::TierName;
    use weir_model::units::Bytes;

    use super::*;
    use crate::memory::{Policy, Region, Share};

    #[test]
    fn pages_that_this_thread_touches_first_are_noted_with_their_addresses() {
        let source = Source::page_faults();
        let root = Root::live();
        let mut sampler = Sampler::open(&root, &source, &[Target::ThisThread]).unwrap();
        let page = base_page();
        let share = Share {
            tier: TierName::dram(),
            node: None,
            weight: 1,
        };
        // More than the ring holds in one round, so that reading crosses its end.
        for round in 0..20 {
            let (bytes, policy) = (Bytes(64 * page as u64), Policy::probe());
            let memory = Region::untouched(bytes, std::slice::from_ref(&share), &policy).unwrap();
            sampler.drain(|_| {});
            for at in 0..64 {
                // SAFETY: a byte of the region, to which nothing else refers.
                unsafe { memory.base().add(at * page).write_volatile(1) };
            }
            let (start, mut seen) = (memory.base() as u64, 0);
            let lost = sampler.drain(|sample| {
                assert_eq!(sample.process, std::process::id(), "round {round}");
                seen += usize::from((start..start + bytes.get()).contains(&sample.address));
            });
            assert_eq!((seen, lost), (64, 0), "round {round}");
        }
    }
}
