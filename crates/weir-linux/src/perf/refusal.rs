//! Why the kernel does not count something, with advice.

use std::io;

use weir_model::capability::Unavailable;

use crate::root::Root;

/// Why a core's event could not be opened.
pub fn of_core(error: &io::Error) -> Unavailable {
    Unavailable::because(match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "perf_event_open knows no cycle counter: there is no core PMU".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => format!(
            "perf_event_open is not permitted ({error}): see /proc/sys/kernel/perf_event_paranoid"
        ),
        Some(libc::ENOSYS) => "the kernel has no perf_event_open".to_owned(),
        _ => format!("perf_event_open: {error}"),
    })
}

/// Why the kernel does not list the counters of cores, and what a virtual machine changes.
pub fn of_cores(root: &Root, why: Unavailable) -> Unavailable {
    if hypervised(root) {
        return Unavailable::because(format!(
            "{}: the hypervisor gives this guest no PMU",
            why.reason
        ));
    }
    why
}

fn hypervised(root: &Root) -> bool {
    let info = root.head("/proc/cpuinfo", 32 << 10);
    info.known().is_some_and(|text| {
        text.split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

/// Why an event of a unit could not be opened.
pub fn of_event(root: &Root, unit: &str, error: &io::Error) -> Unavailable {
    Unavailable::because(match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let level = root.text("/proc/sys/kernel/perf_event_paranoid");
            let level = level.known().map_or("unknown", String::as_str);
            format!(
                "the kernel does not permit it (perf_event_paranoid is {level}): run as root, with \
                 CAP_PERFMON, or lower it"
            )
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) if hypervised(root) => {
            format!("{unit} has no such counter: the hypervisor gives this guest no PMU")
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            format!("{unit} has no such counter ({error})")
        }
        Some(libc::EINVAL) => format!(
            "{unit} does not take this encoding, or not together with the others of its group ({error})"
        ),
        Some(libc::EBUSY) => format!("{unit} is held by another program ({error})"),
        Some(libc::EMFILE | libc::ENFILE) => {
            format!("too many open files ({error}): raise `ulimit -n`")
        }
        Some(libc::ESRCH) => "there is no such task".to_owned(),
        Some(libc::ENOSYS) => "the kernel has no perf_event_open".to_owned(),
        _ => format!("perf_event_open: {error}"),
    })
}
