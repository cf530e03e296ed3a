//! Writes to the kernel's control files.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::register::Register;

/// The files of DAMON.
pub(crate) const DAMON: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// Changes to the system's files that control the kernel. This machine's kernel accepts them; a folder of
/// files accepts none, unless a test supplies a replacement.
pub(crate) trait Control: std::fmt::Debug + std::panic::RefUnwindSafe + Send + Sync {
    /// Writes to an existing file, in one call, or to a register. With `folder`, only if this is the inode number of the file's
    /// folder: another folder of the same name is left alone (`ESTALE`).
    fn write(&self, path: &str, text: &str, folder: Option<u64>) -> io::Result<()>;

    /// Makes a folder; the kernel fills it with files.
    fn make_folder(&self, path: &str) -> io::Result<()>;

    /// Removes a folder that the kernel filled.
    fn remove_folder(&self, path: &str) -> io::Result<()>;
}

/// The kernel of this machine.
#[derive(Debug)]
pub(crate) struct Kernel;

impl Control for Kernel {
    fn write(&self, path: &str, text: &str, folder: Option<u64>) -> io::Result<()> {
        let open = |path: &str| File::options().write(true).open(path);
        if let Some(register) = Register::of_path(path) {
            return register.write(&open(&register.device())?, text);
        }
        let mut file = match (folder, path.rsplit_once('/')) {
            (Some(number), Some((folder, name))) => {
                let folder = File::open(folder)?;
                if folder.metadata()?.ino() != number {
                    return Err(io::Error::from_raw_os_error(libc::ESTALE));
                }
                // By the open folder: its path may belong to another one by now.
                open(&format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?
            }
            _ => open(path)?,
        };
        patiently(path, || file.write_all(text.as_bytes()))
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        std::fs::remove_dir(path)
    }
}

/// Calls again where DAMON's files are busy: a call to any of them fails while the kernel serves another, which takes moments.
pub(crate) fn patiently<T>(path: &str, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let is_damon = path.starts_with(DAMON);
    for _ in 0..if is_damon { 20 } else { 0 } {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
    call()
}

/// Files in a folder that contain what was written to them, for tests.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Files(pub std::path::PathBuf);

#[cfg(test)]
impl Files {
    fn real(&self, path: &str) -> std::path::PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

#[cfg(test)]
impl Control for Files {
    fn write(&self, path: &str, text: &str, _: Option<u64>) -> io::Result<()> {
        match Register::of_path(path) {
            Some(register) => {
                let device = self.real(&register.device());
                register.write(&File::options().write(true).open(device)?, text)
            }
            None => std::fs::write(self.real(path), format!("{}\n", text.trim())),
        }
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        std::fs::create_dir(self.real(path))
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        std::fs::remove_dir_all(self.real(path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_damons_files_are_waited_for_while_they_are_busy() {
        for (path, calls) in [
            (format!("{DAMON}/0/state"), 3),
            ("/sys/fs/cgroup/a".into(), 1),
        ] {
            let mut called = 0;
            let done = patiently(&path, || {
                called += 1;
                match called {
                    3 => Ok(()),
                    _ => Err(io::Error::from_raw_os_error(libc::EBUSY)),
                }
            });
            assert_eq!((called, done.is_ok()), (calls, calls == 3), "{path}");
        }
    }

    #[test]
    fn a_folder_that_was_made_again_is_not_written_to() {
        let place = tempfile::tempdir().unwrap();
        let group = place.path().join("group");
        let file = group.join("cpu.max");
        fs::create_dir(&group).unwrap();
        fs::write(&file, "max\n").unwrap();
        let number = fs::metadata(&group).unwrap().ino();
        let write = |text: &str| Kernel.write(file.to_str().unwrap(), text, Some(number));
        write("1000\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "1000\n");

        // The old one stays, so that its number is not used again.
        fs::rename(&group, place.path().join("old")).unwrap();
        fs::create_dir(&group).unwrap();
        fs::write(&file, "max\n").unwrap();
        let error = write("1000\n").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESTALE));
        assert_eq!(fs::read_to_string(&file).unwrap(), "max\n");
    }
}
