//! The ladder on a host: the same neighbours in every variant, parts that add up, commands that are counted, and threads
//! that end.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

use proptest::prelude::*;
use weir_ann::candidates::Met;
use weir_ann::graph::Graph;
use weir_ann::host::layout::{Lists, neighbours, shard};
use weir_ann::host::ring::{Command, Gone, Ring, SLOTS, Waits};
use weir_ann::host::run::{Ended, Measured, Pin, Run, cost};
use weir_ann::host::timed::{Data, How, Ticks};
use weir_ann::ladder::Variant;
use weir_ann::search::{FromRow, ordered};
use weir_ann::vectors::{Metric, SHARD, Vectors};
use weir_model::random::Random;
use weir_model::units::Nanos;

/// A clock that goes on by 1 at each look of a thread.
fn looks() -> Ticks {
    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });
    Ticks {
        now: || LOOKS.replace(LOOKS.get() + 1),
        tick: Nanos(1.0),
    }
}

fn anywhere(_: usize) -> Result<Box<dyn Any>, String> {
    Ok(Box::new(()))
}

/// All searches of a variant in ordinary memory.
fn measured(
    (graph, vectors, queries): (&Graph, &Vectors, &Vectors),
    (metric, variant, most, once): (Metric, Variant, usize, bool),
    (budget, pin): (u64, Pin<'_>),
    go_on: &dyn Fn() -> bool,
) -> Result<Measured, Ended> {
    let how = How::from(variant);
    let lists = Lists::of(graph, if how.has_inner { budget } else { 0 }).unwrap();
    let whole: Vec<f32> = vectors.rows().flatten().copied().collect();
    let columns = 0..vectors.dims().div_ceil(SHARD);
    let columns: Vec<Vec<f32>> = columns.map(|at| shard(vectors, at).collect()).collect();
    let shards: Vec<&[f32]> = columns.iter().map(Vec::as_slice).collect();
    let run = Run {
        data: Data {
            entry: graph.entry(),
            places: &lists.places,
            inner: &lists.inner,
            pool: &lists.pool,
            vectors: if how.by_devices { &[] } else { &whole },
            dims: vectors.dims(),
            metric,
        },
        how,
        shards: &shards,
        queries,
        most,
        once,
        waits: Waits::Sleeping,
    };
    run.measure(looks(), pin, go_on)
}

/// Vectors whose elements are small whole numbers, so that many distances are equal.
fn vectors(n: usize, dims: usize, seed: u64) -> Vectors {
    let mut chance = Random::new(seed);
    let data = (0..n * dims).map(|_| chance.below(3) as f32 - 1.0);
    Vectors::new(dims, data.collect()).unwrap()
}

/// A cycle through all nodes with some edges besides.
fn graph(nodes: u32, extra: Vec<Vec<u32>>) -> Graph {
    let lists = (0..nodes).zip(extra).map(|(node, mut list)| {
        list.push((node + 1) % nodes);
        list
    });
    Graph::new(0, lists).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_variant_finds_the_same_neighbours_and_its_parts_add_up(
        extra in prop::collection::vec(prop::collection::vec(0_u32..40, 0..8), 40),
        dims in prop_oneof![Just(1_usize), Just(64), Just(65), Just(150)],
        most in 1_usize..50, seed in 0_u64..1000, budget in 0_u64..2000, once: bool, is_l2: bool,
    ) {
        let metric = if is_l2 { Metric::L2 } else { Metric::Angular };
        let (graph, nodes, queries) = (graph(40, extra), vectors(40, dims, seed), vectors(2, dims, !seed));
        let mut met = Met::new(40);
        let wanted: Vec<_> = queries.rows().map(|row| ordered(&graph, FromRow { vectors: &nodes, metric, row }, most, &mut met)).collect();
        let steps: u64 = wanted.iter().map(|found| found.trace.visited.len() as u64).sum();
        let distances: u64 = wanted.iter().map(|found| if once { found.trace.distances } else { found.trace.neighbours }).sum();
        for variant in Variant::ALL {
            let asked = (metric, variant, most, once);
            let got = measured((&graph, &nodes, &queries), asked, (budget, &anywhere), &|| true).unwrap();
            let nearest = wanted.iter().map(|found| &found.nearest);
            prop_assert!(got.found.iter().eq(nearest), "{variant}");
            let how = How::from(variant);
            let devices = if how.by_devices { dims.div_ceil(SHARD) as u64 } else { 0 };
            let laps = &got.laps;
            prop_assert_eq!((laps.steps, laps.computed), (steps, distances + 2));
            // A list each, and for each query its vector and the distance of the entry.
            prop_assert_eq!(laps.doorbells, (steps + 2 * 2) * devices);
            prop_assert!(how.has_inner || laps.inner == 0);
            // A look takes one tick, which is taken off: what is left is nothing, and no more than the ticks of one look.
            prop_assert_eq!(laps.total(), 0);
            let (parts, idle) = got.parts(looks());
            prop_assert_eq!(parts.total(), Nanos(0.0));
            prop_assert_eq!(idle, Nanos(0.0));
        }
    }

    #[test]
    fn lists_are_read_back_and_inner_ones_keep_within_the_budget(
        extra in prop::collection::vec(prop::collection::vec(0_u32..40, 0..60), 40), budget in 0_u64..4000,
    ) {
        let graph = graph(40, extra);
        let lists = Lists::of(&graph, budget).unwrap();
        let mut inner = 0;
        for node in 0..40 {
            let place = lists.places[node as usize];
            let from = if place.is_inner { &lists.inner } else { &lists.pool };
            prop_assert_eq!(neighbours(from, place), graph.neighbours(node));
            inner += if place.is_inner { graph.list_bytes(node) } else { 0 };
        }
        prop_assert!(inner <= budget);
    }
}

/// Work that is sometimes slow, each time otherwise.
fn dawdle(chance: &mut Random) {
    match chance.below(4) {
        0 => thread::yield_now(),
        1 => (0..chance.below(2000)).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}

#[test]
fn commands_reach_every_device_once_and_in_order_however_threads_interleave() {
    for (devices, waits) in [
        (1, Waits::Looking),
        (3, Waits::Sleeping),
        (4, Waits::Sleeping),
    ] {
        let ring = Ring::new(devices, 8, waits);
        let seen: Vec<AtomicU32> = (0..devices).map(|_| AtomicU32::default()).collect();
        let hash =
            |before: u32, ids: &[u32]| ids.iter().fold(before, |sum, id| sum.wrapping_mul(31) ^ id);
        let mut sent = 0;
        thread::scope(|scope| {
            let mut host = ring.host();
            for (device, seen) in seen.iter().enumerate() {
                let served = ring.device(device).unwrap();
                let (mut chance, mut factor) = (Random::new(device as u64), 0.0);
                scope.spawn(move || {
                    served.serve(|command, found| {
                        dawdle(&mut chance);
                        match command {
                            Command::Query(query) => factor = query[device],
                            Command::Distances(ids) => {
                                seen.store(hash(seen.load(SeqCst), ids), SeqCst);
                                found.extend(ids.iter().map(|&id| factor * id as f32));
                            }
                        }
                        device as u64
                    });
                });
            }
            let (mut chance, mut sums) = (Random::new(99), Vec::new());
            let mut posted = 0;
            for round in 0..1000_u32 {
                let factors = [round as f32, 1.0, 2.0, 3.0];
                host.post(Command::Query(&factors)).unwrap();
                // More than the ring has room for; what the last ones found is still there.
                let n = 1 + chance.below(3 * SLOTS);
                posted += 1 + n as u64;
                let mut late = Vec::new();
                for at in 0..n as u32 {
                    let ids = vec![round % 7 + at; chance.below(9)];
                    sent = hash(sent, &ids);
                    late.push((host.post(Command::Distances(&ids)).unwrap(), ids));
                }
                for (number, ids) in late.iter().rev().take(SLOTS).rev() {
                    dawdle(&mut chance);
                    host.wait(*number).unwrap();
                    host.sums(*number, &mut sums);
                    let factor: f32 = factors[..devices].iter().sum();
                    let wanted: Vec<f32> = ids.iter().map(|&id| factor * id as f32).collect();
                    assert_eq!(sums, wanted);
                    assert_eq!(
                        host.slowest(*number),
                        Some((devices - 1, devices as u64 - 1))
                    );
                }
            }
            assert_eq!(host.doorbells(), posted * devices as u64);
        });
        let seen: Vec<u32> = seen.into_iter().map(AtomicU32::into_inner).collect();
        assert_eq!(seen, vec![sent; devices]);
    }
}

#[test]
fn devices_end_with_the_host_and_the_host_learns_of_one_that_ended() {
    let ended = AtomicU32::new(0);
    // The search panics: its threads end, so that the scope does.
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let ring = Ring::new(2, 8, Waits::Sleeping);
        thread::scope(|scope| {
            let _host = ring.host();
            for device in 0..2 {
                let (served, ended) = (ring.device(device).unwrap(), &ended);
                scope.spawn(move || {
                    served.serve(|_, _| 0);
                    ended.fetch_add(1, SeqCst);
                });
            }
            panic!("as planned");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(ended.load(SeqCst), 2);
    // A device that goes does not leave the host waiting.
    let ring = Ring::new(1, 8, Waits::Looking);
    let mut host = ring.host();
    let served = ring.device(0).unwrap();
    thread::scope(|scope| {
        let broken = scope.spawn(|| served.serve(|_, _| panic!("as planned")));
        let command = host.post(Command::Distances(&[1])).unwrap();
        assert_eq!(host.wait(command), Err(Gone));
        assert!(broken.join().is_err());
    });
    assert!(ring.device(1).is_none());
}

#[test]
fn a_thread_that_cannot_be_pinned_and_a_stop_end_the_run() {
    let (graph, nodes, queries) = (
        graph(40, vec![vec![7, 9]; 40]),
        vectors(40, 150, 1),
        vectors(3, 150, 2),
    );
    let asked = (Metric::L2, Variant::Cxla, 10, false);
    let data = (&graph, &nodes, &queries);
    let refuse: Pin<'_> = &|device| match device {
        2 => Err("no such processor".into()),
        other => anywhere(other),
    };
    let got = measured(data, asked, (0, refuse), &|| true);
    assert_eq!(got, Err(Ended::Device("no such processor".into())));
    let left = AtomicU32::new(5);
    let stops = || {
        left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
            .is_ok()
    };
    assert_eq!(
        measured(data, asked, (0, &anywhere), &stops),
        Err(Ended::Stopped)
    );
    assert_eq!(cost(looks()), 1);
}
