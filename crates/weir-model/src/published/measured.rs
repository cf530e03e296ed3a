//! Loaded-latency curves that instruments logged on real machines: the files of `published/measured`.
//!
//! Two kinds of log are read, distinguished by their first line: Intel Memory Latency Checker's
//! `--loaded_latency`, and the curves of the first-generation Mess probe, whose latencies are in core
//! cycles. Traffic is said in the words of [`Tenant`](crate::tenant::Tenant), so that a curve can be
//! asked of a machine.

use std::ops::Range;

use crate::access::Op;
use crate::diagnostic::{Collector, Mistakes, quote};
use crate::embedded::PUBLISHED;
use crate::platform::{MeasuredLog, Place, Platform};
use crate::toml::MOST_BYTES;
use crate::topology::TierName;
use crate::units::{GbPerSec, Gigahertz, Nanos};

const MLC: &str =
    "server,cores_at,cores,traffic_w,random,inject_delay,latency_ns,bandwidth_mb_s,mlc";
const MESS: &str = "platform,read_percent,bandwidth_mb_s,latency";

/// What the loading threads of a curve do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// The instruction.
    pub op: Op,
    /// Lines loaded along with it, and lines of the instruction itself, in a round
    /// ([`Reads`](crate::tenant::Reads)); `None` for the instruction alone.
    pub mix: Option<(u32, u32)>,
}

impl Traffic {
    /// Loads only.
    pub const READS: Self = Self {
        op: Op::Ld,
        mix: None,
    };

    /// MLC's `-W`: 0 stands for reads only; in 2 to 5 and from 11 on temporal stores write, and each reads its
    /// line first, so that 1:1 is stores alone; in 6 to 10 non-temporal stores write. Two loads of 10 and 11
    /// come from two buffers, those of 7 and 3 from one; here each is of an array of its own (Intel Memory
    /// Latency Checker, help text and user guide).
    pub fn of_mlc(w: u32) -> Option<Self> {
        let (op, mix) = match w {
            0 => (Op::Ld, None),
            2 => (Op::St, Some((1, 1))),
            3 | 11 => (Op::St, Some((2, 1))),
            4 => (Op::St, Some((1, 2))),
            5 => (Op::St, None),
            6 => (Op::NtSt, None),
            7 | 10 => (Op::NtSt, Some((2, 1))),
            8 => (Op::NtSt, Some((1, 1))),
            9 => (Op::NtSt, Some((3, 1))),
            12..=17 => (Op::St, Some((w - 9, 1))),
            _ => return None,
        };
        Some(Self { op, mix })
    }

    /// Loads and stores that make `percent` of the lines on the memory interface reads: temporal stores for at
    /// least one half, non-temporal ones for less, which temporal ones cannot make.
    pub fn of_read_percent(percent: u32) -> Option<Self> {
        let (op, loaded, stored) = match percent {
            100 => (Op::Ld, 0, 0),
            50..100 => (Op::St, 2 * percent - 100, 100 - percent),
            0..50 => (Op::NtSt, percent, 100 - percent),
            _ => return None,
        };
        let common = gcd(loaded, stored);
        let mix = (loaded > 0).then(|| (loaded / common, stored / common));
        Some(Self { op, mix })
    }

    /// Share of the lines crossing the memory interface that are read.
    pub fn read_share(&self) -> f64 {
        let (loaded, touched) = self.mix.map_or((0.0, 1.0), |(l, t)| (l.into(), t.into()));
        let (read, written) = match self.op {
            op if op.is_load() => (touched, 0.0),
            op if op.reads_for_ownership() => (touched, touched),
            _ => (0.0, touched),
        };
        (loaded + read) / (loaded + read + written)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Lines crossing the memory interface, reads and writes.
    pub bandwidth: GbPerSec,
    /// Mean latency of a pointer chase with them.
    pub latency: Nanos,
}

/// Latency against bandwidth, for one traffic of this many threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The machine's name in the log.
    pub name: String,
    /// Where the loading threads ran, as the log says it; empty where it does not.
    pub at: String,
    /// How many there were, where the log says it.
    pub threads: Option<u32>,
    /// What they did.
    pub traffic: Traffic,
    /// Whether they touched lines at random.
    pub random: bool,
    /// In the order of the log.
    pub points: Vec<CurvePoint>,
}

impl Curve {
    /// The most bandwidth of any point.
    pub fn peak(&self) -> GbPerSec {
        let peak = |most: GbPerSec, p: &CurvePoint| most.max(p.bandwidth);
        self.points.iter().fold(GbPerSec(0.0), peak)
    }

    /// Whether its threads ran on another socket than the device is attached to. In the log of EuroSys 2024
    /// the card is at `d0`, and the domain `d3` is of the other socket.
    pub fn is_from_other_socket(&self) -> bool {
        self.at == "d3"
    }

    /// The points whose chase reached the memory: at least four fifths of its idle latency. Where the
    /// chase shared a cache with its load, instruments log less.
    pub fn of_memory(&self, idle: Nanos) -> impl Iterator<Item = &CurvePoint> {
        let least = idle * 0.8;
        self.points.iter().filter(move |p| p.latency >= least)
    }
}

impl Platform {
    /// The logged curves of its tiers: of the host's DRAM, and of single devices on the threads' own socket or
    /// on the other one.
    pub fn measured_curves(&self) -> Vec<(TierName, Curve)> {
        let clock = self.host.core.clock.value;
        let of = |tier: TierName, log: &Option<MeasuredLog>| -> Vec<(TierName, Curve)> {
            let curves = log.as_ref().map_or_else(Vec::new, |l| builtin(l, clock));
            curves.into_iter().map(|c| (tier.clone(), c)).collect()
        };
        let mut all = of(TierName::dram(), &self.host.log);
        for (n, attached) in self.devices.iter().enumerate() {
            if attached.ways == 1 && attached.place != Place::Switch {
                let curves = of(TierName::cxl(n), &attached.device.log).into_iter();
                let far = attached.is_remote();
                all.extend(curves.filter(|(_, curve)| curve.is_from_other_socket() == far));
            }
        }
        all
    }
}

/// The curves of a machine in a log that comes with Weir; none if there is no such log or machine.
/// `clock` is that of the core whose cycles the log counts.
pub fn builtin(log: &MeasuredLog, clock: Gigahertz) -> Vec<Curve> {
    // A test reads every embedded log without a mistake.
    parse(
        &log.log,
        PUBLISHED.text(&format!("measured/{}", log.log)),
        clock,
    )
    .into_iter()
    .flatten()
    .filter(|curve| curve.name == log.name)
    .collect()
}

/// Reads a log; `file` names it in messages, `clock` is that of the core whose cycles a Mess log
/// counts. Points without load (a bandwidth of zero or less, which is left when a probe subtracts
/// its own) are left out.
///
/// # Errors
/// Every mistake in the text, at its line and column.
pub fn parse(file: &str, text: &str, clock: Gigahertz) -> Result<Vec<Curve>, Mistakes> {
    let mistakes = Collector::new(file, text);
    let curves = read(text, clock, &mistakes);
    mistakes.finish(curves)
}

fn read(text: &str, clock: Gigahertz, mistakes: &Collector<'_>) -> Option<Vec<Curve>> {
    if text.len() > MOST_BYTES {
        let help = Some("is this the right file?".into());
        mistakes.report(
            0..0,
            None,
            "the log is larger than the 1 MiB that logs may have",
            help,
        );
        return None;
    }
    let mut lines = Lines { text, at: 0 };
    let (head, start) = lines.next().unwrap_or_default();
    let is_mlc = match head {
        MLC => true,
        MESS => false,
        _ => {
            mistakes.report(
                start..start + head.len(),
                None,
                "the first line is that of no log that is known",
                Some(format!("wanted is `{MLC}` or `{MESS}`")),
            );
            return None;
        }
    };
    let columns: Vec<&str> = head.split(',').collect();
    let mut curves: Vec<Curve> = Vec::new();
    for (line, start) in lines {
        if line.is_empty() {
            continue;
        }
        let Some(mut row) = Row::new(line, start, &columns, mistakes) else {
            continue;
        };
        let read = if is_mlc { row.mlc() } else { row.mess(clock) };
        let Some((curve, point)) = read else { continue };
        let same = |known: &&mut Curve| {
            (known.name.as_str(), known.at.as_str()) == (curve.name.as_str(), curve.at.as_str())
                && (known.threads, known.traffic) == (curve.threads, curve.traffic)
                && known.random == curve.random
        };
        let load = point.bandwidth.get() > 0.0;
        match curves.iter_mut().rev().find(same) {
            Some(known) => known.points.extend(load.then_some(point)),
            None => curves.push(Curve {
                points: load.then_some(point).into_iter().collect(),
                ..curve
            }),
        }
    }
    Some(curves)
}

/// The lines of a text without their ends, each with the place where it starts.
struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lines<'t> {
    type Item = (&'t str, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split('\n').next().unwrap_or_default();
        let start = self.at;
        self.at += line.len() + 1;
        Some((line.strip_suffix('\r').unwrap_or(line), start))
    }
}

/// The fields of one line.
struct Row<'t, 'm, 'c> {
    fields: Vec<(&'t str, Range<usize>)>,
    columns: &'m [&'m str],
    mistakes: &'m Collector<'c>,
}

impl<'t, 'm, 'c> Row<'t, 'm, 'c> {
    fn new(
        line: &'t str,
        start: usize,
        columns: &'m [&'m str],
        mistakes: &'m Collector<'c>,
    ) -> Option<Self> {
        let mut at = start;
        let fields: Vec<(&str, Range<usize>)> = line
            .split(',')
            .map(|field| {
                let span = at..at + field.len();
                at = span.end + 1;
                (field.trim(), span)
            })
            .collect();
        if fields.len() != columns.len() {
            let message = format!("{} fields, but {} are wanted", fields.len(), columns.len());
            let help = Some(format!("as in the first line: {}", columns.join(",")));
            mistakes.report(start..start + line.len(), None, message, help);
            return None;
        }
        Some(Self {
            fields,
            columns,
            mistakes,
        })
    }

    fn mlc(&mut self) -> Option<(Curve, CurvePoint)> {
        let (name, at) = (self.text(0), self.text(1));
        let threads = self.count(2);
        let traffic = self.traffic(3, "-W", Traffic::of_mlc);
        let random = self.count(4);
        let latency = self.number(6);
        let bandwidth = self.number(7);
        let curve = Curve {
            name: name?,
            at: at?,
            threads: Some(threads?),
            traffic: traffic?,
            random: random? != 0,
            points: Vec::new(),
        };
        Some((curve, point(bandwidth?, Nanos(latency?))))
    }

    fn mess(&mut self, clock: Gigahertz) -> Option<(Curve, CurvePoint)> {
        let name = self.text(0);
        let traffic = self.traffic(1, "share of reads", Traffic::of_read_percent);
        let bandwidth = self.number(2);
        let cycles = self.number(3);
        let curve = Curve {
            name: name?,
            at: String::new(),
            threads: None,
            traffic: traffic?,
            random: false,
            points: Vec::new(),
        };
        Some((curve, point(bandwidth?, Nanos(cycles? / clock.get()))))
    }

    fn wrong(&mut self, n: usize, what: &str) {
        let (field, span) = &self.fields[n];
        let column = self.columns[n];
        let message = format!("`{column}` is `{}`, {what}", quote(field));
        self.mistakes
            .report(span.clone(), Some(column), message, None);
    }

    fn text(&mut self, n: usize) -> Option<String> {
        let text = self.fields[n].0;
        if text.is_empty() {
            self.wrong(n, "but a name is wanted");
            return None;
        }
        Some(text.to_string())
    }

    fn count(&mut self, n: usize) -> Option<u32> {
        let count = self.fields[n].0.parse().ok();
        if count.is_none() {
            self.wrong(n, "but a whole number is wanted");
        }
        count
    }

    fn traffic(
        &mut self,
        n: usize,
        what: &str,
        of: impl Fn(u32) -> Option<Traffic>,
    ) -> Option<Traffic> {
        let traffic = of(self.count(n)?);
        if traffic.is_none() {
            self.wrong(n, &format!("which is no {what} that is known"));
        }
        traffic
    }

    /// Latencies are positive; a bandwidth may fall below zero where a probe subtracts its own.
    fn number(&mut self, n: usize) -> Option<f64> {
        let least = if self.columns[n] == "bandwidth_mb_s" {
            f64::NEG_INFINITY
        } else {
            f64::MIN_POSITIVE
        };
        let number: Option<f64> = self.fields[n].0.parse().ok();
        let number = number.filter(|x| x.is_finite() && *x >= least);
        if number.is_none() {
            self.wrong(n, "but a positive number is wanted");
        }
        number
    }
}

fn point(mb_s: f64, latency: Nanos) -> CurvePoint {
    CurvePoint {
        bandwidth: GbPerSec(mb_s / 1e3),
        latency,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Gigahertz = Gigahertz(3.0);

    #[test]
    fn every_log_is_read_without_mistake() {
        assert_eq!(PUBLISHED.files("measured/").count(), 2);
        for (file, text) in PUBLISHED.files("measured/") {
            let curves = parse(file, text, CLOCK).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            // All lines but the first, and but those without load.
            let points: usize = curves.iter().map(|c| c.points.len()).sum();
            let lines = text.lines().count() - 1;
            let without_load = text.matches(",-").count() - text.matches(",--").count();
            assert_eq!(points, lines - without_load, "{file}");
        }
    }

    #[test]
    fn traffic_is_said_as_the_lines_it_makes() {
        let share = |w| Traffic::of_mlc(w).unwrap().read_share();
        let shares = [
            (0, 1.0),
            (2, 2.0 / 3.0),
            (3, 0.75),
            (4, 0.6),
            (5, 0.5),
            (6, 0.0),
            (7, 2.0 / 3.0),
            (8, 0.5),
            (9, 0.75),
            (10, 2.0 / 3.0),
            (11, 0.75),
            (12, 0.8),
            (17, 0.9),
        ];
        for (w, expected) in shares {
            assert!((share(w) - expected).abs() < 1e-12, "-W{w}");
        }
        for percent in 0..=100 {
            let share = Traffic::of_read_percent(percent).unwrap().read_share();
            assert!((share - f64::from(percent) / 100.0).abs() < 1e-12);
        }
        assert_eq!(Traffic::of_mlc(1), None);
        assert_eq!(Traffic::of_mlc(18), None);
        assert_eq!(Traffic::of_read_percent(101), None);
    }

    #[test]
    fn every_mistake_of_a_log_is_reported_with_its_place() {
        let text =
            format!("{MLC}\r\ncxl,d0,8,1,0,0,400,46000,x\ncxl,d0,eight,0,0,0,-4,nan,x\ncxl,d0\n");
        let shown = parse("log.csv", &text, CLOCK).unwrap_err().to_string();
        for expected in [
            "`traffic_w` is `1`, which is no -W that is known\n --> log.csv:2:10",
            "`cores` is `eight`, but a whole number is wanted\n --> log.csv:3:8",
            "`latency_ns` is `-4`, but a positive number is wanted\n --> log.csv:3:20",
            "`bandwidth_mb_s` is `nan`",
            "2 fields, but 9 are wanted\n --> log.csv:4:1",
        ] {
            assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
        }
        let foreign = parse("log.csv", "Intel(R) Memory Latency Checker\n", CLOCK);
        let shown = foreign.unwrap_err().to_string();
        assert!(
            shown.contains("of no log that is known\n --> log.csv:1:1"),
            "{shown}"
        );
    }
}
