//! `weir place` on running processes: their objects, what moves, and a watch.

use std::io::BufRead as _;

use crate::common::Place;
use crate::place::can_place;
use serde_json::Value;

#[test]
fn objects_of_a_process_are_shown_and_what_cannot_move_is_refused() {
    let place = Place::new();
    let own = std::process::id();
    let shown = place
        .run(format!("place objects --pid {own} --format json"))
        .expect(0)
        .out();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let names: Vec<&str> = (shown["objects"].as_array().unwrap().iter())
        .map(|object| object["object"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"stack") && names.contains(&"anon"),
        "{names:?}"
    );
    for gone in [
        "place objects --pid 4194303",
        "place apply --pid 4194303 stack=dram",
        "place advise --pid 4194303 --for 1s",
    ] {
        place.run(gone).refuses(2, &["no process 4194303"]);
    }
    place
        .run(format!("place apply --pid {own} stack=cxl7"))
        .refuses(3, &["cxl7"]);
    for (arguments, said) in [
        (
            format!("place apply --pid {own} odd=dram"),
            "has no object `odd`",
        ),
        (format!("place apply --pid {own} stack"), "heap=cxl0"),
        (
            format!("place apply --pid {own} stack=dram stack=dram"),
            "`stack` is named twice",
        ),
        ("place restore missing.txt".into(), "missing.txt"),
    ] {
        place.run(&arguments).refuses(2, &[said]);
    }
    std::fs::write(
        place.path("odd.txt"),
        "weir place apply 1\nprocess 7 started x\n",
    )
    .unwrap();
    let odd = format!("place restore {}", place.path("odd.txt").display());
    place.run(&odd).refuses(2, &["line 2"]);
    place.file("empty.txt", "");
    place
        .run("place restore empty.txt")
        .refuses(2, &["before a page moved", "remove it"]);
}

/// A thread ends before its process, which would then seem to have ended.
#[test]
fn what_has_no_memory_of_its_own_is_no_process_to_move() {
    let place = Place::new();
    let own = std::process::id();
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap().to_str().unwrap().to_owned();
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", ended.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    for (process, said) in [
        (
            thread.as_str(),
            format!("{thread} is a thread of process {own}"),
        ),
        (&ended.id().to_string(), "no memory of its own".to_owned()),
    ] {
        for verb in ["objects", "apply stack=dram", "watch --for 1s --tier cxl0"] {
            let done = place.run(format!("place {verb} --pid {process}"));
            // Without a second tier nothing is watched.
            assert!(
                done.err().contains(&said) || verb.starts_with("watch") && done.code() == 3,
                "{verb}: {}",
                done.err()
            );
        }
    }
    ended.wait().unwrap();
}

/// Memory that `weir place` holds and does not touch: its process and the name of the object.
struct Held {
    child: std::process::Child,
    pid: u32,
    object: String,
}

impl Held {
    fn of(place: &Place) -> Self {
        let mut child = place.start("place --size 80M --hold 120");
        let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(" holds ") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0);
        }
        let word = |at: usize| line.split(' ').nth(at).unwrap();
        Self {
            pid: word(1).parse().unwrap(),
            object: format!(
                "anon-{}",
                line.split(" at ")
                    .nth(1)
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap()
            ),
            child,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_heat_of_what_is_to_move_is_an_average() {
    let place = Place::new();
    let touched = vec![1_u8; 80 << 20];
    let line = format!(
        "place advise --pid {} --for 1s --free 1%",
        std::process::id()
    );
    let done = place.run(&line);
    if done.code() != 3 {
        let said = done.expect(0).out().replace("\n  ", " ");
        assert!(said.contains("times a second on average"), "{said}");
    }
    drop(touched);
}

/// Advice for a process, and the object with this name.
fn live(place: &Place, pid: u32, named: &dyn Fn(&str) -> bool) -> Option<(Value, Value)> {
    let line = format!("place advise --pid {pid} --for 3s --interval 1s --format json");
    let done = place.run(&line);
    if done.code() == 3 {
        assert!(done.err().contains("nothing here sees"), "{}", done.err());
        return None;
    }
    let found = done.expect(0).json();
    let mut objects = found["objects"].as_array().unwrap().iter();
    let object = objects.find(|object| named(object["object"].as_str().unwrap()));
    let object = object.unwrap_or_else(|| panic!("{found}")).clone();
    Some((found, object))
}

#[test]
fn memory_that_is_not_touched_is_distinguished_from_memory_that_is() {
    let place = Place::new();
    if !can_place(&place) {
        return;
    }
    let held = Held::of(&place);
    let Some((advice, cold)) = live(&place, held.pid, &|name| name == held.object) else {
        return;
    };
    assert!(cold["heat"].as_f64() < Some(0.01), "{advice}");
    assert_eq!(cold["advice"], "move", "{advice}");
    let command = advice["command"].as_str().unwrap();
    assert!(
        command.contains(&format!("{}=cxl0", held.object)),
        "{command}"
    );
    assert!(advice["source"].is_string() && advice["unseen"].as_array().unwrap().len() >= 3);
    let more = format!("place advise --pid {} --for 1s --free 100G", held.pid);
    place.run(&more).refuses(2, &["less than the 100 GiB"]);

    // This process touches what it has, all the time.
    let mut hot = vec![1_u8; 80 << 20];
    let address = hot.as_ptr() as usize;
    let on = std::sync::atomic::AtomicBool::new(true);
    let hot_object = std::thread::scope(|scope| {
        scope.spawn(|| {
            while on.load(std::sync::atomic::Ordering::Relaxed) {
                hot.iter_mut()
                    .step_by(4096)
                    .for_each(|byte| *byte = byte.wrapping_add(1));
            }
        });
        let holds = |name: &str| {
            let start = name
                .strip_prefix("anon-")
                .and_then(|start| usize::from_str_radix(start, 16).ok());
            start.is_some_and(|start| start.abs_diff(address) < 80 << 20)
        };
        let found = live(&place, std::process::id(), &holds);
        on.store(false, std::sync::atomic::Ordering::Relaxed);
        found.unwrap().1
    });
    assert!(hot_object["heat"].as_f64() > Some(0.1), "{hot_object}");
    assert_eq!(hot_object["advice"], "stays");
}

#[test]
fn a_move_is_measured_before_and_after() {
    let place = Place::new();
    if !can_place(&place) {
        return;
    }
    let held = Held::of(&place);
    let apply = |more: &str| {
        let line = format!("place apply --pid {} {}=dram", held.pid, held.object);
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        words.extend(shell_words::split(more).unwrap());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        place.run(&words)
    };
    let undo = place.path(&format!("weir-place-{}.txt", held.pid));
    for (more, code, said) in [
        ("--measure 'echo 5'", 2, "--verify"),
        (
            "--verify --measure 'echo some'",
            2,
            "does not end with a number",
        ),
        ("--verify --measure 'exit 3'", 1, "exit status: 3"),
    ] {
        apply(more).refuses(code, &[said]);
        assert!(!undo.exists(), "{more} has moved");
    }
    // Each measurement is one more than the last, so that after the move all are higher.
    let measure = "--verify --repeats 3 --settle 1ms --format json --measure 'echo $WEIR_PID > pid; echo >> n; wc -l < n'";
    let found = apply(measure).expect(0).json();
    let verified = &found["verified"];
    assert_eq!(verified["before"], serde_json::json!([1.0, 2.0, 3.0]));
    assert_eq!(verified["after"], serde_json::json!([4.0, 5.0, 6.0]));
    assert_eq!(verified["change_pct"], 150.0);
    let text = std::fs::read_to_string(place.path("pid")).unwrap();
    assert_eq!(text.trim(), held.pid.to_string());
    let back = format!("place restore weir-place-{}.txt", held.pid);
    place.run(&back).expect(0);
    std::fs::remove_file(&undo).unwrap();
    let same = apply("--verify --repeats 3 --settle 1ms --measure 'echo 5'")
        .expect(0)
        .out();
    assert!(same.contains("no change that is more than noise"), "{same}");
}

#[test]
fn a_move_whose_pages_cannot_be_noted_leaves_no_note() {
    let place = Place::new();
    if !can_place(&place) {
        return;
    }
    let held = Held::of(&place);
    let line = format!("place apply --pid {} {}=dram", held.pid, held.object);
    let undo = place.path(&format!("weir-place-{}.txt", held.pid));
    let done = place.under_shell("ulimit -f 0", &line).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("cannot write"), "{said}");
    assert!(!undo.exists());
    place.run(&line).expect(0);
}

#[test]
fn a_watch_that_cannot_be_is_refused() {
    let place = Place::new();
    let own = std::process::id();
    for (line, code, said) in [
        ("--hot 0.1 --cold 0.2", 2, "--hot must be more than --cold"),
        ("--window 1ms", 2, "--window is from"),
        ("--free 0%", 2, "above 0 %"),
        ("--tier cxl7", 3, "cxl7"),
        ("--tier dram", 2, "dram"),
    ] {
        let line = format!("place watch --pid {own} {line}");
        place.run(&line).refuses(code, &[said]);
    }
    assert!(!place.path(&format!("weir-place-{own}.txt")).exists());
}
