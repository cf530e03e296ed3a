//! Recovery and scrubbing: what the dead had becomes zeros, and free after that.

use crate::error::{NamespaceError, Result};
use crate::identity;
use crate::mapping::{Mapping, Window};
use crate::pool::Pool;
use crate::shared::{Inner, Recovered};
use crate::table::{Entry, State, Table};

impl Pool {
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
            let window = self.reached(entry.offset, entry.size, true)?;
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

    pub fn not_zero(&self, table: &Table) -> Result<Option<u64>> {
        for (offset, bytes) in table.free(&self.header) {
            let window = self.reached(offset, bytes, false)?;
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

    /// A window of which every page is there, so that it can be scrubbed, searched or copied.
    pub fn reached(&self, offset: u64, size: u64, write: bool) -> Result<Window> {
        let window = self.window(offset, size, write)?;
        let from = offset - window.skip as u64;
        let reached = (self.medium).reach(&window.map, from, window.skip, size as usize);
        reached.map_err(|source| self.lost(source))?;
        Ok(window)
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

    pub fn sync_window(&self, window: &Window) -> Result<()> {
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
