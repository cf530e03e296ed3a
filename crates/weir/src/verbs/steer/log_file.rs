//! The decision log on disk: bounded, rotated when it is full, and never a delay for steering.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use weir_steer::config::LogConfig;

/// Lines that wait for a slow disk; further lines are lost, and counted.
const WAITING: usize = 256;

/// A log that is written by a thread of its own.
pub struct LogFile {
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
    lost: u64,
}

impl LogFile {
    /// Opens the log. `trouble` is called with later errors, from another thread.
    ///
    /// # Errors
    /// The file cannot be opened, or no thread can be started.
    pub fn open(
        config: &LogConfig,
        trouble: impl FnMut(String) + Send + 'static,
    ) -> io::Result<Self> {
        let file = Rotated::open(config.clone())?;
        let (lines, waiting) = sync_channel(WAITING);
        let writer = thread::Builder::new()
            .name("weir-log".into())
            .spawn(move || write_all(file, &waiting, trouble))?;
        Ok(Self {
            lines: Some(lines),
            writer: Some(writer),
            lost: 0,
        })
    }

    /// Adds a line, without waiting. Returns how many lines were lost so far if this one is lost.
    pub fn add(&mut self, line: String) -> Option<u64> {
        let sent = self.lines.as_ref().map(|lines| lines.try_send(line));
        match sent {
            Some(Ok(())) => None,
            Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) | None => {
                self.lost += 1;
                Some(self.lost)
            }
        }
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            // A writer that panicked writes nothing more.
            let _ = writer.join();
        }
    }
}

fn write_all(mut file: Rotated, lines: &Receiver<String>, mut trouble: impl FnMut(String)) {
    while let Ok(line) = lines.recv() {
        if let Err(error) = file.write(&line) {
            let path = file.config.path.display();
            trouble(format!("the decision log {path} is not written: {error}"));
        }
    }
}

/// A file that is rotated when it has its full size.
struct Rotated {
    config: LogConfig,
    file: Option<File>,
    size: u64,
}

impl Rotated {
    fn open(config: LogConfig) -> io::Result<Self> {
        let mut log = Self {
            config,
            file: None,
            size: 0,
        };
        log.reopen()?;
        Ok(log)
    }

    fn reopen(&mut self) -> io::Result<()> {
        let path = &self.config.path;
        // Opening one would wait for its reader, and steering for that.
        if fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
            return Err(io::Error::other("it is a pipe"));
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        if self.size > 0 && self.size + line.len() as u64 > self.config.most.get() {
            self.put_aside()?;
        }
        if self.file.is_none() {
            self.reopen()?;
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        // One write per line, so that a full disk tears at most one line.
        let written = file.write_all(line.as_bytes());
        match written {
            Ok(()) => self.size += line.len() as u64,
            // Another file may be there when the disk has free space again.
            Err(_) => self.file = None,
        }
        written
    }

    fn put_aside(&mut self) -> io::Result<()> {
        self.file = None;
        let path = self.config.path.clone();
        let keep = self.config.keep;
        for n in (1..keep).rev() {
            rename_if_there(&aside(&path, n), &aside(&path, n + 1))?;
        }
        match keep {
            0 => fs::remove_file(&path)?,
            _ => rename_if_there(&path, &aside(&path, 1))?,
        }
        self.reopen()
    }
}

/// `steer.jsonl.2`.
fn aside(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    PathBuf::from(name)
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::units::Bytes;

    use super::*;

    proptest! {
        #[test]
        fn the_files_together_are_bounded_and_end_with_what_came_last(
            lines in prop::collection::vec("[a-z]{1,40}", 1..80), keep in 0u32..4
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("steer.jsonl");
            let most = 128;
            let config = LogConfig { path: path.clone(), most: Bytes(most), keep };
            let mut log = Rotated::open(config).unwrap();
            for line in &lines {
                log.write(&format!("{line}\n")).unwrap();
            }
            let files: Vec<u64> = fs::read_dir(folder.path()).unwrap()
                .map(|entry| entry.unwrap().metadata().unwrap().len())
                .collect();
            prop_assert!(files.len() as u32 <= keep + 1);
            prop_assert!(files.iter().all(|&size| size <= most));
            let text = fs::read_to_string(&path).unwrap();
            prop_assert_eq!(text.lines().last(), lines.last().map(String::as_str));
        }
    }

    #[test]
    fn a_pipe_is_no_log_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let opened = LogFile::open(&LogConfig::at(pipe), |_| {}).map(drop);
        assert_eq!(opened.unwrap_err().to_string(), "it is a pipe");
    }

    #[test]
    fn a_full_disk_is_reported_and_the_writer_goes_on() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return;
        }
        let (message, hears) = std::sync::mpsc::channel();
        let config = LogConfig::at(full.to_owned());
        let mut log = LogFile::open(&config, move |trouble| {
            let _ = message.send(trouble);
        })
        .unwrap();
        assert_eq!(log.add("one\n".into()), None);
        assert_eq!(log.add("two\n".into()), None);
        drop(log);
        let troubles: Vec<String> = hears.iter().collect();
        assert_eq!(troubles.len(), 2, "{troubles:?}");
        assert!(troubles[0].contains("/dev/full"), "{troubles:?}");
    }
}
