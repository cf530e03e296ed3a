//! The journal: what was there before, on disk before anything is changed.
//!
//! | file | idea |
//! |---|---|
//! | `record` | one line: a checksum, and what is about to happen or has happened |
//! | `disk` | where it lies, and who keeps it |
//! | `active` | what stands changed, by the records |
//!
//! Records are put at the end. One that says what is about to happen is on disk (`fdatasync`) before
//! it happens, so that whatever ends the program, the journal knows at least as much as the
//! machine. Half a record at the end is one whose change never began. A journal that has grown is
//! written anew beside the old one and takes its place at once.

mod changes;
mod disk;
mod record;

use std::io;
use std::path::Path;

use weir_model::capability::Unavailable;

pub(crate) use changes::{ActiveChange, Changes, Folder, Value};
pub(crate) use disk::{Disk, NotOurs, Storage};
pub(crate) use record::{FORM, Record, Task};

/// A journal longer than this is written anew, unless half of it still stands.
const LONGEST: usize = 1 << 18;

/// A moment at which a program may end; a test ends it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A record is in the journal.
    Recorded,
    /// The kernel has obeyed, which is not in the journal yet.
    Written,
}

/// Told of every moment.
pub(crate) struct Watch(pub Box<dyn FnMut(Moment) + Send>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

/// An open journal and what stands changed by it.
#[derive(Debug)]
pub(crate) struct Journal {
    storage: Box<dyn Storage>,
    watch: Option<Watch>,
    began: Record,
    changes: Changes,
    length: usize,
    /// From which length on it is written anew.
    most: usize,
}

/// What an earlier process left behind.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The boot that it ran in, where it is known.
    pub boot: Option<String>,
    /// What stands changed since.
    pub changes: Changes,
    /// Lines that say nothing, though whole ones follow.
    pub damaged: Vec<usize>,
    /// A form that is not ours.
    pub form: Option<u32>,
}

impl Left {
    /// Reads what a journal says.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn read(storage: &mut dyn Storage) -> io::Result<Self> {
        let (records, damaged) = record::parse(&storage.read()?);
        let began = records.iter().rev().find_map(|record| match record {
            Record::Began { form, boot, .. } => Some((*form, boot.clone())),
            _ => None,
        });
        let (form, boot) = began.unzip();
        Ok(Self {
            boot,
            changes: Changes::replay(&records),
            damaged,
            form: form.filter(|&form| form != FORM),
        })
    }
}

impl Journal {
    /// Begins a journal in the place of whatever was there, with what still stands changed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(
        mut storage: Box<dyn Storage>,
        boot: String,
        owner: Task,
        changes: Changes,
    ) -> io::Result<Self> {
        let form = FORM;
        let began = Record::Began { form, boot, owner };
        let text = whole(&began, &changes);
        storage.replace(text.as_bytes())?;
        Ok(Self {
            storage,
            watch: None,
            began,
            changes,
            length: text.len(),
            most: LONGEST.max(2 * text.len()),
        })
    }

    /// What stands changed.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Says what is about to happen. When this returns well it is on disk.
    ///
    /// # Errors
    /// It cannot be written: what was about to happen must not.
    pub fn ahead(&mut self, record: &Record) -> Result<(), Unavailable> {
        self.put(record, true).map_err(|error| {
            Unavailable::because(format!(
                "the journal cannot be written, and so nothing is changed: {error}"
            ))
        })
    }

    /// Says what has happened. Where that cannot be written the journal knows that it was about to.
    pub fn after(&mut self, record: &Record) {
        let _ = self.put(record, false);
        // What became of it is known here, whatever is on disk.
        self.changes.note(record);
    }

    fn put(&mut self, record: &Record, sync: bool) -> io::Result<()> {
        let line = record.line();
        if self.length + line.len() > self.most {
            let text = whole(&self.began, &self.changes);
            self.storage.replace(text.as_bytes())?;
            self.length = text.len();
            self.most = LONGEST.max(2 * self.length);
        }
        self.storage.append(line.as_bytes(), sync)?;
        self.length += line.len();
        if sync {
            self.changes.note(record);
        }
        self.tell(Moment::Recorded);
        Ok(())
    }

    /// Has somebody told of every moment from now on.
    pub fn watch(&mut self, watch: Option<Watch>) {
        self.watch = watch;
    }

    /// A moment has come.
    pub fn tell(&mut self, moment: Moment) {
        if let Some(Watch(watch)) = &mut self.watch {
            watch(moment);
        }
    }
}

fn whole(began: &Record, changes: &Changes) -> String {
    let rest = changes.records();
    std::iter::once(began)
        .chain(&rest)
        .map(Record::line)
        .collect()
}

/// The folder's journal, for whoever holds its lock.
pub(crate) fn take(folder: &Path) -> Result<Box<dyn Storage>, NotOurs> {
    Ok(Box::new(Disk::take(folder)?))
}
