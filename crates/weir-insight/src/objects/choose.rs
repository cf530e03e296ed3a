//! The best placement of objects: what to move for a loss that is allowed, or for memory that is to be freed.

use weir_model::statistics::student_t975;

use super::ends::{Ends, Object};

/// What a placement is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// As many bytes on the slower tier as possible, for at most this loss, as a share of run time.
    Loss(f64),
    /// At least this many bytes there, for the least loss.
    Free(f64),
}

/// A placement: the share of each object that is on the slower tier, in the order of [`Ends::objects`].
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The shares.
    pub shares: Vec<f64>,
    /// Bytes that are there.
    pub bytes: f64,
    /// The loss that is expected.
    pub loss: f64,
}

/// Steps of the share of an object that is split: pages come in rounds of this many.
pub const ROUND: u32 = 20;

/// This many objects have few enough sets to look at all.
const ALL_SETS: usize = 12;

fn choice(ends: &Ends, shares: Vec<f64>) -> Choice {
    Choice {
        bytes: ends.bytes(&shares),
        loss: ends.loss(&shares),
        shares,
    }
}

/// Sets of whole objects: all of them, or the promising ones where there are too many.
pub fn sets(ends: &Ends) -> Vec<Choice> {
    match ends.objects.len() <= ALL_SETS {
        true => every_set(ends),
        false => grown(ends),
    }
}

/// Of these sets those of which none frees more for less, from none to all.
pub fn pareto(sets: &[Choice]) -> Vec<Choice> {
    let mut all = sets.to_vec();
    all.sort_by(|a, b| b.bytes.total_cmp(&a.bytes).then(a.loss.total_cmp(&b.loss)));
    let mut least = f64::INFINITY;
    all.retain(|choice| {
        let is_better = choice.loss < least || choice.bytes == 0.0;
        least = least.min(choice.loss);
        is_better
    });
    all.reverse();
    all
}

fn every_set(ends: &Ends) -> Vec<Choice> {
    let n = ends.objects.len();
    let set = |bits: u32| (0..n).map(|o| f64::from(bits >> o & 1)).collect();
    (0..1u32 << n).map(|bits| choice(ends, set(bits))).collect()
}

/// Sets that grow by the object that costs least for its bytes, and shrink by the one that costs most; each is then
/// improved by exchanges of one object for another.
fn grown(ends: &Ends) -> Vec<Choice> {
    let n = ends.objects.len();
    let mut all = Vec::new();
    for (start, to) in [(0.0, 1.0), (1.0, 0.0)] {
        let mut now = choice(ends, vec![start; n]);
        all.push(now.clone());
        for _ in 0..n {
            let with = |o: usize| {
                let mut shares = now.shares.clone();
                shares[o] = to;
                choice(ends, shares)
            };
            let next = (0..n)
                .filter(|&o| now.shares[o] != to)
                .map(with)
                .min_by(|a, b| price(&now, a).total_cmp(&price(&now, b)));
            let Some(next) = next else { break };
            now = exchanged(ends, next);
            all.push(now.clone());
        }
    }
    all
}

/// Loss a byte from one set to the next: to be small for bytes that go over, and large for those that come back.
fn price(now: &Choice, next: &Choice) -> f64 {
    (next.loss - now.loss) / (next.bytes - now.bytes).abs().max(1.0)
}

/// Exchanges one object for another as long as that frees as much for less.
fn exchanged(ends: &Ends, mut now: Choice) -> Choice {
    let n = now.shares.len();
    loop {
        let pairs = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        let swap = |(a, b): (usize, usize)| {
            let mut shares = now.shares.clone();
            shares.swap(a, b);
            choice(ends, shares)
        };
        let better = pairs
            .filter(|&(a, b)| now.shares[a] > now.shares[b])
            .map(swap)
            .filter(|c| c.bytes >= now.bytes && c.loss < now.loss - 1e-9)
            .min_by(|a, b| a.loss.total_cmp(&b.loss));
        match better {
            Some(better) => now = better,
            None => return now,
        }
    }
}

/// The best placement for a goal: whole objects, and unless `whole` one that is split. `None` if all objects together do
/// not reach it.
pub fn best(ends: &Ends, curve: &[Choice], goal: Goal, whole: bool) -> Option<Choice> {
    let mut all = curve.to_vec();
    if !whole {
        let split = |set: &Choice| splits(ends, set);
        all.extend(curve.iter().flat_map(split));
    }
    match goal {
        Goal::Loss(most) => (all.into_iter())
            // What moves nothing loses nothing, but for rounding.
            .filter(|choice| choice.loss <= most || choice.bytes == 0.0)
            .max_by(|a, b| a.bytes.total_cmp(&b.bytes).then(b.loss.total_cmp(&a.loss))),
        Goal::Free(least) => (all.into_iter())
            .filter(|choice| choice.bytes >= least)
            .min_by(|a, b| a.loss.total_cmp(&b.loss)),
    }
}

/// Of placements that move the same objects, this many are tried.
const ALIKE: usize = 2;
/// Placements are tried, too, that are expected to lose more than is allowed by this share of it, and as many points.
const BEYOND: (f64, f64) = (0.5, 0.01);

/// The placements to try for a goal, those first that promise most: expected losses are off by a few points. For a loss
/// a third are expected to miss it narrowly, and the last moves nothing.
pub fn candidates(
    ends: &Ends,
    sets: &[Choice],
    goal: Goal,
    whole: bool,
    most: usize,
) -> Vec<Choice> {
    let mut all = sets.to_vec();
    if !whole {
        all.extend(pareto(sets).iter().flat_map(|set| splits(ends, set)));
    }
    match goal {
        Goal::Free(least) => {
            all.retain(|choice| choice.bytes >= least);
            all.sort_by(|a, b| a.loss.total_cmp(&b.loss).then(b.bytes.total_cmp(&a.bytes)));
            varied(all, most)
        }
        Goal::Loss(loss) => {
            all.sort_by(|a, b| b.bytes.total_cmp(&a.bytes).then(a.loss.total_cmp(&b.loss)));
            let (within, mut beyond): (Vec<Choice>, Vec<Choice>) =
                all.into_iter().partition(|choice| choice.loss <= loss);
            beyond.retain(|choice| choice.loss <= loss * (1.0 + BEYOND.0) + BEYOND.1);
            beyond.reverse();
            let mut tried = varied(within, most - most / 3 - 1);
            tried.extend(varied(beyond, most / 3));
            tried.push(choice(ends, vec![0.0; ends.objects.len()]));
            tried
        }
    }
}

/// The first of these placements, no more than [`ALIKE`] of which move the same objects.
fn varied(all: Vec<Choice>, most: usize) -> Vec<Choice> {
    let moved =
        |choice: &Choice| -> Vec<bool> { choice.shares.iter().map(|share| *share > 0.0).collect() };
    let mut seen: Vec<Vec<bool>> = Vec::new();
    let mut first = all;
    first.retain(|choice| {
        let moved = moved(choice);
        let is_new = seen.len() < most && seen.iter().filter(|one| **one == moved).count() < ALIKE;
        if is_new {
            seen.push(moved);
        }
        is_new
    });
    first
}

/// A placement that moves as many bytes to this share of them is better if it loses less by this much of the run time, which
/// is more than measured losses are off.
const AS_MANY: (f64, f64) = (0.99, 0.02);

/// A pair of runs differs by about this share of the run time by chance.
const CHANCE: f64 = 0.01;

/// Whether a placement loses at most this. Several are tried, and the least of several measured losses is low by chance: one
/// that is expected to lose more is taken only if it was measured to lose less by more than chance.
fn keeps_to(most: f64, choice: &Choice, measured: f64) -> bool {
    let below = if choice.loss > most { CHANCE } else { 0.0 };
    measured <= most - below
}

/// Of placements whose loss was measured the best for a goal; `None` if none reaches it.
pub fn best_measured(tried: &[(Choice, f64)], goal: Goal) -> Option<&(Choice, f64)> {
    match goal {
        Goal::Loss(most) => {
            let keeps = |(choice, loss): &&(Choice, f64)| keeps_to(most, choice, *loss);
            let within = || tried.iter().filter(keeps);
            let first = within()
                .max_by(|a, b| a.0.bytes.total_cmp(&b.0.bytes).then(b.1.total_cmp(&a.1)))?;
            let cheap = within()
                .filter(|(choice, _)| choice.bytes >= AS_MANY.0 * first.0.bytes)
                .min_by(|a, b| a.1.total_cmp(&b.1))?;
            Some(if cheap.1 < first.1 - AS_MANY.1 {
                cheap
            } else {
                first
            })
        }
        Goal::Free(least) => (tried.iter())
            .filter(|(choice, _)| choice.bytes >= least)
            .min_by(|a, b| a.1.total_cmp(&b.1)),
    }
}

/// Half of the 95 % interval of what is expected, by how far it was off where it was measured: Student's t of errors whose mean
/// is 0. What is not off at all was measured before it was expected. `None` for fewer than two errors.
pub fn within(off: impl Iterator<Item = f64>) -> Option<f64> {
    let squares: Vec<f64> = off
        .filter(|off| off.abs() > 1e-9)
        .map(|off| off * off)
        .collect();
    let mean = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    (squares.len() > 1).then(|| student_t975(squares.len() as u32) * mean.sqrt())
}

/// The same by the placements that were measured.
pub fn within_of(tried: &[(Choice, f64)]) -> Option<f64> {
    within(tried.iter().map(|(choice, loss)| loss - choice.loss))
}

/// A set with one object more, of which a share goes over.
fn splits(ends: &Ends, set: &Choice) -> Vec<Choice> {
    let stay = (0..set.shares.len()).filter(|&o| set.shares[o] == 0.0);
    let split = |o: usize| {
        (1..ROUND).map(move |part| {
            let mut shares = set.shares.clone();
            shares[o] = f64::from(part) / f64::from(ROUND);
            choice(ends, shares)
        })
    };
    stay.flat_map(split).collect()
}

/// The least part of all bytes of an object that object-level interleaving looks at.
const LARGE: f64 = 0.1;

/// Object-level interleaving: large objects that draw more than the mean object are spread evenly over both tiers, the
/// others stay (after Wang et al., arXiv 2405.14209, which interleaves large objects with many accesses).
pub fn object_level(ends: &Ends) -> Choice {
    let drawn: Vec<f64> = (0..ends.objects.len()).map(|o| ends.drawn(o)).collect();
    let (all_drawn, all): (f64, f64) = (drawn.iter().sum(), ends.all());
    let share = |(object, drawn): (&Object, &f64)| {
        let part = object.bytes.get() as f64 / all.max(1.0);
        match part >= LARGE && *drawn > all_drawn / ends.objects.len() as f64 {
            true => 0.5,
            false => 0.0,
        }
    };
    choice(ends, ends.objects.iter().zip(&drawn).map(share).collect())
}

/// Every object spread by the same share: the best such placement for a goal, which asks nothing about objects.
pub fn uniform(ends: &Ends, goal: Goal) -> Option<Choice> {
    let at = |part: u32| {
        let share = f64::from(part) / f64::from(ROUND);
        choice(ends, vec![share; ends.objects.len()])
    };
    let all: Vec<Choice> = (0..=ROUND).map(at).collect();
    best(ends, &all, goal, true)
}
