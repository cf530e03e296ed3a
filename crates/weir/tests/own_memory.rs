//! A profile of this process, in a program of its own: the memory of other tests would be seen as well.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::Place;
use weir_model::document::Document;
use weir_steer::tier::profile::{PageKind, Profile, ProfileInterval};

#[test]
fn a_known_share_of_touched_memory_of_a_process_is_found() {
    const MIB: usize = 1 << 20;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    let toucher = std::thread::spawn(move || {
        let memory = vec![1_u8; 256 * MIB];
        while !seen.load(Ordering::Relaxed) {
            for page in (0..64 * MIB).step_by(4096) {
                std::hint::black_box(memory.get(page).copied());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    std::thread::sleep(Duration::from_millis(500));
    let own = std::process::id();
    let request = format!(
        "tier profile --target pid:{own} --for 5s --interval 1s --min-regions 100 --format json"
    );
    let done = Place::new().run(&request);
    stop.store(true, Ordering::Relaxed);
    toucher.join().unwrap();
    if done.0.status.code() == Some(3) {
        println!("not tested here: {}", done.err());
        return;
    }
    let found: Document<Profile> = serde_json::from_str(&done.expect(0).out()).unwrap();
    let found = found.output;
    let anon = (found.intervals.iter()).filter(|row| row.kind == PageKind::Anon);
    let share =
        |row: &ProfileInterval| 100.0 * row.touched.get() as f64 / row.allocated.get() as f64;
    let mut shares: Vec<f64> = anon.map(share).collect();
    shares.sort_by(f64::total_cmp);
    assert!(
        (shares[shares.len() / 2] - 25.0).abs() < 3.0,
        "{:?}: {shares:?}",
        found.source
    );
}
