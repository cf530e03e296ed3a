//! Touches a part of its memory again and again, so that a profile of it has a known answer.
//!
//! `touch-pages MIB TOUCHED_MIB [scattered]`: the first pages of it, or single pages evenly between the others.

use std::hint::black_box;
use std::time::Duration;

const PAGE: usize = 4096;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok());
    let (Some(all), Some(touched)) = (number(), number()) else {
        eprintln!("touch-pages MIB TOUCHED_MIB [scattered]");
        std::process::exit(2);
    };
    let scattered = words.next().is_some();
    // What is not zero is resident.
    let memory = vec![1_u8; all << 20];
    let stride = if scattered { all / touched.max(1) } else { 1 };
    println!("{}", std::process::id());
    loop {
        for page in 0..(touched << 20) / PAGE {
            black_box(memory.get(page * stride * PAGE).copied());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
