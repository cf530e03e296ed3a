//! Programs of Alto's evaluation (SupMario section 6.4): graph kernels and a language model.
//!
//! The paper names them and says how they wait: graphs for DRAM, triangle counting with most misses early and most
//! slowdown late, GPT-2 for DRAM with many misses at once. Sizes of regions are those of the GAP Benchmark Suite
//! (Beamer and others, arXiv 1508.03619): ids of 4 B for each edge, arrays of 20 B for each vertex; and of the 1.5
//! billion weights of GPT-2. How long the bc and tc kernels wait, and with how many misses at once, is what the core
//! model says of their descriptions in `workloads/` on `emr2s`. No value comes from a result of the paper.

use weir_model::units::Bytes;

use super::LINES;
use crate::workload::{Band, Growth, PageKind, PagedWorkload, Phase, Region, zipf};

/// What is assumed of them.
pub const ASSUMED: &str = "4 threads (1 to 8), so that graphs draw less than 24 GB/s; arrays of vertices are touched \
                           equally often by page, lists sorted by degree by a Zipf law of exponent 0.8 (0.7 to 0.9); \
                           loading takes 10 s, relabelling 30 s (10 to 60), all of it 10 min (5 to 20); files that \
                           were read leave no page cache; GPT-2 waits in 50 % of its time (20 to 90) with 20 accesses \
                           at once (10 to 48), and its checkpoint is in memory before its weights are";

const THREADS: u32 = 4;
const LOADED_S: f64 = 10.0;
/// Relabelling ends, and triangles are counted until the end.
const RELABELLED_S: f64 = 40.0;
/// How long a program runs.
pub const ENDS_S: f64 = 600.0;
/// Exponent of lists sorted by degree, as in the descriptions.
const EXPONENT: f64 = 0.8;
/// Of the accesses to lists that triangle counting merges, those to lists that it reads in order.
const IN_ORDER: f64 = 0.4;
/// Lines of a list that is read elsewhere, as in the descriptions.
const LIST_LINES: f64 = 8.0;
/// Sequential lines are fetched ahead: as many are under way as a Golden Cove core has line fill buffers.
const AHEAD: f64 = 16.0;

/// A region that is read in order: GiB, share of accesses, accesses at once.
fn region(name: &str, gib: f64, accesses: f64, mlp: f64) -> Region {
    Region {
        name: name.into(),
        kind: PageKind::Anon,
        bytes: Bytes((gib * Bytes::gib(1).get() as f64) as u64),
        page: Bytes::kib(4),
        accesses,
        writes: 0.0,
        mlp,
        burst: LINES,
        band_bursts: Vec::new(),
        band_places: Vec::new(),
        bands: vec![Band {
            pages: 1.0,
            accesses: 1.0,
        }],
        growth: grows(0.0, LOADED_S),
        lifetime_s: None,
        drift_per_hour: 0.0,
    }
}

fn grows(from_s: f64, full_s: f64) -> Growth {
    Growth {
        initial: 0.0,
        from_s,
        full_s,
        ..Growth::NONE
    }
}

/// Betweenness centrality: of an edge a sixteenth of a line of its list and, by id, what is known of its end. Of that the
/// last-level cache has a tenth.
fn centrality(lists: f64, backwards: Option<f64>, vertices: f64, at_once: f64) -> Vec<Region> {
    let mut regions = vec![region("lists", lists, 0.06, AHEAD)];
    // A directed graph has its edges in both directions, of which this kernel uses one.
    regions.extend(backwards.map(|gib| region("lists backwards", gib, 0.0, AHEAD)));
    regions.push(Region {
        // Depths, numbers of paths, dependencies: the third that the forward pass updates is written.
        writes: 0.15,
        burst: 1.0,
        growth: grows(LOADED_S, LOADED_S + 1.0),
        ..region("vertices", vertices, 0.94, at_once)
    });
    regions
}

/// Triangle counting: lists are sorted by degree into new ones, which are then merged in pairs.
fn triangles(lists: f64, at_once: f64) -> (Vec<Region>, Vec<Phase>) {
    let pages = lists * (1u64 << 18) as f64;
    let by_degree = zipf(1.0, 1.0 - IN_ORDER, pages, EXPONENT, 6).into_iter();
    let bands = by_degree.map(|band| Band {
        accesses: band.accesses + IN_ORDER * band.pages,
        ..band
    });
    let regions = vec![
        region("lists", lists, 0.0, AHEAD),
        Region {
            growth: grows(LOADED_S, RELABELLED_S),
            bands: bands.collect(),
            burst: 1.0 / (IN_ORDER / LINES + (1.0 - IN_ORDER) / LIST_LINES),
            ..region("sorted lists", lists, 1.0, at_once)
        },
    ];
    let phase = |seconds, accesses: [f64; 2]| Phase {
        seconds,
        accesses: accesses.into(),
        stalled: None,
    };
    let phases = vec![
        phase(RELABELLED_S, [0.5, 0.5]),
        phase(ENDS_S - RELABELLED_S, [0.0, 1.0]),
    ];
    (regions, phases)
}

/// Names of programs, and what each is.
pub const NAMES: &[(&str, &str)] = &[
    (
        "bc-twitter",
        "betweenness centrality on a follower graph: lists of edges first, then arrays of vertices (GAP)",
    ),
    (
        "bc-urand",
        "betweenness centrality on a uniform random graph (GAP)",
    ),
    (
        "tc-kron",
        "triangle counting on a Kronecker graph: lists are sorted by degree, then merged (GAP)",
    ),
    ("tc-twitter", "triangle counting on a follower graph (GAP)"),
    (
        "gpt2",
        "GPT-2 in single precision: all weights are read for each token",
    ),
];

/// A program by its name, as large as it is.
pub fn by_name(name: &str) -> Option<PagedWorkload> {
    let about = NAMES.iter().find(|(known, _)| *known == name)?.1;
    let (stalled, (regions, phases)) = match name {
        // 61.6 million vertices, 1468 million edges; 134 million and 4295 million.
        "bc-twitter" => (0.75, (centrality(5.5, Some(5.5), 1.15, 10.0), Vec::new())),
        "bc-urand" => (0.82, (centrality(16.0, None, 2.5, 11.0), Vec::new())),
        "tc-kron" => (0.75, triangles(15.7, 6.7)),
        "tc-twitter" => (0.7, triangles(5.5, 5.7)),
        // 1.5 billion weights of 4 B. The checkpoint is dropped when it has been copied.
        "gpt2" => {
            let checkpoint = Region {
                growth: Growth {
                    shrinks_from_s: 2.0 * LOADED_S,
                    shrunk_s: 2.0 * LOADED_S + 1.0,
                    kept: 0.0,
                    ..grows(0.0, LOADED_S)
                },
                ..region("checkpoint", 5.8, 0.0, AHEAD)
            };
            let weights = Region {
                growth: grows(LOADED_S, 2.0 * LOADED_S),
                ..region("weights", 5.8, 1.0, 20.0)
            };
            (0.5, (vec![checkpoint, weights], Vec::new()))
        }
        _ => return None,
    };
    Some(PagedWorkload {
        name: name.into(),
        about: about.into(),
        threads: THREADS,
        stalled,
        regions,
        phases,
    })
}
