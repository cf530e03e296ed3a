//! A namespace that is open: a shared mapping, and a reference that is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{NamespaceError, Result};
use crate::mapping::{Mapping, Window, copy_checked};
use crate::pool::Pool;
use crate::shared::Inner;
use crate::table::Table;

/// A namespace that is mapped. The mapping is shared: what one process stores, all see; there is no private one.
///
/// [`Namespace::read_at`] and [`Namespace::write_at`] check that it is still the same namespace, and have an error where
/// memory is gone. Loads and stores at [`Namespace::pointer`] have neither.
pub struct Namespace {
    inner: Arc<Inner>,
    window: Window,
    name: String,
    id: u64,
    generation: u64,
    handle: u64,
    offset: u64,
    size: u64,
    write: bool,
    /// The sequence number of the last table in which the handle was good.
    checked: AtomicU64,
}

impl Pool {
    /// Opens a namespace: maps it, and counts a reference until the handle is dropped or its process dies.
    ///
    /// # Errors
    /// Its mode or the list of its hosts does not permit it, or it cannot be mapped.
    pub fn map(&self, name: &str, write: bool) -> Result<Namespace> {
        let inner = &self.0;
        let what = if write { "write" } else { "read" };
        let (entry, handle) = inner.update(|table| {
            let entry = inner.find(table, name)?.clone();
            if !entry.admits(inner.me.host) {
                return Err(inner.not_owner("open", &entry));
            }
            if !entry.permits(&inner.user, write) || write && !entry.permits(&inner.user, false) {
                return Err(inner.permission(what, &entry));
            }
            if entry.moving {
                // The mover may be dead, and its reference with it.
                inner.reap_handles(table);
                inner.check_unheld(table, entry.id, name)?;
                inner.entry_mut(table, entry.id, name)?.moving = false;
            }
            let held = table.hold(&inner.header, entry.id, write, inner.me);
            let handle = held.map_err(|refused| inner.refused(refused, 0))?;
            Ok((entry, handle))
        })?;
        keep_beating(inner);
        // Dropped without a mapping, the handle is given back.
        let window = inner.window(entry.offset, entry.size, write);
        let window = window.inspect_err(|_| {
            let _ = inner.release(handle);
        })?;
        Ok(Namespace {
            inner: Arc::clone(inner),
            window,
            name: entry.name,
            id: entry.id,
            generation: entry.generation,
            handle,
            offset: entry.offset,
            size: entry.size,
            write,
            checked: AtomicU64::new(0),
        })
    }
}

impl Namespace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its size when it was opened, in bytes.
    pub fn bytes(&self) -> u64 {
        self.size
    }

    /// Where it begins in the pool: `mmap` of the pool's file at this offset is the same memory.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its generation when it was opened.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Its first byte. Other processes change what is there at any time, so that it must be accessed as memory that
    /// threads share. It is mapped until the handle is dropped; stores need a handle that was opened to be written.
    pub fn pointer(&self) -> *mut u8 {
        self.window.map.pointer().wrapping_add(self.window.skip)
    }

    /// Whether the handle is still good: the namespace is there, has the same owner and the same place, and admits this
    /// host.
    ///
    /// # Errors
    /// [`NamespaceError::Stale`] if it is not.
    pub fn check(&self) -> Result<()> {
        self.inner.reach()?;
        if self
            .inner
            .is_unchanged(self.checked.load(Ordering::Acquire))
        {
            return Ok(());
        }
        let table = self.inner.table()?;
        self.check_in(&table)?;
        self.checked.store(table.sequence, Ordering::Release);
        Ok(())
    }

    fn check_in(&self, table: &Table) -> Result<()> {
        let held = table.holders.iter().any(|h| h.handle == self.handle);
        let now = match table.of(self.id).filter(|entry| entry.is_live()) {
            None => "and the namespace was released".to_owned(),
            Some(entry) if entry.generation != self.generation => format!(
                "and the namespace has generation {} and owner {}",
                entry.generation,
                self.inner.host_name(entry.owner)
            ),
            Some(entry) if !entry.admits(self.inner.me.host) => {
                "and the namespace does not admit this host any more".to_owned()
            }
            Some(_) if !held => "and was dropped, since its process was taken for dead".to_owned(),
            Some(_) => return Ok(()),
        };
        Err(NamespaceError::Stale {
            name: self.name.clone(),
            had: self.generation,
            now,
        })
    }

    /// Reads all of `into` from a byte on, from memory and not from this host's caches.
    ///
    /// # Errors
    /// Beyond the end, the handle is stale, or the memory is gone.
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let start = self.part(at, into.len())?;
        self.window.map.flush(start, into.len());
        let from = self.window.map.pointer().wrapping_add(start);
        copy_checked(from, into.as_mut_ptr(), into.len(), false).map_err(self.gone(at))
    }

    /// Writes all of `from` from a byte on, into memory.
    ///
    /// # Errors
    /// It was opened to be read only, beyond the end, the handle is stale, or the memory is gone.
    pub fn write_at(&self, at: u64, from: &[u8]) -> Result<()> {
        if !self.write {
            return Err(NamespaceError::ReadOnly(self.name.clone()));
        }
        let start = self.part(at, from.len())?;
        let to = self.window.map.pointer().wrapping_add(start);
        copy_checked(to, from.as_ptr().cast_mut(), from.len(), true).map_err(self.gone(at))?;
        self.window.map.flush(start, from.len());
        Ok(())
    }

    /// Writes the lines of a range back, and drops them from this host's caches: what was stored before is seen by other
    /// hosts, and loads after it see what they stored. On a file that is on a disk it also waits for that.
    ///
    /// # Errors
    /// Beyond the end, the handle is stale, or the file cannot be written.
    pub fn flush(&self, at: u64, bytes: usize) -> Result<()> {
        let start = self.part(at, bytes)?;
        self.window.map.flush(start, bytes);
        let medium = &self.inner.medium;
        if medium.device || medium.in_memory || self.inner.sync {
            return Ok(());
        }
        self.window.map.sync(start, bytes).map_err(self.gone(at))
    }

    fn part(&self, at: u64, bytes: usize) -> Result<usize> {
        let end = at.saturating_add(bytes as u64);
        if end > self.size {
            return Err(NamespaceError::Bounds {
                name: self.name.clone(),
                at,
                end,
                size: self.size,
            });
        }
        self.check()?;
        let start = self.window.skip + at as usize;
        // A flush of a line that is gone would end the process.
        let (window, from) = (&self.window, self.offset - self.window.skip as u64);
        let reached = (self.inner.medium).reach(&window.map, from, start, bytes);
        reached.map_err(self.gone(at))?;
        Ok(start)
    }

    fn gone(&self, at: u64) -> impl FnOnce(std::io::Error) -> NamespaceError {
        let name = self.name.clone();
        move |source| NamespaceError::Gone { name, at, source }
    }

    /// The words of its memory, for the heap.
    pub(crate) fn words(&self) -> (&Mapping, usize) {
        (&self.window.map, self.window.skip)
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.write
    }

    /// Gives the reference back, as dropping does, and says if that failed.
    ///
    /// # Errors
    /// The table stays locked; the reference counts until this process ends.
    pub fn close(mut self) -> Result<()> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<()> {
        let handle = std::mem::replace(&mut self.handle, u64::MAX);
        match handle {
            u64::MAX => Ok(()),
            handle => self.inner.release(handle),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.give_back();
    }
}

impl Inner {
    pub fn release(&self, handle: u64) -> Result<()> {
        // A child of a fork has the handle of its parent, and must not give it back.
        if self.me.pid != std::process::id() {
            return Ok(());
        }
        self.update(|table| {
            table.holders.retain(|holder| holder.handle != handle);
            Ok(())
        })
    }
}

/// Shows signs of life of this host, four in a lease, as long as the pool is open.
fn keep_beating(inner: &Arc<Inner>) {
    // A simulated host is as silent as its tests want.
    if inner.options.boot.is_some() || inner.beating.swap(true, Ordering::AcqRel) {
        return;
    }
    let every = Duration::from_millis((inner.header.lease_ms / 4).max(1));
    let weak = Arc::downgrade(inner);
    let beats = move || {
        loop {
            std::thread::park_timeout(every);
            match weak.upgrade() {
                Some(inner) => inner.beat(),
                None => return,
            }
        }
    };
    // Without a thread the calls of this pool are its signs of life.
    let _ = std::thread::Builder::new()
        .name("weir-namespace".into())
        .spawn(beats);
}
