//! Instructions of a line that is simulated and of an access that is imported, which other programs and the clock
//! cannot change.
//!
//! `weir-counted lines|accesses [NAME]` runs itself under `valgrind --tool=callgrind`, once with a window and once
//! without, and divides the difference by the lines of the window. It prints how far each count is from that of
//! `lines.csv` or `accesses.csv`, and again those that are further than 3 %; none is an error. `WEIR_UPDATE=1`
//! replaces the file. Without valgrind it says so and exits without an error.

use std::process::ExitCode;

use weir_trace::Watch;

mod counted;
#[allow(dead_code)]
#[path = "../../weir-sim/benches/workloads/mod.rs"]
mod workloads;
#[allow(dead_code)]
#[path = "../../weir-trace/benches/written/mod.rs"]
mod written;

use counted::Counted;
use written::{FORMATS, Written, read};

/// Accesses of a trace.
const ACCESSES: u64 = 1_000_000;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let lines: Vec<&str> = workloads::ALL.iter().map(|w| w.name).collect();
    let counted = match args.next().as_deref() {
        Some("lines") => Counted {
            experiment: "lines",
            unit: "line",
            stored: concat!(env!("CARGO_MANIFEST_DIR"), "/lines.csv"),
            names: &lines,
            run: simulate,
        },
        Some("accesses") => Counted {
            experiment: "accesses",
            unit: "access",
            stored: concat!(env!("CARGO_MANIFEST_DIR"), "/accesses.csv"),
            names: &FORMATS,
            run: import,
        },
        _ => {
            eprintln!("usage: weir-counted lines|accesses [NAME]");
            return ExitCode::from(2);
        }
    };
    counted.main(args.next().as_deref())
}

/// Runs a workload, and its window where that is asked for; the lines of the window.
fn simulate(name: &str, window: bool) -> u64 {
    let mut lines = 0;
    for workload in workloads::ALL.iter().filter(|w| w.name == name) {
        let mut machine = workload.start();
        if window {
            lines += workload.advance(&mut machine, workload.window);
        }
    }
    lines
}

/// Writes a trace, and imports it where that is asked for; its accesses.
fn import(name: &str, window: bool) -> u64 {
    let written = Written::new(ACCESSES);
    if !window {
        return 0;
    }
    let mut watch = Watch::new();
    read(written.of(name), &mut watch);
    watch.accesses()
}
