//! The computer that runs Weir, for the record: a simulated result is repeatable anywhere, but its
//! duration and its bugs are not.

use std::fs;

use serde_json::{Value, json};

/// Processor, kernel, and what the process may use; a field that cannot be read is null.
pub fn fingerprint() -> Value {
    let read = |path| fs::read_to_string(path).ok();
    let processor = read("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    json!({
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "kernel": read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
        "processor": processor,
        "threads": std::thread::available_parallelism().ok().map(usize::from),
    })
}
