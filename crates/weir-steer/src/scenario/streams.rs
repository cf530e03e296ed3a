//! Scenarios of bandwidth tests.

use weir_model::access::Op;
use weir_model::units::Nanos;

use super::ScenarioError;
use super::two_groups::{TwoGroups, phase, protected, restrained, stream};
use crate::steered::Phase;

/// How long each of MIKU's bandwidth tests stays on a tier (section 6).
const TURN: f64 = 100.0;
/// How long the bully keeps one behaviour.
const MOOD: f64 = 5.0;
/// Number of small tenants.
const SMALL: usize = 6;
/// The pause of a small tenant between two lines: it draws a sixth of a GB/s.
const THINKS: Nanos = Nanos(400.0);

type Phases = Result<Vec<Phase>, ScenarioError>;

pub fn alternate(two_groups: &TwoGroups) -> Phases {
    let turns = [Op::Ld, Op::St, Op::NtSt].map(|op| turns(two_groups, op));
    Ok(turns.into_iter().flatten().collect())
}

pub fn alternate_ld(two_groups: &TwoGroups) -> Phases {
    Ok(turns(two_groups, Op::Ld))
}

pub fn alternate_st(two_groups: &TwoGroups) -> Phases {
    Ok(turns(two_groups, Op::St))
}

pub fn alternate_nt_st(two_groups: &TwoGroups) -> Phases {
    Ok(turns(two_groups, Op::NtSt))
}

/// Two tests, each on either tier in turn.
fn turns(two_groups: &TwoGroups, op: Op) -> Vec<Phase> {
    let first = |placement| stream("first", op, two_groups.first_half(), placement);
    let second = |placement| stream("second", op, two_groups.second_half(), placement);
    vec![
        phase(
            TURN,
            vec![
                protected(first(two_groups.fast_tier())),
                restrained(second(two_groups.slow_tier())),
            ],
        ),
        phase(
            TURN,
            vec![
                restrained(first(two_groups.slow_tier())),
                protected(second(two_groups.fast_tier())),
            ],
        ),
    ]
}

/// Six tenants with a core each, which hardly load the device, and one that fills the table.
pub fn small_and_bully(two_groups: &TwoGroups) -> Phases {
    let mut cores = two_groups.second_half();
    let of_small = cores.split_off(cores.len() - SMALL);
    let mut participants = vec![
        protected(stream(
            "fast",
            Op::Ld,
            two_groups.first_half(),
            two_groups.fast_tier(),
        )),
        restrained(stream("bully", Op::NtSt, cores, two_groups.slow_tier())),
    ];
    for (i, core) in of_small.into_iter().enumerate() {
        let small = stream(
            &format!("small{i}"),
            Op::Ld,
            vec![core],
            two_groups.slow_tier(),
        );
        participants.push(restrained(
            small.with_stream(|stream| stream.pause = THINKS),
        ));
    }
    Ok(vec![phase(20.0, participants)])
}

/// As soon as a controller has found the right limit for its behaviour, it changes the behaviour.
pub fn adaptive_bully(two_groups: &TwoGroups) -> Phases {
    let all = two_groups.second_half();
    let half = all[..all.len() / 2].to_vec();
    let moods = [
        (Op::Ld, &all),
        (Op::NtSt, &all),
        (Op::St, &half),
        (Op::NtSt, &half),
        (Op::Ld, &all),
        (Op::St, &all),
    ];
    let mood = |(op, cores): (Op, &Vec<u32>)| {
        phase(
            MOOD,
            vec![
                protected(stream(
                    "fast",
                    Op::Ld,
                    two_groups.first_half(),
                    two_groups.fast_tier(),
                )),
                restrained(stream("bully", op, cores.clone(), two_groups.slow_tier())),
            ],
        )
    };
    Ok(moods.into_iter().map(mood).collect())
}
