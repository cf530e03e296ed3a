//! Lines of `/proc/PID/numa_maps` (Documentation/filesystems/proc.rst, 3.1 and the kernel's NUMA policy).

use weir_model::units::Bytes;

use super::base_page;

/// Bytes of a mapping on each node.
pub(crate) fn on_nodes(line: &str) -> impl Iterator<Item = (u32, Bytes)> + '_ {
    let words = || line.split_ascii_whitespace();
    let kib = words().find_map(|word| word.strip_prefix("kernelpagesize_kB="));
    let kib = kib.and_then(|kib| kib.parse::<u64>().ok());
    let page = kib.map_or(base_page() as u64, |kib| kib.saturating_mul(1024));
    words().filter_map(move |word| {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        let pages: u64 = pages.parse().ok()?;
        Some((node.parse().ok()?, Bytes(pages.saturating_mul(page))))
    })
}
