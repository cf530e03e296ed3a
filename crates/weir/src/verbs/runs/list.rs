//! `weir runs list`: what the store holds, narrowed by machine, experiment, tier and time.

use std::path::Path;

use weir_lab::PointStudy as _;
use weir_lab::studies::{All, POINT_STUDIES};
use weir_model::topology::TierName;

use crate::context::{Context, Format};
use crate::documents::RunsDocument;
use crate::failure::{Failure, Result};
use crate::output::{Column, Table, figure, print, print_text, seconds, to_csv, to_json};
use crate::store::{Filter, Metric, RunLine, Store};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir runs list --format csv
  weir runs list --machine emr2s --experiment bandwidth --tier cxl0 \\
      --metric gbps
  weir runs list --since 7d --limit 20")]
pub struct Args {
    /// Only runs on machines whose name begins with this.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Only runs with figures of this experiment: latency, bandwidth, random, ...
    #[arg(long, value_name = "NAME", value_parser = experiment)]
    experiment: Option<String>,
    /// Only runs with figures of this tier.
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// Only runs that began then or later (UTC): 2026-03-01, or 7d, 12h, 30m ago.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only this many runs, the newest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Show each run's best figure of the experiment and tier.
    #[arg(long, value_enum)]
    metric: Option<Metric>,
}

fn experiment(name: &str) -> std::result::Result<String, String> {
    let studies = POINT_STUDIES.iter().map(|study| study.name);
    let known: Vec<&str> = studies
        .filter(|name| *name != All::NAME)
        .chain(["interplay"])
        .collect();
    match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "no experiment is called `{name}`; there are {}",
            known.join(", ")
        )),
    }
}

/// Prints the runs that are asked for, newest first.
///
/// # Errors
/// The store cannot be read, or the time is none.
pub fn run(args: &Args, store: Option<&Store>, path: &Path, context: &Context) -> Result<()> {
    let runs = match store {
        Some(store) => store.query(&filter(args, store)?)?,
        None if context.global.store.is_some() => {
            return Err(Failure::request(format!(
                "there is no store {}; a run that is measured with --store makes one",
                path.display()
            )));
        }
        None => Vec::new(),
    };
    match context.global.format {
        Format::Json => print(&to_json(&RunsDocument {
            schema: RunsDocument::SCHEMA.into(),
            weir: env!("CARGO_PKG_VERSION").into(),
            runs,
        })?),
        Format::Csv => print(&to_csv(&runs)?),
        Format::Table if runs.is_empty() => {
            context.note(&match store {
                Some(store) if !store.query(&newest())?.is_empty() => {
                    "no run is like that; leave a condition out".to_owned()
                }
                _ => format!("no runs in {} yet; `weir bench` makes one", path.display()),
            });
            Ok(())
        }
        Format::Table => print_text(&table(&runs, args.metric)),
    }
}

fn newest() -> Filter {
    Filter {
        limit: Some(1),
        ..Filter::default()
    }
}

fn filter(args: &Args, store: &Store) -> Result<Filter> {
    let since_s = match &args.since {
        None => None,
        Some(words) => Some(store.time(words)?.ok_or_else(|| {
            Failure::request(format!(
                "--since: `{words}` is no time; write 2026-03-01, `2026-03-01 14:05`, or 7d, 12h, 30m ago"
            ))
        })?),
    };
    Ok(Filter {
        machine: args.machine.clone(),
        experiment: args.experiment.clone(),
        tier: args.tier.as_ref().map(TierName::named),
        since_s,
        limit: args.limit,
        metric: args.metric,
    })
}

/// A time to the minute, which leaves a row room on one line; the other formats have the second.
fn minute(time: &str) -> &str {
    time.rsplit_once(':').map_or(time, |(minute, _)| minute)
}

fn table(runs: &[RunLine], metric: Option<Metric>) -> String {
    let mut heads = vec![
        Column::number("run"),
        // As a number, a time is not broken over lines.
        Column::number("began (UTC)"),
        Column::words("what"),
        Column::words("machine"),
        Column::number("figures"),
    ];
    heads.push(match metric {
        None => Column::number("took"),
        Some(Metric::Gbps) => Column::number("best\nGB/s"),
        Some(Metric::Ns) => Column::number("least\nns"),
    });
    heads.push(Column::words("state"));
    let mut table = Table::new(&heads).dense();
    for run in runs {
        let figures = if run.planned == 0 && run.kept == 0 {
            // All came from earlier runs, or it has none.
            "-".into()
        } else if run.partial && run.kept < run.planned {
            // Without a plan of points, what a stopped run has is all that it knows of.
            format!("{}/{}", run.kept, run.planned)
        } else {
            run.kept.to_string()
        };
        let shown = |value: Option<f64>| value.map_or("-".into(), figure);
        table.row([
            run.id.to_string(),
            minute(&run.started).to_owned(),
            run.verb.clone(),
            run.machine.clone(),
            figures,
            match metric {
                None => seconds(run.elapsed_s),
                Some(Metric::Gbps) => shown(run.best_gbps),
                Some(Metric::Ns) => shown(run.least_ns),
            },
            state(run).into(),
        ]);
    }
    table.to_string()
}

/// Whether a run has all its figures, in a word.
pub(super) fn state(run: &RunLine) -> &'static str {
    if run.partial { "partial" } else { "done" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_go_by_their_names() {
        for known in POINT_STUDIES.iter().filter(|study| study.name != All::NAME) {
            assert_eq!(experiment(known.name), Ok(known.name.to_owned()));
        }
        assert!(experiment("lateness").unwrap_err().contains("latency"));
    }
}
