//! Events in a second that a replay places, and the most memory that it takes.
//!
//! ```text
//! cargo run --release -p weir-plan --example replay -- 1000 75
//! ```
//! The numbers are machines and days of a generated cluster.

use std::fs;
use std::time::Instant;

use weir_plan::pool::events::events;
use weir_plan::pool::replay::replay;
use weir_plan::trace::generate::{Generate, MACHINE};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let machines: u32 = words.next().map_or(Ok(1000), |word| word.parse())?;
    let days: f64 = words.next().map_or(Ok(75.0), |word| word.parse())?;
    let generate = Generate {
        machines,
        days,
        ..Generate::default()
    };
    let trace = generate.run()?;
    let events = events(&trace);
    println!("{} VMs, {} events", trace.len(), events.len());
    let before = peak();
    let began = Instant::now();
    let replayed = replay(&trace, &events, (MACHINE, machines as usize), &mut |_| true)?;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{seconds:.2} s, {:.0} events/s; {} placed, {} span two sockets",
        events.len() as f64 / seconds,
        replayed.placed,
        replayed.spanning
    );
    println!("peak memory: {before} before the replay, {} after", peak());
    Ok(())
}

/// The most memory that this process had.
fn peak() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.map_or("unknown".into(), |line| {
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    })
}
