//! What an expression names, and what is said of one that names nothing.

use weir_model::platform::Library;

use super::{TEN_LINES, compose};

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
        ("emr2s++cxl-a", "names nothing next to a `+`"),
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
        ("emr2s+cxl-a@remote@switch", "has two places"),
        ("emr2s+cxl-a@switch@switch", "has two places"),
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
        ("emr2s@switch", "only devices take a place"),
        ("emr2s+none@remote", "only devices take a place"),
        ("0xemr2s", "0 hosts are asked for; a machine has 1 to 8"),
        ("9xemr2s+cxl-a@switch", "a machine has 1 to 8"),
        ("2xmemo-snc4", "`memo-snc4` has sub-NUMA clusters"),
        ("2xemr2s+cxl-a@logical", "write `cxl-a@switch@logical`"),
        ("2xemr2s+cxl-a@remote@logical", "is not behind a switch"),
        (
            "2xemr2s+cxl-a@switch@logical@logical",
            "says `@logical` twice",
        ),
        (
            "emr2s+2xcxl-d@interleaved@interleaved",
            "says `@interleaved` twice",
        ),
        ("emr2s+none+cxl-a", "asks for no device and for devices"),
        ("quux", "there are coaxial-ddr, cxl-anns, directcxl"),
    ] {
        let error = library.compose(expression).unwrap_err().to_string();
        assert!(error.contains(expected), "{expression}: {error}");
    }
    assert!(library.compose(&"emr2s+".repeat(1000)).is_err());
}

#[test]
fn hosts_have_cores_of_their_own_and_ranges_of_what_is_behind_a_switch() {
    let one = compose("emr2s+cxl-a+cxl-b@switch").topology();
    let platform = compose("3xemr2s+cxl-a+cxl-b@switch");
    let topology = platform.topology();
    let count = one.cores.len() as u32;
    assert_eq!(topology.cores, one.cores);
    assert!(topology.other_cores.is_empty() && one.other_hosts.is_empty());
    for host in 0..3 {
        let cores = topology.cores_of_host(host);
        assert_eq!(cores.len() as u32, count);
        assert!(
            cores
                .iter()
                .all(|&core| topology.host_of(core) == host && topology.has_core(core))
        );
    }
    assert!(topology.cores_of_host(3).is_empty() && !topology.has_core(3 * count));
    let capacity = |of: &weir_model::topology::Topology, tier: usize| of.tiers[tier].capacity.get();
    assert_eq!(
        capacity(&topology, 1),
        capacity(&one, 1),
        "each host has its own"
    );
    let range = capacity(&topology, 2);
    assert!(3 * range <= capacity(&one, 2) && 3 * (range + (256 << 20)) > capacity(&one, 2));
    assert!(
        topology.tiers[2]
            .description
            .contains("a port for each of 3 hosts")
    );
    let logical = compose("3xemr2s+cxl-a+cxl-b@switch@logical");
    assert!(
        logical.topology().tiers[2]
            .description
            .ends_with("one port")
    );
    let digests = [&platform, &logical, &compose("2xemr2s+cxl-a+cxl-b@switch")].map(|p| p.digest());
    assert!(digests[0] != digests[1] && digests[0] != digests[2]);
    assert_eq!(
        compose("1xemr2s+cxl-a").digest(),
        compose("emr2s+cxl-a").digest()
    );
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
    let text = include_str!("../../../../platforms/memo.toml").replace("agilex-2666", "agilex-9");
    library.add("lost.toml", &text).unwrap();
    let error = library.compose("lost").unwrap_err().to_string();
    assert!(error.contains("`lost` comes with `agilex-9`"), "{error}");
    assert!(library.compose("lost+cxl-a").is_ok());
}
