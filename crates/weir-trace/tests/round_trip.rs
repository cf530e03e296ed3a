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
        mappings: Default::default(),
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
    let mut replay = Replay::new(made, 7);
    let mut done = 0;
    while done < accesses {
        done += replay.step(&mut watch);
    }
    watch.end();
    let description = describe(&watch, &origin(), true).unwrap();
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
    assert_eq!(
        found.regions.len(),
        wanted.regions.len(),
        "{:?}",
        found.regions
    );
    near(
        &format!("apki {:?}", found.regions),
        found.apki,
        wanted.apki,
        0.1,
    );
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
        assert!(
            (found.modifies - wanted.modifies).abs() < 0.05,
            "{}: {} of {}",
            wanted.name,
            found.modifies,
            wanted.modifies
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
        3_000_000,
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
        8_000_000,
    );
}

#[test]
fn cycles_whose_order_is_irregular() {
    is_found(
        "{ name = \"a\", bytes = \"2 MiB\", order = \"cycle\", share = 0.3, element = \"64 B\" }, \
         { name = \"b\", bytes = \"24 MiB\", order = \"cycle\", share = 0.7, stores = 0.5 }",
        3_000_000,
    );
}

#[test]
fn lines_that_are_loaded_and_then_stored() {
    is_found(
        "{ name = \"a\", bytes = \"8 MiB\", order = \"random\", share = 0.4, stores = 0.2, modifies = 0.5 }, \
         { name = \"b\", bytes = \"16 MiB\", order = \"sequential\", share = 0.6, modifies = 1 }",
        6_000_000,
    );
}

/// Two stretches that differ are two phases with the lengths, the shares and the regions that they have, also where the
/// second has memory of the first.
#[test]
fn phases() {
    let one = "{ name = \"a\", bytes = \"24 MiB\", order = \"random\", share = 0.8 }, \
               { name = \"b\", bytes = \"1 MiB\", order = \"random\", share = 0.2 }";
    let two = "{ name = \"b\", bytes = \"1 MiB\", order = \"random\", share = 1, stores = 1 }";
    let phase = |name: &str, apki: u32, regions: &str| {
        format!("[[phase]]\nname = \"{name}\"\ncpi = 0.5\napki = {apki}\nregions = [{regions}]\n")
    };
    let text = format!(
        "kind = \"workload\"\nsummary = \"a\"\nsource = \"b\"\n{}{}",
        phase("one", 100, one),
        phase("two", 50, two)
    );
    let made = Workloads::check("made.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let mut watch = Watch::new();
    let mut replay = Replay::new(&made, 7);
    for (phase, accesses) in [(0, 10_500_000), (1, 9_000_000)] {
        replay.begin(phase);
        let mut done = 0;
        while done < accesses {
            done += replay.step(&mut watch);
        }
    }
    watch.end();
    let description = describe(&watch, &origin(), true).unwrap();
    let found = &description.workload.phases;
    assert_eq!(found.len(), 2);
    near("one", found[0].instructions as f64, 105e6, 0.1);
    near("two", found[1].instructions as f64, 180e6, 0.1);
    let region = |phase: usize, name: &str| {
        let mut regions = found[phase].regions.iter();
        regions.find(|region| region.name == name).unwrap()
    };
    near("share", region(0, "m1").share, 0.8, 0.05);
    // The interval with the change is in one of the two phases.
    near("share", region(1, "m2").share, 1.0, 0.1);
    near("stores", region(1, "m2").stores, 1.0, 0.1);
    near(
        "size",
        description.workload.footprint().0 as f64,
        (25 << 20) as f64,
        0.1,
    );
    let imported = check(&watch, &description, &origin(), 1.0, 1, |_| true).unwrap();
    for row in imported.misses.iter().filter(|row| row.trace_mpki > 0.5) {
        near("misses", row.described_mpki, row.trace_mpki, 0.1);
    }
}

#[test]
fn threads_have_caches_of_their_own() {
    let mut watch = Watch::new();
    for n in 0..3_000_000_u64 {
        // Two threads use the same few lines, which would leave no L1 of one; a third does next to nothing.
        let thread = if n % 1000 == 0 { 9 } else { n % 2 };
        watch.thread(thread);
        Sink::instructions(&mut watch, 2);
        let address = match n % 4 {
            0 | 1 => 0x10_0000_0000 + hash(n) % (1 << 17) * 64,
            _ => 0x20_0000_0000 + thread * 0x10_0000 + n % 128 * 64,
        };
        watch.access(Access {
            address,
            bytes: 8,
            store: false,
            from: None,
        });
    }
    watch.end();
    assert_eq!(watch.threads(), 2);
    let description = describe(&watch, &origin(), true).unwrap();
    let workload = &description.workload;
    assert_eq!((workload.threads, workload.phases.len()), (2, 1));
    near(
        "instructions",
        workload.phases[0].instructions as f64,
        3e6,
        0.01,
    );
    near("size", workload.footprint().0 as f64, (8 << 20) as f64, 0.1);
}

#[test]
fn strides_and_long_elements() {
    is_found(
        "{ name = \"a\", bytes = \"32 MiB\", order = \"sequential\", share = 0.3, stride = \"256 B\" }, \
         { name = \"b\", bytes = \"8 MiB\", order = \"random\", share = 0.7, element = \"512 B\" }",
        3_000_000,
    );
}

#[test]
fn popular_lines() {
    is_found(
        "{ name = \"a\", bytes = \"64 MiB\", order = \"zipf\", share = 0.6, skew = 0.8 }, \
         { name = \"b\", bytes = \"4 MiB\", order = \"random\", share = 0.4 }",
        6_000_000,
    );
}

/// Bursts of far lines of this many pages, some of each, with long stretches of other work between them.
fn bursts(pages: u64, lines: u64) -> (u32, u64) {
    let mut watch = Watch::new();
    for index in 0..3_000_000_u64 {
        let within = index % (pages * lines);
        let gap = if within == 0 {
            1000 * pages * lines
        } else {
            10
        };
        Sink::instructions(&mut watch, gap);
        let page = hash(index / lines) % (1 << 15);
        let line = hash(index) >> 32;
        watch.access(Access {
            address: 0x10_0000_0000 + page * 4096 + line % 64 * 64,
            bytes: 8,
            store: false,
            from: None,
        });
    }
    let workload = describe(&watch, &origin(), true).unwrap().workload;
    let region = &workload.phases[0].regions[0];
    (region.batch, region.element.get())
}

#[test]
fn lines_that_are_jumped_to_at_once() {
    for (pages, lines) in [(8, 1), (4, 1), (1, 8), (1, 4), (3, 4)] {
        let (batch, element) = bursts(pages, lines);
        let found = (u64::from(batch), element.div_ceil(64));
        // By chance some lines of a page follow each other, and are no jumps.
        assert!(
            pages.abs_diff(found.0) <= 1 && lines.abs_diff(found.1) <= lines / 4,
            "{found:?} for {pages} pages with {lines} lines"
        );
    }
    // One by one there is nothing to overlap.
    assert_eq!(bursts(1, 1), (1, 8));
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
    let description = describe(&watch, &knows, true).unwrap();
    let regions = &description.workload.phases[0].regions;
    let orders: Vec<&str> = regions.iter().map(|region| region.order.name()).collect();
    assert_eq!(orders, ["chase", "sequential", "random"]);
    assert_eq!(
        regions[2].indexed_by.as_deref(),
        Some(regions[1].name.as_str())
    );
    assert_eq!(regions[1].dependent, 0.0);
}

/// Objects of two lines: the address of the first comes from the object before, the second is read behind it.
#[test]
fn objects_that_are_found_through_each_other() {
    let mut watch = Watch::new();
    let object = |index| 0x10_0000_0000 + hash(index) % (1 << 17) * 128;
    for index in 0..1_500_000_u64 {
        for (line, from) in [(0, Some(object(index))), (64, None)] {
            Sink::instructions(&mut watch, 20);
            watch.access(Access {
                address: object(index + 1) + line,
                bytes: 8,
                store: false,
                from,
            });
        }
    }
    let knows = Origin {
        has_dependences: true,
        ..origin()
    };
    let description = describe(&watch, &knows, true).unwrap();
    let region = &description.workload.phases[0].regions[0];
    assert_eq!(
        (region.element.get(), region.order.name()),
        (128, "chase"),
        "{region:?}"
    );
}
