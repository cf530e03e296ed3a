//! Storage as a tier.

use weir_model::platform::{Library, Platform};
use weir_model::topology::TierKind;

use super::compose;
use super::files::written_out;

#[test]
fn storage_is_a_tier_behind_all_others_and_what_it_costs_cores_matters_with_it_alone() {
    let (bare, with) = (compose("emr2s+cxl-a"), compose("emr2s+cxl-a+2xssd-sas12"));
    let names: Vec<String> = (with.topology().tiers.iter())
        .map(|t| t.name.to_string())
        .collect();
    assert_eq!(names, ["dram", "cxl0", "remote", "ssd0", "ssd1"]);
    assert!(with.topology().tiers[3].kind == TierKind::Ssd);
    assert_eq!(with.topology().tiers[0], bare.topology().tiers[0]);
    assert_ne!(with.digest(), bare.digest());
    assert_ne!(with.digest(), compose("emr2s+cxl-a+ssd-sas12").digest());
    assert_ne!(with.digest(), compose("emr2s+cxl-a+2xssd-nvme4").digest());

    let dearer = |platform: &Platform| {
        let mut dearer = platform.clone();
        dearer.host.io.lines.value += 1;
        dearer.digest() != platform.digest()
    };
    assert!(dearer(&with) && !dearer(&bare));
    assert!(
        bare.describe()
            .iter()
            .all(|row| !row.key.starts_with("io."))
    );
    for expression in [
        "emr2s+ssd-sas12@remote",
        "emr2s+ssd-sas12+none",
        "emr2s+9xssd-sas12",
    ] {
        assert!(
            Library::builtin().compose(expression).is_err(),
            "{expression}"
        );
    }
}

#[test]
fn flash_that_contradicts_itself_is_a_mistake_at_its_key() {
    let library = Library::builtin();
    let Some(definition) = library.get("ssd-nvme4") else {
        panic!("it comes with Weir");
    };
    let text = written_out(definition);
    assert!(library.check("drive.toml", &text).is_ok());
    for (key, value, says) in [
        ("read_idle", "\"50 us\"", "shorter than its known parts"),
        ("sense", "\"78 us\"", "shorter than its known parts"),
        (
            "sequential_write",
            "\"9 GB/s\"",
            "more than the link carries",
        ),
        ("random_read", "2000000", "more than the link carries"),
        ("random_write", "1600000", "faster than random reads"),
        ("dies", "16", "can make at most"),
        ("commands", "0", ""),
    ] {
        let line = |line: &str| match line.split_once(" = ") {
            Some((known, _)) if known == key => format!("{key} = {value}"),
            _ => line.to_string(),
        };
        let changed: Vec<String> = text.lines().map(line).collect();
        let result = library.check("drive.toml", &changed.join("\n"));
        let mistakes = result.unwrap_err().to_string();
        assert!(mistakes.contains(says), "{key}: {mistakes}");
    }
}
