//! Instructions of a process that runs already.

use weir_model::capability::Unavailable;

use super::attributes::Encoded;
use super::event::{Open, Scope};
use super::{refusal, threads_of};
use crate::root::Root;

/// A counter for each thread of a process, and for what the threads start later.
#[derive(Debug)]
pub struct Instructions(Vec<Open>);

impl Instructions {
    /// Begins to count.
    ///
    /// # Errors
    /// There is no such process, the processor counts none, or this user may not.
    pub fn open(root: &Root, process: u32) -> Result<Self, Unavailable> {
        Self::of(root, process, Encoded::INSTRUCTIONS)
    }

    fn of(root: &Root, process: u32, event: Encoded) -> Result<Self, Unavailable> {
        let mut counters = Vec::new();
        for thread in threads_of(root, process)? {
            match Open::one(event, thread, None, Scope::User) {
                Ok(counter) => counters.push(counter),
                // A thread that has ended since they were listed.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(refusal::of_core(&error)),
            }
        }
        match counters.is_empty() {
            true => Err(Unavailable::because(format!("process {process} has ended"))),
            false => Ok(Self(counters)),
        }
    }

    /// Instructions in user mode until now, also of threads that have ended. Where the counters are shared with other
    /// programs, the time in which they counted stands for all.
    pub fn total(&self) -> f64 {
        let one = |counter: &Open| {
            let read = counter.read().unwrap_or_default();
            read.value as f64 * (read.enabled as f64 / read.running.max(1) as f64).max(1.0)
        };
        self.0.iter().map(one).sum()
    }
}

#[cfg(test)]
mod tests {
    use weir_model::topology::TierName;
    use weir_model::units::Bytes;

    use super::*;
    use crate::memory::{Policy, Region, Share, base_page};

    /// Page faults (PERF_COUNT_SW_PAGE_FAULTS) stand in for instructions: every kernel counts them.
    #[test]
    fn what_a_process_does_is_counted() {
        let root = Root::live();
        let share = Share {
            tier: TierName::dram(),
            node: None,
            weight: 1,
        };
        let bytes = Bytes(16 * base_page() as u64);
        let memory = Region::untouched(bytes, &[share], &Policy::probe()).unwrap();
        let own = Instructions::of(&root, std::process::id(), Encoded::software(2)).unwrap();
        let before = own.total();
        for page in 0..16 {
            // SAFETY: a byte of the region, to which nothing else refers.
            unsafe { memory.base().add(page * base_page()).write_volatile(1) };
        }
        assert!(own.total() - before >= 16.0);
        assert!(Instructions::of(&root, 4_194_303, Encoded::software(2)).is_err());
    }
}
