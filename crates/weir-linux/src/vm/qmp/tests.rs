//! A QEMU that is wrong in one way.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixListener;

use super::*;

const GREETING: &str = r#"{"QMP": {"version": {}, "capabilities": ["oob"]}}"#;
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(30);

/// Serves one client with lines: those before the first `?` at once, those after each `?` when a command has come.
/// `ID` is the number of the last command. At the end the connection is closed, unless the last line is `...`.
struct Fake {
    _folder: tempfile::TempDir,
    socket: PathBuf,
}

fn fake(lines: &'static [&'static str]) -> Fake {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("qmp");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut commands = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut id = Value::Null;
        for line in lines {
            match *line {
                "?" => {
                    let Some(Ok(command)) = commands.next() else {
                        return;
                    };
                    id = serde_json::from_str::<Value>(&command).unwrap()["id"].clone();
                }
                "..." => thread::sleep(LONG),
                line => {
                    let line = line.replace("ID", &id.to_string());
                    let _ = stream.write_all(line.as_bytes());
                    let _ = stream.write_all(b"\r\n");
                }
            }
        }
    });
    Fake {
        _folder: folder,
        socket,
    }
}

const READY: &str = r#"{"return": {}, "id": ID}"#;

#[test]
fn an_answer_is_found_between_events_and_the_events_are_kept() {
    let fake = fake(&[
        GREETING,
        "?",
        READY,
        "?",
        r#"{"event": "STOP", "data": {"a": 1}, "timestamp": {}}"#,
        r#"{"return": {"of": "an earlier command"}, "id": 1}"#,
        r#"{"return": {"n": 3}, "id": ID}"#,
        r#"{"event": "RESUME"}"#,
        "...",
    ]);
    let mut qmp = Qmp::connect(&fake.socket, LONG).unwrap();
    assert_eq!(qmp.process().unwrap().pid, std::process::id());
    let answer = qmp.execute("query-something", json!({ "x": 1 })).unwrap();
    assert_eq!(answer, json!({ "n": 3 }));
    let until = Instant::now() + LONG;
    let stop = qmp.event(until).unwrap().unwrap();
    assert_eq!((stop.name.as_str(), stop.data), ("STOP", json!({ "a": 1 })));
    assert_eq!(qmp.event(until).unwrap().unwrap().name, "RESUME");
    let none = qmp.event(Instant::now() + SHORT).unwrap();
    assert_eq!(none, None);
}

#[test]
fn a_line_may_come_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("qmp");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let text = format!("{GREETING}\n\n{{\"return\": {{}}, \"id\": 1}}\n");
        for piece in text.as_bytes().chunks(7) {
            stream.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(LONG);
    });
    Qmp::connect(&socket, LONG).unwrap();
}

#[test]
fn a_refusal_has_the_class_and_the_words_of_qemu() {
    let fake = fake(&[
        GREETING,
        "?",
        READY,
        "?",
        r#"{"error": {"class": "DeviceNotFound", "desc": "Device 'x' not found"}, "id": ID}"#,
        "...",
    ]);
    let mut qmp = Qmp::connect(&fake.socket, LONG).unwrap();
    let error = qmp.execute("device_del", json!({ "id": "x" })).unwrap_err();
    let message = error.to_string();
    assert!(
        message.ends_with("refuses device_del: Device 'x' not found (DeviceNotFound)"),
        "{message}"
    );
    assert!(
        message.contains(&fake.socket.display().to_string()),
        "{message}"
    );
}

#[test]
fn what_is_silent_or_gone_is_not_waited_for() {
    let silent = fake(&["..."]);
    let error = Qmp::connect(&silent.socket, SHORT).unwrap_err();
    assert!(matches!(error, QmpError::Silent { .. }), "{error}");
    let halfway = fake(&[GREETING, "?", READY, "?", "..."]);
    let mut qmp = Qmp::connect(&halfway.socket, SHORT).unwrap();
    let error = qmp.execute("query-status", json!({})).unwrap_err();
    assert!(
        matches!(&error, QmpError::Silent { waiting_for, .. } if waiting_for == "query-status"),
        "{error}"
    );
    let gone = fake(&[GREETING, "?", READY, "?"]);
    let mut qmp = Qmp::connect(&gone.socket, LONG).unwrap();
    let error = qmp.execute("query-status", json!({})).unwrap_err();
    assert!(matches!(error, QmpError::Gone { .. }), "{error}");
    let error = qmp.event(Instant::now() + LONG).unwrap_err();
    assert!(matches!(error, QmpError::Gone { .. }), "{error}");
}

#[test]
fn what_is_not_qemu_is_named_with_what_it_sent() {
    for said in ["SSH-2.0-OpenSSH_9.2", "[1]", r#"{"hello":1}"#] {
        let lines: &'static [&'static str] = Box::leak(vec![said, "..."].into_boxed_slice());
        let fake = fake(lines);
        let error = Qmp::connect(&fake.socket, LONG).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("is not a QMP socket"), "{message}");
        assert!(message.contains(said), "{message}");
    }
    let error = Qmp::connect(Path::new("/nowhere/qmp"), LONG).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("-qmp unix:/nowhere/qmp"), "{message}");
}

/// A client that has connected keeps QEMU from answering the next ones; the kernel queues a few of them.
#[test]
fn a_qemu_with_another_client_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("qmp");
    let _listener = UnixListener::bind(&socket).unwrap();
    let error = Qmp::connect(&socket, SHORT).unwrap_err();
    assert!(
        error.to_string().contains("one client at a time"),
        "{error}"
    );
}
