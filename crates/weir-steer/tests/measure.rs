//! The measure: what both tiers keep under Weir's controller, on every platform of the library with CXL
//! memory, of what they give alone.

mod library;

use library::{Cell, Summary, platforms};
use weir_model::access::Op;
use weir_steer::Share;

/// Intel's step (Resource Director Technology, `bandwidth_gran` of resctrl).
const TENTH: f64 = 0.1;

/// Two cells in the ordinary run: the one that loses most, and one that loses little.
#[test]
fn both_tiers_stay_busy_on_two_platforms() {
    for (on, op) in [("emr2s+cxl-b", Op::NtSt), ("micro23", Op::Ld)] {
        let cell = Cell::measure(on, op, Some(Share::of(TENTH)));
        assert!(cell.fast >= 0.97 && cell.slow >= 0.93, "{cell:?}");
        assert!(cell.settled <= 3 && cell.released <= 2, "{cell:?}");
    }
}

#[test]
#[ignore = "48 cells take minutes; CI runs it optimised"]
fn the_library_with_bandwidth_allocation() {
    let cells = every_cell(Some(Share::of(TENTH)));
    let all = Summary::of(&cells);
    println!("{}{all}", Cell::table(&cells));
    assert!(all.fast >= 0.97 && all.slow >= 0.95, "{all}");
    assert!(all.worst_fast >= 0.93, "{all}");
    // Where a device is so slow that a step of a core's allocation is a quarter of it, the least it can be
    // given is what it gets.
    assert!(all.beyond_a_step == 0, "{all}");
}

/// Non-temporal stores are posted, so that a core puts as many as it likes: without allocation, whole cores
/// are the only means, and two of them fill the table of a device that one leaves half idle.
#[test]
#[ignore = "48 cells take minutes; for the documentation, by hand"]
fn the_library_with_cores_and_time_alone() {
    let cells = every_cell(None);
    let all = Summary::of(&cells);
    println!("{}{all}", Cell::table(&cells));
    assert!(all.fast >= 0.97, "{all}");
}

fn every_cell(step: Option<Share>) -> Vec<Cell> {
    let ops = [Op::Ld, Op::St, Op::NtSt];
    let pairs: Vec<(&str, Op)> = (platforms().iter())
        .flat_map(|&on| ops.map(|op| (on, op)))
        .collect();
    let halves: Vec<&[(&str, Op)]> = pairs.chunks(pairs.len().div_ceil(2)).collect();
    std::thread::scope(|scope| {
        let of = |half: &[(&str, Op)]| -> Vec<Cell> {
            half.iter()
                .map(|&(on, op)| Cell::measure(on, op, step))
                .collect()
        };
        let running: Vec<_> = halves
            .into_iter()
            .map(|half| scope.spawn(move || of(half)))
            .collect();
        running
            .into_iter()
            .flat_map(|half| half.join().unwrap())
            .collect()
    })
}
