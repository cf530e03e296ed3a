//! Long windows, of which only parts are simulated: systematic sampling as in SMARTS (Wunderlich et al., ISCA 2003).
//!
//! A window is divided into strata, and a part of each is simulated, at a random position, so that a period of the load
//! cannot fall into step with the parts. The counts of a part stand for its stratum.
//!
//! The error of a sum is the spread of its parts. Parts next to each other may be alike, since queues remember: then the
//! spread says too little. So neighbours are also taken together, two by two, four by four, and the widest interval counts
//! (blocking: Flyvbjerg and Petersen, J. Chem. Phys. 91, 1989).

use std::collections::VecDeque;

use weir_model::machine::Observation;
use weir_model::platform::Platform;
use weir_model::sampled::{Sampled, traffic};
use weir_model::statistics::{Estimate, student_t975};
use weir_model::topology::TierKind;
use weir_model::units::{LINE_BYTES, Nanos};

/// How a long window is represented: parts of it are simulated, and their counts are scaled. After a change of the
/// running threads, time passes before counting starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Simulated after every change, and not counted.
    pub warm_up: Nanos,
    /// Simulated and counted of every window, in 16 parts.
    pub detail: Nanos,
}

impl Default for Sampling {
    /// The time that a slow queue takes to fill.
    fn default() -> Self {
        Self {
            warm_up: Nanos::from_micros(60.0),
            detail: Nanos::from_micros(60.0),
        }
    }
}

/// After this many full tables a window shows the steady state of a queue, and not its filling.
const TABLES: f64 = 80.0;
/// The longest part of a window that is simulated.
const LONGEST: Nanos = Nanos(1e6);

impl Sampling {
    /// The time that the slowest device of a platform needs: the queue in front of it fills, drains and
    /// swings in the time in which the device serves a full Table of Requests.
    pub fn of(platform: &Platform) -> Self {
        let host = &platform.host;
        let table = f64::from(*host.uncore.tor) * f64::from(*host.llc.slices);
        let measured = (platform.devices.iter()).filter_map(|d| d.device.measured.read.as_deref());
        let carried = (platform.topology().tiers.into_iter())
            .filter(|tier| tier.kind == TierKind::Cxl)
            .filter_map(|tier| tier.limits)
            .map(|limits| limits.read);
        let slowest =
            (measured.copied().chain(carried)).fold(*host.dram.measured.read, |least, read| {
                match read < least {
                    true => read,
                    false => least,
                }
            });
        // A medium behind DRAM may need a die's time for each line of a table.
        let has_medium = (platform.devices.iter()).any(|d| d.device.backing.is_some());
        let long = match has_medium {
            true => LONGEST,
            false => slowest.line_time() * (table * TABLES),
        };
        let time = Nanos(
            long.get()
                .clamp(Self::default().detail.get(), LONGEST.get()),
        );
        Self {
            warm_up: time,
            detail: time,
        }
    }
}

/// Parts of a window: enough for two sizes of blocks.
pub const PARTS: usize = 16;
/// No window has more parts, whatever error was asked for.
const MOST_PARTS: usize = 1024;
/// Parts of a window whose load changes, until its spread is known.
const FIRST_PARTS: usize = 256;
/// Windows that are remembered.
const MOST_HISTORY: usize = 32;
/// Blocks that an interval needs.
const LEAST_BLOCKS: usize = 4;
/// Larger blocks of a changing load would take its changes for errors.
const MOST_OF_CHANGING: usize = 4;
/// Degrees of freedom of a variance from differences, for each of one from a mean.
const OF_DIFFERENCES: f64 = 2.0 / 3.0;
/// With an error asked for, parts are this much shorter than without, but no shorter than a few refresh intervals.
const SHORTER: f64 = 16.0;
const SHORTEST: Nanos = Nanos(5_000.0);
/// More parts than the spread asks for, since the spread is not certain either.
const RESERVE: f64 = 1.1;
/// After all threads have changed their phase in the time that was skipped: the part of the warm-up that is simulated
/// before counting starts.
const SETTLES: f64 = 0.25;
/// A smaller share of all bytes does not decide whether a window is exact enough.
const LEAST_SHARE: f64 = 0.01;

impl Sampling {
    /// The length of a part, for windows with or without an error that was asked for.
    pub fn part(&self, error: Option<f64>) -> Nanos {
        let part = self.detail * (1.0 / PARTS as f64);
        match error {
            Some(_) => part.min((part * (1.0 / SHORTER)).max(SHORTEST)),
            None => part,
        }
    }

    /// How long queues are simulated before a part counts, after this share of all threads has changed its phase.
    pub fn settling(&self, changed: f64) -> Nanos {
        self.warm_up * (SETTLES * changed.min(1.0))
    }
}

/// The parts of a stretch of a window in which the same threads run.
#[derive(Debug, Default)]
pub struct Series {
    /// Whether the load changes over time. Then the sum follows what changes slowly, and only the differences between a
    /// part and the next are an error (successive differences: Wolter, Introduction to Variance Estimation, chapter 8).
    changes: bool,
    /// The time for which each part stands.
    strata: Vec<f64>,
    /// Bytes a nanosecond of each part: those of each tenant, then DRAM and CXL.
    rates: Vec<Vec<f64>>,
}

impl Series {
    /// No part yet.
    pub fn new(changes: bool) -> Self {
        Self {
            changes,
            ..Self::default()
        }
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.strata.len()
    }

    /// Adds a part that stands for this time.
    pub fn push(&mut self, stratum: Nanos, seen: &Observation) {
        let tenants = seen.tenants.iter().map(|tenant| tenant.bytes.get());
        let bytes = tenants.chain(traffic(&seen.counters).map(|lines| lines * LINE_BYTES));
        let time = seen.window.get();
        self.rates
            .push(bytes.map(|bytes| bytes as f64 / time).collect());
        self.strata.push(stratum.get());
    }

    /// Every part stands for the same time.
    pub fn level(&mut self, whole: Nanos) {
        let each = whole.get() / self.len().max(1) as f64;
        self.strata.fill(each);
    }

    /// The bytes of a figure in the whole stretch.
    fn sum(&self, figure: usize) -> f64 {
        let parts = self.strata.iter().zip(&self.rates);
        parts.map(|(time, rates)| time * rates[figure]).sum()
    }

    /// The variance of that sum by blocks of this many parts, and the degrees of freedom; `None` with too few blocks.
    fn variance(&self, figure: usize, block: usize) -> Option<(f64, f64)> {
        let count = self.len() / block;
        if count < LEAST_BLOCKS.min(self.len()).max(2) || self.changes && block > MOST_OF_CHANGING {
            return None;
        }
        let blocks: Vec<(f64, f64)> = (0..count)
            .map(|n| {
                let end = if n + 1 == count {
                    self.len()
                } else {
                    (n + 1) * block
                };
                let parts = n * block..end;
                let time: f64 = self.strata[parts.clone()].iter().sum();
                let bytes: f64 = parts.map(|i| self.strata[i] * self.rates[i][figure]).sum();
                (time, bytes / time)
            })
            .collect();
        let freedom = (count - 1) as f64;
        if self.changes {
            let pairs = blocks.windows(2);
            let steps = pairs.map(|pair| {
                let lengths = pair[0].0 * pair[1].0;
                lengths * (pair[0].1 - pair[1].1).powi(2) / 2.0
            });
            let sum: f64 = steps.sum();
            return Some((sum * count as f64 / freedom, freedom * OF_DIFFERENCES));
        }
        let whole: f64 = self.strata.iter().sum();
        let mean = self.sum(figure) / whole;
        let squares: f64 = (blocks.iter())
            .map(|(time, rate)| time * (rate - mean).powi(2))
            .sum();
        let lengths: f64 = blocks.iter().map(|(time, _)| time * time).sum();
        Some((squares / whole * count as f64 / freedom * lengths, freedom))
    }
}

/// The rates of a steady load's latest windows, figure by figure: they differ by what changes too slowly for one of them.
#[derive(Debug, Default)]
pub struct History(VecDeque<Vec<f64>>);

impl History {
    /// Another window, whose load changed or was limited in another way if it is not `steady`.
    pub fn add(&mut self, window: &Stretches, steady: bool) {
        if !steady {
            self.0.clear();
            return;
        }
        self.0.truncate(MOST_HISTORY - 1);
        let whole: f64 = window.0.iter().flat_map(|series| &series.strata).sum();
        let rates = (0..window.figures()).map(|figure| window.sum(figure) / whole);
        self.0.push_front(rates.collect());
    }

    /// Half of the 95 % interval of one window, as a share of the figure.
    fn error(&self, figure: usize) -> Option<f64> {
        if self.0.len() < LEAST_BLOCKS {
            return None;
        }
        let seen = Estimate::of(self.0.iter().filter_map(|rates| rates.get(figure).copied()))?;
        Some(seen.relative_ci()? * f64::from(seen.samples).sqrt())
    }
}

/// The stretches of a window, one after the other.
#[derive(Debug, Default)]
pub struct Stretches(pub Vec<Series>);

impl Stretches {
    /// Whether nothing changed in it but what was queued.
    pub fn is_steady(&self) -> bool {
        self.0.iter().all(|series| !series.changes)
    }

    fn sum(&self, figure: usize) -> f64 {
        self.0.iter().map(|series| series.sum(figure)).sum()
    }

    /// The sum of a figure, and half of its 95 % interval.
    fn interval(&self, figure: usize) -> (f64, Option<f64>) {
        let sum = self.sum(figure);
        let mut widest = None;
        let mut block = 1;
        while let Some(width) = self.by_blocks(figure, block) {
            widest = Some(width.max(widest.unwrap_or(0.0)));
            block *= 2;
        }
        (sum, widest)
    }

    /// The interval by blocks of this many parts; stretches with few parts have smaller ones. The degrees of freedom are
    /// those of Welch and Satterthwaite.
    fn by_blocks(&self, figure: usize, block: usize) -> Option<f64> {
        let (mut variance, mut weighted, mut reaches) = (0.0, 0.0, false);
        for series in &self.0 {
            let mut own = block;
            let found = loop {
                match series.variance(figure, own) {
                    None if own > 1 => own /= 2,
                    found => break found,
                }
            };
            let (of, freedom) = found?;
            reaches |= own == block;
            variance += of;
            weighted += of * of / freedom;
        }
        let freedom = if weighted > 0.0 {
            variance * variance / weighted
        } else {
            1.0
        };
        let t = student_t975((freedom.floor() as u32).max(1));
        reaches.then(|| t * variance.sqrt())
    }

    fn figures(&self) -> usize {
        let first = self.0.first().and_then(|series| series.rates.first());
        first.map_or(0, Vec::len)
    }

    /// The relative error of each figure, the tenants first.
    fn errors(&self) -> Vec<Option<f64>> {
        let error = |figure: usize| {
            let (sum, width) = self.interval(figure);
            width.filter(|_| sum > 0.0).map(|width| width / sum)
        };
        (0..self.figures()).map(error).collect()
    }

    /// The largest error among the figures that are not a negligible part of their kind.
    fn largest(&self, errors: &[Option<f64>]) -> Option<f64> {
        let figures = self.figures();
        let sums: Vec<f64> = (0..figures).map(|figure| self.sum(figure)).collect();
        let (tenants, tiers) = sums.split_at(figures.checked_sub(2)?);
        let all = [tenants, tiers].map(|part| part.iter().sum::<f64>());
        let counts = |i: usize| sums[i] > LEAST_SHARE * all[usize::from(i >= figures - 2)];
        let known = errors.iter().enumerate().filter(|&(i, _)| counts(i));
        known.filter_map(|(_, error)| *error).reduce(f64::max)
    }

    /// What is said of the window, if this error was asked for.
    pub fn sampled(&self, simulated: Nanos, asked: Option<f64>, history: &History) -> Sampled {
        let mut errors = self.errors();
        for (figure, error) in errors.iter_mut().enumerate() {
            let over_windows = history.error(figure).unwrap_or(0.0);
            *error = error.map(|error| error.max(over_windows));
        }
        let missed =
            asked.is_some_and(|asked| self.largest(&errors).is_none_or(|reached| reached > asked));
        let traffic = errors.split_off(errors.len().saturating_sub(2));
        Sampled {
            parts: self.0.iter().map(|series| series.len() as u32).sum(),
            simulated,
            tenants: errors,
            traffic: [0, 1].map(|i| traffic.get(i).copied().flatten()),
            missed,
        }
    }
}

/// Decides how many parts a window has.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The relative error that was asked for.
    pub error: Option<f64>,
    /// Parts that the latest window with a changing load needed.
    pub needed: usize,
}

impl Plan {
    /// No window was seen yet.
    pub fn new(error: Option<f64>) -> Self {
        Self {
            error,
            needed: FIRST_PARTS,
        }
    }

    /// Whether a stretch of a steady load needs another part.
    pub fn goes_on(&self, seen: &Stretches) -> bool {
        let Some(error) = self.error else {
            return false;
        };
        let parts = seen.0.last().map_or(0, Series::len);
        parts < MOST_PARTS
            && seen
                .largest(&seen.errors())
                .is_none_or(|reached| reached > error)
    }

    /// Parts of a stretch of a changing load.
    pub fn parts(&self) -> usize {
        match self.error {
            Some(_) => self.needed,
            None => PARTS,
        }
    }

    /// A stretch of a changing load has ended: the next one is about alike.
    pub fn end(&mut self, seen: &Stretches) {
        self.needed = self.needs(seen);
    }

    /// Parts that the latest stretch needs, as far as it is known.
    fn needs(&self, seen: &Stretches) -> usize {
        let parts = seen.0.last().map_or(0, Series::len) as f64;
        let reached = seen.largest(&seen.errors());
        let needed = reached
            .zip(self.error)
            .map(|(reached, error)| parts * (reached / error).powi(2) * RESERVE);
        needed.map_or(self.needed, |needed| {
            (needed as usize).clamp(PARTS, MOST_PARTS)
        })
    }
}
