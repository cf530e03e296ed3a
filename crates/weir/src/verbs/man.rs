//! `weir man`: the manual, made from the text of `--help`.

use std::path::{Path, PathBuf};

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
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let written = write_all(&command, folder)
            .with_context(|| format!("cannot write the manual to {}", folder.display()));
        return Ok(written?);
    }
    command.build();
    let mut found = &command;
    for word in &args.verb {
        let next = found.find_subcommand(word);
        found = next.ok_or_else(|| {
            let all = args.verb.join(" ");
            let names = (found.get_subcommands()).map(|command| command.get_name().to_owned());
            let pages = match names.collect::<Vec<String>>().join(", ") {
                none if none.is_empty() => format!("`{}` has no subcommands", found.get_name()),
                names => format!("`{}` has {names}", found.get_name()),
            };
            Failure::request(format!("there is no page for `{all}`; {pages}"))
        })?;
    }
    let mut named = vec!["weir".to_owned()];
    named.extend(args.verb.iter().cloned());
    let page = page(found).title(named.join("-"));
    let mut text = Vec::new();
    page.render(&mut text)?;
    print(&String::from_utf8_lossy(&text))
}

/// A page, at whose foot is the version; clap knows it of the whole command alone.
fn page(command: &clap::Command) -> Man {
    Man::new(command.clone()).source(concat!("weir ", env!("CARGO_PKG_VERSION")))
}

fn write_all(command: &clap::Command, folder: &Path) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_all(below, folder)?;
    }
    page(command).generate_to(folder).map(drop)
}
