//! All tests of controllers, knees and placement: one program, since each costs as much to compile and link as most of them take to run.

mod common;
mod drawn;
mod library;

mod adversary;
mod advise;
mod config;
mod constants;
mod little;
mod r#loop;
mod machines;
mod measure;
mod place;
mod probe;
mod profile;
mod published;
mod rules;
mod scenario_run;
mod scenarios;
mod settling;
mod starvation;
mod steered;

/// A file that is not named above would not run.
#[test]
fn every_file_is_a_module() {
    let named = include_str!("all.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = file.strip_suffix(".rs")
            && name != "all"
        {
            let lines = [format!("mod {name};"), format!("mod r#{name};")];
            assert!(
                lines.iter().any(|line| named.contains(line.as_str())),
                "{file} is not named in tests/all.rs"
            );
        }
    }
}
