//! The library that names a command's large allocations after the code that asks for them: where it is, and what it cannot do.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use weir_linux::tracer::find;

use crate::failure::{Failure, Result};
use crate::session::say;

const FILE: &str = "libweir_tag.so";
/// What builds the library.
const BUILD: &str = "`cargo build --release -p weir-tag` makes target/release/libweir_tag.so";
/// Said of a recording without a name of the library.
pub(super) const NOTHING: &str = "--tag named nothing: no allocation of 1 MiB and more (WEIR_TAG_FROM) by `malloc` was seen; \
                                  a program with an allocator of its own has none";

/// Whether allocations are named, and by which file.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Tag {
    /// Preload libweir_tag.so, so that large allocations are named after the code that asks for them: FILE, or the one next to
    /// `weir` or in ../lib from there.
    #[arg(long, value_name = "FILE", num_args = 0..=1, visible_alias = "tag-library")]
    tag: Option<Option<PathBuf>>,
}

impl Tag {
    /// Whether allocations are named.
    pub fn is_asked(&self) -> bool {
        self.tag.is_some()
    }

    /// The library by its whole path; `None` where allocations are not named.
    ///
    /// # Errors
    /// It is not there.
    pub(super) fn library(&self) -> Result<Option<PathBuf>> {
        let Some(named) = &self.tag else {
            return Ok(None);
        };
        if let Some(file) = named {
            let whole = file.canonicalize().map_err(|why| {
                Failure::request(format!("--tag {}: {why}; {BUILD}", file.display()))
            });
            return whole.map(Some);
        }
        let weir = std::env::current_exe().ok();
        let folder = weir.as_deref().and_then(Path::parent);
        match folder.and_then(found) {
            Some(file) => Ok(Some(file)),
            None => Err(Failure::Missing(anyhow::anyhow!(
                "{FILE}, which names allocations, is neither in {} nor in ../lib from there; {BUILD}: put it there, or name it \
                 with --tag FILE",
                folder.unwrap_or(Path::new("the folder of weir")).display()
            ))),
        }
    }
}

/// The library of a command that is in this folder.
fn found(folder: &Path) -> Option<PathBuf> {
    let places = [folder.join(FILE), folder.join("../lib").join(FILE)];
    places.iter().find_map(|file| file.canonicalize().ok())
}

/// Says of a program without a dynamic loader that it loads no library.
pub(super) fn say_if_static(name: &str) {
    if find(name).is_some_and(|program| is_static(&program)) {
        say(&format!(
            "weir: warning: `{name}` is a static program, which loads no library (LD_PRELOAD): --tag names none of its allocations"
        ));
    }
}

/// Whether a program is an ELF file of 64 bits without a segment `PT_INTERP`, which names its loader (elf(5)).
fn is_static(program: &Path) -> bool {
    const PT_INTERP: u32 = 3;
    let has_loader = || -> Option<bool> {
        let file = File::open(program).ok()?;
        let mut head = [0_u8; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        if !head.starts_with(b"\x7fELF\x02") {
            return None;
        }
        let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        let mut at = u64::from_ne_bytes(head[32..40].try_into().ok()?);
        let (length, segments) = (half(54), half(56));
        for _ in 0..segments {
            let mut kind = [0; 4];
            file.read_exact_at(&mut kind, at).ok()?;
            if u32::from_ne_bytes(kind) == PT_INTERP {
                return Some(true);
            }
            at = at.checked_add(length.into())?;
        }
        Some(false)
    };
    has_loader() == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_next_to_the_command_or_in_lib() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file.canonicalize().unwrap()
        };
        let bin = made("bin/weir");
        let bin = bin.parent().unwrap();
        assert_eq!(found(bin), None);
        let lib = made("lib/libweir_tag.so");
        assert_eq!(found(bin), Some(lib));
        let beside = made("bin/libweir_tag.so");
        assert_eq!(found(bin), Some(beside));
    }

    #[test]
    fn a_program_is_static_if_it_names_no_loader() {
        // This test has a loader; a text and the head of a file are no programs.
        assert!(!is_static(&std::env::current_exe().unwrap()));
        let folder = tempfile::tempdir().unwrap();
        let of = |bytes: &[u8]| {
            let file = folder.path().join("program");
            std::fs::write(&file, bytes).unwrap();
            is_static(&file)
        };
        let mut head = [0_u8; 64 + 56];
        head[..5].copy_from_slice(b"\x7fELF\x02");
        (head[32], head[54], head[56]) = (64, 56, 1);
        head[64] = 1;
        assert!(of(&head));
        head[64] = 3;
        assert!(!of(&head) && !of(&head[..80][..30]) && !of(b"#!/bin/sh\n"));
        // Segments that are not in the file are not known.
        head[56] = 9;
        head[64] = 1;
        assert!(!of(&head));
    }
}
