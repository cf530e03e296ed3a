//! What a process has in its memory, by object: mapped files, named and large anonymous mappings, the heap, the stack.
//!
//! A program names its own memory by `prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, …)` (prctl(2)); the kernel shows the name as
//! `[anon:NAME]`. Where it keeps none, the libraries `weir-alloc` and `weir-tag` do ([`super::names`]).

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;
use weir_model::units::Bytes;

use super::numa_maps::on_nodes;
use super::{AddressRange, base_page, names, policy};
pub use crate::process::{leader, started};
use crate::root::Root;

/// The most of a list of mappings that is read.
const LONGEST: u64 = 64 << 20;
/// An anonymous mapping of this many bytes is an object of its own.
const LARGE: usize = 64 << 20;
/// What the kernel shows of shared memory without a file (`mmap` with MAP_SHARED and MAP_ANONYMOUS).
const SHARED: &str = "/dev/zero (deleted)";
/// Pages whose places are asked for at once.
const BATCH: usize = 4096;

/// A part of a process's memory with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessObject {
    /// Its name: that of a file, `heap`, `stack`, `anon`, `anon-ADDRESS`, `shared`, `shared-ADDRESS`, or what the
    /// program calls it.
    pub name: String,
    /// Where it is.
    pub ranges: Vec<AddressRange>,
    /// Its size.
    pub bytes: Bytes,
    /// Its bytes on each node; empty where the kernel knows no nodes.
    pub nodes: BTreeMap<u32, Bytes>,
    /// Whether a part of it is executed.
    pub code: bool,
}

/// The objects of a process, the largest first.
///
/// # Errors
/// There is no such process, or this user may not look at its memory.
pub fn objects(root: &Root, process: u32) -> Result<Vec<ProcessObject>, Unavailable> {
    let read = |file: &str| {
        let path = format!("/proc/{process}/{file}");
        let text = root.head(&path, LONGEST);
        text.get().cloned().map_err(|why| {
            Unavailable::because(format!(
                "the memory of process {process} is not known: {why}"
            ))
        })
    };
    let maps = read("maps")?;
    // A kernel without nodes has no such file.
    let places = read("numa_maps").unwrap_or_default();
    let names = names::of(process, &maps);
    Ok(of_text(process, &maps, &places, &names, nodes_of))
}

/// The bytes of a part of memory on each node, page by page.
fn nodes_of(range: &AddressRange) -> BTreeMap<u32, Bytes> {
    let mut nodes = BTreeMap::new();
    for (part, node) in stretches_of(range).unwrap_or_default() {
        let sum = nodes.entry(node).or_insert(Bytes(0));
        *sum = Bytes(sum.get() + (part.end - part.start) as u64);
    }
    nodes
}

/// `pages` says where the pages of a part of a mapping are.
fn of_text(
    process: u32,
    maps: &str,
    places: &str,
    names: &names::Names,
    pages: impl Fn(&AddressRange) -> BTreeMap<u32, Bytes>,
) -> Vec<ProcessObject> {
    let start = |line: &str| usize::from_str_radix(line.split(' ').next()?, 16).ok();
    let places: BTreeMap<usize, &str> = (places.lines())
        .filter_map(|line| Some((start(line)?, line)))
        .collect();
    let mut all: Vec<ProcessObject> = Vec::new();
    let mappings = maps.lines().filter_map(mapping);
    // The kernel merges anonymous mappings that have no names of its own.
    let parts = mappings.flat_map(|(start, end, code, name)| {
        let parts = match name.starts_with("anon") {
            true => names.split(start, end, &name),
            false => vec![(start, end, name)],
        };
        let is_whole = parts.len() == 1;
        parts.into_iter().map(move |part| (part, code, is_whole))
    });
    for ((start, end, name), code, is_whole) in parts {
        let at = match all.iter().position(|one| one.name == name) {
            Some(at) => at,
            None => {
                all.push(ProcessObject {
                    name,
                    ranges: Vec::new(),
                    bytes: Bytes(0),
                    nodes: BTreeMap::new(),
                    code: false,
                });
                all.len() - 1
            }
        };
        let object = &mut all[at];
        object.code |= code;
        object.bytes = Bytes(object.bytes.get() + (end - start) as u64);
        let range = AddressRange {
            process,
            start,
            end,
        };
        let on: Vec<(u32, Bytes)> = match is_whole {
            false => pages(&range).into_iter().collect(),
            true => {
                let place = places.get(&start).copied();
                place.into_iter().flat_map(on_nodes).collect()
            }
        };
        object.ranges.push(range);
        for (node, bytes) in on {
            let sum = object.nodes.entry(node).or_insert(Bytes(0));
            *sum = Bytes(sum.get().saturating_add(bytes.get()));
        }
    }
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    all
}

/// A line of `/proc/PID/maps`: from, to, whether it is executed, and the name of the object.
fn mapping(line: &str) -> Option<(usize, usize, bool, String)> {
    let (mut rest, mut words) = (line, [""; 5]);
    for word in &mut words {
        let (next, more) = rest.split_once(' ').unwrap_or((rest, ""));
        (*word, rest) = (next, more.trim_start());
    }
    let path = rest.trim_end().trim_end_matches(" (deleted)");
    let without_file = match path {
        "" => Some("anon"),
        _ => (rest.trim_end() == SHARED).then_some("shared"),
    };
    let [addresses, allowed, ..] = words;
    let (start, end) = addresses.split_once('-')?;
    let hex = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    if start >= end {
        return None;
    }
    let name = match path
        .strip_prefix('[')
        .map(|name| name.trim_end_matches(']'))
    {
        Some("vdso" | "vvar" | "vvar_vclock" | "vsyscall") => return None,
        // The table of names itself.
        None if path == "/memfd:weir-names" => return None,
        // Names of the kernel's own may have a number.
        Some(name) => name.strip_prefix("anon:").unwrap_or(name).to_owned(),
        None => match without_file {
            Some(kind) if end - start >= LARGE => format!("{kind}-{start:x}"),
            Some(kind) => kind.into(),
            None => path.rsplit('/').next().unwrap_or(path).to_owned(),
        },
    };
    Some((start, end, allowed.contains('x'), name))
}

/// Where the pages of an object are: stretches of pages on one node each. Pages that do not exist are left out.
///
/// # Errors
/// The process has ended, or this user may not ask.
pub fn stretches(object: &ProcessObject) -> Result<Vec<(AddressRange, u32)>, Unavailable> {
    let all: Result<Vec<_>, _> = object.ranges.iter().map(stretches_of).collect();
    Ok(all?.into_iter().flatten().collect())
}

fn stretches_of(range: &AddressRange) -> Result<Vec<(AddressRange, u32)>, Unavailable> {
    let page = base_page();
    let mut all: Vec<(AddressRange, u32)> = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + BATCH * page);
        let addresses: Vec<usize> = (at..end).step_by(page).collect();
        let mut status = vec![-libc::ENOENT; addresses.len()];
        policy::move_some(range.process, &addresses, None, &mut status).map_err(|error| {
            Unavailable::because(format!("pages of process {}: {error}", range.process))
        })?;
        for (&start, &status) in addresses.iter().zip(&status) {
            let Ok(node) = u32::try_from(status) else {
                continue;
            };
            match all.last_mut() {
                Some((last, on)) if *on == node && last.end == start => last.end += page,
                _ => {
                    let part = AddressRange {
                        process: range.process,
                        start,
                        end: start + page,
                    };
                    all.push((part, node));
                }
            }
        }
        at = end;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55e0c0000000-55e0c0021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0010000000 rw-p 00000000 00:00 0
7f0010000000-7f0010001000 r-xp 00000000 00:00 0
7f0020000000-7f0020002000 rw-p 00000000 00:00 0                          [anon:hash tables]
7f0030000000-7f0030004000 r--s 00000000 00:1f 12                         /dev/shm/main.arrow
7f0030004000-7f0030005000 rw-s 00004000 00:1f 12                         /dev/shm/main.arrow
7f0040000000-7f0040600000 rw-p 00000000 00:01 12                         /memfd:weir-names (deleted)
7f0050000000-7f0058000000 rw-s 00000000 00:01 13                         /dev/zero (deleted)
7f0060000000-7f0060003000 rw-s 00000000 00:01 14                         /dev/zero (deleted)
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7ffd00030000-7ffd00032000 r-xp 00000000 00:00 0                          [vdso]
odd
7f00-7f00 rw-p 0 0 0";
    const PLACES: &str = "\
7f0000000000 default anon=3 dirty=3 N0=1 N2=2 kernelpagesize_kB=4
7f0030000000 bind:1 file=/dev/shm/main.arrow mapped=1 N1=1 kernelpagesize_kB=2048
7f0030004000 default N0=1 kernelpagesize_kB=4";

    #[test]
    fn mappings_are_objects_by_their_names() {
        let all = of_text(7, MAPS, PLACES, &names::Names::default(), |_| {
            BTreeMap::new()
        });
        let seen: Vec<(&str, u64, usize)> = (all.iter())
            .map(|one| (one.name.as_str(), one.bytes.get(), one.ranges.len()))
            .collect();
        assert_eq!(
            seen,
            [
                ("anon-7f0000000000", 256 << 20, 1),
                ("shared-7f0050000000", 128 << 20, 1),
                ("heap", 0x21000, 1),
                ("stack", 0x21000, 1),
                ("main.arrow", 0x5000, 2),
                ("shared", 0x3000, 1),
                ("hash tables", 0x2000, 1),
                ("anon", 0x1000, 1),
            ]
        );
        assert!(all.iter().all(|one| one.code == (one.name == "anon")));
        assert_eq!(
            all[0].nodes,
            BTreeMap::from([(0, Bytes(4096)), (2, Bytes(8192))])
        );
        assert_eq!(
            all[4].nodes,
            BTreeMap::from([(0, Bytes(4096)), (1, Bytes(2 << 20))])
        );
    }

    #[test]
    fn parts_of_anonymous_memory_have_the_names_of_the_table() {
        let names = names::Names::from([
            (0x7f00_0000_0000, 0x7f00_0400_0000, "weir:index"),
            (0x7f00_0800_0000, 0x7f00_0840_0000, "weir:cold"),
            (0x7f00_1000_0000, 0x7f00_1000_1000, "site:a+0x1"),
        ]);
        let asked =
            |range: &AddressRange| BTreeMap::from([(1, Bytes((range.end - range.start) as u64))]);
        let all = of_text(7, MAPS, PLACES, &names, asked);
        let of = |name: &str| all.iter().find(|one| one.name == name).cloned().unwrap();
        assert_eq!(
            of("weir:index").nodes,
            BTreeMap::from([(1, Bytes(64 << 20))])
        );
        assert_eq!(of("weir:cold").bytes, Bytes(4 << 20));
        assert_eq!(of("site:a+0x1").bytes, Bytes(0x1000));
        let rest: u64 = (all.iter().filter(|one| one.name.starts_with("anon-7f")))
            .map(|one| one.bytes.get())
            .sum();
        assert_eq!(rest, (256 - 64 - 4) << 20);
    }

    #[test]
    fn what_the_allocator_names_is_an_object() {
        let bytes = 2 << 20;
        let memory = vec![1_u8; 2 * bytes];
        let start = memory.as_ptr().addr().next_multiple_of(base_page());
        weir_alloc::names::name(start, bytes, b"weir:test");
        let all = objects(&Root::live(), std::process::id()).unwrap();
        let found = all.iter().find(|one| one.name == "weir:test");
        let found = found.expect("a name of the kernel, or of the table");
        assert_eq!(
            (found.ranges[0].start, found.bytes),
            (start, Bytes(bytes as u64))
        );
        let resident: u64 = found.nodes.values().map(|bytes| bytes.get()).sum();
        assert!(resident == 0 || resident == bytes as u64, "{found:?}");
        drop(memory);
    }

    #[test]
    fn this_process_has_a_stack_and_a_file() {
        let all = objects(&Root::live(), std::process::id()).unwrap();
        let has = |name: &str| all.iter().any(|one| one.name.starts_with(name));
        assert!(has("stack") && has("libc"), "{all:?}");
    }
}
