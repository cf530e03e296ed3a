//! Model files: what is written is read, and what is something else is refused.

use crate::common;

use common::{CONSTANTS, machine, micros, model};
use proptest::prelude::*;
use weir_insight::slowdown::{calibrate, file};
use weir_model::insight::{Exposed, ExposedModel, PrefetchForm, SlowdownModel};
use weir_model::topology::TierName;

const FORM: PrefetchForm = PrefetchForm::Skylake;

fn calibrated() -> SlowdownModel {
    model(calibrate(&micros(&CONSTANTS, FORM), FORM).unwrap(), FORM)
}

#[test]
fn a_model_is_read_as_it_was_written() {
    let model = calibrated();
    let text = file::write(&model).unwrap();
    let back = file::read("m.json", &text).unwrap();
    assert_eq!(file::write(&back).unwrap(), text);
}

#[test]
fn a_model_of_another_pair_is_refused() {
    let model = calibrated();
    let (dram, cxl) = (TierName::dram(), TierName::cxl(0));
    assert!(file::check(&model, &model.machine, &dram, &cxl).is_ok());
    let other = machine("emr2s+cxl-b");
    let error = file::check(&model, &other, &dram, &cxl)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("emr2s+cxl-a") && error.contains("emr2s+cxl-b"),
        "{error}"
    );
    assert!(file::check(&model, &model.machine, &dram, &TierName::cxl(1)).is_err());
    assert!(file::check(&model, &model.machine, &TierName::remote(), &cxl).is_err());
    // The same name, but a parameter of the platform has changed.
    let mut changed = model.machine.clone();
    changed.digest = "another".into();
    assert!(file::check(&model, &changed, &dram, &cxl).is_err());
    assert!(file::check_family(&model, FORM).is_ok());
    assert!(file::check_family(&model, PrefetchForm::SapphireRapids).is_err());
}

#[test]
fn another_version_or_impossible_constants_are_refused() {
    let mut model = calibrated();
    model.schema = "weir/slowdown-model/9".into();
    let error = file::read("m.json", &file::write(&model).unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.contains("weir/slowdown-model/9"), "{error}");
    let mut model = calibrated();
    model.exposed = Some(ExposedModel {
        constants: Exposed {
            growth: 1.0,
            exposed: 1.5,
            beside: 0.1,
        },
        late: None,
        held_out: None,
    });
    let error = file::read("m.json", &file::write(&model).unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.contains("`exposed` cannot be"), "{error}");
    let mut model = calibrated();
    model.constants.q = 0.0;
    let error = file::read("m.json", &file::write(&model).unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.contains("constants"), "{error}");
    let error = file::read("m.json", "{\n  \"schema\": 7\n}")
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2"), "{error}");
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in ".{0,200}") {
        prop_assert!(file::read("m.json", &text).is_err());
    }

    #[test]
    fn a_damaged_file_is_a_model_or_an_error(at in 0..2000_usize, with in any::<char>()) {
        let text = file::write(&calibrated()).unwrap();
        let mut damaged: Vec<char> = text.chars().collect();
        let length = damaged.len();
        damaged[at % length] = with;
        let damaged: String = damaged.into_iter().collect();
        if let Ok(model) = file::read("m.json", &damaged) {
            prop_assert!(model.constants.q > 0.0);
        }
    }
}
