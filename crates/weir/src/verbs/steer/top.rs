//! `weir steer top` and `status`: the status, live and once.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use console::Term;
use weir_steer::config::Config;
use weir_steer::control_loop::windows;
use weir_steer::daemon::steer;
use weir_steer::scenario_run::tier_names;
use weir_steer::status::StatusDocument;
use weir_steer::steered::Steered;

use super::model::study;
use super::options::RunArgs;
use super::reporter::{Beginning, Reporter, SharedStatus};
use super::view::view;
use super::{config_file, socket};
use crate::context::{Context, Format};
use crate::failure::{Failure, Result};
use crate::machine::HOST;
use crate::output::{print, print_as, to_json};

/// Lines of a picture that is not drawn on a terminal.
const LINES: usize = 64;
/// The interval between two readings of a host.
const OFTEN: Duration = Duration::from_millis(500);
/// The shortest interval between two pictures of a model.
const PACE: Duration = Duration::from_millis(100);

/// The source of a running controller's status.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir steer status
  weir steer status --config /etc/weir/steer.toml --format json")]
pub struct Asked {
    /// The configuration that names the socket.
    #[arg(long, value_name = "FILE", conflicts_with = "socket")]
    config: Option<PathBuf>,
    /// The status socket [default: /run/weir/steer.sock].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Asked {
    fn path(&self) -> Result<PathBuf> {
        Ok(match (&self.config, &self.socket) {
            (Some(config), _) => config_file::read(config)?.socket,
            (None, Some(socket)) => socket.clone(),
            (None, None) => Config::default().socket,
        })
    }
}

/// Prints the status once.
///
/// # Errors
/// No process steers this host, or it may not be asked.
pub fn status(args: &Asked, context: &Context) -> Result<()> {
    let status = socket::ask(&args.path()?)?;
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(&status)?,
            Format::Table | Format::Csv => look(&status),
        },
    )
}

fn look(status: &StatusDocument) -> String {
    let mut text = view(status, LINES).join("\n");
    text.push('\n');
    text
}

/// Shows the status until a stop is requested: of this host, or of a scenario on a model.
///
/// # Errors
/// No process steers this host, or the scenario cannot run.
pub fn top(args: &RunArgs, context: &Context) -> Result<()> {
    let screen = Screen::new();
    if context.global.on != HOST {
        return of_model(args, context, &screen);
    }
    let asked = Asked {
        config: args.config.clone(),
        socket: args.socket.clone(),
    };
    let path = asked.path()?;
    loop {
        screen.show(&socket::ask(&path)?)?;
        if context.stop.requested() || screen.is_paper() {
            return Ok(());
        }
        thread::sleep(OFTEN);
    }
}

fn of_model(args: &RunArgs, context: &Context, screen: &Screen) -> Result<()> {
    let (chosen, study) = study(args, context, false)?;
    let (options, testbed) = (&study.options, chosen.testbed.as_ref());
    let controller = study.controller(testbed)?;
    let mut machine = testbed.open(options.seed)?;
    let tiers = tier_names(machine.topology());
    let shared = SharedStatus::new(Beginning {
        plant: format!("{}, {}", chosen.identity.name, study.scenario),
        controller: study.policy.name(),
        dry: false,
        window: Duration::from_nanos(options.window.get() as u64),
        tiers: tiers.clone(),
        lost: Vec::new(),
        pid: None,
    });
    let mut left = windows(&study.phases, options.window);
    let stop = context.stop.clone();
    let mut failed = None;
    let each = |shared: &SharedStatus| {
        left = left.saturating_sub(1);
        let status = shared.lock().clone();
        if screen.is_paper() {
            if left == 0 {
                failed = print(&look(&status)).err();
            }
        } else {
            failed = screen.show(&status).err();
            thread::sleep(PACE);
        }
        if left == 0 || failed.is_some() {
            stop.request();
        }
    };
    let phases = study.phases.clone();
    let mut steered = Steered::new(machine.as_mut(), phases, options.quota_period);
    let mut reporter = Reporter::new(shared, None, &context.stop, None, each);
    let ended = steer(
        &mut steered,
        controller,
        options.window,
        &tiers,
        &mut reporter,
    );
    drop(reporter);
    match (failed, ended.failure) {
        (Some(failure), _) => Err(failure),
        (None, Some(why)) => Err(why.into()),
        (None, None) => Ok(()),
    }
}

/// A terminal to draw on, or its replacement.
struct Screen {
    term: Option<Term>,
}

impl Screen {
    fn new() -> Self {
        let term = std::io::stdout().is_terminal().then(Term::stdout);
        if let Some(term) = &term {
            // A terminal without this function shows the picture below the last one.
            let _ = term.hide_cursor().and_then(|()| term.clear_screen());
        }
        Self { term }
    }

    /// Whether nothing can be overwritten.
    fn is_paper(&self) -> bool {
        self.term.is_none()
    }

    fn show(&self, status: &StatusDocument) -> Result<()> {
        let Some(term) = &self.term else {
            return print(&look(status));
        };
        let (height, _) = term.size();
        let mut lines = view(status, usize::from(height).saturating_sub(1));
        lines.push("Ctrl-C ends only this display".into());
        let draw = || {
            term.move_cursor_to(0, 0)?;
            let (last, others) = lines.split_last().map_or(("", &[][..]), |(l, o)| (l, o));
            for line in others {
                term.clear_line()?;
                term.write_line(line)?;
            }
            term.clear_to_end_of_screen()?;
            term.write_str(last)
        };
        draw().map_err(Failure::from)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(term) = &self.term {
            // There is no caller left to inform.
            let _ = term.show_cursor().and_then(|()| term.write_line(""));
        }
    }
}
