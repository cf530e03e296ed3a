//! Reads at random times from the DRAM of a platform, without its cores and caches: the stream on which
//! `docs/benchmarks.md` compares the model with simulators of DRAM.
//!
//! `cargo run --release -p weir-sim --example memory_alone -- PLATFORM STREAM GB/S LINES`
//!
//! STREAM is `random` (any line of 16 GiB), `sequential` (one line after the other) or `readers` (56 readers,
//! each through pages of 4 KiB at random places). The times are those of a Poisson process. Prints one row:
//! stream, GB/s requested, GB/s reached, mean latency in ns. The first fifth of the lines is the warm-up and
//! is not in the means.

use weir_model::platform::Library;
use weir_model::topology::TierName;
use weir_model::units::{LINE_BYTES, Nanos};
use weir_sim::MemoryAlone;

/// Lines of 16 GiB.
const LINES: u64 = 1 << 28;
const READERS: usize = 56;
const PAGE_LINES: u64 = 64;

/// SplitMix64's finaliser: the n-th value of a sequence without the values before it.
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Copy)]
enum Stream {
    Random,
    Sequential,
    Readers,
}

impl Stream {
    fn line(self, n: u64, places: &mut [u64; READERS]) -> u64 {
        match self {
            Stream::Random => mix(n ^ 0x0abc_def0) % LINES,
            Stream::Sequential => n % LINES,
            Stream::Readers => {
                let reader = mix(n ^ 0x777) as usize % READERS;
                let place = places[reader];
                places[reader] += 1;
                let page = mix(((reader as u64) << 40) ^ (place / PAGE_LINES));
                page % (LINES / PAGE_LINES) * PAGE_LINES + place % PAGE_LINES
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [platform, name, load, lines] = arguments.as_slice() else {
        return Err("four arguments: PLATFORM STREAM GB/S LINES".into());
    };
    let stream = match name.as_str() {
        "random" => Stream::Random,
        "sequential" => Stream::Sequential,
        "readers" => Stream::Readers,
        _ => return Err(format!("`{name}` is none of random, sequential, readers").into()),
    };
    let (load, lines): (f64, u64) = (load.parse()?, lines.parse()?);
    let platform = Library::builtin().compose(platform)?;
    let mut memory = MemoryAlone::new(&platform, &TierName::named("dram"), 1)?;

    let gap = LINE_BYTES as f64 / load;
    let mut places = [0; READERS];
    let (mut at, mut waited, mut first, mut last) = (0.0, 0.0, f64::INFINITY, 0.0f64);
    for n in 0..lines {
        let chance = (mix(n ^ 0x0123_4567) >> 11) as f64 / (1u64 << 53) as f64;
        at -= (1.0 - chance).ln() * gap;
        let done = memory.read(stream.line(n, &mut places), Nanos(at)).get();
        if n >= lines / 5 {
            waited += done - at;
            first = first.min(done);
            last = last.max(done);
        }
    }
    let counted = (lines - lines / 5) as f64;
    println!(
        "{name},{load:.1},{:.2},{:.2}",
        counted * LINE_BYTES as f64 / (last - first),
        waited / counted,
    );
    Ok(())
}
