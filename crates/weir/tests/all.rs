//! All tests of the command, as a process: one program, since each costs as much to compile and link as most of them take to run.

mod common;

mod accept;
mod applications;
mod bad_luck;
mod counters;
mod design;
mod disaggregated;
mod engines;
mod experiments;
mod explain_host;
mod files;
mod fit;
mod fuzz;
mod hosts;
mod import;
mod insight;
mod interplay;
mod json_docs;
mod namespace;
mod neighbours;
mod persist;
mod persist_record;
mod place;
mod place_policy;
mod place_process;
mod place_shared;
mod plan;
mod plan_predict;
mod plan_traces;
mod pool;
mod published;
mod recorded;
mod report;
mod report_insight;
mod requests;
mod results;
mod slowdown;
mod slowdown_host;
mod steer;
mod storage;
mod streamer;
mod sweeps;
mod tier;
mod workload;
mod workload_trace;

/// A file that is not named above would not run.
#[test]
fn every_file_is_a_module() {
    let named = include_str!("all.rs");
    let apart = ["all.rs", "own_memory.rs"];
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = file.strip_suffix(".rs")
            && !apart.contains(&file.as_str())
        {
            assert!(named.contains(&format!("mod {name};\n")), "{file}");
        }
    }
}
