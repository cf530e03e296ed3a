//! A curve of Mess for one share of reads, as its simulator reads them (`bwlat_N.txt`, N the reads in percent): lines of
//! bandwidth in MB/s and latency in cycles of the clock of the server that was measured.

use weir_model::published::measured::Traffic;
use weir_model::units::{GbPerSec, Nanos};

use super::found::{
    Found, Hints, ImportError, Left, Origin, UNKNOWN, line, loaded, number, traffic_load, whole,
};
use super::nodes::Places;

/// Share of reads in the name of a file.
fn reads_of(file: &str) -> Option<u32> {
    let name = file.rsplit('/').next()?;
    let (_, rest) = name.split_once("bwlat_")?;
    rest.split_once('.')?.0.parse().ok()
}

fn cells(line: &str) -> Vec<&str> {
    let cells = line.split(|c: char| c.is_whitespace() || ",;".contains(c));
    cells.filter(|cell| !cell.is_empty()).collect()
}

pub(super) fn is(file: &str, text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(5)
        .peekable();
    reads_of(file).is_some()
        && lines.peek().is_some()
        && lines.all(|line| {
            let cells = cells(line);
            cells.len() == 2 && cells.iter().all(|cell| cell.parse::<f64>().is_ok())
        })
}

pub(super) fn read(file: &str, text: &str, hints: &Hints) -> Result<Found, ImportError> {
    let Some(reads) = hints.reads.or_else(|| reads_of(file)) else {
        let why =
            "its name does not say the share of reads, as `bwlat_70.txt` does; add --reads 70";
        return Err(whole(file, why));
    };
    let Some(traffic) = Traffic::of_read_percent(reads) else {
        return Err(whole(file, format!("{reads} % are no share of reads")));
    };
    let Some(clock) = hints.clock else {
        let why = "curves of Mess count latency in cycles; add --clock with the clock of the server that was measured";
        return Err(whole(file, why));
    };
    let tier = Places::of(hints).tier(0);
    let threads = hints.threads.unwrap_or(UNKNOWN);
    let origin = Origin { file, tool: "Mess" };
    let mut points = Vec::new();
    for (at, text) in text.lines().enumerate() {
        let (at, cells) = (at + 1, cells(text));
        if cells.is_empty() {
            continue;
        }
        let [mb_s, cycles] = cells[..] else {
            let why = format!(
                "{} values, but bandwidth and latency are wanted",
                cells.len()
            );
            return Err(line(file, at, why));
        };
        let mb_s = number(file, at, "bandwidth (MB/s)", mb_s)?;
        let cycles = number(file, at, "latency (cycles)", cycles)?;
        let load = traffic_load(traffic, &tier, threads, false);
        let ns = cycles / clock.get();
        let mut point = loaded(load, Nanos(0.0), ns, GbPerSec(mb_s / 1e3));
        point.conditions = origin.conditions(at, &["the pause of the load is not known"]);
        points.push(point);
    }
    Ok(Found {
        tool: "Mess".into(),
        points,
        left: Left::default(),
        ..Found::default()
    })
}
