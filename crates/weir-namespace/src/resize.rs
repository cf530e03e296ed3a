//! Resizing: in place, or by a move that a kill leaves as a range to scrub.

use crate::error::Result;
use crate::mapping::Window;
use crate::pool::Pool;
use crate::table::{Entry, Life, State};

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

impl Pool {
    /// Gives a namespace another size. It grows where it is if there is room, and else moves, if no process has it open.
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
        let source = inner.reached(from.offset, from.size, false)?;
        let target = inner.reached(to.offset, to.size, true)?;
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
}

fn copy(from: &Window, to: &Window, bytes: usize) {
    from.map.flush(from.skip, bytes);
    for at in (0..bytes).step_by(8) {
        to.map.store(to.skip + at, from.map.load(from.skip + at));
    }
    to.map.flush(to.skip, bytes);
}
