//! Assumed parameters on which latency under load depends: which of them the figures identify, and which they do not.
//!
//! Each is tried at both ends of its range. Where the model stays as near to the used points as their scatter, the
//! figures do not identify it. Else values in between are tried, the nearest is taken, and those that are as near give
//! its interval. One parameter after the other, each with one tier.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::platform::{Definition, ParameterRow, Provenance, steps};
use weir_model::topology::{TierName, Topology};
use weir_model::units::GbPerSec;

use super::check::{noise, spec, telling};
use super::evidence::{LoadedPoint, What};
use super::outcome::{FittedParameter, How};
use super::put::rounded;
use super::twin::Twin;
use super::{Fit, LoadedCurve};
use crate::{Lab, LabError, PointSpec};

/// Keys of a host that latency under load depends on, the strongest first.
const HOST: [&str; 8] = [
    "uncore.clusters",
    "dram.nt_write",
    "dram.read_queue",
    "uncore.tor",
    "dram.drain_at",
    "dram.drain_to",
    "dram.write_queue",
    "dram.ranks",
];
/// Those of a device.
const DEVICE: [&str; 11] = [
    "controller",
    "queue",
    "read_limit",
    "efficiency",
    "total",
    "ranks",
    "write_queue",
    "drain_at",
    "drain_to",
    "write_buffer",
    "reorder_window",
];
/// Values of a range that are tried.
const STEPS: u32 = 5;
/// Two distances are alike if they differ by less, whatever the scatter is.
const LEAST: f64 = 0.01;
/// A model that is as far as this from the figures is looked for from the values of a known host or device, too: queues and turns of
/// writes do the same to a curve, so that one key after the other may lead nowhere.
const FAR: f64 = 0.05;
/// A device may limit reads and writes together where temporal stores move less than this part of what loads and non-temporal
/// stores move each alone.
const LIMITED: f64 = 0.85;
/// Such a limit is at most this much above what temporal stores reach: turns of its DRAM cost them a little.
const ABOVE: f64 = 1.05;
/// A point that is far away counts no more than this.
const FARTHEST: f64 = 1.0;

/// Solves for what the figures identify.
///
/// # Errors
/// The files describe no machine, or the work was stopped.
pub fn search(
    fit: &Fit,
    lab: &Lab<'_>,
    topology: &Topology,
    twin: &mut Twin,
) -> Result<Vec<FittedParameter>, LabError> {
    let mut parts = vec![(None, TierName::dram())];
    parts.extend(
        twin.tiers()
            .into_iter()
            .map(|tier| (Some(tier.clone()), tier)),
    );
    let of_parts = parts.iter().map(|(part, _)| keys(part.as_ref()).len());
    let mut total = of_parts.sum::<usize>() + fit.evidence.curves.len();
    let mut done = Vec::new();
    for (part, tier) in parts {
        let curves = fit.evidence.curves.iter().filter(|c| c.tier == tier);
        let cases: Vec<(&LoadedPoint, PointSpec)> = curves
            .flat_map(|curve: &LoadedCurve| telling(curve).into_iter().map(move |p| (curve, p)))
            .filter_map(|(curve, point)| Some((point, spec(curve, point, topology)?)))
            .collect();
        if cases.is_empty() {
            continue;
        }
        let points: Vec<&LoadedPoint> = cases.iter().map(|(point, _)| *point).collect();
        let mut one = Search {
            fit,
            lab,
            part,
            points: &points,
            specs: cases.iter().map(|(_, spec)| spec.clone()).collect(),
            alike: noise(&points).max(LEAST),
            at: f64::INFINITY,
            assumed: BTreeMap::new(),
            steps: total,
        };
        let start = twin.clone();
        one.at = one.distance(twin)?;
        let mut found = one.descend(twin)?;
        let rows = one.rows(&start)?;
        if one.at > FAR.max(3.0 * one.alike) {
            let other = one.elsewhere(&start, &rows)?;
            one.begin_at(other, &rows, twin, &mut found)?;
        }
        let other = one.limited(&start, &rows, twin);
        one.begin_at(other, &rows, twin, &mut found)?;
        total = one.steps;
        done.extend(found);
    }
    Ok(done)
}

fn keys(part: Option<&TierName>) -> &'static [&'static str] {
    match part {
        None => &HOST,
        Some(_) => &DEVICE,
    }
}

/// A search with the used points of one tier.
struct Search<'a> {
    fit: &'a Fit,
    lab: &'a Lab<'a>,
    /// The tier whose device it is; none for the host.
    part: Option<TierName>,
    points: &'a [&'a LoadedPoint],
    specs: Vec<PointSpec>,
    /// Distances are alike if they differ by less.
    alike: f64,
    /// Distance of the model as it is now.
    at: f64,
    /// Each parameter that has been solved for since, as it was before.
    assumed: BTreeMap<String, ParameterRow>,
    /// Steps of the whole work, for its progress.
    steps: usize,
}

/// A value that was tried, and the model's distance with it.
type Tried = (String, f64);

impl Search<'_> {
    /// The same from another beginning, if there is one. What is nearer stays.
    fn begin_at(
        &mut self,
        other: Option<Twin>,
        rows: &[ParameterRow],
        twin: &mut Twin,
        found: &mut Vec<FittedParameter>,
    ) -> Result<(), LabError> {
        let Some(mut other) = other else {
            return Ok(());
        };
        let assumed = rows.iter().map(|row| (row.key.clone(), row.clone()));
        self.assumed = assumed.collect();
        self.steps += keys(self.part.as_ref()).len();
        let Some(first) = self.possible(&other)? else {
            return Ok(());
        };
        let at = std::mem::replace(&mut self.at, first);
        let again = self.descend(&mut other)?;
        match self.at + self.alike < at {
            true => (*twin, *found) = (other, again),
            false => self.at = at,
        }
        Ok(())
    }

    /// One key after the other, and what was solved first once more: it was solved with the others as they were assumed.
    fn descend(&mut self, twin: &mut Twin) -> Result<Vec<FittedParameter>, LabError> {
        let part = self.part.clone();
        let mut found: Vec<FittedParameter> = Vec::new();
        for key in keys(part.as_ref()) {
            self.step()?;
            found.extend(self.solve(twin, part.as_ref(), key)?);
        }
        for key in keys(part.as_ref()) {
            let solved = |p: &FittedParameter| p.key == **key && p.how == How::Solved;
            let Some(at) = found.iter().position(solved) else {
                continue;
            };
            self.step()?;
            if let Some(row) = self.assumed.get(*key).cloned() {
                let before = twin.clone();
                twin.set(part.as_ref(), key, &found[at].value, row.provenance);
                if twin.compose(&self.fit.library).is_err() {
                    *twin = before;
                    continue;
                }
            }
            if let Some(again) = self.solve(twin, part.as_ref(), key)? {
                found.remove(at);
                found.push(again);
            }
        }
        self.at = self.distance(twin)?;
        Ok(found)
    }

    /// What is assumed as it is in the host or device of the library that is nearest so.
    fn elsewhere(&self, start: &Twin, rows: &[ParameterRow]) -> Result<Option<Twin>, LabError> {
        let part = self.part.as_ref();
        let mut best: Option<(Twin, f64)> = None;
        let mut seen = BTreeSet::new();
        for known in self.fit.library.list() {
            let is_alike = match known {
                Definition::Host(_) => part.is_none(),
                Definition::Device(_) => part.is_some(),
                Definition::Storage(_) => false,
            };
            if !is_alike {
                continue;
            }
            let own = known.parameters();
            let value = |key: &str| Some(own.iter().find(|row| row.key == key)?.value.clone());
            let mut other = self.assuming(start, rows, value);
            if !seen.insert(other.draft_mut(part).map(|draft| draft.text())) {
                continue;
            }
            if self.lab.stopped() {
                return Err(LabError::Stopped);
            }
            let Some(at) = self.possible(&other)? else {
                continue;
            };
            if best.as_ref().is_none_or(|(_, least)| at < *least) {
                best = Some((other, at));
            }
        }
        Ok(best.map(|(other, _)| other))
    }

    /// What was solved for so far with a limit of reads and writes together, where temporal stores, which move as much in each
    /// direction, show that there may be one.
    fn limited(&self, start: &Twin, rows: &[ParameterRow], solved: &Twin) -> Option<Twin> {
        let tier = self.part.as_ref()?;
        let most = |kind: fn(What) -> bool| {
            let of_tier = self.fit.evidence.singles.iter().filter(|s| s.tier == *tier);
            let values = of_tier.filter(|s| kind(s.what)).map(|s| s.value);
            values.fold(0.0, f64::max)
        };
        let both = 2.0 * most(|what| matches!(what, What::Stores(_)));
        let apart = most(|what| matches!(what, What::Loads(_)))
            + most(|what| matches!(what, What::Posted(_)));
        if both <= 0.0 || both >= LIMITED * apart {
            return None;
        }
        let mut solved = solved.clone();
        let value = |key: &str| Some(solved.draft_mut(Some(tier))?.get(key)?.to_owned());
        let mut other = self.assuming(start, rows, value);
        let shown = |gbps: f64| GbPerSec(rounded(gbps)).to_string();
        let provenance = Provenance::Assumed {
            low: shown(both),
            high: shown(both * ABOVE),
            why: "temporal stores move less than loads and non-temporal stores move each alone"
                .into(),
        };
        let value = shown(both * ABOVE.sqrt());
        other.set(Some(tier), "total", &value, provenance)?;
        Some(other)
    }

    /// What is assumed at the start.
    fn rows(&self, start: &Twin) -> Result<Vec<ParameterRow>, LabError> {
        let part = self.part.as_ref();
        let ranges = keys(part).iter().map(|key| self.range(start, part, key));
        let rows = ranges.filter_map(|range| range.map(|range| Some(range?.0)).transpose());
        rows.collect()
    }

    /// The start with other values of what is assumed.
    fn assuming(
        &self,
        start: &Twin,
        rows: &[ParameterRow],
        mut value: impl FnMut(&str) -> Option<String>,
    ) -> Twin {
        let mut other = start.clone();
        for row in rows {
            let value = value(&row.key).unwrap_or_else(|| row.value.clone());
            other.set(self.part.as_ref(), &row.key, &value, row.provenance.clone());
        }
        other
    }

    /// The distance; `None` where values contradict each other.
    fn possible(&self, twin: &Twin) -> Result<Option<f64>, LabError> {
        match self.distance(twin) {
            Err(LabError::Nothing(_)) => Ok(None),
            distance => distance.map(Some),
        }
    }

    fn step(&self) -> Result<(), LabError> {
        match self.lab.step(self.steps) {
            true => Ok(()),
            false => Err(LabError::Stopped),
        }
    }

    /// Mean over the points of how far the model is from them, under the same load.
    fn distance(&self, twin: &Twin) -> Result<f64, LabError> {
        let answers = self.fit.ask(self.lab, twin, &self.specs)?;
        let far = self.points.iter().zip(&answers).map(|(point, answer)| {
            let Some((gbps, ns)) = *answer else {
                return FARTHEST;
            };
            let (g, n) = (gbps / point.bandwidth.get(), ns / point.latency.get());
            (g.ln().abs() + n.ln().abs()).min(FARTHEST)
        });
        Ok(far.sum::<f64>() / self.points.len().max(1) as f64)
    }

    /// The distance with another value; infinite where the value contradicts others.
    fn with(
        &self,
        twin: &Twin,
        part: Option<&TierName>,
        key: &str,
        value: &str,
    ) -> Result<f64, LabError> {
        let mut other = twin.clone();
        other.set(part, key, value, Provenance::Source("tried".into()));
        Ok(self.possible(&other)?.unwrap_or(f64::INFINITY))
    }

    fn solve(
        &mut self,
        twin: &mut Twin,
        part: Option<&TierName>,
        key: &str,
    ) -> Result<Option<FittedParameter>, LabError> {
        let Some((row, values)) = self.range(twin, part, key)? else {
            return Ok(None);
        };
        let Provenance::Assumed { low, high, why } = row.provenance.clone() else {
            return Ok(None);
        };
        let mut tried: Vec<Tried> = Vec::new();
        for value in values.iter().take(1).chain(values.iter().skip(1).last()) {
            tried.push((value.clone(), self.with(twin, part, key, value)?));
        }
        let now = (row.value.clone(), self.at);
        let reach = tried.iter().filter(|t| t.1.is_finite());
        let reach = reach.map(|t| (t.1 - self.at).abs()).fold(0.0, f64::max);
        if reach <= self.alike {
            // With what was solved for since, the figures no longer identify it: it is as it was before.
            let value = match self.assumed.get(key) {
                Some(before) => before.value.clone(),
                None => row.value,
            };
            let why = format!(
                "the figures do not identify it: from one end of the range to the other the model's distance from them \
                 changes by {:.1} %; {why}",
                reach * 100.0
            );
            let provenance = Provenance::Assumed {
                low: low.clone(),
                high: high.clone(),
                why: why.clone(),
            };
            let before = twin.clone();
            let part = twin.set(part, key, &value, provenance);
            // A default that is calculated may lie outside its range as it is written; it stays a default.
            if twin.compose(&self.fit.library).is_err() {
                *twin = before;
                return Ok(None);
            }
            return Ok(part.map(|part| FittedParameter {
                part,
                key: key.into(),
                value,
                low: Some(low),
                high: Some(high),
                how: How::Assumed,
                why,
            }));
        }
        for value in values.iter().skip(1).rev().skip(1).rev() {
            tried.push((value.clone(), self.with(twin, part, key, value)?));
        }
        if !tried.iter().any(|(value, _)| *value == now.0) {
            tried.push(now.clone());
        }
        // In the order of the range; words stay as they are.
        tried.sort_by(|a, b| number(&a.0).total_cmp(&number(&b.0)));
        let Some(best) = tried.iter().min_by(|a, b| a.1.total_cmp(&b.1)).cloned() else {
            return Ok(None);
        };
        // A value that was chosen with a reason stays where the figures say hardly more.
        let best = match now.1 <= best.1 + self.alike / 2.0 {
            true => now,
            false => best,
        };
        let near = || {
            tried
                .iter()
                .filter(|t| t.1 <= best.1 + self.alike || t.0 == best.0)
        };
        let end = |tried: Option<&Tried>| tried.map_or(best.0.clone(), |t| t.0.clone());
        let ends = (end(near().next()), end(near().next_back()));
        let why = format!(
            "solved: latency under load on one tier, {}; the model's mean distance from the used points is {:.1} % \
             with it, {:.1} % more at the worst end of {low} to {high}; {} to {} are as near",
            self.fit.evidence.from,
            best.1 * 100.0,
            (reach * 100.0).min(999.0),
            ends.0,
            ends.1,
        );
        self.at = best.1;
        self.assumed.entry(key.into()).or_insert(row);
        let part = twin.set(part, key, &best.0, Provenance::Source(why.clone()));
        Ok(part.map(|part| FittedParameter {
            part,
            key: key.into(),
            value: best.0,
            low: Some(ends.0),
            high: Some(ends.1),
            how: How::Solved,
            why,
        }))
    }

    /// An assumed parameter as it is now, and the values to try; `None` where it has a source or no range.
    fn range(
        &self,
        twin: &Twin,
        part: Option<&TierName>,
        key: &str,
    ) -> Result<Option<(ParameterRow, Vec<String>)>, LabError> {
        let platform = twin.compose(&self.fit.library)?;
        let definition = match part {
            None => Some(Definition::Host(Box::new(platform.host.clone()))),
            Some(tier) => {
                let at = twin.tiers().iter().position(|name| name == tier);
                let device = at.and_then(|at| platform.devices.get(at));
                device.map(|attached| Definition::Device(Box::new(attached.device.clone())))
            }
        };
        let Some(definition) = definition else {
            return Ok(None);
        };
        let mut rows = definition.parameters().into_iter();
        let Some(row) = rows.find(|row| row.key == key && row.is_assumed()) else {
            return Ok(None);
        };
        let values = steps(definition.kind(), &row, STEPS);
        Ok((values.len() > 1).then_some((row, values)))
    }
}

/// The number that a value begins with; 0 for a word. All values of a key have one unit.
fn number(value: &str) -> f64 {
    let digits = value.split(' ').next().unwrap_or_default();
    digits.parse().unwrap_or(0.0)
}
