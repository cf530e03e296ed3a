//! Workers that share the work of a verb on models: an engine starts them, and what they measure comes into one store.
//!
//! Each worker is this command with `--part I/N` and a store of its own in a folder that all see. It measures what is
//! asked at its places, and ends where it would need answers of others. Then all stores are merged, and the next round
//! begins, until the verb finds all answers stored. A worker or a head that was killed goes on from what is stored.

mod local;
mod ray;
mod round;
mod slurm;

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use clap::Parser;
use weir_lab::Part;
use weir_sim::PHYSICS;

use crate::cli::{Cli, Verb};
use crate::context::{Context, Engine, Global};
use crate::dispatch;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::store::Store;

use self::round::{Round, Share, processors};

/// Parts for each worker: where one has less to do, it takes another.
const PER_WORKER: usize = 4;
/// Parts for a cluster whose size is not known here.
const MANY: usize = 64;
/// How often workers share what a study asks next; what it asks after that is measured by the head alone.
const ROUNDS: usize = 8;
/// What names the program of workers, with its first words, where it is not this one.
const WORKER: &str = "WEIR_WORKER";

/// The version of this program, as workers and their head compare it.
pub fn version() -> String {
    format!("{}, physics {PHYSICS}", env!("CARGO_PKG_VERSION"))
}

/// Refuses the work of a head of another version: figures of two models are not one result.
///
/// # Errors
/// The versions differ.
pub fn check_head(head: Option<&str>) -> Result<()> {
    match head {
        Some(head) if head != version() => Err(Failure::request(format!(
            "this worker is Weir {}, and its head is Weir {head}: install one version on all machines",
            version()
        ))),
        _ => Ok(()),
    }
}

/// Refuses a verb whose work is not shared.
///
/// # Errors
/// The verb is another one.
pub fn check(verb: &Verb, global: &Global) -> Result<()> {
    let option = match global.engine {
        Some(_) => "--engine",
        None => "--part",
    };
    match verb {
        Verb::Bench(_) | Verb::Design(_) | Verb::Reproduce(_) => Ok(()),
        _ => Err(Failure::request(format!(
            "{option} is of `weir bench`, `weir design` and `weir reproduce`; this command has no work for several workers"
        ))),
    }
}

/// Has workers do what the command line asks for, and prints the result as the command does without them.
///
/// # Errors
/// The request is wrong, the engine is not there, a worker fails again and again, or the user stopped the work.
pub fn run(kind: Engine, context: &Context) -> Result<()> {
    let mut own = context.clone();
    own.global.engine = None;
    own.part = Some(Part::NOTHING);
    let store = own.store_path()?;
    let words = without_engine(&context.typed);
    let folder = folder(context, &store, &words)?;
    let _lock = lock(&folder)?;
    for round in 1..=ROUNDS {
        match again(&own) {
            Err(Failure::Part) => {}
            done => {
                // Its content is in the store now.
                if done.is_ok() {
                    let _ = fs::remove_dir_all(&folder);
                }
                return done;
            }
        }
        let shares = shares(kind, context, &words, &folder, round)?;
        let title = format!("round {round} of workers");
        let mut round = Round {
            progress: Progress::begin(&title, shares.len(), context.global.quiet),
            shares,
            workers: workers(kind, context),
            folder: &folder,
            context,
            done: 0,
        };
        let ended = match kind {
            Engine::Local => local::carry_out(&mut round),
            Engine::Ray => ray::carry_out(&mut round),
            Engine::Slurm => slurm::carry_out(&mut round),
        };
        let Round {
            shares, progress, ..
        } = round;
        progress.end();
        let merged = merge(&store, &shares);
        // Why a worker failed may be why its store cannot be merged.
        ended?;
        merged?;
        if context.stop.requested() {
            return Err(Failure::Partial(format!(
                "stopped: what workers measured is kept in {}; the same command goes on",
                store.display()
            )));
        }
        merge(&folder.join("all.sqlite"), &shares)?;
    }
    own.part = None;
    let done = again(&own);
    if done.is_ok() {
        let _ = fs::remove_dir_all(&folder);
    }
    done
}

/// The verb in this process.
fn again(context: &Context) -> Result<()> {
    let words = std::iter::once("weir").chain(context.typed.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| Failure::request(error.to_string()))?;
    dispatch::run(cli.verb, context)
}

fn merge(store: &Path, shares: &[Share]) -> Result<()> {
    let mut store = Store::open(store)?;
    // A worker that found no room for its store leaves an empty file.
    let has_begun = |share: &&Share| {
        fs::metadata(&share.store).is_ok_and(|file| file.is_file() && file.len() > 0)
    };
    for share in shares.iter().filter(has_begun) {
        store.merge(&share.store)?;
    }
    Ok(())
}

/// The words of a command line without those that workers get otherwise.
fn without_engine(typed: &[String]) -> Vec<String> {
    const WITH_VALUE: [&str; 4] = ["--engine", "--workers", "--worker-folder", "--store"];
    let mut words = Vec::new();
    let mut typed = typed.iter();
    while let Some(word) = typed.next() {
        let (name, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        match (WITH_VALUE.contains(&name), value) {
            (true, None) => drop(typed.next()),
            (true, Some(_)) => {}
            (false, _) if ["-q", "--quiet"].contains(&name) => {}
            (false, _) => words.push(word.clone()),
        }
    }
    words
}

/// Where workers keep what they measure: of one command, version and seed.
fn folder(context: &Context, store: &Path, words: &[String]) -> Result<PathBuf> {
    let text = format!("{} {}", version(), shell_words::join(words));
    // FNV-1a (Fowler, Noll, Vo), 64 bits.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let beside = || store.parent().unwrap_or(Path::new(".")).to_owned();
    let above = context.global.worker_folder.clone().unwrap_or_else(beside);
    let folder = above.join(format!("weir-workers-{hash:016x}"));
    let made = fs::create_dir_all(&folder).and_then(|()| fs::canonicalize(&folder));
    made.map_err(|error| {
        let error = anyhow::Error::new(error);
        Failure::Request(error.context(format!(
            "cannot make the folder of workers {}",
            folder.display()
        )))
    })
}

/// Held while a head has its workers in a folder: workers of two would write the same stores, and the first end removes them.
fn lock(folder: &Path) -> Result<Option<File>> {
    let Ok(file) = File::create(folder.join("lock")) else {
        // Workers cannot write there either, and say why.
        return Ok(None);
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::work(format!(
            "another command has its workers in {}; wait for its end, or name another folder with --worker-folder",
            folder.display()
        ))),
        // A file system may have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// How many workers run at once; a cluster of Ray that is there has a size of its own.
fn workers(kind: Engine, context: &Context) -> Option<usize> {
    let asked = context.global.workers.map(usize::from);
    match kind {
        Engine::Ray if std::env::var_os("RAY_ADDRESS").is_some() => asked,
        _ => asked.or_else(|| Some(processors())),
    }
}

/// The parts of a round. A worker that is started again finds what it measured.
fn shares(
    kind: Engine,
    context: &Context,
    words: &[String],
    folder: &Path,
    round: usize,
) -> Result<Vec<Share>> {
    let parts = workers(kind, context).map_or(MANY, |workers| workers * PER_WORKER);
    let program = program()?;
    let known = folder.join("all.sqlite");
    let share = |which: usize| {
        let name = format!("{which}/{parts}");
        let store = folder.join(format!("round-{round}-part-{which}-of-{parts}.sqlite"));
        // What all have measured in the rounds before.
        if round > 1 && known.is_file() && !store.is_file() {
            copy(&known, &store)?;
        }
        let mut command = program.clone();
        command.extend(words.iter().map(OsString::from));
        command.extend(
            ["--quiet", "--part", &name, "--head", &version(), "--store"].map(OsString::from),
        );
        command.push(store.clone().into());
        Ok(Share {
            name,
            command,
            store,
        })
    };
    (1..=parts).map(share).collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // A copy that is cut short has another name.
    let part = to.with_extension("copy");
    let done = fs::copy(from, &part).and_then(|_| fs::rename(&part, to));
    done.map_err(|error| {
        Failure::Work(anyhow::Error::new(error).context(format!("cannot write {}", to.display())))
    })
}

/// What workers run.
fn program() -> Result<Vec<OsString>> {
    if let Ok(named) = std::env::var(WORKER) {
        let words = shell_words::split(&named)
            .map_err(|error| Failure::request(format!("{WORKER}: {error}")))?;
        if words.is_empty() {
            return Err(Failure::request(format!(
                "{WORKER} is empty; it names the program of workers"
            )));
        }
        return Ok(words.into_iter().map(OsString::from).collect());
    }
    let own = std::env::current_exe();
    let own = own.map_err(|error| {
        Failure::Work(anyhow::Error::new(error).context("cannot find this program for workers"))
    })?;
    Ok(vec![own.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_get_the_words_of_the_head_without_those_of_engines() {
        let typed = [
            "design",
            "--file",
            "a b.toml",
            "--engine=ray",
            "--workers",
            "3",
            "-q",
            "--store",
            "x",
            "--seed",
            "2",
        ];
        let words = without_engine(&typed.map(String::from));
        assert_eq!(words, ["design", "--file", "a b.toml", "--seed", "2"]);
    }

    #[test]
    fn a_head_of_another_version_is_refused_with_both() {
        check_head(None).unwrap();
        check_head(Some(&version())).unwrap();
        let refused = check_head(Some("0.0.1, physics 1"))
            .unwrap_err()
            .message()
            .unwrap();
        assert!(
            refused.contains("0.0.1, physics 1") && refused.contains(&version()),
            "{refused}"
        );
    }
}
