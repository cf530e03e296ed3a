//! The parts of this server, or of a recorded one.

mod capabilities;
mod cdat;
pub mod cxl;
mod demotion;
pub mod list;
pub mod node;
pub mod processor;
mod tiers;
mod view;

use weir_model::capability::{Capability, Unavailable};
use weir_model::machine::MachineError;
use weir_model::topology::{Tier, Topology};
use weir_model::units::{Bytes, Gigahertz};

use self::node::Node;
use self::processor::Cpu;
pub use self::view::{HostView, MemoryTier, Probes};
use crate::dsa;
use crate::prefetch::Switches;
use crate::root::{Reading, Root};
use crate::{memory, perf, pin};

impl HostView {
    /// The machine as experiments see it.
    ///
    /// # Errors
    /// No processor or no memory node could be found, and why.
    pub fn topology(&self) -> Result<Topology, MachineError> {
        tiers::topology(self)
    }

    /// Every feature, present or missing, with the effect of a missing one.
    pub fn capabilities(&self) -> Vec<Capability> {
        capabilities::list(self)
    }

    /// Reasons to trust results of this machine less, other than missing capabilities.
    pub fn warnings(&self) -> Vec<String> {
        tiers::warnings(self)
    }

    /// The first demotion targets of a node; none for the last tier.
    ///
    /// # Errors
    /// The kernel shows no memory tiers.
    pub fn demotion_targets(&self, node: u32) -> Result<Vec<u32>, Unavailable> {
        Ok(demotion::targets(
            self.known_nodes(),
            self.memory_tiers.get()?,
            node,
        ))
    }

    /// Whether this is a virtual machine.
    pub fn is_virtual(&self) -> bool {
        self.hypervisor().is_some()
    }

    /// The evidence that this is a virtual machine. A hypervisor may hide its flag; the names that an
    /// emulator gives its processor and its board still show it.
    pub fn hypervisor(&self) -> Option<String> {
        let known = |name: &Reading<String>| name.known().filter(|n| n.contains("QEMU")).cloned();
        if self.processor.has("hypervisor") {
            Some("the processor reports a hypervisor".to_owned())
        } else if let Some(model) = known(&self.processor.model) {
            Some(format!("the processor calls itself {model}"))
        } else {
            known(&self.maker).map(|maker| format!("the firmware's maker is {maker}"))
        }
    }

    /// The CXL memory device of this name.
    pub fn memdev(&self, name: &str) -> Option<&cxl::Memdev> {
        let memdevs = &self.cxl.known()?.memdevs;
        memdevs.iter().find(|memdev| memdev.name == name)
    }

    /// The CXL region of a node, if it is known.
    pub fn region(&self, node: &cxl::CxlNode) -> Option<&cxl::Region> {
        let name = node.region.as_ref()?;
        let regions = &self.cxl.known()?.regions;
        regions.iter().find(|region| region.name == *name)
    }

    /// Whether this program may allocate on a node, as far as is known.
    pub fn may_use(&self, node: u32) -> bool {
        let allowed = self.allowed_nodes.known();
        allowed.is_none_or(|ids| ids.is_empty() || ids.contains(&node))
    }

    /// The nodes, or none if they are unknown.
    pub fn known_nodes(&self) -> &[Node] {
        self.nodes.known().map_or(&[], Vec::as_slice)
    }

    /// The hardware threads, or none if they are unknown.
    pub fn known_cpus(&self) -> &[Cpu] {
        self.cpus.known().map_or(&[], Vec::as_slice)
    }
}

/// Reads the machine below `root`. Never fails: something unreadable is a reason in the result.
pub fn discover(root: &Root) -> HostView {
    let cpus = processor::cpus(root);
    let nodes = node::nodes(root);
    let cxl = cxl::cxl(root, nodes.known().map_or(&[], Vec::as_slice));
    let first = cpus
        .known()
        .and_then(|cpus| cpus.iter().find(|c| c.allowed).or(cpus.first()));
    let mut view = HostView {
        live: root.is_live(),
        kernel: root.text("/proc/sys/kernel/osrelease"),
        processor: processor::processor(root),
        caches: match first {
            Some(cpu) => processor::caches(root, cpu),
            None => Reading::Absent(Unavailable::because("no processor is known")),
        },
        cpus,
        nodes,
        memory: node::machine_memory(root),
        allowed_nodes: processor::allowed(root, "Mems_allowed_list"),
        unmovable_nodes: root
            .text(&format!("{}/has_normal_memory", node::NODES))
            .and_then(|text| list::parse(&text)),
        cxl,
        memory_tiers: memory_tiers(root),
        interleave_weights: interleave_weights(root),
        demotion: root
            .text("/sys/kernel/mm/numa/demotion_enabled")
            .map(|text| matches!(text.as_str(), "true" | "1")),
        transparent_huge_pages: transparent_huge_pages(root),
        event_sources: root.list("/sys/bus/event_source/devices"),
        clock_source: root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        // The groups in it have names that their owners gave them, so they are not listed.
        resctrl: match (
            root.exists("/sys/fs/resctrl"),
            root.exists("/sys/fs/resctrl/schemata"),
        ) {
            (false, _) => Reading::Absent(Unavailable::because("there is no /sys/fs/resctrl")),
            (true, mounted) => Reading::Known(mounted),
        },
        allocations: root
            .list("/sys/fs/resctrl/info")
            .known()
            .into_iter()
            .flatten()
            .filter(|name| root.exists(&format!("/sys/fs/resctrl/info/{name}/num_closids")))
            .cloned()
            .collect(),
        maker: root.text("/sys/class/dmi/id/sys_vendor"),
        dsa: dsa::work_queue(root),
        page: page_size(root),
        probes: probes(root),
    };
    view.probes.prefetch = root.probe("prefetch", || {
        let cpu = view.known_cpus().iter().find(|cpu| cpu.allowed);
        let cpu = cpu.map_or(0, |cpu| cpu.id);
        Switches::find(root, &view.processor, cpu).map(|switches| switches.describe())
    });
    view
}

fn probes(root: &Root) -> Probes {
    Probes {
        core_pmu: root.probe("core_pmu", || {
            perf::probe_core().map(|()| "perf_event_open counts cycles".to_owned())
        }),
        placement: root.probe("placement", || {
            let policy = memory::Policy::probe();
            let works = || "mbind and move_pages work".to_owned();
            policy.availability().map(|()| works())
        }),
        pinning: root.probe("pinning", || {
            pin::allowed_cpus().map(|cpus| format!("{} CPUs may be chosen", cpus.len()))
        }),
        prefetch: None,
    }
}

/// A base page is 4 KiB unless the kernel of this program says otherwise.
fn page_size(root: &Root) -> Bytes {
    let asked = root.probe("page_bytes", || {
        // SAFETY: sysconf takes no pointers and has no preconditions.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Ok(bytes.to_string())
    });
    asked
        .and_then(Result::ok)
        .and_then(|bytes| bytes.parse().ok())
        .filter(|bytes: &u64| bytes.is_power_of_two())
        .map_or(Bytes::kib(4), Bytes)
}

fn memory_tiers(root: &Root) -> Reading<Vec<MemoryTier>> {
    let base = "/sys/devices/virtual/memory_tiering";
    root.numbered(base, "memory_tier").and_then(|tiers| {
        tiers
            .into_iter()
            .map(|(id, name)| {
                let nodes = root.text(&format!("{base}/{name}/nodelist"));
                Ok(MemoryTier {
                    id,
                    nodes: list::parse(nodes.get()?)?,
                })
            })
            .collect()
    })
}

fn interleave_weights(root: &Root) -> Reading<Vec<(u32, u32)>> {
    let base = "/sys/kernel/mm/mempolicy/weighted_interleave";
    root.numbered(base, "node").and_then(|nodes| {
        nodes
            .into_iter()
            .map(|(id, name)| Ok((id, *root.value(&format!("{base}/{name}")).get()?)))
            .collect()
    })
}

fn transparent_huge_pages(root: &Root) -> Reading<String> {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    // `always [madvise] never`
    root.text(path).and_then(|text| {
        let chosen = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        chosen.map(|(word, _)| word.to_owned()).ok_or_else(|| {
            Unavailable::because(format!("{path} says `{text}` and marks no choice"))
        })
    })
}

/// A hash of what results depend on: the processor, its caches, cores and nodes, and the kernel.
///
/// Sizes of memory are left out: those of a virtual machine change while it runs. A tier of storage counts if
/// one was named. Sixteen hexadecimal digits (64-bit FNV-1a: stable across versions, unlike the standard
/// library's hasher).
pub fn digest(view: &HostView, storage: Option<&Tier>) -> String {
    let mut text = fingerprint(view);
    if let Some(tier) = storage {
        text.push_str(&format!("\n{} {}", tier.name, tier.description));
    }
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn fingerprint(view: &HostView) -> String {
    let mut lines = vec![
        format!("processor {:?}", view.processor.model.known()),
        format!("flags {:?}", view.processor.flags.known()),
        format!(
            "clock {:?}",
            view.processor.clock.known().map(|c| Gigahertz::get(*c))
        ),
        format!("kernel {:?}", view.kernel.known()),
        format!("thp {:?}", view.transparent_huge_pages.known()),
    ];
    for cache in view.caches.known().into_iter().flatten() {
        lines.push(format!("cache {cache:?}"));
    }
    for cpu in view.known_cpus() {
        lines.push(format!("cpu {} {} {:?}", cpu.id, cpu.package, cpu.siblings));
    }
    for node in view.known_nodes() {
        let (cpus, distances) = (node.cpus.known(), node.distances.known());
        lines.push(format!("node {} {cpus:?} {distances:?}", node.id));
    }
    for cxl in view.cxl.known().map_or(&[][..], |cxl| &cxl.nodes) {
        lines.push(format!("cxl {} {:?}", cxl.node, cxl.memdevs));
    }
    lines.join("\n")
}
