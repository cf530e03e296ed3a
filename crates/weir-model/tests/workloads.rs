//! Workload files: the presets, and what is said of files that are wrong.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use proptest::prelude::*;
use weir_model::platform::{Key, Need};
use weir_model::units::Bytes;
use weir_model::workload::{FILE_KEYS, Order, PHASE_KEYS, REGION_KEYS, REQUEST_KEYS, Workloads};

const GOOD: &str = include_str!("../../../workloads/bfs-twitter.toml");

/// The messages of a file's mistakes, each with its line.
fn mistakes(text: &str) -> Vec<(usize, String)> {
    let found = Workloads::check("broken.toml", text).unwrap_err();
    let line = |m: &weir_model::platform::Diagnostic| {
        let help = m.help.clone().unwrap_or_default();
        (m.line, format!("{} [{help}]", m.message))
    };
    found.shown.iter().map(line).collect()
}

#[test]
fn there_are_presets_enough_and_each_says_where_it_comes_from() {
    let library = Workloads::builtin();
    assert!(library.list().len() >= 60, "{}", library.list().len());
    for work in library.list() {
        assert!(work.source.len() > 10, "{}", work.name);
        assert!(work.summary.chars().count() <= 75, "{}", work.name);
        // The smallest tier of the platforms that come along.
        assert!(work.footprint() <= Bytes::gib(60), "{}", work.name);
        for phase in &work.phases {
            let total: f64 = phase.regions.iter().map(|r| r.share).sum();
            let alone = phase.regions.len() == 1;
            assert!(
                alone || (total - 1.0).abs() < 0.01,
                "{}: {total}",
                work.name
            );
        }
    }
    let of = |order| {
        let has = |w: &&weir_model::workload::Workload| {
            (w.phases.iter()).any(|p| p.regions.iter().any(|r| r.order == order))
        };
        library.list().iter().filter(has).count()
    };
    // Cycles are only found in traces, and one benchmark is an apex order.
    let presets = Order::ALL
        .into_iter()
        .filter(|order| !matches!(order, Order::Cycle | Order::Apex));
    assert!(presets.map(of).all(|presets| presets >= 3));
}

/// A table of keys as `docs/workloads.md` has it.
fn table(keys: &[Key]) -> String {
    let mut out = String::from("| key | | meaning |\n|---|---|---|\n");
    for key in keys {
        let need = match key.need {
            Need::Required => "*required*",
            _ => "",
        };
        let (name, example, meaning) = (key.path, key.written_example(), key.meaning);
        let _ = writeln!(out, "| `{name} = {example}` | {need} | {meaning} |");
    }
    out
}

#[test]
fn the_reference_in_the_documentation_is_that_of_the_reader() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md");
    let before = fs::read_to_string(&path).unwrap();
    let mut document = before.clone();
    for (name, keys) in [
        ("file", FILE_KEYS),
        ("requests", REQUEST_KEYS),
        ("phase", PHASE_KEYS),
        ("region", REGION_KEYS),
    ] {
        let head = format!("<!-- reference: {name} -->\n");
        let start = document.find(&head).unwrap() + head.len();
        let length = document[start..].find("<!-- end -->").unwrap();
        document.replace_range(start..start + length, &table(keys));
    }
    if env::var_os("WEIR_UPDATE_GOLDEN").is_some() {
        fs::write(&path, &document).unwrap();
    } else {
        assert!(
            document == before,
            "docs/workloads.md is not up to date; \
             WEIR_UPDATE_GOLDEN=1 cargo test -p weir-model --test workloads writes it anew"
        );
    }
}

#[test]
fn the_files_in_the_documentation_are_without_mistake() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md");
    let document = fs::read_to_string(path).unwrap();
    let files: Vec<&str> = (document.split("```toml\n").skip(1))
        .filter_map(|rest| rest.split_once("```").map(|(block, _)| block))
        .collect();
    assert!(!files.is_empty());
    for text in files {
        if let Err(mistakes) = Workloads::check("my-program.toml", text) {
            panic!("{mistakes}");
        }
    }
}

#[test]
fn a_mistake_is_reported_with_its_line_and_what_was_meant() {
    let text = "kind = \"workload\"\nsummary = \"x\"\nsource = \"y\"\n[[phase]]\ncpi = 0.01\napki = 80\n\
                regions = [\n  { bytes = \"4 GiB\", order = \"sequental\" },\n  { byte = \"4 ns\", order = \"zipf\" },\n]\n";
    let found = mistakes(text);
    let has = |line: usize, part: &str| found.iter().any(|(l, m)| *l == line && m.contains(part));
    assert!(has(5, "`phase.cpi` cannot be 0.01"), "{found:?}");
    let found = mistakes(&text.replace("cpi = 0.01", "cpi = nan"));
    assert!(
        found
            .iter()
            .any(|(l, m)| *l == 5 && m.contains("no finite number")),
        "{found:?}"
    );
    let broken = mistakes(&text.replace("cpi = 0.01", "cpi = = 1"));
    let lines: Vec<usize> = broken.iter().map(|(line, _)| *line).collect();
    assert_eq!(
        lines,
        [5, 8, 9],
        "what a broken line may have is not missing"
    );
    assert!(has(8, "did you mean `sequential`?"), "{found:?}");
    assert!(has(9, "did you mean `bytes`?"), "{found:?}");
    assert!(has(9, "missing key `phase.regions.bytes`"), "{found:?}");
}

#[test]
fn clients_send_at_a_rate() {
    let with = |requests: &str| GOOD.replacen("[[phase]]", &format!("{requests}[[phase]]"), 1);
    let text = with("[requests]\nper_second = 20_000\nclients = 12\n");
    let work = Workloads::check("served.toml", &text).unwrap();
    let requests = work.requests.as_ref().unwrap();
    assert_eq!(requests.clients, Some(12));
    // One of them is a period, unless its instructions are given.
    let period: u64 = work.phases.iter().map(|phase| phase.instructions).sum();
    assert!(work.phases.len() > 1 && requests.instructions == period);
    let again = Workloads::check("served.toml", &work.to_toml(&[])).unwrap();
    assert_eq!(again, work);
    let found = mistakes(&with("[requests]\nclients = 12\n"));
    assert!(
        found.iter().any(|(_, m)| m.contains("add `per_second`")),
        "{found:?}"
    );
}

#[test]
fn what_a_phase_says_together_has_to_fit() {
    let phase = |regions: &str| {
        mistakes(&format!(
            "kind = \"workload\"\nsummary = \"x\"\nsource = \"y\"\n[[phase]]\ncpi = 1\napki = 80\nregions = [{regions}]\n"
        ))
    };
    let region = |more: &str| {
        phase(&format!(
            "{{ name = \"a\", bytes = \"1 KiB\", order = \"sequential\"{more} }}"
        ))
    };
    assert!(
        region(", indexed_by = \"b\"")[0]
            .1
            .contains("not a region of its phase")
    );
    assert!(
        region(", element = \"2 KiB\"")[0]
            .1
            .contains("larger than its region")
    );
    assert!(
        region(", element = \"64 B\", stride = \"8 B\"")[0]
            .1
            .contains("less than the element")
    );
    assert!(
        region(", element = \"128 B\", modifies = 0.5")[0]
            .1
            .contains("only elements of one are modified")
    );
    assert!(phase("")[0].1.contains("a list of 1 to 32 tables"));
    let twice = "{ name = \"a\", bytes = \"1 MiB\", order = \"random\" }";
    assert!(
        phase(&format!("{twice}, {twice}"))[0]
            .1
            .contains("two regions are called `a`")
    );
    let sections = "[[phase.regions]]\nname = \"a\"\nbytes = \"1 MiB\"\norder = \"random\"\n";
    let file = format!(
        "kind = \"workload\"\nsummary = \"x\"\nsource = \"y\"\n[[phase]]\ncpi = 1\napki = 80\n{sections}{sections}"
    );
    // The second of them is wrong, and the mistake is at its name.
    assert_eq!(mistakes(&file)[0].0, 12, "{file}");
    assert!(phase("1")[0].1.contains("a list of 1 to 32 tables"));
    let other = mistakes("kind = \"cxl\"\n");
    assert!(other[0].1.contains("not a workload"), "{other:?}");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(
        at in 0usize..GOOD.len(),
        length in 0usize..40,
        by in "[\\x00-\\x7f«ü]{0,12}",
    ) {
        let mut bytes = GOOD.as_bytes().to_vec();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, by.bytes());
        let text = String::from_utf8_lossy(&bytes);
        if let Err(mistakes) = Workloads::check("broken.toml", &text) {
            let lines = text.split('\n').count();
            prop_assert!(mistakes.shown.iter().all(|m| (1..=lines).contains(&m.line)));
        }
    }
}
