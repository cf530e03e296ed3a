//! What Weir says about files with mistakes, kept as it is shown.
//!
//! `WEIR_UPDATE_GOLDEN=1 cargo test -p weir-model --test golden` writes the expectations anew.

use std::fs;
use std::path::{Path, PathBuf};

use weir_model::platform::Library;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")
}

#[test]
fn a_table_that_is_there_twice_is_one_mistake() {
    let host = include_str!("../../../platforms/gold6130.toml");
    let wrong = |more: &str| {
        let text = format!("{host}\n[core]\nclock = \"3 GHz\"\nsteps = [\n  1,\n]\n{more}");
        let mistakes = Library::builtin().check("p.toml", &text).unwrap_err();
        let lines = mistakes.shown.iter().map(|m| m.line);
        let behind = |line: usize| line - host.lines().count() - 2;
        lines.map(behind).collect::<Vec<usize>>()
    };
    assert_eq!(wrong(""), [0]);
    // What follows it is read.
    assert_eq!(wrong("[nonsense]\nnone = 1\n"), [0, 5]);
}

#[test]
fn every_mistake_is_shown_with_its_place_and_its_remedy() {
    let library = Library::builtin();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 10);
    let update = std::env::var_os("WEIR_UPDATE_GOLDEN").is_some();
    let mut differing = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let shown = match library.check(&name, &text) {
            Ok(definition) => panic!("{name} has no mistake: {definition:?}"),
            Err(mistakes) => format!("{mistakes}\n"),
        };
        let golden = path.with_extension("txt");
        if update {
            fs::write(&golden, &shown).unwrap();
        } else if fs::read_to_string(&golden).ok().as_deref() != Some(shown.as_str()) {
            differing.push(format!("--- {name} ---\n{shown}"));
        }
    }
    assert!(
        differing.is_empty(),
        "these differ from their .txt:\n{}",
        differing.join("\n")
    );
}
