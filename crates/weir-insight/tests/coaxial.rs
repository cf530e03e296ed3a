//! The programs of COAXIAL on its baseline and on servers whose memory is behind CXL.

use crate::common::Simulated;
use weir_insight::Run;
use weir_insight::coaxial::{CORES, DENSE, Program, programs};
use weir_lab::reproduce::rule::{On, Results, Rule};
use weir_lab::{Placed, WorkloadOptions, WorkloadRun};
use weir_model::machine::Testbed;
use weir_model::platform::Library;
use weir_model::published::{Published, builtin_rows};
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_sim::SimTestbed;

fn run(machine: &Simulated, program: &Program, tier: &str, cores: u32) -> WorkloadRun {
    let options = WorkloadOptions {
        prefetch: false,
        accesses: 3_000,
        seed: 1,
    };
    let workload = program.workload(cores);
    let placed = Placed {
        placement: Placement::Bind(TierName::named(tier)),
        ..Placed::local(&workload, &options)
    };
    machine.lab().ask(&[placed]).unwrap().remove(0)
}

fn ipc(run: &WorkloadRun) -> f64 {
    let run = Run::of(&run.counters).unwrap();
    run.instructions().unwrap() / run.cycles().get()
}

const FOUR: &str = "coaxial-ddr,llc.size=12MiB+4xcoaxial-x8@interleaved";
const SLOW: &str = "coaxial-ddr,llc.size=12MiB+4xcoaxial-x8@interleaved,idle=121ns";
const TWO: &str = "coaxial-ddr+2xcoaxial-x8@interleaved";
const ASYM: &str = "coaxial-ddr,llc.size=12MiB+4xcoaxial-asym@interleaved";

fn named(name: &str) -> Program {
    programs()
        .unwrap()
        .into_iter()
        .find(|p| p.name == name)
        .unwrap()
}

/// IPC of a program on all pages of a tier.
fn on(machine: &Simulated, name: &str, tier: &str) -> f64 {
    ipc(&run(machine, &named(name), tier, CORES))
}

#[test]
fn the_table_has_the_programs_of_the_paper_and_values_that_programs_can_have() {
    let programs = programs().unwrap();
    assert_eq!(programs.len(), 35);
    let logs: f64 = programs.iter().map(|p| p.ipc.ln()).sum();
    // Table 5 prints the mean of the cycles of an instruction.
    let cpi = (-logs / 35.0).exp();
    assert!((cpi - 2.02).abs() < 0.01, "{cpi}");
    for p in &programs {
        let shares = [p.dependent, p.wrong, p.stores];
        assert!(shares.iter().all(|s| (0.0..=1.0).contains(s)), "{p:?}");
        assert!(
            (0.25..4.0).contains(&p.cpi) && p.mpki > 0.0 && p.together > 0,
            "{p:?}"
        );
        assert!((p.cpi..8.0).contains(&p.apart), "{p:?}");
        assert!((p.mpki..=p.mpki.max(DENSE)).contains(&p.dense), "{p:?}");
    }
}

/// A change of the simulator's physics makes the calibrated values of `programs.csv` stale; `calibrate` prints new ones.
#[test]
fn the_baseline_has_the_ipc_to_which_programs_were_calibrated() {
    let base = Simulated::new("coaxial-ddr");
    for name in ["omnetpp", "mcf", "BFS", "bwaves"] {
        let (ours, paper) = (on(&base, name, "dram"), named(name).ipc);
        assert!(
            (ours / paper - 1.0).abs() < 0.05,
            "{name}: {ours} for {paper}"
        );
    }
}

#[test]
fn channels_help_what_saturates_one_and_their_latency_harms_what_waits() {
    let base = Simulated::new("coaxial-ddr");
    let (two, four, slow) = (
        Simulated::new(TWO),
        Simulated::new(FOUR),
        Simulated::new(SLOW),
    );
    let copy = on(&base, "copy", "dram");
    let more = [&two, &four].map(|machine| on(machine, "copy", "cxl0") / copy);
    assert!(
        1.5 < more[0] && more[0] < more[1] && more[1] < 4.0,
        "{more:?}"
    );
    let gcc = on(&base, "gcc", "dram");
    let less = [&four, &slow].map(|machine| on(machine, "gcc", "cxl0") / gcc);
    assert!(less[1] < less[0] && less[0] < 1.0, "{less:?}");
}

/// A program that misses in phases queues as long as one which does nothing else, and channels help it, although it leaves
/// most of the bandwidth unused in the mean (section 6.2: bwaves).
#[test]
fn misses_in_phases_queue_at_a_low_mean_utilisation() {
    let base = Simulated::new("coaxial-ddr");
    let four = Simulated::new(FOUR);
    let bursts = named("bwaves");
    // As many misses, spread evenly: the same cycles, in every part of the program.
    let missing = bursts.mpki / bursts.dense;
    let spread = Program {
        cpi: bursts.cpi * missing + bursts.apart * (1.0 - missing),
        dense: bursts.mpki,
        ..bursts.clone()
    };
    let gain = |program: &Program| {
        ipc(&run(&four, program, "cxl0", CORES)) / ipc(&run(&base, program, "dram", CORES))
    };
    let (bursts, spread) = (gain(&bursts), gain(&spread));
    assert!(spread < 1.02 && bursts > spread + 0.1, "{bursts} {spread}");
}

/// Speedups of every program on every server, and with fewer cores.
#[test]
#[ignore = "takes minutes; prints the table of docs/coaxial.md"]
fn table() {
    let servers = [TWO, FOUR, ASYM, SLOW].map(Simulated::new);
    let base = Simulated::new("coaxial-ddr");
    let mut logs = [0.0; 8];
    for program in programs().unwrap() {
        let on = |machine, tier, cores| ipc(&run(machine, &program, tier, cores));
        let of = |machine, cores| on(machine, "cxl0", cores) / on(&base, "dram", cores);
        let mut gains: Vec<f64> = servers.iter().map(|server| of(server, CORES)).collect();
        gains.extend([1, 4, 8].map(|cores| of(&servers[1], cores)));
        gains.push(on(&base, "dram", CORES));
        let cells: Vec<String> = gains.iter().map(|gain| format!("{gain:.2}")).collect();
        println!(
            "| {} | {} | {} |",
            program.name,
            program.ipc,
            cells.join(" | ")
        );
        for (log, gain) in logs.iter_mut().zip(&gains) {
            *log += gain.ln() / 35.0;
        }
    }
    println!(
        "geometric means {:?}",
        logs.map(|log| (log.exp() * 100.0).round() / 100.0)
    );
}

/// Finds the calibrated parameter of each program.
#[test]
#[ignore = "calibrates; prints apart and dense for programs.csv"]
fn calibrate() {
    let base = Simulated::new("coaxial-ddr");
    for program in programs().unwrap() {
        // From its own misses in every part of the program, over those of STREAM, to ever more time without any.
        let own = program.mpki.max(DENSE);
        let with = |x: f64| Program {
            dense: own + (program.mpki - own) * (-x).clamp(0.0, 1.0),
            apart: program.cpi + x.max(0.0),
            ..program.clone()
        };
        let at = |x| ipc(&run(&base, &with(x), "dram", CORES));
        let (mut low, mut high) = (-1.0, if program.mpki < DENSE { 8.0 } else { -1.0 });
        for _ in 0..12 {
            let middle = (low + high) / 2.0;
            match at(middle) > program.ipc {
                true => low = middle,
                false => high = middle,
            }
        }
        let found = with(high);
        println!(
            "{}: ipc {:.3} ({}), apart {:.2}, dense {:.1}",
            program.name,
            at(high),
            program.ipc,
            found.apart,
            found.dense,
        );
    }
}

fn open(on: On) -> Result<Box<dyn Testbed>, String> {
    let mut library = Library::builtin();
    let plain = library
        .change(on.platform)
        .map_err(|error| error.to_string())?;
    let platform = library.compose(&plain).map_err(|error| error.to_string())?;
    Ok(Box::new(
        SimTestbed::new(&platform).map_err(|error| error.to_string())?,
    ))
}

/// Rules of COAXIAL, each with its row.
fn rules() -> Vec<(Rule, Published)> {
    let mut rows = builtin_rows();
    rows.retain(|row| row.paper == "coaxial");
    let mut rules = weir_insight::published::rules();
    rules.retain(|rule| rule.id.starts_with("COX-"));
    let row = |rule: &Rule| rows.iter().find(|row| row.id == rule.id).cloned();
    rules
        .into_iter()
        .map(|rule| (rule.clone(), row(&rule).expect(&rule.id)))
        .collect()
}

#[test]
fn every_rule_has_a_row_in_its_unit_and_asks_a_platform_that_there_is() {
    let results = Results::new(&open, 1);
    let rules = rules();
    assert!(rules.len() > 40);
    for (rule, row) in &rules {
        let Some(figure) = &rule.figure else { continue };
        assert_eq!(figure.unit, row.unit, "{}", rule.id);
        assert!(results.figure(figure).is_none(), "{} asks nothing", rule.id);
    }
    let warned: Vec<String> = results.warnings();
    assert!(warned.is_empty(), "{warned:?}");
}

/// Every figure, as `weir reproduce coaxial` has it.
#[test]
#[ignore = "runs all programs on all servers; prints the rows"]
fn rows() {
    let mut results = Results::new(&open, 1);
    let rules = rules();
    for _ in 0..3 {
        for (rule, _) in &rules {
            let _ = rule.figure.as_ref().map(|figure| results.figure(figure));
        }
        for asked in results.asked() {
            let machine = Simulated::new(asked.on.platform);
            let got = asked
                .answer(&machine.lab())
                .map_err(|error| error.to_string());
            results.keep(&asked, got);
        }
    }
    for (rule, row) in &rules {
        let ours = rule
            .figure
            .as_ref()
            .and_then(|figure| results.figure(figure));
        println!(
            "{} {:?} | {} | {} | {} {} | {ours:.3?}",
            rule.id, rule.kind, row.what, row.condition, row.value, row.unit
        );
    }
}
