//! The configuration as a file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use weir_steer::config::Config;

use crate::failure::{Failure, Result};

/// No configuration is longer than this.
const LONGEST: u64 = 1 << 20;

/// Reads a configuration.
///
/// # Errors
/// It cannot be read, or has mistakes: each with its line and key.
pub fn read(path: &Path) -> Result<Config> {
    let told = || format!("cannot read the configuration {}", path.display());
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
        .with_context(told)
        .map_err(Failure::Request)?;
    let text = String::from_utf8(bytes)
        .with_context(told)
        .map_err(Failure::Request)?;
    Config::read(&path.display().to_string(), &text)
        .map_err(|mistakes| Failure::request(mistakes.to_string()))
}
