//! All tests of the machine: one program, since each costs as much to compile and link as most of them take to run.

mod common;

mod attached;
mod backing;
mod burst;
mod calibration;
mod clocks;
mod complexes;
mod controls;
mod directory;
mod gone;
mod hosts;
mod interference;
mod llc_sharing;
mod loaded;
mod loads;
mod media;
mod miku;
mod occupancy;
mod pages;
mod programs;
mod requests;
mod sampled;
mod shapes;
mod siblings;
mod sockets;
mod storage;
mod tail;
mod tenants;
mod uncached;
mod uses;

/// A file that is not named above would not run.
#[test]
fn every_file_is_a_module() {
    let named = include_str!("all.rs");
    let apart = ["all.rs", "physics.rs", "laws.rs", "stop.rs"];
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = file.strip_suffix(".rs")
            && !apart.contains(&file.as_str())
        {
            assert!(named.contains(&format!("mod {name};\n")), "{file}");
        }
    }
}
