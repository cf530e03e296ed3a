//! Who may do what, and how a refusal is said.

use crate::error::{NamespaceError, Result};
use crate::identity::{Process, described};
use crate::shared::Inner;
use crate::table::{Entry, Table};

impl Inner {
    pub fn check_quota(&self, table: &Table, uid: u32, more: u64) -> Result<()> {
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

    pub fn exists(&self, entry: &Entry) -> NamespaceError {
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

    pub fn may_not(&self, what: &'static str, table: &Table, id: u64) -> NamespaceError {
        match table.of(id) {
            Some(entry) => self.permission(what, entry),
            None => self.missing(""),
        }
    }

    pub fn check_user(&self, what: &'static str, entry: &Entry) -> Result<()> {
        match self.user.uid == 0 || self.user.uid == entry.uid {
            true => Ok(()),
            false => Err(self.permission(what, entry)),
        }
    }

    /// The number of a namespace of this host and user.
    pub fn own(&self, table: &Table, name: &str, what: &'static str) -> Result<u64> {
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
}
