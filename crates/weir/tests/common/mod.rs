//! The command as a process, with a store of its own.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod qemu;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A place to run the command in.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("runs.sqlite")
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn command(&self, arguments: impl Words) -> Command {
        self.prepare(Command::new(env!("CARGO_BIN_EXE_weir")), arguments)
    }

    /// The command behind a shell, for limits that only a shell can set.
    pub fn under_shell(&self, before: &str, arguments: impl Words) -> Command {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\"")]);
        shell.arg(env!("CARGO_BIN_EXE_weir"));
        self.prepare(shell, arguments)
    }

    fn prepare(&self, mut command: Command, arguments: impl Words) -> Command {
        command
            .args(arguments.words())
            .current_dir(self.folder.path())
            .env("WEIR_STORE", self.store())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: impl Words) -> Done {
        Done(self.command(arguments).output().unwrap())
    }

    pub fn start(&self, arguments: impl Words) -> Child {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until the newest run has kept at least this many figures.
    pub fn wait_for_figures(&self, least: u64) {
        let patience = Instant::now() + Duration::from_secs(60);
        while Instant::now() < patience {
            let done = self.run("runs list --format json");
            if done.code() == 0 && done.json()["runs"][0]["kept"].as_u64() >= Some(least) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no figures came");
    }
}

pub struct Done(pub Output);

impl Done {
    pub fn code(&self) -> i32 {
        self.0.status.code().expect("ended by a signal")
    }

    pub fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.0.stdout)
            .unwrap_or_else(|e| panic!("{e}\n{}\n{}", self.out(), self.err()))
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "\n{}\n{}", self.out(), self.err());
        self
    }

    /// Fails with this code, prints no result, and says each of these.
    #[track_caller]
    pub fn refuses(self, code: i32, words: &[&str]) {
        let done = self.expect(code);
        assert_eq!(done.out(), "");
        for word in words {
            assert!(
                done.err().contains(word),
                "`{word}` is not in:\n{}",
                done.err()
            );
        }
    }
}

pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Whether a program of this host is there; says that a test without it is skipped.
pub fn is_installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// A command line: its words in one text, or one by one where a word has a space in it.
pub trait Words {
    fn words(&self) -> Vec<String>;
}

impl Words for str {
    fn words(&self) -> Vec<String> {
        self.split_whitespace().map(str::to_owned).collect()
    }
}

impl<S: AsRef<str>> Words for [S] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<str>, const N: usize> Words for [S; N] {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl Words for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl<S: AsRef<str>> Words for Vec<S> {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl<W: Words + ?Sized> Words for &W {
    fn words(&self) -> Vec<String> {
        (**self).words()
    }
}

/// One simulated figure of each of a few kinds: what most tests need.
pub const SMALL: &str = "bench bandwidth --on emr2s+cxl-a --op ld,nt_st --threads 1,2";

/// A sweep that does not end before it is stopped.
pub const LONG: &str = "bench bandwidth --on emr2s+2xcxl-a --threads 1..32";

pub fn with(base: impl Words, more: impl Words) -> Vec<String> {
    [base.words(), more.words()].concat()
}
