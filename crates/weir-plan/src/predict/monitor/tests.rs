use proptest::prelude::*;

use super::*;
use crate::trace::Vm;

fn vm(arrival: u32, departure: u32, gib: u32, touched_pct: u8) -> Vm {
    Vm {
        arrival,
        departure,
        millicores: 1000,
        memory_mib: gib * GIB,
        customer: 0,
        kind: 0,
        touched_pct,
        insensitive: None,
    }
}

/// Every VM on its own day, with this many GiB in the pool.
fn watched(vms: &[(Vm, u32)], local_gib: u32, machines: usize) -> MonitorRow {
    let mut trace = Trace::default();
    vms.iter().for_each(|(vm, _)| trace.push(*vm));
    let predicted = [Predicted {
        day: 0,
        places: 0..vms.len(),
        learned_from: 0,
        new: vec![false; vms.len()],
        slices: vec![vms.iter().map(|(_, slices)| *slices).collect()],
    }];
    let watch = Watch {
        cluster: "c",
        trace: &trace,
        predicted: &predicted,
        machine: Machine {
            millicores: 64_000,
            memory_mib: local_gib * GIB,
        },
        machines,
        seed: 1,
    };
    simulate(&watch, (0, 1.0), &Monitor::default())
}

#[test]
fn a_decision_follows_from_what_is_touched_what_counters_say_and_what_is_free() {
    let vm = Watched {
        local_mib: 100,
        pool_mib: 50,
        repaired: false,
    };
    let look = |vm: Watched, touched_mib, slowed, free_local_mib| {
        let reading = Reading {
            touched_mib,
            slowed,
            free_local_mib,
        };
        Monitor::default().look(&vm, reading)
    };
    assert_eq!(look(vm, 100, true, 500), Decision::Fits);
    assert_eq!(look(vm, 101, false, 500), Decision::Keep);
    assert_eq!(look(vm, 101, true, 50), Decision::Copy);
    assert_eq!(look(vm, 101, true, 49), Decision::Migrate);
    let repaired = Watched {
        repaired: true,
        ..vm
    };
    assert_eq!(look(repaired, 101, true, 500), Decision::Keep);
    let local = Watched { pool_mib: 0, ..vm };
    assert_eq!(look(local, 150, true, 500), Decision::Fits);
    assert_eq!(Monitor::default().copy_time_ms(3 * GIB), 150.0);
}

#[test]
fn mis_sized_vms_are_found_at_the_next_look_and_repaired_once() {
    // Of many equal VMs that touch all of their memory about a quarter is slowed.
    let mut vms = vec![(vm(10, 100_000, 4, 100), 2); 200];
    // One that comes later keeps the replay going.
    vms.push((vm(90_000, STAYS, 1, 0), 0));
    let row = watched(&vms, 1000, 8);
    assert_eq!((row.vms, row.asked), (200, 200));
    assert!((30..=70).contains(&row.slowed), "{row:?}");
    assert_eq!((row.copied, row.migrated, row.left), (row.slowed, 0, 0));
    assert_eq!(
        (row.copy_mean_ms, row.copy_most_ms),
        (Some(100.0), Some(100.0))
    );
    assert_eq!(row.found_mean_s, Some(1790.0));
}

/// Ten VMs of 10 GiB, of which 4 are in the pool, fill the 60 local GiB of the first machine.
fn full() -> Vec<(Vm, u32)> {
    let mut vms = vec![(vm(0, STAYS, 10, 100), 4); 10];
    vms.push((vm(9000, STAYS, 1, 0), 0));
    vms
}

#[test]
fn a_machine_without_local_memory_sends_a_vm_to_one_that_has_it() {
    let row = watched(&full(), 100, 2);
    assert!(row.slowed > 0 && row.migrated > 0, "{row:?}");
    // What has left makes room for others.
    assert_eq!(
        (row.copied + row.migrated, row.no_room),
        (row.slowed, 0),
        "{row:?}"
    );
}

#[test]
fn a_vm_for_which_no_machine_has_room_is_tried_at_every_look() {
    let row = watched(&full(), 100, 1);
    assert_eq!((row.copied, row.migrated, row.repaired_pct), (0, 0, 0.0));
    // Five looks until the last VM arrives.
    assert_eq!(row.no_room, 5 * row.slowed, "{row:?}");
}

#[test]
fn vms_that_leave_their_pool_untouched_are_let_be() {
    let row = watched(&[(vm(0, STAYS, 8, 50), 4); 20], 1000, 1);
    assert_eq!((row.vms, row.asked, row.copied), (20, 0, 0));
}

#[test]
fn a_vm_that_leaves_before_the_next_look_is_not_repaired() {
    let mut vms = vec![(vm(10, 1000, 4, 100), 2); 100];
    vms.push((vm(90_000, STAYS, 1, 0), 0));
    let row = watched(&vms, 1000, 8);
    assert_eq!((row.copied + row.migrated, row.left), (0, row.slowed));
    assert!(row.slowed > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nobody_is_repaired_twice_and_only_the_slowed_are(
        vms in prop::collection::vec((0..20_000u32, 1..20_000u32, 1..8u32, 0..=100u8, 0..8u32), 1..80), machines in 1..4usize,
    ) {
        let mut vms: Vec<(Vm, u32)> = vms
            .into_iter()
            .map(|(at, life, gib, touched, pool)| (vm(at, at + life, gib, touched), pool.min(gib)))
            .collect();
        vms.sort_by_key(|(vm, _)| vm.arrival);
        let row = watched(&vms, 40, machines);
        prop_assert!(row.copied + row.migrated + row.left <= row.slowed, "{:?}", row);
        prop_assert!(row.slowed <= row.asked && row.asked <= row.vms);
        let over = vms.iter().filter(|(vm, slices)| is_over(vm, *slices)).count() as u64;
        prop_assert!(row.asked <= over);
    }
}
