//! The processes of a tenant: a control group, a systemd unit, a container, or a process.

use weir_model::capability::Unavailable;
pub use weir_model::scope::Scope;

use super::group::{MOUNT, is_group};
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
            let name = |name: &str| name == unit;
            let what = format!("unit {unit} with a control group");
            one(root, name, &what, "is it running? see `systemctl status`")
        }
        Scope::Container(number) => {
            let name = |name: &str| is_container(name, number);
            let what = format!("container {number} with a control group");
            one(
                root,
                name,
                &what,
                "is it running? see `docker ps`, `crictl ps` or `podman ps`",
            )
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

/// The only group of a name; of nested groups, the outer one.
fn one(
    root: &Root,
    is_it: impl Fn(&str) -> bool,
    what: &str,
    hint: &str,
) -> Result<String, Unavailable> {
    let mut found: Vec<String> = Vec::new();
    let (mut seen, mut open) = (0, vec![(MOUNT.to_owned(), 0)]);
    while let Some((path, depth)) = open.pop() {
        for name in groups_in(root, &path) {
            let below = format!("{path}/{name}");
            seen += 1;
            if is_it(&name) {
                found.push(below);
            } else if depth < DEEPEST && seen < MOST {
                open.push((below, depth + 1));
            }
        }
    }
    found.sort();
    match &found[..] {
        [path] => Ok(path.clone()),
        [] => Err(Unavailable::because(format!("there is no {what}; {hint}"))),
        [..] => Err(Unavailable::because(format!(
            "there is more than one {what}: {}; name one as cgroup:/PATH",
            found.join(", ")
        ))),
    }
}

/// The names of the groups directly below one.
pub(crate) fn groups_in(root: &Root, path: &str) -> Vec<String> {
    let names = root.list(path);
    let names = names.known().map_or(&[][..], Vec::as_slice);
    let is_below = |name: &&String| is_group(root, &format!("{path}/{name}"));
    names.iter().filter(is_below).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
