//! The kernel's calls for placing pages and for asking where they are.

use std::io;
use std::ptr;

use weir_model::capability::Unavailable;

/// Enough bits for any Linux: the kernel's own limit is 1024 nodes.
const WORDS: usize = 1024 / 64;

// Modes of a memory policy (`linux/mempolicy.h`).
pub(super) const MPOL_PREFERRED: libc::c_int = 1;
pub(super) const MPOL_BIND: libc::c_int = 2;
pub(super) const MPOL_INTERLEAVE: libc::c_int = 3;
/// Linux 6.9 and later.
pub(super) const MPOL_WEIGHTED_INTERLEAVE: libc::c_int = 6;

/// Move the pages that only this process maps.
const MPOL_MF_MOVE: libc::c_int = 2;

/// Pages asked about in one call.
const BATCH: usize = 4096;

/// Bytes in a page of the base size.
pub fn base_page() -> usize {
    // SAFETY: sysconf takes no pointers and has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes)
        .ok()
        .filter(|b| b.is_power_of_two())
        .unwrap_or(4096)
}

/// Whether the kernel allows this program to place pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(Result<(), Unavailable>);

impl Policy {
    /// Asks the kernel.
    pub fn probe() -> Self {
        let byte = 1u8;
        let page = base_page();
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

/// The kernel reads one bit less than the stated number.
const MASK_BITS: usize = WORDS * 64 + 1;

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets the policy by which pages of a range that do not exist yet are placed; existing pages stay.
pub(super) fn set_range(
    start: *mut u8,
    bytes: usize,
    mode: libc::c_int,
    nodes: &[u32],
) -> io::Result<()> {
    let mask = mask(nodes)?;
    // SAFETY: the kernel reads the mask and changes the policy of the range, not its content.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start,
            bytes,
            mode,
            mask.as_ptr(),
            MASK_BITS,
            0,
        )
    })
}

/// The node of each of `count` pages, or a negative error number.
pub(super) fn nodes_of(start: *mut u8, count: usize, page: usize) -> io::Result<Vec<i32>> {
    move_pages(None, |i| start.addr() + i * page, count, None)
}

/// Asks the kernel to move each of `count` pages; the result for each is its node now, or a negative error
/// number.
pub(super) fn move_to(
    start: *mut u8,
    count: usize,
    page: usize,
    node: u32,
) -> io::Result<Vec<i32>> {
    move_pages(None, |i| start.addr() + i * page, count, Some(node))
}

/// The node of each page of a process (`None`: this one), or a negative error number; after a move to a
/// node, if there is one.
pub(super) fn move_pages(
    process: Option<u32>,
    address: impl Fn(usize) -> usize,
    count: usize,
    node: Option<u32>,
) -> io::Result<Vec<i32>> {
    let mut status = vec![-libc::ENOENT; count];
    let mut addresses: Vec<usize> = Vec::with_capacity(BATCH);
    for (batch, found) in status.chunks_mut(BATCH).enumerate() {
        addresses.clear();
        addresses.extend((0..found.len()).map(|i| address(batch * BATCH + i)));
        move_some(process.unwrap_or(0), &addresses, node, found)?;
    }
    Ok(status)
}

/// One `move_pages(2)` for at most [`BATCH`] pages of a process (0: this one): without a node it writes where each is.
/// Returns how many pages were not moved for a reason that the kernel does not tell.
pub(super) fn move_some(
    process: u32,
    addresses: &[usize],
    node: Option<u32>,
    status: &mut [i32],
) -> io::Result<u64> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let process = libc::pid_t::try_from(process).map_err(invalid)?;
    let node = node
        .map(libc::c_int::try_from)
        .transpose()
        .map_err(invalid)?;
    let count = addresses.len().min(status.len()).min(BATCH);
    let nodes = node.map(|node| vec![node; count]);
    let flags = if nodes.is_some() { MPOL_MF_MOVE } else { 0 };
    let nodes = nodes.as_ref().map_or(ptr::null(), |nodes| nodes.as_ptr());
    // SAFETY: the call reads `count` addresses, as many nodes if there is a list of them, which lives until it returns,
    // and writes at most as many numbers. Moving a page changes neither its address nor its content.
    let left = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            count,
            addresses.as_ptr(),
            nodes,
            status.as_mut_ptr(),
            flags,
        )
    };
    checked(left)?;
    Ok(u64::try_from(left).unwrap_or(0))
}

/// The calling thread's policy, restored on drop.
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
        self.set(MPOL_BIND, &[node])
    }

    pub(super) fn set(&mut self, mode: libc::c_int, nodes: &[u32]) -> io::Result<()> {
        set(mode, &mask(nodes)?)
    }
}

impl Drop for ThreadPolicy {
    fn drop(&mut self) {
        // The earlier policy cannot be refused now, unless the cpuset changed.
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
