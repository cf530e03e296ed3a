//! Studies of what counters mean.

pub mod calibrate;
pub mod explain;
mod explained;
pub mod place;
pub mod predict;
pub mod tune;

use weir_lab::view::Part;
use weir_lab::{Severity, Verdict};

/// A column for a cause, with its name and its colour. Colours next to each other differ in lightness too.
const fn cause(column: &'static str, name: &'static str, colour: usize) -> Part {
    Part {
        column,
        name,
        colour,
    }
}

const STORE: Part = cause("store", "store", 3);
const L1: Part = cause("l1", "L1", 5);
const L2: Part = cause("l2", "L2", 2);
const L3: Part = cause("l3", "L3", 4);
const CACHES: Part = cause("cache", "caches", 2);
const DRAM: Part = cause("dram", "DRAM", 0);
const OTHER: Part = cause("other", "other", 6);
/// What no cause is known for, for want of counters.
const REST: Part = cause("rest", "not known", 7);

/// The machine whose runs vary, by its name; a model repeats itself.
const HOST: &str = "host";
/// What figures of this host leave open.
const ONE_RUN: &str = "the figures have no interval, since the work ran once on each side; repeat the command to see how much they vary";

/// The part of a slowdown that its known causes leave; `None` where it is rounding.
fn rest(whole: f64, parts: &[Option<f64>]) -> Option<f64> {
    let rest = whole - parts.iter().flatten().sum::<f64>();
    (rest.abs() > 0.01).then_some(rest)
}

fn note(about: &str, text: impl Into<String>) -> Verdict {
    Verdict::new(Severity::Note, about, text)
}

fn doubt(about: &str, text: impl Into<String>) -> Verdict {
    Verdict::new(Severity::Doubt, about, text)
}
