//! Searches for nearest neighbours with their data in a pool: on a model, and on whatever Linux this is.

use std::io::BufRead as _;

use crate::common::{Done, Place, signal};
use crate::place::can_place;

#[test]
fn each_technique_makes_a_search_in_a_pool_faster() {
    let place = Place::new();
    let machine = "--on cxl-anns+4xcxl-anns-device@interleaved@switch";
    let run = format!("place neighbours {machine} --nodes 1000 --queries 10");
    let found = (place
        .run(format!("{run} --dataset ms-t,yandex-t --format json"))
        .expect(0))
    .json();
    assert_eq!(found["schema"], "weir/place-neighbours/1");
    for dataset in ["ms-t", "yandex-t"] {
        let time = |variant: &str| {
            let mut rows = found["ladder"].as_array().unwrap().iter();
            let row = rows.find(|row| row["dataset"] == dataset && row["variant"] == variant);
            row.unwrap()["query_us"].as_f64().unwrap()
        };
        let ladder = ["base", "oracle", "epax", "no_prefetch", "cache", "cxla"].map(time);
        assert!(ladder.windows(2).all(|two| two[1] <= two[0]), "{ladder:?}");
    }
    let again = place.run(format!("{run} --dataset ms-t")).expect(0);
    let widest = again.out().lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}");
    for (odd, code, said) in [
        ("--dataset sift", 2, "yandex-d"),
        ("--dataset ms-t --tier cxl7", 2, "cxl7"),
        (
            "--dataset ms-t --budget 100TiB",
            2,
            "--budget is 100 TiB, but dram has",
        ),
        ("--vectors none.fvecs", 2, "none.fvecs"),
        ("--dataset ms-t --vectors none.fvecs", 2, "none.fvecs"),
    ] {
        place.run(format!("{run} {odd}")).refuses(code, &[said]);
    }
    place
        .run(format!("place neighbours {machine} --nodes 5"))
        .refuses(2, &["1000"]);
}

#[test]
fn searches_on_this_host_find_the_same_in_every_variant() {
    let place = Place::new();
    let run = "place neighbours --tier dram --dataset ms-t --nodes 1000 --once";
    let found = place.run(format!("{run} --queries 10 --format json"));
    let found = found.expect(0).json();
    let rows = found["ladder"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    let host = &found["on_host"];
    assert_eq!([&host["differing"], &host["repetitions"]], [0, 5]);
    assert_eq!(host["is_verified"], can_place(&place));
    let parts = [
        "traverse_us",
        "distance_memory_us",
        "distance_compute_us",
        "update_us",
        "interface_us",
    ];
    for row in rows {
        let of = |key: &str| row[key].as_f64().unwrap();
        let sum: f64 = parts.map(of).iter().sum();
        assert!((sum / of("query_us") - 1.0).abs() < 1e-6, "{row}");
        assert_eq!(of("link_bytes"), 0.0, "{row}");
        assert!(of("untimed_us") > 0.0 && of("query_ci95") >= 0.0, "{row}");
        // A vector of 100 dimensions has two shards; a query's vector and the distance of the entry are commands too.
        let by_devices = !["oracle", "base"].contains(&row["variant"].as_str().unwrap());
        let wanted = if by_devices {
            2.0 * (of("steps") + 2.0)
        } else {
            0.0
        };
        assert!((of("doorbells") - wanted).abs() < 1e-6, "{row}");
    }
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.contains("dram is also the pool"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    for (odd, code, said) in [
        ("--devices 4", 2, "each shard"),
        ("--vectors none.fvecs", 2, "none.fvecs"),
        ("--queries 3", 2, "4"),
    ] {
        place.run(format!("{run} {odd}")).refuses(code, &[said]);
    }
    let topo = place.run("topo --format json").expect(0).json();
    if topo["topology"]["tiers"].as_array().unwrap().len() == 1 {
        (place.run("place neighbours --dataset ms-t")).refuses(3, &["one memory node"]);
    }
    let mut stopped = place.start(format!("{run} --queries 100000 --format json"));
    let mut said = std::io::BufReader::new(stopped.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("figures") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0);
    }
    signal(&stopped, "INT");
    // What it says until it ends has room in the pipe.
    let done = Done(stopped.wait_with_output().unwrap()).expect(1).json();
    assert_eq!(done["partial"], true);
    assert!(done["ladder"].as_array().unwrap().len() < 7);
}
