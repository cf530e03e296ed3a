//! The table, and the same as JSON.

use serde_json::{Value, json};

use crate::lines::{Figures, Line, Sample, Use};
use crate::{Asked, IO};

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The samples of a line and a variant, by round.
fn of<'a>(samples: &'a [Sample], line: Line, variant: &'a str) -> impl Iterator<Item = &'a Sample> {
    samples
        .iter()
        .filter(move |sample| sample.line == line && sample.variant == variant)
}

fn middle(
    samples: &[Sample],
    line: Line,
    variant: &str,
    figure: fn(&Figures) -> f64,
) -> Option<f64> {
    median(
        of(samples, line, variant)
            .map(|sample| figure(&sample.figures))
            .collect(),
    )
}

/// How many times as long one takes as the other: the median, least and greatest of the rounds.
fn ratio(
    samples: &[Sample],
    slow: (Line, &str),
    fast: (Line, &str),
    figure: fn(&Figures) -> f64,
) -> Option<(f64, f64, f64)> {
    let mut ratios: Vec<f64> = of(samples, slow.0, slow.1)
        .filter_map(|slow| {
            let fast = of(samples, fast.0, fast.1).find(|fast| fast.round == slow.round)?;
            Some(figure(&slow.figures) / figure(&fast.figures))
        })
        .filter(|ratio| ratio.is_finite())
        .collect();
    ratios.sort_by(f64::total_cmp);
    Some((
        *ratios.get(ratios.len() / 2)?,
        *ratios.first()?,
        *ratios.last()?,
    ))
}

fn cell(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// Prints everything.
pub fn print(
    asked: &Asked,
    samples: &[Sample],
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut variants: Vec<String> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for sample in samples {
        if !variants.contains(&sample.variant) {
            variants.push(sample.variant.clone());
        }
        if !lines.contains(&sample.line) {
            lines.push(sample.line);
        }
    }
    // The file system first, the stores last.
    let order = |name: &String| {
        (
            name.starts_with("flat"),
            name == "flat",
            name == "tmpfs",
            name == "dax",
        )
    };
    variants.sort_by_key(order);
    let base = variants.first().cloned().unwrap_or_default();
    println!(
        "medians of {} rounds; the ratio is {base} by flat in one round, with its range",
        asked.rounds
    );
    println!("\nus for each 2 MB, with several threads as each sees it; of a copy, for the file\n");
    table(samples, &variants, &lines, |figures| figures.micros);
    println!("\nthe same in us of processor time, without that of flushes and loads behind it\n");
    table(samples, &variants, &lines, |figures| figures.cpu);
    let mut rows = Vec::new();
    for &line in &lines {
        for variant in &variants {
            let figure = |figure| middle(samples, line, variant, figure);
            let by =
                |figure| ratio(samples, (line, variant), (line, "flat"), figure).map(|(it, ..)| it);
            let rounds = of(samples, line, variant).map(|sample| sample.figures.micros);
            rows.push(json!({
                "line": line.name(), "threads": line.threads, "variant": variant,
                "us": figure(|figures| figures.micros), "us_of_rounds": rounds.collect::<Vec<f64>>(),
                "cpu_us": figure(|figures| figures.cpu), "minor_faults": figure(|figures| figures.faults),
                "called_bytes": figure(|figures| figures.called), "ratio_to_flat": by(|figures| figures.micros),
                "cpu_ratio_to_flat": by(|figures| figures.cpu),
            }));
        }
    }
    counted(samples, &variants);
    let shares = shares(samples, &variants);
    if let Some(path) = &asked.json {
        let document = json!({
            "rounds": asked.rounds, "operations": asked.ops, "bytes": IO, "files": 16, "file_bytes": asked.file,
            "rows": rows, "shares": shares,
        });
        std::fs::write(path, serde_json::to_string_pretty(&document)? + "\n")?;
    }
    Ok(())
}

/// A line for each line, a column for each variant.
fn table(samples: &[Sample], variants: &[String], lines: &[Line], figure: fn(&Figures) -> f64) {
    let base = variants.first().map_or("", String::as_str);
    print!("{:<27}{:>3}", "", "thr");
    variants.iter().for_each(|variant| print!("{variant:>9}"));
    println!("  ratio");
    for &line in lines {
        print!("{:<27}{:>3}", line.name(), line.threads);
        for variant in variants {
            print!("{:>9}", cell(middle(samples, line, variant, figure)));
        }
        match ratio(samples, (line, base), (line, "flat"), figure) {
            Some((middle, least, most)) => {
                println!(
                    "  {} ({} to {})",
                    cell(Some(middle)),
                    cell(Some(least)),
                    cell(Some(most))
                );
            }
            None => println!(),
        }
    }
}

/// What the kernel counted for each read or write.
fn counted(samples: &[Sample], variants: &[String]) {
    println!("\nminor faults, and KB that system calls copied, for each (1 thread)\n");
    print!("{:<30}", "");
    variants
        .iter()
        .for_each(|variant| print!("{variant:>9}{:>7}", "KB"));
    println!();
    for usage in [
        Use::Read,
        Use::ReadTouch,
        Use::ReadStore,
        Use::ReadModify,
        Use::Write,
        Use::Fill,
        Use::Refill,
    ] {
        let line = Line { usage, threads: 1 };
        print!("{:<30}", line.name());
        for variant in variants {
            print!(
                "{:>9}",
                cell(middle(samples, line, variant, |figures| figures.faults))
            );
            print!(
                "{:>7}",
                cell(middle(samples, line, variant, |figures| figures.called / 1024.0))
            );
        }
        println!();
    }
}

/// Shares of time, after the paper's observations 2 and 3: the copy, what the cache costs besides, what flushes add to
/// writes, and what misses add to reads. A copy takes what a copy of as many bytes in memory takes in the same round;
/// the library makes none. Copy and tax are of processor
/// time; what flushes and misses add is the time that a thread sees.
fn shares(samples: &[Sample], variants: &[String]) -> Value {
    let one = |usage| Line { usage, threads: 1 };
    let percent = |value: Option<f64>| {
        value.map_or("-".to_owned(), |value| format!("{:.0} %", value * 100.0))
    };
    println!("\nof a warm 2 MB read, and what flushes and misses add to 2 MB, us, medians\n");
    println!(
        "{:<10}{:>10}{:>14}{:>18}{:>18}",
        "", "copy", "cache tax", "flush adds", "miss adds"
    );
    let mut rows = Vec::new();
    for variant in variants {
        let cpu = |usage| middle(samples, one(usage), variant, |figures| figures.cpu);
        let wall = |usage| middle(samples, one(usage), variant, |figures| figures.micros);
        let attaches = variant.starts_with("flat");
        let copy = if attaches {
            Some(0.0)
        } else {
            let copied = (
                (one(Use::Memcpy), variant.as_str()),
                (one(Use::Read), variant.as_str()),
            );
            ratio(samples, copied.0, copied.1, |figures| figures.cpu).map(|(it, ..)| it.min(1.0))
        };
        let tax = copy.and_then(|copy| Some(cpu(Use::Read)? * (1.0 - copy)));
        let added = |slow, fast| Some((wall(slow)? - wall(fast)?, wall(slow)? / wall(fast)? - 1.0));
        let flush = added(Use::FillFlushed, Use::Fill);
        let miss = added(Use::ReadCold, Use::ReadTouch);
        let pair = |it: Option<(f64, f64)>| match it {
            Some((micros, share)) if share < 9.0 => format!("{micros:.0} ({:.0} %)", share * 100.0),
            Some((micros, share)) => format!("{micros:.0} ({:.0} times)", share + 1.0),
            None => "-".to_owned(),
        };
        println!(
            "{variant:<10}{:>10}{:>14}{:>18}{:>18}",
            percent(copy),
            tax.map_or("-".to_owned(), |tax| format!("{tax:.1} us")),
            pair(flush),
            pair(miss)
        );
        rows.push(json!({
            "variant": variant, "copy_share": copy, "cache_tax_us": tax,
            "flush_adds_us": flush.map(|it| it.0), "flush_adds_share": flush.map(|it| it.1),
            "miss_adds_us": miss.map(|it| it.0), "miss_adds_share": miss.map(|it| it.1),
        }));
    }
    json!(rows)
}
