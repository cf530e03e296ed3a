//! How the kernel uses the tiers that it has.

use weir_model::capability::Unavailable;
use weir_model::diagnosis::Severity::{Minor, Severe, Spoils};

use super::super::look::{Found, Look, Verdict, fine, tiering};
use crate::root::Reading;

pub(super) fn zone_reclaim(look: &Look) -> Verdict {
    let path = "/proc/sys/vm/zone_reclaim_mode";
    let Some(mode) = look.value::<u32>(path)?.filter(|&mode| mode != 0) else {
        return fine();
    };
    tiering(
        Spoils,
        "a full node reclaims its pages before other nodes are used",
    )
    .shown_by(path, mode)
    .so("allocations stall in reclaim although a slower tier has free memory")
    .run("sysctl vm.zone_reclaim_mode=0")
    .alone()
}

pub(super) fn swap(look: &Look) -> Verdict {
    let path = "/proc/swaps";
    let areas = look.text(path)?.unwrap_or_default();
    let areas = areas
        .lines()
        .skip(1)
        .filter(|l| !l.trim().is_empty())
        .count();
    if areas == 0 {
        return fine();
    }
    tiering(Minor, format!("{areas} swap area(s) are on"))
        .shown_by(path, format!("{areas} area(s)"))
        .so("under memory pressure pages go to disk and not to a slower tier, which changes the figures")
        .run("swapoff -a")
        .alone()
}

pub(super) fn one_memory_tier(look: &Look) -> Verdict {
    if !look.is_tiered() {
        return fine();
    }
    let path = "/sys/devices/virtual/memory_tiering";
    let Reading::Known(tiers) = &look.view.memory_tiers else {
        return match look.kernel() {
            Some(version) if version < (6, 1) => {
                tiering(Spoils, "this kernel does not rank its nodes")
                    .shown_by("/proc/sys/kernel/osrelease", look.view.kernel.get()?)
                    .so("cold pages are not demoted to slower tiers")
                    .or("memory tiers need Linux 6.1 or later")
                    .alone()
            }
            _ => Err(look
                .view
                .memory_tiers
                .get()
                .err()
                .unwrap_or_else(|| Unavailable::because(format!("there is no {path}")))),
        };
    };
    let of = |id: u32| {
        tiers
            .iter()
            .find(|tier| tier.nodes.contains(&id))
            .map(|tier| tier.id)
    };
    let near = look
        .view
        .known_nodes()
        .iter()
        .find(|n| n.has_memory() && n.has_cpus());
    let Some(best) = near.and_then(|n| of(n.id)) else {
        return fine();
    };
    Ok(look
        .far_nodes()
        .into_iter()
        .filter(|node| of(node.id) == Some(best))
        .map(|node| {
            tiering(Severe, format!("node {} is in the same memory tier as local DRAM", node.id))
                .shown_by(format!("{path}/memory_tier{best}/nodelist"), format!("holds node {}", node.id))
                .so("the kernel treats it as memory of the same speed: no page is demoted to it or promoted from it")
                .or("the firmware hands it over as ordinary memory without performance (HMAT): have it marked as specific-purpose in the firmware's setup, so that it comes up as a DAX device, then daxctl reconfigure-device --mode=system-ram daxX.Y")
        })
        .collect())
}

pub(super) fn demotion(look: &Look) -> Verdict {
    let path = "/sys/kernel/mm/numa/demotion_enabled";
    if !look.is_tiered() {
        return fine();
    }
    match look.text(path)?.as_deref() {
        Some("false" | "0") => tiering(Spoils, "cold pages are not demoted")
            .shown_by(path, "false")
            .so("a full fast tier swaps or fails instead of using the slow one")
            .run(format!("echo true > {path}"))
            .alone(),
        _ => fine(),
    }
}

/// Bit 1 of the sysctl is memory tiering mode (Linux 5.18 and later).
pub(super) fn promotion(look: &Look) -> Verdict {
    let path = "/proc/sys/kernel/numa_balancing";
    let Some(mode) = look.value::<u32>(path)?.filter(|_| look.is_tiered()) else {
        return fine();
    };
    if mode & 2 != 0 {
        return fine();
    }
    tiering(Minor, "hot pages on a slow tier are not promoted")
        .shown_by(path, mode)
        .so("a demoted page stays there, however hot it becomes")
        .run("sysctl kernel.numa_balancing=2")
        .or("for production only: turn it off again before measuring")
        .alone()
}

pub(super) fn weighted_interleave(look: &Look) -> Verdict {
    if !look.is_tiered() {
        return fine();
    }
    let base = "/sys/kernel/mm/mempolicy/weighted_interleave";
    match &look.view.interleave_weights {
        Reading::Absent(_) => {
            let finding = tiering(Minor, "the kernel does not interleave by weight")
                .shown_by(base, "absent")
                .so("pages go to fast and slow tiers in equal shares, or to one alone");
            match look.kernel() {
                Some(version) if version < (6, 9) => {
                    finding.or("weighted interleave needs Linux 6.9 or later")
                }
                _ => finding.or("boot a kernel with CONFIG_NUMA; in a container, /sys may hide it"),
            }
            .alone()
        }
        Reading::Known(weights) => {
            let mut values = weights.iter().map(|(_, weight)| weight);
            let first = values.next();
            if weights.len() < 2 || values.any(|weight| Some(weight) != first) {
                return fine();
            }
            let finding = tiering(Minor, "every node has the same weight")
                .shown_by(format!("{base}/node*"), first.copied().unwrap_or_default())
                .so("weighted interleave spreads pages as if all tiers were equally fast");
            let Some(suggested) = weights_by_bandwidth(look) else {
                return finding
                    .or(format!("write to {base}/nodeN, in proportion to the bandwidths that weir bench bandwidth measures"))
                    .alone();
            };
            suggested
                .into_iter()
                .fold(finding, |found: Found, (node, weight)| {
                    found.run(format!("echo {weight} > {base}/node{node}"))
                })
                .or("by the firmware's bandwidths; those that weir bench bandwidth measures are better")
                .alone()
        }
        Reading::Unreadable(why) => Err(why.clone()),
    }
}

/// Weights in proportion to the bandwidth of each node as the firmware states it, at least 1.
fn weights_by_bandwidth(look: &Look) -> Option<Vec<(u32, u32)>> {
    let nodes = look.view.known_nodes().iter().filter(|n| n.has_memory());
    let rates: Vec<(u32, f64)> = nodes
        .map(|n| Some((n.id, n.access0.known()?.read_bandwidth.known()?.get())))
        .collect::<Option<_>>()?;
    let least = rates.iter().map(|(_, rate)| *rate).reduce(f64::min)?;
    let weight = |rate: f64| (rate / least).round().clamp(1.0, 255.0) as u32;
    Some(rates.iter().map(|&(id, rate)| (id, weight(rate))).collect())
}
