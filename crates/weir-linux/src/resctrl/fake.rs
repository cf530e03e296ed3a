//! A resctrl for tests: files in a folder, with the kernel's rules for writes to them (kernel documentation,
//! filesystems/resctrl).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::{MOUNT, Resctrl};
use crate::control::Control;
use crate::root::Root;

/// A machine with two domains, and 16 ways, in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Fake {
    kernel: Arc<Kernel>,
}

#[derive(Debug)]
struct Kernel {
    folder: TempDir,
    /// Whether masks may have holes.
    sparse: bool,
    /// Bandwidths: the largest, and the step.
    bandwidth: (u64, u64),
    groups: usize,
}

impl Fake {
    pub fn intel() -> Self {
        Self::new("L3", false, (100, 10), 4)
    }

    pub fn amd() -> Self {
        Self::new("L3", true, (2048, 1), 16)
    }

    /// A machine that separates code and data.
    pub fn with_code_and_data() -> Self {
        Self::new("L3CODE L3DATA", false, (100, 10), 4)
    }

    fn new(caches: &str, sparse: bool, bandwidth: (u64, u64), groups: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let kernel = Kernel {
            folder,
            sparse,
            bandwidth,
            groups,
        };
        let (_, step) = bandwidth;
        let mut files = vec![
            ("MB/min_bandwidth", step),
            ("MB/bandwidth_gran", step),
            ("MB/num_closids", groups as u64),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .collect::<Vec<_>>();
        for cache in caches.split(' ') {
            files.push((format!("{cache}/cbm_mask"), "ffff".into()));
            files.push((format!("{cache}/min_cbm_bits"), "1".into()));
            files.push((
                format!("{cache}/sparse_masks"),
                u8::from(sparse).to_string(),
            ));
            files.push((format!("{cache}/num_closids"), groups.to_string()));
        }
        files.push(("last_cmd_status".into(), "ok".into()));
        for (name, text) in files {
            let path = kernel.real(&format!("{MOUNT}/info/{name}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text + "\n").unwrap();
        }
        for cpu in 0..4 {
            // Two processors for each domain.
            let index = kernel.real(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3"));
            fs::create_dir_all(&index).unwrap();
            for (name, text) in [
                ("level", "3"),
                ("type", "Unified"),
                ("id", &format!("{}", cpu / 2)),
            ] {
                fs::write(index.join(name), text).unwrap();
            }
        }
        let fake = Self {
            kernel: Arc::new(kernel),
        };
        fake.kernel.furnish("", caches);
        fake
    }

    pub fn root(&self) -> Root {
        let kernel = Arc::clone(&self.kernel) as Arc<dyn Control>;
        Root::at(self.kernel.folder.path()).obeyed_by(kernel)
    }

    pub fn resctrl(&self) -> Resctrl {
        Resctrl::find(&self.root()).unwrap()
    }

    /// The same, with bytes counted by group.
    pub fn with_monitoring(self) -> Self {
        let features = self
            .kernel
            .real(&format!("{MOUNT}/info/L3_MON/mon_features"));
        fs::create_dir_all(features.parent().unwrap()).unwrap();
        fs::write(
            features,
            "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n",
        )
        .unwrap();
        fs::create_dir(self.kernel.real(&format!("{MOUNT}/mon_groups"))).unwrap();
        self.kernel.count("");
        self
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        self.kernel.folder.path()
    }

    /// Handles writes below the mount.
    pub fn control(&self) -> Arc<dyn Control> {
        Arc::clone(&self.kernel) as Arc<dyn Control>
    }

    /// A group made by another program.
    pub fn add_group(&self, name: &str) {
        let path = self.kernel.real(&format!("{MOUNT}/{name}"));
        fs::create_dir(path).unwrap();
        self.kernel.furnish(name, "");
    }

    /// A process with this `stat`.
    pub fn process(&self, id: u32, stat: &str) {
        let folder = self.kernel.real(&format!("/proc/{id}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stat"), stat).unwrap();
    }

    /// The groups other than the first.
    pub fn groups(&self) -> Vec<String> {
        let all = fs::read_dir(self.kernel.real(MOUNT)).unwrap();
        let folders = all.flatten().filter(|e| e.path().is_dir());
        let mut names: Vec<String> = folders
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !["info", "mon_groups", "mon_data"].contains(&name.as_str()))
            .collect();
        names.sort();
        names
    }

    pub fn threads(&self, group: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.kernel.file(group, "tasks")).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Kernel {
    fn real(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn file(&self, group: &str, name: &str) -> PathBuf {
        self.real(MOUNT).join(group).join(name)
    }

    /// The files of a new group; its resources are those of the first group.
    fn furnish(&self, group: &str, caches: &str) {
        fs::write(self.file(group, "tasks"), "").unwrap();
        let all = if caches.is_empty() {
            let mut all = self.read("");
            for (name, values) in &mut all {
                let most = self.most(name);
                values.values_mut().for_each(|value| *value = most);
            }
            all
        } else {
            let names = caches.split(' ').chain(["MB"]);
            let both = |name: &str| BTreeMap::from([0, 1].map(|domain| (domain, self.most(name))));
            names.map(|name| (name.to_owned(), both(name))).collect()
        };
        self.keep(group, &all);
    }

    /// The counts of a group, of both domains.
    fn count(&self, group: &str) {
        for domain in ["mon_L3_00", "mon_L3_01"] {
            let folder = self.file(group, "mon_data").join(domain);
            fs::create_dir_all(&folder).unwrap();
            for file in ["mbm_total_bytes", "llc_occupancy"] {
                fs::write(folder.join(file), "0\n").unwrap();
            }
        }
    }

    fn most(&self, name: &str) -> u64 {
        if name == "MB" {
            self.bandwidth.0
        } else {
            0xffff
        }
    }

    fn read(&self, group: &str) -> BTreeMap<String, BTreeMap<u32, u64>> {
        let text = fs::read_to_string(self.file(group, "schemata")).unwrap();
        text.lines().map(line).collect::<Option<_>>().unwrap()
    }

    /// The kernel's form: names in a column, masks with all their digits.
    fn keep(&self, group: &str, all: &BTreeMap<String, BTreeMap<u32, u64>>) {
        let line = |(name, values): (&String, &BTreeMap<u32, u64>)| {
            let one = |(domain, value): (&u32, &u64)| match name.as_str() {
                "MB" => format!("{domain}={value:>4}"),
                _ => format!("{domain}={value:04x}"),
            };
            let values: Vec<String> = values.iter().map(one).collect();
            format!("{name:>8}:{}\n", values.join(";"))
        };
        let text: String = all.iter().map(line).collect();
        fs::write(self.file(group, "schemata"), text).unwrap();
    }

    fn refuse(&self, why: &str) -> io::Error {
        let path = self.real(&format!("{MOUNT}/info/last_cmd_status"));
        fs::write(path, format!("{why}\n")).unwrap();
        io::Error::from_raw_os_error(libc::EINVAL)
    }

    fn assign(&self, group: &str, text: &str) -> io::Result<()> {
        let mut all = self.read(group);
        for (name, values) in text.lines().filter_map(line) {
            for (domain, value) in values {
                let known = all.get_mut(&name).and_then(|known| known.get_mut(&domain));
                let Some(known) = known else {
                    return Err(self.refuse("Unknown or unsupported resource name"));
                };
                *known = if name == "MB" {
                    let (most, step) = self.bandwidth;
                    value.next_multiple_of(step).min(most)
                } else {
                    let run = value >> value.trailing_zeros().min(63);
                    if value == 0 || value > 0xffff {
                        return Err(self.refuse("Mask out of range"));
                    }
                    if !self.sparse && run & (run + 1) != 0 {
                        let why = format!("The mask {value:x} has non-consecutive 1-bits");
                        return Err(self.refuse(&why));
                    }
                    value
                };
            }
        }
        self.keep(group, &all);
        Ok(())
    }

    fn is_in_first(&self, thread: &str) -> bool {
        let text = fs::read_to_string(self.file("", "tasks")).unwrap();
        text.lines().any(|line| line == thread)
    }

    /// A thread is in one group, and in at most one monitoring group of that group.
    fn move_thread(&self, group: &str, thread: &str) {
        let monitors = group.starts_with("mon_groups/");
        let folders = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
        let of_others = folders(self.real(&format!("{MOUNT}/mon_groups")));
        let groups = folders(self.real(MOUNT)).filter(|_| !monitors);
        let mut lists: Vec<PathBuf> = groups
            .chain(of_others)
            .map(|e| e.path().join("tasks"))
            .collect();
        if !monitors {
            lists.push(self.file("", "tasks"));
        }
        for path in lists {
            if let Ok(text) = fs::read_to_string(&path)
                && text.lines().any(|line| line == thread)
            {
                let others = text.lines().filter(|line| *line != thread);
                let others: String = others.map(|line| format!("{line}\n")).collect();
                fs::write(path, others).unwrap();
            }
        }
        let path = self.file(group, "tasks");
        let mut all: Vec<u32> = fs::read_to_string(&path)
            .unwrap()
            .lines()
            .chain([thread])
            .map(|line| line.parse().unwrap())
            .collect();
        all.sort_unstable();
        let text: String = all.iter().map(|id| format!("{id}\n")).collect();
        fs::write(path, text).unwrap();
    }
}

impl Control for Kernel {
    fn write(&self, path: &str, text: &str, _: Option<u64>) -> io::Result<()> {
        let inside = path.strip_prefix(MOUNT).unwrap().trim_start_matches('/');
        let (group, file) = inside.rsplit_once('/').unwrap_or(("", inside));
        if !self.file(group, file).exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        fs::write(self.real(&format!("{MOUNT}/info/last_cmd_status")), "ok\n")?;
        match file {
            "schemata" => self.assign(group, text),
            "tasks" if group.starts_with("mon_groups/") && !self.is_in_first(text.trim()) => {
                Err(self.refuse("Can't move task to different control group"))
            }
            "tasks" => {
                self.move_thread(group, text.trim());
                Ok(())
            }
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        let name = path.rsplit('/').next().unwrap();
        if path.contains("/mon_groups/") {
            fs::create_dir(self.real(path))?;
            fs::write(self.real(path).join("tasks"), "")?;
            self.count(&format!("mon_groups/{name}"));
            return Ok(());
        }
        let there = fs::read_dir(self.real(MOUNT))?.flatten();
        let groups = there.filter(|e| e.path().join("tasks").exists()).count();
        if groups + 1 >= self.groups {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        fs::create_dir(self.real(path))?;
        self.furnish(name, "");
        if self.real(&format!("{MOUNT}/mon_groups")).exists() {
            self.count(name);
        }
        Ok(())
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        if path.contains("/mon_groups/") {
            return fs::remove_dir_all(self.real(path));
        }
        let tasks = fs::read_to_string(self.real(path).join("tasks"))?;
        for thread in tasks.lines() {
            self.move_thread("", thread);
        }
        fs::remove_dir_all(self.real(path))
    }
}

/// `L3:0=ffff;1=ffff`.
fn line(text: &str) -> Option<(String, BTreeMap<u32, u64>)> {
    let (name, values) = text.trim().split_once(':')?;
    let radix = if name == "MB" { 10 } else { 16 };
    let one = |part: &str| {
        let (domain, value) = part.split_once('=')?;
        let value = u64::from_str_radix(value.trim(), radix).ok()?;
        Some((domain.trim().parse().ok()?, value))
    };
    Some((
        name.to_owned(),
        values.split(';').map(one).collect::<Option<_>>()?,
    ))
}
