//! The state of the caches after a program has run for a while.

use weir_model::access::{Op, Pattern};

use crate::core::{Private, Thread};
use crate::line::Place;
use crate::params::Params;
use crate::uncore::{Class, LastLevel};

/// The last-level cache, if lines of any thread can survive in it. Lines of a tenant that accesses its memory
/// in a fixed order survive if they fit. Of a tenant that accesses lines at random, a share survives, as long
/// as its lines are not many times the cache.
pub fn last_level(threads: &[Thread], params: &Params) -> Option<LastLevel> {
    // Each core complex has a part of it.
    let lines = params.uncore.llc.lines / u64::from(params.uncore.llc.complexes);
    let complex = |t: &Thread| params.first_slice(t.core);
    let together = |one: &Thread| -> u64 {
        threads
            .iter()
            .filter(|t| t.tenant == one.tenant && complex(t) == complex(one))
            .map(Thread::lines)
            .sum()
    };
    threads
        .iter()
        // A formula gives the share of a program's lines that are in the cache.
        .filter(|t| t.ooo.is_none())
        .any(|t| match t.pattern {
            _ if t.op == Op::UcLd => false,
            // Reads and writes of a device leave nothing there.
            Pattern::FlushedLine
            | Pattern::FlushedBurst { .. }
            | Pattern::SharedLine
            | Pattern::Descriptors { .. }
            | Pattern::Requests { .. } => false,
            Pattern::Sequential | Pattern::Chase { .. } => together(t) <= lines + lines / 4,
            Pattern::RandomLine | Pattern::RandomBlock { .. } => together(t) <= 8 * lines,
        })
        .then(|| {
            let llc = params.uncore.llc;
            LastLevel::new(llc.times(params.parts_with(threads.iter().map(|t| t.core))))
        })
}

/// Walks every thread through its caches once, without timing, so that a run starts warm. The threads
/// alternate, and no thread walks further than twice the size of the caches.
pub fn walk_through(
    mut threads: Vec<Thread>,
    mut llc: Option<LastLevel>,
    masks: &[u32],
    params: &Params,
) -> (Vec<Thread>, Option<LastLevel>) {
    const TURN: u64 = 64;
    let most = |part: usize| {
        let alike = threads.iter().filter(|t| params.part_of(t.core) == part);
        2 * params.uncore.llc.lines / alike.count().max(1) as u64
    };
    let passes: Vec<u64> = threads
        .iter()
        .map(|t| match (&t.private, &llc) {
            _ if t.ooo.is_some() => 0,
            (Private::Tagged(_), _) => 2 * t.lines(),
            (Private::Streaming { .. }, Some(_)) => {
                (2 * t.lines()).min(most(params.part_of(t.core)))
            }
            (Private::Streaming { .. }, None) => 0,
        })
        .collect();
    let longest = passes.iter().copied().max().unwrap_or(0);
    for from in (0..longest).step_by(TURN as usize) {
        for ((thread, &pass), &mask) in threads.iter_mut().zip(&passes).zip(masks) {
            if matches!(
                thread.pattern,
                Pattern::FlushedLine
                    | Pattern::FlushedBurst { .. }
                    | Pattern::SharedLine
                    | Pattern::Descriptors { .. }
                    | Pattern::Requests { .. }
            ) {
                continue;
            }
            let first = thread.window.next().wrapping_sub(pass);
            for index in first + from..first + (from + TURN).min(pass) {
                let complex = params.first_slice(thread.core);
                touch(thread, llc.as_mut(), (complex, mask), index);
            }
        }
    }
    (threads, llc)
}

/// One access without timing.
fn touch(
    thread: &mut Thread,
    llc: Option<&mut LastLevel>,
    (complex, mask): (u16, u32),
    index: u64,
) {
    let Some((place, write)) = thread.cached(index) else {
        return;
    };
    let leaves = match &mut thread.private {
        Private::Streaming { delay } => {
            let before = index.wrapping_sub(*delay);
            thread.cached(before)
        }
        Private::Tagged(caches) => {
            if caches.find(place.key(), write).is_some() {
                return;
            }
            let out = caches.fill(place.key(), write);
            out.map(|(key, dirty)| (Place::from_key(key), dirty))
        }
    };
    if let (Some(llc), Some((out, dirty))) = (llc, leaves) {
        let class = Class::of(thread.tenant).within(mask);
        llc.put(out.line, out.tier, dirty, class, complex);
    }
}
