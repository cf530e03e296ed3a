//! One value of a platform file: plain, or with its own provenance.

use std::ops::Range;

use toml_edit::{Item, TableLike, Value};

use super::scalar::Scalar;
use super::schema::Key;
use super::{Provenance, Sourced};
use crate::diagnostic::{Collector, closest, did_you_mean, quote};

/// One value of a file.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub sourced: Sourced<Scalar>,
    /// Where the value stands in its file.
    pub span: Range<usize>,
}

/// What came of reading a value.
pub(super) enum Outcome {
    Read(Entry),
    /// It has no source of its own and stands under none; where it stands.
    WithoutSource(Range<usize>),
    /// A mistake was reported.
    Unreadable,
}

/// Reads what stands behind a key, plain or with its own provenance.
pub(super) fn read(
    key: &'static Key,
    item: &Item,
    span: Range<usize>,
    inherited: Option<&str>,
    mistakes: &mut Collector<'_>,
) -> Outcome {
    if let Some(table) = item.as_table_like() {
        return read_with_provenance(key, table, &span, inherited, mistakes);
    }
    let Some(value) = item.as_value() else {
        mistakes.report(
            span,
            Some(key.path),
            format!("`{}` is a list of tables, not a value", key.path),
            Some(format!("write `{} = {}`", key.last(), key.example)),
        );
        return Outcome::Unreadable;
    };
    let scalar = read_scalar(key, value, &span, mistakes);
    match (scalar, inherited) {
        (_, None) => Outcome::WithoutSource(span),
        (None, Some(_)) => Outcome::Unreadable,
        (Some(scalar), Some(source)) => Outcome::Read(Entry {
            sourced: Sourced::from_source(scalar, source),
            span,
        }),
    }
}

fn read_with_provenance(
    key: &'static Key,
    table: &dyn TableLike,
    span: &Range<usize>,
    inherited: Option<&str>,
    mistakes: &mut Collector<'_>,
) -> Outcome {
    const PARTS: [&str; 4] = ["is", "source", "assumed", "why"];
    for (name, item) in table.iter().filter(|(name, _)| !PARTS.contains(name)) {
        let at = table.get_key_value(name).and_then(|(key, _)| key.span());
        mistakes.report(
            at.or(item.span()).unwrap_or_else(|| span.clone()),
            Some(key.path),
            format!(
                "a value takes `is`, `source`, `assumed` and `why`, not `{}`",
                quote(name)
            ),
            did_you_mean(&closest(name, PARTS)),
        );
    }
    let Some(value) = table.get("is").and_then(Item::as_value) else {
        mistakes.report(
            span.clone(),
            Some(key.path),
            format!("`{}` has no `is`", key.path),
            Some(format!(
                "write `{{ is = {}, source = \"…\" }}`",
                key.example
            )),
        );
        return Outcome::Unreadable;
    };
    let value_span = value.span().unwrap_or_else(|| span.clone());
    let scalar = read_scalar(key, value, &value_span, mistakes);
    match read_provenance(key, table, scalar.as_ref(), span, inherited, mistakes) {
        Found::Nothing => Outcome::WithoutSource(value_span),
        Found::Mistake => Outcome::Unreadable,
        Found::Provenance(provenance) => match scalar {
            None => Outcome::Unreadable,
            Some(value) => Outcome::Read(Entry {
                sourced: Sourced { value, provenance },
                span: value_span,
            }),
        },
    }
}

fn read_scalar(
    key: &Key,
    value: &Value,
    span: &Range<usize>,
    mistakes: &mut Collector<'_>,
) -> Option<Scalar> {
    let scalar = match key.kind.read(value) {
        Ok(scalar) => scalar,
        Err(message) => {
            // The help has an example of this very key.
            let message = message
                .split("; write for example")
                .next()
                .unwrap_or_default();
            mistakes.report(
                span.clone(),
                Some(key.path),
                format!("`{}`: {message}", key.path),
                Some(format!(
                    "write for example `{} = {}`",
                    key.last(),
                    key.example
                )),
            );
            return None;
        }
    };
    match within_bounds(key, &scalar) {
        Ok(()) => Some(scalar),
        Err((message, help)) => {
            mistakes.report(span.clone(), Some(key.path), message, help);
            None
        }
    }
}

/// Reads a bare number within the bounds of its key; a mistake was reported where there is none.
pub(crate) fn read_number(
    key: &Key,
    value: &Value,
    span: &Range<usize>,
    mistakes: &mut Collector<'_>,
) -> Option<f64> {
    match read_scalar(key, value, span, mistakes)? {
        Scalar::Number(n) => Some(n),
        Scalar::Word(_) => None,
    }
}

fn within_bounds(key: &Key, scalar: &Scalar) -> Result<(), (String, Option<String>)> {
    match scalar {
        Scalar::Number(n) if (key.low..=key.high).contains(n) => Ok(()),
        Scalar::Number(_) => Err((
            format!("`{}` cannot be {}", key.path, key.kind.show(scalar)),
            Some(format!(
                "it lies between {} and {}",
                key.kind.show(&Scalar::Number(key.low)),
                key.kind.show(&Scalar::Number(key.high))
            )),
        )),
        Scalar::Word(word) => match key.kind.words() {
            Some(words) if !words.contains(&word.as_str()) => Err((
                format!(
                    "`{}` is not {} that is known here",
                    quote(word),
                    key.kind.describe()
                ),
                Some(known(word, &words)),
            )),
            _ => Ok(()),
        },
    }
}

/// Names the known words, the likely one first.
pub(crate) fn known(written: &str, words: &[&str]) -> String {
    let list = format!("known are {}", words.join(", "));
    match did_you_mean(&closest(written, words.iter().copied())) {
        Some(question) => format!("{question} {list}"),
        None => list,
    }
}

/// What a value says about its origin.
enum Found {
    Provenance(Provenance),
    Nothing,
    /// Something wrong, which was reported.
    Mistake,
}

fn read_provenance(
    key: &Key,
    table: &dyn TableLike,
    scalar: Option<&Scalar>,
    span: &Range<usize>,
    inherited: Option<&str>,
    mistakes: &mut Collector<'_>,
) -> Found {
    let text = |name: &str| {
        table
            .get(name)
            .and_then(Item::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_string)
    };
    let Some(assumed) = table.get("assumed") else {
        let source = text("source").or_else(|| match table.contains_key("source") {
            true => None,
            false => inherited.map(str::to_string),
        });
        return source.map_or(Found::Nothing, |source| {
            Found::Provenance(Provenance::Source(source))
        });
    };
    let at = assumed.span().unwrap_or_else(|| span.clone());
    if table.contains_key("source") {
        mistakes.report(
            at.clone(),
            Some(key.path),
            format!("`{}` is both `assumed` and has a `source`", key.path),
            Some("keep the source if it prints this value, else `assumed` and `why`".into()),
        );
    }
    let Some(why) = text("why") else {
        mistakes.report(
            at,
            Some(key.path),
            format!("`{}` is assumed, but not why", key.path),
            Some("add `why = \"…\"`".into()),
        );
        return Found::Mistake;
    };
    let ends: Option<Vec<&Value>> = assumed.as_array().map(|array| array.iter().collect());
    let Some([low, high]) = ends.as_deref() else {
        mistakes.report(
            at,
            Some(key.path),
            "`assumed` is not a pair of values",
            Some(
                "write the lowest and the highest plausible value: `assumed = [\"20\", \"48\"]`"
                    .into(),
            ),
        );
        return Found::Mistake;
    };
    let mut read = |value: &Value| -> Option<Scalar> {
        match key.kind.read_end(value).and_then(|scalar| {
            within_bounds(key, &scalar).map_err(|(message, _)| message)?;
            Ok(scalar)
        }) {
            Ok(scalar) => Some(scalar),
            Err(message) => {
                let span = value.span().unwrap_or_else(|| at.clone());
                mistakes.report(span, Some(key.path), message, None);
                None
            }
        }
    };
    let written = |value: &Value, scalar: &Scalar| match value.as_str() {
        Some(text) => quote(text.trim()),
        None => key.kind.show(scalar),
    };
    let (low_scalar, high_scalar) = (read(low), read(high));
    let (Some(low_scalar), Some(high_scalar)) = (low_scalar, high_scalar) else {
        return Found::Mistake;
    };
    let low_text = written(low, &low_scalar);
    let high_text = written(high, &high_scalar);
    if let (Scalar::Number(low_n), Scalar::Number(high_n)) = (&low_scalar, &high_scalar) {
        if low_n > high_n {
            mistakes.report(
                at,
                Some(key.path),
                format!(
                    "the range of `{}` starts at {low_text} and ends at {high_text}",
                    key.path
                ),
                Some("the lowest value stands first".into()),
            );
            return Found::Mistake;
        }
        if let Some(value @ Scalar::Number(n)) = scalar
            && !(low_n..=high_n).contains(&n)
        {
            mistakes.report(
                at,
                Some(key.path),
                format!(
                    "`{}` is {}, which its own range of {low_text} to {high_text} leaves out",
                    key.path,
                    key.kind.show(value)
                ),
                None,
            );
            return Found::Mistake;
        }
    }
    Found::Provenance(Provenance::Assumed {
        low: low_text,
        high: high_text,
        why,
    })
}
