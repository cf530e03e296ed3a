//! The report: runs as one page that needs nothing else, neither a network nor a second file.

mod chapters;
pub mod figures;
mod head;
mod insight;
mod page;
mod plate;

use weir_lab::interplay::Matrix;
use weir_model::document::{BenchDocument, Point};
use weir_model::units::Nanos;

use crate::render::chart;
use crate::store::RunId;

pub use insight::Insight;
pub use page::{fragment, page, table};

/// A run that figures are from.
pub trait Cited {
    /// What names it under each of its figures.
    fn origin(&self) -> String;

    /// The command that repeats it.
    fn command(&self) -> &str;
}

/// One run on the page.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its number in the store.
    pub run: RunId,
    /// When it began, in UTC.
    pub began: String,
    /// What was run.
    pub verb: String,
    /// The command that repeats it.
    pub command: String,
    /// What it gave.
    pub document: BenchDocument,
    /// Who hurts whom, where the run is about that.
    pub interplay: Option<Matrix>,
    /// Every latency that was recorded for a point, with its count, shortest first; in the order of
    /// the points.
    pub latencies: Vec<Vec<(Nanos, u64)>>,
}

impl Section {
    /// The machine's name.
    pub fn machine(&self) -> &str {
        &self.document.header.machine.name
    }

    /// The points with their numbers, by which [`Section::latency`] knows them.
    fn numbered(&self) -> impl Iterator<Item = (usize, &Point)> {
        self.document.points.iter().enumerate()
    }

    /// What was recorded for a point; empty where nothing was kept.
    fn latency(&self, point: usize) -> &[(Nanos, u64)] {
        self.latencies.get(point).map_or(&[], Vec::as_slice)
    }
}

impl Cited for Section {
    fn origin(&self) -> String {
        let header = &self.document.header;
        let partial = if header.partial { ", partial" } else { "" };
        format!(
            "run {}{partial} · {} · {} UTC · seed {} · Weir {}",
            self.run, header.machine.name, self.began, header.seed, header.weir
        )
    }

    fn command(&self) -> &str {
        &self.command
    }
}
