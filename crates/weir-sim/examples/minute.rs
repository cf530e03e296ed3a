//! A minute of a server with 128 cores, 12 channels and four cards under a changing mix, by parts; and how near short windows
//! of it are to the same windows in detail. `docs/benchmarks.md` has the figures.
//!
//! ```text
//! cargo run --release -p weir-sim --example minute -- 60 2%
//! cargo run --release -p weir-sim --example minute -- compare 20 10
//! ```
//! The first runs seconds, with an error; the second compares windows of this many milliseconds on the first 16 cores of each
//! tenant, under this many seeds; the phases of its programs are as much shorter.

use std::time::Instant;

use weir_model::access::{Op, Pattern};
use weir_model::action::Action;
use weir_model::machine::{MachineError, Observation, Testbed};
use weir_model::platform::Library;
use weir_model::sampled::traffic;
use weir_model::tenant::{Placement, Tenant};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::Workloads;
use weir_sim::{Sampling, SimTestbed};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// When each tenant comes and ends, in seconds of a minute, and when the third is limited.
const TIMES: [(f64, f64); 4] = [(0.0, 60.0), (0.0, 60.0), (10.0, 40.0), (20.0, 60.0)];
const LIMITED: f64 = 25.0;
/// Seconds of a window.
const WINDOW: f64 = 5.0;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut library = Library::builtin();
    library.add("minute.toml", include_str!("minute.toml"))?;
    let platform = library.compose("minute+4xleo-x16")?;
    let sampling = Sampling::of(&platform);
    let bed = SimTestbed::new(&platform)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["compare", seeds, ms] => compare(&bed, sampling, seeds.parse()?, ms.parse()?),
        [seconds, error] => {
            let error: f64 = error.trim_end_matches('%').parse()?;
            minute(
                bed.sampled(sampling).to_error(Some(error / 100.0)),
                seconds.parse()?,
            )
        }
        _ => Err("SECONDS ERROR% or compare SEEDS MS".into()),
    }
}

/// The tenants: `cores` each, phases of programs shorter by `shorter`.
fn tenants(cores: u32, shorter: u64) -> Result<Vec<Tenant>> {
    let cards = || {
        Placement::Interleave(
            (0..4)
                .map(|card| (TierName::named(format!("cxl{card}")), 1))
                .collect(),
        )
    };
    let dram = || Placement::Bind(TierName::named("dram"));
    let own = |place: u32| (place * 32..place * 32 + cores).collect::<Vec<u32>>();
    let stream = |name: &str, op, place, placement| Tenant {
        name: name.into(),
        cores: own(place),
        placement,
        ..Tenant::on_first_cores(
            op,
            Pattern::Sequential,
            &TierName::named("dram"),
            1,
            Bytes::gib(1),
        )
    };
    let program = |name: &str, place, placement| -> Result<Tenant> {
        let mut work = Workloads::builtin()
            .get(name)
            .ok_or("no such workload")?
            .clone();
        work.threads = cores;
        for phase in &mut work.phases {
            phase.instructions /= shorter;
        }
        Ok(Tenant::running(work, own(place), placement))
    };
    Ok(vec![
        stream("scan", Op::Ld, 0, dram()),
        program("bc-kron", 1, dram())?,
        stream("batch", Op::St, 2, cards()),
        program("bfs-twitter", 3, cards())?,
    ])
}

fn limit() -> Action {
    Action::Bandwidth {
        tenant: "batch".into(),
        percent: 50,
    }
}

/// Rates in GB/s: of each tenant, DRAM and CXL.
fn rates(seen: &Observation) -> Vec<f64> {
    let tenants = seen.tenants.iter().map(|tenant| tenant.bytes.get());
    let all = tenants.chain(traffic(&seen.counters).map(|lines| lines * LINE_BYTES));
    all.map(|bytes| bytes as f64 / seen.window.get()).collect()
}

fn errors(seen: &Observation) -> Vec<f64> {
    let all = seen
        .sampled
        .iter()
        .flat_map(|how| how.tenants.iter().chain(&how.traffic));
    all.map(|error| error.unwrap_or(0.0)).collect()
}

fn minute(bed: SimTestbed, seconds: f64) -> Result<()> {
    let (all, began) = (tenants(32, 1)?, Instant::now());
    let mut machine = bed.open(1)?;
    let (mut running, mut simulated, mut parts, mut missed) = (None, 0.0, 0, 0);
    for number in 0..(seconds / WINDOW).ceil() as u32 {
        let at = f64::from(number) * WINDOW * 60.0 / seconds;
        let now: Vec<Tenant> = (all.iter().zip(TIMES))
            .filter(|(_, (from, to))| (*from..*to).contains(&at))
            .map(|(tenant, _)| tenant.clone())
            .collect();
        let limited = (LIMITED..TIMES[2].1).contains(&at);
        let names: Vec<String> = now.iter().map(|tenant| tenant.name.clone()).collect();
        let mix = Some((names, limited));
        if running != mix {
            machine.stop()?;
            machine.start(&now)?;
            if limited {
                machine.act(&limit())?;
            }
            running = mix;
        }
        let seen = machine.observe(Nanos(WINDOW * 1e9))?;
        let how = seen.sampled.as_ref().ok_or("not sampled")?;
        simulated += how.simulated.get();
        parts += how.parts;
        missed += u32::from(how.missed);
        let figures = rates(&seen).into_iter().zip(errors(&seen));
        let figures: Vec<String> = figures
            .map(|(rate, error)| format!("{rate:.1} ±{:.2} %", error * 100.0))
            .collect();
        println!("{at:3} s: {} ({} parts)", figures.join(", "), how.parts);
    }
    println!(
        "{:.1} s for {seconds} s; {:.1} ms simulated and counted in {parts} parts; {missed} windows missed the error",
        began.elapsed().as_secs_f64(),
        simulated / 1e6
    );
    Ok(())
}

fn compare(bed: &SimTestbed, sampling: Sampling, seeds: u64, ms: f64) -> Result<()> {
    let all = tenants(4, 400)?;
    let window = Nanos(ms * 1e6);
    let run =
        |bed: &SimTestbed, seed, whole: bool| -> std::result::Result<Observation, MachineError> {
            let mut machine = bed.open(seed)?;
            machine.start(&all)?;
            machine.act(&limit())?;
            if whole {
                machine.observe(sampling.warm_up)?;
            }
            machine.observe(window)
        };
    let (mut within, mut off, mut worst) = (vec![0; 6], vec![0.0; 6], vec![0.0_f64; 6]);
    let mut took = [0.0; 2];
    for seed in 1..=seeds {
        let began = Instant::now();
        let whole = rates(&run(bed, seed, true)?);
        took[0] += began.elapsed().as_secs_f64();
        let began = Instant::now();
        let seen = run(&bed.clone().sampled(sampling), seed, false)?;
        took[1] += began.elapsed().as_secs_f64();
        for (i, ((whole, part), error)) in whole
            .iter()
            .zip(rates(&seen))
            .zip(errors(&seen))
            .enumerate()
        {
            within[i] += u32::from((part - whole).abs() <= error * part);
            off[i] += (part / whole - 1.0) / seeds as f64;
            worst[i] = worst[i].max((part / whole - 1.0).abs());
        }
    }
    println!(
        "tenants, DRAM, CXL: within the interval {within:?} of {seeds}; mean difference {off:.4?}; largest {worst:.4?}"
    );
    println!("{:.1} s in detail, {:.1} s by parts", took[0], took[1]);
    Ok(())
}
