//! A real system to look at: this host, or a recording of another. Recordings can be looked at by
//! every verb that reads the system, and measured by none.

use anyhow::anyhow;
use weir_linux::topology::{self, HostView};
use weir_linux::{Root, recording};
use weir_model::machine::{Identity, MachineKind};

use crate::failure::{Failure, Result};
use crate::machine::{HOST, is_host, refuse_unknown_host};

/// A system and what was found on it.
pub struct System {
    /// Its files.
    pub root: Root,
    /// What they say.
    pub view: HostView,
    /// Which it is: `host`, or the name of the recording's file.
    pub identity: Identity,
}

impl System {
    /// Whether this is a recording.
    pub fn is_recorded(&self) -> bool {
        !self.root.is_live()
    }
}

/// The system of this name: `host`, or a file whose name ends in `.machine`; `None` if the name is
/// that of a model.
///
/// # Errors
/// The recording cannot be read, is of another schema, was cut, or is garbage; or no host has this name.
pub fn find(on: &str) -> Result<Option<System>> {
    refuse_unknown_host(on)?;
    let root = if let Some(file) = recording::is_recording(on) {
        let tree = recording::open(&file).map_err(|error| Failure::Request(anyhow!(error)))?;
        Root::recorded(tree)
    } else if is_host(on) {
        Root::live()
    } else {
        return Ok(None);
    };
    let view = topology::discover(&root);
    Ok(Some(System {
        identity: Identity {
            kind: MachineKind::Host,
            name: if root.is_live() { HOST } else { on }.to_owned(),
            digest: topology::digest(&view, None),
        },
        root,
        view,
    }))
}
