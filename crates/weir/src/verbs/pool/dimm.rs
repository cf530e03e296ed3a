//! A slice in a VM: a backend that maps it, and a module of memory (`pc-dimm`) that the guest sees.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_linux::vm::qmp::{Event, QmpError};

use super::steps::Reached;
use super::world::Monitor;
use crate::failure::{Failure, Result};

/// The interval at which a stop is looked for while a guest is waited for.
const LOOK: Duration = Duration::from_millis(100);
/// The guest was asked to eject a module (ACPI 6.5, table 6.12: notifications of devices).
const EJECT: u64 = 3;
/// It is about to (the same, table 6.15: status of an ejection).
const IN_PROGRESS: u64 = 0x84;

/// Why a slice is not where it should be.
#[derive(Debug)]
pub enum Failed {
    /// QEMU refuses: the guest does not have it.
    Refused(String),
    /// QEMU has ended or is silent: it is unknown whether the guest has it.
    Unknown(String),
    /// The work was stopped.
    Stopped(Failure),
}

impl From<QmpError> for Failed {
    fn from(error: QmpError) -> Self {
        match error {
            QmpError::Refused { .. } => Failed::Refused(error.to_string()),
            _ => Failed::Unknown(error.to_string()),
        }
    }
}

/// What became of a slice that a guest was asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Unplugged {
    /// The guest does not have it any more.
    Gone,
    /// The guest keeps it.
    Kept(String),
}

/// The name of the backend of a slice.
pub fn backend(slice: usize) -> String {
    format!("weir-slice-{slice}")
}

/// The name of its module.
pub fn module(slice: usize) -> String {
    format!("weir-dimm-{slice}")
}

/// What QEMU is asked for the backend of a slice.
pub fn backend_of(slice: usize, path: &Path, range: &Range<u64>) -> Value {
    json!({
        "qom-type": "memory-backend-file",
        "id": backend(slice),
        "mem-path": path.to_string_lossy(),
        "size": range.end - range.start,
        "offset": range.start,
        // Not of a private copy: the pool has what the guest writes.
        "share": true,
    })
}

/// Puts a slice into a VM, as far as it is not there. Returns how long the guest took to bring it online; `None` if it
/// has not in time.
///
/// # Errors
/// QEMU refuses, is silent or has ended, or `reached` ends the work.
pub fn plug(
    monitor: &mut dyn Monitor,
    slice: usize,
    path: &Path,
    range: &Range<u64>,
    node: u32,
    limit: Duration,
    reached: &mut dyn FnMut(Reached) -> Result<()>,
) -> std::result::Result<Option<Duration>, Failed> {
    if has_module(monitor, slice)? {
        return Ok(Some(Duration::ZERO));
    }
    if !has_backend(monitor, slice)? {
        monitor.execute("object-add", backend_of(slice, path, range))?;
    }
    reached(Reached::Mapped).map_err(Failed::Stopped)?;
    let began = Instant::now();
    let id = module(slice);
    let device = json!({ "driver": "pc-dimm", "id": id, "memdev": backend(slice), "node": node });
    monitor.execute("device_add", device)?;
    reached(Reached::Plugged).map_err(Failed::Stopped)?;
    let mut online = None;
    wait(monitor, limit, reached, Reached::Plugged, &mut |event| {
        let (source, status) = reported_by_guest(event, &id)?;
        // A guest that cannot use it says so with another status, and has it all the same.
        (source != EJECT && status == 0).then(|| online = Some(began.elapsed()))
    })?;
    Ok(online)
}

/// Asks a guest for a slice, and waits until it is out of the guest or the guest refuses.
///
/// # Errors
/// QEMU is silent or has ended, or `reached` ends the work.
pub fn unplug(
    monitor: &mut dyn Monitor,
    slice: usize,
    limit: Duration,
    reached: &mut dyn FnMut(Reached) -> Result<()>,
) -> std::result::Result<Unplugged, Failed> {
    if !has_module(monitor, slice)? {
        return Ok(Unplugged::Gone);
    }
    let id = module(slice);
    match monitor.execute("device_del", json!({ "id": id })) {
        Ok(_) => {}
        Err(QmpError::Refused { desc, .. })
            if desc.contains("already in the process of unplug") => {}
        Err(QmpError::Refused { desc, .. }) => {
            return Ok(Unplugged::Kept(format!(
                "QEMU does not ask the guest for it: {desc}"
            )));
        }
        Err(error) => return Err(error.into()),
    }
    reached(Reached::Unplugging).map_err(Failed::Stopped)?;
    let mut answer = None;
    wait(monitor, limit, reached, Reached::Unplugging, &mut |event| {
        let is_its = event.data["device"] == json!(id);
        answer = match event.name.as_str() {
            "DEVICE_DELETED" if is_its => Some(Unplugged::Gone),
            "MEM_UNPLUG_ERROR" | "DEVICE_UNPLUG_GUEST_ERROR" if is_its => {
                let why = event.data["msg"].as_str().unwrap_or("it gives no reason");
                Some(Unplugged::Kept(format!(
                    "the guest does not return it: {why}"
                )))
            }
            _ => match reported_by_guest(event, &id) {
                Some((EJECT, status)) if status != 0 && status != IN_PROGRESS => {
                    Some(Unplugged::Kept(format!(
                        "the guest does not return it (ACPI status {status}): its memory is in use and cannot be moved, \
                         or there is no other room for it"
                    )))
                }
                _ => None,
            },
        };
        answer.is_some().then_some(())
    })?;
    match answer {
        Some(answer) => Ok(answer),
        // The event may have come before this connection.
        None if !has_module(monitor, slice)? => Ok(Unplugged::Gone),
        None => Ok(Unplugged::Kept(format!(
            "the guest has not answered within {:.0} s; if it returns the slice later, `weir pool release` finds it so",
            limit.as_secs_f64()
        ))),
    }
}

/// The first of a guest's nodes that has no processors. Only QEMU's monitor for people says which nodes there are.
///
/// # Errors
/// QEMU refuses, is silent or has ended.
pub fn node_without_processors(
    monitor: &mut dyn Monitor,
) -> std::result::Result<Option<u32>, QmpError> {
    let asked = json!({ "command-line": "info numa" });
    let said = monitor.execute("human-monitor-command", asked)?;
    let said = said.as_str().unwrap_or("");
    Ok(said.lines().find_map(|line| {
        let node = line.trim().strip_prefix("node ")?;
        node.strip_suffix(" cpus:")?.parse().ok()
    }))
}

/// Takes the backend of a slice from a VM, whose guest does not have the slice.
///
/// # Errors
/// QEMU refuses, is silent or has ended.
pub fn remove(monitor: &mut dyn Monitor, slice: usize) -> std::result::Result<(), QmpError> {
    if has_backend(monitor, slice)? {
        monitor.execute("object-del", json!({ "id": backend(slice) }))?;
    }
    Ok(())
}

/// Waits for an event for which `is_it` has a value, a while at most; `reached` may end it.
fn wait(
    monitor: &mut dyn Monitor,
    limit: Duration,
    reached: &mut dyn FnMut(Reached) -> Result<()>,
    step: Reached,
    is_it: &mut dyn FnMut(&Event) -> Option<()>,
) -> std::result::Result<(), Failed> {
    let until = Instant::now() + limit;
    loop {
        let now = Instant::now();
        if let Some(event) = monitor.event(until.min(now + LOOK))? {
            if is_it(&event).is_some() {
                return Ok(());
            }
        } else if now >= until {
            return Ok(());
        } else {
            reached(step).map_err(Failed::Stopped)?;
        }
    }
}

/// What the guest's kernel says of a module: by which notification, and its status (ACPI 6.5, `_OST`).
fn reported_by_guest(event: &Event, id: &str) -> Option<(u64, u64)> {
    let info = &event.data["info"];
    let is_its = event.name == "ACPI_DEVICE_OST" && info["device"] == json!(id);
    let reported = is_its.then(|| Some((info["source"].as_u64()?, info["status"].as_u64()?)));
    reported.flatten()
}

fn has_backend(monitor: &mut dyn Monitor, slice: usize) -> std::result::Result<bool, QmpError> {
    let objects = monitor.execute("qom-list", json!({ "path": "/objects" }))?;
    let mut names = objects.as_array().into_iter().flatten();
    Ok(names.any(|object| object["name"] == json!(backend(slice))))
}

fn has_module(monitor: &mut dyn Monitor, slice: usize) -> std::result::Result<bool, QmpError> {
    let devices = monitor.execute("query-memory-devices", json!({}))?;
    let mut devices = devices.as_array().into_iter().flatten();
    Ok(devices.any(|device| device["data"]["id"] == json!(module(slice))))
}
