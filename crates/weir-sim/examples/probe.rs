//! Runs one point after another on a platform and prints what came out: a microscope for the
//! model.
//!
//! `cargo run --release -p weir-sim --example probe -- emr2s+cxl-a bw ld dram 1,8,32 [noprefetch]`
//! `cargo run --release -p weir-sim --example probe -- emr2s+cxl-a lat cxl0`
//! `cargo run --release -p weir-sim --example probe -- emr2s+cxl-a pair ld dram 16 nt_st cxl0 16`

use weir_model::access::{Locality, Op, Pattern};
use weir_model::counters::Counter;
use weir_model::machine::{Goal, Machine};
use weir_model::platform::Library;
use weir_model::tenant::Tenant;
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
                t.pattern = pattern;
                t.working_set = size;
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
        other => panic!("what is {other}?"),
    }
}
