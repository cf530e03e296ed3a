//! Tracers: programs under which a command runs and tells of each access to its memory.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::piped::RECORDS;

pub mod persist;
mod source_lines;

pub use source_lines::SourceLines;

weir_model::named! {
    /// A tracer.
    pub enum Tracer {
        /// QEMU's user mode with a plugin of Weir's, which `cc` compiles.
        Qemu = "qemu",
        /// `valgrind --tool=lackey`.
        Lackey = "lackey",
    }
}

/// The plugin, in C, since QEMU loads it.
const PLUGIN: &str = include_str!("plugin.c");

/// The emulator of this machine's own instructions.
fn emulator() -> String {
    format!("qemu-{}", std::env::consts::ARCH)
}

/// A folder for what a tracer needs; it goes with this value.
///
/// # Errors
/// None can be made.
pub fn folder() -> io::Result<TempDir> {
    tempfile::tempdir()
}

/// Whether a program is there and answers.
fn answers(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    let command = command.arg(argument).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok()
}

/// The file of a program, by its path or its name.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The words of a command with the interpreter of a script before it (`#!`), as the kernel has it. In place of `env` there is
/// the program that it would become.
fn interpreted(words: &[String]) -> Vec<String> {
    // The kernel looks at as many scripts.
    const DEEPEST: usize = 5;
    let mut words = words.to_vec();
    for _ in 0..DEEPEST {
        let Some(program) = words.first().and_then(|name| find(name)) else {
            break;
        };
        words[0] = program.display().to_string();
        let mut begin = Vec::new();
        let read = fs::File::open(&program).and_then(|file| file.take(256).read_to_end(&mut begin));
        let text = String::from_utf8_lossy(&begin);
        let Some(line) = text.strip_prefix("#!").filter(|_| read.is_ok()) else {
            break;
        };
        let line = line.lines().next().unwrap_or_default().trim();
        let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let argument = argument.trim();
        let is_env = interpreter.ends_with("/env") && !argument.starts_with('-');
        let before = match argument {
            "" => vec![interpreter],
            name if is_env && !name.contains([' ', '\t', '=']) => vec![name],
            argument => vec![interpreter, argument],
        };
        words = before.into_iter().map(String::from).chain(words).collect();
    }
    words
}

impl Tracer {
    /// The first that can run here; why none can.
    ///
    /// # Errors
    /// What installs each of them.
    pub fn first(children: bool) -> Result<Self, String> {
        // The plugin follows one process.
        let all = match children {
            true => &[Self::Lackey][..],
            false => &Self::ALL[..],
        };
        let missing = all.iter().map(|tracer| tracer.missing());
        let missing: Vec<Option<String>> = missing.collect();
        match missing.iter().position(Option::is_none) {
            Some(at) => Ok(all[at]),
            None => Err(missing
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; or ")),
        }
    }

    /// How much slower a command becomes, in time of a processor: from, to. Lackey writes each access as a line with a system
    /// call of its own (`sort` 1700 and 2700 times, `sqlite3` 3000 times, with valgrind 3.19.0).
    pub const fn slower(self) -> (f64, f64) {
        match self {
            Self::Qemu => (30.0, 300.0),
            Self::Lackey => (1000.0, 3000.0),
        }
    }

    /// What a person calls it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Qemu => "QEMU with a plugin",
            Self::Lackey => "valgrind's lackey",
        }
    }

    /// The program that a process became, by its file, if it is no longer the tracer's.
    pub fn left_for(self, process: u32) -> Option<PathBuf> {
        let file = fs::read_link(format!("/proc/{process}/exe")).ok()?;
        let name = file.file_name()?.to_str()?;
        let is_own = match self {
            Self::Qemu => name.starts_with("qemu-"),
            Self::Lackey => name.starts_with("valgrind") || name.starts_with("lackey-"),
        };
        (!is_own).then_some(file)
    }

    /// Why it cannot run here, with what installs it; `None` where it can.
    pub fn missing(self) -> Option<String> {
        match self {
            Self::Lackey if answers("valgrind", "--version") => None,
            Self::Lackey => Some(
                "valgrind, which sees the accesses of a command, is not installed: apt-get install valgrind"
                    .into(),
            ),
            Self::Qemu => {
                let emulator = emulator();
                if !answers(&emulator, "--version") {
                    return Some(format!(
                        "{emulator}, which sees the accesses of a command, is not installed: apt-get install qemu-user"
                    ));
                }
                (!answers("cc", "--version")).then(|| {
                    "a C compiler, which makes the plugin of QEMU, is not installed: apt-get install gcc".into()
                })
            }
        }
    }

    /// Whether a program is a script.
    ///
    /// # Errors
    /// Why the tracer cannot start it.
    pub fn is_script(self, name: &str) -> Result<bool, String> {
        const PROGRAM: [u8; 4] = *b"\x7fELF";
        let words = interpreted(&[name.to_owned()]);
        let is_script = words.len() > 1;
        let missing = || match is_script {
            true => format!("there is no `{}`, which is to run it", words[0]),
            false => "there is no such program".into(),
        };
        let file = find(&words[0]).ok_or_else(missing)?;
        let data = fs::metadata(&file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(),
            _ => error.to_string(),
        })?;
        if data.is_dir() {
            return Err("it is a folder".into());
        }
        if data.permissions().mode() & 0o111 == 0 {
            return Err("it is not executable".into());
        }
        let mut begin = Vec::new();
        fs::File::open(&file)
            .and_then(|file| file.take(4).read_to_end(&mut begin))
            .map_err(|error| error.to_string())?;
        // Where valgrind finds neither, it takes a shell.
        if self == Self::Qemu && begin != PROGRAM {
            return Err(format!(
                "it is neither a program of this machine nor a script with `#!`; of commands of a shell, record `sh {name}`"
            ));
        }
        Ok(is_script)
    }

    /// The command under the tracer, which writes to the descriptor [`RECORDS`]. What is in the folder must stay while it runs.
    /// The command loads the library `preload` before its own.
    ///
    /// # Errors
    /// The plugin cannot be compiled.
    pub fn command(
        self,
        words: &[String],
        children: bool,
        folder: &TempDir,
        preload: Option<&Path>,
    ) -> io::Result<Command> {
        let mut command = match self {
            Self::Qemu => {
                let mut command = Command::new(emulator());
                command.args(["-cpu", "max", "-plugin"]);
                command.arg(plugin(folder.path(), &[("plugin.c", PLUGIN)])?);
                if let Some(library) = preload {
                    // For the program, and not for the emulator.
                    let variable = format!("LD_PRELOAD={}", library.display());
                    command.args(["-E", &variable]);
                }
                // QEMU runs no scripts.
                command.args(interpreted(words));
                return Ok(command);
            }
            Self::Lackey => Command::new("valgrind"),
        };
        command
            .args([
                "--tool=lackey",
                "--trace-mem=yes",
                "--basic-counts=no",
                "-q",
            ])
            .arg(format!("--log-fd={RECORDS}"))
            .arg(match children {
                true => "--trace-children=yes",
                false => "--child-silent-after-fork=yes",
            });
        if let Some(library) = preload {
            command.env("LD_PRELOAD", library);
        }
        command.arg("--").args(words);
        Ok(command)
    }
}

/// Compiles a plugin into a folder: its files, of which the first has the others included.
fn plugin(folder: &Path, files: &[(&str, &str)]) -> io::Result<PathBuf> {
    let library = folder.join("weir-plugin.so");
    for (name, text) in files {
        std::fs::write(folder.join(name), text)?;
    }
    let done = Command::new("cc")
        .args(["-O2", "-w", "-shared", "-fPIC", "-pthread", "-o"])
        .arg(&library)
        .args(files.first().map(|(name, _)| folder.join(name)))
        .stdin(Stdio::null())
        .output()?;
    match done.status.success() {
        true => Ok(library),
        false => {
            let said = String::from_utf8_lossy(&done.stderr);
            let first = said.lines().next().unwrap_or("no reason");
            Err(io::Error::other(format!(
                "`cc` cannot compile the plugin of QEMU: {first}"
            )))
        }
    }
}
