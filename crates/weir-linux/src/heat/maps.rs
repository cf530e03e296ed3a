//! Resident pages of a process, in parts of equal size, and what they hold.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use weir_model::capability::Unavailable;
use weir_model::heat::SeenPages;
use weir_model::units::Bytes;

use crate::root::Root;

/// A page is present (kernel documentation, admin-guide/mm/pagemap.rst) ...
const PRESENT: u64 = 1 << 63;
/// ... and has this number, for those who may see it.
const FRAME: u64 = (1 << 55) - 1;
/// Entries of the page map that are read at once.
const CHUNK: u64 = 1 << 15;
/// Larger mappings are reservations of sanitizers and runtimes, whose page map takes minutes to read.
const LARGEST: u64 = 1 << 40;

/// A part of a mapping with resident pages.
#[derive(Debug, Clone)]
pub(super) struct Granule {
    pub start: u64,
    /// Resident pages.
    pub pages: u64,
    /// In how many samples a page of it was found touched.
    pub touches: f64,
    mapping: usize,
    /// The frame of the first resident page.
    frame: u64,
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    file: bool,
    name: Arc<str>,
}

/// A process.
#[derive(Debug)]
pub(super) struct Resident {
    space: u32,
    pub process: u32,
    pub page: u64,
    pagemap: File,
    mappings: Vec<Mapping>,
    /// By address.
    pub granules: Vec<Granule>,
}

fn gone(process: u32, why: &std::io::Error) -> Unavailable {
    Unavailable::because(match why.kind() {
        std::io::ErrorKind::NotFound => format!("process {process} has ended"),
        _ if why.raw_os_error() == Some(libc::ESRCH) => format!("process {process} has ended"),
        _ => format!("/proc/{process}: {why}"),
    })
}

/// The mappings of `/proc/PID/maps` whose pages can be touched.
fn mappings(text: &str) -> Vec<Mapping> {
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let allowed = words.next()?;
        let inode = words.nth(2)?;
        let path = words.collect::<Vec<_>>().join(" ");
        let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).ok());
        let (start, end) = (start?, end?);
        let file = inode != "0";
        let base = path.trim_end_matches(" (deleted)");
        let name = match base {
            "" => "anonymous",
            base if file => base.rsplit('/').next().unwrap_or(base),
            base => base,
        };
        let used = !allowed.starts_with("---") && end - start <= LARGEST && name != "[vsyscall]";
        used.then(|| Mapping {
            start,
            end,
            file,
            name: name.into(),
        })
    };
    text.lines().filter_map(one).collect()
}

impl Resident {
    /// The process, with its resident pages not yet divided.
    ///
    /// # Errors
    /// There is no such process, or this user may not see its pages.
    pub fn open(root: &Root, space: u32, process: u32, page: u64) -> Result<Self, Unavailable> {
        let path = format!("/proc/{process}/pagemap");
        let pagemap = root.open(&path, false).map_err(|why| gone(process, &why))?;
        let mut resident = Self {
            space,
            process,
            page,
            pagemap,
            mappings: Vec::new(),
            granules: Vec::new(),
        };
        resident.divide(root, 1 << 30)?;
        Ok(resident)
    }

    /// Resident memory when it was divided.
    pub fn bytes(&self) -> u64 {
        self.granules.iter().map(|g| g.pages * self.page).sum()
    }

    /// Finds the parts of this size that have resident pages now.
    ///
    /// # Errors
    /// The process has ended.
    pub fn divide(&mut self, root: &Root, size: u64) -> Result<(), Unavailable> {
        let mut text = String::new();
        let maps = root.open(&format!("/proc/{}/maps", self.process), false);
        maps.and_then(|mut maps| maps.read_to_string(&mut text))
            .map_err(|why| gone(self.process, &why))?;
        self.mappings = mappings(&text);
        if self.mappings.is_empty() {
            return Err(Unavailable::because(format!(
                "process {} has ended",
                self.process
            )));
        }
        let mut granules: Vec<Granule> = Vec::new();
        self.each(|mapping, start, address, frame| {
            let begins = (address / size * size).max(start);
            match granules.last_mut() {
                Some(last) if last.start == begins => last.pages += 1,
                _ => granules.push(Granule {
                    start: begins,
                    pages: 1,
                    touches: 0.0,
                    mapping,
                    frame,
                }),
            }
        })?;
        self.granules = granules;
        Ok(())
    }

    /// Calls with each resident page, in the order of addresses: the mapping's number and start, the page's address and
    /// its frame, which is 0 for those who may not see it.
    fn each(&self, mut of: impl FnMut(usize, u64, u64, u64)) -> Result<(), Unavailable> {
        let mut bytes = vec![0; (CHUNK * 8) as usize];
        for (number, mapping) in self.mappings.iter().enumerate() {
            let (mut at, end) = (mapping.start / self.page, mapping.end / self.page);
            while at < end {
                let wanted = ((end - at).min(CHUNK) * 8) as usize;
                let read = self.pagemap.read_at(&mut bytes[..wanted], at * 8);
                let read = read.map_err(|why| gone(self.process, &why))? / 8;
                if read == 0 {
                    break;
                }
                for (n, entry) in bytes[..read * 8].chunks_exact(8).enumerate() {
                    let entry = entry.try_into().map_or(0, u64::from_ne_bytes);
                    if entry & PRESENT != 0 {
                        let address = (at + n as u64) * self.page;
                        of(number, mapping.start, address, entry & FRAME);
                    }
                }
                at += read as u64;
            }
        }
        Ok(())
    }

    /// Calls with the part and the frame of each resident page; the pages of parts that were found before only.
    ///
    /// # Errors
    /// The process has ended.
    pub fn frames(&self, mut of: impl FnMut(usize, u64)) -> Result<(), Unavailable> {
        self.each(|_, _, address, frame| {
            let place = self.granules.partition_point(|g| g.start <= address);
            if place > 0 && frame > 0 {
                of(place - 1, frame);
            }
        })
    }

    /// The parts that begin in a range of addresses.
    pub fn within(&mut self, start: u64, end: u64) -> &mut [Granule] {
        let from = self.granules.partition_point(|g| g.start < start);
        let to = self.granules.partition_point(|g| g.start < end);
        &mut self.granules[from..to.max(from)]
    }

    /// The part with an address, if it had resident pages when parts of this size were found.
    pub fn part_of(&mut self, address: u64, size: u64) -> Option<&mut Granule> {
        let place = self.granules.partition_point(|g| g.start <= address);
        let part = self.granules.get_mut(place.checked_sub(1)?)?;
        (part.start / size == address / size).then_some(part)
    }

    /// Adds what was seen of each part, its touches multiplied by `scale`.
    pub fn seen(&self, scale: f64, seen: &mut Vec<SeenPages>) {
        let parts = self.granules.iter().filter_map(|granule| {
            let mapping = self.mappings.get(granule.mapping)?;
            Some(SeenPages {
                space: self.space,
                start: granule.start,
                bytes: Bytes(granule.pages * self.page),
                page: Bytes(self.page),
                file: mapping.file,
                region: Arc::clone(&mapping.name),
                touches: granule.touches * scale,
                frame: granule.frame,
            })
        });
        seen.extend(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_their_kind_and_reservations_are_left_out() {
        let text = "\
55d0c0000000-55d0c0001000 r-xp 00000000 08:01 42 /usr/bin/a b
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0000021000-7f0004000000 ---p 00000000 00:00 0
7f1000000000-7f1000001000 rw-s 00000000 00:01 9 /memfd:x (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
";
        let found = mappings(text);
        let found: Vec<(bool, &str)> = found.iter().map(|m| (m.file, &*m.name)).collect();
        let expected = [
            (true, "a b"),
            (false, "[heap]"),
            (false, "anonymous"),
            (true, "memfd:x"),
        ];
        assert_eq!(found, expected.map(|(file, name)| (file, name)));
    }
}
