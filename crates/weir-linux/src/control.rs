//! Writes to the kernel's control files.

use std::fs::File;
use std::io::{self, Write};

/// Changes to the system's files that control the kernel. This machine's kernel accepts them; a folder of
/// files accepts none, unless a test supplies a replacement.
pub(crate) trait Control: std::fmt::Debug + std::panic::RefUnwindSafe + Send + Sync {
    /// Writes to an existing file, in one call.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;

    /// Makes a folder; the kernel fills it with files.
    fn make_folder(&self, path: &str) -> io::Result<()>;

    /// Removes a folder that the kernel filled.
    fn remove_folder(&self, path: &str) -> io::Result<()>;
}

/// The kernel of this machine.
#[derive(Debug)]
pub(crate) struct Kernel;

impl Control for Kernel {
    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        File::options()
            .write(true)
            .open(path)?
            .write_all(text.as_bytes())
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        std::fs::remove_dir(path)
    }
}
