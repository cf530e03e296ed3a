//! `weir platforms fit`: the file of a machine from what was measured on it.
//!
//! Three steps. Parameters that are measured figures are taken over (`direct`). Assumed ones on which latency under
//! load depends are tried over their range, each with one tier and one tenant's load, and set where the figures
//! distinguish their values (`search`). Then the model of the machine is compared with every point of the evidence, also
//! with those that were held out (`check`). No figure with two tenants is used: a chase is what an instrument times its load with.

mod caches;
mod chase;
mod check;
mod direct;
mod evidence;
mod outcome;
mod put;
mod search;
mod study;
mod twin;

pub(crate) use chase::A_STEP;
pub use chase::{Chase, Chases, Left};
pub use evidence::{Evidence, LoadedCurve, LoadedPoint, Single, What};
pub use outcome::{ComparedPoint, FitCheck, Fitted, FittedParameter, How, Part, PlatformText};
pub use twin::Twin;

use weir_model::machine::Testbed;
use weir_model::platform::{Library, Platform};

use crate::{Lab, LabError, PointSpec};

/// How models are made.
pub type OpenModel = fn(&Platform) -> Result<Box<dyn Testbed>, String>;

/// A machine to fit, and what is known of it.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Platforms and defaults that are known.
    pub library: Library,
    /// The files as far as the machine, a base or the user say them.
    pub twin: Twin,
    /// What was measured.
    pub evidence: Evidence,
    /// `KEY=VALUE` that the user gave, which count more than figures.
    pub given: Vec<String>,
    /// Whether parameters that no figure is are left as they are.
    pub quick: bool,
    /// How models are made.
    pub open: OpenModel,
}

impl Fit {
    fn give(&self, twin: &mut Twin) -> Result<(), LabError> {
        self.given.iter().try_for_each(|text| twin.set_given(text))
    }

    /// Bandwidth in GB/s and latency in ns of points on the model of these files; `None` for a point without a figure.
    fn ask(
        &self,
        lab: &Lab<'_>,
        twin: &Twin,
        specs: &[PointSpec],
    ) -> Result<Vec<Option<(f64, f64)>>, LabError> {
        let platform = twin.compose(&self.library)?;
        let testbed = (self.open)(&platform).map_err(LabError::Nothing)?;
        let machine = testbed.open(lab.seed())?;
        let (identity, topology) = (machine.identity(), machine.topology().clone());
        drop(machine);
        let inside = lab.inside();
        let answers = inside.on(&*testbed, &identity, &topology).ask_all(specs)?;
        let figure = |done: crate::Finished| {
            let traffic = done.point.beside?.traffic_gbps?.get();
            let ns = done.point.ns?.mean.get();
            (traffic > 0.0 && ns > 0.0).then_some((traffic, ns))
        };
        Ok(answers.into_iter().map(figure).collect())
    }
}

/// The middle of some values, the mean of the two middle ones of an even number; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |n: usize| sorted.get(n).copied().unwrap_or_default();
    match sorted.len() % 2 {
        _ if sorted.is_empty() => 0.0,
        0 => f64::midpoint(at(middle - 1), at(middle)),
        _ => at(middle),
    }
}
