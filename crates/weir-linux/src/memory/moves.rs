//! Moves the pages of parts of a process's address space to a node, at a rate, and counts what the kernel did with each
//! (`move_pages(2)`). Pages of several parts go into one call: memory that is interleaved page by page has as many parts.
//!
//! The status of a page that the kernel did not move is not to be relied on: it is written in part only. So the kernel is
//! asked where the pages are, before and after.

use std::io;

use weir_model::capability::Unavailable;
use weir_model::tiering::MovedPages;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::{AddressRange, base_page, free_on_node, policy};
use crate::process::started;
use crate::root::Root;
use crate::topology::list;
use crate::topology::node::NODES;

/// The most pages of one call: those of a huge page, which the kernel moves as one.
const BLOCK: usize = 512;
/// Calls of one step, so that a stop is seen in time.
const MOST_BLOCKS: usize = 64;
/// Time that a step makes up for: where the kernel is slower than the rate, steps would become longer and longer.
const MOST_TIME: Nanos = Nanos(1e8);
/// What the kernel's answer is before it answers.
const UNANSWERED: i32 = i32::MIN;

/// The kernel, or what tests have in its place: writes the node or the error number of each page.
trait Pages {
    /// Pages that were not moved for a reason that the kernel does not tell.
    fn call(&mut self, addresses: &[usize], to: Option<u32>, status: &mut [i32])
    -> io::Result<u64>;
}

struct Kernel(u32);

impl Pages for Kernel {
    fn call(
        &mut self,
        addresses: &[usize],
        to: Option<u32>,
        status: &mut [i32],
    ) -> io::Result<u64> {
        policy::move_some(self.0, addresses, to, status)
    }
}

/// A move that goes on step by step.
#[derive(Debug)]
pub struct Mover {
    process: u32,
    /// First addresses and ends, without empty parts.
    parts: Vec<(usize, usize)>,
    node: u32,
    rate: GbPerSec,
    began: Option<u64>,
    /// The part, and the address in it, that is tried next.
    part: usize,
    next: usize,
    /// Pages that may be tried now; below 0 where a huge page was more than that.
    credit: f64,
    /// Pages for which the node has room. The kernel would fill it to the last page, and then end programs for the next one.
    room: u64,
    counted: MovedPages,
    ended: Option<Unavailable>,
}

impl Mover {
    /// A move that has not begun.
    ///
    /// # Errors
    /// There is no such process, this user may not move its pages, or the kernel moves none.
    pub fn open(
        root: &Root,
        range: &AddressRange,
        node: u32,
        rate: GbPerSec,
    ) -> Result<Self, Unavailable> {
        Self::over(root, range.process, std::slice::from_ref(range), node, rate)
    }

    /// As [`open`](Self::open), of several parts of a process, in this order. Parts of other processes are left out.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn over(
        root: &Root,
        process: u32,
        parts: &[AddressRange],
        node: u32,
        rate: GbPerSec,
    ) -> Result<Self, Unavailable> {
        let parts: Vec<(usize, usize)> = (parts.iter())
            .filter(|part| part.process == process && part.start < part.end)
            .map(|part| (part.start, part.end))
            .collect();
        let first = parts.first().map_or(0, |part| part.0);
        let began = started(root, process);
        if began.is_none() {
            return Err(Unavailable::because(format!(
                "there is no process {process}"
            )));
        }
        let asked = Kernel(process).call(&[first], None, &mut [UNANSWERED]);
        asked.map_err(|error| refusal(process, node, &error))?;
        Ok(Self {
            process,
            parts,
            node,
            rate,
            began,
            part: 0,
            next: first,
            credit: 0.0,
            room: u64::MAX,
            counted: MovedPages::default(),
            ended: None,
        })
    }

    /// Whether nothing is left to try.
    pub fn is_over(&self) -> bool {
        self.ended.is_some() || self.part >= self.parts.len()
    }

    /// Why it ended before all pages were tried.
    pub fn ended(&self) -> Option<&Unavailable> {
        self.ended.as_ref()
    }

    /// Bytes that were not looked at yet.
    pub fn rest(&self) -> Bytes {
        let mut left = self.parts.iter().skip(self.part);
        let first = left.next().map_or(0, |(_, end)| end - self.next);
        let others: usize = left.map(|(start, end)| end - start).sum();
        Bytes((first + others) as u64)
    }

    /// What was counted since the last call. What was not moved in that time is not made up for later.
    pub fn counted(&mut self) -> MovedPages {
        self.credit = self.credit.min(1.0);
        std::mem::take(&mut self.counted)
    }

    /// Moves what the rate permits after this much more time.
    pub fn advance(&mut self, root: &Root, time: Nanos) {
        let process = self.process;
        if !self.is_over() && started(root, process) != self.began {
            self.ended = Some(Unavailable::because(format!("process {process} has ended")));
        }
        // A node that has gone has no room either; the kernel says which it is.
        let free = free_on_node(root, self.node)
            .filter(|free| *free > Bytes(0) || has_memory(root, self.node));
        self.room = free.map_or(u64::MAX, |free| free.get() / base_page() as u64);
        self.step(&mut Kernel(process), time);
    }

    fn step(&mut self, kernel: &mut impl Pages, time: Nanos) {
        let page = base_page();
        let time = time.get().min(MOST_TIME.get());
        self.credit += self.rate.get() * time / page as f64;
        for _ in 0..MOST_BLOCKS {
            if self.credit < 1.0 || self.is_over() {
                return;
            }
            let addresses = self.addresses();
            if let Err(error) = self.block(kernel, &addresses) {
                self.ended = Some(refusal(self.process, self.node, &error));
            }
        }
    }

    /// The pages of the next call: up to the end of what may be a huge page, and of other parts as far as there is room.
    fn addresses(&self) -> Vec<usize> {
        let page = base_page();
        let mut found: Vec<usize> = Vec::new();
        let (mut part, mut next) = (self.part, self.next);
        while let Some(&(_, end)) = self.parts.get(part) {
            let until = end.min((next / page / BLOCK + 1) * BLOCK * page);
            if found.len() + (until - next) / page > BLOCK {
                break;
            }
            found.extend((next..until).step_by(page));
            next = until;
            if until == end {
                part += 1;
                next = self.parts.get(part).map_or(0, |part| part.0);
            }
        }
        found
    }

    /// Goes on behind this many pages.
    fn skip(&mut self, mut pages: usize) {
        while let Some(&(_, end)) = self.parts.get(self.part) {
            let left = (end - self.next) / base_page();
            if pages < left {
                self.next += pages * base_page();
                return;
            }
            pages -= left;
            self.part += 1;
            self.next = self.parts.get(self.part).map_or(0, |part| part.0);
        }
    }

    /// Tries the pages of a block, as many as there is credit and room for.
    fn block(&mut self, kernel: &mut impl Pages, addresses: &[usize]) -> io::Result<()> {
        let node = self.node;
        let is_there = |status: i32| u32::try_from(status) == Ok(node);
        let mut before = vec![UNANSWERED; addresses.len()];
        kernel.call(addresses, None, &mut before)?;
        let elsewhere: Vec<usize> = (0..before.len())
            .filter(|&i| before[i] >= 0 && !is_there(before[i]))
            .collect();
        let (due, later) = elsewhere.split_at(elsewhere.len().min(self.credit as usize));
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let (tried, without_room) = due.split_at(due.len().min(room));
        let wanted: Vec<usize> = tried.iter().map(|&i| addresses[i]).collect();
        let mut answers = vec![UNANSWERED; wanted.len()];
        let whole = match wanted.is_empty() {
            true => Ok(0),
            false => kernel.call(&wanted, Some(node), &mut answers),
        };
        let mut after = vec![-libc::ENOENT; addresses.len()];
        let asked = kernel.call(addresses, None, &mut after);
        // A huge page has moved as a whole, also where a part of it was tried.
        let stays = |i: &usize| !is_there(after[*i]);
        let waits = later.iter().copied().find(stays);
        self.counted.full += without_room.iter().copied().filter(stays).count() as u64;
        let done = waits.unwrap_or(before.len());
        let counted = &mut self.counted;
        let before_it = counted.moved;
        counted.there += before[..done].iter().filter(|at| is_there(**at)).count() as u64;
        counted.absent += before[..done].iter().filter(|at| **at < 0).count() as u64;
        let seen = elsewhere
            .iter()
            .filter(|&&i| i < done && is_there(after[i]));
        let seen = seen.count();
        counted.moved += seen as u64;
        // What has no room uses the rate too: it is not tried, but room may come, and a node that goes offline has none.
        self.credit -= seen.max(due.len()) as f64;
        for ((&i, &answer), &address) in tried.iter().zip(&answers).zip(&wanted) {
            if is_there(after[i]) {
                continue;
            }
            let became = match (answer, &whole) {
                _ if after[i] < 0 => Err(-after[i]),
                (answer, _) if answer < 0 && answer != UNANSWERED => Err(-answer),
                (_, Err(error)) if is_full(error) => Err(libc::ENOMEM),
                (_, Err(_)) => Err(libc::EIO),
                // The kernel stops at a page that it cannot move, and says neither which nor why.
                (_, Ok(_)) => alone(kernel, address, node),
            };
            *match became {
                Ok(()) => &mut counted.moved,
                Err(libc::ENOENT | libc::EFAULT | libc::ESRCH) => &mut counted.absent,
                Err(libc::EBUSY | libc::EAGAIN) => &mut counted.busy,
                Err(libc::ENOMEM) => &mut counted.full,
                Err(libc::EACCES) => &mut counted.shared,
                Err(_) => &mut counted.refused,
            } += 1;
        }
        self.room = (self.room).saturating_sub(self.counted.moved - before_it);
        self.skip(done);
        asked?;
        match whole {
            Err(error) if !is_full(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether a node has memory, as far as the kernel says.
fn has_memory(root: &Root, node: u32) -> bool {
    let there = root.text(&format!("{NODES}/has_memory"));
    let there = there.and_then(|text| list::parse(&text));
    there.known().is_none_or(|ids| ids.contains(&node))
}

/// A node that is full may have room later.
fn is_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOMEM)
}

/// Moves one page, or returns the kernel's error number.
fn alone(kernel: &mut impl Pages, address: usize, node: u32) -> Result<(), i32> {
    let mut answer = [UNANSWERED];
    match kernel.call(&[address], Some(node), &mut answer) {
        Ok(0) if answer[0] >= 0 => Ok(()),
        Ok(0) if answer[0] != UNANSWERED => Err(-answer[0]),
        Ok(_) => Err(libc::EBUSY),
        Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

fn refusal(process: u32, node: u32, error: &io::Error) -> Unavailable {
    Unavailable::because(match error.raw_os_error() {
        Some(libc::ESRCH | libc::EINVAL) => {
            format!("process {process} has ended, or has no memory of its own")
        }
        Some(libc::EPERM) => {
            format!("this user may not move pages of process {process}; it is for root")
        }
        Some(libc::ENODEV) => format!("node {node} has no memory"),
        Some(libc::EACCES) => {
            format!("process {process} may not have memory of node {node} (cpuset.mems)")
        }
        Some(libc::ENOSYS) => "the kernel has no move_pages (CONFIG_NUMA, CONFIG_MIGRATION)".into(),
        _ => format!("move_pages of process {process} to node {node}: {error}"),
    })
}

#[cfg(test)]
mod tests;
