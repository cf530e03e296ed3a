//! Restoring what an earlier process left changed, by its journal.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::journal::{
    Changes, Disk, Extent, FIRST_FORM, FORM, Journal, Left, NotOurs, Record, Storage, Task,
};
use super::not_put_back::{Cause, NotPutBack};
use super::restore::{folder_of, is_register, put_back};
use crate::process::started;
use crate::root::Root;

/// Why a host cannot be steered, or a journal cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Another process steers this host.
    #[error("{0}")]
    Kept(String),
    /// There is no journal to restore.
    #[error("{0}")]
    NoJournal(String),
    /// The journal cannot be read or written.
    #[error("the journal in {folder}: {why}")]
    Failed {
        /// The folder.
        folder: String,
        /// The error.
        why: String,
    },
}

/// What was restored of an earlier process's changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Files, registers and folders that were restored.
    pub put_back: Vec<String>,
    /// What could not be restored, and why.
    pub not: Vec<NotPutBack>,
    /// Other facts, such as a reboot.
    pub notes: Vec<String>,
    /// What is wrong with the journal: it is damaged, or cannot be written.
    pub troubles: Vec<String>,
}

impl Restored {
    /// Whether everything is restored, or is left to another program for a reason.
    pub fn is_whole(&self) -> bool {
        !self.not.iter().any(|not| not.cause.is_refused()) && self.troubles.is_empty()
    }

    /// A line for each thing that was restored.
    pub fn done(&self) -> impl Iterator<Item = String> {
        self.put_back.iter().map(|path| format!("restored: {path}"))
    }

    /// A line for each thing that is not as before, and for each fact.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let not = self.not.iter().map(ToString::to_string);
        not.chain(self.notes.iter().chain(&self.troubles).cloned())
    }
}

/// Removes the results that are as before after all: files that did not accept their earlier content, or
/// disappeared, with a folder or controller of Weir. Returns the paths that the journal may drop.
pub(super) fn gone_since(root: &Root, changes: &Changes, not: &mut Vec<NotPutBack>) -> Vec<String> {
    let is_well = |not: &NotPutBack| match not.cause {
        // A register is still changed if the file of its processor is not there.
        Cause::Refused { .. } if is_register(&not.path) => false,
        Cause::Refused { .. } | Cause::Widest { .. } => !root.exists(&not.path),
        Cause::Gone => changes.folder(folder_of(&not.path)).is_some(),
        _ => false,
    };
    let is_widest = |not: &NotPutBack| matches!(not.cause, Cause::Widest { .. });
    let settled = not.iter().filter(|not| is_well(not) || is_widest(not));
    let settled = settled.map(|not| not.path.clone()).collect();
    not.retain(|not| !is_well(not));
    settled
}

/// Restores what the journal in a folder says. Every start does the same.
///
/// # Errors
/// Another process has the journal or the host, or the journal cannot be read. If it cannot be written, everything is
/// restored before that is reported.
pub fn restore(root: &Root, folder: &Path, extent: Extent) -> Result<Restored, JournalError> {
    let storage = Disk::take_left(root, folder, extent).map_err(not_ours(folder))?;
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut aside: Vec<String> = names
        .map(|entry| entry.path().display().to_string())
        .filter(|path| path.contains("/journal.damaged-"))
        .collect();
    aside.sort();
    let restored = restore_from(root, Box::new(storage)).map_err(failed(folder))?;
    let (mut restored, journal) = restored;
    restored.troubles.extend(journal.err());
    restored.notes.extend(aside.iter().map(|path| {
        format!("{path} was damaged; remove it once all that it names is as it should be")
    }));
    Ok(restored)
}

/// Restores what a journal says; only then the journal is written, which a full disk prevents.
pub(super) fn restore_from(
    root: &Root,
    mut storage: Box<dyn Storage>,
) -> Result<(Restored, Result<Journal, String>), String> {
    let left = Left::read(storage.as_mut()).map_err(|error| error.to_string())?;
    let boot = boot(root);
    let (mut restored, active) = replay(root, &left, &boot)?;
    if !left.damaged.is_empty() {
        let lines: Vec<String> = left.damaged.iter().map(usize::to_string).collect();
        let damaged = format!("lines {} of the journal are damaged", lines.join(", "));
        match storage.keep_aside() {
            Ok(name) => restored.troubles.push(format!(
                "{damaged}: what they changed may still be changed; the journal is kept as {name}"
            )),
            Err(error) => {
                let why = format!("{damaged}, and it cannot be kept under another name: {error}");
                return Ok((restored, Err(why)));
            }
        }
    }
    let id = std::process::id();
    let start = started(root, id).unwrap_or(0);
    let journal = Journal::begin(storage, boot, Task { id, start }, active);
    let journal = journal.map_err(|error| format!("the journal cannot be written: {error}"));
    Ok((restored, journal))
}

/// Restores what an earlier process left; returns also what the kernel refused, which is still in force.
fn replay(root: &Root, left: &Left, boot: &str) -> Result<(Restored, Changes), String> {
    let mut restored = Restored::default();
    if let Some(form) = left.form {
        return Err(format!(
            "it is of form {form}, and this Weir knows forms {FIRST_FORM} to {FORM}: restore with the Weir that wrote it"
        ));
    }
    if left.boot.as_deref().is_some_and(|before| before != boot) {
        let changes: Vec<&str> = left.changes.backwards().map(|s| s.path()).collect();
        if !changes.is_empty() {
            restored.notes.push(format!(
                "the machine was rebooted since; its changes are gone: {}",
                changes.join(", ")
            ));
        }
        return Ok((restored, Changes::default()));
    }
    let mut active = left.changes.clone();
    for change in left.changes.backwards() {
        let outcome = put_back(root, change, &active);
        let path = change.path().to_owned();
        if outcome.touched && outcome.settled {
            restored.put_back.push(path.clone());
        }
        restored.not.extend(outcome.not);
        if outcome.settled {
            active.note(&Record::Back { path });
        }
    }
    for path in gone_since(root, &left.changes, &mut restored.not) {
        active.note(&Record::Back { path });
    }
    restored.not.extend(left.lost.iter().map(|path| NotPutBack {
        path: path.clone(),
        before: String::new(),
        cause: Cause::Lost,
    }));
    Ok((restored, active))
}

/// The kernel's id of this boot.
fn boot(root: &Root) -> String {
    let id = root.text("/proc/sys/kernel/random/boot_id");
    id.known().cloned().unwrap_or_default()
}

pub(super) fn not_ours(folder: &Path) -> impl Fn(NotOurs) -> JournalError {
    let failed = failed(folder);
    move |error| match error {
        NotOurs::Kept(why) => JournalError::Kept(why),
        NotOurs::NoJournal(why) => JournalError::NoJournal(why),
        NotOurs::Lost(why) => failed(why),
        NotOurs::Failed(_, ref why) if why.kind() == io::ErrorKind::PermissionDenied => {
            failed(format!("{error}; it is for root"))
        }
        NotOurs::Failed(..) => failed(error.to_string()),
    }
}

pub(super) fn failed(folder: &Path) -> impl Fn(String) -> JournalError {
    let folder = folder.display().to_string();
    move |why| JournalError::Failed {
        folder: folder.clone(),
        why,
    }
}
