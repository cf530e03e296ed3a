//! Facts about processes and threads from the kernel.

use std::io;
use std::sync::{Arc, OnceLock};

use weir_model::machine::CommandEnd;
use weir_model::units::Nanos;

use crate::clock::raw_nanos;
use crate::root::Root;

/// The end of a child, which a thread waits for: its clock is not that of a caller which looks now and then. The child is left to
/// be reaped by its owner, so that its number stays its own.
#[derive(Debug, Clone)]
pub(crate) struct EndOfChild {
    began: u64,
    end: Arc<OnceLock<(u64, Option<i32>)>>,
}

impl EndOfChild {
    /// Waits for a child that began at `began`, in nanoseconds of [`raw_nanos`].
    ///
    /// # Errors
    /// No thread can be started.
    pub fn of(process: u32, began: u64) -> io::Result<Self> {
        let end = Arc::new(OnceLock::new());
        let ended = Arc::clone(&end);
        let wait = move || {
            let code = wait_for(process);
            let _ = ended.set((raw_nanos(), code));
        };
        std::thread::Builder::new()
            .name("weir-wait".into())
            .spawn(wait)?;
        Ok(Self { began, end })
    }

    /// How long it ran and its exit status, if it has ended.
    pub fn known(&self) -> Option<CommandEnd> {
        let &(end, code) = self.end.get()?;
        let after = Nanos(end.saturating_sub(self.began) as f64);
        Some(CommandEnd { after, code })
    }
}

/// Waits until a child has ended and leaves it to be reaped. Returns its exit status, `None` if a signal ended it.
fn wait_for(process: u32) -> Option<i32> {
    // SAFETY: all bytes of a `siginfo_t` may be zero; it is plain data.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: `info` is valid for writes, and no other thing refers to it.
        let result = unsafe {
            libc::waitid(
                libc::P_PID,
                process,
                &raw mut info,
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        if result == 0 {
            // SAFETY: after waitid the field of a child's status is set.
            return (info.si_code == libc::CLD_EXITED).then(|| unsafe { info.si_status() });
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

/// When a process or thread began, in clock ticks since the machine started (proc(5), field 22 of `stat`);
/// `None` if there is none. The second field may contain anything in its brackets.
pub fn started(root: &Root, id: u32) -> Option<u64> {
    let stat = root.text(&format!("/proc/{id}/stat"));
    let (_, rest) = stat.known()?.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// The process of a thread.
pub fn leader(root: &Root, id: u32) -> Option<u32> {
    let status = root.text(&format!("/proc/{id}/status"));
    let line = status
        .known()?
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}
