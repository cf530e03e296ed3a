//! The configuration as a file.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use weir_linux::input::Input;
use weir_steer::config::{Config, Known};

use crate::failure::{Failure, Result};

/// The longest configuration.
const LONGEST: u64 = 1 << 20;

/// Reads a configuration, with the machine file that it names.
///
/// # Errors
/// One of them cannot be read, or has mistakes: each with its line and key.
pub fn read(path: &Path) -> Result<Config> {
    let mut config = read_alone(path)?;
    if let Some(from) = config.known.from.clone() {
        let hint = "; `weir steer calibrate` writes it";
        let known = Known::read(&from.display().to_string(), &text(&from, hint)?)
            .map_err(|mistakes| Failure::request(mistakes.to_string()))?;
        config.known = config.known.or(known);
    }
    Ok(config)
}

/// The machine file that a configuration names.
///
/// # Errors
/// The configuration names none, cannot be read, or has mistakes.
pub fn names_machine(path: &Path) -> Result<PathBuf> {
    read_alone(path)?.known.from.ok_or_else(|| {
        Failure::request(format!(
            "{} names no file for this: add `from = \"/etc/weir/machine.toml\"` to its [machine], or give --out",
            path.display()
        ))
    })
}

/// The folder of the journal that a configuration names; the machine file is not read.
///
/// # Errors
/// The configuration cannot be read, or has mistakes.
pub fn names_journal(path: &Path) -> Result<PathBuf> {
    Ok(read_alone(path)?.journal)
}

fn read_alone(path: &Path) -> Result<Config> {
    Config::read(&path.display().to_string(), &text(path, "")?)
        .map_err(|mistakes| Failure::request(mistakes.to_string()))
}

fn text(path: &Path, hint: &str) -> Result<String> {
    let message = || format!("cannot read the configuration {}{hint}", path.display());
    let mut bytes = Vec::new();
    Input::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
        .with_context(message)
        .map_err(Failure::reading)?;
    String::from_utf8(bytes)
        .with_context(message)
        .map_err(Failure::Request)
}
