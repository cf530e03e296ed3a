//! `weir workload record`: a description of a command, from its accesses while it runs under a tracer.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use weir_linux::memory::names;
use weir_linux::piped::{Piped, has_children};
use weir_linux::tracer::{Tracer, folder};
use weir_model::units::Nanos;
use weir_trace::Format;
use weir_trace::mappings::Mappings;

use super::import::{Description, share, write};
use super::reading::{Read, Reading};
use super::tag::{self, Tag};
use crate::context::{Context, lasts};
use crate::counting::{code_of, on_this_host, passed_on};
use crate::ending::Ending;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::output::{quoted, seconds};
use crate::session::say;
use crate::source::Source;
use crate::studies::WORKLOAD_RECORD;

/// The time between two looks at a stop request, and at what the command has mapped.
const LOOK: Duration = Duration::from_millis(50);

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command runs under a tracer, which sees each access. No trace is kept:
accesses are read as they come.

  qemu    QEMU's user mode with a plugin that `cc` compiles: 30 to 300 times
          slower; threads are distinguished, instructions up to AVX2; it
          follows one process
  lackey  valgrind: 1000 to 3000 times slower, one thread at a time

Without --with the first that is installed is taken. What is written describes
the main process; --children follows those it starts, under lackey.

Examples:
  weir workload record -o sqlite.toml -- sqlite3 t.db 'select count(*) from t'
  weir workload record --for 60s --share 10% -o redis.toml -- redis-server
  weir workload record --time-first -- ./a.out

After --for or Ctrl-C the command is ended, and what was seen until then is
described. Where a signal ends it under qemu, up to 8192 of the last accesses
and blocks of instructions of each thread are missing. A command that fails by
itself is described, too, and its exit code is passed on. Exit codes: 3 where no
tracer is installed.")]
pub struct Args {
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
    /// End the command after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    lasts: Option<Nanos>,
    /// The tracer: qemu, lackey [default: the first that is installed].
    #[arg(long, value_name = "TRACER", value_parser = tracer)]
    with: Option<Tracer>,
    /// Look at this share of the accesses, in windows at equal distances; the command runs faster in between.
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = share)]
    share: f64,
    /// Run the command once without a tracer before, to say how long it will take.
    #[arg(long, conflicts_with = "lasts")]
    time_first: bool,
    /// Follow the processes that it starts, too.
    #[arg(long)]
    children: bool,
    #[command(flatten)]
    tag: Tag,
    #[command(flatten)]
    description: Description,
}

impl Args {
    /// How `weir workload record` records a command where nothing else is asked for.
    pub fn of(command: &[String], lasts: Option<Nanos>, out: Option<PathBuf>) -> Self {
        Self {
            command: command.to_vec(),
            lasts,
            with: None,
            share: 1.0,
            time_first: false,
            children: false,
            tag: Tag::default(),
            description: Description {
                out,
                ..Description::default()
            },
        }
    }

    /// The same with a library that names allocations.
    pub fn tagged(self, tag: Tag) -> Self {
        Self { tag, ..self }
    }

    /// The name of the command.
    fn name(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// The file that has the description.
    pub fn file(&self) -> PathBuf {
        self.description.path(Path::new(self.name()))
    }

    /// Runs the command and describes it, for a study of the description: the file.
    ///
    /// # Errors
    /// No tracer is installed, the command cannot be started, or nothing was seen of it.
    pub fn described(&self, context: &Context) -> Result<PathBuf> {
        described(self, context, true).map(|(file, _)| file)
    }
}

fn tracer(text: &str) -> std::result::Result<Tracer, String> {
    let names: Vec<&str> = Tracer::ALL.iter().map(|tracer| tracer.name()).collect();
    Tracer::named(text).ok_or_else(|| format!("it is one of {}", names.join(", ")))
}

/// The tracer that was asked for, or the first that is there.
fn chosen(args: &Args) -> Result<Tracer> {
    let missing = |why: String| Failure::Missing(anyhow::Error::msg(why));
    match args.with {
        Some(Tracer::Qemu) if args.children => Err(Failure::request(
            "QEMU's plugin follows one process; --children needs --with lackey",
        )),
        Some(tracer) => match tracer.missing() {
            Some(why) => Err(missing(why)),
            None => Ok(tracer),
        },
        None => Tracer::first(args.children).map_err(missing),
    }
}

/// Runs a command of this host and describes it.
///
/// # Errors
/// As [`Args::described`]; or the command failed, and then the exit code is its own.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    on_this_host(context, "weir workload record")?;
    let (_, failed) = described(args, context, false)?;
    passed_on(failed.map(code_of))
}

/// The file that has the description, and how the command ended if it failed.
fn described(
    args: &Args,
    context: &Context,
    is_part: bool,
) -> Result<(PathBuf, Option<ExitStatus>)> {
    let name = args.name();
    let keeping = Keeping::begin(context, WORKLOAD_RECORD)?.is_part(is_part);
    let file = args.description.file(Path::new(name))?;
    let with = chosen(args)?;
    let tag = args.tag.library()?;
    if is_script(name, with)? && !args.children {
        say(&format!(
            "weir: warning: `{name}` is a script, and only its interpreter is followed; --children follows what it starts"
        ));
    }
    if tag.is_some() {
        tag::say_if_static(name);
    }
    say_how_long(args, with, context)?;
    let cannot = |error: std::io::Error| {
        Failure::Work(anyhow::Error::new(error).context(format!("cannot start {}", with.words())))
    };
    let made = folder().map_err(cannot)?;
    let command = with
        .command(&args.command, args.children, &made, tag.as_deref())
        .map_err(cannot)?;
    let tracer = Piped::by_records(command).map_err(cannot)?;
    let process = tracer.process();
    context.stop.waits_for(format!("`{name}` to end"));
    let reading = Reading {
        name,
        format: Some(match with {
            Tracer::Qemu => Format::Drmemtrace,
            Tracer::Lackey => Format::Lackey,
        }),
        share: args.share,
        context,
    };
    let (ended, ends) = channel::<()>();
    let asked = Arc::new(AtomicBool::new(false));
    let has_asked = Arc::clone(&asked);
    let (read, missed) = std::thread::scope(|scope| {
        let watching = scope.spawn(move || {
            let mut mappings = Mappings::default();
            let mut missed = Missed::default();
            let mut ending = Ending::after(args.lasts, process);
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                // Both tracers leave addresses as they are, so that the maps of their process are those of the command.
                if let Ok(maps) = std::fs::read_to_string(format!("/proc/{process}/maps")) {
                    mappings.read(&maps);
                    for (from, to, name) in names::of(process, &maps).iter() {
                        mappings.name(from as u64, to as u64, name);
                    }
                }
                missed.look(with, process);
                let stopped = context.stop.requested();
                // Its end may be seen before it is known that it was asked for.
                if ending.is_due(stopped) {
                    has_asked.store(true, Ordering::Relaxed);
                }
                ending.look(stopped);
            }
            (mappings, missed)
        });
        let read = reading.run(Source::of_tracer(tracer, with, asked));
        drop(ended);
        // Without them parts have numbers for names.
        let (mappings, missed) = watching.join().unwrap_or_default();
        read.map(|read| (Read { mappings, ..read }, missed))
    })?;
    if let Some(what) = missed.words().filter(|_| !args.children) {
        say(&format!("weir: warning: `{name}` {what}"));
    }
    if read.watch.accesses() == 0 {
        return Err(Failure::request(format!(
            "no access of `{name}` was seen; what it printed may say why. If it starts another program, name that one, or take \
             --with lackey --children"
        )));
    }
    if tag.is_some() && !read.mappings.names().any(|name| name.starts_with("site-")) {
        say(&format!("weir: warning: {}", tag::NOTHING));
    }
    let words: Vec<String> = args.command.iter().map(|word| quoted(word)).collect();
    let words = words.join(" ");
    let partial = context.stop.requested();
    let asked = &args.description;
    write(&read, &words, &file, asked, keeping, partial, context)?;
    match partial {
        true => Err(Failure::Partial(format!(
            "stopped: {} is of what was seen until then",
            file.display()
        ))),
        false => Ok((file, read.failed)),
    }
}

/// What a tracer without --children does not follow.
#[derive(Debug, Default)]
struct Missed {
    /// Whether the tracer has begun, which another program may start.
    begun: bool,
    /// What the command became.
    became: Option<PathBuf>,
    children: bool,
}

impl Missed {
    fn look(&mut self, with: Tracer, process: u32) {
        match with.left_for(process) {
            Some(file) if self.begun => self.became = Some(file),
            Some(_) => {}
            None => {
                self.begun = true;
                self.children |= has_children(process);
            }
        }
    }

    fn words(&self) -> Option<String> {
        let whole = "take --with lackey --children";
        match &self.became {
            Some(file) => Some(format!(
                "became another program, {}, which was not followed: record that one, or {whole}",
                file.display()
            )),
            None => self.children.then(|| {
                format!("started other processes, which were not followed: record the one that matters, or {whole}")
            }),
        }
    }
}

/// Whether the command is a script.
///
/// # Errors
/// The tracer cannot start it.
pub fn is_script(name: &str, with: Tracer) -> Result<bool> {
    with.is_script(name)
        .map_err(|why| Failure::request(format!("cannot run `{name}`: {why}")))
}

/// Says how much slower the command will be, and how long it takes where that is known.
fn say_how_long(args: &Args, with: Tracer, context: &Context) -> Result<()> {
    let (least, most) = with.slower();
    let tracer = with.words();
    let slower = format!("{tracer} makes it some {least:.0} to {most:.0} times slower");
    let message = match (args.lasts, args.time_first) {
        (Some(time), _) => format!(
            "{slower}: in {} it does what takes {} to {} without",
            seconds(time.as_secs()),
            seconds(time.as_secs() / most),
            seconds(time.as_secs() / least)
        ),
        (None, true) => {
            let began = Instant::now();
            let mut command = Command::new(&args.command[0]);
            command
                .args(&args.command[1..])
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            let status = command.status().map_err(anyhow::Error::new)?;
            if context.stop.requested() {
                return Err(Failure::Partial(
                    "stopped before the command was recorded".into(),
                ));
            }
            if !status.success() {
                say(&format!(
                    "weir: warning: without a tracer the command failed: {status}"
                ));
            }
            let took = began.elapsed().as_secs_f64();
            format!(
                "it took {} without {tracer}, which makes it some {least:.0} to {most:.0} times slower: about {} to {}",
                seconds(took),
                seconds(took * least),
                seconds(took * most)
            )
        }
        (None, false) => format!("{slower}; --for ends it after a time"),
    };
    context.note(&message);
    Ok(())
}
