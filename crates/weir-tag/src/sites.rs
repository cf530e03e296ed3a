//! The code that asks for memory, as a name: `site:MODULE+0xOFFSET`.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::io::Write as _;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Sites that are remembered, and the number of all others, which are looked for at each allocation.
pub const MOST: usize = 4096;
/// Characters of a module's name, so that a name has less than 40 in all: `weir` cuts longer ones.
const MODULE: usize = 20;
const NAME: usize = 40;
/// Frames that are looked through for a caller outside the runtime.
const FRAMES: usize = 32;

/// A site.
#[derive(Clone, Copy)]
pub struct Site {
    /// Its number among those that are remembered; [`MOST`] for others.
    pub number: u32,
    /// Whether its module is a runtime library, whose callers are more interesting.
    is_runtime: bool,
    length: u8,
    text: [u8; NAME],
}

impl Site {
    /// `site:MODULE+0xOFFSET`.
    pub fn name(&self) -> &[u8] {
        self.text
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }
}

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

struct Known {
    address: AtomicUsize,
    state: AtomicU8,
    site: UnsafeCell<Site>,
}

// SAFETY: `site` is written by the thread that made the state `FILLING`, and read after it is `FULL`, which it stays.
unsafe impl Sync for Known {}

static KNOWN: [Known; MOST] = [const {
    Known {
        address: AtomicUsize::new(0),
        state: AtomicU8::new(EMPTY),
        site: UnsafeCell::new(Site {
            number: 0,
            is_runtime: false,
            length: 0,
            text: [0; NAME],
        }),
    }
}; MOST];
static UP: AtomicUsize = AtomicUsize::new(0);

/// Sites are this many frames further up.
pub fn set_up(frames: usize) {
    UP.store(frames.min(FRAMES), Ordering::Relaxed);
}

/// The site of an allocation that returns to this address.
#[inline(never)]
pub fn of(address: usize) -> Site {
    let site = at(address);
    match UP.load(Ordering::Relaxed) {
        0 if !site.is_runtime => site,
        up => above(address, up).map_or(site, at),
    }
}

/// What is at an address. A module that is loaded where another was is taken for it.
fn at(address: usize) -> Site {
    let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    for number in (0..8).map(|i| (hash + i) % MOST) {
        let known = &KNOWN[number];
        let (none, order) = (EMPTY, Ordering::Acquire);
        if known.state.load(order) == EMPTY
            && known
                .state
                .compare_exchange(none, FILLING, order, order)
                .is_ok()
        {
            let site = looked_up(address, number);
            known.address.store(address, Ordering::Relaxed);
            // SAFETY: only the thread that made the state `FILLING` is here.
            unsafe { *known.site.get() = site };
            known.state.store(FULL, Ordering::Release);
            return site;
        }
        if known.state.load(order) == FULL && known.address.load(Ordering::Relaxed) == address {
            // SAFETY: a full entry is not written again.
            return unsafe { *known.site.get() };
        }
    }
    looked_up(address, MOST)
}

struct Search {
    address: usize,
    site: Site,
}

fn looked_up(address: usize, number: usize) -> Site {
    let site = Site {
        number: number as u32,
        is_runtime: false,
        length: 0,
        text: [0; NAME],
    };
    let mut search = Search { address, site };
    // SAFETY: the function is of the type that the loader calls, with the search that lives until it returns.
    unsafe { libc::dl_iterate_phdr(Some(module), (&raw mut search).cast()) };
    if search.site.length == 0 {
        search.site.write(b"code", address);
    }
    search.site
}

impl Site {
    fn write(&mut self, module: &[u8], offset: usize) {
        let mut rest = &mut self.text[..];
        let plain =
            |c: &u8| matches!(c, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let _ = rest.write_all(b"site:");
        for c in module.iter().take(MODULE) {
            let _ = rest.write_all(&[if plain(c) { *c } else { b'_' }]);
        }
        let _ = write!(rest, "+{offset:#x}");
        self.length = (NAME - rest.len()) as u8;
    }
}

unsafe extern "C" fn module(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader hands a module that stays during the call, and what `looked_up` gave it.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: it says how many headers there are.
    let parts = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let offset = search.address.wrapping_sub(info.dlpi_addr as usize);
    let has = |part: &libc::Elf64_Phdr| {
        part.p_type == libc::PT_LOAD
            && offset.wrapping_sub(part.p_vaddr as usize) < part.p_memsz as usize
    };
    if !parts.iter().any(has) {
        return 0;
    }
    let mut own = [0_u8; 256];
    // SAFETY: a text of the loader with a final zero; the program itself has none.
    let path = match unsafe {
        info.dlpi_name
            .as_ref()
            .map(|name| CStr::from_ptr(name).to_bytes())
    } {
        Some(path) if !path.is_empty() => path,
        // SAFETY: it writes at most the bytes that there are.
        _ => match unsafe {
            libc::readlink(
                c"/proc/self/exe".as_ptr(),
                own.as_mut_ptr().cast(),
                own.len(),
            )
        } {
            length @ 1.. => own.get(..length as usize).unwrap_or_default(),
            _ => b"program",
        },
    };
    let file = path.rsplit(|&c| c == b'/').next().unwrap_or(path);
    let end = file
        .windows(3)
        .position(|three| three == b".so")
        .unwrap_or(file.len());
    let name = &file[..end];
    search.site.is_runtime = [
        &b"libc"[..],
        b"libstdc++",
        b"libc++",
        b"libgcc_s",
        b"ld-linux-x86-64",
        b"libweir_tag",
    ]
    .contains(&name);
    search.site.write(name, offset);
    1
}

unsafe extern "C" {
    // Of libgcc, with which every program of Rust's standard library is linked.
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        with: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

struct Walk {
    from: usize,
    has_begun: bool,
    up: usize,
    seen: usize,
    found: Option<usize>,
}

/// The first caller above an address that is in no runtime library, and then this many frames further up.
fn above(address: usize, up: usize) -> Option<usize> {
    let mut walk = Walk {
        from: address,
        has_begun: false,
        up,
        seen: 0,
        found: None,
    };
    // SAFETY: the unwinder reads frames as far as the program describes them, and hands each to `frame` with the walk, which
    // lives until it returns.
    unsafe { _Unwind_Backtrace(frame, ptr::from_mut(&mut walk).cast()) };
    walk.found
}

unsafe extern "C" fn frame(context: *mut c_void, walk: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 4;
    // SAFETY: what `above` gave the unwinder, and the unwinder's own frame.
    let (walk, address) = unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context)) };
    walk.seen += 1;
    walk.has_begun |= address == walk.from;
    if walk.has_begun && !at(address).is_runtime {
        // The last frame that there is, if there are not enough.
        walk.found = Some(address);
        if walk.up == 0 {
            return STOP;
        }
        walk.up -= 1;
    }
    if walk.seen < FRAMES { GO_ON } else { STOP }
}
