//! The tables that come with Weir, and which of them a processor has.

use super::{CpuId, EventTable, read};
use crate::capability::Unavailable;
use crate::diagnostic::{Mistakes, closest, did_you_mean, quote};
use crate::embedded::EVENTS;

/// The files of `events/`, the oldest processors first.
pub(super) const TABLES: &[&str] = &[
    "skylake-sp",
    "cascade-lake",
    "ice-lake-sp",
    "sapphire-rapids",
    "emerald-rapids",
    "granite-rapids",
    "zen4",
    "zen5",
    "neoverse-v2",
];

/// The text of a table that comes with Weir.
pub(super) fn text(name: &str) -> &'static str {
    EVENTS.text(&format!("{name}.toml"))
}

/// Tables of events, by microarchitecture.
#[derive(Debug, Clone)]
pub struct EventLibrary {
    tables: Vec<EventTable>,
}

impl EventLibrary {
    /// The tables that come with Weir, the oldest processors first.
    pub fn builtin() -> Self {
        // A test reads every embedded file without a mistake.
        let tables = TABLES
            .iter()
            .filter_map(|name| read::table(name, text(name)).ok())
            .collect();
        Self { tables }
    }

    /// Reads a table. `file` is its name or path; without its extension it names the table.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn check(file: &str, text: &str) -> Result<EventTable, Mistakes> {
        read::table(file, text)
    }

    /// Every table.
    pub fn tables(&self) -> &[EventTable] {
        &self.tables
    }

    /// The table of this name, as `--cpu` gives it.
    ///
    /// # Errors
    /// There is no such table; the message lists the known names.
    pub fn get(&self, name: &str) -> Result<&EventTable, Unavailable> {
        let found = self.tables.iter().find(|table| table.is_called(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            let hint = did_you_mean(&closest(name, names.iter().copied()));
            Unavailable::because(format!(
                "no events are known of `{}`; known are {}{}",
                quote(name),
                names.join(", "),
                hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
            ))
        })
    }

    /// The table of a processor.
    ///
    /// # Errors
    /// None is about it.
    pub fn of(&self, cpu: &CpuId) -> Result<&EventTable, Unavailable> {
        self.tables
            .iter()
            .find(|table| table.cpus.iter().any(|known| known.has(cpu)))
            .ok_or_else(|| Unavailable::because(format!("no table of events is about {cpu}")))
    }

    /// The table of a model's processor, by the name of its microarchitecture in a platform file.
    ///
    /// # Errors
    /// None is about it.
    pub fn of_model(&self, microarchitecture: &str) -> Result<&EventTable, Unavailable> {
        let name = match microarchitecture {
            // These are the cores of Cascade Lake as well, which has the same events; some have other names there.
            "skylake-server" => "skylake-sp",
            other => other,
        };
        (self.tables.iter().find(|table| table.name == name)).ok_or_else(|| {
            Unavailable::because(format!("no table of events is about {microarchitecture}"))
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.tables
            .iter()
            .flat_map(|table| {
                let others = table.short.iter().filter(|short| **short != table.name);
                std::iter::once(&table.name).chain(others)
            })
            .map(String::as_str)
    }
}

impl Default for EventLibrary {
    fn default() -> Self {
        Self::builtin()
    }
}
