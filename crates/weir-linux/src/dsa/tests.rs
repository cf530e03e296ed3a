use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::queue::{Copier, Style};
use super::*;

/// Writes the files of a work queue as the kernel shows them.
fn write(base: &Path, name: &str, attributes: &[(&str, &str)]) {
    let folder = base.join("sys/bus/dsa/devices").join(name);
    fs::create_dir_all(&folder).unwrap();
    for (attribute, text) in attributes {
        fs::write(folder.join(attribute), format!("{text}\n")).unwrap();
    }
}

const USABLE: [(&str, &str); 6] = [
    ("state", "enabled"),
    ("type", "user"),
    ("mode", "dedicated"),
    ("size", "16"),
    ("max_transfer_size", "2097152"),
    ("max_batch_size", "32"),
];

fn queue(shared: bool) -> WorkQueue {
    WorkQueue {
        name: "wq0.1".into(),
        shared,
        size: 16,
        max_transfer: 2 << 20,
        max_batch: 32,
    }
}

#[test]
fn a_shared_queue_for_users_is_found_before_a_dedicated_one() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "dsa0", &[("state", "enabled")]);
    write(
        folder.path(),
        "wq0.0",
        &[("state", "enabled"), ("type", "kernel")],
    );
    write(folder.path(), "wq0.1", &USABLE);
    let root = Root::at(folder.path());
    assert_eq!(work_queue(&root).get().unwrap(), &queue(false));
    write(folder.path(), "wq0.2", &USABLE);
    write(folder.path(), "wq0.2", &[("mode", "shared")]);
    let found = work_queue(&root);
    let found = found.get().unwrap();
    assert!(found.shared && found.device() == "/dev/dsa/wq0.2");
}

#[test]
fn what_stands_in_the_way_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    assert!(matches!(work_queue(&root), Reading::Absent(_)));
    write(folder.path(), "wq0.0", &USABLE);
    write(folder.path(), "wq0.0", &[("state", "disabled")]);
    write(folder.path(), "wq0.1", &USABLE);
    write(folder.path(), "wq0.1", &[("type", "kernel")]);
    let why = work_queue(&root).get().unwrap_err().reason;
    assert!(
        why.contains("wq0.0: state is disabled") && why.contains("type is kernel"),
        "{why}"
    );
    // The device has only a name.
    let error = Copier::open(
        &root,
        &queue(true),
        Style {
            bytes: 4096,
            batch: 1,
            in_flight: 1,
        },
    );
    let error = error.err().unwrap().to_string();
    assert!(error.contains("dsa is missing"), "{error}");
}

#[test]
fn what_a_queue_cannot_take_is_refused_in_words() {
    let good = Style {
        bytes: 4096,
        batch: 16,
        in_flight: 16,
    };
    assert_eq!(good.check(&queue(true), 8), Ok(()));
    for (style, expected) in [
        (Style { bytes: 0, ..good }, "multiple of 64"),
        (Style { bytes: 100, ..good }, "multiple of 64"),
        (
            Style {
                bytes: 4 << 20,
                ..good
            },
            "at most the 2097152 B",
        ),
        (Style { batch: 0, ..good }, "batch of 0"),
        (Style { batch: 33, ..good }, "to the 32"),
        (
            Style {
                in_flight: 17,
                ..good
            },
            "to the 16",
        ),
    ] {
        let why = style.check(&queue(true), 1).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    assert!(
        good.check(&queue(false), 2)
            .unwrap_err()
            .contains("dedicated")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn attributes_of_any_content_are_read_or_refused(
        at in 0usize..6,
        text in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "wq0.1", &USABLE);
        let path = folder.path().join("sys/bus/dsa/devices/wq0.1").join(USABLE[at].0);
        fs::write(path, &text).unwrap();
        let found = work_queue(&Root::at(folder.path()));
        if let Ok(found) = found.get() {
            prop_assert_eq!(&found.name, "wq0.1");
        }
    }
}
