//! The reader of every TOML file: a cursor over tables and keys with typed getters.
//!
//! Each getter reports its own mistake with line, column and key, and returns `None`. Reading goes on after
//! a mistake, so that one pass reports all mistakes of a file.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use toml_edit::{Document, Item, TableLike, Value};

use crate::diagnostic::{Collector, Mistakes, closest, did_you_mean, quote};

/// Larger files are refused unread, in bytes: every file that is read here has a few kilobytes.
pub const MOST_BYTES: usize = 1 << 20;

/// Reads a file. `file` is its name and `what` its kind in messages (`a platform file`).
///
/// # Errors
/// Every mistake of the file, each with its place.
pub fn read<T>(
    file: &str,
    text: &str,
    what: &str,
    read: impl FnOnce(&Table<'_>) -> Option<T>,
) -> Result<T, Mistakes> {
    let mistakes = Collector::new(file, text);
    let value = if text.len() > MOST_BYTES {
        let message = format!("the file is larger than the 1 MiB that {what} may have");
        let help = "check that this is the right file";
        mistakes.report(0..0, None, message, Some(help.into()));
        None
    } else {
        parse(text, &mistakes).and_then(|parsed| {
            read(&Table {
                items: Some(parsed.document.as_table()),
                span: 0..0,
                path: String::new(),
                asked: RefCell::default(),
                is_whole: parsed.is_whole,
                mistakes: &mistakes,
            })
        })
    };
    mistakes.finish(value)
}

/// A text with more broken lines than this is not read further.
const MOST_BROKEN_LINES: usize = 5;

/// A document, perhaps without some of its lines.
#[derive(Debug)]
struct Parsed {
    /// What could be read, with the place of every key.
    document: Document<String>,
    /// Whether every line could be read; where not, what seems to be missing may be there.
    is_whole: bool,
}

/// Parses a text. Lines that are not TOML are reported and left out.
///
/// `None` where too little can be read.
fn parse(text: &str, mistakes: &Collector<'_>) -> Option<Parsed> {
    let mut rest = text.to_string();
    for broken in 0..=MOST_BROKEN_LINES {
        let error = match Document::parse(rest.clone()) {
            Ok(document) => {
                let is_whole = broken == 0;
                return Some(Parsed { document, is_whole });
            }
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        let line = line_around(&rest, span.start);
        if broken > 0 && rest[line.clone()].trim().is_empty() {
            // Something opened and never closed: the parser complains at the end of the text.
            return None;
        }
        let message = error.message().trim().replace('\n', "; ");
        mistakes.report(
            span,
            None,
            format!("this line is not valid TOML: {message}"),
            None,
        );
        // Under a header that is left out its keys would belong to the table before.
        let end = match rest[line.clone()].trim_start().starts_with('[') {
            true => next_header(&rest, line.end),
            false => line.end,
        };
        // As many bytes and lines as before, so that every other place stays where it is.
        let left_out = line.start..end;
        let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
        let blank: String = rest[left_out.clone()].bytes().map(blank).collect();
        rest.replace_range(left_out, &blank);
    }
    None
}

/// The line that holds this byte, without its end.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let at = at.min(bytes.len());
    let start = bytes[..at]
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |n| n + 1);
    let end = bytes[at..]
        .iter()
        .position(|&b| b == b'\n')
        .map_or(bytes.len(), |n| at + n);
    start..end
}

/// Where the first header of a table behind this byte begins, or the end of the text.
fn next_header(text: &str, after: usize) -> usize {
    let mut starts = text[after..]
        .match_indices('\n')
        .map(|(at, _)| after + at + 1);
    let is_header = |at: &usize| text[*at..].trim_start_matches([' ', '\t']).starts_with('[');
    starts.find(is_header).unwrap_or(text.len())
}

/// A table of a file. A table that the file does not have reads as one without keys.
#[derive(Clone)]
pub struct Table<'d> {
    items: Option<&'d dyn TableLike>,
    span: Range<usize>,
    path: String,
    /// The keys that were asked for.
    asked: RefCell<Vec<String>>,
    is_whole: bool,
    mistakes: &'d Collector<'d>,
}

impl<'d> Table<'d> {
    /// The dotted path of a key of this table.
    fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Whether every line of the file is TOML. Where not, a missing key may be on a broken line.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Where the table starts.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Where the mistakes of the file are collected.
    pub fn mistakes(&self) -> &'d Collector<'d> {
        self.mistakes
    }

    /// Whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.items.is_some_and(|items| items.contains_key(key))
    }

    /// Every key with its value, in the order of the file.
    pub fn fields(&self) -> Vec<(&'d str, Field<'d>)> {
        let items = self.items.into_iter().flat_map(|items| items.iter());
        items
            .map(|(name, item)| (name, self.field(name, item)))
            .collect()
    }

    fn field(&self, key: &str, item: &'d Item) -> Field<'d> {
        let key_span = (self.items)
            .and_then(|items| items.get_key_value(key))
            .and_then(|(key, _)| key.span())
            .unwrap_or_else(|| self.span.clone());
        Field {
            node: Node::Item(item),
            span: item.span().unwrap_or_else(|| key_span.clone()),
            key_span,
            path: self.path_of(key),
            is_whole: self.is_whole,
            mistakes: self.mistakes,
        }
    }

    /// The value of a key, if the table has it.
    pub fn get(&self, key: &str) -> Option<Field<'d>> {
        self.asked.borrow_mut().push(key.to_owned());
        let item = self.items?.get(key)?;
        Some(self.field(key, item))
    }

    /// The value of a key that the table must have; `example` is such a value as written.
    pub fn need(&self, key: &str, example: &str) -> Option<Field<'d>> {
        let field = self.get(key);
        if field.is_none() {
            self.missing(key, format!("add `{key} = {example}`"));
        }
        field
    }

    /// Reports that a key is missing, unless a broken line may have it.
    pub fn missing(&self, key: &str, help: String) {
        if self.is_whole {
            let path = self.path_of(key);
            let message = format!("missing key `{path}`");
            self.mistakes
                .report(self.span(), Some(&path), message, Some(help));
        }
    }

    /// Reports a mistake of a key: at its value, or at the table where the key is not there.
    pub fn wrong(&self, key: &str, message: impl Into<String>, help: Option<String>) {
        let span = self.get(key).map_or(self.span(), |field| field.span());
        self.mistakes
            .report(span, Some(&self.path_of(key)), message, help);
    }

    /// Reports every key that is not one of `keys`. `what` is what the table describes: `a device`.
    pub fn only<'n>(&self, what: &str, keys: impl IntoIterator<Item = &'n str> + Clone) {
        for (name, field) in self.fields() {
            if !keys.clone().into_iter().any(|key| key == name) {
                field.unknown(what, &closest(name, keys.clone()));
            }
        }
    }

    /// Reports every key that was not asked for; it comes after the last key was. `what` is what the table
    /// describes.
    pub fn done(&self, what: &str) {
        let asked = self.asked.borrow();
        self.only(what, asked.iter().map(String::as_str));
    }

    /// Checks that `kind` says what the file is. `what` is in words: `a workload`.
    pub fn expect_kind(&self, kind: &str, what: &str) -> Option<()> {
        let field = self.need("kind", &format!("\"{kind}\""))?;
        let found = field.text()?;
        if found == kind {
            return Some(());
        }
        field.report(
            format!("this file is not {what}: its kind is `{}`", quote(found)),
            Some(format!("write `kind = \"{kind}\"`")),
        );
        None
    }

    /// The table of a key; without keys where there is none.
    pub fn section(&self, key: &str) -> Table<'d> {
        let table = self.get(key).and_then(|field| field.table());
        table.unwrap_or(Table {
            items: None,
            path: self.path_of(key),
            ..self.clone()
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Node<'d> {
    Item(&'d Item),
    Value(&'d Value),
}

/// A value of a file, behind a key or in a list.
#[derive(Debug, Clone)]
pub struct Field<'d> {
    node: Node<'d>,
    span: Range<usize>,
    key_span: Range<usize>,
    path: String,
    is_whole: bool,
    mistakes: &'d Collector<'d>,
}

impl<'d> Field<'d> {
    /// The dotted path of its key.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the value is.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Reports a mistake at the value.
    pub fn report(&self, message: impl Into<String>, help: Option<String>) {
        self.report_at(None, message.into(), help);
    }

    /// Reports a mistake at a part of the value, or at all of it.
    pub fn report_at(&self, at: Option<Range<usize>>, message: String, help: Option<String>) {
        let span = at.unwrap_or_else(|| self.span());
        self.mistakes.report(span, Some(&self.path), message, help);
    }

    /// Reports a mistake at the key.
    pub fn report_key(&self, message: String, help: Option<String>) {
        self.report_at(Some(self.key_span.clone()), message, help);
    }

    /// The same value under another path in messages.
    #[must_use]
    pub fn called(&self, path: &str) -> Self {
        let path = path.to_owned();
        Self {
            path,
            ..self.clone()
        }
    }

    /// Reports what the value must be: `a path in quotes`. Returns `None`, the value of a getter that failed.
    pub fn must_be<T>(&self, what: impl Display) -> Option<T> {
        self.report(self.needs(what), None);
        None
    }

    fn needs(&self, what: impl Display) -> String {
        format!("`{}` must be {what}", quote(&self.path))
    }

    /// Reports that the key does not belong here; `meant` are the keys that are close.
    pub fn unknown(&self, what: &str, meant: &[&str]) {
        let message = format!("`{}` is not a key of {what}", quote(&self.path));
        self.report_key(message, did_you_mean(meant));
    }

    /// Reports that a section is needed where a value is.
    pub fn must_be_section(&self) {
        let path = quote(&self.path);
        let help = format!("write `[{path}]` and its keys below");
        self.report_key(format!("`{path}` must be a table"), Some(help));
    }

    /// The value, where it is neither a section nor a list of them.
    pub fn value(&self) -> Option<&'d Value> {
        match self.node {
            Node::Item(item) => item.as_value(),
            Node::Value(value) => Some(value),
        }
    }

    /// The text, if the value is text.
    pub fn as_text(&self) -> Option<&'d str> {
        self.value().and_then(Value::as_str)
    }

    /// The table, if the value is one.
    pub fn as_table(&self) -> Option<Table<'d>> {
        let items = match self.node {
            Node::Item(item) => item.as_table_like(),
            Node::Value(value) => value.as_inline_table().map(|t| t as &dyn TableLike),
        };
        Some(self.table_of(items?, self.span()))
    }

    fn table_of(&self, items: &'d dyn TableLike, span: Range<usize>) -> Table<'d> {
        Table {
            items: Some(items),
            span,
            path: self.path.clone(),
            asked: RefCell::default(),
            is_whole: self.is_whole,
            mistakes: self.mistakes,
        }
    }

    /// A text that is not empty, without spaces at its ends.
    pub fn text(&self) -> Option<&'d str> {
        match self.as_text().map(str::trim) {
            Some("") => self.must_be("more than an empty text"),
            Some(text) => Some(text),
            None => self.must_be("text in quotes"),
        }
    }

    /// A text in quotes, or a number as text.
    pub fn text_or_number(&self) -> Option<String> {
        match self.value() {
            Some(Value::String(text)) => Some(text.value().clone()),
            Some(Value::Integer(number)) => Some(number.value().to_string()),
            Some(Value::Float(number)) => Some(number.value().to_string()),
            _ => self.must_be("text in quotes or a number"),
        }
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Option<bool> {
        let flag = self.value().and_then(Value::as_bool);
        flag.or_else(|| self.must_be("true or false"))
    }

    /// A whole number within bounds.
    pub fn whole(&self, bounds: RangeInclusive<i64>) -> Option<i64> {
        let number = self.value().and_then(Value::as_integer);
        let within = number.filter(|n| bounds.contains(n));
        within.or_else(|| {
            let (low, high) = bounds.into_inner();
            self.must_be(format!("a whole number between {low} and {high}"))
        })
    }

    /// A finite number within bounds.
    pub fn number(&self, bounds: RangeInclusive<f64>) -> Option<f64> {
        let value = self.value();
        let number = value.and_then(|v| v.as_float().or_else(|| v.as_integer().map(|n| n as f64)));
        let within = number.filter(|n| n.is_finite() && bounds.contains(n));
        within.or_else(|| match bounds.into_inner() {
            (f64::MIN, f64::MAX) => self.must_be("a number"),
            (low, high) => self.must_be(format!("a number between {low} and {high}")),
        })
    }

    /// A quantity in quotes. `form` says how it is written: `a time such as "250 ms"`.
    pub fn quantity<Q: FromStr<Err: Display>>(&self, form: &str) -> Option<Q> {
        // The text comes back in the message: keep it short and printable.
        self.read(form, |text| quote(text).parse())
    }

    /// A quantity in quotes within bounds.
    pub fn quantity_within<Q: FromStr<Err: Display> + Display + PartialOrd>(
        &self,
        form: &str,
        bounds: RangeInclusive<Q>,
    ) -> Option<Q> {
        let quantity = self.quantity(form)?;
        if bounds.contains(&quantity) {
            return Some(quantity);
        }
        let (low, high) = bounds.into_inner();
        self.must_be(format!("between {low} and {high}, not {quantity}"))
    }

    /// A text in quotes that `read` understands. `form` says what it must be.
    pub fn read<T, E: Display>(
        &self,
        form: &str,
        read: impl FnOnce(&'d str) -> Result<T, E>,
    ) -> Option<T> {
        let Some(text) = self.as_text() else {
            return self.must_be(form);
        };
        let read = read(text);
        read.map_err(|why| self.report(self.needs(form), Some(why.to_string())))
            .ok()
    }

    /// One of some words.
    pub fn word<'n, T: Copy>(&self, all: &[T], name: impl Fn(T) -> &'n str) -> Option<T> {
        let word = self.text()?;
        let found = all.iter().copied().find(|&one| name(one) == word);
        found.or_else(|| {
            let names: Vec<&str> = all.iter().map(|&one| name(one)).collect();
            self.not_known(word, &names)
        })
    }

    /// Reports a word that is not one of the known `words`.
    pub fn not_known<T>(&self, word: &str, words: &[&str]) -> Option<T> {
        let message = format!("`{}` cannot be `{}`", quote(&self.path), quote(word));
        self.report(message, Some(known(word, words)));
        None
    }

    /// The values of a list of at most this many. `of` says of what: `names`.
    pub fn list(&self, of: &str, most: usize) -> Option<Vec<Field<'d>>> {
        let Some(array) = self.value().and_then(Value::as_array) else {
            return self.must_be(format!("a list of {of}"));
        };
        if array.len() > most {
            return self.must_be(format!("a list of at most {most} {of}"));
        }
        let field = |value: &'d Value| Field {
            node: Node::Value(value),
            span: value.span().unwrap_or_else(|| self.span()),
            ..self.clone()
        };
        Some(array.iter().map(field).collect())
    }

    /// The texts of a list; those that are not text are reported.
    pub fn texts(&self, of: &str, most: usize) -> Option<Vec<String>> {
        let list = self.list(of, most)?;
        list.iter().map(|f| f.text().map(str::to_owned)).collect()
    }

    /// The table of a section or an inline table.
    pub fn table(&self) -> Option<Table<'d>> {
        let table = self.as_table();
        if table.is_none() {
            self.must_be_section();
        }
        table
    }

    /// The tables of a list with at least one and at most this many, written `[[key]]` or in brackets.
    pub fn tables(&self, most: usize) -> Option<Vec<Table<'d>>> {
        let sections = match self.node {
            Node::Item(item) => item.as_array_of_tables(),
            Node::Value(_) => None,
        };
        let tables: Option<Vec<Table<'d>>> = match sections {
            Some(sections) => Some(
                (sections.iter())
                    .map(|t| self.table_of(t, t.span().unwrap_or_else(|| self.span())))
                    .collect(),
            ),
            None => (self.value().and_then(Value::as_array)).and_then(|array| {
                let of = |value: &'d Value| {
                    let span = value.span().unwrap_or_else(|| self.span());
                    let table = value.as_inline_table()?;
                    Some(self.table_of(table, span))
                };
                array.iter().map(of).collect()
            }),
        };
        let tables = tables.filter(|tables| (1..=most).contains(&tables.len()));
        if tables.is_none() {
            let message = format!("`{}` must be a list of 1 to {most} tables", self.path);
            self.report(message, Some(format!("write `[[{}]]`", self.path)));
        }
        tables
    }
}

/// Lists the known words, after the one that was probably meant.
pub fn known(written: &str, words: &[&str]) -> String {
    let list = format!("known are {}", words.join(", "));
    match did_you_mean(&closest(written, words.iter().copied())) {
        Some(question) => format!("{question} {list}"),
        None => list,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_broken_line_is_reported_and_the_others_are_read() {
        let text = "a = 1\nb = \"open\nc = = 3\n[d\ne = 5\n[f]\ng = 6\n";
        let mistakes = Collector::new("x.toml", text);
        let parsed = parse(text, &mistakes).unwrap();
        assert!(!parsed.is_whole);
        // What follows a header that is left out is of no table.
        let read = ["a", "e", "f"].map(|key| parsed.document.contains_key(key));
        assert_eq!(read, [true, false, true]);
        let shown = mistakes.finish::<()>(None).unwrap_err();
        let lines: Vec<usize> = shown.shown.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn a_text_which_is_not_toml_is_not_read_further() {
        let text = "%PDF-1.7\n%\u{fffd}\n1 0 obj\n<< /Type >>\nendobj\nxref\ntrailer\n";
        let mistakes = Collector::new("x.toml", text);
        assert!(parse(text, &mistakes).is_none());
        let found = mistakes.finish::<()>(None).unwrap_err();
        assert!(found.shown.len() <= MOST_BROKEN_LINES + 1);
    }
}
