//! How rules read a machine, and how they describe their findings.

use std::str::FromStr;

use weir_model::capability::{Feature, Unavailable};
use weir_model::diagnosis::{Evidence, Finding, Severity, Spoils};

use crate::root::{Reading, Root};
use crate::topology::HostView;
use crate::topology::node::{NODES, Node};

/// The machine that is examined.
pub struct Look<'a> {
    pub(super) root: &'a Root,
    pub(super) view: &'a HostView,
}

/// The result of a rule: its findings, none if all is well, or why it could not read the machine.
pub type Verdict = Result<Vec<Found>, Unavailable>;

impl Look<'_> {
    /// A file's text; `None` if there is no such file, as on a kernel without the feature.
    pub(super) fn text(&self, path: &str) -> Result<Option<String>, Unavailable> {
        present(self.root.text(path))
    }

    /// A file's value; `None` if there is no such file.
    pub(super) fn value<T: FromStr>(&self, path: &str) -> Result<Option<T>, Unavailable> {
        present(self.root.value(path))
    }

    /// The word in brackets of a file such as `always [madvise] never`.
    pub(super) fn choice(&self, path: &str) -> Result<Option<String>, Unavailable> {
        Ok(self.text(path)?.and_then(|text| {
            let (_, rest) = text.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        }))
    }

    /// What `topo` says of a capability that the machine lacks, as a finding seen in a file; all is well if the machine
    /// has it. The advice is for a capability that nothing provides.
    pub(super) fn lack(
        &self,
        feature: Feature,
        spoils: Spoils,
        path: &str,
        advice: &str,
    ) -> Verdict {
        let mut listed = self.view.capabilities().into_iter();
        let lacking = listed.find(|c| c.feature == feature && !c.present);
        let Some(lacking) = lacking else {
            return fine();
        };
        let help = match lacking.remedy.is_empty() {
            true => advice.to_owned(),
            false => lacking.remedy,
        };
        Found::new(Severity::Minor, spoils, feature_lacks(feature))
            .shown_by(path, lacking.detail)
            .so(&lacking.cost)
            .or(help)
            .alone()
    }

    /// Nodes that have memory but no processors: slower tiers.
    pub(super) fn far_nodes(&self) -> Vec<&Node> {
        let nodes = self.view.known_nodes().iter();
        nodes.filter(|n| n.has_memory() && !n.has_cpus()).collect()
    }

    /// Whether there is any slower tier, so that the rules of tiering apply.
    pub(super) fn is_tiered(&self) -> bool {
        !self.far_nodes().is_empty()
    }

    /// The memory blocks of a node, with the content of one of their files, by number.
    pub(super) fn blocks(&self, node: u32, file: &str) -> Vec<(u32, String)> {
        let blocks = self.root.numbered(&format!("{NODES}/node{node}"), "memory");
        let blocks = blocks.known().cloned().unwrap_or_default().into_iter();
        blocks
            .filter_map(|(n, name)| {
                let path = format!("/sys/devices/system/memory/{name}/{file}");
                Some((n, self.root.text(&path).known()?.clone()))
            })
            .collect()
    }

    /// The kernel's version, major and minor.
    pub(super) fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.view.kernel.known()?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Whether the process has a capability (its bit in `linux/capability.h`); `None` if unknown.
    pub(super) fn has_privilege(&self, bit: u32) -> Option<bool> {
        let status = self.root.text("/proc/self/status");
        let line = status
            .known()?
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))?
            .trim()
            .to_owned();
        let set = u64::from_str_radix(&line, 16).ok()?;
        Some(set & (1 << bit) != 0)
    }
}

/// A missing feature, in words.
fn feature_lacks(feature: Feature) -> String {
    let words = match feature {
        Feature::CorePmu => "events of the cores cannot be counted",
        Feature::UncorePmu => "events of the uncore cannot be counted",
        Feature::PrefetchControl => "prefetchers cannot be switched",
        Feature::Resctrl => "cache and bandwidth cannot be allocated",
        other => return format!("{other} is missing"),
    };
    words.to_owned()
}

fn present<T>(reading: Reading<T>) -> Result<Option<T>, Unavailable> {
    match reading {
        Reading::Known(value) => Ok(Some(value)),
        Reading::Absent(_) => Ok(None),
        Reading::Unreadable(why) => Err(why),
    }
}

/// A finding under construction.
pub struct Found(Finding);

/// All is well.
pub fn fine() -> Verdict {
    Ok(Vec::new())
}

/// A finding that spoils measurements.
pub fn measurement(severity: Severity, found: impl Into<String>) -> Found {
    Found::new(severity, Spoils::Measurement, found.into())
}

/// A finding that spoils tiering.
pub fn tiering(severity: Severity, found: impl Into<String>) -> Found {
    Found::new(severity, Spoils::Tiering, found.into())
}

impl Found {
    fn new(severity: Severity, spoils: Spoils, found: String) -> Self {
        Self(Finding {
            rule: String::new(),
            severity,
            spoils,
            found,
            evidence: Vec::new(),
            effect: String::new(),
            commands: Vec::new(),
            advice: String::new(),
        })
    }

    /// The file that shows it, and its content.
    pub fn shown_by(mut self, path: impl Into<String>, says: impl ToString) -> Self {
        self.0.evidence.push(Evidence {
            path: path.into(),
            says: says.to_string(),
        });
        self
    }

    /// Its effect.
    pub fn so(mut self, effect: &str) -> Self {
        self.0.effect = effect.to_owned();
        self
    }

    /// A command that fixes it.
    pub fn run(mut self, command: impl Into<String>) -> Self {
        self.0.commands.push(command.into());
        self
    }

    /// Other advice.
    pub fn or(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = advice.into();
        self
    }

    /// The only finding of its rule.
    pub fn alone(self) -> Verdict {
        Ok(vec![self])
    }

    pub(super) fn done(self) -> Finding {
        self.0
    }
}
