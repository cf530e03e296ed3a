//! Whether there is CXL memory to use, and if not, which step is missing between a card in a slot and pages
//! of a program.

use weir_model::capability::Unavailable;

use super::HostView;
use crate::topology::cxl::Cxl;
use crate::topology::list;

/// What there is, or why there is none, and the remedy.
pub(super) fn look(view: &HostView) -> (Result<String, Unavailable>, &'static str) {
    match view.cxl.get() {
        Ok(cxl) => on_bus(view, cxl),
        Err(why) => (
            Err(why),
            "plug in a device; load cxl_acpi cxl_pci cxl_mem (CONFIG_CXL_BUS)",
        ),
    }
}

fn on_bus(view: &HostView, cxl: &Cxl) -> (Result<String, Unavailable>, &'static str) {
    let without = |why: String, remedy| (Err(Unavailable::because(why)), remedy);
    let devices = cxl.memdevs.len();
    if !cxl.undriven.is_empty() {
        return without(
            format!(
                "PCI function {} is CXL memory, but no driver uses it",
                cxl.undriven.join(", ")
            ),
            "modprobe -a cxl_acpi cxl_pci cxl_mem",
        );
    }
    let Some(first) = cxl.nodes.first() else {
        if devices == 0 {
            return without("no memory device on the CXL bus".to_owned(), "");
        }
        let what = if cxl.regions.is_empty() {
            "no region was made of them"
        } else {
            "none of their nodes is online"
        };
        return without(
            format!("{devices} memory device(s) on the CXL bus, but {what}"),
            "cxl create-region -t ram, then daxctl reconfigure-device --mode=system-ram",
        );
    };
    let has_memory = |node: u32| {
        let mut nodes = view.known_nodes().iter();
        nodes.any(|known| known.id == node && known.has_memory())
    };
    let Some(online) = cxl.nodes.iter().find(|n| has_memory(n.node)) else {
        return without(
            format!(
                "node {} is CXL memory ({}), but none of it is online",
                first.node, first.evidence
            ),
            "daxctl online-memory DEVICE, or echo online_movable > /sys/devices/system/node/nodeN/memoryM/state for each M",
        );
    };
    let usable: Vec<String> = cxl
        .nodes
        .iter()
        .filter(|n| has_memory(n.node) && view.may_use(n.node))
        .map(|n| format!("node {} ({})", n.node, n.evidence))
        .collect();
    if usable.is_empty() {
        let allowed = view.allowed_nodes.known().map(|ids| list::format(ids));
        return without(
            format!(
                "node {} is CXL memory ({}), but this program may only use node {} (cpuset)",
                online.node,
                online.evidence,
                allowed.unwrap_or_default()
            ),
            "add the node to cpuset.mems of the control group that /proc/self/cgroup names",
        );
    }
    (Ok(usable.join(", ")), "")
}
