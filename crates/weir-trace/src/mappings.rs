//! Which files a process has mapped, and what it calls its own memory, so that parts of its memory have names.

/// Files that a process has mapped, and memory that it has named, by address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mappings {
    /// The first address, the first behind, and the name; without overlaps, by address.
    all: Vec<(u64, u64, String)>,
}

/// Characters of a name of a region.
const LONGEST: usize = 40;

impl Mappings {
    /// Notes a mapping, in place of what was at its addresses before.
    pub fn add(&mut self, from: u64, to: u64, name: &str) {
        let is_known = |one: &(u64, u64, String)| one.0 <= from && to <= one.1 && one.2 == name;
        if from >= to || self.all.iter().any(is_known) {
            return;
        }
        let mut kept = Vec::with_capacity(self.all.len() + 2);
        for (begin, end, old) in self.all.drain(..) {
            if begin < from.min(end) {
                kept.push((begin, from.min(end), old.clone()));
            }
            if to.max(begin) < end {
                kept.push((to.max(begin), end, old));
            }
        }
        kept.push((from, to, name.to_owned()));
        kept.sort_unstable_by_key(|one| one.0);
        self.all = kept;
    }

    /// Notes a mapping by its path, or the name that the process gave it (`weir:` of the allocator is left out).
    pub fn name(&mut self, from: u64, to: u64, name: &str) {
        self.add(
            from,
            to,
            &region_name(name.strip_prefix("weir:").unwrap_or(name)),
        );
    }

    /// Notes the files and the named memory of `/proc/PID/maps` (proc(5)).
    pub fn read(&mut self, maps: &str) {
        for line in maps.lines() {
            // Addresses, permissions, offset, device and inode, and a path that may have blanks.
            let Some((range, mut path)) = line.split_once(' ') else {
                continue;
            };
            for _ in 0..4 {
                path = (path.trim_start().split_once(' ')).map_or("", |(_, rest)| rest);
            }
            let hex = |text| u64::from_str_radix(text, 16).ok();
            let ends = range.split_once('-');
            // The kernel's name has spaces, but no brackets.
            let anonymous = (line.split_once("[anon:")).map(|(_, name)| name.trim_end_matches(']'));
            // Shared memory without a file.
            let path = match path.trim() {
                "" => continue,
                "/dev/zero (deleted)" => "shared",
                path => path.trim_end_matches(" (deleted)"),
            };
            if let Some((Some(from), Some(to))) = ends.map(|(from, to)| (hex(from), hex(to)))
                && (anonymous.is_some() || !path.starts_with('['))
            {
                self.name(from, to, anonymous.unwrap_or(path));
            }
        }
    }

    /// The name of each part, by address.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(_, _, name)| name.as_str())
    }

    /// What is mapped at an address.
    pub fn at(&self, address: u64) -> Option<&str> {
        let after = self.all.partition_point(|one| one.0 <= address);
        let (_, to, name) = self.all.get(after.checked_sub(1)?)?;
        (address < *to).then_some(name)
    }
}

/// The name of a file as the name of a region: letters, digits, dots, dashes.
fn region_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let file = file.strip_prefix("memfd:").unwrap_or(file);
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' => c,
        _ => '-',
    };
    let name: String = file.chars().map(plain).take(LONGEST).collect();
    match name.trim_matches('-') {
        "" => "file".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_mapping_of_an_address_names_it(maps in prop::collection::vec((0_u64..60, 1_u64..20, 0_u8..4), 0..30)) {
            let mut all = Mappings::default();
            for (from, length, name) in &maps {
                all.add(*from, from + length, &name.to_string());
            }
            for address in 0..80 {
                let last = maps.iter().rev().find(|(from, length, _)| (*from..from + length).contains(&address));
                let last = last.map(|(_, _, name)| name.to_string());
                prop_assert_eq!(all.at(address), last.as_deref());
            }
        }
    }

    #[test]
    fn files_of_a_process_are_named() {
        let mut all = Mappings::default();
        all.read(
            "7f00-7f20 r--p 00000000 00:1f 12 /dev/shm/main store.arrow\n\
             7f20-7f30 rw-p 00000000 00:00 0\n7f40-7f50 rw-p 00000000 00:00 0 [heap]\n\
             8000-9000 rw-s 00000000 00:05 3 /memfd:pool (deleted)\nnonsense\n\
             a000-b000 rw-s 00000000 00:05 4 /dev/zero (deleted)\n",
        );
        assert_eq!(
            [0x7f00, 0x7f20, 0x7f40, 0x8fff, 0xa000].map(|at| all.at(at)),
            [
                Some("main-store.arrow"),
                None,
                None,
                Some("pool"),
                Some("shared")
            ]
        );
    }

    #[test]
    fn memory_that_a_process_has_named_is_named() {
        let mut all = Mappings::default();
        all.read(
            "7f00-7f20 rw-p 00000000 00:00 0                          [anon:weir:index]\n\
             7f20-7f30 rw-p 00000000 00:00 0 [anon:site:libpython3.11+0x1af898]\n\
             7f30-7f40 rw-p 00000000 00:00 0 [anon:hash tables]\n7f40-7f50 rw-p 00000000 00:00 0 [stack]\n",
        );
        all.name(0x8000, 0x9000, "weir:cold");
        let index = "site-libpython3.11-0x1af898";
        assert_eq!(
            [0x7f00, 0x7f20, 0x7f30, 0x7f40, 0x8000].map(|at| all.at(at)),
            [
                Some("index"),
                Some(index),
                Some("hash-tables"),
                None,
                Some("cold")
            ]
        );
    }
}
