//! What was seen of pages, by object of the process.

use weir_model::capability::Unavailable;
use weir_model::heat::SeenPages;
use weir_model::units::Bytes;

use crate::memory::ProcessObject;
use crate::root::Root;

/// How much of an object was touched in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ObjectHeat {
    /// Its memory that was looked at.
    pub resident: Bytes,
    /// The part of it that was seen touched.
    pub touched: Bytes,
    /// How often a page of it was seen touched, on average.
    pub touches: f64,
}

/// The heat of each object, in their order. What is in none of them is left out, and so are other processes.
pub fn of_objects(objects: &[ProcessObject], seen: &[SeenPages]) -> Vec<ObjectHeat> {
    let mut places: Vec<(u64, u64, usize)> = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        let range = |range: &crate::memory::AddressRange| {
            let (start, end) = (range.start as u64, range.end as u64);
            (start, end, number)
        };
        places.extend(object.ranges.iter().map(range));
    }
    places.sort_unstable();
    let mut all = vec![ObjectHeat::default(); objects.len()];
    for pages in seen {
        let next = places.partition_point(|place| place.0 <= pages.start);
        let place = next.checked_sub(1).and_then(|at| places.get(at));
        let Some(&(.., number)) = place.filter(|place| pages.start < place.1) else {
            continue;
        };
        let heat = &mut all[number];
        heat.resident = Bytes(heat.resident.get() + pages.bytes.get());
        if pages.touches > 0.0 {
            heat.touched = Bytes(heat.touched.get() + pages.bytes.get());
        }
        // A sum until all pages are known.
        heat.touches += pages.touches * pages.bytes.get() as f64;
    }
    for heat in &mut all {
        heat.touches /= heat.resident.get().max(1) as f64;
    }
    all
}

/// Memory of a process of which less is seen, or which the kernel does not move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Special {
    /// Pages that the kernel or a device holds for long (`VmPin` of proc(5)).
    pub pinned: Bytes,
    /// Pages that are locked in memory (`VmLck`); they move all the same.
    pub locked: Bytes,
    /// Pages of 2 MiB and more, of which one touch is seen as a touch of all.
    pub huge: Bytes,
}

/// What is special in a process's memory.
///
/// # Errors
/// There is no such process. What this user may not see counts as none.
pub fn special(root: &Root, process: u32) -> Result<Special, Unavailable> {
    let status = root.text(&format!("/proc/{process}/status"));
    let status = status.get()?;
    let rollup = root.text(&format!("/proc/{process}/smaps_rollup"));
    let rollup = rollup.known().map_or("", |text| text.as_str());
    let huge = ["AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"];
    Ok(Special {
        pinned: kib(status, "VmPin:"),
        locked: kib(status, "VmLck:"),
        huge: (huge.iter().map(|key| kib(rollup, key))).sum::<Bytes>(),
    })
}

/// A line such as `VmPin:        4 kB`.
fn kib(text: &str, key: &str) -> Bytes {
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    let kib = value.and_then(|value| value.split_ascii_whitespace().next()?.parse::<u64>().ok());
    Bytes(kib.unwrap_or(0).saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::memory::{AddressRange, base_page};

    #[test]
    fn pages_are_of_the_object_that_has_their_address() {
        let page = base_page();
        let object = |name: &str, ranges: &[(usize, usize)]| ProcessObject {
            name: name.into(),
            ranges: (ranges.iter())
                .map(|(start, end)| AddressRange {
                    process: 7,
                    start: start * page,
                    end: end * page,
                })
                .collect(),
            bytes: Bytes(0),
            nodes: BTreeMap::new(),
            code: false,
        };
        let objects = [object("a", &[(30, 40), (10, 20)]), object("b", &[(20, 30)])];
        let seen = |at: usize, pages: u64, touches: f64| SeenPages {
            space: 0,
            start: (at * page) as u64,
            bytes: Bytes(pages * page as u64),
            page: Bytes(page as u64),
            file: false,
            region: "".into(),
            touches,
            frame: 0,
        };
        let all = [
            seen(9, 1, 9.0),
            seen(10, 3, 2.0),
            seen(35, 1, 0.0),
            seen(29, 1, 0.5),
            seen(40, 1, 9.0),
        ];
        let heat = |resident: u64, touched: u64, touches: f64| ObjectHeat {
            resident: Bytes(resident * page as u64),
            touched: Bytes(touched * page as u64),
            touches,
        };
        assert_eq!(
            of_objects(&objects, &all),
            [heat(4, 3, 1.5), heat(1, 1, 0.5)]
        );
    }

    #[test]
    fn pinned_and_huge_memory_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("proc/7");
        std::fs::create_dir_all(&process).unwrap();
        let root = Root::at(folder.path());
        assert!(special(&root, 7).is_err());
        let status = "Name:\todd\nVmLck:\t       4 kB\nVmPin:\t     12 kB\n";
        std::fs::write(process.join("status"), status).unwrap();
        let rollup = "Rss: 9 kB\nAnonHugePages:      2048 kB\nFilePmdMapped:  2048 kB\n";
        std::fs::write(process.join("smaps_rollup"), rollup).unwrap();
        let found = special(&root, 7).unwrap();
        assert_eq!(
            [found.pinned, found.locked, found.huge].map(Bytes::get),
            [12 << 10, 4 << 10, 4 << 20]
        );
    }
}
