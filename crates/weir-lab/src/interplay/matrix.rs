//! From points to cells: a pair's change over thread counts, and what goes with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::document::{Point, Steadiness};
use weir_model::interplay::{
    At, Cause, Cell, CellLatency, ChangeClass, Reason, SurfacePoint, TierOp, TimedPoint,
};
use weir_model::topology::Topology;
use weir_model::units::{GbPerSec, Nanos};

use super::certainty::Reach;
use super::change::Change;
use super::measured::{Measured, at_of, co_runner, is_chase, is_timed, pair_of, tier_op};
use super::reason::{Evidence, reason};
use super::side_by_side::{RunCounters, queues, ratios};

/// The own part of an `interplay` document: `weir/interplay/1`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Matrix {
    /// One for each victim and aggressor, row by row.
    pub cells: Vec<Cell>,
    /// Every pair of thread counts behind the cells.
    pub surface: Vec<SurfacePoint>,
    /// What timed accesses take alone and with each aggressor.
    pub latencies: Vec<TimedPoint>,
    /// Every figure that was taken, alone and together.
    pub points: Vec<Point>,
}

/// The matrix that these points make. Its cells are in the order in which pairs were planned; pairs of which nothing
/// was measured are left out.
pub fn matrix(topology: &Topology, points: &[Measured<'_>]) -> Matrix {
    let book = Book { topology, points };
    let mut pairs: Vec<(TierOp, TierOp)> = Vec::new();
    for seen in points {
        if let Some(pair) = pair_of(seen.point)
            && !pairs.contains(&pair)
        {
            pairs.push(pair);
        }
    }
    let mut matrix = Matrix {
        latencies: points.iter().filter_map(|p| book.timed(p.point)).collect(),
        points: points.iter().map(|p| p.point.clone()).collect(),
        ..Matrix::default()
    };
    for (victim, aggressor) in pairs {
        let here = book.surface(&victim, &aggressor);
        let cell = book.cell(victim, aggressor, &here, &matrix.latencies);
        matrix.cells.push(cell);
        matrix.surface.extend(here);
    }
    matrix
}

/// Everything that was measured, to look figures up in.
struct Book<'a> {
    topology: &'a Topology,
    points: &'a [Measured<'a>],
}

impl<'a> Book<'a> {
    fn solo(&self, who: &TierOp, threads: u32) -> Option<Measured<'a>> {
        self.points.iter().copied().find(|seen| {
            let point = seen.point;
            let alone = point.beside.is_none() && !is_timed(point);
            alone && point.threads == threads && tier_op(point) == *who
        })
    }

    fn corun(&self, victim: &TierOp, aggressor: &TierOp, at: At) -> Option<Measured<'a>> {
        let of_pair =
            |point: &Point| pair_of(point).is_some_and(|(v, a)| v == *victim && a == *aggressor);
        (self.points.iter().copied())
            .find(|seen| of_pair(seen.point) && at_of(seen.point) == Some(at))
    }

    /// What a timed point says, with the same accesses alone; `None` for others.
    fn timed(&self, point: &Point) -> Option<TimedPoint> {
        let beside = point.beside.as_ref().filter(|_| is_timed(point))?;
        let same = |other: &&Measured<'_>| {
            let other = other.point;
            let alike = (&other.tier, &other.pattern) == (&point.tier, &point.pattern);
            let same_cores = (other.socket, other.host, &other.cores)
                == (point.socket, point.host, &point.cores);
            other.beside.is_none() && alike && same_cores
        };
        let solo = self.points.iter().find(same)?.point;
        Some(TimedPoint {
            tier: point.tier.clone(),
            pattern: point.pattern.clone(),
            socket: point.socket,
            host: point.host,
            across: (point.cores.iter()).any(|core| self.topology.other_cores.contains(core)),
            aggressor: co_runner(beside),
            aggressor_threads: beside.threads,
            aggressor_pause_ns: beside.pause_ns,
            ns: latency(solo, point)?,
        })
    }

    /// Every pair of thread counts of two participants, in the order of the plan.
    fn surface(&self, victim: &TierOp, aggressor: &TierOp) -> Vec<SurfacePoint> {
        let pairs = self.points.iter().filter(|seen| {
            pair_of(seen.point).is_some_and(|(v, a)| v == *victim && a == *aggressor)
        });
        pairs
            .filter_map(|seen| {
                let at = at_of(seen.point)?;
                let solo = self.solo(victim, at.victim_threads);
                let solo_gbps = solo.and_then(|s| s.point.gbps);
                let corun_gbps = seen.point.gbps;
                // One that pauses was not measured alone.
                let aggressor_solo = (at.aggressor_pause_ns == Nanos(0.0))
                    .then(|| self.solo(aggressor, at.aggressor_threads))
                    .flatten();
                let why = |seen: Option<Measured<'_>>| seen.and_then(|s| s.point.error.clone());
                let alone = || solo_gbps.is_none().then(|| "not measured alone".to_owned());
                Some(SurfacePoint {
                    victim: victim.clone(),
                    aggressor: aggressor.clone(),
                    at,
                    solo_gbps,
                    corun_gbps,
                    change_pct: solo
                        .and_then(|solo| Change::of(solo, *seen))
                        .map(|change| change.pct),
                    aggressor_solo_gbps: aggressor_solo.and_then(|s| s.point.gbps),
                    aggressor_gbps: seen.point.beside.as_ref().and_then(|b| b.gbps),
                    error: (seen.point.error.clone())
                        .or_else(|| why(solo))
                        .or_else(alone),
                })
            })
            .collect()
    }

    /// The classes that a pair may be in by the intervals of all its thread counts; none where nothing was repeated.
    fn classes(
        &self,
        victim: &TierOp,
        aggressor: &TierOp,
        surface: &[SurfacePoint],
    ) -> Vec<ChangeClass> {
        let changes: Vec<Change> = (surface.iter())
            .filter_map(|point| {
                let solo = self.solo(victim, point.at.victim_threads)?;
                Change::of(solo, self.corun(victim, aggressor, point.at)?)
            })
            .collect();
        Reach::of(&changes).map_or_else(Vec::new, |reach| reach.classes())
    }

    fn cell(
        &self,
        victim: TierOp,
        aggressor: TierOp,
        surface: &[SurfacePoint],
        latencies: &[TimedPoint],
    ) -> Cell {
        // The first of equals, so that the order of the plan decides.
        let worst = surface
            .iter()
            .filter(|p| p.change_pct.is_some())
            .reduce(|a, b| {
                let size = |p: &SurfacePoint| p.change_pct.unwrap_or(0.0).abs();
                if size(b) > size(a) { b } else { a }
            });
        let mut cell = Cell {
            victim,
            aggressor,
            solo_gbps: None,
            corun_gbps: None,
            change_pct: None,
            change_ci95: None,
            class: None,
            certain: false,
            repetitions: 0,
            classes: Vec::new(),
            at: None,
            aggressor_gbps: None,
            aggressor_change_pct: None,
            ns: None,
            steadiness: None,
            ratios: Vec::new(),
            queues: Vec::new(),
            verdict: Reason {
                cause: Cause::Undetermined,
                evidence: Vec::new(),
                unseen: Vec::new(),
            },
            error: surface.iter().find_map(|p| p.error.clone()),
        };
        let Some(worst) = worst else {
            return cell;
        };
        let at = worst.at;
        cell.error = None;
        cell.solo_gbps = worst.solo_gbps;
        cell.corun_gbps = worst.corun_gbps;
        cell.change_pct = worst.change_pct;
        cell.class = worst.change_pct.map(ChangeClass::of);
        cell.at = Some(at);
        cell.aggressor_gbps = worst.aggressor_gbps;
        cell.aggressor_change_pct = change_pct(worst.aggressor_solo_gbps, worst.aggressor_gbps);
        cell.ns = (latencies.iter())
            .find(|timed| {
                is_chase(&timed.pattern)
                    && (&timed.tier, &timed.aggressor) == (&cell.victim.tier, &cell.aggressor)
                    && (timed.socket, timed.host) == (cell.victim.socket, cell.victim.host)
                    && timed.aggressor_threads == at.aggressor_threads
                    && timed.aggressor_pause_ns == at.aggressor_pause_ns
            })
            .map(|timed| timed.ns);
        let solo = self.solo(&cell.victim, at.victim_threads);
        let corun = self.corun(&cell.victim, &cell.aggressor, at);
        if let (Some(solo), Some(corun)) = (solo, corun) {
            // Requests to storage are timed as they are.
            cell.ns = cell.ns.or_else(|| latency(solo.point, corun.point));
            if let Some(change) = Change::of(solo, corun) {
                cell.change_ci95 = change.half_width();
            }
            cell.repetitions = solo.point.repetitions.min(corun.point.repetitions);
            cell.classes = self.classes(&cell.victim, &cell.aggressor, surface);
            cell.certain = cell.classes.len() == 1;
            if cell.certain {
                cell.classes.clear();
            }
            cell.steadiness = worse(solo.point.steadiness, corun.point.steadiness);
            let alone = RunCounters::of(&solo);
            let together = RunCounters::of(&corun);
            cell.ratios = ratios(&alone, &together);
            cell.queues = queues(&alone, &together);
            cell.verdict = reason(&Evidence {
                topology: self.topology,
                victim: &cell.victim,
                aggressor: &cell.aggressor,
                change_pct: cell.change_pct.unwrap_or(0.0),
                solo: &alone,
                corun: &together,
                timed: cell.ns,
            });
            let may_be_none = cell.classes.iter().any(|class| *class >= ChangeClass::None);
            if !cell.certain && (may_be_none || cell.verdict.cause == Cause::Unharmed) {
                cell.verdict = Reason {
                    cause: Cause::Uncertain,
                    evidence: Vec::new(),
                    unseen: Vec::new(),
                };
            }
        }
        cell
    }
}

/// What accesses take alone and together, where both are timed.
fn latency(solo: &Point, corun: &Point) -> Option<CellLatency> {
    let (solo, corun) = (solo.ns?, corun.ns?);
    Some(CellLatency {
        solo_mean: solo.mean,
        solo_p99: solo.p99,
        corun_mean: corun.mean,
        corun_p99: corun.p99,
    })
}

/// In percent of the first; `None` where either is missing or the first is nothing.
fn change_pct(solo: Option<GbPerSec>, corun: Option<GbPerSec>) -> Option<f64> {
    let (solo, corun) = (solo?.get(), corun?.get());
    (solo > 0.0).then(|| (corun - solo) / solo * 100.0)
}

/// The one that says less about a figure's trust.
fn worse(a: Option<Steadiness>, b: Option<Steadiness>) -> Option<Steadiness> {
    a.max(b)
}
