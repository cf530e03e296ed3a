//! Memory of which sizes is reused after the times that were seen.
//!
//! Memory of `n` lines, of which one is used every `1/r` accesses, sees a line again after `n/r` accesses: exactly so
//! in a cycle, on average where lines are drawn at random, when times are exponential. So times between uses are a mixture, and
//! each component of it has a size. How many other lines are used in a time follows from these times alone (Xiang et al.,
//! HOTL, ASPLOS 2013), so that a program with the same times has the same misses in caches of every size.
//!
//! A trace ends: a time is only seen if both uses are in it. What a line was used for the first time in it counts as
//! a time that had not ended.

use crate::granule::{Granule, TIMES, begin_of, range_of};

/// Steps of expectation and maximisation.
const STEPS: usize = 300;
/// The longest time that is distinguished from no reuse at all, in lengths of the trace.
const LONGEST: f64 = 64.0;

/// Memory that is reused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Component {
    /// Uses of its lines in the trace.
    pub visits: f64,
    /// Lines.
    pub lines: f64,
    /// Whether they are used one after the other, and not drawn.
    pub run: bool,
}

impl Component {
    /// Accesses between two uses of a line, in a trace of some length.
    fn mean(self, length: f64) -> f64 {
        self.lines * length / self.visits.max(1e-9)
    }

    /// Uses after at least this time, with first uses.
    pub fn beyond(self, time: f64, length: f64) -> f64 {
        let mean = self.mean(length);
        match self.run {
            true if time <= mean => self.visits,
            true => self.first(length),
            false => self.visits * tail(time, mean, length) + self.first(length),
        }
    }

    /// Lines that are used at all.
    pub fn first(self, length: f64) -> f64 {
        match self.run {
            true => self.lines.min(self.visits),
            false => self.visits * unseen(self.mean(length), length),
        }
    }
}

/// Uses beyond L1 by the time since the one before, in a trace of some length.
#[derive(Debug, Clone)]
pub struct Times {
    ranges: Vec<(f64, f64, f64)>,
    /// First uses.
    pub first: f64,
    /// Accesses of the trace.
    pub length: f64,
    /// Shorter times are of lines in L1, and are not among these.
    pub cut: f64,
}

impl Times {
    /// What was noted of memory, a window of a trace.
    pub fn of(noted: &Granule, windows: f64, length: f64, cut: f64) -> Self {
        // All visits are counted, the times only of lines that are kept. Popular lines decide most of the difference, and
        // theirs are short (the correction of SHARDS).
        let known = noted.beyond_l1();
        let mut more = noted.visits as f64 - known;
        let mut uses = noted.times.map(f64::from);
        let shortest = range_of(cut as u64);
        for (range, uses) in uses.iter_mut().enumerate().skip(shortest) {
            let taken = more.max(-*uses);
            *uses += taken;
            more -= taken;
            debug_assert!(range < TIMES);
            if more >= 0.0 {
                break;
            }
        }
        let ranges = (0..TIMES).map(|range| {
            let uses = uses[range] / windows;
            (begin_of(range), begin_of(range + 1), uses)
        });
        Self {
            ranges: ranges.filter(|(.., uses)| *uses > 0.0).collect(),
            first: noted.first / windows,
            length,
            cut: cut.min(length / 4.0).max(1.0),
        }
    }

    /// Uses after at least this time, with first uses.
    pub fn beyond(&self, time: f64) -> f64 {
        let from = range_of(time.max(1.0) as u64);
        let part = |&(begin, end, uses): &(f64, f64, f64)| {
            if begin >= time {
                uses
            } else if end <= time {
                0.0
            } else {
                uses * (end / time).ln() / (end / begin).ln()
            }
        };
        debug_assert!(from < TIMES);
        self.first + self.ranges.iter().map(part).sum::<f64>()
    }

    /// The variance of the logarithms of times within this many groups; without bounds where few lines come again.
    pub fn spread(&self, count: usize) -> f64 {
        let seen = self.centres();
        let uses: f64 = seen.iter().map(|(_, uses)| uses).sum();
        if uses < self.first / 2.0 || uses <= 0.0 {
            return f64::INFINITY;
        }
        let groups = groups(&seen, count);
        let apart = |time: f64| {
            let all = groups.iter().map(|(mean, _)| (time / mean).ln().powi(2));
            all.fold(f64::INFINITY, f64::min)
        };
        seen.iter().map(|&(time, n)| apart(time) * n).sum::<f64>() / uses
    }

    /// The middle of each range, and its uses.
    fn centres(&self) -> Vec<(f64, f64)> {
        let middle = |&(begin, end, uses): &(f64, f64, f64)| ((begin * end).sqrt(), uses);
        self.ranges.iter().map(middle).collect()
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.first + self.ranges.iter().map(|(.., uses)| uses).sum::<f64>()
    }
}

/// The probability that a use at random comes at least `x` after the one before, where times have this mean, and that the
/// one before is in the trace.
fn tail(x: f64, mean: f64, length: f64) -> f64 {
    if x >= length {
        return 0.0;
    }
    let (here, end) = ((-x / mean).exp(), (-length / mean).exp());
    (here * (1.0 - x / length) - mean / length * (here - end)).max(0.0)
}

/// The probability that the use before is not in the trace.
fn unseen(mean: f64, length: f64) -> f64 {
    -mean / length * (-length / mean).exp_m1()
}

/// This many components of random memory, whose lines are at most `span` together.
pub fn random(times: &Times, count: usize, span: f64) -> Vec<Component> {
    let (length, cut) = (times.length, times.cut);
    let centre = |begin: f64, end: f64| (begin * end).sqrt().max(cut);
    let spread = |k: usize| cut * (length / cut).powf((k as f64 + 0.5) / count as f64);
    let mut means: Vec<f64> = (0..count).map(spread).collect();
    let mut weights = vec![times.total() / count as f64; count];
    let longest = LONGEST * length;
    for _ in 0..STEPS {
        let seen: Vec<f64> = means
            .iter()
            .map(|&m| tail(cut, m, length) + unseen(m, length))
            .collect();
        let mut uses = vec![0.0; count];
        let mut exposure = vec![0.0; count];
        let mut events = vec![0.0; count];
        let mut share =
            |mass: f64, of: &dyn Fn(f64) -> f64, waited: &dyn Fn(f64) -> f64, ended: bool| {
                let parts: Vec<f64> = (0..count)
                    .map(|k| weights[k] * of(means[k]) / seen[k].max(1e-300))
                    .collect();
                let all: f64 = parts.iter().sum();
                if all <= 0.0 {
                    return;
                }
                for k in 0..count {
                    let mine = mass * parts[k] / all;
                    uses[k] += mine;
                    exposure[k] += mine * waited(means[k]);
                    events[k] += if ended { mine } else { 0.0 };
                }
            };
        for &(begin, end, mass) in &times.ranges {
            let (begin, end) = (begin.max(cut), end.max(cut * 1.001));
            let of = |mean: f64| tail(begin, mean, length) - tail(end, mean, length);
            share(mass, &of, &|_| centre(begin, end) - cut, true);
        }
        if times.first > 0.0 {
            let waited =
                |mean: f64| (mean - length / (length / mean).exp_m1() - cut / 2.0).max(0.0);
            share(times.first, &|mean| unseen(mean, length), &waited, false);
        }
        for k in 0..count {
            weights[k] = uses[k];
            means[k] = (exposure[k] / events[k].max(1e-9)).clamp(cut, longest);
        }
    }
    let all = (weights.into_iter().zip(means)).filter(|(seen, _)| *seen > 0.0);
    let mut all: Vec<Component> = all
        .map(|(weight, mean)| {
            let visits = weight / (tail(cut, mean, length) + unseen(mean, length));
            let lines = visits * mean / length;
            Component {
                visits,
                lines,
                run: false,
            }
        })
        .collect();
    all.sort_by(|a, b| a.lines.total_cmp(&b.lines));
    // Lines that were never used are only known as far as the part of the address space goes. Where it is too small to
    // draw lines that are hardly used again, they were not drawn, but used one after the other.
    let mut left = span;
    for component in &mut all {
        let used = component.first(length);
        let once = component.mean(length) > length;
        component.lines = component.lines.min(left).max(1.0);
        if once && component.first(length) < 0.9 * used {
            component.lines = used;
            component.run = true;
        }
        left = (left - component.lines).max(1.0);
    }
    all
}

/// At most this many cycles, and what is passed only once, the last.
pub fn cycles(times: &Times, count: usize) -> Vec<Component> {
    let length = times.length;
    let groups = groups(&times.centres(), count);
    let mut all: Vec<Component> = groups
        .into_iter()
        .map(|(time, uses)| {
            let time = time.min(length * 0.98);
            let lines = uses * time / (length - time);
            Component {
                visits: uses + lines,
                lines,
                run: true,
            }
        })
        .collect();
    // Times are only known to a range, lines that were used are known exactly.
    let lines: f64 = all.iter().map(|c| c.lines).sum();
    if lines > 0.75 * times.first && lines > 0.0 {
        for component in &mut all {
            let to = component.lines * times.first / lines;
            component.visits += to - component.lines;
            component.lines = to;
        }
    } else {
        let once = times.first - lines;
        all.push(Component {
            visits: once,
            lines: once,
            run: true,
        });
    }
    all.retain(|c| c.visits > 0.0 && c.lines > 0.0);
    all
}

/// Neighbouring times in at most this many groups, which spread least: the mean time and the uses of each.
fn groups(seen: &[(f64, f64)], count: usize) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64, f64)> = (seen.iter())
        .map(|&(time, uses)| (time.ln() * uses, uses, 0.0))
        .collect();
    let mean = |(log, uses, _): &(f64, f64, f64)| log / uses;
    while all.len() > 1 {
        let cost = |at: usize| {
            let (a, b) = (&all[at], &all[at + 1]);
            a.1 * b.1 / (a.1 + b.1) * (mean(a) - mean(b)).powi(2)
        };
        let Some(at) = (0..all.len() - 1).min_by(|&a, &b| cost(a).total_cmp(&cost(b))) else {
            break;
        };
        // The spread of one range cannot be distinguished from none.
        let uses: f64 = all.iter().map(|group| group.1).sum();
        if all.len() <= count && cost(at) > 0.04 * uses {
            break;
        }
        let (log, more, _) = all.remove(at + 1);
        all[at].0 += log;
        all[at].1 += more;
    }
    all.iter()
        .map(|group| (mean(group).exp(), group.1))
        .collect()
}

/// Random memory whose lines are as popular as Zipf's law says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Popular {
    /// Lines.
    pub lines: f64,
    /// The exponent.
    pub skew: f64,
}

/// Ranks that stand for all of a law, in each doubling.
const RANKS: f64 = 4.0;

impl Popular {
    /// Calls with the probability of a line and the number of lines that have it.
    fn each(self, mut of: impl FnMut(f64, f64)) {
        let e = 1.0 - self.skew;
        let integral = |to: f64| {
            if e.abs() < 1e-6 {
                to.ln()
            } else {
                to.powf(e) / e
            }
        };
        let (low, high) = (0.5, self.lines + 0.5);
        let all = integral(high) - integral(low);
        let mut from = low;
        while from < high {
            // The first ranks one by one.
            let to = (from * f64::exp2(1.0 / RANKS)).max(from + 1.0).min(high);
            of(
                (integral(to) - integral(from)) / all / (to - from),
                to - from,
            );
            from = to;
        }
    }

    /// Uses after at least each of these times, with first uses, and lines that were used.
    pub fn beyond(self, uses: f64, times: &[f64], length: f64) -> (Vec<f64>, f64) {
        let mut beyond = vec![0.0; times.len()];
        let mut first = 0.0;
        self.each(|probability, lines| {
            let visits = uses * probability;
            let mean = length / visits.max(1e-12);
            let unseen = unseen(mean, length);
            first += lines * visits * unseen;
            for (sum, &time) in beyond.iter_mut().zip(times) {
                *sum += lines * visits * (tail(time, mean, length) + unseen);
            }
        });
        (beyond, first)
    }

    /// The law that has the lines which were used, and the least error of uses after these times.
    pub fn fitted(times: &Times, uses: f64, span: f64, at: &[f64]) -> Option<(Self, f64)> {
        let (most, least) = (span.max(times.first), times.first.max(2.0));
        let seen: Vec<f64> = at.iter().map(|&time| times.beyond(time)).collect();
        let with = |skew: f64| {
            let (mut low, mut high) = (least.ln(), most.ln());
            for _ in 0..24 {
                let middle = (low + high) / 2.0;
                let lines = middle.exp();
                let (_, first) = Self { lines, skew }.beyond(uses, &[], times.length);
                match first < times.first {
                    true => low = middle,
                    false => high = middle,
                }
            }
            let law = Self {
                lines: high.exp(),
                skew,
            };
            let (beyond, first) = law.beyond(uses, at, times.length);
            let error = |(found, wanted): (&f64, &f64)| (found - wanted).abs() / wanted.max(1e-9);
            let worst = beyond.iter().zip(&seen).map(error).fold(0.0, f64::max);
            (law, worst.max(error((&first, &times.first))))
        };
        let skews = (2..=75).map(|n| f64::from(n) * 0.02);
        skews.map(with).min_by(|a, b| a.1.total_cmp(&b.1))
    }
}
