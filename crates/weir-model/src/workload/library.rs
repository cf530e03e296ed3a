//! The workloads that come with Weir, and files of users.

use std::sync::LazyLock;

use super::{Workload, read};
use crate::diagnostic::{Mistakes, closest};
use crate::embedded::WORKLOADS;
use crate::toml;

/// Descriptions by name.
#[derive(Debug, Clone)]
pub struct Workloads {
    all: Vec<Workload>,
}

impl Workloads {
    /// Those that come with Weir, by name. They are read once; rules and studies ask again and again.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Workloads> = LazyLock::new(Workloads::read_builtin);
        BUILTIN.clone()
    }

    fn read_builtin() -> Self {
        // A test reads every embedded file without a mistake.
        let mut all: Vec<Workload> = WORKLOADS
            .files("")
            .filter_map(|(name, text)| Self::check(name, text).ok())
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Self { all }
    }

    /// Reads a file. `file` is its name or path, for messages; without its extension it names the
    /// workload.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn check(file: &str, text: &str) -> Result<Workload, Mistakes> {
        toml::read(file, text, "a workload file", |root| read::read(file, root))
    }

    /// Every workload, by name.
    pub fn list(&self) -> &[Workload] {
        &self.all
    }

    /// The workload of this name.
    pub fn get(&self, name: &str) -> Option<&Workload> {
        self.all.iter().find(|w| w.name == name)
    }

    /// Names that are close to one that is not there.
    pub fn close_to(&self, name: &str) -> Vec<&str> {
        closest(name, self.all.iter().map(|w| w.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_comes_with_weir_is_without_mistake() {
        for (name, text) in WORKLOADS.files("") {
            match Workloads::check(name, text) {
                Ok(workload) => assert_eq!(workload.name, name),
                Err(mistakes) => panic!("{mistakes}"),
            }
        }
    }
}
