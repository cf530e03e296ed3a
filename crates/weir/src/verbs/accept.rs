//! `weir accept`: whether a server is what was bought, in one verdict and an exit code.

use std::path::{Path, PathBuf};

use weir_lab::accept::{Accept, Acceptance, Before, Expected, Firmware, Like, figures_of};
use weir_linux::topology::HostView;
use weir_model::document::BenchDocument;
use weir_model::machine::MachineKind;
use weir_model::toml::MOST_BYTES;
use weir_model::topology::Topology;
use weir_model::units::Bytes;

use crate::context::Context;
use crate::driver::{self, Done, Job};
use crate::failure::{Failure, Result};
use crate::machine::{self, Chosen};
use crate::shown::{document, show};
use crate::store::{RunId, Store};
use crate::stored::{bench_document, load};
use crate::{files, system};

/// The verb as the store has it.
const VERB: &str = <Accept as weir_lab::Study>::VERB;
/// How often each figure is measured on a host.
const ROUNDS_ON_HOST: u32 = 3;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir accept                              against what the firmware says
  weir accept --against server.toml
  weir accept --baseline 12 --worse 3      whether it is slower than in run 12
  weir accept --on emr2s+cxl-a --against server.toml --quick

A file has what a data sheet promises of each tier, how far figures may be from
the firmware's (HMAT), and a platform that the server should be like:

  kind = \"acceptance\"
  [[tier]]
  name = \"cxl0\"
  latency = \"250 ns\"
  read = \"22 GB/s\"
  source = \"data sheet\"
  [firmware]
  within = 0.25
  [platform]
  name = \"emr2s+cxl-a\"
  within = 0.1

Exit codes: 4 where a figure is not as expected.")]
pub struct Args {
    /// What is expected [default: what the firmware says].
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// An earlier run of this command, of benches or of MLC as imported, which no figure may be worse than.
    #[arg(long, value_name = "RUN")]
    baseline: Option<String>,
    /// By how much a figure may be worse than in that run, in percent.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 5.0,
        requires = "baseline"
    )]
    worse: f64,
    /// Measurements of each figure [default: 3 on a host, 1 on a model].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Use all cores only, and less memory.
    #[arg(long)]
    quick: bool,
    /// Bytes that each thread touches [default: enough to leave the caches].
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
}

/// Measures, keeps, prints and judges.
///
/// # Errors
/// The file has mistakes, the run is not there, a figure could not be measured, or one is not as expected.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let chosen = machine::choose(&context.global.on)?;
    let study = study(args, context, &chosen)?;
    let rounds = match chosen.identity.kind {
        MachineKind::Host => ROUNDS_ON_HOST,
        MachineKind::Sim => 1,
    };
    let job = Job {
        rounds: args.repeat.unwrap_or(rounds),
        ..Job::once(context, &chosen, VERB)
    };
    let done = job.run(&study)?;
    show(context, &done.document, done.kept_in())?;
    verdict(done)
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    verdict(driver::resume(context, run, None, |_, chosen, _| {
        study(args, context, chosen)
    })?)
}

fn verdict(done: Done<Acceptance>) -> Result<()> {
    let failed = done
        .document
        .output
        .checks
        .iter()
        .any(|check| !check.passed);
    done.verdict()?;
    match failed {
        true => Err(Failure::Illegal),
        false => Ok(()),
    }
}

fn study(args: &Args, context: &Context, chosen: &Chosen) -> Result<Accept> {
    if !(args.worse.is_finite() && (0.0..100.0).contains(&args.worse)) {
        return Err(Failure::request("--worse takes a number from 0 to 100"));
    }
    let mut text = String::new();
    let expected = match &args.against {
        None => Expected::default(),
        Some(path) => {
            text = files::text(path, "acceptance file", MOST_BYTES)?;
            Expected::read(&path.display().to_string(), &text)
                .map_err(|mistakes| Failure::request(mistakes.to_string()))?
        }
    };
    let place = |at: usize| {
        let file = args.against.as_deref().unwrap_or(Path::new(""));
        files::line_of(file, &text, at)
    };
    let like = expected.platform.as_ref().map(|platform| {
        if machine::is_real(&platform.name) {
            return Err(Failure::request(format!(
                "{}: a server is compared with a platform, and `{}` is no platform",
                place(platform.at),
                platform.name
            )));
        }
        let like = machine::choose_by(&platform.name, &place(platform.at))?;
        Ok(Like {
            testbed: like.testbed,
            machine: like.identity,
            topology: like.topology,
        })
    });
    let firmware = match chosen.identity.kind {
        MachineKind::Sim => Vec::new(),
        MachineKind::Host => (system::find(&context.global.on)?).map_or(Vec::new(), |system| {
            firmware(&chosen.topology, &system.view)
        }),
    };
    if args.against.is_some() && expected.firmware.is_some() && firmware.is_empty() {
        let why = "the firmware says nothing of this machine's memory (HMAT), and the file expects figures near it";
        return Err(Failure::Missing(anyhow::anyhow!(why)));
    }
    Ok(Accept {
        before: args
            .baseline
            .as_deref()
            .map(|name| before(name, args, context, chosen))
            .transpose()?,
        expected,
        firmware,
        like: like.transpose()?,
        quick: args.quick,
        size: args.size,
    })
}

/// What the firmware says of each tier.
fn firmware(topology: &Topology, view: &HostView) -> Vec<Firmware> {
    let nodes = view.nodes.known().map_or(&[][..], Vec::as_slice);
    let of = |tier: &weir_model::topology::Tier| {
        let node = nodes.iter().find(|node| Some(node.id) == tier.node)?;
        let access = node.access0.known()?;
        Some(Firmware {
            tier: tier.name.clone(),
            latency: access.read_latency.known().copied(),
            read: access.read_bandwidth.known().copied(),
            write: access.write_bandwidth.known().copied(),
        })
    };
    topology.tiers.iter().filter_map(of).collect()
}

/// The figures of the run to compare with.
fn before(name: &str, args: &Args, context: &Context, chosen: &Chosen) -> Result<Before> {
    let path = context.store_path()?;
    let store = Store::open_existing(&path)?;
    let run = load(store.as_ref(), &path, name)?;
    let summary = &run.summary;
    let of_bench = run.schema() == BenchDocument::SCHEMA;
    if summary.verb != VERB && !of_bench {
        return Err(Failure::request(format!(
            "run {} is of `{}`; name a run of `weir {VERB}`, of benches or of `weir runs import mlc.txt` with --baseline",
            summary.id, summary.verb
        )));
    }
    if summary.partial {
        return Err(Failure::request(format!(
            "run {} was stopped before its end; `weir runs resume {}` goes on",
            summary.id, summary.id
        )));
    }
    let of = match summary.machine == chosen.identity.name {
        true => String::new(),
        false => format!(" of {}", summary.machine),
    };
    let figures = match of_bench {
        true => figures_of(&bench_document(&run)?.points),
        false => document::<Acceptance>(&run)?.output.figures,
    };
    if figures.iter().all(|figure| figure.value.is_none()) {
        return Err(Failure::request(format!(
            "run {} has no idle latency and no bandwidth of loads or non-temporal stores",
            summary.id
        )));
    }
    Ok(Before {
        run: format!("run {}{of}", summary.id),
        figures,
        worse: args.worse / 100.0,
        quick: (!of_bench).then(|| {
            let typed = run.arguments.as_array();
            typed.is_some_and(|words| words.iter().any(|word| word == "--quick"))
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_firmwares_figures_are_those_of_each_tiers_node() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../weir-linux/tests/machines");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(Some(system)) = system::find(&path.to_string_lossy()) else {
                continue;
            };
            let Ok(topology) = system.view.topology() else {
                continue;
            };
            for said in firmware(&topology, &system.view) {
                let tier = topology
                    .tiers
                    .iter()
                    .find(|tier| tier.name == said.tier)
                    .unwrap();
                let node = system
                    .view
                    .nodes
                    .known()
                    .unwrap()
                    .iter()
                    .find(|node| Some(node.id) == tier.node);
                let access = node.unwrap().access0.known().unwrap();
                assert_eq!(said.latency.as_ref(), access.read_latency.known());
                seen += usize::from(said.latency.is_some() && said.read.is_some());
            }
        }
        assert!(seen > 1, "{seen}");
    }
}
