//! Traces, line by line: `weir-persist 1`, then `pool BYTES`, then an event a line; `# ` begins a comment, and `@file:line` at the
//! end is where the program has the event.

use std::io::BufRead;
use std::rc::Rc;

use weir_model::number::count;
use weir_model::units::Bytes;

use crate::event::{Actor, Event, Holds, Place, Requirement};

/// The largest pool.
pub const MOST_BYTES: Bytes = Bytes::gib(1);
/// The longest line.
const MOST_LINE: u64 = 1 << 20;
const HEAD: &str = "weir-persist 1";

/// A line that is no event.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("cannot read line {line}: {cause}")]
    Unreadable {
        /// From 1.
        line: u64,
        /// Why.
        cause: std::io::Error,
    },
    /// It is not what it should be.
    #[error("line {line}: {what}")]
    Wrong {
        /// From 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reads events without holding them.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    line: u64,
    /// Whether the line that says what it is was read.
    headed: bool,
    bytes: Option<u64>,
    began: bool,
}

impl<R: BufRead> Reader<R> {
    /// A trace from its first line.
    pub fn new(from: R) -> Self {
        Self {
            from,
            line: 0,
            headed: false,
            bytes: None,
            began: false,
        }
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// A line is no event, is outside the pool, or the trace ends within one.
    pub fn next_event(&mut self) -> Result<Option<(Place, Event)>, TraceError> {
        loop {
            let mut text = Vec::new();
            self.line += 1;
            let line = self.line;
            let wrong = |what: String| TraceError::Wrong { line, what };
            let mut limited = std::io::Read::take(&mut self.from, MOST_LINE);
            let read = limited.read_until(b'\n', &mut text);
            read.map_err(|cause| TraceError::Unreadable { line, cause })?;
            if text.is_empty() {
                return match (line, self.bytes) {
                    (_, Some(_)) => Ok(None),
                    (1, _) => Err(wrong("the trace is empty".into())),
                    _ => Err(wrong("the trace ends before `pool BYTES`".into())),
                };
            }
            if text.pop() != Some(b'\n') {
                let what = "the trace ends within this line, or it has more than a mebibyte";
                return Err(wrong(what.into()));
            }
            let text = String::from_utf8(text).map_err(|_| wrong("it is not text".into()))?;
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if !self.headed {
                if text != HEAD {
                    return Err(wrong(format!("it must be `{HEAD}`, but is `{text}`")));
                }
                self.headed = true;
            } else {
                let (text, source) = match text.rsplit_once(" @") {
                    Some((text, source)) => (text.trim_end(), Some(Rc::from(source))),
                    None => (text, None),
                };
                let event = parse(text).map_err(&wrong)?;
                self.admit(&event).map_err(&wrong)?;
                return Ok(Some((Place { line, source }, event)));
            }
        }
    }

    fn admit(&mut self, event: &Event) -> Result<(), String> {
        let (at, length) = match (event, self.bytes) {
            (Event::Pool(_), Some(_)) => return Err("the trace has a pool already".into()),
            (Event::Pool(bytes), None) if (1..=MOST_BYTES.get()).contains(bytes) => {
                self.bytes = Some(*bytes);
                return Ok(());
            }
            (Event::Pool(bytes), None) => {
                return Err(format!("a pool has 1 byte to {MOST_BYTES}, not {bytes}"));
            }
            (_, None) => return Err("`pool BYTES` must be the first event".into()),
            (Event::Init(..), _) if self.began => {
                return Err("`init` must be before what the program does".into());
            }
            (Event::Init(at, bytes), _) => (*at, bytes.len() as u64),
            (Event::Store(at, bytes) | Event::NtStore(at, bytes) | Event::Locked(at, bytes), _) => {
                self.began = true;
                (*at, bytes.len() as u64)
            }
            (
                Event::Flush(at, length) | Event::Clflush(at, length) | Event::Sync(at, length),
                _,
            ) => (*at, *length),
            (Event::Require(requirement), _) => {
                for holds in requirement.if_holds.iter().chain([&requirement.then]) {
                    self.inside(holds.at, holds.values[0].len() as u64)?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.inside(at, length)
    }

    fn inside(&self, at: u64, length: u64) -> Result<(), String> {
        let bytes = self.bytes.unwrap_or_default();
        match at.checked_add(length) {
            Some(end) if length > 0 && end <= bytes => Ok(()),
            _ => Err(format!(
                "{} at {at} {} not in the pool of {}",
                count(length, "byte"),
                if length == 1 { "is" } else { "are" },
                count(bytes, "byte")
            )),
        }
    }
}

fn parse(text: &str) -> Result<Event, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let words: Vec<&str> = rest.split_whitespace().collect();
    let data = || match words[..] {
        [at, bytes] => Ok((number(at)?, unhex(bytes)?)),
        _ => Err(format!("write it as `{word} OFFSET HEX`")),
    };
    let range = || match words[..] {
        [at] => Ok((number(at)?, 1)),
        [at, length] => Ok((number(at)?, number(length)?)),
        _ => Err(format!("write it as `{word} OFFSET [BYTES]`")),
    };
    Ok(match word {
        "pool" => Event::Pool(number(rest)?),
        "init" => data().map(|(at, bytes)| Event::Init(at, bytes))?,
        "by" => Event::By(actor(rest)?),
        "store" => data().map(|(at, bytes)| Event::Store(at, bytes))?,
        "nt-store" => data().map(|(at, bytes)| Event::NtStore(at, bytes))?,
        "locked" => data().map(|(at, bytes)| Event::Locked(at, bytes))?,
        "flush" => range().map(|(at, length)| Event::Flush(at, length))?,
        "clflush" => range().map(|(at, length)| Event::Clflush(at, length))?,
        "sync" => range().map(|(at, length)| Event::Sync(at, length))?,
        "fence" if rest.is_empty() => Event::Fence,
        "mark" => Event::Mark(rest.to_owned()),
        "require" => Event::Require(requirement(rest)?),
        "forget" if words.len() == 1 => Event::Forget(rest.to_owned()),
        _ => return Err(format!("`{text}` is no event")),
    })
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no number of bytes; write it as 64 or 0x40"))
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = (text.chars())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    match digits {
        Some(digits) if !digits.is_empty() && digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect())
        }
        _ => Err(format!(
            "`{text}` is not bytes; write two hexadecimal digits for each"
        )),
    }
}

fn actor(text: &str) -> Result<Actor, String> {
    let (host, thread) = text.split_once('.').unwrap_or((text, "0"));
    match (host.parse(), thread.parse()) {
        (Ok(host), Ok(thread)) => Ok(Actor { host, thread }),
        _ => Err(format!(
            "`{text}` is no thread; write it as HOST or HOST.THREAD"
        )),
    }
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let shape = || format!("`{text}` is not NAME [OFFSET=HEX ->] OFFSET=HEX[|HEX]");
    let (name, rest) = text.split_once(' ').ok_or_else(shape)?;
    let holds = |text: &str| -> Result<Holds, String> {
        let (at, values) = text.trim().split_once('=').ok_or_else(shape)?;
        let values: Vec<Vec<u8>> = values.split('|').map(unhex).collect::<Result<_, _>>()?;
        match values.iter().all(|value| value.len() == values[0].len()) {
            true => Ok(Holds {
                at: number(at)?,
                values,
            }),
            false => Err("values of one place must have one length".into()),
        }
    };
    let (if_holds, then) = match rest.split_once("->") {
        Some((first, then)) => (Some(holds(first)?), holds(then)?),
        None => (None, holds(rest)?),
    };
    Ok(Requirement {
        name: name.to_owned(),
        if_holds,
        then,
    })
}
