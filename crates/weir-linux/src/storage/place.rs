//! What a path is, and whether it can take requests.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weir_model::machine::MachineError;
use weir_model::units::Bytes;

use super::scratch::{Scratch, space};
use super::{Wish, missing, system};
use crate::root::Root;

/// File systems that keep their files in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "hugetlbfs"];
/// Bytes in the sectors that sysfs counts in (kernel documentation, ABI/stable/sysfs-block).
const SECTOR: u64 = 512;

/// The target of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Folder(Folder),
    Device(Device),
}

/// A folder in which a scratch file is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    pub path: PathBuf,
    /// The kind of its file system.
    kind: String,
    capacity: Bytes,
    disk: String,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    pub path: PathBuf,
    pub bytes: Bytes,
    writable: bool,
    disk: String,
}

impl Place {
    pub fn find(root: &Root, wish: &Wish) -> Result<Self, MachineError> {
        let named = wish.path.display();
        let path = fs::canonicalize(&wish.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                MachineError::Request(format!("storage: there is no {named}"))
            }
            io::ErrorKind::PermissionDenied => missing(format!("{named}: {error}; run as root")),
            _ => system(format!("storage {named}"), error),
        })?;
        let about = fs::metadata(&path).map_err(|e| system(format!("storage {named}"), e))?;
        if about.file_type().is_block_device() {
            let disk = Disk::of(root, about.rdev());
            return Device::find(path, disk, wish).map(Place::Device);
        }
        if let Some(write) = &wish.write {
            return Err(MachineError::Request(format!(
                "{} may be written, but storage is {named}, which is not a block device",
                write.display()
            )));
        }
        if !about.is_dir() {
            return Err(MachineError::Request(format!(
                "storage {named} is neither a folder nor a block device; name a folder for a scratch file"
            )));
        }
        let disk = Disk::of(root, about.dev());
        Folder::find(root, path, disk).map(Place::Folder)
    }

    pub fn capacity(&self) -> Bytes {
        match self {
            Place::Folder(folder) => folder.capacity,
            Place::Device(device) => device.bytes,
        }
    }

    pub fn describe(&self) -> String {
        match self {
            Place::Folder(Folder {
                path, kind, disk, ..
            }) => format!("scratch file in {} ({kind}), {disk}", path.display()),
            Place::Device(Device { path, disk, .. }) => format!("{}, {disk}", path.display()),
        }
    }

    pub fn only_reads(&self) -> Option<String> {
        match self {
            Place::Device(Device {
                path,
                writable: false,
                ..
            }) => {
                let path = path.display();
                Some(format!(
                    "it would overwrite {path}; if nothing on it is needed, add --write-device {path}"
                ))
            }
            _ => None,
        }
    }
}

impl Folder {
    /// A folder that was not examined: tests run on any file system.
    #[cfg(test)]
    pub fn unchecked(path: PathBuf) -> Self {
        Self {
            capacity: Bytes::mib(64),
            disk: "no disk".to_owned(),
            kind: "no kind".to_owned(),
            path,
        }
    }

    fn find(root: &Root, path: PathBuf, disk: Disk) -> Result<Self, MachineError> {
        let named = path.display();
        let mounts = root.text("/proc/self/mountinfo");
        let mounts = mounts.known().map_or("", String::as_str);
        let kind = kind_of(mounts, &path).unwrap_or_else(|| "an unknown file system".to_owned());
        if IN_MEMORY.contains(&kind.as_str()) {
            return Err(MachineError::Request(format!(
                "storage {named} is on {kind}, which keeps its files in memory; name a folder on a disk's file system"
            )));
        }
        let scratch = Scratch::make(&path)?;
        direct(&scratch.path(), false, 0).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => MachineError::Request(format!(
                "storage {named} is on {kind}, which does not take direct requests (O_DIRECT); name a folder on another file system, such as ext4 or XFS"
            )),
            _ => system(format!("opening a scratch file in {named} directly"), error),
        })?;
        Ok(Self {
            capacity: space(&path)?.all,
            disk: disk.describe(),
            kind,
            path,
        })
    }
}

impl Device {
    fn find(path: PathBuf, disk: Disk, wish: &Wish) -> Result<Self, MachineError> {
        let named = path.display();
        let writable = match &wish.write {
            None => false,
            Some(write) if fs::canonicalize(write).is_ok_and(|write| write == path) => true,
            Some(write) => {
                return Err(MachineError::Request(format!(
                    "{} may be written, but storage is {named}; both must name one device",
                    write.display()
                )));
            }
        };
        // Exclusive: the kernel refuses a device that is mounted or otherwise in use.
        let exclusive = if writable { libc::O_EXCL } else { 0 };
        direct(&path, writable, exclusive).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => MachineError::Request(format!(
                "storage {named} is in use (mounted, or part of another device), so it is not written"
            )),
            Some(libc::EACCES | libc::EPERM) => missing(format!("{named}: {error}; run as root")),
            _ => system(format!("opening {named} directly"), error),
        })?;
        Ok(Self {
            bytes: disk.bytes,
            disk: disk.describe(),
            writable,
            path,
        })
    }
}

fn direct(path: &Path, write: bool, more: i32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    options.custom_flags(libc::O_DIRECT | more);
    options.open(path).map(drop)
}

/// The kind of a path's file system, from the kernel's list of mounts (proc(5)): `36 35 98:0 / /mnt
/// rw,noatime master:1 - ext4 /dev/sda1 rw`.
pub(super) fn kind_of(mounts: &str, path: &Path) -> Option<String> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let (Some(point), Some(kind)) = (before.split(' ').nth(4), after.split(' ').next()) else {
            continue;
        };
        let point = unescape(point);
        let depth = Path::new(&point).components().count();
        // Of two mounts at one place the later one is visible.
        if path.starts_with(&point) && best.is_none_or(|(deepest, _)| depth >= deepest) {
            best = Some((depth, kind));
        }
    }
    best.map(|(_, kind)| kind.to_owned())
}

/// White space is written there as three octal digits after a backslash.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|d| u8::from_str_radix(d, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

/// A block device in words, and its size.
#[cfg(test)]
pub(super) fn describe(root: &Root, number: libc::dev_t) -> (String, Bytes) {
    let disk = Disk::of(root, number);
    (disk.describe(), disk.bytes)
}

/// The facts of sysfs about a block device.
struct Disk {
    name: Option<String>,
    model: Option<String>,
    rotates: Option<bool>,
    scheduler: Option<String>,
    bytes: Bytes,
}

impl Disk {
    fn of(root: &Root, number: libc::dev_t) -> Self {
        let (major, minor) = (libc::major(number), libc::minor(number));
        let target = root.target(&format!("/sys/dev/block/{major}:{minor}"));
        let own = target.known().and_then(|path| path.to_str());
        let Some(own) = own else {
            return Self {
                name: None,
                model: None,
                rotates: None,
                scheduler: None,
                bytes: Bytes(0),
            };
        };
        // A partition is in the folder of its disk, which has the queue.
        let disk = match own.rsplit_once('/') {
            Some((disk, _)) if root.exists(&format!("{own}/partition")) => disk,
            _ => own,
        };
        let text = |name: &str| root.text(&format!("{disk}/{name}")).known().cloned();
        let sectors = root.value::<u64>(&format!("{own}/size"));
        Self {
            name: own.rsplit('/').next().map(str::to_owned),
            model: text("device/model").filter(|model| !model.is_empty()),
            rotates: text("queue/rotational").map(|text| text == "1"),
            scheduler: text("queue/scheduler").map(|text| chosen(&text)),
            bytes: Bytes(sectors.known().map_or(0, |n| n.saturating_mul(SECTOR))),
        }
    }

    fn describe(&self) -> String {
        let Some(name) = &self.name else {
            return "on a device that the kernel does not name".to_owned();
        };
        let mut said = vec![format!("device {name}")];
        said.extend(self.model.clone());
        said.extend(self.rotates.filter(|r| *r).map(|_| "rotating".to_owned()));
        said.extend(self.scheduler.as_ref().map(|s| format!("scheduler {s}")));
        said.join(", ")
    }
}

/// `none [mq-deadline] kyber`: the one in brackets; `none` alone means that there is none.
fn chosen(text: &str) -> String {
    let marked = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(text, |(word, _)| word).to_owned()
}
