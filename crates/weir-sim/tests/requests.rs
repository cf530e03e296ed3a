//! Laws of queues that hold exactly, for programs that answer requests and hardly touch memory: M/M/1, M/D/1, M/M/2, a
//! closed loop of clients that think, a lock (Kleinrock, *Queueing Systems*, volume 1, chapters 3 to 5).

use crate::common::*;
use weir_model::action::Action;
use weir_model::counters::Counter;
use weir_model::latency::LatencyHistogram;
use weir_model::machine::Machine;
use weir_model::tenant::{Placement, Tenant};
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::{Order, Phase, Region, Requests, Spread, Within, Workload};
use weir_sim::SimMachine;

/// Instructions of a request, one cycle each.
const LENGTH: u64 = 10_000;

/// A program whose every access hits L1.
fn program(threads: u32, requests: Requests) -> Workload {
    let region = Region {
        name: "stack".into(),
        bytes: Bytes::kib(4),
        order: Order::Random,
        share: 1.0,
        element: Bytes(8),
        stride: Bytes(8),
        stores: 0.0,
        non_temporal: 0.0,
        within: Within::Sequential,
        streams: 1,
        batch: 1,
        skew: 0.99,
        dependent: 0.0,
        indexed_by: None,
        object: None,
        modifies: 0.0,
        mispredicted: 0.0,
    };
    Workload {
        name: "served".into(),
        summary: String::new(),
        source: String::new(),
        assumed: None,
        threads,
        application: None,
        variant: None,
        core_ipc: None,
        requests: Some(requests),
        phases: vec![Phase {
            name: "one".into(),
            instructions: 1_000_000_000,
            cpi: 1.0,
            apki: 1.0,
            slice: 0.0,
            vector: 0.0,
            mispredicts: 0.0,
            regions: vec![region],
        }],
    }
}

fn requests(spread: Spread) -> Requests {
    Requests {
        unit: "request".into(),
        instructions: LENGTH,
        spread,
        per_second: None,
        clients: None,
        think: Nanos(0.0),
        locked: 0.0,
        updates: None,
    }
}

/// What was seen in a second or less.
struct Seen {
    latency: LatencyHistogram,
    window: Nanos,
    cycles: f64,
}

impl Seen {
    fn mean(&self) -> f64 {
        self.latency.mean().get()
    }

    fn quantile(&self, q: f64) -> f64 {
        self.latency.quantile(q).get()
    }

    fn per_ns(&self) -> f64 {
        self.latency.len() as f64 / self.window.get()
    }
}

fn tenant(work: Workload) -> Tenant {
    let cores = (0..work.threads).collect();
    Tenant::running(work, cores, Placement::Bind("dram".parse().unwrap()))
}

fn run(work: Workload, window: Nanos) -> Seen {
    let mut machine = SimMachine::new(&bed("emr2s+cxl-a"), 7);
    machine.start(&[tenant(work)]).unwrap();
    machine.observe(Nanos::from_micros(200.0)).unwrap();
    let mut seen = machine.observe(window).unwrap();
    let own = seen.tenants.remove(0);
    Seen {
        latency: own.latency.unwrap(),
        window: seen.window,
        cycles: own.counters.get(Counter::Cycles).unwrap() as f64,
    }
}

/// The time of one request without a queue, and the clock in cycles a nanosecond.
fn service() -> (f64, f64) {
    let alone = run(
        program(1, requests(Spread::Fixed)),
        Nanos::from_micros(5_000.0),
    );
    (alone.mean(), alone.cycles / alone.window.get())
}

fn near(what: &str, ours: f64, law: f64, within: f64) {
    assert!(
        (ours / law - 1.0).abs() < within,
        "{what}: {ours} for {law}"
    );
}

#[test]
fn a_closed_loop_answers_one_request_after_the_other() {
    let (time, clock) = service();
    near("cycles of a request", time * clock, LENGTH as f64, 0.01);
    let seen = run(
        program(4, requests(Spread::Fixed)),
        Nanos::from_micros(5_000.0),
    );
    near("four threads", seen.per_ns(), 4.0 / time, 0.01);
}

#[test]
fn one_thread_is_m_m_1_with_exponential_requests_and_m_d_1_with_equal_ones() {
    let (time, clock) = service();
    for load in [0.3, 0.6, 0.8] {
        let open = |spread| Requests {
            per_second: Some(load / time * 1e9),
            ..requests(spread)
        };
        let window = Nanos(20_000.0 * time / load);
        let seen = run(program(1, open(Spread::Exponential)), window);
        let law = time / (1.0 - load);
        near("M/M/1 mean", seen.mean(), law, 0.10);
        near("M/M/1 p99", seen.quantile(0.99), law * 100_f64.ln(), 0.15);
        near(
            "utilization",
            seen.cycles / seen.window.get(),
            load * clock,
            0.03,
        );
        // Pollaczek and Khinchine, for a service time without spread.
        let seen = run(program(1, open(Spread::Fixed)), window);
        near(
            "M/D/1 mean",
            seen.mean(),
            time * (1.0 + load / 2.0 / (1.0 - load)),
            0.06,
        );
    }
}

#[test]
fn two_threads_are_m_m_2_with_one_queue() {
    let (time, _) = service();
    let load = 0.7;
    let open = Requests {
        per_second: Some(2.0 * load / time * 1e9),
        ..requests(Spread::Exponential)
    };
    let seen = run(program(2, open), Nanos(15_000.0 * time / load));
    near("M/M/2 mean", seen.mean(), time / (1.0 - load * load), 0.08);
}

#[test]
fn clients_that_think_are_a_closed_network() {
    // A thread has its own client here, so that no request queues: a cycle is a request and a thought.
    let (time, _) = service();
    let thinks = Requests {
        think: Nanos(3.0 * time),
        ..requests(Spread::Exponential)
    };
    let seen = run(program(3, thinks), Nanos(6_000.0 * time));
    near("throughput", seen.per_ns(), 3.0 / (4.0 * time), 0.05);
    near("latency", seen.mean(), time, 0.05);
}

#[test]
fn clients_with_one_request_each_keep_their_rate_and_bound_the_queue() {
    let (time, _) = service();
    let from = |clients, load: f64| Requests {
        per_second: Some(load / time * 1e9),
        clients: Some(clients),
        ..requests(Spread::Fixed)
    };
    // One client never waits for another one.
    let one = run(program(1, from(1, 0.5)), Nanos(4_000.0 * time));
    near("its rate", one.per_ns(), 0.5 / time, 0.02);
    near("its p99", one.quantile(0.99), time, 0.02);
    // Late requests are sent at once, so that a rate that can be answered is answered.
    let all = run(program(1, from(12, 0.9)), Nanos(20_000.0 * time));
    near("the rate of all", all.per_ns(), 0.9 / time, 0.02);
    // Beyond it each request waits for those of all other clients, however long the run is.
    for threads in [1, 2] {
        let beyond = run(
            program(threads, from(12, 1.2 * f64::from(threads))),
            Nanos(20_000.0 * time),
        );
        let servers = f64::from(threads);
        near("throughput", beyond.per_ns(), servers / time, 0.02);
        near("latency", beyond.mean(), 12.0 / servers * time, 0.03);
    }
}

#[test]
fn a_lock_bounds_throughput_and_little_s_law_holds() {
    let (time, _) = service();
    for (threads, locked) in [(2, 0.1), (4, 0.5), (8, 1.0)] {
        let one_at_a_time = Requests {
            locked,
            ..requests(Spread::Exponential)
        };
        let seen = run(program(threads, one_at_a_time), Nanos(3_000.0 * time));
        let bound = (1.0 / (locked * time)).min(f64::from(threads) / time);
        assert!(
            seen.per_ns() < bound * 1.05,
            "{threads} threads, {locked} locked"
        );
        assert!(
            seen.per_ns() > bound * 0.6,
            "{threads} threads, {locked} locked"
        );
        near(
            "requests under way",
            seen.per_ns() * seen.mean(),
            f64::from(threads),
            0.03,
        );
        if locked == 1.0 {
            near("one at a time", seen.per_ns(), 1.0 / time, 0.05);
        }
    }
}

#[test]
fn slower_memory_takes_longer_and_the_queue_grows_with_it() {
    let library = weir_model::workload::Workloads::builtin();
    let mut work = library.get("redis-ycsb-a").unwrap().clone();
    work.requests.as_mut().unwrap().per_second = Some(50_000.0);
    let p99 = |tier: &str| {
        let mut machine = SimMachine::new(&bed("memo"), 7);
        let placed = Placement::Bind(tier.parse().unwrap());
        machine
            .start(&[Tenant::running(work.clone(), vec![0], placed)])
            .unwrap();
        let mut seen = machine.observe(Nanos::from_micros(30_000.0)).unwrap();
        let latency = seen.tenants.remove(0).latency.unwrap();
        latency.quantile(0.99).get()
    };
    let (near, far) = (p99("dram"), p99("cxl0"));
    assert!(far > near * 1.1, "{near} and {far}");
}

#[test]
fn a_quota_of_half_the_time_halves_what_a_program_does() {
    let mut machine = SimMachine::new(&bed("emr2s+cxl-a"), 7);
    let work = program(1, requests(Spread::Fixed));
    machine.start(&[tenant(work)]).unwrap();
    let instructions = |machine: &mut SimMachine| {
        let seen = machine.observe(Nanos::from_micros(100_000.0)).unwrap();
        seen.tenants[0].counters.get(Counter::Instructions).unwrap() as f64
    };
    let all = instructions(&mut machine);
    let half = Action::ProcessorTime {
        tenant: "served".into(),
        share: 0.5,
        period: Nanos::from_micros(10_000.0),
    };
    machine.act(&half).unwrap();
    near(
        "half of the time",
        instructions(&mut machine),
        all / 2.0,
        0.05,
    );
}
