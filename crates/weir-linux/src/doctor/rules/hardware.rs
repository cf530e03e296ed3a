//! Automatic behaviour of the hardware: clocks, sleep states, shared cores, links.

use weir_model::diagnosis::Severity::{Minor, Severe, Spoils};

use super::super::look::{Look, Verdict, fine, measurement};
use crate::root::Reading;

const CPU: &str = "/sys/devices/system/cpu";
const CXL: &str = "/sys/bus/cxl/devices";

pub(super) fn virtual_machine(look: &Look) -> Verdict {
    look.view.processor.flags.get()?;
    let Some(evidence) = look.view.hypervisor() else {
        return fine();
    };
    measurement(Spoils, "this is a virtual machine")
        .shown_by("/proc/cpuinfo", evidence)
        .so("neighbours on the same host disturb timing, and nested page tables lengthen page walks")
        .or("measure on the host itself; here, compare figures of one run only")
        .alone()
}

/// QEMU's device is Intel's number 0x0d93, which no hardware has.
pub(super) fn emulated_cxl(look: &Look) -> Verdict {
    let Some(cxl) = look.view.cxl.known() else {
        return fine();
    };
    let emulated = look.view.hypervisor().filter(|why| why.contains("QEMU"));
    let mut found = Vec::new();
    for memdev in &cxl.memdevs {
        let target = look.root.target(&format!("{CXL}/{}", memdev.name));
        let function = target.known().and_then(|path| path.parent());
        let path = function.map_or(String::new(), |f| format!("{}/device", f.display()));
        let says = match (look.root.text(&path), &emulated) {
            (Reading::Known(id), _) if id == "0x0d93" => (path, id),
            (_, Some(why)) => ("/proc/cpuinfo".to_owned(), why.clone()),
            _ => continue,
        };
        found.push(
            measurement(Severe, format!("an emulator provides {}", memdev.name))
                .shown_by(says.0, says.1)
                .so("its latency and bandwidth are those of the emulator: results are functional only")
                .or("use it to try commands and placement; measure on hardware, or simulate one with --on PLATFORM"),
        );
    }
    Ok(found)
}

pub(super) fn invariant_tsc(look: &Look) -> Verdict {
    let flags = look.view.processor.flags.get()?;
    // Arm's generic timer always ticks at one rate.
    if flags.contains("asimd") {
        return fine();
    }
    let missing = ["constant_tsc", "nonstop_tsc"];
    let missing: Vec<&str> = missing
        .into_iter()
        .filter(|f| !flags.contains(*f))
        .collect();
    if missing.is_empty() {
        return fine();
    }
    measurement(
        Spoils,
        "the time-stamp counter has no guaranteed constant rate",
    )
    .shown_by("/proc/cpuinfo", format!("no flag {}", missing.join(" ")))
    .so("single accesses are timed with a system call's clock, to about 20 ns")
    .or(if look.view.is_virtual() {
        "let the hypervisor pass the flags through (QEMU: -cpu host,+invtsc)"
    } else {
        "no command helps; chases and bandwidth are not affected"
    })
    .alone()
}

pub(super) fn clock_source(look: &Look) -> Verdict {
    let base = "/sys/devices/system/clocksource/clocksource0";
    let current = format!("{base}/current_clocksource");
    let Some(source) = look.text(&current)? else {
        return fine();
    };
    let others = look
        .text(&format!("{base}/available_clocksource"))?
        .unwrap_or_default();
    let has_tsc = others.split_ascii_whitespace().any(|name| name == "tsc");
    if matches!(source.as_str(), "tsc" | "arch_sys_counter" | "kvm-clock") {
        return fine();
    }
    let found = measurement(Minor, format!("the kernel's clock source is {source}"))
        .shown_by(&current, &source)
        .so("reading the clock takes a device access, about a microsecond");
    if has_tsc {
        found.run(format!("echo tsc > {current}")).alone()
    } else {
        found
            .or("the kernel found the TSC unstable; dmesg says why")
            .alone()
    }
}

pub(super) fn smt(look: &Look) -> Verdict {
    let path = format!("{CPU}/smt/active");
    if look.value::<u32>(&path)? != Some(1) {
        return fine();
    }
    measurement(Spoils, "two hardware threads share each core")
        .shown_by(path, 1)
        .so("work on the sibling uses buffers and cache of the measured core; Weir uses one thread of each core, other programs may not")
        .run(format!("echo off > {CPU}/smt/control"))
        .alone()
}

pub(super) fn governor(look: &Look) -> Verdict {
    let policies = look.root.numbered(&format!("{CPU}/cpufreq"), "policy");
    let mut found = Vec::new();
    for (_, name) in policies.known().into_iter().flatten() {
        let path = format!("{CPU}/cpufreq/{name}/scaling_governor");
        if let Some(governor) = look.text(&path)?.filter(|g| g != "performance") {
            found.push((path, governor));
        }
    }
    let Some((path, governor)) = found.first() else {
        return fine();
    };
    measurement(Spoils, format!("{} cores run under the governor {governor}", found.len()))
        .shown_by(path, governor)
        .so("the first milliseconds of a run are slower than the rest, and latency in ns follows the load")
        .run(format!("echo performance | tee {CPU}/cpufreq/policy*/scaling_governor"))
        .alone()
}

pub(super) fn turbo(look: &Look) -> Verdict {
    for (file, on, off) in [("intel_pstate/no_turbo", 0, 1), ("cpufreq/boost", 1, 0)] {
        let path = format!("{CPU}/{file}");
        if look.value::<u32>(&path)? == Some(on) {
            return measurement(Minor, "cores may run above their base frequency")
                .shown_by(&path, on)
                .so("one thread runs at another clock than many: scaling with threads is not only an effect of memory")
                .run(format!("echo {off} > {path}"))
                .alone();
        }
    }
    fine()
}

pub(super) fn uncore_clock(look: &Look) -> Verdict {
    let base = format!("{CPU}/intel_uncore_frequency");
    let dies = look.root.list(&base);
    let Some(die) = dies.known().and_then(|names| names.first()) else {
        return fine();
    };
    let path = |file: &str| format!("{base}/{die}/{file}");
    let least = look.value::<u64>(&path("min_freq_khz"))?;
    let most = look.value::<u64>(&path("max_freq_khz"))?;
    let (Some(least), Some(most)) = (least, most) else {
        return fine();
    };
    if least == most {
        return fine();
    }
    measurement(
        Minor,
        "the mesh and the last-level cache change their clock with load",
    )
    .shown_by(path("min_freq_khz"), least)
    .shown_by(path("max_freq_khz"), most)
    .so("idle latency includes a slow mesh, loaded latency a fast one")
    .run(format!("echo {most} | tee {base}/*/min_freq_khz"))
    .alone()
}

/// A state that takes longer to leave than a page fault takes delays a thread that wakes.
const LONG_EXIT_US: u64 = 20;

pub(super) fn deep_idle(look: &Look) -> Verdict {
    let base = format!("{CPU}/cpu0/cpuidle");
    let states = look.root.numbered(&base, "state");
    let mut deep = Vec::new();
    for (_, state) in states.known().into_iter().flatten() {
        let disabled = look.value::<u32>(&format!("{base}/{state}/disable"))?;
        let path = format!("{base}/{state}/latency");
        let exit = look.value::<u64>(&path)?;
        if let Some(exit) = exit.filter(|&us| us > LONG_EXIT_US && disabled != Some(1)) {
            let name = look.text(&format!("{base}/{state}/name"))?;
            deep.push((path, exit, name.unwrap_or(state.clone())));
        }
    }
    let Some((path, exit, _)) = deep.last() else {
        return fine();
    };
    let names: Vec<&str> = deep.iter().map(|(_, _, name)| name.as_str()).collect();
    measurement(Minor, format!("cores may sleep in {}", names.join(", ")))
        .shown_by(path, format!("{exit} us"))
        .so("a waiting core wakes late; busy loops are not affected")
        .run(format!("cpupower idle-set -D {LONG_EXIT_US}"))
        .alone()
}

pub(super) fn cxl_link(look: &Look) -> Verdict {
    let Some(cxl) = look.view.cxl.known() else {
        return fine();
    };
    let mut found = Vec::new();
    for memdev in &cxl.memdevs {
        let target = look.root.target(&format!("{CXL}/{}", memdev.name));
        let Some(function) = target.known().and_then(|path| path.parent()) else {
            continue;
        };
        for what in ["speed", "width"] {
            let now = format!("{}/current_link_{what}", function.display());
            let best = format!("{}/max_link_{what}", function.display());
            let (Some(now_says), Some(best_says)) = (look.text(&now)?, look.text(&best)?) else {
                continue;
            };
            let number = |text: &str| {
                let number = text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
                number.filter(|&n| n > 0.0)
            };
            let (Some(a), Some(b)) = (number(&now_says), number(&best_says)) else {
                continue;
            };
            if a < b {
                found.push(
                    measurement(Severe, format!("the link of {} trained below its best", memdev.name))
                        .shown_by(now, now_says)
                        .shown_by(best, best_says)
                        .so("bandwidth is a fraction of what the card can do, and latency is longer")
                        .or("check slot, bifurcation in the firmware's setup, cable and riser; then reboot"),
                );
            }
        }
    }
    Ok(found)
}
