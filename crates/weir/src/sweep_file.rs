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
//! The names are those of the flags, and the flags read the values, so that a file and a command
//! line that say the same give the same points. Every mistake is told in one pass, with its place.

use std::error::Error as _;
use std::ops::Range;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command, Subcommand};
use toml_edit::{Item, TableLike, Value};
use weir_model::diagnostic::{Collector, Mistakes, closest, did_you_mean, quote};
use weir_model::recover;

/// A file is not longer than this.
pub const MOST_BYTES: usize = 1 << 20;
/// A sweep with more points than this fits no run.
const MOST_POINTS: u64 = 16_000_000;

/// One `[[sweep]]`: an experiment with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<V> {
    /// The machines; empty means the one of the command line.
    pub on: Vec<String>,
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
    let mut mistakes = Collector::new(file, text);
    let mut entries = Vec::new();
    if let Some(parsed) = recover::parse(text, &mut mistakes) {
        let root = parsed.document.as_table();
        unknown_keys(root, "", &["sweep"], &mut mistakes);
        match root.get("sweep") {
            None if parsed.is_whole => mistakes.report(
                0..0,
                Some("sweep"),
                "the file has no sweep",
                Some("write `[[sweep]]` and `experiment = \"…\"` below it".into()),
            ),
            None => {}
            Some(item) => match item.as_array_of_tables() {
                Some(tables) => {
                    let experiments = V::augment_subcommands(Command::new("sweep"))
                        .no_binary_name(true)
                        .disable_help_flag(true)
                        .disable_help_subcommand(true);
                    for table in tables {
                        let span = table.span().unwrap_or(0..0);
                        entries.extend(entry(&experiments, table, span, &mut mistakes));
                    }
                }
                None => mistakes.report(
                    span_of(root, "sweep", item),
                    Some("sweep"),
                    "`sweep` is not a list of tables",
                    Some("write `[[sweep]]` and its keys below".into()),
                ),
            },
        }
    }
    mistakes.finish(Some(entries))
}

fn entry<V: Subcommand>(
    experiments: &Command,
    table: &dyn TableLike,
    head: Range<usize>,
    mistakes: &mut Collector<'_>,
) -> Option<Entry<V>> {
    const KEYS: [&str; 4] = ["experiment", "on", "matrix", "args"];
    unknown_keys(table, "", &KEYS, mistakes);
    let on = machines(table, mistakes);
    let names: Vec<&str> = experiments
        .get_subcommands()
        .map(Command::get_name)
        .collect();
    let known = || format!("there are {}", names.join(", "));
    let Some(item) = table.get("experiment") else {
        mistakes.report(
            head,
            Some("experiment"),
            "missing key `experiment`",
            Some(known()),
        );
        return None;
    };
    let span = span_of(table, "experiment", item);
    let Some(name) = item.as_str() else {
        let message = "`experiment` is not text in quotes";
        mistakes.report(span, Some("experiment"), message, Some(known()));
        return None;
    };
    let Some(command) = experiments.find_subcommand(name) else {
        mistakes.report(
            span,
            Some("experiment"),
            format!("no experiment is called `{}`", quote(name)),
            did_you_mean(&closest(name, names.iter().copied())).or_else(|| Some(known())),
        );
        return None;
    };
    let mut reader = Reader {
        command: command.clone().no_binary_name(true),
        typed: vec![name.to_owned()],
        points: 1,
        is_right: true,
    };
    reader.matrix(table, mistakes);
    reader.args(table, mistakes);
    if let (true, Some(matrix)) = (reader.points > MOST_POINTS, table.get("matrix")) {
        mistakes.report(
            span_of(table, "matrix", matrix),
            Some("matrix"),
            format!(
                "the matrix has {} points; no run holds more than {MOST_POINTS}",
                reader.points
            ),
            Some("split it, or leave values out".into()),
        );
        return None;
    }
    if !reader.is_right {
        return None;
    }
    let matches = experiments.clone().try_get_matches_from(&reader.typed);
    match matches.and_then(|matches| V::from_arg_matches(&matches)) {
        Ok(experiment) => Some(Entry {
            on: on?,
            experiment,
            typed: reader.typed,
        }),
        Err(error) => {
            mistakes.report(span, Some("experiment"), reason(&error), None);
            None
        }
    }
}

/// The machines of `on`: a name or a list of names. `None` after a mistake.
fn machines(table: &dyn TableLike, mistakes: &mut Collector<'_>) -> Option<Vec<String>> {
    let Some(item) = table.get("on") else {
        return Some(Vec::new());
    };
    let names: Option<Vec<String>> = match (item.as_str(), item.as_array()) {
        (Some(name), _) => Some(vec![name.to_owned()]),
        (_, Some(list)) => (list.iter())
            .map(|v| v.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    };
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        return Some(names);
    }
    mistakes.report(
        span_of(table, "on", item),
        Some("on"),
        "`on` names no machine",
        Some("write `on = \"host\"` or `on = [\"emr2s+cxl-a\", \"spr2s\"]`".into()),
    );
    None
}

/// Turns the keys of one sweep into the flags of its experiment.
struct Reader {
    command: Command,
    typed: Vec<String>,
    /// Points that the matrix asks for on each machine, as far as it says.
    points: u64,
    is_right: bool,
}

impl Reader {
    /// Lists of values; the points are every combination.
    fn matrix(&mut self, table: &dyn TableLike, mistakes: &mut Collector<'_>) {
        let Some(axes) = self.section(table, "matrix", mistakes) else {
            return;
        };
        for (name, item) in axes.iter() {
            let key = format!("matrix.{name}");
            let Some(flag) = self.flag(axes, name, &key, mistakes) else {
                continue;
            };
            let span = span_of(axes, name, item);
            if !matches!(flag.get_action(), ArgAction::Append) {
                self.wrong(
                    mistakes,
                    span,
                    &key,
                    format!("`{name}` takes one value, not a list"),
                    Some(format!("write it in `args = {{ {name} = … }}`")),
                );
                continue;
            }
            let Some(list) = item.as_array() else {
                self.wrong(
                    mistakes,
                    span,
                    &key,
                    format!("`{name}` is not a list"),
                    Some(format!("write `{name} = [ … ]`")),
                );
                continue;
            };
            if list.is_empty() {
                self.wrong(
                    mistakes,
                    span,
                    &key,
                    format!("`{name}` is an empty list: no point is left"),
                    Some("leave the key out for the experiment's own values".into()),
                );
                continue;
            }
            let mut count = 0_u64;
            for value in list {
                count += self.value(&flag, value, &key, mistakes);
            }
            self.points = self.points.saturating_mul(count.max(1));
        }
        if axes.is_empty() {
            let span = table
                .get("matrix")
                .map_or(0..0, |item| span_of(table, "matrix", item));
            self.wrong(
                mistakes,
                span,
                "matrix",
                "the matrix is empty".into(),
                Some("leave it out for the experiment's own values".into()),
            );
        }
    }

    /// Single values, and switches.
    fn args(&mut self, table: &dyn TableLike, mistakes: &mut Collector<'_>) {
        let Some(args) = self.section(table, "args", mistakes) else {
            return;
        };
        let matrix = table.get("matrix").and_then(Item::as_table_like);
        for (name, item) in args.iter() {
            let key = format!("args.{name}");
            let span = span_of(args, name, item);
            if matrix.is_some_and(|matrix| matrix.contains_key(name)) {
                self.wrong(
                    mistakes,
                    span,
                    &key,
                    format!("`{name}` is in the matrix too"),
                    Some("say it once".into()),
                );
                continue;
            }
            let Some(flag) = self.flag(args, name, &key, mistakes) else {
                continue;
            };
            let is_switch = matches!(flag.get_action(), ArgAction::SetTrue);
            match item.as_value() {
                Some(value) if is_switch => match value.as_bool() {
                    // A flag `--no-NAME` switches off what `NAME = false` does.
                    Some(on) => {
                        let long = flag.get_long().unwrap_or_default();
                        if on == (long == flag_name(name)) {
                            self.typed.push(format!("--{long}"));
                        }
                    }
                    None => self.wrong(
                        mistakes,
                        span,
                        &key,
                        format!("`{name}` is neither true nor false"),
                        None,
                    ),
                },
                Some(value) => {
                    self.value(&flag, value, &key, mistakes);
                }
                None => self.wrong(
                    mistakes,
                    span,
                    &key,
                    format!("`{name}` is not a value"),
                    None,
                ),
            }
        }
    }

    fn section<'t>(
        &mut self,
        table: &'t dyn TableLike,
        name: &str,
        mistakes: &mut Collector<'_>,
    ) -> Option<&'t dyn TableLike> {
        let item = table.get(name)?;
        let section = item.as_table_like();
        if section.is_none() {
            let span = span_of(table, name, item);
            self.wrong(
                mistakes,
                span,
                name,
                format!("`{name}` is not a table"),
                Some(format!("write `{name} = {{ … }}`")),
            );
        }
        section
    }

    /// The flag of a key: `--NAME`, or `--no-NAME` for what is on unless switched off.
    fn flag(
        &mut self,
        table: &dyn TableLike,
        name: &str,
        key: &str,
        mistakes: &mut Collector<'_>,
    ) -> Option<Arg> {
        let wanted = flag_name(name);
        let long = |arg: &Arg| arg.get_long().map(str::to_owned);
        let found = (self.command.get_arguments())
            .find(|arg| long(arg).is_some_and(|l| l == wanted || l == format!("no-{wanted}")));
        if let Some(flag) = found {
            return Some(flag.clone());
        }
        let names: Vec<String> = (self.command.get_arguments())
            .filter_map(long)
            .filter(|long| long != "help")
            .map(|long| long.trim_start_matches("no-").replace('-', "_"))
            .collect();
        let help = did_you_mean(&closest(name, names.iter().map(String::as_str)))
            .unwrap_or_else(|| format!("it has {}", names.join(", ")));
        let span = (table.get_key_value(name))
            .and_then(|(key, _)| key.span())
            .unwrap_or(0..0);
        let message = format!(
            "experiment `{}` has no option `{}`",
            self.command.get_name(),
            quote(name)
        );
        self.wrong(mistakes, span, key, message, Some(help));
        None
    }

    /// Adds a value that the flag can read; returns for how many points along its axis it stands.
    fn value(&mut self, flag: &Arg, value: &Value, key: &str, mistakes: &mut Collector<'_>) -> u64 {
        let span = value.span().unwrap_or(0..0);
        let text = match value {
            Value::String(text) => text.value().clone(),
            Value::Integer(number) => number.value().to_string(),
            Value::Float(number) => number.value().to_string(),
            _ => {
                let message = "this is neither text in quotes nor a number".to_owned();
                self.wrong(mistakes, span, key, message, None);
                return 0;
            }
        };
        if text.contains(',') {
            let message = format!("`{}` is more than one value", quote(&text));
            let help = Some("write each in quotes of its own".into());
            self.wrong(mistakes, span, key, message, help);
            return 0;
        }
        let typed = format!("--{}={text}", flag.get_long().unwrap_or_default());
        if let Err(error) = self.command.clone().try_get_matches_from([&typed]) {
            let message = reason(&error);
            self.wrong(mistakes, span, key, message, None);
            return 0;
        }
        self.typed.push(typed);
        let range = text.split_once("..").and_then(|(from, to)| {
            let from: u64 = from.trim().parse().ok()?;
            to.trim_start_matches('=')
                .trim()
                .parse::<u64>()
                .ok()?
                .checked_sub(from)
        });
        range.map_or(1, |more| more.saturating_add(1))
    }

    fn wrong(
        &mut self,
        mistakes: &mut Collector<'_>,
        span: Range<usize>,
        key: &str,
        message: String,
        help: Option<String>,
    ) {
        self.is_right = false;
        mistakes.report(span, Some(key), message, help);
    }
}

/// A key as flags write it.
fn flag_name(key: &str) -> String {
    key.replace('_', "-")
}

fn unknown_keys(table: &dyn TableLike, prefix: &str, known: &[&str], mistakes: &mut Collector<'_>) {
    for (name, _) in table.iter().filter(|(name, _)| !known.contains(name)) {
        let span = (table.get_key_value(name)).and_then(|(key, _)| key.span());
        mistakes.report(
            span.unwrap_or(0..0),
            Some(&format!("{prefix}{name}")),
            format!("`{}` is not a key of a sweep file", quote(name)),
            did_you_mean(&closest(name, known.iter().copied()))
                .or_else(|| Some(format!("here may stand {}", known.join(", ")))),
        );
    }
}

/// Where a value stands, or its key where that is not known.
fn span_of(table: &dyn TableLike, name: &str, item: &Item) -> Range<usize> {
    let key = || (table.get_key_value(name)).and_then(|(key, _)| key.span());
    item.span().or_else(key).unwrap_or(0..0)
}

/// What a flag says of a value it cannot read, in one line.
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
