//! Instructions per line request, which other programs and the clock cannot change.
//!
//! `cargo bench -p weir-sim --bench instructions [NAME]` runs itself under `valgrind --tool=callgrind`, once
//! with a window and once without, and divides the difference by the lines of the window. It prints how far
//! each count is from that of `instructions.csv`, and again those that are further than 3 %; none is an error.
//! `WEIR_UPDATE=1` writes the file anew. Without valgrind it says so and exits without an error.

use std::process::ExitCode;

mod counted;
mod workloads;

use counted::Counted;

fn main() -> ExitCode {
    let names: Vec<&str> = workloads::ALL.iter().map(|w| w.name).collect();
    let counted = Counted {
        unit: "line",
        stored: concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.csv"),
        names: &names,
        run,
    };
    counted.main()
}

/// Runs a workload, and its window where that is asked for; the lines of the window.
fn run(name: &str, window: bool) -> u64 {
    let mut lines = 0;
    for workload in workloads::ALL.iter().filter(|w| w.name == name) {
        let mut machine = workload.start();
        if window {
            lines += workload.advance(&mut machine, workload.window);
        }
    }
    lines
}
