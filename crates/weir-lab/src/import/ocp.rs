//! Results of OCP's benchmarks of composable memory systems (OCP-SVR-CMS-Benchmarks, MLC script 0.2.0, parsers 1.0.0): the
//! CSV and JSON that its parsers make of MLC and STREAM, and the ramps that its script of MLC writes.
//!
//! Bandwidths headed MiB/s are MLC's own MB/s: the script copies the column.

use serde_json::Value;
use weir_model::access::Op;
use weir_model::document::Point;
use weir_model::published::measured::Traffic;
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Nanos};

use super::found::{
    Found, Hints, ImportError, Left, Origin, UNKNOWN, bandwidth, latency, line, loaded, number,
    traffic_load, whole,
};
use super::nodes::Places;
use super::stream;

/// What tells a CSV of theirs.
const HEADS: [&[&str]; 4] = [
    &["NUMA Node", "Pattern", "Latency (ns)"],
    &["NUMA Node", "Traffic Type", "Bandwidth (MiB/s)"],
    &["DRAM:CXL Ratio", "IO Pattern", "Bandwidth(MB/s)"],
    &["Function", "Best Rate (MB/s)"],
];

/// The keys of their JSON, as the heads of the CSV.
const KEYS: [(&str, &str); 16] = [
    ("numa_node", "NUMA Node"),
    ("pattern", "Pattern"),
    ("latency_ns", "Latency (ns)"),
    ("access_pattern", "Access Pattern"),
    ("traffic_type", "Traffic Type"),
    ("bandwidth_mib_s", "Bandwidth (MiB/s)"),
    ("function", "Function"),
    ("direction", "Direction"),
    ("best_rate_mb_s", "Best Rate (MB/s)"),
    ("threads", "Threads"),
    ("Node", "Node"),
    ("DRAM:CXL Ratio", "DRAM:CXL Ratio"),
    ("NUMA Node Tested", "NUMA Node Tested"),
    ("Num of Cores", "Num of Cores"),
    ("IO Pattern", "IO Pattern"),
    ("Access Pattern", "Access Pattern"),
];

fn is_head(cells: &[&str]) -> bool {
    (HEADS.iter()).any(|wanted| wanted.iter().all(|name| cells.contains(name)))
}

pub(super) fn is(text: &str) -> bool {
    let json = || serde_json::from_str::<Value>(text).ok();
    if text.trim_start().starts_with('{') {
        return text.contains("\"parser_version\"")
            && json().is_some_and(|v| v["benchmark"].is_string());
    }
    let head: Vec<&str> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .collect();
    is_head(&head)
}

/// A row by the heads of the CSV, with its place.
struct Row {
    place: String,
    at: usize,
    cells: Vec<(String, String)>,
}

impl Row {
    fn get(&self, key: &str) -> Option<&str> {
        let cell = self.cells.iter().find(|(name, _)| name == key);
        cell.map(|(_, text)| text.as_str())
            .filter(|text| !text.is_empty())
    }

    fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.get(key))
    }

    fn whole_number(&self, file: &str, key: &str) -> Result<Option<u32>, ImportError> {
        let parsed = self
            .get(key)
            .map(|text| text.parse::<u32>().map_err(|_| text));
        parsed.transpose().map_err(|text| {
            let text = weir_model::diagnostic::quote(text);
            line(
                file,
                self.at,
                format!("`{key}` is `{text}`, but a whole number is wanted"),
            )
        })
    }
}

pub(super) fn read(file: &str, text: &str, hints: &Hints) -> Result<Found, ImportError> {
    let rows = match text.trim_start().starts_with('{') {
        true => rows_of_json(file, text)?,
        false => rows_of_csv(file, text)?,
    };
    let places = Places::of(hints);
    let (mut points, mut left) = (Vec::new(), Left::default());
    let origin = Origin {
        file,
        tool: "OCP-SVR-CMS-Benchmarks",
    };
    for row in &rows {
        let found = of_row(file, row, &places, hints, &mut left)?;
        points.extend(found.into_iter().map(|mut point: Point| {
            let own = std::mem::take(&mut point.conditions);
            point.conditions = origin.conditions(&row.place, &[]);
            point.conditions.extend(own);
            point
        }));
    }
    Ok(Found {
        tool: "OCP-SVR-CMS-Benchmarks".into(),
        points,
        left,
        ..Found::default()
    })
}

fn rows_of_csv(file: &str, text: &str) -> Result<Vec<Row>, ImportError> {
    let mut lines = text.lines().enumerate();
    let head: Vec<&str> = (lines.next().map_or("", |(_, line)| line).split(','))
        .map(str::trim)
        .collect();
    let mut rows = Vec::new();
    for (at, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
        let cells: Vec<String> = text
            .split(',')
            .map(|c| c.trim().trim_matches('"').to_owned())
            .collect();
        if cells.len() != head.len() {
            let why = format!("{} values, but {} columns", cells.len(), head.len());
            return Err(line(file, at + 1, why));
        }
        rows.push(Row {
            place: (at + 1).to_string(),
            at: at + 1,
            cells: head.iter().map(|&h| h.to_owned()).zip(cells).collect(),
        });
    }
    Ok(rows)
}

fn rows_of_json(file: &str, text: &str) -> Result<Vec<Row>, ImportError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| line(file, error.line(), format!("this is no JSON: {error}")))?;
    let Some(object) = value.as_object() else {
        return Err(whole(file, "an object is wanted"));
    };
    let mut rows = Vec::new();
    for (list, items) in object.iter().filter(|(list, _)| *list != "errors") {
        for (n, item) in items.as_array().into_iter().flatten().enumerate() {
            let named = |key: &str| {
                let known = KEYS.iter().find(|(own, _)| *own == key);
                known.map_or(key, |(_, head)| head).to_owned()
            };
            let plain = |value: &Value| match value {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                value => value.to_string(),
            };
            let cells = item.as_object().into_iter().flatten();
            rows.push(Row {
                place: format!("{list}[{n}]"),
                at: 1,
                cells: cells
                    .map(|(key, value)| (named(key), plain(value)))
                    .collect(),
            });
        }
    }
    Ok(rows)
}

/// `READ`, `2READ_1WRITE_NT`; `R`, `W7`.
fn traffic(name: &str) -> Option<Traffic> {
    Some(match name {
        "R" | "READ" => Traffic::READS,
        "WRITE_NT" => Traffic {
            op: Op::NtSt,
            mix: None,
        },
        "2READ_1WRITE_NT" => Traffic {
            op: Op::NtSt,
            mix: Some((2, 1)),
        },
        "1READ_1WRITE" => Traffic {
            op: Op::St,
            mix: None,
        },
        "2READ_1WRITE" => Traffic {
            op: Op::St,
            mix: Some((1, 1)),
        },
        other => Traffic::of_mlc(other.strip_prefix('W')?.parse().ok()?)?,
    })
}

fn of_row(
    file: &str,
    row: &Row,
    places: &Places,
    hints: &Hints,
    left: &mut Left,
) -> Result<Vec<Point>, ImportError> {
    if let Some(function) = row.get("Function") {
        return of_stream(file, row, function, places, hints, left);
    }
    let node = match row.whole_number(file, "NUMA Node Tested")? {
        None => row.whole_number(file, "NUMA Node")?,
        node => node,
    };
    let tier = match (row.get("DRAM:CXL Ratio"), node) {
        (Some("100:0"), Some(0)) => places.tier(0),
        // The script names the second node that it tests CXL.
        (Some("0:100"), Some(node))
            if places.tier(node) == TierName::named(format!("node{node}")) =>
        {
            TierName::cxl(0)
        }
        (_, Some(node)) => places.tier(node),
        (Some(_), None) => {
            left.known("rows of memory that is interleaved over two nodes");
            return Ok(Vec::new());
        }
        (None, None) => {
            left.line(file, row.at, &row.place);
            return Ok(Vec::new());
        }
    };
    let ns = row.first(&["Latency (ns)", "Latency(ns)"]);
    let ns = ns.filter(|text| text.parse() != Ok(0.0));
    let ns = ns
        .map(|text| number(file, row.at, "Latency (ns)", text))
        .transpose()?;
    let mb_s = row.first(&["Bandwidth (MiB/s)", "Bandwidth(MB/s)"]);
    let mb_s = mb_s
        .map(|text| number(file, row.at, "Bandwidth", text))
        .transpose()?;
    let Some(name) = row.first(&["Traffic Type", "IO Pattern"]) else {
        let order = row.get("Pattern").map(|p| format!("lines in {p} order"));
        return Ok(ns.map_or_else(Vec::new, |ns| {
            let mut point = latency("latency", &tier, 0, ns);
            point.conditions.extend(order);
            vec![point]
        }));
    };
    let Some((traffic, mb_s)) = traffic(name).zip(mb_s) else {
        left.line(file, row.at, &format!("{}: {name}", row.place));
        return Ok(Vec::new());
    };
    // The script counts cores from its first one, which is 0.
    let cores = row
        .whole_number(file, "Num of Cores")?
        .map(|last| last.saturating_add(1));
    let threads = hints.threads.or(cores).unwrap_or(UNKNOWN);
    let random = row
        .get("Access Pattern")
        .is_some_and(|order| order.starts_with('r'));
    let load = traffic_load(traffic, &tier, threads, random);
    let drawn = GbPerSec(mb_s / 1e3);
    let mut points = vec![bandwidth("bandwidth", load.clone(), drawn)];
    points.extend(ns.map(|ns| loaded(load, Nanos(0.0), ns, drawn)));
    Ok(points)
}

fn of_stream(
    file: &str,
    row: &Row,
    function: &str,
    places: &Places,
    hints: &Hints,
    left: &mut Left,
) -> Result<Vec<Point>, ImportError> {
    let Some(kernel) = stream::kernel(function) else {
        left.line(file, row.at, &format!("{}: {function}", row.place));
        return Ok(Vec::new());
    };
    let node = match row.get("Direction") {
        None => Some(0),
        Some(direction) => direction
            .split_once("->")
            .and_then(|(_, to)| to.parse().ok()),
    };
    let Some(node) = node else {
        left.known("STREAM over several nodes");
        return Ok(Vec::new());
    };
    let rate = row.get("Best Rate (MB/s)").unwrap_or_default();
    let mbps = number(file, row.at, "Best Rate (MB/s)", rate)?;
    let threads = row.whole_number(file, "Threads")?.or(hints.threads);
    let point = stream::figure(kernel, &places.tier(node), threads.unwrap_or(UNKNOWN), mbps);
    Ok(vec![point])
}
