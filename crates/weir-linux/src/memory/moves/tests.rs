use proptest::prelude::*;

use super::*;

/// Pages with a node or an error number each, and what a move does with each.
struct Fake {
    first: usize,
    pages: Vec<(i32, Fate)>,
    tried: usize,
    calls: usize,
    /// The process ends at this call.
    ends: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Moves,
    Busy,
    Full,
    Shared,
    /// The whole call fails.
    Fails(i32),
}

impl Pages for Fake {
    fn call(
        &mut self,
        addresses: &[usize],
        to: Option<u32>,
        status: &mut [i32],
    ) -> io::Result<u64> {
        self.calls += 1;
        if self.calls > self.ends {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        for (n, (address, status)) in addresses.iter().zip(status.iter_mut()).enumerate() {
            let page = &mut self.pages[(address - self.first) / base_page()];
            let Some(to) = to else {
                *status = page.0;
                continue;
            };
            self.tried += usize::from(addresses.len() > 1 || page.1 == Fate::Moves);
            match page.1 {
                Fate::Moves => (page.0, *status) = (to as i32, to as i32),
                Fate::Shared => *status = -libc::EACCES,
                // As the kernel: it stops here, and writes no answers.
                Fate::Busy => return Ok((addresses.len() - n) as u64),
                Fate::Full => return Err(io::Error::from_raw_os_error(libc::ENOMEM)),
                Fate::Fails(number) => return Err(io::Error::from_raw_os_error(number)),
            }
        }
        Ok(0)
    }
}

fn mover(pages: usize, rate: f64) -> Mover {
    let page = base_page();
    // It begins in the middle of a huge page.
    let start = 100 * page;
    over(vec![(start, start + pages * page)], rate)
}

fn over(parts: Vec<(usize, usize)>, rate: f64) -> Mover {
    Mover {
        process: 1,
        node: 1,
        rate: GbPerSec(rate),
        began: None,
        part: 0,
        next: parts[0].0,
        parts,
        credit: 0.0,
        room: u64::MAX,
        counted: MovedPages::default(),
        ended: None,
    }
}

fn fake(mover: &Mover, pages: &[(i32, Fate)]) -> Fake {
    Fake {
        first: mover.parts[0].0,
        pages: pages.to_vec(),
        tried: 0,
        calls: 0,
        ends: usize::MAX,
    }
}

fn any_page() -> impl Strategy<Value = (i32, Fate)> {
    let node = prop_oneof![
        Just(0),
        Just(0),
        Just(0),
        Just(1),
        Just(-libc::ENOENT),
        Just(-libc::EFAULT)
    ];
    let fate = prop_oneof![
        Just(Fate::Moves),
        Just(Fate::Moves),
        Just(Fate::Busy),
        Just(Fate::Shared)
    ];
    (node, fate)
}

proptest! {
    #[test]
    fn every_page_is_counted_once_and_as_what_became_of_it(pages in prop::collection::vec(any_page(), 1..1300)) {
        let mut mover = mover(pages.len(), 1.0);
        let mut kernel = fake(&mover, &pages);
        for _ in 0..40 {
            // 244 pages at a time end within blocks.
            mover.step(&mut kernel, Nanos(1e6));
        }
        let of = |is: &dyn Fn(&(i32, Fate)) -> bool| pages.iter().filter(|page| is(page)).count() as u64;
        let counted = mover.counted();
        prop_assert_eq!(mover.rest(), Bytes(0));
        prop_assert_eq!(counted.pages(), pages.len() as u64);
        prop_assert_eq!(counted.moved, of(&|page| *page == (0, Fate::Moves)));
        prop_assert_eq!(counted.busy, of(&|page| *page == (0, Fate::Busy)));
        prop_assert_eq!(counted.shared, of(&|page| *page == (0, Fate::Shared)));
        prop_assert_eq!(counted.there, of(&|page| page.0 == 1));
        prop_assert_eq!(counted.absent, of(&|page| page.0 < 0));
    }

    #[test]
    fn a_node_is_not_filled_beyond_its_room(pages in prop::collection::vec(any_page(), 1..1300), room in 0_u64..1300) {
        let mut mover = mover(pages.len(), 1.0);
        mover.room = room;
        let mut kernel = fake(&mover, &pages);
        for _ in 0..40 {
            mover.step(&mut kernel, Nanos(1e6));
        }
        let of = |is: &dyn Fn(&(i32, Fate)) -> bool| pages.iter().filter(|page| is(page)).count() as u64;
        let counted = mover.counted();
        prop_assert!(mover.is_over());
        prop_assert_eq!(counted.pages(), pages.len() as u64);
        prop_assert!(counted.moved <= room);
        prop_assert!(counted.full == 0 || counted.moved + counted.busy + counted.shared >= room);
        prop_assert_eq!(counted.there, of(&|page| page.0 == 1));
        prop_assert_eq!(counted.absent, of(&|page| page.0 < 0));
    }

    #[test]
    fn pages_of_several_parts_are_each_counted_once(
        parts in prop::collection::vec((1_usize..700, 1_usize..4), 1..40),
        pages in prop::collection::vec(any_page(), 1..50),
    ) {
        let page = base_page();
        let (mut at, mut ranges) = (100 * page, Vec::new());
        for (long, gap) in &parts {
            ranges.push((at, at + long * page));
            at += (long + gap) * page;
        }
        let all: Vec<(i32, Fate)> = pages.iter().copied().cycle().take(at / page - 100).collect();
        let mut mover = over(ranges.clone(), 1.0);
        let mut kernel = fake(&mover, &all);
        for _ in 0..400 {
            mover.step(&mut kernel, Nanos(1e6));
        }
        let wanted = ranges.iter().flat_map(|(start, end)| &all[start / page - 100..end / page - 100]);
        let counted = mover.counted();
        prop_assert_eq!((mover.rest(), mover.is_over()), (Bytes(0), true));
        prop_assert_eq!(counted.pages(), wanted.clone().count() as u64);
        prop_assert_eq!(counted.moved, wanted.filter(|page| **page == (0, Fate::Moves)).count() as u64);
    }

    #[test]
    fn no_more_is_looked_at_than_the_rate_permits_with_room_or_without(
        steps in prop::collection::vec(1e3..1e9_f64, 1..30),
        rate in 0.001..1.0_f64,
        room in prop_oneof![Just(u64::MAX), 0_u64..2000],
    ) {
        let mut mover = mover(4000, rate);
        mover.room = room;
        let mut kernel = fake(&mover, &[(0, Fate::Moves); 4000]);
        let (mut time, mut looked) = (0.0, 0.0);
        for step in steps {
            time += step;
            mover.step(&mut kernel, Nanos(step));
            let now = (mover.counted().pages() * base_page() as u64) as f64;
            looked += now;
            prop_assert!(looked <= rate * time + 1e-3);
            // A step that comes late does not take as long as it was late.
            prop_assert!(now <= rate * MOST_TIME.get() + base_page() as f64);
        }
    }

    #[test]
    fn a_process_that_ends_is_reported_and_no_page_is_counted_twice(ends in 0_usize..12) {
        let mut mover = mover(1300, 100.0);
        let mut kernel = Fake { ends, ..fake(&mover, &[(0, Fate::Moves); 1300]) };
        mover.step(&mut kernel, Nanos(1e9));
        let looked = 1300 - mover.rest().get() / base_page() as u64;
        prop_assert_eq!(mover.counted().pages(), looked);
        prop_assert_eq!(mover.ended().is_some(), ends < 9);
    }
}

/// A page on each node in turn, as interleaved memory has them: a call for each would take minutes.
#[test]
fn single_pages_are_moved_many_at_a_time() {
    let page = base_page();
    let parts = (0..2048)
        .map(|n| (200 + 2 * n) * page)
        .map(|at| (at, at + page));
    let mut mover = over(parts.collect(), 100.0);
    let mut kernel = fake(&mover, &[(0, Fate::Moves); 4096]);
    mover.step(&mut kernel, Nanos(1e9));
    assert_eq!((mover.counted().moved, kernel.calls), (2048, 4 * 3));
}

#[test]
fn pages_for_which_the_node_has_no_room_are_distinguished() {
    let mut mover = mover(3, 1.0);
    let mut kernel = fake(
        &mover,
        &[(0, Fate::Moves), (0, Fate::Full), (0, Fate::Full)],
    );
    mover.step(&mut kernel, Nanos(1e9));
    let counted = mover.counted();
    assert_eq!((counted.moved, counted.full, mover.ended()), (1, 2, None));
}

#[test]
fn a_node_that_the_process_may_not_have_ends_the_move_with_its_reason() {
    for (number, said) in [
        (libc::EACCES, "cpuset.mems"),
        (libc::ENODEV, "no memory"),
        (libc::EPERM, "for root"),
    ] {
        let mut mover = mover(3, 1.0);
        let mut kernel = fake(&mover, &[(0, Fate::Fails(number)); 3]);
        mover.step(&mut kernel, Nanos(1e9));
        assert!(mover.ended().unwrap().reason.contains(said));
        assert_eq!(mover.counted().refused, 3);
    }
}

#[test]
fn another_process_with_the_number_of_one_that_ended_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let process = folder.path().join("proc/1");
    std::fs::create_dir_all(&process).unwrap();
    let stat = |began: u64| format!("1 (a) S {}{began}", "0 ".repeat(18));
    std::fs::write(process.join("stat"), stat(8)).unwrap();
    let mut mover = mover(3, 1.0);
    mover.began = Some(7);
    mover.advance(&Root::at(folder.path()), Nanos(1e9));
    assert!(mover.ended().unwrap().reason.contains("has ended"));
    assert_eq!(mover.counted(), MovedPages::default());
}
