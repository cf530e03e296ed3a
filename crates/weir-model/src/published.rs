//! Published figures: what papers print, row by row, each with the place where it stands.

use std::collections::HashSet;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml_edit::{Item, Table, TableLike};

use crate::diagnostic::{Collector, Mistakes, closest, did_you_mean, quote};
use crate::recover;

pub mod measured;

/// Larger files are refused unread.
const MOST_BYTES: usize = 1 << 20;

/// The files of `published/`, compiled in.
const FILES: &[(&str, &str)] = &[
    ("memo.toml", include_str!("../../../published/memo.toml")),
    (
        "micro23.toml",
        include_str!("../../../published/micro23.toml"),
    ),
    (
        "caption.toml",
        include_str!("../../../published/caption.toml"),
    ),
    (
        "supmario.toml",
        include_str!("../../../published/supmario.toml"),
    ),
    (
        "interplay.toml",
        include_str!("../../../published/interplay.toml"),
    ),
    ("miku.toml", include_str!("../../../published/miku.toml")),
];

/// What a published row states.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PublishedKind {
    /// Measured alone on its tier: it may set a parameter of the platform.
    Calibration,
    /// What a model must produce by itself.
    Result,
    /// Context.
    Claim,
}

impl PublishedKind {
    /// Every kind.
    pub const ALL: [PublishedKind; 3] = [
        PublishedKind::Calibration,
        PublishedKind::Result,
        PublishedKind::Claim,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            PublishedKind::Calibration => "calibration",
            PublishedKind::Result => "result",
            PublishedKind::Claim => "claim",
        }
    }
}

/// One number printed in a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Its id, unique over all papers.
    pub id: String,
    /// The paper's short name.
    pub paper: String,
    /// The platform, as the paper names it.
    pub platform: String,
    /// What kind of number it is.
    pub kind: PublishedKind,
    /// What was measured.
    pub what: String,
    /// Under which condition; empty where there is nothing to add.
    pub condition: String,
    /// The number as printed.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Table, figure or section.
    #[serde(rename = "where")]
    pub place: String,
}

/// A paper and the numbers it prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Paper {
    /// Its short name: `memo`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Where it appeared.
    pub published: String,
    /// Where to read it.
    pub url: String,
    /// How the numbers were taken from it.
    pub transcribed: String,
    /// The numbers, in the order of the file.
    pub rows: Vec<Published>,
}

/// The papers that come with Weir.
pub fn builtin() -> Vec<Paper> {
    // A test reads every embedded file without a mistake.
    FILES
        .iter()
        .filter_map(|(file, text)| parse(file, text).ok())
        .collect()
}

/// The rows of all papers that come with Weir, paper by paper.
pub fn builtin_rows() -> Vec<Published> {
    builtin().into_iter().flat_map(|paper| paper.rows).collect()
}

/// Reads one file; `file` names it in messages.
///
/// # Errors
/// Every mistake in the text, at its line and column.
pub fn parse(file: &str, text: &str) -> Result<Paper, Mistakes> {
    let mut mistakes = Collector::new(file, text);
    let paper = read(text, &mut mistakes);
    mistakes.finish(paper)
}

const PAPER_KEYS: [&str; 7] = [
    "paper",
    "title",
    "authors",
    "published",
    "url",
    "transcribed",
    "row",
];

const ROW_KEYS: [&str; 8] = [
    "id",
    "platform",
    "kind",
    "what",
    "condition",
    "value",
    "unit",
    "where",
];

fn read(text: &str, mistakes: &mut Collector<'_>) -> Option<Paper> {
    if text.len() > MOST_BYTES {
        let message = "the file is larger than the 1 MiB that published figures may have";
        mistakes.report(0..0, None, message, Some("is this the right file?".into()));
        return None;
    }
    let parsed = recover::parse(text, mistakes)?;
    let root = parsed.document.as_table();
    let mut header = Fields::new(
        root,
        0..0,
        "a paper",
        &PAPER_KEYS,
        parsed.is_whole,
        mistakes,
    );
    let name = header.text("paper");
    let title = header.text("title");
    let authors = header.text("authors");
    let published = header.text("published");
    let url = header.text("url");
    let transcribed = header.text("transcribed");

    let mut rows = Vec::new();
    let mut ids: HashSet<String> = HashSet::new();
    match root.get("row").map(Item::as_array_of_tables) {
        None => {}
        Some(None) => mistakes.report(
            root.get("row").and_then(Item::span).unwrap_or(0..0),
            Some("row"),
            "`row` is not a list of tables",
            Some("write `[[row]]` before each row".into()),
        ),
        Some(Some(tables)) => {
            for table in tables {
                let Some(row) = read_row(
                    table,
                    name.as_deref().unwrap_or_default(),
                    parsed.is_whole,
                    mistakes,
                ) else {
                    continue;
                };
                if !ids.insert(row.id.clone()) {
                    mistakes.report(
                        table.get("id").and_then(Item::span).unwrap_or(0..0),
                        Some("id"),
                        format!("the id `{}` stands twice", quote(&row.id)),
                        None,
                    );
                }
                rows.push(row);
            }
        }
    }
    Some(Paper {
        name: name?,
        title: title?,
        authors: authors?,
        published: published?,
        url: url?,
        transcribed: transcribed?,
        rows,
    })
}

fn read_row(
    table: &Table,
    paper: &str,
    is_whole: bool,
    mistakes: &mut Collector<'_>,
) -> Option<Published> {
    let head = table.span().unwrap_or(0..0);
    let mut fields = Fields::new(table, head, "a row", &ROW_KEYS, is_whole, mistakes);
    let id = fields.text("id");
    let platform = fields.text("platform");
    let kind = fields.kind();
    let what = fields.text("what");
    let condition = if table.contains_key("condition") {
        fields.text("condition")
    } else {
        Some(String::new())
    };
    let value = fields.number("value");
    let unit = fields.text("unit");
    let place = fields.text("where");
    Some(Published {
        id: id?,
        paper: paper.to_string(),
        platform: platform?,
        kind: kind?,
        what: what?,
        condition: condition?,
        value: value?,
        unit: unit?,
        place: place?,
    })
}

/// The keys of one table, all of them texts or numbers.
struct Fields<'t, 'm, 'c> {
    table: &'t dyn TableLike,
    /// Where the table starts, for what is missing. Nothing is said to be missing from a file with
    /// broken lines: it may be on one of them.
    head: Range<usize>,
    is_whole: bool,
    mistakes: &'m mut Collector<'c>,
}

impl<'t, 'm, 'c> Fields<'t, 'm, 'c> {
    fn new(
        table: &'t dyn TableLike,
        head: Range<usize>,
        what: &str,
        known: &[&'static str],
        is_whole: bool,
        mistakes: &'m mut Collector<'c>,
    ) -> Self {
        for (name, _) in table.iter().filter(|(name, _)| !known.contains(name)) {
            let span = table.get_key_value(name).and_then(|(key, _)| key.span());
            mistakes.report(
                span.unwrap_or(0..0),
                Some(name),
                format!("`{}` is not a key of {what}", quote(name)),
                did_you_mean(&closest(name, known.iter().copied())),
            );
        }
        Self {
            table,
            head,
            is_whole,
            mistakes,
        }
    }

    fn item(&mut self, key: &str) -> Option<&'t Item> {
        let item = self.table.get(key);
        if item.is_none() && self.is_whole {
            let message = format!("missing key `{key}`");
            self.mistakes
                .report(self.head.clone(), Some(key), message, None);
        }
        item
    }

    fn wrong(&mut self, key: &str, item: &Item, message: String, help: Option<String>) {
        let span = item.span().unwrap_or_else(|| self.head.clone());
        self.mistakes.report(span, Some(key), message, help);
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let item = self.item(key)?;
        match item.as_str().map(str::trim) {
            Some(text) if !text.is_empty() => Some(text.to_string()),
            Some(_) => {
                self.wrong(key, item, format!("`{key}` is empty"), None);
                None
            }
            None => {
                self.wrong(key, item, format!("`{key}` is not text in quotes"), None);
                None
            }
        }
    }

    fn number(&mut self, key: &str) -> Option<f64> {
        let item = self.item(key)?;
        let number = item
            .as_float()
            .or_else(|| item.as_integer().map(|n| n as f64))
            .filter(|n| n.is_finite());
        if number.is_none() {
            let help = "write the number as printed and its unit under `unit`".into();
            self.wrong(key, item, format!("`{key}` is not a number"), Some(help));
        }
        number
    }

    fn kind(&mut self) -> Option<PublishedKind> {
        let written = self.text("kind")?;
        let names = PublishedKind::ALL.map(PublishedKind::name);
        let kind = PublishedKind::ALL.into_iter().find(|k| k.name() == written);
        if let (None, Some(item)) = (kind, self.table.get("kind")) {
            let message = format!("`{}` is no kind of row", quote(&written));
            let help = did_you_mean(&closest(&written, names))
                .unwrap_or_else(|| format!("known are {}", names.join(", ")));
            self.wrong("kind", item, message, Some(help));
        }
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_is_read_without_mistake_and_no_id_stands_twice() {
        let mut ids = HashSet::new();
        for (file, text) in FILES {
            let paper = parse(file, text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            assert_eq!(format!("{}.toml", paper.name), *file);
            assert!(!paper.rows.is_empty());
            for row in paper.rows {
                assert!(ids.insert(row.id.clone()), "{} stands twice", row.id);
                assert_eq!(row.paper, paper.name);
            }
        }
        assert_eq!(ids.len(), builtin_rows().len());
    }

    #[test]
    fn a_figure_is_found_with_its_place() {
        let rows = builtin_rows();
        let row = rows.iter().find(|row| row.id == "SUP-039").unwrap();
        assert_eq!((row.value, row.unit.as_str()), (214.0, "ns"));
        assert_eq!(row.place, "Table 1");
        assert_eq!(row.platform, "CXL-A");
        assert_eq!(row.kind, PublishedKind::Calibration);
    }

    #[test]
    fn every_mistake_in_a_paper_is_told_at_once() {
        let text = "\
paper = \"x\"
titel = \"X\"
authors = 3
published = \"p\"
url = \"u\"
transcribed = \"t\"

[[row]]
id = \"X-1\"
platform = \"p\"
kind = \"results\"
what = \"w\"
value = \"214 ns\"
unit = \"ns\"
";
        let shown = parse("x.toml", text).unwrap_err().to_string();
        for expected in [
            "missing key `title`",
            "`titel` is not a key of a paper\n --> x.toml:2:1",
            "did you mean `title`?",
            "`authors` is not text in quotes\n --> x.toml:3:11",
            "`results` is no kind of row\n  --> x.toml:11:8",
            "did you mean `result`?",
            "`value` is not a number\n  --> x.toml:13:9",
            "missing key `where`\n --> x.toml:8:1",
            "6 mistakes in x.toml",
        ] {
            assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
        }
    }
}
