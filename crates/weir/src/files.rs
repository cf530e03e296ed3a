//! Files that the command reads and writes: none is read without an end, and none is left half written.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use weir_linux::input::Input;

use crate::failure::{Failure, Result};

/// The text of a file, or of standard input for `-`. `what` names its kind in messages: `platform file`.
///
/// A file, pipe or device that gives more than `most` bytes is not read further.
///
/// # Errors
/// It cannot be read, is a folder, has more bytes, or is not text.
pub fn text(path: &Path, what: &str, most: usize) -> Result<String> {
    let name = path.display();
    let read = || -> io::Result<Option<Vec<u8>>> {
        let from = Input::open(path)?;
        if from.file().metadata()?.is_dir() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        from.take(most as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    };
    let bytes = read()
        .with_context(|| format!("cannot read the {what} {name}"))
        .map_err(Failure::reading)?;
    let bytes = bytes.ok_or_else(|| {
        let article = if what.starts_with(['a', 'e', 'i', 'o']) {
            "an"
        } else {
            "a"
        };
        Failure::request(format!("{name} is a folder; name {article} {what} in it"))
    })?;
    if bytes.len() > most {
        return Err(Failure::request(format!(
            "{name} is longer than {most} bytes, the most for a {what}"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&b| b == b'\n').count() + 1;
        let column = valid.rsplit(|&b| b == b'\n').next().map_or(0, <[u8]>::len) + 1;
        Failure::request(format!(
            "{name}:{line}:{column}: not text in UTF-8, and so no {what}"
        ))
    })
}

/// A byte of the text of a file, as file and line.
pub fn line_of(path: &Path, text: &str, at: usize) -> String {
    let before = text.as_bytes().iter().take(at);
    let line = before.filter(|&&byte| byte == b'\n').count() + 1;
    format!("{}:{line}", path.display())
}

/// The most bytes of a line in a file of any length.
const LONGEST_LINE: usize = 1 << 24;

/// A source of lines: one that does not end is an error before it fills the memory, as of `/dev/zero` or a disk.
#[derive(Debug)]
pub struct OfLines<R> {
    from: R,
    /// Bytes since the last end of a line.
    since: usize,
}

impl<R: Read> OfLines<R> {
    /// Of a source that was just opened.
    pub const fn new(from: R) -> Self {
        Self { from, since: 0 }
    }
}

impl<R: Read> Read for OfLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.since = match buffer[..read].iter().rposition(|&byte| byte == b'\n') {
            Some(end) => read - end - 1,
            None => self.since + read,
        };
        match self.since > LONGEST_LINE {
            true => Err(io::Error::other("a line is longer than 16 MiB")),
            false => Ok(read),
        }
    }
}

/// Writes a file whole or not at all: a new file next to it takes its name. A device or a pipe is written as it is.
///
/// # Errors
/// The file cannot be written; what it had before stays.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let write = || -> io::Result<()> {
        let Some(target) = replaced(path) else {
            return fs::write(path, &bytes);
        };
        let new = Beside::new(&target)?;
        (&new.file).write_all(bytes.as_ref())?;
        new.replace(&target)
    };
    write().map_err(|error| cannot_write(path, error))
}

/// A file that is written bit by bit, and takes its name at the end.
pub struct New {
    new: Beside,
    target: PathBuf,
}

impl New {
    /// Begins one.
    ///
    /// # Errors
    /// It cannot be written, or is a device or a pipe.
    pub fn begin(path: &Path) -> Result<Self> {
        let target = replaced(path).ok_or_else(|| {
            Failure::request(format!("{} must be a regular file", path.display()))
        })?;
        let new = Beside::new(&target).map_err(|error| cannot_write(path, error))?;
        Ok(Self { new, target })
    }

    /// What is written.
    pub fn file(&self) -> &File {
        &self.new.file
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// It cannot be written; what the file had before stays.
    pub fn keep(self) -> Result<()> {
        let kept = self.new.replace(&self.target);
        kept.with_context(|| format!("cannot write {}", self.target.display()))
            .map_err(Failure::Work)
    }
}

/// Checks before long work that [`write()`] can write a file.
///
/// # Errors
/// It cannot.
pub fn check(path: &Path) -> Result<()> {
    let try_it = || match replaced(path) {
        Some(target) => Beside::new(&target).map(drop),
        None => File::options().write(true).open(path).map(drop),
    };
    try_it().map_err(|error| cannot_write(path, error))
}

/// A folder that is not there was named wrongly; all else is not the request's fault.
fn cannot_write(path: &Path, error: io::Error) -> Failure {
    let kind = error.kind();
    let error = anyhow::Error::new(error).context(format!("cannot write {}", path.display()));
    match kind {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidInput => Failure::Request(error),
        _ => Failure::Work(error),
    }
}

/// The regular file that a path stands for, through links, whether it is there or not; `None` for a device, a pipe or
/// a folder.
fn replaced(path: &Path) -> Option<PathBuf> {
    match fs::metadata(path) {
        Ok(file) if file.is_file() => Some(fs::canonicalize(path).unwrap_or_else(|_| path.into())),
        Ok(_) => None,
        Err(_) => Some(path.into()),
    }
}

/// Whether a file begins as those of SQLite do: what is written never replaces all runs.
fn is_database(path: &Path) -> bool {
    const HEAD: &[u8; 16] = b"SQLite format 3\0";
    let mut head = [0; HEAD.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok() && head == *HEAD)
}

/// A new file next to another one; removed unless it was renamed.
struct Beside {
    file: File,
    path: PathBuf,
}

impl Beside {
    fn new(target: &Path) -> io::Result<Self> {
        // What may not be written may not be replaced either.
        if target.exists() {
            File::options().write(true).open(target)?;
            if is_database(target) {
                let why = "it is a database, such as a store of runs; name another file";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        }
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let path = PathBuf::from(name);
        let file = File::create(&path)?;
        if let Ok(old) = fs::metadata(target) {
            file.set_permissions(old.permissions())?;
        }
        Ok(Self { file, path })
    }

    fn replace(&self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, target)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read_to_it() {
        let error = text(Path::new("/dev/zero"), "sweep file", 1 << 20).unwrap_err();
        let message = error.message().unwrap_or_default();
        assert!(message.contains("/dev/zero is longer than"), "{message}");
    }

    #[test]
    fn a_file_is_replaced_whole_through_a_link_and_nothing_is_left_next_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (page, link) = (folder.path().join("page"), folder.path().join("link"));
        write(&page, "old").unwrap();
        std::os::unix::fs::symlink(&page, &link).unwrap();
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
        let before = inode(&page);
        check(&link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&page).unwrap(), "new");
        assert_ne!(inode(&page), before);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        write(Path::new("/dev/null"), "nothing").unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_reported_before() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(&folder.path().join("no/page")).is_err());
        assert!(check(folder.path()).is_err());
    }
}
