//! Laws of the readers, then examples. The samples are our own, in the formats of the tools.

use proptest::prelude::*;
use weir_model::access::Op;
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Gigahertz, Nanos};

use super::*;

/// One file of each kind, with the name that it has.
pub(super) const FILES: [(Kind, &str, &str); 10] = [
    (Kind::Mlc, "mlc.txt", include_str!("samples/mlc.txt")),
    (Kind::PerfStat, "perf.csv", include_str!("samples/perf.csv")),
    (
        Kind::Pcm,
        "pcm-memory.csv",
        include_str!("samples/pcm-memory.csv"),
    ),
    (Kind::Pcm, "pcm.csv", include_str!("samples/pcm.csv")),
    (
        Kind::Stream,
        "stream.txt",
        include_str!("samples/stream.txt"),
    ),
    (
        Kind::Streamer,
        "output.csv",
        "threads,copy,scale,add,triad\n1,8140.5,6716,,6852\n10,21356,21100,22000,22010\n",
    ),
    (
        Kind::Ocp,
        "results_mlc_bandwidth.csv",
        include_str!("samples/ocp-bandwidth.csv"),
    ),
    (
        Kind::Ocp,
        "bw_ramp.results.node_2.R.seq.0:100.csv",
        include_str!("samples/ocp-ramp.csv"),
    ),
    (
        Kind::Ocp,
        "results_mlc.json",
        include_str!("samples/ocp.json"),
    ),
    (
        Kind::Mess,
        "bwlat_70.txt",
        "31683.5\t308.5\n16000.25\t240.75\n320\t215\n",
    ),
];

fn hints() -> Hints {
    Hints {
        clock: Some(Gigahertz(2.0)),
        ..Hints::default()
    }
}

fn of(n: usize) -> Found {
    let (kind, file, text) = FILES[n];
    read(kind, file, text, &hints()).unwrap()
}

/// Figures and readings without their places.
fn facts(found: &Found) -> Vec<String> {
    let points = found.points.iter().map(|point| {
        let mut point = point.clone();
        point.conditions.remove(0);
        serde_json::to_string(&point).unwrap()
    });
    let readings = found.readings.iter().map(|reading| {
        let reading = Reading {
            line: 0,
            ..reading.clone()
        };
        serde_json::to_string(&reading).unwrap()
    });
    let mut all: Vec<String> = points.chain(readings).collect();
    all.sort();
    all
}

#[test]
fn each_kind_is_found_and_every_figure_has_its_line() {
    for (n, (kind, file, text)) in FILES.into_iter().enumerate() {
        assert_eq!(kind_of(file, text), Some(kind), "{file}");
        let found = of(n);
        assert!(found.points.len() + found.readings.len() > 2, "{file}");
        for point in &found.points {
            let place = point.conditions[0]
                .strip_prefix(&format!("{file}:"))
                .unwrap();
            let known = place.parse::<usize>().is_ok_and(|at| {
                let line = text.lines().nth(at - 1).unwrap();
                line.chars().any(|c| c.is_ascii_digit())
            });
            assert!(known || place.ends_with(']'), "{place}");
            assert!(!point.conditions[1].is_empty());
        }
    }
    for text in ["", "hello\n", "1,2,3\n", "{}", "a b c\n1 2 3\n"] {
        assert_eq!(kind_of("x.txt", text), None, "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_read_or_explained(
        n in 0..FILES.len(),
        at in 0.0..1.0_f64,
        cut in 0_usize..40,
        piece in prop_oneof![
            ".{0,12}",
            Just("-1e308".to_owned()),
            Just("nan".to_owned()),
            Just("\n\n,,;;".to_owned()),
            Just("18446744073709551616".to_owned()),
        ],
    ) {
        let (_, file, text) = FILES[n];
        let mut chars: Vec<char> = text.chars().collect();
        let from = (at * chars.len() as f64) as usize;
        let to = (from + cut).min(chars.len());
        chars.splice(from..to, piece.chars());
        let text: String = chars.into_iter().collect();
        // Every reader meets every file.
        for kind in Kind::ALL {
            match read(kind, file, &text, &hints()) {
                Ok(found) => {
                    prop_assert!(!found.points.is_empty() || !found.readings.is_empty());
                    let sound = |p: &Point| p.gbps.is_none_or(|g| g.get() > 0.0 && g.get().is_finite())
                        && p.ns.is_none_or(|ns| ns.mean.get() > 0.0);
                    prop_assert!(found.points.iter().all(sound));
                }
                Err(error) => prop_assert!(error.to_string().starts_with(file), "{error}"),
            }
        }
    }

    #[test]
    fn the_order_of_lines_that_stand_alone_changes_nothing(
        n in prop::sample::select(vec![2_usize, 3, 5, 6, 7, 9]),
        seed in any::<u64>(),
    ) {
        let (kind, file, text) = FILES[n];
        // Heads stay where they are.
        let head = match kind { Kind::Mess => 0, Kind::Pcm => 2, _ => 1 };
        let mut lines: Vec<&str> = text.lines().collect();
        let count = lines.len();
        let mut state = seed | 1;
        for at in (head + 1..count).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            lines.swap(at, head + (state >> 33) as usize % (at - head + 1));
        }
        let shuffled = format!("{}\n", lines.join("\n"));
        let found = read(kind, file, &shuffled, &hints()).unwrap();
        prop_assert_eq!(facts(&found), facts(&of(n)));
    }
}

#[test]
fn mlc_gives_what_our_benches_measure() {
    let found = of(0);
    assert_eq!(found.tool, "Intel MLC v3.11a");
    let of = |experiment: &str| -> Vec<&Point> {
        let own = found.points.iter().filter(|p| p.experiment == experiment);
        own.collect()
    };
    let nodes = of("nodes");
    assert_eq!(nodes.len(), 12);
    let at = |tier: &str, socket| {
        let own = |p: &&&Point| p.tier.as_str() == tier && p.socket == socket;
        nodes.iter().find(own).unwrap()
    };
    assert_eq!(at("remote", 0).ns.unwrap().mean, Nanos(180.5));
    assert_eq!(at("dram", 1).ns.unwrap().mean, Nanos(181.25));
    assert_eq!(at("node2", 1).ns.unwrap().mean, Nanos(402.5));
    let peaks = of("bandwidth");
    // 3:1 counts four lines at the memory for three that the program touches.
    let (reads, mixed) = (peaks[0].gbps.unwrap(), peaks[1].gbps.unwrap());
    assert_eq!(reads, GbPerSec(400.0));
    assert!((mixed.get() - 300.0).abs() < 1e-9, "{mixed}");
    assert_eq!(peaks[0].tier.as_str(), "local");
    let loaded = of("loaded");
    assert_eq!(loaded.len(), 3);
    let beside = loaded[0].beside.as_ref().unwrap();
    assert_eq!(beside.traffic_gbps, Some(GbPerSec(398.0)));
    let words = found.left.warnings().join("\n");
    assert!(
        words.contains("left out, 3 times: cache-to-cache latencies"),
        "{words}"
    );
    assert!(
        words.contains("1 line was not understood: mlc.txt:36: Something else"),
        "{words}"
    );
    // A command line with a node and a traffic.
    let text = "Intel(R) Memory Latency Checker - v3.9\nCommand line parameters: --loaded_latency -j2 -W5 -k1-8\n\
                Inject\tLatency\tBandwidth\nDelay\t(ns)\tMB/sec\n=====\n 00100\t400.5\t 20000.0\n";
    let hints = Hints {
        tiers: vec![("2".into(), TierName::cxl(0))],
        ..Hints::default()
    };
    let found = read(Kind::Mlc, "a", text, &hints).unwrap();
    let beside = found.points[0].beside.as_ref().unwrap();
    assert_eq!((beside.tier.as_str(), beside.threads), ("cxl0", 8));
    assert_eq!(
        (beside.gbps, beside.read_share),
        (Some(GbPerSec(10.0)), 0.5)
    );
}

#[test]
fn pcm_has_bandwidths_by_socket_and_channel_over_time() {
    let found = of(2);
    let at = |line, of: &str, name: &str| {
        let own = |r: &&Reading| r.line == line && r.of == of && r.name == name;
        found.readings.iter().find(own).unwrap()
    };
    let channel = at(4, "SKT1", "Ch0Write");
    assert_eq!((channel.socket, channel.channel), (Some(1), Some(0)));
    assert_eq!((channel.value, channel.unit.as_str()), (Some(0.25), "GB/s"));
    assert_eq!(channel.at_s, Some(1.0));
    assert_eq!(at(3, "SKT0", "Mem Read").value, Some(1.5));
    assert_eq!(at(3, "System", "Memory").value, Some(5.0));
    let found = of(3);
    let own = |r: &&Reading| r.of == "Socket 1" && r.name == "READ";
    assert_eq!(found.readings.iter().find(own).unwrap().value, Some(2.5));
    let nothing = found.readings.iter().find(|r| r.value.is_none()).unwrap();
    assert_eq!(nothing.why.as_deref(), Some("`N/A` in the file"));
    assert!(found.left.warnings()[0].contains("values of single cores"));
}

#[test]
fn other_files_keep_what_they_say() {
    let stream = of(4);
    assert_eq!(stream.tool, "STREAM 5.10");
    assert_eq!(stream.points.len(), 4);
    assert_eq!(stream.points[3].kernel.as_deref(), Some("triad"));
    assert_eq!(
        (stream.points[3].threads, stream.points[3].gbps),
        (24, Some(GbPerSec(161.5)))
    );
    let ocp = of(6);
    let writes = ocp.points.iter().find(|p| p.op == Op::NtSt).unwrap();
    assert_eq!(
        (writes.tier.as_str(), writes.gbps),
        ("node2", Some(GbPerSec(21.0)))
    );
    let ramp = of(7);
    assert_eq!(ramp.points[0].tier.as_str(), "cxl0");
    assert_eq!(ramp.points[2].threads, 3);
    let json = of(8);
    assert_eq!(
        json.points[0].conditions[0],
        "results_mlc.json:idle_latency[0]"
    );
    let mess = of(9);
    let point = &mess.points[0];
    assert_eq!(point.ns.unwrap().mean, Nanos(154.25));
    assert!((point.beside.as_ref().unwrap().read_share - 0.7).abs() < 1e-9);
    let perf = of(1);
    let named = |name: &str| perf.readings.iter().find(|r| r.name == name).unwrap();
    assert_eq!(named("cycles").value, Some(2_000_000.0));
    assert!(named("LLC-load-misses").why.is_some());
}

#[test]
fn a_value_that_is_none_is_refused_with_file_line_and_key() {
    for (n, from, to, said) in [
        (
            0,
            "180.5",
            "far",
            "mlc.txt:6: `from node 0 to node 1` is `far`",
        ),
        (
            0,
            " 180.5",
            "",
            "mlc.txt:6: node 0 has 2 values, but the matrix has 3 nodes",
        ),
        (0, "400000.0", "-3", "mlc.txt:14: `all reads` is `-3`"),
        (0, " 398000.0", "", "is not a row of inject delay"),
        (4, "161500.0", "fast", "stream.txt:24: `Triad` is `fast`"),
        (5, "6716", "x", "output.csv:2: `x` is no bandwidth"),
        (
            6,
            "21000.0",
            "1e400",
            "results_mlc_bandwidth.csv:3: `Bandwidth` is `1e400`",
        ),
        (7, ",2,R", ",many,R", "`Num of Cores` is `many`"),
        (
            8,
            "\"numa_node\": 0",
            "\"numa_node\": \"x\"",
            "results_mlc.json:1: `NUMA Node` is `x`",
        ),
        (
            9,
            "240.75",
            "0",
            "bwlat_70.txt:2: `latency (cycles)` is `0`",
        ),
    ] {
        let (kind, file, text) = FILES[n];
        assert!(text.contains(from), "{from}");
        let error = read(kind, file, &text.replace(from, to), &hints());
        let shown = error.unwrap_err().to_string();
        assert!(shown.contains(said), "{said:?} is not in {shown:?}");
    }
    let nothing = read(Kind::Mlc, "a.txt", "hello\n", &hints()).unwrap_err();
    let shown = nothing.to_string();
    assert!(
        shown.contains("nothing in it is of mlc: wanted are an idle latency"),
        "{shown}"
    );
    assert!(shown.contains("a.txt:1: hello"), "{shown}");
    let cycles = read(Kind::Mess, "bwlat_70.txt", "1 2\n", &Hints::default()).unwrap_err();
    assert!(cycles.to_string().contains("add --clock"));
}
