//! Cards with DRAM of every speed grade: what their buses allow, and how latency grows with load.

use crate::common::*;
use weir_model::access::Op;
use weir_model::platform::{Library, Platform};

/// A server with a card that has one channel and nothing else that limits it.
fn card(media: &str) -> Platform {
    let text = format!(
        "kind = \"cxl\"\nsummary = \"one channel\"\nsource = \"what if\"\ncontroller = \"asic\"\n\
         lanes = 16\nmedia = \"{media}\"\nchannels = 1\ncapacity = \"16 GiB\"\nidle = \"250 ns\"\n\
         read_limit = \"media\"\n"
    );
    let mut library = Library::builtin();
    library
        .add("card.toml", &text)
        .unwrap_or_else(|e| panic!("{e}"));
    library
        .compose("emr2s+card")
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_card_of_any_grade_peaks_below_its_bus_and_in_the_order_of_the_grades() {
    let mut before = (0.0, f64::INFINITY);
    for media in [
        "ddr3-1600",
        "ddr3-1866",
        "ddr4-2666",
        "ddr4-3200",
        "ddr5-4800",
    ] {
        let platform = card(media);
        let bus = platform.devices[0]
            .device
            .media
            .timing()
            .channel_peak()
            .get();
        let bed = bed_of(&platform);
        for op in [Op::Ld, Op::St, Op::NtSt] {
            let all = gbps(&bed, stream(op, "cxl0", 0..8));
            assert!(all < bus, "{media} {op}: {all:.1} of {bus:.1} GB/s");
        }
        let seen = steady(&bed, &[stream(Op::Ld, "cxl0", 0..8)]);
        let reads = seen.gbps(0);
        assert!(reads > 0.7 * bus, "{media}: {reads:.1} of {bus:.1} GB/s");
        // Eight threads keep as many lines under way everywhere: the slower bus holds them longer.
        let chased = [
            chase("cxl0", 0..1, weir_model::units::Bytes::mib(64)),
            stream(Op::Ld, "cxl0", 1..9),
        ];
        let loaded = steady(&bed, &chased).ns(0);
        assert!(
            reads > before.0 && loaded < before.1,
            "{media}: {reads:.1} GB/s, {loaded:.0} ns"
        );
        before = (reads, loaded);
    }
}

#[test]
fn a_channel_of_lpddr5_carries_no_more_than_one_of_ddr3_1600() {
    let peak = |media| gbps(&bed_of(&card(media)), stream(Op::Ld, "cxl0", 0..8));
    let (narrow, old) = (peak("lpddr5-6400"), peak("ddr3-1600"));
    assert!(
        narrow < 12.8 && (0.85..1.15).contains(&(narrow / old)),
        "{narrow:.1}, {old:.1} GB/s"
    );
}
