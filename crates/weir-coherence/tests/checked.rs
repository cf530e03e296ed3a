//! Every state of the protocols, every planted mistake, and what transactions take.

use weir_coherence::check::{self, Fault};
use weir_coherence::cost::{self, Before};
use weir_coherence::hdm_db::{Act, Shared, State};
use weir_coherence::message::Flit;
use weir_coherence::rules;
use weir_coherence::type2::Kind;
use weir_model::units::Nanos;

#[test]
fn no_state_of_the_protocols_breaks_a_rule() {
    for (check, states) in check::ALL {
        let mut last = 0;
        let found = check(&mut |visited| last = visited).unwrap();
        // Progress counts on it.
        assert_eq!(found.states, states, "{}", found.what);
        assert!(last as u64 + 4096 >= states, "{last} of {states}");
        assert_eq!(found.broken, None, "{}", found.what);
        assert!(
            found.states > 100 && found.steps.unwrap_or(0) > found.states,
            "{found:?}"
        );
        println!(
            "{}: {} states, {} steps",
            found.what,
            found.states,
            found.steps.unwrap_or(0)
        );
    }
}

/// Each mistake with the rule that shows it, and the steps of the shortest way there.
#[test]
fn each_planted_mistake_is_found_with_a_shortest_way() {
    let steps = |fault: Fault| {
        let found = check::with(fault).unwrap();
        let (rule, steps) = found
            .broken
            .unwrap_or_else(|| panic!("{} is not found", fault.name()));
        println!("{}: {rule}, {} steps", fault.name(), steps.len());
        (rule, steps.len())
    };
    for fault in Fault::all() {
        let (rule, count) = steps(fault);
        assert_ne!(rule, rules::OVERFULL);
        assert!((4..=20).contains(&count), "{}: {count}", fault.name());
    }
    assert_eq!(
        steps("silent-filter".parse().unwrap()).0,
        rules::NOT_COVERED
    );
    assert_eq!(steps("bias-flip".parse().unwrap()), (rules::TWO_WRITERS, 5));
    assert_eq!(steps("bogus-data".parse().unwrap()).0, rules::LOST);
    assert_eq!(
        steps("no-answer".parse().unwrap()).0,
        weir_coherence::explore::STUCK
    );
    assert!(
        "nonsense"
            .parse::<Fault>()
            .unwrap_err()
            .contains("bias-flip")
    );
}

#[test]
fn random_walks_of_eight_hosts_break_no_rule() {
    assert_eq!(check::walks(0, 20, 2_000, &mut || ()).unwrap().broken, None);
}

/// `cargo test -p weir-coherence -- --ignored` walks for minutes.
#[test]
#[ignore = "walks for minutes; shorter walks are in the test above"]
fn long_random_walks_break_no_rule() {
    assert_eq!(
        check::walks(0, 2_000, 20_000, &mut || ()).unwrap().broken,
        None
    );
}

#[test]
fn a_transaction_sends_what_its_flow_says() {
    let names = |cost: cost::Cost| {
        let messages = cost.messages().iter();
        messages
            .map(|(own, count)| format!("{count} {}", own.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(
        names(cost::shared(Before::None, false, false)),
        "1 MemRd SnpData, 1 Cmp-E, 1 MemData"
    );
    assert_eq!(
        names(cost::shared(Before::Dirty, false, true)),
        "1 MemRd SnpInv, 1 BISnpInv, 1 MemWr, 1 Cmp, 1 BIRspI, 1 Cmp-E, 1 MemData"
    );
    assert_eq!(
        names(cost::shared(Before::Sharers(0), true, true)),
        "1 MemInv SnpInv, 1 Cmp-E"
    );
    assert_eq!(
        names(cost::leaves(true, Some(1))),
        "1 BISnpInv, 1 MemWr, 1 Cmp, 1 BIRspI"
    );
    assert_eq!(names(cost::leaves(false, None)), "1 MemClnEvct, 1 Cmp");
    let of = |kind, name| {
        let all = cost::type2();
        names(
            all.into_iter()
                .find(|one| one.0 == kind && one.1 == name)
                .unwrap()
                .2,
        )
    };
    assert_eq!(of(Kind::Device, "device stores in device bias"), "");
    assert_eq!(
        of(Kind::Device, "device stores in host bias: bias flips"),
        "1 RdOwn, 1 MemRdFwd"
    );
    assert_eq!(
        of(Kind::Device, "host stores, both share"),
        "1 MemInv SnpInv, 1 Cmp-E"
    );
    assert_eq!(
        of(Kind::Host, "host stores, device has a copy"),
        "1 SnpInv, 1 RspIHitSE"
    );
    assert_eq!(
        of(Kind::Device, "device loads in host bias, host modified it"),
        "1 RdShared, 1 MemWr, 1 Cmp, 1 MemRdFwd"
    );
}

#[test]
fn latencies_are_sums_of_what_a_transaction_passes() {
    let parts = cost::Parts {
        core: Nanos(1.0),
        link: Nanos(10.0),
        medium: Nanos(100.0),
    };
    let all = cost::type2();
    let of = |kind, name| {
        let found = all.iter().find(|one| one.0 == kind && one.1 == name);
        found.unwrap().2.latency(&parts).get()
    };
    let shared = |before, has, store| cost::shared(before, has, store).latency(&parts).get();
    assert_eq!(shared(Before::None, false, false), 121.0);
    assert_eq!(shared(Before::Dirty, false, false), 161.0);
    assert_eq!(shared(Before::Sharers(7), true, true), 41.0);
    assert_eq!(of(Kind::Device, "device stores in device bias"), 100.0);
    assert_eq!(of(Kind::Device, "host stores, both share"), 21.0);
    let forwarded = "device loads in host bias, host modified it";
    assert_eq!(of(Kind::Device, forwarded), 141.0);
    assert_eq!(of(Kind::Host, "device loads"), 121.0);
    assert_eq!(of(Kind::Host, "host stores, device has a copy"), 21.0);
}

/// The costs for many sharers are those of two and as much again for each other one: here the machine of eight says the same.
#[test]
fn sharers_cost_what_a_machine_with_all_of_them_sends() {
    for others in 1..8_usize {
        let machine = Shared::<8, 1> {
            filter: 1,
            fault: None,
        };
        let mut state = State::new();
        for host in 0..=others {
            Shared::of_host(&mut state, 0, host, Act::Load);
            machine.drain(&mut state);
        }
        // One alone would have the line in E.
        let before = state;
        Shared::of_host(&mut state, 0, 0, Act::Upgrade);
        let mut sent = weir_coherence::hdm_db::sent(&before, &state);
        sent.extend(machine.drain(&mut state));
        let (all, own) = (
            cost::Cost::of(sent),
            cost::shared(Before::Sharers(others as u64), true, true),
        );
        for name in ["MemInv", "BISnpInv", "BIRspI", "Cmp-E"] {
            assert_eq!(all.count(name), own.count(name), "{others} {name}");
        }
        assert_eq!(all.half_slots(true), own.half_slots(true));
        assert_eq!(all.up(Flit::B68), own.up(Flit::B68));
    }
}
