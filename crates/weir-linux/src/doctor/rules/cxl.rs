//! The steps from a CXL device to memory that programs can use.

use weir_model::diagnosis::Severity::{Minor, Severe, Spoils};

use super::super::look::{Look, Verdict, fine, tiering};

const CXL: &str = "/sys/bus/cxl/devices";
const DAX: &str = "/sys/bus/dax/devices";

pub(super) fn cxl_no_region(look: &Look) -> Verdict {
    let Some(cxl) = look.view.cxl.known() else {
        return fine();
    };
    let served = |name: &String| {
        cxl.regions.iter().any(|r| r.memdevs.contains(name))
            || cxl.nodes.iter().any(|n| n.memdevs.contains(name))
    };
    let idle = cxl
        .memdevs
        .iter()
        .filter(|m| m.volatile.known().is_some_and(|size| size.get() > 0) && !served(&m.name));
    let names = look.root.list(CXL);
    let decoder = names.known().into_iter().flatten().find(|name| {
        name.starts_with("decoder") && look.root.exists(&format!("{CXL}/{name}/create_ram_region"))
    });
    let old = look.kernel().is_some_and(|version| version < (6, 3));
    Ok(idle
        .map(|memdev| {
            let (name, size) = (&memdev.name, memdev.volatile.known().copied().unwrap_or_default());
            let found = tiering(Severe, format!("{name} has {size} of memory and no region"))
                .shown_by(format!("{CXL}/{name}/ram/size"), size)
                .so("its memory has no addresses: no program can use it");
            match decoder {
                _ if old => found.or("regions of volatile memory need Linux 6.3 or later; let the firmware make them, or boot a newer kernel"),
                Some(decoder) => found.run(format!("cxl create-region -m -t ram -d {decoder} -w 1 {name}")),
                None => found
                    .run(format!("cxl create-region -m -t ram -w 1 {name}"))
                    .or("no decoder takes regions yet: load cxl_acpi, and look at cxl list -D for a window"),
            }
        })
        .collect())
}

pub(super) fn cxl_not_memory(look: &Look) -> Verdict {
    let mut found = Vec::new();
    let names = look.root.list(DAX);
    for name in names.known().into_iter().flatten() {
        let path = format!("{DAX}/{name}");
        let driver = look.root.target(&format!("{path}/driver"));
        let driver = driver
            .known()
            .and_then(|d| Some(d.file_name()?.to_str()?.to_owned()));
        let node = look
            .value::<u32>(&format!("{path}/target_node"))
            .unwrap_or_default();
        let online = look
            .view
            .known_nodes()
            .iter()
            .any(|n| Some(n.id) == node && n.has_memory());
        let finding = tiering(
            Severe,
            format!("{name} is memory that programs cannot allocate"),
        )
        .so("its tier is missing from the kernel's nodes, and from Weir's");
        match driver.as_deref() {
            Some("device_dax") => found.push(
                finding
                    .shown_by(format!("{path}/driver"), "device_dax: devdax mode")
                    .run(format!(
                        "daxctl reconfigure-device --mode=system-ram {name}"
                    )),
            ),
            Some("kmem") if !online => found.push(
                finding
                    .shown_by(
                        format!("{path}/driver"),
                        "kmem, but its node has no memory online",
                    )
                    .run(format!("daxctl online-memory {name}")),
            ),
            None if !online => found.push(
                finding
                    .shown_by(format!("{path}/driver"), "no driver")
                    .run("modprobe kmem")
                    .run(format!(
                        "daxctl reconfigure-device --mode=system-ram {name}"
                    )),
            ),
            _ => {}
        }
    }
    Ok(found)
}

pub(super) fn blocks_offline(look: &Look) -> Verdict {
    let nodes = look.view.known_nodes().iter().filter(|n| !n.has_cpus());
    let mut found = Vec::new();
    for node in nodes {
        let blocks = look.blocks(node.id, "state");
        let offline: Vec<u32> = blocks
            .iter()
            .filter(|b| b.1 == "offline")
            .map(|b| b.0)
            .collect();
        let Some(first) = offline.first() else {
            continue;
        };
        found.push(
            tiering(Severe, format!("{} of {} memory blocks of node {} are offline", offline.len(), blocks.len(), node.id))
                .shown_by(format!("/sys/devices/system/memory/memory{first}/state"), "offline")
                .so("this part of the tier cannot be allocated")
                .run(format!("for b in /sys/devices/system/node/node{}/memory*; do echo online_movable > $b/state; done", node.id)),
        );
    }
    Ok(found)
}

/// An online block shows its zone; an offline one the zones that it could join.
pub(super) fn not_movable(look: &Look) -> Verdict {
    let mut found = Vec::new();
    for node in look.far_nodes() {
        let zones = look.blocks(node.id, "valid_zones");
        let states = look.blocks(node.id, "state");
        let online = |n: &u32| states.iter().any(|(m, state)| m == n && state == "online");
        let fixed: Vec<&(u32, String)> = zones
            .iter()
            .filter(|(n, zone)| online(n) && !zone.split(' ').any(|z| z == "Movable"))
            .collect();
        let Some((first, zone)) = fixed.first() else {
            continue;
        };
        let finding = tiering(Spoils, format!("{} of {} memory blocks of node {} are not movable", fixed.len(), zones.len(), node.id))
            .shown_by(format!("/sys/devices/system/memory/memory{first}/valid_zones"), zone)
            .so("the kernel puts its own pages on the slow tier, and the tier cannot be taken offline again");
        let device = dax_of(look, node.id);
        found.push(match device {
            Some(name) => finding
                .run(format!("daxctl offline-memory {name}"))
                .run(format!("daxctl online-memory {name}"))
                .or("if it is busy, boot with memhp_default_state=online_movable"),
            None => finding.or("boot with memhp_default_state=online_movable; memory that the firmware hands over as ordinary cannot be made movable alone"),
        });
    }
    Ok(found)
}

fn dax_of(look: &Look, node: u32) -> Option<String> {
    let names = look.root.list(DAX);
    let mut names = names.known()?.iter();
    let path = |name: &String| format!("{DAX}/{name}/target_node");
    names
        .find(|name| look.root.value::<u32>(&path(name)).known() == Some(&node))
        .cloned()
}

pub(super) fn auto_online(look: &Look) -> Verdict {
    let has_devices = look
        .view
        .cxl
        .known()
        .is_some_and(|cxl| !cxl.memdevs.is_empty());
    let path = "/sys/devices/system/memory/auto_online_blocks";
    let Some(policy) = look.text(path)?.filter(|_| has_devices) else {
        return fine();
    };
    let effect = match policy.as_str() {
        "online" | "online_kernel" => {
            "added memory takes kernel pages, and cannot be removed again"
        }
        "offline" => "added memory stays offline until a user brings it online",
        _ => return fine(),
    };
    tiering(Minor, format!("new memory comes up {policy}"))
        .shown_by(path, policy)
        .so(effect)
        .run(format!("echo online_movable > {path}"))
        .or("to keep it over a reboot: memhp_default_state=online_movable on the kernel's command line")
        .alone()
}
