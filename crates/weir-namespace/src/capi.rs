//! The same for C: `include/weir_namespace.h` says what each function does.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use crate::{Create, Heap, Keep, Make, Namespace, Options, Pool};

thread_local! {
    /// The last error of this thread.
    static ERROR: RefCell<CString> = RefCell::default();
}

const NULL: &str = "a pointer is null, or a name is no UTF-8";

fn failed<T>(why: impl Display, result: T) -> T {
    let text = CString::new(why.to_string().replace('\0', " ")).unwrap_or_default();
    let _ = ERROR.try_with(|error| *error.borrow_mut() = text);
    result
}

fn code<T>(done: crate::Result<T>) -> c_int {
    done.map_or_else(|why| failed(why, -1), |_| 0)
}

fn boxed<T>(made: crate::Result<T>) -> *mut T {
    made.map_or_else(
        |why| failed(why, ptr::null_mut()),
        |made| Box::into_raw(Box::new(made)),
    )
}

/// # Safety
/// Null, or a text with a final zero.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller's promise.
    let name = unsafe { name.as_ref() }.map(|name| unsafe { CStr::from_ptr(name) })?;
    name.to_str().ok()
}

/// # Safety
/// Null, or a text with a final zero.
unsafe fn options(path: *const c_char, host: *const c_char) -> Option<(&'static Path, Options)> {
    // SAFETY: the caller's promise; the path is used during the call only.
    let path = unsafe { path.as_ref() }.map(|path| unsafe { CStr::from_ptr(path) })?;
    let mut options = Options::default();
    if !host.is_null() {
        // SAFETY: the caller's promise.
        options.host = Some(unsafe { text(host) }?.to_owned());
    }
    Some((Path::new(OsStr::from_bytes(path.to_bytes())), options))
}

#[unsafe(no_mangle)]
extern "C" fn weir_namespace_error() -> *const c_char {
    ERROR
        .try_with(|error| error.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// # Safety
/// Texts with a final zero; `host` may be null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_make(
    path: *const c_char,
    bytes: u64,
    host: *const c_char,
) -> *mut Pool {
    // SAFETY: the caller's promise.
    let Some((path, options)) = (unsafe { options(path, host) }) else {
        return failed(NULL, ptr::null_mut());
    };
    let make = Make {
        bytes: (bytes > 0).then_some(bytes),
        ..Make::default()
    };
    boxed(Pool::make(path, &make, options))
}

/// # Safety
/// Texts with a final zero; `host` may be null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_open(path: *const c_char, host: *const c_char) -> *mut Pool {
    // SAFETY: the caller's promise.
    match unsafe { options(path, host) } {
        Some((path, options)) => boxed(Pool::open(path, options)),
        None => failed(NULL, ptr::null_mut()),
    }
}

/// # Safety
/// Of one of the two functions above, or null; it is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_pool_close(pool: *mut Pool) {
    if !pool.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(pool) });
    }
}

/// # Safety
/// A pool, and a text with a final zero.
unsafe fn with(
    pool: *const Pool,
    name: *const c_char,
    what: impl FnOnce(&Pool, &str) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { (pool.as_ref(), text(name)) } {
        (Some(pool), Some(name)) => what(pool, name),
        _ => failed(NULL, -1),
    }
}

/// # Safety
/// A pool, and a text with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_create(
    pool: *const Pool,
    name: *const c_char,
    bytes: u64,
    mode: u32,
    keep: c_int,
) -> c_int {
    let create = Create {
        mode,
        keep: match keep {
            0 => Keep::With(std::process::id()),
            _ => Keep::Forever,
        },
        ..Create::of(bytes)
    };
    // SAFETY: the caller's promise.
    unsafe { with(pool, name, |pool, name| code(pool.create(name, &create))) }
}

/// # Safety
/// A pool, and a text with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_resize(
    pool: *const Pool,
    name: *const c_char,
    bytes: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(pool, name, |pool, name| code(pool.resize(name, bytes))) }
}

/// # Safety
/// A pool, and texts with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_hand_over(
    pool: *const Pool,
    name: *const c_char,
    host: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(host) = (unsafe { text(host) }) else {
        return failed(NULL, -1);
    };
    // SAFETY: as above.
    unsafe {
        with(pool, name, |pool, name| {
            code(pool.hand_over(name, host, false))
        })
    }
}

/// # Safety
/// A pool, and a text with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_destroy(pool: *const Pool, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(pool, name, |pool, name| code(pool.destroy(name))) }
}

/// # Safety
/// A pool, and a text with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_map(
    pool: *const Pool,
    name: *const c_char,
    write: c_int,
) -> *mut Namespace {
    // SAFETY: the caller's promise.
    match unsafe { (pool.as_ref(), text(name)) } {
        (Some(pool), Some(name)) => boxed(pool.map(name, write != 0)),
        _ => failed(NULL, ptr::null_mut()),
    }
}

/// # Safety
/// Of `weir_namespace_map`, or null; neither it nor its memory is used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_close(namespace: *mut Namespace) -> c_int {
    if namespace.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    code(unsafe { Box::from_raw(namespace) }.close())
}

/// # Safety
/// A namespace that is open, and where its size may be stored, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_memory(
    namespace: *const Namespace,
    bytes: *mut u64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(namespace) = (unsafe { namespace.as_ref() }) else {
        return failed(NULL, ptr::null_mut());
    };
    if !bytes.is_null() {
        // SAFETY: the caller's promise.
        unsafe { bytes.write(namespace.bytes()) };
    }
    namespace.pointer().cast()
}

/// # Safety
/// A namespace that is open.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_check(namespace: *const Namespace) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { namespace.as_ref() }.map_or_else(|| failed(NULL, -1), |n| code(n.check()))
}

/// # Safety
/// A namespace that is open, and `bytes` bytes of ordinary memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_read(
    namespace: *const Namespace,
    at: u64,
    into: *mut u8,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { (namespace.as_ref(), into.is_null()) } {
        (Some(namespace), false) => {
            // SAFETY: the caller's promise.
            code(namespace.read_at(at, unsafe { std::slice::from_raw_parts_mut(into, bytes) }))
        }
        _ => failed(NULL, -1),
    }
}

/// # Safety
/// A namespace that is open, and `bytes` bytes of ordinary memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_write(
    namespace: *const Namespace,
    at: u64,
    from: *const u8,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { (namespace.as_ref(), from.is_null()) } {
        (Some(namespace), false) => {
            // SAFETY: the caller's promise.
            code(namespace.write_at(at, unsafe { std::slice::from_raw_parts(from, bytes) }))
        }
        _ => failed(NULL, -1),
    }
}

/// # Safety
/// A namespace that is open.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_flush(
    namespace: *const Namespace,
    at: u64,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { namespace.as_ref() }.map_or_else(|| failed(NULL, -1), |n| code(n.flush(at, bytes)))
}

/// # Safety
/// A namespace that is open to be written.
unsafe fn heap<'a>(namespace: *const Namespace, make: bool) -> crate::Result<Heap<'a>> {
    // SAFETY: the caller's promise.
    let namespace = unsafe { namespace.as_ref() };
    let namespace = namespace.ok_or_else(|| crate::NamespaceError::Request(NULL.into()))?;
    match make {
        true => Heap::make(namespace),
        false => Heap::open(namespace),
    }
}

/// # Safety
/// A namespace that is open to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_heap(namespace: *const Namespace) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { heap(namespace, true) })
}

/// # Safety
/// A namespace that is open to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_malloc(namespace: *const Namespace, bytes: usize) -> u64 {
    // SAFETY: the caller's promise.
    let done = unsafe { heap(namespace, false) }.and_then(|heap| heap.allocate(bytes));
    done.unwrap_or_else(|why| failed(why, 0))
}

/// # Safety
/// A namespace that is open to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_namespace_free(namespace: *const Namespace, offset: u64) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { heap(namespace, false) }.and_then(|heap| heap.free(offset)))
}
