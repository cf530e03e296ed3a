//! The processes of a tenant: a control group, a systemd unit, a container, or a process.

use weir_model::capability::Unavailable;
pub use weir_model::scope::Scope;

use super::group::{MOUNT, groups_in, is_group};
use crate::root::Root;

/// The largest depth of groups, and the largest number of groups, that are searched.
const DEEPEST: usize = 16;
const MOST: usize = 1 << 16;

/// The shortest part of a container's number that identifies it, as its tools print it.
const LEAST_DIGITS: usize = 12;

/// The path of the group of a scope, below the mount of version 2; for a process, its group.
///
/// # Errors
/// There is none, or more than one.
pub(crate) fn group_of(root: &Root, scope: &Scope) -> Result<String, Unavailable> {
    match scope {
        Scope::Cgroup(path) => {
            let path = format!("{MOUNT}{path}");
            if is_group(root, &path) {
                return Ok(path);
            }
            Err(Unavailable::because(format!(
                "there is no control group {path}; `systemd-cgls` lists them"
            )))
        }
        Scope::Unit(unit) => {
            // The system's manager puts groups of units into slices only. Groups in a unit are delegated, as to a
            // user's manager, and may have any name.
            let is_it = |name: &str| name == unit;
            let found = named(root, is_it, |above| above.ends_with(".slice"));
            let mut hint = "is it running? see `systemctl status`".to_owned();
            if found.is_empty() {
                let others = named(root, is_it, |_| true);
                if !others.is_empty() {
                    hint = format!(
                        "not the system's: {}; name it as cgroup:/PATH",
                        others.join(", ")
                    );
                }
            }
            one(found, &format!("unit {unit} with a control group"), &hint)
        }
        Scope::Container(number) => {
            let found = named(root, |name| is_container(name, number), |_| true);
            let what = format!("container {number} with a control group");
            let hint = "is it running? see `docker ps`, `crictl ps` or `podman ps`";
            one(found, &what, hint)
        }
        Scope::Pid(number) => {
            let text = root.text(&format!("/proc/{number}/cgroup"));
            let text = text
                .known()
                .ok_or_else(|| Unavailable::because(format!("there is no process {number}")))?;
            // Version 2 is hierarchy 0 without controllers in its line (cgroups(7)).
            let path = text.lines().find_map(|line| line.strip_prefix("0::"));
            let path = path.ok_or_else(|| {
                Unavailable::because(format!(
                    "process {number} is in no control group of version 2"
                ))
            })?;
            Ok(format!("{MOUNT}{}", path.trim_end_matches('/')))
        }
    }
}

/// Whether a group's name is that of a container: its number as a whole word, as Docker, containerd, CRI-O
/// and Podman write it (`docker-0123….scope`), and not that of its monitor.
fn is_container(name: &str, number: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    !name.contains("conmon")
        && words.any(|word| {
            word.len() >= LEAST_DIGITS
                && word.bytes().all(|b| b.is_ascii_hexdigit())
                && word.starts_with(number)
        })
}

/// The groups of a name below groups that are searched, by their names; of nested groups, the outer one.
fn named(
    root: &Root,
    is_it: impl Fn(&str) -> bool,
    is_searched: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut seen, mut open) = (0, vec![(MOUNT.to_owned(), 0)]);
    while let Some((path, depth)) = open.pop() {
        for name in groups_in(root, &path) {
            let below = format!("{path}/{name}");
            seen += 1;
            if is_it(&name) {
                found.push(below);
            } else if depth < DEEPEST && seen < MOST && is_searched(&name) {
                open.push((below, depth + 1));
            }
        }
    }
    found.sort();
    found
}

/// The only group that was found.
fn one(found: Vec<String>, what: &str, hint: &str) -> Result<String, Unavailable> {
    match &found[..] {
        [path] => Ok(path.clone()),
        [] => Err(Unavailable::because(format!("there is no {what}; {hint}"))),
        [..] => Err(Unavailable::because(format!(
            "there is more than one {what}: {}; name one as cgroup:/PATH",
            found.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steer::fake::{Life, Machine};

    #[test]
    fn a_unit_is_the_systems_and_not_that_of_a_user() {
        let machine = Machine::new();
        let unit = || {
            group_of(
                &machine.root(&Life::default()),
                &Scope::Unit("db.service".into()),
            )
        };
        let users = "/user.slice/user-1000.slice/user@1000.service/app.slice/db.service";
        for (at, _) in users.match_indices('/').skip(1) {
            machine.make(&users[..at]);
        }
        machine.make(users);
        let why = unit().unwrap_err().reason;
        assert!(
            why.contains("not the system's") && why.contains(users),
            "{why}"
        );
        machine.make("/system.slice");
        machine.make("/system.slice/db.service");
        assert_eq!(unit().unwrap(), "/sys/fs/cgroup/system.slice/db.service");
    }

    #[test]
    fn containers_are_known_by_the_names_that_their_tools_give() {
        let number = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for name in [
            "docker-NUMBER.scope",
            "NUMBER",
            "cri-containerd-NUMBER.scope",
            "libpod-NUMBER.scope",
        ] {
            let name = name.replace("NUMBER", number);
            assert!(
                is_container(&name, &number[..12]) && is_container(&name, number),
                "{name}"
            );
        }
        assert!(!is_container(
            &format!("crio-conmon-{number}.scope"),
            number
        ));
        assert!(!is_container("docker-1123456789ab.scope", "0123456789ab"));
    }
}
