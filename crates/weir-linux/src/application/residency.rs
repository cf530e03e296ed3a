//! On which nodes the memory of processes is.

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;
use weir_model::units::Bytes;

use super::folder;
use crate::memory::numa_maps::on_nodes;
use crate::root::Root;

/// The most of a list of mappings that is read.
const LONGEST: u64 = 64 << 20;

/// Bytes on each node.
pub type Nodes = BTreeMap<u32, Bytes>;

/// Bytes of a process on each node, as the kernel's `numa_maps` has them: anonymous memory, shared or not, and files of the
/// private folder. Pages of other files are left out: the page cache holds them wherever they were first read.
///
/// # Errors
/// The kernel has no nodes, or the process is gone.
pub fn of_process(root: &Root, process: u32) -> Result<Nodes, Unavailable> {
    let (mut own, shared) = maps(root, process)?;
    add(&mut own, &shared);
    Ok(own)
}

/// The same of a process and of all that it started. What they share counts once.
///
/// # Errors
/// As [`of_process`].
pub fn of_tree(root: &Root, process: u32) -> Result<Nodes, Unavailable> {
    let (mut own, mut most) = maps(root, process)?;
    let mut left = children(root, process);
    while let Some(child) = left.pop() {
        left.extend(children(root, child));
        // One that has ended meanwhile has no pages.
        if let Ok((its, shared)) = maps(root, child) {
            add(&mut own, &its);
            for (node, bytes) in shared {
                let known = most.entry(node).or_insert(bytes);
                *known = Bytes(known.get().max(bytes.get()));
            }
        }
    }
    add(&mut own, &most);
    Ok(own)
}

fn add(to: &mut Nodes, more: &Nodes) {
    for (node, bytes) in more {
        let sum = to.entry(*node).or_insert(Bytes(0));
        *sum = Bytes(sum.get().saturating_add(bytes.get()));
    }
}

/// The processes that a process has started, and those that they have, as far as they run; none where the kernel does not list
/// them (`CONFIG_PROC_CHILDREN`).
pub fn descendants(root: &Root, process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut left = children(root, process);
    while let Some(child) = left.pop() {
        left.extend(children(root, child));
        found.push(child);
    }
    found
}

/// The memory of these processes, each page that several have in equal parts (`Pss` of `/proc/PID/smaps_rollup`, Linux 4.14).
///
/// # Errors
/// No process says it.
pub fn memory(root: &Root, processes: &[u32]) -> Result<Bytes, Unavailable> {
    let of = |process: &u32| {
        let text = root.text(&format!("/proc/{process}/smaps_rollup"));
        let line = text
            .known()?
            .lines()
            .find_map(|line| line.strip_prefix("Pss:"))?;
        let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Bytes(kib.saturating_mul(1024)))
    };
    let known: Vec<Bytes> = processes.iter().filter_map(of).collect();
    match known.is_empty() {
        true => Err(Unavailable::because(
            "/proc/PID/smaps_rollup of its processes cannot be read".to_owned(),
        )),
        false => Ok(known.into_iter().sum()),
    }
}

fn children(root: &Root, process: u32) -> Vec<u32> {
    let threads = root.numbered(&format!("/proc/{process}/task"), "");
    let of = |&(thread, _): &(u32, String)| {
        let text = root.text(&format!("/proc/{process}/task/{thread}/children"));
        let text = text.known().cloned().unwrap_or_default();
        let ids = text.split_whitespace().filter_map(|id| id.parse().ok());
        ids.collect::<Vec<u32>>()
    };
    threads.known().into_iter().flatten().flat_map(of).collect()
}

fn maps(root: &Root, process: u32) -> Result<(Nodes, Nodes), Unavailable> {
    let path = format!("/proc/{process}/numa_maps");
    let text = root.head(&path, LONGEST);
    let text = text.known().ok_or_else(|| {
        Unavailable::because(format!(
            "{path} cannot be read, so that no placement is known"
        ))
    })?;
    Ok(own_and_shared(text))
}

/// Whether a file of this name is memory that processes share, or one of a private folder.
fn is_shared(file: &str) -> bool {
    let memory = ["/dev/zero", "/memfd:", "/SYSV"];
    memory.iter().any(|start| file.starts_with(start)) || file.contains(folder::NAME)
}

/// The same from its text: what is its own, and what it shares.
fn own_and_shared(text: &str) -> (Nodes, Nodes) {
    let (mut own, mut shared) = (Nodes::new(), Nodes::new());
    for line in text.lines() {
        let file = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("file="));
        let nodes = match file {
            None => &mut own,
            Some(file) if is_shared(file) => &mut shared,
            Some(_) => continue,
        };
        for (node, bytes) in on_nodes(line) {
            let sum = nodes.entry(node).or_insert(Bytes(0));
            *sum = Bytes(sum.get().saturating_add(bytes.get()));
        }
    }
    (own, shared)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_memory_of_what_a_process_has_started_is_found() {
        let root = Root::live();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let found = descendants(&root, std::process::id());
        // A kernel may list no children; memory is known of any process of this user.
        let is_listed = found.is_empty() || found.contains(&child.id());
        let bytes = memory(&root, &[child.id(), u32::MAX]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_listed, "{found:?}");
        assert!(bytes.unwrap() > Bytes(0));
        assert!(memory(&root, &[]).is_err());
        assert!(!descendants(&root, std::process::id()).contains(&child.id()));
    }

    #[test]
    fn pages_count_by_node_and_size_without_files() {
        let text = "1000 bind:1 anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                    5000 default file=/usr/bin/redis-server mapped=9 N0=9 kernelpagesize_kB=4\n\
                    8000 bind:1 heap anon=1 dirty=1 N1=1 kernelpagesize_kB=2048\n\
                    9000 bind:1 file=/dev/zero\\040(deleted) dirty=5 N1=5 kernelpagesize_kB=4\n";
        let (found, shared) = own_and_shared(text);
        assert_eq!(shared[&1], Bytes(5 * 4096));
        assert_eq!(found[&0], Bytes(4096));
        assert_eq!(found[&1], Bytes(2 * 4096 + (2 << 20)));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "([0-9a-f]{0,9} (N|file|kernelpagesize_kB|heap|.)=?[0-9]{0,21}[ \n=]){0,9}") {
            own_and_shared(&text);
        }
    }
}
