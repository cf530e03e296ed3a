//! The activity of the kernel and of other programs, and the permissions of this program.

use weir_model::capability::Feature;
use weir_model::diagnosis::Severity::{Minor, Severe, Spoils};
use weir_model::diagnosis::Spoils::{Measurement, Tiering};

use super::super::look::{Look, Verdict, fine, measurement, tiering};
use crate::root::Reading;
use crate::topology::list;

pub(super) fn huge_pages(look: &Look) -> Verdict {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    match look.choice(path)?.as_deref() {
        Some("never") => measurement(Spoils, "transparent huge pages are off")
            .shown_by(path, "never")
            .so("every latency of a large working set includes page walks: tens of ns")
            .run(format!("echo madvise > {path}"))
            .alone(),
        Some("always") => measurement(Minor, "the kernel gives huge pages to every program")
            .shown_by(path, "always")
            .so("khugepaged copies pages during measurements, and 4 KiB figures of other tools are figures of 2 MiB pages")
            .run(format!("echo madvise > {path}"))
            .alone(),
        _ => fine(),
    }
}

pub(super) fn numa_balancing(look: &Look) -> Verdict {
    let path = "/proc/sys/kernel/numa_balancing";
    let Some(mode) = look.value::<u32>(path)?.filter(|&mode| mode != 0) else {
        return fine();
    };
    let nodes = look.view.known_nodes().iter();
    if nodes.filter(|n| n.has_memory()).count() < 2 {
        return fine();
    }
    measurement(Spoils, "the kernel unmaps pages to find their users, and moves them")
        .shown_by(path, mode)
        .so("hint faults of about a microsecond are in the tail, and pages leave the tier under test; Weir binds its own pages, other tools may not")
        .run("sysctl kernel.numa_balancing=0")
        .alone()
}

pub(super) fn same_page_merging(look: &Look) -> Verdict {
    let path = "/sys/kernel/mm/ksm/run";
    if look.value::<u32>(path)? != Some(1) {
        return fine();
    }
    measurement(Minor, "the kernel looks for equal pages to merge")
        .shown_by(path, 1)
        .so("ksmd reads memory during measurements")
        .run(format!("echo 0 > {path}"))
        .alone()
}

pub(super) fn nmi_watchdog(look: &Look) -> Verdict {
    let path = "/proc/sys/kernel/nmi_watchdog";
    if look.value::<u32>(path)? != Some(1) {
        return fine();
    }
    measurement(Minor, "the watchdog uses one counter of every core")
        .shown_by(path, 1)
        .so("one event fewer can be counted at a time, and multiplexed counts are estimates")
        .run("sysctl kernel.nmi_watchdog=0")
        .alone()
}

/// One busy core is this program or a shell; more are other programs.
pub(super) fn other_load(look: &Look) -> Verdict {
    let path = "/proc/loadavg";
    let Some(text) = look.text(path)? else {
        return fine();
    };
    let load: Option<f64> = text.split(' ').next().and_then(|n| n.parse().ok());
    let waiting = look.text("/proc/pressure/cpu")?.and_then(|text| {
        let number = text.split("avg10=").nth(1)?.split(' ').next()?;
        number.parse::<f64>().ok()
    });
    if load.is_none_or(|load| load < 1.0) && waiting.is_none_or(|share| share < 1.0) {
        return fine();
    }
    let mut found = measurement(Spoils, "other programs are running")
        .shown_by(path, load.map_or("?".to_owned(), |load| format!("{load}")));
    if let Some(share) = waiting {
        let says = format!("in {share} % of the last 10 s a task waited for a processor");
        found = found.shown_by("/proc/pressure/cpu", says);
    }
    found
        .so("they take cores, cache and bandwidth, and figures differ from run to run")
        .or("top -o %CPU tells which; stop them, or measure later")
        .alone()
}

pub(super) fn confinement(look: &Look) -> Verdict {
    let path = "/proc/self/status";
    let cpus = look.view.cpus.get()?;
    let barred: Vec<u32> = cpus.iter().filter(|c| !c.allowed).map(|c| c.id).collect();
    let nodes = look.view.known_nodes().iter().filter(|n| n.has_memory());
    let allowed = look.view.allowed_nodes.known();
    let closed: Vec<u32> = nodes
        .map(|n| n.id)
        .filter(|id| allowed.is_some_and(|ids| !ids.is_empty() && !ids.contains(id)))
        .collect();
    let mut found = Vec::new();
    let mend = "run outside of the cpuset, or widen it (cgroup v2: cpuset.cpus and cpuset.mems of the group and those above it)";
    if !barred.is_empty() {
        let says = format!("Cpus_allowed_list leaves out {}", list::format(&barred));
        found.push(
            measurement(
                Minor,
                format!("this program may not run on {} processors", barred.len()),
            )
            .shown_by(path, says)
            .so("scaling with threads ends early")
            .or(mend),
        );
    }
    if !closed.is_empty() {
        let says = format!("Mems_allowed_list leaves out {}", list::format(&closed));
        found.push(
            tiering(
                Severe,
                format!(
                    "this program may not allocate on node {}",
                    list::format(&closed)
                ),
            )
            .shown_by(path, says)
            .so("these tiers can be neither measured nor used")
            .or(mend),
        );
    }
    Ok(found)
}

/// The kernel's event sources.
const EVENTS: &str = "/sys/bus/event_source/devices";
const ELSEWHERE: &str =
    "none on this machine: measure on another one, or on a model (--on PLATFORM)";

const CAP_SYS_RAWIO: u32 = 17;
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;

pub(super) fn counters(look: &Look) -> Verdict {
    let path = "/proc/sys/kernel/perf_event_paranoid";
    let level = look.value::<i32>(path)?;
    let Some(level) = level.filter(|&l| l > 0 && look.has_privilege(CAP_PERFMON) != Some(true))
    else {
        let mut found = look.lack(Feature::CorePmu, Measurement, EVENTS, ELSEWHERE)?;
        found.extend(look.lack(Feature::UncorePmu, Measurement, EVENTS, ELSEWHERE)?);
        return Ok(found);
    };
    measurement(
        Minor,
        "events of the uncore and of other programs may not be counted",
    )
    .shown_by(path, level)
    .so("no traffic per tier and no queue residency: interference cannot be located")
    .run("sysctl kernel.perf_event_paranoid=0")
    .or("or give the program CAP_PERFMON: setcap cap_perfmon+ep $(command -v weir)")
    .alone()
}

pub(super) fn registers(look: &Look) -> Verdict {
    let vendor = look
        .view
        .processor
        .vendor
        .known()
        .map_or("", String::as_str);
    if look.view.is_virtual() || !["GenuineIntel", "AuthenticAMD"].contains(&vendor) {
        return look.lack(
            Feature::PrefetchControl,
            Measurement,
            "/dev/cpu/0/msr",
            ELSEWHERE,
        );
    }
    let path = "/dev/cpu/0/msr";
    let found = measurement(Minor, "this program cannot write the registers that switch prefetchers")
        .so("sequential figures include the hardware prefetchers; chases go in random order, so they hardly do");
    match look.root.opens(path) {
        Reading::Known(()) if look.has_privilege(CAP_SYS_RAWIO) != Some(false) => fine(),
        Reading::Absent(why) => found.shown_by(path, why.reason).run("modprobe msr").alone(),
        Reading::Known(()) => found
            .shown_by("/proc/self/status", "CapEff lacks CAP_SYS_RAWIO")
            .or("run as root")
            .alone(),
        Reading::Unreadable(why) => found.shown_by(path, why.reason).or("run as root").alone(),
    }
}

pub(super) fn nice(look: &Look) -> Verdict {
    if look.has_privilege(CAP_SYS_NICE) != Some(false) {
        return fine();
    }
    tiering(
        Minor,
        "pages that programs share, or that belong to others, may not be moved",
    )
    .shown_by("/proc/self/status", "CapEff lacks CAP_SYS_NICE")
    .so("only the program's own pages can be placed and located")
    .run("setcap cap_sys_nice+ep $(command -v weir)")
    .alone()
}

pub(super) fn resctrl(look: &Look) -> Verdict {
    let flags = ["cat_l3", "cat_l2", "mba", "rdt_a"];
    let Some(flag) = flags.iter().find(|flag| look.view.processor.has(flag)) else {
        return look.lack(
            Feature::Resctrl,
            Tiering,
            "/proc/cpuinfo",
            "limits by cores and processor time remain",
        );
    };
    let path = "/sys/fs/resctrl";
    match look.view.resctrl {
        Reading::Known(true) => fine(),
        Reading::Known(false) => tiering(Minor, "cache and bandwidth allocation is not mounted")
            .shown_by("/proc/cpuinfo", format!("flag {flag}"))
            .shown_by(path, "no schemata")
            .so("tenants cannot be given cache ways or bandwidth")
            .run(format!("mount -t resctrl resctrl {path}"))
            .alone(),
        _ => tiering(
            Minor,
            "the kernel was built without cache and bandwidth allocation",
        )
        .shown_by("/proc/cpuinfo", format!("flag {flag}"))
        .shown_by(path, "absent")
        .so("tenants cannot be given cache ways or bandwidth")
        .or("boot a kernel with CONFIG_X86_CPU_RESCTRL")
        .alone(),
    }
}
