//! Making a pool.

use std::path::Path;
use std::time::Duration;

use crate::error::{NamespaceError, Result};
use crate::identity::check_name;
use crate::layout::{HEADER, HOST_NAME, HOSTS, Header, HostLines, MOST, host_line};
use crate::lock::HostLock;
use crate::mapping::Mapping;
use crate::medium::{Medium, undo};
use crate::pool::{Pool, mapped_bytes, own_name};
use crate::shared::Options;
use crate::table::Table;

/// How a pool is made.
#[derive(Debug, Clone)]
pub struct Make {
    /// Bytes of the pool; all of the file or device where it is absent. A file that is absent gets this many.
    pub bytes: Option<u64>,
    /// What offsets and sizes of namespaces are multiples of, a power of two; that of the device where it is absent.
    pub unit: Option<u64>,
    /// Hosts that are admitted besides this one.
    pub hosts: Vec<String>,
    /// The most hosts that it may admit, 1 to 32.
    pub places: u32,
    /// Namespaces that the table has room for.
    pub entries: u32,
    /// Open handles that it has room for.
    pub holders: u32,
    /// How long a host may show no sign of life before it counts as dead.
    pub lease: Duration,
    /// Bytes that a user may have.
    pub quota: Option<u64>,
    /// Make it though there is a pool, or processes have the device open.
    pub force: bool,
}

impl Default for Make {
    fn default() -> Self {
        Self {
            bytes: None,
            unit: None,
            hosts: Vec::new(),
            places: 8,
            entries: 256,
            holders: 512,
            lease: Duration::from_secs(30),
            quota: None,
            force: false,
        }
    }
}
impl Pool {
    /// Makes a pool: every byte of it is zero after it. What the file or device had is lost.
    ///
    /// # Errors
    /// There is a pool already, processes have the device open, or it is too small; nothing is changed then.
    pub fn make(path: impl AsRef<Path>, make: &Make, options: Options) -> Result<Self> {
        let path = path.as_ref();
        let unfit = |why: String| NamespaceError::Unfit {
            path: path.to_owned(),
            why,
        };
        let host = own_name(&options)?;
        for name in &make.hosts {
            check_name("the host", name, HOST_NAME).map_err(NamespaceError::Request)?;
        }
        let was_there = path.exists();
        let medium = Medium::open(path, true, make.bytes)?;
        let fresh = medium.fresh;
        let unit = make.unit.unwrap_or(medium.unit);
        let bytes = make.bytes.unwrap_or(medium.bytes);
        let mut header = Header {
            uuid: random(),
            bytes: bytes - bytes % unit.max(1),
            data: 0,
            unit,
            places: make.places,
            entries: make.entries,
            holders: make.holders,
            lease_ms: make.lease.as_millis().clamp(1, 1 << 40) as u64,
            quota: make.quota.unwrap_or(0),
        };
        let fits =
            header.places <= HOSTS as u32 && header.entries <= MOST && header.holders <= 2 * MOST;
        if unit.is_power_of_two() && fits {
            header.data = (header.metadata() as u64).next_multiple_of(unit);
        }
        let made = header.check(medium.bytes).map_err(unfit);
        let made = made.and_then(|()| Self::over(medium, header, host, make, options));
        // A file that was made for a pool which cannot be is no use to anyone.
        if made.is_err() && fresh {
            undo(path, was_there);
        }
        made
    }

    fn over(
        medium: Medium,
        header: Header,
        host: String,
        make: &Make,
        options: Options,
    ) -> Result<Self> {
        let path = medium.path.clone();
        let io = |source| NamespaceError::Io {
            what: "map",
            path: path.clone(),
            source,
        };
        let lock = HostLock::of(&medium, options.boot.is_some())?;
        let whole = mapped_bytes(header.bytes, &medium);
        let (map, sync) =
            Mapping::new(&medium.file, 0, whole, true, options.fault.clone()).map_err(io)?;
        if !make.force {
            let mut head = [0; HEADER];
            map.read(0, &mut head);
            if Header::decode(&head, medium.bytes).is_ok() {
                return Err(NamespaceError::Unfit {
                    path,
                    why: "it is a pool already, whose namespaces would be lost; --force makes it anew without them".into(),
                });
            }
            let who = medium.users();
            if !who.is_empty() {
                return Err(NamespaceError::InUse {
                    path,
                    who: who.join(", "),
                });
            }
        }
        // The header comes last: a pool that was made in part is none.
        map.zero(0, 4096);
        if !medium.fresh {
            map.zero(4096, header.bytes as usize - 4096);
        }
        let hosts = std::iter::once(&host).chain(make.hosts.iter().filter(|name| **name != host));
        for (place, name) in hosts.enumerate() {
            if place >= header.places as usize {
                return Err(NamespaceError::TableFull {
                    what: "hosts",
                    most: header.places as usize,
                });
            }
            map.write(HostLines::of(place).name(), &host_line(name));
        }
        let table = Table {
            sequence: 1,
            ..Table::default()
        };
        map.write(header.table_at(0), &header.encode_table(&table));
        // Not the magic first: what a reader sees must be whole.
        let head = header.encode();
        map.write(8, &head[8..]);
        map.write(0, &head[..8]);
        if !medium.device && !medium.in_memory && !sync {
            map.sync(0, whole).map_err(io)?;
        }
        drop(lock);
        drop(map);
        drop(medium);
        Self::open(&path, options)
    }
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: the call fills at most the length that it is given; 16 bytes come whole (getrandom(2)).
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes
}
