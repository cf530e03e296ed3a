//! Real applications: servers and programs of this host, started with their memory on given nodes, driven, and checked.
//!
//! [`table`] has a line for each application. [`server`] runs Redis or memcached in a private folder, and [`serve`] has the
//! client of [`weir_loops::programs`] send it requests. [`program`] runs what is started once: scripts, and Weir's own
//! programs, which tell of their figures by lines ([`weir_loops::programs::report`]). [`residency`] reads where their pages are.

mod folder;
pub mod program;
pub mod residency;
pub mod serve;
pub mod server;
pub mod table;
mod tenant;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::memory::ProgramPolicy;
use crate::pin::Pinned;
pub(crate) use tenant::Running;
use weir_loops::child::end_with_this_thread;
pub use weir_loops::programs::Trouble;

/// Where an application runs: its processors, and the policy of its memory.
#[derive(Debug, Clone, Default)]
pub struct Where {
    /// The processors that it may use; all where none is named.
    pub cpus: Vec<u32>,
    /// The policy of its memory; the kernel's where none is given.
    pub policy: Option<ProgramPolicy>,
}

impl Where {
    /// Starts a command there. It ends with the thread that starts it, and has a process group of its own, so that
    /// Ctrl-C is for Weir.
    fn start(&self, command: &mut Command, named: &str, install: &str) -> Result<Child, Trouble> {
        command.process_group(0);
        end_with_this_thread(command);
        let pinned = match self.cpus.as_slice() {
            [] => None,
            cpus => Some(Pinned::to_any(cpus).map_err(|why| Trouble::Lacks(why.to_string()))?),
        };
        let child = match &self.policy {
            Some(policy) => policy.around(|| command.spawn()),
            None => command.spawn(),
        };
        drop(pinned);
        child.map_err(|error| not_started(named, install, &error))
    }
}

fn not_started(named: &str, install: &str, error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::NotFound => Trouble::Lacks(format!("{named} is not installed: {install}")),
        _ => Trouble::system(format!("{named} does not start"), error),
    }
}

/// What a program says of its version.
fn version(program: &Path, arguments: &[&str], install: &str) -> Result<String, Trouble> {
    let named = program.display().to_string();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let asked = command
        .output()
        .map_err(|error| not_started(&named, install, &error))?;
    let said = String::from_utf8_lossy(&asked.stdout);
    if !asked.status.success() {
        let cause = String::from_utf8_lossy(&asked.stderr);
        let cause = cause.lines().rfind(|line| !line.trim().is_empty());
        return Err(Trouble::Lacks(format!(
            "{named} does not say its version ({}): {install}",
            cause.unwrap_or("no message")
        )));
    }
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}
