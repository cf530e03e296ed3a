//! Published figures: the rows that papers print, each with its table, figure or section.

use std::collections::HashSet;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Mistakes, quote};
use crate::embedded::PUBLISHED;
use crate::toml::{self, Table};

pub mod measured;
pub mod mlc_output;

/// Rows that a file may have.
const MOST_ROWS: usize = 10_000;

/// The files of `published/`, in the order in which papers are listed.
const FILES: &[&str] = &[
    "memo.toml",
    "micro23.toml",
    "caption.toml",
    "tpp.toml",
    "supmario.toml",
    "interplay.toml",
    "miku.toml",
    "near-to-far.toml",
    "sap22.toml",
    "sap23.toml",
    "pond.toml",
    "against-pooling.toml",
    "vmware-disagg.toml",
    "cxl-ssd.toml",
    "streamer.toml",
    "directcxl.toml",
    "dbk.toml",
    "cxl-anns.toml",
    "post-optane.toml",
    "coaxial.toml",
    "flac.toml",
];

crate::named! {
    /// What a published row states.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PublishedKind {
        /// Measured alone on its tier: it may set a parameter of the platform.
        Calibration = "calibration",
        /// What a model must predict.
        Result = "result",
        /// Context.
        Claim = "claim",
    }
}

crate::named! {
    /// What a printed number is, where the figure itself may be larger or smaller.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PublishedBound {
        /// The figure is at least that.
        Least = "least",
        /// The figure is at most that.
        Most = "most",
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
    /// Whether it is only a bound. The largest or smallest of what was measured is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<PublishedBound>,
    /// Its unit.
    pub unit: String,
    /// Table, figure or section.
    #[serde(rename = "where")]
    pub place: String,
}

impl Published {
    /// Whether a figure keeps what is only a bound.
    pub fn keeps_bound(&self, figure: f64) -> bool {
        match self.bound {
            Some(PublishedBound::Least) => figure >= self.value,
            Some(PublishedBound::Most) => figure <= self.value,
            None => false,
        }
    }

    /// By how much a figure differs, in percent; 0 if it keeps a bound, `None` of a published 0.
    pub fn difference_pct(&self, figure: f64) -> Option<f64> {
        match self.keeps_bound(figure) {
            true => Some(0.0),
            false => (self.value != 0.0).then(|| (figure - self.value) / self.value * 100.0),
        }
    }
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

/// The papers that come with Weir. They are read once.
pub fn builtin() -> Vec<Paper> {
    static BUILTIN: LazyLock<Vec<Paper>> = LazyLock::new(|| {
        // A test reads every embedded file without a mistake.
        FILES
            .iter()
            .filter_map(|file| parse(file, PUBLISHED.text(file)).ok())
            .collect()
    });
    BUILTIN.clone()
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
    toml::read(file, text, "a file of published figures", read)
}

fn read(root: &Table<'_>) -> Option<Paper> {
    let [name, title, authors, published, url, transcribed] = [
        "paper",
        "title",
        "authors",
        "published",
        "url",
        "transcribed",
    ]
    .map(|key| text(root, key));
    let rows = root.get("row");
    root.done("a paper");
    let rows = rows.and_then(|field| field.tables(MOST_ROWS));
    let paper = name.as_deref().unwrap_or_default();
    let mut ids: HashSet<String> = HashSet::new();
    let mut read = Vec::new();
    for table in rows.iter().flatten() {
        let Some(row) = read_row(table, paper) else {
            continue;
        };
        if !ids.insert(row.id.clone()) {
            let message = format!("the id `{}` is there twice", quote(&row.id));
            table.wrong("id", message, None);
        }
        read.push(row);
    }
    Some(Paper {
        name: name?,
        title: title?,
        authors: authors?,
        published: published?,
        url: url?,
        transcribed: transcribed?,
        rows: read,
    })
}

fn text(table: &Table<'_>, key: &str) -> Option<String> {
    Some(table.need(key, "\"…\"")?.text()?.to_owned())
}

fn read_row(table: &Table<'_>, paper: &str) -> Option<Published> {
    let [id, platform, what, unit, place] =
        ["id", "platform", "what", "unit", "where"].map(|key| text(table, key));
    let condition = table.get("condition");
    let bound = table.get("bound");
    let value = table.need("value", "214");
    let kind = table.need("kind", "\"result\"");
    table.done("a row");
    let value = value.and_then(|field| field.number(f64::MIN..=f64::MAX));
    let kind = kind.and_then(|field| field.word(&PublishedKind::ALL, PublishedKind::name));
    Some(Published {
        condition: match condition {
            Some(field) => field.text()?.to_owned(),
            None => String::new(),
        },
        paper: paper.to_string(),
        id: id?,
        platform: platform?,
        kind: kind?,
        what: what?,
        value: value?,
        bound: match bound {
            Some(field) => Some(field.word(&PublishedBound::ALL, PublishedBound::name)?),
            None => None,
        },
        unit: unit?,
        place: place?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_is_read_without_mistake_and_no_id_stands_twice() {
        let mut ids = HashSet::new();
        assert_eq!(FILES.len(), PUBLISHED.files("").count());
        for file in FILES {
            let paper =
                parse(file, PUBLISHED.text(file)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            assert_eq!(format!("{}.toml", paper.name), *file);
            assert!(!paper.rows.is_empty());
            for row in paper.rows {
                assert!(ids.insert(row.id.clone()), "{} is there twice", row.id);
                assert_eq!(row.paper, paper.name);
            }
        }
        assert_eq!(ids.len(), builtin_rows().len());
    }

    #[test]
    fn a_bound_that_is_kept_is_no_difference() {
        let off = |id: &str, figure: f64| {
            let rows = builtin_rows();
            let row = rows.into_iter().find(|row| row.id == id).unwrap();
            row.difference_pct(figure)
        };
        // At most 3 %, and at least 180 ns.
        assert_eq!(
            [off("PON-031", 0.6), off("PON-031", 6.0)],
            [Some(0.0), Some(100.0)]
        );
        assert_eq!(
            [off("PON-009", 195.0), off("PON-009", 90.0)],
            [Some(0.0), Some(-50.0)]
        );
        assert_eq!(off("SUP-039", 107.0), Some(-50.0));
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
    fn every_mistake_in_a_paper_is_reported_at_once() {
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
            "`authors` must be text in quotes\n --> x.toml:3:11",
            "`row.kind` cannot be `results`\n  --> x.toml:11:8",
            "did you mean `result`?",
            "`row.value` must be a number\n  --> x.toml:13:9",
            "missing key `row.where`\n --> x.toml:8:1",
            "6 mistakes in x.toml",
        ] {
            assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
        }
    }
}
