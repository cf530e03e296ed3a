//! Bytes that a tenant's threads moved to and from memory: monitoring groups of resctrl (MBM; kernel
//! documentation, filesystems/resctrl).
//!
//! The processor counts lines that crossed from the last-level cache, all tiers of a socket together.

use weir_model::capability::Unavailable;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::open_file::OpenFile;
use crate::root::Root;

/// Whether this processor counts bytes by group.
///
/// # Errors
/// Why not, with advice.
pub(crate) fn find(root: &Root) -> Result<(), Unavailable> {
    crate::resctrl::Resctrl::find(root)?;
    let features = root.text("/sys/fs/resctrl/info/L3_MON/mon_features");
    let has = |features: &&String| features.lines().any(|name| name == "mbm_total_bytes");
    if features.known().as_ref().is_some_and(has) {
        return Ok(());
    }
    Err(Unavailable::because(
        "this processor does not count memory bandwidth by group (no mbm_total_bytes in resctrl's L3_MON)",
    ))
}

/// The bytes of one group, window by window.
#[derive(Debug)]
pub(crate) struct Moved {
    domains: Vec<OpenFile>,
    last: Option<u64>,
}

impl Moved {
    /// The bytes of a group, given by its path.
    pub fn of(root: &Root, group: &str) -> Self {
        let folder = format!("{group}/mon_data");
        let names = root.list(&folder);
        let names = names.known().map_or(&[][..], Vec::as_slice);
        let of_cache = names.iter().filter(|name| name.starts_with("mon_L3_"));
        let kept = |name: &String| OpenFile::new(format!("{folder}/{name}/mbm_total_bytes"));
        Self {
            domains: of_cache.map(kept).collect(),
            last: None,
        }
    }

    /// The bytes moved since the last window.
    ///
    /// # Errors
    /// A count is not available, went backwards, or this is the first window.
    pub fn window(
        &mut self,
        root: &Root,
        window: Nanos,
        buffer: &mut Vec<u8>,
    ) -> Result<GbPerSec, Unavailable> {
        let now = self.now(root, buffer);
        let last = std::mem::replace(&mut self.last, now.clone().ok());
        let (now, Some(last)) = (now?, last) else {
            return Err(Unavailable::because("it is counted for the first time"));
        };
        let moved = now.checked_sub(last).ok_or_else(|| {
            Unavailable::because(format!("its count went back from {last} to {now}"))
        })?;
        Ok(GbPerSec::from_bytes_in(Bytes(moved), window))
    }

    fn now(&mut self, root: &Root, buffer: &mut Vec<u8>) -> Result<u64, Unavailable> {
        if self.domains.is_empty() {
            return Err(Unavailable::because("its group has no mon_data"));
        }
        let mut sum = 0_u64;
        for domain in &mut self.domains {
            let text = domain.read(root, buffer)?.trim();
            // `Unavailable` directly after a counter was assigned to the group, `Error` if that failed.
            let bytes: u64 = text
                .parse()
                .map_err(|_| Unavailable::because(format!("its count of bytes says `{text}`")))?;
            sum = sum.saturating_add(bytes);
        }
        Ok(sum)
    }
}
