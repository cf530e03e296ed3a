//! Every recorded machine gives the content of its golden file. `WEIR_BLESS=1 cargo test` rewrites the golden
//! files.

mod machines;

use std::fmt::Write as _;
use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;
use weir_linux::recording::{self, Tree};
use weir_linux::topology::{self, HostView, list};
use weir_linux::{LinuxTestbed, Options, Reading, Root};
use weir_model::access::{Op, Pattern};
use weir_model::capability::Feature;
use weir_model::machine::{MachineError, Testbed};
use weir_model::tenant::Tenant;
use weir_model::topology::{TierKind, TierName};
use weir_model::units::{Bytes, GbPerSec, Nanos};

/// The result for a machine, in lines that a person can check.
fn render(view: &HostView) -> String {
    let mut text = String::new();
    match view.topology() {
        Err(error) => writeln!(text, "error: {error}").unwrap(),
        Ok(t) => {
            writeln!(text, "{}, {} socket(s)", t.processor, t.sockets).unwrap();
            let mut sorted = t.cores.clone();
            sorted.sort_unstable();
            let order = if sorted == t.cores {
                list::format(&t.cores)
            } else {
                format!("{:?}", t.cores)
            };
            writeln!(text, "cores {order}; clock {:?}", t.clock.map(|c| c.get())).unwrap();
            for cache in &t.caches {
                let ways = cache.ways.map_or("?".into(), |w| w.to_string());
                writeln!(
                    text,
                    "cache {} {}, {ways} ways, shared by {} core(s)",
                    cache.name, cache.size, cache.shared_by
                )
                .unwrap();
            }
            for tier in &t.tiers {
                let node = tier.node.map_or("-".into(), |n| n.to_string());
                let (name, kind) = (&tier.name, tier.kind);
                writeln!(text, "tier {name} {kind:?}, node {node}, {}", tier.capacity).unwrap();
                writeln!(text, "  {}", tier.description).unwrap();
                if let Some(l) = &tier.limits {
                    writeln!(text, "  at most {:.2} each way: {}", l.read, l.basis).unwrap();
                }
            }
        }
    }
    for c in view.capabilities() {
        let state = if c.present { "has" } else { "lacks" };
        writeln!(text, "{state} {}: {}", c.feature, c.detail).unwrap();
    }
    for warning in view.warnings() {
        writeln!(text, "warning: {warning}").unwrap();
    }
    text
}

#[test]
fn every_recorded_machine_is_read_as_its_golden_file_says() {
    let names = machines::names();
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        let text = render(&topology::discover(&machines::root(&name)));
        let golden = machines::home().join("golden").join(format!("{name}.txt"));
        if std::env::var_os("WEIR_BLESS").is_some() {
            fs::write(&golden, &text).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            text == expected,
            "{name} is now read as:\n{text}\n-- instead of:\n{expected}"
        );
    }
}

#[test]
fn everything_that_is_missing_says_why_and_what_it_costs() {
    for name in machines::names() {
        for c in topology::discover(&machines::root(&name)).capabilities() {
            assert!(!c.detail.is_empty(), "{name}: {c:?}");
            assert_eq!(c.cost.is_empty(), c.present, "{name}: {c:?}");
        }
    }
}

#[test]
fn a_cxl_card_is_found_with_its_link_and_its_firmware_figures() {
    let view = topology::discover(&machines::root("spr2s-cxl"));
    let topology = view.topology().unwrap();
    let names: Vec<&str> = topology.tiers.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["dram", "remote", "cxl0"]);
    assert_eq!(topology.cores, (0..56).collect::<Vec<u32>>());
    let cxl = topology.tier(&TierName::cxl(0)).unwrap();
    assert_eq!((cxl.kind, cxl.node), (TierKind::Cxl, Some(2)));
    // 32 GT/s x8: 32 GB/s raw, 29.65 after coding and framing.
    let limits = cxl.limits.as_ref().unwrap();
    assert!((limits.read.get() - 29.65).abs() < 0.01, "{limits:?}");
    let access = view.known_nodes()[2].access0.known().unwrap();
    assert_eq!(access.read_latency, Reading::Known(Nanos(220.0)));
    assert_eq!(access.read_bandwidth, Reading::Known(GbPerSec(24.0)));
}

/// Offline, or outside of the cpuset: the other device is not taken for it.
#[test]
fn a_device_keeps_its_number_while_another_has_no_memory() {
    let text = fs::read_to_string(machines::file("turin-2xcxl")).unwrap();
    for (from, to) in [
        (
            "Node 1 MemTotal:       134217728 kB",
            "Node 1 MemTotal:       0 kB",
        ),
        ("Mems_allowed_list:\t0-2", "Mems_allowed_list:\t0,2"),
    ] {
        assert!(text.contains(from), "{from}");
        let tree = recording::parse("changed", &text.replace(from, to)).unwrap();
        let topology = topology::discover(&Root::recorded(tree))
            .topology()
            .unwrap();
        let tiers = topology
            .tiers
            .iter()
            .map(|tier| (tier.name.as_str(), tier.node));
        let tiers: Vec<_> = tiers.collect();
        assert_eq!(tiers, [("dram", Some(0)), ("cxl1", Some(2))], "{to}");
    }
}

#[test]
fn cxl_memory_that_is_offline_is_not_said_to_be_outside_of_the_cpuset() {
    let text = fs::read_to_string(machines::file("turin-2xcxl")).unwrap();
    // The kernel allows no node without memory.
    let text = text
        .replace("MemTotal:       134217728 kB", "MemTotal:       0 kB")
        .replace("Mems_allowed_list:\t0-2", "Mems_allowed_list:\t0");
    let root = Root::recorded(recording::parse("changed", &text).unwrap());
    let mut capabilities = topology::discover(&root).capabilities().into_iter();
    let cxl = capabilities
        .find(|c| c.feature == Feature::CxlMemory)
        .unwrap();
    let said = "node 1 is CXL memory (region0 is its memory block 800), but none of it is online";
    assert!(!cxl.present && cxl.detail == said, "{}", cxl.detail);
}

#[test]
fn garbage_never_becomes_a_value() {
    let view = topology::discover(&machines::root("garbage"));
    let node = &view.known_nodes()[0];
    assert!(matches!(node.free, Reading::Unreadable(_)), "{node:?}");
    assert!(matches!(node.distances, Reading::Unreadable(_)));
    assert!(node.access0.known().is_none() && node.huge_pages.is_empty());
    assert!(matches!(view.memory_tiers, Reading::Unreadable(_)));
    assert!(matches!(
        view.transparent_huge_pages,
        Reading::Unreadable(_)
    ));
    assert!(matches!(view.caches, Reading::Unreadable(_)));
    assert!(view.cxl.known().unwrap().nodes.is_empty());
}

#[test]
fn a_folder_that_is_no_machine_is_an_error_that_says_what_is_missing() {
    let empty = tempfile::tempdir().unwrap();
    for root in [Root::at(empty.path()), Root::at("/nowhere/at/all")] {
        let error = LinuxTestbed::new(root, Options::default()).err().unwrap();
        assert!(error.to_string().contains("processors"), "{error}");
    }
}

#[test]
fn a_recorded_machine_can_be_looked_at_but_not_loaded() {
    let root = machines::root("spr2s-cxl");
    let testbed = LinuxTestbed::new(root, Options::default()).unwrap();
    let mut machine = testbed.open(0).unwrap();
    assert_eq!(machine.topology().tiers.len(), 3);
    let tenant = Tenant::on_first_cores(
        Op::Ld,
        Pattern::Sequential,
        &TierName::dram(),
        1,
        Bytes::mib(1),
    );
    assert!(matches!(
        machine.start(&[tenant]),
        Err(MachineError::Request(_))
    ));
}

#[test]
fn machines_differ_in_their_digests_and_a_machine_keeps_its_own() {
    let digest = |name: &str| topology::digest(&topology::discover(&machines::root(name)), None);
    let mut digests: Vec<String> = machines::names().iter().map(|n| digest(n)).collect();
    assert_eq!(digest("garbage"), digest("garbage"));
    digests.sort();
    let all = digests.len();
    digests.dedup();
    assert_eq!(digests.len(), all);
}

#[test]
fn this_machine_has_local_memory_and_a_core() {
    let view = topology::discover(&Root::live());
    let topology = view.topology().unwrap();
    assert_eq!(topology.tiers[0].name, TierName::dram());
    assert!(topology.tiers[0].capacity > Bytes::mib(64));
    assert!(!topology.cores.is_empty());
    let listed: Vec<Feature> = view.capabilities().iter().map(|c| c.feature).collect();
    assert!(listed.contains(&Feature::NumaPolicy) && listed.contains(&Feature::Pinning));
}

/// The machine that is broken file by file.
static VICTIM: LazyLock<Tree> = LazyLock::new(|| machines::tree("spr2s-cxl"));

/// The result for the victim with one file changed.
fn read_with(path: &str, junk: &str) -> String {
    let mut tree = VICTIM.clone();
    tree.set(path, junk);
    render(&topology::discover(&Root::recorded(tree)))
}

#[test]
fn a_list_of_online_nodes_that_names_none_says_nothing() {
    for junk in ["", "77", "-"] {
        let text = read_with("/sys/devices/system/node/online", junk);
        assert!(text.contains("tier dram Dram"), "{junk:?}\n{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A file of a good machine is replaced by anything: local memory is still found, and nothing panics.
    #[test]
    fn one_broken_file_breaks_nothing_else(entry in 0usize..10_000, junk in ".{0,60}") {
        let files: Vec<String> = VICTIM.files();
        let files: Vec<&String> = files.iter().filter(|f| f.starts_with("/sys")).collect();
        let path = files[entry % files.len()];
        let text = read_with(path, &junk);
        prop_assert!(text.contains("tier dram Dram"), "{}: {:?}\n{}", path, junk, text);
    }
}
