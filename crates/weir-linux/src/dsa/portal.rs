//! The page of the device that accepts descriptors.

use std::arch::asm;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use weir_model::capability::Feature;
use weir_model::machine::MachineError;

use super::WorkQueue;
use super::descriptor::Descriptor;
use crate::root::Root;

const PORTAL_BYTES: usize = 4096;

/// A work queue's portal, mapped for writing.
pub(super) struct Portal {
    page: NonNull<u8>,
    shared: bool,
}

// SAFETY: the page is a device's that takes whole descriptors from any thread; a portal is the only
// owner of its mapping.
unsafe impl Send for Portal {}

impl Portal {
    pub fn open(root: &Root, queue: &WorkQueue) -> Result<Self, MachineError> {
        let path = queue.device();
        let missing = |call: &str, e: &std::io::Error| MachineError::Missing {
            feature: Feature::Dsa,
            reason: format!(
                "{call} {path}: {e}; it must be this user's, and some kernels want CAP_SYS_RAWIO"
            ),
        };
        let file = root.open(&path, true).map_err(|e| missing("opening", &e))?;
        // SAFETY: a new shared mapping at an address of the kernel's choice touches nothing else.
        // It outlives the file, and is never read.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PORTAL_BYTES,
                libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(missing("mapping", &std::io::Error::last_os_error()));
        }
        NonNull::new(page.cast())
            .map(|page| Self {
                page,
                shared: queue.shared,
            })
            .ok_or_else(|| MachineError::System {
                what: format!("mapping {path}"),
                cause: "it is at address 0".into(),
            })
    }

    /// Submits a descriptor; `false` if a shared queue is full. A dedicated queue must have space, and gives
    /// no answer.
    ///
    /// # Safety
    /// The memory that the descriptor names stays in place and is not used otherwise until its completion
    /// record says that it is done.
    pub unsafe fn submit(&self, descriptor: &Descriptor) -> bool {
        let mut refused: u8 = 0;
        // SAFETY: the page is mapped for writing, aligned to 64 bytes, and the descriptor is whole.
        // A processor with a work queue has both instructions; what a descriptor makes the device
        // do is the caller's promise. The fence makes older stores visible to the device first.
        unsafe {
            if self.shared {
                asm!(
                    "sfence",
                    "enqcmd {to}, [{from}]",
                    "setz {refused}",
                    to = in(reg) self.page.as_ptr(),
                    from = in(reg) std::ptr::from_ref(descriptor),
                    refused = inout(reg_byte) refused,
                    options(nostack)
                );
            } else {
                asm!(
                    "sfence",
                    "movdir64b {to}, [{from}]",
                    to = in(reg) self.page.as_ptr(),
                    from = in(reg) std::ptr::from_ref(descriptor),
                    options(nostack, preserves_flags)
                );
            }
        }
        refused == 0
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and nothing else refers to it.
        unsafe { libc::munmap(self.page.as_ptr().cast(), PORTAL_BYTES) };
    }
}
