//! A whole program whose memory is a class.

use weir_alloc::{Global, usable_size};

#[global_allocator]
static ALL: Global = Global::new("temporary");

#[test]
fn a_program_with_threads_has_its_memory_in_a_class() {
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut words: Vec<String> = (0..2000).map(|n| format!("{thread} {n}")).collect();
                words.sort();
                words.concat().len()
            })
        })
        .collect();
    let lengths: Vec<usize> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert_eq!(lengths, [2000 * 2 + 6890; 4]);
    let zeros = vec![0_u8; 5 << 20];
    assert!(zeros.iter().all(|&byte| byte == 0) && usable_size(zeros.as_ptr()).is_some());
    let mut grown = Vec::new();
    for n in 0..300_000_u64 {
        grown.push(n);
    }
    assert!(grown.iter().copied().eq(0..300_000) && usable_size(grown.as_ptr().cast()).is_some());
}
