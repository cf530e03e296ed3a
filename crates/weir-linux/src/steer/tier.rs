//! The kernel's tiering under a daemon: settings that are kept in force, what they did, and a limit of promotion that
//! follows rules ([`weir_model::tiering::promotion`]).
//!
//! The kernel counts what it promotes by the second, and so does this: a shorter time would be a limit of its own.

use std::fmt;

use weir_model::capability::Unavailable;
use weir_model::events::EventLibrary;
use weir_model::tiering::promotion::{Alto, PromotionReadings, PromotionRule};
use weir_model::tiering::{KernelTiering, TieringCounts, TieringRecord};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::actuators::{tiering, weights};
use super::sensors::offcore::Amortised;
use super::settings::SystemSettings;
use crate::memory::base_page;
use crate::root::Root;
use crate::tiering::counts;

/// The time from one record to the next.
const SECOND: Nanos = Nanos(1e9);

/// The settings that are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TierSettings {
    /// The kernel's tiering. A limit of promotion is the most that the rules give.
    pub tiering: KernelTiering,
    /// Nodes and their weights of interleaving.
    pub weights: Vec<(u32, u32)>,
}

impl TierSettings {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the kernel has all that is wanted, and counts what it does.
    ///
    /// # Errors
    /// What it lacks.
    pub fn check(&self, root: &Root) -> Result<(), Unavailable> {
        tiering::check(&self.tiering, root)?;
        if !self.weights.is_empty() {
            weights::find(root)?;
        }
        counts(root).map(drop)
    }

    /// Sets them, and returns the tiering in force.
    ///
    /// # Errors
    /// The kernel lacks a setting, does not let this user change it, or another program has changed it since. Those
    /// before it stay, for the journal to restore.
    pub fn set(&self, settings: &mut SystemSettings) -> Result<KernelTiering, Unavailable> {
        let in_force = settings.set_tiering(&self.tiering)?;
        if !self.weights.is_empty() {
            settings.set_weights(&self.weights)?;
        }
        Ok(in_force)
    }
}

/// The source of amortised latencies, in cycles.
pub struct AmortisedSource(Box<dyn FnMut() -> Option<f64> + Send>);

impl AmortisedSource {
    /// The counters of this machine's cores.
    ///
    /// # Errors
    /// This processor does not count them, or this user may not.
    pub fn open(root: &Root, library: &EventLibrary) -> Result<Self, Unavailable> {
        let mut counters = Amortised::open(root, library)?;
        let root = root.clone();
        Ok(Self(Box::new(move || counters.cycles(&root))))
    }

    #[cfg(test)]
    fn given(mut cycles: Vec<Option<f64>>) -> Self {
        Self(Box::new(move || cycles.remove(0)))
    }
}

impl fmt::Debug for AmortisedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AmortisedSource")
    }
}

/// What a window of steering says about promotion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteeredWindow {
    /// Its length.
    pub length: Nanos,
    /// How long a request for the fast tier takes, if it is counted.
    pub fast: Option<Nanos>,
    /// How long one for the slow tier takes.
    pub slow: Option<Nanos>,
    /// The part of their running that is left to tenants of the slow tier that may be limited.
    pub left: f64,
}

/// The kernel's tiering under a daemon.
#[derive(Debug)]
pub struct TierLoop {
    root: Root,
    /// None in a dry run.
    settings: Option<SystemSettings>,
    wanted: TierSettings,
    rule: PromotionRule,
    amortised: Option<AmortisedSource>,
    last: TieringCounts,
    since: Nanos,
    /// The part that was left in each window, times its length.
    left: f64,
    in_force: KernelTiering,
}

impl TierLoop {
    /// Sets everything. Without settings it is a dry run.
    ///
    /// # Errors
    /// As [`TierSettings::check`] and [`TierSettings::set`].
    pub fn begin(
        root: &Root,
        mut settings: Option<SystemSettings>,
        wanted: TierSettings,
        alto: Option<(Alto, AmortisedSource)>,
    ) -> Result<Self, Unavailable> {
        wanted.check(root)?;
        let in_force = match &mut settings {
            Some(settings) => wanted.set(settings)?,
            None => tiering::in_force(root),
        };
        let (alto, amortised) = alto.unzip();
        Ok(Self {
            root: root.clone(),
            settings,
            wanted,
            rule: PromotionRule::new(alto),
            amortised,
            last: counts(root)?,
            since: Nanos(0.0),
            left: 0.0,
            in_force,
        })
    }

    /// The settings in force, as read back last.
    pub fn in_force(&self) -> KernelTiering {
        self.in_force
    }

    /// A window has passed. After each second the record of it, and what went wrong.
    pub fn saw(
        &mut self,
        window: &SteeredWindow,
    ) -> Option<(TieringRecord, Result<(), Unavailable>)> {
        self.since = self.since + window.length;
        self.left += window.left * window.length.get();
        if self.since < SECOND {
            return None;
        }
        let since = std::mem::replace(&mut self.since, Nanos(0.0));
        let left = std::mem::take(&mut self.left) / since.get();
        let now = counts(&self.root);
        let counted = (now.as_ref()).map_or(TieringCounts::default(), |now| now.since(&self.last));
        let mut went = now.map(|now| self.last = now);
        let seen = PromotionReadings {
            amortised: self.amortised.as_mut().and_then(|source| source.0()),
            fast: window.fast,
            slow: window.slow,
            left,
        };
        let (part, why) = self.rule.part(&seen);
        let requested = KernelTiering {
            promote_limit: (self.wanted.tiering.promote_limit)
                .map(|limit| GbPerSec(limit.get() * part)),
            ..self.wanted.tiering
        };
        if let Some(settings) = &mut self.settings {
            let wanted = TierSettings {
                tiering: requested,
                ..self.wanted.clone()
            };
            went = went.and(wanted.set(settings).map(drop));
        }
        self.in_force = tiering::in_force(&self.root);
        let page = base_page() as u64;
        let bytes = |pages: u64| GbPerSec::from_bytes_in(Bytes(pages * page), since);
        let record = TieringRecord {
            lasted_s: since.as_secs(),
            counts: counted,
            promoted_gbps: counted.promoted.map(bytes),
            asked: Bytes(0),
            part_pct: 100.0 * part,
            why: why.to_string(),
            amortised_cycles: seen.amortised,
            requested,
            in_force: self.in_force,
        };
        Some((record, went))
    }
}

#[cfg(test)]
mod tests {
    use weir_model::tiering::Balancing;

    use super::super::fake::{Life, Machine, Paper, differences};
    use super::super::journalled_writes::JournalledWrites;
    use super::super::release::Release;
    use super::*;

    const LIMIT: &str = "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps";
    const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
    const VMSTAT: &str = "/proc/vmstat";

    const QUARTER: SteeredWindow = SteeredWindow {
        length: Nanos(0.25e9),
        fast: None,
        slow: None,
        left: 1.0,
    };

    fn wanted() -> TierSettings {
        TierSettings {
            tiering: KernelTiering {
                demotion: Some(true),
                balancing: Some(Balancing::Tiering),
                // 100 MiB a second.
                promote_limit: Some(GbPerSec(0.104_857_6)),
            },
            weights: vec![(0, 3), (1, 1)],
        }
    }

    fn begin(
        machine: &Machine,
        life: &Life,
        paper: &Paper,
        alto: Option<(Alto, AmortisedSource)>,
    ) -> Option<(TierLoop, Release)> {
        let root = machine.root(life);
        let opened = JournalledWrites::on(&root, Box::new(paper.held_by(life)));
        let settings = SystemSettings::on(&root, opened.ok()?.0);
        let release = settings.releaser();
        let begun = TierLoop::begin(&root, Some(settings), wanted(), alto);
        begun.ok().map(|begun| (begun, release))
    }

    fn machine(promoted: u64) -> Machine {
        let machine = Machine::new();
        count(&machine, promoted);
        machine
    }

    fn count(machine: &Machine, promoted: u64) {
        let text = format!("pgpromote_success {promoted}\nnuma_hint_faults 9\n");
        machine.put(VMSTAT, &text);
    }

    /// A second in windows, and its record.
    fn second(tier: &mut TierLoop, window: SteeredWindow) -> TieringRecord {
        for _ in 0..3 {
            assert_eq!(tier.saw(&window), None);
        }
        let (record, went) = tier.saw(&window).unwrap();
        assert_eq!(went, Ok(()));
        record
    }

    #[test]
    fn the_limit_follows_given_counters_and_is_restored() {
        let machine = machine(1000);
        let before = machine.tree();
        let cycles = vec![Some(120.0), Some(60.0), None, Some(10.0)];
        let alto = (Alto::default(), AmortisedSource::given(cycles));
        let begun = begin(&machine, &Life::default(), &Paper::default(), Some(alto));
        let (mut tier, release) = begun.unwrap();
        assert_eq!(machine.text(LIMIT), "100\n");
        assert_eq!(machine.text(BALANCING), "2\n");
        for (n, limit, part) in [(1, "100", 100.0), (2, "40", 40.0), (3, "40", 40.0)] {
            count(&machine, 1000 + n * 100);
            let record = second(&mut tier, QUARTER);
            assert_eq!(machine.text(LIMIT), format!("{limit}\n"), "second {n}");
            assert_eq!(record.part_pct, part);
            assert_eq!(record.counts.promoted, Some(100));
            assert_eq!(record.counts.demoted, None);
            let in_force = record.in_force.promote_limit.unwrap();
            assert!((in_force.get() - 0.001_048_576 * part).abs() < 1e-9);
        }
        // Nothing is promoted where misses cost nothing.
        let record = second(&mut tier, QUARTER);
        assert_eq!(
            (machine.text(LIMIT).as_str(), record.part_pct),
            ("0\n", 0.0)
        );
        assert_eq!(release.release(), []);
        assert_eq!(differences(&before, &machine.tree()), [""; 0]);
    }

    #[test]
    fn a_limit_of_tenants_limits_promotion_for_as_long() {
        let machine = machine(0);
        let begun = begin(&machine, &Life::default(), &Paper::default(), None);
        let (mut tier, _) = begun.unwrap();
        let limited = SteeredWindow {
            left: 0.25,
            ..QUARTER
        };
        // The mean of a second counts.
        assert_eq!(tier.saw(&limited), None);
        assert_eq!(tier.saw(&limited), None);
        assert_eq!(tier.saw(&QUARTER), None);
        let (record, _) = tier.saw(&QUARTER).unwrap();
        assert_eq!(record.part_pct, 62.5);
        assert_eq!(record.why, "tenants of the slow tier are limited");
        assert_eq!(machine.text(LIMIT), "63\n");
        second(&mut tier, QUARTER);
        assert_eq!(machine.text(LIMIT), "100\n");
    }

    #[test]
    fn what_another_program_changes_is_left_to_it_and_reported() {
        let machine = machine(0);
        let begun = begin(&machine, &Life::default(), &Paper::default(), None);
        let (mut tier, release) = begun.unwrap();
        machine.write(BALANCING, "0");
        let whole = SteeredWindow {
            length: SECOND,
            ..QUARTER
        };
        let (record, went) = tier.saw(&whole).unwrap();
        assert!(went.unwrap_err().reason.contains("another program changed"));
        assert_eq!(record.in_force.balancing, Some(Balancing::Off));
        let left = release.release();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(machine.text(BALANCING), "0\n");
        // What was released, as by a watchdog, is set again.
        machine.write(BALANCING, "1");
        let (_, went) = tier.saw(&whole).unwrap();
        assert_eq!((went, machine.text(BALANCING).as_str()), (Ok(()), "2\n"));
    }

    #[test]
    fn a_dry_run_changes_nothing_and_a_missing_setting_is_named_before_any_change() {
        let machine = machine(0);
        let before = machine.tree();
        let root = machine.root(&Life::default());
        let mut dry = TierLoop::begin(&root, None, wanted(), None).unwrap();
        let record = second(&mut dry, QUARTER);
        assert_eq!(record.requested, wanted().tiering);
        assert_eq!(record.in_force.balancing, Some(Balancing::Nodes));
        assert_eq!(differences(&before, &machine.tree()), [""; 0]);
        std::fs::remove_file(machine.real(LIMIT)).unwrap();
        let why = wanted().check(&root).unwrap_err().reason;
        assert!(why.contains("Linux 6.1"), "{why}");
        std::fs::remove_file(machine.real(VMSTAT)).unwrap();
        assert!(TierSettings::default().check(&root).is_err());
    }

    #[test]
    fn a_daemon_that_is_killed_at_any_step_leaves_tiering_that_is_restored() {
        let run = |machine: &Machine, life: &Life, paper: &Paper| {
            let alto = AmortisedSource::given(vec![Some(60.0), Some(120.0)]);
            let begun = begin(machine, life, paper, Some((Alto::default(), alto)));
            let Some((mut tier, release)) = begun else {
                return;
            };
            let whole = SteeredWindow {
                length: SECOND,
                ..QUARTER
            };
            tier.saw(&whole);
            tier.saw(&whole);
            release.release();
        };
        let whole = Life::default();
        run(&machine(0), &whole, &Paper::default());
        assert!(whole.taken() > 20, "{}", whole.taken());
        for step in 0..whole.taken() {
            let (machine, paper) = (machine(0), Paper::default());
            let before = machine.tree();
            run(&machine, &Life::until(Some(step)), &paper);
            let after = Life::default();
            let storage = Box::new(paper.held_by(&after));
            let (_, restored) = JournalledWrites::on(&machine.root(&after), storage).unwrap();
            assert!(restored.is_whole(), "{step}: {:?}", restored.not);
            assert_eq!(differences(&before, &machine.tree()), [""; 0], "{step}");
        }
    }
}
