//! However and wherever the program ends, the machine is restored byte for byte.

use std::sync::{Arc, LazyLock, Mutex};

use proptest::prelude::*;
use weir_model::action::Action;
use weir_model::events::EventLibrary;
use weir_model::units::{Gigahertz, Nanos};

use super::actuators::Actuator;
use super::config::{HostConfig, TenantScope};
use super::fake::{Life, Machine, Paper, differences};
use super::host::Host;
use super::journalled_writes::JournalledWrites;
use super::not_put_back::{Cause, NotPutBack};
use super::replay::Restored;
use super::settings::SystemSettings;

static EVENTS: LazyLock<EventLibrary> = LazyLock::new(EventLibrary::builtin);

/// One event.
#[derive(Debug, Clone)]
enum Event {
    /// Weir limits a tenant or removes its limit.
    Act(Action),
    /// Weir sets weights of interleaving.
    Weights([(u32, u32); 2]),
    /// Another program sets a quota.
    Quota(&'static str, u64),
    /// A group disappears with everything in it, and may come again.
    Vanish(&'static str, bool),
    /// A thread of tenant `a` starts, in the tenant's group.
    Begin,
    /// Another program moves a thread of tenant `a`.
    Move,
    /// Another program limits the group next to that of tenant `a`, for which it adds a controller.
    Sibling,
    /// The disk is full from now on.
    Full,
    /// Weir observes a window.
    Look,
}

fn config() -> HostConfig {
    let tenant = |name: &str, scope: &str, restrain| TenantScope {
        name: name.into(),
        scope: scope.parse().unwrap(),
        restrain,
    };
    HostConfig {
        tenants: vec![
            tenant("a", "cgroup:/a.slice/a", true),
            tenant("b", "cgroup:/b", true),
            tenant("p", "pid:301", true),
            tenant("kept", "pid:302", false),
        ],
        actuators: Actuator::ALL.to_vec(),
        own_groups: true,
        dwell: Nanos(0.0),
        ..HostConfig::default()
    }
}

/// A program that lives for a while: it restores what was left, steers, and ends in some way. Other programs
/// go on after its end. Returns what is not as before, if it came to that.
fn live(
    machine: &Machine,
    paper: &Paper,
    life: &Life,
    events: &[Event],
) -> Option<Vec<NotPutBack>> {
    live_among(machine, paper, life, events, &Done::default())
}

/// What other programs did, in its order.
type Done = Arc<Mutex<Vec<Event>>>;

/// The same, with a list of what other programs did.
fn live_among(
    machine: &Machine,
    paper: &Paper,
    life: &Life,
    events: &[Event],
    done: &Done,
) -> Option<Vec<NotPutBack>> {
    let storage = Box::new(paper.held_by(life));
    let root = machine.root(life);
    let writes = JournalledWrites::on(&root, storage).ok();
    let host = writes.map(|(writes, _)| Host::with(&root, config(), &EVENTS, Some(writes)));
    let mut host = host.and_then(Result::ok);
    let mut settings = None;
    for event in events {
        match (event, &mut host) {
            // A refusal has no effect.
            (Event::Act(action), Some(host)) => drop(host.act(action)),
            (Event::Weights(weights), Some(host)) => {
                let journal = host.releaser();
                let shared =
                    settings.get_or_insert_with(|| SystemSettings::sharing(&root, journal));
                drop(shared.as_mut().map(|own| own.set_weights(weights)));
            }
            (Event::Look, Some(host)) => drop(host.observe(Nanos(0.0))),
            (Event::Act(_) | Event::Weights(_) | Event::Look, None) => {}
            (Event::Full, _) => life.fill_disk(true),
            (others, _) => {
                others_do(machine, others);
                done.lock().unwrap().push(others.clone());
            }
        }
    }
    Some(host?.release())
}

/// An event caused by another program.
fn others_do(machine: &Machine, event: &Event) {
    match event {
        Event::Quota(group, period) => {
            let path = format!("/sys/fs/cgroup{group}/cpu.max");
            if machine.real(&path).exists() {
                machine.write(&path, &format!("{period} {period}"));
            }
        }
        Event::Vanish(group, again) if machine.real(&format!("/sys/fs/cgroup{group}")).exists() => {
            machine.vanish(group);
            if *again {
                machine.make(group);
            }
        }
        Event::Begin if machine.runs(101) && !machine.runs(103) => machine.fork(101, 103),
        Event::Move if machine.runs(102) => machine.move_to(102, "/shared"),
        Event::Sibling => {
            for group in ["", "/a.slice"] {
                let path = format!("/sys/fs/cgroup{group}/cgroup.subtree_control");
                machine.write(&path, "+cpuset");
            }
            machine.write("/sys/fs/cgroup/a.slice/other/cpuset.cpus", "1");
        }
        _ => {}
    }
}

/// Differences from the expected machine that were not reported, or that took something from another program.
fn unreported(expected: &Machine, machine: &Machine, reported: &[NotPutBack]) -> Vec<String> {
    let explains = |not: &NotPutBack, path: &str, now: &str| match &not.cause {
        Cause::Widest { found } => not.path == path && now == found,
        Cause::Gone | Cause::Refused { .. } => not.path == path,
        _ => false,
    };
    let is_told = |difference: &String| {
        let path = difference.split(": ").next().unwrap();
        let now = std::fs::read_to_string(machine.real(path)).unwrap_or_default();
        reported.iter().any(|not| explains(not, path, now.trim()))
    };
    let mut all = differences(&expected.tree(), &machine.tree());
    all.retain(|difference| !is_told(difference));
    all
}

/// A program that only restores.
fn restore(machine: &Machine, paper: &Paper, life: &Life) -> Result<Restored, String> {
    let storage = Box::new(paper.held_by(life));
    JournalledWrites::on(&machine.root(life), storage).map(|(_, restored)| restored)
}

fn cores(tenant: &str, cores: Option<u32>) -> Event {
    let tenant = tenant.to_owned();
    Event::Act(Action::Cores { tenant, cores })
}

fn time(tenant: &str, share: f64, period: f64) -> Event {
    let (tenant, period) = (tenant.to_owned(), Nanos(period));
    Event::Act(Action::ProcessorTime {
        tenant,
        share,
        period,
    })
}

fn bandwidth(tenant: &str, percent: u32) -> Event {
    let tenant = tenant.to_owned();
    Event::Act(Action::Bandwidth { tenant, percent })
}

fn clock(tenant: &str, clock: Option<f64>) -> Event {
    let tenant = tenant.to_owned();
    let clock = clock.map(Gigahertz);
    Event::Act(Action::Clock { tenant, clock })
}

fn ways(tenant: &str, mask: u32) -> Event {
    let tenant = tenant.to_owned();
    Event::Act(Action::CacheWays { tenant, mask })
}

/// Every actuator, set, changed and in part removed.
fn history() -> Vec<Event> {
    vec![
        cores("a", Some(2)),
        time("a", 0.5, 10e6),
        bandwidth("a", 30),
        cores("a", Some(1)),
        time("b", 0.9, 1e6),
        bandwidth("b", 55),
        Event::Weights([(0, 3), (1, 1)]),
        time("p", 0.25, 5e6),
        time("a", 1.0, 10e6),
        Event::Weights([(0, 9), (1, 7)]),
    ]
}

#[test]
fn a_machine_that_is_let_go_is_as_it_was() {
    let machine = Machine::new();
    let before = machine.tree();
    let (paper, life) = (Paper::default(), Life::default());
    let not = live(&machine, &paper, &life, &history()).unwrap();
    assert_eq!(not, []);
    assert_eq!(differences(&before, &machine.tree()), [""; 0]);
    // During the limit it was different.
    assert!(life.taken() > 80, "{}", life.taken());
    assert!(paper.text().contains("a.slice/a/cpuset.cpus"));
}

#[test]
fn a_program_may_end_after_or_in_the_middle_of_any_step() {
    let whole = Life::default();
    live(&Machine::new(), &Paper::default(), &whole, &history());
    for step in 0..whole.taken() {
        let (machine, paper) = (Machine::new(), Paper::default());
        let before = machine.tree();
        let life = Life::until(Some(step));
        live(&machine, &paper, &life, &history());
        let restored = restore(&machine, &paper, &Life::default()).unwrap();
        let after = machine.tree();
        assert_eq!(
            differences(&before, &after),
            [""; 0],
            "ended at step {step}"
        );
        assert!(restored.notes.is_empty(), "{step}: {restored:?}");
        for not in restored.not {
            let uncertain = matches!(not.cause, Cause::Uncertain { .. });
            assert!(uncertain, "ended at step {step}: {not}");
        }
        if step % 8 != 0 {
            continue;
        }
        // There is nothing left to do.
        let again = restore(&machine, &paper, &Life::default()).unwrap();
        assert_eq!(again, Restored::default(), "ended at step {step}");
    }
}

#[test]
fn nothing_is_changed_that_could_not_be_written_down() {
    let machine = Machine::new();
    let before = machine.tree();
    let (paper, life) = (Paper::default(), Life::default());
    let mut events = history();
    events.insert(0, Event::Full);
    // The monitoring groups were made before the disk was full, and are removed.
    let not = live(&machine, &paper, &life, &events).unwrap();
    assert!(
        matches!(
            not[..],
            [NotPutBack {
                cause: Cause::Unwritten { .. },
                ..
            }]
        ),
        "{not:?}"
    );
    assert_eq!(differences(&before, &machine.tree()), [""; 0]);
    assert!(!paper.text().contains("cpu.max"));
}

#[test]
fn an_end_on_a_full_disk_says_that_the_journal_still_names_what_is_restored() {
    let (machine, paper, life) = (Machine::new(), Paper::default(), Life::default());
    let before = machine.tree();
    let mut events = history();
    events.push(Event::Full);
    let not = live(&machine, &paper, &life, &events).unwrap();
    assert_eq!(differences(&before, &machine.tree()), [""; 0]);
    let [unwritten] = &not[..] else {
        panic!("{not:?}");
    };
    assert!(unwritten.cause.is_refused() && unwritten.to_string().contains("still names"));
    assert!(paper.text().contains("cpu.max"));
    // If the disk has space again by the end, the journal says what is in force.
    let (paper, life) = (Paper::default(), Life::default());
    let storage = Box::new(paper.held_by(&life));
    let (mut writes, _) = JournalledWrites::on(&machine.root(&life), storage).unwrap();
    let path = "/sys/fs/cgroup/b/cpu.max";
    writes.set(path, "1000 10000").unwrap();
    life.fill_disk(true);
    assert_eq!(writes.put_back(path), []);
    assert!(paper.text().contains("cpu.max"));
    life.fill_disk(false);
    assert_eq!(writes.release(), []);
    assert!(!paper.text().contains("cpu.max"));
}

#[test]
fn on_a_full_disk_everything_is_restored_before_the_journal_is_written() {
    let (machine, paper) = (Machine::new(), Paper::default());
    let before = machine.tree();
    live(&machine, &paper, &Life::until(Some(70)), &history());
    assert_ne!(differences(&before, &machine.tree()), [""; 0]);
    let full = Life::default();
    full.fill_disk(true);
    let error = restore(&machine, &paper, &full).unwrap_err();
    for said in [
        "cannot be written",
        "no limit is set",
        "restored: /sys/fs/cgroup/a.slice",
    ] {
        assert!(error.contains(said), "{said}: {error}");
    }
    assert_eq!(differences(&before, &machine.tree()), [""; 0]);
}

#[test]
fn after_a_reboot_nothing_is_written_and_that_is_said() {
    let (machine, paper) = (Machine::new(), Paper::default());
    live(&machine, &paper, &Life::until(Some(60)), &history());
    let held = machine.tree();
    machine.put("/proc/sys/kernel/random/boot_id", "second\n");
    let restored = restore(&machine, &paper, &Life::default()).unwrap();
    assert_eq!(machine.tree(), held);
    assert_eq!(restored.not, []);
    assert!(restored.notes[0].contains("a.slice/a"), "{restored:?}");
}

/// Damages each line of a journal whose process was killed.
#[test]
fn a_damaged_journal_is_kept_and_all_that_its_lines_know_is_restored() {
    use super::journal::Storage;
    let mut lost = 0;
    for damaged in 0.. {
        let (machine, mut paper) = (Machine::new(), Paper::default());
        let before = machine.tree();
        live(&machine, &paper, &Life::until(Some(70)), &history());
        let text = paper.text();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let Some(line) = lines.get_mut(damaged).filter(|line| line.ends_with('\n')) else {
            break;
        };
        let line = std::mem::replace(line, "0badbad0 {}\n");
        paper.replace(lines.concat().as_bytes()).unwrap();
        let restored = restore(&machine, &paper, &Life::default()).unwrap();
        let said = &restored.troubles[0];
        assert!(
            said.contains(&format!("lines {} of", damaged + 1)),
            "{said}"
        );
        assert!(!restored.is_whole());
        assert_eq!(paper.aside(), lines.concat());
        let record: serde_json::Value = serde_json::from_str(&line[9..]).unwrap();
        let is_first = matches!(
            record["record"].as_str(),
            Some("writing" | "making" | "moving")
        );
        let left = differences(&before, &machine.tree());
        assert!(left.is_empty() || is_first, "{line}: {left:?}");
        // The kernel's value is known from the next line.
        let wrote = format!("\"wrote\",\"path\":{}", record["path"]);
        let is_named = lines
            .get(damaged + 1)
            .is_some_and(|next| next.contains(&wrote));
        if record["record"] == "writing" && is_named && !left.is_empty() {
            lost += 1;
            let is_lost = |not: &NotPutBack| not.cause == Cause::Lost && record["path"] == not.path;
            assert!(restored.not.iter().any(is_lost), "{line}: {restored:?}");
        }
    }
    assert!(lost > 2, "{lost} values were lost");
}

#[test]
fn a_journal_of_another_form_or_of_other_files_is_not_obeyed() {
    use super::journal::{Record, Storage, Task};
    let machine = Machine::new();
    machine.put("/etc/passwd", "root\n");
    let write = |form: u32, path: &str| {
        let owner = Task { id: 1, start: 1 };
        let boot = "first".to_owned();
        let records = [
            Record::Began { form, boot, owner },
            Record::Writing {
                path: path.into(),
                folder: None,
                before: "nobody".into(),
                text: "root".into(),
            },
        ];
        let text: String = records.iter().map(Record::line).collect();
        let mut paper = Paper::default();
        paper.replace(text.as_bytes()).unwrap();
        paper
    };
    let error = restore(
        &machine,
        &write(3, "/sys/fs/cgroup/b/cpu.max"),
        &Life::default(),
    );
    assert!(error.unwrap_err().contains("form 3"));
    for path in [
        "/etc/passwd",
        "/sys/fs/cgroup/../../../etc/passwd",
        // Only the registers of prefetchers are Weir's.
        "/dev/cpu/0/msr:0x10",
        "/dev/cpu/0/msr:0x01a4",
    ] {
        let restored = restore(&machine, &write(1, path), &Life::default()).unwrap();
        assert_eq!(restored.not[0].cause, Cause::Foreign);
        assert_eq!(machine.text("/etc/passwd"), "root\n");
    }
}

/// What only other programs do.
fn foreign() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (prop::sample::select(vec!["/a.slice/a", "/b"]), 20_000_u64..30_000)
            .prop_map(|(group, period)| Event::Quota(group, period)),
        1 => (prop::sample::select(vec!["/a.slice/a", "/b"]), any::<bool>())
            .prop_map(|(group, again)| Event::Vanish(group, again)),
        1 => Just(Event::Begin),
        1 => Just(Event::Move),
        1 => Just(Event::Sibling),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let tenant = || prop::sample::select(vec!["a", "b", "p", "kept"]);
    prop_oneof![
        4 => (tenant(), prop::option::of(0_u32..6)).prop_map(|(t, n)| cores(t, n)),
        4 => (tenant(), 0.0..1.2_f64, 0.0..2e9).prop_map(|(t, s, p)| time(t, s, p)),
        4 => (tenant(), 0_u32..120).prop_map(|(t, p)| bandwidth(t, p)),
        2 => (tenant(), 0_u32..0x1_ffff).prop_map(|(t, m)| ways(t, m)),
        1 => (tenant(), prop::option::of(0.1..5.0)).prop_map(|(t, c)| clock(t, c)),
        1 => (0_u32..9, 0_u32..9).prop_map(|(a, b)| Event::Weights([(0, a), (1, b)])),
        6 => foreign(),
        2 => Just(Event::Look),
        1 => Just(Event::Full),
    ]
}

/// The expected final machine: as at the beginning, except changes by other programs.
fn without_weir<'e>(events: impl IntoIterator<Item = &'e Event>) -> Machine {
    let machine = Machine::new();
    events
        .into_iter()
        .for_each(|event| others_do(&machine, event));
    machine
}

/// Other programs act after these steps of a program's life.
fn meanwhile(machine: &Machine, life: &Life, at: Vec<(usize, Event)>, done: &Done) {
    let (machine, done) = (machine.clone(), Arc::clone(done));
    life.meanwhile(move |step| {
        for (_, event) in at.iter().filter(|(at, _)| *at == step) {
            others_do(&machine, event);
            done.lock().unwrap().push(event.clone());
        }
    });
}

#[test]
fn what_others_do_at_any_step_is_kept_or_told() {
    let mut events = history();
    events.insert(6, Event::Look);
    events.push(Event::Look);
    let whole = Life::default();
    live(&Machine::new(), &Paper::default(), &whole, &events);
    let others = [
        Event::Quota("/a.slice/a", 25_000),
        Event::Vanish("/a.slice/a", true),
        Event::Sibling,
        Event::Quota("/b", 25_000),
        Event::Vanish("/b", false),
        Event::Begin,
    ];
    let expected = others.clone().map(|event| without_weir([&event]));
    for step in 0..whole.taken() {
        // One of them at each step; each of them meets every kind of step.
        let k = step % others.len();
        let (machine, life) = (Machine::new(), Life::default());
        let at = vec![(step, others[k].clone())];
        meanwhile(&machine, &life, at, &Done::default());
        let reported = live(&machine, &Paper::default(), &life, &events).unwrap_or_default();
        let unreported = unreported(&expected[k], &machine, &reported);
        assert_eq!(
            unreported, [""; 0],
            "{:?} after step {step}: {reported:?}",
            others[k]
        );
    }
}

/// A case is two lives with each write synchronised; `PROPTEST_CASES` asks for more.
fn sixteen_unless_asked() -> ProptestConfig {
    let usual = ProptestConfig::default();
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => usual,
        None => ProptestConfig { cases: 16, ..usual },
    }
}

proptest! {
    #![proptest_config(sixteen_unless_asked())]

    #[test]
    fn whatever_happens_only_what_others_did_is_left(
        events in prop::collection::vec(event(), 0..16),
        others in prop::collection::vec((0_usize..120, foreign()), 0..6),
        end: prop::sample::Index,
        end_of_restore in 0_usize..30,
    ) {
        let done = Done::default();
        let life = |machine: &Machine, end: Option<usize>| {
            let life = Life::until(end);
            meanwhile(machine, &life, others.clone(), &done);
            life
        };
        let expected = || without_weir(&std::mem::take(&mut *done.lock().unwrap()));
        let (machine, paper) = (Machine::new(), Paper::default());
        let whole = life(&machine, None);
        let reported = live_among(&machine, &paper, &whole, &events, &done).unwrap_or_default();
        prop_assert_eq!(unreported(&expected(), &machine, &reported), [""; 0], "{:?}", reported);

        // The same, ended at some step, with a restore that ends early too.
        let (machine, paper) = (Machine::new(), Paper::default());
        let short = life(&machine, Some(end.index(whole.taken())));
        live_among(&machine, &paper, &short, &events, &done);
        let first = restore(&machine, &paper, &Life::until(Some(end_of_restore)));
        let restored = restore(&machine, &paper, &Life::default()).unwrap();
        prop_assert!(restored.is_whole(), "{:?}", restored);
        let reported = [first.map_or_else(|_| Vec::new(), |first| first.not), restored.not].concat();
        prop_assert_eq!(unreported(&expected(), &machine, &reported), [""; 0], "{:?}", reported);
    }
}
