//! `weir plan insensitive`: programs of a population run on both tiers of a model, or come from files of counters.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use weir_insight::forecast::measured;
use weir_insight::two_tiers::{OnBoth, Tiers, on_both, options};
use weir_lab::plan::distinct;
use weir_lab::{Lab, LabError, Outcome as _, Study};
use weir_model::document::Document;
use weir_model::topology::TierName;
use weir_model::workload::Population;
use weir_plan::cost::percent;
use weir_plan::predict::insensitive::{
    FEWEST, Insensitive, InsensitiveModel, InsensitivePlan, Program,
};

use crate::context::Context;
use crate::driver::header;
use crate::driver::{self, Job};
use crate::evaluation::{self, Counted};
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::output::to_json;
use crate::shown::show;
use crate::store::RunId;
use crate::studies::PLAN_INSENSITIVE;
use crate::{files, machine};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Programs that are drawn at random run on local memory and on the pool's tier of
a model. A random forest learns from counters of the local runs of one half
which programs are slowed by the margin at most, and is judged on the other
half, against thresholds on the cycles stalled on DRAM and on all memory.
Each split draws its own halves.

A file of counters has the columns of `weir predict --evaluate`: workload,
slowdown_pct, and counters by their portable names.

Examples:
  weir plan insensitive --on skx2s --tier remote
  weir plan insensitive --on emr2s+cxl-a --programs 150 --export counted.csv
  weir plan insensitive --counters counted.csv --margin 10% --model forest.json")]
pub(super) struct Args {
    #[command(flatten)]
    study: ByForest,
    /// Counters and slowdowns of programs; several files for several machines.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "export")]
    counters: Vec<PathBuf>,
    /// Write what was counted and measured as a file of counters.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Write the forests of all programs as JSON, one for each machine.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

/// Programs of a population, and how they are judged.
#[derive(Debug, Clone, clap::Args)]
pub struct ByForest {
    /// Programs that are drawn.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(FEWEST as i64..=100_000))]
    programs: u32,
    /// The tier of the pool.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    tier: TierName,
    /// The tier that was counted on.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    from: TierName,
    /// Slowdown up to which a program is insensitive.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    margin: f64,
    /// False positives that are allowed, of all programs.
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", default_value = "1%,2%,3%,5%,10%",
          value_parser = percent)]
    false_positives: Vec<f64>,
    /// How often programs are split into halves.
    #[arg(long, value_name = "N", default_value_t = 100)]
    splits: u32,
    /// What ran on both tiers.
    #[arg(skip)]
    ran: Arc<Mutex<Vec<OnBoth>>>,
    /// The forests.
    #[arg(skip)]
    models: Arc<Mutex<Vec<InsensitiveModel>>>,
}

impl ByForest {
    fn judge(&self, seed: u64) -> Insensitive {
        Insensitive {
            margin_pct: 100.0 * self.margin,
            targets: distinct(self.false_positives.iter().copied()),
            splits: self.splits,
            seed,
        }
    }
}

impl Study for ByForest {
    const VERB: &'static str = PLAN_INSENSITIVE;
    type Output = InsensitivePlan;

    fn run(&self, lab: &Lab<'_>) -> std::result::Result<InsensitivePlan, LabError> {
        let text = |error: weir_plan::PlanError| LabError::Nothing(error.to_string());
        let judge = self.judge(lab.seed());
        judge.check().map_err(text)?;
        let tiers = Tiers::of(lab.topology(), &self.from, &self.tier)?;
        let workloads = Population::Whole.draw(lab.seed(), self.programs as usize);
        let ran = on_both(lab, &workloads, &tiers, &options(lab.seed()))?;
        if ran.len() < workloads.len() {
            return Err(LabError::Stopped);
        }
        let machine = format!("{}, {} to {}", lab.machine().name, self.from, self.tier);
        let program = |both: &OnBoth| -> std::result::Result<Program, LabError> {
            let (local, target) = (&both.local.counters, &both.target.counters);
            Ok(Program {
                name: both.local.workload.clone(),
                machine: machine.clone(),
                local: local.clone(),
                slowdown_pct: measured(local, target)?.slowdown_pct,
            })
        };
        let programs: Vec<Program> = ran
            .iter()
            .map(program)
            .collect::<std::result::Result<_, _>>()?;
        let (plan, models) = judge.run(&programs).map_err(text)?;
        *self.ran.lock().unwrap_or_else(PoisonError::into_inner) = ran;
        *self.models.lock().unwrap_or_else(PoisonError::into_inner) = models;
        Ok(plan)
    }
}

/// Runs programs or reads them, judges, keeps and prints.
///
/// # Errors
/// An argument is outside its bounds, a file cannot be read, or the work was stopped.
pub(super) fn run(args: &Args, context: &Context) -> Result<()> {
    for file in args.export.iter().chain(&args.model) {
        files::check(file)?;
    }
    if !args.counters.is_empty() {
        return of_files(args, context);
    }
    let chosen = machine::choose(&context.global.on)?;
    let done = Job::once(context, &chosen, PLAN_INSENSITIVE).run(&args.study)?;
    write(args)?;
    show(context, &done.document, done.kept_in())?;
    done.verdict()
}

/// Runs what a stopped run still lacks.
///
/// # Errors
/// As [`run`] has them, or the run cannot be resumed.
pub(super) fn resume(args: &Args, context: &Context, run: RunId) -> Result<()> {
    let done = driver::resume(context, run, None, |_, _, _| Ok(args.study.clone()))?;
    write(args)?;
    done.verdict()
}

fn of_files(args: &Args, context: &Context) -> Result<()> {
    let keeping = Keeping::begin(context, PLAN_INSENSITIVE)?;
    let mut programs = Vec::new();
    for file in &args.counters {
        let machine = file.display().to_string();
        programs.extend(evaluation::read(file)?.into_iter().map(|row| Program {
            name: row.counted.workload,
            machine: machine.clone(),
            local: row.counted.local,
            slowdown_pct: row.counted.measured.slowdown_pct,
        }));
    }
    let (output, models) = args.study.judge(context.global.seed).run(&programs)?;
    *args
        .study
        .models
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = models;
    write(args)?;
    let header = header(InsensitivePlan::SCHEMA, context, "");
    keeping.put(Document { header, output }, None)
}

/// Writes the files that were asked for.
fn write(args: &Args) -> Result<()> {
    if let Some(file) = &args.model {
        let models = args
            .study
            .models
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        files::write(file, to_json(&*models)?)?;
    }
    let Some(file) = &args.export else {
        return Ok(());
    };
    let ran = args
        .study
        .ran
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let counted = |both: &OnBoth| -> Result<Counted> {
        let (local, target) = (&both.local.counters, &both.target.counters);
        Ok(Counted {
            workload: both.local.workload.clone(),
            population: Some(Population::Whole),
            local: local.clone(),
            measured: measured(local, target).map_err(Failure::from)?,
        })
    };
    let rows: Vec<Counted> = ran.iter().map(counted).collect::<Result<_>>()?;
    evaluation::write(file, &rows)
}
