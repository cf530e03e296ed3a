//! `weir calibrate`: the constants of the slowdown model, for a machine and one of its tiers.

mod host;

use std::path::PathBuf;
use std::time::Instant;

use weir_insight::documents::CalibrateDocument;
use weir_insight::tune::fit_interleave;
use weir_insight::two_tiers::{CalibrateOptions, Tiers, calibrate_machine};
use weir_model::document::Header;
use weir_model::insight::SlowdownModel;
use weir_model::topology::TierName;

use crate::context::{Context, Format, say};
use crate::failure::{Failure, Result};
use crate::insight::{self, Going, header, header_of, model_path, run_options, write_model};
use crate::keeping::Keeping;
use crate::machine::{self, HOST};
use crate::output::{self, print, to_csv, to_json};

/// The verb as the store has it.
pub const VERB: &str = "calibrate";

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir calibrate --on emr2s+cxl-a --tier cxl0
  weir calibrate --on skx2s --tier remote -o skx-remote.json
  weir calibrate --tier cxl0                   this machine, which needs counters

Runs three kinds of micro-workload on both tiers: random chases, stores to
fresh memory, and lists that the prefetchers feed. `weir predict` takes the
model from where it is written by default.")]
pub struct Args {
    /// The tier that slowdown is predicted for.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    tier: String,
    /// The tier that workloads will be counted on.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    from: String,
    /// Workloads that intervals are made from; no constant is fitted to them.
    #[arg(long, value_name = "N", default_value_t = 100)]
    held_out: usize,
    /// The share of workloads that intervals are to hold, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 90,
          value_parser = clap::value_parser!(u8).range(50..=99))]
    coverage: u8,
    /// Also sweep streaming kernels over interleavings, which best-shot needs.
    #[arg(long)]
    interleave: bool,
    /// The model file [default: in a folder `models` beside the run store].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Calibrates, keeps and prints.
///
/// # Errors
/// The machine cannot run workloads or has not these tiers, or no constants follow.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let began = Instant::now();
    let keeping = Keeping::begin(context, VERB)?;
    let (from, to) = (TierName::named(&args.from), TierName::named(&args.tier));
    let going = Going::on(context, "calibrate");
    let (model, mut head, tiers) = if context.global.on == HOST {
        if args.interleave {
            return Err(Failure::Missing(anyhow::anyhow!(
                "--interleave sweeps streaming descriptions, which models run; on a host \
                 `weir tune interleave -- CMD` climbs by time"
            )));
        }
        let host = host::find(context, &from, &to)?;
        let model = host::calibrate(&host, context, &going)?;
        let mut head = header(CalibrateDocument::SCHEMA, context, &host.topology.processor);
        head.machine = host.system.identity;
        (model, head, host.tiers)
    } else {
        on_model(args, context, (&from, &to), &going)?
    };
    going.end();
    let file = match &args.output {
        Some(file) => file.clone(),
        None => model_path(context, &model.machine, &tiers)?,
    };
    write_model(&file, &model)?;
    head.elapsed_s = began.elapsed().as_secs_f64();
    head.warnings.extend(model.notes.iter().cloned());
    if model.held_out_in_use().is_none() {
        head.warnings
            .push("too few workloads were held out for an interval".into());
    }
    for warning in &head.warnings {
        say(&format!("weir: warning: {warning}"));
    }
    let document = CalibrateDocument {
        header: head,
        file: file.display().to_string(),
        model,
    };
    let printed = print(&match context.global.format {
        Format::Table => output::calibrate(&document),
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(&document.model.fitted_on)?,
    });
    keeping.keep(&document.header, &document, "none", printed)?;
    context.note(&format!("wrote {}", file.display()));
    Ok(())
}

/// Calibrates a model of a machine.
fn on_model(
    args: &Args,
    context: &Context,
    (from, to): (&TierName, &TierName),
    going: &Going<'_>,
) -> Result<(SlowdownModel, Header, Tiers)> {
    let chosen = machine::choose(&context.global.on)?;
    let tiers = insight::tiers(&chosen.topology, from, to)?;
    let options = CalibrateOptions {
        run: run_options(context),
        held_out: args.held_out,
        coverage: f64::from(args.coverage) / 100.0,
    };
    let testbed = &*chosen.testbed;
    let of = (&chosen.identity, &chosen.topology);
    let go_on = |of| going.step(of);
    let mut model = calibrate_machine(testbed, of, &tiers, &options, &go_on)?;
    if args.interleave {
        let cores = chosen.topology.cores.len() as u32;
        model.interleave = Some(fit_interleave(
            testbed,
            &tiers,
            cores,
            &options.run,
            &go_on,
        )?);
    }
    let head = header_of(CalibrateDocument::SCHEMA, context, &chosen);
    Ok((model, head, tiers))
}
