//! Telling a kernel what to do, by its files.

use std::fs::File;
use std::io::{self, Write};

/// Changes to the system's files by which the kernel is told what to do. This machine's kernel
/// obeys; a folder of files has none, unless a test brings a stand-in.
pub(crate) trait Control: std::fmt::Debug + std::panic::RefUnwindSafe + Send + Sync {
    /// Writes to a file that is there, at once.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;

    /// Makes a folder, which the kernel furnishes.
    fn make_folder(&self, path: &str) -> io::Result<()>;

    /// Removes a folder that the kernel furnished.
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
