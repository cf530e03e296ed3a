//! `weir calibrate`: the constants of the slowdown model, for a machine and one of its tiers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use weir_lab::view::{View, col};
use weir_lab::{About, Lab, LabError, Outcome, Study, Verdict};
use weir_model::frame::Frame;
use weir_model::insight::FitPoint;
use weir_model::number::figure;
use weir_model::topology::TierName;

use super::{doubt, note};
use crate::documents::Calibrated;
use crate::tune::fit_interleave;
use crate::two_tiers::{Tiers, calibrate_machine, options};

/// The constants of the slowdown model, for a machine and one of its tiers.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  weir calibrate --on emr2s+cxl-a --tier cxl0
  weir calibrate --on skx2s --tier remote -o skx-remote.json
  weir calibrate --tier cxl0                   this host, which needs counters

Runs three kinds of micro-workload on both tiers: random chases, stores to
fresh memory, and lists that the prefetchers feed. `weir predict` takes the
model from where it is written by default.")]
pub struct Calibrate {
    /// The tier that slowdown is predicted for.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// The tier that workloads will be counted on.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// Workloads that intervals are made from, half of them heavy on memory; no
    /// constant is fitted to them.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub held_out: usize,
    /// The share of workloads that intervals are to hold, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 90,
          value_parser = clap::value_parser!(u8).range(50..=99))]
    pub coverage: u8,
    /// Also sweep streaming kernels over interleavings, which best-shot needs.
    #[arg(long)]
    pub interleave: bool,
    /// The model file [default: in the folder `models` next to the run store].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Study for Calibrate {
    const VERB: &'static str = "calibrate";
    type Output = Calibrated;

    fn run(&self, lab: &Lab<'_>) -> Result<Calibrated, LabError> {
        let tiers = Tiers::of(lab.topology(), &self.from, &self.tier)?;
        let coverage = f64::from(self.coverage) / 100.0;
        let mut model = calibrate_machine(lab, &tiers, self.held_out, coverage)?;
        if self.interleave {
            model.interleave = Some(fit_interleave(lab, &tiers, &options(lab.seed()))?);
        }
        let file = self.output.as_ref();
        let calibrated = Calibrated {
            file: file.map_or_else(String::new, |file| file.display().to_string()),
            model,
        };
        calibrated
            .doubts()
            .into_iter()
            .for_each(|doubt| lab.warn(doubt));
        Ok(calibrated)
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(Vec::new())
    }
}

impl Calibrated {
    /// What makes the model less than trustworthy.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = self.model.notes.clone();
        if self.model.held_out_in_use().is_none() {
            doubts.push("too few workloads were held out for an interval".into());
        }
        doubts
    }

    fn constants(&self) -> Vec<ConstantRow> {
        let c = &self.model.constants;
        let mut all = vec![
            ("k1, of DRAM", c.k1),
            ("k2, of the caches", c.k2),
            ("k3, of stores", c.k3),
            ("k4, of every workload", c.k4),
            ("p, overlap [clk]", c.p.get()),
            ("q, without overlap", c.q),
        ];
        if let Some(exposed) = &self.model.exposed {
            let c = &exposed.constants;
            all.extend([
                ("growth, of a lone miss", c.growth),
                ("exposed, of hidden cycles", c.exposed),
                ("beside, during another miss", c.beside),
            ]);
            all.extend(exposed.late.iter().flat_map(|c| {
                [
                    ("growth, of a late prefetch", c.growth),
                    ("exposed, of cycles during it", c.exposed),
                ]
            }));
        }
        let row = |(constant, value)| ConstantRow { constant, value };
        all.into_iter().map(row).collect()
    }
}

/// A constant of the model.
#[derive(Serialize, JsonSchema)]
struct ConstantRow {
    /// Its name, and what it belongs to.
    constant: &'static str,
    /// Its value.
    value: f64,
}

/// A micro-workload: its measured slowdown, and the one that the constants predict.
#[derive(Serialize, JsonSchema)]
struct FitRow {
    #[serde(flatten)]
    point: FitPoint,
    /// Fitted less measured slowdown.
    #[schemars(extend("x-unit" = "points"))]
    off_pct: f64,
}

impl Outcome for Calibrated {
    const SCHEMA: &'static str = "weir/calibrate/1";
    const TITLE: &'static str = "The model of slowdown";
    const WORDS: &'static str = "Slowdown of the micro-workloads that the constants were fitted on. On the line the fit \
                                 is exact.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let model = &self.model;
        let off = |point: &FitPoint| (point.fitted_pct - point.slowdown_pct).abs();
        let furthest = model.fitted_on.iter().map(off).fold(0.0, f64::max);
        let pair = format!("{} to {}", model.from, model.to);
        let mut all = vec![note(
            &pair,
            format!(
                "the constants give back {} micro-workloads within {} points of slowdown; counters of {}",
                model.fitted_on.len(),
                figure(furthest),
                model.prefetch
            ),
        )];
        all.extend(model.notes.iter().map(|text| doubt("fit", text)));
        all.extend(model.held_out_in_use().map(|held| {
            let width = match &held.near {
                Some(near) => format!("{:.1} times the error of the nearest", near.factor),
                None => format!(
                    "{:.0} % of the prediction and {:.0} points more, from the errors",
                    held.total.relative * 100.0,
                    held.total.floor_pct
                ),
            };
            let text = format!(
                "intervals that hold {:.0} % of workloads are {width} of {} workloads that nothing was fitted to",
                held.coverage_pct, held.workloads
            );
            note("predictions", text)
        }));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let pair = format!("{} to {}", self.model.from, self.model.to);
        vec![
            View::table(
                "constants",
                format!("Constants of the model, {pair}"),
                vec![col("constant"), col("value").places(3)],
            ),
            View::table(
                "fitted_on",
                "Slowdown of the micro-workloads, measured and predicted",
                vec![
                    col("name").head("micro-workload"),
                    col("slowdown_pct").head("measured").signed(),
                    col("fitted_pct").head("fitted").signed(),
                    col("off_pct").head("off").signed(),
                ],
            ),
            View::scatter(
                "fitted_on",
                format!("Predicted by the constants, {pair}"),
                ("slowdown_pct", "measured slowdown [%]"),
                ("fitted_pct", "fitted slowdown [%]"),
                ("name", "micro"),
                &[5.0],
            ),
        ]
    }

    fn frames(&self) -> Vec<Frame> {
        let row = |point: &FitPoint| FitRow {
            point: point.clone(),
            off_pct: point.fitted_pct - point.slowdown_pct,
        };
        let fitted: Vec<FitRow> = self.model.fitted_on.iter().map(row).collect();
        vec![
            Frame::of("fitted_on", &fitted),
            Frame::of("constants", &self.constants()),
        ]
    }
}
