//! Where each class of objects shall be: a file of TOML.
//!
//! ```toml
//! [tiers]                   # names for nodes, if you like
//! cxl0 = 1
//!
//! [class.index]
//! place = "0"               # its pages are on node 0, or there is no memory
//! limit = "2 GiB"           # of what is mapped, in steps of 4 MiB
//!
//! [class.buffer]
//! place = "0=3,cxl0=1"      # three quarters and one quarter
//!
//! [class.cold]
//! place = "cxl0"
//! fallback = "any"          # elsewhere, where the node is absent or full; "none" if it is not there
//! ```

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use crate::node::{self, NODES, Place};

/// What a policy says of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub name: String,
    pub place: Place,
    pub limit: Option<usize>,
}

/// A policy, and what is not as it says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    pub rules: Vec<Rule>,
    pub notices: Vec<String>,
}

/// What is wrong with a policy, with its file, line and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError(String);

impl PolicyError {
    pub(crate) fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}

/// Where a policy places a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The class.
    pub class: String,
    /// Its nodes, each with its share (1 where shares are not given); empty where the kernel decides.
    pub nodes: Vec<(u32, u32)>,
}

/// Where the text of a policy places its classes, in its order, on a machine that has memory on `nodes`. Nothing is mapped, so
/// that a policy is checked for another machine than this one. `file` is its name in errors.
///
/// # Errors
/// It says something unknown, or names a node that is absent without `fallback = "any"`.
pub fn placements(file: &str, text: &str, nodes: &[u32]) -> Result<Vec<Placement>, PolicyError> {
    let rules = Policy::read(file, text, nodes)?.rules.into_iter();
    let placed = |rule: Rule| Placement {
        class: rule.name,
        nodes: rule.place.nodes,
    };
    Ok(rules.map(placed).collect())
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

/// The longest name of a class: the kernel takes names of 79 bytes, `weir` shows 40 of a recording.
const LONGEST: usize = 32;
/// Larger files are no policies, in bytes.
const MOST: u64 = 1 << 20;

impl Policy {
    pub fn open(path: &Path) -> Result<Self, PolicyError> {
        let cannot = |why: &dyn fmt::Display| PolicyError(format!("{}: {why}", path.display()));
        // A device has no length, and may have no end.
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(MOST + 1).read_to_string(&mut text))
            .map_err(|why| cannot(&why))?;
        if text.len() as u64 > MOST {
            return Err(cannot(&"it is larger than 1 MiB, and so no policy"));
        }
        Self::read(&path.display().to_string(), &text, &node::present())
    }

    /// `nodes` are those of the machine.
    pub fn read(file: &str, text: &str, nodes: &[u32]) -> Result<Self, PolicyError> {
        let line = |at: usize| {
            text.get(..at)
                .map_or(1, |before| before.matches('\n').count() + 1)
        };
        let wrong = |at: Option<Range<usize>>, what: String| {
            let line = at.map_or(1, |at| line(at.start));
            PolicyError(format!("{file}, line {line}: {what}"))
        };
        let document = Document::parse(text)
            .map_err(|error| wrong(error.span(), error.message().trim_end().to_owned()))?;
        let mut reader = Reader {
            nodes,
            tiers: Vec::new(),
            policy: Self::default(),
        };
        let mut read = || {
            let root = document.as_table();
            for (key, item) in root.iter() {
                match key {
                    "tiers" => reader.tiers(table(item, key)?)?,
                    "class" => {}
                    _ => {
                        return Err(at(
                            item,
                            format!("there is no key `{key}` here; there are tiers, class"),
                        ));
                    }
                }
            }
            if let Some(item) = root.get("class") {
                for (name, item) in table(item, "class")?.iter() {
                    let named = table(item, &format!("class.{name}"))?;
                    reader.class(name, named, item)?;
                }
            }
            Ok(())
        };
        read().map_err(|(at, what)| wrong(at, what))?;
        Ok(reader.policy)
    }
}

type Mistake = (Option<Range<usize>>, String);

fn at(item: &Item, what: String) -> Mistake {
    (item.span(), what)
}

fn table<'a>(item: &'a Item, key: &str) -> Result<&'a dyn TableLike, Mistake> {
    item.as_table_like()
        .ok_or_else(|| at(item, format!("{key}: it is a table")))
}

struct Reader<'a> {
    nodes: &'a [u32],
    tiers: Vec<(String, u32)>,
    policy: Policy,
}

impl Reader<'_> {
    fn tiers(&mut self, tiers: &dyn TableLike) -> Result<(), Mistake> {
        for (name, item) in tiers.iter() {
            let node = item.as_integer().and_then(|node| u32::try_from(node).ok());
            let node = node.filter(|&node| node < NODES);
            let node = node.ok_or_else(|| {
                at(
                    item,
                    format!("tiers.{name}: it is the number of a node, such as 1"),
                )
            })?;
            self.tiers.push((name.to_owned(), node));
        }
        Ok(())
    }

    fn class(&mut self, name: &str, keys: &dyn TableLike, whole: &Item) -> Result<(), Mistake> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(plain) {
            let what =
                format!("class.{name}: a name has 1 to {LONGEST} letters, digits, `-`, `_`, `.`");
            return Err(at(whole, what));
        }
        let mut rule = Rule {
            name: name.to_owned(),
            ..Rule::default()
        };
        let text = |item: &Item| item.as_str().map(str::to_owned);
        if let Some(item) = keys.get("fallback") {
            rule.place.elsewhere = match item.as_str() {
                Some("any") => true,
                Some("none") => false,
                _ => {
                    return Err(at(
                        item,
                        format!("class.{name}.fallback: it is \"none\" or \"any\""),
                    ));
                }
            };
        }
        for (key, item) in keys.iter() {
            let path = format!("class.{name}.{key}");
            match key {
                "fallback" => {}
                "place" => {
                    let place =
                        text(item).or_else(|| item.as_integer().map(|node| node.to_string()));
                    let place = place.ok_or_else(|| {
                        at(item, format!("{path}: it is a text of nodes or tiers, such as \"0\" or \"0=3,1=1\""))
                    })?;
                    self.place(&mut rule.place, &place, &path)
                        .map_err(|what| at(item, what))?;
                }
                "limit" => {
                    let limit = text(item).as_deref().and_then(bytes);
                    let limit = limit.filter(|&limit| limit >= crate::segment::BYTES);
                    rule.limit = Some(limit.ok_or_else(|| {
                        at(
                            item,
                            format!("{path}: it is a size of at least 4 MiB, such as \"2 GiB\""),
                        )
                    })?);
                }
                _ => {
                    return Err(at(
                        item,
                        format!("there is no key `{path}`; there are place, limit, fallback"),
                    ));
                }
            }
        }
        self.policy.rules.push(rule);
        Ok(())
    }

    /// `0`, `0,1`, `cxl0`, `dram=3,cxl0=1`.
    fn place(&mut self, place: &mut Place, text: &str, path: &str) -> Result<(), String> {
        for part in text.split(',') {
            let (name, share) = match part.split_once('=') {
                Some((name, share)) => (name.trim(), Some(share.trim())),
                None => (part.trim(), None),
            };
            let known = self
                .tiers
                .iter()
                .find(|tier| tier.0 == name)
                .map(|tier| tier.1);
            let node = known.or_else(|| name.parse().ok().filter(|&node| node < NODES));
            let node = node.ok_or_else(|| {
                let tiers: Vec<&str> = self.tiers.iter().map(|tier| tier.0.as_str()).collect();
                let known = if tiers.is_empty() {
                    "none".into()
                } else {
                    tiers.join(", ")
                };
                format!("{path}: `{name}` is neither a node nor a tier; [tiers] has {known}")
            })?;
            let is_first = place.nodes.is_empty();
            if place.nodes.iter().any(|one| one.0 == node) {
                return Err(format!("{path}: node {node} is there twice"));
            }
            if !is_first && place.spread != share.is_some() {
                return Err(format!(
                    "{path}: either each node has a share or none, as in \"0=3,1=1\" or \"0,1\""
                ));
            }
            place.spread = share.is_some();
            let share = share.map_or(Some(1), |share| {
                share.parse().ok().filter(|n| (1..=1000).contains(n))
            });
            let share = share.ok_or_else(|| {
                format!("{path}: the share of `{name}` is a number from 1 to 1000")
            })?;
            place.nodes.push((node, share));
        }
        let absent: Vec<u32> = (place.nodes.iter().map(|one| one.0))
            .filter(|node| !self.nodes.contains(node))
            .collect();
        if let Some(node) = absent.first() {
            let there: Vec<String> = self.nodes.iter().map(u32::to_string).collect();
            let what = format!(
                "{path}: node {node} is not on this machine, which has memory on {}",
                there.join(", ")
            );
            if !place.elsewhere {
                return Err(format!("{what}; `fallback = \"any\"` allows others"));
            }
            place.nodes.retain(|one| self.nodes.contains(&one.0));
            self.policy.notices.push(format!("{what}; others are used"));
        }
        if place.spread {
            place.order = node::order(&place.nodes);
        }
        Ok(())
    }
}

/// `2 GiB`, `512M`, `4194304`: units are powers of 1024.
fn bytes(text: &str) -> Option<usize> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits)?;
    let shift = match unit.trim() {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        "T" | "TiB" => 40,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Policy, String> {
        Policy::read("p.toml", text, &[0, 1]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_policy_has_nodes_tiers_shares_and_limits() {
        let policy = read(
            "[class.index]\nplace = 0\nlimit = \"2 GiB\"\n[class.buffer]\nplace = \"0=3,far=1\"\n[tiers]\nfar = 1\n\
             [class.cold]\nplace = \"0, 1\"\nfallback = \"any\"\n[class.keys]\n",
        )
        .unwrap();
        let seen: Vec<_> = (policy.rules.iter())
            .map(|rule| {
                (
                    rule.name.as_str(),
                    rule.place.nodes.clone(),
                    rule.place.spread,
                    rule.place.elsewhere,
                )
            })
            .collect();
        let expected = [
            ("index", vec![(0, 1)], false, false),
            ("buffer", vec![(0, 3), (1, 1)], true, false),
            ("cold", vec![(0, 1), (1, 1)], false, true),
            ("keys", vec![], false, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(policy.rules[0].limit, Some(2 << 30));
    }

    #[test]
    fn a_device_without_an_end_is_no_policy() {
        let refused = Policy::open(Path::new("/dev/zero")).map(drop);
        let why = refused.unwrap_err().to_string();
        assert_eq!(why, "/dev/zero: it is larger than 1 MiB, and so no policy");
    }

    #[test]
    fn a_node_that_is_absent_is_refused_unless_others_may_be_used() {
        let why = read("[class.cold]\nplace = \"7\"").unwrap_err();
        assert_eq!(
            why,
            "p.toml, line 2: class.cold.place: node 7 is not on this machine, which has memory on 0, 1; `fallback = \"any\"` \
             allows others"
        );
        let policy = read("[class.cold]\nplace = \"7\"\nfallback = \"any\"").unwrap();
        assert!(
            policy.notices[0].ends_with("others are used"),
            "{:?}",
            policy.notices
        );
        assert_eq!(policy.rules[0].place.nodes, []);
    }

    #[test]
    fn mistakes_have_their_line_and_key() {
        for (text, expected) in [
            (
                "[class.a]\n\nplaces = 1",
                "line 3: there is no key `class.a.places`",
            ),
            ("classes = 1", "line 1: there is no key `classes`"),
            ("[class]\na = 1", "line 2: class.a: it is a table"),
            (
                "[class.a]\nplace = \"far\"",
                "line 2: class.a.place: `far` is neither a node nor a tier; [tiers] has none",
            ),
            (
                "[tiers]\nfar = \"x\"",
                "line 2: tiers.far: it is the number of a node",
            ),
            (
                "[class.a]\nplace = \"0=3,1\"",
                "either each node has a share or none",
            ),
            (
                "[class.a]\nplace = \"0=0\"",
                "the share of `0` is a number from 1",
            ),
            ("[class.a]\nplace = \"0,0\"", "node 0 is there twice"),
            (
                "[class.a]\nlimit = \"2 XB\"",
                "line 2: class.a.limit: it is a size",
            ),
            ("[class.a]\nlimit = \"1 MiB\"", "at least 4 MiB"),
            (
                "[class.a]\nfallback = \"some\"",
                "it is \"none\" or \"any\"",
            ),
            ("[class.\"a b\"]", "class.a b: a name has"),
            ("[class.a\nplace", "line 1: "),
        ] {
            let why = read(text).unwrap_err();
            assert!(
                why.starts_with("p.toml, line") && why.contains(expected),
                "{text}: {why}"
            );
        }
    }
}
