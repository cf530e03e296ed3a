//! On which nodes the anonymous pages of a process are.

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;
use weir_model::units::Bytes;

use crate::memory::base_page;
use crate::root::Root;

/// The most of a list of mappings that is read.
const LONGEST: u64 = 64 << 20;

/// Anonymous bytes of a process on each node, as the kernel's `numa_maps` has them. Pages of files are left out: the page
/// cache holds them wherever they were first read.
///
/// # Errors
/// The kernel has no nodes, or the process is gone.
pub fn of_process(root: &Root, process: u32) -> Result<BTreeMap<u32, Bytes>, Unavailable> {
    let path = format!("/proc/{process}/numa_maps");
    let text = root.head(&path, LONGEST);
    let text = text.known().ok_or_else(|| {
        Unavailable::because(format!(
            "{path} cannot be read, so that no placement is known"
        ))
    })?;
    Ok(anonymous(text))
}

/// The same from its text.
pub fn anonymous(text: &str) -> BTreeMap<u32, Bytes> {
    let mut nodes = BTreeMap::new();
    for line in text.lines() {
        let number = |wanted: &str| {
            let found = line
                .split_whitespace()
                .find_map(|word| word.strip_prefix(wanted));
            found.and_then(|value| value.parse::<u64>().ok())
        };
        if line
            .split_whitespace()
            .any(|word| word.starts_with("file="))
        {
            continue;
        }
        let page =
            number("kernelpagesize_kB=").map_or(base_page() as u64, |kib| kib.saturating_mul(1024));
        for word in line.split_whitespace() {
            let on = word.strip_prefix('N').and_then(|rest| rest.split_once('='));
            let Some((Ok(node), Ok(pages))) =
                on.map(|(node, pages)| (node.parse::<u32>(), pages.parse::<u64>()))
            else {
                continue;
            };
            let bytes = nodes.entry(node).or_insert(Bytes(0));
            *bytes = Bytes(bytes.get().saturating_add(pages.saturating_mul(page)));
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_count_by_node_and_size_without_files() {
        let text = "1000 bind:1 anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                    5000 default file=/usr/bin/redis-server mapped=9 N0=9 kernelpagesize_kB=4\n\
                    8000 bind:1 heap anon=1 dirty=1 N1=1 kernelpagesize_kB=2048\n";
        let found = anonymous(text);
        assert_eq!(found[&0], Bytes(4096));
        assert_eq!(found[&1], Bytes(2 * 4096 + (2 << 20)));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "([0-9a-f]{0,9} (N|file|kernelpagesize_kB|heap|.)=?[0-9]{0,21}[ \n=]){0,9}") {
            anonymous(&text);
        }
    }
}
