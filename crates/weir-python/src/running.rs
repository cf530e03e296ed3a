//! A verb on a thread of its own, while Python's thread takes signals, warnings and progress.

use std::any::Any;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use weir::embed::{self, Ended, Listener};

/// How often Python is asked for signals. Ctrl-C is answered within this time.
const OFTEN: Duration = Duration::from_millis(50);
/// What the main thread of a command has on Linux.
const STACK: usize = 8 << 20;

/// What the verb's threads send.
enum Heard {
    Said(String),
    Reached(String, usize, usize),
}

struct Channel(Sender<Heard>);

impl Listener for Channel {
    fn said(&self, line: &str) {
        // Nothing listens after the verb has ended.
        let _ = self.0.send(Heard::Said(line.to_owned()));
    }

    fn reached(&self, title: &str, done: usize, of: usize) {
        let _ = self.0.send(Heard::Reached(title.to_owned(), done, of));
    }
}

/// What a verb gave.
#[pyclass(frozen, get_all)]
pub struct Ran {
    /// What it printed.
    printed: String,
    /// The runs that it made or showed.
    runs: Vec<i64>,
    /// The store of those runs.
    store: Option<PathBuf>,
    /// The exit code of the command.
    code: u8,
    /// What the command writes to standard error.
    message: String,
    /// What ended it early: `KeyboardInterrupt`, or what a callback raised.
    interrupt: Option<Py<PyAny>>,
}

/// Runs a verb by the words of its command. `said` is called with lines of standard error, and `reached` with a title, what
/// is done, and of how many.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    words: Vec<OsString>,
    said: &Bound<'_, PyAny>,
    reached: &Bound<'_, PyAny>,
) -> PyResult<Ran> {
    let (sender, heard) = channel();
    let verb = std::thread::Builder::new()
        .name("weir".into())
        .stack_size(STACK)
        .spawn(move || embed::run(words, Arc::new(Channel(sender))))?;
    let interrupt = follow(py, &verb, &Mutex::new(heard), &mut |one| match one {
        Heard::Said(line) => said.call1((line,)).map(drop),
        Heard::Reached(title, done, of) => reached.call1((title, done, of)).map(drop),
    });
    let ran = (py.detach(|| verb.join())).map_err(|panic| internal(panic.as_ref()))?;
    let (code, message) = ran.ended.map_or((0, String::new()), |ended: Ended| {
        (ended.code, ended.message)
    });
    Ok(Ran {
        printed: ran.printed,
        runs: ran.runs.iter().map(|run| run.0).collect(),
        store: ran.store,
        code,
        message,
        interrupt: interrupt.map(|error| error.into_value(py).into_any()),
    })
}

/// Passes on what a verb says until it ends. The first exception of Python asks it to end, and is returned.
fn follow(
    py: Python<'_>,
    verb: &JoinHandle<embed::Ran>,
    heard: &Mutex<Receiver<Heard>>,
    take: &mut dyn FnMut(Heard) -> PyResult<()>,
) -> Option<PyErr> {
    let mut interrupt = None;
    loop {
        let wait = || (heard.lock().unwrap_or_else(PoisonError::into_inner)).recv_timeout(OFTEN);
        let next = py.detach(wait);
        let ended = verb.is_finished();
        let result = match next {
            Ok(one) => take(one).and_then(|()| py.check_signals()),
            // A thread that still holds the sender may outlive the verb.
            Err(RecvTimeoutError::Timeout) if ended => break,
            Err(RecvTimeoutError::Timeout) => py.check_signals(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = result {
            embed::stop();
            interrupt.get_or_insert(error);
        }
    }
    interrupt
}

/// A panic of a verb, which has been printed with its place.
fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let text = (panic.downcast_ref::<String>().map(String::as_str))
        .or_else(|| panic.downcast_ref::<&str>().copied());
    PyRuntimeError::new_err(format!(
        "the verb ended by a mistake of Weir: {}",
        text.unwrap_or("no reason is known")
    ))
}
