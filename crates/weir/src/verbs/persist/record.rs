//! `weir persist record`: a trace of what a command stores into a pool, flushes and fences.

use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use weir_linux::piped::Piped;
use weir_linux::tracer::{SourceLines, Tracer, find, folder, persist};
use weir_model::units::{Bytes, Nanos};
use weir_persist::read::MOST_BYTES;

use crate::context::{Context, lasts};
use crate::counting::{code_of, on_this_host, passed_on};
use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::files::New;
use crate::session::say;
use crate::verbs::workload::is_script;

/// The time between two looks at a stop request.
const LOOK: Duration = Duration::from_millis(50);
/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// Digits of the largest pool, for which the file keeps a place.
const DIGITS: usize = 10;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command runs under QEMU's user mode with a plugin that `cc` compiles, some
100 to 300 times slower. The trace begins when it maps the pool; what the pool
has by then is `init`. It has stores, non-temporal stores and locked
instructions, clwb, clflushopt, clflush and fences of all threads and forked
processes. write(2) into the pool counts as a store; msync and fsync are `sync`.
Lines of the program come from addr2line, where it is installed.

Examples:
  weir persist record --pool list.pool -o list.trace -- ./list list.pool
  weir persist check list.trace --check './recover'

The exit code of a command that fails by itself is passed on. Exit codes: 2 the
command never mapped the pool, 3 no tracer is installed, or --map-sync is asked
for and the file system does not do it.")]
pub struct Args {
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
    /// The file that the command maps; it need not be there before.
    #[arg(long, value_name = "FILE")]
    pool: PathBuf,
    /// The file of the trace.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// End the command after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    lasts: Option<Nanos>,
    /// Refuse a file system without MAP_SYNC, where flushed data may be lost with the file's own records.
    #[arg(long)]
    map_sync: bool,
}

/// What the plugin said besides events.
#[derive(Debug, Default)]
struct Said {
    size: Option<u64>,
    /// Whether the file system does MAP_SYNC.
    sync: Option<bool>,
    private: bool,
    started: Option<String>,
    error: Option<String>,
}

/// Runs the command and writes the trace.
///
/// # Errors
/// Nothing can be recorded here, the command does not map the pool, or does what a trace cannot say; or it failed, and
/// then the exit code is its own.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    on_this_host(context, "weir persist record")?;
    let name = args.command.first().map_or("", String::as_str);
    if let Some(why) = persist::missing() {
        return Err(Failure::Missing(anyhow::Error::msg(why)));
    }
    if is_script(name, Tracer::Qemu)? {
        return Err(Failure::request(format!(
            "`{name}` is a script; record the program that runs it"
        )));
    }
    let whole = |path: PathBuf| path.canonicalize().map_err(anyhow::Error::new);
    let program = whole(find(name).unwrap_or_else(|| name.into()))?;
    let pool = whole_path(&args.pool)?;
    if whole_path(&args.out).is_ok_and(|out| out == pool) {
        return Err(Failure::request(format!(
            "--out {} is the pool; name another file for the trace",
            args.out.display()
        )));
    }
    let new = New::begin(&args.out)?;
    let cannot = |error: io::Error| {
        Failure::Work(anyhow::Error::new(error).context("cannot start QEMU with a plugin"))
    };
    let made = folder().map_err(cannot)?;
    let command = persist::command(&program, &args.command, &pool, &made).map_err(cannot)?;
    let began = Instant::now();
    let mut tracer = Piped::by_records(command).map_err(cannot)?;
    context.stop.waits_for(format!("`{name}` to end"));
    let mut events = AtomicU64::new(0);
    let said = follow(args, context, &mut tracer, &new, &events)?;
    let ended = match said.error {
        Some(_) => None,
        None => Some(tracer.wait().map_err(anyhow::Error::new)?.0),
    };
    drop(tracer);
    judge(args, name, &said)?;
    let out = args.out.display();
    new.keep()?;
    context.note(&format!(
        "wrote {out}: {} events in {}",
        events.get_mut(),
        crate::output::seconds(began.elapsed().as_secs_f64())
    ));
    if context.stop.requested() {
        return Err(Failure::Partial(format!(
            "stopped: {out} has what was done until then"
        )));
    }
    if let (Some(status), None) = (ended.filter(|status| !status.success()), args.lasts) {
        say(&format!(
            "weir: warning: `{name}` {}; {out} has what it did until then",
            ending(status)
        ));
        return passed_on(Some(code_of(status)));
    }
    Ok(())
}

/// How a command ended that did not end well.
fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "did not end well".into(),
    }
}

/// The whole path of a file that need not be there.
fn whole_path(file: &Path) -> Result<PathBuf> {
    if let Ok(whole) = file.canonicalize() {
        return match whole.is_dir() {
            true => Err(Failure::request(format!(
                "--pool {} is a folder; name the file that is mapped",
                file.display()
            ))),
            false => Ok(whole),
        };
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = file.file_name().unwrap_or_default();
    let whole = folder
        .canonicalize()
        .map_err(|why| Failure::request(format!("--pool {}: its folder: {why}", file.display())))?;
    Ok(whole.join(name))
}

/// Writes the events of the plugin to the file, until the command ends.
fn follow(
    args: &Args,
    context: &Context,
    tracer: &mut Piped,
    new: &New,
    events: &AtomicU64,
) -> Result<Said> {
    let process = tracer.process();
    let (ended, ends) = channel::<()>();
    let written = std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut ending, mut last) = (Ending::after(args.lasts, process), Instant::now());
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                ending.look(context.stop.requested());
                if last.elapsed() > PROGRESS {
                    last = Instant::now();
                    context.note(&format!("{} events", events.load(Ordering::Relaxed)));
                }
            }
        });
        let written = write(args, tracer, new, events);
        drop(ended);
        written
    });
    written
        .with_context(|| format!("cannot write {}", args.out.display()))
        .map_err(Failure::Work)
}

fn write(args: &Args, tracer: &mut Piped, new: &New, events: &AtomicU64) -> io::Result<Said> {
    let mut out = BufWriter::new(new.file());
    let (mut said, mut lines) = (Said::default(), SourceLines::default());
    writeln!(out, "weir-persist 1")?;
    let place = out.stream_position()?;
    // The size is known at the end.
    writeln!(out, "pool {:DIGITS$}", "")?;
    let words = args.command.join(" ").replace(char::is_control, " ");
    writeln!(out, "# recorded of: {words}")?;
    let mut from = BufReader::with_capacity(1 << 20, tracer);
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // A process that was killed may leave half a line.
        if line.pop() != Some(b'\n') {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(message) = text.strip_prefix('!') {
            said.take(message);
            if said.refuses(args) {
                break;
            }
            continue;
        }
        events.fetch_add(1, Ordering::Relaxed);
        let mut parts = text.split('\t');
        write!(out, "{}", parts.next().unwrap_or_default())?;
        if let Some(place) = parts.next() {
            write!(out, " @{}", lines.of(place, parts.next()))?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    drop(out);
    let mut file = new.file();
    file.seek(SeekFrom::Start(place))?;
    write!(file, "pool {:<DIGITS$}", said.size.unwrap_or_default())?;
    Ok(said)
}

impl Said {
    fn take(&mut self, message: &str) {
        let (word, rest) = message.split_once(' ').unwrap_or((message, ""));
        match word {
            "size" => self.size = rest.parse().ok(),
            "sync" => self.sync = Some(rest == "1"),
            "private" => self.private = true,
            "exec" => self.started = Some(rest.to_owned()),
            _ => self.error = Some(rest.to_owned()),
        }
    }

    /// Whether the command need not go on.
    fn refuses(&self, args: &Args) -> bool {
        self.error.is_some()
            || self.size > Some(MOST_BYTES.get())
            || (args.map_sync && self.sync == Some(false))
    }
}

/// Whether there is a trace, and what is to be known of it.
fn judge(args: &Args, name: &str, said: &Said) -> Result<()> {
    let pool = args.pool.display();
    if let Some(error) = &said.error {
        return Err(Failure::work(format!(
            "`{name}` cannot be recorded: {error}"
        )));
    }
    let Some(size) = said.size else {
        let why = match (said.private, &said.started) {
            (true, _) => {
                "it mapped it with MAP_PRIVATE, so that nothing is stored in the file".into()
            }
            (_, Some(other)) => format!("it started {other}, which is not followed; record that"),
            _ => "is --pool the file that it maps with MAP_SHARED?".to_owned(),
        };
        return Err(Failure::request(format!(
            "`{name}` never mapped {pool}: {why}"
        )));
    };
    if Bytes(size) > MOST_BYTES {
        return Err(Failure::request(format!(
            "{pool} has {}; a pool has {MOST_BYTES} at most",
            Bytes(size)
        )));
    }
    if said.sync == Some(false) {
        let text = format!(
            "the file system of {pool} does not do MAP_SYNC: when this host crashes, it may lose what was flushed; the trace is checked as if it were persistent memory"
        );
        if args.map_sync {
            return Err(Failure::Missing(anyhow::Error::msg(text)));
        }
        say(&format!("weir: warning: {text}"));
    }
    if let Some(other) = &said.started {
        say(&format!(
            "weir: warning: `{name}` started {other}, which is not followed: what it stores into the pool is missing in the trace"
        ));
    }
    Ok(())
}
