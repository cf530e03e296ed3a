//! Which pages are written: soft-dirty bits (kernel documentation, admin-guide/mm/soft-dirty.rst). After they are cleared the
//! first write to each page is a page fault.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;

use weir_model::capability::Unavailable;
use weir_model::units::Bytes;

use crate::memory::{ProcessObject, base_page};
use crate::root::Root;

/// A page is present, and was written since the bits were cleared (admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const WRITTEN: u64 = 1 << 55;
/// Entries of the page map that are read at once.
const CHUNK: usize = 1 << 15;
/// Larger mappings are reservations of runtimes, whose page map takes minutes to read.
const LARGEST: usize = 1 << 40;

/// Clears the bits of a process.
///
/// # Errors
/// It has ended, or this user may not.
pub fn clear_written(root: &Root, process: u32) -> Result<(), Unavailable> {
    let path = format!("/proc/{process}/clear_refs");
    let cleared = root.write(&path, "4");
    cleared.map_err(|why| Unavailable::because(format!("{path}: {why}")))
}

/// The bytes of each object that were written since the bits were cleared, and are still there.
///
/// # Errors
/// The process has ended, or this user may not see its pages.
pub fn written(
    root: &Root,
    process: u32,
    objects: &[ProcessObject],
) -> Result<Vec<Bytes>, Unavailable> {
    let path = format!("/proc/{process}/pagemap");
    let failed = |why: std::io::Error| Unavailable::because(format!("{path}: {why}"));
    let pagemap = root.open(&path, false).map_err(failed)?;
    let pages = |object: &ProcessObject| -> std::io::Result<u64> {
        let ranges = object.ranges.iter().map(|range| (range.start, range.end));
        ranges
            .filter(|(start, end)| end - start <= LARGEST)
            .map(|(start, end)| count(&pagemap, start, end))
            .sum()
    };
    let all = objects.iter().map(pages);
    let bytes = |pages: u64| Bytes(pages * base_page() as u64);
    all.map(|pages| pages.map(bytes).map_err(failed)).collect()
}

/// Pages of a range of addresses that were written.
fn count(pagemap: &File, start: usize, end: usize) -> std::io::Result<u64> {
    let (mut at, end) = (start / base_page(), end / base_page());
    let mut bytes = vec![0; CHUNK.min(end - at) * 8];
    let mut found = 0;
    while at < end {
        let wanted = bytes.len().min((end - at) * 8);
        let read = pagemap.read_at(&mut bytes[..wanted], at as u64 * 8)? / 8;
        if read == 0 {
            break;
        }
        for entry in bytes[..read * 8].chunks_exact(8) {
            let entry = entry.try_into().map_or(0, u64::from_ne_bytes);
            found += u64::from(entry & PRESENT != 0 && entry & WRITTEN != 0);
        }
        at += read;
    }
    Ok(found)
}

/// Whether the kernel has the bits: one that lacks them clears them without an error. Tried on a page of this process.
///
/// # Errors
/// It has not.
pub fn sees_written(root: &Root) -> Result<(), Unavailable> {
    let (own, page) = (std::process::id(), base_page());
    let mut memory = vec![1_u8; 2 * page];
    clear_written(root, own)?;
    memory.iter_mut().for_each(|byte| *byte = 2);
    let start = black_box(&memory).as_ptr().addr().next_multiple_of(page);
    let pagemap = root.open(&format!("/proc/{own}/pagemap"), false);
    let found = pagemap.and_then(|pagemap| count(&pagemap, start, start + page));
    match found {
        Ok(1) => Ok(()),
        _ => Err(Unavailable::because(
            "the kernel does not say which pages are written (CONFIG_MEM_SOFT_DIRTY)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_written_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pagemap");
        let mut entries = [0_u64; 10];
        (entries[3], entries[4], entries[5]) = (PRESENT | WRITTEN, PRESENT, WRITTEN);
        (entries[6], entries[9]) = (PRESENT | WRITTEN, PRESENT | WRITTEN);
        let bytes: Vec<u8> = entries
            .iter()
            .flat_map(|entry| entry.to_ne_bytes())
            .collect();
        std::fs::write(&path, bytes).unwrap();
        let pagemap = File::open(&path).unwrap();
        let counted = |from: usize, to: usize| {
            let found = count(&pagemap, from * base_page(), to * base_page());
            found.unwrap()
        };
        assert_eq!([counted(0, 10), counted(3, 9), counted(9, 40)], [3, 2, 1]);
    }
}
