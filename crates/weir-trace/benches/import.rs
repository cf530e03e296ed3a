//! Accesses in a second that become what a description is made of: decoded and watched, as `weir workload import` does.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weir_model::workload::Workloads;
use weir_trace::decode::guess;
use weir_trace::replay::Replay;
use weir_trace::{Access, Decoder, Sink, Watch};

/// Accesses of a trace.
const ACCESSES: u64 = 2_000_000;

/// Most accesses of a program are to its stack and to other lines in L1.
const REGIONS: &str = "kind = \"workload\"\nsummary = \"a\"\nsource = \"b\"\n[[phase]]\ncpi = 0.5\napki = 400\nregions = [\
    { name = \"stack\", bytes = \"8 KiB\", order = \"zipf\", share = 0.8, stores = 0.4 }, \
    { name = \"table\", bytes = \"64 MiB\", order = \"random\", share = 0.05 }, \
    { name = \"column\", bytes = \"64 MiB\", order = \"sequential\", share = 0.15 }]";

/// Writes a trace as text of lackey and as records of ChampSim.
#[derive(Default)]
struct Written {
    lackey: Vec<u8>,
    champsim: Vec<u8>,
}

impl Sink for Written {
    fn instructions(&mut self, count: u64) {
        for n in 0..count {
            self.lackey
                .extend(format!("I  {:08x},4\n", 0x40_0000 + n).bytes());
        }
    }

    fn access(&mut self, access: Access) -> bool {
        let kind = if access.store { 'S' } else { 'L' };
        self.lackey
            .extend(format!(" {kind} {:08x},{}\n", access.address, access.bytes).bytes());
        let mut record = [0_u8; 64];
        record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
        let place = if access.store { 16 } else { 32 };
        record[place..place + 8].copy_from_slice(&access.address.to_le_bytes());
        self.champsim.extend(record);
        true
    }
}

fn read(bytes: &[u8], sink: &mut impl Sink) {
    let format = guess(&bytes[..1 << 16]).unwrap_or_else(|| panic!("no format"));
    let mut decoder =
        Decoder::new(format, &bytes[..1 << 16]).unwrap_or_else(|error| panic!("{error}"));
    for piece in bytes
        .chunks(1 << 16)
        .scan(0, |at, piece| {
            *at += piece.len();
            Some(*at)
        })
        .scan(0, |from, to| {
            let begin = *from;
            let taken = decoder
                .decode(&bytes[begin..to], sink)
                .unwrap_or_else(|error| panic!("{error}"));
            *from += taken;
            Some(taken)
        })
    {
        std::hint::black_box(piece);
    }
}

fn import(c: &mut Criterion) {
    let workload = Workloads::check("a.toml", REGIONS).unwrap_or_else(|error| panic!("{error}"));
    let mut written = Written::default();
    let mut replay = Replay::new(&workload.phases[0], 1);
    let mut done = 0;
    while done < ACCESSES {
        done += replay.step(&mut written);
    }
    let mut group = c.benchmark_group("import");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(ACCESSES));
    for (name, bytes) in [("lackey", &written.lackey), ("champsim", &written.champsim)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut watch = Watch::new();
                read(bytes, &mut watch);
                watch.accesses()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, import);
criterion_main!(benches);
