//! Where things are in a pool, and the bytes of the header and of the lines of hosts. All numbers are little-endian.
//!
//! | byte | content |
//! |---|---|
//! | 0 | header: magic, version, UUID, sizes, checksum; written once |
//! | 4096 | places for hosts, 128 bytes each: a line that only the host writes, and a line with its name |
//! | 8192 | two copies of the table for each place, which only that host writes; the valid one with the highest sequence number counts |
//! | `data` | ranges of namespaces, and zeros |

use crate::identity::check_name;

const MAGIC: &[u8; 8] = b"WEIRNSP\0";
/// The version of the layout that this crate reads and writes.
const VERSION: u32 = 1;
/// Bytes of the header.
pub(crate) const HEADER: usize = 128;
/// The most places for hosts that a pool may have.
pub(crate) const HOSTS: usize = 32;
/// Where they are.
const HOSTS_AT: usize = 4096;
/// Where the copies of the table are.
const TABLES_AT: usize = 8192;
/// Bytes of a table before its entries, of an entry, and of a handle.
pub(crate) const TABLE_HEADER: usize = 64;
pub(crate) const ENTRY: usize = 184;
pub(crate) const HOLDER: usize = 56;
/// The most namespaces that a pool may have room for; of handles, twice as many.
pub(crate) const MOST: u32 = 4096;
/// The longest name of a namespace.
pub(crate) const NAME: usize = 63;
/// The longest name of a host.
pub(crate) const HOST_NAME: usize = 55;

/// What a pool is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub uuid: [u8; 16],
    pub bytes: u64,
    /// Where ranges of namespaces begin.
    pub data: u64,
    /// What offsets and sizes are multiples of.
    pub unit: u64,
    /// Places for hosts.
    pub places: u32,
    /// Namespaces and interrupted scrubs that the table has room for.
    pub entries: u32,
    /// Open handles that it has room for.
    pub holders: u32,
    /// How long a host may show no sign of life before it counts as dead.
    pub lease_ms: u64,
    /// Bytes that a user may have; 0 for all.
    pub quota: u64,
}

/// Where the parts of a host's lines are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostLines(usize);

impl HostLines {
    pub fn of(host: usize) -> Self {
        assert!(host < HOSTS);
        Self(HOSTS_AT + 128 * host)
    }
    /// Which boot of the host used the pool last.
    pub fn boot(self) -> usize {
        self.0
    }
    /// Its number in the queue for the lock; 0 while it wants none.
    pub fn number(self) -> usize {
        self.0 + 8
    }
    /// 1 while it draws one.
    pub fn choosing(self) -> usize {
        self.0 + 16
    }
    /// Its last sign of life, in ms since 1970.
    pub fn beat(self) -> usize {
        self.0 + 24
    }
    /// Changes with each step in the queue.
    pub fn steps(self) -> usize {
        self.0 + 32
    }
    /// Its name, by whom it was admitted.
    pub fn name(self) -> usize {
        self.0 + 64
    }
}

/// A name with its checksum, as a line.
pub(crate) fn host_line(name: &str) -> [u8; 64] {
    let mut line = [0; 64];
    line[..name.len()].copy_from_slice(name.as_bytes());
    let sum = crc32fast::hash(&line[..56]);
    line[56..60].copy_from_slice(&sum.to_le_bytes());
    line
}

/// The name in a line; `None` if there is none.
pub(crate) fn host_of(line: &[u8; 64]) -> Option<String> {
    if crc32fast::hash(&line[..56]).to_le_bytes() != line[56..60] {
        return None;
    }
    let end = line[..56].iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&line[..end]).ok()?;
    check_name("the host", name, HOST_NAME).ok()?;
    Some(name.to_owned())
}

impl Header {
    /// Bytes of one copy of the table.
    pub fn table_bytes(&self) -> usize {
        let bytes = TABLE_HEADER + self.entries as usize * ENTRY + self.holders as usize * HOLDER;
        bytes.next_multiple_of(4096)
    }

    /// How many copies of the table there are.
    pub fn copies(&self) -> usize {
        2 * self.places as usize
    }

    /// Where a copy of the table is.
    pub fn table_at(&self, copy: usize) -> usize {
        TABLES_AT + copy * self.table_bytes()
    }

    /// Bytes before the ranges of namespaces, before rounding.
    pub fn metadata(&self) -> usize {
        self.table_at(self.copies())
    }

    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = Vec::with_capacity(HEADER);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.places.to_le_bytes());
        out.extend(self.uuid);
        for number in [self.bytes, self.data, self.unit] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.entries.to_le_bytes());
        out.extend(self.holders.to_le_bytes());
        out.extend(self.lease_ms.to_le_bytes());
        out.extend(self.quota.to_le_bytes());
        let mut header = [0; HEADER];
        header[..out.len()].copy_from_slice(&out);
        let sum = crc32fast::hash(&header[..HEADER - 8]);
        header[HEADER - 8..HEADER - 4].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Reads a header of a medium with this many bytes, and says what is wrong with it.
    pub fn decode(header: &[u8; HEADER], medium: u64) -> Result<Self, String> {
        let mut reader = Reader(header);
        let magic = reader.take::<8>()?;
        if &magic != MAGIC {
            let zeros = header.iter().all(|byte| *byte == 0);
            let what = if zeros {
                "is zero"
            } else {
                "has another content"
            };
            return Err(format!(
                "its first 8 bytes are not the magic of a pool, and the header {what}"
            ));
        }
        let version = reader.u32()?;
        if version != VERSION {
            return Err(format!(
                "its layout has version {version}, and this program reads {VERSION}"
            ));
        }
        let sum = crc32fast::hash(&header[..HEADER - 8]).to_le_bytes();
        if sum != header[HEADER - 8..HEADER - 4] {
            return Err("the checksum of its header is wrong".into());
        }
        let places = reader.u32()?;
        let header = Self {
            places,
            uuid: reader.take()?,
            bytes: reader.u64()?,
            data: reader.u64()?,
            unit: reader.u64()?,
            entries: reader.u32()?,
            holders: reader.u32()?,
            lease_ms: reader.u64()?,
            quota: reader.u64()?,
        };
        header.check(medium)?;
        Ok(header)
    }

    /// What cannot be, though the checksum may be right.
    pub fn check(&self, medium: u64) -> Result<(), String> {
        let (data, bytes, unit) = (self.data, self.bytes, self.unit);
        if self.bytes > medium {
            return Err(format!(
                "its pool has {bytes} bytes, and the medium {medium}"
            ));
        }
        if !unit.is_power_of_two() || unit < 4096 {
            return Err(format!(
                "its unit is {unit}, and must be a power of two of 4096 or more"
            ));
        }
        if self.places == 0 || self.places as usize > HOSTS {
            return Err(format!(
                "it has {} places for hosts, and {HOSTS} are the most",
                self.places
            ));
        }
        if self.entries > MOST || self.holders > 2 * MOST {
            return Err(format!(
                "it has room for {} namespaces and {} handles, and {MOST} and {} are the most",
                self.entries,
                self.holders,
                2 * MOST
            ));
        }
        if data < self.metadata() as u64
            || !data.is_multiple_of(unit)
            || !bytes.is_multiple_of(unit)
        {
            return Err(format!(
                "its namespaces are from byte {data} to {bytes}, which must be multiples of {unit} of {} and more",
                self.metadata()
            ));
        }
        if data >= bytes {
            return Err(format!(
                "its table takes {data} bytes, so that it needs {} or more",
                data + unit
            ));
        }
        Ok(())
    }
}

/// Reads numbers one after the other.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or("it is too short")?;
        self.0 = rest;
        Ok(*first)
    }
    pub fn u16(&mut self) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.take()?))
    }
    pub fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take()?))
    }
    pub fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}
