//! Operators of a column store, each over as many bytes as it says: a scan with a predicate, the build and the probe of a hash
//! join, a merge of sorted runs, an aggregation, the merge of a delta into a column, and look-ups by an index.
//!
//! The bytes are those of lines that a memory far larger than the caches has to move, so that the rate of an operator stands
//! with what a model draws from memory for its description: a line that is written is read before it, and one line comes
//! for each look-up in a table.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::report::{Given, Report, Step};
use super::threads::{parts, ranges, tasks};
use crate::kernels::Random;

const LINE: u64 = 64;
/// A task of a parallel loop, in rows.
const TASK: usize = 1 << 16;
/// Runs that are merged.
const RUNS: usize = 16;
/// Groups, at most.
const GROUPS: usize = 1 << 20;
/// Share of a column that its delta has, in percent.
const DELTA: usize = 5;
/// Different values of a column with a dictionary.
const VALUES: usize = 1 << 16;

/// An operator over its data: its rows, the bytes that it moves, and how it runs.
struct Operator {
    rows: usize,
    bytes: u64,
    run: Box<dyn FnMut(usize) -> Answer>,
}

/// What it found in which time.
struct Answer {
    time: Duration,
    digest: u64,
    right: bool,
}

/// Makes the data of one operator, and runs it.
pub fn run(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    let mut random = Random::new(given.seed);
    let make = match given.variant.as_str() {
        "build" => build,
        "probe" => probe,
        "sort" => sort,
        "group" => group,
        "merge" => merge,
        "lookup" => look_up,
        _ => scan,
    };
    let mut operator = make(given.bytes, &mut random);
    report.version(&format!(
        "{} of {} rows, {:.1} B each",
        given.variant,
        operator.rows,
        operator.bytes as f64 / operator.rows.max(1) as f64
    ))?;
    for trial in 0..given.trials {
        let answer = (operator.run)(given.threads);
        report.look()?;
        let digest = format!("{:x}", answer.digest);
        let step = Step::trial(trial, answer.time, operator.rows as u64, digest);
        let step = step.of(operator.bytes / 1_000_000, "MB");
        let otherwise = "its answer is not that of the rows as they were made";
        report.figure(&step, answer.right, otherwise)?;
    }
    Ok(())
}

/// The answer of an operator that is done: its digest and whether that is right are not of its time.
fn answer(began: Instant, digest: impl FnOnce() -> u64, right: impl FnOnce(u64) -> bool) -> Answer {
    let time = began.elapsed();
    let digest = digest();
    Answer {
        time,
        digest,
        right: right(digest),
    }
}

fn digest(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0, |sum, word| {
        sum.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    })
}

/// Values of 4 B below a bound, as bits.
fn scan(bytes: u64, random: &mut Random) -> Operator {
    let rows = (bytes as usize / 4 / 64 * 64).max(64);
    let column: Vec<u32> = (0..rows).map(|_| random.word() as u32).collect();
    let bound = u32::MAX / 4;
    let wanted = column.iter().filter(|&&value| value < bound).count() as u64;
    let mut bits = vec![0_u64; rows / 64];
    let run = move |threads: usize| {
        let began = Instant::now();
        let own = bits
            .chunks_mut(TASK / 64)
            .zip(column.chunks(TASK))
            .collect();
        let found = parts(threads, own, |(bits, values): (&mut [u64], &[u32])| {
            let mut found = 0;
            for (word, values) in bits.iter_mut().zip(values.chunks_exact(64)) {
                let below = values.iter().enumerate();
                *word = below.fold(0, |word, (n, &value)| {
                    word | (u64::from(value < bound) << n)
                });
                found += u64::from(word.count_ones());
            }
            found
        });
        let found = found.into_iter().sum();
        answer(began, || found, |found| found == wanted)
    };
    Operator {
        rows,
        // The column, and its bits twice.
        bytes: rows as u64 * 4 + rows as u64 / 8 * 2,
        run: Box::new(run),
    }
}

/// Slots of 16 B in a table that is half full at most: a key that is not zero, and its value.
struct HashTable {
    slots: Vec<[AtomicU64; 2]>,
}

impl HashTable {
    fn new(rows: usize) -> Self {
        let empty = || [AtomicU64::new(0), AtomicU64::new(0)];
        Self {
            slots: (0..(2 * rows).next_power_of_two())
                .map(|_| empty())
                .collect(),
        }
    }

    fn clear(&self) {
        for [key, value] in &self.slots {
            key.store(0, Relaxed);
            value.store(0, Relaxed);
        }
    }

    /// Where a search for a key begins.
    fn place(&self, key: u64) -> usize {
        let shift = 64 - self.slots.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
    }

    fn slots_from(&self, key: u64) -> impl Iterator<Item = &[AtomicU64; 2]> {
        let place = self.place(key);
        (0..self.slots.len()).map(move |step| &self.slots[(place + step) % self.slots.len()])
    }

    fn insert(&self, [own, value]: [u64; 2]) {
        for [key, slot] in self.slots_from(own) {
            if key.compare_exchange(0, own, Relaxed, Relaxed).is_ok() {
                slot.store(value, Relaxed);
                return;
            }
        }
    }

    fn get(&self, own: u64) -> Option<u64> {
        for [key, value] in self.slots_from(own) {
            match key.load(Relaxed) {
                0 => return None,
                key if key == own => return Some(value.load(Relaxed)),
                _ => {}
            }
        }
        None
    }
}

/// Rows with distinct keys, in no order.
fn tuples(rows: usize, random: &mut Random) -> Vec<[u64; 2]> {
    // Odd factors permute numbers.
    let factor = random.word() | 1;
    let key = |n: u64| (n + 1).wrapping_mul(factor);
    (0..rows as u64).map(|n| [key(n), n]).collect()
}

/// A hash table of rows of 16 B.
fn build(bytes: u64, random: &mut Random) -> Operator {
    // A row, and its share of the table: 32 to 64 B.
    let rows = (bytes as usize / 80).max(64);
    let rows_in = tuples(rows, random);
    let table = HashTable::new(rows);
    let wanted = digest(rows_in.iter().map(|row| row[0] ^ row[1]));
    let run = move |threads: usize| {
        let began = Instant::now();
        let insert =
            |from: usize, to: usize| rows_in[from..to].iter().for_each(|row| table.insert(*row));
        ranges(threads, rows_in.len(), TASK, &insert);
        let slots = || {
            table
                .slots
                .iter()
                .map(|[key, value]| key.load(Relaxed) ^ value.load(Relaxed))
        };
        let answer = answer(began, || digest(slots()), |seen| seen == wanted);
        table.clear();
        answer
    };
    Operator {
        rows,
        bytes: rows as u64 * (16 + 2 * LINE),
        run: Box::new(run),
    }
}

/// Rows of 16 B whose keys are looked up in a hash table of a quarter as many.
fn probe(bytes: u64, random: &mut Random) -> Operator {
    let rows = (bytes as usize / 36).max(256);
    let built = tuples(rows / 4, random);
    let table = HashTable::new(built.len());
    built.iter().for_each(|row| table.insert(*row));
    let probes: Vec<[u64; 2]> = (0..rows)
        .map(|n| [built[random.below(built.len())][0], n as u64])
        .collect();
    let number = |key: u64| built.iter().position(|row| row[0] == key);
    // A sample is looked for row by row.
    let sample: Vec<(u64, Option<usize>)> = (probes.iter().step_by(rows / 8 + 1))
        .map(|row| (row[0], number(row[0])))
        .collect();
    let run = move |threads: usize| {
        let began = Instant::now();
        let chunks = probes.chunks(TASK).collect();
        let found = parts(threads, chunks, |rows: &[[u64; 2]]| {
            let (mut sum, mut found) = (0_u64, 0_u64);
            for [key, value] in rows {
                if let Some(other) = table.get(*key) {
                    sum = sum.wrapping_add(other.wrapping_mul(31) ^ value);
                    found += 1;
                }
            }
            (sum, found)
        });
        let sum = found.iter().fold(0_u64, |sum, one| sum.wrapping_add(one.0));
        let all: u64 = found.iter().map(|one| one.1).sum();
        let alike =
            |(key, place): &(u64, Option<usize>)| table.get(*key) == place.map(|n| n as u64);
        let right = |_| all == probes.len() as u64 && sample.iter().all(alike);
        answer(began, || sum, right)
    };
    Operator {
        rows,
        bytes: rows as u64 * (16 + LINE),
        run: Box::new(run),
    }
}

/// Sorted runs of keys of 8 B, merged into one.
fn sort(bytes: u64, random: &mut Random) -> Operator {
    let each = (bytes as usize / 16 / RUNS).max(64);
    let mut runs: Vec<Vec<u64>> = (0..RUNS)
        .map(|_| (0..each).map(|_| random.word()).collect())
        .collect();
    runs.iter_mut().for_each(|run| run.sort_unstable());
    let wanted = digest(runs.iter().flatten().copied());
    let rows = each * RUNS;
    let run = move |threads: usize| {
        let began = Instant::now();
        // Each task has a range of keys, whose part of each run is found by halving.
        let step = u64::MAX / (threads as u64).max(1);
        let merged = tasks(threads, threads, |task| {
            let from = step.saturating_mul(task as u64);
            let to = match task + 1 == threads {
                true => None,
                false => Some(from.saturating_add(step)),
            };
            let part = |run: &Vec<u64>| {
                let begin = run.partition_point(|&key| key < from);
                let end = to.map_or(run.len(), |to| run.partition_point(|&key| key < to));
                (begin, end)
            };
            let mut heads: Vec<(usize, usize)> = runs.iter().map(part).collect();
            let count = heads.iter().map(|(from, to)| to - from).sum();
            let mut out: Vec<u64> = Vec::with_capacity(count);
            for _ in 0..count {
                let least = (0..RUNS)
                    .filter(|&n| heads[n].0 < heads[n].1)
                    .min_by_key(|&n| runs[n][heads[n].0]);
                let Some(n) = least else { break };
                out.push(runs[n][heads[n].0]);
                heads[n].0 += 1;
            }
            out
        });
        let keys = || merged.iter().flatten().copied();
        let right = |seen| seen == wanted && keys().is_sorted();
        answer(began, || digest(keys()), right)
    };
    Operator {
        rows,
        // Read, and written after it was read.
        bytes: rows as u64 * 24,
        run: Box::new(run),
    }
}

/// Rows of 16 B, added up by groups of 32 B.
fn group(bytes: u64, random: &mut Random) -> Operator {
    let rows = (bytes as usize / 17).max(64);
    let groups = GROUPS.min(rows);
    let input: Vec<[u64; 2]> = (0..rows)
        .map(|_| [random.below(groups) as u64, random.word() >> 32])
        .collect();
    let wanted = input
        .iter()
        .fold(0_u64, |sum, row| sum.wrapping_add(row[1]));
    let table: Vec<[AtomicU64; 4]> = (0..groups)
        .map(|_| std::array::from_fn(|_| AtomicU64::new(0)))
        .collect();
    let run = move |threads: usize| {
        let began = Instant::now();
        ranges(threads, input.len(), TASK, &|from, to| {
            for [of, value] in &input[from..to] {
                let [sum, count, ..] = &table[*of as usize];
                sum.fetch_add(*value, Relaxed);
                count.fetch_add(1, Relaxed);
            }
        });
        let time = began.elapsed();
        let (mut sum, mut count, mut seen) = (0_u64, 0, 0_u64);
        for (n, group) in table.iter().enumerate() {
            let [one, rows] = [0, 1].map(|column| group[column].swap(0, Relaxed));
            sum = sum.wrapping_add(one);
            count += rows;
            seen = seen.wrapping_add(one.wrapping_mul(n as u64 | 1));
        }
        Answer {
            time,
            digest: seen,
            right: sum == wanted && count == input.len() as u64,
        }
    };
    Operator {
        rows,
        bytes: rows as u64 * 16,
        run: Box::new(run),
    }
}

/// A column of codes of 4 B and its dictionary, into which a delta of new values is merged.
fn merge(bytes: u64, random: &mut Random) -> Operator {
    let rows = (bytes as usize / 8).max(4096);
    let mut dictionary: Vec<u64> = (0..VALUES.min(rows)).map(|_| random.word() >> 1).collect();
    dictionary.sort_unstable();
    dictionary.dedup();
    let old: Vec<u32> = (0..rows)
        .map(|_| random.below(dictionary.len()) as u32)
        .collect();
    let fresh = |n: usize, random: &mut Random| match n % 4 {
        0 => random.word() >> 1,
        _ => dictionary[random.below(dictionary.len())],
    };
    let delta: Vec<u64> = (0..rows * DELTA / 100).map(|n| fresh(n, random)).collect();
    let old_sum = digest(old.iter().map(|&code| dictionary[code as usize]));
    let wanted = old_sum.wrapping_add(digest(delta.iter().copied()));
    let all = old.len() + delta.len();
    let run = move |threads: usize| {
        let began = Instant::now();
        let mut merged: Vec<u64> = dictionary.iter().chain(&delta).copied().collect();
        merged.sort_unstable();
        merged.dedup();
        let code = |value: u64| merged.partition_point(|&one| one < value) as u32;
        let new: Vec<u32> = dictionary.iter().map(|&value| code(value)).collect();
        let mut codes = vec![0_u32; all];
        let (main, tail) = codes.split_at_mut(old.len());
        let own = main.chunks_mut(TASK).zip(old.chunks(TASK)).collect();
        parts(threads, own, |(to, from): (&mut [u32], &[u32])| {
            for (to, &from) in to.iter_mut().zip(from) {
                *to = new[from as usize];
            }
        });
        let own = tail.chunks_mut(TASK).zip(delta.chunks(TASK)).collect();
        parts(threads, own, |(to, from): (&mut [u32], &[u64])| {
            for (to, &from) in to.iter_mut().zip(from) {
                *to = code(from);
            }
        });
        let values = || codes.iter().map(|&code| merged[code as usize]);
        let right = |seen| seen == wanted && merged.is_sorted();
        answer(began, || digest(values()), right)
    };
    Operator {
        rows: all,
        // Old codes are read, new ones are written after they were read.
        bytes: rows as u64 * 4 + all as u64 * 8,
        run: Box::new(run),
    }
}

/// Keys of a node of an index.
const FAN: usize = 8;

/// Rows of four columns of 8 B, found by an index whose nodes are lines.
fn look_up(bytes: u64, random: &mut Random) -> Operator {
    let keys = (bytes as usize / 48).max(512);
    // The lowest level is the column of keys itself; each above has the first key of each node of the next.
    let mut levels: Vec<Vec<u64>> = vec![(0..keys as u64).map(|n| 3 * n).collect()];
    while levels.last().is_some_and(|level| level.len() > FAN) {
        let above = levels
            .last()
            .map(|level| level.iter().step_by(FAN).copied().collect());
        levels.extend(above);
    }
    let columns: Vec<Vec<u64>> = (1..5)
        .map(|n| (0..keys as u64).map(|row| row.wrapping_mul(n)).collect())
        .collect();
    let wanted: Vec<u32> = (0..(keys / 4).max(256))
        .map(|_| random.below(keys) as u32)
        .collect();
    let right = digest(wanted.iter().map(|&row| 10 * u64::from(row)));
    let rows = wanted.len();
    let run = move |threads: usize| {
        let began = Instant::now();
        let chunks = wanted.chunks(TASK / 16).collect();
        let found = parts(threads, chunks, |rows: &[u32]| {
            digest(rows.iter().map(|&row| {
                let key = 3 * u64::from(row);
                let descend = |at: usize, level: &Vec<u64>| {
                    let node = &level[at * FAN..((at + 1) * FAN).min(level.len())];
                    at * FAN + node.partition_point(|&one| one <= key).max(1) - 1
                };
                let at = levels.iter().rev().fold(0, descend);
                columns.iter().map(|column| column[at]).sum::<u64>()
            }))
        });
        let seen = found.into_iter().fold(0_u64, u64::wrapping_add);
        answer(began, || seen, |seen| seen == right)
    };
    Operator {
        rows,
        // The two lowest levels, whose nodes are not in caches, and a line of each column.
        bytes: rows as u64 * 6 * LINE,
        run: Box::new(run),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_operator_is_right_on_any_number_of_threads(bytes in 1_u64..200_000, seed: u64, threads in 1_usize..5) {
            for make in [scan, build, probe, sort, group, merge, look_up] {
                let mut operator = make(bytes, &mut Random::new(seed));
                let first = (operator.run)(1);
                prop_assert!(first.right);
                // Again, and on several threads, it has the same answer.
                let again = (operator.run)(threads);
                prop_assert!(again.right && again.digest == first.digest);
            }
        }
    }
}
