//! Every path of the system goes through a root, so that the same code reads a recorded machine and this one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use weir_model::capability::Unavailable;

use crate::control::{Control, Kernel, patiently};
use crate::recording::{Trace, Tree};
use crate::register::{self, Register};

/// The longest attribute that is read here; a longer one is not what it seems.
const LONGEST_FILE: u64 = 1 << 20;

/// A value of the system: present, absent, or unreadable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// The value.
    Known(T),
    /// The system has no such file.
    Absent(Unavailable),
    /// The system has the file, but it cannot be read or is invalid.
    Unreadable(Unavailable),
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn known(&self) -> Option<&T> {
        match self {
            Reading::Known(value) => Some(value),
            Reading::Absent(_) | Reading::Unreadable(_) => None,
        }
    }

    /// The value, or why there is none.
    ///
    /// # Errors
    /// The reason, whether the file is absent or unreadable.
    pub fn get(&self) -> Result<&T, Unavailable> {
        match self {
            Reading::Known(value) => Ok(value),
            Reading::Absent(why) | Reading::Unreadable(why) => Err(why.clone()),
        }
    }

    /// Converts a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Ok(f(value)))
    }

    /// Converts a known value; the conversion may find it invalid.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Result<U, Unavailable>) -> Reading<U> {
        match self {
            Reading::Known(value) => match f(value) {
                Ok(value) => Reading::Known(value),
                Err(why) => Reading::Unreadable(why),
            },
            Reading::Absent(why) => Reading::Absent(why),
            Reading::Unreadable(why) => Reading::Unreadable(why),
        }
    }
}

/// The root of the system's files: `/`, a folder, or a recording.
#[derive(Debug, Clone)]
pub struct Root {
    source: Source,
    /// Handles writes.
    control: Option<Arc<dyn Control>>,
    /// Stores every answer while a recording is made.
    trace: Option<Arc<Trace>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Folder(PathBuf),
    Recorded(Arc<Tree>),
}

impl PartialEq for Root {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Root {}

impl Default for Root {
    fn default() -> Self {
        Self::live()
    }
}

impl From<Source> for Root {
    fn from(source: Source) -> Self {
        let live = matches!(&source, Source::Folder(base) if base == Path::new("/"));
        Self {
            control: live.then(|| Arc::new(Kernel) as Arc<dyn Control>),
            source,
            trace: None,
        }
    }
}

impl Root {
    /// This machine.
    pub fn live() -> Self {
        Source::Folder("/".into()).into()
    }

    /// A machine's files in a folder that contains `sys/` and `proc/`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Source::Folder(folder.into()).into()
    }

    /// A recorded machine.
    pub fn recorded(tree: Tree) -> Self {
        Source::Recorded(Arc::new(tree)).into()
    }

    /// The same machine, with every answer recorded.
    pub(crate) fn traced(&self) -> (Self, Arc<Trace>) {
        let trace = Arc::new(Trace::default());
        let root = Self {
            source: self.source.clone(),
            control: self.control.clone(),
            trace: Some(Arc::clone(&trace)),
        };
        (root, trace)
    }

    /// Where a path would be on the disk, with folders that this program may make; a recording has no disk.
    pub(crate) fn on_disk(&self, path: &str) -> Option<PathBuf> {
        match &self.source {
            Source::Folder(base) => Some(base.join(path.trim_start_matches('/'))),
            Source::Recorded(_) => None,
        }
    }

    /// Whether this is the machine on which the program runs.
    pub fn is_live(&self) -> bool {
        matches!(&self.source, Source::Folder(base) if base == Path::new("/"))
    }

    /// A file's text without surrounding white space. `path` starts with `/`, as in the system. A register of a
    /// processor has a path and a text, too.
    pub fn text(&self, path: &str) -> Reading<String> {
        if let Some(register) = Register::of_path(path) {
            let device = self.open(&register.device(), false);
            let value = device.and_then(|device| register.read(&device));
            return from_io(path, value.map(register::text));
        }
        self.reading(path, || {
            let bytes = patiently(path, || self.bytes(path, LONGEST_FILE + 1))?;
            if bytes.len() as u64 > LONGEST_FILE {
                return Err(io::Error::other(
                    "it is longer than 1 MiB, and so is not an attribute",
                ));
            }
            text_of(bytes)
        })
    }

    /// The first `length` bytes of a file that may be long, cut after the last whole line.
    pub fn head(&self, path: &str, length: u64) -> Reading<String> {
        self.reading(path, || {
            let mut bytes = self.bytes(path, length)?;
            if bytes.len() as u64 == length
                && let Some(end) = bytes.iter().rposition(|&b| b == b'\n')
            {
                bytes.truncate(end);
            }
            text_of(bytes)
        })
    }

    /// The bytes of a binary file, such as a table of the firmware. A recording holds them in hexadecimal.
    pub fn hex(&self, path: &str) -> Reading<Vec<u8>> {
        let text = self.reading(path, || {
            let bytes = self.bytes(path, LONGEST_FILE)?;
            if let Source::Recorded(_) = &self.source {
                return text_of(bytes);
            }
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(digits.join(" "))
        });
        text.and_then(|text| {
            let bytes = text.split_ascii_whitespace().map(|digits| {
                u8::from_str_radix(digits, 16).map_err(|_| {
                    Unavailable::because(format!(
                        "{path} is recorded as `{}`, which is not hexadecimal",
                        shortened(digits)
                    ))
                })
            });
            bytes.collect()
        })
    }

    /// A file with one value.
    pub fn value<T: FromStr>(&self, path: &str) -> Reading<T> {
        self.text(path).and_then(|text| {
            text.parse().map_err(|_| {
                Unavailable::because(format!(
                    "{path} says `{}`, which is not what belongs there",
                    shortened(&text)
                ))
            })
        })
    }

    /// The names in a folder, sorted by number: `node2` before `node10`.
    pub fn list(&self, path: &str) -> Reading<Vec<String>> {
        let names = self.names(path).map(|mut names| {
            names.sort_by_key(|name| numbered(name));
            names
        });
        if let Some(trace) = &self.trace {
            trace.folder(path, &names);
        }
        from_io(path, names)
    }

    /// The entries of a folder that are `prefix` and a number, by number.
    pub fn numbered(&self, path: &str, prefix: &str) -> Reading<Vec<(u32, String)>> {
        self.list(path).map(|names| {
            names
                .into_iter()
                .filter_map(|name| {
                    let number = name.strip_prefix(prefix)?.parse().ok()?;
                    Some((number, name))
                })
                .collect()
        })
    }

    /// Whether the path exists.
    pub fn exists(&self, path: &str) -> bool {
        let there = match &self.source {
            Source::Folder(_) => self.resolve(path).is_ok_and(|path| path.exists()),
            Source::Recorded(tree) => tree.exists(path),
        };
        if let Some(trace) = self.trace.as_ref().filter(|_| there) {
            trace.there(path);
        }
        there
    }

    /// Whether a file, such as a device's, may be opened for reading. Nothing is read.
    pub fn opens(&self, path: &str) -> Reading<()> {
        self.reading(path, || {
            match &self.source {
                Source::Folder(_) => drop(File::open(self.resolve(path)?)?),
                Source::Recorded(tree) => drop(tree.read(path)?),
            }
            Ok(String::new())
        })
        .map(drop)
    }

    /// Opens a file to read it, and also to write it if `write` is true: a device of this machine, or its
    /// replacement in a folder.
    ///
    /// # Errors
    /// As opening does; a recording has nothing to open.
    pub fn open(&self, path: &str, write: bool) -> io::Result<File> {
        match &self.source {
            Source::Folder(_) => {
                let real = self.resolve(path)?;
                File::options().read(true).write(write).open(real)
            }
            Source::Recorded(_) => Err(io::Error::other("a recording has no devices")),
        }
    }

    /// Writes to a control file of the kernel, or a register of a processor.
    ///
    /// # Errors
    /// As writing does; a recording accepts no writes.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.control()?.write(path, text, None)
    }

    /// The same, if the file's folder is still the one with this number ([`number_of`](Self::number_of)).
    ///
    /// # Errors
    /// As [`write`](Self::write); `ESTALE` if it is another folder.
    pub(crate) fn write_in(&self, folder: Option<u64>, path: &str, text: &str) -> io::Result<()> {
        self.control()?.write(path, text, folder)
    }

    /// Makes a folder in a file system of the kernel, such as a group of threads.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn make_folder(&self, path: &str) -> io::Result<()> {
        self.control()?.make_folder(path)
    }

    /// Removes such a folder, with the kernel's files in it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn remove_folder(&self, path: &str) -> io::Result<()> {
        self.control()?.remove_folder(path)
    }

    fn control(&self) -> io::Result<&dyn Control> {
        let control = self.control.as_deref();
        control.ok_or_else(|| io::Error::other("a recorded machine accepts no writes"))
    }

    /// The same files, with a handler for writes.
    #[cfg(test)]
    pub(crate) fn obeyed_by(mut self, control: Arc<dyn Control>) -> Self {
        self.control = Some(control);
        self
    }

    /// A path with every link resolved, as a path of the system.
    pub fn target(&self, path: &str) -> Reading<PathBuf> {
        let target = match &self.source {
            Source::Folder(base) => self.resolve(path).and_then(|path| {
                let (real, base) = (path.canonicalize()?, base.canonicalize()?);
                let inside = real.strip_prefix(&base).unwrap_or(&real);
                Ok(Path::new("/").join(inside))
            }),
            Source::Recorded(tree) => tree.canonical(path).map(PathBuf::from),
        };
        if let Some(trace) = self.trace.as_ref().filter(|_| target.is_ok()) {
            trace.there(path);
        }
        from_io(path, target)
    }

    /// The inode number of a path: for a control group, its id. Another file of the same name has another
    /// number. A recording has none.
    pub(crate) fn number_of(&self, path: &str) -> Option<u64> {
        match &self.source {
            Source::Folder(_) => Some(std::fs::metadata(self.resolve(path).ok()?).ok()?.ino()),
            Source::Recorded(_) => None,
        }
    }

    /// The target of the link at a path, if it is one; links in the target are resolved.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        match &self.source {
            Source::Folder(_) => {
                let real = self.resolve(path).ok()?;
                real.is_symlink()
                    .then(|| real.canonicalize().ok()?.to_str().map(str::to_owned))?
            }
            Source::Recorded(tree) => tree.link(path),
        }
    }

    /// The kernel's answer to a question that is not a file, such as a system call: asked on a live machine,
    /// looked up in a recording. `None` if a recording does not have it.
    pub fn probe(
        &self,
        name: &str,
        ask: impl FnOnce() -> Result<String, Unavailable>,
    ) -> Option<Result<String, Unavailable>> {
        let path = format!("/weir/probe/{name}");
        if !self.is_live() {
            let text = self.text(&path).known().cloned()?;
            return match text.split_once(": ") {
                Some(("yes", found)) => Some(Ok(found.to_owned())),
                Some(("no", why)) => Some(Err(Unavailable::because(why))),
                _ => None,
            };
        }
        let answer = ask();
        if let Some(trace) = &self.trace {
            let text = match &answer {
                Ok(found) => format!("yes: {found}"),
                Err(why) => format!("no: {why}"),
            };
            trace.file(&path, &Ok(text));
        }
        Some(answer)
    }

    fn reading(&self, path: &str, read: impl FnOnce() -> io::Result<String>) -> Reading<String> {
        let text = read();
        if let Some(trace) = &self.trace {
            trace.file(path, &text);
        }
        from_io(path, text)
    }

    /// The bytes of a file, `most` at the most.
    fn bytes(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = match &self.source {
            Source::Recorded(tree) => tree.read(path)?,
            Source::Folder(_) => {
                let real = self.resolve(path)?;
                // A pipe in a foreign folder would block for ever.
                if !self.is_live() && !real.is_file() {
                    return Err(io::Error::other("it is not a file"));
                }
                let mut bytes = Vec::new();
                File::open(real)?.take(most).read_to_end(&mut bytes)?;
                bytes
            }
        };
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(bytes)
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        match &self.source {
            Source::Recorded(tree) => tree.list(path),
            Source::Folder(_) => Ok(std::fs::read_dir(self.resolve(path)?)?
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .collect()),
        }
    }

    /// A path of the disk. Follows links, and refuses to leave a folder that is not `/`: it may be foreign.
    fn resolve(&self, path: &str) -> io::Result<PathBuf> {
        let Source::Folder(base) = &self.source else {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        let inside: PathBuf = Path::new(path)
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        let path = base.join(inside);
        if self.is_live() {
            return Ok(path);
        }
        let real = path.canonicalize()?;
        if !real.starts_with(base.canonicalize()?) {
            return Err(io::Error::other("it leads out of the recorded machine"));
        }
        Ok(real)
    }
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it does not hold text"))?;
    if text.contains('\0') {
        return Err(io::Error::other("it does not hold text"));
    }
    Ok(text.trim().to_owned())
}

/// Separates absent files from unreadable ones.
fn from_io<T>(path: &str, result: io::Result<T>) -> Reading<T> {
    match result {
        Ok(value) => Reading::Known(value),
        Err(e) => match e.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {
                Reading::Absent(Unavailable::because(format!("there is no {path}")))
            }
            Some(libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP) => Reading::Absent(
                Unavailable::because(format!("{path} is there, but nothing is behind it ({e})")),
            ),
            _ => Reading::Unreadable(Unavailable::because(format!("cannot read {path}: {e}"))),
        },
    }
}

/// The start of a text, in one line, for messages.
fn shortened(text: &str) -> String {
    let line: String = text
        .chars()
        .take(40)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() > 40 {
        format!("{line}…")
    } else {
        line
    }
}

/// Orders `cpu2` before `cpu10`.
fn numbered(name: &str) -> (String, u64, String) {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let head = &name[..name.len() - digits.len()];
    let number = digits.split(|c: char| !c.is_ascii_digit()).next();
    (
        head.to_owned(),
        number.and_then(|n| n.parse().ok()).unwrap_or(0),
        name.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn absent_unreadable_and_senseless_are_three_different_things() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sys/a")).unwrap();
        fs::write(folder.path().join("sys/a/number"), "42\n").unwrap();
        fs::write(folder.path().join("sys/a/word"), "many\n").unwrap();
        fs::write(folder.path().join("sys/a/binary"), [0xff, 0xfe, 0]).unwrap();
        let root = Root::at(folder.path());

        assert_eq!(root.value::<u32>("/sys/a/number"), Reading::Known(42));
        assert!(matches!(
            root.value::<u32>("/sys/a/gone"),
            Reading::Absent(_)
        ));
        assert!(
            matches!(root.value::<u32>("/sys/a/word"), Reading::Unreadable(why) if why.reason.contains("`many`"))
        );
        assert!(matches!(root.text("/sys/a/binary"), Reading::Unreadable(_)));
        // A folder opens but does not read: EISDIR does not mean absent.
        assert!(matches!(root.text("/sys/a"), Reading::Unreadable(_)));
    }

    #[test]
    fn a_recording_cannot_point_out_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sys")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("sys/leak")).unwrap();
        let root = Root::at(folder.path());
        assert!(matches!(root.text("/sys/leak"), Reading::Unreadable(_)));
        assert!(root.text("/sys/../../etc/passwd").known().is_none());
    }

    #[test]
    fn bytes_are_the_same_in_a_folder_and_in_a_recording_of_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sys")).unwrap();
        fs::write(folder.path().join("sys/table"), [0, 0x7f, 0xff, b'\n']).unwrap();
        let read = Root::at(folder.path()).hex("/sys/table");
        assert_eq!(read, Reading::Known(vec![0, 0x7f, 0xff, b'\n']));

        let recorded = |text: &str| {
            let text = format!("weir/machine/1\n/sys/table: {text}\nend\n");
            Root::recorded(crate::recording::parse("a test", &text).unwrap()).hex("/sys/table")
        };
        assert_eq!(recorded("00 7f ff 0a"), read);
        assert!(matches!(recorded("00 7g"), Reading::Unreadable(_)));
    }

    #[test]
    fn names_are_listed_by_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["node10", "node2", "node1", "online"] {
            fs::create_dir_all(folder.path().join("sys").join(name)).unwrap();
        }
        let root = Root::at(folder.path());
        let nodes = root.numbered("/sys", "node");
        let numbers: Vec<u32> = nodes.known().unwrap().iter().map(|n| n.0).collect();
        assert_eq!(numbers, [1, 2, 10]);
    }

    #[test]
    fn an_endless_file_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("huge"), vec![b'1'; 2 << 20]).unwrap();
        let root = Root::at(folder.path());
        assert!(matches!(root.text("/huge"), Reading::Unreadable(_)));
        assert_eq!(root.head("/huge", 16).known().unwrap().len(), 16);
    }
}
