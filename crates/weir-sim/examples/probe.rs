//! Runs one point after another on a platform and prints what came out: a microscope for the
//! model.
//!
//! `cargo run --release -p weir-sim --example probe -- emr2s+cxl-a bw ld dram 1,8,32 [noprefetch]`
//! `cargo run --release -p weir-sim --example probe -- emr2s+cxl-a lat cxl0`
//! `cargo run --release -p weir-sim --example probe -- emr2s+cxl-a pair ld dram 16 nt_st cxl0 16`
//! `cargo run --release -p weir-sim --example probe -- spr2s loaded dram 31 2:1 st`
//! `cargo run --release -p weir-sim --example probe -- memo copy dram cxl0 movdir64b 1,4`
//! `cargo run --release -p weir-sim --example probe -- memo blocks nt_st cxl0 1,2,4`
//! `cargo run --release -p weir-sim --example probe -- memo share dram cas 0,1`
//! `cargo run --release -p weir-sim --example probe -- memo dsa dram cxl0 4096 1 1`
//!
//! `loaded` sweeps the pause of threads that load and store in the ratio given (`1:0` for loads
//! alone, `0:1` for the instruction alone) and prints the pause, the lines that crossed the memory
//! interface in GB/s, and what a chase on the core before theirs sees.

use weir_model::access::{Dataflow, Locality, Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::{Goal, Machine};
use weir_model::platform::Library;
use weir_model::tenant::{Placement, Reads, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_sim::{SimMachine, SimTestbed};

fn tenant(name: &str, op: &str, tier: &str, cores: std::ops::Range<u32>, prefetch: bool) -> Tenant {
    let mut t = Tenant::on_first_cores(
        op.parse().expect("an instruction"),
        Pattern::Sequential,
        &TierName::named(tier),
        1,
        Bytes::mib(256),
    );
    t.name = name.into();
    t.cores = cores.collect();
    t.prefetch = prefetch;
    t
}

fn run(bed: &SimTestbed, tenants: &[Tenant], goal: Goal) -> (Vec<f64>, Vec<f64>, String) {
    let mut machine = SimMachine::new(bed, 1);
    let pacing = machine.pacing(goal);
    machine.start(tenants).expect("tenants that fit");
    machine.observe(pacing.warm_up).expect("a running machine");
    let scale: f64 = std::env::var("WEIR_SCALE").map_or(1.0, |s| s.parse().expect("a number"));
    let window = pacing.window * f64::from(pacing.least_windows) * scale;
    let o = machine
        .observe(Nanos(window.get()))
        .expect("a running machine");
    let bw = o
        .tenants
        .iter()
        .map(|t| t.bandwidth(o.window).get())
        .collect();
    let lat = o
        .tenants
        .iter()
        .map(|t| t.latency.as_ref().map_or(0.0, |h| h.mean().get()))
        .collect();
    let c = |k| o.counters.get(k).unwrap_or(0) as f64;
    let ghz = c(Counter::ChaClockticks) / o.window.get();
    let res = |occ, ins: Counter| {
        if c(ins) > 0.0 {
            c(occ) / c(ins) / ghz
        } else {
            0.0
        }
    };
    let note = format!(
        "ToR ddr {:.0} ns cxl {:.0} ns, mean ToR {:.0}, IRQ {:.0}, act/cas {:.2}, gbps ddr {:.1}+{:.1} cxl {:.1}+{:.1}",
        res(Counter::TorOccupancyIaMissDdr, Counter::TorInsertsIaMissDdr),
        res(Counter::TorOccupancyIaMissCxl, Counter::TorInsertsIaMissCxl),
        c(Counter::TorOccupancyIa) / c(Counter::ChaClockticks),
        c(Counter::IrqOccupancy) / c(Counter::ChaClockticks),
        c(Counter::ActCount) / (c(Counter::CasRd) + c(Counter::CasWr)).max(1.0),
        c(Counter::CasRd) * 64.0 / o.window.get(),
        c(Counter::CasWr) * 64.0 / o.window.get(),
        c(Counter::CxlRxMemData) * 64.0 / o.window.get(),
        c(Counter::CxlTxMemData) * 64.0 / o.window.get(),
    );
    (bw, lat, note)
}

/// `TIER LOADERS READS:PER OP [noprefetch]`
fn loaded(bed: &SimTestbed, a: &[&str]) {
    let tier = TierName::named(a[0]);
    let loaders: u32 = a[1].parse().expect("a number");
    let (lines, per) = a[2].split_once(':').expect("READS:PER");
    let (lines, per): (u32, u32) = (
        lines.parse().expect("a number"),
        per.parse().expect("a number"),
    );
    let op = if per == 0 { "ld" } else { a[3] };
    let mut load = tenant(
        "load",
        op,
        a[0],
        1..1 + loaders,
        a.get(4) != Some(&"noprefetch"),
    );
    load.work.stream_mut().expect("a stream").reads = (lines > 0 && per > 0).then_some(Reads {
        lines,
        per,
        from: Placement::Bind(tier),
        dataflow: Dataflow::Apart,
    });
    let mut chase = tenant("chase", "ld", a[0], 0..1, false);
    chase.work.stream_mut().expect("a stream").pattern = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    println!("{:>10} {:>10} {:>10}", "pause ns", "GB/s", "chase ns");
    let pauses = [
        100_000.0, 2000.0, 1000.0, 500.0, 300.0, 200.0, 150.0, 120.0, 100.0, 80.0, 70.0, 60.0,
        50.0, 45.0, 40.0, 35.0, 30.0, 25.0, 20.0, 15.0, 10.0, 5.0, 2.0, 0.0,
    ];
    for pause in pauses {
        load.work.stream_mut().expect("a stream").pause = Nanos(pause);
        let mut machine = SimMachine::new(bed, 1);
        machine
            .start(&[chase.clone(), load.clone()])
            .expect("tenants that fit");
        machine
            .observe(Nanos::from_micros(60.0))
            .expect("a running machine");
        let o = machine
            .observe(Nanos::from_micros(400.0))
            .expect("a running machine");
        let lines: u64 = [
            Counter::CasRd,
            Counter::CasWr,
            Counter::CxlRxMemData,
            Counter::CxlTxMemData,
            Counter::UpiRxData,
            Counter::UpiTxData,
        ]
        .iter()
        .map(|&c| o.counters.get(c).unwrap_or(0))
        .sum();
        let latency = o.tenants[0]
            .latency
            .as_ref()
            .map_or(0.0, |h| h.mean().get());
        let gbps = lines as f64 * 64.0 / o.window.get();
        println!("{pause:10.1} {gbps:10.2} {latency:10.1}");
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let a: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut library = Library::builtin();
    for file in std::env::var("WEIR_PLATFORMS")
        .unwrap_or_default()
        .split(':')
    {
        if !file.is_empty() {
            let text = std::fs::read_to_string(file).expect("a readable file");
            library.add(file, &text).expect("a valid file");
        }
    }
    let platform = library.compose(a[0]).expect("a platform");
    let bed = SimTestbed::new(&platform).expect("a consistent platform");
    match a[1] {
        "bw" => {
            let prefetch = a.get(5) != Some(&"noprefetch");
            for n in a[4].split(',') {
                let n: u32 = n.parse().expect("a number");
                for op in a[2].split(',') {
                    let t = std::time::Instant::now();
                    let (bw, _, note) = run(
                        &bed,
                        &[tenant("a", op, a[3], 0..n, prefetch)],
                        Goal::Bandwidth,
                    );
                    let wall = t.elapsed();
                    println!("{op:9} {n:3} {:7.2} GB/s  {note}  [{wall:.1?}]", bw[0]);
                }
            }
        }
        "lat" => {
            for (op, pattern, size) in [
                (
                    Op::Ld,
                    Pattern::Chase {
                        locality: Locality::TlbFriendly,
                    },
                    Bytes::kib(32),
                ),
                (
                    Op::Ld,
                    Pattern::Chase {
                        locality: Locality::TlbFriendly,
                    },
                    Bytes::mib(1),
                ),
                (
                    Op::Ld,
                    Pattern::Chase {
                        locality: Locality::TlbFriendly,
                    },
                    Bytes::mib(32),
                ),
                (
                    Op::Ld,
                    Pattern::Chase {
                        locality: Locality::TlbFriendly,
                    },
                    Bytes::gib(1),
                ),
                (
                    Op::Ld,
                    Pattern::Chase {
                        locality: Locality::Random,
                    },
                    Bytes::gib(1),
                ),
                (Op::Ld, Pattern::FlushedLine, Bytes::mib(64)),
                (Op::StClwb, Pattern::FlushedLine, Bytes::mib(64)),
                (Op::NtSt, Pattern::FlushedLine, Bytes::mib(64)),
            ] {
                let mut t = tenant("a", op.name(), a[2], 0..1, false);
                t.work.stream_mut().expect("a stream").pattern = pattern;
                t.work.stream_mut().expect("a stream").working_set = size;
                let (_, lat, note) = run(&bed, &[t], Goal::Latency);
                println!(
                    "{op:8} {:20} {size:8} {:7.1} ns  {note}",
                    pattern.name(),
                    lat[0]
                );
            }
        }
        "pair" => {
            let (n, m): (u32, u32) = (a[4].parse().expect("n"), a[7].parse().expect("n"));
            let prefetch = a.get(8) != Some(&"noprefetch");
            let v = tenant("victim", a[2], a[3], 0..n, prefetch);
            let g = tenant("aggressor", a[5], a[6], n..n + m, prefetch);
            let (solo, _, note) = run(&bed, std::slice::from_ref(&v), Goal::Bandwidth);
            println!("solo   {:7.2} {note}", solo[0]);
            let (solo2, _, note) = run(&bed, std::slice::from_ref(&g), Goal::Bandwidth);
            println!("alone  {:7.2} {note}", solo2[0]);
            let (both, _, note) = run(&bed, &[v, g], Goal::Bandwidth);
            println!("both   {:7.2} {:7.2} {note}", both[0], both[1]);
            println!(
                "change {:+.1} % {:+.1} %",
                (both[0] / solo[0] - 1.0) * 100.0,
                (both[1] / solo2[0] - 1.0) * 100.0
            );
        }
        "loaded" => loaded(&bed, &a[2..]),
        "share" => {
            let cores: Vec<u32> = a[4]
                .split(',')
                .map(|c| c.parse().expect("a core"))
                .collect();
            let mut t = tenant("a", a[3], a[2], 0..1, false);
            t.work.stream_mut().expect("a stream").pattern = Pattern::SharedLine;
            t.cores = cores;
            let (_, lat, note) = run(&bed, &[t], Goal::Latency);
            println!("{:7.1} ns  {note}", lat[0]);
        }
        "dsa" => {
            let number = |i: usize| a[i].parse().expect("a number");
            let mut t = tenant("a", "dsa", a[3], 0..1, false);
            t.work.stream_mut().expect("a stream").pattern = Pattern::Descriptors {
                bytes: Bytes(number(4)),
                batch: number(5) as u32,
                in_flight: number(6) as u32,
            };
            t.work.stream_mut().expect("a stream").reads = Some(Reads {
                lines: 1,
                per: 1,
                from: Placement::Bind(TierName::named(a[2])),
                dataflow: Dataflow::Copy,
            });
            let (bw, _, note) = run(&bed, &[t], Goal::Bandwidth);
            println!("{:7.2} GB/s copied  {note}", bw[0] / 2.0);
        }
        "blocks" => {
            for n in a[4].split(',') {
                let n: u32 = n.parse().expect("a number");
                print!("{n:3} threads:");
                for kib in [1, 2, 4, 8, 16, 32, 64, 128] {
                    let mut t = tenant("a", a[2], a[3], 0..n, a.get(5) != Some(&"noprefetch"));
                    t.work.stream_mut().expect("a stream").pattern = Pattern::RandomBlock {
                        block: Bytes::kib(kib),
                    };
                    let (bw, _, _) = run(&bed, &[t], Goal::Bandwidth);
                    print!(" {kib} KiB {:.2}", bw[0]);
                }
                println!();
            }
        }
        "copy" => {
            for n in a[5].split(',') {
                let n: u32 = n.parse().expect("a number");
                let mut t = tenant("a", a[4], a[3], 0..n, a.get(6) != Some(&"noprefetch"));
                t.work.stream_mut().expect("a stream").reads = Some(Reads {
                    lines: 1,
                    per: 1,
                    from: Placement::Bind(TierName::named(a[2])),
                    dataflow: Dataflow::Copy,
                });
                let (bw, _, note) = run(&bed, &[t], Goal::Bandwidth);
                println!("{n:3} {:7.2} GB/s copied  {note}", bw[0] / 2.0);
            }
        }
        other => panic!("what is {other}?"),
    }
}
