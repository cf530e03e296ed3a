//! The program that sends requests: whether it is installed, its version, and its arguments.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use weir_model::access::Op;
use weir_model::capability::Unavailable;

use super::Load;
use crate::root::Root;

/// The first release whose report counts bytes and times in nanoseconds (fio's HOWTO, 3.0).
const OLDEST: u32 = 3;
/// Ways to send requests; the first available one is used. `libaio` comes first: CXL-Interplay uses it, and
/// all its work is done on the tenant's own cores, while `io_uring` may pass it to kernel threads elsewhere.
const ENGINES: [&str; 2] = ["libaio", "io_uring"];

/// A `fio` that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fio {
    pub program: PathBuf,
    /// Its own version text: `fio-3.33`.
    version: String,
    engine: &'static str,
}

impl Fio {
    pub fn find(root: &Root, program: &Path) -> Result<Self, Unavailable> {
        if !root.exists("/proc/self/io") {
            return Err(Unavailable::because(
                "the kernel does not count the bytes of requests (no /proc/self/io; CONFIG_TASK_IO_ACCOUNTING)",
            ));
        }
        let version = ask(program, "--version")?.trim().to_owned();
        match major(&version) {
            None => {
                return Err(Unavailable::because(format!(
                    "`{} --version` says `{}`, which is not a version of fio",
                    program.display(),
                    version.lines().next().unwrap_or("")
                )));
            }
            Some(found) if found < OLDEST => {
                return Err(Unavailable::because(format!(
                    "{version} is too old; {OLDEST}.0 is needed"
                )));
            }
            Some(_) => {}
        }
        let known = ask(program, "--enghelp")?;
        let has = |engine: &&str| known.lines().any(|line| line.trim() == *engine);
        let engine = ENGINES.into_iter().find(|engine| has(engine));
        let engine = engine.ok_or_else(|| {
            let wanted = ENGINES.join(" nor ");
            Unavailable::because(format!("{version} was built with neither {wanted}"))
        })?;
        Ok(Self {
            program: program.to_owned(),
            version,
            engine,
        })
    }

    pub fn describe(&self) -> String {
        format!("{} ({}, direct)", self.version, self.engine)
    }

    /// Its arguments for one tenant: all threads in one process, each on its own core and its own part, until
    /// it is stopped.
    pub fn arguments(&self, target: &Path, load: &Load) -> Vec<OsString> {
        let threads = load.cores.len();
        let cpus: Vec<String> = load.cores.iter().map(u32::to_string).collect();
        let set = load.set.get();
        let mut target = target.display().to_string();
        // A colon would separate two files.
        target = target.replace('\\', "\\\\").replace(':', "\\:");
        let mut arguments: Vec<OsString> = [
            format!("--name={}", load.op),
            format!("--filename={target}"),
            format!("--rw={}", kind(load.op)),
            format!("--ioengine={}", self.engine),
            format!("--bs={}", load.block.get()),
            format!("--iodepth={}", load.depth),
            format!("--numjobs={threads}"),
            format!("--size={set}"),
            format!("--offset={}", load.offset),
            format!("--offset_increment={set}"),
            format!("--cpus_allowed={}", cpus.join(",")),
        ]
        .map(OsString::from)
        .into();
        arguments.extend(
            [
                "--cpus_allowed_policy=split",
                "--direct=1",
                "--thread",
                "--group_reporting",
                "--time_based",
                "--runtime=30d",
                "--norandommap",
                "--allow_file_create=0",
                "--eta=never",
                "--output-format=json+",
            ]
            .map(OsString::from),
        );
        arguments
    }
}

/// `--rw` for an operation.
fn kind(op: Op) -> &'static str {
    match op {
        Op::RandWrite => "randwrite",
        Op::SeqRead => "read",
        Op::SeqWrite => "write",
        _ => "randread",
    }
}

/// The first number of `fio-3.33` or `fio-3.36-dirty`.
pub(super) fn major(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("fio-")?;
    rest.split(['.', '-']).next()?.parse().ok()
}

fn ask(program: &Path, question: &str) -> Result<String, Unavailable> {
    let named = program.display();
    let asked = Command::new(program)
        .arg(question)
        .stdin(Stdio::null())
        .output();
    match asked {
        Ok(Output { status, stdout, .. }) if status.success() => {
            Ok(String::from_utf8_lossy(&stdout).into_owned())
        }
        Ok(Output { status, stderr, .. }) => {
            let said = String::from_utf8_lossy(&stderr);
            let line = said.lines().find(|line| !line.trim().is_empty());
            Err(Unavailable::because(format!(
                "`{named} {question}` failed ({status}): {}",
                line.unwrap_or("it said nothing")
            )))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Unavailable::because(format!("{named} is not installed")))
        }
        Err(error) => Err(Unavailable::because(format!("{named}: {error}"))),
    }
}
