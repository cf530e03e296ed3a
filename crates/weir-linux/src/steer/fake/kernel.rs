//! The kernel's rules for writes to its files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::paper::{Life, Step, ended};
use crate::control::{Control, DAMON};
use crate::register::Register;
use crate::steer::group::MOUNT;
use crate::topology::list;

pub(super) const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
pub(super) const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// The kernel's rules.
#[derive(Debug)]
pub(super) struct Kernel {
    pub folder: PathBuf,
    pub resctrl: Arc<dyn Control>,
    pub life: Life,
}

pub(super) fn invalid<T>() -> io::Result<T> {
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

impl Kernel {
    pub fn real(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.real(path)).unwrap_or_default()
    }

    pub fn keep(&self, path: &str, text: &str) -> io::Result<()> {
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

    /// Gives a group the files of the controllers that the group above passes on, and removes the others.
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

    /// The processors of a group's list that the groups above allow.
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

    pub fn lists(&self) -> Vec<String> {
        let (mut all, mut open) = (Vec::new(), vec![MOUNT.to_owned()]);
        while let Some(group) = open.pop() {
            open.extend(self.groups(&group));
            all.push(format!("{group}/cgroup.threads"));
        }
        all
    }

    pub fn leave(&self, id: u32) {
        for path in self.lists().into_iter().chain(self.lists_of_resctrl()) {
            self.without(&path, id);
        }
    }

    /// The lists of all groups of resctrl; those of monitoring groups come last, since a thread is in one
    /// only if it is in the group above.
    pub fn lists_of_resctrl(&self) -> Vec<String> {
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
            return self.resctrl.write(path, text, None);
        }
        if let Some(register) = Register::of_path(path) {
            let device = self.real(&register.device());
            return register.write(&fs::File::options().write(true).open(device)?, text);
        }
        if !self.real(path).exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        if path.starts_with(DAMON) {
            return self.obey_damon(path, text.trim());
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
                let mut groups = self.groups(group);
                groups.push(group.to_owned());
                let mut lists = groups.iter().map(|g| format!("{g}/cgroup.threads"));
                if cpus.is_empty() && lists.any(|list| !self.text(&list).is_empty()) {
                    // Also if it was empty: an empty value is never written.
                    return Err(io::Error::from_raw_os_error(libc::ENOSPC));
                }
                self.keep(path, &list::format(&cpus))?;
                self.settle(group);
                let (above, _) = group.rsplit_once('/').unwrap();
                for beside in self.groups(above).iter().filter(|beside| *beside != group) {
                    let theirs = list::parse(&self.text(&format!("{beside}/cpuset.cpus")));
                    let kind = format!("{beside}/cpuset.cpus.partition");
                    if self.text(&kind) == "root\n"
                        && theirs.unwrap().iter().any(|cpu| cpus.contains(cpu))
                    {
                        self.keep(&kind, "root invalid")?;
                    }
                }
                Ok(())
            }
            // Whole hundreds of MHz, except a value that was set by hand at the start.
            "scaling_max_freq" => match text.parse::<u64>() {
                Ok(3_450_000) => self.keep(path, text),
                Ok(khz) => self.keep(path, &(khz / 100_000 * 100_000).max(800_000).to_string()),
                Err(_) => invalid(),
            },
            "auto" if path.starts_with(WEIGHTS) => match text {
                "true" | "false" => self.keep(path, text),
                _ => invalid(),
            },
            _ if path.starts_with(WEIGHTS) => match text.parse::<u8>() {
                Ok(weight) if weight > 0 => self.keep(path, text),
                _ => invalid(),
            },
            "demotion_enabled" => match text {
                "true" | "false" => self.keep(path, text),
                _ => invalid(),
            },
            _ if path.starts_with(BALANCING) => match text.parse::<u32>() {
                Ok(_) => self.keep(path, text),
                Err(_) => invalid(),
            },
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// A write is made completely or not at all.
    fn step(&self, does: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let done = match self.life.step() {
            Step::Whole => does(),
            // The kernel accepts the write, but the program has already ended.
            Step::Half => does().and_then(|()| Err(ended())),
            Step::Never => Err(ended()),
        };
        self.life.passed();
        done
    }
}

impl Control for Kernel {
    fn write(&self, path: &str, text: &str, folder: Option<u64>) -> io::Result<()> {
        self.step(|| {
            let (own, _) = path.rsplit_once('/').unwrap();
            let number = || fs::metadata(self.real(own)).map(|own| own.ino());
            match folder {
                Some(folder) if number()? != folder => {
                    Err(io::Error::from_raw_os_error(libc::ESTALE))
                }
                _ => self.obey(path, text),
            }
        })
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
