//! `weir namespace`: named ranges of memory that processes and hosts share.
//!
//! | file | content |
//! |---|---|
//! | `options` | arguments |
//! | `view` | the document and its table |

mod options;
mod view;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weir_model::units::Nanos;
use weir_namespace::{Change, Create, Keep, Make, NamespaceError, Options, Pool, Resized};

use crate::context::Context;
use crate::counting::on_this_host;
use crate::failure::{Failure, Result};
use crate::session::say;
use options::{ChangeArgs, CreateArgs, InitArgs, Kept, Named, RunArgs, What};

pub use options::Args;
pub use view::NamespacesDocument;

/// Bytes that are filled or compared at a time, at least.
const BLOCK: usize = 1 << 20;

impl From<NamespaceError> for Failure {
    fn from(error: NamespaceError) -> Self {
        use NamespaceError as E;
        // The message has its source already.
        let text = error.to_string();
        match error {
            E::Full { .. }
            | E::Quota { .. }
            | E::TableFull { .. }
            | E::Held { .. }
            | E::InUse { .. }
            | E::Stale { .. }
            | E::Busy { .. }
            | E::LockLost { .. }
            | E::Gone { .. }
            | E::Lost { .. } => Failure::work(text),
            E::Io { what, .. } if what != "open" => Failure::work(text),
            _ => Failure::request(text),
        }
    }
}

/// Does what is asked of a pool.
///
/// # Errors
/// A request is wrong, the pool does not permit it, or its memory cannot be accessed.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    on_this_host(context, "weir namespace")?;
    let options = Options {
        host: args.host.clone(),
        ..Options::default()
    };
    let open = |path: &Path| Pool::open(path, options.clone());
    let look = |path: &Path| {
        let read_only = true;
        Pool::open(
            path,
            Options {
                read_only,
                ..options.clone()
            },
        )
    };
    match &args.what {
        What::Init(args) => {
            let pool = Pool::make(&args.pool, &make(args)?, options)?;
            view::print_pool(context, &pool, None, Vec::new())
        }
        What::Admit(args) => {
            let pool = open(&args.pool)?;
            pool.admit(&args.name)?;
            view::print_pool(
                context,
                &pool,
                None,
                vec![format!("admitted host {}", args.name)],
            )
        }
        What::Create(args) => {
            let pool = open(&args.named.pool)?;
            pool.create(&args.named.name, &create(args)?)?;
            show(context, &pool, &args.named.name, "created")
        }
        What::List(args) => {
            let pool = look(&args.pool)?;
            view::print_pool(context, &pool, args.name.as_deref(), Vec::new())
        }
        What::Resize(args) => {
            let pool = open(&args.named.pool)?;
            let did = match pool.resize(&args.named.name, args.size.get())? {
                Resized::Same => "has that size already:",
                Resized::InPlace => "resized in place:",
                Resized::Moved => "moved:",
            };
            show(context, &pool, &args.named.name, did)
        }
        What::Change(args) => {
            let pool = open(&args.named.pool)?;
            pool.change(&args.named.name, &change(args)?)?;
            show(context, &pool, &args.named.name, "changed")
        }
        What::HandOver(args) => {
            let pool = open(&args.named.pool)?;
            pool.hand_over(&args.named.name, &args.to, args.force)?;
            show(context, &pool, &args.named.name, "handed over")
        }
        What::Destroy(named) => {
            let pool = open(&named.pool)?;
            pool.destroy(&named.name)?;
            view::print_pool(
                context,
                &pool,
                None,
                vec![format!("released {}", named.name)],
            )
        }
        What::Gc(args) => gc(&open(&args.pool)?, context),
        What::Fill(args) => {
            let pool = open(&args.named.pool)?;
            fill(&pool, &args.named, &args.text)?;
            show(context, &pool, &args.named.name, "filled")
        }
        What::Verify(args) => {
            let pool = open(&args.pool)?;
            let did = match (&args.name, &args.text) {
                (Some(name), Some(text)) => {
                    verify(&pool, name, text)?;
                    format!("{name} has the text")
                }
                _ => {
                    if let Some(at) = pool.first_unscrubbed()? {
                        say(&format!(
                            "weir: byte {at} of {} is free and not zero",
                            args.pool.display()
                        ));
                        return Err(Failure::Illegal);
                    }
                    "the table is whole, and what is free is zero".into()
                }
            };
            view::print_pool(context, &pool, args.name.as_deref(), vec![did])
        }
        What::Run(args) => command(&open(&args.named.pool)?, args),
    }
}

fn show(context: &Context, pool: &Pool, name: &str, did: &str) -> Result<()> {
    view::print_pool(context, pool, Some(name), vec![format!("{did} {name}")])
}

fn time(option: &str, time: Nanos) -> Result<Duration> {
    // A year is longer than any lease, and can be added to the time of day.
    match time.get() {
        ns if (1e6..=3.2e16).contains(&ns) => Ok(Duration::from_nanos(ns as u64)),
        ns => Err(Failure::request(format!(
            "{option} is {} s; it must be from 1 ms to a year",
            ns / 1e9
        ))),
    }
}

fn make(args: &InitArgs) -> Result<Make> {
    Ok(Make {
        bytes: args.size.map(|size| size.get()),
        unit: args.unit.map(|unit| unit.get()),
        hosts: args.hosts.clone(),
        places: args.most_hosts,
        entries: args.room,
        holders: 2 * args.room,
        lease: time("--lease", args.lease)?,
        quota: args.quota.map(|quota| quota.get()),
        force: args.force,
    })
}

fn kept(kept: &Kept) -> Result<Option<Keep>> {
    Ok(match (kept.keep, kept.with, kept.lease) {
        (_, Some(pid), _) => Some(Keep::With(pid)),
        (.., Some(lease)) => Some(Keep::For(time("--lease", lease)?)),
        (keep, ..) => keep.then_some(Keep::Forever),
    })
}

fn create(args: &CreateArgs) -> Result<Create> {
    Ok(Create {
        size: args.size.get(),
        align: args.align.map_or(1, |align| align.get()),
        mode: args.mode,
        keep: kept(&args.kept)?.unwrap_or_default(),
        hosts: args.hosts.clone(),
    })
}

fn change(args: &ChangeArgs) -> Result<Change> {
    let mut hosts = args.hosts.clone();
    if hosts.as_ref().is_some_and(|hosts| *hosts == ["none"]) {
        hosts = Some(Vec::new());
    }
    let change = Change {
        mode: args.mode,
        uid: args.uid,
        gid: args.gid,
        hosts,
        keep: kept(&args.kept)?,
    };
    if change == Change::default() {
        return Err(Failure::request(
            "nothing is to be changed: name --mode, --uid, --gid, --hosts, --keep, --while or --lease",
        ));
    }
    Ok(change)
}

fn gc(pool: &Pool, context: &Context) -> Result<()> {
    // Opening has recovered most; what was under way then may be over now.
    let more = pool.recover()?;
    let opened = pool.opened();
    let released: Vec<&String> = opened.released.iter().chain(&more.released).collect();
    let mut did: Vec<String> = released
        .iter()
        .map(|name| format!("released {name}"))
        .collect();
    let (handles, scrubbed) = (
        opened.handles + more.handles,
        opened.scrubbed + more.scrubbed,
    );
    let of = if handles == 1 { "handle" } else { "handles" };
    did.push(format!(
        "{handles} {of} of dead processes dropped, {} scrubbed",
        weir_model::units::Bytes(scrubbed)
    ));
    view::print_pool(context, pool, None, did)
}

/// The text, repeated to a block that begins anew with each block.
fn block(text: &str) -> Result<Vec<u8>> {
    match text.len() {
        0 => Err(Failure::request("--text is empty")),
        bytes => Ok(text.as_bytes().repeat(BLOCK.div_ceil(bytes))),
    }
}

fn fill(pool: &Pool, named: &Named, text: &str) -> Result<()> {
    let block = block(text)?;
    let namespace = pool.map(&named.name, true)?;
    for at in (0..namespace.bytes()).step_by(block.len()) {
        let bytes = (namespace.bytes() - at).min(block.len() as u64) as usize;
        namespace.write_at(at, &block[..bytes])?;
    }
    namespace.flush(0, namespace.bytes() as usize)?;
    Ok(namespace.close()?)
}

fn verify(pool: &Pool, name: &str, text: &str) -> Result<()> {
    let block = block(text)?;
    let namespace = pool.map(name, false)?;
    let mut seen = vec![0; block.len()];
    for at in (0..namespace.bytes()).step_by(block.len()) {
        let bytes = (namespace.bytes() - at).min(block.len() as u64) as usize;
        namespace.read_at(at, &mut seen[..bytes])?;
        let wrong = (0..bytes).find(|nth| seen[*nth] != block[*nth]);
        if let Some(nth) = wrong {
            say(&format!(
                "weir: byte {} of {name} is {:#04x}, and {:#04x} with that text",
                at + nth as u64,
                seen[nth],
                block[nth]
            ));
            return Err(Failure::Illegal);
        }
    }
    Ok(())
}

/// Holds a namespace open while a command runs.
fn command(pool: &Pool, args: &RunArgs) -> Result<()> {
    let namespace = pool.map(&args.named.name, !args.read_only)?;
    let Some((program, words)) = args.command.split_first() else {
        return Err(Failure::request("there is no command"));
    };
    let file = std::path::absolute(pool.path())?;
    let status = Command::new(program)
        .args(words)
        .env("WEIR_NAMESPACE_FILE", file)
        .env("WEIR_NAMESPACE_OFFSET", namespace.offset().to_string())
        .env("WEIR_NAMESPACE_BYTES", namespace.bytes().to_string())
        .status()
        .map_err(|error| {
            Failure::request(format!("cannot start {}: {error}", program.display()))
        })?;
    namespace.close()?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Command(code as u8)),
        None => Err(Failure::work(format!("{}: {status}", program.display()))),
    }
}
