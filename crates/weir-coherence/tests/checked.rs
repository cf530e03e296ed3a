//! Every state of the protocols, and every planted mistake.

use weir_coherence::explore::{Stopped, explore, walk};
use weir_coherence::hdm_db::{Fault, Shared};

fn right<const H: usize, const L: usize>(filter: usize) -> usize {
    let began = std::time::Instant::now();
    let machine = Shared::<H, L> { filter, fault: None };
    match explore(&machine, 30_000_000) {
        Ok(found) => {
            println!("{H} hosts, {L} lines, filter {filter}: {found:?} in {:?}", began.elapsed());
            found.states
        }
        Err(Stopped::Broken(found)) => {
            let steps: Vec<String> = found.steps.iter().map(ToString::to_string).collect();
            panic!("{} after\n{}", found.rule, steps.join("\n"))
        }
        Err(stopped) => panic!("{stopped:?}"),
    }
}

#[test]
fn one() {
    right::<1, 1>(1);
    right::<2, 1>(1);
}
#[test]
#[ignore]
fn three() {
    right::<3, 1>(1);
}
#[test]
#[ignore]
fn two() {
    right::<2, 2>(1);
}

#[test]
fn faults() {
    for fault in Fault::ALL {
        let machine = Shared::<2, 2> { filter: 1, fault: Some(fault) };
        match explore(&machine, 3_000_000) {
            Err(Stopped::Broken(found)) => {
                let steps: Vec<String> = found.steps.iter().map(ToString::to_string).collect();
                println!("{fault}: {} ({} states)\n  {}", found.rule, found.states, steps.join("\n  "));
            }
            other => println!("{fault}: {other:?}"),
        }
    }
    for seed in 0..20 {
        walk(&Shared::<8, 6> { filter: 2, fault: None }, seed, 5000).unwrap();
    }
}
