//! A trace of a described program, written in several formats, and read again as `weir workload import` does.

use weir_model::workload::Workloads;
use weir_trace::decode::guess;
use weir_trace::replay::Replay;
use weir_trace::{Access, Decoder, Sink};

/// Most accesses of a program are to its stack and to other lines in L1.
const REGIONS: &str = "kind = \"workload\"\nsummary = \"a\"\nsource = \"b\"\n[[phase]]\ncpi = 0.5\napki = 400\nregions = [\
    { name = \"stack\", bytes = \"8 KiB\", order = \"zipf\", share = 0.8, stores = 0.4 }, \
    { name = \"table\", bytes = \"64 MiB\", order = \"random\", share = 0.05 }, \
    { name = \"column\", bytes = \"64 MiB\", order = \"sequential\", share = 0.15 }]";

/// The formats, by name.
pub const FORMATS: [&str; 3] = ["lackey", "champsim", "drmemtrace"];

/// A trace, in each of the formats.
#[derive(Default)]
pub struct Written {
    bytes: [Vec<u8>; 3],
}

impl Written {
    /// This many accesses.
    pub fn new(accesses: u64) -> Self {
        let workload =
            Workloads::check("a.toml", REGIONS).unwrap_or_else(|error| panic!("{error}"));
        let mut written = Self::default();
        written.entry(25, 0, 5);
        let mut replay = Replay::new(&workload, 1);
        let mut done = 0;
        while done < accesses {
            done += replay.step(&mut written);
        }
        written
    }

    fn entry(&mut self, kind: u16, size: u16, address: u64) {
        let entry = &mut self.bytes[2];
        entry.extend(kind.to_le_bytes());
        entry.extend(size.to_le_bytes());
        entry.extend(address.to_le_bytes());
    }

    /// The trace in a format.
    pub fn of(&self, name: &str) -> &[u8] {
        let at = FORMATS.iter().position(|&one| one == name);
        &self.bytes[at.unwrap_or_else(|| panic!("no format {name}"))]
    }
}

impl Sink for Written {
    fn instructions(&mut self, count: u64) {
        for n in 0..count {
            self.bytes[0].extend(format!("I  {:08x},4\n", 0x40_0000 + n).bytes());
        }
        if count > 0 {
            self.entry(17, count as u16, 0);
        }
    }

    fn access(&mut self, access: Access) -> bool {
        let kind = if access.store { 'S' } else { 'L' };
        self.bytes[0].extend(format!(" {kind} {:08x},{}\n", access.address, access.bytes).bytes());
        let mut record = [0_u8; 64];
        record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
        let place = if access.store { 16 } else { 32 };
        record[place..place + 8].copy_from_slice(&access.address.to_le_bytes());
        self.bytes[1].extend(record);
        self.entry(u16::from(access.store), access.bytes as u16, access.address);
        true
    }
}

/// Reads a trace in pieces of 64 KiB.
pub fn read(bytes: &[u8], sink: &mut impl Sink) {
    let head = &bytes[..bytes.len().min(1 << 16)];
    let format = guess(head).unwrap_or_else(|| panic!("no format"));
    let mut decoder = Decoder::new(format, head).unwrap_or_else(|error| panic!("{error}"));
    let (mut from, mut to) = (0, 0);
    while to < bytes.len() {
        to = (to + (1 << 16)).min(bytes.len());
        let taken = decoder.decode(&bytes[from..to], sink);
        from += taken.unwrap_or_else(|error| panic!("{error}"));
    }
}
