//! Searches: deferred updates change nothing, sums of shards are distances, recall grows with the candidates.

use proptest::prelude::*;
use weir_ann::build::{Build, build};
use weir_ann::candidates::{Candidates, Met};
use weir_ann::datasets::generate;
use weir_ann::exact::{all_nearest, gather, nearest, recall};
use weir_ann::graph::Graph;
use weir_ann::search::{check, ordered, relaxed};
use weir_ann::vectors::{Metric, Near, Shards, Vectors};

/// Vectors, queries like them, and a graph.
fn data(n: usize, queries: usize, dims: usize, metric: Metric) -> (Vectors, Vectors, Graph) {
    let (vectors, queries) = generate(n + queries, dims, metric, 7).unwrap().split(n);
    let how = Build {
        degree: 24,
        candidates: 40,
        ..Build::default()
    };
    let graph = build(&vectors, metric, how, &|_| true).unwrap();
    (vectors, queries, graph)
}

/// Both forms of the search for each query: the same nodes in the same order, the same neighbours, the same counts.
fn same(n: usize, queries: usize, dims: usize, metric: Metric, most: usize) {
    let (vectors, queries, graph) = data(n, queries, dims, metric);
    let shards = Shards::of(&vectors, metric);
    let mut met = Met::new(vectors.len());
    for query in queries.rows() {
        let whole = |id| metric.distance(query, vectors.row(id));
        let first = ordered(&graph, whole, most, &mut met);
        assert_eq!(first, relaxed(&graph, whole, most, &mut met));
        assert_eq!(
            first,
            relaxed(&graph, |id| shards.distance(query, id), most, &mut met)
        );
    }
}

#[test]
fn a_deferred_update_visits_the_same_nodes_and_finds_the_same_neighbours() {
    for metric in Metric::ALL {
        for most in [1, 10, 60] {
            same(1500, 100, 72, metric, most);
        }
    }
}

#[test]
#[ignore = "10,000 queries of each distance take minutes; a test above has a sample"]
fn a_deferred_update_finds_the_same_neighbours_for_ten_thousand_queries() {
    same(50_000, 10_000, 128, Metric::L2, 100);
    same(50_000, 10_000, 200, Metric::Angular, 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Graphs without any order, distances with many ties, arrays of any length.
    #[test]
    fn a_deferred_update_is_the_same_on_any_graph(
        lists in prop::collection::vec(prop::collection::vec(0_u32..40, 0..8), 40),
        distances in prop::collection::vec(0_u8..12, 40),
        entry in 0_u32..40, most in 1_usize..50,
    ) {
        let graph = Graph::new(entry, lists).unwrap();
        let distance = |id: u32| f32::from(distances[id as usize]);
        let mut met = Met::new(40);
        let first = ordered(&graph, distance, most, &mut met);
        let second = relaxed(&graph, distance, most, &mut met);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn the_array_has_the_nearest_in_order_whatever_the_order_of_insertion(
        distances in prop::collection::vec(0_u8..20, 1..60), most in 1_usize..30,
    ) {
        let mut near: Vec<Near> = distances.iter().zip(0..).map(|(d, id)| Near::new(f32::from(*d), id)).collect();
        let mut array = Candidates::new(most);
        for one in &near {
            array.insert(*one, false);
        }
        near.sort_by(Near::order);
        near.truncate(most);
        prop_assert_eq!(array.iter().collect::<Vec<_>>(), near.clone());
        for one in near {
            prop_assert_eq!(array.nearest_unvisited(), Some(one));
            array.visit_nearest();
        }
        prop_assert_eq!(array.nearest_unvisited(), None);
    }

    #[test]
    fn sums_of_shards_have_the_bits_of_the_distance_and_are_right(
        dims in 1_usize..300, seed in 0_u64..1000,
    ) {
        for metric in Metric::ALL {
            let vectors = generate(3, dims, Metric::L2, seed).unwrap();
            let shards = Shards::of(&vectors, metric);
            prop_assert_eq!(shards.count(), dims.div_ceil(64));
            let query = vectors.row(0);
            let pairs = query.iter().zip(vectors.row(2)).map(|(x, y)| (f64::from(*x), f64::from(*y)));
            let (exact, size) = match metric {
                Metric::L2 => pairs.fold((0.0, 0.0), |(sum, size), (x, y)| (sum + (x - y) * (x - y), size + x * x + y * y)),
                Metric::Angular => pairs.fold((0.0, 0.0), |(sum, size), (x, y)| (sum - x * y, size + (x * y).abs())),
            };
            let whole = metric.distance(query, vectors.row(2));
            prop_assert_eq!(whole.to_bits(), shards.distance(query, 2).to_bits());
            prop_assert!((f64::from(whole) - exact).abs() <= 1e-5 * size, "{whole} {exact}");
        }
    }

    /// The nearest of all are those of the parts together.
    #[test]
    fn parts_of_hosts_give_the_same_neighbours_as_one(
        hosts in 1_usize..7, k in 1_usize..20, seed in 0_u64..100,
    ) {
        let vectors = generate(200, 8, Metric::L2, seed).unwrap();
        let query: Vec<f32> = vectors.row(3).iter().map(|x| x + 0.1).collect();
        let each = vectors.len().div_ceil(hosts);
        let parts: Vec<(u32, Vec<Near>)> = (0..hosts).map(|host| {
            let from = (host * each) as u32;
            let part = vectors.pick(from..(from + each as u32).min(200));
            (from, nearest(&part, Metric::L2, &query, k))
        }).collect();
        prop_assert_eq!(gather(&parts, k), nearest(&vectors, Metric::L2, &query, k));
    }
}

#[test]
fn recall_grows_with_the_candidates_and_reaches_nine_tenths() {
    for metric in Metric::ALL {
        let (vectors, queries, graph) = data(3000, 60, 96, metric);
        let exact = all_nearest(&vectors, metric, &queries, 10, 2);
        let mut met = Met::new(vectors.len());
        let mut before = 0.0;
        for most in [10, 20, 40, 80, 160] {
            let mut sum = 0.0;
            for (query, exact) in queries.rows().zip(&exact) {
                let found = ordered(
                    &graph,
                    |id| metric.distance(query, vectors.row(id)),
                    most,
                    &mut met,
                );
                sum += recall(exact, &found.nearest[..10]);
            }
            let mean = sum / queries.len() as f64;
            assert!(mean >= before, "{metric} {most}: {mean} after {before}");
            before = mean;
        }
        assert!(before > 0.9, "{metric}: {before}");
    }
}

#[test]
fn searches_of_parts_find_no_fewer_neighbours_than_one_of_all() {
    let (vectors, queries, graph) = data(3000, 40, 32, Metric::L2);
    let exact = all_nearest(&vectors, Metric::L2, &queries, 10, 2);
    let how = Build {
        degree: 24,
        candidates: 40,
        ..Build::default()
    };
    let parts: Vec<(u32, Vectors, Graph)> = [0_u32, 1500]
        .map(|from| {
            let part = vectors.pick(from..from + 1500);
            let graph = build(&part, Metric::L2, how, &|_| true).unwrap();
            (from, part, graph)
        })
        .into();
    let mut met = Met::new(3000);
    let (mut one, mut several) = (0.0, 0.0);
    for (query, exact) in queries.rows().zip(&exact) {
        let found = ordered(
            &graph,
            |id| Metric::L2.distance(query, vectors.row(id)),
            15,
            &mut met,
        );
        one += recall(exact, &found.nearest[..10]);
        let of_parts: Vec<(u32, Vec<Near>)> = parts
            .iter()
            .map(|(from, part, graph)| {
                let found = ordered(
                    graph,
                    |id| Metric::L2.distance(query, part.row(id)),
                    15,
                    &mut met,
                );
                (*from, found.nearest)
            })
            .collect();
        several += recall(exact, &gather(&of_parts, 10));
    }
    assert!(several >= one, "{several} of parts, {one} of all");
}

#[test]
fn bounds_are_refused_with_a_reason() {
    assert!(check(5, 5).is_ok());
    assert_eq!(
        check(11, 10).unwrap_err().to_string(),
        "k is 11, more than the 10 candidates that a search keeps"
    );
    assert!(check(0, 10).is_err());
    let nan = Vectors::new(2, vec![1.0, 2.0, f32::NAN, 1.0]).unwrap_err();
    assert_eq!(nan.to_string(), "record 1: element 0 is no finite number");
    assert!(Vectors::new(3, vec![1.0; 4]).is_err() && Vectors::new(0, vec![]).is_err());
}

/// Vectors of 96 dimensions, a million or WEIR_VECTORS; prints how long the graph and the searches take.
#[test]
#[ignore = "measures how long a million vectors take, and checks nothing that other tests do not"]
fn a_graph_of_a_million_vectors_is_built_and_searched() {
    let n = std::env::var("WEIR_VECTORS").map_or(1_000_000, |n| n.parse().unwrap());
    let (vectors, queries) = generate(n + 1000, 96, Metric::L2, 1).unwrap().split(n);
    let began = std::time::Instant::now();
    let graph = build(&vectors, Metric::L2, Build::default(), &|_| true).unwrap();
    println!(
        "{n} vectors: graph of degree {:.1} in {:.0?}",
        graph.degree(),
        began.elapsed()
    );
    let exact = all_nearest(&vectors, Metric::L2, &queries, 10, 2);
    let mut met = Met::new(n);
    for most in [20, 50, 100, 200] {
        let began = std::time::Instant::now();
        let mut found = Vec::new();
        for query in queries.rows() {
            let distance = |id| Metric::L2.distance(query, vectors.row(id));
            found.push(relaxed(&graph, distance, most, &mut met).nearest);
        }
        let each = began.elapsed() / 1000;
        let sum: f64 = exact
            .iter()
            .zip(&found)
            .map(|(exact, found)| recall(exact, found.get(..10).unwrap_or_default()))
            .sum();
        println!(
            "{most} candidates: recall@10 {:.3}, {each:.0?} a query",
            sum / 1000.0
        );
    }
}
