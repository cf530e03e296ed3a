//! The page: whatever a document holds, it is drawn, stands alone and says where it is from.

use proptest::prelude::*;
use weir::report::{Section, page};
use weir::store::RunId;
use weir_model::access::Op;
use weir_model::document::{BenchDocument, Beside, Header, Point, Steadiness, Theory};
use weir_model::latency::LatencyHistogram;
use weir_model::machine::{Identity, MachineKind};
use weir_model::tenant::Arrivals;
use weir_model::topology::{Tier, TierKind, TierName, Topology};
use weir_model::units::{Bytes, GbPerSec, Nanos};

fn tier(name: TierName, kind: TierKind) -> Tier {
    Tier {
        name,
        kind,
        node: None,
        capacity: Bytes::gib(64),
        description: "2 x DDR5-4800".into(),
        limits: None,
        programs_left: None,
    }
}

fn section(name: &str, points: Vec<Point>) -> Section {
    let topology = Topology {
        other_cores: Vec::new(),
        other_hosts: Vec::new(),
        processor: "a processor".into(),
        sockets: 1,
        cores: (0..8).collect(),
        tiers: vec![
            tier(TierName::dram(), TierKind::Dram),
            tier(TierName::cxl(0), TierKind::Cxl),
        ],
        caches: Vec::new(),
        clock: None,
        allocation: None,
        page: Bytes::kib(4),
    };
    let header = Header {
        schema: BenchDocument::SCHEMA.into(),
        weir: "0.1.0".into(),
        machine: Identity {
            kind: MachineKind::Sim,
            name: name.into(),
            digest: "0123".into(),
        },
        processor: topology.processor.clone(),
        topology,
        seed: 7,
        elapsed_s: 1.0,
        capabilities: Vec::new(),
        warnings: Vec::new(),
        partial: false,
    };
    Section {
        run: RunId(3),
        began: "2026-03-01 14:05:09".into(),
        verb: "bench all".into(),
        command: "weir bench all --seed 7".into(),
        latencies: points
            .iter()
            .map(|_| vec![(Nanos(90.0), 5), (Nanos(400.0), 95)])
            .collect(),
        interplay: None,
        document: BenchDocument {
            header,
            points,
            tails: Vec::new(),
        },
    }
}

fn point(experiment: &str, op: Op, pattern: &str) -> Point {
    Point {
        socket: 0,
        host: 0,
        affinity: None,
        experiment: experiment.into(),
        case: None,
        tier: TierName::dram(),
        op,
        pattern: pattern.into(),
        threads: 1,
        cores: Vec::new(),
        block_bytes: None,
        wss_bytes: Some(Bytes::mib(64)),
        read_share: None,
        source: None,
        cache_ways: None,
        kernel: None,
        batch: None,
        beside: None,
        prefetch: true,
        gbps: None,
        ns: None,
        ci95: Some(0.5),
        samples: 9,
        repetitions: 1,
        steadiness: None,
        theory: None,
        medium: None,
        conditions: vec!["4 KiB pages".into()],
        error: None,
    }
}

fn latency(mean: f64) -> LatencyHistogram {
    let mut all = LatencyHistogram::new();
    all.record_many(Nanos(mean * 0.9), 100_000);
    all.record_many(Nanos(mean * 3.0), 500);
    all
}

fn company(threads: u32, pause: f64, gbps: f64) -> Beside {
    Beside {
        cache_ways: None,
        source: None,
        tier: TierName::dram(),
        op: Op::Ld,
        pattern: "sequential".into(),
        threads,
        socket: 0,
        host: 0,
        read_share: 1.0,
        pause_ns: Nanos(pause),
        arrivals: Arrivals::Closed,
        gbps: Some(GbPerSec(gbps)),
        traffic_gbps: Some(GbPerSec(gbps)),
    }
}

const EXPERIMENTS: [&str; 8] = [
    "latency",
    "tail",
    "bandwidth",
    "loaded",
    "random",
    "stream",
    "movement",
    "share",
];

/// Points of every experiment, as few as fill each chart.
fn one_of_each() -> Vec<Point> {
    let ns = |p: Point, mean: f64| Point {
        ns: latency(mean).summary(),
        ..p
    };
    let gbps = |p: Point, value: f64| Point {
        gbps: Some(GbPerSec(value)),
        ..p
    };
    let mut points = vec![
        ns(point("latency", Op::Ld, "chase_tlb_friendly"), 110.0),
        ns(point("latency", Op::Ld, "flushed_line"), 270.0),
        ns(point("tail", Op::Ld, "chase_tlb_friendly"), 110.0),
        gbps(point("bandwidth", Op::Ld, "sequential"), 14.0),
        ns(point("loaded", Op::Ld, "chase_tlb_friendly"), 110.0),
    ];
    let mut beside = ns(point("tail", Op::Ld, "chase_tlb_friendly"), 150.0);
    beside.beside = Some(company(4, 0.0, 40.0));
    points.push(beside);
    for (pause, drawn, mean) in [(100.0, 20.0, 120.0), (0.0, 200.0, 400.0)] {
        let mut loaded = ns(point("loaded", Op::Ld, "chase_tlb_friendly"), mean);
        loaded.beside = Some(company(7, pause, drawn));
        points.push(loaded);
    }
    for threads in [1, 2, 4] {
        for kib in [1, 4] {
            let mut random = point("random", Op::NtSt, "random_block");
            (random.threads, random.block_bytes) = (threads, Some(Bytes::kib(kib)));
            points.push(gbps(random, f64::from(threads) * 3.25));
        }
        let mut stream = point("stream", Op::St, "sequential");
        (stream.threads, stream.kernel) = (threads, Some("triad".into()));
        points.push(gbps(stream, 10.0));
    }
    let mut copy = point("movement", Op::NtSt, "sequential");
    (copy.source, copy.kernel) = (Some(TierName::cxl(0)), Some("nt_copy".into()));
    points.push(gbps(copy, 8.5));
    let mut share = point("share", Op::Cas, "shared_line");
    share.cores = vec![0, 5];
    points.push(ns(share, 60.0));
    points
}

/// Every chart of a page.
fn charts(page: &str) -> Vec<&str> {
    let starts = page.match_indices("<svg").map(|(at, _)| &page[at..]);
    let chart = |rest: &'static str, text: &str| text.find(rest).map(|end| end + rest.len());
    starts
        .filter_map(|text| Some(&text[..chart("</svg>", text)?]))
        .collect()
}

#[track_caller]
fn check(page: &str) {
    for chart in charts(page) {
        let tree = roxmltree::Document::parse(chart).unwrap_or_else(|e| panic!("{e}\n{chart}"));
        let root = tree.root_element();
        assert!(root.attribute("aria-label").is_some_and(|l| !l.is_empty()));
        // Nothing is drawn at a place that is none.
        for shape in tree.descendants() {
            for place in shape.attributes().filter(|a| a.name() != "aria-label") {
                let lost = ["NaN", "inf"].iter().any(|w| place.value().contains(w));
                assert!(!lost, "{place:?}");
            }
        }
    }
    assert_eq!(
        page.matches("<figure>").count(),
        page.matches("class=\"save\"").count()
    );
    assert_eq!(page.matches("<figure>").count() * 2, charts(page).len());
    for fetched in ["src=", "<link", "@import", "url("] {
        assert!(
            !page.contains(fetched),
            "the page fetches something: {fetched}"
        );
    }
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
}

#[test]
fn every_experiment_has_its_chart_with_axes_in_units_run_and_command() {
    let page = page(&[section("a-machine", one_of_each())], &[]);
    check(&page);
    for title in [
        "Idle latency",
        "Peak bandwidth",
        "Distribution of single requests",
        "Latency by working set",
        "Single accesses to flushed lines",
        "Tail of dram with readers",
        "Bandwidth of dram by threads",
        "Loaded latency of dram",
        "Random blocks on dram",
        "STREAM, best over threads",
        "STREAM by threads on dram, st",
        "Copies by 1 thread, from rows to columns",
        "Time to hand a line of dram from core to core, one way",
    ] {
        assert!(page.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    for figure in page.split("<figure>").skip(1) {
        for needed in [
            "run 3 · a-machine · 2026-03-01 14:05:09 UTC · seed 7 · Weir 0.1.0",
            "weir bench all --seed 7",
            "<table>",
        ] {
            assert!(figure.contains(needed), "{needed} is not in {figure}");
        }
        let drawing = charts(figure)[0];
        assert!(
            ["[ns]", "[GB/s]"].iter().any(|unit| drawing.contains(unit)),
            "{drawing}"
        );
    }
    // Verdicts come before figures, and a page of many chapters has a list of them.
    assert!(page.find("What this means") < page.find("<figure>"));
    assert!(page.contains("<nav") && page.contains("href=\"#share\""));
}

#[test]
fn machines_stand_side_by_side() {
    let page = page(
        &[
            section("one", one_of_each()),
            section("other", one_of_each()),
            section("third", one_of_each()),
        ],
        &[],
    );
    check(&page);
    assert!(page.contains("<h1>Memory tiers of one, other and third"));
    let side = page.split("<figure>").nth(1).unwrap();
    for origin in ["run 3 · one ·", "run 3 · other ·"] {
        assert!(side.contains(origin), "{origin}");
    }
    assert!(page.contains("Loaded latency, reads only"));
}

/// The colours of the bars of the first chart, which is of idle latency.
fn idle_colours(page: &str) -> Vec<&str> {
    let chart = page.split("<figure>").nth(1).unwrap();
    let chart = chart.split("</svg>").next().unwrap();
    let bars = chart.split("class=\"bar ").skip(1);
    bars.map(|bar| bar.split('"').next().unwrap()).collect()
}

#[test]
fn a_tier_has_one_colour_on_a_page_and_a_stopped_run_no_latency_of_a_cache() {
    let chase = |tier: TierName| Point {
        tier,
        wss_bytes: Some(Bytes::kib(256)),
        ns: latency(7.0).summary(),
        ..point("latency", Op::Ld, "chase_tlb_friendly")
    };
    let points = || vec![chase(TierName::dram()), chase(TierName::cxl(0))];
    let mut other = section("other", points());
    let between = tier(TierName::cxl(1), TierKind::Cxl);
    other.document.header.topology.tiers.insert(1, between);
    let both = [section("one", points()), other];
    let drawn = page(&both, &[]);
    let colours = idle_colours(&drawn);
    let [dram, cxl, ..] = colours[..] else {
        panic!("{colours:?}")
    };
    assert_ne!(dram, cxl);
    assert_eq!(colours, [dram, cxl, dram, cxl]);
    let [one, mut other] = both;
    other.document.header.partial = true;
    let drawn = page(&[one, other], &[]);
    assert_eq!(idle_colours(&drawn), [dram, cxl]);
}

#[test]
fn a_doubtful_figure_is_marked_and_the_mark_explained() {
    for (steadiness, glyph, word) in [
        (Steadiness::Noisy, "~", "noisy:"),
        (Steadiness::Bimodal, "‡", "bimodal:"),
        (Steadiness::Drifting, "↗", "drifting:"),
    ] {
        let doubtful = |p: Point| Point {
            steadiness: Some(steadiness),
            ..p
        };
        let page = page(
            &[section(
                "m",
                one_of_each().into_iter().map(doubtful).collect(),
            )],
            &[],
        );
        check(&page);
        for figure in page.split("<figure>").skip(1) {
            assert!(
                charts(figure)[0].contains(glyph),
                "{glyph} is not in {figure}"
            );
            assert!(figure.contains(&format!("<b>{glyph}</b> {word}")));
        }
    }
    let clean = page(&[section("m", one_of_each())], &[]);
    assert!(!clean.contains("noisy:") && !clean.contains("bimodal:"));
}

#[test]
fn a_large_page_stays_one_that_opens() {
    let mut points = Vec::new();
    while points.len() < 10_000 {
        let threads = points.len() as u32 / 50 + 1;
        points.extend(one_of_each().into_iter().map(|p| Point { threads, ..p }));
    }
    let page = page(&[section("m", points)], &[]);
    assert!(page.len() < 12 << 20, "{} bytes", page.len());
}

fn any_point() -> impl Strategy<Value = Point> {
    let figure = prop_oneof![
        8 => 1e-3f64..1e6,
        1 => Just(0.0),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0)],
    ];
    let what = (
        0.."all".len(),
        0..Op::ALL.len(),
        prop_oneof![
            Just("chase_random"),
            Just("sequential"),
            Just("flushed_line")
        ],
        1u32..40,
        proptest::option::of(0u64..1 << 40),
        proptest::option::of(".{0,12}"),
    );
    let seen = (
        proptest::option::of(figure.clone()),
        proptest::option::of(figure.clone()),
        proptest::option::of(figure.clone()),
        proptest::option::of((0u32..40, figure.clone())),
        proptest::option::of(".{0,20}"),
        0..5usize,
        proptest::collection::vec(0u32..9, 0..3),
    );
    (what, seen).prop_map(|(what, seen)| {
        let (experiment, op, pattern, threads, size, kernel) = what;
        let (gbps, ns, ci95, beside, error, steadiness, cores) = seen;
        Point {
            threads,
            cores,
            block_bytes: size.map(Bytes),
            wss_bytes: size.map(Bytes),
            kernel,
            ns: ns
                .filter(|ns| ns.is_finite())
                .and_then(|ns| latency(ns).summary()),
            gbps: gbps.map(GbPerSec),
            ci95,
            beside: beside.map(|(threads, gbps)| company(threads, gbps, gbps)),
            theory: gbps.map(|limit| Theory {
                limit,
                share_pct: limit,
                basis: "<script>alert(1)</script>\u{1}\u{ffff}".into(),
                beaten: limit > 10.0,
            }),
            steadiness: [Steadiness::Steady, Steadiness::Noisy, Steadiness::Bimodal]
                .get(steadiness)
                .copied(),
            error,
            ..point(EXPERIMENTS[experiment], Op::ALL[op], pattern)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_document_is_drawn(
        points in proptest::collection::vec(any_point(), 0..40),
        name in ".{0,20}",
    ) {
        prop_assume!(!name.contains("http"));
        let page = page(&[section(&name, points)], &[]);
        check(&page);
        prop_assert!(!page.contains("<script>alert"));
    }
}
