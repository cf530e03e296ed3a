//! The steps of a fit, one after the other.

use weir_model::platform::Provenance;

use super::outcome::{Fitted, FittedParameter, How, PlatformText};
use super::twin::Twin;
use super::{Fit, caches, check, direct, search};
use crate::study::Study;
use crate::{Lab, LabError};

impl Study for Fit {
    const VERB: &'static str = "platforms fit";
    type Output = Fitted;

    fn run(&self, lab: &Lab<'_>) -> Result<Fitted, LabError> {
        let from = &self.evidence.from;
        let mut twin = self.twin.clone();
        let (measured, no_peaks) = direct::apply(&self.evidence.singles, from, &mut twin);
        self.give(&mut twin)?;
        twin.complete()?;
        let host = twin.host(&self.library)?;
        let mut held = direct::hold(&self.evidence.singles, from, &host, &mut twin);
        held.extend(caches::apply(&self.evidence.chases, from, &host, &mut twin));
        let platform = twin.compose(&self.library)?;
        held.extend(direct::links(
            &self.evidence.singles,
            from,
            &platform,
            &mut twin,
        ));
        self.give(&mut twin)?;
        let platform = twin.compose(&self.library)?;
        (self.open)(&platform).map_err(LabError::Nothing)?;
        if lab.is_dry() {
            return Err(LabError::Dry);
        }
        for reason in &self.evidence.left_out {
            lab.warn(format!("left out: {reason}"));
        }
        for no_peak in no_peaks {
            lab.warn(no_peak);
        }
        let topology = platform.topology();
        let mut known = [measured, held].concat();
        if !self.quick {
            known.extend(search::search(self, lab, &topology, &mut twin)?);
        }
        let compared = check::compare(self, lab, &topology, &twin)?;
        Ok(Fitted {
            parameters: listed(&twin, known),
            checks: Fitted::checked(&compared),
            compared,
            files: twin
                .drafts()
                .map(|draft| PlatformText {
                    name: draft.name.clone(),
                    text: draft.text(),
                })
                .collect(),
        })
    }
}

/// Every value of the files: those that were fitted as they were, the others by their provenance.
fn listed(twin: &Twin, mut known: Vec<FittedParameter>) -> Vec<FittedParameter> {
    for draft in twin.drafts() {
        for (key, value, provenance) in draft.rows() {
            if let Some(at) = known
                .iter()
                .position(|p| p.part == draft.name && p.key == key)
            {
                // What the user gave counts more than a figure.
                if known.get(at).is_some_and(|p| p.value == value) {
                    continue;
                }
                known.remove(at);
            }
            let (low, high, how, why) = match provenance {
                Provenance::Source(source) => (None, None, How::Given, source),
                Provenance::Assumed { low, high, why } => {
                    (Some(low.clone()), Some(high.clone()), How::Assumed, why)
                }
            };
            known.push(FittedParameter {
                part: draft.name.clone(),
                key: key.into(),
                value: value.into(),
                low,
                high,
                how,
                why: why.clone(),
            });
        }
    }
    known
}
