//! The file that says where pages of a process were before they moved: `place apply` and `place watch` write it, `place
//! restore` reads it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use weir_linux::Root;
use weir_linux::input::Input;
use weir_linux::memory::objects::started;
use weir_linux::memory::{AddressRange, RangeSet};

use crate::failure::{Failure, Result};
use crate::files::OfLines;
use crate::session::say;

/// The first line of the file.
const HEAD: &str = "weir place apply 1";

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Undo {
    file: File,
    path: PathBuf,
    noted: RangeSet,
    /// All that was written.
    text: String,
}

impl Undo {
    /// Begins it.
    ///
    /// # Errors
    /// It is there already, it cannot be written, or there is no such process.
    pub fn create(path: &Path, root: &Root, process: u32) -> Result<Self> {
        let began = started(root, process)
            .ok_or_else(|| Failure::request(format!("there is no process {process}")))?;
        // What an earlier move has noted is not replaced: it is what has to be taken back first.
        let file = File::create_new(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::request(format!(
                "{} is there already, of an earlier move; take that back with `weir place restore`, remove it, or name \
                 another with --undo",
                path.display()
            )),
            _ => cannot_write(path, error),
        })?;
        let mut undo = Self {
            file,
            path: path.to_owned(),
            noted: RangeSet::default(),
            text: String::new(),
        };
        match undo.write(&format!("{HEAD}\nprocess {process} started {began}\n")) {
            Ok(()) => Ok(undo),
            Err(why) => {
                undo.remove();
                Err(why)
            }
        }
    }

    /// Removes it again, while nothing has moved by it.
    pub fn remove(self) {
        // The caller reports the error that came before.
        let _ = std::fs::remove_file(self.path);
    }

    /// Notes where pages are, before they move. Pages that were noted before have moved since, and keep their first place.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, parts: &[(AddressRange, u32)]) -> Result<()> {
        let mut text = String::new();
        for (part, node) in parts {
            for new in self.noted.insert(part) {
                text.push_str(&format!("{new} {node}\n"));
            }
        }
        match text.is_empty() {
            true => Ok(()),
            false => self.write(&text),
        }
    }

    /// Writes at its end; all of it again where another program has removed it.
    fn write(&mut self, text: &str) -> Result<()> {
        self.text.push_str(text);
        let mut put = || {
            let is_gone = !self.path.try_exists()?;
            if is_gone {
                self.file = File::create_new(&self.path)?;
            }
            let text = if is_gone { &self.text } else { text };
            self.file.write_all(text.as_bytes())?;
            self.file.sync_all()
        };
        put().map_err(|error| cannot_write(&self.path, error))
    }
}

fn cannot_write(path: &Path, error: std::io::Error) -> Failure {
    Failure::Work(anyhow::Error::new(error).context(format!("cannot write {}", path.display())))
}

/// What such a file says.
#[derive(Debug, PartialEq)]
pub(super) struct Noted {
    /// The process.
    pub process: u32,
    /// When it was started, in ticks of the kernel.
    pub began: u64,
    /// The pages that were on each node.
    pub nodes: Vec<(u32, Vec<AddressRange>)>,
}

impl Noted {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or says something else.
    pub fn read(path: &Path) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            Failure::reading(
                anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
            )
        };
        let odd = |line: usize| {
            Failure::request(format!(
                "{}, line {line}: this is not what `weir place apply` writes",
                path.display()
            ))
        };
        let mut text = String::new();
        let opened = Input::open(path).map(OfLines::new);
        opened
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(cannot)?;
        if text.is_empty() {
            return Err(Failure::request(format!(
                "{} is empty: its writer ended before a page moved, and nothing is to be moved back; remove it",
                path.display()
            )));
        }
        // Where its writer was killed the last line may lack its end; no page of it has moved.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut of = None;
        let mut nodes: BTreeMap<u32, Vec<AddressRange>> = BTreeMap::new();
        for (number, line) in whole.lines().enumerate() {
            match number {
                0 if line == HEAD => {}
                1 => {
                    let words: Vec<&str> = line.split(' ').collect();
                    of = match words.as_slice() {
                        ["process", id, "started", began] => {
                            id.parse().ok().zip(began.parse().ok())
                        }
                        _ => None,
                    };
                    of.ok_or_else(|| odd(2))?;
                }
                n if n > 1 => {
                    let part = line.split_once(' ').and_then(|(range, node)| {
                        Some((range.parse::<AddressRange>().ok()?, node.parse().ok()?))
                    });
                    let (range, node) = part.ok_or_else(|| odd(number + 1))?;
                    nodes.entry(node).or_default().push(range);
                }
                _ => return Err(odd(1)),
            }
        }
        let (process, began) = of.ok_or_else(|| odd(1))?;
        if nodes.is_empty() {
            say("weir: warning: no page of it was in memory");
        }
        Ok(Self {
            process,
            began,
            nodes: nodes.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_the_place_that_was_noted_first_also_where_the_file_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("moved.txt");
        let own = std::process::id();
        let mut undo = Undo::create(&path, &Root::live(), own).unwrap();
        let part = |pages: std::ops::Range<usize>| -> AddressRange {
            let [start, end] = [pages.start, pages.end].map(|page| page * 65536);
            format!("pid:{own}:{start:#x}-{end:#x}").parse().unwrap()
        };
        undo.note(&[(part(1..5), 0), (part(8..9), 2)]).unwrap();
        undo.note(&[(part(3..8), 1), (part(1..5), 1)]).unwrap();
        std::fs::remove_file(&path).unwrap();
        undo.write("pid:1:0x1000-0x2000 1").unwrap();
        let noted = Noted::read(&path).unwrap();
        assert_eq!(Some(noted.began), started(&Root::live(), own));
        assert_eq!(
            noted.nodes,
            [
                (0, vec![part(1..5)]),
                (1, vec![part(5..8)]),
                (2, vec![part(8..9)])
            ]
        );
        let again = Undo::create(&path, &Root::live(), own).unwrap_err();
        assert!(format!("{again:?}").contains("is there already"));
    }
}
