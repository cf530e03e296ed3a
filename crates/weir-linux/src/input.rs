//! Files, pipes and terminals that are read until a stop is requested: a read of a silent pipe would outlast it, since
//! the system continues a read after a signal.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Milliseconds between two looks at the request to stop.
const LOOK: i32 = 100;

/// Something that is read. After a request to stop ([`weir_model::stop`]) a read that would wait is an error.
#[derive(Debug)]
pub struct Input {
    file: File,
    gives_up: bool,
}

impl Input {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// It is not there, or may not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            let input = io::stdin().as_fd().try_clone_to_owned()?;
            return Ok(Self::of(input.into()));
        }
        // Otherwise a named pipe is opened when it has a writer, and not before.
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        Ok(Self::of(file))
    }

    fn of(file: File) -> Self {
        Self {
            file,
            gives_up: false,
        }
    }

    /// The same for long files: after the request nothing is read, whether it would wait or not.
    #[must_use]
    pub fn giving_up(self) -> Self {
        Self {
            gives_up: true,
            ..self
        }
    }

    /// What is read.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Waits until there is something to read, or the end.
    fn wait(&self) -> io::Result<()> {
        let mut wait = libc::pollfd {
            fd: self.file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        loop {
            // SAFETY: the kernel reads and writes the one entry; its descriptor is open as long as `self`.
            match unsafe { libc::poll(&raw mut wait, 1, LOOK) } {
                1 => return Ok(()),
                -1 => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
                _ => {}
            }
            Self::go_on()?;
        }
    }

    fn go_on() -> io::Result<()> {
        match weir_model::stop::requested() {
            true => Err(io::Error::other("a stop was requested")),
            false => Ok(()),
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.gives_up {
                Self::go_on()?;
            }
            self.wait()?;
            match self.file.read(buffer) {
                // Another reader of the pipe was faster.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_pipe_is_read_from_its_first_writer_to_its_last() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let input = Input::open(&pipe).unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(250));
            std::fs::write(&pipe, "written").unwrap();
        });
        assert_eq!(io::read_to_string(input).unwrap(), "written");
        writer.join().unwrap();
    }
}
