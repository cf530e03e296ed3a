//! Writes the known values of a machine as a file.

use std::fmt::Write as _;

use weir_model::units::Nanos;

use super::Known;
use crate::knee::Knee;
use crate::limit::Grain;

/// The values as a file that can be read again.
pub(super) fn to_toml(known: &Known) -> String {
    let mut text = String::from("kind = \"steer-machine\"\n\n[machine]\n");
    let words = [("measured", &known.measured), ("digest", &known.digest)];
    for (key, value) in words {
        if let Some(value) = value {
            line(&mut text, key, &format!("{value:?}"));
        }
    }
    for (key, value) in [
        ("fast", known.fast),
        ("fast_loaded", known.fast_loaded),
        ("slow", known.slow),
        ("slow_read", known.slow_read),
        ("slow_write", known.slow_write),
    ] {
        if let Some(value) = value {
            line(&mut text, key, &ns(value));
        }
    }
    for knee in &known.knees {
        text.push_str("\n[[machine.knee]]\n");
        of_knee(&mut text, knee);
    }
    text
}

fn of_knee(text: &mut String, knee: &Knee) {
    line(text, "writes", &format!("{:.3}", knee.writes));
    line(text, "rest", &ns(knee.rest));
    line(text, "residency", &ns(knee.residency));
    line(text, "gives", &format!("\"{:.3} GB/s\"", knee.gives.get()));
    line(text, "units", &format!("{:.3}", knee.units));
    if let Some(much) = knee.much {
        line(text, "much", &format!("{much:.3}"));
    }
    let (grain, step) = match knee.grain {
        Grain::Time => ("time", None),
        Grain::Wide(step) => ("wide", Some(step)),
        Grain::Narrow(step) => ("narrow", Some(step)),
    };
    line(text, "grain", &format!("\"{grain}\""));
    if let Some(step) = step {
        line(text, "step", &format!("{:.4}", step.get()));
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn ns(time: Nanos) -> String {
    format!("\"{:.1} ns\"", time.get())
}
