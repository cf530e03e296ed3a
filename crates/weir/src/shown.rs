//! What a run found, ready to be rendered, and how it is printed.

use std::path::Path;

use schemars::schema_for;
use serde::Deserialize as _;
use serde_json::Value;
use weir_lab::view::View;
use weir_lab::{About, Outcome, Severity, Verdict};
use weir_model::document::{Document, Header, Record};
use weir_model::frame::{Frame, with_prefix};

use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::files;
use crate::output::{print, print_text, seconds, to_json, wrap};
use crate::render::{self, csv};
use crate::store::{RunId, StoredRun, understood};

/// A run ready to be rendered.
#[derive(Debug, Clone)]
pub struct Shown {
    /// See [`Outcome::TITLE`].
    pub title: &'static str,
    /// See [`Outcome::WORDS`].
    pub words: &'static str,
    /// What it was measured on, and how.
    pub header: Header,
    /// Its lists of rows, the main one first.
    pub frames: Vec<Frame>,
    /// How they are shown.
    pub views: Vec<View>,
    /// What they mean, the answer first.
    pub answer: Vec<Verdict>,
}

impl Shown {
    /// The rows of this list, or of the main one, with the machine in front.
    ///
    /// # Errors
    /// There is no list of this name.
    pub fn frame(&self, name: Option<&str>) -> Result<Frame> {
        let mut known = self.frames.iter();
        let frame = known.find(|frame| name.is_none_or(|name| frame.name == name));
        let frame = frame.ok_or_else(|| {
            let names: Vec<&str> = self.frames.iter().map(|f| f.name.as_str()).collect();
            Failure::request(format!(
                "no list of rows is called `{}` here; there are {}",
                name.unwrap_or_default(),
                names.join(", ")
            ))
        })?;
        Ok(match self.header.name() {
            "" => frame.clone(),
            // Rows that are of several machines say of which.
            _ if frame.columns.iter().any(|column| column.name == "machine") => frame.clone(),
            machine => with_prefix(&[("machine", machine.into())], frame),
        })
    }

    /// The answer with its doubts, tables of the rows, and what else they mean.
    pub fn text(&self) -> String {
        let (notes, doubts): (Vec<&Verdict>, Vec<&Verdict>) = self
            .answer
            .iter()
            .partition(|verdict| verdict.severity == Severity::Note);
        let line = |verdict: &Verdict, first: &str| {
            wrap(&format!("{}: {}", verdict.about, verdict.text), first, "  ")
        };
        let mut text = String::new();
        for verdict in notes.iter().take(1) {
            text.push_str(&line(verdict, ""));
        }
        for verdict in doubts {
            text.push_str(&line(verdict, "! "));
        }
        let tables = render::text::tables(&self.frames, &self.views);
        if !text.is_empty() && !tables.is_empty() {
            text.push('\n');
        }
        text.push_str(&tables);
        if notes.len() > 1 {
            text.push('\n');
        }
        for verdict in notes.iter().skip(1) {
            text.push_str(&line(verdict, "- "));
        }
        text
    }
}

/// A document, ready to be rendered.
pub fn shown<O: Outcome>(document: &Document<O>) -> Shown {
    let Document { header, output } = document;
    let header = header.clone();
    let about = About::of(&header);
    let mut answer = output.answer(about);
    if header.partial {
        let text = "not all figures were taken; what follows is of those that were";
        answer.insert(0, Verdict::new(Severity::Note, "stopped", text));
    }
    Shown {
        title: O::TITLE,
        words: O::WORDS,
        frames: output.frames(),
        views: output.views(about),
        answer,
        header,
    }
}

/// The document of a stored run, with what follows from its rows today.
///
/// # Errors
/// This version does not read what the run holds.
pub fn document<O: Outcome>(run: &StoredRun) -> Result<Document<O>> {
    let mut value = run.document.clone();
    // The store has the list that was measured; the others follow from it.
    for name in Frame::all_of(&schema_for!(O).to_value(), &value)
        .into_iter()
        .map(|frame| frame.name)
    {
        if value.get(&name).is_none() {
            value[name] = Value::Array(Vec::new());
        }
    }
    let parsed = serde_json::from_value::<Document<O>>(value);
    if parsed.is_err() && run.summary.partial {
        let id = run.summary.id;
        return Err(Failure::request(format!(
            "run {id} was stopped before it had an answer; `weir runs resume {id}` goes on"
        )));
    }
    let Document { mut header, output } = understood(run, parsed)?;
    // A former version of the same kind keeps its own.
    let kind = |schema: &str| schema.rsplit_once('/').map(|(kind, _)| kind.to_owned());
    if kind(&header.schema) != kind(O::SCHEMA) {
        header.schema = O::SCHEMA.into();
    }
    let records: Vec<Record> = (run.records.iter())
        .map(Record::deserialize)
        .collect::<serde_json::Result<_>>()
        .map_err(|error| anyhow::Error::new(error).context("cannot read the run's records"))?;
    let output = output.derived(&records, &header.topology);
    Ok(Document { header, output })
}

/// Prints what a study found, in the format that was asked for.
///
/// # Errors
/// Standard output cannot be written to.
pub fn show<O: Outcome>(
    context: &Context,
    document: &Document<O>,
    run: Option<RunId>,
) -> Result<()> {
    show_in(None, context, document, run)
}

/// As [`show`], into a file where one is named.
///
/// # Errors
/// The file or standard output cannot be written to.
pub fn show_in<O: Outcome>(
    file: Option<&Path>,
    context: &Context,
    document: &Document<O>,
    run: Option<RunId>,
) -> Result<()> {
    let format = context.global.format;
    let text = match format {
        Format::Table => shown(document).text(),
        Format::Json => to_json(document)?,
        Format::Csv => csv::to_csv(&shown(document).frame(None)?)?,
    };
    match (file.filter(|file| file.as_os_str() != "-"), format) {
        (Some(file), _) => files::write(file, text)?,
        (None, Format::Table) => print_text(&text)?,
        (None, _) => print(&text)?,
    }
    if let (Format::Table, Some(run)) = (format, run) {
        let took = seconds(document.header.elapsed_s);
        context.note(&format!(
            "run {run} took {took}; `weir report {run}` draws it"
        ));
    }
    Ok(())
}
