//! `weir pool` as a process: pools on disk, VMs of a fake QEMU, and what each mistake says.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::common::qemu::{Manner, qemu};
use crate::common::{Place, signal, text};

const MIB: u64 = 1 << 20;

fn stages(place: &Place) -> String {
    let json = place.run("pool status pool --format json").expect(0).json();
    let slices = json["slices"].as_array().unwrap().iter();
    let stages: Vec<&str> = slices.map(|s| s["stage"].as_str().unwrap()).collect();
    stages.join(" ")
}

fn pool(manner: Manner) -> Place {
    let place = Place::new();
    place
        .run("pool create pool --size 4MiB --slice 1MiB")
        .expect(0);
    qemu(&place, manner);
    place
}

fn write(file: &Path, slice: u64) {
    let file = std::fs::File::options().write(true).open(file).unwrap();
    file.write_all_at(&[7; 1 << 20], slice * MIB).unwrap();
}

#[test]
fn slices_are_added_released_and_zero_again() {
    let place = pool(Manner::Willing);
    let json = place
        .run("pool add pool --vm vm.qmp --slices 3 --node 1 --format json")
        .expect(0)
        .json();
    assert_eq!(json["schema"], "weir/pool/1");
    assert_eq!(json["did"].as_array().unwrap().len(), 3);
    assert_eq!(json["slices"][2]["node"], 1);
    assert_eq!(json["slices"][2]["runs"], true);
    assert_eq!(json["slices"][2]["pid"], std::process::id());
    assert_eq!(stages(&place), "owned owned owned free");
    for slice in 0..3 {
        write(&place.path("pool"), slice);
    }
    let table = place
        .run("pool release pool --vm vm.qmp --slices 2")
        .expect(0)
        .out();
    assert!(
        table.contains("4 slices of 1 MiB, 3 free, 1 owned"),
        "{table}"
    );
    assert_eq!(stages(&place), "owned free free free");
    let bytes = std::fs::read(place.path("pool")).unwrap();
    assert!(bytes[..1 << 20].iter().all(|&byte| byte == 7));
    assert!(bytes[1 << 20..].iter().all(|&byte| byte == 0));
    // The node of the slices that it has.
    place.run("pool add pool --vm vm.qmp").expect(0);
    let csv = place.run("pool status pool --format csv").expect(0).out();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let json = place.run("pool status pool --format json").expect(0).json();
    assert_eq!(json["slices"][1]["node"], 1);
    place
        .run("pool release pool --vm vm.qmp --slice 0")
        .expect(0);
    assert_eq!(stages(&place), "free owned free free");
}

#[test]
fn a_guest_that_does_not_return_a_slice_keeps_it() {
    for (manner, why) in [
        (Manner::Refuses, "in use and cannot be moved"),
        (
            Manner::UnplugError,
            "the guest does not return it: it is in use",
        ),
        (Manner::Mute, "has not answered within"),
    ] {
        let place = pool(manner);
        place.run("pool add pool --vm vm.qmp").expect(0);
        write(&place.path("pool"), 0);
        let done = place.run("pool release pool --vm vm.qmp --limit 200ms");
        let said = done.expect(1).err();
        assert!(said.contains(why), "{said}");
        assert!(said.contains("0 of 1 slice came back from"), "{said}");
        assert_eq!(stages(&place), "owned free free free");
        let bytes = std::fs::read(place.path("pool")).unwrap();
        assert_eq!(bytes[0], 7, "it is not scrubbed");
    }
}

#[test]
fn a_socket_behind_which_there_is_no_willing_qemu_is_named() {
    let add = "pool add pool --vm vm.qmp --limit 200ms";
    for (manner, code, why) in [
        (
            Manner::Silent,
            1,
            "has not answered the connection within 0.2 s",
        ),
        (
            Manner::Other,
            2,
            "is not a QMP socket of QEMU: it sent `220 mail.example.org ESMTP`",
        ),
        (Manner::Drops, 1, "ended before it answered device_add"),
    ] {
        let place = pool(manner);
        let said = place.run(add).expect(code).err();
        assert!(said.contains(why), "{said}");
        assert!(said.contains("vm.qmp"), "{said}");
    }
    let place = Place::new();
    place
        .run("pool create pool --size 4MiB --slice 1MiB")
        .expect(0);
    let said = place.run(add).expect(2).err();
    assert!(said.contains("cannot connect to"), "{said}");
    assert!(said.contains("-qmp unix:"), "{said}");
    assert_eq!(stages(&place), "free free free free");
}

#[test]
fn a_slice_of_a_qemu_that_dropped_the_connection_is_settled_later() {
    let place = pool(Manner::Drops);
    place
        .run("pool add pool --vm vm.qmp --limit 200ms")
        .expect(1);
    // It is unknown whether the guest has it.
    assert_eq!(stages(&place), "adding free free free");
    let said = place.run("pool recover pool --limit 200ms").expect(1).err();
    assert!(said.contains("slice 0: "), "{said}");
    assert!(said.contains("steps of 1 slice are unfinished"), "{said}");
}

#[test]
fn wrong_requests_say_what_to_do() {
    let place = pool(Manner::Willing);
    for (words, said) in [
        (
            "create pool --size 4MiB --slice 1MiB",
            "is the table of a pool",
        ),
        (
            "create p --size 4MiB --slice 1000B",
            "--slice is 1000 B; it must be a multiple of 1 MiB",
        ),
        (
            "create p --size 4500KiB --slice 1MiB",
            "--size is 4.4 MiB; it must be 1 to",
        ),
        (
            "create /dev/null --scrub",
            "the table of a device must not be next to it",
        ),
        ("status nothing", "cannot open the pool nothing"),
        ("status .", "cannot open the pool ."),
        ("add pool --vm vm.qmp --slices 0", "--slices is 0"),
        (
            "release pool --vm vm.qmp",
            "has 0 slices; 1 cannot be taken back",
        ),
        (
            "release pool --vm vm.qmp --slice 9",
            "does not have slice 9",
        ),
        ("add pool --vm vm.qmp --limit 0s", "--limit is 0 s"),
        (
            "arguments --memory 1GiB --untouched 40",
            "it needs its unit, such as 40%",
        ),
        ("arguments --memory 1GiB --pool 1GiB", "leaves none next to"),
        (
            "start pool --vm b.qmp --memory 8MiB --pool 2MiB -- /no/qemu",
            "cannot start /no/qemu: No such file",
        ),
    ] {
        let message = place.run(format!("pool {words}").as_str()).expect(2).err();
        assert!(message.contains(said), "{words}:\n{message}");
    }
    // Slices of 1 GiB are too large for what is untouched of so small a guest.
    let ran = place
        .run("pool arguments --memory 512MiB --untouched 40%")
        .expect(0);
    assert!(
        ran.err().contains("less than a slice of 1 GiB"),
        "{}",
        ran.err()
    );
    // What a guest that did not start was permitted is free again.
    assert_eq!(stages(&place), "free free free free");
    let message = place
        .run("pool add pool --vm vm.qmp --slices 5")
        .expect(1)
        .err();
    assert!(
        message.contains("the request is for 5 slices, and 4 of 4 are free"),
        "{message}"
    );
}

#[test]
fn a_damaged_table_is_refused_and_the_pool_can_be_made_anew() {
    let place = pool(Manner::Willing);
    place.run("pool add pool --vm vm.qmp").expect(0);
    let table = place.path("pool.slices");
    let good = text(&table);
    for (bad, why) in [
        (good[..good.len() / 2].to_owned(), "is damaged: EOF"),
        (
            good.replace("pool-table/1", "pool-table/9"),
            "this version reads weir/pool-table/1",
        ),
        (
            good.replace("\"owned\"", "\"free\""),
            "one that is free has one",
        ),
        (
            good.replace("1048576", "2097152"),
            "it has 4 slices of 2 MiB",
        ),
        (good.replace("1048576", "0"), "a slice has 0 bytes"),
    ] {
        assert_ne!(bad, good);
        std::fs::write(&table, bad).unwrap();
        let message = place.run("pool add pool --vm vm.qmp").expect(2).err();
        assert!(message.contains(why), "{message}");
        assert!(message.contains("pool.slices"), "{message}");
    }
    write(&place.path("pool"), 3);
    place.run("pool create pool --slice 1MiB --scrub").expect(0);
    assert_eq!(stages(&place), "free free free free");
    assert!(
        std::fs::read(place.path("pool"))
            .unwrap()
            .iter()
            .all(|&byte| byte == 0)
    );
    std::fs::remove_file(&table).unwrap();
    let message = place.run("pool status pool").expect(2).err();
    assert!(
        message.contains("is no pool: there is no table"),
        "{message}"
    );
}

/// The process that starts a guest becomes it, so that its slices are its own as long as it runs, and come back after.
#[test]
fn a_started_program_has_its_slices_until_it_ends() {
    let place = Place::new();
    place
        .run("pool create pool --size 4MiB --slice 1MiB")
        .expect(0);
    let script = "echo \"$@\" > words; mv words said; read _";
    let mut command = place.command(vec![
        "pool",
        "start",
        "pool",
        "--vm",
        "a.qmp",
        "--memory",
        "8MiB",
        "--untouched",
        "30%",
        "--room",
        "1",
        "--",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let said = place.path("said");
    while !said.exists() {
        thread::sleep(Duration::from_millis(10));
    }
    let words = text(&said);
    assert!(
        words.starts_with("-m 6M,slots=3,maxmem=9M -smp 1 "),
        "{words}"
    );
    assert!(
        words.contains("memory-backend-file,id=weir-slice-1,mem-path=/"),
        "{words}"
    );
    assert!(words.contains(",size=1048576,offset=1048576,share=on -device pc-dimm,id=weir-dimm-1,memdev=weir-slice-1,node=1"), "{words}");
    assert!(
        words.trim_end().ends_with("a.qmp,server=on,wait=off"),
        "{words}"
    );
    let json = place.run("pool status pool --format json").expect(0).json();
    assert_eq!(json["slices"][0]["pid"], child.id());
    assert_eq!(json["slices"][0]["runs"], true);
    // It does not answer yet, and keeps what it has.
    place.run("pool recover pool").expect(1);
    assert_eq!(stages(&place), "adding adding free free");
    write(&place.path("pool"), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let table = place.run("pool status pool").expect(0).out();
    assert!(table.contains("(ended)"), "{table}");
    place.run("pool recover pool").expect(0);
    assert_eq!(stages(&place), "free free free free");
    assert!(
        std::fs::read(place.path("pool"))
            .unwrap()
            .iter()
            .all(|&byte| byte == 0)
    );
}

#[test]
fn two_managers_are_not_at_work_at_once() {
    let place = pool(Manner::Mute);
    place.run("pool add pool --vm vm.qmp").expect(0);
    let first = place.start("pool release pool --vm vm.qmp --limit 20s");
    while stages(&place) != "releasing free free free" {
        thread::sleep(Duration::from_millis(5));
    }
    let message = place.run("pool recover pool").expect(1).err();
    assert!(
        message.contains("another weir is changing the pool"),
        "{message}"
    );
    // Ctrl-C leaves what the next one finishes.
    signal(&first, "INT");
    let ended = first.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("`weir pool recover` finishes it"), "{said}");
    assert_eq!(stages(&place), "releasing free free free");
    place.run("pool recover pool --limit 100ms").expect(0);
    assert_eq!(stages(&place), "owned free free free");
}
