//! Values of files of data that say where each is from.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use weir_model::toml::Table;

/// A quantity with a source, or `assumed` with a range that it is in and a reason. `None` after a mistake.
pub fn value<Q: FromStr<Err: Display> + Display + PartialOrd + Copy>(
    of: &Table<'_>,
    key: &str,
    form: &str,
    bounds: RangeInclusive<Q>,
) -> Option<Q> {
    let field = of.need(key, "{ is = \"…\", source = \"…\" }")?;
    let table = field.table()?;
    let is = (table.need("is", form)).and_then(|is| is.quantity_within(form, bounds.clone()));
    let words = match table.get("assumed") {
        None => table.need("source", "\"…\"").and_then(|text| text.text()),
        Some(range) => {
            let ends = range.list("two quantities", 2)?;
            let ends: Vec<Q> = (ends.iter())
                .filter_map(|end| end.quantity_within(form, bounds.clone()))
                .collect();
            if let (Some(is), &[low, high]) = (is, ends.as_slice())
                && !(low..=high).contains(&is)
            {
                let message = format!("{key} is {is}, outside its own range of {low} to {high}");
                field.report(message, None);
                return None;
            }
            if ends.len() != 2 {
                return range.must_be("the lowest and the highest plausible value");
            }
            table.need("why", "\"…\"").and_then(|text| text.text())
        }
    };
    table.done("a value with its source");
    words.and(is)
}
