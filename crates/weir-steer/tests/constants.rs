//! Whether the 48 cells depend on a constant of the controller: each is halved and doubled.

use crate::library;

use library::{Bench, Given, Pair, platforms};
use weir_model::access::Op;
use weir_steer::control_loop::Step;
use weir_steer::controllers::{Tuning, Weir};
use weir_steer::guard::{Bounds, Guarded};
use weir_steer::knee::{Criteria, Knee};
use weir_steer::{Controller, Share};

/// The seed whose figures are in the documentation.
const SEED: u64 = 1;
const BY: [f64; 2] = [0.5, 2.0];

/// The constants with one of them varied.
#[derive(Clone, Default)]
struct Variant {
    name: String,
    tuning: Tuning,
    criteria: Criteria,
    bounds: Bounds,
}

/// Each constant of the control loop, halved and then doubled.
fn of_control() -> Vec<Variant> {
    let of = |name: &str, by| Variant {
        name: name.into(),
        tuning: Tuning::default().varied(name, by).unwrap(),
        ..Variant::default()
    };
    let constants = Tuning::NAMES
        .iter()
        .flat_map(|name| BY.map(|by| of(name, by)));
    let floors = BY.map(|by| {
        let mut variant = Variant {
            name: "floor".into(),
            ..Variant::default()
        };
        variant.bounds.floor = Share::of(variant.bounds.floor.get() * by);
        variant
    });
    constants.chain(floors).collect()
}

/// Each constant of the measurement of a knee.
fn of_knees() -> Vec<Variant> {
    let of = |name: &str, by| Variant {
        name: format!("knee {name}"),
        criteria: Criteria::default().varied(name, by).unwrap(),
        ..Variant::default()
    };
    (Criteria::NAMES
        .iter()
        .flat_map(|name| BY.map(|by| of(name, by))))
    .collect()
}

/// The runs of one pair. Equal decisions are an equal run, since the model is deterministic: a run whose
/// readings lead a controller to the run's own decisions is what this controller would do.
struct Runs<'a> {
    pair: Pair<'a>,
    known: Vec<(Vec<Step>, (f64, f64))>,
}

impl Runs<'_> {
    /// What both tiers keep under a controller, in percent of alone.
    fn kept(&mut self, make: impl Fn() -> Guarded<Weir>) -> (f64, f64) {
        let is_same = |steps: &[Step]| {
            let mut controller = make();
            (steps.iter()).all(|s| controller.observe(&s.readings).limits == s.decision.limits)
        };
        if let Some((_, kept)) = self.known.iter().find(|(steps, _)| is_same(steps)) {
            return *kept;
        }
        let steps = self.pair.run(&mut make());
        let (fast, slow) = self.pair.kept(&steps);
        self.known.push((steps, (fast * 100.0, slow * 100.0)));
        (fast * 100.0, slow * 100.0)
    }
}

/// Of each cell, its name, what it keeps as is, and what it keeps under each variant.
type Row = (String, (f64, f64), Vec<(f64, f64)>);

fn rows(variants: &[Variant]) -> Vec<Row> {
    let mut rows = Vec::new();
    let is = |on: &str| std::env::var("WEIR_PLATFORMS").map_or(true, |named| named.contains(on));
    for on in platforms().iter().filter(|on| is(on)) {
        let bench = Bench::new(on, Given::Allocation, SEED);
        let knees = |variant: &Variant| match variant.criteria == Criteria::default() {
            true => bench.knees.clone(),
            false => bench.knees(variant.criteria),
        };
        let knees: Vec<Vec<Knee>> = variants.iter().map(knees).collect();
        for op in [Op::Ld, Op::St, Op::NtSt] {
            let mut runs = Runs {
                pair: Pair::new(&bench, op),
                known: Vec::new(),
            };
            let as_is = runs.kept(|| bench.weir());
            let kept = variants.iter().zip(&knees).map(|(variant, knees)| {
                runs.kept(|| bench.tuned(variant.tuning, knees.clone(), variant.bounds.clone()))
            });
            let kept = kept.collect();
            println!(
                "{on} {op}: {as_is:.1?}, {} different runs",
                runs.known.len()
            );
            rows.push((format!("{on} {op}"), as_is, kept));
        }
    }
    rows
}

/// For each constant, halved and doubled: the least of DRAM and of CXL, and the largest loss of a cell. No least is a
/// point lower than with the constants as they are.
fn study(variants: &[Variant]) {
    type Side = fn((f64, f64)) -> f64;
    let rows = rows(variants);
    let least = |of: &dyn Fn(&Row) -> f64| rows.iter().map(of).fold(f64::INFINITY, f64::min);
    let sides: [(&str, Side); 2] = [("DRAM", |kept| kept.0), ("CXL", |kept| kept.1)];
    let as_is = sides.map(|(_, side)| least(&|row| side(row.1)));
    println!(
        "as is: least DRAM {:.1}, least CXL {:.1}",
        as_is[0], as_is[1]
    );
    let mut lower = Vec::new();
    for (i, variant) in variants.iter().enumerate() {
        let [fast, slow] = sides.map(|(_, side)| least(&|row| side(row.2[i])));
        let by = BY[i % 2];
        if fast < as_is[0] - 1.0 || slow < as_is[1] - 1.0 {
            lower.push((&variant.name, by));
        }
        print!("{:20} x {by}: least {fast:5.1} {slow:5.1}", variant.name);
        for (name, side) in sides {
            let loss = |row: &Row| side(row.1).min(100.0) - side(row.2[i]);
            let most = rows.iter().max_by(|a, b| loss(a).total_cmp(&loss(b)));
            if let Some(row) = most.filter(|row| loss(row) > 1.0) {
                print!(
                    "; {name} {:.1} to {:.1} in {}",
                    side(row.1),
                    side(row.2[i]),
                    row.0
                );
            }
        }
        println!();
    }
    assert!(lower.is_empty(), "{lower:?}");
}

#[test]
#[ignore = "takes minutes; for the documentation, by hand"]
fn the_constants_of_control() {
    study(&of_control());
}

#[test]
#[ignore = "takes minutes; for the documentation, by hand"]
fn the_constants_of_knees() {
    study(&of_knees());
}
