//! The nodes of a tenant's pages: they show which tenants can load the slow tier at all.
//!
//! A control group's `memory.numa_stat` costs almost nothing. If it is not available (no memory controller,
//! or a process in a group of others), `numa_maps` of each process is read, for which the kernel walks its
//! page tables. Neither separates used pages from unused ones.

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;
use weir_model::units::Bytes;

use crate::root::Root;
use crate::steer::group::{self, file};

/// The most processes of a tenant that are read, and the most bytes of each.
const MOST: usize = 64;
const LONGEST: u64 = 1 << 20;

/// Memory of a tenant by node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Residency(BTreeMap<u32, u64>);

impl Residency {
    /// Bytes on some nodes.
    pub fn on(&self, nodes: &[u32]) -> Bytes {
        let on = |node: &&u32| nodes.contains(node);
        Bytes(
            self.0
                .iter()
                .filter(|(node, _)| on(node))
                .map(|(_, &b)| b)
                .sum(),
        )
    }

    /// All bytes.
    pub fn total(&self) -> Bytes {
        Bytes(self.0.values().sum())
    }

    /// The nodes that hold any, and the bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Bytes)> + '_ {
        self.0.iter().map(|(&node, &bytes)| (node, Bytes(bytes)))
    }

    /// Whether each node has as many bytes as in another residency, within a sixteenth of all.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let most = self.total().get().max(other.total().get()) / 16;
        let of = |all: &Self, node| all.0.get(&node).copied().unwrap_or(0);
        let nodes = self.0.keys().chain(other.0.keys());
        nodes
            .copied()
            .all(|node| of(self, node).abs_diff(of(other, node)) <= most)
    }

    pub(super) fn add(&mut self, node: u32, bytes: u64) {
        let sum = self.0.entry(node).or_default();
        *sum = sum.saturating_add(bytes);
    }
}

/// The nodes of a control group's pages, by its own count; otherwise by its processes' maps.
///
/// # Errors
/// Neither can be read.
pub(crate) fn of_group(root: &Root, group: &str) -> Result<Residency, Unavailable> {
    let counted = root.text(&file(group, "memory.numa_stat"));
    if let Some(text) = counted.known() {
        return Ok(counts(text));
    }
    of_processes(root, &group::processes(root, group))
}

/// The nodes of some processes' pages.
///
/// # Errors
/// No map can be read.
pub(crate) fn of_processes(root: &Root, processes: &[u32]) -> Result<Residency, Unavailable> {
    let mut all = Residency::default();
    let mut refused = Err(Unavailable::because("there is no process"));
    for process in processes.iter().take(MOST) {
        match root
            .head(&format!("/proc/{process}/numa_maps"), LONGEST)
            .get()
        {
            Ok(text) => {
                maps(text, &mut all);
                refused = Ok(());
            }
            Err(why) if refused.is_err() => refused = Err(why),
            Err(_) => {}
        }
    }
    refused.map(|()| all)
}

/// `anon N0=4096 N2=8192`, in bytes; pages are anonymous or of files.
fn counts(text: &str) -> Residency {
    let mut all = Residency::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if !matches!(words.next(), Some("anon" | "file")) {
            continue;
        }
        for (node, bytes) in words.filter_map(on_node) {
            all.add(node, bytes);
        }
    }
    all
}

/// `7f00 default anon=2 N0=1 N2=1 kernelpagesize_kB=4`, in pages.
fn maps(text: &str, all: &mut Residency) {
    for line in text.lines() {
        let size = line
            .split_ascii_whitespace()
            .find_map(|word| word.strip_prefix("kernelpagesize_kB="));
        let Some(size) = size.and_then(|kib| kib.parse::<u64>().ok()) else {
            continue;
        };
        for (node, pages) in line.split_ascii_whitespace().filter_map(on_node) {
            all.add(node, pages.saturating_mul(size).saturating_mul(1024));
        }
    }
}

/// `N2=8192`.
fn on_node(word: &str) -> Option<(u32, u64)> {
    let (node, amount) = word.strip_prefix('N')?.split_once('=')?;
    Some((node.parse().ok()?, amount.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_of_the_kernels_texts_are_read() {
        let found = counts("anon N0=4096 N2=8192\nfile N0=1024 N2=0\nanon_thp N0=4096 N2=0\n");
        assert_eq!(found.on(&[2]), Bytes(8192));
        assert_eq!(found.total(), Bytes(13312));
        let mut found = Residency::default();
        maps(
            "7f0 default anon=2 dirty=2 active=0 N0=1 N2=1 kernelpagesize_kB=4\n\
             7f8 bind:2 file=/N7=1 huge N2=3 kernelpagesize_kB=2048\n7f9 default\n",
            &mut found,
        );
        assert_eq!(found.on(&[0]), Bytes(4096));
        assert_eq!(found.on(&[1, 2]), Bytes(4096 + 3 * (2 << 20)));
    }

    #[test]
    fn what_moved_less_than_a_sixteenth_of_all_is_alike() {
        let of = |near, far| Residency([(0, near), (1, far)].into());
        let before = of(1600, 0);
        assert!(before.is_like(&of(1500, 100)) && of(1500, 100).is_like(&before));
        assert!(!before.is_like(&of(1499, 101)) && !of(1499, 101).is_like(&before));
    }

    proptest! {
        #[test]
        fn garbage_is_no_memory(text in "((anon|N[0-9]{1,12}=[0-9]{0,22}|kernelpagesize_kB=[0-9]{0,22}|.)[ \n]){0,12}") {
            let mut found = counts(&text);
            maps(&text, &mut found);
            prop_assert!(found.on(&[]) == Bytes(0));
        }
    }
}
