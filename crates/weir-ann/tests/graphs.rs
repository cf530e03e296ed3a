//! Graphs: the same whatever the number of threads, every node reached, and lists kept by hops.

use weir_ann::build::{Build, build};
use weir_ann::datasets::generate;
use weir_ann::graph::Graph;
use weir_ann::hops::Hops;
use weir_ann::vectors::{Metric, Vectors};

fn small(metric: Metric, threads: usize) -> Graph {
    let vectors = generate(1500, 48, metric, 3).unwrap();
    let how = Build {
        degree: 16,
        candidates: 24,
        threads,
        ..Build::default()
    };
    build(&vectors, metric, how, &|_| true).unwrap()
}

#[test]
fn a_graph_does_not_depend_on_the_number_of_threads() {
    for metric in Metric::ALL {
        let one = small(metric, 1);
        assert_eq!(one, small(metric, 2));
        assert_eq!(one, small(metric, 5));
    }
}

#[test]
fn the_entry_reaches_every_node_and_no_list_is_longer_than_asked_but_for_paths() {
    for metric in Metric::ALL {
        let graph = small(metric, 2);
        let hops = Hops::of(&graph).unwrap();
        assert_eq!(hops.unreachable(), 0);
        let long = (0..graph.len() as u32).filter(|node| graph.neighbours(*node).len() > 16);
        assert!(long.count() < graph.len() / 10);
        assert!(graph.degree() > 14.0, "{}", graph.degree());
    }
}

/// Far clusters that no search crosses to by chance, and vectors that are all the same.
#[test]
fn nodes_of_far_clusters_and_equal_vectors_are_reached() {
    let far = (0..400).flat_map(|at| [(at / 20) as f32 * 1e6, (at % 20) as f32]);
    let equal = vec![1.0; 800];
    for data in [far.collect(), equal] {
        let vectors = Vectors::new(2, data).unwrap();
        let how = Build {
            degree: 4,
            candidates: 8,
            ..Build::default()
        };
        let graph = build(&vectors, Metric::L2, how, &|_| true).unwrap();
        assert_eq!(Hops::of(&graph).unwrap().unreachable(), 0);
    }
}

#[test]
fn hops_are_counted_in_edges_and_nodes_without_a_path_come_last() {
    let graph = Graph::new(1, [vec![2], vec![0, 3], vec![], vec![2], vec![0]]).unwrap();
    let hops = Hops::of(&graph).unwrap();
    assert_eq!(hops.level, [Some(1), Some(0), Some(2), Some(1), None]);
    assert_eq!(hops.order, [1, 0, 3, 2, 4]);
    // 16, 12, 12, 8 and 12 bytes in the order of hops.
    let cache = hops.cache(&graph, &[5, 1, 3, 1, 0], 30);
    assert_eq!((cache.nodes, cache.bytes, cache.of_bytes), (2, 28, 60));
    assert_eq!((cache.hits, cache.reads), (6, 10));
    let at: Vec<(u64, u64)> = hops
        .histogram(&[5, 1, 3, 1, 0])
        .iter()
        .map(|at| (at.nodes, at.reads))
        .collect();
    assert_eq!(at, [(1, 1), (2, 6), (1, 3)]);
}

#[test]
fn an_entry_that_reaches_nothing_is_an_error_that_counts_the_others() {
    let graph = Graph::new(0, [vec![], vec![0], vec![1]]).unwrap();
    assert_eq!(
        Hops::of(&graph).unwrap_err().to_string(),
        "node 0, at which searches begin, reaches none of 2 other nodes; the graph needs another entry"
    );
    assert!(Hops::of(&Graph::new(0, [vec![]]).unwrap()).is_ok());
    assert!(Graph::new(3, [vec![]]).is_err() && Graph::new(0, [vec![7]]).is_err());
    assert!(
        Graph::new(0, [vec![0; 255]])
            .unwrap_err()
            .to_string()
            .contains("255 neighbours")
    );
}

#[test]
fn a_build_can_be_stopped_and_refuses_bounds() {
    let vectors = generate(100, 8, Metric::L2, 1).unwrap();
    let stopped = build(&vectors, Metric::L2, Build::default(), &|done| done < 20);
    assert!(stopped.unwrap_err().to_string().contains("stopped"));
    let degree = Build {
        degree: 1,
        ..Build::default()
    };
    assert!(build(&vectors, Metric::L2, degree, &|_| true).is_err());
}
