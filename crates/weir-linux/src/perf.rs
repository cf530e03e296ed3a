//! Whether the kernel lets this program count events.

use std::io;

use weir_model::capability::Unavailable;

const TYPE_HARDWARE: u32 = 0;
const COUNT_CPU_CYCLES: u64 = 0;
/// `disabled`, `exclude_kernel`, `exclude_hv`: bits 0, 5 and 6 of the attribute's flags.
const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;

/// The first published form of `perf_event_attr` (PERF_ATTR_SIZE_VER0), enough for one counter.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// Tries to open a cycle counter of this thread, and closes it again.
///
/// # Errors
/// Why the kernel refused.
pub fn probe_core() -> Result<(), Unavailable> {
    let attributes = Attributes {
        kind: TYPE_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: COUNT_CPU_CYCLES,
        period: 0,
        sample: 0,
        read_format: 0,
        flags: FLAGS,
        wakeup: 0,
        breakpoint: 0,
        address: 0,
    };
    // SAFETY: the pointer is to an attribute block of the size that it states; the call keeps no
    // reference to it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1,
            -1,
            0,
        )
    };
    if fd >= 0 {
        // SAFETY: the descriptor was just opened here and is used nowhere else.
        unsafe { libc::close(fd as i32) };
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let reason = match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "perf_event_open knows no cycle counter: there is no core PMU".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => format!(
            "perf_event_open is not permitted ({error}): see /proc/sys/kernel/perf_event_paranoid"
        ),
        Some(libc::ENOSYS) => "the kernel has no perf_event_open".to_owned(),
        _ => format!("perf_event_open: {error}"),
    };
    Err(Unavailable::because(reason))
}
