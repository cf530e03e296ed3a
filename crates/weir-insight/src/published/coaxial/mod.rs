//! COAXIAL (arXiv 2305.05033): its 35 programs on a server with one DDR5 channel, and on servers whose pages are all
//! behind CXL links. Misses and IPC of the baseline set the programs; what links and channels make of them is predicted.

mod arrivals;
mod servers;

use weir_lab::reproduce::figures::{PEAK, chase_of, curve, difference, idle, ratio};
use weir_lab::reproduce::points::Stream;
use weir_lab::reproduce::rule::{Figure, Rule};
use weir_model::access::Op;
use weir_model::units::{Bytes, Nanos};

use crate::coaxial::{CORES, programs};
use arrivals::{Arrivals, Arrived, OPEN, OPEN_FOUR};
use servers::{ASYM, FOUR, PEAK_GBPS, Pair, Server, TOYS, on, pairs};

/// The programs of figure 3.
const ON_TOYS: [&str; 5] = ["bwaves", "triad", "masstree", "BFS", "raytrace"];
const MODELLED: &str = "programs have the misses and the IPC of table 4 in our baseline, and miss all in the same phases; their other parameters are public facts or assumed";
const QUEUES: &str =
    "time from a miss of the last-level cache to its data, without that of a lone read";
const MOST: &str = "ours is the utilisation that four programs in five exceed";
const HALF: &str = "ours is the utilisation that half of the programs exceed";
const MEDIAN: &str = "ours is the median of 35 programs";
const SET: &str = "is a value of the platform";
const BY_EYE: &str = "read off a figure by eye: the paper gives no threshold";
const CHANNEL: &str = "our controller reorders within 40 requests and sustains more of random accesses than the paper's simulator";

/// A figure of all pairs, on all cores.
fn all(
    unit: &'static str,
    other: Server,
    read: impl Fn(&[Pair]) -> f64 + Send + Sync + 'static,
) -> Figure {
    with_cores(unit, other, CORES, read)
}

fn with_cores(
    unit: &'static str,
    other: Server,
    cores: u32,
    read: impl Fn(&[Pair]) -> f64 + Send + Sync + 'static,
) -> Figure {
    Figure::new(unit, move |results| {
        Ok(read(&pairs(results, other, cores)?))
    })
}

/// A figure of one program.
fn of(unit: &'static str, name: &'static str, read: fn(&Pair) -> f64) -> Figure {
    Figure::new(unit, move |results| {
        let pairs = pairs(results, FOUR, CORES)?;
        let pair = pairs.iter().find(|pair| pair.program.name == name);
        Ok(read(pair.ok_or("there is no such program")?))
    })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

fn geometric(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    mean(values.map(f64::ln)).exp()
}

/// The value that a share of them is below.
fn below(share: f64, values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}

fn speedup(pairs: &[Pair]) -> f64 {
    geometric(pairs.iter().map(Pair::speedup))
}

/// By how much the mean latency of a suite is lower, in percent, for each suite.
fn cuts(pairs: &[Pair]) -> Vec<f64> {
    let mut suites: Vec<&str> = pairs.iter().map(|pair| pair.program.suite).collect();
    suites.dedup();
    let cut = |suite: &&str| {
        let of: Vec<&Pair> = pairs
            .iter()
            .filter(|pair| pair.program.suite == *suite)
            .collect();
        let all = |ran: fn(&Pair) -> Nanos| mean(of.iter().map(|pair| ran(pair).get()));
        100.0 * (1.0 - all(|pair| pair.other.latency) / all(|pair| pair.base.latency))
    };
    suites.iter().map(cut).collect()
}

/// Performance of five programs on a toy memory, in percent of that on the one whose latency is always the same.
fn toy(at: usize) -> Figure {
    Figure::new("%", move |results| {
        let (fixed, varied) = (on(results, TOYS[0], CORES)?, on(results, TOYS[at], CORES)?);
        let ran = programs()?.into_iter().zip(fixed.into_iter().zip(varied));
        let ran = ran.filter(|(program, _)| ON_TOYS.contains(&program.name));
        let shares: Vec<f64> = ran
            .map(|(_, (fixed, varied))| varied.ipc / fixed.ipc)
            .collect();
        Ok(100.0 * geometric(shares.into_iter()))
    })
}

/// A figure of latencies at some utilisations.
fn open(unit: &'static str, utilisation: f64, read: fn(&Arrived) -> f64) -> Figure {
    open_on(OPEN, unit, utilisation, read)
}

fn open_on(
    (platform, tier): (&'static str, &'static str),
    unit: &'static str,
    utilisation: f64,
    read: fn(&Arrived) -> f64,
) -> Figure {
    let arrivals = Arrivals { utilisation, tier };
    Figure::read(unit, platform, arrivals, move |got| Ok(read(got)))
}

/// What the same loop takes in caches and core, where memory takes 40 ns.
fn beyond(figure: &Figure) -> Figure {
    let least = open("ns", 0.01, |got| got.mean);
    let figure = figure.clone();
    Figure::new("ns", move |results| {
        Ok(figure.value(results)? - least.value(results)? + 40.0)
    })
}

fn growth(figure: &Figure) -> Figure {
    let (figure, least) = (beyond(figure), 40.0);
    Figure::new("x", move |results| Ok(figure.value(results)? / least))
}

/// By how much latency is lower with four links than with one channel at 60 % of its peak, in percent.
fn lower(read: fn(&Arrived) -> f64) -> Figure {
    let one = beyond(&open("ns", 0.6, read));
    let four = ratio(&beyond(&open_on(OPEN_FOUR, "ns", 0.6, read)), &one);
    Figure::new("%", move |results| Ok(100.0 * (1.0 - four.value(results)?)))
}

fn loads(platform: &'static str, op: Op) -> Figure {
    curve(Stream::new(platform, "cxl0", op), &[2, 4, 8, 12], PEAK)
}

/// Every rule for rows of COAXIAL but those of pins, area and power.
pub(super) fn rules() -> Vec<Rule> {
    let count =
        |pairs: &[Pair], of: fn(&Pair) -> bool| pairs.iter().filter(|p| of(p)).count() as f64;
    let predicted = |id: &str, figure: Figure, note| Rule {
        is_slow: true,
        ..Rule::predicted(id, figure).noting(note)
    };
    let (mean_50, mean_60) = (
        open("ns", 0.5, |got| got.mean),
        open("ns", 0.6, |got| got.mean),
    );
    let (p90_50, p90_60) = (
        open("ns", 0.5, |got| got.p90),
        open("ns", 0.6, |got| got.p90),
    );
    let (card, asym) = ("coaxial-ddr+coaxial-x8", "coaxial-ddr+coaxial-asym");
    let caches = chase_of("coaxial-ddr", "dram", Bytes::mib(8));
    let unloaded = difference(&idle("coaxial-ddr", "dram"), &caches);
    let added = difference(&idle(card, "cxl0"), &idle("coaxial-ddr", "dram"));
    let share = ratio(&added, &unloaded);
    let share = Figure::new("%", move |results| Ok(100.0 * share.value(results)?));
    let quarter = open_on(OPEN_FOUR, "%", 0.6, |got| {
        100.0 * got.gbps / (FOUR.2 * PEAK_GBPS)
    });
    let mut rules = vec![
        predicted("COX-003", all("x", FOUR, speedup), MODELLED),
        predicted(
            "COX-004",
            all("x", FOUR, |all| {
                all.iter().map(Pair::speedup).fold(0.0, f64::max)
            }),
            MODELLED,
        ),
        predicted(
            "COX-007",
            Figure::new("%", |results| {
                let of = |server| Ok::<_, String>(speedup(&pairs(results, server, CORES)?));
                Ok(100.0 * (of(ASYM)? / of(FOUR)? - 1.0))
            }),
            MODELLED,
        ),
        Rule::identity("COX-021", unloaded),
        Rule::identity("COX-022", share),
        predicted("COX-023a", growth(&mean_50), CHANNEL),
        predicted("COX-023b", growth(&mean_60), CHANNEL),
        predicted("COX-024a", growth(&p90_50), CHANNEL),
        predicted("COX-024b", growth(&p90_60), CHANNEL),
        predicted("COX-025a", beyond(&mean_60), CHANNEL),
        predicted("COX-025b", beyond(&p90_60), CHANNEL),
        Rule::identity("COX-026", quarter).noting("as many reads on four times the channels"),
        predicted("COX-027a", lower(|got| got.mean), CHANNEL),
        predicted("COX-027b", lower(|got| got.p90), CHANNEL),
        predicted(
            "COX-029",
            all("%", FOUR, |all| {
                below(0.2, all.iter().map(Pair::utilisation))
            }),
            MOST,
        ),
        predicted(
            "COX-030",
            all("%", FOUR, |all| {
                below(0.5, all.iter().map(Pair::utilisation))
            }),
            HALF,
        ),
        predicted(
            "COX-031",
            all("%", FOUR, |all| mean(all.iter().map(Pair::queue_share))),
            QUEUES,
        ),
        predicted(
            "COX-032",
            all("%", FOUR, |all| {
                below(0.999, all.iter().map(Pair::queue_share))
            }),
            QUEUES,
        ),
        predicted(
            "COX-033a",
            of("ns", "lbm", |pair| pair.base.latency.get()),
            MODELLED,
        ),
        predicted(
            "COX-033b",
            of("ns", "bwaves", |pair| pair.base.latency.get()),
            MODELLED,
        ),
        predicted("COX-034", toy(1), MODELLED),
        predicted("COX-035", toy(2), MODELLED),
        predicted("COX-036", toy(3), MODELLED),
        Rule::identity("COX-047a", loads(card, Op::Ld)).noting(SET),
        Rule::identity("COX-047b", loads(card, Op::NtSt)).noting(SET),
        Rule::identity("COX-050a", loads(asym, Op::Ld)).noting(SET),
        Rule::identity("COX-050b", loads(asym, Op::NtSt)).noting(SET),
        Rule::identity("COX-055", added).noting("the parts of section 5 add up to 32 ns"),
        predicted(
            "COX-058",
            all("programs", FOUR, move |all| {
                count(all, |p| p.speedup() > 2.0)
            }),
            MODELLED,
        ),
        predicted(
            "COX-059",
            all("programs", FOUR, move |all| {
                count(all, |p| p.speedup() < 1.0)
            }),
            MODELLED,
        ),
        predicted(
            "COX-063a",
            of("ns", "copy", |pair| pair.base.latency.get()),
            MODELLED,
        ),
        predicted(
            "COX-063b",
            of("ns", "copy", |pair| pair.other.latency.get()),
            MODELLED,
        ),
        predicted("COX-064a", of("ns", "copy", Pair::queue), QUEUES),
        predicted(
            "COX-064b",
            of("ns", "copy", |pair| {
                pair.other.latency.get() - pair.lone[1].get()
            }),
            QUEUES,
        ),
        predicted("COX-065", of("x", "copy", Pair::speedup), MODELLED),
        predicted(
            "COX-067a",
            all("ns", FOUR, |all| mean(all.iter().map(Pair::queue))),
            QUEUES,
        ),
        predicted(
            "COX-069a",
            all("%", FOUR, |all| {
                cuts(all).into_iter().fold(f64::INFINITY, f64::min)
            }),
            MODELLED,
        ),
        predicted(
            "COX-069b",
            all("%", FOUR, |all| {
                cuts(all).into_iter().fold(f64::NEG_INFINITY, f64::max)
            }),
            MODELLED,
        ),
        predicted("COX-073a", of("%", "bwaves", Pair::utilisation), MODELLED),
        predicted("COX-073b", of("ns", "bwaves", Pair::queue), QUEUES),
        predicted("COX-074", of("%", "Radii", Pair::utilisation), MODELLED),
        predicted("COX-075", of("ns", "kmeans", Pair::queue), QUEUES),
        predicted(
            "COX-081",
            with_cores("x", FOUR, 4, |all| {
                below(0.5, all.iter().map(Pair::speedup))
            }),
            MEDIAN,
        ),
        predicted(
            "COX-092b",
            all("CPI", FOUR, |all| {
                geometric(all.iter().map(|p| 1.0 / p.other.ipc))
            }),
            MODELLED,
        ),
        predicted(
            "COX-094a",
            all("%", FOUR, |all| mean(all.iter().map(Pair::utilisation))),
            MODELLED,
        ),
        predicted(
            "COX-094b",
            all("%", FOUR, |all| {
                mean(all.iter().map(|p| 100.0 * p.other.gbps / p.peaks[1]))
            }),
            MODELLED,
        ),
    ];
    let cpi = all("CPI", FOUR, |all| {
        geometric(all.iter().map(|p| 1.0 / p.base.ipc))
    });
    let met = |all: &[Pair]| {
        let met = all
            .iter()
            .filter(|p| (p.base.ipc / p.program.ipc - 1.0).abs() < 0.05);
        met.count() as f64
    };
    let slow = |rule: Rule| Rule {
        is_slow: true,
        ..rule
    };
    rules.push(slow(
        Rule::identity("COX-092a", cpi).noting("of programs whose IPC was set"),
    ));
    rules.push(slow(
        Rule::calibrated("COX-097", all("programs", FOUR, met))
            .noting("ours are those whose IPC the simulated baseline has within 5 %"),
    ));
    rules.extend(["028a", "028b"].into_iter().flat_map(|row| {
        Rule::not_modelled("COX", [0], BY_EYE).map(move |rule| Rule {
            id: format!("COX-{row}"),
            ..rule
        })
    }));
    rules
}
