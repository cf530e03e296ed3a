//! The generator against servers of ours: one that is right, and others that are wrong in one way.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use weir_model::units::Nanos;

use super::client::{Client, Drive, Seen};
use super::keys::Keys;
use super::mix::{Mix, Shares};
use super::protocol::Protocol;
use super::{Trouble, values};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// It answers some writes and does not carry them out.
    LosesWrites,
    /// It damages some values.
    Damages,
    /// It answers with the value of another key.
    Confuses,
    /// It answers nothing for a while.
    Stalls(Duration),
    /// It ends after this many commands.
    Dies,
}

type Data = Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>;

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The words of the first command, and its bytes.
fn command(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let line = |from: usize| {
        let length = bytes
            .get(from..)?
            .windows(2)
            .position(|two| two == b"\r\n")?;
        Some((&bytes[from + 1..from + length], from + length + 2))
    };
    let (count, mut at) = line(0)?;
    let mut words = Vec::new();
    for _ in 0..number(count)? {
        let (length, from) = line(at)?;
        let to = from + number(length)?;
        bytes.get(..to + 2)?;
        words.push(bytes[from..to].to_vec());
        at = to + 2;
    }
    Some((words, at))
}

fn serve(mut stream: UnixStream, data: &Data, fault: Fault, records: usize) {
    let (mut bytes, mut chunk, mut seen) = (Vec::new(), [0; 65536], 0);
    while let Ok(read @ 1..) = stream.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..read]);
        let mut out = Vec::new();
        while let Some((words, used)) = command(&bytes) {
            bytes.drain(..used);
            seen += 1;
            let loaded = seen > records;
            if loaded && seen == records + 50 {
                match fault {
                    Fault::Stalls(time) => thread::sleep(time),
                    Fault::Dies => return,
                    _ => {}
                }
            }
            let odd = loaded && seen % 7 == 0;
            let mut data = data.lock().unwrap_or_else(PoisonError::into_inner);
            match words.as_slice() {
                [_, key, value] => {
                    if !(odd && fault == Fault::LosesWrites) {
                        data.insert(key.clone(), value.clone());
                    }
                    out.extend_from_slice(b"+OK\r\n");
                }
                [_, key] => {
                    let other = values::name(0).into_bytes();
                    let key = if odd && fault == Fault::Confuses {
                        &other
                    } else {
                        key
                    };
                    let Some(mut value) = data.get(key).cloned() else {
                        out.extend_from_slice(b"$-1\r\n");
                        continue;
                    };
                    if odd && fault == Fault::Damages {
                        value[20] ^= 4;
                    }
                    out.extend(format!("${}\r\n", value.len()).bytes());
                    out.extend(value);
                    out.extend_from_slice(b"\r\n");
                }
                // Names are in the order of their numbers, so that it needs no set of them.
                [_, _, _, _] => out.extend_from_slice(b":1\r\n"),
                [_, _, from, .., most] => {
                    let from = values::name(number(from).unwrap() as u64).into_bytes();
                    let found = data.range(from..).take(number(most).unwrap());
                    let found: Vec<&Vec<u8>> = found.map(|(name, _)| name).collect();
                    out.extend(format!("*{}\r\n", found.len()).bytes());
                    for name in found {
                        out.extend(format!("${}\r\n", name.len()).bytes());
                        out.extend(name);
                        out.extend_from_slice(b"\r\n");
                    }
                }
                _ => {}
            }
        }
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

fn drive(fault: Fault, connections: usize, rate: Option<f64>) -> Result<Seen, Trouble> {
    drive_for("a", fault, connections, rate)
}

fn drive_for(
    variant: &str,
    fault: Fault,
    connections: usize,
    rate: Option<f64>,
) -> Result<Seen, Trouble> {
    drive_until(&|| false, variant, fault, connections, rate)
}

fn drive_until(
    stop: &dyn Fn() -> bool,
    variant: &str,
    fault: Fault,
    connections: usize,
    rate: Option<f64>,
) -> Result<Seen, Trouble> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let data = Data::default();
    let records = 64;
    let (shares, popular) = Shares::of(variant, 0.0);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let data = data.clone();
            thread::spawn(move || serve(stream, &data, fault, records / connections));
        }
    });
    let mix = Mix {
        records: records as u64,
        value: 100,
        shares,
        keys: Keys::new(popular, records as u64, 0.99),
    };
    let mut client = Client::connect(Protocol::Resp, &socket, connections, mix, 1)?;
    client.load(&|| false)?;
    let drive = Drive {
        rate,
        warm_up: Duration::ZERO,
        length: Duration::from_millis(600),
    };
    client.drive(&drive, stop)
}

#[test]
fn a_right_server_has_no_wrong_answer() {
    let all = ["a", "b", "c", "d", "e", "f"];
    for (variant, rate) in all
        .into_iter()
        .flat_map(|one| [(one, None), (one, Some(500.0))])
    {
        let seen = drive_for(variant, Fault::None, 4, rate).unwrap();
        assert_eq!(
            (seen.wrong, seen.unanswered),
            (0, 0),
            "{:?}",
            seen.first_wrong
        );
        assert!(seen.answered > 0 && seen.answered <= seen.offered);
        assert_eq!(
            seen.latency.len(),
            seen.offered,
            "every request that was due has a latency"
        );
    }
}

#[test]
fn a_server_that_is_wrong_is_seen() {
    for (fault, word) in [
        (Fault::LosesWrites, "version"),
        (Fault::Damages, "damaged"),
        (Fault::Confuses, "has the value of"),
    ] {
        let seen = drive(fault, 1, None).unwrap();
        let first = seen.first_wrong.unwrap();
        assert!(seen.wrong > 0 && first.contains(word), "{fault:?}: {first}");
    }
}

/// In an open loop, requests that are due while the server stalls wait as long as it does: those of the first half of the
/// stall, longer than half of it. A generator that waited for an answer before it sent the next would see one of them.
#[test]
fn a_stall_is_in_the_latency_of_all_that_was_due_meanwhile() {
    let stall = Duration::from_millis(400);
    let seen = drive(Fault::Stalls(stall), 1, Some(2000.0)).unwrap();
    let half = Nanos(stall.as_secs_f64() * 1e9 / 2.0);
    let long: u64 = (seen.latency.buckets().iter())
        .filter(|(latency, _)| *latency > half)
        .map(|(_, count)| count)
        .sum();
    // 400 were due; their number is drawn.
    assert!(long > 300, "{long} of {}", seen.latency.len());
    assert_eq!(seen.wrong, 0);
}

#[test]
fn a_generator_that_is_held_itself_knows_for_how_long() {
    let (held, once) = (Duration::from_millis(250), std::cell::Cell::new(true));
    let hold = || {
        if once.replace(false) {
            std::thread::sleep(held);
        }
        false
    };
    let seen = drive_until(&hold, "a", Fault::None, 1, None).unwrap();
    assert!(seen.held >= held, "{:?}", seen.held);
}

#[test]
fn a_server_that_ends_is_an_error() {
    let why = drive(Fault::Dies, 2, Some(3000.0)).unwrap_err();
    assert!(why.to_string().contains("ended during the run"), "{why}");
    let stopped = Client::connect(
        Protocol::Resp,
        std::path::Path::new("/nothing"),
        1,
        Mix {
            records: 2,
            value: 30,
            shares: Shares::default(),
            keys: Keys::new(super::keys::Popular::Newest, 2, 0.5),
        },
        1,
    );
    assert!(stopped.is_err());
}
