//! The journal: the earlier values, on disk before anything is changed.
//!
//! | file | content |
//! |---|---|
//! | `record` | one line: a checksum, and what will happen or has happened |
//! | `disk` | the file |
//! | `lock` | the locks of the host and of a journal |
//! | `changes` | the changes in force, by the records |
//!
//! Records are appended. A record of a coming change is on disk (`fdatasync`) before the change. So however
//! the program ends, the journal knows at least as much as the machine. Half a record at the end belongs to a
//! change that never began. A journal that has grown is rewritten into a second file, which replaces it in
//! one step.

mod changes;
mod disk;
mod lock;
mod record;

use std::io;

use weir_model::capability::Unavailable;

pub(crate) use changes::{ActiveChange, Changes, Folder, Value};
pub use disk::Extent;
pub(crate) use disk::{Disk, Storage, lost};
pub(crate) use lock::NotOurs;
pub(crate) use record::{FIRST_FORM, FORM, Record, Task};

/// A longer journal is rewritten, unless half of it is still in force.
const LONGEST: usize = 1 << 18;

/// A moment at which a program may end; a test ends it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A record is in the journal.
    Recorded,
    /// The kernel has accepted a write, which is not in the journal yet.
    Written,
}

/// Called at every moment.
pub(crate) struct Watch(pub Box<dyn FnMut(Moment) + Send>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

/// An open journal and the changes in force by it.
#[derive(Debug)]
pub(crate) struct Journal {
    storage: Box<dyn Storage>,
    watch: Option<Watch>,
    began: Record,
    changes: Changes,
    length: usize,
    /// The length from which on it is rewritten.
    most: usize,
    /// Whether a result could not be written.
    is_behind: bool,
}

/// The journal of an earlier process.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The boot in which it ran, if it is known.
    pub boot: Option<String>,
    /// Its changes that are still in force.
    pub changes: Changes,
    /// Lines that are damaged, although they end.
    pub damaged: Vec<usize>,
    /// Files and folders that were changed by whole lines, while the line with what was before is damaged.
    pub lost: Vec<String>,
    /// A foreign form.
    pub form: Option<u32>,
}

impl Left {
    /// Reads a journal.
    ///
    /// # Errors
    /// It cannot be read, or is another program's file.
    pub fn read(storage: &mut dyn Storage) -> io::Result<Self> {
        let bytes = storage.read()?;
        let (records, damaged) = record::parse(&bytes);
        if records.is_empty() && !bytes.is_empty() {
            return Err(io::Error::other(
                "`journal` in it has no line of Weir, and is not changed; give another folder",
            ));
        }
        let began = records.iter().rev().find_map(|record| match record {
            Record::Began { form, boot, .. } => Some((*form, boot.clone())),
            _ => None,
        });
        let (form, boot) = began.unzip();
        let (changes, lost) = Changes::replay(&records);
        Ok(Self {
            boot,
            changes,
            damaged,
            lost,
            form: form.filter(|form| !(FIRST_FORM..=FORM).contains(form)),
        })
    }
}

impl Journal {
    /// Begins a journal that replaces the earlier one, with the changes still in force.
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
            is_behind: false,
        })
    }

    /// The changes in force.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Records a coming change. When this returns without an error, the record is on disk.
    ///
    /// # Errors
    /// It cannot be written: the change must not be made.
    pub fn ahead(&mut self, record: &Record) -> Result<(), Unavailable> {
        self.put(record, true).map_err(|error| {
            let path = record.path().unwrap_or_default();
            Unavailable::because(format!(
                "the journal cannot be written, so {path} is not changed: {error}"
            ))
        })
    }

    /// Records a change that was made. If this cannot be written, the journal still has the record from
    /// before the change.
    pub fn after(&mut self, record: &Record) {
        self.is_behind |= self.put(record, false).is_err();
        // The result is known here, whatever is on disk.
        self.changes.note(record);
    }

    /// Writes the results that [`after`](Self::after) could not write.
    ///
    /// # Errors
    /// The journal cannot be written, and still names changes that are not in force.
    pub fn catch_up(&mut self) -> io::Result<()> {
        match self.is_behind {
            true => self.rewrite(),
            false => Ok(()),
        }
    }

    /// Writes the journal again, if another program has removed, replaced or cut it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self) -> io::Result<()> {
        if self.storage.is_whole(self.length) {
            return Ok(());
        }
        // Until it is written, the disk does not say what is in force.
        self.is_behind = true;
        self.rewrite()
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let text = whole(&self.began, &self.changes);
        self.storage.replace(text.as_bytes())?;
        self.length = text.len();
        self.most = LONGEST.max(2 * self.length);
        self.is_behind = false;
        Ok(())
    }

    fn put(&mut self, record: &Record, sync: bool) -> io::Result<()> {
        let line = record.line();
        self.keep()?;
        if self.length + line.len() > self.most {
            self.rewrite()?;
        }
        self.storage.append(line.as_bytes(), sync)?;
        self.length += line.len();
        if sync {
            self.changes.note(record);
        }
        self.tell(Moment::Recorded);
        Ok(())
    }

    /// Sets the observer of every moment from now on.
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
