//! Reads a trace from its source to its end, in constant memory.

use std::io::Read as _;
use std::process::ExitStatus;

use weir_model::machine::MachineError;
use weir_trace::decode::guess;
use weir_trace::mappings::Mappings;
use weir_trace::{Decoder, Format, Watch};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::source::{Source, packed_again};

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;
/// Bytes by which a format is guessed.
const HEAD: usize = 1 << 16;
/// Bytes of a window, where not all is looked at, at least: a quarter, or more until the largest cache is warm, and as many
/// again, whose misses count.
const WINDOW: u64 = 64 << 20;
/// What is counted of a trace whose length is not known.
const MILLIONS: &str = "million accesses";
/// Bytes between two looks at whether it is warm.
const STEP: u64 = 1 << 20;

/// A trace that was read.
pub struct Read {
    /// What was noted.
    pub watch: Watch,
    /// What read it.
    pub decoder: Decoder,
    /// The share of its bytes that was looked at.
    pub looked_at: f64,
    /// Files that the program had mapped, as far as they are known.
    pub mappings: Mappings,
    /// What makes the description less than trustworthy.
    pub warnings: Vec<String>,
    /// How the command ended that was read, if it failed.
    pub failed: Option<ExitStatus>,
}

/// How a trace is read.
pub struct Reading<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// Its format, if it was named.
    pub format: Option<Format>,
    /// The share of it that is looked at.
    pub share: f64,
    pub context: &'a Context,
}

/// Bytes that were read and not decoded.
struct Buffer {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
    /// The place of the first in the trace.
    at: u64,
    ended: bool,
}

impl Buffer {
    fn left(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    fn take(&mut self, bytes: usize) {
        self.from += bytes;
        self.at += bytes as u64;
    }

    /// Reads more; nothing more at the end.
    fn fill(&mut self, source: &mut Source) -> std::io::Result<()> {
        self.bytes.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        loop {
            match source.read(&mut self.bytes[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.to += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

impl Reading<'_> {
    fn wrong(&self, why: impl std::fmt::Display) -> Failure {
        Failure::request(format!("{}: {why}", self.name))
    }

    /// Reads a trace, until it ends or the user stops it.
    ///
    /// # Errors
    /// It cannot be read, or is not of its format.
    pub fn run(&self, mut source: Source) -> Result<Read> {
        let failed = |error: std::io::Error| {
            Failure::Request(
                anyhow::Error::new(error).context(format!("cannot read {}", self.name)),
            )
        };
        let mut buffer = Buffer {
            bytes: vec![0; BUFFER],
            from: 0,
            to: 0,
            at: 0,
            ended: false,
        };
        while !buffer.ended && buffer.left().len() < HEAD {
            buffer.fill(&mut source).map_err(failed)?;
        }
        let head = &buffer.left()[..buffer.left().len().min(HEAD)];
        let looks_like = guess(head);
        let mut decoder = self.decoder(head)?;
        let hint = match looks_like {
            Some(other) if other != decoder.format() => format!("; it looks like {other}"),
            _ => String::new(),
        };
        let mut watch = Watch::new();
        let (title, quiet) = (format!("reading {}", self.name), self.context.global.quiet);
        let mut progress = match source.share() {
            Some(_) => Progress::percent(&title, quiet),
            None => Progress::open(&title, MILLIONS, quiet),
        };
        let mut windows = Windows::new(self, &decoder)?;
        let (mut counted, mut seen) = (0_u64, 0_u64);
        loop {
            let upto = windows.next(buffer.at, &mut watch);
            let here = buffer.left();
            let most = usize::try_from(upto - buffer.at)
                .unwrap_or(usize::MAX)
                .min(here.len());
            let taken = decoder.decode(&here[..most], &mut watch);
            let taken = taken.map_err(|wrong| self.wrong(windows.phrase(&wrong) + &hint))?;
            counted += taken as u64;
            buffer.take(taken);
            let stopped = self.context.stop.requested();
            if windows.is_over(buffer.at) {
                let more = windows
                    .skip(&mut buffer, &mut source, &mut decoder)
                    .map_err(failed)?;
                seen = buffer.at;
                if more && !stopped {
                    continue;
                }
                break;
            }
            seen = seen.max(buffer.at);
            if stopped || (buffer.ended && taken == 0) {
                break;
            }
            if taken == 0 && buffer.left().len() == BUFFER {
                return Err(self.wrong(format!(
                    "byte {}: a line or message of more than 1 MiB",
                    buffer.at
                )));
            }
            if !buffer.ended && (taken == 0 || buffer.left().len() < BUFFER / 4) {
                buffer.fill(&mut source).map_err(failed)?;
                match source.share() {
                    Some(share) => progress.share(share),
                    None => progress.count(watch.accesses() / 1_000_000, MILLIONS),
                }
            }
        }
        let mut warnings = Vec::new();
        let mut failed = None;
        let is_whole = buffer.ended && !self.context.stop.requested();
        if is_whole {
            let end = decoder.end(buffer.left(), &mut watch);
            warnings.extend(end.map_err(|wrong| self.wrong(wrong))?);
            counted += buffer.left().len() as u64;
            let (said, status) = source.end()?;
            warnings.extend(said);
            failed = status;
        }
        warnings.extend(decoder.left_out());
        progress.end();
        watch.end();
        if !windows.skipped {
            watch.count_cold();
        }
        let looked_at = if self.share < 1.0 {
            counted as f64 / seen.max(1) as f64
        } else {
            1.0
        };
        Ok(Read {
            watch,
            decoder,
            looked_at: looked_at.min(1.0),
            mappings: Mappings::default(),
            warnings,
            failed,
        })
    }

    fn decoder(&self, head: &[u8]) -> Result<Decoder> {
        if head.is_empty() {
            if self.context.stop.requested() {
                return Err(MachineError::Interrupted.into());
            }
            return Err(self.wrong("it is empty"));
        }
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let format = match (self.format, guess(head), weir_trace::decode::packed(head)) {
            (Some(format), ..) | (None, Some(format), None) => format,
            (None, _, Some(tool)) => {
                return Err(self.wrong(packed_again(tool)));
            }
            (None, None, None) => {
                return Err(self.wrong(format!(
                    "its format cannot be determined from its first bytes; name it with --as: {}",
                    names.join(", ")
                )));
            }
        };
        Decoder::new(format, head).map_err(|wrong| {
            let hint = match guess(head) {
                Some(other) if other != format => format!("; it looks like {other}"),
                _ => String::new(),
            };
            self.wrong(format!("{wrong}{hint}"))
        })
    }
}

/// Bytes that a record has, at most: where fewer are left of a window it is over.
const LONGEST: u64 = 4096;

/// Parts of a trace that are looked at, between parts as long that are left out.
struct Windows {
    /// The share that is looked at.
    share: f64,
    /// Bytes of a record.
    record: u64,
    begin: u64,
    begun: bool,
    /// Where the current window ends, once its caches are warm.
    end: Option<u64>,
    /// Whether something was left out.
    skipped: bool,
    /// Where lines are counted from.
    lines_from: u64,
}

impl Windows {
    fn new(reading: &Reading<'_>, decoder: &Decoder) -> Result<Self> {
        if reading.share < 1.0 && decoder.record() == 0 {
            return Err(reading.wrong(
                "records of this format are only found from the one before; it is read as a whole, without --share",
            ));
        }
        Ok(Self {
            share: reading.share,
            record: decoder.record().max(1),
            begin: 0,
            begun: false,
            end: None,
            skipped: false,
            lines_from: 0,
        })
    }

    /// Up to which byte the trace is decoded now.
    fn next(&mut self, at: u64, watch: &mut Watch) -> u64 {
        if self.share >= 1.0 {
            return u64::MAX;
        }
        if !self.begun {
            self.begun = true;
            watch.begin_window(!self.skipped);
        }
        if let Some(end) = self.end {
            return end;
        }
        let cold = at - self.begin;
        if watch.is_steady() && cold >= WINDOW / 4 {
            watch.warmed();
            let end = self.begin + WINDOW.max(2 * cold);
            self.end = Some(end);
            return end;
        }
        at + STEP
    }

    fn is_over(&self, at: u64) -> bool {
        self.end.is_some_and(|end| at + LONGEST >= end)
    }

    /// Goes to the next window; whether there is one.
    fn skip(
        &mut self,
        buffer: &mut Buffer,
        source: &mut Source,
        decoder: &mut Decoder,
    ) -> std::io::Result<bool> {
        let from = buffer.at;
        let length = self.end.unwrap_or(from) - self.begin;
        self.begin += (length as f64 / self.share) as u64 / self.record * self.record;
        (self.begun, self.end, self.skipped) = (false, None, true);
        while !buffer.ended && buffer.at + (buffer.left().len() as u64) <= self.begin {
            let beyond = self.begin - buffer.at - buffer.left().len() as u64;
            buffer.take(buffer.left().len());
            if beyond > 0 && !source.skip(beyond)? {
                buffer.ended = true;
                return Ok(false);
            }
            buffer.at += beyond;
            buffer.fill(source)?;
        }
        let inside = self.begin.saturating_sub(buffer.at) as usize;
        buffer.take(inside.min(buffer.left().len()));
        if decoder.record() == 1 {
            // The first line is not whole.
            let end = buffer.left().iter().position(|&byte| byte == b'\n');
            buffer.take(end.map_or(0, |end| end + 1));
            self.begin = buffer.at;
        }
        self.lines_from = buffer.at;
        decoder.skip(buffer.at - from);
        Ok(!buffer.left().is_empty())
    }

    /// An error with where lines are counted from.
    fn phrase(&self, wrong: &weir_trace::Wrong) -> String {
        match (wrong, self.lines_from) {
            (weir_trace::Wrong::Line { .. }, 1..) => {
                format!("{wrong} (lines are counted from byte {})", self.lines_from)
            }
            _ => wrong.to_string(),
        }
    }
}
