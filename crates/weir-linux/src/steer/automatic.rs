//! Automatic tenants: control groups, chosen by the nodes of their pages.
//!
//! A candidate is the highest control group that has processes of its own. A candidate with a large part of
//! its pages on the slow tier may be limited, any other is protected. Pages are not traffic: a group with
//! demoted cold pages looks like one that works on the slow tier. Therefore the part is configured and the
//! system's own groups are excluded.

use weir_model::units::Bytes;

use super::group::{MOUNT, file, groups_in};
use super::scope::Scope;
use super::sensors::residency;
use crate::root::Root;

/// Groups of the system, which are never tenants unless they are named.
const SYSTEM: [&str; 2] = ["/init.scope", "/system.slice"];
/// Groups that Weir made.
const OURS: &str = "weir-steer-";
/// The largest depth of groups, and the largest number of groups, that are searched.
const DEEPEST: usize = 16;
const MOST: usize = 1 << 14;

/// The rules that make a control group a tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// The nodes of the slow tier.
    pub slow_nodes: Vec<u32>,
    /// The least part of a group's pages on the slow tier for which it may be limited.
    pub slow_share: f64,
    /// Groups with less memory are never tenants.
    pub least: Bytes,
    /// Excluded groups, with all below them: paths below the mount.
    pub exclude: Vec<String>,
    /// The most candidates; the smallest are dropped first.
    pub most: usize,
}

/// A control group that could be a tenant, and its role.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its path below the mount.
    pub group: String,
    /// Whether it may be limited; protected otherwise.
    pub restrain: bool,
    /// Its pages on the slow tier.
    pub slow: Bytes,
    /// All of its pages.
    pub all: Bytes,
}

impl Candidate {
    /// Its scope.
    pub fn scope(&self) -> Scope {
        Scope::Cgroup(self.group.clone())
    }

    /// Its role and the reason, in words.
    pub fn why(&self) -> String {
        let percent = 100.0 * self.slow.get() as f64 / self.all.get().max(1) as f64;
        let role = match self.restrain {
            true => "may be held",
            false => "is protected",
        };
        format!(
            "cgroup:{} {role}: {percent:.0} % of its {} lie on the slow tier",
            self.group, self.all
        )
    }
}

/// The candidates, the largest first.
pub fn candidates(root: &Root, rules: &Rules) -> Vec<Candidate> {
    let own = own_group(root);
    let is_left_alone = |path: &str| {
        let below = |of: &str| path == of || path.starts_with(&format!("{of}/"));
        SYSTEM.into_iter().any(below)
            || own.as_deref().is_some_and(|own| own == path)
            || rules.exclude.iter().any(|of| below(of))
            || path
                .rsplit('/')
                .next()
                .is_some_and(|name| name.starts_with(OURS))
    };
    let mut found = Vec::new();
    let (mut seen, mut open) = (0, vec![(String::new(), 0)]);
    while let Some((path, depth)) = open.pop() {
        for name in groups_in(root, &format!("{MOUNT}{path}")) {
            let below = format!("{path}/{name}");
            seen += 1;
            if is_left_alone(&below) || seen > MOST {
                continue;
            }
            if has_processes(root, &below) {
                found.extend(candidate(root, rules, below));
            } else if depth < DEEPEST {
                open.push((below, depth + 1));
            }
        }
    }
    found.sort_by(|a, b| b.all.get().cmp(&a.all.get()).then(a.group.cmp(&b.group)));
    found.truncate(rules.most);
    found
}

fn candidate(root: &Root, rules: &Rules, group: String) -> Option<Candidate> {
    let pages = residency::of_group(root, &format!("{MOUNT}{group}")).ok()?;
    let (slow, all) = (pages.on(&rules.slow_nodes), pages.total());
    (all >= rules.least && all > Bytes(0)).then(|| Candidate {
        restrain: slow.get() as f64 >= rules.slow_share * all.get() as f64,
        group,
        slow,
        all,
    })
}

/// Whether a group has processes of its own, and not only in groups below it.
fn has_processes(root: &Root, group: &str) -> bool {
    let text = root.text(&file(&format!("{MOUNT}{group}"), "cgroup.procs"));
    // The list of a threaded group cannot be read; its processes belong to the group above.
    text.known().is_some_and(|text| !text.trim().is_empty())
}

/// The group of this process, below the mount.
fn own_group(root: &Root) -> Option<String> {
    let path = super::scope::group_of(root, &Scope::Pid(std::process::id())).ok()?;
    path.strip_prefix(MOUNT).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fake::{Life, Machine};
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A group with a process and with memory in MiB on nodes 0 and 1.
    fn group(machine: &Machine, path: &str, process: u32, on: [u64; 2]) {
        let mut above = String::new();
        for name in path.trim_start_matches('/').split('/') {
            above = format!("{above}/{name}");
            if !machine.real(&format!("{MOUNT}{above}")).exists() {
                machine.make(&above);
            }
        }
        let [fast, slow] = on.map(|mib| mib * MIB);
        machine.put(
            &format!("{MOUNT}{path}/cgroup.procs"),
            &format!("{process}\n"),
        );
        machine.put(
            &format!("{MOUNT}{path}/memory.numa_stat"),
            &format!("anon N0={fast} N1={slow}\n"),
        );
    }

    fn rules() -> Rules {
        Rules {
            slow_nodes: vec![1],
            slow_share: 0.25,
            least: Bytes::mib(1),
            exclude: Vec::new(),
            most: 100,
        }
    }

    fn names(machine: &Machine, rules: &Rules) -> Vec<String> {
        let found = candidates(&machine.root(&Life::default()), rules);
        let name = |c: &Candidate| format!("{}{}", if c.restrain { "-" } else { "+" }, c.group);
        found.iter().map(name).collect()
    }

    #[test]
    fn groups_are_distinguished_by_their_pages_and_the_system_is_left_alone() {
        let machine = Machine::new();
        group(&machine, "/fast", 1001, [900, 0]);
        group(&machine, "/k8s/pod/slow", 1002, [10, 800]);
        group(&machine, "/k8s/pod/demoted", 1003, [700, 70]);
        group(&machine, "/small", 1004, [0, 0]);
        group(&machine, "/system.slice/sshd.service", 1005, [500, 500]);
        group(&machine, "/init.scope", 1006, [50, 50]);
        group(&machine, "/fast/below", 1007, [50, 50]);
        group(&machine, "/weir-steer-1-0", 1008, [50, 50]);
        let own = std::process::id();
        group(&machine, "/daemon", own, [50, 50]);
        machine.put(&format!("/proc/{own}/cgroup"), "0::/daemon\n");
        let all = ["+/fast", "-/k8s/pod/slow", "+/k8s/pod/demoted"];
        assert_eq!(names(&machine, &rules()), all);
        let excluded = Rules {
            exclude: vec!["/k8s".into()],
            ..rules()
        };
        assert_eq!(names(&machine, &excluded), ["+/fast"]);
        let two = Rules { most: 2, ..rules() };
        assert_eq!(names(&machine, &two), all[..2], "the largest are kept");
        let many = Rules {
            slow_share: 0.05,
            ..rules()
        };
        assert_eq!(names(&machine, &many)[2], "-/k8s/pod/demoted");
        machine.vanish("/fast/below");
        machine.vanish("/fast");
        assert_eq!(names(&machine, &rules()), all[1..]);
        let root = machine.root(&Life::default());
        let why = candidates(&root, &rules())[0].why();
        assert_eq!(
            why,
            "cgroup:/k8s/pod/slow may be held: 99 % of its 810 MiB lie on the slow tier"
        );
    }

    proptest! {
        // Each makes a tree of files.
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn who_may_be_held_has_the_part_that_was_asked_for(
            groups in prop::collection::vec((0u64..900, 0u64..900), 0..6), share in 0.01..1.0_f64,
        ) {
            let machine = Machine::new();
            for (i, &(fast, slow)) in groups.iter().enumerate() {
                group(&machine, &format!("/g{i}"), 2000 + i as u32, [fast, slow]);
            }
            let rules = Rules { slow_share: share, ..rules() };
            let found = candidates(&machine.root(&Life::default()), &rules);
            prop_assert_eq!(found.len(), groups.iter().filter(|(f, s)| f + s > 0).count());
            for one in &found {
                let part = one.slow.get() as f64 / one.all.get() as f64;
                prop_assert_eq!(one.restrain, part >= share - 1e-12, "{:?}", one);
            }
            prop_assert!(found.is_sorted_by(|a, b| a.all.get() >= b.all.get()));
        }
    }
}
