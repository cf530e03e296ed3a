//! What Intel Memory Latency Checker prints (versions 3.5 to 3.11a): idle latency, matrices of latencies and bandwidths,
//! peak bandwidths, latency under load.

use weir_model::access::Op;
use weir_model::document::Point;
use weir_model::published::measured::{Curve, Traffic};
use weir_model::published::mlc_output::{self, MlcOptions};
use weir_model::units::{GbPerSec, Nanos};

use super::found::{
    Found, Hints, ImportError, Left, Origin, UNKNOWN, bandwidth, latency, line, loaded, number,
    traffic_load,
};
use super::nodes::Places;
use crate::studies::loaded::INJECT_DELAY;

const NAME: &str = "Intel(R) Memory Latency Checker";
/// Lines that say how the tool worked, and lines between tables.
const ABOUT: [&str; 12] = [
    "Using ",
    "Bandwidths are in",
    "Will take several",
    "***",
    "==",
    "Delay",
    "Inject",
    "Memory node",
    "Command line parameters:",
    "Note:",
    "Alloc",
    "Options:",
];

pub(super) fn is(text: &str) -> bool {
    let starts = [
        NAME,
        "Measuring idle latencies",
        "Measuring Peak Injection",
        "Measuring Loaded Latencies",
        "Measuring Memory Bandwidths between nodes",
    ];
    mlc_output::is_mlc_output(text)
        || (text.lines().take(200)).any(|line| starts.iter().any(|s| line.trim().starts_with(s)))
}

/// The table that lines belong to.
#[derive(Debug, Clone, PartialEq)]
enum Table {
    None,
    /// Latencies, or bandwidths, from nodes with cores to all nodes.
    Matrix {
        latency: bool,
        random: bool,
        nodes: Vec<u32>,
    },
    Peak(&'static str),
    Loaded,
    CacheToCache,
}

struct Reader<'a> {
    file: &'a str,
    hints: &'a Hints,
    tool: String,
    places: Places,
    /// What the command line says of loading threads.
    command: Curve,
    /// The node of its memory.
    node: Option<u32>,
    table: Table,
    points: Vec<Point>,
    left: Left,
}

pub(super) fn read(file: &str, text: &str, hints: &Hints) -> Result<Found, ImportError> {
    let mut places = Places::of(hints);
    for (_, node) in rows_of(text) {
        places.has_cores(node);
    }
    let mut reader = Reader {
        file,
        hints,
        tool: "Intel MLC".into(),
        places,
        command: nothing_said(hints),
        node: None,
        table: Table::None,
        points: Vec::new(),
        left: Left::default(),
    };
    for (at, whole) in text.lines().enumerate() {
        reader.line(at + 1, whole.trim())?;
    }
    Ok(Found {
        tool: reader.tool,
        points: reader.points,
        left: reader.left,
        ..Found::default()
    })
}

/// The rows of every matrix, with their lines.
fn rows_of(text: &str) -> impl Iterator<Item = (usize, u32)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(at, whole)| {
        let line = whole.trim();
        let header = columns(line).is_some();
        inside = header || (inside && row(line).is_some());
        let node = row(line).filter(|_| inside && !header)?.0;
        Some((at, node))
    })
}

/// `Numa node   0   1`: the nodes of a matrix.
fn columns(line: &str) -> Option<Vec<u32>> {
    let mut words = line.split_whitespace();
    let first = words.next()?.to_ascii_lowercase();
    match first.as_str() {
        // `Numa node`, or `Socket` of earlier versions.
        "numa" | "memory" => drop(words.next()),
        "socket" => {}
        _ => return None,
    }
    let nodes: Option<Vec<u32>> = words.map(|w| w.parse().ok()).collect();
    nodes.filter(|nodes| !nodes.is_empty())
}

/// A node and its cells.
fn row(line: &str) -> Option<(u32, Vec<&str>)> {
    let mut words = line.split_whitespace();
    let node = words.next()?.parse().ok()?;
    let cells: Vec<&str> = words.collect();
    let cell = |c: &&str| c.starts_with(|c: char| c.is_ascii_digit() || "-nN.".contains(c));
    (!cells.is_empty() && cells.iter().all(cell)).then_some((node, cells))
}

fn nothing_said(hints: &Hints) -> Curve {
    Curve {
        name: String::new(),
        at: String::new(),
        threads: hints.threads,
        traffic: (hints.traffic.and_then(Traffic::of_mlc)).unwrap_or(Traffic::READS),
        random: false,
        points: Vec::new(),
    }
}

impl Reader<'_> {
    fn line(&mut self, at: usize, line: &str) -> Result<(), ImportError> {
        if let Some(rest) = line.strip_prefix(NAME) {
            let version = rest.trim().trim_start_matches('-').trim();
            self.tool = format!("Intel MLC {version}");
            (self.table, self.node) = (Table::None, None);
            self.command = nothing_said(self.hints);
        } else if let Some((_, words)) = line.split_once("Command line parameters:") {
            return self.command_line(at, words);
        } else if let Some(rest) = line.strip_prefix("Measuring ") {
            self.table = match rest {
                r if r.starts_with("idle latencies") => Table::Matrix {
                    latency: true,
                    random: r.contains("random"),
                    nodes: Vec::new(),
                },
                r if r.starts_with("Memory Bandwidths between") => Table::Matrix {
                    latency: false,
                    random: false,
                    nodes: Vec::new(),
                },
                r if r.starts_with("Peak") => Table::Peak("peak injection bandwidth"),
                r if r.starts_with("Maximum") => Table::Peak("maximum bandwidth"),
                r if r.starts_with("Loaded") => Table::Loaded,
                r if r.starts_with("cache-to-cache") => Table::CacheToCache,
                _ => {
                    self.left.line(self.file, at, line);
                    Table::None
                }
            };
        } else if line.starts_with("Each iteration took") {
            return self.idle(at, line);
        } else if line
            .split_whitespace()
            .eq(["Inject", "Latency", "Bandwidth"])
        {
            self.table = Table::Loaded;
        } else if let Some(found) = columns(line) {
            if let Table::Matrix { nodes, .. } = &mut self.table {
                *nodes = found;
            } else if self.table == Table::CacheToCache {
                self.left.known("cache-to-cache latencies");
            } else {
                self.left.line(self.file, at, line);
            }
        } else if line.is_empty()
            || line.eq_ignore_ascii_case("numa node")
            || ABOUT.iter().any(|about| line.starts_with(about))
        {
            // How it worked.
        } else {
            return self.row(at, line);
        }
        Ok(())
    }

    fn command_line(&mut self, at: usize, words: &str) -> Result<(), ImportError> {
        let said = MlcOptions {
            traffic: self.hints.traffic,
            threads: self.hints.threads,
        };
        self.command = nothing_said(self.hints);
        mlc_output::command(words, &mut self.command, said).map_err(|why| {
            let help = "give what it does with --traffic and --threads";
            line(self.file, at, format!("{why}; {help}"))
        })?;
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            if let Some(node) = word.strip_prefix("-j") {
                let text = if node.is_empty() {
                    words.next()
                } else {
                    Some(node)
                };
                self.node = text.and_then(|text| text.parse().ok());
            }
        }
        Ok(())
    }

    fn origin(&self, at: usize, more: &[&str]) -> Vec<String> {
        let origin = Origin {
            file: self.file,
            tool: &self.tool,
        };
        origin.conditions(at, more)
    }

    fn push(&mut self, mut point: Point, at: usize, more: &[&str]) {
        let own = std::mem::take(&mut point.conditions);
        point.conditions = self.origin(at, more);
        point.conditions.extend(own);
        self.points.push(point);
    }

    /// `Each iteration took 201.2 core clocks ( 80.5 ns)`
    fn idle(&mut self, at: usize, line: &str) -> Result<(), ImportError> {
        let words: Vec<&str> = line
            .split(|c: char| c.is_whitespace() || "()".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        let ns = words.iter().position(|&word| word == "ns");
        let Some(text) = ns.and_then(|ns| words.get(ns.checked_sub(1)?)) else {
            return Err(super::found::line(
                self.file,
                at,
                "there is no latency in ns",
            ));
        };
        let ns = number(self.file, at, "idle latency (ns)", text)?;
        let tier = self.places.tier(self.node.unwrap_or(0));
        let point = latency("latency", &tier, 0, ns);
        self.push(point, at, &[random(self.command.random)]);
        Ok(())
    }

    fn row(&mut self, at: usize, line: &str) -> Result<(), ImportError> {
        match self.table.clone() {
            Table::Matrix {
                latency,
                random,
                nodes,
            } if !nodes.is_empty() && line.starts_with(|c: char| c.is_ascii_digit()) => {
                self.matrix(at, line, latency, random, &nodes)
            }
            Table::Peak(what) if line.contains(':') => self.peak(at, line, what),
            Table::Loaded if line.starts_with(|c: char| c.is_ascii_digit()) => {
                self.loaded(at, line)
            }
            Table::CacheToCache => {
                self.left.known("cache-to-cache latencies");
                Ok(())
            }
            _ => {
                self.left.line(self.file, at, line);
                Ok(())
            }
        }
    }

    fn matrix(
        &mut self,
        at: usize,
        text: &str,
        is_latency: bool,
        is_random: bool,
        nodes: &[u32],
    ) -> Result<(), ImportError> {
        let mut words = text.split_whitespace();
        let from = words.next().unwrap_or_default();
        let cells: Vec<&str> = words.collect();
        let Ok(from) = from.parse::<u32>() else {
            let why = format!("`{}` is no node", weir_model::diagnostic::quote(from));
            return Err(line(self.file, at, why));
        };
        if cells.len() != nodes.len() {
            let why = format!(
                "node {from} has {} values, but the matrix has {} nodes",
                cells.len(),
                nodes.len()
            );
            return Err(line(self.file, at, why));
        }
        for (&node, cell) in nodes.iter().zip(cells) {
            if matches!(cell, "-" | "N/A" | "n/a") {
                self.left.known("cells of a matrix without a value");
                continue;
            }
            let key = format!("from node {from} to node {node}");
            let value = number(self.file, at, &key, cell)?;
            let (tier, socket) = (self.places.tier(node), self.places.socket(from));
            let between = format!("node {from} to node {node}");
            let point = match is_latency {
                true => latency("nodes", &tier, socket, value),
                false => {
                    let threads = self.hints.threads.unwrap_or(UNKNOWN);
                    let load = traffic_load(Traffic::READS, &tier, threads, false);
                    bandwidth("nodes", load.on_socket(socket), GbPerSec(value / 1e3))
                }
            };
            self.push(point, at, &[&between, random(is_random)]);
        }
        Ok(())
    }

    /// `3:1 Reads-Writes :      218009.3`
    fn peak(&mut self, at: usize, text: &str, what: &str) -> Result<(), ImportError> {
        let (name, value) = text.rsplit_once(':').unwrap_or((text, ""));
        let name = name.trim().to_ascii_lowercase();
        let store = |mix| Traffic { op: Op::St, mix };
        let traffic = match name.split([' ', '-']).next().unwrap_or_default() {
            "all" if name.contains("write") => Traffic {
                op: Op::NtSt,
                mix: None,
            },
            "all" => Traffic::READS,
            "3:1" => store(Some((2, 1))),
            "2:1" => store(Some((1, 1))),
            "1:1" => store(None),
            "stream" => Traffic {
                op: Op::NtSt,
                mix: Some((2, 1)),
            },
            _ => {
                self.left.line(self.file, at, text);
                return Ok(());
            }
        };
        let value = number(self.file, at, &name, value)?;
        let threads = self.command.threads.unwrap_or(UNKNOWN);
        let load = traffic_load(traffic, &self.places.own(), threads, false);
        let point = bandwidth("bandwidth", load, GbPerSec(value / 1e3));
        self.push(point, at, &[what]);
        Ok(())
    }

    /// `00002  224.41   69311.8`
    fn loaded(&mut self, at: usize, text: &str) -> Result<(), ImportError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [delay, ns, mb_s] = words[..] else {
            let why = format!(
                "`{}` is not a row of inject delay, latency and bandwidth",
                weir_model::diagnostic::quote(text)
            );
            return Err(line(self.file, at, why));
        };
        let Ok(delay) = delay.parse::<u32>() else {
            let why = format!(
                "`Inject Delay` is `{}`",
                weir_model::diagnostic::quote(delay)
            );
            return Err(line(self.file, at, why));
        };
        let ns = number(self.file, at, "Latency (ns)", ns)?;
        let mb_s = number(self.file, at, "Bandwidth (MB/sec)", mb_s)?;
        let tier = match self.node {
            Some(node) => self.places.tier(node),
            None => self.places.own(),
        };
        let threads = self.command.threads.unwrap_or(UNKNOWN);
        let load = traffic_load(self.command.traffic, &tier, threads, self.command.random);
        let point = loaded(load, Nanos(f64::from(delay)), ns, GbPerSec(mb_s / 1e3));
        self.push(
            point,
            at,
            &[&format!("{INJECT_DELAY} {delay}, which is no time in ns")],
        );
        Ok(())
    }
}

fn random(random: bool) -> &'static str {
    if random { "lines in random order" } else { "" }
}
