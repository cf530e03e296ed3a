//! Names that a process keeps of its own memory, where its kernel keeps none: the table of `weir-alloc` and `weir-tag`.
//!
//! `crates/weir-alloc/src/names.rs` writes it: a private mapping of the memory file `weir-names`, of entries of 96 bytes. The
//! first has the word `weirnam1` and the number of entries; each other a start, a size, and a name that ends with zero.

use std::fs::File;
use std::os::unix::fs::FileExt;

const ENTRY: usize = 96;
/// As many as the table may have.
const MOST: usize = 1 << 16;

/// Named parts of a process's memory, by address and without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Vec<(usize, usize, String)>);

/// The names of a process, whose `/proc/PID/maps` is `maps`; none where it has no table or this user may not read it.
pub fn of(process: u32, maps: &str) -> Names {
    let tables = maps.lines().filter_map(|line| {
        let range = line
            .contains("/memfd:weir-names ")
            .then(|| line.split(' ').next())??;
        u64::from_str_radix(range.split_once('-')?.0, 16).ok()
    });
    let mut all = Names::default();
    for start in tables {
        let Ok(memory) = File::open(format!("/proc/{process}/mem")) else {
            break;
        };
        let mut head = [0; ENTRY];
        if memory.read_exact_at(&mut head, start).is_err() || !head.starts_with(b"weirnam1") {
            continue;
        }
        let entries = word(&head, 8).clamp(1, MOST) - 1;
        let mut table = vec![0; entries * ENTRY];
        if memory
            .read_exact_at(&mut table, start + ENTRY as u64)
            .is_ok()
        {
            all.0.extend(table.chunks_exact(ENTRY).filter_map(entry));
        }
    }
    all.sorted()
}

fn word(bytes: &[u8], at: usize) -> usize {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, usize::from_ne_bytes)
}

fn entry(bytes: &[u8]) -> Option<(usize, usize, String)> {
    // 1 is an entry that is being written.
    let (start, size) = (word(bytes, 0), word(bytes, 8));
    let name = bytes.get(16..)?.split(|&byte| byte == 0).next()?;
    let end = start.checked_add(size).filter(|_| start > 1 && size > 0)?;
    Some((start, end, String::from_utf8_lossy(name).into_owned()))
}

impl Names {
    fn sorted(mut self) -> Self {
        self.0.sort_unstable();
        // One that ends while the table is read may overlap the next.
        let mut behind = 0;
        self.0.retain(|&(start, end, _)| {
            let keep = start >= behind;
            behind = if keep { end } else { behind };
            keep
        });
        self
    }

    /// Each part with its ends and its name, by address.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &str)> {
        self.0
            .iter()
            .map(|(start, end, name)| (*start, *end, name.as_str()))
    }

    /// The parts of a mapping: those with names here, and what is left under its own.
    pub(super) fn split(
        &self,
        start: usize,
        end: usize,
        name: &str,
    ) -> Vec<(usize, usize, String)> {
        let mut parts = Vec::new();
        let mut at = start;
        let first = self.0.partition_point(|one| one.1 <= start);
        for (from, to, own) in self.0.iter().skip(first).take_while(|one| one.0 < end) {
            if at < *from {
                parts.push((at, *from, name.to_owned()));
            }
            let from = (*from).max(at);
            at = (*to).min(end);
            parts.push((from, at, own.clone()));
        }
        if at < end {
            parts.push((at, end, name.to_owned()));
        }
        parts
    }
}

#[cfg(test)]
impl<const N: usize> From<[(usize, usize, &str); N]> for Names {
    fn from(names: [(usize, usize, &str); N]) -> Self {
        let own = |(start, end, name): (usize, usize, &str)| (start, end, name.to_owned());
        Self(names.map(own).to_vec()).sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_parts_of_a_mapping_are_the_mapping(
            names in prop::collection::vec((2_usize..90, 1_usize..20), 0..8), start in 0_usize..80, length in 1_usize..40,
        ) {
            let names = names.iter().map(|(start, size)| (*start, start + size, start.to_string())).collect();
            let names = Names(names).sorted();
            let parts = names.split(start, start + length, "rest");
            prop_assert_eq!(parts[0].0, start);
            prop_assert_eq!(parts[parts.len() - 1].1, start + length);
            for two in parts.windows(2) {
                prop_assert_eq!(two[0].1, two[1].0);
            }
            for (from, to, name) in &parts {
                let named = names.iter().find(|one| (one.0..one.1).contains(from)).map_or("rest", |one| one.2);
                prop_assert!(from < to && name == named, "{:?} of {:?}", parts, names);
            }
        }
    }

    #[test]
    fn an_entry_is_a_start_a_size_and_a_name() {
        let mut bytes = [0; ENTRY];
        assert_eq!(entry(&bytes), None);
        bytes[..8].copy_from_slice(&0x7000_usize.to_ne_bytes());
        bytes[8..16].copy_from_slice(&0x1000_usize.to_ne_bytes());
        bytes[16..20].copy_from_slice(b"weir");
        assert_eq!(entry(&bytes), Some((0x7000, 0x8000, "weir".into())));
        bytes[8..16].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(entry(&bytes), None);
    }
}
