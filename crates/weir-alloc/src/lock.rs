//! A lock that a fork can hold: `prepare` takes it, and parent and child release it. The standard library's cannot be released
//! by another function than the one which took it.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// A lock of one word.
#[derive(Debug)]
pub struct Lock(AtomicU32);

impl Lock {
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    pub fn lock(&self) {
        let taken = (self.0).compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..100 {
            std::hint::spin_loop();
            let taken = (self.0).compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return;
            }
        }
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            self.futex(libc::FUTEX_WAIT, AWAITED);
        }
    }

    pub fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            self.futex(libc::FUTEX_WAKE, 1);
        }
    }

    pub fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        self.lock();
        let done = work();
        self.unlock();
        done
    }

    fn futex(&self, what: libc::c_int, value: u32) {
        let what = what | libc::FUTEX_PRIVATE_FLAG;
        let none = ptr::null::<libc::timespec>();
        // SAFETY: futex(2) reads this word, and waits without a limit of time.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), what, value, none) };
    }
}
