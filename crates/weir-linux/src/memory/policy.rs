//! The kernel's calls for placing pages and for asking where they are.

use std::io;
use std::ptr;

use weir_model::capability::Unavailable;

/// Enough bits for any Linux: the kernel's own limit is 1024 nodes.
const WORDS: usize = 1024 / 64;

const MPOL_BIND: libc::c_int = 2;

/// Pages asked about in one call.
const BATCH: usize = 4096;

/// Whether the kernel lets this program place pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(Result<(), Unavailable>);

impl Policy {
    /// Asks the kernel.
    pub fn probe() -> Self {
        let byte = 1u8;
        let page = super::base_page();
        let aligned = (&raw const byte).map_addr(|a| a & !(page - 1)).cast_mut();
        let probed = ThreadPolicy::save()
            .map_err(|e| ("get_mempolicy", e))
            .and_then(|_| nodes_of(aligned, 1, page).map_err(|e| ("move_pages", e)));
        Self(match probed {
            Ok(_) => Ok(()),
            Err((call, e)) if e.raw_os_error() == Some(libc::ENOSYS) => Err(Unavailable::because(
                format!("the kernel has no {call} (CONFIG_NUMA, CONFIG_MIGRATION)"),
            )),
            Err((call, e)) => Err(Unavailable::because(format!("{call}: {e}"))),
        })
    }

    /// A kernel that refuses, for this reason.
    pub fn denied(why: Unavailable) -> Self {
        Self(Err(why))
    }

    /// Whether pages can be placed.
    ///
    /// # Errors
    /// Why not.
    pub fn availability(&self) -> Result<(), Unavailable> {
        self.0.clone()
    }
}

fn mask(nodes: &[u32]) -> io::Result<[u64; WORDS]> {
    let mut mask = [0u64; WORDS];
    for &node in nodes {
        let word = mask
            .get_mut(node as usize / 64)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (node % 64);
    }
    Ok(mask)
}

/// The kernel reads one bit less than it is told.
const MASK_BITS: usize = WORDS * 64 + 1;

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Binds the pages of a range that do not exist yet to nodes; those that exist stay.
pub(super) fn bind(start: *mut u8, bytes: usize, nodes: &[u32]) -> io::Result<()> {
    let mask = mask(nodes)?;
    // SAFETY: the kernel reads the mask and changes the policy of the range, not its content.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start,
            bytes,
            MPOL_BIND,
            mask.as_ptr(),
            MASK_BITS,
            0,
        )
    })
}

/// The node of each of `count` pages, or a negative error number.
pub(super) fn nodes_of(start: *mut u8, count: usize, page: usize) -> io::Result<Vec<i32>> {
    let mut status = vec![-libc::ENOENT; count];
    let mut addresses = Vec::with_capacity(BATCH);
    for (batch, found) in status.chunks_mut(BATCH).enumerate() {
        addresses.clear();
        addresses.extend((0..found.len()).map(|i| start.wrapping_add((batch * BATCH + i) * page)));
        // SAFETY: without a list of target nodes the call moves nothing; it reads `found.len()`
        // addresses and writes as many numbers.
        checked(unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                found.len(),
                addresses.as_ptr(),
                ptr::null::<libc::c_int>(),
                found.as_mut_ptr(),
                0,
            )
        })?;
    }
    Ok(status)
}

/// The calling thread's policy, put back when dropped.
pub(super) struct ThreadPolicy {
    mode: libc::c_int,
    nodes: [u64; WORDS],
}

impl ThreadPolicy {
    pub(super) fn save() -> io::Result<Self> {
        let mut saved = Self {
            mode: 0,
            nodes: [0; WORDS],
        };
        // SAFETY: the kernel writes one integer and at most the stated number of bits.
        checked(unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut saved.mode,
                saved.nodes.as_mut_ptr(),
                WORDS * 64,
                ptr::null::<u8>(),
                0,
            )
        })?;
        Ok(saved)
    }

    pub(super) fn bind(&mut self, node: u32) -> io::Result<()> {
        set(MPOL_BIND, &mask(&[node])?)
    }
}

impl Drop for ThreadPolicy {
    fn drop(&mut self) {
        // What was in force before cannot be refused now, short of a changed cpuset.
        let _ = set(self.mode, &self.nodes);
    }
}

fn set(mode: libc::c_int, nodes: &[u64; WORDS]) -> io::Result<()> {
    let empty = nodes.iter().all(|&word| word == 0);
    let (pointer, bits) = if empty {
        (ptr::null(), 0)
    } else {
        (nodes.as_ptr(), MASK_BITS)
    };
    // SAFETY: the kernel reads the mask.
    checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) })
}
