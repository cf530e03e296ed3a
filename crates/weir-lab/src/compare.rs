//! Two runs, figure by figure: points are matched by what they are, whatever machine they are of.
//!
//! The difference of two means is beyond chance, at 95 %, where it exceeds the root of the sum of
//! the squares of their intervals' half-widths: the half-width of the interval of a difference of
//! independent means.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use weir_model::document::Point;

/// Which figure of a point is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Figure {
    /// The main one: bandwidth, or mean latency where the point has none.
    #[default]
    Main,
    /// A quantile of its latency; points that have none are not compared.
    Quantile(Quantile),
}

/// A quantile of single latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// The median.
    P50,
    /// 99 of 100 are shorter.
    P99,
    /// 999 of 1,000.
    P999,
    /// 9,999 of 10,000.
    P9999,
}

weir_model::named! {
    /// The unit of a compared figure, which decides which direction is better.
    pub enum Unit {
        /// Bandwidth: more is better.
        GbPerSec = "GB/s",
        /// Latency: less is better.
        Nanos = "ns",
    }
}

/// One figure in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair<'a> {
    /// The point of the first run, which names both.
    pub point: &'a Point,
    /// The unit of both figures.
    pub unit: Unit,
    /// The figure of the first run.
    pub a: f64,
    /// The figure of the second.
    pub b: f64,
    /// Whether the difference is beyond chance; `None` where a figure has no interval.
    pub beyond: Option<bool>,
}

impl Pair<'_> {
    /// The second figure as a multiple of the first.
    pub fn ratio(&self) -> f64 {
        self.b / self.a
    }

    /// How far the ratio is from one, alike for doubling and halving.
    pub fn effect(&self) -> f64 {
        self.ratio().ln().abs()
    }

    /// Whether the second is the better one.
    pub fn is_better(&self) -> bool {
        match self.unit {
            Unit::GbPerSec => self.b > self.a,
            Unit::Nanos => self.b < self.a,
        }
    }
}

/// What two runs have in common, and what not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison<'a> {
    /// Figures in both, the largest effect first.
    pub pairs: Vec<Pair<'a>>,
    /// Points of the first run that the second lacks, or has no figure for.
    pub only_a: usize,
    /// And the other way round.
    pub only_b: usize,
}

/// Matches two runs' points. A point is known by its experiment, instruction, pattern, tiers,
/// threads, sizes and company. Where sizes follow the machine's caches, points that differ in their
/// working set alone match too, if no other point of either run could be meant.
pub fn compare<'a>(a: &'a [Point], b: &'a [Point], which: Figure) -> Comparison<'a> {
    let mut result = Comparison::default();
    let (mut left_a, mut left_b): (Vec<&Point>, Vec<&Point>) =
        (a.iter().collect(), b.iter().collect());
    for name in [exact_name as fn(&Point) -> String, name_without_size] {
        let (in_a, in_b) = (by_name(&left_a, name), by_name(&left_b, name));
        let mut matched = Vec::new();
        for (name, point) in &in_a {
            let (Some(one), Some(Some(other))) = (point, in_b.get(name)) else {
                continue;
            };
            matched.push(name.clone());
            match pair(one, other, which) {
                Some(pair) => result.pairs.push(pair),
                None => {
                    result.only_a += usize::from(figure(one, which).is_some());
                    result.only_b += usize::from(figure(other, which).is_some());
                }
            }
        }
        let left = |points: Vec<&'a Point>| -> Vec<&'a Point> {
            let is_left = |p: &&Point| matched.binary_search(&name(p)).is_err();
            points.into_iter().filter(is_left).collect()
        };
        (left_a, left_b) = (left(left_a), left(left_b));
    }
    let with_figure = |left: &[&Point]| left.iter().filter(|p| figure(p, which).is_some()).count();
    result.only_a += with_figure(&left_a);
    result.only_b += with_figure(&left_b);
    // Ties in the order of their names, so that one comparison is always printed alike.
    result.pairs.sort_by(|x, y| {
        (y.effect().total_cmp(&x.effect()))
            .then_with(|| exact_name(x.point).cmp(&exact_name(y.point)))
    });
    result
}

/// Points by name; `None` where several have one name.
fn by_name<'a>(
    points: &[&'a Point],
    name: fn(&Point) -> String,
) -> BTreeMap<String, Option<&'a Point>> {
    let mut named = BTreeMap::new();
    for &point in points {
        match named.entry(name(point)) {
            Entry::Vacant(free) => {
                free.insert(Some(point));
            }
            Entry::Occupied(mut taken) => {
                taken.insert(None);
            }
        }
    }
    named
}

fn exact_name(point: &Point) -> String {
    let size = point.wss_bytes.unwrap_or_default().get();
    format!("{} set {size}", name_without_size(point))
}

fn name_without_size(point: &Point) -> String {
    let beside = point.beside.as_ref().map(|b| {
        let pause = b.pause_ns.get();
        let (tier, op, pattern) = (&b.tier, b.op, &b.pattern);
        (
            tier,
            op,
            pattern,
            b.threads,
            b.read_share.to_bits(),
            pause.to_bits(),
            b.arrivals,
        )
    });
    let size = match point.experiment.as_str() {
        // The staircase is made of nothing but sizes.
        "latency" => point.wss_bytes,
        _ => None,
    };
    format!(
        "{} {} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {} {size:?} {beside:?}",
        point.experiment,
        point.tier,
        point.op,
        point.pattern,
        (
            point.threads,
            &point.cores,
            (point.socket, point.host),
            point.affinity
        ),
        point.block_bytes,
        point.read_share.map(f64::to_bits),
        point.source,
        point.kernel,
        point.batch,
        point.prefetch,
    )
}

fn pair<'a>(a: &'a Point, b: &'a Point, which: Figure) -> Option<Pair<'a>> {
    let ((unit, one), (other_unit, other)) = (figure(a, which)?, figure(b, which)?);
    if unit != other_unit {
        return None;
    }
    let intervals = match which {
        Figure::Main => a.ci95.zip(b.ci95),
        Figure::Quantile(_) => None,
    };
    Some(Pair {
        point: a,
        unit,
        a: one,
        b: other,
        beyond: intervals.map(|(of_a, of_b)| (one - other).abs() > of_a.hypot(of_b)),
    })
}

/// A figure above zero, and its unit.
fn figure(point: &Point, which: Figure) -> Option<(Unit, f64)> {
    let ns = point.ns.as_ref();
    let (unit, value) = match which {
        Figure::Main => match point.gbps {
            Some(gbps) => (Unit::GbPerSec, gbps.get()),
            None => (Unit::Nanos, ns?.mean.get()),
        },
        Figure::Quantile(quantile) => {
            let value = match quantile {
                Quantile::P50 => Some(ns?.p50),
                Quantile::P99 => ns?.p99,
                Quantile::P999 => ns?.p999,
                Quantile::P9999 => ns?.p9999,
            };
            (Unit::Nanos, value?.get())
        }
    };
    (value > 0.0 && value.is_finite()).then_some((unit, value))
}
