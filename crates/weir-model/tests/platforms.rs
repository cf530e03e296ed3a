//! What holds for every platform, and for those that come with Weir.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use weir_model::access::Op;
use weir_model::platform::{
    ControllerKind, DEVICE_KEYS, Definition, FileKind, HOST_KEYS, Library, Need, ParameterRow,
    Place, Platform, Provenance, ReadLimit, STORAGE_KEYS,
};
use weir_model::published;
use weir_model::topology::TierKind;
use weir_model::units::{Bytes, GbPerSec, GigaTransfers, Gigahertz, Nanos};

const TEN_LINES: &str = "\
kind = \"cxl\"
summary = \"Our new card\"
source = \"vendor datasheet rev 3\"
lanes = 8
media = \"ddr5-4800\"
channels = 2
capacity = \"128 GiB\"
idle = \"240 ns\"
read = \"26 GB/s\"
";

fn compose(expression: &str) -> Platform {
    Library::builtin().compose(expression).unwrap()
}

#[test]
fn a_new_device_is_ten_lines() {
    let mut library = Library::builtin();
    let added = library.add("somewhere/our-card.toml", TEN_LINES).unwrap();
    assert_eq!(added.name(), "our-card");
    let platform = library.compose("emr2s+2xour-card").unwrap();
    let device = &platform.devices[1].device;
    assert_eq!(device.measured.idle.value, Nanos(240.0));
    assert_eq!(device.link.rate.value, GigaTransfers(32.0));
    assert_eq!(device.controller.kind.value, ControllerKind::Asic);
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
    assert_eq!(device.controller.kind.value, ControllerKind::Fpga);
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
    let library = Library::builtin();
    for (kind, keys) in [
        (FileKind::Host, HOST_KEYS),
        (FileKind::Device, DEVICE_KEYS),
        (FileKind::Storage, STORAGE_KEYS),
    ] {
        let known: BTreeSet<&str> = keys.iter().map(|key| key.path).collect();
        let mut shown = BTreeSet::new();
        for definition in library.list().into_iter().filter(|d| d.kind() == kind) {
            let rows = definition.parameters();
            let here: BTreeSet<String> = rows.iter().map(|row| row.key.clone()).collect();
            assert_eq!(here.len(), rows.len(), "a key is shown twice");
            for key in keys.iter().filter(|key| key.need != Need::Optional) {
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
fn written_out(definition: &Definition) -> String {
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
    differs(&|p| p.devices[0].device.controller.tail = None);
    differs(&|p| p.devices[0].device.measured.read_limit.value = ReadLimit::Media);
    // What matters only elsewhere tells nothing apart.
    let mut elsewhere = base.clone();
    elsewhere.host.switch.hop.value = Nanos(99.0);
    elsewhere.devices[0].device.interleave.value = Bytes::kib(4);
    elsewhere.devices[0].device.measured.remote_read.value = GbPerSec(1.0);
    assert_eq!(elsewhere.digest(), base.digest());
    assert_eq!(elsewhere.describe(), base.describe());
}

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
        ("random_write", "1600000", "faster than it is read"),
        ("dies", "16", "reads a second at most"),
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

#[test]
fn tiers_stand_in_order_and_no_measurement_beats_its_limit() {
    let platform = compose("emr2s+2xcxl-a+cxl-b@remote");
    let topology = platform.topology();
    let names: Vec<&str> = topology.tiers.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["dram", "cxl0", "cxl1", "cxl2", "remote"]);
    let kinds: Vec<TierKind> = topology.tiers.iter().map(|t| t.kind).collect();
    assert_eq!(
        kinds[1..4],
        [TierKind::Cxl, TierKind::Cxl, TierKind::RemoteCxl]
    );
    assert_eq!(
        topology.tiers[1].description,
        "cxl-a: 2 x DDR4-3200 behind x8"
    );
    assert_eq!(topology.cores.len(), 32);
    assert_eq!(topology.last_level_cache(), Bytes::mib(160));

    for definition in Library::builtin().list() {
        match definition {
            Definition::Host(host) => {
                let limits = host.dram.limits();
                assert!(host.dram.measured.read.value <= limits.read);
                assert!(host.dram.measured.nt_write.value <= limits.write);
            }
            Definition::Device(device) => {
                let limits = device.limits();
                assert!(limits.read.max(limits.write) <= limits.total);
                assert!(limits.total <= device.media_peak());
                if let Some(read) = &device.measured.read {
                    assert!(read.value <= limits.read);
                }
            }
            Definition::Storage(device) => {
                let (limits, measured) = (device.limits(), &device.measured);
                assert!(measured.sequential_read.value <= limits.read);
                assert!(measured.sequential_write.value <= limits.write);
            }
        }
    }
}

#[test]
fn eight_lanes_carry_27_gb_s_of_reads_and_24_of_writes() {
    let limits = compose("emr2s+cxl-a").devices[0].device.limits();
    assert!((limits.read.get() - 27.37).abs() < 0.01);
    assert!((limits.write.get() - 23.72).abs() < 0.01);
}

#[test]
fn interleaved_devices_are_one_tier_with_the_limits_of_all() {
    let (one, two, pair) = (
        compose("emr2s+cxl-d").topology(),
        compose("emr2s+2xcxl-d").topology(),
        compose("emr2s+2xcxl-d@interleaved").topology(),
    );
    assert_eq!(two.tiers.len(), one.tiers.len() + 1);
    assert_eq!(pair.tiers.len(), one.tiers.len());
    let (one, pair) = (&one.tiers[1], &pair.tiers[1]);
    assert_eq!(pair.kind, TierKind::Cxl);
    assert_eq!(pair.capacity.get(), 2 * one.capacity.get());
    let [of_one, of_pair] = [one, pair].map(|t| t.limits.clone().unwrap());
    assert_eq!(of_pair.read.get(), 2.0 * of_one.read.get());
    assert_eq!(of_pair.total.get(), 2.0 * of_one.total.get());
    assert_eq!(
        pair.description,
        "2 interleaved, each cxl-d: 4 x DDR5-4800 behind x16"
    );
    // Nothing was logged of devices that hang together or elsewhere.
    assert!(!compose("eurosys24").measured_curves().is_empty());
    let elsewhere = compose("eurosys24+leo-x16@switch+2xleo-x16@interleaved");
    assert!(
        elsewhere
            .measured_curves()
            .iter()
            .all(|(tier, _)| tier.as_str() == "dram")
    );
}

#[test]
fn what_devices_hang_on_limits_them() {
    let limits = |expression: &str| {
        compose(expression).topology().tiers[1]
            .limits
            .clone()
            .unwrap()
    };
    let link = compose("emr2s+cxl-d").devices[0].device.link.read_limit();
    assert_eq!(limits("emr2s+4xcxl-d@interleaved@switch").read, link);
    assert_eq!(
        limits("emr2s+cxl-a@switch").read,
        limits("emr2s+cxl-a").read
    );
    for (device, read) in [("cxl-a", 14.0), ("cxl-b", 13.0), ("montage", 14.0)] {
        let remote = limits(&format!("emr2s+{device}@remote"));
        assert_eq!(remote.read, GbPerSec(read), "{device}");
        assert!(
            remote
                .basis
                .contains("socket link, as measured: 120.0 GB/s"),
            "{}",
            remote.basis
        );
    }
    let other_socket = compose("emr2s").topology().tiers[1].limits.clone().unwrap();
    assert_eq!(other_socket.read, GbPerSec(120.0));
    assert_eq!(other_socket.total, GbPerSec(240.0));
}

#[test]
fn a_device_that_was_never_measured_from_the_other_socket_is_assumed_to_be_like_those_that_were() {
    let platform = compose("emr2s+montage@remote");
    let measured = &platform.devices[0].device.measured;
    let idle = measured.idle_from_other_socket();
    assert_eq!(idle, measured.idle.value + Nanos(171.0));
    let rows = platform.describe();
    let shown = |key: &str| rows.iter().find(|row| row.key == key);
    assert!(shown("remote_hop").is_some_and(ParameterRow::is_assumed));
    assert!(shown("remote_read").is_some_and(ParameterRow::is_assumed));
    assert!(shown("remote_idle").is_none() && shown("interleave").is_none());
    // A slow one is not faster from there than from its own socket.
    let library = Library::builtin();
    let slow = TEN_LINES.replace("26 GB/s", "9 GB/s");
    let Ok(Definition::Device(slow)) = library.check("card.toml", &slow) else {
        panic!("a device was given");
    };
    assert_eq!(slow.measured.remote_read.value, GbPerSec(9.0));
    // Where the way there is unknown, so is everything behind it.
    let mut library = Library::builtin();
    let text = include_str!("../../../platforms/emr2s.toml");
    let (without, _) = text.split_once("[remote]").unwrap();
    library.add("closed.toml", without).unwrap();
    let error = library.compose("closed+cxl-a@remote").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("give `remote.idle` and `remote.read`")
    );
}

#[test]
fn a_host_brings_its_own_devices_unless_others_or_none_are_named() {
    assert_eq!(compose("memo").devices[0].device.name, "agilex-2666");
    assert_eq!(compose("interplay-a").devices[0].device.name, "montage");
    assert_eq!(compose("interplay-b").devices[0].device.name, "agilex-2400");
    assert_eq!(compose("miku-a").devices.len(), 2);
    assert_eq!(compose("miku-a+cxl-a").devices.len(), 1);
    assert!(compose("memo+none").devices.is_empty());
    // One kind of device is named, the other stays.
    let names = |expression: &str| {
        let platform = compose(expression);
        let devices = platform.devices.into_iter().map(|d| d.device.name);
        let all = devices.chain(platform.storage.into_iter().map(|d| d.name));
        all.collect::<Vec<String>>().join(" ")
    };
    assert_eq!(names("interplay-a"), "montage ssd-sas12");
    assert_eq!(names("interplay-a+cxl-a"), "cxl-a ssd-sas12");
    assert_eq!(
        names("interplay-a+2xssd-nvme4"),
        "montage ssd-nvme4 ssd-nvme4"
    );
    assert_eq!(names("interplay-a+none"), "");
    assert_eq!(names("emr2s+cxl-a+ssd-sas12"), "cxl-a ssd-sas12");
    assert!(compose("emr2s").devices.is_empty());
    assert_eq!(compose("cxl-a+emr2s").host.name, "emr2s");
}

#[test]
fn an_expression_that_names_no_machine_is_explained() {
    let library = Library::builtin();
    for (expression, expected) in [
        ("", "names nothing; write for example `emr2s+cxl-a`"),
        ("emr2s++cxl-a", "names nothing beside a `+`"),
        (
            "emr2",
            "no platform or device is called `emr2`; did you mean `emr2s`?",
        ),
        (
            "cxl-a",
            "names no host; put one first, such as `emr2s+cxl-a`",
        ),
        ("emr2s+spr2s", "`emr2s` and `spr2s` are both hosts"),
        ("memo+cxl-a@remote", "`memo` has one socket"),
        ("emr2s+cxl-a@moon", "`@moon` is no place"),
        ("emr2s+cxl-a@", "`@` is no place"),
        ("emr2s+cxl-a@remote@switch", "hangs in two places"),
        ("emr2s+cxl-a@switch@switch", "hangs in two places"),
        ("emr2s+cxl-d@interleaved", "interleaves one device;"),
        (
            "emr2s+3xcxl-d@interleaved",
            "interleaves 3 devices; HDM decoders interleave 2, 4 or 8 devices, such as `2xcxl-d@interleaved`",
        ),
        (
            "emr2s+4xcxl-a@interleaved+5xcxl-b",
            "9 devices are asked for",
        ),
        ("emr2s+9xcxl-a", "a machine has 1 to 8"),
        ("emr2s+5xcxl-a+4xcxl-b", "9 devices are asked for"),
        ("emr2s+0xcxl-a", "0 devices are asked for"),
        ("emr2s+99999999999999999999xcxl-a", "a machine has 1 to 8"),
        ("2xemr2s", "only devices take a count or a place"),
        ("emr2s+none@remote", "only devices take a count or a place"),
        ("emr2s+none+cxl-a", "asks for no device and for devices"),
        ("quux", "there are emr2s, eurosys24"),
    ] {
        let error = library.compose(expression).unwrap_err().to_string();
        assert!(error.contains(expected), "{expression}: {error}");
    }
    assert!(library.compose(&"emr2s+".repeat(1000)).is_err());
}

#[test]
fn a_file_of_the_users_own_takes_the_place_of_one_that_comes_with_weir() {
    let mut library = Library::builtin();
    library.add("cxl-a.toml", TEN_LINES).unwrap();
    let platform = library.compose("emr2s+cxl-a").unwrap();
    assert_eq!(platform.devices[0].device.summary, "Our new card");
    let before = library.list().len();
    assert!(library.add("cxl-b.toml", "kind = \"cxl\"").is_err());
    assert_eq!(library.list().len(), before);
}

#[test]
fn a_host_whose_own_device_is_unknown_says_so() {
    let mut library = Library::builtin();
    let text = include_str!("../../../platforms/memo.toml").replace("agilex-2666", "agilex-9");
    library.add("lost.toml", &text).unwrap();
    let error = library.compose("lost").unwrap_err().to_string();
    assert!(error.contains("`lost` comes with `agilex-9`"), "{error}");
    assert!(library.compose("lost+cxl-a").is_ok());
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
fn one_core_of_sapphire_rapids_loads_what_the_logs_show() {
    let logs = include_str!("../../../published/measured/eurosys24_mlc.csv");
    // One core of the DDR5 server, reads only, in order: the peak over all delays.
    let measured = logs
        .lines()
        .filter(|line| line.starts_with("ddr5,m,1,0,0,"))
        .filter_map(|line| line.split(',').nth(7)?.parse::<f64>().ok())
        .fold(0.0, f64::max)
        / 1000.0;
    let ours = compose("spr2s").host.core.load_peak.value.get();
    assert!(
        (ours - measured).abs() < 0.05 * measured,
        "{ours} and {measured}"
    );
}

#[test]
fn a_machine_that_names_a_log_is_in_it_and_agrees_with_it() {
    let mut checked = 0;
    for (expression, idle, read) in [
        ("spr8480", Nanos(113.0), GbPerSec(264.0)),
        ("eurosys24+none", Nanos(97.0), GbPerSec(69.3)),
        ("eurosys24", Nanos(250.0), GbPerSec(46.1)),
    ] {
        let platform = compose(expression);
        let curves = platform.measured_curves();
        let tier = &platform.topology().tiers[platform.devices.len()].name;
        let reads = curves
            .iter()
            .filter(|(on, c)| on == tier && c.traffic.op == Op::Ld && c.threads != Some(1));
        for (_, curve) in reads {
            let least = curve
                .points
                .iter()
                .map(|p| p.latency.get())
                .fold(1e9, f64::min);
            assert!(
                (least / idle.get() - 1.0).abs() < 0.03,
                "{expression}: {least}"
            );
            let peak = curve.peak().get();
            assert!(
                (peak / read.get() - 1.0).abs() < 0.01,
                "{expression}: {peak}"
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 3);
    for definition in Library::builtin().list() {
        let log = match definition {
            Definition::Host(host) => host.log.as_ref(),
            Definition::Device(device) => device.log.as_ref(),
            Definition::Storage(_) => None,
        };
        if let Some(log) = log {
            let curves = published::measured::builtin(log, Gigahertz(3.0));
            assert!(!curves.is_empty(), "{log:?} names no curve");
        }
    }
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

/// The ids of published rows in a source text: `SUP-012`.
fn ids(source: &str) -> Vec<&str> {
    source
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| {
            word.len() == 7 && word.as_bytes()[3] == b'-' && word[4..].parse::<u32>().is_ok()
        })
        .collect()
}

/// A shown value in the unit of a published row.
fn in_unit(value: &str, unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(value.parse::<Nanos>().ok()?.get()),
        "GB/s" => Some(value.parse::<GbPerSec>().ok()?.get()),
        "GHz" => Some(value.parse::<Gigahertz>().ok()?.get()),
        "GB" => Some(value.parse::<Bytes>().ok()?.get() as f64 / f64::from(1 << 30)),
        "MB" => Some(value.parse::<Bytes>().ok()?.get() as f64 / f64::from(1 << 20)),
        "MT/s" => value.rsplit('-').next()?.parse().ok(),
        _ => value.parse().ok(),
    }
}

#[test]
fn a_value_that_cites_a_published_row_is_the_value_printed_there() {
    // The paper's number is for something else, and the source text says for what.
    let explained = [
        ("emr2s", "core.count"),
        ("spr2s", "core.count"),
        ("skx2s", "dram.channels"),
        ("skx2s", "dram.capacity"),
        ("agilex-2666", "channels"),
        ("micro23", "remote.read"),
        ("micro23-snc4", "remote.read"),
        ("micro23-a", "read"),
        ("micro23-b", "read"),
        ("micro23-c", "read"),
    ];
    let published = published::builtin_rows();
    let mut compared = 0;
    for definition in Library::builtin().list() {
        for row in definition.parameters() {
            let Provenance::Source(source) = &row.provenance else {
                continue;
            };
            let [id] = ids(source)[..] else { continue };
            let printed = published
                .iter()
                .find(|p| p.id == id)
                .unwrap_or_else(|| panic!("{source} cites a row that is not there"));
            if explained.contains(&(definition.name(), row.key.as_str())) {
                continue;
            }
            let ours = in_unit(&row.value, &printed.unit)
                .unwrap_or_else(|| panic!("{row:?} has no value in {}", printed.unit));
            // 13.75 MB are printed as 13.8.
            let tolerance = if row.key == "llc.size" { 0.06 } else { 1e-9 };
            assert!(
                (ours - printed.value).abs() <= tolerance,
                "{} {} is {ours}, but {id} prints {}",
                definition.name(),
                row.key,
                printed.value
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "only {compared} values cite a row");
}
