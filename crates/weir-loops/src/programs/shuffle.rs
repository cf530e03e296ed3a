//! A shuffle as Spark's sort-based one: tasks that map write their records in the order of partitions, and tasks that reduce
//! merge what all of them have for one partition.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::Instant;

use super::report::{Given, Report, Step};
use super::threads::tasks;
use crate::kernels::Random;

/// 128 bytes, the first word the key.
type Record = [u64; 16];
const BYTES: u64 = 128;
const PARTITIONS: usize = 200;
/// Tasks that map.
const TASKS: usize = 16;

/// What a task that maps writes: records in the order of partition and key, and where each partition starts.
struct Written {
    records: Vec<Record>,
    starts: Vec<usize>,
}

/// Sums over records which no order changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    count: u64,
    keys: u64,
    payload: u64,
}

impl Sums {
    fn add(&mut self, record: &Record) {
        let payload = record[1..]
            .iter()
            .fold(record[0], |sum, &word| sum.rotate_left(7) ^ word);
        self.count += 1;
        self.keys = self.keys.wrapping_add(record[0]);
        self.payload = self.payload.wrapping_add(payload);
    }

    fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut sums = Self::default();
        records.into_iter().for_each(|record| sums.add(record));
        sums
    }
}

fn partition(key: u64) -> usize {
    ((u128::from(key) * PARTITIONS as u128) >> 64) as usize
}

fn map(input: &[Record]) -> Written {
    let mut places: Vec<u32> = (0..input.len() as u32).collect();
    places.sort_unstable_by_key(|&place| input[place as usize][0]);
    let records: Vec<Record> = places.iter().map(|&place| input[place as usize]).collect();
    let start = |n| records.partition_point(|record| partition(record[0]) < n);
    let starts = (0..=PARTITIONS).map(start).collect();
    Written { records, starts }
}

fn reduce(written: &[Written], n: usize) -> Vec<Record> {
    let part = |of: &Written| (of.starts[n], of.starts[n + 1]);
    let parts: Vec<(usize, usize)> = written.iter().map(part).collect();
    let mut merged = Vec::with_capacity(parts.iter().map(|(from, to)| to - from).sum());
    let head = |task: usize, at: usize| {
        let left = at < parts[task].1;
        left.then(|| Reverse((written[task].records[at][0], task, at)))
    };
    let heads = parts.iter().enumerate();
    let mut heap: BinaryHeap<_> = heads
        .filter_map(|(task, (from, _))| head(task, *from))
        .collect();
    while let Some(Reverse((_, task, at))) = heap.pop() {
        merged.push(written[task].records[at]);
        heap.extend(head(task, at + 1));
    }
    merged
}

/// Makes records, and shuffles them.
pub fn run(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    // The input, what the map tasks write, and what the others merge.
    let each = (given.bytes / 3 / BYTES / TASKS as u64).max(PARTITIONS as u64) as usize;
    report.version(&format!(
        "{} records of {BYTES} B, {TASKS} tasks that map, {PARTITIONS} partitions",
        each * TASKS
    ))?;
    let input = tasks(given.threads, TASKS, |task| {
        let mut random = Random::new(given.seed ^ ((task as u64) << 48));
        (0..each)
            .map(|_| std::array::from_fn(|_| random.word()))
            .collect::<Vec<Record>>()
    });
    let before = Sums::of(input.iter().flatten());
    let all = before.count;
    for trial in 0..given.trials {
        let began = Instant::now();
        let written = tasks(given.threads, TASKS, |task| map(&input[task]));
        let mapped = began.elapsed();
        let again = Instant::now();
        let merged = tasks(given.threads, PARTITIONS, |n| reduce(&written, n));
        let reduced = again.elapsed();
        report.look()?;
        let after = Sums::of(merged.iter().flatten());
        let sorted = merged.iter().flatten().is_sorted_by_key(|record| record[0]);
        let check = format!("{:x}-{:x}", after.keys, after.payload);
        for (name, time) in [("map", mapped), ("reduce", reduced)] {
            let step = Step {
                name: name.into(),
                ..Step::trial(trial, time, all, &check)
            };
            let failure = "records are lost, changed or out of order after the merge";
            report.figure(&step.of(all, "records"), sorted && after == before, failure)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_shuffle_keeps_all_and_sorts(keys in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..60), 1..5)) {
            let of = |key: &u64| std::array::from_fn(|n| key.wrapping_mul(n as u64 + 1));
            let input: Vec<Vec<Record>> = keys.iter().map(|keys| keys.iter().map(of).collect()).collect();
            let written = tasks(2, input.len(), |task| map(&input[task]));
            let merged: Vec<Record> = tasks(2, PARTITIONS, |n| reduce(&written, n)).concat();
            prop_assert!(merged.is_sorted_by_key(|record| record[0]));
            prop_assert_eq!(Sums::of(&merged), Sums::of(input.iter().flatten()));
        }
    }
}
