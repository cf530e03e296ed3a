//! Has an index in one class and a cold column in another, so that the kernel says on which nodes they are.
//!
//! `alloc-classes POLICY MIB`: this much of each. It prints its process, and waits for its input to end.

use std::io::Read as _;
use weir_alloc::{Arenas, ObjectClass};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(policy), Some(mib)) = (words.next(), words.next()) else {
        return Err("alloc-classes POLICY MIB".into());
    };
    let bytes = mib.parse::<usize>()? << 20;
    let arenas = Arenas::from_policy(policy)?;
    for notice in arenas.notices() {
        eprintln!("{notice}");
    }
    let (index, cold) = (
        arenas.class(&ObjectClass::Index)?,
        arenas.class(&ObjectClass::Cold)?,
    );
    // A column is one array, an index has small nodes.
    let column = cold.alloc(bytes, 64)?;
    // SAFETY: it has this many bytes, and is never freed.
    unsafe { column.write_bytes(2, bytes) };
    for _ in 0..bytes / 256 {
        let node = index.alloc(256, 64)?;
        // SAFETY: as above.
        unsafe { node.write_bytes(1, 256) };
    }
    println!("process {} has {index:?} {cold:?}", std::process::id());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
