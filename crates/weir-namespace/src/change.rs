//! What is done with namespaces by name: create, change, hand over, destroy.

use std::time::Duration;

use crate::error::{NamespaceError, Result};
use crate::identity::{self, Process, check_name, described};
use crate::layout::NAME;
use crate::mapping::Mapping;
use crate::namespace::Window;
use crate::pool::{Inner, Pool};
use crate::table::{Entry, Life, State, Table};

/// How long a namespace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Until it is destroyed, also when its owner dies.
    #[default]
    Forever,
    /// As long as a process of this host lives, and as long as it is open after that.
    With(u32),
    /// So long from now, and as long as it is open after that.
    For(Duration),
}

/// A namespace that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Bytes; rounded up to the pool's unit.
    pub size: u64,
    /// What its offset is a multiple of, a power of two; the pool's unit at least.
    pub align: u64,
    /// Permission bits.
    pub mode: u32,
    /// How long it is kept.
    pub keep: Keep,
    /// Hosts besides this one that may open it.
    pub hosts: Vec<String>,
}

impl Create {
    /// A namespace of a size that only this user of this host may open, and that is kept until it is destroyed.
    pub fn of(size: u64) -> Self {
        Self {
            size,
            align: 1,
            mode: 0o600,
            keep: Keep::Forever,
            hosts: Vec::new(),
        }
    }
}

/// What may be changed of a namespace; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// The user who owns it; only the superuser may change that.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// All hosts besides the owner that may open it.
    pub hosts: Option<Vec<String>>,
    /// How long it is kept.
    pub keep: Option<Keep>,
}

/// What became of a namespace that was resized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resized {
    /// It has the size already.
    Same,
    /// It is where it was.
    InPlace,
    /// It has another place, to which its content was copied.
    Moved,
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

impl Pool {
    /// Makes a namespace of zeros, in the smallest free range that has room.
    ///
    /// # Errors
    /// The name is taken, or no free range is large enough, even after a recovery.
    pub fn create(&self, name: &str, create: &Create) -> Result<Entry> {
        match self.try_create(name, create) {
            Err(NamespaceError::Full { .. } | NamespaceError::TableFull { .. }) => {
                self.recover()?;
                self.try_create(name, create)
            }
            done => done,
        }
    }

    fn try_create(&self, name: &str, create: &Create) -> Result<Entry> {
        let inner = &*self.0;
        let request = NamespaceError::Request;
        check_name("the name", name, NAME).map_err(request)?;
        if !create.align.is_power_of_two() || create.mode > 0o777 {
            return Err(request(format!(
                "alignment {} and mode {:o}: the one must be a power of two, the other at most 777",
                create.align, create.mode
            )));
        }
        let size = inner.rounded(create.size)?;
        inner.update(|table| {
            if let Some(entry) = table.named(name) {
                return Err(inner.exists(entry));
            }
            let uid = inner.user.uid;
            inner.check_quota(table, uid, size)?;
            let align = create.align.max(inner.header.unit);
            let offset = table
                .find(&inner.header, size, align)
                .map_err(|refused| inner.refused(refused, size))?;
            let entry = Entry {
                id: table.number(),
                name: name.to_owned(),
                offset,
                size,
                generation: 1,
                state: State::Live,
                life: inner.life(create.keep)?,
                owner: inner.me.host,
                uid,
                gid: inner.user.groups.first().copied().unwrap_or(0),
                mode: create.mode,
                hosts: inner.mask(&create.hosts)?,
                moving: false,
            };
            table
                .insert(&inner.header, entry.clone())
                .map_err(|refused| inner.refused(refused, size))?;
            Ok(entry)
        })
    }

    /// Changes who may open a namespace, and how long it is kept.
    ///
    /// # Errors
    /// It is not this user's, or not this host's.
    pub fn change(&self, name: &str, change: &Change) -> Result<Entry> {
        let inner = &*self.0;
        if change.mode.is_some_and(|mode| mode > 0o777) {
            return Err(NamespaceError::Request(
                "a mode has at most the bits 777".into(),
            ));
        }
        inner.update(|table| {
            let id = inner.own(table, name, "change")?;
            if let Some(uid) = change.uid {
                if inner.user.uid != 0 {
                    return Err(inner.may_not("give away", table, id));
                }
                let size = table.of(id).map_or(0, |entry| entry.size);
                inner.check_quota(table, uid, size)?;
            }
            let hosts = change.hosts.as_ref().map(|hosts| inner.mask(hosts));
            let (hosts, life) = (hosts.transpose()?, change.keep.map(|k| inner.life(k)));
            let life = life.transpose()?;
            let entry = inner.entry_mut(table, id, name)?;
            entry.mode = change.mode.unwrap_or(entry.mode);
            entry.uid = change.uid.unwrap_or(entry.uid);
            entry.gid = change.gid.unwrap_or(entry.gid);
            entry.hosts = hosts.unwrap_or(entry.hosts);
            entry.life = life.unwrap_or(entry.life);
            Ok(entry.clone())
        })
    }

    /// Makes another host the owner. Handles that are open become stale; without `force` there may be none. The owner
    /// may do it, and any other host when the owner has shown no sign of life for the pool's lease. A namespace that was
    /// kept with a process is kept until it is destroyed from then on.
    ///
    /// # Errors
    /// This host may not, or it is open.
    pub fn hand_over(&self, name: &str, to: &str, force: bool) -> Result<Entry> {
        let inner = &*self.0;
        let to = inner.place_of(to)?;
        inner.update(|table| {
            inner.reap_handles(table);
            let entry = inner.find(table, name)?;
            let (id, owner) = (entry.id, entry.owner);
            if owner != inner.me.host && inner.lives(owner) {
                return Err(inner.not_owner("hand over", entry));
            }
            inner.check_user("hand over", entry)?;
            if !force {
                inner.check_unheld(table, id, name)?;
            }
            table.holders.retain(|holder| holder.namespace != id);
            let entry = inner.entry_mut(table, id, name)?;
            entry.owner = to;
            entry.hosts &= !(1 << to);
            entry.generation += 1;
            if matches!(entry.life, Life::With(_)) {
                entry.life = Life::Kept;
            }
            Ok(entry.clone())
        })
    }

    /// Gives a namespace another size. It grows where it is if there is room, and else moves, if nobody has it open.
    /// What it gains is zero, and what it loses is scrubbed.
    ///
    /// # Errors
    /// It is not this user's or this host's, there is no room, or it is open and would shrink or move.
    pub fn resize(&self, name: &str, size: u64) -> Result<Resized> {
        let inner = &*self.0;
        let size = inner.rounded(size)?;
        let (done, scrub) = inner.update(|table| {
            inner.reap_handles(table);
            let id = inner.own(table, name, "resize")?;
            let entry = inner.entry_mut(table, id, name)?.clone();
            if size == entry.size {
                return Ok((Resized::Same, None));
            }
            if size < entry.size {
                inner.check_unheld(table, id, name)?;
                let cut = table.cut(&inner.header, id, size, inner.me);
                let tail = cut.map_err(|refused| inner.refused(refused, size))?;
                return Ok((Resized::InPlace, Some((tail, u64::MAX))));
            }
            inner.check_quota(table, entry.uid, size - entry.size)?;
            let end = entry.offset + entry.size;
            let free = table.free(&inner.header);
            let behind = free.iter().find(|range| range.0 == end);
            if behind.is_some_and(|range| range.1 >= size - entry.size) {
                inner.entry_mut(table, id, name)?.size = size;
                return Ok((Resized::InPlace, None));
            }
            inner.check_unheld(table, id, name)?;
            // The new place counts as one to scrub until the content is there.
            let offset = table
                .find(&inner.header, size, inner.header.unit)
                .map_err(|refused| inner.refused(refused, size))?;
            let reserved = table.number();
            let room = Entry {
                id: reserved,
                offset,
                size,
                state: State::Scrubbing(inner.me),
                life: Life::Kept,
                ..entry.clone()
            };
            let inserted = table.insert(&inner.header, room);
            inserted.map_err(|refused| inner.refused(refused, size))?;
            inner.entry_mut(table, id, name)?.moving = true;
            let hold = table.hold(&inner.header, id, true, inner.me);
            let hold = hold.map_err(|refused| inner.refused(refused, size))?;
            Ok((Resized::Moved, Some((reserved, hold))))
        })?;
        match (done, scrub) {
            (Resized::Moved, Some((reserved, hold))) => {
                let moved = self.move_to(name, reserved, hold);
                // Of the two places, the one that is to be scrubbed has this number.
                let scrubbed = inner.release(hold).and_then(|()| inner.scrub(&[reserved]));
                moved?;
                scrubbed?;
            }
            (_, Some((tail, _))) => inner.scrub(&[tail]).map(drop)?,
            _ => {}
        }
        Ok(done)
    }

    /// Copies a namespace into a range that was reserved, which becomes its place.
    fn move_to(&self, name: &str, reserved: u64, hold: u64) -> Result<()> {
        let inner = &*self.0;
        let table = inner.table()?;
        let (from, to) = match (table.named(name), table.of(reserved)) {
            (Some(from), Some(to)) => (from.clone(), to.clone()),
            _ => return Err(inner.missing(name)),
        };
        let source = inner.window(from.offset, from.size, false)?;
        let target = inner.window(to.offset, to.size, true)?;
        copy(&source, &target, from.size as usize);
        inner.sync_window(&target)?;
        drop((source, target));
        inner.update(|table| {
            // Another host that took this one for dead has scrubbed the range.
            if table.of(reserved).map(|e| e.state) != Some(State::Scrubbing(inner.me)) {
                return Err(inner.missing(name));
            }
            table.holders.retain(|holder| holder.handle != hold);
            inner.check_unheld(table, from.id, name)?;
            let moved = inner.entry_mut(table, from.id, name)?.clone();
            for entry in &mut table.entries {
                if entry.id == reserved {
                    *entry = Entry {
                        offset: to.offset,
                        size: to.size,
                        generation: moved.generation + 1,
                        moving: false,
                        ..moved.clone()
                    };
                } else if entry.id == moved.id {
                    entry.id = reserved;
                    entry.state = State::Scrubbing(inner.me);
                    entry.life = Life::Kept;
                }
            }
            Ok(())
        })
    }

    /// Releases a namespace: its range is free after it is zero. The largest part of the time goes to that.
    ///
    /// # Errors
    /// It is not this user's or this host's, or it is open.
    pub fn destroy(&self, name: &str) -> Result<()> {
        let inner = &*self.0;
        let id = inner.update(|table| {
            inner.reap_handles(table);
            let id = inner.own(table, name, "destroy")?;
            inner.check_unheld(table, id, name)?;
            let entry = inner.entry_mut(table, id, name)?;
            entry.state = State::Scrubbing(inner.me);
            Ok(id)
        })?;
        inner.scrub(&[id]).map(drop)
    }

    /// Recovers what dead processes and hosts left: drops their handles, releases namespaces whose time is over, and
    /// finishes scrubs. Opening a pool does it as well.
    ///
    /// # Errors
    /// The table stays locked or is damaged.
    pub fn recover(&self) -> Result<Recovered> {
        let inner = &*self.0;
        let now = identity::wall_ms();
        let reaped = inner
            .update(|table| Ok(table.reap(now, inner.me, &|process| inner.is_alive(process))))?;
        Ok(Recovered {
            handles: reaped.handles,
            released: reaped.released,
            scrubbed: inner.scrub(&reaped.scrubs)?,
        })
    }

    /// The first byte of the pool that is free and not zero; there should be none. Others may change the pool meanwhile.
    ///
    /// # Errors
    /// The table is damaged, or changes all the time, or a range cannot be mapped.
    pub fn first_unscrubbed(&self) -> Result<Option<u64>> {
        let inner = &*self.0;
        for _ in 0..100 {
            let table = inner.table()?;
            match inner.not_zero(&table)? {
                // What is found counts if nothing has become of the range meanwhile.
                Some(_) if inner.table()?.sequence != table.sequence => {}
                found => return Ok(found),
            }
        }
        Err(NamespaceError::Busy {
            path: inner.medium.path.clone(),
            waited_ms: 0,
            who: "changes that follow each other".into(),
        })
    }
}

impl Inner {
    /// Writes zeros into ranges that are this process's to scrub, and frees each. Returns their bytes.
    pub fn scrub(&self, ids: &[u64]) -> Result<u64> {
        let mut bytes = 0;
        for id in ids {
            let table = self.table()?;
            let mine = |entry: &&Entry| entry.state == State::Scrubbing(self.me);
            let Some(entry) = table.of(*id).filter(mine) else {
                continue;
            };
            let window = self.window(entry.offset, entry.size, true)?;
            window.map.zero(window.skip, entry.size as usize);
            self.sync_window(&window)?;
            self.update(|table| {
                let still = |e: &Entry| e.id == *id && e.state == State::Scrubbing(self.me);
                table.entries.retain(|entry| !still(entry));
                Ok(())
            })?;
            bytes += entry.size;
        }
        Ok(bytes)
    }

    fn not_zero(&self, table: &Table) -> Result<Option<u64>> {
        for (offset, bytes) in table.free(&self.header) {
            let window = self.window(offset, bytes, false)?;
            if let Some(at) = window.map.not_zero(window.skip, bytes as usize) {
                return Ok(Some(offset + (at - window.skip) as u64));
            }
        }
        Ok(None)
    }

    pub fn reap_handles(&self, table: &mut Table) {
        table
            .holders
            .retain(|holder| self.is_alive(&holder.process));
    }

    pub fn rounded(&self, size: u64) -> Result<u64> {
        let rounded = size.checked_next_multiple_of(self.header.unit);
        rounded
            .filter(|size| *size > 0)
            .ok_or_else(|| NamespaceError::Request(format!("a namespace cannot have {size} bytes")))
    }

    fn life(&self, keep: Keep) -> Result<Life> {
        Ok(match keep {
            Keep::Forever => Life::Kept,
            Keep::For(time) => {
                let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                Life::Until(identity::wall_ms().saturating_add(ms))
            }
            Keep::With(pid) => Life::With(Process {
                pid,
                start: identity::start_of(pid).ok_or_else(|| {
                    NamespaceError::Request(format!("there is no process {pid} on this host"))
                })?,
                ..self.me
            }),
        })
    }

    fn mask(&self, hosts: &[String]) -> Result<u32> {
        hosts
            .iter()
            .try_fold(0, |mask, host| Ok(mask | 1 << self.place_of(host)?))
    }

    fn check_quota(&self, table: &Table, uid: u32, more: u64) -> Result<()> {
        let (quota, asked) = (self.header.quota, table.used_by(uid).saturating_add(more));
        if quota == 0 || uid == 0 || asked <= quota {
            return Ok(());
        }
        Err(NamespaceError::Quota { uid, asked, quota })
    }

    pub fn missing(&self, name: &str) -> NamespaceError {
        NamespaceError::Missing {
            name: name.to_owned(),
            path: self.medium.path.clone(),
        }
    }

    fn exists(&self, entry: &Entry) -> NamespaceError {
        NamespaceError::Exists {
            name: entry.name.clone(),
            path: self.medium.path.clone(),
            owner: self.host_name(entry.owner),
        }
    }

    pub fn find<'a>(&self, table: &'a Table, name: &str) -> Result<&'a Entry> {
        table.named(name).ok_or_else(|| self.missing(name))
    }

    pub fn entry_mut<'a>(
        &self,
        table: &'a mut Table,
        id: u64,
        name: &str,
    ) -> Result<&'a mut Entry> {
        table.of_mut(id).ok_or_else(|| self.missing(name))
    }

    pub fn not_owner(&self, what: &'static str, entry: &Entry) -> NamespaceError {
        NamespaceError::NotOwner {
            what,
            name: entry.name.clone(),
            owner: self.host_name(entry.owner),
            host: self.host.clone(),
        }
    }

    pub fn permission(&self, what: &'static str, entry: &Entry) -> NamespaceError {
        NamespaceError::Permission {
            what,
            name: entry.name.clone(),
            uid: self.user.uid,
            owner: entry.uid,
            mode: entry.mode,
        }
    }

    fn may_not(&self, what: &'static str, table: &Table, id: u64) -> NamespaceError {
        match table.of(id) {
            Some(entry) => self.permission(what, entry),
            None => self.missing(""),
        }
    }

    fn check_user(&self, what: &'static str, entry: &Entry) -> Result<()> {
        match self.user.uid == 0 || self.user.uid == entry.uid {
            true => Ok(()),
            false => Err(self.permission(what, entry)),
        }
    }

    /// The number of a namespace of this host and user.
    fn own(&self, table: &Table, name: &str, what: &'static str) -> Result<u64> {
        let entry = self.find(table, name)?;
        if entry.owner != self.me.host {
            return Err(self.not_owner(what, entry));
        }
        self.check_user(what, entry)?;
        Ok(entry.id)
    }

    pub fn check_unheld(&self, table: &Table, id: u64, name: &str) -> Result<()> {
        let who: Vec<String> = table.holders_of(id).map(|h| self.who(&h.process)).collect();
        if who.is_empty() {
            return Ok(());
        }
        Err(NamespaceError::Held {
            name: name.to_owned(),
            who: who.join(", "),
        })
    }

    /// A process in words.
    pub fn who(&self, process: &Process) -> String {
        let host = self.host_name(process.host);
        if process.host == self.me.host {
            return format!("{} of host {host}", described(process.pid));
        }
        format!("process {} of host {host}", process.pid)
    }

    pub fn window(&self, offset: u64, size: u64, write: bool) -> Result<Window> {
        let unit = self.medium.unit;
        let from = offset - offset % unit;
        let end = (offset + size)
            .next_multiple_of(unit)
            .min(self.medium.bytes);
        let fault = self.options.fault.clone();
        let mapped = Mapping::new(&self.medium.file, from, (end - from) as usize, write, fault);
        let (map, _) = mapped.map_err(|source| NamespaceError::Io {
            what: "map",
            path: self.medium.path.clone(),
            source,
        })?;
        let skip = (offset - from) as usize;
        Ok(Window { map, skip })
    }

    fn sync_window(&self, window: &Window) -> Result<()> {
        if self.medium.device || self.medium.in_memory || self.sync {
            return Ok(());
        }
        let bytes = window.map.bytes();
        window
            .map
            .sync(0, bytes)
            .map_err(|source| NamespaceError::Io {
                what: "sync",
                path: self.medium.path.clone(),
                source,
            })
    }
}

fn copy(from: &Window, to: &Window, bytes: usize) {
    from.map.flush(from.skip, bytes);
    for at in (0..bytes).step_by(8) {
        to.map.store(to.skip + at, from.map.load(from.skip + at));
    }
    to.map.flush(to.skip, bytes);
}
