//! The only way to change anything: read the value, record it on disk, write, read back.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use weir_model::capability::Unavailable;

use super::journal::{
    ActiveChange, Disk, Extent, Journal, Moment, Record, Storage, Task, Value, Watch, lost,
};
use super::not_put_back::{Cause, NotPutBack};
use super::replay::{JournalError, Restored, failed, gone_since, not_ours, restore_from};
use super::restore::{
    folder_number, folder_of, is_controllers, is_ours, is_register, is_rounded, put_back,
};
use crate::process::started;
use crate::root::Root;

/// The journal and the machine, which are changed together.
#[derive(Debug)]
pub(crate) struct JournalledWrites {
    root: Root,
    journal: Journal,
    /// What was left to other programs since the last release, by path.
    left: Vec<NotPutBack>,
}

impl JournalledWrites {
    /// Takes the journal of a folder, and the host if its extent is that, restores its changes, and begins a new one.
    pub fn open(
        root: &Root,
        folder: &Path,
        extent: Extent,
    ) -> Result<(Self, Restored), JournalError> {
        let lost = lost(folder).map(|why| format!("the journal in {}: {why}", folder.display()));
        let storage = Disk::take(root, folder, extent).map_err(not_ours(folder))?;
        let (writes, mut restored) = Self::on(root, Box::new(storage)).map_err(failed(folder))?;
        restored.notes.extend(lost);
        Ok((writes, restored))
    }

    /// The same, on any storage.
    pub fn on(root: &Root, storage: Box<dyn Storage>) -> Result<(Self, Restored), String> {
        let (restored, journal) = restore_from(root, storage)?;
        let journal = journal.map_err(|why| {
            let why = [format!("{why}; no limit is set")].into_iter();
            let all: Vec<String> = why
                .chain(restored.done())
                .chain(restored.remarks())
                .collect();
            all.join("\n")
        })?;
        let writes = Self {
            root: root.clone(),
            journal,
            left: Vec::new(),
        };
        Ok((writes, restored))
    }

    /// Sets the observer of every record and write from now on.
    pub fn watch(&mut self, watch: Option<Watch>) {
        self.journal.watch(watch);
    }

    /// Writes a value, and returns the value in force.
    pub fn set(&mut self, path: &str, text: &str) -> Result<String, Unavailable> {
        let folder = folder_number(&self.root, path);
        let now = self.root.text(path).get()?.clone();
        let changed = |found: &str| {
            Unavailable::because(format!(
                "another program changed {path} to `{found}` in the meantime, so it is not changed"
            ))
        };
        let mut before = now.clone();
        let mut ours = String::new();
        if let Some(known) = self.journal.changes().value(path) {
            if known.folder != folder {
                return Err(Unavailable::because(format!(
                    "the folder of {path} was removed and made again, so it is not changed"
                )));
            }
            let mut values = [&known.ours, &known.pending].into_iter().flatten();
            if !is_controllers(path) && !values.any(|ours| is_ours(path, ours, &now)) {
                return Err(changed(&now));
            }
            before.clone_from(&known.before);
            ours = known.ours.clone().unwrap_or_default();
        }
        if is_said(path, &now, text) {
            return Ok(now);
        }
        self.journal.ahead(&Record::Writing {
            path: path.to_owned(),
            folder,
            before,
            text: text.to_owned(),
        })?;
        // The disk may have taken seconds.
        let written = match self.root.text(path).get() {
            Ok(meanwhile) if *meanwhile != now => Err(changed(meanwhile)),
            Ok(_) => {
                let written = self.root.write_in(folder, path, &format!("{text}\n"));
                written.map_err(|error| {
                    Unavailable::because(format!("writing `{text}` to {path}: {error}"))
                })
            }
            Err(why) => Err(why),
        };
        if let Err(why) = written {
            let path = path.to_owned();
            self.journal.after(&Record::Refused { path });
            return Err(why);
        }
        self.journal.tell(Moment::Written);
        let found = self.root.text(path).get()?.clone();
        // A hypervisor may keep a part of what is written to a register, or nothing.
        let is_text = is_rounded(path) || is_register(path) || is_ours(path, text, &found);
        let ours = match (is_controllers(path), is_text) {
            // The list may name controllers of other programs.
            (true, _) => format!("{ours} {}", text.replace('+', ""))
                .trim()
                .to_owned(),
            (false, true) => found.clone(),
            (false, false) => text.to_owned(),
        };
        self.journal.after(&Record::Wrote {
            path: path.to_owned(),
            found: ours,
        });
        match is_text || is_controllers(path) {
            true => Ok(found),
            false => Err(changed(&found)),
        }
    }

    /// Makes a folder in a file system of the kernel, with a file that lists its members.
    pub fn make(&mut self, path: &str, members: &str) -> Result<(), Unavailable> {
        if self.root.exists(path) {
            return Err(Unavailable::because(format!("{path} already exists")));
        }
        self.journal.ahead(&Record::Making {
            path: path.to_owned(),
            members: members.to_owned(),
        })?;
        if let Err(error) = self.root.make_folder(path) {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => "; it is for root",
                io::ErrorKind::StorageFull => {
                    "; all groups that the processor has are in use, remove one"
                }
                _ => "",
            };
            let path = path.to_owned();
            let why = format!("making {path}: {error}{hint}");
            self.journal.after(&Record::Back { path });
            return Err(Unavailable::because(why));
        }
        self.journal.tell(Moment::Written);
        Ok(())
    }

    /// Writes a value in a folder that was made here, and returns the value in force: it disappears with the folder.
    pub fn set_own(&mut self, path: &str, text: &str) -> Result<String, Unavailable> {
        if self.journal.changes().folder(folder_of(path)).is_none() {
            let why = format!("{path} is not in a folder that was made here");
            return Err(Unavailable::because(why));
        }
        let written = self.root.write(path, &format!("{text}\n"));
        written.map_err(|error| {
            Unavailable::because(format!("writing `{text}` to {path}: {error}"))
        })?;
        self.root.text(path).get().cloned()
    }

    /// Moves threads into a folder that was made here, and returns how many are in it.
    pub fn take(&mut self, to: &str, from: &str, ids: &[u32]) -> Result<usize, Unavailable> {
        let Some(folder) = self.journal.changes().folder(to) else {
            let why = format!("{to} is not a folder that was made here");
            return Err(Unavailable::because(why));
        };
        let members = format!("{to}/{}", folder.members);
        let task = |&id: &u32| started(&self.root, id).map(|start| Task { id, start });
        let tasks: Vec<Task> = ids.iter().filter_map(task).collect();
        if tasks.is_empty() {
            return Ok(0);
        }
        self.journal.ahead(&Record::Moving {
            to: to.to_owned(),
            from: from.to_owned(),
            tasks: tasks.clone(),
        })?;
        // The disk may have taken seconds: a thread may have ended, and its number be another's, or another program
        // may have moved it.
        let still = self.root.text(from);
        let still = still.known().map_or("", String::as_str).lines();
        let still: HashSet<u32> = still.filter_map(|line| line.trim().parse().ok()).collect();
        let is_same = |task: &Task| {
            still.contains(&task.id) && started(&self.root, task.id) == Some(task.start)
        };
        let mut moved = 0;
        for task in tasks {
            if !is_same(&task) {
                continue;
            }
            match self.root.write(&members, &format!("{}\n", task.id)) {
                Ok(()) => {
                    moved += 1;
                    self.journal.tell(Moment::Written);
                }
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    let why = format!("moving thread {} to {members}: {error}", task.id);
                    return Err(Unavailable::because(why));
                }
            }
        }
        Ok(moved)
    }

    /// Writes the journal again, if another program has removed, replaced or cut it. If that fails, the next change is refused, and
    /// the end reports it.
    pub fn keep_journal(&mut self) {
        let _ = self.journal.keep();
    }

    /// Whether a folder was made here, and still exists.
    pub fn has_made(&self, path: &str) -> bool {
        self.journal.changes().folder(path).is_some()
    }

    /// The content of a file before the first write, if it is changed, and still in the folder in which it was.
    pub fn before(&self, path: &str) -> Option<&str> {
        let value = self.journal.changes().value(path)?;
        (!self.is_gone(value)).then_some(value.before.as_str())
    }

    /// Whether the folder of a value was removed, also if there is another of its name now.
    fn is_gone(&self, value: &Value) -> bool {
        folder_number(&self.root, &value.path) != value.folder
    }

    /// Drops the values of folders that were removed: they went with them.
    pub fn drop_gone(&mut self) {
        let changes = self.journal.changes().backwards();
        let gone = changes.filter_map(|active| match active {
            ActiveChange::Value(value) if self.is_gone(value) => Some(value.path.clone()),
            _ => None,
        });
        for path in gone.collect::<Vec<_>>() {
            self.put_back(&path);
        }
    }

    /// Restores one value or folder.
    pub fn put_back(&mut self, path: &str) -> Vec<NotPutBack> {
        let Some(active) = self.journal.changes().get(path) else {
            return Vec::new();
        };
        let outcome = put_back(&self.root, active, self.journal.changes());
        self.journal.tell(Moment::Written);
        if outcome.settled {
            let path = path.to_owned();
            self.journal.after(&Record::Back { path });
        }
        for not in &outcome.not {
            if outcome.settled && not.cause != Cause::Gone {
                self.left.retain(|known| known.path != not.path);
                self.left.push(not.clone());
            }
        }
        outcome.not
    }

    /// Restores everything, the last change first, and returns what is not as before. Changes whose restoration
    /// the kernel refuses stay in the journal.
    pub fn release(&mut self) -> Vec<NotPutBack> {
        // What was left to others earlier, unless it is as before by now.
        let mut not = std::mem::take(&mut self.left);
        not.retain(|left| self.root.text(&left.path).known() != Some(&left.before));
        let paths: Vec<String> = (self.journal.changes().backwards())
            .map(|active| active.path().to_owned())
            .collect();
        let changes = self.journal.changes().clone();
        for path in paths {
            not.extend(self.put_back(&path));
        }
        self.left.clear();
        for path in gone_since(&self.root, &changes, &mut not) {
            self.journal.after(&Record::Back { path });
        }
        if let Err(error) = self.journal.catch_up() {
            let why = error.to_string();
            not.push(NotPutBack {
                path: "the journal".to_owned(),
                before: String::new(),
                cause: match error.kind() {
                    io::ErrorKind::IsADirectory => Cause::Supplanted,
                    _ => Cause::Unwritten { why },
                },
            });
        }
        not
    }
}

/// Whether a file already has the requested content.
fn is_said(path: &str, now: &str, text: &str) -> bool {
    if !is_controllers(path) {
        return now == text;
    }
    text.split_whitespace().all(|word| {
        let name = word.trim_start_matches('+');
        now.split_whitespace().any(|known| known == name)
    })
}
