//! Arenas: chunks never overlap, everything that is given back can be had again, and devices have equal loads.

use proptest::prelude::*;
use weir_ann::AnnError;
use weir_ann::arena::{Arena, Chunk, LEAST, MOST, deal};

#[derive(Debug, Clone)]
enum Do {
    Vector(u64),
    List(u64),
    Free(usize),
}

fn steps() -> impl Strategy<Value = Vec<Do>> {
    let step = prop_oneof![
        1 => (1_u64..300).prop_map(Do::Vector),
        4 => (1_u64..=MOST).prop_map(Do::List),
        3 => (0_usize..100).prop_map(Do::Free),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn vectors_and_chunks_never_overlap_and_all_room_comes_back(steps in steps()) {
        let size = 64 * MOST;
        let mut arena = Arena::new(0, size + 5);
        let (mut vectors, mut lists): (Vec<Chunk>, Vec<Chunk>) = (Vec::new(), Vec::new());
        for step in steps {
            let before = arena.between();
            match step {
                Do::Vector(bytes) => match arena.vector(bytes) {
                    Ok(at) => vectors.push(Chunk { at, bytes }),
                    Err(error) => {
                        prop_assert!(bytes > before, "{error}");
                        prop_assert_eq!(error, AnnError::Full { arena: 0, wanted: bytes, free: before });
                    }
                },
                Do::List(bytes) => match arena.list(bytes) {
                    Ok(chunk) => {
                        prop_assert!(chunk.bytes >= bytes && chunk.bytes < (2 * bytes).max(LEAST + 1));
                        prop_assert_eq!(chunk.at % chunk.bytes, 0);
                        lists.push(chunk);
                    }
                    Err(_) => prop_assert!(before < MOST),
                },
                Do::Free(at) if !lists.is_empty() => {
                    let at = at % lists.len();
                    arena.free_list(lists.swap_remove(at));
                }
                Do::Free(_) => {}
            }
            let mut all: Vec<Chunk> = vectors.iter().chain(&lists).copied().collect();
            all.sort_unstable();
            prop_assert!(all.windows(2).all(|two| two[0].at + two[0].bytes <= two[1].at), "{all:?}");
            prop_assert!(all.last().is_none_or(|last| last.at + last.bytes <= size));
        }
        let used: u64 = vectors.iter().map(|vector| vector.bytes).sum();
        for chunk in lists {
            arena.free_list(chunk);
        }
        prop_assert_eq!(arena.between(), size - used);
    }

    #[test]
    fn devices_have_as_many_lists_of_each_hop_as_any_other(
        hops in prop::collection::vec(1_usize..50, 1..5), devices in 1_usize..9,
    ) {
        let mut arenas: Vec<Arena> = (0..devices).map(|at| Arena::new(at, 1 << 20)).collect();
        let lists: Vec<u64> = hops.iter().flat_map(|n| vec![100; *n]).collect();
        let placed = deal(&mut arenas, &lists).unwrap();
        let mut from = 0;
        for n in hops {
            let count = |device| placed[from..from + n].iter().filter(|(at, _)| *at == device).count();
            let counts: Vec<usize> = (0..devices).map(count).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
            from += n;
        }
    }
}

#[test]
fn a_full_arena_and_a_list_that_is_too_long_are_errors_with_sizes() {
    let mut arenas = [Arena::new(0, 4 * MOST), Arena::new(1, MOST)];
    let full = deal(&mut arenas, &[MOST, MOST, 20, 20]).unwrap_err();
    assert_eq!(
        full.to_string(),
        "arena 1 has no room for 20 B: 0 B are between its vectors and its lists"
    );
    let long = arenas[0].list(MOST + 1).unwrap_err();
    assert_eq!(
        long.to_string(),
        "a list of 1025 B is longer than the largest chunk, 1024 B"
    );
    assert!(deal(&mut [], &[16]).is_err());
}
