//! `weir counters list`: the counters of a processor, and the perf command that counts them.

use std::fmt::Write as _;

use serde::Serialize;
use weir_insight::forecast::COUNTERS;
use weir_linux::perf;
use weir_model::capability::Unavailable;
use weir_model::counters::Counter;
use weir_model::events::{Budget, Confidence, Event, EventLibrary, EventTable, Rule, groups};
use weir_model::platform::Provenance;

use crate::context::{Context, Format};
use crate::documents::{CounterLine, CountersListDocument};
use crate::failure::{Failure, Result};
use crate::machine::compose;
use crate::output::{Column, Table, print_as, to_csv, to_json};
use crate::system::find;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The microarchitecture, such as `spr` or `zen4` [default: that of --on].
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// Only these counters, by their portable names.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    counters: Vec<String>,
    /// Also units outside the cores, which count the whole machine and need root.
    #[arg(long)]
    uncore: bool,
}

/// Lists.
///
/// # Errors
/// A name is not known, or the processor of the machine has no table and none is named.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let library = EventLibrary::builtin();
    let on = &context.global.on;
    let unnamed = |why: Unavailable| {
        Failure::request(format!("{why}; name a microarchitecture with `--cpu`"))
    };
    let table = match (&args.cpu, find(on)?) {
        (Some(name), _) => library
            .get(name)
            .map_err(|why| Failure::request(why.reason))?,
        (None, Some(system)) => perf::table(&system.root, &library).map_err(unnamed)?,
        (None, None) => {
            let core = compose(on)?.host.core.microarchitecture;
            if let Provenance::Assumed { .. } = core.provenance {
                return Err(unnamed(Unavailable::because(format!(
                    "{on} has cores that are described with those of {} and have other events",
                    core.value
                ))));
            }
            library.of_model(&core.value).map_err(unnamed)?
        }
    };
    let counters = chosen(&args.counters)?;
    // What is named is counted, wherever it is.
    let uncore = args.uncore || !args.counters.is_empty();
    let document = document(table, &counters, uncore);
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(&document)?,
            Format::Csv => to_csv(document.counters.iter().map(CounterRow::from))?,
            Format::Table => describe(&document, uncore),
        },
    )
}

/// Counters by their portable names; all of them without names.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Counter>> {
    let known = |name: &String| {
        Counter::named(name.trim()).ok_or_else(|| {
            let names = Counter::ALL.iter().map(|counter| counter.name());
            let close = weir_model::diagnostic::closest(name, names);
            let hint = weir_model::diagnostic::did_you_mean(&close);
            Failure::request(format!(
                "no counter is called `{}`{}; `weir counters list` has all",
                weir_model::diagnostic::quote(name),
                hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
            ))
        })
    };
    if names.is_empty() {
        return Ok(Counter::ALL.to_vec());
    }
    names.iter().map(known).collect()
}

/// Why `perf` has no event of a level.
const LEVEL: &str = "it is no event: resctrl has it for a monitoring group, in mon_data";

fn document(table: &EventTable, counters: &[Counter], uncore: bool) -> CountersListDocument {
    let lines = counters.iter().map(|&counter| {
        let mut line = CounterLine {
            counter: counter.name().to_owned(),
            is: None,
            confidence: None,
            note: None,
            missing: None,
        };
        match table.rules.get(&counter) {
            Some(Rule::Counted(rule)) => {
                let mut is = rule.formula.to_string();
                if rule.divided_by > 1 {
                    is = format!("({is}) / {}", rule.divided_by);
                }
                if rule.mean_of_units {
                    is = format!("mean over units of {is}");
                }
                line.is = Some(is);
                line.confidence = Some(rule.confidence.name().to_owned());
                line.note = rule.why.clone();
            }
            Some(Rule::Missing(why)) => line.missing = Some(why.clone()),
            None if counter.is_level() => {
                line.missing = Some(LEVEL.to_owned());
            }
            None => {
                line.is = Some(format!("{counter}, which the kernel keeps"));
                line.confidence = Some(Confidence::High.name().to_owned());
            }
        }
        line
    });
    let lines = lines.collect();
    let all = groups(table, counters, Budget::of(table, true));
    let (core, outside): (Vec<_>, Vec<_>) = all.into_iter().partition(|group| group[0].is_core());
    let file = format!("{}.csv", table.name);
    let mut groups_here = core;
    if !uncore {
        // What `weir predict` reads of units outside the cores.
        let wanted: Vec<Counter> = (counters.iter().copied())
            .filter(|counter| COUNTERS.contains(counter))
            .collect();
        let needed = groups(table, &wanted, Budget::of(table, true));
        groups_here.extend(needed.into_iter().filter(|group| !group[0].is_core()));
    }
    let outside_too = uncore && !outside.is_empty();
    let mut commands = Vec::new();
    if !(groups_here.is_empty() && outside_too) {
        commands.push(command(table, &groups_here, "", &file));
    }
    if outside_too {
        let file = format!("{}-uncore.csv", table.name);
        commands.push(command(table, &outside, "-a --no-merge ", &file));
    }
    CountersListDocument {
        schema: CountersListDocument::SCHEMA.to_owned(),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        cpu: table.name.clone(),
        title: table.title.clone(),
        source: table.source.clone(),
        counters: lines,
        commands,
    }
}

/// A command to paste; its output file names the processor for which it was made.
fn command(table: &EventTable, groups: &[Vec<&Event>], options: &str, file: &str) -> String {
    let mut text = format!(
        "echo '# weir cpu {}' > {file}\n\
         perf stat {options}-I 1000 -x, --append -o {file} \\\n",
        table.name
    );
    if options.is_empty() {
        let _ = writeln!(
            text,
            "  -e task-clock,page-faults,context-switches,cpu-migrations \\"
        );
    }
    for group in groups {
        let events: Vec<String> = group.iter().map(|event| event.perf()).collect();
        // A line cannot be broken inside quotes; a group is one argument.
        let _ = writeln!(text, "  -e '{{{}}}' \\", events.join(","));
    }
    text.push_str("  -- CMD");
    text
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct CounterRow<'a> {
    counter: &'a str,
    is: Option<&'a str>,
    confidence: Option<&'a str>,
    note: Option<&'a str>,
    missing: Option<&'a str>,
}

impl<'a> From<&'a CounterLine> for CounterRow<'a> {
    fn from(line: &'a CounterLine) -> Self {
        Self {
            counter: &line.counter,
            is: line.is.as_deref(),
            confidence: line.confidence.as_deref(),
            note: line.note.as_deref(),
            missing: line.missing.as_deref(),
        }
    }
}

fn describe(document: &CountersListDocument, uncore: bool) -> String {
    let mut text = format!("{}: {}\n\n", document.cpu, document.title);
    let mut table = Table::new(&[Column::words("counter"), Column::words("is")]);
    for line in &document.counters {
        let is = match (&line.is, &line.missing) {
            (Some(is), _) => match &line.note {
                Some(note) => format!("{is}; {note}"),
                None => is.clone(),
            },
            (None, missing) => format!("not countable: {}", missing.as_deref().unwrap_or("")),
        };
        table.row([line.counter.clone(), is]);
    }
    let _ = write!(text, "{table}");
    let _ = writeln!(
        text,
        "\nSource: {}\n\nWhere Weir is not installed, paste this with your command for CMD, and give the\n\
         file to `weir counters show`:\n\n{}",
        document.source,
        document.commands.join("\n\n")
    );
    if !uncore {
        let counted = document.commands.iter().any(|line| line.contains("uncore"));
        if counted {
            text.push_str(
                "\nLines with uncore units count the whole machine, which needs root; `weir predict` needs\n\
                 them. Without root leave them out.\n",
            );
        }
        let _ = writeln!(text, "\n`--uncore` adds all units outside the cores.");
    }
    text
}
