//! What platform files describe, and the keys of each kind of file.

use std::sync::LazyLock;

use super::group::Group;
use super::key::{FileKind, Key};
use super::{Device, Host, StorageDevice};

/// What a platform file describes, complete with its defaults.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// A server.
    Host(Box<Host>),
    /// A CXL device.
    Device(Box<Device>),
    /// A storage device.
    Storage(Box<StorageDevice>),
}

impl Definition {
    /// The name in expressions.
    pub fn name(&self) -> &str {
        match self {
            Definition::Host(host) => &host.name,
            Definition::Device(device) => &device.name,
            Definition::Storage(device) => &device.name,
        }
    }

    /// One line for lists.
    pub fn summary(&self) -> &str {
        match self {
            Definition::Host(host) => &host.summary,
            Definition::Device(device) => &device.summary,
            Definition::Storage(device) => &device.summary,
        }
    }

    /// The value of `kind` in its file.
    pub fn kind(&self) -> FileKind {
        match self {
            Definition::Host(_) => FileKind::Host,
            Definition::Device(_) => FileKind::Device,
            Definition::Storage(_) => FileKind::Storage,
        }
    }
}

fn keys_of<G: Group>() -> Vec<Key> {
    let mut keys = Vec::new();
    G::add_keys(&mut keys);
    keys
}

static HOST_KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<Host>);
static DEVICE_KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<Device>);
static STORAGE_KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<StorageDevice>);

impl FileKind {
    /// Its keys, in the order of the reference.
    pub fn keys(self) -> &'static [Key] {
        match self {
            FileKind::Host | FileKind::HostDefaults => &HOST_KEYS,
            FileKind::Device | FileKind::DeviceDefaults => &DEVICE_KEYS,
            FileKind::Storage => &STORAGE_KEYS,
        }
    }

    /// The key of this path.
    pub(crate) fn key(self, path: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.path == path)
    }

    /// The sections that its keys form.
    pub(crate) fn sections(self) -> impl Iterator<Item = &'static str> {
        let section = |key: &'static Key| Some(key.path.rsplit_once('.')?.0);
        self.keys().iter().filter_map(section)
    }
}
