//! The QEMU Machine Protocol: a line of JSON for each command, answer and event (QEMU, docs/interop/qmp-spec.rst).

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Identity;
use super::process::listener;

/// The longest line: a QEMU with many devices answers with some 100 KB.
const LONGEST: usize = 16 << 20;
/// Events that are kept until they are asked for.
const MOST_EVENTS: usize = 1024;

/// Why a QEMU did not do something. Each names its socket.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// No process listens, or this user may not connect.
    #[error(
        "cannot connect to {socket}: {cause}; name the socket of a running QEMU, started with \
         -qmp unix:{socket},server=on,wait=off"
    )]
    Connect {
        /// The socket.
        socket: String,
        /// What the system says.
        cause: io::Error,
    },
    /// Another program listens.
    #[error("{socket} is not a QMP socket of QEMU: it sent `{said}`")]
    NotQmp {
        /// The socket.
        socket: String,
        /// What it sent, shortened.
        said: String,
    },
    /// It says nothing.
    #[error(
        "{socket} has not answered {waiting_for} within {seconds} s; QEMU serves one client at a time, so another one \
         may be connected"
    )]
    Silent {
        /// The socket.
        socket: String,
        /// What should have come.
        waiting_for: String,
        /// For how long.
        seconds: f64,
    },
    /// It ended meanwhile.
    #[error("the VM at {socket} ended before it answered {waiting_for}")]
    Gone {
        /// The socket.
        socket: String,
        /// What should have come.
        waiting_for: String,
    },
    /// It refuses a command.
    #[error("the VM at {socket} refuses {command}: {desc} ({class})")]
    Refused {
        /// The socket.
        socket: String,
        /// The command.
        command: String,
        /// QEMU's class of errors.
        class: String,
        /// QEMU's words.
        desc: String,
    },
    /// Its process is unknown.
    #[error(
        "the process that listens at {socket} cannot be seen from here: {cause}; run weir where its QEMU runs"
    )]
    Unseen {
        /// The socket.
        socket: String,
        /// What the system says.
        cause: io::Error,
    },
}

/// What happened in a VM.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// QEMU's name of it: `DEVICE_DELETED`.
    pub name: String,
    /// What it says.
    pub data: Value,
}

/// A connection.
#[derive(Debug)]
pub struct Qmp {
    stream: UnixStream,
    socket: String,
    /// The longest time for an answer.
    limit: Duration,
    /// Bytes that were read and are no whole line yet.
    partial: Vec<u8>,
    events: VecDeque<Event>,
    next_id: u64,
}

impl Qmp {
    /// Connects, and waits for each answer no longer than `limit`.
    ///
    /// # Errors
    /// No process listens, or it is not QEMU, or QEMU does not answer.
    pub fn connect(socket: &Path, limit: Duration) -> Result<Self, QmpError> {
        let name = socket.display().to_string();
        let stream = connect(socket, limit).map_err(|cause| match cause.kind() {
            io::ErrorKind::TimedOut => QmpError::Silent {
                socket: name.clone(),
                waiting_for: "the connection".into(),
                seconds: limit.as_secs_f64(),
            },
            _ => QmpError::Connect {
                socket: name.clone(),
                cause,
            },
        })?;
        let mut qmp = Self {
            stream,
            socket: name,
            limit,
            partial: Vec::new(),
            events: VecDeque::new(),
            next_id: 0,
        };
        let greeting = qmp.message("the connection", Instant::now() + limit)?;
        match greeting {
            Some(greeting) if greeting.get("QMP").is_some() => {}
            Some(other) => return Err(qmp.not_qmp(&other.to_string())),
            None => return Err(qmp.silent("the connection")),
        }
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// The process of this QEMU.
    ///
    /// # Errors
    /// It cannot be seen from here.
    pub fn process(&self) -> Result<Identity, QmpError> {
        let unseen = |cause| QmpError::Unseen {
            socket: self.socket.clone(),
            cause,
        };
        let pid = listener(&self.stream).map_err(unseen)?;
        Identity::of(pid).ok_or_else(|| unseen(io::ErrorKind::NotFound.into()))
    }

    /// Has a command done, and returns its answer. Events that come before it are kept.
    ///
    /// # Errors
    /// QEMU refuses, does not answer in time, or has ended.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, QmpError> {
        self.next_id += 1;
        let id = self.next_id;
        let mut line = json!({ "execute": command, "arguments": arguments, "id": id }).to_string();
        line.push('\n');
        let until = Instant::now() + self.limit;
        // A QEMU that has stopped reading must not stop us.
        let sent = self.stream.set_write_timeout(Some(self.limit));
        if let Err(cause) = sent.and_then(|()| self.stream.write_all(line.as_bytes())) {
            return Err(match is_timeout(&cause) {
                true => self.silent(command),
                false => self.gone(command),
            });
        }
        loop {
            let Some(message) = self.message(command, until)? else {
                return Err(self.silent(command));
            };
            if self.keep(&message) {
                continue;
            }
            // The answer to a command for which nothing waited any longer.
            if message.get("id").is_some_and(|found| *found != json!(id)) {
                continue;
            }
            if let Some(answer) = message.get("return") {
                return Ok(answer.clone());
            }
            let Some(error) = message.get("error") else {
                return Err(self.not_qmp(&message.to_string()));
            };
            let word = |key: &str| error[key].as_str().unwrap_or("without a word").to_owned();
            return Err(QmpError::Refused {
                socket: self.socket.clone(),
                command: command.to_owned(),
                class: word("class"),
                desc: word("desc"),
            });
        }
    }

    /// The next event, whenever it came; `None` if none comes until then.
    ///
    /// # Errors
    /// QEMU has ended.
    pub fn event(&mut self, until: Instant) -> Result<Option<Event>, QmpError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            match self.message("an event", until)? {
                Some(message) => drop(self.keep(&message)),
                None => return Ok(None),
            }
        }
    }

    /// Keeps a message that is an event.
    fn keep(&mut self, message: &Value) -> bool {
        let Some(name) = message.get("event").and_then(Value::as_str) else {
            return false;
        };
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event {
            name: name.to_owned(),
            data: message.get("data").cloned().unwrap_or(Value::Null),
        });
        true
    }

    /// The next line as JSON; `None` if none is whole until then.
    fn message(&mut self, waiting_for: &str, until: Instant) -> Result<Option<Value>, QmpError> {
        loop {
            if let Some(end) = self.partial.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return match serde_json::from_slice::<Value>(&line) {
                    Ok(message) if message.is_object() => Ok(Some(message)),
                    _ => Err(self.not_qmp(&String::from_utf8_lossy(&line))),
                };
            }
            if self.partial.len() > LONGEST {
                let start = String::from_utf8_lossy(&self.partial[..80]).into_owned();
                return Err(self.not_qmp(&start));
            }
            let left = until.saturating_duration_since(Instant::now());
            // A time of zero would mean to wait without end.
            if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
                return Ok(None);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(self.gone(waiting_for)),
                Ok(count) => self.partial.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(_) => return Err(self.gone(waiting_for)),
            }
        }
    }

    fn not_qmp(&self, said: &str) -> QmpError {
        QmpError::NotQmp {
            socket: self.socket.clone(),
            said: said.trim().chars().take(80).collect(),
        }
    }

    fn silent(&self, waiting_for: &str) -> QmpError {
        QmpError::Silent {
            socket: self.socket.clone(),
            waiting_for: waiting_for.to_owned(),
            seconds: self.limit.as_secs_f64(),
        }
    }

    fn gone(&self, waiting_for: &str) -> QmpError {
        QmpError::Gone {
            socket: self.socket.clone(),
            waiting_for: waiting_for.to_owned(),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}

/// Connects within a time. The kernel lets clients of a busy QEMU wait without end, so that a thread waits for it.
fn connect(socket: &Path, limit: Duration) -> io::Result<UnixStream> {
    let (send, receive) = mpsc::channel();
    let path = PathBuf::from(socket);
    thread::Builder::new()
        .name("weir-connect".into())
        .spawn(move || send.send(UnixStream::connect(path)))?;
    receive
        .recv_timeout(limit)
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests;
