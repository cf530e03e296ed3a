//! The changes in force, by the records of a journal.

use super::record::{Record, Task};

/// A change that must be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActiveChange {
    /// The value of a file or register.
    Value(Value),
    /// A folder in a file system of the kernel.
    Folder(Folder),
}

/// A value that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub path: String,
    /// The inode number of its folder when it was found.
    pub folder: Option<u64>,
    /// The value before.
    pub before: String,
    /// The value when it was last written, as read back.
    pub ours: Option<String>,
    /// The value that was about to be written when the journal ended.
    pub pending: Option<String>,
}

/// A folder that was made, and the threads that were moved into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    pub path: String,
    /// The file in it that lists its members.
    pub members: String,
    /// Its members, and the file that listed them before.
    pub moved: Vec<(String, Vec<Task>)>,
}

impl ActiveChange {
    pub fn path(&self) -> &str {
        match self {
            ActiveChange::Value(value) => &value.path,
            ActiveChange::Folder(folder) => &folder.path,
        }
    }
}

/// All changes in force, in the order in which they were made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes(Vec<ActiveChange>);

impl Changes {
    /// The changes in force after the records of a journal, and the paths of changes whose first record is
    /// missing.
    pub fn replay(records: &[Record]) -> (Self, Vec<String>) {
        let (mut changes, mut lost) = (Self::default(), Vec::new());
        for record in records {
            changes.note(record);
            let Some(path) = record.path() else { continue };
            lost.retain(|lost| lost != path);
            let was_made = matches!(record, Record::Wrote { .. } | Record::Moving { .. });
            if was_made && changes.get(path).is_none() {
                lost.push(path.to_owned());
            }
        }
        (changes, lost)
    }

    /// Applies one more record.
    pub fn note(&mut self, record: &Record) {
        match record {
            Record::Began { .. } => {}
            Record::Writing {
                path,
                folder,
                before,
                text,
            } => {
                if self.value(path).is_none() {
                    self.0.push(ActiveChange::Value(Value {
                        path: path.clone(),
                        folder: *folder,
                        before: before.clone(),
                        ours: None,
                        pending: None,
                    }));
                }
                if let Some(value) = self.value_mut(path) {
                    value.pending = Some(text.clone());
                }
            }
            Record::Wrote { path, found } => {
                if let Some(value) = self.value_mut(path) {
                    value.ours = Some(found.clone());
                    value.pending = None;
                }
            }
            Record::Refused { path } => {
                if let Some(value) = self.value_mut(path) {
                    value.pending = None;
                }
                // No value of Weir was ever written.
                self.0.retain(
                    |s| !matches!(s, ActiveChange::Value(v) if v.path == *path && v.ours.is_none()),
                );
            }
            Record::Making { path, members } => {
                if self.folder_mut(path).is_none() {
                    self.0.push(ActiveChange::Folder(Folder {
                        path: path.clone(),
                        members: members.clone(),
                        moved: Vec::new(),
                    }));
                }
            }
            Record::Moving { to, from, tasks } => {
                if let Some(folder) = self.folder_mut(to) {
                    folder.moved.push((from.clone(), tasks.clone()));
                }
            }
            // A folder that was made took its content with it.
            Record::Back { path } => {
                let was_in = |active: &ActiveChange| {
                    let rest = active.path().strip_prefix(path.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                self.0.retain(|active| !was_in(active));
            }
        }
    }

    /// The fewest records with the same result.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for active in &self.0 {
            match active {
                ActiveChange::Value(value) => {
                    let writing = |text: &String| Record::Writing {
                        path: value.path.clone(),
                        folder: value.folder,
                        before: value.before.clone(),
                        text: text.clone(),
                    };
                    if let Some(ours) = &value.ours {
                        records.push(writing(ours));
                        records.push(Record::Wrote {
                            path: value.path.clone(),
                            found: ours.clone(),
                        });
                    }
                    records.extend(value.pending.as_ref().map(writing));
                }
                ActiveChange::Folder(folder) => {
                    records.push(Record::Making {
                        path: folder.path.clone(),
                        members: folder.members.clone(),
                    });
                    records.extend(folder.moved.iter().map(|(from, tasks)| Record::Moving {
                        to: folder.path.clone(),
                        from: from.clone(),
                        tasks: tasks.clone(),
                    }));
                }
            }
        }
        records
    }

    /// The values and folders, the last first: a later change may depend on an earlier one.
    pub fn backwards(&self) -> impl Iterator<Item = &ActiveChange> {
        self.0.iter().rev()
    }

    /// The change at a path.
    pub fn get(&self, path: &str) -> Option<&ActiveChange> {
        self.0.iter().find(|active| active.path() == path)
    }

    /// A value that was changed.
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.0.iter().find_map(|active| match active {
            ActiveChange::Value(value) if value.path == path => Some(value),
            _ => None,
        })
    }

    /// A folder that was made.
    pub fn folder(&self, path: &str) -> Option<&Folder> {
        self.0.iter().find_map(|active| match active {
            ActiveChange::Folder(folder) if folder.path == path => Some(folder),
            _ => None,
        })
    }

    fn value_mut(&mut self, path: &str) -> Option<&mut Value> {
        self.0.iter_mut().find_map(|active| match active {
            ActiveChange::Value(value) if value.path == path => Some(value),
            _ => None,
        })
    }

    fn folder_mut(&mut self, path: &str) -> Option<&mut Folder> {
        self.0.iter_mut().find_map(|active| match active {
            ActiveChange::Folder(folder) if folder.path == path => Some(folder),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> impl Strategy<Value = Record> {
        let path = || "[ab]";
        let text = || "[12]";
        prop_oneof![
            (path(), text(), text()).prop_map(|(path, before, text)| Record::Writing {
                path,
                folder: None,
                before,
                text
            }),
            (path(), text()).prop_map(|(path, found)| Record::Wrote { path, found }),
            path().prop_map(|path| Record::Refused { path }),
            "[cd]".prop_map(|path| Record::Making {
                path,
                members: "tasks".into()
            }),
            ("[cd]", text(), 0_u32..3).prop_map(|(to, from, id)| Record::Moving {
                to,
                from,
                tasks: vec![Task { id, start: 1 }]
            }),
            "[a-d]".prop_map(|path| Record::Back { path }),
        ]
    }

    proptest! {
        #[test]
        fn a_journal_written_anew_says_the_same(records in prop::collection::vec(record(), 0..20)) {
            let (changes, _) = Changes::replay(&records);
            prop_assert_eq!(Changes::replay(&changes.records()), (changes, vec![]));
        }

        #[test]
        fn the_first_thing_found_is_what_comes_back(records in prop::collection::vec(record(), 0..20)) {
            let (changes, _) = Changes::replay(&records);
            for own in ["a", "b"] {
                let (mut first, mut written) = (None, false);
                for record in &records {
                    match record {
                        Record::Writing { path, before, .. } if path == own => {
                            first.get_or_insert(before);
                        }
                        Record::Wrote { path, .. } if path == own => written |= first.is_some(),
                        Record::Refused { path } if path == own && !written => first = None,
                        Record::Back { path } if path == own => (first, written) = (None, false),
                        _ => {}
                    }
                }
                prop_assert_eq!(first, changes.value(own).map(|value| &value.before));
            }
        }
    }
}
