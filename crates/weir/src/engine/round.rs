//! A round of the work: its parts, each of which a worker does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Progress;

/// How often a part is tried whose worker is killed.
pub(super) const TRIES: usize = 3;

/// A part of the work as one worker does it.
pub(super) struct Share {
    /// Which of how many, in words.
    pub(super) name: String,
    /// The program and its arguments.
    pub(super) command: Vec<OsString>,
    /// Where the worker keeps what it measures.
    pub(super) store: PathBuf,
}

/// All parts of a round, and how to follow them.
pub(super) struct Round<'a> {
    pub(super) shares: Vec<Share>,
    /// At once; `None` for as many as the engine has.
    pub(super) workers: Option<usize>,
    pub(super) folder: &'a Path,
    pub(super) context: &'a Context,
    pub(super) progress: Progress,
    pub(super) done: usize,
}

impl Round<'_> {
    /// Notes that one more part is done.
    pub(super) fn is_done(&mut self) {
        self.done += 1;
        let all = self.shares.len();
        self.progress
            .step(self.done, all, self.done as f64 / all as f64);
    }

    /// Why a worker's end is not the end that was wanted; `None` where another try may help.
    pub(super) fn failure(&self, share: &Share, code: Option<i32>, said: &str) -> Option<Failure> {
        let line = said.lines().rev().find(|line| !line.trim().is_empty());
        let line = line.unwrap_or("it said nothing").trim();
        let line = line.strip_prefix("weir: ").unwrap_or(line);
        let text = format!("the worker of part {}: {line}", share.name);
        match code {
            Some(2) => Some(Failure::request(text)),
            Some(3) => Some(Failure::Missing(anyhow::Error::msg(text))),
            Some(4) => Some(Failure::work(text)),
            _ => None,
        }
    }

    /// Why nothing more is tried.
    pub(super) fn gave_up(&self, share: &Share, how: &str, said: &str) -> Failure {
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Failure::work(format!(
            "the worker of part {} {how}, {TRIES} times; it said: {}; what was measured is in {}, and the same command goes on",
            share.name,
            match last.is_empty() {
                true => "nothing, as on a full disk".into(),
                false => last.join(" / "),
            },
            self.folder.display()
        ))
    }
}

pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The process of a part.
pub(super) fn process(share: &Share) -> Command {
    let mut words = share.command.iter();
    let mut command = Command::new(words.next().cloned().unwrap_or_default());
    command.args(words);
    command
}
