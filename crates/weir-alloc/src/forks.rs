//! All locks are held while a process forks: a child has only the thread that forked, and no thread to release the others.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Once};

use crate::heap::Heap;
use crate::lock::Lock;

static LIST: Lock = Lock::new();
static HEAD: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());

fn each(mut work: impl FnMut(&Heap)) {
    let mut at = HEAD.load(Ordering::Acquire);
    // SAFETY: under the lock of the list; a class leaves it before it ends.
    while let Some(heap) = unsafe { at.as_ref() } {
        work(heap);
        at = heap.next.load(Ordering::Acquire);
    }
}

extern "C" fn before() {
    LIST.lock();
    each(|heap| heap.shards.iter().for_each(|shard| shard.lock.lock()));
}

extern "C" fn after() {
    each(|heap| heap.shards.iter().for_each(|shard| shard.lock.unlock()));
    LIST.unlock();
}

pub fn add(heap: &Arc<Heap>) {
    static ONCE: Once = Once::new();
    // SAFETY: functions without arguments which live as long as the process.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(after), Some(after));
    });
    LIST.with(|| {
        heap.next
            .store(HEAD.load(Ordering::Acquire), Ordering::Release);
        HEAD.store(Arc::as_ptr(heap).cast_mut(), Ordering::Release);
    });
}

pub fn remove(heap: &Heap) {
    LIST.with(|| {
        let mut place = &HEAD;
        // SAFETY: as in `each`.
        while let Some(one) = unsafe { place.load(Ordering::Acquire).as_ref() } {
            if ptr::eq(one, heap) {
                place.store(heap.next.load(Ordering::Acquire), Ordering::Release);
                return;
            }
            place = &one.next;
        }
    });
}
