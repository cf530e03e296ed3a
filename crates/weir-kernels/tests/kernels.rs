//! What holds of kernels: their answers are the host's, notices come before writes, and ranges do not disturb each other.

use std::collections::HashMap;

use proptest::prelude::*;
use weir_coherence::cost::Parts;
use weir_kernels::kernels::{
    Buffer, Comparison, Compress, Digest, Expander, Log, Placement, Predicate, Project, Scan, Ssd,
    Transpose, digest, pack, unpack,
};
use weir_kernels::media::Times;
use weir_kernels::standin::Standin;
use weir_kernels::{Device, Fault, Io, Kernel, Line, Mode};
use weir_model::units::Nanos;

const TIMES: Times = Times {
    sram: 10,
    dram: 50,
    dram_line: 3,
    flash_read: 3_000,
    flash_program: 100_000,
    dies: 4,
};

fn device(mode: Mode) -> Device {
    let parts = Parts {
        core: Nanos(60.0),
        link: Nanos(70.0),
        medium: Nanos(50.0),
    };
    Device::new(mode, parts, TIMES)
}

fn line(seed: u64) -> Line {
    std::array::from_fn(|at| (seed.wrapping_mul(0x9e37_79b9) >> (at % 8 * 4)) as u8 ^ at as u8)
}

/// Ranges that are memory, whatever is behind them.
fn memories() -> Vec<Box<dyn Kernel>> {
    vec![
        Box::new(Expander::new(1 << 14)),
        Box::new(Ssd::new(0, 4, 2)),
        Box::new(Buffer::new(100, 4)),
        Box::new(Compress::new(1 << 14)),
        Box::new(Placement::new(
            200,
            2,
            2,
            Times {
                flash_program: 20_000,
                ..TIMES
            },
        )),
    ]
}

#[derive(Debug, Clone)]
enum Use {
    Load(u64),
    Store(u64, u64),
    Evict(u64),
    Arm(u64),
}

fn uses(lines: u64, most: usize) -> impl Strategy<Value = Vec<Use>> {
    let one = prop_oneof![
        (0..lines).prop_map(Use::Load),
        (0..lines, any::<u64>()).prop_map(|(at, seed)| Use::Store(at, seed)),
        (0..lines).prop_map(Use::Evict),
        (0..lines).prop_map(Use::Arm),
    ];
    prop::collection::vec(one, 1..most)
}

/// Uses a range, and compares every load with `expected`.
fn differs(
    device: &mut Device,
    base: u64,
    uses: &[Use],
    mut expected: impl FnMut(&Use) -> Option<Line>,
) -> Result<(), TestCaseError> {
    for one in uses {
        let wanted = expected(one);
        match *one {
            Use::Load(at) => {
                let got = device.load(base + 64 * at).unwrap();
                prop_assert_eq!(Some(got), wanted, "{:?}", one);
            }
            Use::Store(at, seed) => device.store(base + 64 * at, &line(seed)).unwrap(),
            Use::Evict(at) => device.evict(base + 64 * at).unwrap(),
            Use::Arm(at) => device.arm(base + 64 * at).unwrap(),
        }
        device.now += 100;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn memory_holds_what_was_stored(uses in uses(256, 120), three: bool) {
        for kernel in memories() {
            let mut device = device(if three { Mode::Type3 } else { Mode::Type2 });
            let base = device.attach(kernel, 8);
            let mut model: HashMap<u64, Line> = HashMap::new();
            differs(&mut device, base, &uses, |one| match *one {
                Use::Store(at, seed) => model.insert(at, line(seed)),
                Use::Load(at) => Some(model.get(&at).copied().unwrap_or([0; 64])),
                _ => None,
            })?;
        }
    }

    #[test]
    fn a_line_is_unpacked_as_it_was(line: [u64; 8], near: u64, step in 0_u64..70_000) {
        let bytes = |words: [u64; 8]| -> Line {
            let mut line = [0; 64];
            for (at, word) in words.into_iter().enumerate() {
                line[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
            }
            line
        };
        let close = bytes(std::array::from_fn(|at| near.wrapping_add(step * at as u64 % 9)));
        for line in [bytes(line), close, [0; 64]] {
            prop_assert_eq!(unpack(&pack(&line)), line);
        }
        prop_assert!(pack(&close).len() <= 9 + 7 * 4);
    }

    /// Both views always show the last store to either, whichever host has lines of them in a cache.
    #[test]
    fn rows_and_columns_never_disagree(
        uses in uses(2 * 24, 100), rows in 1_usize..12, columns in 1_usize..12, width in 0_u32..4,
    ) {
        let width = 1 << width;
        let kernel = Transpose::new(rows, columns, width);
        let view = kernel.view();
        let mut device = device(Mode::Type2);
        let base = device.attach(Box::new(kernel), 8);
        let lines = 2 * view / 64;
        let uses: Vec<Use> = uses.into_iter().map(|one| match one {
            Use::Load(at) => Use::Load(at % lines),
            Use::Store(at, seed) => Use::Store(at % lines, seed),
            Use::Evict(at) => Use::Evict(at % lines),
            Use::Arm(at) => Use::Arm(at % lines),
        }).collect();
        let mut table = vec![0_u8; rows * columns * width];
        // Which byte of the table a byte of a view shows, if it shows one.
        let place = |byte: usize| {
            let (by_row, byte) = (byte < view as usize, byte % view as usize);
            let (cell, within) = (byte / width, byte % width);
            let (row, column) = match by_row {
                true => (cell / columns, cell % columns),
                false => (cell % rows, cell / rows),
            };
            (cell < rows * columns).then_some((row * columns + column) * width + within)
        };
        for (index, one) in uses.iter().enumerate() {
            let one = std::slice::from_ref(one);
            differs(&mut device, base, one, |one| match *one {
                Use::Store(at, seed) => {
                    for (byte, value) in line(seed).into_iter().enumerate() {
                        if let Some(place) = place(64 * at as usize + byte) {
                            table[place] = value;
                        }
                    }
                    None
                }
                Use::Load(at) => Some(std::array::from_fn(|byte| {
                    place(64 * at as usize + byte).map_or(0, |place| table[place])
                })),
                _ => None,
            }).or_else(|error| match uses[index] {
                // Bytes beyond the table are not kept: a line that the host itself stored shows them.
                Use::Load(at) if place(64 * at as usize + 63).is_none() => Ok(()),
                _ => Err(error),
            })?;
        }
        let most = 64 / width as u64 * device.counts(base).unwrap().notices;
        prop_assert!(device.counts(base).unwrap().invalidated <= most);
    }

    #[test]
    fn sums_are_those_of_the_last_stores(uses in uses(18, 120)) {
        let mut device = device(Mode::Type2);
        let base = device.attach(Box::new(Digest::new(16)), 8);
        let mut lines = [[0; 64]; 16];
        // The view takes no stores.
        let stores = |one: &Use| !matches!(one, Use::Store(16.., _));
        let uses: Vec<Use> = uses.into_iter().filter(stores).collect();
        differs(&mut device, base, &uses, |one| match *one {
            Use::Store(at, seed) => {
                lines[at as usize] = line(seed);
                None
            }
            Use::Load(at @ ..16) => Some(lines[at as usize]),
            Use::Load(at) => {
                let sums = lines[8 * (at as usize - 16)..][..8].iter().map(digest);
                let bytes: Vec<u8> = sums.flat_map(u64::to_le_bytes).collect();
                Some(std::array::from_fn(|at| bytes[at]))
            }
            _ => None,
        })?;
    }

    #[test]
    fn a_scan_finds_what_the_host_finds_and_moves_no_more(
        cells in prop::collection::vec(0_u64..50, 8..400), column in 0_usize..4, value in 0_u64..50, by in 0_usize..3,
    ) {
        let table: Vec<u8> = cells.chunks_exact(4).flatten().flat_map(|cell| cell.to_le_bytes()).collect();
        let by = [Comparison::Below, Comparison::Equal, Comparison::Above][by];
        let mut device = device(Mode::Type2);
        let base = device.attach(Box::new(Scan::new(table.clone(), 32)), 8);
        // A second predicate: nothing that was shown for the first is left.
        for (value, owned) in [(value / 2, 1), (value, 0)] {
            let predicate = Predicate { column, by, value };
            let wanted: Vec<u8> = table.chunks_exact(32).filter(|row| predicate.holds(row)).flatten().copied().collect();
            let before = device.data_lines().1;
            device.put(base, &predicate.line()).unwrap();
            let count = device.load(base).unwrap()[0] as usize;
            prop_assert_eq!(count, wanted.len() / 32);
            let mut got = Vec::new();
            for line in 1..=wanted.len().div_ceil(64) as u64 {
                got.extend(device.load(base + 64 * line).unwrap());
            }
            prop_assert_eq!(&got[..wanted.len()], &wanted[..]);
            // The rows, the line of the count, and that of the first store, which the host shares later.
            let moved = device.data_lines().1 - before;
            prop_assert_eq!(moved, wanted.len().div_ceil(64) as u64 + 1 + owned);
        }
    }

    #[test]
    fn a_projection_shows_the_columns_that_were_chosen(
        cells in prop::collection::vec(any::<u64>(), 5..200), columns in prop::collection::vec(0_usize..5, 1..4),
    ) {
        let rows: Vec<&[u64]> = cells.chunks_exact(5).collect();
        let table: Vec<u8> = rows.iter().flat_map(|row| row.iter()).flat_map(|cell| cell.to_le_bytes()).collect();
        let mut device = device(Mode::Type2);
        let base = device.attach(Box::new(Project::new(table, 40, &columns)), 8);
        let wanted: Vec<u8> = rows.iter().flat_map(|row| columns.iter().map(|&at| row[at])).flat_map(u64::to_le_bytes).collect();
        for (at, part) in wanted.chunks(64).enumerate() {
            let got = device.load(base + 64 * at as u64).unwrap();
            prop_assert_eq!(&got[..part.len()], part);
        }
    }

    /// Whenever power fails, every line whose store was answered is recovered, in order.
    #[test]
    fn a_log_loses_no_line_that_was_answered(count in 1_u64..400, later in 0_u64..300_000, armed: bool, room in 1_usize..200) {
        let mut device = device(Mode::Type2);
        // The log is recovered from what its kernel kept in SRAM and from flash.
        let base = device.attach(Box::new(Kept::new(Log::new(0, 1 << 12, room))), 8);
        for at in 0..count {
            if armed {
                device.arm(base + 64 * at).unwrap();
            }
            device.store(base + 64 * at, &line(at)).unwrap();
            device.now += later / 100;
            device.evict(base + 64 * at).unwrap();
        }
        let cut = device.now + later;
        device.media.flash.lose_power(cut);
        let log = KEPT.with(|kept| kept.borrow_mut().take()).unwrap();
        let found = log.borrow().recover(&device.media);
        prop_assert_eq!(found, (0..count).map(line).collect::<Vec<_>>());
    }
}

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

thread_local! {
    static KEPT: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

/// A log that a test sees after the device has it.
struct Kept(Arc<Mutex<Log>>);
struct Shared(Arc<Mutex<Log>>);

impl Shared {
    fn borrow(&self) -> std::sync::MutexGuard<'_, Log> {
        self.0.lock().unwrap()
    }
}

impl Kept {
    fn new(log: Log) -> Self {
        let log = Arc::new(Mutex::new(log));
        KEPT.with(|kept| *kept.borrow_mut() = Some(Shared(Arc::clone(&log))));
        Self(log)
    }
}

impl Kernel for Kept {
    fn name(&self) -> &'static str {
        "log"
    }
    fn len(&self) -> u64 {
        self.0.lock().unwrap().len()
    }
    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        self.0.lock().unwrap().read(at, io)
    }
    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        self.0.lock().unwrap().write(at, line, io)
    }
    fn write_expected(&mut self, at: u64, io: &mut Io<'_>) {
        self.0.lock().unwrap().write_expected(at, io);
    }
}

/// A log whose SRAM has room for a page: the time of each commit, `lead` after the right to write was there.
fn commits(mode: Mode, armed: bool, lead: u64, count: u64) -> (Vec<u64>, Device, u64) {
    let mut device = device(mode);
    let base = device.attach(Box::new(Log::new(0, 1 << 12, 64)), 8);
    let mut times = Vec::new();
    for at in 0..count {
        let address = base + 64 * at;
        if armed {
            device.arm(address).unwrap();
        }
        device.load(address).unwrap();
        device.store(address, &line(at)).unwrap();
        device.now += lead;
        let began = device.now;
        device.evict(address).unwrap();
        times.push(device.now - began);
    }
    (times, device, base)
}

#[test]
fn a_notice_precedes_each_write_where_lines_are_shared_and_never_without() {
    let (_, device, base) = commits(Mode::Type2, true, 500, 200);
    let counts = device.counts(base).unwrap();
    assert_eq!(
        (counts.notices, counts.writes, counts.leads.len()),
        (200, 200, 200)
    );
    // The request is on its way back to the host, which then works, and the line crosses the link.
    assert!(
        counts.leads.iter().all(|&lead| lead >= 500 + 2 * 70),
        "{:?}",
        counts.leads
    );
    // A host that has the line alone writes it without a message, and HDM-H has none.
    for (mode, armed) in [(Mode::Type2, false), (Mode::Type3, true)] {
        let (_, device, base) = commits(mode, armed, 500, 200);
        let counts = device.counts(base).unwrap();
        assert_eq!(
            (counts.notices, counts.writes, counts.leads.len()),
            (0, 200, 0),
            "{mode:?}"
        );
    }
}

#[test]
fn a_commit_is_shorter_by_the_lead_until_flash_is_hidden() {
    let worst = |mode, lead| *commits(mode, true, lead, 200).0.iter().max().unwrap();
    let leads = [0, 20_000, 40_000, 80_000, 100_000, 120_000, 400_000];
    let early = leads.map(|lead| worst(Mode::Type2, lead));
    let late = leads.map(|lead| worst(Mode::Type3, lead));
    assert!(early.is_sorted_by(|a, b| a >= b), "{early:?}");
    assert_eq!(early[2] - early[3], 40_000, "{early:?}");
    // All of the program is hidden, and a longer lead gives no more.
    assert_eq!(early[4], early[6], "{early:?}");
    assert!(early[6] < 1_000 && early[0] > 99_000, "{early:?}");
    assert!(
        late.iter().all(|&time| time == late[0] && time > 100_000),
        "{late:?}"
    );
}

#[test]
fn a_notice_that_no_write_follows_is_counted_when_the_line_is_asked_for_again() {
    let mut device = device(Mode::Type2);
    let base = device.attach(Box::new(Expander::new(4096)), 8);
    device.arm(base).unwrap();
    device.own(base).unwrap();
    device.evict(base).unwrap();
    device.arm(base).unwrap();
    let counts = device.counts(base).unwrap();
    assert_eq!(
        (counts.notices, counts.false_notices, counts.writes),
        (1, 1, 0)
    );
    // In device bias a line is asked for without a message; the host's copy takes a request and its grant.
    assert_eq!(counts.rearms, (2, 2));
}

#[test]
fn a_flush_moves_a_frame_to_flash_and_no_data_over_the_link() {
    let mut device = device(Mode::Type2);
    let base = device.attach(Box::new(Buffer::new(7, 2)), 8);
    for at in 0..64 {
        device.put(base + 64 * at, &line(at)).unwrap();
    }
    let (before, began) = (device.data_lines(), device.now);
    device.flush(base, 4096).unwrap();
    assert_eq!(device.data_lines(), before);
    assert!(device.now - began >= TIMES.flash_program);
    // The block device of the same flash shows the page.
    let page = device.media.flash.content(7);
    assert!((0..64).all(|at| page[64 * at as usize..][..64] == line(at)));
    // A range without flash says that it has none.
    let plain = device.attach(Box::new(Expander::new(4096)), 8);
    assert!(matches!(
        device.flush(plain, 64),
        Err(Fault::Unsupported { .. })
    ));
    assert!(matches!(device.load(1 << 40), Err(Fault::NoRange(_))));
}

/// Refuses every second request, and takes a millisecond for it.
struct Bad(u64);

impl Kernel for Bad {
    fn name(&self) -> &'static str {
        "bad"
    }
    fn len(&self) -> u64 {
        4096
    }
    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        io.now += 1_000_000;
        self.0 += 1;
        match self.0 % 2 {
            0 => Ok([1; 64]),
            _ => Err(Fault::Failed {
                kernel: "bad",
                at,
                why: "it is bad".into(),
            }),
        }
    }
    fn write(&mut self, at: u64, _: &Line, _: &mut Io<'_>) -> Result<(), Fault> {
        Err(self.unsupported(at))
    }
}

#[test]
fn a_kernel_that_fails_or_is_slow_delays_no_other_range() {
    let times = |bad: bool| {
        let mut device = device(Mode::Type2);
        let good = device.attach(Box::new(Expander::new(8192)), 4);
        let other = device.attach(Box::new(Bad(0)), 4);
        let mut times = Vec::new();
        for at in 0..64 {
            if bad {
                let _ = device.load_at(other + 64 * at, 100 * at);
            }
            times.push(device.load_at(good + 64 * at, 100 * at).unwrap().1);
        }
        let counts = bad.then(|| device.counts(other).unwrap().clone());
        (times, counts)
    };
    let (with, counts) = times(true);
    assert_eq!(with, times(false).0);
    let counts = counts.unwrap();
    assert_eq!((counts.reads, counts.faults), (32, 32));
    // Of 64 requests within 6.4 us, four are in its queue and the others at the host; none is lost.
    assert!(counts.blocked.0 >= 59 && counts.queued.0 >= 3, "{counts:?}");
    assert_eq!(counts.busy, 64_000_000);
}

#[test]
fn the_stand_in_answers_as_the_device_does() {
    for kernel in memories() {
        let length = kernel.len();
        let window = Standin::start(kernel, 2).unwrap();
        std::thread::scope(|scope| {
            for own in 0..2_u64 {
                let window = &window;
                scope.spawn(move || {
                    for at in (own..64).step_by(2) {
                        window.store(64 * at, &line(at)).unwrap();
                    }
                });
            }
        });
        assert!((0..64).all(|at| window.load(64 * at).unwrap() == line(at)));
        assert!(window.load(length).is_err());
    }
    let buffer = Standin::start(Box::new(Buffer::new(0, 1)), 1).unwrap();
    buffer.flush(0, 4096).unwrap();
    let plain = Standin::start(Box::new(Expander::new(64)), 1).unwrap();
    assert!(
        plain
            .flush(0, 64)
            .unwrap_err()
            .to_string()
            .contains("expander")
    );
}
