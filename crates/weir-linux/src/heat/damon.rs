//! DAMON, the kernel's monitor of data accesses, through its files in `sysfs`.
//!
//! The kernel divides an address space into regions, looks every few milliseconds whether one page of each was touched,
//! and merges and splits regions by what it finds (kernel documentation, mm/damon/design.rst). A scheme with the action
//! `stat` lists the regions with the samples in which they were touched (`tried_regions`, Linux 6.2).

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use weir_model::capability::Unavailable;
use weir_model::units::Nanos;

use super::maps::Resident;
use crate::control::DAMON;
use crate::locked::Locked;
use crate::process::started;
use crate::root::Root;

/// This often the kernel looks for new mappings. Until then it sees no touch of them, for which they would be taken for cold;
/// its own interval is a minute.
const UPDATE: Nanos = Nanos(1e9);
/// After this many looks in a row without a list of regions watching has failed.
const MOST_UNLISTED: u32 = 50;
pub(crate) const COUNT: &str = "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";

/// The kernel's threads that Weir has started, and its lock for as long as it runs. Only root uses DAMON.
const NOTE: &str = "/run/weir/damon";

/// How many regions DAMON may have, and how often it looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regions {
    /// At least this many.
    pub least: u32,
    /// At most this many.
    pub most: u32,
    /// The time between two samples of each.
    pub sample: Nanos,
}

impl Default for Regions {
    /// The kernel's own.
    fn default() -> Self {
        Self {
            least: 10,
            most: 1000,
            sample: Nanos::from_micros(5000.0),
        }
    }
}

/// A kernel thread for each process, until this is ended or dropped.
#[derive(Debug)]
pub(super) struct Damon {
    root: Root,
    count: usize,
    regions: usize,
    /// Looks in a row without a list of regions.
    unlisted: u32,
    running: bool,
    /// Where there is a place for it.
    note: Option<Locked>,
}

impl Damon {
    /// Starts to watch processes, whose regions are looked at this often.
    ///
    /// # Errors
    /// The kernel lacks it, another program uses it, or this user may not.
    pub fn begin(
        root: &Root,
        processes: &[u32],
        look: Nanos,
        regions: Regions,
    ) -> Result<Self, Unavailable> {
        end_left(root);
        let used: u32 = *root.value(COUNT).get().map_err(|why| {
            Unavailable::because(format!(
                "{why}; it needs Linux 6.2 with CONFIG_DAMON_VADDR and CONFIG_DAMON_SYSFS"
            ))
        })?;
        if used != 0 {
            return Err(Unavailable::because(format!(
                "another program uses it ({COUNT} is {used}); if it was left by one that has ended, write `off` to {DAMON}/N/state \
                 for each N below {used}, then 0 to {COUNT}"
            )));
        }
        let note = note(root);
        put(root, COUNT, processes.len())?;
        // From here on every way out ends what was begun.
        let mut damon = Self {
            root: root.clone(),
            count: processes.len(),
            regions: 0,
            unlisted: 0,
            running: true,
            note,
        };
        for (number, process) in processes.iter().enumerate() {
            let put = |path: &str, value: &dyn std::fmt::Display| {
                put(root, &format!("{DAMON}/{number}/{path}"), value)
            };
            let micros = |time: Nanos| (time.get() / 1e3).round() as u64;
            put("contexts/nr_contexts", &1)?;
            put("contexts/0/operations", &"vaddr")?;
            let attributes = "contexts/0/monitoring_attrs";
            put(
                &format!("{attributes}/intervals/sample_us"),
                &micros(regions.sample),
            )?;
            put(&format!("{attributes}/intervals/aggr_us"), &micros(look))?;
            put(
                &format!("{attributes}/intervals/update_us"),
                &micros(UPDATE),
            )?;
            put(&format!("{attributes}/nr_regions/max"), &regions.most)?;
            put(&format!("{attributes}/nr_regions/min"), &regions.least)?;
            put("contexts/0/targets/nr_targets", &1)?;
            put("contexts/0/targets/0/pid_target", process)?;
            put("contexts/0/schemes/nr_schemes", &1)?;
            let scheme = "contexts/0/schemes/0";
            put(&format!("{scheme}/action"), &"stat")?;
            for (key, most) in [
                ("sz", u64::MAX),
                ("nr_accesses", u64::from(u32::MAX)),
                ("age", u64::from(u32::MAX)),
            ] {
                put(&format!("{scheme}/access_pattern/{key}/max"), &most)?;
            }
            put("state", &"on")?;
        }
        if let Some(note) = &mut damon.note {
            // Without it a later Weir does not know these threads.
            let _ = note.write_all(threads(root, processes.len()).as_bytes());
        }
        Ok(damon)
    }

    /// Adds the samples of each region since the last look to the parts that begin in it. Returns whether the kernel
    /// listed its regions: where it has no time to list most of them, nothing is added.
    ///
    /// # Errors
    /// The kernel has stopped watching, as it does when a process ends.
    pub fn look(&mut self, root: &Root, resident: &mut [Resident]) -> Result<bool, Unavailable> {
        let mut listed = Vec::new();
        let (mut parts, mut covered) = (0, 0);
        let mut stopped = None;
        for (number, of) in resident.iter_mut().enumerate() {
            let folder = format!("{DAMON}/{number}");
            if let Err(why) = put(
                root,
                &format!("{folder}/state"),
                "update_schemes_tried_regions",
            ) {
                stopped = Some(why);
                continue;
            }
            parts += of.granules.len();
            for (start, end, touched) in regions(root, &folder)? {
                covered += of.within(start, end).len();
                listed.push((number, start, end, touched));
            }
        }
        if let Some(why) = stopped.filter(|_| parts == 0) {
            return Err(why);
        }
        if 2 * covered < parts || listed.is_empty() {
            self.unlisted += 1;
            return match self.unlisted < MOST_UNLISTED {
                true => Ok(false),
                false => Err(Unavailable::because("DAMON does not list its regions")),
            };
        }
        self.unlisted = 0;
        self.regions = listed.len();
        for (number, start, end, touched) in listed {
            for granule in resident[number].within(start, end) {
                granule.touches += touched as f64;
            }
        }
        Ok(true)
    }

    /// Regions at the last look.
    pub fn regions(&self) -> usize {
        self.regions
    }

    /// Ends it.
    ///
    /// # Errors
    /// The kernel's threads could not be removed.
    pub fn end(mut self, root: &Root) -> Result<(), Unavailable> {
        self.stop(root)
    }

    fn stop(&mut self, root: &Root) -> Result<(), Unavailable> {
        if !std::mem::take(&mut self.running) {
            return Ok(());
        }
        for number in 0..self.count {
            // A thread whose process has ended is off already, which is an error to say again.
            let _ = root.write(&format!("{DAMON}/{number}/state"), "off");
        }
        put(root, COUNT, 0)?;
        self.note.as_ref().map(|note| note.set_len(0));
        Ok(())
    }
}

/// The file that names the threads, for this process alone; empty.
fn note(root: &Root) -> Option<Locked> {
    let path = root.on_disk(NOTE)?;
    fs::create_dir_all(path.parent()?).ok()?;
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let file = options
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path);
    let note = Locked::new(file.ok()?).ok()?;
    note.set_len(0).ok()?;
    Some(note)
}

/// A line for each thread: its number and when it began, which no other one has.
fn threads(root: &Root, count: usize) -> String {
    let thread = |number| {
        let id = *root
            .value::<u32>(&format!("{DAMON}/{number}/pid"))
            .known()?;
        Some(format!("{id} {}\n", started(root, id)?))
    };
    (0..count)
        .map(|number| thread(number).unwrap_or_default())
        .collect()
}

/// Ends DAMON where a Weir that was killed has left it on, and no other thread of it runs. Returns whether it was.
pub fn end_left(root: &Root) -> bool {
    let noted = root.text(NOTE);
    let noted = noted.known().map_or("", String::as_str).trim();
    let count = *root.value::<usize>(COUNT).known().unwrap_or(&0);
    // A thread whose process has ended does not run any more.
    let is_noted = |thread: &str| noted.lines().any(|line| line == thread);
    if noted.is_empty() || count == 0 || !threads(root, count).lines().all(is_noted) {
        return false;
    }
    // A Weir that runs has the lock.
    let Some(note) = note(root) else {
        return false;
    };
    let mut left = Damon {
        root: root.clone(),
        count,
        regions: 0,
        unlisted: 0,
        running: true,
        note: Some(note),
    };
    left.stop(root).is_ok()
}

impl Drop for Damon {
    fn drop(&mut self) {
        let root = self.root.clone();
        // The caller that drops it has an error of its own.
        let _ = self.stop(&root);
    }
}

/// Start, end and samples with a touch of each region that a thread has listed.
fn regions(root: &Root, folder: &str) -> Result<Vec<(u64, u64, u64)>, Unavailable> {
    let tried = format!("{folder}/contexts/0/schemes/0/tried_regions");
    let names = root.numbered(&tried, "");
    let region = |name: &String| {
        let value = |key: &str| {
            let value = root.value::<u64>(&format!("{tried}/{name}/{key}"));
            value.known().copied()
        };
        Some((value("start")?, value("end")?, value("nr_accesses")?))
    };
    let names = names.get()?.iter();
    Ok(names.filter_map(|(_, name)| region(name)).collect())
}

fn put(root: &Root, path: &str, value: impl std::fmt::Display) -> Result<(), Unavailable> {
    root.write(path, &value.to_string())
        .map_err(|why| Unavailable::because(format!("{path}: {why}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::control::Files;

    #[test]
    fn what_a_killed_weir_has_left_on_is_ended_by_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let real = |path: &str| folder.path().join(path.trim_start_matches('/'));
        let put = |path: &str, text: &str| {
            fs::create_dir_all(real(path).parent().unwrap()).unwrap();
            fs::write(real(path), text).unwrap();
        };
        let thread = |id: u32, began: u32| {
            put(&format!("{DAMON}/0/pid"), &format!("{id}\n"));
            let stat = format!("{id} (kdamond.0) S {} {began} 0", ["0"; 18].join(" "));
            put(&format!("/proc/{id}/stat"), &stat);
        };
        let context = format!("{DAMON}/0/contexts/0");
        for file in [
            "monitoring_attrs/intervals/sample_us",
            "monitoring_attrs/nr_regions/min",
            "targets/0/pid_target",
            "schemes/0/access_pattern/sz/max",
            "schemes/0/access_pattern/nr_accesses/max",
            "schemes/0/access_pattern/age/max",
        ] {
            put(&format!("{context}/{file}"), "0\n");
        }
        put(COUNT, "0\n");
        thread(7, 70);
        let root = Root::at(folder.path()).obeyed_by(Arc::new(Files(folder.path().to_owned())));
        let begin = || Damon::begin(&root, &[4711], Nanos(1e8), Regions::default());
        let is_used = |why: Unavailable| why.reason.contains("another program uses it");

        let mut first = begin().unwrap();
        assert!(begin().is_err_and(is_used), "it runs");
        // Killed: its lock goes, and nothing else.
        first.note = None;
        std::mem::forget(first);
        assert!(end_left(&root));
        assert!(!end_left(&root));
        assert_eq!(fs::read_to_string(real(COUNT)).unwrap(), "0\n");

        let mut second = begin().unwrap();
        second.note = None;
        std::mem::forget(second);
        begin().unwrap().end(&root).unwrap();

        let mut third = begin().unwrap();
        third.note = None;
        std::mem::forget(third);
        // Another program has started DAMON since.
        thread(8, 80);
        assert!(begin().is_err_and(is_used));
    }
}
