//! Instructions of an access that is imported, which other programs and the clock cannot change: decoded and watched
//! (`cargo bench -p weir-trace --bench instructions [FORMAT]`), compared as those of the simulator are.

use std::process::ExitCode;

use weir_trace::Watch;

#[path = "../../weir-sim/benches/counted/mod.rs"]
mod counted;
mod written;

use counted::Counted;
use written::{FORMATS, Written, read};

/// Accesses of a trace.
const ACCESSES: u64 = 1_000_000;

fn main() -> ExitCode {
    let counted = Counted {
        unit: "access",
        stored: concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.csv"),
        names: &FORMATS,
        run,
    };
    counted.main()
}

/// Writes a trace, and imports it where that is asked for; its accesses.
fn run(name: &str, import: bool) -> u64 {
    let written = Written::new(ACCESSES);
    if !import {
        return 0;
    }
    let mut watch = Watch::new();
    read(written.of(name), &mut watch);
    watch.accesses()
}
