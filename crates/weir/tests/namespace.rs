//! `weir namespace` as a process: a pool in a file, two hosts, and what each mistake says.

use std::process::Stdio;

use crate::common::{Place, Words};

fn run(place: &Place, host: &str, words: impl Words) -> crate::common::Done {
    let mut all = vec!["namespace".to_owned()];
    all.extend(words.words());
    let mut command = place.command(all);
    command.env("WEIR_HOST", host);
    crate::common::Done(command.output().unwrap())
}

fn pool() -> Place {
    let place = Place::new();
    run(
        &place,
        "a",
        "init pool --size 4MiB --hosts b --most-hosts 2 --room 32",
    )
    .expect(0);
    place
}

#[test]
fn a_namespace_is_made_filled_handed_over_and_scrubbed() {
    let place = pool();
    let json = run(
        &place,
        "a",
        "create pool n --size 100KiB --mode 640 --format json",
    )
    .expect(0)
    .json();
    assert_eq!(json["schema"], "weir/namespaces/1");
    let line = &json["namespaces"][0];
    assert_eq!(line["bytes"], 102_400);
    assert_eq!(
        (&line["mode"], &line["owner"]),
        (&"640".into(), &"a".into())
    );
    let fill = ["fill", "pool", "n", "--text", "of host a "];
    run(&place, "a", fill).expect(0);
    let text = ["verify", "pool", "n", "--text", "of host a "];
    run(&place, "a", text).expect(0);
    run(&place, "b", text).refuses(2, &["\"n\" is owned by host a, and host b may not open it"]);
    run(&place, "b", "destroy pool n").refuses(2, &["owned by host a"]);
    run(&place, "a", "hand-over pool n --to b").expect(0);
    run(&place, "a", text).refuses(2, &["owned by host b"]);
    run(&place, "b", text).expect(0);
    let moved = run(&place, "b", "resize pool n --size 200KiB")
        .expect(0)
        .out();
    assert!(moved.contains("resized in place: n"), "{moved}");
    run(&place, "b", "resize pool n --size 8KiB").expect(0);
    run(&place, "b", text).expect(0);
    let csv = run(&place, "b", "list pool --format csv").expect(0).out();
    assert_eq!(csv.lines().count(), 2, "{csv}");
    run(&place, "b", "destroy pool n").expect(0);
    let out = run(&place, "a", "verify pool").expect(0).out();
    assert!(
        out.contains("what is free is zero") && out.contains("hosts: a, b"),
        "{out}"
    );
    let bytes = std::fs::read(place.path("pool")).unwrap();
    assert!(!bytes.windows(9).any(|window| window == b"of host a"));
}

#[test]
fn a_named_pipe_is_no_pool_and_nothing_waits_for_its_writer() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for verb in ["list", "verify"] {
        let done = run(&place, "a", format!("{verb} pipe"));
        done.refuses(2, &["neither a file nor a DAX device"]);
    }
    let refused = |verb: &str| {
        let done = place.run(format!("{verb} --on emr2s"));
        done.refuses(2, &["on this host alone; remove `--on`"]);
    };
    refused("namespace list pipe");
    refused("pool status pipe");
}

#[test]
fn a_command_has_a_namespace_open_as_long_as_it_runs() {
    let place = pool();
    run(&place, "a", "create pool n --size 8KiB").expect(0);
    let script = "printf '%s %s ' $WEIR_NAMESPACE_OFFSET $WEIR_NAMESPACE_BYTES; \
                  printf hello | dd of=$WEIR_NAMESPACE_FILE bs=1 seek=$WEIR_NAMESPACE_OFFSET conv=notrunc 2>&-; exit 7";
    let words = ["run", "pool", "n", "--", "sh", "-c", script];
    let done = run(&place, "a", words).expect(7);
    assert!(done.out().trim_end().ends_with(" 8192"), "{}", done.out());
    let text = run(&place, "a", ["verify", "pool", "n", "--text", "hello"]);
    text.refuses(4, &["byte 5 of n is 0x00, and 0x68 with that text"]);
    let mut command = place.command("namespace run pool n -- cat");
    let mut child = command
        .env("WEIR_HOST", "a")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let held = || {
        let json = run(&place, "a", "list pool n --format json")
            .expect(0)
            .json();
        json["handles"].as_array().unwrap().len()
    };
    while held() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = child.id().to_string();
    run(&place, "a", "destroy pool n").refuses(1, &["\"n\" is in use by process ", &pid]);
    child.kill().unwrap();
    child.wait().unwrap();
    run(&place, "a", "destroy pool n").expect(0);
}

#[test]
fn what_was_kept_for_a_process_is_released_by_gc() {
    let place = pool();
    let mut child = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let create = format!("create pool n --size 8KiB --while {}", child.id());
    run(&place, "a", create.as_str()).expect(0);
    let out = run(&place, "a", "gc pool").expect(0).out();
    assert!(
        out.contains("0 handles of dead processes dropped, 0 B scrubbed"),
        "{out}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let out = run(&place, "a", "gc pool").expect(0).out();
    assert!(
        out.contains("released n") && out.contains("8 KiB scrubbed"),
        "{out}"
    );
    run(&place, "a", "create pool m --size 8KiB --lease 1000s").expect(0);
    run(&place, "a", "change pool m --keep").expect(0);
    run(&place, "a", "gc pool").expect(0);
    run(&place, "a", "destroy pool m").expect(0);
}

#[test]
fn wrong_requests_say_what_to_do() {
    let place = pool();
    place.file("other", [7; 1 << 16]);
    // Its head is zero, as that of a pool which was never made.
    let zeros = [vec![0; 1 << 15], vec![7; 1 << 15]].concat();
    place.file("zeros", &zeros);
    run(&place, "a", "create pool n --size 8KiB").expect(0);
    for (words, code, said) in [
        (
            "init pool",
            2,
            "it is a pool already, whose namespaces would be lost; --force makes it anew",
        ),
        ("init small --size 8KiB", 2, "small cannot become a pool"),
        ("init small --size 1KiB", 2, "so that it needs "),
        ("init small --size 0MiB", 2, "so that it needs "),
        ("init zeros --size 8KiB", 2, "so that it needs "),
        (
            "init large --size 100TiB",
            1,
            "cannot allocate the blocks of large",
        ),
        (
            "init /dev/weir-nothing --size 4MiB",
            2,
            "there is no such device",
        ),
        ("init p --size 4MiB --lease 0s", 2, "--lease is 0 s"),
        (
            "init p --size 4MiB --hosts a/b",
            2,
            "the host \"a/b\" cannot be",
        ),
        ("init p --size 4MiB --unit 5KiB", 2, "its unit is 5120"),
        ("list nothing", 2, "cannot open nothing"),
        ("list other", 2, "other has no pool of namespaces"),
        ("list pool x", 2, "there is no namespace \"x\" in pool"),
        (
            "create pool n --size 8KiB",
            2,
            "has a namespace \"n\" already, of host a",
        ),
        ("create pool m --size 8GiB", 1, "the largest has "),
        ("create pool m --size 0B", 2, "cannot have 0 bytes"),
        (
            "create pool m --size 8KiB --mode 999",
            2,
            "must be 0 to 777 in octal",
        ),
        (
            "create pool m --size 8KiB --align 5000B",
            2,
            "alignment 5000",
        ),
        ("create pool m --size 8KiB --hosts c", 2, "it admits a, b"),
        (
            "create pool m/n --size 8KiB",
            2,
            "the name \"m/n\" cannot be",
        ),
        ("change pool n", 2, "nothing is to be changed: name --mode"),
        ("hand-over pool n --to c", 2, "does not admit a host \"c\""),
        ("admit pool c", 1, "room for 2 hosts"),
        ("run pool n -- /no/program", 2, "cannot start /no/program"),
        ("fill pool x --text y", 2, "there is no namespace \"x\""),
    ] {
        run(&place, "a", words).refuses(code, &[said]);
    }
    for name in ["large", "small"] {
        assert!(!place.path(name).exists(), "nothing of {name} is left");
    }
    assert_eq!(std::fs::read(place.path("zeros")).unwrap(), zeros);
    run(&place, "c", "gc pool").refuses(2, &["does not admit a host \"c\"; it admits a, b"]);
    run(&place, "no name", "gc pool").refuses(2, &["name this host with --host"]);
    let mut bytes = std::fs::read(place.path("pool")).unwrap();
    bytes[40] ^= 1;
    place.file("pool", &bytes);
    run(&place, "a", "list pool").refuses(2, &["the checksum of its header is wrong"]);
}
