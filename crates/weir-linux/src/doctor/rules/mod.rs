//! The rules: each reads a few files, and says what is wrong with them, what that spoils, and which command
//! fixes it. Sources are the kernel's documents (`Documentation/admin-guide/mm`, `admin-guide/pm`,
//! `ABI/testing/sysfs-bus-cxl`, `filesystems/resctrl`, `sysctl`).

mod cxl;
mod hardware;
mod software;
mod tiering;

use super::look::{Look, Verdict};

/// One rule.
pub struct Rule {
    /// Its stable name.
    pub name: &'static str,
    /// What it examines, in one line.
    pub about: &'static str,
    /// The function that examines.
    pub judge: fn(&Look) -> Verdict,
}

macro_rules! rules {
    ($($group:ident::$name:ident: $about:literal),+ $(,)?) => {
        /// Every rule: first what spoils measurements, then what spoils tiering.
        pub const RULES: &[Rule] = &[
            $(Rule { name: stringify!($name), about: $about, judge: $group::$name }),+
        ];
    };
}

rules! {
    hardware::virtual_machine: "a hypervisor below the kernel",
    hardware::emulated_cxl: "CXL devices of an emulator",
    hardware::invariant_tsc: "a time-stamp counter that ticks at one rate",
    hardware::clock_source: "the clock source of the kernel",
    hardware::smt: "hardware threads that share a core",
    hardware::governor: "cores that change their clock with load",
    hardware::turbo: "clocks above the base frequency",
    hardware::uncore_clock: "a mesh that changes its clock with load",
    hardware::deep_idle: "sleep states that take long to leave",
    software::huge_pages: "transparent huge pages",
    software::numa_balancing: "sampling of pages by hint faults",
    software::same_page_merging: "merging of equal pages (KSM)",
    tiering::zone_reclaim: "reclaim on a node before other nodes are used",
    tiering::swap: "swap areas",
    software::nmi_watchdog: "a counter that the watchdog uses",
    software::other_load: "other programs that run now",
    software::confinement: "processors and nodes that this program may not use",
    software::counters: "permission to count events",
    software::registers: "permission to switch prefetchers",
    software::nice: "permission to move pages of other programs",
    software::resctrl: "cache and bandwidth allocation",
    cxl::cxl_no_region: "CXL devices that serve no addresses",
    cxl::cxl_not_memory: "CXL memory that is not system memory",
    hardware::cxl_link: "CXL links that trained below their best",
    cxl::blocks_offline: "memory blocks of slower tiers that are offline",
    cxl::not_movable: "slower tiers that hold kernel pages",
    cxl::auto_online: "the state of added memory",
    tiering::one_memory_tier: "the kernel's ranking of its nodes",
    tiering::demotion: "moving cold pages down",
    tiering::promotion: "moving hot pages up",
    tiering::weighted_interleave: "interleaving by weight",
}
