//! The counting units: cores, and every unit of the uncore, as sysfs lists them.
//!
//! `/sys/bus/event_source/devices/NAME` has `type`, the number by which events are opened; `cpumask`, the
//! processors on which a unit of the uncore is read, one for each socket or die; and `format/`.

use weir_model::capability::Unavailable;

use super::format::Format;
use crate::root::Root;
use crate::topology::list;

const DEVICES: &str = "/sys/bus/event_source/devices";

/// One unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name in sysfs: `uncore_cha_3`.
    pub name: String,
    /// Its number for the kernel.
    pub kind: u32,
    /// The processors to read it on, if it is not a core.
    pub cpus: Vec<u32>,
    /// The fields of its events.
    pub format: Format,
}

/// Every unit of a kind, such as `uncore_cha`: by that name, or by that name and a number.
///
/// # Errors
/// There is none, or the files of one are invalid.
pub fn find(root: &Root, kind: &str) -> Result<Vec<Unit>, Unavailable> {
    let names = root.list(DEVICES);
    let names = names.get()?;
    let is_one = |name: &&String| {
        name.strip_prefix(kind).is_some_and(|rest| {
            let number = rest.strip_prefix('_').unwrap_or(rest);
            number.bytes().all(|b| b.is_ascii_digit()) && number.is_empty() == rest.is_empty()
        })
    };
    let units: Vec<Unit> = names
        .iter()
        .filter(is_one)
        .map(|name| unit(root, name))
        .collect::<Result<_, _>>()?;
    if units.is_empty() {
        return Err(Unavailable::because(format!(
            "the kernel lists no unit `{kind}` in {DEVICES}"
        )));
    }
    Ok(units)
}

fn unit(root: &Root, name: &str) -> Result<Unit, Unavailable> {
    let folder = format!("{DEVICES}/{name}");
    let kind = root.value::<u32>(&format!("{folder}/type"));
    let cpus = root.text(&format!("{folder}/cpumask"));
    Ok(Unit {
        name: name.to_owned(),
        kind: *kind.get()?,
        cpus: match cpus.known() {
            Some(cpus) => list::parse(cpus)?,
            None => Vec::new(),
        },
        format: Format::of(root, &folder)?,
    })
}
