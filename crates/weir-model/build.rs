//! Packs the folders of data, half a megabyte of text, so that they take a fifth of it in the command.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Level of deflate: the slowest, since it runs once.
const LEVEL: u8 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for folder in ["platforms", "workloads", "events", "published"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        let mut files = Vec::new();
        find(&root.join(folder), "", &mut files)?;
        files.sort();
        let mut texts = String::new();
        let mut index = String::from("[\n");
        for (name, path) in files {
            let start = texts.len();
            texts.push_str(&fs::read_to_string(path)?);
            writeln!(index, "    ({name:?}, {start}..{}),", texts.len())?;
        }
        index.push(']');
        fs::write(out.join(format!("{folder}.rs")), index)?;
        let packed = miniz_oxide::deflate::compress_to_vec(texts.as_bytes(), LEVEL);
        fs::write(out.join(format!("{folder}.deflate")), packed)?;
    }
    Ok(())
}

/// Adds the files with data of `folder` and below, each with its name from the first folder on.
fn find(
    folder: &Path,
    before: &str,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let name = format!("{before}{name}");
        if path.is_dir() {
            find(&path, &format!("{name}/"), files)?;
        } else if name.ends_with(".toml") || name.ends_with(".csv") {
            files.push((name, path));
        }
    }
    Ok(())
}
