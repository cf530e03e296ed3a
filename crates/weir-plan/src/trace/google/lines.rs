//! The fields of a line of `instance_events`, from CSV with a head or from newline-delimited JSON, as BigQuery exports them.

use std::io::{BufRead, Lines as Text};

use serde_json::Value;

use crate::trace::read::ReadError;

/// The columns that are read, in the order of [`Column`]; a file may have more. `alloc_collection_id` may be absent, and a
/// request is an object in JSON, or a column with `_` or `.`.
pub const HEAD: &str = "time,type,collection_id,instance_index,priority,alloc_collection_id,resource_request.cpus,resource_request.memory";
const COLUMNS: usize = 8;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// When, in microseconds.
    Time,
    /// What happens.
    Type,
    /// The number of the collection.
    Collection,
    /// The number of the instance in it.
    Instance,
    /// The priority.
    Priority,
    /// The alloc set that it runs in; 0 or nothing for none.
    Alloc,
    /// Requested cores, as a share of the largest machine.
    Cpus,
    /// Requested memory, as a share of the largest machine.
    Memory,
}

/// Lines of a file, one at a time.
pub struct Lines<S> {
    file: String,
    text: Text<S>,
    number: u64,
    /// For each column its place in a line of CSV; `None` for JSON.
    places: Option<[Option<usize>; COLUMNS]>,
    /// A first line that is no head.
    first: Option<String>,
    fields: [String; COLUMNS],
}

impl<S: BufRead> Lines<S> {
    /// Reads the head, where there is one.
    ///
    /// # Errors
    /// It lacks a column, or cannot be read.
    pub fn new(file: &str, source: S) -> Result<Self, ReadError> {
        let mut lines = Self {
            file: file.to_owned(),
            text: source.lines(),
            number: 0,
            places: None,
            first: None,
            fields: Default::default(),
        };
        match lines.line()? {
            Some(line) if line.starts_with('{') => lines.first = Some(line),
            Some(head) => lines.places = Some(places(file, &head)?),
            None => {}
        }
        Ok(lines)
    }

    fn line(&mut self) -> Result<Option<String>, ReadError> {
        for line in self.text.by_ref() {
            self.number += 1;
            let line = line.map_err(|error| ReadError::of(&self.file, self.number, &error))?;
            let line = line.trim_start_matches('\u{feff}').trim();
            if !line.is_empty() {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    /// Takes the next line, and says its number; `None` after the last. A line that is no object has empty fields.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn advance(&mut self) -> Result<Option<u64>, ReadError> {
        let line = match self.first.take() {
            Some(line) => line,
            None => match self.line()? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        match &self.places {
            Some(places) => {
                let mut split = split(&line);
                for (field, place) in self.fields.iter_mut().zip(places) {
                    let there = place.and_then(|place| split.get_mut(place));
                    *field = there.map(std::mem::take).unwrap_or_default();
                }
            }
            None => {
                let object: Value = serde_json::from_str(&line).unwrap_or_default();
                for (field, name) in self.fields.iter_mut().zip(HEAD.split(',')) {
                    *field = text(&object, name);
                }
            }
        }
        Ok(Some(self.number))
    }

    /// A field of the line that was taken; empty where it has none.
    pub fn field(&self, column: Column) -> &str {
        self.fields.get(column as usize).map_or("", String::as_str)
    }
}

/// The places of columns in a head.
fn places(file: &str, head: &str) -> Result<[Option<usize>; COLUMNS], ReadError> {
    let named = split(head);
    let mut places = [None; COLUMNS];
    for (at, (place, name)) in places.iter_mut().zip(HEAD.split(',')).enumerate() {
        let flat = name.replace('.', "_");
        *place = named
            .iter()
            .position(|other| *other == name || *other == flat);
        if place.is_none() && at != Column::Alloc as usize {
            return Err(ReadError::NoColumn {
                place: format!("{file}:1"),
                column: name.to_owned(),
                columns: HEAD,
            });
        }
    }
    Ok(places)
}

/// The fields of a line of CSV. One in quotes may have commas, and a quote that is doubled.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => push(&mut fields, '"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => push(&mut fields, letter),
        }
    }
    for field in &mut fields {
        let trimmed = field.trim();
        if trimmed.len() < field.len() {
            *field = trimmed.to_owned();
        }
    }
    fields
}

fn push(fields: &mut [String], letter: char) {
    if let Some(field) = fields.last_mut() {
        field.push(letter);
    }
}

/// A value of an object, of one within it, or of a flattened name. Numbers of 64 bits are exported as strings.
fn text(object: &Value, name: &str) -> String {
    let within = match name.split_once('.') {
        Some((outer, inner)) => object
            .get(outer)
            .and_then(|outer| outer.get(inner))
            .or_else(|| object.get(name.replace('.', "_"))),
        None => object.get(name),
    };
    match within {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}
