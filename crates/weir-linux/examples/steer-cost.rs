//! Measures the cost of observing tenants of this host: `steer-cost WINDOWS PAGES PROBE GROUP…` watches
//! control groups in windows of 250 ms, and their pages at least every PAGES windows (0 for never). It times
//! loads if PROBE is 1, and limits no tenant. It prints the processor time of each 60 windows: at first,
//! pages are read more often than later.

use std::process::ExitCode;
use std::time::Instant;

use weir_linux::Root;
use weir_linux::steer::{Host, HostConfig, Probing, TenantScope};
use weir_model::events::EventLibrary;
use weir_model::units::Nanos;

/// A clock tick of proc(5): hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Windows of one figure.
const CHUNK: u32 = 60;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|n| n.parse::<u32>().ok());
    let (Some(windows), Some(look_at_pages), Some(probe)) = (number(), number(), number()) else {
        eprintln!("steer-cost WINDOWS PAGES PROBE GROUP…");
        return ExitCode::FAILURE;
    };
    let tenants: Vec<TenantScope> = arguments
        .filter_map(|name| {
            Some(TenantScope {
                scope: format!("cgroup:{name}").parse().ok()?,
                name,
                restrain: false,
            })
        })
        .collect();
    let count = tenants.len();
    let config = HostConfig {
        tenants,
        look_at_pages,
        probe: match probe {
            0 => Probing::Never,
            _ => Probing::Always,
        },
        ..HostConfig::default()
    };
    let mut host = match Host::open(&Root::live(), config, &EventLibrary::builtin(), None) {
        Ok((host, _)) => host,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    host.observe(Nanos(250e6));
    for _ in 0..windows / CHUNK {
        let (began, before) = (Instant::now(), ticks());
        for _ in 0..CHUNK {
            host.observe(Nanos(250e6));
        }
        let (passed, took) = (began.elapsed().as_secs_f64(), ticks() - before);
        let percent = 100.0 * took as f64 / TICKS_PER_SECOND / passed;
        println!("{count} tenants: {took} ticks in {passed:.1} s, {percent:.3} % of a core");
    }
    ExitCode::SUCCESS
}

/// Processor time of this process.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let fields = after.split(' ').skip(11).take(2);
    fields.filter_map(|n| n.parse::<u64>().ok()).sum()
}
