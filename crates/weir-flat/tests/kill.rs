//! Processes that are killed while they write and flush: every file has one version, and none older than what was
//! acknowledged.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use weir_flat::{FlatError, Options, Store};

const FILES: u64 = 6;
const BYTES: usize = 192 << 10;

fn options() -> Options {
    Options {
        create: Some(8 << 20),
        cache: 4 << 20,
        flush_every: Some(Duration::from_millis(1)),
        huge: false,
        ..Options::default()
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The program that is killed; as a test it does nothing.
#[test]
fn writer() {
    let Ok(path) = std::env::var("WEIR_FLAT_WRITER") else {
        return;
    };
    let (path, first) = path.split_once('@').unwrap();
    let mut version: u64 = first.parse().unwrap();
    let mut state = version.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let store = Store::open(path, options()).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready").unwrap();
    let mut buffer = store.buffer(BYTES).unwrap();
    let mut unsynced = Vec::new();
    loop {
        version += 1;
        let name = (random(&mut state) % FILES).to_string();
        let file = store.file(&name).or_else(|_| store.create(&name)).unwrap();
        // All words of the file are the version.
        if random(&mut state).is_multiple_of(2) {
            buffer.renew().unwrap();
            buffer
                .bytes_mut()
                .chunks_mut(8)
                .for_each(|word| word.copy_from_slice(&version.to_le_bytes()));
            file.write(0, &mut buffer).unwrap();
        } else {
            file.write_from(0, &version.to_le_bytes().repeat(BYTES / 8))
                .unwrap();
        }
        unsynced.push((name, version));
        match random(&mut state) % 8 {
            0 | 1 => {
                store.flush().unwrap();
                for (name, version) in unsynced.drain(..) {
                    writeln!(out, "{name} {version}").unwrap();
                }
            }
            2 => {
                let name = (random(&mut state) % FILES).to_string();
                unsynced.retain(|(other, _)| *other != name);
                // A removal is acknowledged by a line before it.
                writeln!(out, "{name} 0").unwrap();
                let _ = store.remove(&name);
            }
            _ => {}
        }
    }
}

fn kill_often(times: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut state = 0x1234_5678_9abc_def1;
    let mut acknowledged = [0_u64; FILES as usize];
    let mut found = 0;
    for nth in 0..times {
        let writer = format!("{}@{}", path.display(), (nth + 1) * 1_000_000);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::writer", "--nocapture", "--test-threads=1"])
            .env("WEIR_FLAT_WRITER", writer)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        // Three of four are killed while they write, the others while they start and recover.
        if !random(&mut state).is_multiple_of(4) {
            while !text.contains("ready") && lines.read_line(&mut text).unwrap() > 0 {}
        }
        std::thread::sleep(Duration::from_micros(random(&mut state) % 12_000));
        if nth == 3 && text.contains("ready") {
            assert!(
                matches!(Store::open(&path, options()), Err(FlatError::InUse { .. })),
                "two processes"
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.read_to_string(&mut text).unwrap();
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let mut words = line.split_whitespace().map(str::parse::<u64>);
            if let (Some(Ok(file)), Some(Ok(version)), None) =
                (words.next(), words.next(), words.next())
            {
                acknowledged[file as usize] = version;
            }
        }
        found += check(&path, &mut acknowledged);
    }
    assert!(found > 0, "no writer came to write");
    println!("{times} kills, {found} files read");
}

/// Opens the store after a kill, and reads all files.
fn check(path: &Path, acknowledged: &mut [u64]) -> u64 {
    if !path.exists() {
        return 0;
    }
    let store = Store::open(path, options()).unwrap();
    let names = store.files();
    for (file, least) in acknowledged.iter_mut().enumerate() {
        let Some(&size) = names.get(&file.to_string()) else {
            assert_eq!(*least, 0, "file {file} is gone");
            continue;
        };
        // Made and not yet written, or whole.
        if size == 0 {
            assert_eq!(*least, 0, "file {file} is empty");
            continue;
        }
        assert_eq!(size, BYTES as u64);
        let mut bytes = vec![0; BYTES];
        store
            .file(&file.to_string())
            .unwrap()
            .read_into(0, &mut bytes)
            .unwrap();
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert!(
            words.iter().all(|word| *word == words[0]),
            "file {file} is torn"
        );
        assert!(
            words[0] >= *least,
            "file {file} has version {}, {least} was acknowledged",
            words[0]
        );
        *least = words[0];
    }
    names.len() as u64
}

#[test]
fn thirty_kills_tear_no_file() {
    kill_often(30);
}

#[test]
#[ignore = "a minute; the other kills are a sample of it"]
fn a_thousand_kills_tear_no_file() {
    kill_often(1000);
}
