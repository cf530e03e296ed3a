//! Where results, messages and progress go: to the streams of this process, or to the program that embeds the command.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::RunId;

/// What a program learns while a verb runs. It is called from several threads.
pub trait Listener: Send + Sync {
    /// A line that the command writes to standard error.
    fn said(&self, line: &str);

    /// This many figures of these are done.
    fn reached(&self, title: &str, done: usize, of: usize);
}

/// What a verb that runs inside another program has given so far.
pub(crate) struct Session {
    listener: Arc<dyn Listener>,
    /// What it printed.
    pub(crate) printed: String,
    /// Its runs, in the order in which they began.
    pub(crate) runs: Vec<RunId>,
}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

fn session() -> MutexGuard<'static, Option<Session>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the program that embeds the command is given everything, until [`end`].
pub(crate) fn begin(listener: Arc<dyn Listener>) {
    *session() = Some(Session {
        listener,
        printed: String::new(),
        runs: Vec::new(),
    });
}

/// Ends the session that [`begin`] began, if one is active.
pub(crate) fn end() -> Option<Session> {
    session().take()
}

fn listener() -> Option<Arc<dyn Listener>> {
    session()
        .as_ref()
        .map(|session| Arc::clone(&session.listener))
}

/// Whether a verb runs inside another program, which has no terminal for questions.
pub(crate) fn is_active() -> bool {
    session().is_some()
}

/// Takes what would go to standard output; whether it was taken.
pub(crate) fn print(text: &str) -> bool {
    let mut session = session();
    let taken = session.as_mut().map(|to| to.printed.push_str(text));
    taken.is_some()
}

/// Writes a line to standard error. Where that is closed it is lost.
pub fn say(text: &str) {
    match listener() {
        Some(to) => to.said(text),
        None => drop(writeln!(std::io::stderr().lock(), "{text}")),
    }
}

/// Passes progress on.
pub(crate) fn reached(title: &str, done: usize, of: usize) {
    if let Some(to) = listener() {
        to.reached(title, done, of);
    }
}

/// Notes a run that is the verb's result.
pub(crate) fn is_of(run: RunId) {
    if let Some(to) = session().as_mut()
        && !to.runs.contains(&run)
    {
        to.runs.push(run);
    }
}
