//! What holds for any use of a class.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_alloc::{Arenas, Class, ObjectClass, free, realloc, usable_size};

fn class(policy: &str) -> (Arenas, Class) {
    let arenas = Arenas::from_text("p.toml", policy).unwrap();
    let class = arenas.class(&ObjectClass::Index).unwrap();
    (arenas, class)
}

#[derive(Debug, Clone)]
enum Step {
    Alloc(usize, u32),
    Free(usize),
    Realloc(usize, usize),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0_usize..600, 4 => 600_usize..20_000, 2 => 20_000_usize..3_000_000]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (size(), prop_oneof![4 => 0_u32..7, 1 => 7_u32..23]).prop_map(|(bytes, shift)| Step::Alloc(bytes, shift)),
        2 => any::<usize>().prop_map(Step::Free),
        1 => (any::<usize>(), size()).prop_map(|(which, bytes)| Step::Realloc(which, bytes)),
    ]
}

/// An object: its bytes, its alignment, and what is written to it.
type Object = (usize, usize, u8);

unsafe fn holds(at: usize, bytes: usize, mark: u8) -> bool {
    // SAFETY: the caller has an object of this many bytes there.
    let content = unsafe { std::slice::from_raw_parts(at as *const u8, bytes) };
    content.iter().all(|&byte| byte == mark)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn objects_keep_their_content_apart_and_aligned_and_all_memory_goes_back(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let (_arenas, class) = class("");
        let mut live: BTreeMap<usize, Object> = BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            let mark = number as u8;
            let nth = |live: &BTreeMap<usize, Object>, which: usize| {
                live.iter().nth(which % live.len().max(1)).map(|(at, object)| (*at, *object))
            };
            match step {
                Step::Alloc(bytes, shift) => {
                    let align = 1 << shift;
                    let object = class.alloc(bytes, align).unwrap().as_ptr();
                    prop_assert!(object.addr().is_multiple_of(align));
                    prop_assert!(usable_size(object).unwrap() >= bytes);
                    // SAFETY: it has this many bytes.
                    unsafe { object.write_bytes(mark, bytes) };
                    live.insert(object.expose_provenance(), (bytes, align, mark));
                }
                Step::Free(which) => if let Some((at, _)) = nth(&live, which) {
                    live.remove(&at);
                    // SAFETY: it is used no more.
                    prop_assert!(unsafe { free(at as *mut u8) }, "of step {}", number);
                    // SAFETY: it is nothing any more, unless it lies in what was unmapped.
                    prop_assert!(!unsafe { free(at as *mut u8) }, "of step {}", number);
                },
                Step::Realloc(which, bytes) => if let Some((at, (had, align, mark))) = nth(&live, which) {
                    live.remove(&at);
                    // SAFETY: the new address only is used.
                    let new = unsafe { realloc(at as *mut u8, bytes, align) }.unwrap().as_ptr();
                    prop_assert!(new.addr().is_multiple_of(align));
                    // SAFETY: as many of its bytes are there as fit.
                    prop_assert!(unsafe { holds(new.addr(), had.min(bytes), mark) }, "of step {}", number);
                    // SAFETY: it has this many bytes.
                    unsafe { new.write_bytes(mark, bytes) };
                    live.insert(new.expose_provenance(), (bytes, align, mark));
                },
            }
            let mut behind = 0;
            for (&at, &(bytes, _, mark)) in &live {
                let usable = usable_size(at as *const u8).unwrap();
                prop_assert!(at >= behind, "two objects overlap");
                behind = at + usable;
                // All of each is looked at in the end; a look at the ends of large ones suffices before.
                // SAFETY: live objects have this many bytes.
                prop_assert!(unsafe { holds(at, bytes.min(64), mark) }, "of step {}", number);
            }
            let usable: usize = live.keys().map(|&at| usable_size(at as *const u8).unwrap()).sum();
            let stats = class.stats();
            prop_assert_eq!((stats.used, stats.objects), (usable, live.len()));
            prop_assert!(stats.mapped >= stats.used);
        }
        for (at, (bytes, _, mark)) in live {
            // SAFETY: as above.
            prop_assert!(unsafe { holds(at, bytes, mark) && free(at as *mut u8) }, "{} bytes at {:x}", bytes, at);
        }
        class.trim();
        prop_assert_eq!(class.stats(), weir_alloc::Stats::default());
    }
}

#[test]
fn threads_share_a_class() {
    let (_arenas, class) = class("");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let class = &class;
            scope.spawn(move || {
                let mut kept: Vec<(usize, usize)> = Vec::new();
                for i in 0..20_000_usize {
                    let bytes = 16 + i * 37 % 3000;
                    let object = class.alloc(bytes, 16).unwrap().as_ptr();
                    // SAFETY: it has this many bytes.
                    unsafe { object.write_bytes(thread, bytes) };
                    kept.push((object.expose_provenance(), bytes));
                    if kept.len() > 100 {
                        let (at, bytes) = kept.swap_remove(i % 100);
                        // SAFETY: it is this thread's, and used no more.
                        assert!(unsafe { holds(at, bytes, thread) && free(at as *mut u8) });
                    }
                }
                for (at, _) in kept {
                    // SAFETY: as above.
                    assert!(unsafe { free(at as *mut u8) });
                }
            });
        }
    });
    class.trim();
    assert_eq!(class.stats(), weir_alloc::Stats::default());
}

#[test]
fn a_limit_holds_for_all_threads_and_sizes() {
    let (_arenas, class) = class("[class.index]\nlimit = \"8 MiB\"");
    let mut objects = Vec::new();
    let why = loop {
        // Each thread begins in a shard of its own.
        let made = std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                class
                    .alloc(1 << 20, 1)
                    .map(|object| object.expose_provenance())
            });
            made.join().unwrap()
        });
        match made {
            Ok(object) => objects.push(object),
            Err(why) => break why,
        }
    };
    assert_eq!(objects.len(), 8, "all of both segments");
    let text = why.to_string();
    assert!(
        text.contains("class index") && text.contains("limit of 8388608"),
        "{text}"
    );
    for object in objects {
        // SAFETY: its addresses were exposed, and it is used no more.
        assert!(unsafe { free(std::ptr::with_exposed_provenance_mut(object.get())) });
    }
    assert!(class.alloc(16 << 20, 1).is_err());
}

#[test]
fn what_is_no_object_is_not_freed_and_odd_alignments_are_refused() {
    let (arenas, class) = class("");
    let object = class.alloc(100, 16).unwrap().as_ptr();
    let mut own = 0_u8;
    // SAFETY: nothing is freed.
    unsafe {
        assert!(
            !free(object.wrapping_add(1)) && !free(&raw mut own) && !free(std::ptr::null_mut())
        );
        assert!(realloc(&raw mut own, 10, 1).is_err());
    }
    for align in [0, 3, 8 << 20] {
        assert!(
            class
                .alloc(10, align)
                .unwrap_err()
                .to_string()
                .contains("power of two")
        );
    }
    assert!(class.alloc(usize::MAX, 1).is_err() && class.alloc(isize::MAX as usize, 1).is_err());
    drop((arenas, class));
    // SAFETY: its class has ended, and nothing is known of it.
    assert!(!unsafe { free(object) });
}

#[test]
fn an_object_that_is_larger_than_its_tier_is_refused_before_it_is_touched() {
    let nodes = std::fs::read_to_string("/sys/devices/system/node/has_memory");
    if nodes.is_err() {
        eprintln!("this kernel knows no nodes");
        return;
    }
    let (_arenas, class) = class("[class.index]\nplace = 0");
    let why = class.alloc(1 << 45, 1).unwrap_err().to_string();
    assert!(
        why.contains("do not fit its nodes") && why.contains("fallback"),
        "{why}"
    );
    let (_arenas, elsewhere) = self::class("[class.index]\nplace = 0\nfallback = \"any\"");
    assert!(elsewhere.alloc(3 << 20, 1).is_ok());
}

#[test]
fn a_child_allocates_and_frees_while_other_threads_did() {
    let (_arenas, class) = class("");
    let object = class.alloc(100, 16).unwrap().as_ptr();
    // SAFETY: it has this many bytes.
    unsafe { object.write_bytes(7, 100) };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut failed = 0;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let object = class.alloc(200, 16).unwrap();
                    // SAFETY: it is used no more.
                    unsafe { free(object.as_ptr()) };
                }
            });
        }
        // A failure must not leave the other threads running.
        for _ in 0..100 {
            if failed > 0 {
                break;
            }
            // SAFETY: the child allocates from the class only, and ends without the parent's exit handlers.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::alarm(20);
                    // Every shard, as threads of the parent may have had any.
                    let mut well = holds(object.addr(), 100, 7);
                    for _ in 0..8 {
                        well &= class
                            .alloc(3 << 20, 1)
                            .is_ok_and(|large| free(large.as_ptr()));
                        well &= class.alloc(200, 16).is_ok_and(|small| free(small.as_ptr()));
                    }
                    well &= class.stats().objects >= 1 && free(object);
                    libc::_exit(if well { 0 } else { 1 });
                }
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                failed += usize::from(status != 0);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(failed, 0, "a child failed or hung");
    // SAFETY: as above.
    assert!(unsafe { holds(object.addr(), 100, 7) && free(object) });
}
