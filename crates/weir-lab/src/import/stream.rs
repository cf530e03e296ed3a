//! STREAM's own output (version 5.10), and STREAMer's CSV: a line for each thread count with MB/s of each kernel.

use std::collections::BTreeMap;

use weir_model::access::Op;
use weir_model::document::Point;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, GbPerSec};

use super::found::{Found, Hints, ImportError, Left, Origin, UNKNOWN, line, number, unmeasured};
use super::nodes::Places;
use crate::PointSpec;
use crate::studies::stream::{Kernel, load};

/// The first line of STREAMer's files.
pub const HEAD: &str = "threads,copy,scale,add,triad";

/// MB/s of each kernel by threads.
pub type Lines = BTreeMap<u32, [Option<f64>; 4]>;

pub(super) fn is_csv(text: &str) -> bool {
    let head = text.lines().next().unwrap_or_default();
    head.trim().eq_ignore_ascii_case(HEAD)
}

/// Reads STREAMer's lines, with the place of each thread count.
///
/// # Errors
/// A line or a value is invalid, or a thread count is there twice.
pub fn lines(file: &str, text: &str) -> Result<(Lines, BTreeMap<u32, usize>), ImportError> {
    let mut lines = text.lines().enumerate();
    let head = lines.next().map_or("", |(_, line)| line.trim());
    if !head.eq_ignore_ascii_case(HEAD) {
        return Err(line(file, 1, format!("`{head}` must be `{HEAD}`")));
    }
    let (mut found, mut places) = (Lines::new(), BTreeMap::new());
    for (at, text) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: String| line(file, at + 1, why);
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        let [threads, kernels @ ..] = cells.as_slice() else {
            continue;
        };
        let threads = threads
            .parse()
            .map_err(|_| wrong(format!("`{threads}` is no number of threads")))?;
        if kernels.len() != Kernel::ALL.len() {
            let why = format!("{} values; there are four kernels", kernels.len());
            return Err(wrong(why));
        }
        let mut values = [None; 4];
        for (value, cell) in values.iter_mut().zip(kernels) {
            *value = match cell.parse::<f64>() {
                Ok(mbps) if mbps.is_finite() && mbps > 0.0 => Some(mbps),
                _ if cell.is_empty() => None,
                _ => return Err(wrong(format!("`{cell}` is no bandwidth in MB/s"))),
            };
        }
        if found.insert(threads, values).is_some() {
            return Err(wrong(format!("{threads} threads are there twice")));
        }
        places.insert(threads, at + 1);
    }
    Ok((found, places))
}

pub(super) fn read_csv(file: &str, text: &str, hints: &Hints) -> Result<Found, ImportError> {
    let (lines, places) = lines(file, text)?;
    let tier = Places::of(hints).tier(0);
    let origin = Origin {
        file,
        tool: "STREAMer",
    };
    let mut points = Vec::new();
    for (threads, mbps) in &lines {
        for (kernel, mbps) in Kernel::ALL.into_iter().zip(mbps) {
            if let Some(mbps) = mbps {
                let mut point = figure(kernel, &tier, *threads, *mbps);
                point.conditions = origin.conditions(places[threads], &[]);
                points.push(point);
            }
        }
    }
    Ok(Found {
        tool: "STREAMer".into(),
        points,
        ..Found::default()
    })
}

/// STREAM's figure: bytes of the loops, without the lines that stores read first.
pub(super) fn figure(kernel: Kernel, tier: &TierName, threads: u32, mbps: f64) -> Point {
    let load = load(tier, Op::St, kernel, threads, Bytes(0));
    let mut point = unmeasured(&PointSpec::alone("stream", load));
    point.gbps = Some(GbPerSec(mbps / 1e3));
    point.samples = 1;
    point
}

/// The kernel of a line `Copy:   17253.7  ...`.
pub(super) fn kernel(name: &str) -> Option<Kernel> {
    let name = name.trim().trim_end_matches(':').to_ascii_lowercase();
    Kernel::ALL.into_iter().find(|kernel| kernel.name() == name)
}

pub(super) fn is_output(text: &str) -> bool {
    let mut starts = text.lines().map(str::trim);
    starts.any(|line| line.starts_with("STREAM version") || line.starts_with("Function "))
}

/// Lines of STREAM that say how it worked.
const ABOUT: [&str; 18] = [
    "---",
    "STREAM",
    "This system uses",
    "Array size",
    "Memory per array",
    "Total memory",
    "Each kernel",
    "The *best*",
    "will be used",
    "Each test below",
    "(=",
    "Increase the size",
    "you are not getting",
    "WARNING",
    "For best results",
    "precision of",
    "Solution Validates",
    "Your clock",
];

pub(super) fn read_output(file: &str, text: &str, hints: &Hints) -> Result<Found, ImportError> {
    let places = Places::of(hints);
    let mut left = Left::default();
    let mut points: Vec<Point> = Vec::new();
    let mut threads = hints.threads;
    let mut tool = "STREAM".to_owned();
    for (at, whole) in text.lines().enumerate() {
        let (at, line) = (at + 1, whole.trim());
        if let Some((_, version)) = line.split_once("STREAM version") {
            let version = version.trim().trim_matches('$');
            let version = version.trim_start_matches("Revision:").trim();
            tool = format!("STREAM {version}");
        } else if let Some((before, count)) = line.split_once('=')
            && before.starts_with("Number of Threads")
        {
            let count = number(file, at, before.trim(), count)? as u32;
            // What was counted is what ran.
            if hints.threads.is_none() && (threads.is_none() || before.contains("counted")) {
                threads = Some(count);
            }
        } else if let Some((name, values)) = line.split_once(':')
            && let Some(kernel) = kernel(name)
        {
            let mut words = values.split_whitespace();
            let first = words.next().unwrap_or_default();
            // The variant of OCP has a direction between nodes: `0->2`.
            let direction = first.split_once("->");
            let (mbps, node) = match direction {
                Some((_, to)) => (words.next().unwrap_or_default(), to.parse().ok()),
                None => (first, Some(0)),
            };
            let Some(node) = node else {
                left.known("STREAM over several nodes");
                continue;
            };
            let mbps = number(file, at, name, mbps)?;
            let tier = places.tier(node);
            let mut point = figure(kernel, &tier, threads.unwrap_or(UNKNOWN), mbps);
            point.conditions = Origin { file, tool: &tool }.conditions(at, &[]);
            points.push(point);
        } else if !line.is_empty()
            && !line.starts_with("Function ")
            && !ABOUT.iter().any(|about| line.starts_with(about))
        {
            left.line(file, at, line);
        }
    }
    Ok(Found {
        tool,
        points,
        left,
        ..Found::default()
    })
}
