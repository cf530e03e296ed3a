//! A class as Rust's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::heap::{self, Heap};
use crate::segment::MEDIUM;
use crate::{Arenas, Class, ObjectClass};

// SAFETY: objects are of the size and alignment of the layout, apart from each other, and stay until they are freed.
unsafe impl GlobalAlloc for Class {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let made = Class::alloc(self, layout.size(), layout.align());
        made.map_or(ptr::null_mut(), |object| object.as_ptr())
    }

    unsafe fn dealloc(&self, object: *mut u8, _: Layout) {
        // SAFETY: the caller gives it up.
        unsafe { heap::free(object) };
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller uses the new address only.
        let made = unsafe { crate::realloc(object, bytes, layout.align()) };
        made.map_or(ptr::null_mut(), |object| object.as_ptr())
    }
}

/// A class as the allocator of a whole program: `#[global_allocator] static ALL: Global = Global::new("temporary");`
///
/// The policy is the file that `WEIR_ALLOC_POLICY` names when the first object is allocated; without one the kernel places
/// memory, and only its name is set. If the policy is wrong, that is said on standard error, and the system's allocator serves.
#[derive(Debug)]
pub struct Global {
    class: &'static str,
    state: AtomicU8,
    heap: AtomicPtr<Heap>,
}

thread_local! {
    /// Whether this thread is in the allocator, which itself allocates where it opens a policy or asks how full a node is.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn inside<T>(work: impl FnOnce() -> T) -> Option<T> {
    if INSIDE.replace(true) {
        return None;
    }
    let done = work();
    INSIDE.set(false);
    Some(done)
}

impl Global {
    /// All objects of the program are of this class.
    pub const fn new(class: &'static str) -> Self {
        Self {
            class,
            state: AtomicU8::new(0),
            heap: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn heap(&self) -> Option<&Heap> {
        if self.state.load(Ordering::Acquire) == 0
            && (self
                .state
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire))
            .is_ok()
        {
            match self.open() {
                Ok(class) => self
                    .heap
                    .store(Arc::into_raw(class.0).cast_mut(), Ordering::Release),
                Err(why) => eprintln!("weir-alloc: {why}; the system's allocator serves"),
            }
        }
        // SAFETY: null until it is opened; then it is never dropped.
        unsafe { self.heap.load(Ordering::Acquire).as_ref() }
    }

    fn open(&self) -> Result<Class, crate::PolicyError> {
        let arenas = match std::env::var_os("WEIR_ALLOC_POLICY") {
            Some(path) => Arenas::from_policy(path)?,
            None => Arenas::from_text("", "")?,
        };
        for notice in arenas.notices() {
            eprintln!("weir-alloc: {notice}");
        }
        arenas.class(&ObjectClass::named(self.class))
    }

    /// An object of the class; `None` where the system's allocator serves.
    fn object(&self, bytes: usize, align: usize) -> Option<*mut u8> {
        inside(|| {
            let made = self.heap()?.alloc(bytes, align);
            Some(made.map_or(ptr::null_mut(), |object| object.as_ptr()))
        })?
    }
}

// SAFETY: as of `Class`; what the system's allocator gave goes back to it, since no segment has its address.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract, which is the same.
        (self.object(layout.size(), layout.align()))
            .unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.object(layout.size(), layout.align()) {
            Some(object) => {
                // A mapping of its own is new, and zero.
                if !object.is_null() && layout.size() <= MEDIUM {
                    // SAFETY: it has this many bytes, and is used by no other thread.
                    unsafe { object.write_bytes(0, layout.size()) };
                }
                object
            }
            // SAFETY: as in `alloc`.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller gives it up.
        unsafe {
            if !heap::free(object) {
                System.dealloc(object, layout);
            }
        }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if heap::usable(object).is_none() {
            // SAFETY: it is the system's.
            return unsafe { System.realloc(object, layout, bytes) };
        }
        // SAFETY: the caller uses the new address only.
        let made = inside(|| unsafe { crate::realloc(object, bytes, layout.align()) });
        made.and_then(Result::ok)
            .map_or(ptr::null_mut(), |object| object.as_ptr())
    }
}
