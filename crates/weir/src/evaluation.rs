//! Files to evaluate predictions on: counters on local memory and the slowdown that was measured, a row
//! for each workload.
//!
//! The head names the columns: `workload`, `slowdown_pct`, and counters by their portable names;
//! `dram_pct`, `cache_pct` and `store_pct`, what was measured by cause, and `population` may be there too. An empty cell
//! is a counter that is missing.

use std::io::Read;
use std::path::Path;

use anyhow::Context as _;
use weir_insight::documents::MeasuredSlowdown;
use weir_model::capability::Unavailable;
use weir_model::counter_file;
use weir_model::counters::{Counter, CounterSet};
use weir_model::insight::Components;
use weir_model::workload::Population;

use crate::failure::{Failure, Result};
use crate::files;

/// One workload of such a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Its name.
    pub workload: String,
    /// What it was drawn from, where it was.
    pub population: Option<Population>,
    /// Counted on local memory.
    pub local: CounterSet,
    /// Measured on the other.
    pub measured: MeasuredSlowdown,
}

/// A row of such a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its line, the first being 1.
    pub line: u64,
    /// What it says.
    pub counted: Counted,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Workload,
    Population,
    Slowdown,
    Dram,
    Cache,
    Store,
    Counter(Counter),
}

const NAMED: [(&str, Column); 6] = [
    ("workload", Column::Workload),
    ("population", Column::Population),
    ("slowdown_pct", Column::Slowdown),
    ("dram_pct", Column::Dram),
    ("cache_pct", Column::Cache),
    ("store_pct", Column::Store),
];

impl Column {
    fn of(name: &str) -> Option<Self> {
        let name = name.trim();
        let counter = || Counter::ALL.iter().find(|counter| counter.name() == name);
        let named = NAMED.iter().find(|(known, _)| *known == name);
        named
            .map(|&(_, column)| column)
            .or_else(|| counter().map(|&counter| Column::Counter(counter)))
    }
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, or a column or a cell is none: file, line and column are named.
pub fn read(path: &Path) -> Result<Vec<Row>> {
    let name = path.display().to_string();
    let text = files::text(path, "file of rows", counter_file::MOST_BYTES)?;
    parse(&name, text.as_bytes())
}

/// Reads rows.
///
/// # Errors
/// As [`read`].
pub fn parse(name: &str, mut from: impl Read) -> Result<Vec<Row>> {
    let wrong = |line: u64, what: String| Failure::request(format!("{name}:{line}: {what}"));
    let mut text = Vec::new();
    from.read_to_end(&mut text)
        .with_context(|| format!("cannot read {name}"))
        .map_err(Failure::Request)?;
    let mut lines = Lines::of(&text);
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_slice());
    let heads = reader
        .headers()
        .map_err(|error| wrong(1, error.to_string()))?
        .clone();
    let columns: Vec<Column> = heads
        .iter()
        .map(|head| {
            Column::of(head).ok_or_else(|| {
                wrong(
                    1,
                    format!("`{head}` is neither a counter's portable name nor one of the columns"),
                )
            })
        })
        .collect::<Result<_>>()?;
    for needed in [Column::Workload, Column::Slowdown] {
        if !columns.contains(&needed) {
            let name = NAMED
                .iter()
                .find(|(_, c)| *c == needed)
                .map_or("", |(name, _)| *name);
            return Err(wrong(1, format!("there is no column `{name}`")));
        }
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(0, |at| lines.at(at.byte()));
            let what = match error.kind() {
                csv::ErrorKind::UnequalLengths {
                    expected_len, len, ..
                } => format!("{len} cells, where the head has {expected_len}"),
                _ => error.to_string(),
            };
            wrong(line, what)
        })?;
        let line = record.position().map_or(0, |at| lines.at(at.byte()));
        let counted = row(&columns, &heads, &record).map_err(|what| wrong(line, what))?;
        rows.push(Row { line, counted });
    }
    if rows.is_empty() {
        return Err(wrong(1, "there is no workload in it".into()));
    }
    Ok(rows)
}

/// The lines that records begin at. The reader's own count is one behind where lines end as on Windows,
/// and stands at comments and empty lines before a record.
struct Lines<'a> {
    text: &'a [u8],
    seen: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self {
            text,
            seen: 0,
            line: 1,
        }
    }

    /// The line of the record that is read from a byte on; records are asked for in their order.
    fn at(&mut self, byte: u64) -> u64 {
        let from = usize::try_from(byte).map_or(self.text.len(), |at| at.min(self.text.len()));
        while let Some(&next) = self.text.get(self.seen) {
            let ends = self.seen >= from && !matches!(next, b'\r' | b'\n' | b'#');
            if ends {
                break;
            }
            let comment = self.seen >= from && next == b'#';
            let rest = self.text.get(self.seen..).unwrap_or_default();
            let end = rest.iter().position(|&b| b == b'\n');
            match (comment, end) {
                (true, Some(end)) => self.seen += end,
                (true, None) => break,
                (false, _) => {
                    self.line += u64::from(next == b'\n');
                    self.seen += 1;
                }
            }
        }
        self.line
    }
}

fn row(
    columns: &[Column],
    heads: &csv::StringRecord,
    record: &csv::StringRecord,
) -> std::result::Result<Counted, String> {
    let mut workload = String::new();
    let mut local = CounterSet::default();
    let (mut slowdown, mut population) = (None, None);
    let mut components = Components::default();
    for ((column, cell), head) in columns.iter().zip(record).zip(heads) {
        let cell = cell.trim();
        let number = || -> std::result::Result<Option<f64>, String> {
            if cell.is_empty() {
                return Ok(None);
            }
            match cell.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Some(value)),
                _ => Err(format!("`{cell}` in column `{head}` is no number")),
            }
        };
        match column {
            Column::Workload => workload = cell.to_owned(),
            Column::Population if cell.is_empty() => {}
            Column::Population => {
                let known = Population::named(cell);
                let output = || format!("`{cell}` in column `{head}` is no population");
                population = Some(known.ok_or_else(output)?);
            }
            Column::Slowdown => slowdown = number()?,
            Column::Dram => components.dram = number()?,
            Column::Cache => components.cache = number()?,
            Column::Store => components.store = number()?,
            Column::Counter(counter) => match number()? {
                // Above this a number with a fraction no longer tells one count from the next.
                Some(value) if (0.0..9.0e15).contains(&value) => {
                    local.set(*counter, value.round() as u64);
                }
                Some(_) => return Err(format!("`{cell}` in column `{head}` is no count")),
                None => local.set_unavailable(*counter, Unavailable::because("its cell is empty")),
            },
        }
    }
    let slowdown_pct = slowdown.ok_or("`slowdown_pct` is empty")?;
    if let (Some(dram), Some(cache), Some(store)) =
        (components.dram, components.cache, components.store)
    {
        components.other = Some(slowdown_pct - dram - cache - store);
    }
    Ok(Counted {
        workload,
        population,
        local,
        measured: MeasuredSlowdown {
            slowdown_pct,
            components,
        },
    })
}

/// Writes such a file.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, rows: &[Counted]) -> Result<()> {
    let output = || format!("cannot write {}", path.display());
    let mut counters: Vec<Counter> = rows
        .iter()
        .flat_map(|r| r.local.iter().map(|(c, _)| c))
        .collect();
    counters.sort_unstable();
    counters.dedup();
    let mut writer = csv::Writer::from_path(path).with_context(output)?;
    let heads = NAMED
        .iter()
        .map(|(name, _)| *name)
        .chain(counters.iter().map(|c| c.name()));
    writer.write_record(heads).with_context(output)?;
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    for row in rows {
        let parts = row.measured.components;
        let mut cells = vec![
            row.workload.clone(),
            row.population.map_or_else(String::new, |of| of.to_string()),
            row.measured.slowdown_pct.to_string(),
            number(parts.dram),
            number(parts.cache),
            number(parts.store),
        ];
        cells.extend(counters.iter().map(|&counter| {
            row.local
                .get(counter)
                .map_or_else(|_| String::new(), |value| value.to_string())
        }));
        writer.write_record(&cells).with_context(output)?;
    }
    writer.flush().with_context(output).map_err(Failure::Work)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut local = CounterSet::default();
        local.set(Counter::Cycles, 123_456_789_012);
        let mut bare = local.clone();
        bare.set(Counter::Instructions, 7);
        let rows: Vec<Counted> = [("a, b", local), ("c", bare)]
            .map(|(name, local)| Counted {
                workload: name.into(),
                population: Some(Population::MemoryHeavy),
                local,
                measured: MeasuredSlowdown {
                    slowdown_pct: 12.25,
                    components: Components {
                        dram: Some(10.0),
                        ..Components::default()
                    },
                },
            })
            .to_vec();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        write(&path, &rows).unwrap();
        let back = read(&path).unwrap();
        assert_eq!([back[0].line, back[1].line], [2, 3]);
        assert_eq!(back[1].counted, rows[1]);
        assert_eq!(back[0].counted.workload, "a, b");
        let missing = back[0]
            .counted
            .local
            .get(Counter::Instructions)
            .unwrap_err();
        assert_eq!(missing.reason, "its cell is empty");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, output) in [
            (
                "workload,cycles\na,1\n",
                "x.csv:1: there is no column `slowdown_pct`",
            ),
            ("workload,slowdown_pct,cylces\na,1,1\n", "`cylces`"),
            (
                "workload,slowdown_pct,cycles\na,1,5\nb,1,-3\n",
                "x.csv:3: `-3` in column `cycles`",
            ),
            (
                "workload,slowdown_pct,cycles\na,fast,5\n",
                "x.csv:2: `fast` in column",
            ),
            (
                "workload,slowdown_pct\na,\n",
                "x.csv:2: `slowdown_pct` is empty",
            ),
            ("workload,slowdown_pct\n", "no workload"),
            (
                "workload,slowdown_pct\na,1,2\n",
                "x.csv:2: 3 cells, where the head has 2",
            ),
            // As spreadsheets write it, with a comment and an empty line on the way.
            (
                "workload,slowdown_pct\r\na,1\r\n# b\r\n\r\nc,fast\r\n",
                "x.csv:5: `fast` in column",
            ),
            ("workload,slowdown_pct\r\na,1\r\nb\r\n", "x.csv:3: 1 cells"),
        ] {
            let error = parse("x.csv", text.as_bytes()).unwrap_err();
            assert_eq!(error.code(), 2);
            let message = error.message().unwrap();
            assert!(message.contains(output), "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse("x.csv", bytes.as_slice());
        }

        #[test]
        fn no_cell_breaks_a_row(cell in "[^\"\r\n,]{0,30}") {
            let text = format!("workload,slowdown_pct,cycles\nw,1,{cell}\n");
            if let Ok(rows) = parse("x.csv", text.as_bytes()) {
                prop_assert_eq!(rows.len(), 1);
            }
        }
    }
}
