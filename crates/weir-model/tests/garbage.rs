//! No text makes the readers panic, and every mistake lies in the text.

use std::sync::LazyLock;

use proptest::prelude::*;
use weir_model::platform::{Library, Mistakes};
use weir_model::published::{self, measured};
use weir_model::toml::MOST_BYTES;
use weir_model::units::Gigahertz;

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::builtin);

/// Whole files to break, one of each kind.
const FILES: [&str; 6] = [
    include_str!("../../../platforms/emr2s.toml"),
    include_str!("../../../platforms/cxl-b.toml"),
    include_str!("mistakes/device.toml"),
    include_str!("mistakes/shapes.toml"),
    "server,cores_at,cores,traffic_w,random,inject_delay,latency_ns,bandwidth_mb_s,mlc\n\
     cxl,d0,8,5,0,100,524.03,54701.2,--loaded_latency -j4 -k1-8 -W5\n",
    "platform,read_percent,bandwidth_mb_s,latency\nspr,50,233015.78,922.74\nspr,100,-297.3,331.9\n",
];

/// Every mistake has a place in the text, and shows.
fn has_places(text: &str, mistakes: &Mistakes) -> Result<(), TestCaseError> {
    prop_assert!(!mistakes.shown.is_empty());
    let lines: Vec<&str> = text.split('\n').collect();
    for mistake in &mistakes.shown {
        prop_assert!((1..=lines.len()).contains(&mistake.line), "{mistake:?}");
        let width = lines[mistake.line - 1].chars().count();
        prop_assert!((1..=width + 1).contains(&mistake.column), "{mistake:?}");
        let shown = mistake.to_string();
        prop_assert!(shown.starts_with("error: ") && shown.contains('^'));
        prop_assert!(shown.lines().count() >= 5, "{shown}");
        prop_assert!(
            shown.lines().all(|line| line.chars().count() < 600),
            "{shown}"
        );
        let is_plain = |c: char| c == '\n' || !c.is_control();
        prop_assert!(shown.chars().all(is_plain), "{shown:?}");
    }
    Ok(())
}

fn check(library: &Library, text: &str) -> Result<(), TestCaseError> {
    if let Err(mistakes) = library.check("fuzz.toml", text) {
        has_places(text, &mistakes)?;
    }
    if let Err(mistakes) = published::parse("fuzz.toml", text) {
        has_places(text, &mistakes)?;
    }
    if let Err(mistakes) = measured::parse("fuzz.csv", text, Gigahertz(3.0)) {
        has_places(text, &mistakes)?;
    }
    Ok(())
}

/// What might replace a piece of a file.
fn splinter() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,12}",
        "[\\[\\]{}=\",.#'\n\r\t 0-9a-z-]{0,12}",
        Just("\u{0}".to_string()),
        Just("9".repeat(400)),
        Just("-1e308".to_string()),
        Just("18446744073709551616".to_string()),
        Just("\"1e400 GB/s\"".to_string()),
        Just("nan".to_string()),
        Just("{ is = 3, assumed = [nan, inf], why = \"x\" }".to_string()),
        Just("[[llc]]\nis = 3\n".to_string()),
        Just("source = \"\"\n".to_string()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_explained(text in "(?s).{0,400}") {
        check(&LIBRARY, &text)?;
    }

    #[test]
    fn any_text_that_looks_like_a_file_is_read_or_explained(
        lines in prop::collection::vec(
            "(kind|lanes|media|core|llc|dram|source|tail|is|assumed|row|\\[|\\]|\\{|\\}|=|\"cxl\"|\"host\"|\"4 GB/s\"|[0-9]{1,3}|\\.| |,|\\[\\[){0,9}",
            0..12,
        ),
    ) {
        check(&LIBRARY, &lines.join("\n"))?;
        check(&LIBRARY, &format!("kind = \"cxl\"\n{}", lines.join("\n")))?;
    }

    #[test]
    fn any_damage_to_a_file_is_read_or_explained(
        file in prop::sample::select(FILES.to_vec()),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..24, splinter()), 1..5),
    ) {
        let mut text: Vec<char> = file.chars().collect();
        for (at, length, replacement) in cuts {
            let at = at.index(text.len() + 1);
            let end = (at + length).min(text.len());
            text.splice(at..end, replacement.chars());
        }
        check(&LIBRARY, &text.into_iter().collect::<String>())?;
    }

    #[test]
    fn any_expression_is_a_machine_or_explained(
        expression in "(emr2s|memo|cxl-a|cxl-b|none|[0-9]{1,3}x|@remote|@|\\+|x|é| ){0,7}",
    ) {
        let library = &LIBRARY;
        match library.compose(&expression) {
            Ok(platform) => prop_assert_eq!(platform.digest().len(), 16),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn a_file_beyond_a_mebibyte_is_refused_without_being_read() {
    let library = &LIBRARY;
    // 100 MB of what would be expensive to parse.
    let text = "[a]\n".repeat(25_000_000);
    let mistakes = library.check("huge.toml", &text).unwrap_err();
    assert_eq!(mistakes.shown.len(), 1);
    assert!(mistakes.to_string().contains("larger than the 1 MiB"));
    assert!(published::parse("huge.toml", &text).is_err());
}

#[test]
fn a_file_of_the_largest_size_is_explained_in_reasonable_time() {
    let library = &LIBRARY;
    let mut unknown_keys = String::from("kind = \"cxl\"\n");
    let mut n = 0;
    while unknown_keys.len() < MOST_BYTES - 32 {
        unknown_keys += &format!("lane{n} = 1\n");
        n += 1;
    }
    let worst = [
        unknown_keys,
        "a.".repeat(MOST_BYTES / 2),
        "[".repeat(MOST_BYTES),
        "a={".repeat(MOST_BYTES / 3),
        "\n".repeat(MOST_BYTES),
        format!(
            "kind = \"cxl\"\nsummary = \"{}\"",
            "é".repeat(MOST_BYTES / 2 - 32)
        ),
        format!("kind = \"cxl\"\n\"{}\" = 1", "k".repeat(MOST_BYTES - 32)),
        format!("kind = \"{}\"", "\\u0000".repeat(MOST_BYTES / 6 - 8)),
    ];
    for text in worst {
        assert!(text.len() <= MOST_BYTES);
        let mistakes = library.check("large.toml", &text).unwrap_err();
        has_places(&text, &mistakes).unwrap();
        assert!(mistakes.to_string().len() < 40_000);
    }
}
