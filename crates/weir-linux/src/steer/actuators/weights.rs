//! The weights of interleaving: `/sys/kernel/mm/mempolicy/weighted_interleave/nodeN`, which apply to every
//! task of the machine that uses weighted interleaving (kernel documentation,
//! ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave).

use weir_model::capability::Unavailable;

use super::KernelAccess;
use crate::root::Root;

const FOLDER: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// Whether the kernel has weights.
///
/// # Errors
/// It is older than Linux 6.9.
pub(crate) fn find(root: &Root) -> Result<(), Unavailable> {
    let nodes = root.numbered(FOLDER, "node");
    let found = nodes.get().map_err(|why| {
        Unavailable::because(format!(
            "the kernel has no weighted interleaving, which came with Linux 6.9: {why}"
        ))
    })?;
    if found.is_empty() {
        let why = format!("{FOLDER} has the weight of no node");
        return Err(Unavailable::because(why));
    }
    Ok(())
}

/// Sets the weights of nodes, and returns the weights in force.
pub(crate) fn set(
    access: &mut KernelAccess<'_>,
    weights: &[(u32, u8)],
) -> Result<Vec<(u32, u8)>, Unavailable> {
    find(access.root)?;
    // If the kernel computes the weights itself (Linux 6.16), writing a weight ends that.
    let auto = format!("{FOLDER}/auto");
    if access.root.exists(&auto) {
        access.writes.set(&auto, "false")?;
    }
    let one = |&(node, weight): &(u32, u8)| {
        let path = format!("{FOLDER}/node{node}");
        let found = access.writes.set(&path, &weight.max(1).to_string())?;
        let found = found.parse().map_err(|_| {
            Unavailable::because(format!("{path} says `{found}`, which is no weight"))
        })?;
        Ok((node, found))
    };
    weights.iter().map(one).collect()
}
