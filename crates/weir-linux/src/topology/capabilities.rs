//! What the machine offers, and for everything that it lacks: why, the effect, and how to get it.

mod cxl_memory;

use weir_model::capability::{Capability, Feature, Unavailable};

use super::HostView;
use crate::root::Reading;
use crate::storage;

pub(super) fn list(view: &HostView) -> Vec<Capability> {
    [
        instructions(view),
        counters(view),
        nodes(view),
        pages(view),
        control(view),
        vec![storage::unnamed()],
    ]
    .concat()
}

/// A capability from evidence or a reason.
fn judge(
    feature: Feature,
    found: Result<String, Unavailable>,
    cost: &str,
    remedy: &str,
) -> Capability {
    match found {
        Ok(detail) => Capability::present(feature, detail),
        Err(why) => Capability::missing(feature, why.reason, cost, remedy),
    }
}

fn flag(view: &HostView, names: &[&str]) -> Result<String, Unavailable> {
    view.processor.flags.get()?;
    match names.iter().find(|name| !view.processor.has(name)) {
        None => Ok(format!("processor flag {}", names.join(" "))),
        Some(name) => Err(Unavailable::because(format!(
            "the processor does not have {name}"
        ))),
    }
}

fn instructions(view: &HostView) -> Vec<Capability> {
    let narrower = "measuring loops use narrower instructions";
    let arm = view.processor.has("asimd");
    let clwb = if arm { ["dcpop"] } else { ["clwb"] };
    let tsc = if arm {
        Ok("the generic timer ticks at one rate".to_owned())
    } else {
        flag(view, &["constant_tsc", "nonstop_tsc"])
    };
    let elsewhere = if view.is_virtual() {
        "let the hypervisor pass the flag through, if the host's processor has it"
    } else {
        ""
    };
    vec![
        judge(
            Feature::Avx512,
            flag(view, &["avx512f"]),
            narrower,
            elsewhere,
        ),
        judge(Feature::Avx2, flag(view, &["avx2"]), narrower, elsewhere),
        judge(
            Feature::Movdir64b,
            flag(view, &["movdir64b"]),
            "op movdir64b cannot be measured",
            elsewhere,
        ),
        judge(
            Feature::Clwb,
            flag(view, &clwb),
            "op st_clwb cannot be measured",
            elsewhere,
        ),
        judge(
            Feature::Dsa,
            view.dsa.get().map(|queue| {
                let mode = if queue.shared { "shared" } else { "dedicated" };
                format!("{mode} work queue {}", queue.name)
            }),
            "copies by the accelerator cannot be measured",
            if let Reading::Absent(_) = view.dsa {
                match arm || view.is_virtual() {
                    true => "",
                    false => {
                        "modprobe idxd, on a processor that has the accelerator (Sapphire Rapids or later)"
                    }
                }
            } else {
                "accel-config config-wq dsa0/wq0.0 --group-id=0 --type=user --mode=shared --name=weir --wq-size=16 --threshold=8 --driver-name=user; accel-config config-engine dsa0/engine0.0 --group-id=0; accel-config enable-device dsa0; accel-config enable-wq dsa0/wq0.0"
            },
        ),
        judge(
            Feature::InvariantTsc,
            tsc,
            "single accesses are timed with a system call's clock, to about 20 ns",
            elsewhere,
        ),
    ]
}

fn counters(view: &HostView) -> Vec<Capability> {
    let virtual_remedy = "run on bare metal, or give the virtual machine a PMU";
    let core = view.probes.core_pmu.clone().unwrap_or_else(|| {
        source(view, |name| {
            name == "cpu" || name.starts_with("armv8") || name == "cpu_core"
        })
    });
    let uncore = source(view, |name| {
        [
            "uncore_", "amd_l3", "amd_umc", "amd_df", "arm_cmn", "cxl_pmu",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
    });
    vec![
        judge(
            Feature::CorePmu,
            core,
            "no stall cycles, no cache hits and misses: slowdown cannot be explained",
            if view.is_virtual() {
                virtual_remedy
            } else {
                "sysctl kernel.perf_event_paranoid=0, or run as root"
            },
        ),
        judge(
            Feature::UncorePmu,
            uncore,
            "no traffic per tier and no queue residency: interference cannot be located",
            if view.is_virtual() {
                "run on bare metal"
            } else if view.processor.has("asimd") {
                "load the driver of the mesh (CONFIG_ARM_CMN)"
            } else {
                "load the uncore driver of this processor (CONFIG_PERF_EVENTS_INTEL_UNCORE, CONFIG_PERF_EVENTS_AMD_UNCORE)"
            },
        ),
    ]
}

fn source(view: &HostView, wanted: impl Fn(&str) -> bool) -> Result<String, Unavailable> {
    let names = view.event_sources.get()?;
    let found: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|n| wanted(n))
        .collect();
    match found.as_slice() {
        [] => Err(Unavailable::because(format!(
            "the kernel's event sources are only {}",
            names.join(", ")
        ))),
        [one] => Ok(format!("event source {one}")),
        [first, .., last] => Ok(format!("{} event sources, {first} to {last}", found.len())),
    }
}

fn nodes(view: &HostView) -> Vec<Capability> {
    let nodes = view.nodes.get();
    let several = nodes.clone().and_then(|nodes| {
        let with_memory = nodes.iter().filter(|n| n.has_memory());
        let usable = with_memory.clone().filter(|n| view.may_use(n.id)).count();
        match with_memory.count() {
            _ if usable > 1 => Ok(format!("{usable} nodes with memory")),
            0 | 1 => Err(Unavailable::because("one memory node only")),
            all => Err(Unavailable::because(format!(
                "{all} nodes with memory, of which this program's cpuset leaves it {usable}"
            ))),
        }
    });
    let (cxl, cxl_remedy) = cxl_memory::look(view);
    let hmat = nodes.clone().and_then(|nodes| {
        let described = nodes.iter().filter(|n| n.access0.known().is_some()).count();
        match nodes.first() {
            _ if described > 0 => Ok(format!("latency and bandwidth of {described} node(s)")),
            Some(node) => Err(node
                .access0
                .get()
                .err()
                .unwrap_or_else(|| Unavailable::because("the firmware describes no node"))),
            None => Err(Unavailable::because("there are no nodes")),
        }
    });
    let tiers = view.memory_tiers.get().and_then(|tiers| {
        if tiers.is_empty() {
            return Err(Unavailable::because("the kernel lists no memory tier"));
        }
        Ok(format!("{} memory tier(s)", tiers.len()))
    });
    vec![
        judge(
            Feature::MultipleNodes,
            several,
            "only local memory can be measured; other tiers can be simulated (--on PLATFORM)",
            "",
        ),
        judge(
            Feature::CxlMemory,
            cxl,
            "no CXL tier to measure; one can be simulated (--on PLATFORM)",
            cxl_remedy,
        ),
        judge(
            Feature::Hmat,
            hmat,
            "the firmware has no figures with which to compare measured latency and bandwidth",
            "a firmware with an HMAT table, and CONFIG_ACPI_HMAT",
        ),
        judge(
            Feature::MemoryTiers,
            tiers,
            "the kernel does not rank its nodes, and so does not demote pages",
            "Linux 6.1 or later with CONFIG_NUMA and CONFIG_MIGRATION",
        ),
        judge(
            Feature::NumaPolicy,
            policy(view),
            "pages cannot be placed, nor their place verified; only tier dram can be measured",
            "a kernel with CONFIG_NUMA; in a container, permit mbind and move_pages",
        ),
    ]
}

fn policy(view: &HostView) -> Result<String, Unavailable> {
    view.probes.placement.clone().unwrap_or_else(|| {
        let nodes = view.nodes.get();
        nodes.map(|_| "the kernel shows nodes".to_owned())
    })
}

fn pages(view: &HostView) -> Vec<Capability> {
    let transparent = view.transparent_huge_pages.get().and_then(|choice| {
        if choice == "never" {
            return Err(Unavailable::because(
                "transparent huge pages are set to never",
            ));
        }
        Ok(format!("transparent huge pages: {choice}"))
    });
    let reserved: Vec<String> = view
        .known_nodes()
        .iter()
        .flat_map(|n| n.huge_pages.iter().map(move |pool| (n.id, pool)))
        .filter(|(_, pool)| pool.free > 0)
        .map(|(id, pool)| format!("{} x {} free on node {id}", pool.free, pool.page))
        .collect();
    let reserved = if reserved.is_empty() {
        Err(Unavailable::because("no huge pages are reserved"))
    } else {
        Ok(reserved.join(", "))
    };
    vec![
        judge(
            Feature::TransparentHugePages,
            transparent,
            "page walks are in every latency of a large working set",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        judge(
            Feature::ReservedHugePages,
            reserved,
            "huge pages come on demand, and may be missing when memory is fragmented",
            "echo N > /sys/devices/system/node/nodeX/hugepages/hugepages-2048kB/nr_hugepages",
        ),
    ]
}

fn control(view: &HostView) -> Vec<Capability> {
    let mut flags = ["cat_l3", "mba", "rdt_a"].iter();
    let allocates = flags.any(|flag| view.processor.has(flag));
    let resctrl = match view.resctrl.known() {
        Some(true) if view.allocations.is_empty() => Ok("/sys/fs/resctrl is mounted".to_owned()),
        Some(true) => Ok(format!(
            "/sys/fs/resctrl is mounted and allocates {}",
            view.allocations.join(", ")
        )),
        _ if !allocates => Err(Unavailable::because(
            "the processor shows neither cache nor bandwidth allocation",
        )),
        _ => Err(Unavailable::because("/sys/fs/resctrl is not mounted")),
    };
    let pinning = (view.probes.pinning.clone()).unwrap_or(Ok("every Linux can".to_owned()));
    let bare = match (view.hypervisor(), view.processor.flags.get()) {
        (Some(evidence), _) => Err(Unavailable::because(evidence)),
        (None, Ok(_)) => Ok("no hypervisor flag".to_owned()),
        (None, Err(why)) => Err(why),
    };
    vec![
        judge(
            Feature::PrefetchControl,
            prefetch(view),
            "sequential figures include the hardware prefetchers, and so do chases inside a window of pages; random ones hardly do",
            if view.is_virtual() {
                "run on bare metal, or switch the prefetchers off in the firmware's setup"
            } else if view.processor.has("asimd") {
                "switch the prefetchers off in the firmware's setup"
            } else {
                "modprobe msr, and run as root; or switch the prefetchers off in the firmware's setup"
            },
        ),
        judge(
            Feature::Resctrl,
            resctrl,
            "cache ways and bandwidth cannot be allocated to tenants",
            if view.is_virtual() {
                "run on bare metal"
            } else if allocates {
                "mount -t resctrl resctrl /sys/fs/resctrl"
            } else {
                ""
            },
        ),
        judge(
            Feature::Pinning,
            pinning,
            "threads move between processors, and figures vary",
            "permit sched_setaffinity",
        ),
        judge(
            Feature::BareMetal,
            bare,
            "neighbours on the same host disturb timing; nested page tables lengthen page walks",
            "measure on the host itself",
        ),
    ]
}

/// Whether this program may write the registers that switch prefetchers.
fn prefetch(view: &HostView) -> Result<String, Unavailable> {
    let found = view.probes.prefetch.clone().unwrap_or_else(|| {
        Err(Unavailable::because(
            "the recording does not say whether the registers that switch prefetchers can be written",
        ))
    });
    found.map_err(|why| view.without_switches(why))
}

impl HostView {
    /// Why the registers that switch prefetchers are not available: in a virtual machine the hypervisor, and not
    /// what the system says.
    pub fn without_switches(&self, why: Unavailable) -> Unavailable {
        match self.is_virtual() {
            true => Unavailable::because(
                "the hypervisor does not pass on the registers that switch prefetchers",
            ),
            false => why,
        }
    }
}
