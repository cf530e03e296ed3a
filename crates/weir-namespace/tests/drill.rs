//! Processes that create, share, resize and destroy namespaces at random, and are killed at random moments and at random
//! stores into the pool. The example `namespace-check` is the same program for guests.
//!
//! Every namespace is zero when it is made, and only the tag of its name is ever written into it. So a word that is
//! neither is a foreign one.
#![allow(dead_code, reason = "the example and the tests use a part each")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_namespace::{Create, Keep, Make, Namespace, NamespaceError, Options, Pool};

pub const WORKER: &str = "WEIR_NAMESPACE_WORKER";
const AT_A_TIME: usize = 3;

pub fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

pub fn host() -> Options {
    Options {
        host: Some("drill".into()),
        ..Options::default()
    }
}

/// What may be in a namespace besides zeros.
pub fn tag(name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(start, mix) | 1
}

/// The first word that is neither zero nor the tag.
pub fn foreign(namespace: &Namespace) -> Result<Option<u64>, NamespaceError> {
    let mut bytes = vec![0; namespace.bytes() as usize];
    namespace.read_at(0, &mut bytes)?;
    let tag = tag(namespace.name()).to_le_bytes();
    let words = bytes.chunks(8).enumerate();
    let wrong = words.filter(|(_, word)| **word != tag && **word != [0; 8]);
    Ok(wrong.map(|(nth, _)| 8 * nth as u64).next())
}

/// An option that kills this process at the nth store.
pub fn killed_at(nth: u64, options: Options) -> Options {
    let stores = AtomicU64::new(0);
    let fault = move || {
        if stores.fetch_add(1, Ordering::Relaxed) == nth {
            // SAFETY: a signal to this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    };
    Options {
        fault: Some(Arc::new(fault)),
        ..options
    }
}

/// The program of a worker: `PATH SEED STORES COUNT_FILE`; with STORES 0 it is not killed at a store.
pub fn worker(words: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = words.split('\n').collect();
    let [path, seed, stores, counts] = words[..] else {
        return Err("a worker has four words".into());
    };
    let mut state = seed.parse::<u64>()?;
    let stores = stores.parse::<u64>()?;
    let mut options = host();
    if stores > 0 {
        options = killed_at(stores, options);
    }
    let pool = Pool::open(path, options)?;
    let mut counts = OpenOptions::new().append(true).open(counts)?;
    let mut made: Vec<String> = Vec::new();
    let mut open: Vec<Namespace> = Vec::new();
    for nth in 0..10 + random(&mut state) % 60 {
        let done = step(&pool, nth, &mut state, &mut made, &mut open);
        match done {
            Ok(())
            | Err(
                NamespaceError::Full { .. }
                | NamespaceError::Held { .. }
                | NamespaceError::Missing { .. }
                | NamespaceError::TableFull { .. },
            ) => {}
            Err(why) => return Err(why.into()),
        }
        counts.write_all(b".")?;
    }
    Ok(())
}

fn step(
    pool: &Pool,
    nth: u64,
    state: &mut u64,
    made: &mut Vec<String>,
    open: &mut Vec<Namespace>,
) -> Result<(), NamespaceError> {
    let unit = pool.unit();
    let wrong = |text: String| Err(NamespaceError::Request(text));
    match random(state) % 8 {
        0..=2 => {
            let keep = match random(state) % 8 {
                0 => Keep::Forever,
                _ => Keep::With(std::process::id()),
            };
            let name = format!("n{}-{nth}", std::process::id());
            let create = Create {
                keep,
                ..Create::of(unit * (1 + random(state) % 3))
            };
            pool.create(&name, &create)?;
            let namespace = pool.map(&name, true)?;
            let mut bytes = vec![0; namespace.bytes() as usize];
            namespace.read_at(0, &mut bytes)?;
            if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
                return wrong(format!("byte {at} of {name} is of a former owner"));
            }
            let tagged = tag(&name).to_le_bytes().repeat(bytes.len() / 8);
            namespace.write_at(0, &tagged)?;
            made.push(name);
            open.push(namespace);
        }
        3 | 4 => {
            let table = pool.table()?;
            let live: Vec<_> = table.entries.iter().filter(|e| e.is_live()).collect();
            if live.is_empty() {
                return Ok(());
            }
            let name = &live[random(state) as usize % live.len()].name;
            let namespace = pool.map(name, false)?;
            if let Some(at) = foreign(&namespace)? {
                return wrong(format!("byte {at} of {name} is foreign"));
            }
            open.push(namespace);
        }
        5 if !open.is_empty() => {
            let at = random(state) as usize % open.len();
            open.swap_remove(at).close()?;
        }
        6 if !made.is_empty() => {
            let at = random(state) as usize % made.len();
            pool.resize(&made[at], unit * (1 + random(state) % 5))?;
        }
        7 if !made.is_empty() => {
            let at = random(state) as usize % made.len();
            let name = made[at].clone();
            open.retain(|namespace| namespace.name() != name);
            pool.destroy(&name)?;
            made.swap_remove(at);
        }
        _ => {}
    }
    Ok(())
}

/// What a drill counted.
#[derive(Debug, Default)]
pub struct Drilled {
    pub operations: u64,
    pub killed: u64,
    pub kept: u64,
}

/// Runs workers until this many operations were done, and checks that nothing of them is left.
pub fn drill(
    path: &Path,
    make: &Make,
    operations: u64,
    mut state: u64,
    command: &dyn Fn() -> Command,
) -> Result<Drilled, Box<dyn Error>> {
    let pool = Pool::make(path, make, host())?;
    let counts = std::env::temp_dir().join(format!("namespace-drill-{}", std::process::id()));
    std::fs::write(&counts, "")?;
    let mut drilled = Drilled::default();
    let mut workers: Vec<(Child, bool)> = Vec::new();
    let done = || Ok::<_, Box<dyn Error>>(std::fs::metadata(&counts)?.len());
    while done()? < operations {
        while workers.len() < AT_A_TIME {
            // A third dies at a store, a third at a moment, and the others end.
            let manner = random(&mut state) % 3;
            let stores = match manner {
                0 => 1 + random(&mut state) % 40_000,
                _ => 0,
            };
            let seed = random(&mut state);
            let words = format!("{}\n{seed}\n{stores}\n{}", path.display(), counts.display());
            let child = command().env(WORKER, words).spawn()?;
            workers.push((child, manner == 1));
        }
        std::thread::sleep(Duration::from_micros(random(&mut state) % 10_000));
        let at = random(&mut state) as usize % workers.len();
        let (mut child, may_be_killed) = workers.swap_remove(at);
        if may_be_killed {
            child.kill()?;
        }
        ended(&mut child, &mut drilled)?;
        if random(&mut state).is_multiple_of(8) {
            pool.recover()?;
        }
    }
    for (mut child, _) in workers {
        ended(&mut child, &mut drilled)?;
    }
    drilled.operations = done()?;
    std::fs::remove_file(&counts)?;
    pool.recover()?;
    let table = pool.table()?;
    if !table.holders.is_empty() {
        return Err(format!("handles are left: {:?}", table.holders).into());
    }
    for entry in &table.entries {
        if entry.life != weir_namespace::Life::Kept || !entry.is_live() {
            return Err(format!("left: {entry:?}").into());
        }
        let namespace = pool.map(&entry.name, false)?;
        if let Some(at) = foreign(&namespace)? {
            return Err(format!("byte {at} of {} is foreign", entry.name).into());
        }
        namespace.close()?;
        pool.destroy(&entry.name)?;
        drilled.kept += 1;
    }
    let free = pool.free()?;
    if free.len() != 1 || free[0].1 != pool.capacity() {
        return Err(format!("of {} bytes are free: {free:?}", pool.capacity()).into());
    }
    match pool.first_unscrubbed()? {
        Some(at) => Err(format!("byte {at} is free and not zero").into()),
        None => Ok(drilled),
    }
}

fn ended(child: &mut Child, drilled: &mut Drilled) -> Result<(), Box<dyn Error>> {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait()?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (_, Some(libc::SIGKILL)) => {
            drilled.killed += 1;
            Ok(())
        }
        _ => Err(format!("a worker failed: {status}").into()),
    }
}
