//! Memory on the requested node, in pages of the requested size, with the kernel's confirmation of both.

mod address_range;
mod free_memory;
mod moves;
pub mod names;
pub(crate) mod numa_maps;
pub mod objects;
mod placed;
mod policy;
mod program;
mod smaps;
mod trial;

use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;

use weir_model::access::Op;
use weir_model::machine::MachineError;
use weir_model::topology::TierName;
use weir_model::units::Bytes;

pub use address_range::{AddressRange, RangeSet};
pub use free_memory::{FreeMemory, free_memory, free_on_node, has_memory};
pub use moves::Mover;
pub use objects::ProcessObject;
pub use placed::{Number, Placed};
pub use policy::{Policy, base_page};
pub use program::{ProgramPages, ProgramPolicy};
pub use trial::{KernelPolicy, PlacementCheck, Trial};

use crate::root::{Reading, Root};
use weir_loops::kernels::{self, Data, LINE};

/// The next larger page size, on every supported processor with 4 KiB pages.
pub const HUGE: usize = 2 << 20;
/// Memory is touched and filled in pieces of this many bytes, each in some tens of milliseconds.
const PIECE: usize = 64 << 20;

/// The page size of a working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pages {
    /// Pages of the base size, 4 KiB on most machines; random accesses then include page walks.
    Base,
    /// 2 MiB if the kernel gives them on demand, otherwise the base size.
    #[default]
    Transparent,
    /// 2 MiB pages that the administrator has reserved.
    Reserved,
}

/// A share of a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The tier, for messages.
    pub tier: TierName,
    /// Its node; `None` if the kernel knows no nodes.
    pub node: Option<u32>,
    /// Consecutive pages before the next share follows.
    pub weight: u32,
}

/// Memory of this process, placed, filled, and freed when dropped.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    shares: Vec<Share>,
    pages: Pages,
    /// Bytes of the unit by which placement alternates.
    unit: usize,
    /// Whether the kernel confirmed every page's node.
    verified: bool,
    /// Whether pages may be on other nodes when the node of the only share is full.
    spills: bool,
    /// Pages of the base size on each node, when the kernel reported them last.
    nodes: BTreeMap<u32, u64>,
}

/// A range of a process's memory, in whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRange {
    /// The process; `None` for this one.
    pub process: Option<u32>,
    /// Its first address.
    pub start: usize,
    /// Pages of the base size in it.
    pub pages: usize,
    /// Pages of the base size in the unit by which placement alternates.
    pub unit: usize,
}

/// Pages on each node. Pages that do not exist yet are on none.
pub(crate) fn count(nodes: &[i32]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for node in nodes
        .iter()
        .filter_map(|&status| u32::try_from(status).ok())
    {
        *counts.entry(node).or_default() += 1;
    }
    counts
}

impl PageRange {
    /// Bytes in it.
    pub fn bytes(&self) -> u64 {
        (self.pages * base_page()) as u64
    }

    /// The node of each of `count` pages from page `first` on; a negative error number for a page without one.
    pub fn nodes(&self, first: usize, count: usize) -> Vec<i32> {
        let address = |i| self.start + (first + i) * base_page();
        let found = policy::move_pages(self.process, address, count, None);
        found.unwrap_or_else(|_| vec![-libc::ENOENT; count])
    }

    /// Moves pages to a node, as far as the kernel does so.
    ///
    /// # Errors
    /// The kernel refuses the whole request.
    pub fn move_to(&self, pages: &[usize], node: u32) -> Result<(), MachineError> {
        let address = |i: usize| self.start + pages[i] * base_page();
        policy::move_pages(self.process, address, pages.len(), Some(node))
            .map(drop)
            .map_err(|e| system(&format!("move_pages to node {node}"), &e))
    }

    /// Sets the nodes of this program's pages that do not exist yet; `spills` if pages may be elsewhere when the
    /// node is full.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_policy(&self, nodes: &[u32], spills: bool) -> Result<(), MachineError> {
        let mode = if spills {
            policy::MPOL_PREFERRED
        } else {
            policy::MPOL_BIND
        };
        let start = std::ptr::without_provenance_mut(self.start);
        policy::set_range(start, self.pages * base_page(), mode, nodes)
            .map_err(|e| system(&format!("mbind to node {nodes:?}"), &e))
    }
}

// SAFETY: a region is the only owner of its memory, as a `Box<[u8]>` is.
unsafe impl Send for Region {}

impl Region {
    /// Maps, places and fills memory, and asks the kernel where its pages are.
    ///
    /// # Errors
    /// The kernel has no such memory, cannot place pages, or put them elsewhere.
    pub fn allocate(
        bytes: Bytes,
        pages: Pages,
        shares: &[Share],
        policy: &Policy,
    ) -> Result<Self, MachineError> {
        Self::placed(bytes, pages, shares, false, policy)
    }

    /// As [`Region::allocate`]; if it `spills`, pages may be on other nodes when the node of the only share is
    /// full.
    ///
    /// # Errors
    /// As [`Region::allocate`].
    pub(crate) fn placed(
        bytes: Bytes,
        pages: Pages,
        shares: &[Share],
        spills: bool,
        policy: &Policy,
    ) -> Result<Self, MachineError> {
        let mut region = Self::map(bytes, pages, shares)?;
        region.spills = spills;
        region.populate(policy)?;
        region.fill()?;
        region.verify(policy)?;
        Ok(region)
    }

    /// Memory without any page yet: each will be on the node of the only share when it is touched.
    ///
    /// # Errors
    /// The kernel has no such memory, or cannot place pages.
    pub(crate) fn untouched(
        bytes: Bytes,
        shares: &[Share],
        policy: &Policy,
    ) -> Result<Self, MachineError> {
        let region = Self::map(bytes, Pages::Base, shares)?;
        let nodes: Vec<u32> = shares.iter().filter_map(|share| share.node).collect();
        if policy.availability().is_ok() && !nodes.is_empty() {
            policy::set_range(region.base(), region.bytes, policy::MPOL_BIND, &nodes)
                .map_err(|e| system(&format!("mbind to node {nodes:?}"), &e))?;
        }
        Ok(region)
    }

    /// Maps memory without any page yet.
    fn map(bytes: Bytes, pages: Pages, shares: &[Share]) -> Result<Self, MachineError> {
        let wanted = usize::try_from(bytes.get()).map_err(|_| no_address_space(bytes))?;
        if wanted < LINE || shares.is_empty() {
            return Err(MachineError::Request(format!(
                "a working set of {bytes} holds no line of {LINE} bytes"
            )));
        }
        let pages = match pages {
            // Less than one huge page would never become a huge page.
            Pages::Transparent if wanted < HUGE => Pages::Base,
            other => other,
        };
        let unit = match pages {
            Pages::Base => base_page(),
            Pages::Transparent | Pages::Reserved => HUGE,
        };
        let length = wanted
            .checked_next_multiple_of(unit)
            .ok_or_else(|| no_address_space(bytes))?;
        let base = map(length, unit, pages).map_err(|e| system(&format!("mmap of {bytes}"), &e))?;
        let region = Self {
            base,
            bytes: length,
            shares: shares.to_vec(),
            pages,
            unit,
            verified: false,
            spills: false,
            nodes: BTreeMap::new(),
        };
        region.advise()?;
        region.keep_from_children()?;
        Ok(region)
    }

    /// Its first byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Pages of the base size on each node, when the kernel reported them last.
    pub(crate) fn nodes(&self) -> &BTreeMap<u32, u64> {
        &self.nodes
    }

    /// The pages in it.
    pub(crate) fn range(&self) -> PageRange {
        let page = base_page();
        PageRange {
            process: None,
            start: self.base.as_ptr().addr(),
            pages: self.bytes / page,
            unit: (self.unit / page).max(1),
        }
    }

    /// Bytes in it: the requested size, rounded up to whole pages.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes as u64)
    }

    /// Whether the kernel confirmed that every page is where it should be.
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    /// Whether it is equal to what a request of this kind would make.
    pub(crate) fn serves(
        &self,
        bytes: Bytes,
        pages: Pages,
        shares: &[Share],
        spills: bool,
    ) -> bool {
        let kind = match pages {
            Pages::Transparent if bytes.get() < HUGE as u64 => Pages::Base,
            other => other,
        };
        bytes.get().checked_next_multiple_of(self.unit as u64) == Some(self.bytes as u64)
            && kind == self.pages
            && shares == self.shares
            && spills == self.spills
    }

    /// The real page size, in words.
    pub fn describe_pages(&self, root: &Root) -> String {
        match self.pages {
            Pages::Base => format!("pages of {}", Bytes(self.unit as u64)),
            Pages::Reserved => "pages of 2 MiB (reserved)".to_owned(),
            Pages::Transparent => match smaps::huge_share(root, self.base.as_ptr() as u64) {
                Reading::Known(share) if share > 0.995 => "pages of 2 MiB (transparent)".to_owned(),
                Reading::Known(share) => format!(
                    "pages of 2 MiB were asked for and make up {:.0} % (transparent); the rest are of {}",
                    share * 100.0,
                    Bytes(base_page() as u64)
                ),
                Reading::Absent(why) | Reading::Unreadable(why) => {
                    format!("pages of 2 MiB were asked for; what came is unknown: {why}")
                }
            },
        }
    }

    /// Asks the kernel for the node of every page.
    ///
    /// # Errors
    /// A page is on another node, or does not exist.
    pub fn verify(&mut self, policy: &Policy) -> Result<(), MachineError> {
        self.verified = false;
        if policy.availability().is_err() || self.shares.iter().any(|s| s.node.is_none()) {
            return Ok(());
        }
        let page = base_page();
        let found = policy::nodes_of(self.base.as_ptr(), self.bytes / page, page)
            .map_err(|e| system("move_pages, to ask where pages lie", &e))?;
        self.nodes = count(&found);
        let per_unit = (self.unit / page).max(1);
        let mut misplaced: Vec<(i32, u64)> = Vec::new();
        let mut first = None;
        for (index, &status) in found.iter().enumerate() {
            let share = self.share_of(index / per_unit);
            if u32::try_from(status).ok() != share.node {
                first.get_or_insert_with(|| share.tier.clone());
                match misplaced.iter_mut().find(|(s, _)| *s == status) {
                    Some((_, count)) => *count += 1,
                    None => misplaced.push((status, 1)),
                }
            }
        }
        if let Some(tier) = first {
            if self.spills {
                return Ok(());
            }
            return Err(MachineError::Misplaced {
                tier,
                misplaced: misplaced.iter().map(|(_, count)| count).sum(),
                pages: found.len() as u64,
                detail: misplaced
                    .iter()
                    .map(|&(status, count)| match u32::try_from(status) {
                        Ok(node) => format!("{count} on node {node}"),
                        Err(_) => {
                            format!("{count}: {}", io::Error::from_raw_os_error(-status))
                        }
                    })
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
        self.verified = true;
        Ok(())
    }

    /// The share of a unit.
    fn share_of(&self, unit: usize) -> &Share {
        let round: usize = self.shares.iter().map(|s| s.weight as usize).sum();
        let mut place = unit % round.max(1);
        for share in &self.shares {
            match place.checked_sub(share.weight as usize) {
                Some(rest) => place = rest,
                None => return share,
            }
        }
        &self.shares[0]
    }

    fn advise(&self) -> Result<(), MachineError> {
        let advice = match self.pages {
            Pages::Base => libc::MADV_NOHUGEPAGE,
            Pages::Transparent => libc::MADV_HUGEPAGE,
            Pages::Reserved => return Ok(()),
        };
        // SAFETY: the range is this region's own mapping; the advice changes no data.
        let result = unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, advice) };
        match io::Error::last_os_error() {
            // A kernel without transparent huge pages rejects the advice, and does not need it.
            e if result != 0 && e.raw_os_error() != Some(libc::EINVAL) => {
                Err(system("madvise, to choose the page size", &e))
            }
            _ => Ok(()),
        }
    }

    /// Excludes the region from processes that this one starts: between fork and exec its pages would be
    /// shared, and stores to them would copy.
    fn keep_from_children(&self) -> Result<(), MachineError> {
        let (start, bytes) = (self.base.as_ptr().cast(), self.bytes);
        // SAFETY: the range is this region's own mapping; the advice changes no data.
        if unsafe { libc::madvise(start, bytes, libc::MADV_DONTFORK) } != 0 {
            return Err(system(
                "madvise, for child processes",
                &io::Error::last_os_error(),
            ));
        }
        Ok(())
    }

    /// Makes every page exist, each on its node.
    fn populate(&self, policy: &Policy) -> Result<(), MachineError> {
        let nodes: Vec<u32> = self.shares.iter().filter_map(|s| s.node).collect();
        if policy.availability().is_err() || nodes.len() < self.shares.len() {
            return self.touch(0, self.bytes);
        }
        let bind = |nodes: &[u32]| self.range().set_policy(nodes, self.spills);
        if let [node] = nodes.as_slice() {
            bind(&[*node])?;
            return self.touch(0, self.bytes);
        }
        {
            // The thread's policy places one share after the other: a policy for each page would need a
            // mapping for each page.
            let mut thread =
                policy::ThreadPolicy::save().map_err(|e| system("get_mempolicy", &e))?;
            for share in &self.shares {
                let Some(node) = share.node else { continue };
                thread
                    .bind(node)
                    .map_err(|e| system(&format!("set_mempolicy to node {node}"), &e))?;
                self.touch_share(share)?;
            }
        }
        // Prevents the kernel's NUMA balancing from moving them.
        bind(&nodes)
    }

    fn touch_share(&self, share: &Share) -> Result<(), MachineError> {
        let units = self.bytes / self.unit;
        let mut unit = 0;
        while unit < units {
            let run = (unit..units)
                .take_while(|&u| std::ptr::eq(self.share_of(u), share))
                .count();
            if run > 0 {
                self.touch(unit * self.unit, run * self.unit)?;
            }
            unit += run.max(1);
        }
        Ok(())
    }

    /// Touches a part, piece by piece, so that a request to stop is met.
    fn touch(&self, offset: usize, length: usize) -> Result<(), MachineError> {
        (offset..offset + length).step_by(PIECE).try_for_each(|at| {
            self.touch_piece(at, PIECE.min(offset + length - at))?;
            unless_stopped()
        })
    }

    fn touch_piece(&self, offset: usize, length: usize) -> Result<(), MachineError> {
        let start = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: the range lies in this region's own mapping, whose content is still all zero.
        let result = unsafe { libc::madvise(start.cast(), length, libc::MADV_POPULATE_WRITE) };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(system(
                &format!("getting {} of memory from the kernel", Bytes(length as u64)),
                &error,
            ));
        }
        // Linux before 5.14: a write to each page does the same.
        for page in (0..length).step_by(base_page()) {
            // SAFETY: the byte lies in this region's own mapping.
            unsafe { start.add(page).write_volatile(1) };
        }
        Ok(())
    }

    /// Data that is neither zero nor constant.
    fn fill(&mut self) -> Result<(), MachineError> {
        let Ok(store) = kernels::select(Op::St, None) else {
            return Ok(());
        };
        let mut data = Data::new(self.bytes as u64);
        (0..self.bytes).step_by(PIECE).try_for_each(|at| {
            let (start, lines) = (self.base.as_ptr(), PIECE.min(self.bytes - at) / LINE);
            // SAFETY: the piece lies in the region, which is writable and aligned to pages, and this is its only
            // reference.
            unsafe { store.run_settled(start.wrapping_add(at), lines, &mut data) };
            unless_stopped()
        })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `allocate` with this length, and nothing else refers to it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// An error where the user requested a stop.
fn unless_stopped() -> Result<(), MachineError> {
    match weir_model::stop::requested() {
        true => Err(MachineError::Interrupted),
        false => Ok(()),
    }
}

/// Maps `length` bytes, aligned to `unit`.
fn map(length: usize, unit: usize, pages: Pages) -> io::Result<NonNull<u8>> {
    let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let slack = match pages {
        Pages::Base => 0,
        Pages::Transparent => unit,
        Pages::Reserved => {
            flags |= libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
            0
        }
    };
    let mapped = length
        .checked_add(slack)
        .ok_or(io::ErrorKind::OutOfMemory)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing else.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start: *mut u8 = start.cast();
    let skipped = start.align_offset(unit).min(slack);
    for (offset, bytes) in [(0, skipped), (skipped + length, slack - skipped)] {
        if bytes > 0 {
            // SAFETY: both ends of the mapping that was just made and that nothing uses yet.
            unsafe { libc::munmap(start.wrapping_add(offset).cast(), bytes) };
        }
    }
    NonNull::new(start.wrapping_add(skipped)).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

fn no_address_space(bytes: Bytes) -> MachineError {
    MachineError::Request(format!("{bytes} is more than a program can address"))
}

fn system(what: &str, cause: &io::Error) -> MachineError {
    MachineError::System {
        what: what.to_owned(),
        cause: cause.to_string(),
    }
}

#[cfg(test)]
mod tests;
