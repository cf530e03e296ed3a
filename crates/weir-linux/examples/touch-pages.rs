//! Touches a part of its memory again and again, so that a profile of it has a known answer.
//!
//! `touch-pages MIB TOUCHED_MIB [scattered]`: the first pages of it, or single pages evenly between the others.
//!
//! `touch-pages MIB TOUCHED_MIB turn FOLDER`: two mapped files, `first` and `second`, each of this many MiB. It writes to the first
//! one, and from when FOLDER has a file `turn` the second one.

use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

const PAGE: usize = 4096;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let (Some(all), Some(touched)) = (number(0), number(1)) else {
        eprintln!("touch-pages MIB TOUCHED_MIB [scattered|turn FOLDER]");
        std::process::exit(2);
    };
    let kind = words.get(2).map(String::as_str);
    let stride = if kind == Some("scattered") {
        all / touched.max(1)
    } else {
        1
    };
    let folder = words.get(3).map(Path::new).filter(|_| kind == Some("turn"));
    // What is not zero is resident.
    let memory: [&mut [u8]; 2] = match folder {
        Some(folder) => [
            mapped(&folder.join("first"), all)?,
            mapped(&folder.join("second"), all)?,
        ],
        None => [vec![1_u8; all << 20].leak(), &mut []],
    };
    println!("{}", std::process::id());
    let pause = Duration::from_millis(if folder.is_some() { 10 } else { 1 });
    loop {
        let turned = folder.is_some_and(|folder| folder.join("turn").exists());
        let memory = &mut *memory[usize::from(turned)];
        for page in 0..(touched << 20) / PAGE {
            let Some(byte) = memory.get_mut(page * stride * PAGE) else {
                break;
            };
            match folder {
                Some(_) => *byte = byte.wrapping_add(1),
                None => _ = black_box(*byte),
            }
        }
        std::thread::sleep(pause);
    }
}

/// A new file in memory.
fn mapped(path: &Path, mib: usize) -> io::Result<&'static mut [u8]> {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    file.set_len((mib << 20) as u64)?;
    let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: the kernel chooses the place; the mapping is never taken back, and no other process has the new file.
    let memory = unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            mib << 20,
            read_write,
            shared,
            file.as_raw_fd(),
            0,
        );
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        std::slice::from_raw_parts_mut(start.cast::<u8>(), mib << 20)
    };
    memory.fill(1);
    Ok(memory)
}
