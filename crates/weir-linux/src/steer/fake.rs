//! A machine for tests: files in a folder, and the kernel's rules for what is written to them.
//! Control groups (version 2), cpufreq, weights of interleaving; resctrl is [`crate::resctrl::fake`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::group::MOUNT;
use super::journal::Storage;
use crate::control::Control;
use crate::resctrl::fake;
use crate::root::Root;
use crate::topology::list;

const CPU: &str = "/sys/devices/system/cpu";
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// How many more steps the program makes before it ends: a record of the journal is one, and a write
/// to the kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Life(Arc<Mutex<Left>>);

#[derive(Debug, Default)]
struct Left {
    steps: Option<usize>,
    taken: usize,
    full: bool,
}

impl Life {
    /// One that ends at a step, counted from 0; or never.
    pub fn until(steps: Option<usize>) -> Self {
        let life = Self::default();
        life.0.lock().unwrap().steps = steps;
        life
    }

    /// Whether this step is made, and whether it is the last, in the middle of which it ends.
    fn step(&self) -> Step {
        let mut left = self.0.lock().unwrap();
        let at = left.taken;
        left.taken += 1;
        match left.steps {
            Some(end) if at == end => Step::Half,
            Some(end) if at > end => Step::Never,
            _ => Step::Whole,
        }
    }

    pub fn taken(&self) -> usize {
        self.0.lock().unwrap().taken
    }

    pub fn fill_disk(&self, full: bool) {
        self.0.lock().unwrap().full = full;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Whole,
    Half,
    Never,
}

fn ended() -> io::Error {
    io::Error::other("the program has ended")
}

/// A journal in memory, which outlives the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Paper {
    text: Arc<Mutex<Vec<u8>>>,
    life: Life,
}

impl Paper {
    /// The same paper in another's hands.
    pub fn held_by(&self, life: &Life) -> Self {
        Self {
            text: Arc::clone(&self.text),
            life: life.clone(),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.text.lock().unwrap().clone()).unwrap()
    }

    fn is_full(&self) -> bool {
        self.life.0.lock().unwrap().full
    }
}

impl Storage for Paper {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.text.lock().unwrap().clone())
    }

    fn append(&mut self, bytes: &[u8], _: bool) -> io::Result<()> {
        if self.is_full() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut text = self.text.lock().unwrap();
        match self.life.step() {
            Step::Whole => {
                text.extend(bytes);
                Ok(())
            }
            Step::Half => {
                text.extend(&bytes[..bytes.len() / 2]);
                Err(ended())
            }
            Step::Never => Err(ended()),
        }
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_full() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // Before the new one has its name, and after.
        for named in [false, true] {
            if named {
                *self.text.lock().unwrap() = bytes.to_vec();
            }
            if self.life.step() != Step::Whole {
                return Err(ended());
            }
        }
        Ok(())
    }
}

/// A machine with four processors, two groups of tenants, and one of somebody else.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    resctrl: fake::Fake,
}

impl Machine {
    pub fn new() -> Self {
        let machine = Self {
            resctrl: fake::Fake::intel().with_monitoring(),
        };
        machine.put("/proc/sys/kernel/random/boot_id", "first\n");
        machine.put(&format!("{CPU}/online"), "0-3\n");
        for cpu in 0..4 {
            let policy = format!("{CPU}/cpu{cpu}/cpufreq");
            machine.put(&format!("{policy}/related_cpus"), &format!("{cpu}\n"));
            machine.put(&format!("{policy}/cpuinfo_min_freq"), "800000\n");
            machine.put(&format!("{policy}/scaling_max_freq"), "3450000\n");
        }
        for (node, weight) in [(0, 5), (1, 2)] {
            machine.put(&format!("{WEIGHTS}/node{node}"), &format!("{weight}\n"));
        }
        let kernel = machine.kernel(&Life::default());
        machine.put(&format!("{MOUNT}/cgroup.procs"), "");
        machine.put(&format!("{MOUNT}/cgroup.threads"), "");
        machine.put(
            &format!("{MOUNT}/cgroup.controllers"),
            "cpuset cpu memory\n",
        );
        machine.put(&format!("{MOUNT}/cgroup.subtree_control"), "cpu memory\n");
        machine.put(&format!("{MOUNT}/cpuset.cpus.effective"), "0-3\n");
        for group in ["/a.slice", "/a.slice/a", "/b", "/shared"] {
            let group = format!("{MOUNT}{group}");
            kernel.make_folder(&group).unwrap();
            kernel
                .write(&format!("{group}/cgroup.subtree_control"), "+cpu")
                .unwrap();
        }
        machine.resctrl.add_group("others");
        for (thread, group, of_resctrl) in [
            (101, "/a.slice/a", ""),
            (102, "/a.slice/a", ""),
            (201, "/b", "others"),
            (301, "/shared", ""),
            (302, "/shared", ""),
        ] {
            machine.begin(thread);
            machine.move_to(thread, group);
            let list = format!("/sys/fs/resctrl/{of_resctrl}/tasks").replace("//", "/");
            kernel.write(&list, &format!("{thread}\n")).unwrap();
        }
        kernel
            .write(&format!("{MOUNT}/b/cpu.max"), "150000 50000")
            .unwrap();
        machine
    }

    fn kernel(&self, life: &Life) -> Kernel {
        Kernel {
            folder: self.resctrl.folder().to_owned(),
            resctrl: self.resctrl.control(),
            life: life.clone(),
        }
    }

    /// The machine in the hands of a program.
    pub fn root(&self, life: &Life) -> Root {
        Root::at(self.resctrl.folder()).obeyed_by(Arc::new(self.kernel(life)))
    }

    /// What somebody else writes.
    pub fn write(&self, path: &str, text: &str) {
        self.kernel(&Life::default()).write(path, text).unwrap();
    }

    /// A process of one thread begins.
    pub fn begin(&self, id: u32) {
        let stat = format!("{id} (a) b) S {} {} 0", ["0"; 18].join(" "), 7 * id);
        self.put(&format!("/proc/{id}/stat"), &stat);
        self.put(&format!("/proc/{id}/status"), &format!("Tgid:\t{id}\n"));
        fs::create_dir_all(self.real(&format!("/proc/{id}/task/{id}"))).unwrap();
    }

    /// A thread begins another, which is wherever it is itself.
    pub fn fork(&self, id: u32, new: u32) {
        self.begin(new);
        self.put(&format!("/proc/{new}/status"), &format!("Tgid:\t{id}\n"));
        let kernel = self.kernel(&Life::default());
        for list in kernel.lists().into_iter().chain(kernel.lists_of_resctrl()) {
            if self.text(&list).lines().any(|line| line.parse() == Ok(id)) {
                kernel.write(&list, &new.to_string()).unwrap();
            }
        }
    }

    /// A process ends.
    pub fn end(&self, id: u32) {
        fs::remove_dir_all(self.real(&format!("/proc/{id}"))).unwrap();
        self.kernel(&Life::default()).leave(id);
    }

    pub fn move_to(&self, id: u32, group: &str) {
        let path = format!("{MOUNT}{group}/cgroup.threads");
        self.write(&path, &id.to_string());
    }

    /// Somebody removes a group with all that is in it.
    pub fn vanish(&self, group: &str) {
        let path = format!("{MOUNT}{group}");
        for id in super::group::threads(&self.root(&Life::default()), &path) {
            self.end(id);
        }
        fs::remove_dir_all(self.real(&path)).unwrap();
    }

    /// Somebody makes it anew.
    pub fn make(&self, group: &str) {
        let kernel = self.kernel(&Life::default());
        kernel.make_folder(&format!("{MOUNT}{group}")).unwrap();
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.real(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn real(&self, path: &str) -> PathBuf {
        self.resctrl.folder().join(path.trim_start_matches('/'))
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.real(path)).unwrap()
    }

    /// Every file of the system, byte for byte.
    pub fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut open = vec![self.real("/sys")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(self.resctrl.folder()).unwrap();
                let name = format!("/{}", name.display());
                if path.is_dir() {
                    all.insert(format!("{name}/"), Vec::new());
                    open.push(path);
                } else if !name.ends_with("/last_cmd_status") {
                    all.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        all
    }
}

/// The kernel's rules.
#[derive(Debug)]
struct Kernel {
    folder: PathBuf,
    resctrl: Arc<dyn Control>,
    life: Life,
}

fn invalid<T>() -> io::Result<T> {
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

impl Kernel {
    fn real(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.real(path)).unwrap_or_default()
    }

    fn keep(&self, path: &str, text: &str) -> io::Result<()> {
        fs::write(self.real(path), format!("{}\n", text.trim()))
    }

    fn groups(&self, below: &str) -> Vec<String> {
        let folders = fs::read_dir(self.real(below))
            .into_iter()
            .flatten()
            .flatten();
        let folders = folders.filter(|entry| entry.path().is_dir());
        folders
            .map(|entry| format!("{below}/{}", entry.file_name().display()))
            .collect()
    }

    /// Gives a group the files of the controllers that the one above passes on, and takes the others.
    fn furnish(&self, group: &str) {
        let (above, _) = group.rsplit_once('/').unwrap();
        let has = self.text(&format!("{above}/cgroup.subtree_control"));
        self.keep(&format!("{group}/cgroup.controllers"), &has)
            .unwrap();
        for (controller, name, text) in [
            ("cpu", "cpu.max", "max 100000\n"),
            ("cpuset", "cpuset.cpus", "\n"),
        ] {
            let path = self.real(&format!("{group}/{name}"));
            match has.split_whitespace().any(|known| known == controller) {
                true if !path.exists() => fs::write(path, text).unwrap(),
                true => {}
                false => drop(fs::remove_file(path)),
            }
        }
        self.settle(group);
    }

    /// The processors that are left of those that a group asks for.
    fn settle(&self, group: &str) {
        let effective = format!("{group}/cpuset.cpus.effective");
        if !self.real(&format!("{group}/cpuset.cpus")).exists() {
            drop(fs::remove_file(self.real(&effective)));
        } else {
            let (above, _) = group.rsplit_once('/').unwrap();
            let there = list::parse(&self.text(&format!("{above}/cpuset.cpus.effective"))).unwrap();
            let wanted = list::parse(&self.text(&format!("{group}/cpuset.cpus"))).unwrap();
            let mut left: Vec<u32> = there
                .iter()
                .copied()
                .filter(|cpu| wanted.contains(cpu))
                .collect();
            if left.is_empty() {
                left = there;
            }
            self.keep(&effective, &list::format(&left)).unwrap();
        }
        for below in self.groups(group) {
            self.settle(&below);
        }
    }

    fn controllers(&self, group: &str, text: &str) -> io::Result<()> {
        let path = format!("{group}/cgroup.subtree_control");
        let offered = self.text(&format!("{group}/cgroup.controllers"));
        let mut on: Vec<String> = self
            .text(&path)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        for word in text.split_whitespace() {
            let (sign, name) = word.split_at(1);
            let below = self.groups(group);
            let used = |group: &String| {
                let text = self.text(&format!("{group}/cgroup.subtree_control"));
                text.split_whitespace().any(|known| known == name)
            };
            match sign {
                "+" if !offered.split_whitespace().any(|known| known == name) => {
                    return Err(io::Error::from_raw_os_error(libc::ENOENT));
                }
                "+" if !on.iter().any(|known| known == name) => on.push(name.to_owned()),
                "+" => {}
                "-" if below.iter().any(used) => {
                    return Err(io::Error::from_raw_os_error(libc::EBUSY));
                }
                "-" => on.retain(|known| known != name),
                _ => return invalid(),
            }
        }
        let order = ["cpuset", "cpu", "memory"];
        on.sort_by_key(|name| order.iter().position(|known| known == name));
        self.keep(&path, &on.join(" "))?;
        for below in self.groups(group) {
            self.furnish(&below);
        }
        Ok(())
    }

    fn lists(&self) -> Vec<String> {
        let (mut all, mut open) = (Vec::new(), vec![MOUNT.to_owned()]);
        while let Some(group) = open.pop() {
            open.extend(self.groups(&group));
            all.push(format!("{group}/cgroup.threads"));
        }
        all
    }

    fn leave(&self, id: u32) {
        for path in self.lists().into_iter().chain(self.lists_of_resctrl()) {
            self.without(&path, id);
        }
    }

    /// The lists of all groups of resctrl's; those of monitoring groups come last, since a thread is
    /// in one only if it is in the group above.
    fn lists_of_resctrl(&self) -> Vec<String> {
        let mut all = vec!["/sys/fs/resctrl/tasks".to_owned()];
        for folder in ["/sys/fs/resctrl", "/sys/fs/resctrl/mon_groups"] {
            let names = fs::read_dir(self.real(folder)).unwrap().flatten();
            let lists = names.map(|name| format!("{folder}/{}/tasks", name.file_name().display()));
            all.extend(lists.filter(|list| self.real(list).exists()));
        }
        all
    }

    fn without(&self, path: &str, id: u32) {
        if self.real(path).exists() {
            let text = self.text(path);
            if !text.lines().any(|line| line.parse() == Ok(id)) {
                return;
            }
            let rest = text.lines().filter(|line| line.parse() != Ok(id));
            let rest: String = rest.map(|line| format!("{line}\n")).collect();
            fs::write(self.real(path), rest).unwrap();
        }
    }

    fn obey(&self, path: &str, text: &str) -> io::Result<()> {
        if path.starts_with("/sys/fs/resctrl") {
            return self.resctrl.write(path, text);
        }
        if !self.real(path).exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (group, name) = path.rsplit_once('/').unwrap();
        let text = text.trim();
        match name {
            "cgroup.subtree_control" => self.controllers(group, text),
            "cgroup.type" if text == "threaded" => self.keep(path, text),
            "cgroup.threads" => {
                let id: u32 = text
                    .parse()
                    .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
                if !self.real(&format!("/proc/{id}")).exists() {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                self.lists().iter().for_each(|list| self.without(list, id));
                let mut all: Vec<u32> = self
                    .text(path)
                    .lines()
                    .map(|l| l.parse().unwrap())
                    .collect();
                all.push(id);
                all.sort_unstable();
                let all: String = all.iter().map(|id| format!("{id}\n")).collect();
                fs::write(self.real(path), all)?;
                let above = group.strip_prefix(MOUNT).unwrap();
                let above = if above.is_empty() { "/" } else { above };
                fs::write(
                    self.real(&format!("/proc/{id}/cgroup")),
                    format!("0::{above}\n"),
                )
            }
            "cpu.max" => {
                let (quota, period) = text.split_once(' ').unwrap_or((text, "100000"));
                let number = |text: &str, least: u64| text.parse().is_ok_and(|n: u64| n >= least);
                if (quota != "max" && !number(quota, 1000)) || !number(period, 1000) {
                    return invalid();
                }
                self.keep(path, &format!("{quota} {period}"))
            }
            "cpuset.cpus" => {
                let Ok(cpus) = list::parse(text) else {
                    return invalid();
                };
                if cpus.iter().any(|&cpu| cpu > 3) {
                    return invalid();
                }
                self.keep(path, &list::format(&cpus))?;
                self.settle(group);
                Ok(())
            }
            // Whole hundreds of MHz, but for what was set by hand at the start.
            "scaling_max_freq" => match text.parse::<u64>() {
                Ok(3_450_000) => self.keep(path, text),
                Ok(khz) => self.keep(path, &(khz / 100_000 * 100_000).max(800_000).to_string()),
                Err(_) => invalid(),
            },
            _ if path.starts_with(WEIGHTS) => match text.parse::<u8>() {
                Ok(weight) if weight > 0 => self.keep(path, text),
                _ => invalid(),
            },
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// A write is made or not; there is no half of one.
    fn step(&self, does: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.life.step() {
            Step::Whole => does(),
            // The kernel obeys, and nobody is there any more to hear it.
            Step::Half => does().and_then(|()| Err(ended())),
            Step::Never => Err(ended()),
        }
    }
}

impl Control for Kernel {
    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.step(|| self.obey(path, text))
    }

    fn make_folder(&self, path: &str) -> io::Result<()> {
        self.step(|| {
            if path.starts_with("/sys/fs/resctrl") {
                return self.resctrl.make_folder(path);
            }
            fs::create_dir(self.real(path))?;
            for name in ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
                fs::write(self.real(path).join(name), "")?;
            }
            self.keep(&format!("{path}/cgroup.type"), "domain")?;
            self.keep(&format!("{path}/cpu.stat"), "usage_usec 0")?;
            self.furnish(path);
            Ok(())
        })
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        self.step(|| {
            if path.starts_with("/sys/fs/resctrl") {
                return self.resctrl.remove_folder(path);
            }
            let busy = !self.text(&format!("{path}/cgroup.threads")).is_empty();
            if busy || !self.groups(path).is_empty() {
                return Err(io::Error::from_raw_os_error(libc::EBUSY));
            }
            fs::remove_dir_all(self.real(path))
        })
    }
}

/// What a file of a machine says, for a message.
pub(super) fn differences(
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) -> Vec<String> {
    let paths: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let text = |tree: &BTreeMap<String, Vec<u8>>, path: &str| {
        tree.get(path)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| {
            format!(
                "{path}: {:?} is {:?}",
                text(before, path),
                text(after, path)
            )
        })
        .collect()
}
