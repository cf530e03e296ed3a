//! A described program makes a trace, and the trace makes a description of the same program.

use weir_model::workload::{Workload, Workloads};
use weir_trace::check::{Imported, check};
use weir_trace::describe::{Description, Origin, describe};
use weir_trace::replay::Replay;
use weir_trace::reuse::hash;
use weir_trace::{Access, Format, Sink, Watch};

fn described(regions: &str) -> Workload {
    let text = format!(
        "kind = \"workload\"\nsummary = \"a\"\nsource = \"b\"\n[[phase]]\ncpi = 0.5\napki = 100\nregions = [{regions}]\n"
    );
    Workloads::check("made.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn origin() -> Origin {
    Origin {
        name: "again".into(),
        of: "made".into(),
        format: Format::Lackey,
        has_instructions: true,
        has_dependences: false,
        cpi: 0.5,
    }
}

fn again(made: &Workload, accesses: u64) -> (Description, Imported) {
    let mut watch = Watch::new();
    let mut replay = Replay::new(&made.phases[0], 7);
    let mut done = 0;
    while done < accesses {
        done += replay.step(&mut watch);
    }
    watch.end();
    let description = describe(&watch, &origin()).unwrap();
    let imported = check(&watch, &description, &origin(), 1.0, 1, |_| true).unwrap();
    (description, imported)
}

#[track_caller]
fn near(what: &str, found: f64, wanted: f64, share: f64) {
    assert!(
        (found / wanted - 1.0).abs() <= share,
        "{what}: {found}, not {wanted}"
    );
}

/// Every region of the program is found with its size, share, order and stores, and the misses are those of the trace.
#[track_caller]
fn is_found(regions: &str, accesses: u64) {
    let made = described(regions);
    let (description, imported) = again(&made, accesses);
    let found = &description.workload.phases[0];
    let wanted = &made.phases[0];
    assert_eq!(found.regions.len(), wanted.regions.len());
    near("apki", found.apki, wanted.apki, 0.1);
    for (found, wanted) in found.regions.iter().zip(&wanted.regions) {
        assert_eq!(found.order, wanted.order, "{}", wanted.name);
        assert_eq!(found.element, wanted.element, "{}", wanted.name);
        near(
            &wanted.name,
            found.bytes.0 as f64,
            wanted.bytes.0 as f64,
            0.1,
        );
        near(&wanted.name, found.share, wanted.share, 0.1);
        assert!(
            (found.stores - wanted.stores).abs() < 0.05,
            "{}",
            wanted.name
        );
        if wanted.order == weir_model::workload::Order::Zipf {
            near("skew", found.skew, wanted.skew, 0.1);
        }
    }
    for row in imported.misses.iter().filter(|row| row.trace_mpki > 0.5) {
        near(
            &format!("{}", row.cache),
            row.described_mpki,
            row.trace_mpki,
            0.1,
        );
    }
}

#[test]
fn random_regions() {
    is_found(
        "{ name = \"a\", bytes = \"2 MiB\", order = \"random\", share = 0.4, stores = 0.3 }, \
         { name = \"b\", bytes = \"24 MiB\", order = \"random\", share = 0.6 }",
        6_000_000,
    );
}

#[test]
fn a_region_that_is_larger_than_the_trace() {
    is_found(
        "{ name = \"a\", bytes = \"1 MiB\", order = \"random\", share = 0.5 }, \
         { name = \"b\", bytes = \"4 GiB\", order = \"random\", share = 0.5 }",
        6_000_000,
    );
}

#[test]
fn runs() {
    is_found(
        "{ name = \"a\", bytes = \"4 MiB\", order = \"sequential\", share = 0.5, stores = 0.5 }, \
         { name = \"b\", bytes = \"16 MiB\", order = \"sequential\", share = 0.3, element = \"16 B\" }, \
         { name = \"c\", bytes = \"8 MiB\", order = \"random\", share = 0.2 }",
        20_000_000,
    );
}

#[test]
fn strides_and_long_elements() {
    is_found(
        "{ name = \"a\", bytes = \"32 MiB\", order = \"sequential\", share = 0.3, stride = \"256 B\" }, \
         { name = \"b\", bytes = \"8 MiB\", order = \"random\", share = 0.7, element = \"512 B\" }",
        6_000_000,
    );
}

#[test]
fn popular_lines() {
    is_found(
        "{ name = \"a\", bytes = \"64 MiB\", order = \"zipf\", share = 0.6, skew = 0.8 }, \
         { name = \"b\", bytes = \"4 MiB\", order = \"random\", share = 0.4 }",
        12_000_000,
    );
}

#[test]
fn addresses_that_are_loaded() {
    let mut watch = Watch::new();
    for index in 0..2_000_000_u64 {
        Sink::instructions(&mut watch, 5);
        // A list of 8 MiB, and a table of 2 MiB whose places are read from a run of 1 MiB.
        let element = |index| 0x10_0000_0000 + hash(index) % (1 << 17) * 64;
        let load = |address, from| Access {
            address,
            bytes: 8,
            store: false,
            from,
        };
        watch.access(load(element(index + 1), Some(element(index))));
        let place = 0x20_0000_0000 + index % (1 << 14) * 64;
        watch.access(load(place, None));
        let found = 0x30_0000_0000 + (hash(index) >> 40) % (1 << 15) * 64;
        watch.access(load(found, Some(place)));
    }
    let knows = Origin {
        has_dependences: true,
        ..origin()
    };
    let description = describe(&watch, &knows).unwrap();
    let regions = &description.workload.phases[0].regions;
    let orders: Vec<&str> = regions.iter().map(|region| region.order.name()).collect();
    assert_eq!(orders, ["chase", "sequential", "random"]);
    assert_eq!(
        regions[2].indexed_by.as_deref(),
        Some(regions[1].name.as_str())
    );
    assert_eq!(regions[1].dependent, 0.0);
}
