//! Several hosts with one pool, owners and permissions. The hosts are simulated: each is a boot of its own, without a
//! lock of the kernel between them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use weir_namespace::{
    Change, Create, Keep, Life, Make, NamespaceError, Options, Pool, Resized, User,
};

fn host(name: &str, boot: u64) -> Options {
    Options {
        host: Some(name.into()),
        boot: Some(boot),
        ..Options::default()
    }
}

fn user(uid: u32, groups: &[u32]) -> Option<User> {
    Some(User {
        uid,
        groups: groups.into(),
    })
}

fn two(lease: u64) -> (TempDir, Pool, Pool) {
    let folder = tempfile::tempdir().unwrap();
    let make = Make {
        bytes: Some(8 << 20),
        places: 32,
        hosts: vec!["b".into()],
        lease: Duration::from_millis(lease),
        ..Make::default()
    };
    let path = folder.path().join("pool");
    let a = Pool::make(&path, &make, host("a", 1)).unwrap();
    let b = Pool::open(&path, host("b", 2)).unwrap();
    (folder, a, b)
}

#[test]
fn a_namespace_goes_from_one_host_to_another() {
    let (_folder, a, b) = two(30_000);
    a.create("n", &Create::of(8192)).unwrap();
    let held = a.map("n", true).unwrap();
    held.write_at(0, b"of a").unwrap();
    let refused = b.map("n", false).err().unwrap().to_string();
    assert_eq!(
        refused,
        "\"n\" is owned by host a, and host b may not open it"
    );
    let refused = b.hand_over("n", "b", true).unwrap_err().to_string();
    assert!(refused.contains("may not hand over"), "{refused}");
    for refused in [b.destroy("n"), b.resize("n", 1).map(drop)] {
        assert!(matches!(refused, Err(NamespaceError::NotOwner { .. })));
    }
    let refused = b.create("n", &Create::of(1)).unwrap_err().to_string();
    assert!(refused.contains("already, of host a"), "{refused}");
    let refused = a.hand_over("n", "b", false).unwrap_err().to_string();
    assert!(refused.contains("in use by process"), "{refused}");
    a.hand_over("n", "b", true).unwrap();
    // The old owner's handle is refused, with both generations.
    let mut bytes = [0; 4];
    let refused = held.read_at(0, &mut bytes).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the handle of \"n\" is of generation 1, and the namespace has generation 2 and owner b"
    );
    assert!(matches!(
        held.write_at(0, b"x"),
        Err(NamespaceError::Stale { .. })
    ));
    held.close().unwrap();
    assert!(matches!(
        a.map("n", false),
        Err(NamespaceError::NotOwner { .. })
    ));
    let now = b.map("n", true).unwrap();
    now.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"of a");
    drop(now);
    b.destroy("n").unwrap();
    assert_eq!(a.first_unscrubbed().unwrap(), None);
}

#[test]
fn what_is_handed_over_keeps_nothing_of_its_old_owner() {
    let (_folder, a, b) = two(30_000);
    let create = Create {
        keep: Keep::With(std::process::id()),
        hosts: vec!["b".into()],
        ..Create::of(4096)
    };
    a.create("n", &create).unwrap();
    let _held = a.map("n", true).unwrap();
    a.hand_over("n", "b", true).unwrap();
    let table = b.table().unwrap();
    let now = table.named("n").unwrap();
    assert_eq!((now.hosts, now.life), (0, Life::Kept));
    assert!(table.holders.is_empty());
}

#[test]
fn a_namespace_grows_in_place_into_exactly_what_is_free_behind_it() {
    let (_folder, a, _b) = two(30_000);
    for name in ["n", "gap", "behind"] {
        a.create(name, &Create::of(8192)).unwrap();
    }
    a.destroy("gap").unwrap();
    assert_eq!(a.resize("n", 16384).unwrap(), Resized::InPlace);
    assert_eq!(a.table().unwrap().named("n").unwrap().generation, 1);
}

#[test]
fn a_reader_of_the_table_does_not_hide_that_a_handle_is_stale() {
    let (_folder, a, _b) = two(30_000);
    a.create("n", &Create::of(4096)).unwrap();
    let held = a.map("n", true).unwrap();
    held.check().unwrap();
    a.hand_over("n", "b", true).unwrap();
    a.table().unwrap();
    assert!(held.check().is_err() && held.check().is_err());
}

#[test]
fn hosts_share_what_they_are_admitted_to() {
    let (_folder, a, b) = two(30_000);
    let create = Create {
        hosts: vec!["b".into()],
        ..Create::of(4096)
    };
    a.create("n", &create).unwrap();
    let (x, y) = (a.map("n", true).unwrap(), b.map("n", true).unwrap());
    x.write_at(100, b"seen").unwrap();
    let mut bytes = [0; 4];
    y.read_at(100, &mut bytes).unwrap();
    assert_eq!(&bytes, b"seen");
    let refused = a.destroy("n").unwrap_err().to_string();
    assert!(refused.contains("of host b"), "{refused}");
    let none = Change {
        hosts: Some(Vec::new()),
        ..Change::default()
    };
    a.change("n", &none).unwrap();
    let refused = y.check().unwrap_err().to_string();
    assert!(refused.contains("does not admit this host"), "{refused}");
    let refused = a
        .create(
            "m",
            &Create {
                hosts: vec!["c".into()],
                ..create
            },
        )
        .unwrap_err();
    assert!(refused.to_string().contains("it admits a, b"), "{refused}");
}

#[test]
fn a_host_that_is_not_admitted_or_is_there_twice_is_refused() {
    let (folder, a, _b) = two(30_000);
    let path = folder.path().join("pool");
    let refused = Pool::open(&path, host("c", 3)).err().unwrap().to_string();
    assert!(
        refused.contains("does not admit a host \"c\"; it admits a, b"),
        "{refused}"
    );
    a.admit("c").unwrap();
    a.admit("c").unwrap();
    let c = Pool::open(&path, host("c", 3)).unwrap();
    assert_eq!(c.hosts().len(), 3);
    let refused = Pool::open(&path, host("c", 4)).err().unwrap().to_string();
    assert!(
        refused.contains("another machine or container that calls itself \"c\""),
        "{refused}"
    );
    let refused = Pool::open(&path, host("no name", 4))
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("name this host"), "{refused}");
    for n in 0..29 {
        a.admit(&format!("h{n}")).unwrap();
    }
    assert!(matches!(
        a.admit("one-more"),
        Err(NamespaceError::TableFull { .. })
    ));
}

#[test]
fn what_a_dead_host_had_is_released_after_its_lease_and_what_it_kept_stays() {
    let (folder, a, b) = two(200);
    let with = |keep| Create {
        keep,
        ..Create::of(4096)
    };
    b.create("temporary", &with(Keep::With(std::process::id())))
        .unwrap();
    b.create("kept", &with(Keep::Forever)).unwrap();
    let held = b.map("kept", true).unwrap();
    held.write_at(0, b"b").unwrap();
    // The host is gone without a word: no more signs of life, and no handle is given back.
    std::mem::forget(held);
    drop(b);
    let path = folder.path().join("pool");
    wait(|| {
        let table = a.table().unwrap();
        let line = a.hosts().into_iter().find(|h| h.name == "b").unwrap();
        let _ = a.recover();
        line.alive || table.named("temporary").is_some()
    });
    let table = a.table().unwrap();
    assert!(table.holders.is_empty());
    assert_eq!(table.named("kept").unwrap().owner, 1);
    a.hand_over("kept", "a", false).unwrap();
    assert_eq!(a.table().unwrap().named("kept").unwrap().generation, 2);
    // It comes back as another boot, and owns nothing.
    let b = Pool::open(&path, host("b", 9)).unwrap();
    assert!(matches!(
        b.map("kept", false),
        Err(NamespaceError::NotOwner { .. })
    ));
}

fn wait(mut not_yet: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if !not_yet() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come");
}

#[test]
fn a_namespace_with_a_lease_is_released_after_it_and_when_nobody_has_it_open() {
    let (_folder, a, _b) = two(30_000);
    let create = Create {
        keep: Keep::For(Duration::ZERO),
        ..Create::of(4096)
    };
    a.create("n", &create).unwrap();
    let held = a.map("n", false).unwrap();
    thread::sleep(Duration::from_millis(2));
    a.recover().unwrap();
    held.check().unwrap();
    held.close().unwrap();
    assert_eq!(a.recover().unwrap().released, ["n"]);
    let refused = a
        .create(
            "m",
            &Create {
                keep: Keep::With(u32::MAX),
                ..create
            },
        )
        .unwrap_err();
    assert!(
        refused.to_string().contains("there is no process"),
        "{refused}"
    );
}

#[test]
fn permissions_are_those_of_files() {
    let (folder, a, _b) = two(30_000);
    let path = folder.path().join("pool");
    let create = Create {
        mode: 0o640,
        ..Create::of(4096)
    };
    let as_user = |boot: u64, uid, groups: &[u32]| {
        a.admit(&format!("u{uid}")).unwrap();
        let options = host(&format!("u{uid}"), boot);
        Pool::open(
            &path,
            Options {
                user: user(uid, groups),
                ..options
            },
        )
        .unwrap()
    };
    let owner = as_user(11, 1000, &[100]);
    owner.create("n", &create).unwrap();
    let member = as_user(12, 1001, &[100]);
    let other = as_user(13, 1002, &[200]);
    let all = vec!["u1001".into(), "u1002".into(), "a".into()];
    owner
        .change(
            "n",
            &Change {
                hosts: Some(all),
                ..Change::default()
            },
        )
        .unwrap();
    drop(owner.map("n", true).unwrap());
    drop(member.map("n", false).unwrap());
    let refused = member.map("n", true).err().unwrap().to_string();
    assert_eq!(
        refused,
        "user 1001 may not write \"n\", which is of user 1000 with mode 640"
    );
    assert!(matches!(
        other.map("n", false),
        Err(NamespaceError::Permission { .. })
    ));
    let read_only = owner.map("n", false).unwrap();
    assert!(matches!(
        read_only.write_at(0, b"x"),
        Err(NamespaceError::ReadOnly(_))
    ));
    drop(read_only);
    owner
        .change(
            "n",
            &Change {
                mode: Some(0o400),
                ..Change::default()
            },
        )
        .unwrap();
    assert!(owner.map("n", true).is_err());
    let given = Change {
        uid: Some(1001),
        ..Change::default()
    };
    assert!(matches!(
        owner.change("n", &given),
        Err(NamespaceError::Permission { .. })
    ));
    let mode = Change {
        mode: Some(0o1777),
        ..Change::default()
    };
    assert!(matches!(
        owner.change("n", &mode),
        Err(NamespaceError::Request(_))
    ));
    // The superuser may all that the host may.
    assert!(matches!(
        a.destroy("n"),
        Err(NamespaceError::NotOwner { .. })
    ));
    let root = Options {
        user: user(0, &[0]),
        ..host("u1000", 11)
    };
    let root = Pool::open(&path, root).unwrap();
    root.change("n", &given).unwrap();
    assert!(matches!(
        owner.destroy("n"),
        Err(NamespaceError::Permission { .. })
    ));
    root.destroy("n").unwrap();
}

#[test]
fn a_user_has_at_most_its_quota() {
    let folder = tempfile::tempdir().unwrap();
    let make = Make {
        bytes: Some(4 << 20),
        quota: Some(16384),
        ..Make::default()
    };
    let options = Options {
        user: user(7, &[7]),
        ..host("a", 1)
    };
    let pool = Pool::make(folder.path().join("pool"), &make, options).unwrap();
    pool.create("n", &Create::of(12288)).unwrap();
    let refused = pool.create("m", &Create::of(8192)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "user 7 would have 20 KiB, and the quota of the pool is 16 KiB"
    );
    assert!(pool.resize("n", 20480).is_err());
    pool.resize("n", 16384).unwrap();
    // Nor is a user given more.
    let root = Options {
        user: user(0, &[0]),
        ..host("a", 1)
    };
    let root = Pool::open(folder.path().join("pool"), root).unwrap();
    root.create("m", &Create::of(4096)).unwrap();
    let given = Change {
        uid: Some(7),
        ..Change::default()
    };
    let refused = root.change("m", &given).unwrap_err();
    assert!(matches!(refused, NamespaceError::Quota { .. }), "{refused}");
}

/// Hosts without a common lock of the kernel and without atomic operations between them never have the lock at the same
/// time: no change of any is lost.
#[test]
fn no_change_is_lost_between_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..4).map(|n| format!("h{n}")).collect();
    let make = Make {
        bytes: Some(4 << 20),
        hosts: names[1..].to_vec(),
        ..Make::default()
    };
    let path = folder.path().join("pool");
    Pool::make(&path, &make, host("h0", 10)).unwrap();
    let start = Arc::new(Barrier::new(names.len()));
    let threads = names.into_iter().enumerate().map(|(nth, name)| {
        let (path, start) = (path.clone(), Arc::clone(&start));
        thread::spawn(move || {
            // Many stores are chances for another host.
            let stores = AtomicU64::new(nth as u64);
            let turns = move || {
                if stores.fetch_add(1, Ordering::Relaxed).is_multiple_of(13) {
                    thread::yield_now();
                }
            };
            let options = Options {
                fault: Some(Arc::new(turns)),
                ..host(&name, 10 + nth as u64)
            };
            let pool = Pool::open(&path, options).unwrap();
            start.wait();
            for n in 0..12 {
                pool.create(&format!("{name}-{n}"), &Create::of(4096))
                    .unwrap();
            }
        })
    });
    for done in threads.collect::<Vec<_>>() {
        done.join().unwrap();
    }
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let pool = Pool::open(&path, options).unwrap();
    assert_eq!(pool.table().unwrap().entries.len(), 48);
    assert!(pool.admit("x").is_err());
}

/// A host that stands still in the lock: another one takes it after a while, and what the first one does then changes
/// nothing.
#[test]
fn a_host_that_stood_still_in_the_lock_changes_nothing() {
    let (folder, a, b) = two(60_000);
    drop(a);
    let stores = Arc::new(AtomicU64::new(0));
    let (inside, out) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let fault = {
        let (stores, inside, out) = (Arc::clone(&stores), Arc::clone(&inside), Arc::clone(&out));
        move || {
            // The first words of the table are written in the lock.
            if stores.load(Ordering::Relaxed) > 0 && stores.fetch_add(1, Ordering::Relaxed) == 20 {
                inside.wait();
                out.wait();
            }
        }
    };
    let options = Options {
        fault: Some(Arc::new(fault)),
        ..host("a", 1)
    };
    let a = Pool::open(folder.path().join("pool"), options).unwrap();
    let slow = thread::spawn(move || {
        stores.store(1, Ordering::Relaxed);
        a.create("of-a", &Create::of(4096))
    });
    inside.wait();
    b.create("of-b", &Create::of(4096)).unwrap();
    out.wait();
    let refused = slow.join().unwrap().unwrap_err();
    assert!(
        matches!(refused, NamespaceError::LockLost { .. }),
        "{refused}"
    );
    let table = b.table().unwrap();
    assert!(table.named("of-b").is_some() && table.named("of-a").is_none());
}

#[test]
fn memory_that_is_gone_is_an_error() {
    let (folder, a, _b) = two(30_000);
    a.create("n", &Create::of(65536)).unwrap();
    let namespace = a.map("n", true).unwrap();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("pool"))
        .unwrap();
    file.set_len(namespace.offset() + 4096).unwrap();
    let mut bytes = [0; 16];
    namespace.read_at(0, &mut bytes).unwrap();
    for refused in [
        namespace.read_at(8192, &mut bytes),
        namespace.write_at(8192, &bytes),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("the memory of \"n\" at byte 8192 cannot be accessed"),
            "{refused}"
        );
    }
    let refused = namespace.read_at(65530, &mut bytes).unwrap_err();
    assert!(
        matches!(refused, NamespaceError::Bounds { .. }),
        "{refused}"
    );
}

/// What would be stored into the old place meanwhile would be lost.
#[test]
fn a_namespace_is_not_opened_while_it_moves() {
    let (folder, a, b) = two(60_000);
    let create = Create {
        hosts: vec!["b".into()],
        ..Create::of(8192)
    };
    a.create("n", &create).unwrap();
    a.create("behind", &Create::of(4096)).unwrap();
    a.map("n", true).unwrap().write_at(0, b"kept").unwrap();
    drop(a);
    let (stores, refusal) = (AtomicU64::new(0), Arc::new(Mutex::new(None)));
    let fault = {
        let (b, refusal) = (b.clone(), Arc::clone(&refusal));
        move || {
            let moves = b.table().unwrap().entries.iter().any(|e| e.moving);
            // The first stores after that give the lock back; the next ones copy.
            if moves && stores.fetch_add(1, Ordering::Relaxed) == 100 {
                *refusal.lock().unwrap() = b.map("n", true).err();
            }
        }
    };
    let options = Options {
        fault: Some(Arc::new(fault)),
        ..host("a", 1)
    };
    let a = Pool::open(folder.path().join("pool"), options).unwrap();
    assert_eq!(a.resize("n", 16384).unwrap(), Resized::Moved);
    let refused = refusal.lock().unwrap().take().unwrap().to_string();
    assert!(refused.contains("in use by process"), "{refused}");
    let held = b.map("n", false).unwrap();
    let mut bytes = [0; 4];
    held.read_at(0, &mut bytes).unwrap();
    assert_eq!((&bytes, held.bytes()), (b"kept", 16384));
    let table = a.table().unwrap();
    assert_eq!((table.entries.len(), table.holders.len()), (2, 1));
    assert_eq!(table.named("n").unwrap().generation, 2);
    assert_eq!(a.first_unscrubbed().unwrap(), None);
}
