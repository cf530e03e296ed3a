//! The command inside another program: a verb runs as the command runs it, and what it prints, says and keeps is handed
//! over.
//!
//! A process runs one verb at a time, since the request to stop is one for the process ([`weir_model::stop`]). No signal
//! handler is set: the program has its own, and calls [`stop`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use clap::CommandFactory;
use serde_json::Value;
use weir_lab::studies::POINT_STUDIES;
use weir_model::frame::Frame;

use crate::cli::Cli;
use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::interrupt::Stop;
use crate::kinds::KINDS;
use crate::report;
use crate::session;
use crate::shown::Shown;
use crate::store::{RunId, Store, StoredRun};
use crate::stored;
use crate::studies;
use crate::verbs::{self, runs};

pub use crate::session::Listener;

/// Held by the verb that runs.
static TURN: Mutex<()> = Mutex::new(());

/// How a verb ended that did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code, as documented in `weir --help`.
    pub code: u8,
    /// What the command writes to standard error, without the `weir: ` in front; empty where it has said it before.
    pub message: String,
}

/// What a verb gave.
#[derive(Debug)]
pub struct Ran {
    /// What it printed: its document as JSON, where it has one.
    pub printed: String,
    /// The runs that it made, continued or showed, in the order in which they began.
    pub runs: Vec<RunId>,
    /// The store of those runs; `None` where there is no home directory and no file was named.
    pub store: Option<PathBuf>,
    /// Why it did not do all it was asked to.
    pub ended: Option<Ended>,
}

/// The commands with their options and their help.
pub fn commands() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Whether a command makes a run in the store: `plan pool`, `bench loaded`.
pub fn is_kept(verb: &str) -> bool {
    let points = || {
        POINT_STUDIES
            .iter()
            .any(|study| verb.strip_prefix("bench ") == Some(study.name))
    };
    studies::verbs().any(|stored| stored == verb) || points()
}

/// Asks the verb that runs to end, as Ctrl-C does. What it has measured is kept.
pub fn stop() {
    weir_model::stop::flag().store(true, Ordering::Relaxed);
}

/// Ends a session also where a verb panics.
struct Clear;

impl Drop for Clear {
    fn drop(&mut self) {
        session::end();
    }
}

/// Runs a verb. `words` are its arguments as a shell has them, without the program's name; documents are JSON, whatever
/// they ask for.
pub fn run(words: Vec<OsString>, listener: Arc<dyn Listener>) -> Ran {
    let mut ran = Ran {
        printed: String::new(),
        runs: Vec::new(),
        store: None,
        ended: None,
    };
    let Ok(_turn) = TURN.try_lock() else {
        ran.ended = Some(Ended {
            code: 1,
            message: "another verb runs in this process; wait until it has ended".into(),
        });
        return ran;
    };
    let typed = words.iter().map(|word| word.to_string_lossy().into_owned());
    let typed: Vec<String> = typed.collect();
    let words: Vec<OsString> = std::iter::once("weir".into()).chain(words).collect();
    let mut cli = match Cli::read(&words) {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render().to_string();
            match u8::try_from(error.exit_code()).unwrap_or(2) {
                0 => ran.printed = text,
                code => {
                    let message = text;
                    ran.ended = Some(Ended { code, message });
                }
            }
            return ran;
        }
    };
    cli.global.format = Format::Json;
    weir_model::stop::flag().store(false, Ordering::Relaxed);
    session::begin(listener);
    let clear = Clear;
    let context = Context {
        global: cli.global.clone(),
        typed,
        began: std::time::Instant::now(),
        stop: Stop::of_process(),
        part: cli.global.part,
    };
    ran.store = context.store_path().ok();
    if let Err(failure) = crate::work(cli.verb, &context) {
        ran.ended = Some(Ended {
            code: failure.code(),
            message: failure.message().unwrap_or_default(),
        });
    }
    if let Some(session) = session::end() {
        ran.printed = session.printed;
        ran.runs = session.runs;
    }
    drop(clear);
    ran
}

/// The rows of a document that is not kept in a store, such as a list of platforms.
pub fn frames(document: &Value) -> Vec<Frame> {
    let schema = document["schema"].as_str().unwrap_or_default();
    let kind = KINDS.iter().find(|kind| kind.schema == schema);
    kind.map_or_else(Vec::new, |kind| {
        Frame::all_of(&(kind.json_schema)(), document)
    })
}

/// The rows of a frame as an HTML table.
pub fn table(frame: &Frame) -> String {
    report::table(frame)
}

/// A run from a store.
#[derive(Debug)]
pub struct Opened {
    stored: StoredRun,
    shown: Option<Shown>,
}

impl Opened {
    /// The run of this name: a number, `last`, or the beginning of a machine's name.
    ///
    /// # Errors
    /// There is no such run, or this version does not read it.
    pub fn open(store: Option<&Path>, name: &str) -> Result<Self> {
        let path = match store {
            Some(path) => path.to_owned(),
            None => Store::default_path()?,
        };
        let stored = stored::load(Store::open_existing(&path)?.as_ref(), &path, name)?;
        // A run that was stopped before it had an answer has a header only.
        let shown = studies::reader(&stored).map(|reader| (reader.shown)(&stored));
        let shown = match shown.transpose() {
            Err(_) if stored.summary.partial => None,
            shown => shown?,
        };
        Ok(Self { stored, shown })
    }

    /// Its line in the list of runs.
    pub fn summary(&self) -> Value {
        serde_json::to_value(&self.stored.summary).unwrap_or_default()
    }

    /// Its document, as `weir runs show --format json` prints it.
    ///
    /// # Errors
    /// This version does not read it.
    pub fn document(&self) -> Result<Value> {
        match self.shown {
            Some(_) => stored::json(&self.stored),
            None => Ok(self.stored.document.clone()),
        }
    }

    /// Its lists of rows, the main one first, as `--format csv` has them.
    ///
    /// # Errors
    /// None that is known.
    pub fn frames(&self) -> Result<Vec<Frame>> {
        let Some(shown) = &self.shown else {
            return Ok(Vec::new());
        };
        (shown.frames.iter())
            .map(|frame| shown.frame(Some(&frame.name)))
            .collect()
    }

    /// Raw samples and latencies.
    ///
    /// # Errors
    /// The run is of no points.
    pub fn samples(&self) -> Result<Vec<runs::Sample>> {
        runs::samples(std::slice::from_ref(&self.stored))
    }

    /// What the command prints of it.
    pub fn text(&self) -> String {
        self.shown.as_ref().map_or_else(String::new, Shown::text)
    }

    /// What it means, its charts and its figures, as a part of an HTML page that needs nothing else.
    ///
    /// # Errors
    /// It was stopped before it had an answer.
    pub fn html(&self) -> Result<String> {
        let Some(shown) = &self.shown else {
            return Err(Failure::request(format!(
                "run {} was stopped before it had an answer",
                self.stored.summary.id
            )));
        };
        Ok(match verbs::report::is_of_points(&self.stored) {
            true => report::fragment(&[verbs::report::section(&self.stored)?], &[]),
            false => report::fragment(&[], &[verbs::report::insight(&self.stored, shown.clone())]),
        })
    }
}
