//! What is done with namespaces by name: create, change, hand over, destroy. `resize` and `recover` have the rest.

use std::time::Duration;

use crate::error::{NamespaceError, Result};
use crate::identity::{self, Process, check_name};
use crate::layout::NAME;
use crate::pool::Pool;
use crate::shared::Inner;
use crate::table::{Entry, Life, State};

/// How long a namespace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Until it is destroyed, also when its owner dies.
    #[default]
    Forever,
    /// As long as a process of this host lives, and as long as it is open after that.
    With(u32),
    /// This long from now, and as long as it is open after that.
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
}

impl Inner {
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
}
