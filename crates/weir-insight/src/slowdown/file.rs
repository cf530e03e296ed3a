//! Calibrated models as text, checked when they are read and when they are used.

use weir_model::insight::{ExposedModel, PrefetchForm, SlowdownModel};
use weir_model::machine::Identity;
use weir_model::topology::TierName;

use crate::InsightError;
use crate::interleave::kernels;

/// The text of a model file.
///
/// # Errors
/// A figure of it cannot be written as JSON.
pub fn write(model: &SlowdownModel) -> Result<String, InsightError> {
    let text = serde_json::to_string_pretty(model).map_err(|error| InsightError::ModelFile {
        file: "the model".into(),
        why: error.to_string(),
    })?;
    Ok(text + "\n")
}

/// What every document has.
#[derive(serde::Deserialize)]
struct Head {
    #[serde(default)]
    schema: String,
}

/// Reads the text of a model file.
///
/// # Errors
/// It is no such document, of another version, or holds constants that no calibration finds.
pub fn read(file: &str, text: &str) -> Result<SlowdownModel, InsightError> {
    let wrong = |why: String| InsightError::ModelFile {
        file: file.into(),
        why,
    };
    let no_model = |why: &str| wrong(format!("no model that `weir calibrate` wrote: {why}"));
    let Head { schema } =
        serde_json::from_str(text).map_err(|error| no_model(&error.to_string()))?;
    if schema.is_empty() {
        return Err(no_model("it has no `schema`"));
    }
    if schema != SlowdownModel::SCHEMA {
        return Err(wrong(format!(
            "`schema` is `{schema}`, and this version reads `{}`",
            SlowdownModel::SCHEMA
        )));
    }
    let model: SlowdownModel =
        serde_json::from_str(text).map_err(|error| no_model(&error.to_string()))?;
    let c = &model.constants;
    let finite = [c.k1, c.k2, c.k3, c.k4, c.p.get(), c.q, model.unloaded.get()];
    if !finite.iter().all(|x| x.is_finite()) || c.q <= 0.0 || c.p.get() < 0.0 {
        return Err(wrong(
            "`constants` cannot be: each must be finite, `q` above zero and `p` not below".into(),
        ));
    }
    if let Some(ExposedModel { late: Some(c), .. }) = &model.exposed
        && (!c.growth.is_finite() || c.growth <= 0.0 || !(0.0..=1.0).contains(&c.exposed))
    {
        return Err(wrong(
            "`late` cannot be: `growth` must be above zero, `exposed` a share".into(),
        ));
    }
    if let Some(ExposedModel { constants: c, .. }) = &model.exposed {
        let finite = [c.growth, c.exposed, c.beside]
            .iter()
            .all(|x| x.is_finite());
        if !finite || c.growth <= 0.0 || !(0.0..=1.0).contains(&c.exposed) || c.beside < 0.0 {
            return Err(wrong(
                "`exposed` cannot be: `growth` must be above zero, `exposed` a share, `beside` not below zero"
                    .into(),
            ));
        }
    }
    if let Some(fit) = &model.interleave
        && !kernels::is_possible(fit)
    {
        return Err(wrong(
            "`interleave` cannot be: latencies, factors and capacities must be above zero".into(),
        ));
    }
    Ok(model)
}

/// Whether a model is of this machine and these memories.
///
/// # Errors
/// It is of others.
pub fn check(
    model: &SlowdownModel,
    machine: &Identity,
    from: &TierName,
    to: &TierName,
) -> Result<(), InsightError> {
    let pair = |machine: &Identity, from: &TierName, to: &TierName| {
        format!("{} ({}), {from} to {to}", machine.name, machine.digest)
    };
    if model.machine == *machine && model.from == *from && model.to == *to {
        return Ok(());
    }
    Err(InsightError::OtherPair {
        of: pair(&model.machine, &model.from, &model.to),
        wanted: pair(machine, from, to),
    })
}

/// Whether a model reads the counters of this processor family, where counters come from a file that
/// names no machine.
///
/// # Errors
/// It reads those of another.
pub fn check_family(model: &SlowdownModel, family: PrefetchForm) -> Result<(), InsightError> {
    if model.prefetch == family {
        return Ok(());
    }
    Err(InsightError::OtherPair {
        of: format!("{} ({})", model.processor, model.prefetch),
        wanted: format!("a processor like {family}"),
    })
}
