//! The segment table: which range is whose. Pure: nothing here knows memory, time or the kernel.

use crate::identity::{Process, User, check_name};
use crate::layout::{HOSTS, Header, NAME};

/// What a range is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A namespace.
    Live,
    /// It was released or was to be moved into, and may have content until this process, or one that takes its work
    /// over, has written zeros.
    Scrubbing(Process),
}

/// How long a namespace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Until it is destroyed.
    Kept,
    /// Until this time, in ms since 1970, and as long as it is open after that.
    Until(u64),
    /// As long as this process lives, and as long as it is open after that.
    With(Process),
}

/// A range of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number, which no other one gets.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Where it begins in the pool, in bytes.
    pub offset: u64,
    /// Its size in bytes, a multiple of the pool's unit.
    pub size: u64,
    /// Grows when it gets another owner or another place.
    pub generation: u64,
    /// What it is.
    pub state: State,
    /// How long it is kept.
    pub life: Life,
    /// The place of the host that owns it.
    pub owner: u16,
    /// The user who owns it.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Permission bits, as those of files.
    pub mode: u32,
    /// Hosts besides the owner that may open it, a bit for each place.
    pub hosts: u32,
    /// Whether the process that has it open copies it to another place. No other process may open it meanwhile, since what is
    /// stored into the old place would be lost.
    pub moving: bool,
}

/// A handle that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Which namespace.
    pub namespace: u64,
    /// The number of the handle.
    pub handle: u64,
    /// Whether it may be written through it.
    pub write: bool,
    /// The namespace's generation when it was opened.
    pub generation: u64,
    /// The process that has it.
    pub process: Process,
}

/// Why a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No free range: the largest, and all free bytes.
    Full { largest: u64, free: u64 },
    /// This many are the most.
    Entries(usize),
    /// The same of handles.
    Holders(usize),
}

/// All ranges that are not free, and all open handles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Grows with each change.
    pub sequence: u64,
    /// The next number of a namespace or handle.
    pub next: u64,
    /// Ordered by offset.
    pub entries: Vec<Entry>,
    /// In the order in which they were opened.
    pub holders: Vec<Holder>,
}

impl Table {
    /// What contradicts: overlap, a range beyond the pool, a name that is there twice, a handle of nothing.
    pub(crate) fn check(&self, header: &Header) -> Result<(), String> {
        let mut end = header.data;
        for entry in &self.entries {
            let name = &entry.name;
            let fits = entry.size > 0
                && entry.offset.is_multiple_of(header.unit)
                && entry.size.is_multiple_of(header.unit)
                && entry
                    .offset
                    .checked_add(entry.size)
                    .is_some_and(|end| end <= header.bytes);
            if !fits {
                return Err(format!(
                    "{name:?} has {} bytes from {} on, which are not whole units of the pool",
                    entry.size, entry.offset
                ));
            }
            if entry.offset < end {
                return Err(format!(
                    "{name:?} begins at {}, below {end}, where the range before it ends",
                    entry.offset
                ));
            }
            end = entry.offset + entry.size;
            check_name("the name", name, NAME)?;
            if entry.owner as usize >= HOSTS || entry.id >= self.next || entry.mode > 0o777 {
                return Err(format!(
                    "{name:?} has owner {}, number {} and mode {:o}, of which one cannot be",
                    entry.owner, entry.id, entry.mode
                ));
            }
        }
        let mut ids: Vec<u64> = self.entries.iter().map(|entry| entry.id).collect();
        ids.sort_unstable();
        let live = self.entries.iter().filter(|entry| entry.is_live());
        let mut names: Vec<&str> = live.map(|entry| entry.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{:?} is there twice", twice[0]));
        }
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("number {} is there twice", twice[0]));
        }
        for holder in &self.holders {
            if ids.binary_search(&holder.namespace).is_err() || holder.handle >= self.next {
                return Err(format!(
                    "handle {} is of namespace {}, which is not there",
                    holder.handle, holder.namespace
                ));
            }
        }
        Ok(())
    }

    /// The live namespace of a name.
    pub fn named(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.is_live() && e.name == name)
    }

    /// The entry of a number.
    pub fn of(&self, id: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    pub(crate) fn of_mut(&mut self, id: u64) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }

    /// Which processes have a namespace open: its reference count is their number.
    pub fn holders_of(&self, id: u64) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |h| h.namespace == id)
    }

    /// A number that was not given before.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Free ranges, offset and size, in their order.
    pub(crate) fn free(&self, header: &Header) -> Vec<(u64, u64)> {
        let mut free = Vec::new();
        let mut end = header.data;
        for entry in &self.entries {
            if entry.offset > end {
                free.push((end, entry.offset - end));
            }
            end = entry.offset + entry.size;
        }
        if end < header.bytes {
            free.push((end, header.bytes - end));
        }
        free
    }

    /// The smallest free range that has room for `size` at `align`, the first of equal ones.
    pub(crate) fn find(&self, header: &Header, size: u64, align: u64) -> Result<u64, Refused> {
        let free = self.free(header);
        let room = |&(offset, bytes): &(u64, u64)| {
            let from = offset.checked_next_multiple_of(align)?;
            let room = (offset + bytes).checked_sub(from)?;
            Some((from, room, bytes))
        };
        let rooms = || free.iter().filter_map(room);
        let best = rooms().filter(|r| r.1 >= size).min_by_key(|r| r.2);
        best.map(|(from, ..)| from).ok_or_else(|| Refused::Full {
            largest: rooms().map(|r| r.1).max().unwrap_or(0),
            free: free.iter().map(|range| range.1).sum(),
        })
    }

    /// Puts an entry where it belongs.
    pub(crate) fn insert(&mut self, header: &Header, entry: Entry) -> Result<(), Refused> {
        if self.entries.len() >= header.entries as usize {
            return Err(Refused::Entries(header.entries as usize));
        }
        let at = self.entries.partition_point(|e| e.offset < entry.offset);
        self.entries.insert(at, entry);
        Ok(())
    }

    /// Notes an open handle, and returns its number.
    pub(crate) fn hold(
        &mut self,
        header: &Header,
        namespace: u64,
        write: bool,
        process: Process,
    ) -> Result<u64, Refused> {
        if self.holders.len() >= header.holders as usize {
            return Err(Refused::Holders(header.holders as usize));
        }
        let generation = self.of(namespace).map_or(0, |entry| entry.generation);
        let handle = self.number();
        self.holders.push(Holder {
            namespace,
            handle,
            write,
            generation,
            process,
        });
        Ok(handle)
    }

    /// A part at the end of a namespace becomes a range to scrub.
    pub(crate) fn cut(
        &mut self,
        header: &Header,
        id: u64,
        size: u64,
        by: Process,
    ) -> Result<u64, Refused> {
        let number = self.number();
        let Some(entry) = self.of_mut(id) else {
            return Ok(number);
        };
        let tail = Entry {
            id: number,
            offset: entry.offset + size,
            size: entry.size - size,
            state: State::Scrubbing(by),
            life: Life::Kept,
            ..entry.clone()
        };
        entry.size = size;
        self.insert(header, tail)?;
        Ok(number)
    }

    /// Drops handles of dead processes, and turns namespaces whose time is over into ranges to scrub by `me`. Ranges
    /// whose scrubber is dead become its work as well. Returns the numbers of handles and of ranges.
    pub(crate) fn reap(
        &mut self,
        now_ms: u64,
        me: Process,
        alive: &dyn Fn(&Process) -> bool,
    ) -> Reaped {
        let mut reaped = Reaped::default();
        self.holders.retain(|holder| {
            let keep = alive(&holder.process);
            reaped.handles += usize::from(!keep);
            keep
        });
        for at in 0..self.entries.len() {
            let id = self.entries[at].id;
            let held = self.holders_of(id).next().is_some();
            let entry = &mut self.entries[at];
            let over = match (entry.state, entry.life) {
                (State::Scrubbing(by), _) => !alive(&by),
                (State::Live, Life::Kept) => false,
                (State::Live, Life::Until(ms)) => !held && now_ms > ms,
                (State::Live, Life::With(process)) => !held && !alive(&process),
            };
            if over {
                if entry.is_live() {
                    reaped.released.push(entry.name.clone());
                }
                entry.state = State::Scrubbing(me);
                reaped.scrubs.push(id);
            }
        }
        reaped
    }

    /// Bytes that a user has.
    pub(crate) fn used_by(&self, uid: u32) -> u64 {
        let own = self.entries.iter().filter(|e| e.is_live() && e.uid == uid);
        own.map(|entry| entry.size).sum()
    }
}

/// What a reap found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reaped {
    /// Handles of dead processes.
    pub handles: usize,
    /// Names of namespaces whose time was over.
    pub released: Vec<String>,
    /// Ranges to scrub now.
    pub scrubs: Vec<u64>,
}

impl Entry {
    /// Whether it is a namespace, and not a range that is being scrubbed.
    pub fn is_live(&self) -> bool {
        self.state == State::Live
    }

    /// Whether a user may read it, or write it; the superuser may both.
    pub fn permits(&self, user: &User, write: bool) -> bool {
        let class = if user.uid == self.uid {
            6
        } else if user.groups.contains(&self.gid) {
            3
        } else {
            0
        };
        let bit = if write { 2 } else { 4 };
        user.uid == 0 || (self.mode >> class) & bit != 0
    }

    /// Whether a host may open it.
    pub fn admits(&self, host: u16) -> bool {
        self.owner == host || self.hosts & (1 << host) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, page: u64) -> Entry {
        Entry {
            id,
            name: format!("n{id}"),
            offset: page * 4096,
            size: 8192,
            generation: 1,
            state: State::Live,
            life: Life::Kept,
            owner: 0,
            uid: 7,
            gid: 7,
            mode: 0o600,
            hosts: 0,
            moving: false,
        }
    }

    #[test]
    fn a_table_that_contradicts_itself_is_refused() {
        let header = Header {
            uuid: [0; 16],
            bytes: 16 * 4096,
            data: 4 * 4096,
            unit: 4096,
            places: 1,
            entries: 8,
            holders: 8,
            lease_ms: 1000,
            quota: 0,
        };
        let with = |change: &dyn Fn(&mut Table)| {
            let mut table = Table {
                next: 9,
                entries: vec![entry(1, 4), entry(2, 6)],
                ..Table::default()
            };
            let handle = table.hold(&header, 2, true, Process::default());
            assert_eq!(handle, Ok(9));
            change(&mut table);
            table.check(&header)
        };
        assert_eq!(with(&|_| {}), Ok(()));
        let wrong: [&dyn Fn(&mut Table); 8] = [
            &|table| table.entries[1].offset -= 4096,
            &|table| table.entries[1].offset = 15 * 4096,
            &|table| table.entries[0].offset = 3 * 4096,
            &|table| table.entries[0].id = 10,
            &|table| table.entries[0].id = 2,
            &|table| table.entries[1].name = "n1".into(),
            &|table| table.holders[0].namespace = 3,
            &|table| table.holders[0].handle = 10,
        ];
        for (nth, change) in wrong.into_iter().enumerate() {
            assert!(with(change).is_err(), "{nth}");
        }
        // A range that is being scrubbed is nobody's.
        let mut table = Table {
            entries: vec![entry(1, 4), entry(2, 6)],
            ..Table::default()
        };
        table.entries[0].state = State::Scrubbing(Process::default());
        assert_eq!((table.used_by(7), table.used_by(8)), (8192, 0));
    }
}
