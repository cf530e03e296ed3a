//! Laws of the table, by random sequences of changes against a model of names and sizes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_namespace::{Create, Make, Namespace, NamespaceError, Options, Pool};

use crate::drill::tag;

#[derive(Debug, Clone)]
enum Step {
    Create(u8, u64, u32),
    Resize(u8, u64),
    Destroy(u8),
    Map(u8, bool),
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..8_u8, 1..40_000_u64, 0..4_u32).prop_map(|(n, s, a)| Step::Create(n, s, a)),
        2 => (0..8_u8, 1..60_000_u64).prop_map(|(n, s)| Step::Resize(n, s)),
        2 => (0..8_u8).prop_map(Step::Destroy),
        3 => (0..8_u8, any::<bool>()).prop_map(|(n, w)| Step::Map(n, w)),
        2 => any::<usize>().prop_map(Step::Close),
    ]
}

fn host() -> Options {
    Options {
        host: Some("a".into()),
        ..Options::default()
    }
}

fn invariants(pool: &Pool) {
    let table = pool.table().unwrap();
    let mut ranges: Vec<(u64, u64)> = pool.free().unwrap();
    ranges.extend(table.entries.iter().map(|e| (e.offset, e.size)));
    ranges.sort_unstable();
    // Free ranges and namespaces cover the pool once.
    for pair in ranges.windows(2) {
        assert_eq!(pair[0].0 + pair[0].1, pair[1].0, "{ranges:?}");
    }
    let sum: u64 = ranges.iter().map(|range| range.1).sum();
    assert_eq!(sum, pool.capacity());
}

fn sequence(steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let make = Make {
        bytes: Some(196_608),
        places: 1,
        entries: 10,
        holders: 10,
        ..Make::default()
    };
    let pool = Pool::make(folder.path().join("pool"), &make, host()).unwrap();
    let mut model: BTreeMap<String, u64> = BTreeMap::new();
    let mut open: Vec<Namespace> = Vec::new();
    let references =
        |open: &[Namespace], name: &str| open.iter().filter(|n| n.name() == name).count();
    for step in steps {
        match step {
            Step::Create(n, size, align) => {
                let name = format!("n{n}");
                let create = Create {
                    align: 4096 << align,
                    ..Create::of(size)
                };
                match pool.create(&name, &create) {
                    Ok(entry) => {
                        assert!(!model.contains_key(&name));
                        assert!(entry.offset.is_multiple_of(4096 << align));
                        assert_eq!(entry.size, size.next_multiple_of(4096));
                        model.insert(name.clone(), entry.size);
                        let namespace = pool.map(&name, true);
                        if let Ok(namespace) = namespace {
                            let mut bytes = vec![1; entry.size as usize];
                            namespace.read_at(0, &mut bytes).unwrap();
                            assert!(bytes.iter().all(|byte| *byte == 0), "a foreign byte");
                            let tagged = tag(&name).to_le_bytes().repeat(bytes.len() / 8);
                            namespace.write_at(0, &tagged).unwrap();
                        }
                    }
                    Err(NamespaceError::Exists { .. }) => assert!(model.contains_key(&name)),
                    Err(NamespaceError::Full {
                        asked,
                        largest,
                        free,
                    }) => {
                        assert!(largest < asked && largest <= free);
                        let ranges = pool.free().unwrap();
                        assert_eq!(free, ranges.iter().map(|r| r.1).sum::<u64>());
                    }
                    Err(NamespaceError::TableFull { .. }) => assert!(model.len() >= 10),
                    Err(why) => panic!("{why}"),
                }
            }
            Step::Resize(n, size) => {
                let name = format!("n{n}");
                match pool.resize(&name, size) {
                    Ok(_) => {
                        let before = model[&name];
                        let now = size.next_multiple_of(4096);
                        assert!(now >= before || references(&open, &name) == 0);
                        model.insert(name.clone(), now);
                        if let Ok(namespace) = pool.map(&name, false) {
                            assert_eq!(namespace.bytes(), now);
                            let mut bytes = vec![1; now as usize];
                            namespace.read_at(0, &mut bytes).unwrap();
                            let gained = before.min(now) as usize;
                            assert!(bytes[gained..].iter().all(|byte| *byte == 0));
                            let tag = tag(&name).to_le_bytes();
                            let own = |word: &[u8]| *word == tag || *word == [0; 8];
                            assert!(bytes[..gained].chunks(8).all(own));
                        }
                    }
                    Err(NamespaceError::Missing { .. }) => assert!(!model.contains_key(&name)),
                    Err(NamespaceError::Held { .. }) => assert!(references(&open, &name) > 0),
                    Err(NamespaceError::Full { .. } | NamespaceError::TableFull { .. }) => {}
                    Err(why) => panic!("{why}"),
                }
            }
            Step::Destroy(n) => {
                let name = format!("n{n}");
                match pool.destroy(&name) {
                    Ok(()) => {
                        assert!(model.remove(&name).is_some() && references(&open, &name) == 0);
                    }
                    Err(NamespaceError::Missing { .. }) => assert!(!model.contains_key(&name)),
                    Err(NamespaceError::Held { .. }) => assert!(references(&open, &name) > 0),
                    Err(why) => panic!("{why}"),
                }
            }
            Step::Map(n, write) => match pool.map(&format!("n{n}"), write) {
                Ok(namespace) => open.push(namespace),
                Err(NamespaceError::Missing { name, .. }) => assert!(!model.contains_key(&name)),
                Err(NamespaceError::TableFull { .. }) => assert!(open.len() >= 10),
                Err(why) => panic!("{why}"),
            },
            Step::Close(n) if !open.is_empty() => {
                let at = n % open.len();
                open.swap_remove(at).close().unwrap();
            }
            Step::Close(_) => {}
        }
        invariants(&pool);
        let table = pool.table().unwrap();
        let seen: BTreeMap<String, u64> = table
            .entries
            .iter()
            .map(|e| (e.name.clone(), e.size))
            .collect();
        assert_eq!(seen, model);
        assert_eq!(table.holders.len(), open.len());
    }
    drop(open);
    for name in model.keys() {
        pool.destroy(name).unwrap();
    }
    let free = pool.free().unwrap();
    assert_eq!((free.len(), free[0].1), (1, pool.capacity()));
    assert_eq!(pool.first_unscrubbed().unwrap(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn namespaces_never_overlap_and_the_whole_range_comes_back(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        sequence(steps);
    }
}

#[test]
fn the_best_fit_is_the_smallest_range_that_has_room() {
    let folder = tempfile::tempdir().unwrap();
    let make = Make {
        bytes: Some(4 << 20),
        ..Make::default()
    };
    let pool = Pool::make(folder.path().join("pool"), &make, host()).unwrap();
    let create = |name: &str, pages: u64| pool.create(name, &Create::of(4096 * pages)).unwrap();
    for (name, pages) in [("a", 4), ("b", 1), ("c", 2), ("d", 1), ("e", 3), ("f", 1)] {
        create(name, pages);
    }
    let table = pool.table().unwrap();
    let place = |name: &str| table.named(name).unwrap().offset;
    let (c, e) = (place("c"), place("e"));
    for name in ["a", "c", "e"] {
        pool.destroy(name).unwrap();
    }
    let create = |name: &str, pages: u64| pool.create(name, &Create::of(4096 * pages)).unwrap();
    assert_eq!(create("x", 2).offset, c);
    assert_eq!(create("y", 3).offset, e);
    let refused = pool.create("z", &Create::of(4 << 20)).unwrap_err();
    assert!(
        matches!(refused, NamespaceError::Full { largest, free, .. } if largest < free),
        "{refused}"
    );
}
