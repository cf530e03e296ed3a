//! Pins a thread to a processor, and releases it.

use std::io;

use weir_model::capability::{Feature, Unavailable};
use weir_model::machine::MachineError;

use crate::topology::list;

/// Enough bits for any Linux: the kernel's own limit is 8192.
const WORDS: usize = 8192 / 64;

/// A set of processors in the kernel's form.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CpuMask([u64; WORDS]);

impl CpuMask {
    fn of(cpus: &[u32]) -> Option<Self> {
        let mut mask = [0; WORDS];
        for cpu in cpus {
            *mask.get_mut(*cpu as usize / 64)? |= 1 << (cpu % 64);
        }
        Some(Self(mask))
    }

    fn current() -> io::Result<Self> {
        let mut mask = Self([0; WORDS]);
        // SAFETY: the kernel writes at most the stated number of bytes into the array.
        let written = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                0,
                size_of_val(&mask.0),
                mask.0.as_mut_ptr(),
            )
        };
        if written < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(mask)
    }

    fn apply(&self) -> io::Result<()> {
        // SAFETY: the kernel reads the stated number of bytes from the array.
        let result = unsafe {
            libc::syscall(
                libc::SYS_sched_setaffinity,
                0,
                size_of_val(&self.0),
                self.0.as_ptr(),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    fn cpus(&self) -> Vec<u32> {
        (0..WORDS as u32 * 64)
            .filter(|&cpu| self.0[cpu as usize / 64] >> (cpu % 64) & 1 == 1)
            .collect()
    }
}

/// The processors that the calling thread may run on.
///
/// # Errors
/// The kernel does not say.
pub fn allowed_cpus() -> Result<Vec<u32>, Unavailable> {
    CpuMask::current()
        .map(|mask| mask.cpus())
        .map_err(|e| Unavailable::because(format!("sched_getaffinity: {e}")))
}

/// Keeps the calling thread on a processor, or on several, until dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuMask,
}

impl Pinned {
    /// Pins the calling thread.
    ///
    /// # Errors
    /// There is no such processor, or this program may not use it.
    pub fn to(cpu: u32) -> Result<Self, MachineError> {
        Self::to_any(&[cpu])
    }

    /// Restricts the calling thread to some processors; the kernel chooses among them.
    ///
    /// # Errors
    /// None of them exists, or this program may use none of them.
    pub fn to_any(cpus: &[u32]) -> Result<Self, MachineError> {
        let missing = |cause: String| MachineError::Missing {
            feature: Feature::Pinning,
            reason: format!("cannot pin a thread to CPU {}: {cause}", list::format(cpus)),
        };
        let mask = CpuMask::of(cpus).ok_or_else(|| missing("no Linux has that many".into()))?;
        let before = CpuMask::current().map_err(|e| missing(e.to_string()))?;
        mask.apply().map_err(|error| {
            missing(match error.raw_os_error() {
                // sched_setaffinity(2)
                Some(libc::EINVAL) => "it is offline, or not in the cpuset of this process".into(),
                _ => error.to_string(),
            })
        })?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // After a failure the thread stays pinned: nothing better can be done in a destructor.
        let _ = self.before.apply();
    }
}

/// How often the kernel preempted the calling thread.
pub fn preemptions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure, for which all zeros are valid too. The call cannot
    // fail with these arguments.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    // A C long: narrower than this on some machines.
    #[allow(clippy::useless_conversion)]
    i64::from(usage.ru_nivcsw)
}

/// The number of the calling thread (gettid(2)).
pub fn thread() -> u32 {
    // SAFETY: takes nothing, and never fails.
    u32::try_from(unsafe { libc::gettid() }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_set_free_again() {
        let before = allowed_cpus().unwrap();
        let target = *before.last().unwrap();
        {
            let _pinned = Pinned::to(target).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [target]);
        }
        assert_eq!(allowed_cpus().unwrap(), before);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused_by_number() {
        for cpu in [8000, 1_000_000] {
            let error = Pinned::to(cpu).err().unwrap().to_string();
            assert!(error.contains(&cpu.to_string()), "{error}");
            assert!(!error.contains("os error"), "{error}");
        }
    }
}
