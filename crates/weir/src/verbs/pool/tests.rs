//! A manager that is killed at any step, and VMs that refuse, are silent or end: no slice has two owners, and none is
//! given away before it is zero.

mod fake;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use weir_plan::pool::owners::Stage;

use super::manager::Manager;
use super::steps::{Reached, Which};
use super::table::{Pool, table_of};
use crate::failure::{Failure, Result};
use fake::{Fake, GUESTS, Manner, SLICES, Shared, all, socket};

/// What a user asks for.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Add(usize, usize),
    Release(usize, usize),
    Recover,
}

/// A manager from its start to its end, after `steps` at the latest. Returns the steps that it took.
fn manage(all: &Shared, asked: Asked, steps: usize) -> (Result<()>, usize) {
    let mut taken = 0;
    let mut reached = |_: usize, _: Reached| {
        taken += 1;
        match taken > steps {
            true => Err(Failure::work("killed")),
            false => Ok(()),
        }
    };
    let file = all.borrow().file();
    let pool = Pool::open(&file, &table_of(&file, None)).unwrap();
    let mut world = Fake(Rc::clone(all));
    let mut manager = Manager::of(pool, &mut world, Duration::from_millis(2), &mut reached);
    let done = manager.repair().and_then(|()| match asked {
        Asked::Add(guest, count) => {
            let vm = manager.vm_at(&socket(guest), None)?;
            manager.add(&vm, count)
        }
        Asked::Release(guest, count) => {
            let vm = manager.vm_at(&socket(guest), None)?;
            manager.release(&vm, Which::Count(count))
        }
        Asked::Recover => Ok(()),
    });
    drop(manager);
    all.borrow_mut().check();
    (done, taken)
}

const TO_THE_END: usize = usize::MAX;

fn stages(all: &Shared) -> Vec<Stage> {
    let pool = all.borrow().pool();
    pool.owners()
        .slices()
        .iter()
        .map(|slice| slice.stage)
        .collect()
}

fn assert_kept(all: &Shared) {
    assert_eq!(all.borrow().broken, Vec::<String>::new());
}

#[test]
fn a_slice_goes_from_one_guest_to_the_other_scrubbed() {
    let all = all();
    manage(&all, Asked::Add(0, 3), TO_THE_END).0.unwrap();
    assert_eq!(all.borrow().guests[0].modules.len(), 3);
    let slices = all.borrow().pool();
    let node = slices.owners().slices()[0].vm.as_ref().map(|vm| vm.node);
    assert_eq!(node, Some(1), "the one without processors");
    manage(&all, Asked::Release(0, 2), TO_THE_END).0.unwrap();
    // The newest went first.
    assert_eq!(all.borrow().guests[0].modules, BTreeSet::from([0]));
    manage(&all, Asked::Add(1, 3), TO_THE_END).0.unwrap();
    assert_eq!(all.borrow().guests[1].backends, BTreeSet::from([1, 2, 3]));
    let text = manage(&all, Asked::Add(1, 1), TO_THE_END).0.unwrap_err();
    let text = text.message().unwrap_or_default();
    assert_eq!(text, "the request is for 1 slice, and 0 of 4 are free");
    let text = manage(&all, Asked::Release(0, 2), TO_THE_END)
        .0
        .unwrap_err();
    assert_eq!(text.code(), 2);
    assert_kept(&all);
}

#[test]
fn a_manager_that_is_killed_at_any_step_is_followed_by_one_that_finishes() {
    let mut killed = 0;
    loop {
        let all = all();
        manage(&all, Asked::Add(1, 1), TO_THE_END).0.unwrap();
        let (added, used) = manage(&all, Asked::Add(0, 2), killed);
        let left = killed.saturating_sub(used);
        let (released, _) = manage(
            &all,
            Asked::Release(0, 1),
            if added.is_ok() { left } else { TO_THE_END },
        );
        let done = added.is_ok() && released.is_ok();
        manage(&all, Asked::Recover, TO_THE_END).0.unwrap();
        assert!(
            stages(&all).iter().all(|stage| !stage.is_under_way()),
            "{killed}"
        );
        assert_eq!(all.borrow().guests[1].modules, BTreeSet::from([0]));
        assert_kept(&all);
        if done {
            break;
        }
        killed += 1;
    }
    assert!(killed >= 15, "{killed} steps");
}

#[test]
fn a_guest_that_refuses_keeps_its_slice_and_says_why() {
    let all = all();
    manage(&all, Asked::Add(0, 2), TO_THE_END).0.unwrap();
    all.borrow_mut().guests[0].manner = Manner::Refusing;
    let text = manage(&all, Asked::Release(0, 1), TO_THE_END)
        .0
        .unwrap_err();
    let text = text.message().unwrap_or_default();
    assert!(
        text.starts_with("0 of 1 slice came back from /run/0.qmp; slice 1: the guest does not"),
        "{text}"
    );
    assert!(
        text.contains("; slice 0: "),
        "the other one was tried: {text}"
    );
    assert_eq!(all.borrow().guests[0].modules.len(), 2);
    assert_eq!(stages(&all)[..2], [Stage::Owned; 2]);
    all.borrow_mut().guests[0].manner = Manner::Silent;
    manage(&all, Asked::Release(0, 1), TO_THE_END).0.unwrap();
    assert_eq!(stages(&all)[..2], [Stage::Owned, Stage::Free]);
    assert_kept(&all);
}

#[test]
fn a_refusal_that_may_be_for_a_killed_manager_is_not_the_last_word() {
    let all = all();
    manage(&all, Asked::Add(0, 1), TO_THE_END).0.unwrap();
    all.borrow_mut().guests[0].manner = Manner::Late;
    manage(&all, Asked::Release(0, 1), 0).0.unwrap_err();
    assert_eq!(stages(&all)[0], Stage::Releasing);
    manage(&all, Asked::Recover, TO_THE_END).0.unwrap();
    assert_eq!(stages(&all)[0], Stage::Free);
    assert_kept(&all);
}

#[test]
fn a_guest_without_a_free_slot_gets_nothing_and_the_slice_is_free_again() {
    let all = all();
    all.borrow_mut().guests[0].manner = Manner::Full;
    let text = manage(&all, Asked::Add(0, 2), TO_THE_END).0.unwrap_err();
    assert!(
        text.message()
            .unwrap_or_default()
            .contains("no slot is free")
    );
    assert_eq!(stages(&all), [Stage::Free; 4]);
    assert!(all.borrow().guests[0].backends.is_empty());
    assert_kept(&all);
}

#[test]
fn slices_of_a_guest_that_ended_are_scrubbed_before_another_one_gets_them() {
    let all = all();
    manage(&all, Asked::Add(0, 4), TO_THE_END).0.unwrap();
    all.borrow_mut().restart(0);
    // The next manager notices before it gives anything away.
    manage(&all, Asked::Add(1, 4), TO_THE_END).0.unwrap();
    assert_eq!(all.borrow().guests[1].modules.len(), 4);
    assert_kept(&all);
}

#[test]
fn what_a_deaf_vm_has_stays_its_own() {
    let all = all();
    manage(&all, Asked::Add(0, 1), TO_THE_END).0.unwrap();
    // Killed after the guest was asked.
    drop(manage(&all, Asked::Release(0, 1), 1).0.unwrap_err());
    all.borrow_mut().guests[0].manner = Manner::Deaf;
    manage(&all, Asked::Recover, TO_THE_END).0.unwrap();
    assert_eq!(stages(&all)[0], Stage::Releasing);
    manage(&all, Asked::Add(1, 3), TO_THE_END).0.unwrap();
    assert!(!all.borrow().guests[1].backends.contains(&0));
    all.borrow_mut().guests[0].manner = Manner::Willing;
    manage(&all, Asked::Recover, TO_THE_END).0.unwrap();
    assert_eq!(stages(&all)[0], Stage::Free);
    assert_kept(&all);
}

/// What happens.
#[derive(Debug, Clone, Copy)]
enum Happens {
    /// A user asks for something, and the manager is killed after this many steps.
    Managed(Asked, usize),
    Killed(usize),
    Restarted(usize),
    Behaves(usize, Manner),
}

fn happens() -> impl Strategy<Value = Happens> {
    let asked = prop_oneof![
        3 => (0..GUESTS, 1..3usize).prop_map(|(guest, count)| Asked::Add(guest, count)),
        3 => (0..GUESTS, 1..3usize).prop_map(|(guest, count)| Asked::Release(guest, count)),
        1 => Just(Asked::Recover),
    ];
    let steps = prop_oneof![1 => Just(TO_THE_END), 2 => 0..16usize];
    let manner = prop_oneof![
        Just(Manner::Willing),
        Just(Manner::Refusing),
        Just(Manner::Late),
        Just(Manner::Full),
        Just(Manner::Silent),
        Just(Manner::Deaf),
    ];
    prop_oneof![
        8 => (asked, steps).prop_map(|(asked, steps)| Happens::Managed(asked, steps)),
        1 => (0..GUESTS).prop_map(Happens::Killed),
        2 => (0..GUESTS).prop_map(Happens::Restarted),
        2 => (0..GUESTS, manner).prop_map(|(guest, manner)| Happens::Behaves(guest, manner)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_slice_has_two_owners_or_is_given_away_unscrubbed(course in prop::collection::vec(happens(), 1..16)) {
        let all = all();
        for happens in course {
            match happens {
                Happens::Managed(asked, steps) => drop(manage(&all, asked, steps)),
                Happens::Killed(guest) => all.borrow_mut().kill(guest),
                Happens::Restarted(guest) => all.borrow_mut().restart(guest),
                Happens::Behaves(guest, manner) => all.borrow_mut().guests[guest].manner = manner,
            }
        }
        for guest in 0..GUESTS {
            all.borrow_mut().guests[guest].manner = Manner::Willing;
        }
        manage(&all, Asked::Recover, TO_THE_END).0.unwrap();
        prop_assert!(stages(&all).iter().all(|stage| !stage.is_under_way()));
        for guest in 0..GUESTS {
            all.borrow_mut().kill(guest);
        }
        manage(&all, Asked::Recover, TO_THE_END).0.unwrap();
        prop_assert_eq!(stages(&all), [Stage::Free; SLICES]);
        prop_assert_eq!(&all.borrow().broken, &Vec::<String>::new());
    }
}
