//! Storage through a replacement for `fio`: a script that does what the test says.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    TempDir::new().unwrap()
}

/// A program that answers like `fio` and then does `work`.
fn stand_in(folder: &Path, version: &str, work: &str) -> PathBuf {
    let path = folder.join("fio");
    let script = format!(
        "#!/bin/bash\ncase \"$1\" in\n--version) echo '{version}'; exit;;\n--enghelp) printf 'Available IO engines:\\n\\tpsync\\n\\tlibaio\\n'; exit;;\nesac\n{work}\n"
    );
    // Another process writes it: a child that another test starts at the same time would inherit the open
    // file, and a file that is open for writing cannot be executed.
    let written = Command::new("bash")
        .args(["-c", "printf %s \"$1\" > \"$2\"; chmod +x \"$2\"", "-"])
        .args([script.as_ref(), path.as_os_str()])
        .status();
    assert!(written.unwrap().success());
    path
}

/// A root whose kernel counts requests.
fn counting(folder: &Path) -> Root {
    let own = folder.join("root/proc/self");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("io"), "").unwrap();
    Root::at(folder.join("root"))
}

fn through(folder: &Path, program: &Path) -> Storage {
    Storage {
        place: Place::Folder(place::Folder::unchecked(folder.to_owned())),
        fio: Fio::find(&counting(folder), program),
        scratch: Mutex::new(None),
    }
}

fn storage(folder: &Path, version: &str, work: &str) -> Storage {
    through(folder, &stand_in(folder, version, work))
}

fn load(op: Op) -> Load {
    Load {
        tenant: "victim".into(),
        op,
        cores: vec![0],
        set: Bytes::mib(2),
        offset: 0,
        block: Bytes::kib(4),
        depth: 16,
    }
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_program_that_is_missing_too_old_or_none_is_a_missing_capability() {
    let folder = folder();
    for (version, said) in [
        ("fio-2.21", "too old"),
        ("fiona 3", "not a version of fio"),
        ("", "not a version of fio"),
    ] {
        let storage = storage(folder.path(), version, "");
        let lacks = storage.capability();
        assert!(!lacks.present && lacks.detail.contains(said), "{lacks:?}");
        assert!(lacks.remedy.contains("install"), "{lacks:?}");
        let error = storage.start(&[load(Op::RandRead)]).err().unwrap();
        assert!(matches!(error, MachineError::Missing { .. }), "{error}");
    }
    let lacks = through(folder.path(), &folder.path().join("nothing")).capability();
    assert!(lacks.detail.contains("not installed"), "{lacks:?}");
    let there = storage(folder.path(), "fio-3.33", "").capability();
    assert!(
        there.present && there.detail.contains("libaio"),
        "{there:?}"
    );
}

#[test]
fn requests_are_counted_and_end_with_the_run_and_no_file_stays() {
    let folder = folder();
    let says = r#"{\"jobs\": [{\"error\": 0, \"read\": {\"io_bytes\": 0}, \"write\": {\"io_bytes\": 0}}]}"#;
    let work = format!("trap 'kill $!; echo \"{says}\"; exit 128' TERM; sleep 600 & wait");
    let storage = storage(folder.path(), "fio-3.33", &work);
    let running = storage.start(&[load(Op::RandRead)]).unwrap().pop().unwrap();
    while running.children() == 0 {
        std::thread::yield_now();
    }
    running.bytes().unwrap();
    let seen = entries(folder.path());
    assert_eq!(
        seen, 2,
        "the program and the root; the scratch file has no name"
    );
    let process = running.process();
    assert!(Path::new(&format!("/proc/{process}")).exists());
    assert_eq!(running.end().unwrap(), None);
    assert!(!Path::new(&format!("/proc/{process}")).exists());
}

#[test]
fn a_process_that_is_let_go_of_is_gone() {
    let folder = folder();
    let storage = storage(
        folder.path(),
        "fio-3.33",
        "trap '' TERM; while true; do :; done",
    );
    let running = storage.start(&[load(Op::RandRead)]).unwrap();
    let processes: Vec<u32> = running.iter().map(Running::process).collect();
    drop(running);
    for process in processes {
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }
}

#[test]
fn a_process_that_fails_is_reported_with_what_it_said() {
    let folder = folder();
    for (work, said) in [
        (
            "echo 'warning: x' >&2; echo 'fio: io_u error on file /x: No space left on device' >&2; exit 1",
            "No space left on device",
        ),
        (
            "echo 'something else' >&2; exit 3",
            "exit status 3): something else",
        ),
        ("exit 0", "without a message"),
        ("kill -9 $$", "killed by signal 9"),
    ] {
        let storage = storage(folder.path(), "fio-3.33", work);
        let mut running = storage.start(&[load(Op::SeqWrite)]).unwrap().pop().unwrap();
        let error = running.await_flow().unwrap_err().to_string();
        assert!(
            error.contains("`victim`") && error.contains(said),
            "{error}"
        );
        assert_eq!(running.end().unwrap(), None, "it was asked to end");
    }
}

#[test]
fn a_report_that_makes_no_sense_is_an_error() {
    let folder = folder();
    for (says, said) in [
        ("nonsense", "no JSON"),
        ("{}", "jobs"),
        (
            r#"{\"jobs\": [{\"error\": 28, \"read\": {\"io_bytes\": 0}, \"write\": {\"io_bytes\": 0}}]}"#,
            "No space",
        ),
    ] {
        let work = format!("trap 'kill $!; echo \"{says}\"; exit 1' TERM; sleep 600 & wait");
        let storage = storage(folder.path(), "fio-3.33", &work);
        let running = storage.start(&[load(Op::RandRead)]).unwrap().pop().unwrap();
        // The trap must be set before the request to end.
        while running.children() == 0 {
            std::thread::yield_now();
        }
        let error = running.end().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn more_than_fits_is_refused_before_anything_is_written() {
    let folder = folder();
    let storage = storage(folder.path(), "fio-3.33", "");
    let huge = Load {
        set: Bytes(u64::MAX / 2),
        ..load(Op::RandRead)
    };
    let error = storage.start(&[huge]).err().unwrap();
    assert!(matches!(error, MachineError::NoMemory { .. }), "{error}");
}

#[test]
fn paths_that_cannot_take_requests_are_refused_in_words() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let at = |path: &Path| Storage::find(&Root::live(), &Wish::at(path)).err().unwrap();
    for (path, said) in [
        (folder.path().join("nothing").as_path(), "there is no"),
        (&file, "neither a folder nor a block device"),
        (
            Path::new("/dev/null"),
            "neither a folder nor a block device",
        ),
    ] {
        let error = at(path);
        assert!(matches!(error, MachineError::Request(_)), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let both = Wish {
        write: Some("/dev/nothing".into()),
        ..Wish::at(folder.path())
    };
    let error = Storage::find(&Root::live(), &both).err().unwrap();
    assert!(error.to_string().contains("not a block device"), "{error}");
}

#[test]
fn a_device_is_described_by_its_disk() {
    let sys = TempDir::new().unwrap();
    let disk = sys.path().join("sys/devices/pci0/block/nvme0n1");
    let part = disk.join("nvme0n1p2");
    for folder in [&part, &disk.join("device"), &disk.join("queue")] {
        fs::create_dir_all(folder).unwrap();
    }
    let link = sys.path().join("sys/dev/block");
    fs::create_dir_all(&link).unwrap();
    symlink(&part, link.join("259:3")).unwrap();
    for (file, text) in [
        ("device/model", "Fast 9000\n"),
        ("queue/rotational", "0\n"),
        ("queue/scheduler", "none [mq-deadline] kyber\n"),
        ("nvme0n1p2/partition", "2\n"),
        ("nvme0n1p2/size", "2048\n"),
    ] {
        fs::write(disk.join(file), text).unwrap();
    }
    let (said, bytes) = place::describe(&Root::at(sys.path()), libc::makedev(259, 3));
    assert_eq!(said, "device nvme0n1p2, Fast 9000, scheduler mq-deadline");
    assert_eq!(bytes, Bytes::mib(1));
    let (said, bytes) = place::describe(&Root::at(sys.path()), libc::makedev(8, 0));
    assert!(
        said.contains("does not name") && bytes == Bytes(0),
        "{said}"
    );
}

#[test]
fn the_file_system_of_a_path_is_the_last_mount_above_it() {
    let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        30 22 0:30 / /tmp rw shared:1 - tmpfs tmpfs rw\n\
        31 22 8:2 / /my\\040disk rw - xfs /dev/sdb rw\n\
        32 22 8:3 / /my\\040disk rw - btrfs /dev/sdc rw\ngarbage\n";
    let kind = |path: &str| place::kind_of(mounts, Path::new(path));
    assert_eq!(kind("/tmp/x").as_deref(), Some("tmpfs"));
    assert_eq!(kind("/tmpx").as_deref(), Some("ext4"));
    assert_eq!(kind("/my disk/deep").as_deref(), Some("btrfs"));
    assert_eq!(place::kind_of("", Path::new("/")), None);
}

#[test]
fn each_thread_has_a_part_of_its_own() {
    let folder = folder();
    let storage = storage(folder.path(), "fio-3.33", "");
    let fio = storage.fio.as_ref().unwrap();
    let two = Load {
        cores: vec![3, 1],
        offset: 4096,
        ..load(Op::SeqWrite)
    };
    let said = fio.arguments(Path::new("/dev/disk/by-path/pci-0:1"), &two);
    let said: Vec<&str> = said.iter().filter_map(|word| word.to_str()).collect();
    for word in [
        "--filename=/dev/disk/by-path/pci-0\\:1",
        "--rw=write",
        "--bs=4096",
        "--iodepth=16",
        "--numjobs=2",
        "--size=2097152",
        "--offset=4096",
        "--offset_increment=2097152",
        "--cpus_allowed=3,1",
        "--direct=1",
    ] {
        assert!(said.contains(&word), "{word} of {said:?}");
    }
    assert_eq!(two.end(), 4096 + (4 << 20));
}

proptest! {
    #[test]
    fn anything_may_be_said(text in "(?s).{0,200}", path in "/.{0,40}", writes: bool) {
        let _ = place::kind_of(&text, Path::new(&path));
        let _ = fio::major(&text);
        let _ = running::counted(&text, writes);
        if let Some(line) = running::complaint(&text) {
            prop_assert!(!line.trim().is_empty() && text.contains(line));
        }
    }
}
