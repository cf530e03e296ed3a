//! Rules for published rows about slowdown and interleaving (`weir reproduce`).
//!
//! The papers' own programs are not run: a population that spans the space stands for them, or presets
//! that resemble those that are named.

mod coaxial;
mod interleave;
mod slowdown;

use crate::documents::AccuracyLine;
use weir_lab::reproduce::figures::{greatest, least};
use weir_lab::reproduce::rule::{Figure, Rule};
use weir_lab::{Lab, LabError};
use weir_model::document::RowKind;
use weir_model::topology::TierName;

use crate::two_tiers::Tiers;
use interleave::{Climbs, Shots};
use slowdown::{NoPrefetch, Population, PrefetchShift, Preset, PresetRun, Study, handed_over};

/// A platform, and the slower tier that local DRAM is compared with.
type Pair = (&'static str, &'static str);

const ZNUMA: Pair = ("skx2s", "remote");
const CXL_A: Pair = ("emr2s+cxl-a", "cxl0");
const CXL_B: Pair = ("emr2s+cxl-b", "cxl0");
const CXL_C: Pair = ("emr2s+cxl-c", "cxl0");
const CXL_D: Pair = ("emr2s+cxl-d", "cxl0");
/// The other socket of the servers that have the cards.
const EMR_NUMA: Pair = ("emr2s", "remote");
/// Cards behind the other socket.
const FAR_A: Pair = ("emr2s+cxl-a@remote", "cxl0");
const FAR_B: Pair = ("emr2s+cxl-b@remote", "cxl0");
const TWO_CXL_A: Pair = ("emr2s+2xcxl-a@interleaved", "cxl0");
/// One cluster with two channels, and the card.
const CLUSTER: Pair = ("micro23-snc4", "cxl0");

const OF_POPULATION: &str =
    "over a population of ours (`weir predict --population`), not over the paper's programs";
const AS_PUBLISHED: &str = "the model as published, over a population of ours (`weir predict --population`), not over the \
     paper's programs";
const SHAPED: &str = "over a population of ours whose density of accesses was chosen so that about as many are slowed by \
                      more than half as in the paper; the parts were not";
const OF_PRESETS: &str = "of a preset that resembles it, on as many cores as it has threads; the authors publish how they run it (MoatLab/Pond, cpu2017)";
const OF_LIBRARY: &str = "over the presets, on one core each, not over the paper's programs";
const CROWDS: &str =
    "of presets that resemble the paper's four codes of SPEC, its Llama and STREAM, on all cores";
const OF_FOUR: &str = "of presets that resemble the paper's four codes, 16 instances each, without its mixes; the tuner goes by \
                       the paper's estimate with its published coefficients, in which the wait in the controllers of local \
                       memory outweighs the rest here; by run times it settles at 9 to 23 %";
const AS_SHOWN: &str = "the tuner is given what the figure shows of the four runs before: better, better, worse, better";

/// Local DRAM and the slower tier.
fn tiers(lab: &Lab<'_>, to: &str) -> Result<Tiers, LabError> {
    let tiers = Tiers {
        from: TierName::dram(),
        to: TierName::named(to),
    };
    for tier in [&tiers.from, &tiers.to] {
        if lab.topology().tier(tier).is_none() {
            let platform = &lab.machine().name;
            let why = format!("platform {platform} has no tier {tier}");
            return Err(LabError::Failed(why));
        }
    }
    Ok(tiers)
}

/// The least or the greatest of several figures.
type Join = fn(Vec<Figure>) -> Figure;

/// What is read from a population.
type ReadStudy = fn(&Study) -> Result<f64, String>;

/// A figure of a population, of some pairs of tiers.
fn population(
    unit: &'static str,
    pairs: &[Pair],
    join: Join,
    read: impl Fn(&Study) -> Result<f64, String> + Clone + Send + Sync + 'static,
) -> Figure {
    let pairs = pairs.iter();
    let of = |&(platform, to)| Figure::read(unit, platform, Population { to }, read.clone());
    join(pairs.map(of).collect())
}

/// A row with a figure of a population.
fn of_population(
    id: &str,
    unit: &'static str,
    pairs: &[Pair],
    join: Join,
    read: ReadStudy,
) -> Rule {
    slow(id, population(unit, pairs, join, read), OF_POPULATION)
}

/// How good predictions of a component are: its unit, and what of a line it is.
type Quality = (&'static str, fn(&AccuracyLine) -> Option<f64>);

/// Pearson's correlation with what was measured.
const PEARSON: Quality = ("r", |line| line.pearson);
const WITHIN_2: Quality = ("%", |line| Some(line.within_2_pct));
const WITHIN_5: Quality = ("%", |line| Some(line.within_5_pct));
const WITHIN_10: Quality = ("%", |line| Some(line.within_10_pct));

/// How good predictions of a component, or of the total, are. Where the model is used in a form of
/// Weir's own, the row is answered with the published form.
fn line(
    id: impl Into<String>,
    pairs: &[Pair],
    join: Join,
    component: &'static str,
    (unit, read): Quality,
) -> Rule {
    let own = move |study: &Study| study.quality(component, read);
    let published = move |study: &Study| match study.line(&format!("published {component}")) {
        Some(_) => study.quality(&format!("published {component}"), read),
        None => own(study),
    };
    match component {
        "store" => slow(id, population(unit, pairs, join, own), OF_POPULATION),
        _ => Rule {
            own: Some(population(unit, pairs, join, own)),
            ..slow(id, population(unit, pairs, join, published), AS_PUBLISHED)
        },
    }
}

/// A row that takes minutes.
fn slow(id: impl Into<String>, figure: Figure, note: &'static str) -> Rule {
    Rule {
        is_slow: true,
        note,
        ..Rule::predicted(id, figure)
    }
}

/// A figure of some presets on some pairs of tiers.
fn presets(
    id: &str,
    unit: &'static str,
    pairs: &[Pair],
    names: &[&'static str],
    read: fn(&PresetRun) -> f64,
    join: Join,
) -> Rule {
    let mut figures = Vec::new();
    for &(platform, to) in pairs {
        let of = |&name| {
            Figure::read(unit, platform, Preset { name, to }, move |run| {
                Ok(read(run))
            })
        };
        figures.extend(names.iter().map(of));
    }
    slow(id, join(figures), OF_PRESETS)
}

/// How much longer presets take at most, in percent.
fn slowdowns(id: &str, pairs: &[Pair], names: &[&'static str]) -> Rule {
    presets(id, "%", pairs, names, PresetRun::slowdown_pct, greatest)
}

/// Slowdown by DRAM in percent of all slowdown, the least of some presets.
fn dram_share(id: &str, names: &[&'static str]) -> Rule {
    presets(id, "%", &[CXL_A], names, PresetRun::dram_share_pct, least)
}

/// The least and the greatest figure of workloads that wait for bandwidth, in two rows.
fn shots(
    first: u32,
    unit: &'static str,
    (platform, to): Pair,
    read: interleave::ReadShots,
) -> [Rule; 2] {
    [(first, f64::min as JoinNumbers), (first + 1, f64::max)].map(|(number, join)| {
        let figure = Figure::read(unit, platform, Shots { to }, move |shots| {
            interleave::figure(shots, read, join)
        });
        slow(format!("SUP-{number}"), figure, CROWDS)
    })
}

/// The lesser or the greater of two numbers.
type JoinNumbers = fn(f64, f64) -> f64;

/// The least or the greatest figure of the climbs of Caption.
fn climbs(id: &str, unit: &'static str, read: interleave::ReadClimb, join: JoinNumbers) -> Rule {
    let (platform, to) = CLUSTER;
    let figure = Figure::read(unit, platform, Climbs { to }, move |climbs| {
        let figures: Vec<f64> = climbs.iter().map(read).collect::<Result<_, String>>()?;
        let joined = figures.into_iter().reduce(join);
        joined.ok_or_else(|| "nothing was tried".into())
    });
    slow(id, figure, OF_FOUR)
}

/// Every rule for rows about slowdown and interleaving: SupMario (arXiv 2409.14317), sections 3 to 6,
/// and Caption.
pub fn rules() -> Vec<Rule> {
    const GCC: &[&str] = &["gcc-pta-like"];
    const BWAVES: &[&str] = &["bwaves-like"];
    const OMNETPP: &[&str] = &["omnetpp-like"];
    const FOTONIK: &[&str] = &["fotonik-speed-like"];
    let (all, cards, far) = (&[ZNUMA, CXL_A, CXL_B], &[CXL_A, CXL_B], &[FAR_A, FAR_B]);
    let (znuma, a, numa) = (&[ZNUMA], &[CXL_A], &[EMR_NUMA]);
    let slowed = |id: &str, read: ReadStudy| slow(id, population("%", all, least, read), SHAPED);
    let (platform, to) = CXL_A;
    let no_prefetch = Figure::read("fraction", platform, NoPrefetch { to }, |&worst| Ok(worst));
    let (platform, to) = ZNUMA;
    let shift = Figure::read("r", platform, PrefetchShift { to }, handed_over);
    let mut rules = vec![
        slow("SUP-146", shift, OF_LIBRARY),
        slowdowns("SUP-108", numa, &["lbm-speed-like", "fotonik-speed-like"]),
        slowdowns("SUP-114", numa, GCC),
        slowdowns("SUP-115", a, GCC),
        slowdowns("SUP-116", &[CXL_B], GCC),
        slowdowns("SUP-117", &[CXL_C], GCC),
        slowdowns("SUP-118", numa, BWAVES),
        slowdowns("SUP-119", a, BWAVES),
        slowdowns("SUP-120", &[CXL_B], BWAVES),
        slowdowns("SUP-121", &[CXL_C], BWAVES),
        presets(
            "SUP-122",
            "x",
            &[CXL_C],
            FOTONIK,
            PresetRun::times,
            greatest,
        ),
        slowdowns("SUP-123", &[CXL_A, CXL_B, CXL_C, CXL_D], OMNETPP),
        presets("SUP-124", "x", far, OMNETPP, PresetRun::times, greatest),
        presets("SUP-125", "GB/s", far, OMNETPP, |run| run.gbps, greatest),
        of_population("SUP-142", "%", all, greatest, Study::unexplained),
        of_population("SUP-143", "%", all, least, Study::explained_pct),
        slowed("SUP-147", |study| Ok(study.slowed_pct(|parts| parts.cache))),
        slowed("SUP-148", |study| Ok(study.slowed_pct(|parts| parts.dram))),
        dram_share("SUP-149", &["dlrm-embedding", "gpt2-decode"]),
        dram_share("SUP-150", GCC),
        of_population("SUP-151", "%", a, least, |study| {
            study.drawing_10_to_20(f64::min)
        }),
        of_population("SUP-152", "%", a, least, |study| {
            study.drawing_10_to_20(f64::max)
        }),
        of_population("SUP-156", "r", znuma, least, Study::stalls_alone),
        line("SUP-157", znuma, least, "DRAM", PEARSON),
        line("SUP-191", znuma, least, "total", WITHIN_10),
        line("SUP-192", cards, least, "total", WITHIN_10),
        line("SUP-193", cards, greatest, "total", WITHIN_10),
        dram_share("SUP-214", &["tc-twitter"]),
        slow("SUP-244", no_prefetch, OF_POPULATION),
        climbs("CAP-010", "%", interleave::settled_share_pct, f64::min),
        climbs("CAP-011", "%", interleave::settled_share_pct, f64::max),
        climbs("CAP-012", "runs", interleave::tunings, f64::max),
    ];
    // Three rows each, of zNUMA, CXL-A and CXL-B.
    let lines = [
        (158, "DRAM", PEARSON),
        (161, "DRAM", WITHIN_5),
        (164, "DRAM", WITHIN_10),
        (167, "cache", PEARSON),
        (170, "cache", WITHIN_5),
        (173, "cache", WITHIN_10),
        (176, "store", PEARSON),
        (179, "store", WITHIN_2),
        (182, "store", WITHIN_5),
    ];
    for (first, component, quality) in lines {
        for (number, pair) in (first..).zip(all) {
            let id = format!("SUP-{number}");
            rules.push(line(id, &[*pair], least, component, quality));
        }
    }
    rules.extend(shots(199, "%", ZNUMA, interleave::share_of_gainers));
    rules.extend(shots(201, "%", ZNUMA, interleave::share_of_others));
    rules.extend(shots(205, "%", ZNUMA, interleave::gain));
    rules.extend(shots(207, "%", CXL_A, interleave::gain));
    rules.extend(shots(209, "%", TWO_CXL_A, interleave::gain));
    rules.extend(shots(245, "x", CXL_A, interleave::all_slow));
    rules.extend(coaxial::rules());
    for step in 0..5 {
        let figure = Figure::new("%", move |_| Ok(interleave::step_of_path(step)));
        let id = format!("CAP-{:03}", step + 1);
        rules.push(Rule::new(id, RowKind::Replayed, figure).noting(AS_SHOWN));
    }
    rules
}
