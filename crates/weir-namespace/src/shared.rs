//! What the clones of a pool and its namespaces share: the table under its lock, and signs of life.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::{NamespaceError, Result};
use crate::identity::{self, Process, User};
use crate::layout::{Header, HostLines, host_of};
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

/// What a recovery found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Handles of dead processes that were dropped.
    pub handles: usize,
    /// Namespaces that were released, since their time was over.
    pub released: Vec<String>,
    /// Bytes that were scrubbed.
    pub scrubbed: u64,
}

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
    pub changes: Mutex<()>,
    pub beating: AtomicBool,
    pub opened: OnceLock<Recovered>,
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

impl Inner {
    pub fn table(&self) -> Result<Table> {
        self.newest().map(|(table, _)| table)
    }

    /// Whether the header, the lines of hosts and the table can be accessed: without them a device or file is no pool.
    pub fn reach(&self) -> Result<()> {
        let reached = (self.medium).reach(&self.map, 0, 0, self.header.metadata());
        reached.map_err(|source| self.lost(source))
    }

    pub fn lost(&self, source: std::io::Error) -> NamespaceError {
        NamespaceError::Lost {
            path: self.medium.path.clone(),
            source,
        }
    }

    /// The valid copy of the table with the highest sequence number, and which one that is.
    fn newest(&self) -> Result<(Table, usize)> {
        self.reach()?;
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
        self.reach()?;
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
        self.reach()?;
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
        if self.reach().is_err() {
            return Vec::new();
        }
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
        self.reach()?;
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
    pub fn arrive(&self) -> Result<()> {
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
        if self.reach().is_err() {
            return;
        }
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
