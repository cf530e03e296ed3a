//! `docs/platforms.md` says what the reader does.
//!
//! `WEIR_UPDATE_GOLDEN=1 cargo test -p weir-model --test documentation` writes its tables anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use weir_model::platform::{FileKind, Library, Need, ReferenceRow};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/platforms.md")
}

fn document() -> String {
    fs::read_to_string(path()).unwrap()
}

/// The blocks of this language, without their fences.
fn blocks<'d>(document: &'d str, language: &str) -> Vec<&'d str> {
    document
        .split(&format!("```{language}\n"))
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(block, _)| block))
        .collect()
}

fn defaults(row: &ReferenceRow) -> String {
    match row.need {
        Need::Required => return "*required*".into(),
        Need::Optional => return "*optional*".into(),
        Need::Derived => return "see below".into(),
        Need::Defaulted => {}
    }
    let with_names = |(value, names): &(String, Vec<String>)| {
        if names.is_empty() {
            value.clone()
        } else {
            format!("{value} ({})", names.join(", "))
        }
    };
    let texts: Vec<String> = row.defaults.iter().map(with_names).collect();
    texts.join("; ")
}

fn table(rows: &[ReferenceRow]) -> String {
    let mut out = String::from("| key | takes | default | meaning |\n|---|---|---|---|\n");
    for row in rows {
        let _ = writeln!(
            out,
            "| `{} = {}` | {} | {} | {} |",
            row.key,
            row.example,
            row.takes,
            defaults(row),
            row.meaning
        );
    }
    out
}

#[test]
fn the_reference_in_the_documentation_is_that_of_the_reader() {
    let library = Library::builtin();
    let mut document = document();
    let before = document.clone();
    for kind in [FileKind::Device, FileKind::Storage, FileKind::Host] {
        let head = format!("<!-- reference: {} -->\n", kind.name());
        let start = document.find(&head).unwrap() + head.len();
        let length = document[start..].find("<!-- end -->").unwrap();
        document.replace_range(start..start + length, &table(&library.reference(kind)));
    }
    if std::env::var_os("WEIR_UPDATE_GOLDEN").is_some() {
        fs::write(path(), &document).unwrap();
    } else {
        assert!(
            document == before,
            "docs/platforms.md is not up to date; \
             WEIR_UPDATE_GOLDEN=1 cargo test -p weir-model --test documentation writes it anew"
        );
    }
}

#[test]
fn every_default_key_has_a_default_for_everyone() {
    let library = Library::builtin();
    for kind in [FileKind::Device, FileKind::Storage, FileKind::Host] {
        for row in library.reference(kind) {
            let covered: usize = row.defaults.iter().map(|(_, names)| names.len()).sum();
            let for_all = row.defaults.iter().any(|(_, names)| names.is_empty());
            let all = match kind {
                FileKind::Host => library.microarchitectures().len(),
                _ => 2,
            };
            let wanted = row.need == Need::Defaulted;
            assert_eq!(for_all || covered == all, wanted, "{}", row.key);
        }
    }
}

#[test]
fn every_file_in_the_documentation_is_without_mistake() {
    let mut library = Library::builtin();
    let document = document();
    let files = blocks(&document, "toml");
    assert!(files.len() >= 3);
    assert!(files[0].lines().count() <= 10, "the first one is ten lines");
    for text in files {
        if let Err(mistakes) = library.add("our-card.toml", text) {
            panic!("{mistakes}");
        }
    }
}

#[test]
fn every_expression_in_the_documentation_is_a_machine() {
    let mut library = Library::builtin();
    let document = document();
    library
        .add("our-card.toml", blocks(&document, "toml")[0])
        .unwrap();
    let host = include_str!("../../../platforms/emr2s.toml");
    library.add("my-server.toml", host).unwrap();
    let section = document.split("## Naming a machine").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut seen = 0;
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let expression = line
            .split('`')
            .nth(1)
            .unwrap()
            .replace("./our-card.toml", "our-card")
            .replace("./my-server.toml", "my-server");
        let mut library = library.clone();
        let plain = library.change(&expression).unwrap();
        library.compose(&plain).unwrap();
        seen += 1;
    }
    assert!(seen >= 5);
}

#[test]
fn the_mistake_in_the_documentation_is_shown_so() {
    let document = document();
    let shown = blocks(&document, "text").last().unwrap().trim();
    let text = blocks(&document, "toml")[0].replace("26 GB/s", "26 ns");
    let mistakes = Library::builtin()
        .check("our-card.toml", &text)
        .unwrap_err();
    assert_eq!(mistakes.to_string(), shown);
}
