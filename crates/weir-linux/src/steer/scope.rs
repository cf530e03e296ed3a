//! The processes of a tenant: a control group, a systemd unit, a container, or a process.

use std::fmt;
use std::str::FromStr;

use weir_model::capability::Unavailable;

use super::group::{MOUNT, is_group};
use crate::root::Root;

/// The largest depth of groups, and the largest number of groups, that are searched.
const DEEPEST: usize = 16;
const MOST: usize = 1 << 16;

/// The shortest part of a container's number that identifies it, as its tools print it.
const LEAST_DIGITS: usize = 12;

/// The processes of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A control group, by its path below the mount: `/system.slice/db.service`.
    Group(String),
    /// A unit of systemd, by its name: `db.service`.
    Unit(String),
    /// A container, by its number or the first twelve digits of it.
    Container(String),
    /// A process, by its number.
    Process(u32),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Group(path) => write!(f, "cgroup:{path}"),
            Scope::Unit(name) => write!(f, "unit:{name}"),
            Scope::Container(number) => write!(f, "container:{number}"),
            Scope::Process(number) => write!(f, "pid:{number}"),
        }
    }
}

impl FromStr for Scope {
    type Err = Unavailable;

    fn from_str(text: &str) -> Result<Self, Unavailable> {
        let wrong = |why: &str| {
            Err(Unavailable::because(format!(
                "`{text}` {why}; a scope is cgroup:/PATH, unit:NAME, container:NUMBER or pid:NUMBER"
            )))
        };
        let Some((kind, what)) = text.split_once(':') else {
            return wrong("has no name after the kind");
        };
        match kind {
            "cgroup" => {
                let path = what.strip_prefix(MOUNT).unwrap_or(what);
                let path = path.trim_end_matches('/');
                if !path.starts_with('/') || path.split('/').skip(1).any(is_no_name) {
                    return wrong("is not the path of a group below the root");
                }
                Ok(Scope::Group(path.to_owned()))
            }
            "unit" if is_no_name(what) || what.contains('/') => wrong("is not the name of a unit"),
            "unit" => Ok(Scope::Unit(what.to_owned())),
            "container" => {
                if what.len() < LEAST_DIGITS || !what.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return wrong(
                        "is not a container's number, which has twelve hexadecimal digits or more",
                    );
                }
                Ok(Scope::Container(what.to_ascii_lowercase()))
            }
            "pid" => match what.parse() {
                Ok(number) if number > 0 => Ok(Scope::Process(number)),
                _ => wrong("is not the number of a process"),
            },
            _ => wrong("does not begin with a kind of scope"),
        }
    }
}

fn is_no_name(part: &str) -> bool {
    matches!(part, "" | "." | "..") || part.contains('\n')
}

/// The path of the group of a scope, below the mount of version 2; for a process, its group.
///
/// # Errors
/// There is none, or more than one.
pub(crate) fn group_of(root: &Root, scope: &Scope) -> Result<String, Unavailable> {
    match scope {
        Scope::Group(path) => {
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
        Scope::Process(number) => {
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for text in [
            "cgroup:/a.slice/b.service",
            "unit:db@1.service",
            "container:0123456789ab",
            "pid:42",
        ] {
            let scope: Scope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
        }
        let long: Scope = "cgroup:/sys/fs/cgroup/a/".parse().unwrap();
        assert_eq!(long, Scope::Group("/a".into()));
        for wrong in [
            "",
            "db.service",
            "cgroup:",
            "cgroup:/",
            "cgroup:a",
            "cgroup:/a/../b",
            "unit:",
            "unit:a/b",
            "container:abc",
            "container:0123456789zz",
            "pid:0",
            "pid:-1",
            "pid:x",
            "host:1",
        ] {
            let error = wrong.parse::<Scope>().unwrap_err();
            assert!(error.reason.contains("cgroup:/PATH"), "{wrong}: {error}");
        }
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

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_refuse(text in "(cgroup:|unit:|container:|pid:)?.{0,30}") {
            if let Ok(scope) = text.parse::<Scope>() {
                prop_assert_eq!(scope.to_string().parse::<Scope>(), Ok(scope));
            }
        }
    }
}
