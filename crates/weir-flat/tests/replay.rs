//! Recovery after every prefix of what reached the medium, and after a loss of power that loses any of the writes since
//! the last barrier.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_flat::{Options, Store};

use crate::media::{Event, Recorded};

const BYTES: usize = 1 << 20;

fn options() -> Options {
    Options {
        create: Some(BYTES as u64),
        cache: 128 * 4096,
        flush_every: None,
        huge: false,
        ..Options::default()
    }
}

type Files = BTreeMap<String, Vec<u8>>;

fn content(medium: Recorded) -> Files {
    let store = Store::on(Box::new(medium), options()).unwrap();
    let names = store.files();
    names
        .into_iter()
        .map(|(name, size)| {
            let mut bytes = vec![0; size as usize];
            store.file(&name).unwrap().read_into(0, &mut bytes).unwrap();
            (name, bytes)
        })
        .collect()
}

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Remove(u8),
    Write(u8, u64, usize, u8),
    Commit(bool),
    Reopen,
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..4_u8).prop_map(Step::Create),
        1 => (0..4_u8).prop_map(Step::Remove),
        6 => (0..4_u8, 0..40_000_u64, 1..30_000_usize, any::<u8>()).prop_map(|(f, o, l, x)| Step::Write(f, o, l, x)),
        // Places that were freed are soon used again.
        6 => (0..2_u8, any::<u8>()).prop_map(|(file, byte)| Step::Write(file, 0, 8192, byte)),
        5 => any::<bool>().prop_map(Step::Commit),
        1 => Just(Step::Reopen),
    ]
}

/// The files after a commit.
struct Commit {
    /// How many events had happened when it began, and when it ended.
    began: usize,
    ended: usize,
    /// Whether it was acknowledged as durable.
    durable: bool,
    files: Files,
}

/// Runs the steps; returns what reached the medium, and the commits.
fn run(steps: &[Step]) -> (Vec<Event>, Vec<Commit>) {
    let medium = Recorded::blank(BYTES);
    let count = || medium.inside().events.len();
    let mut store = Some(Store::on(Box::new(medium.clone()), options()).unwrap());
    let mut files = Files::new();
    let mut commits = vec![Commit {
        began: 0,
        ended: count(),
        durable: true,
        files: Files::new(),
    }];
    for step in steps {
        let open = store.as_ref().unwrap();
        let began = count();
        match step {
            Step::Create(file) => {
                if open.create(&file.to_string()).is_ok() {
                    files.insert(file.to_string(), Vec::new());
                }
            }
            Step::Remove(file) => {
                if open.remove(&file.to_string()).is_ok() {
                    files.remove(&file.to_string());
                }
            }
            Step::Write(file, offset, length, byte) => {
                let Some(content) = files.get_mut(&file.to_string()) else {
                    continue;
                };
                let bytes: Vec<u8> = (0..*length)
                    .map(|at| byte.wrapping_add((at / 100) as u8))
                    .collect();
                // The medium may be full, and then nothing changes.
                if open
                    .file(&file.to_string())
                    .unwrap()
                    .write_from(*offset, &bytes)
                    .is_ok()
                {
                    let end = *offset as usize + length;
                    content.resize(content.len().max(end), 0);
                    content[*offset as usize..end].copy_from_slice(&bytes);
                }
                // A write may commit what came before, to have room.
                assert_eq!(began, count(), "the medium of this test is large enough");
            }
            Step::Commit(durable) => {
                if *durable {
                    open.sync().unwrap()
                } else {
                    open.flush().unwrap()
                }
                commits.push(Commit {
                    began,
                    ended: count(),
                    durable: *durable,
                    files: files.clone(),
                });
            }
            Step::Reopen => {
                store.take().unwrap().close().unwrap();
                store = Some(Store::on(Box::new(medium.clone()), options()).unwrap());
                commits.push(Commit {
                    began,
                    ended: count(),
                    durable: true,
                    files: files.clone(),
                });
            }
        }
    }
    drop(store);
    commits.push(Commit {
        began: count(),
        ended: usize::MAX,
        durable: false,
        files,
    });
    let events = medium.inside().events.clone();
    (events, commits)
}

/// Whether these are the files of a commit that had begun, and of none before this one.
fn is_of_one(found: &Files, cut: usize, least: usize, commits: &[Commit]) -> bool {
    // A new store is blank until its first commit.
    (found.is_empty() && cut < commits[0].ended)
        || commits[least..]
            .iter()
            .any(|commit| commit.began <= cut && commit.files == *found)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_every_prefix_of_writes_the_files_are_those_of_one_commit(steps in prop::collection::vec(a_step(), 1..30)) {
        let (events, commits) = run(&steps);
        let mut bytes = vec![0; BYTES];
        for (nth, event) in events.iter().enumerate() {
            let Event::Write(at, data) = event else { continue };
            // Half of it, then all.
            for part in [data.len() / 2, data.len()] {
                bytes[*at as usize..][..part].copy_from_slice(&data[..part]);
                let found = content(Recorded::of(bytes.clone()));
                let cut = nth + usize::from(part == data.len());
                let least = commits.iter().rposition(|commit| commit.ended <= cut).unwrap_or(0);
                prop_assert!(is_of_one(&found, cut, least, &commits), "{cut} events: no commit");
            }
        }
    }

    #[test]
    fn a_loss_of_power_leaves_the_files_of_one_commit(
        steps in prop::collection::vec(a_step(), 1..30), lost in prop::collection::vec(any::<bool>(), 64)
    ) {
        lose(&steps, |nth, which| lost[(nth + which) % lost.len()])?;
    }
}

/// Loses writes since the last barrier, after each event: those for which `lost`, by the number of the event and that of
/// the write, says so.
fn lose(steps: &[Step], lost: impl Fn(usize, usize) -> bool) -> Result<(), TestCaseError> {
    let (events, commits) = run(steps);
    let mut durable = vec![0; BYTES];
    let mut since: Vec<(u64, Vec<u8>)> = Vec::new();
    for (nth, event) in events.iter().enumerate() {
        match event {
            Event::Write(at, data) => since.push((*at, data.clone())),
            Event::Barrier => {
                for (at, data) in since.drain(..) {
                    durable[at as usize..][..data.len()].copy_from_slice(&data);
                }
            }
        }
        let mut bytes = durable.clone();
        for (which, (at, data)) in since.iter().enumerate() {
            if !lost(nth, which) {
                bytes[*at as usize..][..data.len()].copy_from_slice(data);
            }
        }
        // Commits that were not acknowledged as durable may be lost.
        let found = content(Recorded::of(bytes));
        let kept = |commit: &Commit| commit.durable && commit.ended <= nth + 1;
        let least = commits.iter().rposition(kept).unwrap_or(0);
        prop_assert!(
            is_of_one(&found, nth + 1, least, &commits),
            "{nth} events: no commit"
        );
    }
    Ok(())
}

#[test]
fn a_place_is_not_used_again_before_the_record_that_freed_it_is_durable() {
    let write = |file, byte| Step::Write(file, 0, 8192, byte);
    let both = [
        Step::Create(0),
        Step::Create(1),
        write(0, 1),
        write(1, 1),
        Step::Commit(false),
    ];
    // The second flush frees the first place of one file, the third writes the other file.
    let next = [
        write(0, 2),
        Step::Commit(false),
        write(1, 3),
        Step::Commit(false),
        write(0, 4),
        Step::Commit(false),
    ];
    let steps: Vec<Step> = both.into_iter().chain(next).collect();
    for only in 0..4 {
        lose(&steps, |_, which| which == only).unwrap();
    }
}

#[test]
fn records_of_an_earlier_use_of_the_area_are_not_read() {
    let write = |byte| [Step::Write(0, 0, 8192, byte), Step::Commit(true)];
    // Every other use of the log is in the same area, and all records are as long as those which lay there.
    let mut steps = vec![Step::Create(0), Step::Write(0, 0, 8192, 1), Step::Reopen];
    steps.extend((2..6).flat_map(write));
    steps.push(Step::Reopen);
    steps.extend(write(6));
    steps.push(Step::Reopen);
    lose(&steps, |_, _| false).unwrap();
}
