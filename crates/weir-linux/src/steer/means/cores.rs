//! Cores: `cpuset.cpus` of a control group.

use weir_model::capability::Unavailable;

use super::Hands;
use crate::steer::group::{self, file};
use crate::topology::list;

/// Lets a group run on the first so many of the processors that it had, and says on which it may.
///
/// A processor that has gone since (unplugged) is not counted among them.
pub(crate) fn hold(
    hands: &mut Hands<'_>,
    group: &str,
    all: &[u32],
    cores: u32,
) -> Result<Vec<u32>, Unavailable> {
    let path = file(group, "cpuset.cpus");
    if !hands.root.exists(&path) {
        let given = group::give(hands.root, hands.ledger, group, "cpuset")?;
        hands.wrote.extend(given);
    }
    let there = match group::above(group) {
        Some(above) => group::processors(hands.root, above)?,
        None => all.to_vec(),
    };
    let first: Vec<u32> = (all.iter().copied())
        .filter(|cpu| there.contains(cpu))
        .take(cores.max(1) as usize)
        .collect();
    if first.is_empty() {
        return Err(Unavailable::because(format!(
            "none of the processors {} that {group} had is left",
            list::format(all)
        )));
    }
    hands.set(&path, &list::format(&first))?;
    // What is in force is what the groups above leave of it.
    group::processors(hands.root, group)
}

/// Lets a group run where it could.
pub(crate) fn let_go(hands: &mut Hands<'_>, group: &str) -> Result<(), Unavailable> {
    hands.put_back(&file(group, "cpuset.cpus"))
}
