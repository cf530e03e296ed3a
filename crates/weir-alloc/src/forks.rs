//! Locks that are held while a process forks: a child has only the thread that forked, and no thread to release the others.

use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::lock::Lock;

/// Held around changes of the list, and while a process forks.
static LIST: Lock = Lock::new();
static HEAD: AtomicPtr<ForkLock> = AtomicPtr::new(ptr::null_mut());

/// A lock that a fork takes before and releases after, in both processes, once it is in the list.
pub struct ForkLock {
    lock: Lock,
    next: AtomicPtr<ForkLock>,
}

impl ForkLock {
    pub const fn new() -> Self {
        Self {
            lock: Lock::new(),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    pub fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        self.lock.with(work)
    }

    /// Puts it in the list.
    ///
    /// # Safety
    /// It is in no list, and stays where it is until [`ForkLock::remove`].
    pub unsafe fn add(&self) {
        static ONCE: Once = Once::new();
        // SAFETY: functions without arguments which live as long as the process.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after));
        });
        LIST.with(|| {
            self.next
                .store(HEAD.load(Ordering::Acquire), Ordering::Release);
            HEAD.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        });
    }

    /// Takes it out of the list, if it is there.
    pub fn remove(&self) {
        LIST.with(|| {
            let mut place = &HEAD;
            // SAFETY: as in `each`.
            while let Some(one) = unsafe { place.load(Ordering::Acquire).as_ref() } {
                if ptr::eq(one, self) {
                    place.store(self.next.load(Ordering::Acquire), Ordering::Release);
                    return;
                }
                place = &one.next;
            }
        });
    }
}

fn each(work: impl Fn(&Lock)) {
    let mut at = HEAD.load(Ordering::Acquire);
    // SAFETY: under the lock of the list; a lock leaves it before it ends.
    while let Some(one) = unsafe { at.as_ref() } {
        work(&one.lock);
        at = one.next.load(Ordering::Acquire);
    }
}

extern "C" fn before() {
    LIST.lock();
    each(Lock::lock);
}

extern "C" fn after() {
    each(Lock::unlock);
    LIST.unlock();
}
