//! Makes a recording of a machine: every question of `topo` and `doctor`, with its answer.

use std::collections::BTreeMap;

use super::scrub::{Scrubbed, Scrubber};
use super::tree::{Entry, Tree};
use super::write::write;
use crate::doctor;
use crate::root::Root;
use crate::topology;

/// A finished recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its text.
    pub text: String,
    /// How many files it holds.
    pub files: usize,
    /// What was removed.
    pub scrubbed: Vec<Scrubbed>,
}

/// Records the machine below `root`. Exactly the files that were read are recorded, so that the recording is
/// read as the machine was; `notes` become comments at its head.
pub fn make(root: &Root, notes: &[String]) -> Made {
    let (root, trace) = root.traced();
    let view = topology::discover(&root);
    doctor::examine(&root, &view);

    let mut scrubber = if root.is_live() {
        Scrubber::of_this_computer()
    } else {
        Scrubber::default()
    };
    let mut tree = Tree::default();
    let mut links = BTreeMap::new();
    for (path, entry) in trace.entries() {
        let path = real(&root, &path, &mut links);
        let entry = match entry {
            Entry::File(text) => Entry::File(scrubber.clean(&path, &text)),
            other => other,
        };
        match entry {
            // An entry that is already known contains more.
            Entry::Folder(_) => drop(tree.insert(&path, entry)),
            _ => tree.replace(&path, entry),
        }
    }
    for (path, target) in links {
        tree.replace(&path, Entry::Link(target));
    }
    Made {
        text: write(&tree, notes),
        files: tree.files().len(),
        scrubbed: scrubber.report(),
    }
}

/// A path of the system without links, and the links on the way. The process's own folder below `/proc` is
/// such a link, and stays: its number is private.
fn real(root: &Root, path: &str, links: &mut BTreeMap<String, String>) -> String {
    if path.starts_with("/proc/") {
        return path.to_owned();
    }
    let mut here = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        here = format!("{here}/{part}");
        if let Some(target) = links.get(&here).cloned().or_else(|| root.link(&here)) {
            links.insert(here, target.clone());
            here = target;
        }
    }
    here
}
