//! Policies side by side on a preset: `policies PRESET FAST:SLOW SECONDS`.

use weir_model::units::{Bytes, GbPerSec, Nanos};
use weir_pages::{Costs, Host, Memory, Options, Simulation, TierCurve, by_name, policy, presets};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let workload = presets::by_name(&args[0], Bytes::gib(16)).expect("a preset");
    let (fast, slow) = args[1].split_once(':').expect("FAST:SLOW");
    let (fast, slow): (f64, f64) = (
        fast.parse().expect("a number"),
        slow.parse().expect("a number"),
    );
    let seconds = args[2].parse().expect("seconds");
    let total = workload.peak().get() as f64 * 1.05;
    let host = |fast: f64, slow: f64| Host {
        fast: Memory {
            capacity: Bytes(fast as u64),
            curve: TierCurve::of_queue(Nanos(100.0), GbPerSec(200.0)),
        },
        slow: Memory {
            capacity: Bytes(slow as u64),
            curve: TierCurve::of_queue(Nanos(220.0), GbPerSec(50.0)),
        },
        swap: false,
        costs: Costs::default(),
    };
    let options = Options {
        seconds,
        interval_s: 0.25,
        seed: 1,
    };
    let part = host(total * fast / (fast + slow), total * slow / (fast + slow));
    let all = host(total * 1.1, total);
    let tail = |sim: &Simulation<'_>| {
        let i = sim.intervals();
        let last = &i[i.len() * 3 / 4..];
        let n = last.len() as f64;
        (
            last.iter().map(|i| i.maccesses).sum::<f64>() / n,
            last.iter().map(|i| i.local_pct).sum::<f64>() / n,
        )
    };
    let mut local =
        Simulation::new(&workload, &all, by_name("first-touch").unwrap(), options).unwrap();
    let base = local.run(|| true);
    let settled = tail(&local).0;
    for (name, _) in policy::NAMES {
        let begin = std::time::Instant::now();
        let mut sim = Simulation::new(&workload, &part, by_name(name).unwrap(), options).unwrap();
        let run = sim.run(|| true);
        let (t, l) = tail(&sim);
        println!(
            "{name:18} {:6.2} %  settled {:6.2} %  local {:5.1} {l:5.1}  anon {:5.1}  promoted {:9} demoted {:9} faults {:9} pp {:.2} kernel {:.2} swap {} fail {}  {:.1} s wall, {:.0} M acc/s",
            run.maccesses_per_s / base.maccesses_per_s * 100.0,
            t / settled * 100.0,
            run.local_pct,
            run.anon_local_pct,
            run.counters.promoted(),
            run.counters.demoted(),
            run.counters.numa_hint_faults,
            run.counters.ping_pong().unwrap_or(0.0),
            run.kernel_pct,
            run.counters.pswpout,
            run.counters.pgmigrate_fail_dst_node_full,
            begin.elapsed().as_secs_f64(),
            run.maccesses_per_s * run.seconds / begin.elapsed().as_secs_f64(),
        );
    }
}
