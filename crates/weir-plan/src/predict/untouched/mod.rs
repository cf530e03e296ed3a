//! How much memory of a VM is never touched: gradient-boosted quantile regression over its size, its type and its customer's
//! history, trained every night and judged on the next day, against one fixed share for all (Pond, sections 4.4 and 6.4.2).
//!
//! An over-prediction is a VM of whose memory more is put into the pool, in whole GiB, than it leaves untouched. Each night the
//! latest quarter of the VMs that have left trains nothing: with it predictions are turned down (or up) so far that
//! over-predictions stay below the target (see [`risk`]).
//!
//! VMs that still run are neither history nor training: what they never touch is not known yet. Where long-lived VMs touch more
//! than others, predictions for them are too high for it; the table by day shows whether they are.

pub mod history;
mod outcome;

use std::ops::Range;

pub use outcome::{Evaluated, UntouchedDay, UntouchedPlan, UntouchedRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::boost::{Boosted, Boosting};
use super::risk;
use super::tree::Columns;
use crate::PlanError;
use crate::error::within;
use crate::trace::{GIB, Trace, Vm};
use history::{COLUMNS, Row, untouched_pct};

/// Seconds of a day.
const DAY_S: u32 = 86_400;
/// Part of the VMs that trains; the latest others are held back to set how far predictions are turned down. Assumed.
const TRAINS: f64 = 0.75;
/// Fewer VMs than this train nothing.
const FEWEST: usize = 100;
/// Steps of a share by which predictions are turned down or up, and the furthest of them either way.
const STEP: f64 = 0.005;
const STEPS: (i32, i32) = (-50, 200);

/// How untouched memory is predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Untouched {
    /// Over-predictions that are allowed, as shares of the VMs.
    pub targets: Vec<f64>,
    /// Days of VMs that train. Pond does not say; the usual value is assumed.
    pub train_days: u32,
    /// How each model is trained.
    pub boosting: Boosting,
}

impl Default for Untouched {
    fn default() -> Self {
        Self {
            targets: vec![0.005, 0.01, 0.02, 0.04, 0.08],
            train_days: 7,
            boosting: Boosting::default(),
        }
    }
}

/// A trace, with the columns of its VMs and where its days begin.
#[derive(Debug)]
pub struct Prepared<'t> {
    trace: &'t Trace,
    rows: Vec<Row>,
    /// The first VM of each day, and the end.
    days: Vec<usize>,
}

/// What was predicted for the VMs of a day.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// The day, from 0.
    pub day: u32,
    /// Its VMs, by their places in the trace.
    pub places: Range<usize>,
    /// VMs that trained and set how far predictions were turned down.
    pub learned_from: usize,
    /// For each VM whether its customer had no history.
    pub new: Vec<bool>,
    /// GiB in the pool for each VM, by target.
    pub slices: Vec<Vec<u32>>,
}

/// A model to be kept, with what is needed to use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntouchedModel {
    /// `weir/untouched-model/1`.
    pub schema: String,
    /// The cluster.
    pub cluster: String,
    /// The day for whose VMs it is.
    pub day: u32,
    /// Columns, by name, in the order of their numbers in trees.
    pub features: Vec<String>,
    /// A model for each target.
    pub models: Vec<ForTarget>,
}

/// The model of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForTarget {
    /// Over-predictions that are allowed.
    pub target_pct: f64,
    /// What is taken off what the trees say, as a share of the memory; absent where nothing may be predicted.
    pub less: Option<f64>,
    /// The trees, which say a share of the memory.
    pub boosted: Boosted,
}

impl UntouchedModel {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "weir/untouched-model/1";
}

impl Predicted {
    /// VMs whose customer had no history.
    pub fn without_history(&self) -> u64 {
        self.new.iter().filter(|new| **new).count() as u64
    }
}

impl<'t> Prepared<'t> {
    /// Of a trace in the order of arrival.
    pub fn of(trace: &'t Trace) -> Self {
        let mut days = Vec::new();
        for (at, vm) in trace.vms().enumerate() {
            while days.len() <= (vm.arrival / DAY_S) as usize {
                days.push(at);
            }
        }
        days.push(trace.len());
        Self {
            trace,
            rows: history::rows(trace),
            days,
        }
    }

    /// How many days there are.
    pub fn days(&self) -> u32 {
        (self.days.len() - 1) as u32
    }

    /// VMs that arrive within some days before a day, and left before it begins.
    fn learns_from(&self, day: u32, train_days: u32) -> Vec<usize> {
        let begins = day.saturating_mul(DAY_S);
        let from = self.days[day.saturating_sub(train_days) as usize];
        let known = |place: &usize| {
            let vm = self.trace.get(*place);
            vm.is_some_and(|vm| vm.departure < begins && untouched_pct(&vm).is_some())
        };
        (from..self.days[day as usize]).filter(known).collect()
    }
}

impl Untouched {
    /// Refuses arguments outside their bounds.
    ///
    /// # Errors
    /// One is.
    pub fn check(&self) -> Result<(), PlanError> {
        let days = f64::from(self.train_days);
        within("--train-days", days, (1.0, 365.0), "1 to 365")?;
        for target in &self.targets {
            within("a target", *target, (0.0, 1.0), "0 % to 100 %")?;
        }
        Ok(())
    }

    /// The models with which the night before a day ends; `None` where too few VMs have left.
    pub fn train(&self, prepared: &Prepared<'_>, day: u32) -> Option<(Vec<ForTarget>, usize)> {
        let known = prepared.learns_from(day, self.train_days);
        if known.len() < FEWEST {
            return None;
        }
        let (trains, held_back) = known.split_at((TRAINS * known.len() as f64) as usize);
        let cell = |row: usize, column: usize| f64::from(prepared.rows[trains[row]][column]);
        let columns = Columns::of(trains.len(), COLUMNS, cell);
        let share = |place: &usize| prepared.trace.get(*place).map_or(0.0, |vm| share(&vm));
        let wanted: Vec<f64> = trains.iter().map(share).collect();
        let for_target = |target: &f64| {
            let boosted = Boosted::train(&columns, &wanted, *target, self.boosting);
            let said = held_back.iter().filter_map(|&place| {
                let vm = prepared.trace.get(place)?;
                Some((
                    vm,
                    boosted.value(|column| f64::from(prepared.rows[place][column])),
                ))
            });
            let said: Vec<(Vm, f64)> = said.collect();
            ForTarget {
                target_pct: 100.0 * target,
                less: least_taken_off(&said, *target),
                boosted,
            }
        };
        Some((self.targets.iter().map(for_target).collect(), known.len()))
    }

    /// Predicts for the VMs of a day. Without a model nothing is predicted, and `None` is the answer.
    pub fn day(&self, prepared: &Prepared<'_>, day: u32) -> Option<Predicted> {
        let (models, learned_from) = self.train(prepared, day)?;
        let places = prepared.days[day as usize]..prepared.days[day as usize + 1];
        let of = |model: &ForTarget, place: usize| {
            let vm = prepared.trace.get(place);
            vm.map_or(0, |vm| model.slices(&vm, &prepared.rows[place]))
        };
        let slices = models
            .iter()
            .map(|model| places.clone().map(|place| of(model, place)).collect());
        let is_empty = |place: usize| history::is_empty(&prepared.rows[place]);
        Some(Predicted {
            day,
            learned_from,
            new: places.clone().map(is_empty).collect(),
            slices: slices.collect(),
            places,
        })
    }
}

impl ForTarget {
    /// GiB of a VM in the pool.
    pub fn slices(&self, vm: &Vm, row: &Row) -> u32 {
        let Some(less) = self.less else {
            return 0;
        };
        let said = self.boosted.value(|column| f64::from(row[column]));
        whole_slices(vm, said - less)
    }
}

/// Untouched memory of a VM as a share; 0 where it is not known.
fn share(vm: &Vm) -> f64 {
    f64::from(untouched_pct(vm).unwrap_or(0)) / 100.0
}

/// Whole GiB of a share of a VM's memory.
pub fn whole_slices(vm: &Vm, share: f64) -> u32 {
    let memory = f64::from(vm.memory_mib) / f64::from(GIB);
    ((memory * share.max(0.0)) as u32).min(vm.memory_mib / GIB)
}

/// Whether a VM touches memory that is in the pool.
pub fn is_over(vm: &Vm, slices: u32) -> bool {
    f64::from(slices) * f64::from(GIB) > f64::from(vm.memory_mib) * share(vm)
}

/// The least that is taken off all predictions so that the target holds on VMs that trained nothing; `None` where even
/// nothing at all in the pool does not show that it holds.
fn least_taken_off(said: &[(Vm, f64)], target: f64) -> Option<f64> {
    let holds = |step: i32| {
        let less = f64::from(step) * STEP;
        let over = said
            .iter()
            .filter(|(vm, said)| is_over(vm, whole_slices(vm, said - less)));
        risk::holds(over.count(), said.len(), target)
    };
    let (mut low, mut high) = STEPS;
    if !holds(high) {
        return None;
    }
    // A larger step puts no more of any VM into the pool.
    while low < high {
        let middle = low + (high - low).div_euclid(2);
        match holds(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Some(f64::from(high) * STEP)
}

#[cfg(test)]
mod tests;
