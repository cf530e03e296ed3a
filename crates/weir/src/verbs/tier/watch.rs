//! Windows of `weir tier run`: what the kernel counted, and what Weir asked it for in the meantime.

use std::time::{Duration, Instant};

use weir_linux::Root;
use weir_linux::memory::free_memory;
use weir_linux::tiering::{self, Demotion};
use weir_model::tiering::TieringCounts;
use weir_model::topology::Topology;
use weir_model::units::Nanos;

use super::moves::{Moving, TierMove};
use super::requests::Args;
use super::schemes::{Migrating, TierScheme};
use super::windows::{TierRoom, TierWindow};
use crate::context::Context;
use crate::failure::Result;
use crate::session::say;

/// The interval at which a stop request is looked for, and pages move.
const LOOK: Duration = Duration::from_millis(50);

/// Counts at one time.
pub(super) struct Counted {
    at: Instant,
    counts: TieringCounts,
    pressure: Option<Nanos>,
}

impl Counted {
    /// What the kernel has counted by now.
    ///
    /// # Errors
    /// It does not count.
    pub fn now(root: &Root) -> Result<Self> {
        Self::of(root, Instant::now())
    }

    /// What the kernel has counted by now, as the counts of an earlier time.
    fn of(root: &Root, at: Instant) -> Result<Self> {
        Ok(Self {
            at,
            counts: tiering::counts(root)?,
            pressure: tiering::pressure(root, None).ok(),
        })
    }
}

/// What Weir asks of the kernel while it counts.
pub(super) struct Asked {
    /// Groups that are demoted.
    pub demotion: Demotion,
    /// Parts of memory that move.
    pub movings: Vec<Moving>,
    /// Schemes of DAMON.
    pub migrating: Vec<Migrating>,
    /// Whether the run ends when all has moved.
    pub ends: bool,
}

/// What was counted, window by window.
#[derive(Default)]
pub(super) struct Watched {
    pub windows: Vec<TierWindow>,
    pub rooms: Vec<TierRoom>,
    pub moves: Vec<TierMove>,
    pub schemes: Vec<TierScheme>,
}

/// When a window ends that begins now. A short rest of the time is a part of the last one.
fn due(begins: Instant, window: Duration, end: Option<Instant>) -> Instant {
    let due = begins + window;
    let rest = LOOK.min(window / 10);
    end.filter(|&end| end < due + rest).unwrap_or(due)
}

/// Windows from what was counted before the settings until the time is over or a stop is requested.
pub(super) fn watch(
    args: &Args,
    root: &Root,
    topology: &Topology,
    began: Counted,
    asked: &mut Asked,
    context: &Context,
) -> Result<Watched> {
    let mut all = Watched::default();
    let Asked {
        demotion,
        movings,
        migrating,
        ends,
    } = asked;
    let window = Duration::from_nanos(args.window.get() as u64);
    let mut moved = Instant::now();
    let end = args
        .lasts
        .map(|lasts| moved + Duration::from_nanos(lasts.get() as u64));
    let start = began.at;
    let mut last = began;
    let is_over = |movings: &[Moving]| *ends && movings.iter().all(Moving::is_over);
    let is_due = |at: Instant, end: Option<Instant>| end.is_some_and(|end| at >= end);
    while !context.stop.requested() && !is_due(last.at, end) && !is_over(movings) {
        let due = due(last.at, window, end);
        // The settings take a part of the first window, and the last one is shorter.
        let ahead = due.saturating_duration_since(Instant::now());
        let ahead = Nanos(ahead.as_nanos() as f64);
        let (asked, wrong) = demotion.ask(root, args.window, ahead);
        (wrong.iter()).for_each(|why| say(&format!("weir: warning: {why}")));
        loop {
            std::thread::sleep(LOOK.min(due.saturating_duration_since(Instant::now())));
            let now = Instant::now();
            let time = Nanos(now.duration_since(moved).as_secs_f64() * 1e9);
            (movings.iter_mut()).for_each(|moving| moving.advance(root, time));
            moved = now;
            if context.stop.requested() || is_due(moved, Some(due)) || is_over(movings) {
                break;
            }
        }
        // A window has the time that its moves were given, whatever they took: none exceeds their rate.
        let now = Counted::of(root, moved)?;
        let t_s = now.at.duration_since(start).as_secs_f64();
        let window_s = now.at.duration_since(last.at).as_secs_f64();
        let waited = now.pressure.zip(last.pressure);
        all.moves
            .extend(movings.iter_mut().map(|moving| moving.take(t_s)));
        let done = migrating.iter_mut().map(|scheme| scheme.take(root, t_s));
        all.schemes.extend(done);
        all.windows.push(TierWindow {
            t_s,
            window_s,
            counts: now.counts.since(&last.counts),
            pressure_pct: waited.map(|(now, before)| (now.get() - before.get()) / (window_s * 1e7)),
            asked,
        });
        all.rooms.extend(topology.tiers.iter().filter_map(|tier| {
            let node = tier.node?;
            let free = free_memory(root, Some(node))?.free;
            let tier = tier.name.clone();
            Some(TierRoom {
                t_s,
                tier,
                node,
                free,
            })
        }));
        last = now;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_window_has_but_the_rest_of_the_time() {
        let begins = Instant::now();
        let ms = Duration::from_millis;
        let ends = |window, end| due(begins, ms(window), Some(begins + ms(end))) - begins;
        // The settings take some time before the end is known.
        assert_eq!(ends(1000, 1003), ms(1003));
        assert_eq!(ends(1000, 997), ms(997));
        assert_eq!(ends(1000, 1500), ms(1000));
        assert_eq!(ends(100, 148), ms(100));
        assert_eq!(due(begins, ms(1000), None) - begins, ms(1000));
    }
}
