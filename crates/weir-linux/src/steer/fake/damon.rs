//! The kernel's rules for the files of DAMON.

use std::fs;
use std::io;

use super::kernel::{Kernel, invalid};
use crate::control::DAMON;
use crate::heat::damon::COUNT;

/// Each file that counts folders, and what the kernel puts into one of them.
const FOLDERS: [(&str, &[(&str, &str)]); 6] = [
    (
        "nr_kdamonds",
        &[("state", "off"), ("contexts/nr_contexts", "0")],
    ),
    (
        "nr_contexts",
        &[
            ("avail_operations", "vaddr\nfvaddr\npaddr"),
            ("operations", "vaddr"),
            ("monitoring_attrs/intervals/sample_us", "5000"),
            ("monitoring_attrs/intervals/aggr_us", "100000"),
            ("monitoring_attrs/nr_regions/min", "10"),
            ("monitoring_attrs/nr_regions/max", "1000"),
            ("targets/nr_targets", "0"),
            ("schemes/nr_schemes", "0"),
        ],
    ),
    (
        "nr_targets",
        &[("pid_target", "0"), ("regions/nr_regions", "0")],
    ),
    ("nr_regions", &[("start", "0"), ("end", "0")]),
    (
        "nr_schemes",
        &[
            ("action", "stat"),
            ("target_nid", "0"),
            ("access_pattern/sz/min", "0"),
            ("access_pattern/sz/max", "0"),
            ("access_pattern/nr_accesses/min", "0"),
            ("access_pattern/nr_accesses/max", "0"),
            ("access_pattern/age/min", "0"),
            ("access_pattern/age/max", "0"),
            ("quotas/bytes", "0"),
            ("quotas/reset_interval_ms", "0"),
            ("quotas/weights/nr_accesses_permil", "0"),
            ("quotas/weights/age_permil", "0"),
            ("filters/nr_filters", "0"),
            ("stats/nr_tried", "0"),
            ("stats/sz_tried", "0"),
            ("stats/nr_applied", "0"),
            ("stats/sz_applied", "0"),
            ("stats/qt_exceeds", "0"),
        ],
    ),
    (
        "nr_filters",
        &[("type", "anon"), ("memcg_path", ""), ("matching", "N")],
    ),
];

fn busy() -> io::Error {
    io::Error::from_raw_os_error(libc::EBUSY)
}

impl Kernel {
    /// Whether a thread of DAMON runs.
    fn damon_runs(&self) -> bool {
        let count: usize = self.text(COUNT).trim().parse().unwrap();
        (0..count).any(|number| self.text(&format!("{DAMON}/{number}/state")).trim() == "on")
    }

    pub(super) fn obey_damon(&self, path: &str, text: &str) -> io::Result<()> {
        let (folder, name) = path.rsplit_once('/').unwrap();
        if name == "state" {
            return match (text, self.text(path).trim() == "on") {
                ("on", false) | ("off", true) => self.keep(path, text),
                ("update_schemes_stats", true) => Ok(()),
                ("on", true) => Err(busy()),
                _ => invalid(),
            };
        }
        let is_outer = |(counts, _): &&(&str, _)| {
            *counts == name && (folder != DAMON) == (name != "nr_kdamonds")
        };
        // The monitor's own file of that name has no folders.
        let Some((_, files)) = FOLDERS.iter().find(is_outer) else {
            return self.keep(path, text);
        };
        if path == COUNT && self.damon_runs() {
            return Err(busy());
        }
        let Ok(count) = text.parse::<usize>() else {
            return invalid();
        };
        let old: usize = self.text(path).trim().parse().unwrap();
        for number in 0..old {
            fs::remove_dir_all(self.real(&format!("{folder}/{number}")))?;
        }
        for number in 0..count {
            for (file, text) in *files {
                let file = self.real(&format!("{folder}/{number}/{file}"));
                fs::create_dir_all(file.parent().unwrap())?;
                fs::write(file, format!("{text}\n"))?;
            }
        }
        self.keep(path, text)
    }
}
