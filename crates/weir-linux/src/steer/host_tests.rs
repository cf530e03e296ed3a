//! A host of files: which tenants are found, what is refused, what is in force, and changes by other
//! programs.

use std::sync::LazyLock;
use std::sync::mpsc::channel;
use std::time::Duration;

use weir_model::action::Action;
use weir_model::capability::Feature;
use weir_model::counters::Counter;
use weir_model::events::EventLibrary;
use weir_model::units::{Bytes, Gigahertz, Nanos};

use super::actuators::Actuator;
use super::config::{HostConfig, TenantScope};
use super::fake::{Life, Machine, Paper};
use super::host::{Host, HostError};
use super::journalled_writes::JournalledWrites;
use super::watchdog::Watchdog;
use crate::clock::Uptime;

pub(super) static EVENTS: LazyLock<EventLibrary> = LazyLock::new(EventLibrary::builtin);

pub(super) const A: &str = "/sys/fs/cgroup/a.slice/a";

/// Tenants by their scopes; those that begin with `=` are protected.
pub(super) fn config(scopes: &[&str]) -> HostConfig {
    let tenant = |text: &&str| TenantScope {
        name: text.trim_start_matches('=').to_owned(),
        scope: text.trim_start_matches('=').parse().unwrap(),
        restrain: !text.starts_with('='),
    };
    HostConfig {
        tenants: scopes.iter().map(tenant).collect(),
        actuators: Actuator::ALL.to_vec(),
        dwell: Nanos(0.0),
        ..HostConfig::default()
    }
}

pub(super) fn host(machine: &Machine, config: HostConfig) -> Result<Host, HostError> {
    let root = machine.root(&Life::default());
    let (writes, _) = JournalledWrites::on(&root, Box::new(Paper::default())).unwrap();
    Host::with(&root, config, &EVENTS, Some(writes))
}

fn refused(machine: &Machine, config: HostConfig) -> String {
    host(machine, config).unwrap_err().to_string()
}

pub(super) fn time(tenant: &str, share: f64) -> Action {
    Action::ProcessorTime {
        tenant: tenant.to_owned(),
        share,
        period: Nanos(10e6),
    }
}

pub(super) fn cores(tenant: &str, cores: Option<u32>) -> Action {
    let tenant = tenant.to_owned();
    Action::Cores { tenant, cores }
}

#[test]
fn all_that_is_wrong_with_a_request_is_said_at_once() {
    let machine = Machine::new();
    let before = machine.tree();
    let why = refused(
        &machine,
        config(&[
            "cgroup:/nobody",
            "unit:nobody.service",
            "pid:999",
            "pid:301",
            "cgroup:/a.slice",
            "=cgroup:/a.slice/a",
        ]),
    );
    for said in [
        "there is no control group /sys/fs/cgroup/nobody; `systemd-cgls`",
        "no unit nobody.service with a control group; is it running?",
        "there is no process 999",
        "shares the control group /sys/fs/cgroup/shared with others",
        "overlaps that of tenant `cgroup:/a.slice`",
    ] {
        assert!(why.contains(said), "{said}: {why}");
    }
    let both = HostConfig {
        own_groups: true,
        ..config(&["pid:301", "=pid:301"])
    };
    let why = refused(&machine, both);
    assert!(why.contains("given twice"), "{why}");
    assert_eq!(machine.tree(), before);
}

#[test]
fn units_and_containers_are_found_by_their_names() {
    let machine = Machine::new();
    machine.make("/db.service");
    machine.make("/a.slice/docker-0123456789abcdef.scope");
    machine.make("/shared/docker-0123456789ab0000.scope");
    let config = config(&["unit:db.service", "container:0123456789abcdef"]);
    let found = host(&machine, config).unwrap();
    let groups: Vec<&str> = found.tenants().iter().map(|t| t.group()).collect();
    assert_eq!(
        groups,
        [
            "/sys/fs/cgroup/db.service",
            "/sys/fs/cgroup/a.slice/docker-0123456789abcdef.scope"
        ]
    );
    let why = refused(&machine, self::config(&["container:0123456789ab"]));
    assert!(why.contains("more than one"), "{why}");
}

#[test]
fn version_1_and_nothing_at_all_are_told_with_what_to_do() {
    let machine = Machine::new();
    std::fs::remove_file(machine.real("/sys/fs/cgroup/cgroup.controllers")).unwrap();
    let why = refused(&machine, config(&["cgroup:/b"]));
    assert!(why.contains("mount -t cgroup2"), "{why}");
    std::fs::create_dir(machine.real("/sys/fs/cgroup/cpu")).unwrap();
    let why = refused(&machine, config(&["cgroup:/b"]));
    assert!(why.contains("systemd.unified_cgroup_hierarchy=1"), "{why}");
}

#[test]
fn what_is_asked_for_and_what_is_in_force_are_two_things() {
    let machine = Machine::new();
    let mut host = host(&machine, config(&["cgroup:/a.slice/a", "cgroup:/b"])).unwrap();
    let (a, b) = ("cgroup:/a.slice/a", "cgroup:/b");
    let bandwidth = Action::Bandwidth {
        tenant: a.to_owned(),
        percent: 33,
    };
    let applied = host.act(&bandwidth).unwrap();
    assert_eq!(applied.requested, bandwidth);
    assert!(
        matches!(applied.applied, Action::Bandwidth { percent: 40, .. }),
        "{applied:?}"
    );

    // An existing quota is not widened, and a share is of the remaining cores.
    host.act(&time(b, 0.9)).unwrap();
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpu.max"), "30000 10000\n");
    host.act(&time(a, 0.5)).unwrap();
    assert_eq!(machine.text(&format!("{A}/cpu.max")), "20000 10000\n");
    host.act(&cores(a, Some(2))).unwrap();
    assert_eq!(machine.text(&format!("{A}/cpu.max")), "10000 10000\n");
    assert_eq!(machine.text(&format!("{A}/cpuset.cpus")), "0-1\n");

    // The floor, and the minimum of the kernel.
    host.act(&time(a, 0.0)).unwrap();
    assert_eq!(machine.text(&format!("{A}/cpu.max")), "1000 10000\n");

    let controllers = machine.text("/sys/fs/cgroup/a.slice/cgroup.subtree_control");
    assert!(controllers.contains("cpuset"), "{controllers}");
    assert_eq!(host.release(), []);
}

#[test]
fn nobody_is_touched_who_may_not_be() {
    let machine = Machine::new();
    let before = machine.tree();
    let mut host = host(
        &machine,
        HostConfig {
            monitor: false,
            ..config(&["=cgroup:/b"])
        },
    )
    .unwrap();
    assert!(
        host.act(&time("cgroup:/b", 0.5))
            .unwrap_err()
            .reason
            .contains("may not be limited")
    );
    assert!(
        host.act(&time("somebody", 0.5))
            .unwrap_err()
            .reason
            .contains("no tenant")
    );
    let all = Action::Prefetchers {
        l1: false,
        l2: false,
    };
    assert!(host.act(&all).is_err());
    assert_eq!(machine.tree(), before);
}

#[test]
fn a_clock_is_changed_only_where_nobody_else_runs() {
    let machine = Machine::new();
    let mut host = host(&machine, config(&["cgroup:/a.slice/a", "=cgroup:/b"])).unwrap();
    let clock = Action::Clock {
        tenant: "cgroup:/a.slice/a".to_owned(),
        clock: Some(Gigahertz(1.25)),
    };
    let why = host.act(&clock).unwrap_err();
    assert!(why.reason.contains("with all programs"), "{why}");
    drop(host);

    let kernel = machine.root(&Life::default());
    kernel
        .write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset")
        .unwrap();
    kernel
        .write("/sys/fs/cgroup/a.slice/cpuset.cpus", "2-3")
        .unwrap();
    kernel.write("/sys/fs/cgroup/b/cpuset.cpus", "0-1").unwrap();
    let mut host = self::host(&machine, config(&["cgroup:/a.slice/a", "=cgroup:/b"])).unwrap();
    let applied = host.act(&clock).unwrap().applied;
    assert!(matches!(applied, Action::Clock { clock: Some(Gigahertz(c)), .. } if c == 1.2));
    let of = |cpu: u32| {
        machine.text(&format!(
            "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq"
        ))
    };
    assert_eq!(
        [of(1), of(2), of(3)],
        ["3450000\n", "1200000\n", "1200000\n"]
    );
    assert_eq!(host.release(), []);
    assert_eq!(of(2), "3450000\n");
    drop(host);
    let refused = |said: &str| {
        let mut host = self::host(&machine, config(&["cgroup:/a.slice/a", "=cgroup:/b"])).unwrap();
        let why = host.act(&clock).unwrap_err();
        assert!(why.reason.contains(said), "{why}");
        assert_eq!(of(2), "3450000\n");
    };
    kernel.write("/sys/fs/cgroup/b/cpuset.cpus", "1-2").unwrap();
    refused("other tenants may run on its processors");
    kernel.write("/sys/fs/cgroup/b/cpuset.cpus", "0-1").unwrap();
    machine.put("/sys/devices/system/cpu/cpu2/cpufreq/related_cpus", "1 2\n");
    refused("processor 2 has one clock with processor 1");
}

#[test]
fn a_processor_that_goes_is_done_without() {
    let machine = Machine::new();
    let mut host = host(&machine, config(&["cgroup:/a.slice/a"])).unwrap();
    let a = "cgroup:/a.slice/a";
    // Processors 0 and 1 are unplugged.
    machine.put("/sys/fs/cgroup/cpuset.cpus.effective", "2-3\n");
    host.act(&cores(a, Some(1))).unwrap();
    assert_eq!(machine.text(&format!("{A}/cpuset.cpus")), "2\n");
    // All of them.
    machine.put("/sys/fs/cgroup/a.slice/cpuset.cpus.effective", "\n");
    let why = host.act(&cores(a, Some(2))).unwrap_err();
    assert!(why.reason.contains("is left"), "{why}");
}

#[test]
fn a_list_that_could_not_be_put_back_is_not_changed() {
    let machine = Machine::new();
    let kernel = machine.root(&Life::default());
    kernel
        .write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset")
        .unwrap();
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    let why = host.act(&cores("cgroup:/b", Some(1))).unwrap_err();
    assert!(why.reason.contains("does not take again"), "{why}");
    assert!(host.tenants()[0].can(Actuator::ProcessorTime));
}

#[test]
fn changes_keep_their_distance_unless_to_let_go() {
    let machine = Machine::new();
    let slow = HostConfig {
        dwell: Nanos(3600e9),
        ..config(&["cgroup:/b"])
    };
    let mut host = host(&machine, slow).unwrap();
    host.act(&time("cgroup:/b", 0.5)).unwrap();
    assert!(
        host.act(&time("cgroup:/b", 0.4))
            .unwrap_err()
            .reason
            .contains("ms ago")
    );
    host.act(&time("cgroup:/b", 1.0)).unwrap();
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpu.max"), "150000 50000\n");
}

#[test]
fn a_window_says_who_ran_where_their_pages_lie_and_what_is_not_seen() {
    let machine = Machine::new();
    let stat = "/sys/fs/cgroup/b/cpu.stat";
    machine.put(stat, "usage_usec 1000\n");
    machine.put(
        "/sys/fs/cgroup/b/memory.numa_stat",
        "anon N0=4096 N1=12288\n",
    );
    let in_groups = |act: &dyn Fn(&std::path::Path)| {
        let monitors = std::fs::read_dir(machine.real("/sys/fs/resctrl/mon_groups")).unwrap();
        for group in monitors.flatten() {
            act(&group.path().join("mon_data/mon_L3_01"));
        }
    };
    let write = |file: &str, bytes: &str| {
        in_groups(&|domain| std::fs::write(domain.join(file), bytes).unwrap());
    };
    let count = |bytes: &str| write("mbm_total_bytes", bytes);
    let config = HostConfig {
        look_at_pages: 1,
        ..config(&["cgroup:/a.slice/a", "=cgroup:/shared"])
    };
    let mut host = host(&machine, config).unwrap();
    let first = host.observe(Nanos(0.0));
    assert!(first.tenants.iter().all(|t| t.ran.is_err() && t.busy));
    count("1000000\n");
    machine.put(
        &format!("{A}/cpu.stat"),
        "usage_usec 90000000\nthrottled_usec 0\n",
    );
    let seen = host.observe(Nanos(1e6));
    assert!(seen.window >= Nanos(1e6));
    assert!(seen.tenants[0].busy && !seen.tenants[1].busy, "{seen:?}");
    assert_eq!(seen.tenants[0].ran.as_ref().unwrap().time, Nanos(90e9));
    let drew = seen.tenants[0].drew.as_ref().unwrap();
    let expected = 1e6 / seen.window.get();
    assert!((drew.get() / expected - 1.0).abs() < 1e-9, "{drew:?}");
    assert_eq!(seen.tenants[0].held, Ok(Bytes(0)));
    write("llc_occupancy", "3145728\n");
    assert_eq!(host.observe(Nanos(0.0)).tenants[0].held, Ok(Bytes::mib(3)));
    let seen = weir_model::machine::Machine::observe(&mut host, Nanos(1e3)).unwrap();
    let own = &seen.tenants[0].counters;
    assert_eq!(own.get(Counter::LlcOccupancy), Ok(3 << 20));
    let odd = "Unavailable\n";
    count(odd);
    let why = host.observe(Nanos(0.0)).tenants[0]
        .drew
        .clone()
        .unwrap_err();
    assert!(why.reason.contains("Unavailable"), "{why}");

    let missing = host
        .capabilities()
        .iter()
        .find(|c| c.feature == Feature::UncorePmu);
    let missing = missing.unwrap();
    assert!(
        !missing.present && missing.cost.contains("backlog"),
        "{missing:?}"
    );
    drop(host);

    let mut host = self::host(
        &machine,
        HostConfig {
            look_at_pages: 1,
            ..self::config(&["cgroup:/b"])
        },
    )
    .unwrap();
    let pages = host.observe(Nanos(0.0)).tenants[0].pages.clone().unwrap();
    assert_eq!(
        (pages.on(&[1]), pages.total()),
        (Bytes(12288), Bytes(16384))
    );
}

#[test]
fn a_dry_run_changes_nothing() {
    let machine = Machine::new();
    let before = machine.tree();
    let root = machine.root(&Life::default());
    let (mut host, _) = Host::open(&root, config(&["cgroup:/b"]), &EVENTS, None).unwrap();
    assert!(
        host.act(&time("cgroup:/b", 0.5))
            .unwrap_err()
            .reason
            .contains("dry run")
    );
    host.observe(Nanos(0.0));
    assert_eq!(host.release(), []);
    assert_eq!(machine.tree(), before);
}

#[test]
fn a_loop_that_stands_still_lets_go_from_another_thread() {
    let machine = Machine::new();
    let before = machine.tree();
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    host.act(&time("cgroup:/b", 0.5)).unwrap();
    let bandwidth = Action::Bandwidth {
        tenant: "cgroup:/b".to_owned(),
        percent: 50,
    };
    host.act(&bandwidth).unwrap();
    let (said, stalled) = channel();
    let release = host.releaser();
    let watchdog = Watchdog::start(Duration::from_millis(20), move || {
        let not = release.release_within(Duration::from_secs(60));
        said.send(not).unwrap();
    });
    let watchdog = watchdog.unwrap();
    watchdog.turn();
    assert_eq!(stalled.recv().unwrap(), Ok(vec![]));
    let now = machine.tree();
    assert_eq!(
        now.get("/sys/fs/cgroup/b/cpu.max"),
        before.get("/sys/fs/cgroup/b/cpu.max")
    );
    // It runs again, and may set limits again.
    watchdog.turn();
    host.act(&time("cgroup:/b", 0.4)).unwrap();
    host.act(&bandwidth).unwrap();
    drop(watchdog);
    assert_eq!(host.release(), []);
    assert_eq!(machine.tree(), before);
}

#[test]
fn tenants_that_nobody_named_come_and_go() {
    let machine = Machine::new();
    let before = machine.tree();
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    let adopt = |host: &mut Host, scope: &str, place| {
        let asked = config(&[scope]).tenants.swap_remove(0);
        host.adopt(asked, place).map_err(|why| why.reason)
    };
    assert_eq!(adopt(&mut host, "cgroup:/shared", None), Ok(1));
    host.act(&time("cgroup:/shared", 0.25)).unwrap();
    let max = |group: &str| machine.text(&format!("/sys/fs/cgroup{group}/cpu.max"));
    assert_eq!(max("/shared"), "10000 10000\n");
    for (scope, said) in [
        ("cgroup:/shared", "given twice"),
        ("cgroup:/nobody", "no control group"),
    ] {
        let why = adopt(&mut host, scope, None).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
    assert_eq!(host.tenants().len(), 2);
    host.act(&time("cgroup:/shared", 1.0)).unwrap();
    host.retire(1);
    assert!(!host.observe(Nanos(0.0)).tenants[1].busy);
    host.act(&time("cgroup:/shared", 0.25)).unwrap_err();
    // Another tenant has its position, and it comes back in a new position.
    assert_eq!(adopt(&mut host, "cgroup:/a.slice/a", Some(1)), Ok(1));
    assert_eq!(adopt(&mut host, "cgroup:/shared", None), Ok(2));
    assert!(
        adopt(&mut host, "cgroup:/a.slice", None)
            .unwrap_err()
            .contains("overlaps")
    );
    host.act(&time("cgroup:/shared", 0.5)).unwrap();
    host.act(&time("cgroup:/a.slice/a", 0.25)).unwrap();
    assert_eq!(max("/shared"), "20000 10000\n");
    assert_eq!(host.observe(Nanos(0.0)).tenants.len(), 3);
    assert_eq!(host.release(), []);
    assert_eq!(super::fake::differences(&before, &machine.tree()), [""; 0]);
}

#[test]
fn a_window_with_a_suspend_has_no_counts() {
    let machine = Machine::new();
    let b = "cgroup:/b";
    let mut host = host(&machine, config(&[b])).unwrap();
    host.act(&time(b, 0.5)).unwrap();
    let at = |all_ms, awake_ms| Uptime {
        all: Duration::from_millis(all_ms),
        awake: Duration::from_millis(awake_ms),
    };
    let mut look = |began, now| {
        let seen = host.look(began, now);
        let ran = seen.tenants[0].ran.clone();
        (seen.window, ran, seen.counters.get(Counter::CasRd))
    };
    drop(look(at(0, 0), at(1000, 1000)));
    let (window, ran, lines) = look(at(1000, 1000), at(601_250, 1250));
    assert_eq!(window, Nanos(600_250e6));
    for why in [ran.unwrap_err(), lines.unwrap_err()] {
        assert!(why.reason.contains("suspended for 600.0 s"), "{why}");
    }
    let (window, ran, _) = look(at(601_250, 1250), at(601_500, 1500));
    assert_eq!(window, Nanos(250e6));
    assert!(ran.is_ok(), "{ran:?}");
    assert_eq!(host.release(), []);
}

#[test]
fn a_window_that_nobody_waits_for_is_broken_off() {
    let machine = Machine::new();
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    assert!(host.observe_unless(Nanos(86_400e9), &|| true).is_none());
    assert!(host.observe_unless(Nanos(0.0), &|| false).is_some());
}
