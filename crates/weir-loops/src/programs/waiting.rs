//! Waiting for answers, with the resolution of the kernel's timers.

use std::io;
use std::time::Duration;

use super::Trouble;

/// Waits until one of these has something, for this long at most.
pub(super) fn poll(waits: &mut [libc::pollfd], longest: Duration) -> Result<(), Trouble> {
    let time = libc::timespec {
        tv_sec: longest.as_secs() as _,
        tv_nsec: longest.subsec_nanos() as _,
    };
    // SAFETY: the kernel reads and writes as many entries as the slice has, and reads the time; the mask is absent.
    let found = unsafe {
        libc::ppoll(
            waits.as_mut_ptr(),
            waits.len() as libc::nfds_t,
            &raw const time,
            std::ptr::null(),
        )
    };
    if found >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted {
        waits.iter_mut().for_each(|wait| wait.revents = 0);
        return Ok(());
    }
    Err(Trouble::system("ppoll", error))
}

/// Has the kernel wake this thread on time, and not up to 50 µs later (prctl(2), `PR_SET_TIMERSLACK`), until dropped.
pub(super) struct TimerSlack;

impl TimerSlack {
    pub fn least() -> Self {
        // SAFETY: this option takes a number and no pointer.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
        Self
    }
}

impl Drop for TimerSlack {
    fn drop(&mut self) {
        // SAFETY: as above; 0 is the slack that the thread had when it began.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 0 as libc::c_ulong) };
    }
}
