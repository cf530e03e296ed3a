//! Writes and reads a store on any medium, and prints what the library and the kernel counted, one `key value` a line.
//!
//! `flat-check PATH [BYTES]`: a file, which is made, or a DAX device, whose content is lost. The guest `flat-cache` of
//! `tests/vm` runs it on ext4 with and without DAX, tmpfs, and a CXL device.

use std::error::Error;
use std::fs;

use weir_flat::{Options, Store};

const IO: usize = 2 << 20;

/// kB of private copies in the mappings of these bytes, by `/proc/self/smaps`.
fn anonymous(bytes: &[u8]) -> Result<u64, Box<dyn Error>> {
    let (from, to) = (
        bytes.as_ptr() as usize,
        bytes.as_ptr() as usize + bytes.len(),
    );
    let (mut within, mut sum) = (false, 0);
    for line in fs::read_to_string("/proc/self/smaps")?.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let (start, end) = (
                usize::from_str_radix(start, 16)?,
                usize::from_str_radix(end, 16)?,
            );
            within = start < to && end > from;
        } else if within && first == "Anonymous:" {
            sum += line[first.len()..]
                .trim()
                .trim_end_matches(" kB")
                .parse::<u64>()?;
        }
    }
    Ok(sum)
}

fn check(path: &str, bytes: u64) -> Result<(), Box<dyn Error>> {
    let options = Options {
        create: Some(bytes),
        cache: 16 << 20,
        ..Options::default()
    };
    let store = Store::open(path, options.clone())?;
    println!("medium {}", store.medium());
    let file = store.create("a")?;
    let mut buffer = store.buffer(IO)?;
    for block in 0..4_u8 {
        buffer.renew()?;
        buffer.bytes_mut().fill(block + 1);
        file.write(u64::from(block) * IO as u64, &mut buffer)?;
    }
    file.read(0, IO, &mut buffer)?;
    let sum: u64 = buffer.bytes().iter().map(|byte| u64::from(*byte)).sum();
    println!("warm_sum {sum}");
    println!("warm_anonymous_kb {}", anonymous(buffer.bytes())?);
    let stats = store.stats();
    println!(
        "copied_bytes {}",
        stats.read_copied_bytes + stats.write_copied_bytes
    );
    match store.sync() {
        Ok(()) => println!("sync durable"),
        Err(why) => println!("sync {why}"),
    }
    drop((buffer, file));
    store.close()?;

    let store = Store::open(
        path,
        Options {
            create: None,
            ..options
        },
    )?;
    let file = store.file("a")?;
    let mut buffer = store.buffer(IO)?;
    let mut wrong = 0;
    for block in 0..4_u8 {
        file.read(u64::from(block) * IO as u64, IO, &mut buffer)?;
        wrong += buffer
            .bytes()
            .iter()
            .filter(|byte| **byte != block + 1)
            .count();
        if block == 0 {
            println!("cold_anonymous_kb {}", anonymous(buffer.bytes())?);
            // The kernel copies the page of the medium, and the file keeps its own.
            buffer.bytes_mut()[0] = 99;
        }
    }
    let mut first = [0];
    file.read_into(0, &mut first)?;
    println!("wrong_bytes {wrong}");
    println!("first_byte {}", first[0]);
    println!("cold_missed_pages {}", store.stats().missed_pages);
    Ok(())
}

fn main() {
    let mut words = std::env::args().skip(1);
    let path = words.next().unwrap_or_default();
    let bytes = words.next().map_or(Ok(64 << 20), |text| text.parse());
    let done = bytes
        .map_err(Into::into)
        .and_then(|bytes| check(&path, bytes));
    if let Err(why) = done {
        eprintln!("flat-check: {why}");
        std::process::exit(1);
    }
}
