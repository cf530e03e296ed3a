//! What constant limits keep on a drawn machine, without a controller.
//!
//! Of each phase: equal limits of all tenants on a grid, then moves of one tenant's limit at a time. The phases are
//! combined so that the worse of both targets is met best. It is a lower bound of what limits can keep: the grid is
//! coarse, and an improvement that needs two moves at once is not found.

use std::fmt;

use weir_model::machine::{Machine, Testbed};
use weir_model::units::Nanos;
use weir_sim::{Sampling, SimTestbed};
use weir_steer::Role;
use weir_steer::limit::{Limit, Share, words};
use weir_steer::steered::{Phase, Steered, SteeredTenant};

use super::draw::Drawn;
use super::{Kept, alone};
use crate::library::{Bench, Given, PERIOD, WINDOW};

/// Cores of the grid; the most that a tenant has is added.
const CORES: [u32; 7] = [1, 2, 3, 4, 6, 8, 12];
/// Parts of the allocation, or of the time where there is no allocation.
const PARTS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0];
const TIMES: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// The search simulates this part of what a window usually simulates.
const DETAIL: f64 = 0.5;
const WARM_UP: f64 = 0.5;
/// With less than this in a phase, the mean of three misses its target, whatever the others keep: 0.85 and 0.55, less
/// the error of a short window. A limit that is wider, or narrower, is not tried then.
const HOPELESS: (f64, f64) = (0.80, 0.50);
/// Windows of moves from one point of the grid.
const MOVES: usize = 50;
/// A smaller improvement may be the error of a window.
const GAIN: f64 = 0.005;
/// So often points of the best combination are repeated with whole windows, until all of them are.
const REPEATS: usize = 8;
/// Below this the search is not repeated with whole windows.
const NEAR: f64 = 0.975;

/// What limits keep in a phase, as parts of alone; more than alone counts as equal to it.
#[derive(Clone)]
struct Point {
    limits: Vec<Limit>,
    fast: f64,
    slow: f64,
    /// Whether it is of whole windows.
    is_whole: bool,
}

impl Point {
    fn beats(&self, other: &Self) -> bool {
        self.fast >= other.fast && self.slow >= other.slow
    }
}

/// How far both targets are met; 1 and more is met.
fn worse(fast: f64, slow: f64) -> f64 {
    (fast / Kept::WANTED.0).min(slow / Kept::WANTED.1)
}

/// What is looked for in a phase: one that others can make up for may favour either tier.
const AIMS: [fn(&Point) -> f64; 3] = [
    |p| worse(p.fast, p.slow),
    |p| p.fast + p.slow,
    |p| 3.0 * p.fast + p.slow,
];

/// A phase under limits.
struct Trial<'a> {
    steered: Steered<'a>,
    /// Both sides without the other.
    alone: [f64; 2],
    /// The step of allocation; without it time is limited.
    step: Option<f64>,
    points: Vec<Point>,
}

impl<'a> Trial<'a> {
    /// Begins with a window without limits, which is not counted.
    fn new(machine: &'a mut dyn Machine, phase: &[SteeredTenant], alone: [f64; 2]) -> Self {
        let step = machine.topology().allocation.filter(|step| *step < 1.0);
        let lasts = Nanos(f64::INFINITY);
        let participants = phase.to_vec();
        let phases = vec![Phase {
            lasts,
            participants,
        }];
        let mut trial = Self {
            steered: Steered::new(machine, phases, PERIOD),
            alone,
            step,
            points: Vec::new(),
        };
        trial.window();
        trial
    }

    fn window(&mut self) -> (f64, f64) {
        let (readings, _) = self.steered.observe(WINDOW).unwrap();
        let part = |role, alone: f64| {
            let side = self.steered.tenants().iter().zip(&readings.tenants);
            let drew = (side.filter(|(of, _)| of.role == role))
                .map(|(_, tenant)| tenant.drew.as_ref().map_or(0.0, |drew| drew.get()));
            (drew.sum::<f64>() / alone).min(1.0)
        };
        let [fast, slow] = self.alone;
        (part(Role::Protected, fast), part(Role::Restrained, slow))
    }

    fn under(&mut self, limits: Vec<Limit>) -> Point {
        self.steered.apply(&limits);
        let (fast, slow) = self.window();
        let point = Point {
            limits,
            fast,
            slow,
            is_whole: false,
        };
        self.points.push(point.clone());
        point
    }

    /// The limit of a tenant with `all` cores; what leaves it everything is none.
    fn limit(&self, all: u32, cores: u32, part: f64) -> Limit {
        let mut limit = Limit {
            cores: Some(cores).filter(|&cores| cores < all),
            ..Limit::FREE
        };
        match self.step {
            Some(step) => {
                limit.allocation = Share::of(((part / step).round().max(1.0) * step).min(1.0));
            }
            None => limit.time = Share::of(part),
        }
        limit
    }

    /// The cores of each tenant that may be limited.
    fn restrained(&self) -> Vec<(usize, u32)> {
        let all = self.steered.tenants().iter().enumerate();
        (all.filter(|(_, tenant)| tenant.role == Role::Restrained))
            .map(|(i, tenant)| (i, tenant.cores))
            .collect()
    }

    fn free(&self) -> Vec<Limit> {
        vec![Limit::FREE; self.steered.tenants().len()]
    }

    /// No limit, and equal limits of all tenants, from the middle of the grid.
    fn grid(&mut self) {
        let free = self.under(self.free());
        if free.fast > 0.99 && free.slow > 0.99 {
            return;
        }
        let restrained = self.restrained();
        let most = restrained.iter().map(|(_, all)| *all).max().unwrap();
        let cores = CORES.iter().copied().filter(|c| *c < most).chain([most]);
        let parts: &[f64] = self.step.map_or(&TIMES, |_| &PARTS);
        let mut grid: Vec<(u32, f64)> = cores
            .flat_map(|c| parts.iter().map(move |part| (c, *part)))
            .filter(|&(c, part)| c < most || part < 1.0)
            .collect();
        let units = |&(c, part): &(u32, f64)| f64::from(c) * part;
        grid.sort_by(|a, b| units(a).total_cmp(&units(b)));
        let middle = units(&grid[grid.len() / 2]);
        grid.sort_by(|a, b| {
            let off = |at| f64::ln(units(at) / middle).abs();
            off(a).total_cmp(&off(b))
        });
        let (mut wide, mut narrow): (Vec<(u32, f64)>, Vec<_>) = (Vec::new(), Vec::new());
        for at in grid {
            let is_wider = |than: &(u32, f64)| at.0 >= than.0 && at.1 >= than.1;
            let is_narrower = |than: &(u32, f64)| at.0 <= than.0 && at.1 <= than.1;
            if wide.iter().any(is_wider) || narrow.iter().any(is_narrower) {
                continue;
            }
            let mut limits = self.free();
            for &(i, all) in &restrained {
                limits[i] = self.limit(all, at.0.min(all), at.1);
            }
            if self.points.iter().any(|point| point.limits == limits) {
                continue;
            }
            let point = self.under(limits);
            if point.fast < HOPELESS.0 {
                wide.push(at);
            } else if point.slow < HOPELESS.1 {
                narrow.push(at);
            }
        }
    }

    /// Moves the limit of one tenant at a time, from the best points of the grid.
    fn descend(&mut self, from: &[Point]) {
        let mut begun: Vec<Vec<Limit>> = Vec::new();
        for aim in AIMS {
            let mut best = (from.iter().max_by(|a, b| aim(a).total_cmp(&aim(b))))
                .unwrap()
                .clone();
            if begun.contains(&best.limits) || (best.fast > 0.99 && best.slow > 0.97) {
                continue;
            }
            begun.push(best.limits.clone());
            let mut left = MOVES;
            let mut is_moving = true;
            while is_moving && left > 0 {
                is_moving = false;
                for (i, all) in self.restrained() {
                    for limit in self.moves(best.limits[i], all) {
                        let mut limits = best.limits.clone();
                        limits[i] = limit;
                        let is_known = self.points.iter().chain(from).any(|p| p.limits == limits);
                        if is_known || left == 0 {
                            continue;
                        }
                        left -= 1;
                        let next = self.under(limits);
                        if aim(&next) > aim(&best) + GAIN {
                            best = next;
                            is_moving = true;
                            break;
                        }
                    }
                }
            }
        }
    }

    /// One step of each actuator up and down, and no limit.
    fn moves(&self, limit: Limit, all: u32) -> Vec<Limit> {
        let cores = limit.cores.unwrap_or(all);
        let (step, part) = match self.step {
            Some(step) => (step, limit.allocation.get()),
            None => (TIMES[0], limit.time.get()),
        };
        let near = [
            (cores, part + step),
            (cores, part - step),
            (cores + 1, part),
            (cores - 1, part),
            (all, 1.0),
        ];
        (near.into_iter())
            .filter(|&(cores, part)| (1..=all).contains(&cores) && part > 0.01 && part < 1.01)
            .map(|(cores, part)| self.limit(all, cores, part))
            .filter(|next| *next != limit)
            .collect()
    }
}

/// The points that no other one beats.
fn front(points: &[Point]) -> Vec<Point> {
    let mut front: Vec<Point> = Vec::new();
    for point in points {
        if !front.iter().any(|other| other.beats(point)) {
            front.retain(|other| !point.beats(other));
            front.push(point.clone());
        }
    }
    front
}

/// One point of each phase, so that the worse of both targets is met best in their mean.
fn combine(phases: &[Vec<Point>]) -> Vec<Point> {
    let mut sets: Vec<Vec<Point>> = vec![Vec::new()];
    for points in phases {
        let front = front(points);
        sets = (sets.iter())
            .flat_map(|set| {
                front
                    .iter()
                    .map(move |p| [set.as_slice(), std::slice::from_ref(p)].concat())
            })
            .collect();
    }
    (sets.into_iter())
        .max_by(|a, b| met(a).total_cmp(&met(b)))
        .unwrap_or_default()
}

fn means(set: &[Point]) -> (f64, f64) {
    let of = |part: fn(&Point) -> f64| Kept::mean(&set.iter().map(part).collect::<Vec<_>>());
    (of(|p| p.fast), of(|p| p.slow))
}

fn met(set: &[Point]) -> f64 {
    let (fast, slow) = means(set);
    worse(fast, slow)
}

/// The best that was found for a machine.
pub struct Bound {
    seed: u64,
    /// Of each phase.
    best: Vec<Point>,
    /// Windows of the search.
    windows: usize,
}

impl Bound {
    /// Searches limits for a drawn machine.
    pub fn search(seed: u64) -> Self {
        let drawn = Drawn::new(seed);
        let bench = Bench::on(&drawn.platform, Given::AllocationAlone, seed);
        let alone: Vec<[f64; 2]> = (drawn.phases.iter())
            .map(|phase| {
                [Role::Protected, Role::Restrained]
                    .map(|role| alone(&bench, phase, role).iter().sum())
            })
            .collect();
        let whole = Sampling::of(&drawn.platform);
        let bed = |sampling| {
            let bed = SimTestbed::new(&drawn.platform).unwrap();
            bed.sampled(sampling)
        };
        let short = bed(Sampling {
            warm_up: whole.warm_up * WARM_UP,
            detail: whole.detail * DETAIL,
        });
        let all = || drawn.phases.iter().zip(&alone);
        let mut phases: Vec<Vec<Point>> = Vec::new();
        for (phase, alone) in all() {
            let mut machine = short.open(seed).unwrap();
            let mut trial = Trial::new(&mut *machine, phase, *alone);
            trial.grid();
            phases.push(trial.points);
        }
        let mut windows: usize = phases.iter().map(Vec::len).sum();
        let whole = bed(whole);
        // The best of many short windows is partly the luckiest, so it counts only once it was repeated.
        let repeat = |phases: &mut [Vec<Point>]| {
            for _ in 0..REPEATS {
                let best = combine(phases);
                if met(&best) < NEAR || best.iter().all(|point| point.is_whole) {
                    break;
                }
                for (((phase, alone), points), point) in all().zip(phases.iter_mut()).zip(best) {
                    if point.is_whole {
                        continue;
                    }
                    let mut machine = whole.open(seed).unwrap();
                    let mut trial = Trial::new(&mut *machine, phase, *alone);
                    // The first window of a limit is not counted.
                    let [_, one, other] = [(); 3].map(|()| trial.under(point.limits.clone()));
                    points.retain(|known| known.limits != point.limits);
                    points.push(Point {
                        fast: (one.fast + other.fast) / 2.0,
                        slow: (one.slow + other.slow) / 2.0,
                        is_whole: true,
                        ..point
                    });
                }
            }
            let whole =
                |points: &Vec<Point>| points.iter().filter(|p| p.is_whole).cloned().collect();
            let repeated: Vec<Vec<Point>> = phases.iter().map(whole).collect();
            match repeated.iter().any(Vec::is_empty) {
                true => combine(phases),
                false => combine(&repeated),
            }
        };
        let mut best = repeat(&mut phases);
        if met(&best) < 1.0 {
            for ((phase, alone), points) in all().zip(&mut phases) {
                let mut machine = short.open(seed).unwrap();
                let mut trial = Trial::new(&mut *machine, phase, *alone);
                trial.descend(points);
                windows += trial.points.len();
                points.append(&mut trial.points);
            }
            best = repeat(&mut phases);
        }
        Self {
            seed,
            best,
            windows,
        }
    }

    /// Whether limits keep what is wanted of both tiers.
    pub fn is_good(&self) -> bool {
        self.is_repeated() && met(&self.best) >= 1.0
    }

    fn is_repeated(&self) -> bool {
        self.best.iter().all(|point| point.is_whole)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fast, slow) = means(&self.best);
        let verdict = match (self.is_good(), self.is_repeated()) {
            (true, _) => "kept",
            (false, true) => "missed",
            (false, false) => "missed by far",
        };
        write!(
            f,
            "{:4} {:5.1} / {:5.1} {verdict} ({} windows)",
            self.seed,
            fast * 100.0,
            slow * 100.0,
            self.windows
        )?;
        for point in &self.best {
            let limits: Vec<String> = point.limits.iter().map(words).collect();
            write!(
                f,
                "; {:.1} / {:.1}: {}",
                point.fast * 100.0,
                point.slow * 100.0,
                limits.join(" + ")
            )?;
        }
        Ok(())
    }
}
