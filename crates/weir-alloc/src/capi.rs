//! The same for C: `include/weir_alloc.h` says what each function does.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use crate::{Arenas, Class, ObjectClass, Stats};

thread_local! {
    /// The last error of this thread.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Arenas, and their notices as a text of C.
struct Opened {
    arenas: Arenas,
    notices: CString,
}

fn c_text(text: impl Display) -> CString {
    let text = text.to_string().replace('\0', " ");
    CString::new(text).unwrap_or_default()
}

/// Keeps why something failed.
fn failed<T>(why: impl Display, result: T) -> T {
    let _ = ERROR.try_with(|error| *error.borrow_mut() = c_text(why));
    result
}

/// # Safety
/// `path` is a text with a final zero, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_alloc_open(path: *const c_char) -> *mut Opened {
    let opened = match path.is_null() {
        true => Arenas::from_text("", ""),
        // SAFETY: the caller's promise.
        false => Arenas::from_policy(OsStr::from_bytes(
            unsafe { CStr::from_ptr(path) }.to_bytes(),
        )),
    };
    match opened {
        Ok(arenas) => {
            let notices = c_text(arenas.notices().join("\n"));
            Box::into_raw(Box::new(Opened { arenas, notices }))
        }
        Err(why) => failed(why, ptr::null_mut()),
    }
}

/// # Safety
/// Of `weir_alloc_open`, or null; neither it, its classes nor their objects are used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_alloc_close(arenas: *mut Opened) {
    if !arenas.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(arenas) });
    }
}

/// # Safety
/// Of `weir_alloc_open`, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_alloc_notices(arenas: *const Opened) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { arenas.as_ref() }.map_or(c"".as_ptr(), |arenas| arenas.notices.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn weir_alloc_error() -> *const c_char {
    ERROR
        .try_with(|error| error.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// # Safety
/// `arenas` of `weir_alloc_open`, or null; `name` a text with a final zero, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_alloc_class(arenas: *const Opened, name: *const c_char) -> *const Class {
    if arenas.is_null() || name.is_null() {
        return failed("no arenas, or no name of a class", ptr::null());
    }
    // SAFETY: the caller's promise.
    let (arenas, name) = unsafe { (&*arenas, CStr::from_ptr(name)) };
    let name = name.to_string_lossy();
    let all = arenas.arenas.classes();
    match all.iter().find(|class| class.name() == name) {
        Some(class) => class,
        None => match arenas.arenas.class(&ObjectClass::named(&name)) {
            Ok(_) => ptr::null(),
            Err(why) => failed(why, ptr::null()),
        },
    }
}

/// # Safety
/// Of `weir_alloc_class` of open arenas, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_alloc(class: *const Class, size: usize, align: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(class) = (unsafe { class.as_ref() }) else {
        return failed("no class", ptr::null_mut());
    };
    match class.alloc(size, align.max(1)) {
        Ok(object) => object.as_ptr().cast(),
        Err(why) => failed(why, ptr::null_mut()),
    }
}

/// # Safety
/// An object of open arenas, which is used at its new address only.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_realloc(object: *mut c_void, size: usize, align: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { crate::realloc(object.cast(), size, align.max(1)) } {
        Ok(object) => object.as_ptr().cast(),
        Err(why) => failed(why, ptr::null_mut()),
    }
}

/// # Safety
/// It is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_free(object: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    if object.is_null() || unsafe { crate::free(object.cast()) } {
        return 0;
    }
    failed(format_args!("no object begins at {object:p}"), -1)
}

#[unsafe(no_mangle)]
extern "C" fn weir_usable_size(object: *const c_void) -> usize {
    crate::usable_size(object.cast()).unwrap_or(0)
}

/// # Safety
/// Of `weir_alloc_class` of open arenas, or null; `to` has room for the figures.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_alloc_stats(class: *const Class, to: *mut Stats) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { (class.as_ref(), to.as_mut()) } {
        (Some(class), Some(to)) => {
            *to = class.stats();
            0
        }
        _ => failed("no class, or no room for its figures", -1),
    }
}

/// # Safety
/// Of `weir_alloc_class` of open arenas, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_alloc_trim(class: *const Class) {
    // SAFETY: the caller's promise.
    if let Some(class) = unsafe { class.as_ref() } {
        class.trim();
    }
}
