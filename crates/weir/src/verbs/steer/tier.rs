//! The kernel's own tiering while the daemon runs: `[tier]` of the configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_linux::Root;
use weir_linux::steer::{
    AmortisedSource, Release, SteeredWindow, SystemSettings, TierLoop, TierSettings,
};
use weir_linux::tiering::Demotion;
use weir_model::capability::Unavailable;
use weir_model::events::EventLibrary;
use weir_model::tiering::TieringRecord;
use weir_model::tiering::promotion::Alto;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{Bytes, Nanos};
use weir_steer::config::{TierConfig, TierController};
use weir_steer::record::{TierNames, WindowRecord};

use super::super::tier::windows::in_words;
use crate::failure::{Failure, Result};
use crate::nodes::{all_here, node_of};
use crate::session::say;
use crate::system::System;

/// The interval at which the kernel is asked to demote, and at which an end is looked for.
const EVERY: Nanos = Nanos(1e9);
const LOOK: Duration = Duration::from_millis(50);

/// What is to be set, on a machine that has it all.
pub(super) struct Planned {
    settings: TierSettings,
    weights: Vec<(TierName, u32)>,
    demotion: Demotion,
    alto: Option<(Alto, AmortisedSource)>,
}

/// Looks for all that the configuration needs; nothing is changed.
///
/// # Errors
/// What this machine lacks.
pub(super) fn plan(
    config: &TierConfig,
    host: &System,
    topology: &Topology,
    library: &EventLibrary,
) -> Result<Planned> {
    let root = &host.root;
    let names: Vec<TierName> = config.weights.iter().map(|of| of.0.clone()).collect();
    all_here(host, topology, &names)?;
    let node = |(tier, weight): &(TierName, u32)| Ok((node_of(topology, tier)?, *weight));
    let settings = TierSettings {
        tiering: config.settings,
        weights: config.weights.iter().map(node).collect::<Result<_>>()?,
    };
    settings.check(root).map_err(missing)?;
    let demotion = Demotion::find(root, &config.demote, config.pressure).map_err(missing)?;
    let alto = match config.controller {
        TierController::Fixed => None,
        TierController::Alto => {
            let source = AmortisedSource::open(root, library).map_err(|why| {
                Failure::Missing(anyhow::anyhow!(
                    "`alto` of [tier] needs counters of demand reads that leave the cores: {why}"
                ))
            })?;
            Some((config.alto, source))
        }
    };
    Ok(Planned {
        settings,
        weights: config.weights.clone(),
        demotion,
        alto,
    })
}

fn missing(why: Unavailable) -> Failure {
    Failure::Missing(anyhow::anyhow!("[tier]: {why}"))
}

impl Planned {
    /// The settings in words.
    pub fn words(&self) -> String {
        in_words(&self.settings.tiering, &self.weights)
    }

    /// Sets everything by the journal of the tenants; without one it is a dry run.
    ///
    /// # Errors
    /// The kernel refused. What was set is for the journal to restore.
    pub fn begin(self, root: &Root, journal: Release) -> Result<Tier> {
        let settings = SystemSettings::sharing(root, journal);
        let is_dry = settings.is_none();
        let begun = TierLoop::begin(root, settings, self.settings, self.alto);
        let tiering = begun.map_err(missing)?;
        let demoter = (!is_dry && !self.demotion.is_empty())
            .then(|| Demoter::start(root, self.demotion))
            .transpose();
        let demoter = demoter
            .map_err(|error| Failure::Work(anyhow::anyhow!(error).context("cannot demote")))?;
        Ok(Tier { tiering, demoter })
    }
}

/// The kernel's tiering under the daemon.
pub(super) struct Tier {
    tiering: TierLoop,
    demoter: Option<Demoter>,
}

impl Tier {
    /// The settings in force, in words.
    pub fn words(&self) -> String {
        in_words(&self.tiering.in_force(), &[])
    }

    /// A window has passed: after each second its record, and what went wrong.
    pub fn saw(
        &mut self,
        window: &WindowRecord,
        tiers: &TierNames,
    ) -> Option<(TieringRecord, Option<String>)> {
        let stayed = |tier: &String| window.tor_ns.get(tier).copied();
        let (record, went) = self.tiering.saw(&SteeredWindow {
            length: Nanos(window.window_s * 1e9),
            fast: stayed(&tiers.fast),
            slow: stayed(&tiers.slow),
            left: window.quota_pct / 100.0,
        })?;
        let asked = self.demoter.as_ref().map_or(Bytes(0), Demoter::asked);
        Some((
            TieringRecord { asked, ..record },
            went.err().map(|why| why.reason),
        ))
    }

    /// Ends what would go on while the settings are restored.
    pub fn end(&mut self) {
        self.demoter = None;
    }
}

/// A thread that asks the kernel to demote: the answer may take longer than a window.
struct Demoter {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Demoter {
    fn start(root: &Root, mut demotion: Demotion) -> std::io::Result<Self> {
        let (stop, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let root = root.clone();
        let (ends, sum) = (Arc::clone(&stop), Arc::clone(&asked));
        let turn = move || {
            let mut said = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let due = Instant::now() + Duration::from_nanos(EVERY.get() as u64);
                let (bytes, wrong) = demotion.ask(&root, EVERY, EVERY);
                sum.fetch_add(bytes.get(), Ordering::Relaxed);
                for why in wrong {
                    if !said.contains(&why) {
                        say(&format!("weir: warning: {why}"));
                        said.push(why);
                    }
                }
                while !ends.load(Ordering::Relaxed) && Instant::now() < due {
                    thread::sleep(LOOK);
                }
            }
        };
        let thread = thread::Builder::new().name("demotion".into()).spawn(turn)?;
        Ok(Self {
            stop,
            asked,
            thread: Some(thread),
        })
    }

    /// What was asked for since the last call.
    fn asked(&self) -> Bytes {
        Bytes(self.asked.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Demoter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Reclaim after demotion is off would write pages to swap. Its panic was said already.
            let _ = thread.join();
        }
    }
}
