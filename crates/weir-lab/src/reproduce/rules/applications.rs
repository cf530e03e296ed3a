//! Programs as tenants, over all papers: Redis by how many requests arrive (MEMO section 5.1, MICRO 2023 section 5.1), DLRM
//! on two channels (MEMO section 5.2), and programs with streams and storage (CXL-Interplay section IV).

use weir_model::access::{Op, Pattern};
use weir_model::counters::Counter;
use weir_model::tenant::{Placement, Stream as Lines, Tenant, Work};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES, Nanos};
use weir_model::workload::{Order, Workload, Workloads};

use crate::interplay::{Together, TogetherRun};
use crate::reproduce::figures::{excess_pct, greatest, loss_pct, ratio};
use crate::reproduce::points::Stream;
use crate::reproduce::rule::{Figure, Rule};

const UNIFORM: &str = "the preset of YCSB A with uniform keys; ours is what one thread can answer, without a network and \
     clients of its own";
const SPIKE: &str = "12 clients with one request each; ours is the first of loads 5,000 apart at which p99 is five times what a request takes alone";
const GAP: &str = "12 clients with one request each; ours is the first of loads 10,000 apart at which p99 on the card is a \
     quarter longer: the paper has no measure of large, and names no lower load";
const BEFORE: &str = "12 clients with one request each; ours at 50,000 requests a second, since the paper's card answers 55,000";
const ROWS: &str = "the preset of MERCI, the benchmark of the paper; ours is the last count with nine tenths of that many times one thread";
const WINS: &str = "ours is the first count at which every fifth page on the card gains 1 %";
const GAINS: &str = "with the 55 GB/s that are assumed for the two channels; it is 12 to 13 % with 52 GB/s and 5 to 7 % with 60 GB/s, \
     the ends of what is assumed";
const FILES: &str = "the worst of the presets of filebench's file server and mail server, 16 threads in the page cache on DRAM";
const FILES_FILL: &str =
    "the preset of the file server, alone: each copy passes the cache, and nothing takes it away";
const RANK: &str = "the preset of PageRank on a Kronecker graph, 16 threads; the worst of 16 threads of loads, stores and \
     non-temporal stores";
const TYPE_B: &str = "the worst of the presets of Redis and of language-model decoding";
const ROCKS: &str = "single buffered reads stand for RocksDB; what raises its rate in the paper retires fewer instructions, \
     which a program of the model never does";
const FILLS: &str = "the preset of PageRank, alone";
const LATENCIES: &str = "12 clients with one request each; ours is the time at the server, the paper's p99 is the client's";

/// Requests that are watched for a quantile.
const REQUESTS: u64 = 4_000;
/// Threads of YCSB, each with one request under way: those of MICRO 2023's published scripts. MEMO does not name a number.
const CLIENTS: u32 = 12;
/// Lines that each thread of another program touches.
const ACCESSES: u64 = 20_000;

/// A preset; an empty description where there is none, which runs nothing.
fn preset(name: &str, threads: u32) -> Option<Workload> {
    Some(Workload {
        threads,
        ..Workloads::builtin().get(name)?.clone()
    })
}

/// Where pages are: `N` on DRAM for each `M` on the card.
fn places(near: u32, far: u32) -> Placement {
    let (dram, card) = (TierName::dram(), TierName::named("cxl0"));
    match (near, far) {
        (_, 0) => Placement::Bind(dram),
        (0, _) => Placement::Bind(card),
        _ => Placement::Interleave(vec![(dram, near), (card, far)]),
    }
}

/// A figure of tenants that run together.
fn of_run(
    unit: &'static str,
    platform: &'static str,
    tenants: Option<Vec<Tenant>>,
    read: impl Fn(&TogetherRun) -> Option<f64> + Send + Sync + 'static,
) -> Figure {
    let Some(tenants) = tenants else {
        return Figure::new(unit, |_| Err("there is no such preset".into()));
    };
    let together = Together {
        tenants,
        requests: REQUESTS,
        accesses: ACCESSES,
    };
    let nothing = || "too little was seen".to_owned();
    Figure::read(unit, platform, together, move |run| {
        read(run).ok_or_else(nothing)
    })
}

/// Redis with uniform keys on one core, closed without a rate; with one, clients send requests as YCSB does.
fn redis(placement: Placement, per_second: Option<f64>) -> Option<Vec<Tenant>> {
    let mut work = preset("redis-ycsb-a", 1)?;
    for region in work.phases.iter_mut().flat_map(|phase| &mut phase.regions) {
        if region.order == Order::Zipf {
            region.order = Order::Random;
        }
    }
    let requests = work.requests.as_mut()?;
    requests.per_second = per_second;
    requests.clients = per_second.map(|_| CLIENTS);
    Some(vec![Tenant::running(work, vec![0], placement)])
}

fn answered(run: &TogetherRun) -> Option<f64> {
    Some(run.tenants.first()?.histogram().len() as f64 / run.window.get() * 1e9)
}

/// What one thread of Redis answers in a second.
fn capacity(platform: &'static str, placement: Placement) -> Figure {
    of_run("QPS", platform, redis(placement, None), answered)
}

/// The p99 of Redis at a load.
fn p99(platform: &'static str, placement: Placement, rate: f64) -> Figure {
    of_run("ns", platform, redis(placement, Some(rate)), |run| {
        Some(run.tenants.first()?.histogram().summary()?.p99?.get())
    })
}

/// The first of these loads at which a condition on two figures holds.
fn first_load(
    loads: impl IntoIterator<Item = f64>,
    of: impl Fn(f64) -> (Figure, Figure),
    holds: impl Fn(f64, f64) -> bool + Send + Sync + 'static,
) -> Figure {
    let steps: Vec<(f64, (Figure, Figure))> =
        loads.into_iter().map(|load| (load, of(load))).collect();
    Figure::new("QPS", move |results| {
        let mut first = None;
        for (load, (one, other)) in &steps {
            // All are asked for in the first round.
            let (one, other) = (one.value(results)?, other.value(results)?);
            if first.is_none() && holds(one, other) {
                first = Some(*load);
            }
        }
        first.ok_or_else(|| "at no load that is looked at".into())
    })
}

/// Instructions of the first tenant in a nanosecond.
fn pace(run: &TogetherRun) -> Option<f64> {
    let instructions = run
        .tenants
        .first()?
        .counters
        .get(Counter::Instructions)
        .ok()?;
    Some(instructions as f64 / run.window.get())
}

/// A program on this many cores.
fn program(name: &str, threads: u32, placement: Placement) -> Option<Tenant> {
    let cores = (0..threads).collect();
    Some(Tenant::running(preset(name, threads)?, cores, placement))
}

/// Sixteen threads that repeat an instruction or request, on the cores after `first`.
fn stream(op: Op, tier: &str, first: u32) -> Tenant {
    let (pattern, set) = match op.is_storage() {
        true => (crate::interplay::REQUESTS, crate::interplay::STORAGE_SET),
        false => (Pattern::Sequential, Bytes::mib(64)),
    };
    Tenant {
        name: format!("{op}@{tier}"),
        work: Work::Stream(Lines {
            pause: Nanos(0.0),
            ..Lines::new(op, pattern, set)
        }),
        cores: (first..first + 16).collect(),
        ..Tenant::on_first_cores(op, pattern, &TierName::named(tier), 16, set)
    }
}

/// How many times as fast a program is alone as with a stream.
fn slowdown(
    platform: &'static str,
    name: &'static str,
    threads: u32,
    tier: &str,
    op: Op,
    on: &str,
) -> Figure {
    let own = || program(name, threads, Placement::Bind(TierName::named(tier)));
    let alone = own().map(|own| vec![own]);
    let both = own().map(|own| vec![own, stream(op, on, threads)]);
    ratio(
        &of_run("instructions/ns", platform, alone, pace),
        &of_run("instructions/ns", platform, both, pace),
    )
}

/// The same as a loss in percent.
fn loss(slowdown: Figure) -> Figure {
    Figure::new("% loss", move |results| {
        Ok((1.0 - 1.0 / slowdown.value(results)?) * 100.0)
    })
}

/// DLRM's embedding reduction on one cluster's two channels.
fn dlrm(threads: u32, far: u32) -> Figure {
    let near = if far > 0 { 4 } else { 1 };
    let tenant = program("merci", threads, places(near, far));
    of_run(
        "instructions/ns",
        "memo-snc4",
        tenant.map(|t| vec![t]),
        pace,
    )
}

const DLRM_THREADS: [u32; 9] = [1, 4, 8, 12, 16, 20, 24, 28, 32];

/// The last count of threads with nine tenths of this many times one thread's pace.
fn linear_to() -> Figure {
    let steps: Vec<(u32, Figure)> = DLRM_THREADS.map(|n| (n, dlrm(n, 0))).into();
    Figure::new("threads", move |results| {
        let mut one = 0.0;
        let (mut last, mut bent) = (1, false);
        for (threads, pace) in &steps {
            let pace = pace.value(results)?;
            if *threads == 1 {
                one = pace;
            }
            bent |= pace < 0.9 * one * f64::from(*threads);
            if !bent {
                last = *threads;
            }
        }
        Ok(f64::from(last))
    })
}

/// The first count at which pages on the card gain.
fn wins_from() -> Figure {
    let steps: Vec<(u32, Figure, Figure)> =
        DLRM_THREADS.map(|n| (n, dlrm(n, 0), dlrm(n, 1))).into();
    Figure::new("threads", move |results| {
        let mut first = None;
        for (threads, near, spread) in &steps {
            let (near, spread) = (near.value(results)?, spread.value(results)?);
            if first.is_none() && spread > 1.01 * near {
                first = Some(f64::from(*threads));
            }
        }
        first.ok_or_else(|| "at no count up to 32".into())
    })
}

/// The worst loss of file applications in the page cache with sixteen threads on the card.
fn files(op: Op) -> Figure {
    let losses = ["interplay-a", "interplay-b"].into_iter().flat_map(|on| {
        ["fileserver", "varmail"].map(|name| loss(slowdown(on, name, 16, "dram", op, "cxl0")))
    });
    greatest(losses.collect())
}

/// Megabytes of the last-level cache that a program of 16 threads on DRAM fills alone.
fn filled(name: &'static str) -> Figure {
    let tenant = program(name, 16, places(1, 0));
    of_run("MB", "interplay-a", tenant.map(|t| vec![t]), |run| {
        let counters = &run.tenants.first()?.counters;
        let bytes = counters.get(Counter::LlcOccupancy).ok()?;
        Some((bytes / LINE_BYTES * LINE_BYTES) as f64 / 1e6)
    })
}

pub(super) fn rules() -> Vec<Rule> {
    let memo = "memo";
    let (near, half, far) = (|| places(1, 0), || places(1, 1), || places(0, 1));
    let spike = first_load(
        (4..=16).map(|n| f64::from(n) * 5_000.0),
        |load| (p99(memo, half(), load), capacity(memo, half())),
        |p99, capacity| p99 >= 5.0 * 1e9 / capacity,
    );
    let gap = first_load(
        (1..=5).map(|n| f64::from(n) * 10_000.0),
        |load| (p99(memo, far(), load), p99(memo, near(), load)),
        |far, near| far >= 1.25 * near,
    );
    let at = |load| ratio(&p99(memo, far(), load), &p99(memo, near(), load));
    let card = "micro23+micro23-a";
    let above = |load| excess_pct(&p99(card, far(), load), &p99(card, near(), load));
    let gain = Figure::new("%", {
        let (near, spread) = (dlrm(32, 0), dlrm(32, 1));
        move |results| Ok((spread.value(results)? / near.value(results)? - 1.0) * 100.0)
    });
    let rank = [Op::Ld, Op::St, Op::NtSt]
        .map(|op| slowdown("interplay-a", "pr-kron", 16, "dram", op, "cxl0"));
    let beside_storage = ["redis-ycsb-a", "llama-decode"]
        .into_iter()
        .flat_map(|name| {
            ["interplay-a", "interplay-b"].map(|platform| {
                let threads = if name == "redis-ycsb-a" { 1 } else { 16 };
                loss(slowdown(
                    platform,
                    name,
                    threads,
                    "cxl0",
                    Op::RandRead,
                    "ssd0",
                ))
            })
        });
    let buffered = Stream {
        pattern: crate::interplay::buffered(crate::interplay::REQUESTS),
        ..Stream::requests("interplay-a", "ssd0", Op::RandRead)
    };
    let rocks = loss_pct(
        buffered,
        Stream::new("interplay-a", "cxl0", Op::Ld),
        (16, 16),
    );
    let gained = Figure::new("% gain", move |results| Ok(-rocks.value(results)?));
    vec![
        Rule::predicted("MEM-065", gap).noting(GAP),
        Rule::predicted("MEM-066", capacity(memo, far())).noting(UNIFORM),
        Rule::predicted("MEM-067", spike).noting(SPIKE),
        Rule::predicted("MEM-068", capacity(memo, half())).noting(UNIFORM),
        Rule::predicted("MEM-069", capacity(memo, near())).noting(UNIFORM),
        Rule::predicted("MEM-072", at(50_000.0)).noting(BEFORE),
        Rule::predicted("MEM-076", linear_to()).noting(ROWS),
        Rule::predicted("MEM-077", wins_from()).noting(WINS),
        Rule::predicted("MEM-078", gain).noting(GAINS),
        Rule::predicted("MIC-042", above(25_000.0)).noting(LATENCIES),
        Rule::predicted("MIC-043", above(45_000.0)).noting(LATENCIES),
        Rule::predicted("MIC-044", above(85_000.0)).noting(LATENCIES),
        Rule::predicted("INT-102", files(Op::NtSt)).noting(FILES),
        Rule::predicted("INT-103", files(Op::Ld)).noting(FILES),
        Rule::predicted("INT-104", files(Op::St)).noting(FILES),
        Rule::predicted("INT-105", gained).noting(ROCKS),
        Rule::predicted("INT-109", greatest(rank.into())).noting(RANK),
        Rule::predicted("INT-110", filled("fileserver")).noting(FILES_FILL),
        Rule::predicted("INT-111", filled("pr-kron")).noting(FILLS),
        Rule::predicted("INT-112", greatest(beside_storage.collect())).noting(TYPE_B),
    ]
}
