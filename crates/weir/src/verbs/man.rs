//! `weir man`: the manual, made from the text of `--help`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap_mangen::Man;

use crate::failure::{Failure, Result};
use crate::output::print;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir man | man -l -
  weir man steer run > /usr/local/share/man/man1/weir-steer-run.1
  weir man --output /usr/local/share/man/man1    every page")]
pub struct Args {
    /// The verb, with its subcommand: `steer run` [default: the whole command].
    verb: Vec<String>,
    /// Write every page into this folder, which exists.
    #[arg(long, short, value_name = "FOLDER", conflicts_with = "verb")]
    output: Option<PathBuf>,
}

/// Prints a page of the command's manual as troff, or writes all of them.
///
/// # Errors
/// There is no such verb, or standard output or the folder cannot be written to.
pub fn run(args: &Args, mut command: clap::Command) -> Result<()> {
    if let Some(folder) = &args.output {
        let written = clap_mangen::generate_to(command, folder)
            .with_context(|| format!("cannot write the manual to {}", folder.display()));
        return Ok(written?);
    }
    command.build();
    let mut found = &command;
    for word in &args.verb {
        let next = found.find_subcommand(word);
        found = next.ok_or_else(|| {
            Failure::request(format!("there is no page for `{}`", args.verb.join(" ")))
        })?;
    }
    let mut named = vec!["weir".to_owned()];
    named.extend(args.verb.iter().cloned());
    let page = Man::new(found.clone()).title(named.join("-"));
    let mut text = Vec::new();
    page.render(&mut text)?;
    print(&String::from_utf8_lossy(&text))
}
