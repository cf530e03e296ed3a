//! Processors: model, flags, cores and their hardware threads, sockets, caches.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weir_model::capability::Unavailable;
use weir_model::topology::CacheLevel;
use weir_model::units::{Bytes, Gigahertz};

use super::list;
use crate::root::{Reading, Root};

/// Enough for the first processor's block, with the longest known list of flags.
const CPUINFO_HEAD: u64 = 32 << 10;

/// The kind of this processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Processor {
    /// Its own name, or its family and part numbers.
    pub model: Reading<String>,
    /// `GenuineIntel`, `AuthenticAMD`; absent on Arm.
    pub vendor: Reading<String>,
    /// The flags (x86) or features (Arm) of the first processor.
    pub flags: Reading<BTreeSet<String>>,
    /// Core clock: the base frequency if the kernel states it, else the highest.
    pub clock: Reading<Gigahertz>,
}

impl Processor {
    /// Whether the processor has a flag; false if the flags are unknown.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.known().is_some_and(|flags| flags.contains(flag))
    }
}

/// One hardware thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Linux's number.
    pub id: u32,
    /// The socket.
    pub package: u32,
    /// The hardware threads of its core, itself included.
    pub siblings: Vec<u32>,
    /// Whether this program may run on it.
    pub allowed: bool,
}

/// Reads model, flags and clock.
pub fn processor(root: &Root) -> Processor {
    let info = root.head("/proc/cpuinfo", CPUINFO_HEAD).map(first_block);
    let field = |names: &[&str]| {
        info.clone().and_then(|fields| {
            names
                .iter()
                .find_map(|&name| fields.get(name).cloned())
                .ok_or_else(|| Unavailable::because(format!("/proc/cpuinfo has no `{}`", names[0])))
        })
    };
    Processor {
        model: match field(&["model name", "Model Name", "cpu model"]) {
            Reading::Unreadable(why) => field(&["CPU part"])
                .map(|part| {
                    let maker = field(&["CPU implementer"]);
                    format!(
                        "implementer {}, part {part}",
                        maker.known().map_or("unknown", String::as_str)
                    )
                })
                .and_then(|name| if name.is_empty() { Err(why) } else { Ok(name) }),
            other => other,
        },
        vendor: field(&["vendor_id"]),
        flags: field(&["flags", "Features"])
            .map(|flags| flags.split_ascii_whitespace().map(str::to_owned).collect()),
        clock: clock(root, field(&["cpu MHz"])),
    }
}

fn first_block(text: String) -> BTreeMap<String, String> {
    text.lines()
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

fn clock(root: &Root, cpuinfo: Reading<String>) -> Reading<Gigahertz> {
    let frequency = |name: &str| {
        root.value::<f64>(&format!("/sys/devices/system/cpu/cpu0/cpufreq/{name}"))
            .map(|khz| Gigahertz(khz / 1e6))
    };
    for name in ["base_frequency", "cpuinfo_max_freq"] {
        let found = frequency(name);
        if found.known().is_some() {
            return found;
        }
    }
    cpuinfo.and_then(|mhz| match mhz.parse::<f64>() {
        Ok(mhz) if mhz > 0.0 && mhz.is_finite() => Ok(Gigahertz((mhz / 10.0).round() / 100.0)),
        _ => Err(Unavailable::because(format!(
            "/proc/cpuinfo gives `{mhz}` as the clock"
        ))),
    })
}

/// Reads the hardware threads that are online.
pub fn cpus(root: &Root) -> Reading<Vec<Cpu>> {
    let base = "/sys/devices/system/cpu";
    let allowed = allowed(root, "Cpus_allowed_list");
    let online = match root.text(&format!("{base}/online")).and_then(nonempty) {
        Reading::Known(ids) => ids,
        // The fallback list: processors that this program may use.
        failed => match allowed.known() {
            Some(ids) if !ids.is_empty() => ids.clone(),
            _ => return failed.map(|_| Vec::new()),
        },
    };
    Reading::Known(
        online
            .into_iter()
            .map(|id| {
                let topology = format!("{base}/cpu{id}/topology");
                let siblings = root
                    .text(&format!("{topology}/thread_siblings_list"))
                    .and_then(nonempty);
                Cpu {
                    id,
                    // A kernel that hides the package says -1; both mean a single package.
                    package: root
                        .value::<u32>(&format!("{topology}/physical_package_id"))
                        .known()
                        .copied()
                        .unwrap_or(0),
                    siblings: siblings.known().cloned().unwrap_or_else(|| vec![id]),
                    allowed: allowed.known().is_none_or(|ids| ids.contains(&id)),
                }
            })
            .collect(),
    )
}

/// What this process may use, from `/proc/self/status`: `Cpus_allowed_list`, `Mems_allowed_list`.
pub fn allowed(root: &Root, key: &str) -> Reading<Vec<u32>> {
    root.text("/proc/self/status").and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        match line {
            Some(numbers) => list::parse(numbers),
            None => Err(Unavailable::because(format!(
                "/proc/self/status has no {key}"
            ))),
        }
    })
}

fn nonempty(text: String) -> Result<Vec<u32>, Unavailable> {
    match list::parse(&text)? {
        numbers if numbers.is_empty() => Err(Unavailable::because("the list is empty")),
        numbers => Ok(numbers),
    }
}

/// Reads the data caches that one hardware thread sees, nearest first.
pub fn caches(root: &Root, cpu: &Cpu) -> Reading<Vec<CacheLevel>> {
    let base = format!("/sys/devices/system/cpu/cpu{}/cache", cpu.id);
    let threads = u32::try_from(cpu.siblings.len()).unwrap_or(1).max(1);
    root.numbered(&base, "index").and_then(|indices| {
        let mut levels: Vec<(u32, CacheLevel)> = Vec::new();
        for (_, index) in indices {
            let path = format!("{base}/{index}");
            let kind = root.text(&format!("{path}/type")).get().cloned()?;
            if kind == "Instruction" {
                continue;
            }
            let level: u32 = *root.value(&format!("{path}/level")).get()?;
            let size: Bytes = *root.value(&format!("{path}/size")).get()?;
            let shared = root
                .text(&format!("{path}/shared_cpu_list"))
                .and_then(nonempty);
            let sharers = shared.known().map_or(1, Vec::len);
            let suffix = if level == 1 { "d" } else { "" };
            levels.push((
                level,
                CacheLevel {
                    name: format!("L{level}{suffix}"),
                    size,
                    ways: root
                        .value(&format!("{path}/ways_of_associativity"))
                        .known()
                        .copied()
                        .filter(|&ways| ways > 0),
                    shared_by: u32::try_from(sharers).unwrap_or(u32::MAX).div_ceil(threads),
                },
            ));
        }
        levels.sort_by_key(|&(level, _)| level);
        Ok(levels.into_iter().map(|(_, cache)| cache).collect())
    })
}
