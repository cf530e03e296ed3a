//! Another thread watches the loop and removes all limits if the loop stops.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Watches a loop that reports every turn.
#[derive(Debug)]
pub struct Watchdog {
    turns: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Watches: if no turn is reported for this long, `stalled` is called, once until the next turn.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        patience: Duration,
        mut stalled: impl FnMut() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (turns, reports) = channel();
        let watch = move || {
            loop {
                match reports.recv_timeout(patience) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        stalled();
                        // Whatever comes next is a new beginning.
                        if reports.recv().is_err() {
                            return;
                        }
                    }
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("weir-watchdog".to_owned())
            .spawn(watch)?;
        Ok(Self {
            turns: Some(turns),
            thread: Some(thread),
        })
    }

    /// The loop has made a turn.
    pub fn turn(&self) {
        if let Some(turns) = &self.turns {
            // A watchdog that was dropped watches nothing.
            let _ = turns.send(());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.turns = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
