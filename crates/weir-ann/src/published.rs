//! How rows of CXL-ANNS are answered: by the steps of searches on the model of its machine.

use weir_lab::reproduce::rule::{Figure, On, Results, Rule};
use weir_model::units::Bytes;

use crate::datasets::Dataset;
use crate::ladder::{Parts, Spent, Step, Variant};
use crate::study::{Steps, budget_of, capacity_share, step_of};
use crate::vectors::SHARD;

/// The paper's machine with the four devices of most datasets, and with the eight of Meta-S.
const FOUR: &str = "cxl-anns+4xcxl-anns-device@interleaved@switch";
const EIGHT: &str = "cxl-anns+8xcxl-anns-device@interleaved@switch";

const OTHERS: &str = "needs product quantisation, DiskANN or HM-ANN, which Weir does not have";
const CONTEXT: &str = "says what the paper's setting is, and follows from nothing";
const PARAMETER: &str = "is a parameter of the platform";
const ALL_CORES: &str = "a query on each of the 40 cores at the same time, as FAISS, on which the paper's runtime is built, searches a batch; the paper does \
     not say how many there are";
const SHARDS: &str = "four bytes for each shard of a vector, which devices return by the description of section 5.1; the paper's figure is what 8 bytes \
     for each vector give";
const SCALED: &str = "steps as on a generated graph of 10,000 nodes with 50 candidates, and as many of them as the published candidates";
const AVAILABLE: &str = "lists fill 15/16 of local memory; the paper takes what is free, and does not say how much that is";
const HUBS: &str = "nodes of inner hops are read more often on the generated graph, also far into a search; on the paper's graph they are not";
const UTILISATION: &str =
    "needs the activity of single units over time, which the paper has in a figure";
const MISSES: &str = "a list's time for each of its lines; the paper counts accesses of L1, among them those that hit";

const LISTS: &str = "reading a list waits for its lines and for little else here, and is as much slower as their latency; the paper's core works on it besides";
const ALONE: &str =
    "of a query alone: with one on each of the 40 cores the devices are busy, and EPAx is slower";
const FORESEEN: &str = "a prefetch takes few instructions, while the core waits anyway";
const COMMANDS: &str = "the paper does not print the size of a command; ours has the numbers of all nodes of a step, for each device";

/// Every rule.
pub fn rules() -> Vec<Rule> {
    let mut rules = answered();
    for rule in &mut rules {
        rule.is_slow = true;
    }
    rules.extend(identities());
    let unanswered: [(&[u32], &'static str); 4] = [
        (
            &[
                1, 2, 11, 12, 14, 15, 32, 33, 34, 35, 36, 37, 75, 77, 103, 104, 109, 110, 111,
            ],
            OTHERS,
        ),
        (
            &[
                8, 9, 10, 13, 16, 23, 25, 26, 29, 74, 76, 78, 102, 106, 108, 118, 119,
            ],
            CONTEXT,
        ),
        (&[22, 72, 73, 117, 120], PARAMETER),
        (&[57, 59, 60], UTILISATION),
    ];
    for (rows, needs) in unanswered {
        rules.extend(Rule::not_modelled("ANN", rows.iter().copied(), needs));
    }
    rules
}

fn machine(dataset: Dataset) -> On {
    match dataset.published().devices {
        8 => EIGHT.into(),
        _ => FOUR.into(),
    }
}

/// A figure of a dataset's steps.
fn of(
    results: &Results<'_>,
    dataset: Dataset,
    read: impl Fn(&Step<'_>) -> f64,
) -> Result<f64, String> {
    let on = machine(dataset);
    let budget = budget(results, dataset)?;
    results.read(on, &Steps::usual(dataset), |(walked, times)| {
        Ok(read(&step_of(
            dataset,
            (walked, times),
            budget,
            None,
            false,
        )?))
    })
}

fn budget(results: &Results<'_>, dataset: Dataset) -> Result<Bytes, String> {
    let opened = results.on(machine(dataset))?;
    let tier = opened
        .topology
        .tiers
        .first()
        .ok_or("the machine has no memory")?;
    Ok(budget_of(tier.capacity))
}

/// The mean over datasets.
fn mean(
    unit: &'static str,
    datasets: &'static [Dataset],
    read: impl Fn(&Step<'_>) -> f64 + Send + Sync + 'static,
) -> Figure {
    Figure::new(unit, move |results| {
        let all = datasets.iter().map(|&dataset| of(results, dataset, &read));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        Ok(all.iter().sum::<f64>() / all.len().max(1) as f64)
    })
}

const ALL: &[Dataset] = &Dataset::ALL;

fn total(step: &Step<'_>, variant: Variant) -> f64 {
    step.spent(variant).parts.total().get()
}

/// One variant's part of a step as a multiple of another's.
fn times_of(
    one: Variant,
    other: Variant,
    part: impl Fn(&Parts) -> f64 + Send + Sync + 'static,
) -> impl Fn(&Step<'_>) -> f64 + Send + Sync + 'static {
    move |step| part(&step.spent(one).parts) / part(&step.spent(other).parts)
}

/// Queries that one variant finishes in a second, as a multiple of another's.
fn rate_of(one: Variant, other: Variant) -> impl Fn(&Step<'_>) -> f64 + Send + Sync + 'static {
    move |step| step.queries_per_second(one, 1) / step.queries_per_second(other, 1)
}

fn whole(parts: &Parts) -> f64 {
    parts.total().get()
}

fn ms(step: &Step<'_>, variant: Variant) -> f64 {
    total(step, variant) * step.steps() / 1e6
}

fn hits(datasets: &'static [Dataset]) -> Figure {
    mean("%", datasets, |step| 100.0 * step.hits)
}

fn list_ns(step: &Step<'_>, variant: Variant) -> f64 {
    let lines = (step.shape.list_bytes() / 64.0).ceil();
    step.spent(variant).parts.traverse.get() / lines
}

fn answered() -> Vec<Rule> {
    use Variant::{Base, Cache, Cxla, Epax, NoPrefetch, Oracle};
    const LARGE: &[Dataset] = &[Dataset::MetaS, Dataset::MsS];
    let extreme = |unit, pick: fn(f64, f64) -> f64| {
        Figure::new(unit, move |results| {
            let read = times_of(Base, Oracle, whole);
            let all = ALL.iter().map(|&dataset| of(results, dataset, &read));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            all.into_iter()
                .reduce(pick)
                .ok_or_else(|| "no dataset".into())
        })
    };
    let predicted = Rule::predicted;
    let mut rules = vec![
        predicted(
            "ANN-003",
            mean("%", ALL, |step| {
                100.0 * (1.0 - total(step, Cxla) / total(step, Oracle))
            }),
        ),
        predicted("ANN-004", mean("x", ALL, rate_of(Cxla, Oracle))).noting(ALL_CORES),
        predicted("ANN-005", mean("x", ALL, times_of(Base, Oracle, whole))),
        predicted("ANN-006", extreme("x", f64::min)),
        predicted("ANN-101", extreme("x", f64::max)),
        predicted("ANN-007", mean("x", ALL, rate_of(Oracle, Base))).noting(ALL_CORES),
        predicted(
            "ANN-017",
            mean("%", ALL, |step| {
                let parts = step.spent(Oracle).parts;
                100.0 * (parts.distance() / parts.total())
            }),
        ),
        predicted(
            "ANN-021",
            mean("x", ALL, |step| {
                step.shape.vector_bytes() / (4.0 * f64::from(step.shape.shards()))
            }),
        )
        .noting(SHARDS),
        predicted("ANN-030", mean("%", ALL, |step| 100.0 * step.walk.foreseen)).noting(SCALED),
        predicted(
            "ANN-031",
            mean("%", &[Dataset::YandexD], |step| {
                let spent = step.spent(Cache);
                100.0 * (spent.idle / spent.parts.total())
            }),
        ),
        predicted(
            "ANN-038",
            mean(
                "x",
                ALL,
                times_of(Base, Oracle, |parts| parts.traverse.get()),
            ),
        )
        .noting(LISTS),
        predicted(
            "ANN-112",
            mean(
                "x",
                ALL,
                times_of(Base, Oracle, |parts| parts.distance().get()),
            ),
        ),
        predicted(
            "ANN-039",
            mean(
                "x",
                ALL,
                times_of(Base, Epax, |parts| parts.distance().get()),
            ),
        )
        .noting(ALONE),
        predicted(
            "ANN-040",
            mean("%", ALL, |step| {
                let (epax, base) = (step.spent(Epax).parts, step.spent(Base).parts);
                100.0 * (epax.interface / base.distance())
            }),
        ),
        predicted("ANN-041", mean("x", ALL, times_of(Base, Epax, whole))).noting(ALONE),
        predicted("ANN-042", mean("x", ALL, times_of(Oracle, Epax, whole))).noting(ALONE),
        predicted(
            "ANN-043",
            mean("x", ALL, |step| {
                step.spent(Base).link_bytes / step.spent(Epax).link_bytes
            }),
        )
        .noting(COMMANDS),
        predicted("ANN-046", hits(ALL)).noting(AVAILABLE),
        predicted("ANN-047", hits(&[Dataset::BigAnn, Dataset::YandexT])).noting(AVAILABLE),
        predicted("ANN-048", hits(&[Dataset::MetaS])).noting(HUBS),
        predicted(
            "ANN-051",
            mean("%", ALL, |step| {
                let Spent { foresee, parts, .. } = step.spent(Cache);
                100.0 * (foresee / parts.total())
            }),
        )
        .noting(FORESEEN),
        predicted("ANN-053", mean("ns", ALL, |step| list_ns(step, Epax))).noting(MISSES),
        predicted(
            "ANN-054",
            mean("%", ALL, |step| {
                100.0 * (1.0 - list_ns(step, NoPrefetch) / list_ns(step, Epax))
            }),
        )
        .noting(MISSES),
        predicted(
            "ANN-056",
            mean("x", LARGE, |step| {
                list_ns(step, NoPrefetch) / list_ns(step, Oracle)
            }),
        )
        .noting(MISSES),
    ];
    let latencies = [
        ("ANN-064", "ANN-113", [Dataset::BigAnn]),
        ("ANN-065", "ANN-114", [Dataset::YandexT]),
        ("ANN-066", "ANN-115", [Dataset::YandexD]),
        ("ANN-068", "ANN-116", [Dataset::MsT]),
    ];
    for (base, cxla, [dataset]) in latencies {
        for (id, variant) in [(base, Base), (cxla, Cxla)] {
            let figure = Figure::new("ms", move |results| {
                of(results, dataset, |step| ms(step, variant))
            });
            rules.push(predicted(id, figure).noting(SCALED));
        }
    }
    rules
}

/// What follows from Table 2 and the platform by arithmetic, and asks no machine.
pub fn identities() -> Vec<Rule> {
    let shapes = |of: fn(Dataset) -> f64| {
        let all: Vec<f64> = Dataset::ALL.into_iter().map(of).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let plain = |unit, value: f64| Figure::new(unit, move |_| Ok(value));
    let vectors = shapes(|dataset| dataset.published().vector_bytes());
    let lists = shapes(|dataset| dataset.published().list_bytes());
    let candidates = |datasets: [Dataset; 3]| {
        datasets
            .map(|one| f64::from(one.published().candidates))
            .iter()
            .sum::<f64>()
    };
    let long = candidates([Dataset::YandexT, Dataset::YandexD, Dataset::MetaS]);
    let short = candidates([Dataset::BigAnn, Dataset::MsT, Dataset::MsS]);
    let graph =
        |dataset: Dataset| dataset.published().vectors * dataset.published().list_bytes() / 1e9;
    let dims = |pick: fn(usize, usize) -> usize| {
        let all = Dataset::ALL.into_iter().map(|one| one.published().dims);
        all.reduce(pick).unwrap_or(0) as f64
    };
    let held = Figure::new("%", |results| {
        let share = |dataset| Ok::<_, String>(capacity_share(dataset, budget(results, dataset)?));
        Ok(50.0 * (share(Dataset::MetaS)? + share(Dataset::MsS)?))
    });
    vec![
        Rule::identity("ANN-018", plain("x", vectors / lists)),
        Rule::identity("ANN-019", plain("x", long / short)),
        Rule::identity("ANN-020", plain("dims", dims(usize::min))),
        Rule::identity("ANN-105", plain("dims", dims(usize::max))),
        Rule::identity("ANN-024", plain("B", crate::arena::LEAST as f64)),
        Rule::identity("ANN-107", plain("B", crate::arena::MOST as f64)),
        Rule::identity(
            "ANN-027",
            plain("B", Dataset::MetaS.published().vector_bytes()),
        ),
        Rule::identity("ANN-028", plain("B", 4.0 * SHARD as f64)),
        Rule::identity(
            "ANN-049",
            plain(
                "GB",
                (graph(Dataset::BigAnn) + graph(Dataset::YandexT)) / 2.0,
            ),
        ),
        Rule::identity("ANN-055", held).noting(AVAILABLE),
    ]
}
