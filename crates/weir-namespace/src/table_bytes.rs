//! The bytes of a copy of the table. All numbers are little-endian.

use crate::identity::Process;
use crate::layout::{ENTRY, HOLDER, HOSTS, Header, NAME, Reader, TABLE_HEADER};
use crate::table::{Entry, Holder, Life, State, Table};

impl Header {
    /// The bytes of a table, its sequence number and checksum in front.
    pub fn encode_table(&self, table: &Table) -> Vec<u8> {
        let mut out = vec![0; TABLE_HEADER];
        for entry in &table.entries {
            write_entry(&mut out, entry);
        }
        for holder in &table.holders {
            for number in [
                holder.namespace,
                holder.handle,
                u64::from(holder.write),
                holder.generation,
            ] {
                out.extend(number.to_le_bytes());
            }
            write_process(&mut out, &holder.process);
        }
        out[8..16].copy_from_slice(&table.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&table.next.to_le_bytes());
        out[24..28].copy_from_slice(&(table.entries.len() as u32).to_le_bytes());
        out[28..32].copy_from_slice(&(table.holders.len() as u32).to_le_bytes());
        let sum = u64::from(crc32fast::hash(&out[8..])) | 1 << 32;
        out[..8].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// How many bytes a copy of the table has, by its first ones; `None` if that cannot be.
    pub fn encoded_bytes(&self, head: &[u8]) -> Option<usize> {
        let mut reader = Reader(head.get(24..)?);
        let (entries, holders) = (reader.u32().ok()?, reader.u32().ok()?);
        if entries > self.entries || holders > self.holders {
            return None;
        }
        Some(TABLE_HEADER + entries as usize * ENTRY + holders as usize * HOLDER)
    }

    /// Bytes of the first part of a table.
    pub const fn table_header() -> usize {
        TABLE_HEADER
    }

    /// Reads a copy of the table: `None` where its checksum is wrong, as after a store that was interrupted.
    pub fn decode_table(&self, bytes: &[u8]) -> Option<Result<Table, String>> {
        let sum = u64::from(crc32fast::hash(bytes.get(8..)?)) | 1 << 32;
        if bytes[..8] != sum.to_le_bytes() {
            return None;
        }
        Some(self.parse_table(bytes))
    }

    fn parse_table(&self, bytes: &[u8]) -> Result<Table, String> {
        let mut reader = Reader(&bytes[8..]);
        let (sequence, next) = (reader.u64()?, reader.u64()?);
        let (entries, holders) = (reader.u32()?, reader.u32()?);
        let mut reader = Reader(&bytes[TABLE_HEADER..]);
        let mut table = Table {
            sequence,
            next,
            ..Table::default()
        };
        for nth in 0..entries {
            let entry = read_entry(&mut reader).map_err(|why| format!("entry {nth}: {why}"))?;
            table.entries.push(entry);
        }
        for _ in 0..holders {
            table.holders.push(Holder {
                namespace: reader.u64()?,
                handle: reader.u64()?,
                write: reader.u64()? != 0,
                generation: reader.u64()?,
                process: read_process(&mut reader)?,
            });
        }
        table.check(self)?;
        Ok(table)
    }
}

fn write_process(out: &mut Vec<u8>, process: &Process) {
    out.extend(process.host.to_le_bytes());
    out.extend([0; 2]);
    out.extend(process.pid.to_le_bytes());
    out.extend(process.start.to_le_bytes());
    out.extend(process.boot.to_le_bytes());
}

fn read_process(reader: &mut Reader) -> Result<Process, String> {
    let host = reader.u16()?;
    reader.take::<2>()?;
    if host as usize >= HOSTS {
        return Err(format!("a process of host {host}, and there are {HOSTS}"));
    }
    Ok(Process {
        host,
        pid: reader.u32()?,
        start: reader.u64()?,
        boot: reader.u64()?,
    })
}

fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    let (life, until, with) = match entry.life {
        Life::Kept => (0, 0, Process::default()),
        Life::Until(ms) => (1, ms, Process::default()),
        Life::With(process) => (2, 0, process),
    };
    let (state, by) = match entry.state {
        State::Live => (0, Process::default()),
        State::Scrubbing(by) => (1, by),
    };
    for number in [entry.id, entry.offset, entry.size, entry.generation, until] {
        out.extend(number.to_le_bytes());
    }
    out.extend([state, life]);
    out.extend(entry.owner.to_le_bytes());
    let moving = u32::from(entry.moving);
    for number in [entry.uid, entry.gid, entry.mode, entry.hosts, moving] {
        out.extend(number.to_le_bytes());
    }
    write_process(out, &with);
    write_process(out, &by);
    let mut name = [0; NAME + 1];
    name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
    out.extend(name);
    out.extend([0; 8]);
}

fn read_entry(reader: &mut Reader) -> Result<Entry, String> {
    let (id, offset, size) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let (generation, until) = (reader.u64()?, reader.u64()?);
    let [state, life] = reader.take()?;
    let owner = reader.u16()?;
    let (uid, gid) = (reader.u32()?, reader.u32()?);
    let (mode, hosts) = (reader.u32()?, reader.u32()?);
    let moving = reader.u32()? != 0;
    let (with, by) = (read_process(reader)?, read_process(reader)?);
    let name = reader.take::<{ NAME + 1 }>()?;
    reader.u64()?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    Ok(Entry {
        id,
        name,
        offset,
        size,
        generation,
        state: match state {
            0 => State::Live,
            1 => State::Scrubbing(by),
            other => return Err(format!("state {other} is none")),
        },
        life: match life {
            0 => Life::Kept,
            1 => Life::Until(until),
            2 => Life::With(with),
            other => return Err(format!("lifetime {other} is none")),
        },
        owner,
        uid,
        gid,
        mode,
        hosts,
        moving,
    })
}
