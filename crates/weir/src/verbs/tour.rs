//! `weir tour`: measures this machine and a simulated one, and writes a page.

use std::path::PathBuf;

use weir_lab::{About, Outcome as _, Points, Severity, bandwidth, latency};
use weir_model::access::Op;

use super::{bench, report, topo};
use crate::context::{Context, Format};
use crate::driver::{Done, Job};
use crate::failure::Result;
use crate::files;
use crate::machine::{self, Chosen};
use crate::output::{Column, Table, figure, interval, print, print_as, seconds, to_json, wrap};
use crate::store::Store;
use crate::studies::Planned;
use crate::summary::summarise;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tour
  weir tour --beside spr2s+2xcxl-a -o compare.html")]
pub struct Args {
    /// The machine that is compared with this one.
    #[arg(long, value_name = "MACHINE", default_value = "emr2s+cxl-a")]
    beside: String,
    /// The page.
    #[arg(long, short, value_name = "FILE", default_value = "weir-report.html")]
    output: PathBuf,
}

/// Measures both machines, prints a summary and writes the page.
///
/// # Errors
/// A machine is not available, a figure could not be measured or stored, or the tour was stopped.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let began = std::time::Instant::now();
    if args.output.as_os_str() != "-" {
        files::check(&args.output)?;
    }
    // What this machine and recordings are is told by what chooses them.
    let beside = &args.beside;
    if machine::host_pages(beside).is_none()
        && weir_linux::recording::is_recording(beside).is_none()
    {
        machine::compose_named(&args.beside, "--beside")?;
    }
    let mut machines = vec![machine::choose(&context.global.on)?];
    let other = machine::choose(&args.beside)?;
    if other.identity == machines[0].identity {
        context.note(&format!(
            "{} is compared with itself, and measured once; --beside names another machine",
            other.identity.name
        ));
    } else {
        machines.push(other);
    }
    if context.global.format == Format::Table {
        for chosen in &machines {
            let parts = topo::describe(&chosen.identity, &chosen.topology);
            let lacking = topo::lacking(&chosen.capabilities);
            let gap = if lacking.is_empty() { "" } else { "\n" };
            print(&format!("{parts}{gap}{lacking}\n"))?;
        }
    }
    let mut measured = Vec::new();
    for chosen in &machines {
        measured.push(characterise(context, chosen)?);
        if context.stop.requested() {
            break;
        }
    }
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Json => to_json(&measured.iter().map(|m| &m.document).collect::<Vec<_>>())?,
            Format::Table => format!(
                "{}{}{}",
                summary(&measured),
                wrap(READING, "", ""),
                doubts(&measured)
            ),
            Format::Csv => bench::documents_csv(measured.iter().map(|m| &m.document))?,
        },
    )?;
    write_page(args, context, &measured)?;
    context.note(&format!(
        "took {}; look at {}",
        seconds(began.elapsed().as_secs_f64()),
        args.output.display()
    ));
    for measured in measured {
        measured.verdict()?;
    }
    Ok(())
}

fn characterise(context: &Context, chosen: &Chosen) -> Result<Done<Points>> {
    let quick_latency = latency::Latency {
        quick: true,
        ..Default::default()
    };
    let quick_bandwidth = bandwidth::Bandwidth {
        quick: true,
        ..Default::default()
    };
    let mut job = Job {
        context,
        chosen,
        verb: "tour",
        rounds: 1,
        yes: true,
        warnings: Vec::new(),
    };
    let mut plan = Vec::new();
    for notes in [job.asks(&quick_latency)?, job.asks(&quick_bandwidth)?] {
        plan.extend(notes.asks);
        weir_lab::lab::add_new(&mut job.warnings, notes.warnings);
    }
    job.run(&Planned::new(plan))
}

fn write_page(args: &Args, context: &Context, measured: &[Done<Points>]) -> Result<()> {
    let store = Store::open(&context.store_path()?)?;
    let mut sections = Vec::new();
    for measured in measured {
        let mut section = report::section(&store.load(measured.run)?)?;
        // The store may have been too full for the figures.
        section.document = Points::bench(measured.document.clone());
        sections.push(section);
    }
    report::write(&sections, &[], &args.output)
}

/// Which figures to trust less.
fn doubts(measured: &[Done<Points>]) -> String {
    let mut text = String::new();
    for measured in measured {
        let header = &measured.document.header;
        let about = About::of(header);
        if header.partial {
            let stopped = format!(
                "{}: stopped; figures that were not measured are missing",
                header.name()
            );
            text.push_str(&wrap(&stopped, "! ", "  "));
        }
        let all = measured.document.output.answer(about);
        for verdict in all
            .iter()
            .filter(|verdict| verdict.severity > Severity::Note)
        {
            let doubt = format!("{} {}: {}", header.name(), verdict.about, verdict.text);
            text.push_str(&wrap(&doubt, "! ", "  "));
        }
    }
    text
}

/// The definition of the figures of the summary.
const READING: &str = "±: half of the 95 % interval. Idle: dependent loads over the largest working set, prefetchers off where the machine allows it. \
     GB/s: the best over thread counts, in bytes of the program; an ordinary store moves its line \
     twice, in and out.";

/// Each tier of each machine in one line.
fn summary(measured: &[Done<Points>]) -> Table {
    let mut table = Table::new(&[
        Column::words("machine"),
        Column::words("tier"),
        Column::number("idle\nns"),
        Column::number("loads\nGB/s"),
        Column::number("stores\nGB/s"),
        Column::number("nt-stores\nGB/s"),
        Column::number("read limit\nGB/s"),
    ]);
    for measured in measured {
        for line in summarise(&Points::bench(measured.document.clone())) {
            let known = |value: f64, ci95: Option<f64>| figure(value) + &interval(ci95);
            let peak = |op: Op| {
                let peak = line.peaks.get(&op);
                peak.map_or("-".into(), |peak| known(peak.gbps, peak.ci95))
            };
            table.row([
                measured.document.header.machine.name.clone(),
                line.tier.name.to_string(),
                line.idle
                    .as_ref()
                    .map_or("-".into(), |idle| known(idle.ns, idle.ci95)),
                peak(Op::Ld),
                peak(Op::St),
                peak(Op::NtSt),
                line.tier
                    .limits
                    .as_ref()
                    .map_or("-".into(), |l| figure(l.read.get())),
            ]);
        }
    }
    table
}
