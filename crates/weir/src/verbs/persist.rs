//! `weir persist`: whether a program's memory is consistent after a crash, and what it stores, flushes and fences.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use weir_lab::Outcome as _;
use weir_linux::input::Input;
use weir_model::document::Document;
use weir_persist::checker::Limits;
use weir_persist::outcome::PersistCheck;
use weir_persist::{Answer, Checker, Platform, Reader, Recovered};

use crate::context::Context;
use crate::driver::header;
use crate::ending;
use crate::failure::{Failure, Result};
use crate::files;
use crate::keeping::Keeping;
use crate::output::print;
use crate::studies::PERSIST_CHECK;

mod record;

/// What a C program includes.
const HEADER: &str = include_str!("../../../weir-persist/include/weir_persist.h");

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir persist record --pool list.pool -o list.trace -- ./list
  weir persist check list.trace --check './recover --verify'")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

impl Args {
    /// Whether a machine matters: a command is recorded on this host.
    pub fn has_machine(&self) -> bool {
        matches!(self.what, What::Record(_))
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// Look at the states that a crash may leave, and find the first illegal one.
    Check(CheckArgs),
    /// Run a command, and write what it does to a mapped file as a trace.
    Record(record::Args),
    /// Print weir_persist.h, by which a C program marks points, or writes a trace itself.
    #[command(after_help = "Example:\n  weir persist header > weir_persist.h")]
    Header,
}

/// What `check` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
FILE has the stores, flushes and fences of a program (docs/persist.md). A state
is illegal if it does not meet a `require` of the trace, or if --check ends
with another exit code than 0.

Platforms:
  adr                       power fails, and caches are lost
  eadr                      power fails, and caches are kept
  flush-on-fail             power fails, and caches are flushed
  flush-on-fail-incomplete  the same, but power ends before the flush does
  shared-pool               a host that shares volatile memory crashes
  page-cache                power fails, and the pool is a file on a disk
  device-buffer             power fails, and the device's write buffer is lost

Exit codes: 0 all states are legal, 4 one is not, 2 the trace is wrong.

Examples:
  weir persist check list.trace
  weir persist check list.trace --platform eadr
  weir persist check list.trace --check './recover --verify'")]
struct CheckArgs {
    /// The trace, or `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// By which rules stores arrive in the pool.
    #[arg(long, default_value = "adr", value_parser = PossibleValuesParser::new(Platform::ALL.map(Platform::name)), hide_possible_values = true)]
    platform: String,
    /// A command that gets the file of a state as its last argument, and ends
    /// with 0 if recovery from it is right.
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// States of a crash point that are looked at, and of one line at it.
    #[arg(long, value_name = "N", default_value_t = Limits::default().states as u32, value_parser = clap::value_parser!(u32).range(1..))]
    states: u32,
    /// States that --check is run for; those with the same bytes and mark count once.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    images: u32,
    /// Bytes that recovery does not use, such as locks in the pool: stores there
    /// always arrive.
    #[arg(long, value_name = "OFFSET+BYTES", value_parser = range)]
    volatile: Vec<Range<u64>>,
    /// What fails: `power`, or `host` of a shared pool.
    #[arg(long, value_name = "WHAT", value_parser = ["power", "host"])]
    failure: Option<String>,
}

/// Checks a trace, keeps and prints what was found; records one; or prints the header.
///
/// # Errors
/// The trace or an argument is wrong, or a state is illegal.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    match &args.what {
        What::Check(args) => check(args, context),
        What::Record(args) => record::run(args, context),
        What::Header => print(HEADER),
    }
}

fn check(args: &CheckArgs, context: &Context) -> Result<()> {
    let platform = Platform::named(&args.platform).unwrap_or(Platform::Adr);
    possible(platform, args.failure.as_deref())?;
    let keeping = Keeping::begin(context, PERSIST_CHECK)?;
    let limits = Limits {
        states: args.states as usize,
    };
    let found = match &args.check {
        Some(line) => {
            let mut command = CheckCommand::new(line, args.images as usize, context)?;
            follow(
                args,
                context,
                Checker::new(platform, limits, |state: &mut Recovered<'_>| {
                    command.ask(state)
                }),
            )?
        }
        None => {
            let legal = |_: &mut Recovered<'_>| Ok(Answer::Legal);
            follow(args, context, Checker::new(platform, limits, legal))?
        }
    };
    let consistent = found.consistent;
    let header = header(PersistCheck::SCHEMA, context, "");
    let output = found;
    keeping.put(Document { header, output }, None)?;
    match consistent {
        true => Ok(()),
        false => Err(Failure::Illegal),
    }
}

/// Bytes of a pool, as `6656+1536`.
fn range(text: &str) -> std::result::Result<Range<u64>, String> {
    let parsed = text.split_once('+').and_then(|(from, length)| {
        let (from, length): (u64, u64) = (from.parse().ok()?, length.parse().ok()?);
        let ends = from.checked_add(length)?;
        (length > 0).then_some(from..ends)
    });
    parsed.ok_or_else(|| "write it as OFFSET+BYTES, such as 4096+64".into())
}

/// Refuses a failure after which a platform has no states.
fn possible(platform: Platform, failure: Option<&str>) -> Result<()> {
    match (platform, failure) {
        (Platform::SharedPool, Some("power")) => Err(Failure::request(
            "a shared pool of volatile memory keeps nothing when power fails: there is no state to recover from",
        )),
        (Platform::SharedPool, _) | (_, None | Some("power")) => Ok(()),
        (platform, _) => Err(Failure::request(format!(
            "{platform} is persistent memory of one host, whose caches only power takes; a crash of a host is of shared-pool"
        ))),
    }
}

fn follow<C>(args: &CheckArgs, context: &Context, mut checker: Checker<C>) -> Result<PersistCheck>
where
    C: FnMut(&mut Recovered<'_>) -> Result<Answer>,
{
    let name = args.file.display().to_string();
    for bytes in &args.volatile {
        checker.leave_out(bytes.clone());
    }
    let mut reader = Reader::new(open(&args.file)?);
    let platform = Platform::named(&args.platform).unwrap_or(Platform::Adr);
    let mut has_requirement = args.check.is_some();
    let wrong = |error: weir_persist::TraceError| {
        Failure::reading(anyhow::Error::new(error).context(name.clone()))
    };
    while let Some((place, event)) = reader.next_event().map_err(wrong)? {
        match &event {
            weir_persist::Event::By(actor)
                if actor.host > 0 && platform != Platform::SharedPool =>
            {
                return Err(Failure::request(format!(
                    "{name}: line {}: {platform} has one host, 0, but this is host {}; several share a shared-pool",
                    place.line, actor.host
                )));
            }
            weir_persist::Event::Require(required) => {
                has_requirement = true;
                if let Some(own) = args.volatile.iter().find(|own| required.reads(own)) {
                    // A store there always arrives, so that no crash would be named rightly.
                    return Err(Failure::request(format!(
                        "--volatile {}+{}: `require {}` in line {} of {name} reads bytes of it, which recovery would not use; \
                         leave out one of the two",
                        own.start,
                        own.end - own.start,
                        required.name,
                        place.line
                    )));
                }
            }
            weir_persist::Event::Pool(bytes) => {
                if let Some(beyond) = args.volatile.iter().find(|own| own.end > *bytes) {
                    return Err(Failure::request(format!(
                        "--volatile {}+{}: the pool of {name} has {bytes} bytes",
                        beyond.start,
                        beyond.end - beyond.start
                    )));
                }
            }
            _ => {}
        }
        checker.event(&place, &event)?;
        if checker.found().is_some() {
            break;
        }
        if checker.tally().events % 4096 == 0 {
            stopped(context)?;
        }
    }
    checker.finish()?;
    if !has_requirement {
        return Err(Failure::request(format!(
            "{name}: nothing says which states are legal; give --check, or write `require` into the trace"
        )));
    }
    Ok(PersistCheck::of(
        &name,
        platform,
        checker.tally(),
        checker.found(),
    ))
}

fn stopped(context: &Context) -> Result<()> {
    match context.stop.requested() {
        true => Err(Failure::Partial("stopped; nothing is kept".into())),
        false => Ok(()),
    }
}

fn open(file: &Path) -> Result<BufReader<Input>> {
    let opened = Input::open(file)
        .with_context(|| format!("cannot read the trace {}", file.display()))
        .map_err(Failure::Request)?;
    Ok(BufReader::new(opened))
}

/// A command that checks files of states.
struct CheckCommand<'c> {
    context: &'c Context,
    program: String,
    arguments: Vec<String>,
    image: PathBuf,
    seen: Seen,
    most: usize,
}

/// States that were asked about. Two hashes of 64 bits tell them apart; only pages that differ from the last state are hashed.
#[derive(Default)]
struct Seen {
    known: HashSet<(u64, u64)>,
    last: Vec<u8>,
    pages: Vec<(u64, u64)>,
}

impl Seen {
    const PAGE: usize = 4096;

    fn key(&mut self, mark: &str, image: &[u8]) -> (u64, u64) {
        self.last.resize(image.len(), 0);
        self.pages.resize(image.len().div_ceil(Self::PAGE), (0, 0));
        let old = self.last.chunks_mut(Self::PAGE);
        for ((old, new), page) in old.zip(image.chunks(Self::PAGE)).zip(&mut self.pages) {
            if old != new || *page == (0, 0) {
                old.copy_from_slice(new);
                *page = hashes(new);
            }
        }
        hashes((mark, &self.pages))
    }
}

fn hashes(of: impl Hash) -> (u64, u64) {
    let hash = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, &of).hash(&mut hasher);
        hasher.finish()
    };
    (hash(0), hash(1))
}

impl<'c> CheckCommand<'c> {
    fn new(line: &str, most: usize, context: &'c Context) -> Result<Self> {
        let mut words = shell_words::split(line)
            .map_err(|error| Failure::request(format!("--check `{line}`: {error}")))?
            .into_iter();
        let program = words
            .next()
            .ok_or_else(|| Failure::request("--check has no command"))?;
        let image = std::env::temp_dir().join(format!("weir-persist-{}.pool", std::process::id()));
        files::check(&image)?;
        Ok(Self {
            context,
            program,
            arguments: words.collect(),
            image,
            seen: Seen::default(),
            most,
        })
    }

    /// Runs the command for a state whose bytes and mark it has not seen.
    fn ask(&mut self, state: &mut Recovered<'_>) -> Result<Answer> {
        let image = state.image();
        let key = self.seen.key(state.mark(), &image);
        let known = &mut self.seen.known;
        if known.contains(&key) {
            return Ok(Answer::Legal);
        }
        if known.len() >= self.most {
            return Ok(Answer::Unchecked);
        }
        known.insert(key);
        std::fs::write(&self.image, &image)
            .with_context(|| format!("cannot write {}", self.image.display()))?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .arg(&self.image)
            .env("WEIR_MARK", state.mark())
            .env(
                "WEIR_DIRTY_SHUTDOWN",
                if state.shut_down_dirty() { "1" } else { "0" },
            )
            .stderr(Stdio::piped());
        let done = ending::output(&mut command, &self.context.stop)
            .with_context(|| format!("--check `{}` cannot be run", self.program))
            .map_err(Failure::Request)?;
        stopped(self.context)?;
        if done.status.success() {
            return Ok(Answer::Legal);
        }
        let printed = [done.stderr, done.stdout].concat();
        let printed = String::from_utf8_lossy(&printed);
        let first = printed.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Answer::Illegal(match first.is_empty() {
            true => format!("{} ended with {}", self.program, done.status),
            false => first,
        }))
    }
}

impl Drop for CheckCommand<'_> {
    fn drop(&mut self) {
        // It may never have been written.
        let _ = std::fs::remove_file(&self.image);
    }
}
