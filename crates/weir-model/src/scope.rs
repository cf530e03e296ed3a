//! Existing processes of a host as a tenant: a control group, a unit, a container or a process.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The processes of a tenant.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub enum Scope {
    /// A control group (v2), from the root of its hierarchy: `cgroup:/batch.slice`.
    Cgroup(String),
    /// A unit of systemd: `unit:postgresql.service`.
    Unit(String),
    /// A container, by its id: `container:3f2a91c4d07b`.
    Container(String),
    /// A process: `pid:4711`.
    Pid(u32),
}

/// Why a text is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoScope(String);

/// The accepted forms, for every error.
const FORMS: &str = "write cgroup:/PATH, unit:NAME.service, container:ID or pid:NUMBER";

/// The least number of digits of a shortened container id.
const LEAST_ID: usize = 12;

impl FromStr for Scope {
    type Err = NoScope;

    fn from_str(text: &str) -> Result<Self, NoScope> {
        let Some((kind, rest)) = text.trim().split_once(':') else {
            return Err(NoScope(FORMS.into()));
        };
        let wrong = |why: &str| Err(NoScope(format!("{why}; {FORMS}")));
        if rest.contains(char::is_control) || rest.is_empty() {
            return wrong("the name after the colon is missing");
        }
        match kind {
            "cgroup" => cgroup(rest).map_or_else(wrong, Ok),
            "unit" if rest.contains('/') => wrong("a unit's name has no slash"),
            "unit" if !rest.contains('.') => {
                wrong("a unit's name ends in its kind, as in a.service")
            }
            "unit" => Ok(Self::Unit(rest.into())),
            "container" => {
                let id = rest.bytes().all(|b| b.is_ascii_hexdigit()) && rest.len() >= LEAST_ID;
                match id {
                    true => Ok(Self::Container(rest.to_ascii_lowercase())),
                    false => wrong("a container's id is at least 12 hexadecimal digits"),
                }
            }
            "pid" => match rest.parse() {
                Ok(pid) if pid > 1 => Ok(Self::Pid(pid)),
                Ok(_) => wrong("pid 0 and 1 are the kernel's and the system's"),
                Err(_) => wrong("this is not a process number"),
            },
            _ => Err(NoScope(FORMS.into())),
        }
    }
}

fn cgroup(path: &str) -> Result<Scope, &'static str> {
    let path = path.strip_prefix("/sys/fs/cgroup").unwrap_or(path);
    if !path.starts_with('/') {
        return Err("a control group's path starts at the root of its hierarchy");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Err("the root of the hierarchy contains every process");
    }
    if parts.iter().any(|&part| part == "." || part == "..") {
        return Err("a control group's path has no . or ..");
    }
    Ok(Scope::Cgroup(format!("/{}", parts.join("/"))))
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Spaces around a scope are no part of it.
            Scope::Cgroup(path) if path.ends_with(char::is_whitespace) => {
                write!(f, "cgroup:{path}/")
            }
            Scope::Cgroup(path) => write!(f, "cgroup:{path}"),
            Scope::Unit(name) => write!(f, "unit:{name}"),
            Scope::Container(id) => write!(f, "container:{id}"),
            Scope::Pid(pid) => write!(f, "pid:{pid}"),
        }
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

impl TryFrom<String> for Scope {
    type Error = NoScope;

    fn try_from(text: String) -> Result<Self, NoScope> {
        text.parse()
    }
}

impl Scope {
    /// Whether two scopes have processes in common, as far as their names show: they are equal, one control
    /// group contains the other, or one id begins with the other. Relations that only the host knows are not
    /// seen.
    pub fn overlaps(&self, other: &Self) -> bool {
        let within = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match (self, other) {
            (Scope::Cgroup(a), Scope::Cgroup(b)) => within(a, b) || within(b, a),
            (Scope::Container(a), Scope::Container(b)) => a.starts_with(b) || b.starts_with(a),
            (Scope::Unit(name), Scope::Cgroup(path)) | (Scope::Cgroup(path), Scope::Unit(name)) => {
                path.split('/').any(|part| part == name)
            }
            (a, b) => a == b,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_scope_says_what_would_be() {
        for text in [
            "",
            "postgres",
            "cgroup:",
            "cgroup:batch",
            "cgroup:/",
            "cgroup:/a/../b",
            "cgroup:/a/./b",
            "unit:a/b.service",
            "unit:a",
            "container:12",
            "container:0123456789zz",
            "pid:0",
            "host:1",
            "container:zzzzzzzzzzzzzz",
            "pid:1",
            "pid:x",
            "pid:-4",
            "vm:a",
        ] {
            let error = text.parse::<Scope>().unwrap_err();
            assert!(
                error.to_string().contains("cgroup:/PATH"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_group_overlaps_what_lies_in_it_and_not_its_namesake() {
        let scope = |text: &str| text.parse::<Scope>().unwrap();
        let batch = scope("cgroup:/batch.slice");
        assert!(batch.overlaps(&scope("cgroup:/batch.slice/a.scope")));
        assert!(batch.overlaps(&scope("cgroup:/sys/fs/cgroup/batch.slice/")));
        assert!(!batch.overlaps(&scope("cgroup:/batch.slice2")));
        assert!(scope("unit:a.service").overlaps(&scope("cgroup:/system.slice/a.service")));
        assert!(!scope("unit:a.service").overlaps(&scope("unit:b.service")));
        assert!(!scope("pid:7").overlaps(&scope("pid:8")));
    }

    #[test]
    fn a_group_whose_name_ends_in_a_space_is_read_back() {
        let scope: Scope = "cgroup:/a /".parse().unwrap();
        assert_eq!(scope, Scope::Cgroup("/a ".into()));
        assert_eq!(scope.to_string().parse(), Ok(scope));
    }

    proptest! {
        #[test]
        fn a_scope_is_read_back_as_it_is_written(text in "\\PC{0,30}", kind in 0usize..4) {
            let kind = ["cgroup:/", "unit:", "container:", "pid:"][kind];
            if let Ok(scope) = format!("{kind}{text}").parse::<Scope>() {
                prop_assert_eq!(scope.to_string().parse::<Scope>(), Ok(scope.clone()));
                prop_assert!(scope.overlaps(&scope));
            }
        }
    }
}
