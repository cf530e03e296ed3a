//! A pool: opening, the table under its lock, and the changes that hosts make.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::change::Recovered;
use crate::error::{NamespaceError, Result};
use crate::identity::{self, Process, User, check_name};
use crate::layout::{HEADER, HOST_NAME, HOSTS, Header, HostLines, MOST, host_line, host_of};
use crate::lock::{Bakery, HostLock};
use crate::mapping::{Fault, Mapping};
use crate::medium::Medium;
use crate::table::{Refused, Table};

/// How a pool is opened.
#[derive(Clone, Default)]
pub struct Options {
    /// The name of this host; [the kernel's] where it is absent.
    ///
    /// [the kernel's]: https://man7.org/linux/man-pages/man2/gethostname.2.html
    pub host: Option<String>,
    /// Only look: nothing is changed, recovered or mapped to be written.
    pub read_only: bool,
    /// Whose permissions count; those of this process where it is absent.
    pub user: Option<User>,
    /// For tests: another boot of the host. Processes of it do not share a lock of the kernel.
    #[doc(hidden)]
    pub boot: Option<u64>,
    /// For tests: called before each store into the pool.
    #[doc(hidden)]
    pub fault: Option<Fault>,
}

/// How a pool is made.
#[derive(Debug, Clone)]
pub struct Make {
    /// Bytes of the pool; all of the file or device where it is absent. A file that is absent gets so many.
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

/// A pool of memory that hosts and processes share. Clones are the same pool.
#[derive(Clone)]
pub struct Pool(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub medium: Medium,
    pub map: Mapping,
    pub header: Header,
    pub host: String,
    pub me: Process,
    pub user: User,
    pub options: Options,
    /// Whether the file system keeps mapped stores that were flushed (MAP_SYNC).
    pub sync: bool,
    changes: Mutex<()>,
    pub beating: AtomicBool,
    opened: OnceLock<Recovered>,
}

/// A host of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSeen {
    /// Its place.
    pub place: u16,
    /// Its name.
    pub name: String,
    /// How long ago it showed a sign of life; `None` if it has never come.
    pub age: Option<Duration>,
    /// Whether that is less than the lease of the pool.
    pub alive: bool,
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
        let medium = Medium::open(path, true, make.bytes)?;
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
        if made.is_err() && make.bytes.is_some_and(|_| is_zero_file(path)) {
            let _ = std::fs::remove_file(path);
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
                    why: "it is a pool already, whose namespaces would be lost; force it if they may be".into(),
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

impl Inner {
    pub fn table(&self) -> Result<Table> {
        self.newest().map(|(table, _)| table)
    }

    /// The valid copy of the table with the highest sequence number, and which one that is.
    fn newest(&self) -> Result<(Table, usize)> {
        let damaged = |why: String| NamespaceError::Damaged {
            path: self.medium.path.clone(),
            why,
        };
        // A writer changes the copy that does not count; two in the time of one reading may hit the other one.
        for _ in 0..1000 {
            let sequence = |copy: &usize| self.map.load_fresh(self.header.table_at(*copy) + 8);
            let mut copies: Vec<usize> = (0..self.header.copies()).collect();
            copies.sort_by_cached_key(|copy| std::cmp::Reverse(sequence(copy)));
            // The first whole one: one before it was not finished.
            let mut copies = copies.into_iter();
            if let Some((table, copy)) = copies.find_map(|copy| Some((self.copy(copy)?, copy))) {
                let table =
                    table.map_err(|why| damaged(format!("its table contradicts itself: {why}")))?;
                return Ok((table, copy));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        let (at, bytes) = (self.header.table_at(0), self.header.table_bytes());
        Err(damaged(format!(
            "none of the {} copies of its table, each of {bytes} bytes from byte {at} on, has its checksum",
            self.header.copies()
        )))
    }

    fn copy(&self, copy: usize) -> Option<std::result::Result<Table, String>> {
        let at = self.header.table_at(copy);
        let mut bytes = vec![0; Header::table_header()];
        self.map.read(at, &mut bytes);
        let all = self.header.encoded_bytes(&bytes)?;
        bytes.resize(all, 0);
        self.map.read(at, &mut bytes);
        self.header.decode_table(&bytes)
    }

    /// Whether the table is still the one with this sequence number: some loads instead of a reading.
    pub fn is_unchanged(&self, seen: u64) -> bool {
        let sequence = |copy| self.map.load_fresh(self.header.table_at(copy) + 8);
        seen != 0 && (0..self.header.copies()).all(|copy| sequence(copy) <= seen)
    }

    /// Changes the table under its lock. A failure of `change` changes nothing.
    pub fn update<R>(&self, change: impl FnOnce(&mut Table) -> Result<R>) -> Result<R> {
        if self.options.read_only {
            return Err(NamespaceError::Request(format!(
                "{} was opened to be read only",
                self.medium.path.display()
            )));
        }
        // A panic in a change has changed nothing that is shared.
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let _host = HostLock::of(&self.medium, self.options.boot.is_some())?;
        self.check_boot()?;
        let mut bakery = Bakery::enter(
            &self.map,
            self.me.host.into(),
            &self.medium.path,
            &self.host,
        )?;
        let (mut table, mut newest) = self.newest()?;
        if bakery.found_dead() {
            // What the host that stood still may yet write is older than this.
            table.sequence += 1;
            newest = self.commit(&mut table, newest, &bakery)?;
            bakery.withdraw();
        }
        let before = table.clone();
        let done = change(&mut table)?;
        if table != before {
            table
                .check(&self.header)
                .map_err(|why| NamespaceError::Damaged {
                    path: self.medium.path.clone(),
                    why: format!("a change was refused, since it would contradict itself: {why}"),
                })?;
            self.commit(&mut table, newest, &bakery)?;
        }
        Ok(done)
    }

    /// Writes the table as one of this host's copies, which is not `newest`: that one counts until the checksum of the
    /// new one is there. Returns which one that is.
    fn commit(&self, table: &mut Table, newest: usize, bakery: &Bakery) -> Result<usize> {
        table.sequence += 1;
        let bytes = self.header.encode_table(table);
        let own = 2 * usize::from(self.me.host);
        let copy = if newest == own { own + 1 } else { own };
        let at = self.header.table_at(copy);
        for (nth, part) in bytes[8..].chunks(4096).enumerate() {
            self.map.write(at + 8 + 4096 * nth, part);
            bakery.step();
        }
        bakery.check(&self.medium.path, &self.host)?;
        self.map.write(at, &bytes[..8]);
        self.sync_file(at, bytes.len())?;
        bakery.check(&self.medium.path, &self.host)?;
        Ok(copy)
    }

    /// A file that is on a disk, and not in memory, has its pages written.
    pub fn sync_file(&self, at: usize, bytes: usize) -> Result<()> {
        if self.medium.device || self.medium.in_memory || self.sync {
            return Ok(());
        }
        self.map
            .sync(at, bytes)
            .map_err(|source| NamespaceError::Io {
                what: "sync",
                path: self.medium.path.clone(),
                source,
            })
    }

    pub fn hosts(&self) -> Vec<HostSeen> {
        let now = identity::wall_ms();
        let seen = |place: usize| {
            let lines = HostLines::of(place);
            let mut line = [0; 64];
            self.map.read(lines.name(), &mut line);
            let name = host_of(&line)?;
            let beat = self.map.load_fresh(lines.beat());
            let age = now.saturating_sub(beat);
            Some(HostSeen {
                place: place as u16,
                name,
                age: (beat != 0).then(|| Duration::from_millis(age)),
                alive: beat != 0 && age <= self.header.lease_ms,
            })
        };
        (0..self.header.places as usize).filter_map(seen).collect()
    }

    pub fn host_name(&self, place: u16) -> String {
        let mut hosts = self.hosts().into_iter();
        let host = hosts.find(|host| host.place == place);
        host.map_or_else(|| format!("number {place}"), |host| host.name)
    }

    pub fn place_of(&self, name: &str) -> Result<u16> {
        let hosts = self.hosts();
        let place = hosts.iter().find(|host| host.name == name);
        place.map(|host| host.place).ok_or_else(|| {
            let admitted: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
            NamespaceError::HostUnknown {
                path: self.medium.path.clone(),
                host: name.to_owned(),
                admitted: admitted.join(", "),
            }
        })
    }

    /// Whether a process lives: by /proc on this host, by signs of life of its host elsewhere.
    pub fn is_alive(&self, process: &Process) -> bool {
        let lines = HostLines::of(process.host.into());
        if process.host == self.me.host {
            return process.boot == self.me.boot
                && identity::start_of(process.pid) == Some(process.start);
        }
        let age = identity::wall_ms().saturating_sub(self.map.load_fresh(lines.beat()));
        self.map.load_fresh(lines.boot()) == process.boot && age <= self.header.lease_ms
    }

    /// Whether a host has shown a sign of life lately.
    pub fn lives(&self, place: u16) -> bool {
        let lines = HostLines::of(place.into());
        let age = identity::wall_ms().saturating_sub(self.map.load_fresh(lines.beat()));
        age <= self.header.lease_ms
    }

    /// Takes the place of this host, unless another machine with its name lives.
    fn arrive(&self) -> Result<()> {
        let _host = HostLock::of(&self.medium, self.options.boot.is_some())?;
        let lines = HostLines::of(self.me.host.into());
        let boot = self.map.load_fresh(lines.boot());
        if boot != self.me.boot {
            let age_ms = identity::wall_ms().saturating_sub(self.map.load_fresh(lines.beat()));
            // An earlier boot of this machine may have been here a moment ago; its name alone does not say so.
            if boot != 0 && age_ms <= self.header.lease_ms {
                return Err(NamespaceError::HostTwice {
                    path: self.medium.path.clone(),
                    host: self.host.clone(),
                    age_ms,
                });
            }
            self.map.publish(lines.beat(), identity::wall_ms());
            self.map.publish(lines.boot(), self.me.boot);
        }
        // What a process left that died in the queue: this host's lock is ours.
        self.map.publish(lines.choosing(), 0);
        self.map.publish(lines.number(), 0);
        self.beat();
        Ok(())
    }

    /// Whether the place is still this machine's: of two that came at the same time, one is refused.
    fn check_boot(&self) -> Result<()> {
        let lines = HostLines::of(self.me.host.into());
        if self.map.load_fresh(lines.boot()) == self.me.boot {
            self.beat();
            return Ok(());
        }
        Err(NamespaceError::HostTwice {
            path: self.medium.path.clone(),
            host: self.host.clone(),
            age_ms: identity::wall_ms().saturating_sub(self.map.load_fresh(lines.beat())),
        })
    }

    /// A sign of life of this host.
    pub fn beat(&self) {
        let lines = HostLines::of(self.me.host.into());
        self.map.publish(lines.beat(), identity::wall_ms());
    }

    pub fn refused(&self, refused: Refused, asked: u64) -> NamespaceError {
        match refused {
            Refused::Full { largest, free } => NamespaceError::Full {
                asked,
                largest,
                free,
            },
            Refused::Entries(most) => NamespaceError::TableFull {
                what: "namespaces",
                most,
            },
            Refused::Holders(most) => NamespaceError::TableFull {
                what: "handles",
                most,
            },
        }
    }
}

fn own_name(options: &Options) -> Result<String> {
    let name = options.host.clone().unwrap_or_else(identity::host_name);
    check_name("the host", &name, HOST_NAME).map_err(|why| {
        NamespaceError::Request(format!("{why}; name this host with --host, or in Options"))
    })?;
    Ok(name)
}

/// Bytes to map for so many: a device maps whole units only.
fn mapped_bytes(bytes: u64, medium: &Medium) -> usize {
    bytes.next_multiple_of(medium.unit).min(medium.bytes) as usize
}

fn is_zero_file(path: &Path) -> bool {
    let mut head = [0; HEADER];
    let read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
    let regular = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
    regular && read.is_ok() && head.iter().all(|byte| *byte == 0)
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: the call fills at most the length that it is given; 16 bytes come whole (getrandom(2)).
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    bytes
}
