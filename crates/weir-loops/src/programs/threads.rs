//! Work of Weir's own programs on several threads. Only one function starts them, whatever the work, which keeps the command
//! small.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Has threads take ranges of this many numbers below a count, until none is left.
pub(super) fn ranges(
    threads: usize,
    count: usize,
    size: usize,
    work: &(dyn Fn(usize, usize) + Sync),
) {
    let next = AtomicUsize::new(0);
    let take = || {
        loop {
            let from = next.fetch_add(size, Relaxed);
            if from >= count {
                return;
            }
            work(from, (from + size).min(count));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(take);
        }
    });
}

/// What each of several tasks found, in their order.
pub(super) fn tasks<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let found: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    ranges(threads, count, 1, &|task, _| {
        let done = work(task);
        *found[task].lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    });
    let found = found.into_iter();
    found
        .filter_map(|found| found.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

/// The same of tasks to each of which something belongs.
pub(super) fn parts<P: Send, T: Send>(
    threads: usize,
    parts: Vec<P>,
    work: impl Fn(P) -> T + Sync,
) -> Vec<T> {
    let parts: Vec<Mutex<Option<P>>> = parts
        .into_iter()
        .map(|part| Mutex::new(Some(part)))
        .collect();
    let done = tasks(threads, parts.len(), |task| {
        let part = parts[task]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        part.map(&work)
    });
    done.into_iter().flatten().collect()
}
