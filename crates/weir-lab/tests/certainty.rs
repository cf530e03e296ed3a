//! Pairs of `interplay` are repeated until their class is certain, on a machine of formulas.

mod common;

use std::collections::BTreeMap;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::Toy;
use weir_lab::interplay::{Interplay, LEAST, MOST, Matrix};
use weir_lab::{About, Bench, Finished, Keeper, Lab, LabError, Outcome, PointSpec, Study};
use weir_model::interplay::Cause;
use weir_model::machine::{Identity, MachineKind};

fn study(threads: &[&str]) -> Interplay {
    Interplay {
        victims: vec!["dram:ld".parse().unwrap()],
        aggressors: vec!["cxl0:nt_st".parse().unwrap()],
        threads: threads.iter().map(|n| n.parse().unwrap()).collect(),
        until_certain: true,
        ..Interplay::default()
    }
}

fn identity() -> Identity {
    Identity {
        kind: MachineKind::Sim,
        name: "toy".into(),
        digest: "0".into(),
    }
}

fn measured(toy: &Toy, threads: &[&str], keeper: &dyn Keeper) -> Result<Matrix, LabError> {
    let (machine, topology) = (identity(), toy.topology());
    let bench = Bench {
        testbed: toy,
        machine: &machine,
        topology: &topology,
        capabilities: &[],
        seed: 3,
        rounds: MOST,
    };
    study(threads).run(&Lab::new(bench, keeper))
}

fn toy(loss: f64, loss_sways: f64) -> Toy {
    Toy {
        noise: 0.0,
        loss,
        loss_sways,
        ..Toy::default()
    }
}

/// The first line of the answer, and all of them.
fn answer(toy: &Toy, matrix: &Matrix) -> (String, String) {
    let (machine, topology) = (identity(), toy.topology());
    let about = About {
        machine: &machine,
        topology: &topology,
        warnings: &[],
    };
    let said = matrix.answer(about);
    let all: Vec<String> = said
        .iter()
        .map(|v| format!("{}: {}", v.about, v.text))
        .collect();
    (all[0].clone(), all.join("\n"))
}

#[test]
fn a_constant_loss_is_certain_after_the_least_repetitions() {
    for (loss, words) in [
        (0.2, "dram:ld loses most, 20.0 %"),
        (0.0, "the pair loses no more than 5 %"),
    ] {
        let toy = toy(loss, 0.0);
        let matrix = measured(&toy, &["1", "4"], &()).unwrap();
        let cell = &matrix.cells[0];
        assert!(cell.certain && cell.classes.is_empty(), "{cell:?}");
        assert_eq!(cell.repetitions, LEAST);
        assert!(answer(&toy, &matrix).0.contains(words));
        // What is timed has no class.
        let chase = matrix
            .points
            .iter()
            .find(|p| p.pattern.starts_with("chase"));
        assert_eq!(chase.unwrap().repetitions, 1);
    }
}

#[test]
fn a_loss_that_alternates_around_a_boundary_is_uncertain_and_never_unharmed() {
    for loss in [0.05, 0.1, 0.4] {
        let toy = Toy {
            turns: Some(Arc::default()),
            ..toy(loss, 0.03)
        };
        let matrix = measured(&toy, &["4"], &()).unwrap();
        let cell = &matrix.cells[0];
        assert!(!cell.certain && cell.classes.len() > 1, "{cell:?}");
        assert_eq!(cell.repetitions, MOST);
        assert_ne!(cell.verdict.cause, Cause::Unharmed);
        let (lead, all) = answer(&toy, &matrix);
        assert!(lead.contains("uncertain"), "{lead}");
        assert!(!all.contains("unharmed"), "{all}");
    }
}

/// Keeps what it is given, and says stop after this many measurements.
struct Kept {
    stored: BTreeMap<String, Finished>,
    given: Mutex<BTreeMap<String, Finished>>,
    left: AtomicUsize,
}

impl Kept {
    fn with(stored: BTreeMap<String, Finished>, left: usize) -> Self {
        Self {
            stored,
            given: Mutex::default(),
            left: AtomicUsize::new(left),
        }
    }
}

impl Keeper for Kept {
    fn stored(&self, _: usize, _: &PointSpec, address: &str, least: u32) -> Option<Finished> {
        let found = self.stored.get(address).cloned();
        found.filter(|done| done.point.repetitions >= least)
    }

    fn finished(&self, _: usize, done: &Finished, address: &str) {
        self.given
            .lock()
            .unwrap()
            .insert(address.into(), done.clone());
        self.left.fetch_sub(1, Ordering::SeqCst);
    }

    fn stop(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

#[test]
fn work_that_was_stopped_anywhere_ends_as_work_that_was_not() {
    let toy = toy(0.1, 0.03);
    let whole = measured(&toy, &["1", "4"], &()).unwrap();
    let all: usize = whole.points.iter().map(|p| p.repetitions as usize).sum();
    for stop in 1..all {
        let stopped = Kept::with(BTreeMap::new(), stop);
        measured(&toy, &["1", "4"], &stopped).unwrap();
        let kept = stopped.given.into_inner().unwrap();
        let resumed = Kept::with(kept, usize::MAX);
        assert_eq!(
            measured(&toy, &["1", "4"], &resumed).unwrap(),
            whole,
            "stopped after {stop}"
        );
        let again = usize::MAX - resumed.left.into_inner();
        assert_eq!(again, all - stop, "a repetition is measured twice");
    }
}
