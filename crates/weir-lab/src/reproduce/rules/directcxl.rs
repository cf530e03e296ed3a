//! Memory of another server over CXL, RDMA, a key-value store and swap (DirectCXL, USENIX ATC 2022).
//!
//! No row is a prediction: what is made of idle latencies and of the paper's own figures is arithmetic. Loads are those of
//! the model of the prototype; what adapters, libraries and the kernel take is the data of
//! [`disaggregated`](crate::disaggregated). A cycle of the prototype is 10 ns.

use weir_model::access::{Op, Pattern};
use weir_model::units::{Bytes, Nanos};

use crate::disaggregated::methods::{Method, Methods, PAGE, Parts};
use crate::disaggregated::programs::{Program, ProgramRow, Work};
use crate::reproduce::figures::{chase_of, flushed, idle, ratio};
use crate::reproduce::rule::{Figure, Rule};

const MACHINE: &str = "directcxl+directcxl-blade";
const CYCLE_NS: f64 = 10.0;
const LINE: Bytes = Bytes(64);
/// Table 2: caches, CXL logic, link, DRAM controller, in cycles of the processor.
const PARTS: [f64; 4] = [30.0, 165.0, 91.0, 42.0];
/// Clocks of processor and logic, of those of the prototype (DIR-043, DIR-044).
const FASTER: (f64, f64) = (12.0, 4.0);
/// Cycles of the CXL logic that are the processor's own.
const OF_CORE: f64 = 104.0;
/// How much faster the link is: PCIe 5.0 and twice the lanes.
const LINK: f64 = 4.0;
const CLOCK_GHZ: f64 = 1.2;

const SETS: &str = "sets a time of the methods with CXL";
const ADAPTER: &str = "needs the caches of the adapter, which holds translations of some regions";
const SCALED: &str = "caches keep their cycles, logic and controller take three times as many, the link three quarters; the paper does \
     not say how it scales the logic, and 104 of its 165 cycles as the processor's own give its figure";
const COLD: &str =
    "ours has the adapter's time of figure 6, and no caches in it; the paper's mean is lower";
const OF_GET: &str = "a Get alone stands for the mean of programs: of the others the paper does not say how much they compute for each access";
const COMPUTES: &str =
    "needs how much an inference computes, and how its requests are put together";

/// A figure of the methods' data alone.
fn of(unit: &'static str, read: impl Fn(&Methods) -> f64 + Send + Sync + 'static) -> Figure {
    Figure::new(unit, move |_| {
        let methods = Methods::builtin().map_err(|why| why.to_string())?;
        Ok(read(&methods))
    })
}

fn cycles(figure: Figure) -> Figure {
    Figure::new("cycles", move |results| {
        Ok(figure.value(results)? / CYCLE_NS)
    })
}

fn wire() -> Figure {
    of("ns", |methods| methods.wire(LINE).total().get())
}

fn share(of_all: fn(&Parts) -> Nanos, parts: fn(&Methods) -> Parts) -> Figure {
    of("%", move |methods| {
        let parts = parts(methods);
        100.0 * (of_all(&parts) / parts.total())
    })
}

/// Table 2 with faster clocks, in cycles of the faster processor.
fn scaled() -> [f64; 4] {
    let [caches, logic, link, dram] = PARTS;
    let slower = FASTER.0 / FASTER.1;
    [
        caches,
        OF_CORE + (logic - OF_CORE) * slower,
        link * slower / LINK,
        dram * slower,
    ]
}

/// Lines in flight when many are loaded at once, by Little's law.
fn in_flight() -> Figure {
    let all = |lines: u32| flushed(MACHINE, "cxl0", Op::Ld, Pattern::FlushedBurst { lines });
    let (one, many, load) = (all(1), all(64), idle(MACHINE, "cxl0"));
    Figure::new("misses", move |results| {
        let more = 64.0 * many.value(results)? - one.value(results)?;
        // The last wave of misses is as long as the first.
        Ok(64.0 * load.value(results)? / (more + load.value(results)?))
    })
}

/// A figure of the methods by which a Get is made.
fn of_get(
    unit: &'static str,
    read: fn(&dyn Fn(Method) -> Option<ProgramRow>) -> Option<f64>,
) -> Figure {
    let (local, device) = (idle(MACHINE, "dram"), idle(MACHINE, "cxl0"));
    Figure::new(unit, move |results| {
        let methods = Methods::builtin().map_err(|why| why.to_string())?;
        let (local, device) = (local.value(results)?, device.value(results)?);
        let rows = Work::get(&methods, Nanos(local), Nanos(device)).rows(Program::MemDb, &methods);
        let row = |method| rows.iter().find(|row| row.method == method).cloned();
        read(&row).ok_or_else(|| "there is no such method".into())
    })
}

fn over(row: &dyn Fn(Method) -> Option<ProgramRow>, slow: Method, fast: Method) -> Option<f64> {
    Some(row(slow)?.time / row(fast)?.time)
}

pub(super) fn rules() -> Vec<Rule> {
    let chase = |tier, size| cycles(chase_of(MACHINE, tier, size));
    let load = || cycles(idle(MACHINE, "cxl0"));
    let part = |at: usize| Figure::new("cycles", move |_| Ok(PARTS[at]));
    let of_parts = |parts: &'static [usize]| {
        Figure::new("%", move |_| {
            let some: f64 = parts.iter().map(|&at| PARTS[at]).sum();
            Ok(100.0 * some / PARTS.iter().sum::<f64>())
        })
    };
    let mut all = vec![
        Rule::identity(
            "DIR-002",
            of_get("x", |row| over(row, Method::KeyValue, Method::Cxl)),
        )
        .noting(OF_GET),
        Rule::identity("DIR-003", cycles(wire())),
        Rule::identity(
            "DIR-004",
            cycles(of("ns", |methods| methods.wire(LINE).network.get())),
        )
        .noting(SETS),
        Rule::identity(
            "DIR-005",
            share(|parts| parts.network, |methods| methods.wire(LINE)),
        ),
        Rule::identity(
            "DIR-006",
            cycles(of("ns", |methods| methods.wire(LINE).memory.get())),
        )
        .noting(SETS),
        Rule::identity("DIR-007", load()),
        Rule::identity("DIR-008", ratio(&wire(), &idle(MACHINE, "cxl0"))),
        Rule::identity("DIR-009", cycles(of("ns", |methods| methods.post.get()))).noting(SETS),
        Rule::identity(
            "DIR-010",
            share(|parts| parts.copy, |methods| methods.rdma(PAGE)),
        )
        .noting(SETS),
        Rule::calibrated("DIR-012", in_flight()),
        Rule::identity("DIR-016", of_parts(&[2])),
        Rule::calibrated("DIR-017", chase("dram", Bytes::kib(8))),
        Rule::calibrated("DIR-018", chase("dram", Bytes::kib(256))),
        Rule::calibrated("DIR-019", cycles(idle(MACHINE, "dram"))),
        Rule::identity("DIR-020", load()),
        Rule::identity("DIR-027", of_parts(&[1, 2])),
        Rule::identity("DIR-030", ratio(&wire(), &idle(MACHINE, "dram"))).noting(COLD),
        Rule::identity("DIR-033", part(0)),
        Rule::identity("DIR-034", part(1)),
        Rule::identity("DIR-035", part(2)),
        Rule::identity("DIR-036", part(3)),
        Rule::calibrated("DIR-037", load()),
        Rule::identity(
            "DIR-046",
            of_get("x", |row| over(row, Method::Swap, Method::Cxl)),
        )
        .noting(OF_GET),
        Rule::identity(
            "DIR-048",
            of_get("%", |row| {
                let swap = row(Method::Swap)?;
                Some(100.0 * (swap.software / swap.time))
            }),
        )
        .noting(SETS),
        Rule::identity(
            "DIR-052",
            of_get("%", |row| {
                let store = row(Method::KeyValue)?;
                Some(100.0 * (store.network / store.time))
            }),
        )
        .noting(SETS),
        Rule::identity(
            "DIR-053",
            of_get("%", |row| {
                let store = row(Method::KeyValue)?;
                Some(100.0 * (store.software / store.time))
            }),
        )
        .noting(SETS),
    ];
    for (n, at) in (38..).zip(0..4) {
        let of = move |unit, ghz: f64| Figure::new(unit, move |_| Ok(scaled()[at] / ghz));
        all.push(Rule::identity(format!("DIR-0{n}a"), of("cycles", 1.0)).noting(SCALED));
        all.push(Rule::identity(format!("DIR-0{n}b"), of("ns", CLOCK_GHZ)).noting(SCALED));
    }
    let sum = |unit, ghz: f64| Figure::new(unit, move |_| Ok(scaled().iter().sum::<f64>() / ghz));
    all.push(Rule::identity("DIR-042a", sum("cycles", 1.0)).noting(SCALED));
    all.push(Rule::identity("DIR-042b", sum("ns", CLOCK_GHZ)).noting(SCALED));
    let link = Figure::new("ns", |_| Ok(scaled()[2] / CLOCK_GHZ));
    all.push(Rule::identity("DIR-045", link).noting(SCALED));
    all.extend(Rule::not_modelled(
        "DIR",
        [1, 21, 22, 25, 26, 28, 29],
        ADAPTER,
    ));
    all.extend(Rule::not_modelled("DIR", [49], COMPUTES));
    let missing = of("queries", |methods| 1.0 / methods.missing);
    all.push(Rule::identity("DIR-055", missing).noting(SETS));
    all
}
