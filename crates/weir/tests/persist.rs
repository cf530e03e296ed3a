//! `weir persist check` as a process: answers, exit codes, commands that check states, wrong traces.

use crate::common::{Place, text};

/// A flag that is published before its data is flushed, or after.
fn publish(flush: &str) -> String {
    format!(
        "weir-persist 1\npool 256\nrequire data 0=01 -> 64=2a\nstore 64 2a @list.c:10\n{flush}store 0 01 @list.c:12\n\
         flush 0\nfence\n"
    )
}

const FLUSH: &str = "flush 64 @list.c:11\nfence\n";

#[test]
fn the_answer_comes_first_and_the_exit_code_says_it() {
    let place = Place::new();
    place.file("good.trace", publish(FLUSH));
    // Comments may be before everything, as in the documentation.
    place.file("bad.trace", format!("# bad.trace\n\n{}", publish("")));
    let good = place.run("persist check good.trace").expect(0).out();
    assert!(good.starts_with("consistent: "), "{good}");
    let bad = place.run("persist check bad.trace").expect(4);
    let words = "not consistent: a crash after list.c:12, without list.c:10, leaves an illegal";
    assert!(bad.out().starts_with(words), "{}", bad.out());
    assert!(bad.out().lines().all(|line| line.chars().count() <= 80));
    // What was kept is shown as it was printed.
    let shown = place.run("runs show last").expect(0).out();
    assert!(shown.ends_with(&bad.out()), "{shown}");
    let few = place.run("persist check bad.trace --states 1");
    let few = few.expect(0).out();
    assert!(
        few.contains("! not all states: of 1 crash point some"),
        "{few}"
    );
    // Caches that are kept need no flush.
    for platform in ["eadr", "flush-on-fail"] {
        let asked = format!("persist check bad.trace --platform {platform}");
        place.run(asked.as_str()).expect(0);
    }
    let asked = "persist check bad.trace --platform flush-on-fail-incomplete --format json";
    let found = place.run(asked).expect(4).json();
    assert_eq!(found["schema"], "weir/persist-check/1");
    assert_eq!(
        (&found["consistent"], &found["crash_after"]),
        (&false.into(), &"list.c:12".into())
    );
    let stores = found["stores"].as_array().unwrap();
    assert_eq!((stores.len(), &stores[0]["arrived"]), (2, &false.into()));
}

#[test]
fn a_check_that_the_user_stops_finds_nothing_illegal() {
    let place = Place::new();
    place.file("good.trace", publish(FLUSH));
    place.file("recover", "kill -INT $PPID; sleep 2; exit 1\n");
    let asked = ["persist", "check", "good.trace", "--check", "sh ./recover"];
    place.run(&asked[..]).refuses(1, &["stopped"]);
    assert!(place.run("runs list").expect(0).out().is_empty());
    // One that prints for ever is ended, too.
    let asked = "persist check good.trace --check yes";
    place
        .run(asked)
        .refuses(2, &["`yes`", "prints more than 64 MiB"]);
}

#[test]
fn a_command_checks_each_image_once_and_what_it_did_not_see_is_said() {
    let place = Place::new();
    let trace = publish(FLUSH).replace("require data 0=01 -> 64=2a\n", "");
    place.file("plain.trace", &trace);
    place.file(
        "bad.trace",
        publish("").replace("require data 0=01 -> 64=2a\n", ""),
    );
    // Bytes of the flag and of the data, which must not be `01 00`.
    place.file(
        "recover",
        "od -An -tx1 -j0 -N1 $1 > flag; od -An -tx1 -j64 -N1 $1 > data; echo run >> runs\n\
         if grep -q 01 flag && ! grep -q 2a data; then echo no data; exit 1; fi\n",
    );
    let command = |file: &'static str| ["persist", "check", file, "--check", "sh ./recover"];
    let consistent = place.run(&command("plain.trace")[..]).expect(0).out();
    assert!(!consistent.contains("not all images"), "{consistent}");
    // Empty, data, both: the state of the first fence is also one of the second crash point.
    assert_eq!(text(&place.path("runs")).lines().count(), 3);
    let bad = place.run(&command("bad.trace")[..]).expect(4).out();
    assert!(bad.contains("no data"), "{bad}");
    // A fence behind the counter-example was not looked at.
    assert!(!bad.contains("no fence"), "{bad}");
    let few = [&command("plain.trace")[..], &["--images", "2"]].concat();
    let few = place.run(&few[..]).expect(0).out();
    assert!(few.contains("! not all images: 1"), "{few}");
    let words = "nothing illegal was found: not every state was looked at; ";
    assert!(few.starts_with(words), "{few}");
    place
        .run("persist check plain.trace --check true --on emr2s")
        .refuses(2, &["--on emr2s would change nothing"]);
    let none = ["persist", "check", "plain.trace", "--check", "false"];
    let none = place.run(&none[..]).expect(4).out();
    assert!(
        none.contains("a crash after the begin of the trace"),
        "{none}"
    );
    let sync = [
        "persist",
        "check",
        "plain.trace",
        "--check",
        "true",
        "--platform",
    ];
    for platform in ["page-cache", "device-buffer"] {
        let all = place
            .run(&[&sync[..], &[platform]].concat()[..])
            .expect(0)
            .out();
        assert!(all.contains("! no sync: "), "{all}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    place.file("good.trace", publish(FLUSH));
    place.file("cut.trace", publish(FLUSH).trim_end());
    place.file("unknown.trace", publish("movnt 3\n"));
    place.file("outside.trace", publish("store 250 0011223344556677\n"));
    place.file("hosts.trace", publish("by 1\n"));
    place.file("free.trace", "weir-persist 1\npool 64\nstore 0 01\n");
    for (asked, words) in [
        (
            "good.trace --platform shared-pool --failure power",
            "keeps nothing when power fails",
        ),
        ("good.trace --failure host", "of one host"),
        ("good.trace --check true --images 0", "--images"),
        (
            "good.trace --volatile 0+257",
            "--volatile 0+257: the pool of good.trace has 256 bytes",
        ),
        ("good.trace --volatile 8+0", "OFFSET+BYTES"),
        (
            "good.trace --volatile 0+4",
            "--volatile 0+4: `require data` in line 3 of good.trace reads bytes of it",
        ),
        ("good.trace --check ./missing", "cannot be run"),
        ("cut.trace", "line 9: the trace ends within this line"),
        ("unknown.trace", "line 5: `movnt 3` is no event"),
        (
            "outside.trace",
            "line 5: 8 bytes at 250 are not in the pool of 256 bytes",
        ),
        ("hosts.trace", "line 5: adr has one host"),
        ("free.trace", "nothing says which states are legal"),
        ("none.trace", "cannot read the trace"),
    ] {
        place
            .run(format!("persist check {asked}").as_str())
            .refuses(2, &[words]);
    }
}
