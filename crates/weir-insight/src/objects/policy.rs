//! Advice as a policy file of `weir-alloc` (`docs/alloc.md`): the place of each class of objects.

use std::fmt::Write as _;

use weir_model::number::percent;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

use super::choose::ROUND;
use super::{ObjectAdvice, PlaceAdvice};

/// Classes that `weir-alloc` has without a policy that names them (`ObjectClass::ALL`).
pub const CLASSES: [&str; 6] = ["index", "buffer", "operator", "temporary", "log", "cold"];
/// The longest name of a class that `weir-alloc` takes.
const LONGEST: usize = 32;

/// An object of a workload, and the class whose memory it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassOf {
    /// The object.
    pub object: String,
    /// The class of the program.
    pub class: String,
}

impl ClassOf {
    /// Reads `OBJECT` or `OBJECT=CLASS`.
    ///
    /// # Errors
    /// The class is no name that `weir-alloc` takes, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let (object, class) = text.split_once('=').unwrap_or((text, text));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if class.is_empty() || class.len() > LONGEST || !class.chars().all(plain) {
            return Err(format!(
                "a class has 1 to {LONGEST} letters, digits, `-`, `_`, `.`, and `{class}` has not"
            ));
        }
        Ok(Self {
            object: object.into(),
            class: class.into(),
        })
    }
}

/// The classes of a workload with these objects: those that were `named`, and objects with the name of one of [`CLASSES`].
///
/// # Errors
/// An object that was named is not there, two objects have one class, or there is no class, in words.
pub fn classes(objects: &[&str], named: &[ClassOf]) -> Result<Vec<ClassOf>, String> {
    let there = objects.join(", ");
    if let Some(absent) = (named.iter()).find(|one| !objects.contains(&one.object.as_str())) {
        return Err(format!(
            "there is no object `{}`; there are {there}",
            absent.object
        ));
    }
    let mut all: Vec<ClassOf> = Vec::new();
    for object in objects {
        let own = named.iter().find(|one| one.object == *object);
        let class = match own {
            Some(own) => own.class.as_str(),
            None if CLASSES.contains(object) => object,
            None => continue,
        };
        if let Some(other) = all.iter().find(|one| one.class == class) {
            return Err(format!(
                "`{}` and `{object}` are both of class `{class}`, which has one place",
                other.object
            ));
        }
        all.push(ClassOf {
            object: (*object).into(),
            class: class.into(),
        });
    }
    if all.is_empty() {
        return Err(format!(
            "no object is a class of the program ({}); name those that are, as OBJECT or OBJECT=CLASS: there are {there}",
            CLASSES.join(", ")
        ));
    }
    Ok(all)
}

/// A tier and the number of its node on the server whose policy it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierNode {
    /// The tier.
    pub tier: TierName,
    /// Linux's number of its node.
    pub node: u32,
    /// Whether the number is assumed, as this host has no such tier.
    pub assumed: bool,
}

/// A policy, and what of the advice is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// The text of the file.
    pub text: String,
    /// What is worth knowing of it: objects that it does not place, nodes that are assumed.
    pub notes: Vec<String>,
}

impl PlaceAdvice {
    /// This advice as a policy: each class has its share on either tier. `made_by` names what it follows from, such as a command.
    pub fn policy(&self, classes: &[ClassOf], nodes: &[TierNode; 2], made_by: &str) -> PolicyFile {
        let class_of =
            |object: &ObjectAdvice| classes.iter().find(|one| one.object == object.object);
        let mut notes: Vec<String> = nodes
            .iter()
            .filter(|one| one.assumed)
            .map(|one| {
                format!(
                    "this host has no tier {}, and {} is assumed for its node; where the server has another number (`weir topo`), \
                     change it in [tiers]",
                    one.tier, one.node
                )
            })
            .collect();
        for object in self
            .objects
            .iter()
            .filter(|object| class_of(object).is_none())
        {
            let counted = match object.share_pct {
                share if share > 0.0 => format!(
                    "; the loss is that of a program with {share:.0} % of it on {}",
                    self.to
                ),
                _ => String::new(),
            };
            notes.push(format!(
                "`{}` ({}) is no class and not in this policy, so the kernel places it{counted}",
                object.object, object.bytes
            ));
        }
        let mut text = comment(&format!("Made by: {made_by}"));
        text.push_str(&comment(&self.loss()));
        notes.iter().for_each(|note| text.push_str(&comment(note)));
        text.push_str("\n[tiers]\n");
        for one in nodes {
            // Writing to a text does not fail.
            let _ = writeln!(text, "{} = {}", key(one.tier.as_str()), one.node);
        }
        for object in &self.objects {
            let Some(of) = class_of(object) else { continue };
            let place = self.place(object.share_pct);
            let _ = write!(
                text,
                "\n{}[class.{}]\nplace = \"{place}\"\n",
                comment(&format!(
                    "{}, {}: {}",
                    of.object, object.bytes, object.advice
                )),
                key(&of.class)
            );
        }
        PolicyFile { text, notes }
    }

    /// What the advised placement is expected to cost, in a sentence.
    fn loss(&self) -> String {
        let all: Bytes = self.objects.iter().map(|object| object.bytes).sum();
        let Some(advised) = self.placings.first() else {
            return "Nothing was advised".into();
        };
        let measured = advised.measured_pct.map_or_else(String::new, |measured| {
            format!("; {} % in a run of the model", percent(measured))
        });
        format!(
            "Predicted loss with {} of {all} on {}: {} % of run time{measured}",
            advised.bytes,
            self.to,
            percent(advised.expected_pct)
        )
    }

    /// The place of an object with this share on the slower tier, as a policy has it: `dram`, `dram=9,cxl0=11`.
    fn place(&self, share_pct: f64) -> String {
        let slow = (share_pct / 100.0 * f64::from(ROUND)).round() as u32;
        match slow {
            0 => self.from.to_string(),
            ROUND.. => self.to.to_string(),
            _ => {
                let fast = ROUND - slow;
                let divisor = (1..=slow)
                    .rev()
                    .find(|&d| slow.is_multiple_of(d) && fast.is_multiple_of(d));
                let divisor = divisor.unwrap_or(1);
                format!(
                    "{}={},{}={}",
                    self.from,
                    fast / divisor,
                    self.to,
                    slow / divisor
                )
            }
        }
    }
}

/// A line of TOML that is a comment, which has no control characters.
fn comment(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    format!("# {text}\n")
}

/// A key of TOML: as it is, or quoted.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.into(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
