//! `weir runs compare`: figure by figure, what changed between runs and what did not.

use clap::ValueEnum;
use weir_lab::compare::{Comparison, Figure, Pair, Quantile, Unit, compare};
use weir_model::document::{BenchDocument, Point};

use super::compare_rows;
use crate::context::{Context, Format};
use crate::documents::{CompareDocument, ComparedFigure, ComparedRuns};
use crate::failure::{Failure, Result};
use crate::output::{Column, Table, count, figure, print, print_text, to_csv, to_json, wrap};
use crate::store::StoredRun;
use crate::stored;
use crate::verbs::report::is_of_points;

/// Rows of a table for reading.
const ROWS: usize = 40;
/// Kinds of figures that an error names of a run.
const NAMED: usize = 4;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir runs compare 3 7
  weir runs compare emr2s spr2s --limit 100
  weir runs compare 3 7 8 --figure p999 --format json
  weir runs compare 3 output_data.csv

Points are matched by what they are, on whatever machines; rows of other runs,
such as those of explain, by their words. A difference is
beyond chance where it exceeds the root of the sum of the squares of both 95 %
intervals; `?` stands where a figure has no interval.")]
pub struct Args {
    /// Runs, the one that the others are compared with first; or a run of STREAM
    /// and a CSV file of STREAMer.
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub runs: Vec<String>,
    /// Which figure of each point.
    #[arg(long, value_enum, default_value_t = Which::Main)]
    figure: Which,
    /// Rows to print, the largest effects first.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Bandwidth, or mean latency.
    Main,
    /// Median latency.
    P50,
    /// 99 of 100 accesses are faster.
    P99,
    /// 999 of 1,000 accesses.
    P999,
    /// 9,999 of 10,000 accesses.
    P9999,
}

impl Which {
    const fn figure(self) -> Figure {
        match self {
            Which::Main => Figure::Main,
            Which::P50 => Figure::Quantile(Quantile::P50),
            Which::P99 => Figure::Quantile(Quantile::P99),
            Which::P999 => Figure::Quantile(Quantile::P999),
            Which::P9999 => Figure::Quantile(Quantile::P9999),
        }
    }
}

/// Compares the first run with each of the others.
///
/// # Errors
/// The runs are of different kinds or have no figures in common, or this version does not read one.
pub fn run(args: &Args, runs: &[StoredRun], context: &Context) -> Result<()> {
    if let Some((first, others)) = runs.split_first()
        && !runs.iter().all(is_of_points)
    {
        let compared = others
            .iter()
            .map(|other| compare_rows::compare(first, other));
        return show_rows(&compared.collect::<Result<Vec<_>>>()?, args, context);
    }
    let documents: Vec<BenchDocument> = (runs.iter())
        .map(stored::bench_document)
        .collect::<Result<_>>()?;
    let Some(((first, others), (of_first, of_others))) =
        runs.split_first().zip(documents.split_first())
    else {
        return Ok(());
    };
    let compared: Vec<(&StoredRun, Comparison<'_>)> = (others.iter().zip(of_others))
        .map(|(run, document)| {
            let (a, b) = (&of_first.points, &document.points);
            let found = compare(a, b, args.figure.figure());
            match found.pairs.is_empty() {
                true => Err(nothing_in_common(
                    first,
                    (run, document),
                    args.figure,
                    of_first,
                )),
                false => Ok((run, found)),
            }
        })
        .collect::<Result<_>>()?;
    match context.global.format {
        Format::Json => print(&to_json(&CompareDocument {
            schema: CompareDocument::SCHEMA.into(),
            weir: env!("CARGO_PKG_VERSION").into(),
            comparisons: (compared.iter())
                .map(|(other, comparison)| ComparedRuns {
                    a: first.summary.clone(),
                    b: other.summary.clone(),
                    figures: rows(first, other, comparison),
                    rows: Vec::new(),
                    only_a: comparison.only_a,
                    only_b: comparison.only_b,
                })
                .collect(),
        })?),
        Format::Csv => print(&to_csv(
            (compared.iter()).flat_map(|(other, comparison)| rows(first, other, comparison)),
        )?),
        Format::Table => {
            let texts: Vec<String> = (compared.iter())
                .map(|(other, comparison)| table(first, other, comparison, args.limit))
                .collect();
            print_text(&texts.join("\n"))
        }
    }
}

/// Why two runs cannot be compared, with what each has.
fn nothing_in_common(
    first: &StoredRun,
    (other, of_other): (&StoredRun, &BenchDocument),
    figure: Which,
    of_first: &BenchDocument,
) -> Failure {
    let has = |run: &StoredRun, document: &BenchDocument| {
        let named = |point: &Point| format!("{} of {}", what(point), point.tier);
        let mut all: Vec<String> = Vec::new();
        for name in document.points.iter().map(named) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        let more = match all.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        all.truncate(NAMED);
        let words = match all.is_empty() {
            true => "nothing".into(),
            false => all.join(", "),
        };
        format!("run {} has {words}{more}", run.summary.id)
    };
    let of = match figure {
        Which::Main => String::new(),
        quantile => format!(
            " for --figure {}",
            quantile
                .to_possible_value()
                .map_or_else(String::new, |value| value.get_name().to_owned())
        ),
    };
    Failure::request(format!(
        "runs {} and {} have no figures in common{of}: {}; {}",
        first.summary.id,
        other.summary.id,
        has(first, of_first),
        has(other, of_other)
    ))
}

fn show_rows(compared: &[ComparedRuns], args: &Args, context: &Context) -> Result<()> {
    match context.global.format {
        Format::Json => print(&to_json(&CompareDocument {
            schema: CompareDocument::SCHEMA.into(),
            weir: env!("CARGO_PKG_VERSION").into(),
            comparisons: compared.to_vec(),
        })?),
        Format::Csv => print(&to_csv(compared.iter().flat_map(|two| &two.rows))?),
        Format::Table => {
            let texts: Vec<String> = (compared.iter())
                .map(|two| compare_rows::table(two, args.limit))
                .collect();
            print_text(&texts.join("\n"))
        }
    }
}

fn rows(a: &StoredRun, b: &StoredRun, comparison: &Comparison<'_>) -> Vec<ComparedFigure> {
    let row = |pair: &Pair<'_>| ComparedFigure {
        run_a: a.summary.id,
        run_b: b.summary.id,
        experiment: pair.point.experiment.clone(),
        tier: pair.point.tier.clone(),
        op: pair.point.op,
        pattern: pair.point.pattern.clone(),
        threads: pair.point.threads,
        what: what(pair.point),
        unit: pair.unit.name().into(),
        a: pair.a,
        b: pair.b,
        ratio: pair.ratio(),
        beyond_chance: pair.beyond,
    };
    comparison.pairs.iter().map(row).collect()
}

fn table(a: &StoredRun, b: &StoredRun, comparison: &Comparison<'_>, limit: usize) -> String {
    let mut text = super::compared(&a.summary, &b.summary);
    let mut table = Table::new(&[
        Column::words("what"),
        Column::words("tier"),
        Column::number("threads"),
        Column::number("A"),
        Column::number("B"),
        Column::words("unit"),
        Column::number("B/A"),
        Column::words("beyond\nchance"),
    ]);
    for pair in comparison.pairs.iter().take(limit) {
        table.row([
            what(pair.point),
            pair.point.tier.to_string(),
            pair.point.threads.to_string(),
            figure(pair.a),
            figure(pair.b),
            pair.unit.name().into(),
            format!("{:.3}", pair.ratio()),
            match pair.beyond {
                Some(true) => "yes".into(),
                Some(false) => "no".into(),
                None => "?".into(),
            },
        ]);
    }
    if !table.is_empty() {
        text.push_str(&table.to_string());
    }
    text.push_str(&wrap(&summary(comparison, limit), "", "  "));
    text
}

/// What a point is besides its tier and threads, in few words.
fn what(point: &Point) -> String {
    let mut words = vec![point.experiment.clone()];
    words.push(match &point.kernel {
        Some(kernel) => kernel.clone(),
        None => point.op.to_string(),
    });
    let is_chase = point.pattern.starts_with("chase");
    if point.pattern != "sequential" && point.block_bytes.is_none() {
        words.push(point.pattern.clone());
    }
    words.extend(point.block_bytes.map(|block| format!("of {block}")));
    if is_chase {
        words.extend(point.wss_bytes.map(|size| format!("over {size}")));
    }
    words.extend(point.batch.map(|batch| format!("x{batch}")));
    words.extend((point.source.as_ref()).map(|source| format!("from {source}")));
    if !point.cores.is_empty() {
        let cores: Vec<String> = point.cores.iter().map(u32::to_string).collect();
        words.push(format!("cores {}", cores.join("+")));
    }
    if let Some(beside) = &point.beside {
        let mut company = format!("with {} {}", beside.threads, beside.op);
        if beside.op != weir_model::access::Op::Ld {
            company.push_str(&format!(" {:.0} % reads", 100.0 * beside.read_share));
        }
        if beside.pause_ns.get() > 0.0 {
            company.push_str(&format!(" every {} ns", figure(beside.pause_ns.get())));
        }
        words.push(company);
    }
    words.join(" ")
}

fn summary(comparison: &Comparison<'_>, limit: usize) -> String {
    let pairs = &comparison.pairs;
    let (mut better, mut worse, mut within, mut unknown) = (0, 0, 0, 0);
    for pair in pairs {
        match pair.beyond {
            Some(true) if pair.is_better() => better += 1,
            Some(true) => worse += 1,
            Some(false) => within += 1,
            None => unknown += 1,
        }
    }
    let mut parts = vec![format!("{} in both", count(pairs.len() as u64, "figure"))];
    if better + worse > 0 {
        parts.push(format!(
            "{better} better and {worse} worse in B beyond chance"
        ));
    }
    if within > 0 {
        parts.push(format!("{within} alike"));
    }
    if unknown > 0 {
        parts.push(format!("{unknown} without an interval"));
    }
    for unit in [Unit::GbPerSec, Unit::Nanos] {
        let ratios: Vec<f64> = (pairs.iter())
            .filter(|pair| pair.unit == unit)
            .map(Pair::ratio)
            .collect();
        parts.extend(median(ratios).map(|m| format!("median B/A of {} {m:.3}", unit.name())));
    }
    if comparison.only_a + comparison.only_b > 0 {
        parts.push(format!(
            "{} only in A, {} only in B",
            comparison.only_a, comparison.only_b
        ));
    }
    if pairs.len() > limit {
        parts.push(format!("the {limit} largest effects are shown"));
    }
    parts.join("; ")
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(*values.get(low)?, *values.get(high)?))
}
