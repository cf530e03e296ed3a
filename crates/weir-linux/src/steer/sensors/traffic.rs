//! Bytes that a tenant's threads moved to and from memory (MBM), and bytes of the last-level cache that their
//! lines fill (CMT): monitoring groups of resctrl (kernel documentation, filesystems/resctrl).
//!
//! The processor counts lines that crossed from the last-level cache, all tiers of a socket together.

use weir_model::capability::Unavailable;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::open_file::OpenFile;
use crate::root::Root;

/// What is known of a group: file and feature have one name.
const MOVED: &str = "mbm_total_bytes";
const HELD: &str = "llc_occupancy";

/// Whether this processor counts bytes by group.
///
/// # Errors
/// Why not, with advice.
pub(crate) fn find(root: &Root) -> Result<(), Unavailable> {
    has(root, MOVED, "memory bandwidth")
}

fn has(root: &Root, feature: &str, what: &str) -> Result<(), Unavailable> {
    crate::resctrl::Resctrl::find(root)?;
    let features = root.text("/sys/fs/resctrl/info/L3_MON/mon_features");
    let has = |features: &&String| features.lines().any(|name| name == feature);
    if features.known().as_ref().is_some_and(has) {
        return Ok(());
    }
    Err(Unavailable::because(format!(
        "this processor does not count {what} by group (no {feature} in resctrl's L3_MON)"
    )))
}

/// What one group counts.
#[derive(Debug)]
pub(crate) struct Monitored {
    moved: Result<Moved, Unavailable>,
    held: Result<Domains, Unavailable>,
}

impl Monitored {
    /// Nothing, for this reason.
    pub fn nothing(why: Unavailable) -> Self {
        Self {
            moved: Err(why.clone()),
            held: Err(why),
        }
    }

    /// What this processor counts of a group, which `make` makes if there is anything.
    pub fn of(root: &Root, make: impl FnOnce() -> Result<String, Unavailable>) -> Self {
        let moved = find(root);
        let held = has(root, HELD, "what fills the last-level cache");
        if let (Err(moved), Err(held)) = (&moved, &held) {
            let (moved, held) = (Err(moved.clone()), Err(held.clone()));
            return Self { moved, held };
        }
        let group = match make() {
            Ok(group) => group,
            Err(why) => return Self::nothing(why),
        };
        let domains = |name| Domains::of(root, &group, name);
        Self {
            moved: moved.map(|()| Moved {
                domains: domains(MOVED),
                last: None,
            }),
            held: held.map(|()| domains(HELD)),
        }
    }

    /// The bandwidth since the last window.
    ///
    /// # Errors
    /// A count is not available, went backwards, or this is the first window.
    pub fn moved(
        &mut self,
        root: &Root,
        window: Nanos,
        buffer: &mut Vec<u8>,
    ) -> Result<GbPerSec, Unavailable> {
        let moved = self.moved.as_mut().map_err(|why| why.clone())?;
        moved.window(root, window, buffer)
    }

    /// Bytes of the last-level cache that its lines fill now.
    ///
    /// # Errors
    /// It is not counted, or not readable.
    pub fn held(&mut self, root: &Root, buffer: &mut Vec<u8>) -> Result<Bytes, Unavailable> {
        let held = self.held.as_mut().map_err(|why| why.clone())?;
        held.sum(root, buffer).map(Bytes)
    }
}

/// The bytes of one group, window by window.
#[derive(Debug)]
struct Moved {
    domains: Domains,
    last: Option<u64>,
}

impl Moved {
    fn window(
        &mut self,
        root: &Root,
        window: Nanos,
        buffer: &mut Vec<u8>,
    ) -> Result<GbPerSec, Unavailable> {
        let now = self.domains.sum(root, buffer);
        let last = std::mem::replace(&mut self.last, now.clone().ok());
        let (now, Some(last)) = (now?, last) else {
            return Err(Unavailable::because("it is counted for the first time"));
        };
        let moved = now.checked_sub(last).ok_or_else(|| {
            Unavailable::because(format!("its count went back from {last} to {now}"))
        })?;
        Ok(GbPerSec::from_bytes_in(Bytes(moved), window))
    }
}

/// One file of a group, in every domain of the last-level cache.
#[derive(Debug)]
struct Domains(Vec<OpenFile>);

impl Domains {
    fn of(root: &Root, group: &str, file: &str) -> Self {
        let folder = format!("{group}/mon_data");
        let names = root.list(&folder);
        let names = names.known().map_or(&[][..], Vec::as_slice);
        let of_cache = names.iter().filter(|name| name.starts_with("mon_L3_"));
        let kept = |name: &String| OpenFile::new(format!("{folder}/{name}/{file}"));
        Self(of_cache.map(kept).collect())
    }

    fn sum(&mut self, root: &Root, buffer: &mut Vec<u8>) -> Result<u64, Unavailable> {
        if self.0.is_empty() {
            return Err(Unavailable::because("its group has no mon_data"));
        }
        let mut sum = 0_u64;
        for domain in &mut self.0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A group with these files of a domain, on a processor with these features.
    fn group(features: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join("sys/fs/resctrl").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("schemata", "L3:0=ffff\n");
        put("info/L3_MON/mon_features", features);
        for (file, text) in files {
            put(&format!("g/mon_data/mon_L3_00/{file}"), text);
        }
        put("g/mon_data/mon_L3_01/llc_occupancy", "64\n");
        let root = Root::at(folder.path());
        (folder, root)
    }

    #[test]
    fn bytes_are_counted_since_the_last_window_and_a_count_that_went_back_is_a_reason() {
        let (folder, root) = group("mbm_total_bytes\n", &[("mbm_total_bytes", "1000\n")]);
        let base = folder.path().join("sys/fs/resctrl/g/mon_data");
        let second = base.join("mon_L3_01/mbm_total_bytes");
        std::fs::write(&second, "5\n").unwrap();
        let mut monitored = Monitored::of(&root, || Ok("/sys/fs/resctrl/g".into()));
        let mut moved = || monitored.moved(&root, Nanos(100.0), &mut Vec::new());
        assert!(moved().unwrap_err().reason.contains("first time"));
        std::fs::write(&second, "6405\n").unwrap();
        assert_eq!(moved(), Ok(GbPerSec(64.0)));
        std::fs::write(&second, "0\n").unwrap();
        let why = moved().unwrap_err().reason;
        assert!(why.contains("went back from 7405 to 1000"), "{why}");
        assert_eq!(moved(), Ok(GbPerSec(0.0)));
    }

    #[test]
    fn what_fills_the_cache_is_the_sum_of_its_domains_or_a_reason_and_never_a_zero() {
        let of = |features, files: &[(&str, &str)]| {
            let (_folder, root) = group(features, files);
            let mut monitored = Monitored::of(&root, || Ok("/sys/fs/resctrl/g".into()));
            monitored.held(&root, &mut Vec::new())
        };
        let both = "llc_occupancy\nmbm_total_bytes\n";
        assert_eq!(of(both, &[("llc_occupancy", "1024\n")]), Ok(Bytes(1088)));
        assert_eq!(
            of("llc_occupancy\n", &[("llc_occupancy", "0\n")]),
            Ok(Bytes(64))
        );
        for (features, files, said) in [
            (
                both,
                &[("mbm_total_bytes", "7\n")][..],
                "mon_L3_00/llc_occupancy",
            ),
            (both, &[("llc_occupancy", "Unavailable\n")], "`Unavailable`"),
            (
                "mbm_total_bytes\n",
                &[("llc_occupancy", "9\n")],
                "no llc_occupancy",
            ),
            ("", &[("llc_occupancy", "9\n")], "no llc_occupancy"),
        ] {
            let why = of(features, files).unwrap_err();
            assert!(why.reason.contains(said), "{why}");
        }
    }
}
