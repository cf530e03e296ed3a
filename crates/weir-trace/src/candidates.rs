//! Descriptions that a part of the address space may have, and which of them fits best.

use weir_model::units::LINE_BYTES;
use weir_model::workload::Order;

use crate::fit::{Component, Popular, Times, cycles, random};
use crate::l1;
use crate::regions::Part;

/// Lines in a row from which a part is a run, and not made of long elements.
const RUN: f64 = 24.0;
/// Uses that a model of a part may have too many or too few, as a share.
const ERROR: f64 = 0.03;
/// The part of all uses against which those of a small part are taken.
const SMALL: f64 = 0.1;
/// Lines that stay in L1 whatever else is used: a sixteenth of it.
const IN_L1: f64 = (l1::LINES / 16) as f64;
/// The exponent below which Zipf's law is not distinguished from equal chances.
const EVEN: f64 = 0.2;
/// The error from which lines may be used in the same order each time.
const SHARP: f64 = 0.1;
/// Regions that a part is described by, at most.
const KINDS: usize = 5;
/// Cycles of a part whose lines always come again after the same time, and how far the logarithms of times then are apart
/// (their variance; that of lines that are drawn is 1.6).
const CYCLES: usize = 2;
const SAME_TIME: f64 = 0.05;
/// Regions that a phase may have.
const REGIONS: usize = 32;

/// One part, described.
pub struct Described {
    pub order: Order,
    /// The order of those of its components whose lines are used one after the other.
    pub run: Order,
    pub components: Vec<Component>,
    pub skew: f64,
    pub element: u64,
    pub stride: u64,
    /// Accesses of a line on each visit.
    pub each: f64,
    pub stores: f64,
    pub modifies: f64,
    pub error: f64,
}

/// The power of two next to a number, within bounds.
fn power(of: f64, least: u64, most: u64) -> u64 {
    let power = of.max(1.0).log2().round().clamp(0.0, 40.0);
    (1_u64 << power as u32).clamp(least, most)
}

/// Whether lines of it would never leave L1.
pub fn is_l1(component: &Component) -> bool {
    component.lines < IN_L1
}

/// What all parts are measured against.
pub struct Context {
    /// Times after which misses are compared.
    checks: Vec<f64>,
    /// Uses of all parts after them.
    all: Vec<f64>,
    /// First uses of all parts.
    first: f64,
    windows: f64,
}

/// Of each part the candidate that fits best, as long as there is room for all regions. Candidates of a part have more
/// components and smaller errors each. With the number of the part.
pub fn chosen(candidates: Vec<Vec<Described>>, weights: &[f64]) -> Vec<(usize, Described)> {
    let mut at = vec![0; candidates.len()];
    let count = |n: usize, at: usize| candidates[n].get(at).map(|d| d.components.len());
    loop {
        let used: usize = (0..at.len()).filter_map(|n| count(n, at[n])).sum();
        let fits = |&n: &usize| {
            let more = count(n, at[n] + 1).zip(count(n, at[n]));
            more.is_some_and(|(next, now)| used + next <= REGIONS + now)
                && candidates[n][at[n]].error >= ERROR
        };
        let gain = |n: usize| candidates[n][at[n]].error.min(1.0) * weights[n];
        let next = (0..at.len())
            .filter(fits)
            .max_by(|&a, &b| gain(a).total_cmp(&gain(b)));
        match next {
            Some(n) => at[n] += 1,
            None => break,
        }
    }
    let picked = candidates.into_iter().zip(at).enumerate();
    picked
        .filter_map(|(n, (all, at))| Some((n, all.into_iter().nth(at)?)))
        .collect()
}

impl Context {
    pub fn new(checks: Vec<f64>, times: &[Times], windows: f64) -> Self {
        let all = checks
            .iter()
            .map(|&at| times.iter().map(|times| times.beyond(at)).sum())
            .collect();
        Self {
            checks,
            all,
            first: times.iter().map(|times| times.first).sum(),
            windows,
        }
    }

    /// What may describe a part; nothing for one that was not used.
    pub fn part(&self, part: &Part, times: &Times) -> Vec<Described> {
        let noted = &part.all;
        if noted.visits == 0 || times.total() <= 0.0 {
            return Vec::new();
        }
        let visits = noted.visits as f64;
        let bytes = noted.bytes as f64 / noted.accesses.max(1) as f64;
        let access = power(bytes, 1, LINE_BYTES);
        let jumps = (noted.visits - noted.follows).max(1) as f64;
        let run = visits / jumps;
        let written = (noted.written as f64 / visits).min(1.0);
        let modified = (noted.modified as f64 / visits).min(written);
        if run >= RUN {
            let step = (noted.steps as f64 / noted.follows.max(1) as f64)
                .round()
                .max(1.0);
            let loads = (noted.accesses - noted.stores) as f64;
            // Where most lines are loaded before they are stored to, a store belongs to a load.
            let pairs = modified > written / 2.0 && loads > 0.0 && step <= 1.0;
            let seen = match pairs {
                true => loads,
                false => noted.accesses as f64,
            } / visits;
            let (stride, each) = match step > 1.0 {
                true => (step as u64 * LINE_BYTES, 1.0),
                false => {
                    let stride = power(LINE_BYTES as f64 / seen, access, LINE_BYTES);
                    (stride, (LINE_BYTES / stride) as f64)
                }
            };
            let (stores, modifies) = match (pairs, each > 1.0) {
                (true, true) => (0.0, (noted.stores as f64 / loads).min(1.0)),
                (true, false) => share_modified(written, modified),
                (false, true) => (noted.stores as f64 / noted.accesses.max(1) as f64, 0.0),
                (false, false) => (written, 0.0),
            };
            let plain = Described {
                order: Order::Sequential,
                run: Order::Sequential,
                components: Vec::new(),
                skew: 0.99,
                element: access.min(stride),
                stride,
                each,
                stores,
                modifies,
                error: f64::INFINITY,
            };
            return self.better(times, &plain, &|count| cycles(times, count));
        }
        let lines = if run >= 1.5 { run.round() as u64 } else { 0 };
        let element = if lines > 0 {
            lines * LINE_BYTES
        } else {
            access
        };
        // Only elements of one line are modified.
        let (stores, modifies) = match lines > 1 {
            true => (written, 0.0),
            false => share_modified(written, modified),
        };
        let plain = Described {
            order: Order::Random,
            run: Order::Sequential,
            components: Vec::new(),
            skew: 0.99,
            element,
            stride: element,
            each: 1.0,
            stores,
            modifies,
            error: f64::INFINITY,
        };
        self.irregular(part, times, plain)
    }

    /// A part whose elements are drawn: equal ones, popular ones, or several kinds.
    fn irregular(&self, part: &Part, times: &Times, plain: Described) -> Vec<Described> {
        let span = (part.span / LINE_BYTES) as f64;
        let mut all = self.better(times, &plain, &|count| random(times, count, span));
        // Lines that come again in the same order, whatever it is, come after the same time.
        let cycle = Described {
            run: Order::Cycle,
            components: Vec::new(),
            ..plain
        };
        let first = all.first().map_or(f64::INFINITY, |one| one.error);
        if first >= ERROR && times.spread(CYCLES) < SAME_TIME {
            let cycles = self.better(times, &cycle, &|count| cycles(times, count));
            if cycles.last().is_some_and(|last| last.error < SHARP) {
                return cycles;
            }
        }
        if all.first().is_some_and(|one| one.error >= ERROR)
            && let Some(popular) = self.popular(part, times, &plain)
        {
            // Lines that are about equally popular are random.
            if popular.skew < EVEN {
                all.truncate(1);
                return all;
            }
            return vec![popular];
        }
        let last = all.last().map_or(f64::INFINITY, |last| last.error);
        if last > SHARP {
            let cycles = self.better(times, &cycle, &|count| cycles(times, count));
            let better: Vec<Described> = cycles
                .into_iter()
                .filter(|one| one.error < last / 2.0)
                .collect();
            if !better.is_empty() {
                return better;
            }
        }
        all
    }

    /// More and more components, as long as they are better.
    fn better(
        &self,
        times: &Times,
        plain: &Described,
        of: &dyn Fn(usize) -> Vec<Component>,
    ) -> Vec<Described> {
        let mut all: Vec<Described> = Vec::new();
        for count in 1..=KINDS {
            let components = of(count);
            let sum =
                |of: &dyn Fn(Component) -> f64| components.iter().map(|&c| of(c)).sum::<f64>();
            let error = self.error(
                times,
                &|at| sum(&|component| component.beyond(at, times.length)),
                sum(&|component| component.first(times.length)),
            );
            if all.last().is_none_or(|before| error < 0.9 * before.error) {
                all.push(Described {
                    components,
                    error,
                    ..*plain
                });
            }
        }
        all
    }

    fn popular(&self, part: &Part, times: &Times, plain: &Described) -> Option<Described> {
        let noted = &part.all;
        let uses =
            noted.uses as f64 / self.windows / (plain.element.div_ceil(LINE_BYTES) as f64).max(1.0);
        if plain.element > LINE_BYTES {
            return None;
        }
        let span = (part.span / LINE_BYTES) as f64;
        let (law, _) = Popular::fitted(times, uses, span, &self.checks)?;
        let (_, first) = law.beyond(uses, &[], times.length);
        let error = self.error(
            times,
            &|at| law.beyond(uses, &[at], times.length).0[0],
            first,
        );
        if error > ERROR {
            return None;
        }
        Some(Described {
            order: Order::Zipf,
            components: vec![Component {
                visits: uses,
                lines: law.lines,
                run: false,
            }],
            skew: law.skew,
            stores: noted.stores as f64 / noted.accesses.max(1) as f64,
            modifies: 0.0,
            error,
            ..*plain
        })
    }

    /// The largest error of uses after the times that matter, and of first uses, as a share.
    fn error(&self, times: &Times, found: &dyn Fn(f64) -> f64, first: f64) -> f64 {
        let error = |found: f64, wanted: f64, all: f64| {
            (found - wanted).abs() / wanted.max(SMALL * all).max(1.0)
        };
        let checks = self.checks.iter().zip(&self.all);
        let worst = checks
            .map(|(&at, &all)| error(found(at), times.beyond(at), all))
            .fold(0.0, f64::max);
        worst.max(error(first, times.first, self.first))
    }
}

/// The share of lines that are only stored to, and of the others the share that is modified.
fn share_modified(written: f64, modified: f64) -> (f64, f64) {
    let stores = written - modified;
    match stores >= 1.0 {
        true => (1.0, 0.0),
        false => (stores, modified / (1.0 - stores)),
    }
}
