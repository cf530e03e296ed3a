//! The Data Streaming Accelerator: a device that copies by descriptors, through work queues that the
//! administrator has opened to users.
//!
//! This code was written without such a device; layouts follow the DSA Architecture Specification (Intel
//! 341204) and the kernel's `idxd.h`.

mod descriptor;
#[cfg(target_arch = "x86_64")]
mod portal;
pub(crate) mod queue;

use serde::Serialize;
use weir_model::capability::Unavailable;

use crate::root::{Reading, Root};

/// The folder of the driver's devices.
const DEVICES: &str = "/sys/bus/dsa/devices";

/// A work queue to which users may submit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkQueue {
    /// `wq0.1`: queue 1 of device 0.
    pub name: String,
    /// Whether several processes may submit to it; otherwise only one, and no submission is refused.
    pub shared: bool,
    /// Descriptors that it holds.
    pub size: u32,
    /// Bytes that one descriptor may move.
    pub max_transfer: u64,
    /// Descriptors in one batch.
    pub max_batch: u32,
}

impl WorkQueue {
    /// The device that its portal is mapped from.
    pub fn device(&self) -> String {
        format!("/dev/dsa/{}", self.name)
    }
}

/// The first work queue that is enabled for users, shared ones before dedicated ones.
pub fn work_queue(root: &Root) -> Reading<WorkQueue> {
    root.list(DEVICES).and_then(|names| {
        let mut refused = Vec::new();
        let mut found = Vec::new();
        for name in names.into_iter().filter(|name| name.starts_with("wq")) {
            match usable(root, &name) {
                Ok(queue) => found.push(queue),
                Err(why) => refused.push(format!("{name}: {why}")),
            }
        }
        found.sort_by_key(|queue| !queue.shared);
        found.into_iter().next().ok_or_else(|| {
            let why = if refused.is_empty() {
                "there is none".to_owned()
            } else {
                refused.join("; ")
            };
            Unavailable::because(format!("no work queue is enabled for users ({why})"))
        })
    })
}

fn usable(root: &Root, name: &str) -> Result<WorkQueue, Unavailable> {
    let path = |attribute: &str| format!("{DEVICES}/{name}/{attribute}");
    for (attribute, wanted) in [("state", "enabled"), ("type", "user")] {
        let found = root.text(&path(attribute));
        let found = found.get()?;
        if found != wanted {
            return Err(Unavailable::because(format!(
                "{attribute} is {found}, not {wanted}"
            )));
        }
    }
    let mode = root.text(&path("mode"));
    Ok(WorkQueue {
        name: name.to_owned(),
        shared: match mode.get()?.as_str() {
            "shared" => true,
            "dedicated" => false,
            other => {
                return Err(Unavailable::because(format!(
                    "its mode is {other}, neither shared nor dedicated"
                )));
            }
        },
        size: *root.value(&path("size")).get()?,
        max_transfer: *root.value(&path("max_transfer_size")).get()?,
        // Devices without batches do not have the file.
        max_batch: root
            .value(&path("max_batch_size"))
            .known()
            .copied()
            .unwrap_or(1),
    })
}

#[cfg(test)]
mod tests;
