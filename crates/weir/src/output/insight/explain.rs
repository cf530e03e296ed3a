//! Where cycles are lost.

use weir_insight::documents::{
    ExplainDocument, ExplainedDifference, ExplainedPhase, ExplainedRun, KernelCounts, Yardstick,
};
use weir_model::insight::Components;

use super::{Part, one, signed};
use crate::output::{Column, Table, figure, percent, slower, wrap};

/// The causes in the order in which a request meets them.
const CAUSES: [(&str, Part); 6] = [
    ("store", |c| c.store),
    ("L1", |c| c.l1),
    ("L2", |c| c.l2),
    ("L3", |c| c.l3),
    ("DRAM", |c| c.dram),
    ("other", |c| c.other),
];

/// Where cycles are lost, run beside run.
pub fn explain(document: &ExplainDocument) -> String {
    let mut text = String::new();
    let counted = document.runs.iter().any(ExplainedRun::counts_cycles);
    if counted {
        text.push_str(&causes(document).to_string());
    } else {
        text.push_str(&wrap(
            "Cycles were not counted: what follows is measured time and what the kernel counts.",
            "",
            "",
        ));
    }
    text.push('\n');
    text.push_str(&quantities(document).to_string());
    for run in &document.runs {
        let name = name_of(run);
        if run.counts_cycles() {
            let bound = match run.bound {
                Some(bound) => format!("{name}: waits for {bound}: {}", run.evidence),
                None => format!("{name}: what it waits for cannot be told: {}", run.evidence),
            };
            text.push_str(&wrap(&bound, "- ", "  "));
        }
        for untold in &run.untold {
            let told = format!(
                "{name}: `{}` is missing ({}): not told is {}",
                untold.counter, untold.why, untold.cost
            );
            text.push_str(&wrap(&told, "- ", "  "));
        }
    }
    if let Some(difference) = &document.difference {
        text.push_str(&wrap(&summary(difference), "- ", "  "));
        if !difference.phases.is_empty() {
            text.push('\n');
            let phases = difference.phases.iter();
            text.push_str(&phase_table(
                "slowdown of",
                phases.map(|p| (p.phase.as_str(), Some(p.slowdown_pct), &p.components)),
            ));
        }
    } else if let Some(run) = document.runs.first().filter(|run| !run.phases.is_empty()) {
        text.push('\n');
        text.push_str(&if counted {
            let phases = run.phases.iter();
            phase_table(
                "cycles lost in",
                phases.map(|p| (p.phase.as_str(), None, &p.lost)),
            )
        } else {
            kernel_phases(&run.phases).to_string()
        });
    }
    text
}

/// What a run is called beside others.
fn name_of(run: &ExplainedRun) -> &str {
    let tier = run.tier.as_ref().map(|tier| tier.as_str());
    tier.unwrap_or(&run.workload)
}

/// Lost cycles by cause, and the points of slowdown.
fn causes(document: &ExplainDocument) -> Table {
    let mut columns = vec![Column::words("cycles lost to")];
    for run in &document.runs {
        columns.push(Column::number(format!("{}\n%", name_of(run))));
    }
    let difference = document.difference.as_ref();
    if difference.is_some() {
        columns.push(Column::number("slowdown\npoints"));
    }
    let mut table = Table::new(&columns);
    for (name, of) in CAUSES {
        let mut row = vec![if name == "other" {
            "nothing of these".into()
        } else {
            name.to_owned()
        }];
        row.extend(document.runs.iter().map(|run| one(of(&run.lost))));
        row.extend(difference.map(|d| signed(of(&d.components))));
        table.row(row);
    }
    if let Some(difference) = difference {
        let mut row = vec!["all".to_owned()];
        row.extend(document.runs.iter().map(|_| String::new()));
        row.push(percent(difference.slowdown_pct));
        table.row(row);
    }
    table
}

/// What the kernel counted over time.
fn kernel_phases(phases: &[ExplainedPhase]) -> Table {
    let mut table = Table::new(&[
        Column::words("until"),
        Column::number("CPU time\n%"),
        Column::number("page faults"),
        Column::number("context\nswitches"),
        Column::number("migrations"),
    ]);
    let shown = |count: Option<u64>| count.map_or("-".into(), |n| n.to_string());
    for phase in phases {
        table.row([
            phase.phase.clone(),
            one(Some(phase.share_pct)),
            shown(phase.kernel.page_faults),
            shown(phase.kernel.context_switches),
            shown(phase.kernel.cpu_migrations),
        ]);
    }
    table
}

fn summary(difference: &ExplainedDifference) -> String {
    let all = difference.slowdown_pct;
    let mut told = slower(all);
    if difference.by == Yardstick::Time {
        told.push_str(" by time; causes are not told, and both runs are taken for the same work");
        return told;
    }
    // What gains most, where the second is the faster.
    let largest = CAUSES
        .iter()
        .filter_map(|(name, of)| Some((*name, of(&difference.components)?)))
        .max_by(|a, b| (a.1 * all.signum()).total_cmp(&(b.1 * all.signum())));
    if let Some((name, points)) = largest.filter(|(_, points)| points.abs() >= 0.05) {
        told.push_str(&format!(", most of it {name}: {points:.1} points"));
    }
    match difference.instructions {
        Some(ratio) if !(0.95..=1.05).contains(&ratio) => told.push_str(&format!(
            "; the second run has {ratio:.2} x the instructions, and both are compared for one"
        )),
        Some(_) => {}
        None => told
            .push_str("; instructions were not counted, and both runs are taken for the same work"),
    }
    told
}

fn phase_table<'a>(
    head: &'static str,
    phases: impl Iterator<Item = (&'a str, Option<f64>, &'a Components)>,
) -> String {
    let mut columns = vec![Column::words(head), Column::number("all\n%")];
    columns.extend(
        CAUSES
            .iter()
            .map(|(name, _)| Column::number(format!("{name}\n%"))),
    );
    let mut table = Table::new(&columns);
    for (name, all, components) in phases {
        let mut row = vec![name.to_owned(), signed(all)];
        row.extend(CAUSES.iter().map(|(_, of)| signed(of(components))));
        table.row(row);
    }
    table.to_string()
}

/// What stands behind the causes.
fn quantities(document: &ExplainDocument) -> Table {
    let mut columns = vec![Column::words("behind them")];
    for run in &document.runs {
        columns.push(Column::number(name_of(run).to_owned()));
    }
    let mut table = Table::new(&columns);
    let mut row = |name: &str, of: &dyn Fn(&ExplainedRun) -> Option<f64>| {
        if document.runs.iter().any(|run| of(run).is_some()) {
            let mut cells = vec![name.to_owned()];
            cells.extend(
                document
                    .runs
                    .iter()
                    .map(|run| of(run).map_or("-".into(), figure)),
            );
            table.row(cells);
        }
    };
    row("time [ms]", &|r| r.time_ns.map(|t| t.get() / 1e6));
    row("processors busy", &|r| {
        let elapsed = r.time_ns.filter(|t| t.get() > 0.0)?;
        Some(r.kernel.cpu_ns? / elapsed)
    });
    let mut count = |name: &str, of: fn(&KernelCounts) -> Option<u64>| {
        row(name, &|r| of(&r.kernel).map(|n| n as f64));
    };
    count("page faults", |k| k.page_faults);
    count("context switches", |k| k.context_switches);
    count("moves to another processor", |k| k.cpu_migrations);
    row("instructions in a cycle", &|r| r.ipc);
    row("memory bandwidth [GB/s]", &|r| r.gbps.map(|b| b.get()));
    row("latency of a read beyond the core [clk]", &|r| {
        r.offcore_latency.map(|c| c.get())
    });
    row("the same, amortised [clk]", &|r| r.aol.map(|c| c.get()));
    row("demand reads at once", &|r| r.mlp);
    row("loads that find their line in flight [%]", &|r| {
        r.prefetch.fill_buffer_hits_pct
    });
    row("L1 prefetches from memory, 1000 instr.", &|r| {
        r.prefetch.l1_misses_pki
    });
    row("L2 prefetches from memory, 1000 instr.", &|r| {
        r.prefetch.l2_misses_pki
    });
    table
}
