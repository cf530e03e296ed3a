//! Whether a tenant had anything to run: the time that its control group or process ran, and the time that
//! its quota stopped it.

use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

use super::open_file::OpenFile;
use crate::root::Root;
use crate::steer::group::file;

/// A clock tick of proc(5), which user space sees in hundredths of a second on every processor that Weir
/// supports (`USER_HZ`).
const TICK: u64 = 10_000_000;

/// Less than this part of one processor does not count as running: timers and threads that wake to look for
/// work.
const LEAST: f64 = 0.01;

/// Time that a tenant ran and was stopped, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Time {
    ran: u64,
    kept: u64,
}

/// The source of a tenant's time.
#[derive(Debug)]
enum Of {
    Group,
    Process,
}

/// A tenant's time, window by window.
#[derive(Debug)]
pub(crate) struct Busy {
    of: Of,
    file: OpenFile,
    last: Option<Time>,
}

/// The running of a tenant in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ran {
    /// Processor time.
    pub time: Nanos,
    /// Time that its quota stopped it, summed over processors.
    pub throttled: Nanos,
}

impl Ran {
    /// Whether it counts as running, in a window of this length.
    pub fn is_busy(&self, window: Nanos) -> bool {
        self.throttled > Nanos(0.0) || self.time > window * LEAST
    }
}

impl Busy {
    pub fn of_group(group: &str) -> Self {
        Self::new(Of::Group, file(group, "cpu.stat"))
    }

    pub fn of_process(process: u32) -> Self {
        Self::new(Of::Process, format!("/proc/{process}/stat"))
    }

    fn new(of: Of, path: String) -> Self {
        Self {
            of,
            file: OpenFile::new(path),
            last: None,
        }
    }

    /// The running since the last window.
    ///
    /// # Errors
    /// It has gone, or this is the first window.
    pub fn window(&mut self, root: &Root, buffer: &mut Vec<u8>) -> Result<Ran, Unavailable> {
        let text = self.file.read(root, buffer);
        let now = text.and_then(|text| {
            let time = match self.of {
                Of::Group => of_group(text),
                Of::Process => of_process(text),
            };
            time.ok_or_else(|| Unavailable::because("its processor time makes no sense"))
        });
        let last = std::mem::replace(&mut self.last, now.clone().ok());
        let (now, Some(last)) = (now?, last) else {
            return Err(Unavailable::because("it is seen for the first time"));
        };
        // A new group or process of the same name begins at zero.
        let since = |now: u64, last: u64| Nanos(now.saturating_sub(last) as f64);
        Ok(Ran {
            time: since(now.ran, last.ran),
            throttled: since(now.kept, last.kept),
        })
    }
}

/// `cpu.stat`: `usage_usec 123` and `throttled_usec 4`, the latter if the group has a quota.
fn of_group(text: &str) -> Option<Time> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()?.checked_mul(1000)
    };
    Some(Time {
        ran: field("usage_usec ")?,
        kept: field("throttled_usec ").unwrap_or(0),
    })
}

/// proc(5), fields 14 and 15 of `stat`: time in user and in kernel mode, of all threads.
fn of_process(text: &str) -> Option<Time> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || words.next()?.parse::<u64>().ok();
    let ran = ticks()?.checked_add(ticks()?)?.checked_mul(TICK)?;
    Some(Time { ran, kept: 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tenant_is_busy_if_it_ran_for_a_hundredth_or_was_stopped() {
        let is_busy = |time, throttled| {
            let [time, throttled] = [time, throttled].map(Nanos);
            Ran { time, throttled }.is_busy(Nanos(1e9))
        };
        assert!(!is_busy(9e6, 0.0) && is_busy(11e6, 0.0) && is_busy(0.0, 1.0));
    }

    #[test]
    fn the_kernels_texts_are_read() {
        let text = "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 3\nnr_throttled 1\nthrottled_usec 70\n";
        assert_eq!(
            of_group(text),
            Some(Time {
                ran: 1_500_000,
                kept: 70_000
            })
        );
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 120 30 0 0 20 0 9 0 100 0";
        assert_eq!(
            of_process(text),
            Some(Time {
                ran: 150 * TICK,
                kept: 0
            })
        );
    }

    proptest! {
        #[test]
        fn garbage_is_no_time(text in "(usage_usec [0-9]{1,25}|[0-9) ]*|.){0,8}") {
            // Whatever is read, nothing overflows.
            let _ = (of_group(&text), of_process(&text));
        }
    }
}
