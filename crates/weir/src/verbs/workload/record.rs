//! `weir workload record`: a description of a command, from its accesses while it runs under valgrind's lackey.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use weir_linux::piped::{Piped, RECORDS, ask_to_end};
use weir_model::units::Nanos;
use weir_trace::Format;

use super::import::{Description, write};
use super::reading::Reading;
use super::source::Source;
use crate::context::{Context, say};
use crate::counting::on_this_host;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::output::seconds;

/// The words of the command.
pub const VERB: &str = "workload record";
/// How much longer a command takes under lackey, which writes each access as a line with a system call of its own: `sort`
/// 1700 and 2700 times, `sqlite3` 3000 times, in time of a processor with valgrind 3.19.0.
const SLOWER: (f64, f64) = (1000.0, 3000.0);
/// The time between two looks at a stop request.
const LOOK: Duration = Duration::from_millis(50);
/// How long a command has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command runs under `valgrind --tool=lackey`, which sees each access and makes
it some 1000 to 3000 times slower. No trace is kept: accesses are read as they come.
What is written describes the main process; --children follows those it starts.

Examples:
  weir workload record -o sqlite.toml -- sqlite3 test.db 'select count(*) from t'
  weir workload record --for 60s -o python.toml -- python3 program.py
  weir workload record --time-first -- ./a.out

After --for or Ctrl-C the command is ended, and what was seen until then is
described. Exit codes: 3 where valgrind is not installed.")]
pub struct Args {
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
    /// End the command after this time.
    #[arg(long = "for", value_name = "TIME")]
    lasts: Option<Nanos>,
    /// Run the command once without valgrind before, to say how long it will take.
    #[arg(long, conflicts_with = "lasts")]
    time_first: bool,
    /// Follow the processes that it starts, too.
    #[arg(long)]
    children: bool,
    #[command(flatten)]
    description: Description,
}

/// Runs a command and describes it.
///
/// # Errors
/// Valgrind is not installed, the command cannot be started, or nothing was seen of it.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    on_this_host(context, "weir workload record")?;
    let name = args.command.first().map_or("", String::as_str);
    let keeping = Keeping::begin(context, VERB)?;
    let file = args.description.file(Path::new(name))?;
    if installed(name)? && !args.children {
        say(&format!(
            "weir: warning: `{name}` is a script, and only its interpreter is followed; --children follows what it starts"
        ));
    }
    say_how_long(args, context)?;
    let mut command = Command::new("valgrind");
    command
        .args([
            "--tool=lackey",
            "--trace-mem=yes",
            "--basic-counts=no",
            "-q",
        ])
        .arg(format!("--log-fd={RECORDS}"));
    command.args(match args.children {
        true => ["--trace-children=yes"],
        false => ["--child-silent-after-fork=yes"],
    });
    command.arg("--").args(&args.command);
    let tracer = Piped::by_records(command).map_err(|error| {
        Failure::Work(anyhow::Error::new(error).context("cannot start valgrind"))
    })?;
    let process = tracer.process();
    context.stop.waits_for(format!("`{name}` to end"));
    let reading = Reading {
        name,
        format: Some(Format::Lackey),
        share: 1.0,
        context,
    };
    let (ended, ends) = channel::<()>();
    let read = std::thread::scope(|scope| {
        scope.spawn(move || {
            let began = Instant::now();
            let limit = args
                .lasts
                .map(|time| Duration::from_secs_f64(time.as_secs()));
            let is_over =
                || context.stop.requested() || limit.is_some_and(|limit| began.elapsed() >= limit);
            let mut asked: Option<Instant> = None;
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                match asked {
                    None if is_over() => {
                        ask_to_end(process, false);
                        asked = Some(Instant::now());
                    }
                    Some(at) if at.elapsed() > GRACE => ask_to_end(process, true),
                    _ => {}
                }
            }
        });
        let read = reading.run(Source::of_tracer(tracer));
        drop(ended);
        read
    })?;
    if read.watch.accesses() == 0 {
        return Err(Failure::request(format!(
            "no access of `{name}` was seen; did valgrind say why?"
        )));
    }
    let words = args.command.join(" ");
    let partial = context.stop.requested();
    let asked = &args.description;
    write(&read, &words, &file, asked, keeping, partial, context)?;
    match partial {
        true => Err(Failure::Partial(format!(
            "stopped: {} is of what was seen until then",
            file.display()
        ))),
        false => Ok(()),
    }
}

/// Whether the command is a script.
///
/// # Errors
/// It or valgrind is not there.
fn installed(name: &str) -> Result<bool> {
    let found = Command::new("valgrind")
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    match found {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Failure::Missing(anyhow::anyhow!(
                "valgrind, which sees the accesses of a command, is not installed: apt-get install valgrind"
            )));
        }
        Err(error) => {
            return Err(Failure::Work(
                anyhow::Error::new(error).context("cannot run valgrind"),
            ));
        }
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let program = match name.contains('/') {
        true => Some(PathBuf::from(name)),
        false => std::env::split_paths(&paths)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file()),
    };
    let begin = program.and_then(|program| {
        let mut begin = [0; 2];
        std::fs::File::open(program)
            .ok()?
            .read_exact(&mut begin)
            .ok()?;
        Some(begin)
    });
    match begin {
        None => Err(Failure::request(format!(
            "cannot run `{name}`: there is no such program"
        ))),
        Some(begin) => Ok(begin == *b"#!"),
    }
}

/// Says how much slower the command will be, and how long it takes where that is known.
fn say_how_long(args: &Args, context: &Context) -> Result<()> {
    let (least, most) = SLOWER;
    let slower = format!("valgrind makes it some {least:.0} to {most:.0} times slower");
    let told = match (args.lasts, args.time_first) {
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
                    "weir: warning: without valgrind the command failed: {status}"
                ));
            }
            let took = began.elapsed().as_secs_f64();
            format!(
                "it took {} without valgrind, which makes it some {least:.0} to {most:.0} times slower: about {} to {}",
                seconds(took),
                seconds(took * least),
                seconds(took * most)
            )
        }
        (None, false) => format!("{slower}; --for ends it after a time"),
    };
    context.note(&told);
    Ok(())
}
