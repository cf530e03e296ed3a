//! A machine for tests: files in a folder, and the kernel's rules for writes to them. Control groups (version
//! 2), cpufreq, weights of interleaving; resctrl is [`crate::resctrl::fake`].

mod damon;
mod kernel;
mod paper;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{BALANCING, Kernel, WEIGHTS};

use super::group::MOUNT;
use crate::control::Control;
use crate::heat::damon::COUNT;
use crate::resctrl::fake;
use crate::root::Root;

pub(super) use paper::{Life, Paper};

const CPU: &str = "/sys/devices/system/cpu";
/// A machine with four processors, two groups of tenants, and groups of other programs.
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
        fs::create_dir(machine.real("/dev")).unwrap();
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
        machine.put("/sys/kernel/mm/numa/demotion_enabled", "false\n");
        machine.put(COUNT, "0\n");
        for (node, block) in [(0, 0), (0, 1), (1, 2), (1, 3), (1, 5)] {
            machine.put(
                &format!("/sys/devices/system/node/node{node}/memory{block}/online"),
                "1\n",
            );
        }
        machine.put("/sys/devices/system/memory/block_size_bytes", "8000000\n");
        machine.put(BALANCING, "1\n");
        machine.put(&format!("{BALANCING}_promote_rate_limit_MBps"), "65536\n");
        let kernel = machine.kernel(&Life::default());
        machine.put(&format!("{MOUNT}/cgroup.procs"), "");
        machine.put(&format!("{MOUNT}/cgroup.threads"), "");
        machine.put(
            &format!("{MOUNT}/cgroup.controllers"),
            "cpuset cpu memory\n",
        );
        machine.put(&format!("{MOUNT}/cgroup.subtree_control"), "cpu memory\n");
        machine.put(&format!("{MOUNT}/cpuset.cpus.effective"), "0-3\n");
        for group in ["/a.slice", "/a.slice/a", "/a.slice/other", "/b", "/shared"] {
            let group = format!("{MOUNT}{group}");
            kernel.make_folder(&group).unwrap();
            kernel
                .write(&format!("{group}/cgroup.subtree_control"), "+cpu", None)
                .unwrap();
        }
        machine.put(&format!("{MOUNT}/b/memory.current"), "0\n");
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
            kernel.write(&list, &format!("{thread}\n"), None).unwrap();
        }
        kernel
            .write(&format!("{MOUNT}/b/cpu.max"), "150000 50000", None)
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

    /// The machine as a program sees it.
    pub fn root(&self, life: &Life) -> Root {
        Root::at(self.resctrl.folder()).obeyed_by(Arc::new(self.kernel(life)))
    }

    /// A write by another program.
    pub fn write(&self, path: &str, text: &str) {
        self.kernel(&Life::default())
            .write(path, text, None)
            .unwrap();
    }

    /// A process of one thread begins.
    pub fn begin(&self, id: u32) {
        let stat = format!("{id} (a) b) S {} {} 0", ["0"; 18].join(" "), 7 * id);
        self.put(&format!("/proc/{id}/stat"), &stat);
        self.put(&format!("/proc/{id}/status"), &format!("Tgid:\t{id}\n"));
        fs::create_dir_all(self.real(&format!("/proc/{id}/task/{id}"))).unwrap();
    }

    /// A thread starts another, in its own groups.
    pub fn fork(&self, id: u32, new: u32) {
        self.begin(new);
        self.put(&format!("/proc/{new}/status"), &format!("Tgid:\t{id}\n"));
        let kernel = self.kernel(&Life::default());
        for list in kernel.lists().into_iter().chain(kernel.lists_of_resctrl()) {
            if self.text(&list).lines().any(|line| line.parse() == Ok(id)) {
                kernel.write(&list, &new.to_string(), None).unwrap();
            }
        }
    }

    /// Whether a process or thread runs.
    pub fn runs(&self, id: u32) -> bool {
        self.real(&format!("/proc/{id}")).exists()
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

    /// Another program removes a group with everything in it.
    pub fn vanish(&self, group: &str) {
        let path = format!("{MOUNT}{group}");
        for id in super::group::threads(&self.root(&Life::default()), &path) {
            self.end(id);
        }
        // The kernel does not use the number of a group again.
        let gone = self.real("/gone");
        fs::create_dir_all(&gone).unwrap();
        let number = fs::read_dir(&gone).unwrap().count();
        fs::rename(self.real(&path), gone.join(number.to_string())).unwrap();
    }

    /// Another program makes it again.
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
        for path in [
            BALANCING.to_owned(),
            format!("{BALANCING}_promote_rate_limit_MBps"),
        ] {
            let text = fs::read(self.real(&path)).unwrap();
            all.insert(path, text);
        }
        let mut open = vec![self.real("/sys"), self.real("/dev")];
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
