//! Laws of the matrix, on a machine of formulas and on counters made by hand.

mod common;

use std::collections::BTreeSet;

use common::Toy;
use proptest::prelude::*;
use weir_lab::interplay::{self, CoRunners, Measured, Options, matrix};
use weir_lab::{PointSpec, run};
use weir_model::access::Op;
use weir_model::capability::Unavailable;
use weir_model::counters::{Counter, CounterSet};
use weir_model::document::{Beside, Point, Record};
use weir_model::interplay::{Cause, Cell, ChangeClass};
use weir_model::tenant::Arrivals;
use weir_model::topology::{TierName, Topology};
use weir_model::units::{GbPerSec, Nanos};

fn plan(cores: u32, options: &Options) -> (Topology, Vec<PointSpec>) {
    let toy = Toy {
        cores,
        ..Toy::default()
    };
    let topology = toy.topology();
    let plan = interplay::plan(&topology, options).unwrap();
    (topology, plan)
}

proptest! {
    #[test]
    fn sides_never_share_a_core_and_every_pair_has_both_alone(
        cores in 2u32..80,
        quick in any::<bool>(),
    ) {
        let options = Options { quick, ..Options::default() };
        let (topology, plan) = plan(cores, &options);
        let texts: BTreeSet<String> = plan.iter().map(ToString::to_string).collect();
        prop_assert_eq!(texts.len(), plan.len(), "a point is planned twice");
        for spec in &plan {
            let tenants = spec.tenants(&topology).expect("the cores suffice");
            let all: Vec<u32> = tenants.iter().flat_map(|t| t.cores.clone()).collect();
            let distinct: BTreeSet<u32> = all.iter().copied().collect();
            prop_assert_eq!(all.len(), distinct.len());
            let Some(beside) = &spec.beside else { continue };
            let alone = |load: &weir_lab::Load| plan.iter().any(|other| {
                other.beside.is_none() && other.load == *load
            });
            prop_assert!(alone(&spec.load), "{} is not measured alone", spec.load);
            prop_assert!(alone(beside), "{beside} is not measured alone");
        }
    }

    #[test]
    fn a_cell_is_the_change_of_largest_size(changes in prop::collection::vec(-99.0f64..300.0, 1..9)) {
        let (points, records) = made(&changes, &counters(1.0, 1.0), &counters(1.0, 1.0));
        let cell = only_cell(&points, &records);
        let largest = changes.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        let change = cell.change_pct.unwrap();
        prop_assert!((change.abs() - largest.abs()).abs() < 1e-9, "{change} of {changes:?}");
        prop_assert_eq!(cell.class, Some(ChangeClass::of(change)));
    }
}

/// Counters of one run of a microsecond: how long misses for DRAM stay in the tables, and how long
/// requests wait before them, as multiples of 100 ns.
fn counters(residency: f64, wait: f64) -> CounterSet {
    let mut set = CounterSet::default();
    for counter in Counter::ALL {
        set.set(*counter, 0);
    }
    set.set(Counter::ChaClockticks, 1_000);
    set.set(Counter::TorInsertsIaMissDdr, 1_000);
    set.set(Counter::TorInsertsIaMiss, 1_000);
    set.set(Counter::TorInsertsIa, 1_000);
    set.set(Counter::TorOccupancyIaMissDdr, (residency * 1e5) as u64);
    set.set(Counter::TorOccupancyIaMiss, (residency * 1e5) as u64);
    set.set(Counter::IrqInserts, 1_000);
    set.set(Counter::IrqOccupancy, (wait * 1e5) as u64);
    set
}

/// One victim with as many threads as there are changes, alone and with one thread.
fn made(changes: &[f64], solo: &CounterSet, corun: &CounterSet) -> (Vec<Point>, Vec<Record>) {
    let (_, plan) = plan(32, &Options::default());
    let toy = Toy::default();
    let blank = run(&toy, &plan[..1], 1, &()).remove(0).point;
    let alone = |threads| Point {
        experiment: "interplay".into(),
        tier: TierName::dram(),
        op: Op::Ld,
        threads,
        gbps: Some(GbPerSec(100.0)),
        ..blank.clone()
    };
    // Of its own the victim knows only what it fills of the last-level cache.
    let own = |counters: &CounterSet| {
        let mut own = CounterSet::default();
        if let Ok(bytes) = counters.get(Counter::LlcOccupancy) {
            own.set(Counter::LlcOccupancy, bytes);
        }
        own
    };
    let record = |counters: &CounterSet| Record {
        samples: vec![(Nanos(1_000.0), 1.0)],
        counters: counters.clone(),
        tenants: vec![own(counters)],
        ..Record::default()
    };
    let (mut points, mut records) = (Vec::new(), Vec::new());
    for (threads, change) in (1..).zip(changes) {
        let beside = Beside {
            tier: TierName::cxl(0),
            op: Op::NtSt,
            pattern: "sequential".into(),
            threads: 1,
            socket: 0,
            host: 0,
            source: None,
            cache_ways: None,
            read_share: 0.0,
            pause_ns: Nanos(0.0),
            arrivals: Arrivals::Closed,
            gbps: Some(GbPerSec(10.0)),
            traffic_gbps: None,
        };
        points.push(alone(threads));
        records.push(record(solo));
        points.push(Point {
            gbps: Some(GbPerSec(100.0 + change)),
            beside: Some(beside),
            ..alone(threads)
        });
        records.push(record(corun));
    }
    (points, records)
}

fn only_cell(points: &[Point], records: &[Record]) -> Cell {
    let measured: Vec<Measured<'_>> = (points.iter().zip(records))
        .map(|(point, record)| Measured { point, record })
        .collect();
    let mut matrix = matrix(&Toy::default().topology(), &measured);
    assert_eq!(matrix.cells.len(), 1);
    assert_eq!(matrix.surface.len(), points.len() / 2);
    matrix.cells.remove(0)
}

fn cause(change: f64, solo: &CounterSet, corun: &CounterSet) -> Cell {
    let (points, records) = made(&[change], solo, corun);
    only_cell(&points, &records)
}

#[test]
fn waiting_before_the_tables_with_a_flat_time_in_them_is_congestion_of_the_tables() {
    let cell = cause(-90.0, &counters(1.0, 0.0), &counters(1.02, 8.0));
    assert_eq!(cell.verdict.cause, Cause::TorCongestion);
    assert!(!cell.verdict.evidence.is_empty());
}

#[test]
fn a_longer_time_in_the_tables_is_no_congestion_before_them() {
    let cell = cause(-60.0, &counters(1.0, 0.0), &counters(3.0, 0.5));
    assert_ne!(cell.verdict.cause, Cause::TorCongestion);
    let mut full = counters(3.0, 0.5);
    // The toy's bus carries 240 GB/s.
    full.set(Counter::CasRd, 3_500);
    let cell = cause(-60.0, &counters(1.0, 0.0), &full);
    assert_eq!(cell.verdict.cause, Cause::DdrSaturation);
}

#[test]
fn lost_hits_are_lost_room_in_the_last_level_cache() {
    let mut hitting = counters(1.0, 0.0);
    hitting.set(Counter::TorInsertsIaHit, 900);
    hitting.set(Counter::LlcOccupancy, 60 << 20);
    let mut missing = counters(1.0, 0.0);
    missing.set(Counter::LlcOccupancy, 8 << 20);
    let cell = cause(-30.0, &hitting, &missing);
    assert_eq!(cell.verdict.cause, Cause::LlcCapacity);
    let said = cell.verdict.evidence.join("; ");
    assert!(
        said.contains("fill 8 MiB of the cache, and 60 MiB alone"),
        "{said}"
    );
    let ratio = |cell: &Cell| {
        (cell.ratios.iter())
            .find(|r| r.name == "victim.llc_occupancy")
            .cloned()
    };
    assert_eq!(ratio(&cell).unwrap().unit, "B");
    // What one of the runs does not know is no zero.
    missing.set_unavailable(Counter::LlcOccupancy, Unavailable::because("no tags"));
    let cell = cause(-30.0, &hitting, &missing);
    assert_eq!(cell.verdict.cause, Cause::LlcCapacity);
    assert!(ratio(&cell).is_none() && !cell.verdict.evidence.join("; ").contains("fill"));
}

#[test]
fn what_changed_by_less_than_a_class_needs_no_cause() {
    for change in [-4.9, 0.0, 4.9, 60.0] {
        let (points, records) = made(&[change], &counters(1.0, 0.0), &counters(9.0, 9.0));
        assert_eq!(
            only_cell(&points, &records).verdict.cause,
            Cause::Uncertain,
            "{change}, measured once"
        );
        let twice = |(record, point): (&Record, &Point)| Record {
            samples: vec![(Nanos(1_000.0), point.gbps.unwrap().get()); 2],
            repetitions: vec![1, 1],
            ..record.clone()
        };
        let records: Vec<Record> = records.iter().zip(&points).map(twice).collect();
        assert_eq!(
            only_cell(&points, &records).verdict.cause,
            Cause::Unharmed,
            "{change}"
        );
    }
}

#[test]
fn without_counters_the_verdict_says_what_it_could_not_see() {
    let mut blind = CounterSet::default();
    for counter in Counter::ALL {
        blind.set_unavailable(*counter, Unavailable::because("no uncore PMU"));
    }
    let cell = cause(-90.0, &blind, &blind);
    assert_eq!(cell.verdict.cause, Cause::Undetermined);
    assert_eq!(cell.verdict.unseen.len(), 1);
    assert!(cell.verdict.unseen[0].contains("no uncore PMU"));
}

#[test]
fn requests_that_make_no_sense_are_refused_in_words() {
    let topology = Toy::default().topology();
    let one = |text: &str| text.parse::<CoRunners>().unwrap();
    let refused = |victims: &[CoRunners], aggressors: &[CoRunners]| {
        interplay::pairs(&topology, victims, aggressors)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&[one("cxl7")], &[]).contains("dram, cxl0"));
    assert!(refused(&[one("dram:randread")], &[]).contains("local DRAM"));
    assert!(refused(&[one("dram:dsa")], &[]).contains("accelerator"));
    assert!(refused(&[one("dram")], &[one("dram:st:cxl9")]).contains("cxl9"));
    assert!("dram:".parse::<CoRunners>().is_err());
    assert!("".parse::<CoRunners>().is_err());
    let lonely = Toy {
        cores: 1,
        ..Toy::default()
    };
    assert!(interplay::plan(&lonely.topology(), &Options::default()).is_err());
    let crowded = Options {
        threads: vec![32],
        ..Options::default()
    };
    assert!(interplay::plan(&topology, &crowded).is_err());
}

#[test]
fn tenants_of_one_tier_meet_only_where_both_are_named() {
    let topology = Toy::default().topology();
    let one = |text: &str| vec![text.parse::<CoRunners>().unwrap()];
    let open = interplay::pairs(&topology, &one("dram"), &[]).unwrap();
    assert!(open.iter().all(|(v, a)| v.tier != a.tier));
    let named = interplay::pairs(&topology, &one("dram:ld"), &one("dram:st")).unwrap();
    assert_eq!(named.len(), 1);
}
