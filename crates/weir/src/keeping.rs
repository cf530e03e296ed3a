//! Documents that are made as a whole: the store is opened before the work begins, and is given them afterwards.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_lab::Outcome;
use weir_model::document::{Document, Header};

use crate::context::{Context, Format};
use crate::driver::{header, main_list, new_run};
use crate::failure::Result;
use crate::session;
use crate::session::say;
use crate::shown;
use crate::store::{RunId, RunState, Store};

/// Where a verb will keep its document. A mistyped path loses no work.
#[derive(Debug)]
pub struct Keeping<'a> {
    context: &'a Context,
    verb: &'static str,
    store: Store,
    began: Instant,
    /// The run, once it has kept an answer.
    run: Option<RunId>,
    /// Whether the command prints another document, which uses what is found here.
    is_part: bool,
}

impl<'a> Keeping<'a> {
    /// Opens the store for a verb.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn begin(context: &'a Context, verb: &'static str) -> Result<Keeping<'a>> {
        let store = Store::open(&context.store_path()?)?;
        Ok(Keeping {
            context,
            verb,
            store,
            began: Instant::now(),
            run: None,
            is_part: false,
        })
    }

    /// The same where the command prints another document after it: what programs read is one document.
    pub fn is_part(self, is_part: bool) -> Self {
        Self { is_part, ..self }
    }

    /// What this run or an earlier one kept under an address.
    pub fn recall<A: DeserializeOwned>(&self, address: &str) -> Option<A> {
        // What cannot be read is found again.
        let body = self.store.recall(address, None).ok()??;
        serde_json::from_str(&body).ok()
    }

    /// Keeps a part of the work, so that it is not done again should this run be killed.
    ///
    /// # Errors
    /// The store does not take it.
    pub fn keep(&mut self, header: &Header, address: &str, part: &impl Serialize) -> Result<()> {
        let run = match self.run {
            Some(run) => run,
            None => self
                .store
                .begin(&new_run(self.context, self.verb, header, 0)?)?,
        };
        self.run = Some(run);
        session::is_of(run);
        let body = serde_json::to_string(part).context("cannot keep a part of the run")?;
        Ok(self.store.keep(run, self.verb, address, &body)?)
    }

    /// Prints what was found without a lab, or writes it into a file, and keeps it.
    ///
    /// # Errors
    /// It cannot be printed, or the store does not take it.
    pub fn put<O: Outcome>(mut self, mut document: Document<O>, file: Option<&Path>) -> Result<()> {
        let context = self.context;
        document.header.elapsed_s = self.began.elapsed().as_secs_f64();
        for warning in &document.header.warnings {
            say(&format!("weir: warning: {warning}"));
        }
        let list = main_list::<O>().unwrap_or_default();
        let kept = self.add(&document.header, &document, &list);
        if !self.is_part || context.global.format == Format::Table {
            shown::show_in(file, context, &document, kept.as_ref().ok().copied())?;
        }
        kept.map(drop)
    }

    fn add(&mut self, header: &Header, document: &impl Serialize, list: &str) -> Result<RunId> {
        let run = match self.run {
            Some(run) => run,
            None => {
                let run = new_run(self.context, self.verb, header, 0)?;
                self.store.begin(&run)?
            }
        };
        session::is_of(run);
        self.store.settle(run, document, list)?;
        let state = match header.partial {
            true => RunState::Partial,
            false => RunState::Done,
        };
        self.store
            .finish(run, state, header.elapsed_s, &header.warnings)?;
        Ok(run)
    }
}

/// Keeps and prints what was found without a machine.
///
/// # Errors
/// It cannot be printed, or the store does not take it.
pub fn found<O: Outcome>(context: &Context, verb: &'static str, output: O) -> Result<()> {
    let keeping = Keeping {
        began: context.began,
        ..Keeping::begin(context, verb)?
    };
    let header = header(O::SCHEMA, context, "");
    keeping.put(Document { header, output }, None)
}
