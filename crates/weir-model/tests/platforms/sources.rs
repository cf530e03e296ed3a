//! Values next to the logs and published rows that they come from.

use weir_model::access::Op;
use weir_model::platform::{Definition, Library, Provenance};
use weir_model::published;
use weir_model::units::{Bytes, GbPerSec, Gigahertz, Nanos};

use super::compose;

#[test]
fn one_core_of_sapphire_rapids_loads_what_the_logs_show() {
    let logs = include_str!("../../../../published/measured/eurosys24_mlc.csv");
    // One core of the DDR5 server, reads only, in order: the peak over all delays.
    let measured = logs
        .lines()
        .filter(|line| line.starts_with("ddr5,m,1,0,0,"))
        .filter_map(|line| line.split(',').nth(7)?.parse::<f64>().ok())
        .fold(0.0, f64::max)
        / 1000.0;
    let ours = compose("spr2s").host.core.load_peak.value.get();
    assert!(
        (ours - measured).abs() < 0.05 * measured,
        "{ours} and {measured}"
    );
}

#[test]
fn a_machine_that_names_a_log_is_in_it_and_agrees_with_it() {
    let mut checked = 0;
    for (expression, idle, read) in [
        ("spr8480", Nanos(113.0), GbPerSec(264.0)),
        ("eurosys24+none", Nanos(97.0), GbPerSec(69.3)),
        ("eurosys24", Nanos(250.0), GbPerSec(46.1)),
        ("eurosys24+leo-x16@remote", Nanos(478.0), GbPerSec(20.4)),
    ] {
        let platform = compose(expression);
        let curves = platform.measured_curves();
        let tier = &platform.topology().tiers[platform.devices.len()].name;
        let reads = (curves.iter()).filter(|(on, c)| {
            on == tier && c.traffic.op == Op::Ld && c.threads.is_none_or(|n| n == 8)
        });
        for (_, curve) in reads {
            let least = curve
                .points
                .iter()
                .map(|p| p.latency.get())
                .fold(1e9, f64::min);
            assert!(
                (least / idle.get() - 1.0).abs() < 0.03,
                "{expression}: {least}"
            );
            let peak = curve.peak().get();
            assert!(
                (peak / read.get() - 1.0).abs() < 0.01,
                "{expression}: {peak}"
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 4);
    for definition in Library::builtin().list() {
        let log = match definition {
            Definition::Host(host) => host.log.as_ref(),
            Definition::Device(device) => device.log.as_ref(),
            Definition::Storage(_) => None,
        };
        if let Some(log) = log {
            let curves = published::measured::builtin(log, Gigahertz(3.0));
            assert!(!curves.is_empty(), "{log:?} names no curve");
        }
    }
}

/// The ids of published rows in a source text: `SUP-012`.
fn ids(source: &str) -> Vec<&str> {
    source
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| {
            word.len() == 7 && word.as_bytes()[3] == b'-' && word[4..].parse::<u32>().is_ok()
        })
        .collect()
}

/// A shown value in the unit of a published row.
fn in_unit(value: &str, unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(value.parse::<Nanos>().ok()?.get()),
        "us" => Some(value.parse::<Nanos>().ok()?.get() / 1000.0),
        "GB/s" => Some(value.parse::<GbPerSec>().ok()?.get()),
        "GHz" => Some(value.parse::<Gigahertz>().ok()?.get()),
        "GB" => Some(value.parse::<Bytes>().ok()?.get() as f64 / f64::from(1 << 30)),
        "MB" => Some(value.parse::<Bytes>().ok()?.get() as f64 / f64::from(1 << 20)),
        // Those of DirectCXL's prototype, whose cores run at 100 MHz.
        "cycles" => match value.strip_suffix(" clk") {
            Some(cycles) => cycles.parse().ok(),
            None => Some(value.parse::<Nanos>().ok()?.get() / 10.0),
        },
        "MT/s" => value.rsplit('-').next()?.parse().ok(),
        _ => value.parse().ok(),
    }
}

#[test]
fn a_value_that_cites_a_published_row_is_the_value_printed_there() {
    // The paper's number is for something else, and the source text says for what.
    let explained = [
        ("emr2s", "core.count"),
        ("spr2s", "core.count"),
        ("skx2s", "dram.channels"),
        ("skx2s", "dram.capacity"),
        ("agilex-2666", "channels"),
        ("micro23", "remote.read"),
        ("micro23-snc4", "remote.read"),
        ("micro23-a", "read"),
        ("micro23-b", "read"),
        ("micro23-c", "read"),
        ("cxl-ssd-znand", "controller"),
        ("hotstorage22-ssd", "controller"),
    ];
    let published = published::builtin_rows();
    let mut compared = 0;
    for definition in Library::builtin().list() {
        for row in definition.parameters() {
            let Provenance::Source(source) = &row.provenance else {
                continue;
            };
            let [id] = ids(source)[..] else { continue };
            let printed = published
                .iter()
                .find(|p| p.id == id)
                .unwrap_or_else(|| panic!("{source} cites a row that is not there"));
            if explained.contains(&(definition.name(), row.key.as_str())) {
                continue;
            }
            let ours = in_unit(&row.value, &printed.unit)
                .unwrap_or_else(|| panic!("{row:?} has no value in {}", printed.unit));
            // 13.75 MB are printed as 13.8.
            let tolerance = if row.key == "llc.size" { 0.06 } else { 1e-9 };
            assert!(
                (ours - printed.value).abs() <= tolerance,
                "{} {} is {ours}, but {id} prints {}",
                definition.name(),
                row.key,
                printed.value
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "only {compared} values cite a row");
}
