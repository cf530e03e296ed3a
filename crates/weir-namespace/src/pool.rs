//! A pool: opening it, and what it is.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::error::{NamespaceError, Result};
use crate::identity::{self, Process, User, check_name};
use crate::layout::{HEADER, HOST_NAME, Header, HostLines, host_line};
use crate::mapping::Mapping;
use crate::medium::Medium;
use crate::shared::{HostSeen, Inner, Options, Recovered};
use crate::table::Table;

/// A pool of memory that hosts and processes share. Clones are the same pool.
#[derive(Clone)]
pub struct Pool(pub(crate) Arc<Inner>);

impl Pool {
    /// Opens a pool, and recovers what processes left that died: their handles, namespaces that were theirs, and
    /// ranges that they had begun to scrub.
    ///
    /// # Errors
    /// There is no pool or it is damaged, this host is not admitted, or another one has its name.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let pool = Self::open_unrecovered(path.as_ref(), options)?;
        if !pool.0.options.read_only {
            let recovered = pool.recover()?;
            // It is the first one.
            let _ = pool.0.opened.set(recovered);
        }
        Ok(pool)
    }

    fn open_unrecovered(path: &Path, options: Options) -> Result<Self> {
        let io = |source| NamespaceError::Io {
            what: "map",
            path: path.to_owned(),
            source,
        };
        let none = |why: String| NamespaceError::NoPool {
            path: path.to_owned(),
            why,
        };
        let write = !options.read_only;
        let medium = Medium::open(path, write, None)?;
        if medium.bytes < 3 * 4096 {
            return Err(none(format!("it has only {} bytes", medium.bytes)));
        }
        let first = mapped_bytes(4096, &medium);
        let (map, _) = Mapping::new(&medium.file, 0, first, false, None).map_err(io)?;
        let mut head = [0; HEADER];
        map.read(0, &mut head);
        let header = Header::decode(&head, medium.bytes).map_err(none)?;
        drop(map);
        let meta = mapped_bytes(header.metadata() as u64, &medium);
        let (map, sync) =
            Mapping::new(&medium.file, 0, meta, write, options.fault.clone()).map_err(io)?;
        let host = if write {
            own_name(&options)?
        } else {
            String::new()
        };
        let pid = std::process::id();
        let me = Process {
            host: 0,
            pid,
            start: identity::start_of(pid).unwrap_or(0),
            boot: options.boot.unwrap_or_else(identity::boot),
        };
        let mut inner = Inner {
            map,
            header,
            host,
            me,
            user: options.user.clone().unwrap_or_else(User::own),
            options,
            sync,
            changes: Mutex::default(),
            beating: AtomicBool::new(false),
            opened: OnceLock::new(),
            medium,
        };
        // A damaged table is said before anything else.
        inner.table()?;
        if write {
            inner.me.host = inner.place_of(&inner.host)?;
            inner.arrive()?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// What opening it recovered.
    pub fn opened(&self) -> Recovered {
        self.0.opened.get().cloned().unwrap_or_default()
    }

    /// Its table, as it is at this moment.
    ///
    /// # Errors
    /// It is damaged.
    pub fn table(&self) -> Result<Table> {
        self.0.table()
    }

    /// The hosts that it admits.
    pub fn hosts(&self) -> Vec<HostSeen> {
        self.0.hosts()
    }

    /// The name of the host at a place.
    pub fn host_name(&self, place: u16) -> String {
        self.0.host_name(place)
    }

    /// The name of this host; empty if the pool was opened to be read only.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// The file or device.
    pub fn path(&self) -> &Path {
        &self.0.medium.path
    }

    /// All bytes of namespaces, used and free.
    pub fn capacity(&self) -> u64 {
        self.0.header.bytes - self.0.header.data
    }

    /// What offsets and sizes are multiples of.
    pub fn unit(&self) -> u64 {
        self.0.header.unit
    }

    /// How long a host may show no sign of life before it counts as dead.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.0.header.lease_ms)
    }

    /// Its number, as 32 digits.
    pub fn uuid(&self) -> String {
        let digits = self.0.header.uuid.iter();
        digits.map(|byte| format!("{byte:02x}")).collect()
    }

    /// What it is on, in words, with what that means.
    pub fn medium(&self) -> &'static str {
        let medium = &self.0.medium;
        match (medium.device, medium.in_memory, self.0.sync) {
            (true, ..) => "a DAX device: stores reach the memory that hosts share",
            (_, true, _) => "a file in memory",
            (_, _, true) => "a file on DAX with MAP_SYNC: flushed stores are durable",
            _ => {
                "a file without MAP_SYNC: stores reach the page cache of this host only, until they are synced"
            }
        }
    }

    /// Free ranges, offset and size.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn free(&self) -> Result<Vec<(u64, u64)>> {
        Ok(self.table()?.free(&self.0.header))
    }

    /// Admits one more host.
    ///
    /// # Errors
    /// The name cannot be, or there is room for no more.
    pub fn admit(&self, name: &str) -> Result<()> {
        check_name("the host", name, HOST_NAME).map_err(NamespaceError::Request)?;
        self.0.update(|_| {
            let hosts = self.hosts();
            if hosts.iter().any(|host| host.name == name) {
                return Ok(());
            }
            let places = 0..self.0.header.places as u16;
            let mut free = places.filter(|place| hosts.iter().all(|host| host.place != *place));
            let place = free.next().ok_or(NamespaceError::TableFull {
                what: "hosts",
                most: self.0.header.places as usize,
            })?;
            let at = HostLines::of(place.into()).name();
            self.0.map.write(at, &host_line(name));
            Ok(())
        })
    }
}

pub(crate) fn own_name(options: &Options) -> Result<String> {
    let name = options.host.clone().unwrap_or_else(identity::host_name);
    check_name("the host", &name, HOST_NAME).map_err(|why| {
        NamespaceError::Request(format!("{why}; name this host with --host, or in Options"))
    })?;
    Ok(name)
}

/// Bytes to map for this many: a device maps whole units only.
pub(crate) fn mapped_bytes(bytes: u64, medium: &Medium) -> usize {
    bytes.next_multiple_of(medium.unit).min(medium.bytes) as usize
}
