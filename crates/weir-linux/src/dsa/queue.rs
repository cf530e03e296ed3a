//! Copies by the accelerator: several outstanding submissions, each of one descriptor or a batch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_model::machine::MachineError;

use super::WorkQueue;
use super::descriptor::{Descriptor, Outcome, Record, explain};
#[cfg(target_arch = "x86_64")]
use super::portal::Portal;
use crate::root::Root;

/// A device that does not answer for this long is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The device exists only on x86-64.
#[cfg(not(target_arch = "x86_64"))]
struct Portal;

#[cfg(not(target_arch = "x86_64"))]
impl Portal {
    fn open(_: &Root, _: &WorkQueue) -> Result<Self, MachineError> {
        Err(MachineError::Missing {
            feature: weir_model::capability::Feature::Dsa,
            reason: "only x86-64 processors submit to it".into(),
        })
    }

    unsafe fn submit(&self, _: &Descriptor) -> bool {
        false
    }
}

/// How descriptors are submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Bytes that one moves.
    pub bytes: u64,
    /// Descriptors in a batch; 1 for none.
    pub batch: u32,
    /// Outstanding submissions.
    pub in_flight: u32,
}

impl Style {
    /// Whether the queue accepts it from `threads` threads at once.
    pub fn check(self, queue: &WorkQueue, threads: usize) -> Result<(), String> {
        let Self {
            bytes,
            batch,
            in_flight,
        } = self;
        let name = &queue.name;
        let most = queue.max_transfer.min(u64::from(u32::MAX));
        if bytes == 0 || bytes % 64 != 0 || bytes > most {
            return Err(format!(
                "a descriptor of {bytes} B must be a multiple of 64 B and at most the {most} B of {name}"
            ));
        }
        if batch == 0 || batch > queue.max_batch.max(1) {
            return Err(format!(
                "a batch of {batch} is not from 1 to the {} of {name}",
                queue.max_batch.max(1)
            ));
        }
        if in_flight == 0 || in_flight > queue.size {
            return Err(format!(
                "{in_flight} outstanding submissions are not from 1 to the {} of {name}",
                queue.size
            ));
        }
        if !queue.shared && threads > 1 {
            return Err(format!("{name} is dedicated, so it serves only one thread"));
        }
        Ok(())
    }
}

/// One submission: its batch, its record, and whether it is outstanding.
struct Slot {
    list: Vec<Descriptor>,
    record: Record,
    under_way: bool,
}

/// A thread's use of a work queue.
pub(crate) struct Copier {
    portal: Portal,
    style: Style,
    // Its length never changes: the device writes to the elements in place.
    slots: Box<[Slot]>,
}

impl Copier {
    pub fn open(root: &Root, queue: &WorkQueue, style: Style) -> Result<Self, MachineError> {
        let slots = (0..style.in_flight).map(|_| Slot {
            list: Vec::with_capacity(style.batch as usize),
            record: Record::default(),
            under_way: false,
        });
        Ok(Self {
            portal: Portal::open(root, queue)?,
            style,
            slots: slots.collect(),
        })
    }

    /// Copies `count` blocks repeatedly until the stop flag is set, and reports the bytes of each submission
    /// when it is done.
    ///
    /// # Errors
    /// The device failed, in words. If it stopped answering, it may still write: `Err` with `true`, and the
    /// memory must never be used again.
    ///
    /// # Safety
    /// Both arrays hold `count` blocks, are touched, and are not used by anything else.
    pub unsafe fn copy(
        mut self,
        from: *const u8,
        to: *mut u8,
        count: usize,
        stop: &AtomicBool,
        mut done: impl FnMut(u64),
    ) -> Result<(), (String, bool)> {
        let Style { bytes, batch, .. } = self.style;
        let mut block = 0;
        let mut failed = None;
        'work: while !stop.load(Ordering::Relaxed) {
            for at in 0..self.slots.len() {
                match self.finish(at) {
                    Ok(copied) => done(copied),
                    Err(why) => {
                        failed = Some(why);
                        break 'work;
                    }
                }
                let slot = &mut self.slots[at];
                slot.record.clear();
                slot.list.clear();
                for _ in 0..batch {
                    let offset = block * bytes as usize;
                    let record = (batch == 1).then_some(&slot.record);
                    slot.list.push(Descriptor::memory_move(
                        from.wrapping_add(offset),
                        to.wrapping_add(offset),
                        bytes as u32,
                        record,
                    ));
                    block = if block + 1 == count { 0 } else { block + 1 };
                }
                let order = match slot.list.as_slice() {
                    [alone] => *alone,
                    list => Descriptor::batch(list, &slot.record),
                };
                // SAFETY: the arrays are as the caller promises; list and record stay where they
                // are until `finish` or `drain` has seen the record.
                while !unsafe { self.portal.submit(&order) } {
                    if stop.load(Ordering::Relaxed) {
                        break 'work;
                    }
                }
                self.slots[at].under_way = true;
            }
        }
        match (self.drain(), failed) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(why)) => Err((why, false)),
            (Err(why), first) => {
                // The device may still write to the records.
                std::mem::forget(std::mem::take(&mut self.slots));
                Err((first.unwrap_or(why), true))
            }
        }
    }

    /// Waits for a submission; returns the bytes that it copied, zero if it was not outstanding.
    fn finish(&mut self, at: usize) -> Result<u64, String> {
        let slot = &mut self.slots[at];
        if !slot.under_way {
            return Ok(0);
        }
        let patience = Instant::now();
        let mut looks = 0_u32;
        let outcome = loop {
            match slot.record.outcome() {
                Outcome::Pending => {}
                other => break other,
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(4096) && patience.elapsed() > PATIENCE {
                return Err(format!("the accelerator did not answer for {PATIENCE:?}"));
            }
        };
        slot.under_way = false;
        match outcome {
            Outcome::Failed(status) => Err(explain(status)),
            Outcome::Pending | Outcome::Done => Ok(self.style.bytes * slot.list.len() as u64),
        }
    }

    /// Waits until no submission is outstanding.
    fn drain(&mut self) -> Result<(), String> {
        for at in 0..self.slots.len() {
            // A failure that the device reported also ends a submission.
            if let Err(why) = self.finish(at)
                && self.slots[at].under_way
            {
                return Err(why);
            }
        }
        Ok(())
    }
}
