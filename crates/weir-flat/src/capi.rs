//! The same for C: `include/weir_flat.h` says what each function does.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use crate::{Buffer, File, Options, Store};

thread_local! {
    /// The last error of this thread.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Keeps why something failed.
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
/// A text with a final zero.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller's promise.
    let name = unsafe { name.as_ref() }.map(|name| unsafe { CStr::from_ptr(name) })?;
    name.to_str().ok()
}

/// # Safety
/// Made by `boxed`, or null, and not used any more.
unsafe fn unbox<T>(made: *mut T) {
    if !made.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(made) });
    }
}

const NULL: &str = "a pointer is null, or a name is no UTF-8";

#[unsafe(no_mangle)]
extern "C" fn weir_flat_error() -> *const c_char {
    ERROR
        .try_with(|error| error.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// # Safety
/// `path` is a text with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_open(path: *const c_char, create: u64, cache: u64) -> *mut Store {
    // SAFETY: the caller's promise.
    let Some(path) = (unsafe { path.as_ref() }).map(|path| unsafe { CStr::from_ptr(path) }) else {
        return failed(NULL, ptr::null_mut());
    };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let options = Options {
        create: (create > 0).then_some(create),
        ..Options::default()
    };
    let cache = if cache == 0 { options.cache } else { cache };
    boxed(Store::open(path, Options { cache, ..options }))
}

/// # Safety
/// Of `weir_flat_open`, or null; it is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_close(store: *mut Store) -> c_int {
    if store.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    code(unsafe { Box::from_raw(store) }.close())
}

/// # Safety
/// A store that is open, and a text with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_file(
    store: *const Store,
    name: *const c_char,
    create: c_int,
) -> *mut File {
    // SAFETY: the caller's promise.
    let (Some(store), Some(name)) = (unsafe { (store.as_ref(), text(name)) }) else {
        return failed(NULL, ptr::null_mut());
    };
    boxed(if create != 0 {
        store.create(name)
    } else {
        store.file(name)
    })
}

/// # Safety
/// Of `weir_flat_file`, or null; it is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_file_close(file: *mut File) {
    // SAFETY: the caller's promise.
    unsafe { unbox(file) };
}

/// # Safety
/// A store that is open, and a text with a final zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_remove(store: *const Store, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let (Some(store), Some(name)) = (unsafe { (store.as_ref(), text(name)) }) else {
        return failed(NULL, -1);
    };
    code(store.remove(name))
}

/// # Safety
/// A store that is open.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_flush(store: *const Store) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { store.as_ref() }.map_or_else(|| failed(NULL, -1), |store| code(store.flush()))
}

/// # Safety
/// A store that is open.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_sync(store: *const Store) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { store.as_ref() }.map_or_else(|| failed(NULL, -1), |store| code(store.sync()))
}

/// # Safety
/// A store that is open.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_buffer(store: *const Store, bytes: usize) -> *mut Buffer {
    // SAFETY: the caller's promise.
    match unsafe { store.as_ref() } {
        Some(store) => boxed(store.buffer(bytes)),
        None => failed(NULL, ptr::null_mut()),
    }
}

/// # Safety
/// Of `weir_flat_buffer`, or null; neither it nor its bytes are used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_buffer_free(buffer: *mut Buffer) {
    // SAFETY: the caller's promise.
    unsafe { unbox(buffer) };
}

/// # Safety
/// A buffer, and where a length may be stored, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_bytes(buffer: *mut Buffer, length: *mut usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(buffer) = (unsafe { buffer.as_mut() }) else {
        return failed(NULL, ptr::null_mut());
    };
    let bytes = buffer.bytes_mut();
    if !length.is_null() {
        // SAFETY: the caller's promise.
        unsafe { length.write(bytes.len()) };
    }
    bytes.as_mut_ptr().cast()
}

/// # Safety
/// A buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_renew(buffer: *mut Buffer) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { buffer.as_mut() }.map_or_else(|| failed(NULL, -1), |buffer| code(buffer.renew()))
}

/// # Safety
/// A buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_window(buffer: *mut Buffer, start: usize, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { buffer.as_mut() } {
        Some(buffer) => code(buffer.set_window(start, length)),
        None => failed(NULL, -1),
    }
}

/// # Safety
/// A file and a buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_read(
    file: *const File,
    offset: u64,
    length: usize,
    buffer: *mut Buffer,
    modify: c_int,
) -> isize {
    // SAFETY: the caller's promise.
    let (Some(file), Some(buffer)) = (unsafe { (file.as_ref(), buffer.as_mut()) }) else {
        return failed(NULL, -1);
    };
    let read = if modify != 0 {
        file.read_to_modify(offset, length, buffer)
    } else {
        file.read(offset, length, buffer)
    };
    read.map_or_else(|why| failed(why, -1), |length| length as isize)
}

/// # Safety
/// A file and a buffer.
#[unsafe(no_mangle)]
unsafe extern "C" fn weir_flat_write(file: *const File, offset: u64, buffer: *mut Buffer) -> c_int {
    // SAFETY: the caller's promise.
    let (Some(file), Some(buffer)) = (unsafe { (file.as_ref(), buffer.as_mut()) }) else {
        return failed(NULL, -1);
    };
    code(file.write(offset, buffer))
}
