//! The same on a real disk and with a real process: killed after each record and each write in turn.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::journal::{Disk, Extent, Moment, Watch};
use super::journalled_writes::JournalledWrites;
use super::replay::{JournalError, Restored, restore};
use crate::control::Files;
use crate::root::Root;

const FILES: [(&str, &str); 3] = [
    ("/sys/fs/cgroup/a/cpu.max", "max 100000\n"),
    ("/sys/fs/cgroup/a/cpuset.cpus", "\n"),
    ("/sys/kernel/mm/mempolicy/weighted_interleave/node1", "3\n"),
];
/// A register whose file has only zeros.
const REGISTER: &str = "/dev/cpu/1/msr:0x1a4";
const GROUP: &str = "/sys/fs/cgroup/a/own";

fn machine(folder: &Path) -> Root {
    Root::at(folder).obeyed_by(Arc::new(Files(folder.to_owned())))
}

fn furnish(folder: &Path) {
    let boot = ("/proc/sys/kernel/random/boot_id", "this\n");
    for (path, text) in FILES.into_iter().chain([boot]) {
        let path = folder.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::create_dir_all(folder.join("dev/cpu/1")).unwrap();
    fs::write(folder.join("dev/cpu/1/msr"), [0; 0x200]).unwrap();
}

/// The variable by which this test starts itself as the process that is killed: its folder, and the number of
/// moments before it ends.
const CHILD: &str = "WEIR_TEST_KILLED_AFTER";

fn steer(folder: &Path, after: usize) {
    let (mut writes, _) =
        JournalledWrites::open(&machine(folder), &folder.join("journal"), Extent::Host).unwrap();
    let mut moments = 0;
    let watch = move |_: Moment| {
        if moments == after {
            let own = libc::pid_t::try_from(std::process::id()).unwrap();
            // SAFETY: the call takes two numbers, and is not meant to return.
            unsafe { libc::kill(own, libc::SIGKILL) };
        }
        moments += 1;
    };
    writes.watch(Some(Watch(Box::new(watch))));
    for value in ["1000 10000", "2000 10000"] {
        writes.set(FILES[0].0, value).unwrap();
        writes.make(GROUP, "tasks").unwrap();
        writes.set(FILES[1].0, "0-1").unwrap();
        writes.set(FILES[2].0, "9").unwrap();
        writes.set(REGISTER, "0xf").unwrap();
        assert_eq!(writes.put_back(FILES[1].0), []);
        assert_eq!(writes.put_back(GROUP), []);
    }
    assert_eq!(writes.release(), []);
}

#[test]
fn a_process_that_is_killed_leaves_a_journal_that_puts_everything_back() {
    if let Some(asked) = std::env::var_os(CHILD) {
        let asked = asked.into_string().unwrap();
        let (after, folder) = asked.split_once(' ').unwrap();
        return steer(Path::new(folder), after.parse().unwrap());
    }
    let mut after = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        furnish(folder.path());
        let name =
            "steer::killed::a_process_that_is_killed_leaves_a_journal_that_puts_everything_back";
        let status = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact"])
            .env(CHILD, format!("{after} {}", folder.path().display()))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        let restored = restore(
            &machine(folder.path()),
            &folder.path().join("journal"),
            Extent::Host,
        )
        .unwrap();
        assert_eq!(
            (restored.not, restored.notes),
            (vec![], vec![]),
            "after {after}"
        );
        for (path, text) in FILES {
            let now = fs::read_to_string(folder.path().join(path.trim_start_matches('/')));
            assert_eq!(now.unwrap(), text, "{path} after {after}");
        }
        assert!(!folder.path().join(GROUP.trim_start_matches('/')).exists());
        let registers = fs::read(folder.path().join("dev/cpu/1/msr")).unwrap();
        assert!(registers.iter().all(|byte| *byte == 0), "after {after}");
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(libc::SIGKILL), "after {after}");
        after += 1;
    }
    assert!(after > 30, "it was killed {after} times");
}

#[test]
fn two_at_once_are_one_too_many_whatever_their_journals() {
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let root = machine(folder.path());
    let journals = ["journal", "other"].map(|name| folder.path().join(name));
    JournalledWrites::open(&root, &journals[1], Extent::Host).unwrap();
    let first = JournalledWrites::open(&root, &journals[0], Extent::Host).unwrap();
    for journal in &journals {
        let opened = JournalledWrites::open(&root, journal, Extent::Host).map(drop);
        for refused in [opened, restore(&root, journal, Extent::Host).map(drop)] {
            match refused {
                Err(JournalError::Kept(why)) => {
                    let own = std::process::id().to_string();
                    assert!(why.contains(&own) && why.contains("end it first"), "{why}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    drop(first);
    JournalledWrites::open(&root, &journals[1], Extent::Host).unwrap();
}

#[test]
fn a_measurement_goes_on_while_another_process_steers_and_is_alone_with_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let root = machine(folder.path());
    let [host, run] = ["journal", "bench"].map(|name| folder.path().join(name));
    let (_steering, _) = JournalledWrites::open(&root, &host, Extent::Host).unwrap();
    let (mut writes, _) = JournalledWrites::open(&root, &run, Extent::Run).unwrap();
    writes.set(REGISTER, "0xf").unwrap();
    for refused in [
        JournalledWrites::open(&root, &run, Extent::Run).map(drop),
        restore(&root, &run, Extent::Run).map(drop),
    ] {
        assert!(matches!(refused, Err(JournalError::Kept(_))), "{refused:?}");
    }
    assert_eq!(root.text(REGISTER).known().unwrap(), "0xf");
    drop(writes);
    let restored = restore(&root, &run, Extent::Run).unwrap();
    assert_eq!(restored.put_back, [REGISTER]);
    assert_eq!(root.text(REGISTER).known().unwrap(), "0x0");
}

/// A host whose `cpu.max` a process that was killed has set, and the folder of the journal.
fn left() -> (tempfile::TempDir, Root, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let (root, journal) = (machine(folder.path()), folder.path().join("journal"));
    let (mut writes, _) = JournalledWrites::open(&root, &journal, Extent::Host).unwrap();
    writes.set(FILES[0].0, "1000 10000").unwrap();
    (folder, root, journal)
}

#[test]
fn a_journal_that_cannot_be_written_is_obeyed_first() {
    let (folder, root, journal) = left();
    // Nothing can be written where a folder has the name of the new file.
    fs::create_dir(journal.join("journal.new")).unwrap();
    let restored = restore(&root, &journal, Extent::Host).unwrap();
    assert_eq!(restored.put_back, [FILES[0].0]);
    assert!(restored.troubles[0].contains("cannot be written"));
    let path = folder.path().join("sys/fs/cgroup/a/cpu.max");
    assert_eq!(fs::read_to_string(path).unwrap(), FILES[0].1);
    let refused = JournalledWrites::open(&root, &journal, Extent::Host).map(drop);
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("no limit is set"), "{why}");
    fs::remove_dir(journal.join("journal.new")).unwrap();
    assert_eq!(
        restore(&root, &journal, Extent::Host).unwrap(),
        Restored::default()
    );
}

#[test]
fn a_damaged_journal_stays_under_another_name_and_a_foreign_file_under_its_own() {
    let (_folder, root, journal) = left();
    let path = journal.join("journal");
    for n in 1..3 {
        let damaged = fs::read_to_string(&path).unwrap() + "0badbad0 {}\n";
        fs::write(&path, &damaged).unwrap();
        let aside = journal.join(format!("journal.damaged-{n}"));
        let restored = restore(&root, &journal, Extent::Host).unwrap();
        assert!(restored.troubles[0].contains(aside.to_str().unwrap()));
        assert_eq!(fs::read_to_string(aside).unwrap(), damaged);
    }
    let restored = restore(&root, &journal, Extent::Host).unwrap();
    assert!(
        restored.is_whole() && restored.notes.len() == 2,
        "{restored:?}"
    );
    for text in ["today I saw a heron\n", "no line ends here"] {
        fs::write(&path, text).unwrap();
        for refused in [
            restore(&root, &journal, Extent::Host).map(drop),
            JournalledWrites::open(&root, &journal, Extent::Host).map(drop),
        ] {
            let why = refused.unwrap_err().to_string();
            assert!(why.contains("give another folder"), "{why}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_journal_that_was_removed_since_is_no_all_clear() {
    let (folder, root, journal) = left();
    fs::remove_file(journal.join("journal")).unwrap();
    let said = "what is left changed is not known";
    let refused = restore(&root, &journal, Extent::Host).unwrap_err();
    assert!(refused.to_string().contains(said), "{refused}");
    let (_, restored) = JournalledWrites::open(&root, &journal, Extent::Host).unwrap();
    assert!(restored.notes[0].contains(said), "{restored:?}");
    // A start that could not write its first journal has changed nothing.
    let full = folder.path().join("full");
    fs::create_dir_all(full.join("journal.new")).unwrap();
    JournalledWrites::open(&root, &full, Extent::Host).unwrap_err();
    // Nor has one that was killed after it had its lock.
    let early = folder.path().join("early");
    drop(Disk::take(&root, &early, Extent::Host).unwrap());
    assert!(early.join("lock").exists());
    for never in [full, early, folder.path().join("never")] {
        let none = restore(&root, &never, Extent::Host);
        assert!(matches!(none, Err(JournalError::NoJournal(_))), "{none:?}");
    }
}

#[test]
fn a_journal_that_grows_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let (root, journal) = (machine(folder.path()), folder.path().join("journal"));
    let (mut writes, _) = JournalledWrites::open(&root, &journal, Extent::Host).unwrap();
    let mut longest = 0;
    for n in 0..1500 {
        writes
            .set(FILES[0].0, &format!("{} 10000", 1000 + n))
            .unwrap();
        longest = longest.max(fs::metadata(journal.join("journal")).unwrap().len());
    }
    assert!((200_000..300_000).contains(&longest), "{longest}");
    drop(writes);
    let restored = restore(&root, &journal, Extent::Host).unwrap();
    assert_eq!(restored.put_back, [FILES[0].0]);
    let path = folder.path().join("sys/fs/cgroup/a/cpu.max");
    assert_eq!(fs::read_to_string(path).unwrap(), FILES[0].1);
}

#[test]
fn a_journal_that_is_removed_replaced_or_cut_is_written_again() {
    let spoils: [fn(&Path); 4] = [
        |journal| fs::remove_file(journal.join("journal")).unwrap(),
        |journal| fs::remove_dir_all(journal).unwrap(),
        |journal| fs::write(journal.join("journal"), "").unwrap(),
        |journal| {
            fs::write(journal.join("mine"), "today I saw a heron\n").unwrap();
            fs::rename(journal.join("mine"), journal.join("journal")).unwrap();
        },
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        for is_next_a_write in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            furnish(folder.path());
            let (root, journal) = (machine(folder.path()), folder.path().join("journal"));
            let (mut writes, _) = JournalledWrites::open(&root, &journal, Extent::Host).unwrap();
            writes.set(FILES[0].0, "1000 10000").unwrap();
            spoil(&journal);
            match is_next_a_write {
                true => drop(writes.set(FILES[2].0, "9").unwrap()),
                false => writes.keep_journal(),
            }
            drop(writes);
            let restored = restore(&root, &journal, Extent::Host).unwrap();
            let expected = [FILES[2].0, FILES[0].0];
            let expected = &expected[usize::from(!is_next_a_write)..];
            assert_eq!(restored.put_back, expected, "{number}: {restored:?}");
        }
    }
}

#[test]
fn a_folder_in_the_place_of_the_journal_is_no_journal_to_be_corrected() {
    let folder = tempfile::tempdir().unwrap();
    furnish(folder.path());
    let (root, journal) = (machine(folder.path()), folder.path().join("journal"));
    let (mut writes, _) = JournalledWrites::open(&root, &journal, Extent::Host).unwrap();
    writes.set(FILES[0].0, "1000 10000").unwrap();
    fs::remove_file(journal.join("journal")).unwrap();
    fs::create_dir(journal.join("journal")).unwrap();
    writes.keep_journal();
    assert!(writes.set(FILES[2].0, "9").is_err());
    let [not] = &writes.release()[..] else {
        panic!("one line");
    };
    assert!(not.cause.is_refused());
    let words = not.to_string();
    assert!(
        words.contains("a folder in the place of the journal") && !words.contains("corrects it")
    );
    let path = folder.path().join("sys/fs/cgroup/a/cpu.max");
    assert_eq!(fs::read_to_string(path).unwrap(), FILES[0].1);
}
