//! Files of platforms: what they state, what is filled in, and what is shown of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use weir_model::platform::{
    ControllerKind, Definition, FileKind, Library, Need, ParameterRow, Place, Platform, Provenance,
    ReadLimit,
};
use weir_model::published;
use weir_model::units::{Bytes, GbPerSec, GigaTransfers, Nanos};

use super::{TEN_LINES, compose};

#[test]
fn a_new_device_is_ten_lines() {
    let mut library = Library::builtin();
    let added = library.add("somewhere/our-card.toml", TEN_LINES).unwrap();
    assert_eq!(added.name(), "our-card");
    let platform = library.compose("emr2s+2xour-card").unwrap();
    let device = &platform.devices[1].device;
    assert_eq!(device.measured.idle.value, Nanos(240.0));
    assert_eq!(device.link.rate.value, GigaTransfers(32.0));
    assert_eq!(device.kind.value, ControllerKind::Asic);
    let assumed: Vec<_> = device
        .parameters()
        .into_iter()
        .filter(ParameterRow::is_assumed)
        .collect();
    assert!(assumed.iter().any(|row| row.key == "efficiency"));
    assert!(assumed.iter().all(|row| row.key != "idle"));
}

#[test]
fn a_prototype_has_the_defaults_of_prototypes() {
    let library = Library::builtin();
    let Ok(Definition::Device(product)) = library.check("card.toml", TEN_LINES) else {
        panic!("a device was given");
    };
    let text = format!("{TEN_LINES}controller = \"fpga\"\n");
    let Ok(Definition::Device(device)) = library.check("card.toml", &text) else {
        panic!("a device was given");
    };
    assert_eq!(device.kind.value, ControllerKind::Fpga);
    assert!(device.controller.reorder_window.value < product.controller.reorder_window.value);
    assert_eq!(device.measured.read_limit.value, ReadLimit::Controller);
    let without_peak = TEN_LINES.replace("read = \"26 GB/s\"\n", "");
    let Ok(Definition::Device(device)) = library.check("card.toml", &without_peak) else {
        panic!("a device was given");
    };
    assert_eq!(device.measured.read_limit.value, ReadLimit::Media);
}

#[test]
fn every_value_has_a_source_or_a_range_and_a_reason() {
    for definition in Library::builtin().list() {
        for row in definition.parameters() {
            match &row.provenance {
                Provenance::Source(source) => assert!(source.len() > 10, "{row:?}"),
                Provenance::Assumed { low, high, why } => {
                    assert!(
                        !low.is_empty() && !high.is_empty() && why.len() > 10,
                        "{row:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_key_of_the_reference_is_shown_and_every_shown_key_is_in_the_reference() {
    let mut library = Library::builtin();
    // Keys that no file has, since they are for expressions.
    for changed in [
        "micro23-snc4,uncore.clock=2 GHz,uncore.cluster_tiers=4",
        "emr2s,switch.fails_at=50 us",
        "cxl-a,fails_at=50 us",
    ] {
        assert!(library.change(changed).is_ok(), "{changed}");
    }
    for kind in [FileKind::Host, FileKind::Device, FileKind::Storage] {
        let keys = kind.keys();
        let known: BTreeSet<&str> = keys.iter().map(|key| key.path).collect();
        let mut shown = BTreeSet::new();
        for definition in library.list().into_iter().filter(|d| d.kind() == kind) {
            let rows = definition.parameters();
            let here: BTreeSet<String> = rows.iter().map(|row| row.key.clone()).collect();
            assert_eq!(here.len(), rows.len(), "a key is shown twice");
            // A device without a medium has none of the keys of one.
            let is_of_device =
                |path: &str| !path.starts_with("backing.") || here.contains("backing.medium");
            let needed = keys.iter().filter(|key| key.need != Need::Optional);
            for key in needed.filter(|key| is_of_device(key.path)) {
                assert!(
                    here.contains(key.path),
                    "{} lacks {}",
                    definition.name(),
                    key.path
                );
            }
            assert!(rows.iter().all(|row| !row.meaning.is_empty()));
            shown.extend(here);
        }
        let shown: BTreeSet<&str> = shown.iter().map(String::as_str).collect();
        assert_eq!(shown, known);
    }
}

/// A file that states every parameter.
pub(super) fn written_out(definition: &Definition) -> String {
    let mut text = format!(
        "kind = \"{}\"\nsummary = \"s\"\nsource = \"s\"\n",
        definition.kind().name()
    );
    for row in definition.parameters() {
        let plain = row.value.parse::<f64>().is_ok();
        let value = if plain {
            row.value.clone()
        } else {
            format!("\"{}\"", row.value)
        };
        text += &format!("{} = {value}\n", row.key);
    }
    text
}

#[test]
fn a_file_written_from_what_is_shown_gives_the_same_machine() {
    let library = Library::builtin();
    for definition in library.list() {
        let text = written_out(definition);
        let again = library
            .check(&format!("{}.toml", definition.name()), &text)
            .unwrap_or_else(|mistakes| panic!("{mistakes}"));
        for (one, other) in definition.parameters().iter().zip(again.parameters()) {
            assert_eq!((&one.key, &one.value), (&other.key, &other.value));
        }
    }
}

#[test]
fn a_digest_tells_machines_apart_by_their_numbers_and_by_nothing_else() {
    let base = compose("emr2s+cxl-a+cxl-b");
    assert_eq!(base.digest(), compose(" emr2s + cxl-a + cxl-b ").digest());
    assert_eq!(base.digest().len(), 16);

    let mut renamed = base.clone();
    renamed.name = "other".into();
    renamed.host.summary = "other".into();
    renamed.host.uncore.tor.provenance = Provenance::Source("a manual that came out".into());
    assert_eq!(renamed.digest(), base.digest());

    let mut digests = BTreeSet::from([base.digest()]);
    let mut differs = |change: &dyn Fn(&mut Platform)| {
        let mut other = base.clone();
        change(&mut other);
        assert!(
            digests.insert(other.digest()),
            "two machines have one digest"
        );
    };
    differs(&|p| p.host.uncore.tor.value += 1);
    differs(&|p| p.host.uncore.irq.value += 1);
    differs(&|p| p.host.dram.measured.idle.value = Nanos(111.5));
    differs(&|p| p.host.remote = None);
    differs(&|p| p.devices.swap(0, 1));
    differs(&|p| p.devices[0].place = Place::Remote);
    differs(&|p| p.devices[1].place = Place::Remote);
    differs(&|p| p.devices[1].place = Place::Switch);
    differs(&|p| p.devices[1].ways = 2);
    differs(&|p| p.devices.truncate(1));
    differs(&|p| p.devices[0].device.tail = None);
    differs(&|p| p.devices[0].device.measured.read_limit.value = ReadLimit::Media);
    // What matters only elsewhere tells nothing apart.
    let mut elsewhere = base.clone();
    elsewhere.host.switch.hop.value = Nanos(99.0);
    elsewhere.devices[0].device.interleave.value = Bytes::kib(4);
    elsewhere.devices[0].device.measured.remote_read.value = GbPerSec(1.0);
    assert_eq!(elsewhere.digest(), base.digest());
    assert_eq!(elsewhere.describe(), base.describe());
}

/// The names of the TOML files in a folder of the repository.
fn files_in(folder: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    fs::read_dir(path)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_string))
        .collect()
}

#[test]
fn every_file_in_the_folders_is_known_without_them() {
    let library = Library::builtin();
    let known = library
        .list()
        .iter()
        .map(|d| d.name().to_string())
        .collect();
    assert_eq!(files_in("platforms"), known);
    let cores = library
        .microarchitectures()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(files_in("platforms/cores"), cores);
    let papers = published::builtin()
        .into_iter()
        .map(|paper| paper.name)
        .collect();
    assert_eq!(files_in("published"), papers);
}

#[test]
fn a_byte_order_mark_and_foreign_line_ends_are_no_mistake() {
    let library = Library::builtin();
    let windows = format!("\u{feff}{}", TEN_LINES.replace('\n', "\r\n"));
    assert_eq!(
        library.check("card.toml", &windows).unwrap(),
        library.check("card.toml", TEN_LINES).unwrap()
    );
    let mistaken = windows.replace("240 ns", "240");
    let shown = library
        .check("card.toml", &mistaken)
        .unwrap_err()
        .to_string();
    assert!(
        shown.contains("card.toml:8:8\n  |\n8 | idle = \"240\"\n  |        ^^^^^\n"),
        "{shown}"
    );
}
