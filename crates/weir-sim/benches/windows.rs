//! Line requests per second of the engine in its best short windows.
//!
//! `cargo bench -p weir-sim --bench windows [PART OF A NAME]`: each window takes some milliseconds, so that in some of many
//! windows no other program uses the processor. On a busy machine this gives the figure that `--bench engine`
//! gives on a quiet one.

use std::time::Instant;

mod workloads;

/// Windows of each workload.
const MANY: usize = 400;

fn main() {
    if !std::env::args().any(|a| a == "--bench") {
        // `cargo test --all-targets` checks only that it starts.
        return;
    }
    println!("{:20} {:>12} {:>12}", "workload", "best decile", "median");
    let named = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let is_named = |name: &str| named.as_ref().is_none_or(|part| name.contains(part));
    for workload in workloads::ALL.iter().filter(|w| is_named(w.name)) {
        let mut machine = workload.start();
        let mut rates: Vec<f64> = (0..MANY)
            .map(|_| {
                let from = Instant::now();
                let lines = workload.advance(&mut machine, workload.window);
                lines as f64 / from.elapsed().as_secs_f64() / 1e6
            })
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        let (best, median) = (rates[MANY * 9 / 10], rates[MANY / 2]);
        println!("{:20} {best:>10.2} M {median:>10.2} M", workload.name);
    }
}
