//! Counts events through `perf_event_open`: of a command, a task, this thread, or the machine.
//!
//! [`units`] finds the counting units in sysfs, [`mod@format`] the places of the fields of an encoding,
//! [`event`] opens and reads one event, [`session`] all events of some portable counters, and [`command`]
//! counts a command from its first instruction, [`Instructions`] a process that runs; [`sample`] records single accesses. The encodings are in the
//! tables of [`weir_model::events`]. A refusal of the kernel is a reason ([`refusal`]).

mod attributes;
pub mod command;
pub mod event;
pub mod format;
mod on_every_cpu;
mod process;
pub mod refusal;
pub mod sample;
pub mod session;
pub mod units;

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;

use weir_model::capability::Unavailable;
use weir_model::events::{CpuId, EventLibrary, EventTable};

use crate::root::Root;
use crate::topology::list;

pub use attributes::{Encoded, Every};
pub use event::Target;
pub(crate) use on_every_cpu::OnEveryCpu;
pub use process::Instructions;
pub use session::Session;

/// Tries to open a cycle counter of this thread, and closes it again.
///
/// # Errors
/// Why the kernel refused.
pub fn probe_core() -> Result<(), Unavailable> {
    let opened = event::Open::one(
        Encoded::CYCLES,
        Target::ThisThread,
        None,
        event::Scope::User,
    );
    opened.map(drop).map_err(|error| refusal::of_core(&error))
}

/// The identity of this processor in tables of events.
///
/// # Errors
/// `/proc/cpuinfo` does not state it.
pub fn cpu_id(root: &Root) -> Result<CpuId, Unavailable> {
    let info = root.head("/proc/cpuinfo", 32 << 10);
    let info = info.get()?;
    let field = |name: &str| {
        let block = info.lines().take_while(|line| !line.trim().is_empty());
        block
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    };
    let number = |name: &str| {
        let text = field(name)
            .ok_or_else(|| Unavailable::because(format!("/proc/cpuinfo has no `{name}`")))?;
        let number = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        number.ok_or_else(|| {
            Unavailable::because(format!("/proc/cpuinfo gives a `{name}` that is no number"))
        })
    };
    if let Some(implementer) = field("CPU implementer") {
        return Ok(CpuId {
            vendor: implementer.to_owned(),
            family: 8,
            model: number("CPU part")?,
            stepping: number("CPU revision").unwrap_or(0),
        });
    }
    Ok(CpuId {
        vendor: field("vendor_id")
            .ok_or_else(|| Unavailable::because("/proc/cpuinfo has no `vendor_id`"))?
            .to_owned(),
        family: number("cpu family")?,
        model: number("model")?,
        stepping: number("stepping")?,
    })
}

/// The table of this processor's events.
///
/// # Errors
/// The processor does not identify itself, or there is no table for it.
pub fn table<'l>(root: &Root, library: &'l EventLibrary) -> Result<&'l EventTable, Unavailable> {
    library.of(&cpu_id(root)?)
}

/// Every processor that is online, to count the whole machine.
///
/// # Errors
/// The kernel does not list them.
pub fn every_cpu(root: &Root) -> Result<Vec<Target>, Unavailable> {
    let online = root.text("/sys/devices/system/cpu/online");
    let cpus = list::parse(online.get()?)?;
    Ok(cpus.into_iter().map(Target::Cpu).collect())
}

/// The threads of a process. Threads that they start later are counted too.
///
/// # Errors
/// There is no such process.
pub fn threads_of(root: &Root, pid: u32) -> Result<Vec<Target>, Unavailable> {
    let names = root.list(&format!("/proc/{pid}/task"));
    let names = (names.get())
        .map_err(|why| Unavailable::because(format!("no process {pid}: {}", why.reason)))?;
    let threads = names.iter().filter_map(|name| name.parse().ok());
    Ok(threads.map(Target::Task).collect())
}

/// Whether the kernel's watchdog occupies a counter of every core.
pub fn watchdog(root: &Root) -> bool {
    root.value::<u32>("/proc/sys/kernel/nmi_watchdog")
        .known()
        .is_some_and(|&on| on != 0)
}
