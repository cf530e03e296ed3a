//! Where the bytes of a trace come from: a file, what a decompressor makes of it, standard input, or a tracer.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use weir_linux::input::Input;
use weir_linux::piped::Piped;
use weir_linux::tracer::Tracer;
use weir_model::stop;
use weir_trace::decode::packed;

use crate::failure::{Failure, Result};

/// The bytes of a trace.
pub struct Source {
    from: From,
    /// Bytes of the file, compressed where it is; 0 where that is unknown.
    length: u64,
    /// The file as it is read, also by a decompressor, which shares its place.
    file: Option<File>,
    gives_up: bool,
}

enum From {
    Plain(Input),
    Program(Box<Piped>, &'static str),
    /// And whether it was asked to end.
    Tracer(Box<Piped>, Tracer, Arc<AtomicBool>),
}

/// What installs a decompressor.
fn package(tool: &str) -> &str {
    match tool {
        "xz" => "xz-utils",
        tool => tool,
    }
}

/// Why what was unpacked, or comes through standard input, cannot be read where it begins as what `tool` unpacks.
pub fn packed_again(tool: &str) -> String {
    format!(
        "what is read begins like a file of {tool}: it was compressed twice, or comes through standard input, where `{tool} -dc` must \
         unpack it first"
    )
}

impl Source {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// It cannot be read, or what unpacks it is not installed.
    pub fn open(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            let input = Input::open(path).map_err(anyhow::Error::new)?;
            return Ok(Self {
                from: From::Plain(input),
                length: 0,
                file: None,
                gives_up: false,
            });
        }
        let name = path.display();
        let opened = || -> io::Result<(Input, File, Vec<u8>)> {
            let input = Input::open(path)?;
            let mut file = input.file().try_clone()?;
            let mut head = Vec::new();
            if file.metadata()?.is_file() {
                (&mut file).take(16).read_to_end(&mut head)?;
                file.rewind()?;
            }
            Ok((input, file, head))
        };
        let (input, file, head) = opened()
            .with_context(|| format!("cannot read the trace {name}"))
            .map_err(Failure::Request)?;
        let data = file.metadata().map_err(anyhow::Error::new)?;
        if data.is_dir() {
            return Err(Failure::request(format!(
                "{name} is a folder; name a trace in it"
            )));
        }
        let length = data.len();
        let Some(tool) = packed(&head) else {
            return Ok(Self {
                from: From::Plain(input),
                length,
                file: Some(file),
                gives_up: false,
            });
        };
        let mut command = Command::new(tool);
        if tool == "unzip" {
            command.arg("-p").arg(path).stdin(Stdio::null());
        } else {
            let same = file.try_clone().map_err(anyhow::Error::new)?;
            command.arg("-dc").stdin(same);
        }
        let piped = Piped::by_output(command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::Missing(anyhow::anyhow!(
                "{name} is compressed, and `{tool}`, which unpacks it, is not installed: apt-get install {}",
                package(tool)
            )),
            _ => Failure::Work(anyhow::Error::new(error).context(format!("cannot run `{tool}`"))),
        })?;
        Ok(Self {
            from: From::Program(Box::new(piped), tool),
            length,
            file: (tool != "unzip").then_some(file),
            gives_up: false,
        })
    }

    /// The same that ends after a request to stop, also where there is more to read at once.
    #[must_use]
    pub fn giving_up(self) -> Self {
        Self {
            gives_up: true,
            ..self
        }
    }

    /// The records that a tracer writes, and whether it was asked to end.
    pub fn of_tracer(tracer: Piped, with: Tracer, asked: Arc<AtomicBool>) -> Self {
        Self {
            from: From::Tracer(Box::new(tracer), with, asked),
            length: 0,
            file: None,
            gives_up: false,
        }
    }

    /// The part of the file that was read; of a tracer and of standard input it is not known.
    pub fn share(&mut self) -> Option<f64> {
        let file = self.file.as_mut().filter(|_| self.length > 0)?;
        let place = file.stream_position().ok()?;
        Some((place as f64 / self.length as f64).min(1.0))
    }

    /// Leaves out bytes; whether there are more.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        if let From::Plain(input) = &self.from
            && self.length > 0
        {
            let mut file = input.file();
            let place = file.stream_position()?;
            let to = file.seek(SeekFrom::Start(place.saturating_add(bytes)))?;
            return Ok(to < self.length);
        }
        let skipped = io::copy(&mut self.by_ref().take(bytes), &mut io::sink())?;
        Ok(skipped == bytes)
    }

    /// What is to say of the end, after all was read: a decompressor or a command that failed; and how a command ended that
    /// failed without being asked to end.
    ///
    /// # Errors
    /// A program cannot be waited for.
    pub fn end(self) -> Result<(Option<String>, Option<ExitStatus>)> {
        let (mut piped, tool) = match self.from {
            From::Program(piped, tool) => (piped, tool),
            // Both tracers end as the command does.
            From::Tracer(mut piped, with, asked) => {
                let asked = asked.load(Ordering::Relaxed);
                let Some((how, status)) = piped.failure(asked) else {
                    return Ok((None, None));
                };
                // A signal leaves the plugin no time to write what it has in its buffers.
                let lacks = match with == Tracer::Qemu && how.starts_with("signal") {
                    true => ", without up to 8192 of the last accesses and blocks of each thread",
                    false => "",
                };
                let said = format!(
                    "the command ended with {how}: the description is of what it did until then{lacks}"
                );
                return Ok((Some(said), (!asked).then_some(status)));
            }
            From::Plain(_) => return Ok((None, None)),
        };
        let (status, said) = piped.wait().map_err(anyhow::Error::new)?;
        let said = said.lines().next().unwrap_or("it gave no reason");
        let said = (!status.success()).then(|| {
            format!("the compressed trace was cut off or is damaged, its end is left out: {tool}: {said}")
        });
        Ok((said, None))
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.gives_up && stop::requested() {
            return Ok(0);
        }
        match &mut self.from {
            // What came before a stop is worth describing.
            From::Plain(input) => match input.read(buffer) {
                Err(_) if stop::requested() => Ok(0),
                read => read,
            },
            From::Program(piped, _) | From::Tracer(piped, ..) => piped.read(buffer),
        }
    }
}
