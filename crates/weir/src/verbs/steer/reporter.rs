//! The observers of each window: the status, the log, the service manager.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sd_notify::NotifyState;
use weir_linux::clock::Uptime;
use weir_steer::daemon::Witness;
use weir_steer::log::{ChangeDetector, LogLine};
use weir_steer::record::{TierNames, WindowRecord};
use weir_steer::status::StatusDocument;
use weir_steer::steered::TenantOf;

use super::clock;
use super::log_file::LogFile;
use super::tier::Tier;
use crate::interrupt::Stop;

/// The status of a running controller, for the threads that report it.
#[derive(Clone)]
pub struct SharedStatus(Arc<Mutex<StatusDocument>>);

/// The facts of a run before it begins.
pub struct Beginning {
    /// What is steered.
    pub plant: String,
    /// The controller.
    pub controller: &'static str,
    /// Whether no tenant is limited.
    pub dry: bool,
    /// How long a window is.
    pub window: Duration,
    /// The names of the tiers.
    pub tiers: TierNames,
    /// Capabilities that the machine lacks, and the effect of each loss.
    pub lost: Vec<String>,
    /// The process, if it can be found again.
    pub pid: Option<u32>,
}

impl SharedStatus {
    /// No window has been seen yet.
    pub fn new(beginning: Beginning) -> Self {
        Self(Arc::new(Mutex::new(StatusDocument {
            schema: StatusDocument::SCHEMA.into(),
            weir: env!("CARGO_PKG_VERSION").into(),
            pid: beginning.pid,
            since: clock::now(),
            plant: beginning.plant,
            controller: beginning.controller.into(),
            dry: beginning.dry,
            window_s: beginning.window.as_secs_f64(),
            windows: 0,
            decisions: 0,
            refusals: 0,
            tiers: beginning.tiers,
            tenants: Vec::new(),
            lost: beginning.lost,
            tiering: None,
            troubles: Default::default(),
            log: None,
            metrics: None,
            recent: Default::default(),
        })))
    }

    /// The document, to read or to change.
    pub fn lock(&self) -> MutexGuard<'_, StatusDocument> {
        // The document is consistent between any two calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The document as text; empty if it cannot be written, which never happens.
    pub fn json(&self) -> String {
        let document = self.lock().clone();
        serde_json::to_string(&document).unwrap_or_default()
    }

    /// A problem outside of steering.
    pub fn trouble(&self, what: String) {
        let mut document = self.lock();
        if !document.troubles.contains(&what) {
            crate::session::say(&format!("weir: warning: {what}"));
            document.trouble(what);
        }
    }

    /// The log and the metrics.
    pub fn keeps(&self, log: Option<PathBuf>, metrics: Option<String>) {
        let mut document = self.lock();
        document.log = log;
        document.metrics = metrics;
    }
}

/// The witness of a run.
pub struct Reporter<'a> {
    shared: SharedStatus,
    news: ChangeDetector,
    log: Option<LogFile>,
    tier: Option<Tier>,
    stop: &'a Stop,
    end: Option<Duration>,
    /// Called after each window.
    each: Box<dyn FnMut(&SharedStatus) + 'a>,
}

impl<'a> Reporter<'a> {
    /// A witness that continues until a stop is requested, or until the system is as old as `end`.
    pub fn new(
        shared: SharedStatus,
        log: Option<LogFile>,
        stop: &'a Stop,
        end: Option<Duration>,
        each: impl FnMut(&SharedStatus) + 'a,
    ) -> Self {
        Self {
            shared,
            news: ChangeDetector::default(),
            log,
            tier: None,
            stop,
            end,
            each: Box::new(each),
        }
    }

    /// The same, with the kernel's tiering.
    #[must_use]
    pub fn with_tier(self, tier: Option<Tier>) -> Self {
        Self { tier, ..self }
    }

    fn write(&mut self, n: u64, window: &WindowRecord) {
        let Some(log) = &mut self.log else {
            return;
        };
        let (controller, dry) = {
            let status = self.shared.lock();
            (status.controller.clone(), status.dry)
        };
        let line = LogLine {
            schema: LogLine::SCHEMA.into(),
            n,
            at: clock::now(),
            controller,
            dry,
            window: window.clone(),
        };
        let Ok(mut line) = serde_json::to_string(&line) else {
            return;
        };
        line.push('\n');
        if log.add(line) == Some(1) {
            self.shared
                .trouble("the disk of the decision log is slow; the log lacks decisions".into());
        }
    }
}

impl Witness for Reporter<'_> {
    fn saw(&mut self, mut window: WindowRecord, tenants: &[TenantOf]) {
        if let Some(tier) = &mut self.tier {
            let tiers = self.shared.lock().tiers.clone();
            if let Some((record, wrong)) = tier.saw(&window, &tiers) {
                window.tiering = Some(record);
                wrong.into_iter().for_each(|why| self.shared.trouble(why));
            }
        }
        let is_new = self.news.is_new(&window);
        if is_new {
            let n = self.shared.lock().decisions + 1;
            self.write(n, &window);
        }
        {
            let mut status = self.shared.lock();
            if status.tenants != tenants {
                status.tenants = tenants.to_vec();
            }
            status.saw(window, is_new);
        }
        (self.each)(&self.shared);
    }

    fn found(&mut self, change: &str) {
        crate::session::say(&format!("weir: {change}"));
    }

    fn ends(&mut self) {
        if let Some(tier) = &mut self.tier {
            tier.end();
        }
    }

    fn go_on(&mut self) -> bool {
        !self.stop.requested() && self.end.is_none_or(|end| Uptime::now().all < end)
    }
}

/// Notifies the service manager, if there is one; an error does not matter.
pub fn notify(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

#[cfg(test)]
mod tests {
    use weir_model::tiering::{KernelTiering, TieringCounts, TieringRecord};
    use weir_model::units::Bytes;

    use super::super::view::tests::window;
    use super::*;

    #[test]
    fn another_part_of_the_limit_of_promotion_is_a_new_decision() {
        let mut news = ChangeDetector::default();
        let mut is_new = |part: Option<f64>| {
            let mut window = window(Vec::new(), 1.0);
            window.tiering = part.map(|part_pct| TieringRecord {
                lasted_s: 1.0,
                counts: TieringCounts::default(),
                promoted_gbps: None,
                asked: Bytes(0),
                part_pct,
                why: "because".into(),
                amortised_cycles: None,
                requested: KernelTiering::default(),
                in_force: KernelTiering::default(),
            });
            news.is_new(&window)
        };
        let parts = [None, Some(100.0), None, Some(100.0), Some(40.0), None];
        assert_eq!(
            parts.map(&mut is_new),
            [true, true, false, false, true, false]
        );
    }
}
