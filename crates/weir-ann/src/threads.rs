//! Work on several threads whose results do not depend on how many they are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Indices that a thread takes at once.
const TAKEN: usize = 32;

/// `work(scratch, 0)`, `work(scratch, 1)` and so on, in order. Each thread has a scratch of its own.
pub fn in_order<S, T: Send>(
    threads: usize,
    n: usize,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Vec<T>)>> = Mutex::default();
    let take = || {
        let mut own = scratch();
        loop {
            let from = next.fetch_add(TAKEN, Ordering::Relaxed);
            if from >= n {
                return;
            }
            let results = (from..n.min(from + TAKEN)).map(|at| work(&mut own, at));
            let results = results.collect();
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            done.push((from, results));
        }
    };
    let threads = threads.clamp(1, n.div_ceil(TAKEN).max(1));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(take);
        }
        take();
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(from, _)| *from);
    done.into_iter().flat_map(|(_, results)| results).collect()
}
