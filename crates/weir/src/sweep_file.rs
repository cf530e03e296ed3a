//! Sweeps as data: a file says by name what flags say on the command line.
//!
//! ```toml
//! [[sweep]]
//! experiment = "random"
//! on = ["emr2s+cxl-a", "spr2s"]
//! matrix = { op = ["ld", "nt_st"], block = ["4K", "64K"], threads = [1, "4..8"] }
//! args = { prefetch = false, size = "256M" }
//! ```
//!
//! The names are those of the flags, and the flags read the values. So a file and a command line that say the
//! same give the same points.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command, Subcommand};
use weir_model::diagnostic::{Mistakes, closest, did_you_mean, quote};
use weir_model::toml::{self, Field, Table};

/// A sweep with more points than this fits no run.
const MOST_POINTS: u64 = 16_000_000;
/// Sweeps of a file, machines of a sweep, and values of one axis.
const MOST_ENTRIES: usize = 100_000;

/// The keys of a sweep.
const KEYS: [&str; 4] = ["on", "experiment", "matrix", "args"];

/// One `[[sweep]]`: an experiment with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<V> {
    /// The machines, each with its place in the text; empty means the one of the command line.
    pub on: Vec<(String, usize)>,
    /// The place of the sweep in the text.
    pub at: usize,
    /// What flags would have given.
    pub experiment: V,
    /// Those flags, after the experiment's name.
    pub typed: Vec<String>,
}

/// Reads a file against the experiments and flags of `V`.
///
/// # Errors
/// Every mistake in it: file, line, column, key, and the name that was probably meant.
pub fn read<V: Subcommand>(file: &str, text: &str) -> Result<Vec<Entry<V>>, Mistakes> {
    let experiments = V::augment_subcommands(Command::new("sweep"))
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_help_subcommand(true);
    toml::read(file, text, "a sweep file", |root| {
        let sweeps = root.get("sweep");
        if sweeps.is_none() {
            let help = "write `[[sweep]]` and `experiment = \"…\"` below it";
            root.missing("sweep", help.into());
        }
        root.done("a sweep file");
        let tables = sweeps?.tables(MOST_ENTRIES)?;
        Some(
            tables
                .iter()
                .filter_map(|table| entry(&experiments, table))
                .collect(),
        )
    })
}

fn entry<V: Subcommand>(experiments: &Command, table: &Table<'_>) -> Option<Entry<V>> {
    let on = table
        .get("on")
        .map_or(Some(Vec::new()), |field| machines(&field));
    let names: Vec<&str> = (experiments.get_subcommands().map(Command::get_name)).collect();
    let [_, experiment, matrix, args] = KEYS.map(|key| table.get(key));
    if let Some(name) = experiment.as_ref().and_then(Field::as_text)
        && let Some(command) = experiments.find_subcommand(name)
    {
        misplaced(command, table);
    }
    table.done("a sweep");
    let Some(experiment) = experiment else {
        table.missing("experiment", format!("known are {}", names.join(", ")));
        return None;
    };
    let name = experiment.word(&names, |name| name)?;
    let command = experiments.find_subcommand(name)?;
    let mut reader = Reader {
        command: command.clone().no_binary_name(true),
        typed: vec![name.to_owned()],
        points: 1,
    };
    let axes = matrix.as_ref().map(|field| reader.matrix(field));
    let args = args.map(|field| reader.args(&field, matrix.as_ref()));
    if axes == Some(None) || args == Some(None) {
        return None;
    }
    if let (true, Some(matrix)) = (reader.points > MOST_POINTS, matrix) {
        let points = reader.points;
        matrix.report(
            format!("the matrix has {points} points; no run holds more than {MOST_POINTS}"),
            Some("split it, or leave values out".into()),
        );
        return None;
    }
    let matches = experiments.clone().try_get_matches_from(&reader.typed);
    match matches.and_then(|matches| V::from_arg_matches(&matches)) {
        Ok(found) => Some(Entry {
            on: on?,
            at: experiment.span().start,
            experiment: found,
            typed: reader.typed,
        }),
        Err(error) => {
            experiment.report(reason(&error), None);
            None
        }
    }
}

/// Reports options of an experiment that are keys of its sweep.
fn misplaced(command: &Command, table: &Table<'_>) {
    for (key, field) in table.fields() {
        if !KEYS.contains(&key) && option(command, key).is_some() {
            // It is not reported as an unknown key, too.
            let _ = table.get(key);
            let message = format!("`{key}` is an option of `{}`", command.get_name());
            let help =
                format!("write it in `args = {{ {key} = … }}`, or a list of values in `matrix`");
            field.report_key(message, Some(help));
        }
    }
}

/// The option of a key: `--NAME`, or `--no-NAME` for what is on unless switched off.
fn option<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    let wanted = flag_name(name);
    let is_it = |long: &str| long == wanted || long.strip_prefix("no-") == Some(&wanted);
    (command.get_arguments()).find(|arg| arg.get_long().is_some_and(is_it))
}

/// The machines of `on`: a name or a list of names. `None` after a mistake.
fn machines(field: &Field<'_>) -> Option<Vec<(String, usize)>> {
    let named = |field: &Field<'_>| Some((field.text()?.to_owned(), field.span().start));
    if field.as_text().is_some() {
        return Some(vec![named(field)?]);
    }
    let names = field.list("machine names", MOST_ENTRIES)?;
    match names.is_empty() {
        true => field.must_be(
            "at least one machine: `on = \"host\"` or `on = [\"emr2s+cxl-a\", \"spr2s\"]`",
        ),
        false => names.iter().map(named).collect(),
    }
}

/// Turns the keys of one sweep into the flags of its experiment.
struct Reader {
    command: Command,
    typed: Vec<String>,
    /// Points that the matrix asks for on each machine, as far as it says.
    points: u64,
}

impl Reader {
    /// Lists of values; the points are every combination. `None` after a mistake.
    fn matrix(&mut self, field: &Field<'_>) -> Option<()> {
        let axes = field.table()?.fields();
        if axes.is_empty() {
            let help = "leave it out for the experiment's own values";
            field.report("the matrix is empty", Some(help.into()));
            return None;
        }
        let mut is_right = true;
        for (name, axis) in axes {
            let count = self.axis(name, &axis);
            is_right &= count.is_some();
            self.points = self.points.saturating_mul(count.unwrap_or(1));
        }
        is_right.then_some(())
    }

    /// Adds the values of one axis; returns how many they are.
    fn axis(&mut self, name: &str, axis: &Field<'_>) -> Option<u64> {
        let flag = self.flag(name, axis)?;
        if !matches!(flag.get_action(), ArgAction::Append) {
            let help = format!("write it in `args = {{ {name} = … }}`");
            axis.report(format!("`{name}` takes one value, not a list"), Some(help));
            return None;
        }
        let values = axis.list("values", MOST_ENTRIES)?;
        if values.is_empty() {
            axis.report(
                format!("`{name}` is an empty list: no point is left"),
                Some("leave the key out for the experiment's own values".into()),
            );
            return None;
        }
        let counts: Vec<Option<u64>> = values.iter().map(|v| self.value(&flag, v)).collect();
        counts.into_iter().sum()
    }

    /// Single values, and switches. `None` after a mistake.
    fn args(&mut self, field: &Field<'_>, matrix: Option<&Field<'_>>) -> Option<()> {
        let matrix = matrix.and_then(Field::as_table);
        let mut is_right = true;
        for (name, value) in field.table()?.fields() {
            if matrix.as_ref().is_some_and(|matrix| matrix.has(name)) {
                let message = format!("`{name}` is in the matrix too");
                value.report(message, Some("write it once".into()));
                is_right = false;
                continue;
            }
            is_right &= self.arg(name, &value).is_some();
        }
        is_right.then_some(())
    }

    fn arg(&mut self, name: &str, value: &Field<'_>) -> Option<()> {
        let flag = self.flag(name, value)?;
        if !matches!(flag.get_action(), ArgAction::SetTrue) {
            return self.value(&flag, value).map(|_| ());
        }
        // A flag `--no-NAME` switches off what `NAME = false` does.
        let long = flag.get_long().unwrap_or_default();
        if value.flag()? == (long == flag_name(name)) {
            self.typed.push(format!("--{long}"));
        }
        Some(())
    }

    /// The flag of a key.
    fn flag(&self, name: &str, field: &Field<'_>) -> Option<Arg> {
        if let Some(flag) = option(&self.command, name) {
            return Some(flag.clone());
        }
        let long = |arg: &Arg| arg.get_long().map(str::to_owned);
        let names: Vec<String> = (self.command.get_arguments())
            .filter_map(long)
            .filter(|long| long != "help")
            .map(|long| long.trim_start_matches("no-").replace('-', "_"))
            .collect();
        let help = did_you_mean(&closest(name, names.iter().map(String::as_str)))
            .unwrap_or_else(|| format!("it has {}", names.join(", ")));
        let experiment = self.command.get_name();
        let message = format!("experiment `{experiment}` has no option `{}`", quote(name));
        field.report_key(message, Some(help));
        None
    }

    /// Adds a value that the flag can read; returns for how many points along its axis it is.
    fn value(&mut self, flag: &Arg, field: &Field<'_>) -> Option<u64> {
        let text = field.text_or_number()?;
        if text.contains(',') {
            let message = format!("`{}` is more than one value", quote(&text));
            field.report(message, Some("write each in its own quotes".into()));
            return None;
        }
        let typed = format!("--{}={text}", flag.get_long().unwrap_or_default());
        if let Err(error) = self.command.clone().try_get_matches_from([&typed]) {
            field.report(reason(&error), None);
            return None;
        }
        self.typed.push(typed);
        let range = text.split_once("..").and_then(|(from, to)| {
            let from: u64 = from.trim().parse().ok()?;
            let to: u64 = to.trim_start_matches('=').trim().parse().ok()?;
            to.checked_sub(from)
        });
        Some(range.map_or(1, |more| more.saturating_add(1)))
    }
}

/// A key as flags write it.
fn flag_name(key: &str) -> String {
    key.replace('_', "-")
}

/// The reason why a flag cannot read a value, in one line.
fn reason(error: &clap::Error) -> String {
    if let Some(source) = error.source() {
        return source.to_string();
    }
    let strings = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(format!("`{}`", quote(text))),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    match (
        strings(ContextKind::InvalidValue),
        strings(ContextKind::ValidValue),
    ) {
        (Some(value), Some(known)) => format!("{value} is none of {known}"),
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        }
    }
}
