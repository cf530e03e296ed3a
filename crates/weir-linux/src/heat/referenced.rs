//! Accessed bits of the page table, of which the kernel says only how many of each mapping are set (proc(5)).
//!
//! Clearing them makes reclaim take pages for unused that were touched before.

use std::io::Read as _;

use weir_model::capability::Unavailable;

use super::maps::Resident;
use crate::root::Root;

/// Clears the bits of all pages.
///
/// # Errors
/// A process has ended, or this user may not.
pub(super) fn clear(root: &Root, resident: &[Resident]) -> Result<(), Unavailable> {
    for of in resident {
        let path = format!("/proc/{}/clear_refs", of.process);
        root.write(&path, "1")
            .map_err(|why| Unavailable::because(format!("{path}: {why}")))?;
    }
    Ok(())
}

/// Notes a touch of as much of each mapping as has its bits set, from its first resident page on. Of a process that has
/// ended nothing was touched.
pub(super) fn read(root: &Root, resident: &mut [Resident]) {
    for of in resident {
        let mut text = String::new();
        let smaps = root.open(&format!("/proc/{}/smaps", of.process), false);
        if smaps
            .and_then(|mut smaps| smaps.read_to_string(&mut text))
            .is_err()
        {
            continue;
        }
        for (start, end, touched) in mappings(&text) {
            let (mut left, page) = (touched, of.page);
            for granule in of.within(start, end) {
                let bytes = granule.pages * page;
                // The last part counts if most of it was touched.
                if 2 * left < bytes || left == 0 {
                    break;
                }
                granule.touches += 1.0;
                left = left.saturating_sub(bytes);
            }
        }
    }
}

/// Start, end and touched bytes of each mapping.
fn mappings(text: &str) -> Vec<(u64, u64, u64)> {
    let mut found = Vec::new();
    let mut range = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or("");
        if let Some((start, end)) = first.split_once('-') {
            let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).ok());
            range = start.zip(end);
        } else if first == "Referenced:"
            && let Some((start, end)) = range
            && let Some(kib) = words.next().and_then(|n| n.parse::<u64>().ok())
        {
            found.push((start, end, kib << 10));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_the_bytes_that_were_touched() {
        let text = "1000-3000 rw-p 00000000 00:00 0 [heap]\nSize: 8 kB\nReferenced:            4 kB\n\
                    5000-6000 r--p 00000000 08:01 7 /a-b\nRss: 4 kB\nReferenced:            0 kB\n";
        assert_eq!(
            mappings(text),
            [(0x1000, 0x3000, 4096), (0x5000, 0x6000, 0)]
        );
    }
}
