//! Devices and the limits of what they hang on.

use weir_model::platform::{Definition, Library, ParameterRow};
use weir_model::topology::TierKind;
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::{TEN_LINES, compose};

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
                let both = device.link.read_limit() + device.link.write_limit();
                assert!(limits.total <= both, "{}", device.name);
                let written = device.measured.write.as_ref();
                assert!(written.is_none_or(|write| limits.write <= write.value));
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
        // Reads and writes share what crosses the socket link.
        assert_eq!(remote.total, remote.read.max(remote.write), "{device}");
        assert!(
            remote
                .basis
                .contains("socket link, as measured: 120.0 GB/s"),
            "{}",
            remote.basis
        );
    }
    let slow_writes = limits("emr2s+flac-pm@switch");
    assert!(slow_writes.total <= slow_writes.read + slow_writes.write);
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
    let text = include_str!("../../../../platforms/emr2s.toml");
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
fn a_mediums_programs_are_those_of_all_its_pages_less_what_is_worn() {
    let left = |change: &str| {
        let mut library = Library::builtin();
        let plain = library.change(&format!("emr2s+cxl-ssd-tlc,{change}"));
        let platform = library.compose(&plain.unwrap()).unwrap();
        platform.topology().tiers[1].programs_left.unwrap() as f64
    };
    // 2^28 pages of 4 KiB and 7 % more, 3000 times each.
    let new = 1.07 * 3000.0 * f64::from(1 << 28);
    for (worn, share) in [(0.0, 1.0), (0.25, 0.75), (1.5, 0.0)] {
        let found = left(&format!("backing.worn={worn}"));
        assert!((found - share * new).abs() <= 1.0, "{worn}: {found}");
    }
}

#[test]
fn values_that_are_possible_apart_only_are_refused() {
    for (change, said) in [
        (
            "memo2s,remote.read=60 GB/s",
            "more than its channels and the link carry",
        ),
        (
            "miku-b,dram.nt_write=400 GB/s",
            "more than the complexes' links carry",
        ),
        (
            "ssd-nvme4,read_idle=55.3 us",
            "shorter than its known parts",
        ),
        (
            "cxl-ssd-tlc,backing.cache=64 KiB,backing.ways=32",
            "has no room for a set",
        ),
        (
            "cxl-ssd-tlc,backing.page=32 KiB",
            "is more than a page of flash",
        ),
    ] {
        let refused = Library::builtin().change(change).unwrap_err().to_string();
        assert!(refused.contains(said), "{change}: {refused}");
    }
}
