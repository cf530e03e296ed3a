//! `weir steer explain`: a decision in words, from the log or from a stored run.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use weir_lab::Outcome as _;
use weir_linux::input::Input;
use weir_steer::document::ScenarioOutcome;
use weir_steer::log::{ChangeDetector, LogLine};

use super::config_file;
use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::files::OfLines;
use crate::output::{print_as, to_json, wrap};
use crate::session::say;
use crate::shown::document;
use crate::store::Store;
use crate::stored::load;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer explain --config /etc/weir/steer.toml
  weir steer explain 42 --log /var/log/weir/steer.jsonl
  weir steer explain 3 --run last")]
pub struct Args {
    /// The decision's number, or `last`.
    #[arg(default_value = "last", value_name = "N")]
    decision: String,
    /// The decision log.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    log: Option<PathBuf>,
    /// The configuration that names the log.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "log"])]
    config: Option<PathBuf>,
    /// A stored run, as `weir runs` names it.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Explains a decision.
///
/// # Errors
/// There is no such log, run or decision.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let wanted = match args.decision.as_str() {
        "last" => None,
        number => Some(number.parse::<u64>().map_err(|_| {
            Failure::request(format!(
                "`{number}` is not a decision; give a number, or `last`"
            ))
        })?),
    };
    let lines = match (&args.run, log_path(args)?) {
        (Some(run), _) => of_run(run, context)?,
        (None, Some(log)) => of_log(&log, wanted)?,
        (None, None) => {
            return Err(Failure::request(
                "name the decision log with --log or --config, or a run with --run",
            ));
        }
    };
    // A restarted controller counts from 1 again: the newest decision of the number is used.
    let found = match wanted {
        None => lines.last(),
        Some(n) => lines.iter().rev().find(|line| line.n == n),
    };
    let Some(line) = found else {
        return Err(Failure::request(match (wanted, lines.last()) {
            (Some(n), Some(last)) => format!("there is no decision {n}; the last is {}", last.n),
            _ => "there is no decision yet".to_owned(),
        }));
    };
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(line)?,
            Format::Table | Format::Csv => {
                let wrapped = line.explain();
                wrapped.lines().map(|line| wrap(line, "", "  ")).collect()
            }
        },
    )
}

fn log_path(args: &Args) -> Result<Option<PathBuf>> {
    if let Some(config) = &args.config {
        let log = config_file::read(config)?.log;
        let text = || Failure::request(format!("{} names no decision log", config.display()));
        return Ok(Some(log.ok_or_else(text)?.path));
    }
    Ok(args.log.clone())
}

/// Lines of a log: the last, and those of the requested number. Unreadable lines are counted.
fn of_log(path: &Path, wanted: Option<u64>) -> Result<Vec<LogLine>> {
    let text = || format!("cannot read the decision log {}", path.display());
    let file = Input::open(path)
        .with_context(text)
        .map_err(Failure::Request)?;
    let (mut kept, mut broken) = (Vec::<LogLine>::new(), 0);
    for line in BufReader::new(OfLines::new(file)).split(b'\n') {
        let line = line.with_context(text)?;
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice::<LogLine>(&line) {
            Ok(line) => {
                // The last line shows how far the log goes.
                if kept.last().is_some_and(|last| Some(last.n) != wanted) {
                    kept.pop();
                }
                kept.push(line);
            }
            Err(_) => broken += 1,
        }
    }
    if broken > 0 {
        say(&format!(
            "weir: warning: {broken} lines of {} cannot be read",
            path.display()
        ));
    }
    Ok(kept)
}

/// Decisions of a stored run, in the form of the log.
fn of_run(name: &str, context: &Context) -> Result<Vec<LogLine>> {
    let path = context.store_path()?;
    let store = Store::open_existing(&path)?;
    let run = load(store.as_ref(), &path, name)?;
    if run.schema() != ScenarioOutcome::SCHEMA {
        return Err(Failure::request(format!(
            "run {} is no `weir steer run`",
            run.summary.id
        )));
    }
    let document = document::<ScenarioOutcome>(&run)?.output;
    let mut news = ChangeDetector::default();
    let new = document.windows.into_iter().filter(|w| news.is_new(w));
    let at = run.summary.started.clone();
    Ok((1..)
        .zip(new)
        .map(|(n, window)| LogLine {
            schema: LogLine::SCHEMA.into(),
            n,
            at: format!("run of {at}"),
            controller: document.controller.clone(),
            dry: document.dry,
            window,
        })
        .collect())
}
