//! The reduced enumeration finds what a machine may leave that executes the program and writes lines back at any time.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use weir_persist::checker::Limits;
use weir_persist::{Actor, Answer, Checker, Event, Place, Platform, Reader, Recovered};

const LINE: u64 = 64;
const POOL: u64 = 3 * LINE;

/// A store that has not arrived: its number, thread, offset and value.
type Store = (usize, u16, u64, u8);

/// A machine that executes a program: memory, dirty stores of caches, non-temporal ones under way, and write-backs that a thread's
/// next fence waits for.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Machine {
    memory: Vec<u8>,
    dirty: Vec<Store>,
    streamed: Vec<Store>,
    awaited: BTreeSet<(u16, u64)>,
}

fn word(store: &Store) -> u64 {
    store.2 / 8
}

impl Machine {
    fn write_back(&self, line: u64) -> Option<Self> {
        let mut next = self.clone();
        let here = |store: &Store| store.2 / LINE == line;
        for store in self.dirty.iter().filter(|store| here(store)) {
            let waits = |other: &Store| word(other) == word(store) && other.0 < store.0;
            if self.streamed.iter().any(waits) {
                return None;
            }
            next.memory[store.2 as usize] = store.3;
        }
        next.dirty.retain(|store| !here(store));
        next.awaited.retain(|(_, awaited)| *awaited != line);
        Some(next)
    }

    fn drain(&self, at: usize) -> Option<Self> {
        let store = self.streamed[at];
        let waits = |other: &Store| word(other) == word(&store) && other.0 < store.0;
        if self.dirty.iter().chain(&self.streamed).any(waits) {
            return None;
        }
        let mut next = self.clone();
        next.streamed.remove(at);
        next.memory[store.2 as usize] = store.3;
        Some(next)
    }

    /// What may follow without an instruction.
    fn steps(&self) -> Vec<Self> {
        let lines: BTreeSet<u64> = self.dirty.iter().map(|store| store.2 / LINE).collect();
        (lines.into_iter().filter_map(|line| self.write_back(line)))
            .chain((0..self.streamed.len()).filter_map(|at| self.drain(at)))
            .collect()
    }
}

fn closed(from: BTreeSet<Machine>) -> BTreeSet<Machine> {
    let mut all = from.clone();
    let mut open: Vec<Machine> = from.into_iter().collect();
    while let Some(machine) = open.pop() {
        for next in machine.steps() {
            if all.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    all
}

/// Every memory that a crash may leave.
fn brute_force(program: &[(Actor, Event)]) -> BTreeSet<Vec<u8>> {
    let start = Machine {
        memory: vec![0; POOL as usize],
        ..Machine::default()
    };
    let mut machines = BTreeSet::from([start]);
    let mut images = BTreeSet::new();
    // The kernel flushes and fences.
    let plain = program.iter().flat_map(|(actor, event)| match event {
        Event::Sync(at, length) => vec![(actor, Event::Flush(*at, *length)), (actor, Event::Fence)],
        other => vec![(actor, other.clone())],
    });
    for (seq, (actor, event)) in plain.enumerate() {
        let event = &event;
        machines = closed(machines);
        let thread = actor.thread;
        let fences = matches!(event, Event::Fence | Event::Locked(..));
        if fences {
            machines.retain(|machine| {
                machine.streamed.iter().all(|store| store.1 != thread)
                    && machine.awaited.iter().all(|(who, _)| *who != thread)
            });
        }
        if let Event::Clflush(at, _) = event {
            machines.retain(|machine| {
                machine
                    .dirty
                    .iter()
                    .all(|store| store.2 / LINE != at / LINE)
            });
        }
        machines = (machines.into_iter())
            .map(|mut machine| {
                match event {
                    Event::Store(at, value) | Event::Locked(at, value) => {
                        machine.dirty.push((seq, thread, *at, value[0]));
                    }
                    Event::NtStore(at, value) => {
                        machine.streamed.push((seq, thread, *at, value[0]));
                    }
                    Event::Flush(at, _) => {
                        let line = at / LINE;
                        if machine.dirty.iter().any(|store| store.2 / LINE == line) {
                            machine.awaited.insert((thread, line));
                        }
                    }
                    _ => {}
                }
                machine
            })
            .collect();
        machines = closed(machines);
        images.extend(machines.iter().map(|machine| machine.memory.clone()));
    }
    images.insert(vec![0; POOL as usize]);
    images
}

const SECTOR: usize = 512;

/// Every disk that a crash may leave of a file whose sectors the kernel writes at any time.
fn disks(bytes: usize, program: &[(Actor, Event)]) -> BTreeSet<Vec<u8>> {
    let mut machines = BTreeSet::from([(vec![0; bytes], vec![0; bytes])]);
    let mut images = BTreeSet::new();
    for (_, event) in program {
        machines = (machines.into_iter())
            .map(|(mut disk, mut cache)| {
                match event {
                    Event::Store(at, bytes)
                    | Event::NtStore(at, bytes)
                    | Event::Locked(at, bytes) => {
                        let at = *at as usize;
                        cache[at..at + bytes.len()].copy_from_slice(bytes);
                    }
                    Event::Sync(at, _) => {
                        let from = *at as usize / SECTOR * SECTOR;
                        let end = bytes.min(from + SECTOR);
                        disk[from..end].copy_from_slice(&cache[from..end]);
                    }
                    _ => {}
                }
                (disk, cache)
            })
            .collect();
        let mut open: Vec<_> = machines.iter().cloned().collect();
        while let Some((disk, cache)) = open.pop() {
            for from in (0..bytes).step_by(SECTOR) {
                let mut next = disk.clone();
                let end = bytes.min(from + SECTOR);
                next[from..end].copy_from_slice(&cache[from..end]);
                if machines.insert((next.clone(), cache.clone())) {
                    open.push((next, cache.clone()));
                }
            }
        }
        images.extend(machines.iter().map(|(disk, _)| disk.clone()));
    }
    images.insert(vec![0; bytes]);
    images
}

/// What a check that reads something sees in all states.
fn seen<T: Ord>(
    platform: Platform,
    program: &[(Actor, Event)],
    read: impl Fn(&mut Recovered<'_>) -> T,
) -> BTreeSet<T> {
    seen_in(POOL, platform, program, read)
}

fn seen_in<T: Ord>(
    pool: u64,
    platform: Platform,
    program: &[(Actor, Event)],
    read: impl Fn(&mut Recovered<'_>) -> T,
) -> BTreeSet<T> {
    let mut all = BTreeSet::new();
    let limits = Limits { states: 1 << 20 };
    let check = |state: &mut Recovered<'_>| -> Result<Answer, std::convert::Infallible> {
        all.insert(read(state));
        Ok(Answer::Legal)
    };
    let mut checker = Checker::new(platform, limits, check);
    let place = Place::default();
    checker.event(&place, &Event::Pool(pool)).unwrap();
    for (actor, event) in program {
        checker.event(&place, &Event::By(*actor)).unwrap();
        checker.event(&place, event).unwrap();
    }
    checker.finish().unwrap();
    assert_eq!(checker.tally().cut_short, 0);
    drop(checker);
    all
}

fn program(most: usize) -> impl Strategy<Value = Vec<(Actor, Event)>> {
    let at = prop::sample::select(vec![0u64, 1, 8, 64, 72, 128]);
    let event = (0..10, at, 1u8..4).prop_map(|(kind, at, value)| match kind {
        0..=3 => Event::Store(at, vec![value]),
        4 => Event::NtStore(at, vec![value]),
        5 => Event::Flush(at, 1),
        6 => Event::Clflush(at, 1),
        7 => Event::Fence,
        8 => Event::Sync(at, 1),
        _ => Event::Locked(at, vec![value]),
    });
    let actor = (0u16..2).prop_map(|thread| Actor { host: 0, thread });
    vec((actor, event), 1..most)
}

fn image(state: &mut Recovered<'_>) -> Vec<u8> {
    state.image()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_states_are_those_of_a_machine_that_writes_back_at_any_time(mut program in program(9)) {
        // States with this store are of the end, so that what an earlier crash leaves does not count for a later one.
        program.push((Actor::default(), Event::Store(184, vec![9])));
        prop_assert_eq!(seen(Platform::Adr, &program, image), brute_force(&program));
    }

    #[test]
    fn of_a_file_sectors_arrive_at_any_time_and_stores_in_them_whole(mut program in program(9), shift in 0u64..2, long in 0usize..9) {
        for (n, (_, event)) in program.iter_mut().enumerate() {
            if let Event::Store(at, bytes) | Event::NtStore(at, bytes) | Event::Locked(at, bytes) = event {
                *at = *at * 6 + 500 * shift;
                if n == long {
                    *bytes = vec![bytes[0]; 30];
                }
            }
            if let Event::Sync(at, _) = event {
                *at = *at * 6 + 500 * shift;
            }
        }
        let found = seen_in(1400, Platform::PageCache, &program, image);
        // A store over two sectors is two.
        prop_assert_eq!(found, disks(1400, &program));
    }

    #[test]
    fn a_recovery_that_reads_little_sees_what_it_would_see_in_all_states(program in program(9)) {
        let all = seen(Platform::Adr, &program, image);
        // The second read depends on the first.
        let little = |image: &[u8]| (image[0], image[if image[0] == 1 { 64 } else { 128 }]);
        let expected: BTreeSet<_> = all.iter().map(|image| little(image)).collect();
        let found = seen(Platform::Adr, &program, |state| {
            let first = state.read(0, 1)[0];
            (first, state.read(if first == 1 { 64 } else { 128 }, 1)[0])
        });
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn kept_caches_and_more_fences_leave_no_other_states(program in program(12), at in 0usize..12) {
        let adr = seen(Platform::Adr, &program, image);
        let eadr = seen(Platform::Eadr, &program, image);
        prop_assert!(eadr.is_subset(&adr));
        prop_assert_eq!(&seen(Platform::FlushOnFail, &program, image), &eadr);
        prop_assert_eq!(&seen(Platform::FlushOnFailIncomplete, &program, image), &adr);
        let mut fenced = program.clone();
        let at = at.min(program.len());
        fenced.insert(at, (Actor::default(), Event::Fence));
        prop_assert!(seen(Platform::Adr, &fenced, image).is_subset(&adr));
    }

    #[test]
    fn what_is_written_is_read_again(program in program(12)) {
        let mut text = format!("weir-persist 1\n{}\n", Event::Pool(POOL));
        for (actor, event) in &program {
            text.push_str(&format!("{}\n{event} @a b.c:3\n", Event::By(*actor)));
        }
        let mut reader = Reader::new(text.as_bytes());
        prop_assert_eq!(reader.next_event().unwrap().unwrap().1, Event::Pool(POOL));
        for (actor, event) in program {
            prop_assert_eq!(reader.next_event().unwrap().unwrap().1, Event::By(actor));
            let (place, read) = reader.next_event().unwrap().unwrap();
            prop_assert_eq!(read, event);
            prop_assert_eq!(place.to_string(), "a b.c:3");
        }
        prop_assert!(reader.next_event().unwrap().is_none());
    }
}

#[test]
fn words_of_a_record_arrive_in_any_order_and_whole() {
    let record: Vec<u8> = [[1; 8], [2; 8]].concat();
    let program = [(Actor::default(), Event::Store(8, record))];
    for platform in [Platform::Adr, Platform::Eadr] {
        let found = seen(platform, &program, |state| {
            (state.read(8, 8), state.read(16, 8))
        });
        let expect = |a: u8, b: u8| (vec![a; 8], vec![b; 8]);
        let all = [expect(0, 0), expect(0, 2), expect(1, 0), expect(1, 2)];
        assert_eq!(found, BTreeSet::from(all));
    }
}

#[test]
fn of_hosts_that_share_a_pool_only_the_one_that_crashed_loses_stores() {
    let by = |host| Actor { host, thread: 0 };
    let program = [
        (by(0), Event::Store(0, vec![1])),
        (by(1), Event::Store(64, vec![2])),
    ];
    let found = seen(Platform::SharedPool, &program, |state| {
        (state.read(0, 1)[0], state.read(64, 1)[0])
    });
    assert_eq!(found, BTreeSet::from([(0, 2), (1, 0), (1, 2)]));
    // Both stores of a line are in the cache of the host that wrote it last.
    let program = [
        (by(0), Event::Store(0, vec![1])),
        (by(1), Event::Store(1, vec![2])),
    ];
    let found = seen(Platform::SharedPool, &program, |state| state.read(0, 2));
    assert_eq!(found, BTreeSet::from([vec![0, 0], vec![1, 0], vec![1, 2]]));
}

#[test]
fn hosts_lose_what_they_wrote_last_and_flush_no_lines_of_others() {
    let by = |host| Actor { host, thread: 0 };
    let all = |program: &[(Actor, Event)], at: [u64; 3]| {
        seen(Platform::SharedPool, program, |state| {
            at.map(|at| state.read(at, 1)[0])
        })
    };
    // The flush of another host writes nothing back.
    let flushed = [
        (by(0), Event::Store(0, vec![1])),
        (by(1), Event::Flush(0, 1)),
        (by(1), Event::Fence),
        (by(0), Event::Store(64, vec![2])),
    ];
    assert!(all(&flushed, [0, 64, 128]).contains(&[0, 2, 0]));
    // Until host 1 stores to its line, the crash of host 0 may leave of two lines only this one.
    let taken = [
        (by(0), Event::Store(64, vec![2])),
        (by(0), Event::Store(0, vec![1])),
        (by(1), Event::Store(0, vec![3])),
    ];
    assert!(all(&taken, [0, 64, 128]).contains(&[1, 0, 0]));
    // A non-temporal store is lost with its host, whoever has the line.
    let streamed = [
        (by(0), Event::Store(0, vec![1])),
        (by(1), Event::NtStore(8, vec![2])),
        (by(0), Event::Store(64, vec![3])),
    ];
    let found = all(&streamed, [0, 8, 64]);
    assert!(found.contains(&[1, 0, 3]) && !found.contains(&[0, 0, 3]));
}

#[test]
fn a_fence_waits_for_what_its_own_thread_had_begun_to_write_back() {
    let by = |thread| Actor { host: 0, thread };
    let end = |program: &[(Actor, Event)]| {
        let mut all = seen(Platform::Adr, program, |state| {
            (state.read(0, 16), state.read(64, 1)[0])
        });
        all.retain(|(_, last)| *last == 9);
        let first = |(line, _): (Vec<u8>, u8)| (line[0], line[8]);
        all.into_iter().map(first).collect::<Vec<_>>()
    };
    let last = (by(0), Event::Store(64, vec![9]));
    let stored_after_the_flush = [
        (by(0), Event::Store(0, vec![1])),
        (by(0), Event::Flush(0, 1)),
        (by(0), Event::Store(0, vec![2])),
        (by(0), Event::Fence),
        last.clone(),
    ];
    assert_eq!(end(&stored_after_the_flush), [(1, 0), (2, 0)]);
    let streamed_by_two = [
        (by(0), Event::NtStore(0, vec![1])),
        (by(1), Event::NtStore(8, vec![2])),
        (by(0), Event::Fence),
        last,
    ];
    assert_eq!(end(&streamed_by_two), [(1, 0), (1, 2)]);
}
