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
use std::os::unix::process::{CommandExt, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::memory::ProgramPolicy;
use crate::pin::Pinned;
use crate::root::Root;
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

/// How many processes the kernel has ended for lack of memory since boot: of the machine, or of any control group.
fn ended_for_memory(root: &Root) -> u64 {
    let text = root.text("/proc/vmstat");
    let lines = text.known().map_or("", String::as_str).lines();
    let mut counts = lines.filter_map(|line| line.strip_prefix("oom_kill ")?.parse().ok());
    counts.next().unwrap_or(0)
}

/// How a program ended. `before` is what [`ended_for_memory`] was when it was started.
fn end_of(status: ExitStatus, root: &Root, before: u64) -> String {
    match status.signal() {
        Some(libc::SIGKILL) if ended_for_memory(root) > before => {
            format!(
                "{status}; the kernel ended a process for lack of memory meanwhile, see `dmesg`"
            )
        }
        _ => status.to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_the_kernel_ended_for_lack_of_memory_is_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let root = Root::at(folder.path());
        let killed = ExitStatus::from_raw(libc::SIGKILL);
        assert_eq!(end_of(killed, &root, 0), killed.to_string());
        let vmstat = "pgfault 9\noom_kill 3\ndrop_pagecache 7\n";
        std::fs::write(folder.path().join("proc/vmstat"), vmstat).unwrap();
        assert_eq!(end_of(killed, &root, 3), killed.to_string());
        assert!(end_of(killed, &root, 2).contains("for lack of memory"));
        let other = ExitStatus::from_raw(libc::SIGTERM);
        assert_eq!(end_of(other, &root, 2), other.to_string());
    }
}
