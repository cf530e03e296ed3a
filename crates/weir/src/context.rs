//! What every verb is given.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::TypedValueParser as _;
use weir_lab::Part;
use weir_model::units::Nanos;

use crate::failure::Result;
use crate::interrupt::Stop;
use crate::machine::without_spaces;
use crate::session::say;
use crate::store::Store;

/// Options of every verb.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Machine: `weir help machines`.
    #[arg(long, global = true, value_name = "MACHINE", default_value = "host", value_parser = machine)]
    pub on: String,
    /// Output: table, json or csv.
    #[arg(long, global = true, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    pub format: Format,
    /// File of runs [default: in your data directory].
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = STORE_VARIABLE,
        hide_env = true,
        value_parser = clap::builder::OsStringValueParser::new().try_map(store)
    )]
    pub store: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long, global = true, value_name = "N", default_value_t = 1, value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// On a model: the largest error, such as 1%.
    // Half of each 95 % interval, as a share of its figure: it is simulated until that is reached.
    #[arg(long, global = true, value_name = "SHARE", value_parser = relative_error, allow_hyphen_values = true)]
    pub error: Option<f64>,
    /// Wait at most this long for a quiet host.
    #[arg(long, global = true, value_name = "TIME")]
    pub wait: Option<Nanos>,
    /// Share work on models: local, ray or slurm.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "ENGINE",
        hide_possible_values = true
    )]
    pub engine: Option<Engine>,
    /// Workers of the engine [default: one a processor].
    // With `RAY_ADDRESS`, all of that cluster.
    #[arg(long, global = true, value_name = "N", requires = "engine", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub workers: Option<u16>,
    /// Folder all workers see [default: at the store].
    #[arg(long, global = true, value_name = "FOLDER", requires = "engine")]
    pub worker_folder: Option<PathBuf>,
    /// Do only a part of the work, such as `1/4`: other workers do the rest, into stores of their own.
    #[arg(
        long,
        global = true,
        value_name = "I/N",
        hide = true,
        conflicts_with = "engine"
    )]
    pub part: Option<Part>,
    /// The version of the head whose work this worker shares.
    #[arg(long, global = true, value_name = "VERSION", hide = true)]
    pub head: Option<String>,
    /// No progress; warnings and errors stay.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// A time between two others, which the error names as they are written here.
///
/// # Errors
/// It is none.
pub fn between(text: &str, least: &str, most: &str) -> std::result::Result<Nanos, String> {
    let read = |text: &str| text.parse::<Nanos>().map_err(|error| error.to_string());
    let time = read(text)?;
    match (read(least)?..=read(most)?).contains(&time) {
        true => Ok(time),
        false => Err(format!("it must be from {least} to {most}")),
    }
}

/// How long something that a user waits for lasts.
///
/// # Errors
/// It is not from 10 ms to a day.
pub fn lasts(text: &str) -> std::result::Result<Nanos, String> {
    between(text, "10ms", "86400s")
}

/// The variable that names the file of runs where no option does.
const STORE_VARIABLE: &str = "WEIR_STORE";

/// The file of runs. Of an empty text, clap would say that the option has no value, whoever gave it.
fn store(named: OsString) -> std::result::Result<PathBuf, String> {
    if !named.is_empty() {
        return Ok(named.into());
    }
    Err(match std::env::var_os(STORE_VARIABLE) {
        Some(value) if value.is_empty() => {
            format!("the variable {STORE_VARIABLE} is empty; unset it, or name a file in it")
        }
        _ => "an empty text names no file".into(),
    })
}

/// A machine's name, which has no spaces around its parts.
fn machine(named: &str) -> std::result::Result<String, std::convert::Infallible> {
    Ok(without_spaces(named))
}

/// What random numbers begin with.
fn seed(text: &str) -> std::result::Result<u64, String> {
    (text.parse()).map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// A share in percent, above 0 % and below 100 %.
fn relative_error(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().strip_suffix('%').map(str::trim);
    let Some(number) = number else {
        return Err("it needs its unit, such as 1%".into());
    };
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        Ok(_) => Err("it must be above 0 % and below 100 %, such as 1%".into()),
        Err(_) => Err(format!("`{number}` is not a number; write it such as 1%")),
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables of at most 80 columns.
    Table,
    /// One document, as docs/json.md describes.
    Json,
    /// One row for each figure, with a header.
    Csv,
}

/// What starts workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Processes of this machine.
    Local,
    /// Tasks of Ray: of the cluster that `RAY_ADDRESS` names, or of one that is started here.
    Ray,
    /// A job array of Slurm.
    Slurm,
}

/// The arguments that every verb takes, and the way to end early.
#[derive(Debug, Clone)]
pub struct Context {
    /// As parsed.
    pub global: Global,
    /// As typed, without the program's name.
    pub typed: Vec<String>,
    /// When the command began.
    pub began: std::time::Instant,
    /// Whether the user wants the work to end.
    pub stop: Stop,
    /// The part of the work that this process does, where workers share it.
    pub part: Option<Part>,
}

impl Context {
    /// Where runs are kept.
    ///
    /// # Errors
    /// There is no home directory and no file was named.
    pub fn store_path(&self) -> Result<PathBuf> {
        match &self.global.store {
            Some(path) => Ok(path.clone()),
            None => Ok(Store::default_path()?),
        }
    }

    /// Whether this option was typed: `--tier`. The words of a command after `--` are its own.
    pub fn was_typed(&self, option: &str) -> bool {
        let mut own = self.typed.iter().take_while(|word| *word != "--");
        own.any(|word| {
            let value = word.strip_prefix(option);
            value.is_some_and(|value| value.is_empty() || value.starts_with('='))
        })
    }

    /// A context of usual arguments.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        use clap::{Args as _, FromArgMatches as _};
        let matches = Global::augment_args(clap::Command::new("weir")).get_matches_from(["weir"]);
        Self {
            global: Global::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{error}")),
            typed: Vec::new(),
            began: std::time::Instant::now(),
            stop: Stop::on_signals().unwrap_or_else(|error| panic!("{error}")),
            part: None,
        }
    }

    /// Tells the user something that is no result, unless asked to be quiet.
    pub fn note(&self, text: &str) {
        if !self.global.quiet {
            say(text);
        }
    }
}
