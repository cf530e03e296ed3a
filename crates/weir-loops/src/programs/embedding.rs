//! Reduction of embeddings as in DLRM (Naumov et al., arXiv 1906.00091): for each sample and table the sum of the rows that
//! its indices name.

use std::io;
use std::time::Instant;

use super::keys::{Keys, Popular};
use super::report::{Given, Report, Step};
use super::threads::{parts, tasks};
use crate::kernels::Random;

const TABLES: usize = 8;
/// Look-ups of a sample in each table.
const POOL: usize = 80;
/// Samples of a repetition.
const SAMPLES: usize = 4096;
/// One in this many samples is computed again.
const CHECKED: usize = 16;

/// An element. Small whole numbers, so that sums do not depend on their order.
fn element(seed: u64, table: usize, row: usize, column: usize) -> f32 {
    let of_row = Random::new(seed ^ ((table as u64) << 56) ^ row as u64).word();
    ((of_row >> (column % 8 * 8)) & 0xff) as f32 - 128.0
}

/// Makes tables and indices, and sums.
pub fn run(given: &Given, _: &[String], report: &mut Report<'_>) -> io::Result<()> {
    let width = (given.record as usize / 4).clamp(8, 1024);
    let rows = (given.bytes as usize / TABLES / width / 4).max(2);
    report.version(&format!(
        "{TABLES} tables of {rows} rows of {width} numbers, {POOL} look-ups each"
    ))?;
    let tables: Vec<Vec<f32>> = tasks(given.threads, TABLES, |table| {
        let row = |row| (0..width).map(move |at| element(given.seed, table, row, at));
        let mut filled = Vec::with_capacity(rows * width);
        (0..rows).for_each(|n| filled.extend(row(n)));
        filled
    });
    let keys = Keys::new(Popular::Scattered, rows as u64, given.skew);
    let mut random = Random::new(given.seed);
    let indices: Vec<u32> = (0..SAMPLES * TABLES * POOL)
        .map(|_| keys.draw(&mut random, rows as u64) as u32)
        .map(|index| index % rows as u32)
        .collect();
    let mut sums = vec![0.0_f32; SAMPLES * TABLES * width];
    for trial in 0..given.trials {
        let began = Instant::now();
        reduce(given.threads, &tables, &indices, width, &mut sums);
        let time = began.elapsed();
        report.look()?;
        let right = (0..SAMPLES * TABLES).step_by(CHECKED).all(|at| {
            let table = at % TABLES;
            let named = &indices[at * POOL..(at + 1) * POOL];
            (0..width).all(|column| {
                let part = |&row: &u32| element(given.seed, table, row as usize, column);
                sums[at * width + column] == named.iter().map(part).sum::<f32>()
            })
        });
        let total: f64 = sums.iter().map(|&sum| f64::from(sum)).sum();
        let step = Step::trial(trial, time, SAMPLES as u64, total);
        report.figure(
            &step.of((SAMPLES * TABLES * POOL) as u64, "look-ups"),
            right,
            "a sum differs from that of the rows as they were made",
        )?;
    }
    Ok(())
}

fn reduce(threads: usize, tables: &[Vec<f32>], indices: &[u32], width: usize, sums: &mut [f32]) {
    let samples = SAMPLES.div_ceil(threads);
    let own = sums.chunks_mut(samples * TABLES * width);
    let own = own.zip(indices.chunks(samples * TABLES * POOL)).collect();
    parts(threads, own, |(sums, indices): (&mut [f32], &[u32])| {
        let pools = sums.chunks_mut(width).zip(indices.chunks(POOL));
        for ((sum, pool), table) in pools.zip(tables.iter().cycle()) {
            sum.fill(0.0);
            for &row in pool {
                let row = &table[row as usize * width..][..width];
                sum.iter_mut().zip(row).for_each(|(sum, one)| *sum += one);
            }
        }
    });
}
