//! The report: runs as one page that needs nothing else, neither a network nor a second file.

pub mod chart;
mod figures;
mod page;

use weir_model::document::BenchDocument;

use crate::store::RunId;

pub use page::page;

/// One run on the page.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its number in the store.
    pub run: RunId,
    /// When it began, in UTC.
    pub began: String,
    /// What was run.
    pub verb: String,
    /// What it gave.
    pub document: BenchDocument,
}

impl Section {
    /// The machine's name.
    pub fn machine(&self) -> &str {
        &self.document.header.machine.name
    }

    /// What names the run under each of its figures.
    pub fn origin(&self) -> String {
        let header = &self.document.header;
        let partial = if header.partial { ", partial" } else { "" };
        format!(
            "run {}{partial} · {} · seed {} · Weir {}",
            self.run, header.machine.name, header.seed, header.weir
        )
    }
}
