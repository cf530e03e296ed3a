//! CSV of Intel PCM: `pcm -csv` and `pcm-memory -csv`, versions 2.x with `;` to 202604 with `,`.
//!
//! Two header lines: what a column is of (`System`, `Socket 0`, `SKT0`), repeated for each column or named at its first
//! one, then its name. Bandwidths are in MB/s where the name says so, else in GB/s (`READ`, `WRITE`).

use weir_model::diagnostic::quote;

use super::found::{Found, ImportError, Left, whole};
use super::readings::Reading;

/// Columns of `pcm` in GB/s.
const GB_S: [&str; 6] = [
    "READ",
    "WRITE",
    "PMM_RD",
    "PMM_WR",
    "MCDRAM_READ",
    "MCDRAM_WRITE",
];
/// Columns in MB/s whose names do not say it.
const MB_S: [&str; 9] = [
    "LMB",
    "RMB",
    "Read",
    "Write",
    "Memory",
    "DRAMRead",
    "DRAMWrite",
    "PMMREAD",
    "PMMWrite",
];

pub(super) fn is(text: &str) -> bool {
    header(text).is_some()
}

/// The place of the second header line, and the mark between columns.
fn header(text: &str) -> Option<(usize, char)> {
    let lines = text.lines().take(60).enumerate();
    let mut all = lines.filter_map(|(at, line)| {
        let mark = [',', ';'].into_iter().find(|&mark| {
            let mut cells = line.split(mark).map(str::trim);
            cells.next() == Some("Date") && cells.next() == Some("Time")
        })?;
        (at > 0).then_some((at, mark))
    });
    all.next()
}

/// A column.
struct Column {
    of: String,
    name: String,
    unit: &'static str,
    /// What its numbers are multiplied with.
    scale: f64,
    socket: Option<u32>,
    channel: Option<u32>,
}

impl Column {
    fn new(of: &str, name: &str) -> Self {
        let plain = name.split(" (").next().unwrap_or(name).trim();
        let digits = |text: &str| -> Option<u32> {
            let text = text.trim_start_matches(|c: char| !c.is_ascii_digit());
            let end = text.find(|c: char| !c.is_ascii_digit());
            text[..end.unwrap_or(text.len())].parse().ok()
        };
        let socket = (of.starts_with("SKT") || of.starts_with("Socket")).then(|| digits(of));
        let channel =
            (plain.starts_with("Ch") || plain.starts_with("EDC_Ch")).then(|| digits(plain));
        let channel = channel.flatten();
        let is_mb = name.contains("(MB/s)")
            || MB_S.contains(&plain)
            || (channel.is_some() && !name.contains('('));
        let (unit, scale) = match plain {
            _ if is_mb => ("GB/s", 1e-3),
            name if GB_S.contains(&name) => ("GB/s", 1.0),
            name if name.ends_with('%') => ("%", 1.0),
            "TEMP" => ("°C below the limit", 1.0),
            _ if name.contains("(Joules)") => ("J", 1.0),
            _ if name.contains("(ns)") => ("ns", 1.0),
            _ => ("", 1.0),
        };
        Self {
            of: of.to_owned(),
            name: plain.to_owned(),
            unit,
            scale,
            socket: socket.flatten(),
            channel,
        }
    }
}

pub(super) fn read(file: &str, text: &str) -> Result<Found, ImportError> {
    let Some((at, mark)) = header(text) else {
        return Err(whole(
            file,
            "nothing in it is of pcm: a line `Date,Time,...` under a line of sockets is wanted",
        ));
    };
    let mut left = Left::default();
    let lines: Vec<&str> = text.lines().collect();
    for (n, line) in lines.iter().take(at - 1).enumerate() {
        if !line.trim().is_empty() {
            left.line(file, n + 1, line);
        }
    }
    let cells = |line: &str| -> Vec<String> {
        let trimmed = line.trim_end().trim_end_matches(mark);
        trimmed.split(mark).map(|c| c.trim().to_owned()).collect()
    };
    let names = cells(lines[at]);
    let mut groups = cells(lines[at - 1]);
    groups.resize(names.len(), String::new());
    // A group is named at its first column, or at each.
    for n in 1..groups.len() {
        if groups[n].is_empty() && n > 2 {
            groups[n] = groups[n - 1].clone();
        }
    }
    let columns: Vec<Column> = (names.iter().zip(&groups).skip(2))
        .map(|(name, of)| Column::new(of, name))
        .collect();
    let mut readings = Vec::new();
    for (n, line) in lines.iter().enumerate().skip(at + 1) {
        if line.trim().is_empty() {
            continue;
        }
        let values = cells(line);
        let time = (values.first().zip(values.get(1))).and_then(|(d, t)| seconds(d, t));
        let Some(time) = time.filter(|_| values.len() == names.len()) else {
            left.line(file, n + 1, line);
            continue;
        };
        for (column, cell) in columns.iter().zip(&values[2..]) {
            if column.of.starts_with("Core") {
                left.known("values of single cores");
                continue;
            }
            let value = cell.parse::<f64>().ok().filter(|v| v.is_finite());
            readings.push(Reading {
                name: column.name.clone(),
                of: column.of.clone(),
                socket: column.socket,
                channel: column.channel,
                at_s: Some(time),
                value: value.map(|value| value * column.scale),
                unit: column.unit.into(),
                known_as: None,
                running_pct: None,
                why: (value.is_none()).then(|| format!("`{}` in the file", quote(cell))),
                file: file.to_owned(),
                line: n as u32 + 1,
            });
        }
    }
    let first = readings
        .iter()
        .filter_map(|r| r.at_s)
        .fold(f64::MAX, f64::min);
    for reading in &mut readings {
        reading.at_s = reading.at_s.map(|at| ((at - first) * 1e3).round() / 1e3);
    }
    let tool = match names.iter().any(|name| name.starts_with("Mem Read")) {
        true => "pcm-memory",
        false => "pcm",
    };
    Ok(Found {
        tool: format!("Intel {tool}"),
        readings,
        left,
        ..Found::default()
    })
}

/// `2026-04-02`, `07:58:51.607`: seconds since a day that is the same for all.
fn seconds(date: &str, time: &str) -> Option<f64> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let real =
        (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let mut parts = time.split(':');
    let hours: f64 = parts.next()?.parse().ok()?;
    let minutes: f64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.parse().ok()?;
    let day_time = hours * 3600.0 + minutes * 60.0 + seconds;
    if !real || !(0.0..90_000.0).contains(&day_time) {
        return None;
    }
    // Days by the civil calendar, years beginning in March.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;
    Some(days as f64 * 86_400.0 + day_time)
}
