//! From the records of a log to the table of a store.

use std::path::Path;

use crate::error::{FlatError, Result};
use crate::extents::{PAGE, Run};
use crate::log::Layout;
use crate::record::Op;
use crate::table::{Entry, NONE, Table, Version, pages_of};

/// The files that records describe.
pub fn recover(records: &[Vec<Op>], frames: u32, layout: Layout, path: &Path) -> Result<Table> {
    let mut table = Table::new(frames, layout);
    let damaged = |why: String| FlatError::Damaged {
        path: path.to_owned(),
        why,
    };
    for op in records.iter().flatten() {
        match op {
            // A checkpoint may have what the next record has too.
            Op::Create { id, .. } if table.files.contains_key(id) => {}
            Op::Create { id, name } => table.add(*id, name.clone()),
            Op::Remove { id } => table.remove(*id),
            Op::Size { id, bytes } => {
                let Some(file) = table.files.get_mut(id) else {
                    continue;
                };
                // Holes are pages too, so that a file is never longer than the medium.
                let limit = layout.data_at() + u64::from(layout.pages) * PAGE as u64;
                if *bytes > limit {
                    return Err(damaged(format!(
                        "file {:?} has {bytes} bytes, the medium {limit}",
                        file.name
                    )));
                }
                let pages = pages_of(*bytes) as usize;
                (file.size, file.logged_size) = (*bytes, *bytes);
                file.entries
                    .resize(pages.max(file.entries.len()), Entry::HOLE);
            }
            Op::Map { id, page, run } => {
                let Some(file) = table.files.get_mut(id) else {
                    continue;
                };
                let end = page
                    .checked_add(run.len)
                    .filter(|end| *end as usize <= file.entries.len());
                let end = end.ok_or_else(|| {
                    damaged(format!("a page of {:?} is behind its end", file.name))
                })?;
                for (entry, place) in file.entries[*page as usize..end as usize]
                    .iter_mut()
                    .zip(run.start..)
                {
                    *entry = Entry {
                        home: place,
                        version: Version::Clean,
                        ..Entry::HOLE
                    };
                }
            }
        }
    }
    // Only what the last record says is in use; what earlier ones freed is free.
    let mut homes: Vec<u32> = table
        .files
        .values()
        .flat_map(|file| &file.entries)
        .map(|entry| entry.home)
        .collect();
    homes.retain(|home| *home != NONE);
    homes.sort_unstable();
    for home in homes {
        if !table.claim_medium(Run {
            start: home,
            len: 1,
        }) {
            return Err(damaged(format!(
                "page {home} of the medium is behind its end, or of two files"
            )));
        }
    }
    table.removed.clear();
    Ok(table)
}
