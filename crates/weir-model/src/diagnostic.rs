//! Mistakes in a file, each with its place, in the form of a compiler's messages.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;

/// More mistakes than this in one file are counted, not shown.
const MOST_SHOWN: usize = 40;

/// Characters of a source line that are shown around a mistake.
const LINE_WIDTH: usize = 96;

/// Characters of a file's own text that a message repeats.
const QUOTE_WIDTH: usize = 60;

/// One mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as the caller named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The dotted key it is about, if it is about one: `core.count`.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The part of the source line that is shown.
    excerpt: String,
    /// Where in the excerpt the marks start, and how many there are.
    marks: (usize, usize),
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        writeln!(f, "error: {}", self.message)?;
        writeln!(f, "{gutter}--> {}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", self.excerpt)?;
        let (start, count) = self.marks;
        write!(
            f,
            "{gutter} | {}{}",
            " ".repeat(start),
            "^".repeat(count.max(1))
        )?;
        if let Some(help) = &self.help {
            write!(f, "\n{gutter} = help: {help}")?;
        }
        Ok(())
    }
}

/// Every mistake of one file, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    /// The file, as the caller named it.
    pub file: String,
    /// The mistakes, at most the first forty.
    pub shown: Vec<Diagnostic>,
    /// How many more there are.
    pub more: usize,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in &self.shown {
            writeln!(f, "{diagnostic}\n")?;
        }
        match self.shown.len() + self.more {
            1 => write!(f, "1 mistake in {}", self.file),
            n if self.more == 0 => write!(f, "{n} mistakes in {}", self.file),
            n => write!(
                f,
                "{n} mistakes in {}, of which the first {} are shown",
                self.file,
                self.shown.len()
            ),
        }
    }
}

impl std::error::Error for Mistakes {}

/// Collects mistakes while a file is read.
#[derive(Debug)]
pub struct Collector<'t> {
    file: &'t str,
    text: &'t str,
    /// With the byte offset by which they are sorted.
    found: RefCell<Vec<(usize, Diagnostic)>>,
    more: Cell<usize>,
}

impl<'t> Collector<'t> {
    /// A collector for a file of this name and text.
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            found: RefCell::default(),
            more: Cell::new(0),
        }
    }

    /// Notes a mistake at these bytes of the text.
    pub fn report(
        &self,
        span: Range<usize>,
        key: Option<&str>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        if self.found.borrow().len() == MOST_SHOWN {
            self.more.set(self.more.get() + 1);
            return;
        }
        let start = self.boundary(span.start);
        let end = self.boundary(span.end).max(start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = 1 + self.text[..line_start]
            .bytes()
            .filter(|&b| b == b'\n')
            .count();
        let line_text = self.text[line_start..].lines().next().unwrap_or_default();
        let before = self.text[line_start..start].chars().count();
        let marked = self.text[start..end].lines().next().unwrap_or_default();
        let (excerpt, marks) = excerpt(line_text, before, marked.chars().count());
        self.found.borrow_mut().push((
            start,
            Diagnostic {
                file: self.file.into(),
                line,
                column: before + 1,
                key: key.map(quote),
                message: message.into(),
                help,
                excerpt,
                marks,
            },
        ));
    }

    /// The nearest character boundary at or before a byte offset.
    fn boundary(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    /// What was read, or what was found, in the order of the file.
    ///
    /// # Errors
    /// There were mistakes, or nothing was read.
    pub fn finish<T>(self, read: Option<T>) -> Result<T, Mistakes> {
        let is_right = self.found.borrow().is_empty();
        if let (Some(read), true) = (read, is_right) {
            return Ok(read);
        }
        if is_right {
            self.report(0..0, None, "the file does not have what it must have", None);
        }
        let mut found = self.found.into_inner();
        found.sort_by_key(|(at, _)| *at);
        Err(Mistakes {
            file: self.file.into(),
            shown: found.into_iter().map(|(_, d)| d).collect(),
            more: self.more.get(),
        })
    }
}

/// Cuts a window out of a line so that the mark is in it, and makes every character printable.
fn excerpt(line: &str, before: usize, marked: usize) -> (String, (usize, usize)) {
    let skip = if before + marked.max(1) <= LINE_WIDTH {
        0
    } else {
        before.saturating_sub(LINE_WIDTH / 4)
    };
    let shown: String = line
        .chars()
        .skip(skip)
        .take(LINE_WIDTH)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let width = shown.chars().count();
    let start = (before - skip).min(width);
    let count = marked.clamp(1, (width - start).max(1));
    (shown.trim_end().to_string(), (start, count))
}

/// A piece of the file's text that is safe to repeat in a message: short, without control
/// characters.
pub fn quote(text: &str) -> String {
    let mut quoted: String = text
        .chars()
        .take(QUOTE_WIDTH)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(QUOTE_WIDTH).is_some() {
        quoted.push('…');
    }
    quoted
}

/// The names closest to what was written, best first; at most three, none if none is close.
pub fn closest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    // A name this long is not a typing error, and comparing it would cost time.
    if written.len() > 64 {
        return Vec::new();
    }
    let written = written.to_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&written, name), name))
        .filter(|(score, _)| *score > 0.84)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.truncate(3);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// `did you mean `a` or `b`?`, or nothing.
pub fn did_you_mean(candidates: &[&str]) -> Option<String> {
    let quoted: Vec<String> = candidates.iter().map(|c| format!("`{c}`")).collect();
    let (last, rest) = quoted.split_last()?;
    Some(if rest.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", rest.join(", "))
    })
}
