//! Idle-page bits: a bit for each physical page, which an access clears (kernel documentation,
//! admin-guide/mm/idle_page_tracking.rst).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use weir_model::capability::Unavailable;

use super::maps::Resident;
use crate::root::Root;

const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";

/// The bits.
#[derive(Debug)]
pub(super) struct Idle {
    bitmap: File,
}

fn failed(why: &std::io::Error) -> Unavailable {
    Unavailable::because(format!("{BITMAP}: {why}"))
}

impl Idle {
    /// Opens them.
    ///
    /// # Errors
    /// The kernel lacks them, or this user may not.
    pub fn begin(root: &Root) -> Result<Self, Unavailable> {
        if !root.exists(BITMAP) {
            return Err(Unavailable::because(format!(
                "there is no {BITMAP}; it needs CONFIG_IDLE_PAGE_TRACKING"
            )));
        }
        let bitmap = root.open(BITMAP, true).map_err(|why| failed(&why))?;
        Ok(Self { bitmap })
    }

    /// Marks the pages of processes as idle.
    ///
    /// # Errors
    /// A process has ended, or the kernel hides the frames of its pages.
    pub fn mark(&mut self, resident: &[Resident]) -> Result<(), Unavailable> {
        // Only bits that are set are written, in words of 64 pages.
        let mut words: BTreeMap<u64, u64> = BTreeMap::new();
        for of in resident {
            of.frames(|_, frame| *words.entry(frame / 64).or_default() |= 1 << (frame % 64))?;
        }
        if words.is_empty() {
            return Err(Unavailable::because(
                "the kernel hides the frames of pages from this user (CAP_SYS_ADMIN)",
            ));
        }
        for (word, bits) in words {
            (self.bitmap.write_all_at(&bits.to_ne_bytes(), word * 8))
                .map_err(|why| failed(&why))?;
        }
        Ok(())
    }

    /// Notes a touch of each part in which a page is no longer idle.
    ///
    /// # Errors
    /// As [`mark`](Self::mark).
    pub fn read(&mut self, resident: &mut [Resident]) -> Result<(), Unavailable> {
        for of in resident {
            let mut touched = vec![false; of.granules.len()];
            let (mut known, mut bits, mut error) = (u64::MAX, 0, None);
            of.frames(|part, frame| {
                if frame / 64 != known {
                    let mut word = [0; 8];
                    match self.bitmap.read_exact_at(&mut word, frame / 64 * 8) {
                        Ok(()) => (known, bits) = (frame / 64, u64::from_ne_bytes(word)),
                        Err(why) => {
                            error = Some(failed(&why));
                            return;
                        }
                    }
                }
                touched[part] |= bits >> (frame % 64) & 1 == 0;
            })?;
            if let Some(why) = error {
                return Err(why);
            }
            for (granule, touched) in of.granules.iter_mut().zip(touched) {
                granule.touches += f64::from(u8::from(touched));
            }
        }
        Ok(())
    }
}
