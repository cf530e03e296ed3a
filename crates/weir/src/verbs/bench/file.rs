//! `weir bench --file`: sweeps from a file, one run for each machine that it names.

use std::path::Path;

use weir_lab::{Notes, Points};
use weir_model::document::Document;
use weir_model::toml::MOST_BYTES;

use super::options::{Args, Picked};
use crate::context::{Context, Format};
use crate::driver::{self, Done};
use crate::failure::{Failure, Result};
use crate::files::{self, line_of};
use crate::machine::{self, Chosen};
use crate::output::{point_rows, print, print_text, to_json};
use crate::render::csv;
use crate::shown::show;
use crate::store::{Plan, RunId, Store};
use crate::studies::{Planned, points_again};
use crate::sweep_file::{self, Entry};

/// The verb of such runs in the store.
const VERB: &str = "bench sweep";

/// What to do about runs that were begun before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier<'a> {
    /// Measure everything again.
    Leave,
    /// Measure what this run lacks, or what the newest run of the same points does.
    Resume(Option<&'a str>),
}

/// One machine's part of the file.
struct Part {
    chosen: Chosen,
    notes: Notes,
    /// The run to resume.
    earlier: Option<RunId>,
}

/// Measures every sweep of a file on every machine that it names.
///
/// # Errors
/// The file has mistakes or does not fit a machine, a figure could not be taken or kept, there is
/// nothing to resume, or the sweep was stopped.
pub fn run(path: &Path, earlier: Earlier<'_>, args: &Args, context: &Context) -> Result<()> {
    let mut parts = parts(path, args, context)?;
    if let Earlier::Resume(run) = earlier {
        find_runs(&mut parts, path, run, args, context)?;
    }
    let mut all: Vec<Done<Points>> = Vec::new();
    let (mut refused, mut of_others) = (None, false);
    for part in parts {
        let done = match part.earlier {
            Some(run) => driver::resume(context, run, None, points_again),
            None => {
                let mut job = args.job(context, &part.chosen, VERB);
                job.warnings = part.notes.warnings;
                job.run(&Planned::new(part.notes.asks))
            }
        };
        match done {
            Err(Failure::Part) => of_others = true,
            done => all.push(done?),
        }
        refused = refused.or(part.notes.refused);
        if context.stop.requested() {
            break;
        }
    }
    if of_others {
        return Err(Failure::Part);
    }
    show_all(context, &all)?;
    for done in all {
        done.verdict()?;
    }
    match refused {
        Some(refused) => Err(Failure::Missing(anyhow::anyhow!("{refused}"))),
        None => Ok(()),
    }
}

/// Prints what was measured on several machines: one document for one, a list for more.
fn show_all(context: &Context, done: &[Done<Points>]) -> Result<()> {
    if let [one] = done {
        return show(context, &one.document, one.kept_in());
    }
    match context.global.format {
        Format::Json => print(&to_json(
            &done.iter().map(|d| &d.document).collect::<Vec<_>>(),
        )?),
        Format::Csv => print(&documents_csv(done.iter().map(|d| &d.document))?),
        Format::Table => {
            for (at, done) in done.iter().enumerate() {
                let gap = if at == 0 { "" } else { "\n" };
                print_text(&format!(
                    "{gap}On {}\n\n",
                    done.document.header.machine.name
                ))?;
                show(context, &done.document, done.kept_in())?;
            }
            Ok(())
        }
    }
}

/// Figures of several machines under one head.
///
/// # Errors
/// A value cannot be written.
pub fn documents_csv<'d>(documents: impl Iterator<Item = &'d Document<Points>>) -> Result<String> {
    let mut all = point_rows("", &[]);
    for document in documents {
        let name = &document.header.machine.name;
        all.rows
            .extend(point_rows(name, &document.output.points).rows);
    }
    csv::to_csv(&all)
}

/// The plan of each machine, in the order in which the file names them.
fn parts(path: &Path, args: &Args, context: &Context) -> Result<Vec<Part>> {
    let name = path.display().to_string();
    let text = files::text(path, "sweep file", MOST_BYTES)?;
    let entries: Vec<Entry<Picked>> = sweep_file::read(&name, &text)
        .map_err(|mistakes| Failure::request(mistakes.to_string()))?;
    let of = |entry: &Entry<Picked>| match entry.on.as_slice() {
        [] => vec![(context.global.on.clone(), None)],
        named => (named.iter().cloned())
            .map(|(name, at)| (name, Some(at)))
            .collect(),
    };
    let has = |all: &[(String, Option<usize>)], name: &str| all.iter().any(|(one, _)| one == name);
    let mut machines: Vec<(String, Option<usize>)> = Vec::new();
    for machine in entries.iter().flat_map(of) {
        if !has(&machines, &machine.0) {
            machines.push(machine);
        }
    }
    let given = &context.global.on;
    if given != machine::HOST && !has(&machines, given) {
        return Err(Failure::request(format!(
            "--on {given} has no effect: every sweep of {name} names its machines; leave out one or the other"
        )));
    }
    let mut parts = Vec::new();
    // What machines refuse is reported all at once.
    let mut wrong = Vec::new();
    for (machine, at) in machines {
        let chosen = match at {
            Some(at) => machine::choose_by(&machine, &format!("{}: on", line_of(path, &text, at))),
            None => machine::choose(&machine),
        };
        let Some(chosen) = unless_refused(chosen, &mut wrong)? else {
            continue;
        };
        let mut whole = Notes::default();
        for entry in entries.iter().filter(|entry| has(&of(entry), &machine)) {
            let job = args.job(context, &chosen, VERB);
            let notes = job.asks(&entry.experiment).map_err(|failure| {
                let line = line_of(path, &text, entry.at);
                failure.of(&format!("{line}: `{}` on {machine}", entry.typed.join(" ")))
            });
            let Some(notes) = unless_refused(notes, &mut wrong)? else {
                continue;
            };
            whole.asks.extend(notes.asks);
            weir_lab::lab::add_new(&mut whole.warnings, notes.warnings);
            whole.refused = whole.refused.or(notes.refused);
        }
        // Sweeps may have points in common.
        whole.asks = weir_lab::plan::each_once(whole.asks);
        parts.push(Part {
            chosen,
            notes: whole,
            earlier: None,
        });
    }
    match wrong.is_empty() {
        true => Ok(parts),
        false => Err(Failure::request(wrong.join("\n"))),
    }
}

/// What there is; `None` of a wrong request, which goes to `wrong`.
fn unless_refused<T>(result: Result<T>, wrong: &mut Vec<String>) -> Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(Failure::Request(error)) => {
            wrong.push(format!("{error:#}"));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// Finds the run of each part: the one that was named, or the newest with the same points on the
/// same machine with the same seed.
fn find_runs(
    parts: &mut [Part],
    path: &Path,
    named: Option<&str>,
    args: &Args,
    context: &Context,
) -> Result<()> {
    let file = path.display();
    let store_path = context.store_path()?;
    let Some(store) = Store::open_existing(&store_path)? else {
        return Err(Failure::request(format!(
            "there are no runs in {} to resume; leave --resume out",
            store_path.display()
        )));
    };
    let named = named.map(|name| store.find(name)).transpose()?;
    for part in &mut *parts {
        let rounds = args.job(context, &part.chosen, VERB).rounds;
        let plan = Plan::new(&part.chosen.named, rounds, &part.notes.asks)
            .map_err(|error| anyhow::Error::new(error).context("cannot read the plan"))?;
        let (digest, seed) = (&part.chosen.identity.digest, context.global.seed);
        part.earlier = match named {
            None => store.newest_of(&plan, digest, seed)?.map(|run| run.id),
            Some(run) => store.is_of(run, &plan, digest, seed)?.then_some(run),
        };
    }
    if parts.iter().any(|part| part.earlier.is_some()) {
        return Ok(());
    }
    let seed = context.global.seed;
    Err(Failure::request(match named {
        Some(run) => format!(
            "run {run} was not made from {file} as it is now with seed {seed}: its points, their order, its machine or its seed differ; `weir runs resume {run}` resumes it as it was planned"
        ),
        None => format!(
            "no run in {} has the points of {file} as it is now with seed {seed}; leave --resume out to measure them, or name an older run with `weir runs resume RUN`",
            store_path.display()
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches, Subcommand};
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    fn read(text: &str) -> std::result::Result<Vec<Entry<Picked>>, String> {
        sweep_file::read("sweep.toml", text).map_err(|mistakes| mistakes.to_string())
    }

    fn typed(words: &[String]) -> Picked {
        let command = Picked::augment_subcommands(Command::new("bench").no_binary_name(true));
        let matches = command.try_get_matches_from(words).unwrap();
        Picked::from_arg_matches(&matches).unwrap()
    }

    fn planned(context: &Context, chosen: &Chosen, picked: &Picked) -> Notes {
        let job = crate::driver::Job {
            context,
            chosen,
            verb: VERB,
            rounds: 1,
            yes: true,
            warnings: Vec::new(),
        };
        job.asks(picked).unwrap()
    }

    fn some(values: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
        subsequence(values, 1..=values.len())
    }

    fn quoted(values: &[&str]) -> String {
        let quoted: Vec<String> = values.iter().map(|v| format!("\"{v}\"")).collect();
        format!("[{}]", quoted.join(", "))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_file_plans_what_flags_plan(
            ops in some(&["ld", "st", "nt_st", "cas"]),
            blocks in some(&["1K", "4K", "64K"]),
            threads in some(&["1", "2", "4..8"]),
            tiers in some(&["dram", "cxl0"]),
            prefetch in any::<bool>(),
            quick in any::<bool>(),
        ) {
            let file = format!(
                "[[sweep]]\nexperiment = \"random\"\n\
                 matrix = {{ op = {}, block = {}, threads = {}, tier = {} }}\n\
                 args = {{ prefetch = {prefetch}, quick = {quick}, size = \"256M\" }}\n",
                quoted(&ops), quoted(&blocks), quoted(&threads), quoted(&tiers),
            );
            let mut flags = vec![
                "random".to_owned(),
                format!("--op={}", ops.join(",")),
                format!("--block={}", blocks.join(",")),
                format!("--threads={}", threads.join(",")),
                format!("--tier={}", tiers.join(",")),
                "--size=256M".to_owned(),
            ];
            flags.extend((!prefetch).then(|| "--no-prefetch".to_owned()));
            flags.extend(quick.then(|| "--quick".to_owned()));
            let chosen = machine::choose("emr2s+cxl-a").ok().unwrap();
            let context = Context::for_tests();
            let entries = read(&file).unwrap();
            let [entry] = entries.as_slice() else { panic!("one sweep") };
            let by_file = planned(&context, &chosen, &entry.experiment);
            let by_flags = planned(&context, &chosen, &typed(&flags));
            prop_assert_eq!(by_file, by_flags);
        }

        #[test]
        fn garbage_is_refused_in_words(text in ".{0,200}") {
            let _ = read(&text);
        }

        /// Pieces of right files in any order: most are wrong, none is a panic, and each mistake has
        /// a place in the file.
        #[test]
        fn broken_sweeps_are_refused_with_places(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "[[sweep]]\n", "[sweep]\n", "experiment = \"random\"\n", "experiment = 3\n",
                "on = []\n", "on = \"host\"\n", "matrix = { op = [\"ld\"] }\n", "args = {}\n",
                "matrix = { threads = [\"1..4096\", -1, 2.5, true, [1]] }\n", "matrix = {}\n",
                "args = { quick = 1, size = \"1X\", op = \"ld,st\" }\n", "\u{0}", "=", "\"é\n",
                "matrix = { op = [\"ld\"], op = [] }\n", "[sweep.matrix]\nop = \"ld\"\n",
            ]), 0..9),
        ) {
            let text = pieces.concat();
            if let Err(message) = read(&text) {
                prop_assert!(message.contains("--> sweep.toml:"), "{}", message);
            }
        }
    }

    #[test]
    fn a_matrix_beyond_every_run_is_refused_unplanned() {
        let sizes: Vec<String> = (1..=4096).map(|n| format!("\"{n}K\"")).collect();
        let file = format!(
            "[[sweep]]\nexperiment = \"random\"\nmatrix = {{ threads = [\"1..4096\"], block = [{}] }}\n",
            sizes.join(", ")
        );
        let message = read(&file).unwrap_err();
        assert!(
            message.contains("16777216 points") && message.contains("sweep.toml:3"),
            "{message}"
        );
    }
}
