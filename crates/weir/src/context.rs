//! What every verb is given.

use std::path::PathBuf;

use crate::cli::Global;
use crate::failure::Result;
use crate::interrupt::Stop;
use crate::store::Store;

/// The arguments that every verb takes, and the way to end early.
#[derive(Debug, Clone)]
pub struct Context {
    /// As parsed.
    pub global: Global,
    /// As typed, without the program's name.
    pub typed: Vec<String>,
    /// Whether the user wants the work to end.
    pub stop: Stop,
}

impl Context {
    /// Where runs are kept.
    ///
    /// # Errors
    /// There is no home directory and no file was named.
    pub fn store_path(&self) -> Result<PathBuf> {
        match &self.global.store {
            Some(path) => Ok(path.clone()),
            None => Ok(Store::default_path()?),
        }
    }

    /// A context of usual arguments.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        use clap::Parser as _;
        let cli = crate::cli::Cli::try_parse_from(["weir", "man"]);
        Self {
            global: cli
                .map(|cli| cli.global)
                .unwrap_or_else(|error| panic!("{error}")),
            typed: Vec::new(),
            stop: Stop::on_signals().unwrap_or_else(|error| panic!("{error}")),
        }
    }

    /// Tells the user something that is no result, unless asked to be quiet.
    pub fn note(&self, text: &str) {
        if !self.global.quiet {
            say(text);
        }
    }
}

/// Writes a line to standard error. Where that is gone there is nobody to tell.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
