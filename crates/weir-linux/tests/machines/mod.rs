//! The recorded machines in this folder. The head of each says what it was made from.

use std::fs;
use std::path::{Path, PathBuf};

use weir_linux::Root;
use weir_linux::recording::{self, Tree};

/// A recorded machine.
pub fn tree(name: &str) -> Tree {
    recording::open(&file(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// The files of a recorded machine as a root.
pub fn root(name: &str) -> Root {
    Root::recorded(tree(name))
}

pub fn file(name: &str) -> PathBuf {
    home().join(format!("{name}.machine"))
}

pub fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

/// Every recorded machine, by name.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(home())
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".machine")?.to_owned())
        })
        .collect();
    names.sort();
    names
}
