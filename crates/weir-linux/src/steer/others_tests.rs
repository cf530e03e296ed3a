//! What other programs do while Weir steers: groups are made again, limits and neighbours change.

use weir_model::action::Action;
use weir_model::units::Nanos;

use super::actuators::Actuator;
use super::config::HostConfig;
use super::fake::{Life, Machine, Paper, differences};
use super::host::Host;
use super::host_tests::{A, EVENTS, config, cores, host, time};
use super::journalled_writes::JournalledWrites;
use super::not_put_back::Cause;

#[test]
fn what_another_program_changes_stays() {
    let machine = Machine::new();
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    host.act(&time("cgroup:/b", 0.1)).unwrap();
    machine.write("/sys/fs/cgroup/b/cpu.max", "max 50000");
    let why = host.act(&time("cgroup:/b", 0.2)).unwrap_err();
    assert!(why.reason.contains("another program changed"), "{why}");
    let not = host.release();
    assert_eq!(not.len(), 1, "{not:?}");
    assert!(matches!(&not[0].cause, Cause::Changed { found } if found == "max 50000"));
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpu.max"), "max 50000\n");
    assert_eq!(host.release(), []);
}

#[test]
fn a_tenant_that_begins_again_is_limited_again() {
    let machine = Machine::new();
    let b = "cgroup:/b";
    let mut host = host(&machine, config(&[b])).unwrap();
    let bandwidth = Action::Bandwidth {
        tenant: b.to_owned(),
        percent: 50,
    };
    let limit = |host: &mut Host| {
        for action in [cores(b, Some(1)), time(b, 0.5), bandwidth.clone()] {
            host.act(&action).unwrap();
        }
    };
    let limits = |host: &mut Host| host.observe(Nanos(0.0)).tenants.swap_remove(0).limits;
    limit(&mut host);
    assert_eq!(limits(&mut host), []);

    machine.vanish("/b");
    machine.make("/b");
    machine.begin(202);
    machine.move_to(202, "/b");
    machine.write("/sys/fs/resctrl/tasks", "202");
    let why = host.act(&time(b, 0.4)).unwrap_err();
    assert!(why.reason.contains("began again"), "{why}");
    let free = Action::Bandwidth {
        tenant: b.to_owned(),
        percent: 100,
    };
    assert_eq!(limits(&mut host), [cores(b, None), time(b, 1.0), free]);
    let again = machine.tree();
    limit(&mut host);
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpuset.cpus"), "0\n");
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpu.max"), "5000 10000\n");
    let groups = std::fs::read_dir(machine.real("/sys/fs/resctrl"))
        .unwrap()
        .flatten();
    let mut names = groups.map(|entry| entry.file_name().into_string().unwrap());
    let own = names.find(|name| name.starts_with("weir-steer-")).unwrap();
    let own = format!("/sys/fs/resctrl/{own}");
    assert_eq!(machine.text(&format!("{own}/tasks")), "202\n");

    // A thread that began outside of it is taken in.
    machine.begin(203);
    machine.move_to(203, "/b");
    machine.write("/sys/fs/resctrl/tasks", "203");
    assert_eq!(limits(&mut host), []);
    assert_eq!(machine.text(&format!("{own}/tasks")), "202\n203\n");
    machine.end(203);

    assert_eq!(host.release(), []);
    let after = machine.tree();
    assert_eq!(
        after.get("/sys/fs/cgroup/b/cpu.max"),
        again.get("/sys/fs/cgroup/b/cpu.max")
    );
    assert!(!after.contains_key("/sys/fs/cgroup/b/cpuset.cpus"));
}

#[test]
fn a_tenant_that_begins_again_while_it_is_limited_has_all_of_its_processors() {
    let (machine, life) = (Machine::new(), Life::default());
    let root = machine.root(&life);
    let (writes, _) = JournalledWrites::on(&root, Box::new(Paper::default())).unwrap();
    let mut host = Host::with(&root, config(&["cgroup:/b"]), &EVENTS, Some(writes)).unwrap();
    let (others, from) = (machine.clone(), life.taken());
    // After the first write, which gives the group its controller.
    life.meanwhile(move |step| {
        if step == from {
            others.vanish("/b");
            others.make("/b");
        }
    });
    host.act(&cores("cgroup:/b", Some(1))).unwrap();
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpuset.cpus"), "0\n");
    let seen = host.observe(Nanos(0.0)).tenants.swap_remove(0);
    assert_eq!(seen.limits, [cores("cgroup:/b", None)]);
    assert_eq!(host.tenants()[0].cpus(), [0, 1, 2, 3]);
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpuset.cpus"), "0-3\n");
    host.act(&cores("cgroup:/b", Some(1))).unwrap();
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpuset.cpus"), "0\n");
    assert_eq!(host.release(), []);
}

#[test]
fn a_limit_that_another_program_changed_is_what_is_reported() {
    let machine = Machine::new();
    let b = "cgroup:/b";
    let mut host = host(&machine, config(&[b])).unwrap();
    host.act(&time(b, 0.5)).unwrap();
    host.act(&cores(b, Some(1))).unwrap();
    machine.write("/sys/fs/cgroup/b/cpu.max", "2000 10000");
    machine.write("/sys/fs/cgroup/b/cpuset.cpus", "0-2");
    let limits = |host: &mut Host| host.observe(Nanos(0.0)).tenants.swap_remove(0).limits;
    let found = limits(&mut host);
    assert_eq!(found[0], cores(b, Some(3)));
    assert!(
        matches!(found[1], Action::ProcessorTime { share, .. } if (share - 0.2 / 3.0).abs() < 1e-9)
    );
    assert_eq!(limits(&mut host), []);
    machine.write("/sys/fs/cgroup/b/cpuset.cpus", "0-3");
    assert_eq!(limits(&mut host)[0], cores(b, None));
    machine.write("/sys/fs/cgroup/b/cpuset.cpus", "0-2");
    // It is removed while Weir goes on, and the end still says so.
    host.act(&time(b, 1.0)).unwrap_err();
    let reported: Vec<String> = host.release().iter().map(ToString::to_string).collect();
    assert!(
        reported
            .iter()
            .any(|not| not.contains("changed it to `2000 10000`")),
        "{reported:?}"
    );
    assert!(
        reported
            .iter()
            .any(|not| not.contains("changed it to `0-2`")),
        "{reported:?}"
    );
}

#[test]
fn a_period_that_the_kernel_doubles_is_still_ours() {
    let machine = Machine::new();
    let before = machine.tree();
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    host.act(&time("cgroup:/b", 0.1)).unwrap();
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpu.max"), "4000 10000\n");
    machine.write("/sys/fs/cgroup/b/cpu.max", "8000 20000");
    host.act(&time("cgroup:/b", 0.2)).unwrap();
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpu.max"), "8000 10000\n");
    machine.write("/sys/fs/cgroup/b/cpu.max", "32000 40000");
    assert_eq!(host.release(), []);
    assert_eq!(machine.tree(), before);
}

#[test]
fn an_empty_list_of_a_group_without_tasks_is_not_changed() {
    let machine = Machine::new();
    machine.make("/later");
    let limit = |machine: &Machine| {
        let mut host = host(machine, config(&["cgroup:/later"])).unwrap();
        let can = host.tenants()[0].can(Actuator::Cores);
        // Another program may add the controller only now.
        machine.write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
        let why = host.act(&cores("cgroup:/later", Some(1))).unwrap_err();
        assert!(why.reason.contains("does not take again"), "{why}");
        machine.begin(401);
        machine.move_to(401, "/later");
        assert_eq!(host.release(), []);
        machine.end(401);
        assert_eq!(machine.text("/sys/fs/cgroup/later/cpuset.cpus"), "\n");
        can
    };
    assert!(limit(&machine));
    assert!(!limit(&machine));
}

#[test]
fn a_controller_that_a_sibling_uses_is_left_and_told() {
    let machine = Machine::new();
    let mut host = host(&machine, config(&["cgroup:/a.slice/a"])).unwrap();
    host.act(&cores("cgroup:/a.slice/a", Some(1))).unwrap();
    for group in ["", "/a.slice"] {
        let path = format!("/sys/fs/cgroup{group}/cgroup.subtree_control");
        machine.write(&path, "+cpuset");
    }
    let sibling = "/sys/fs/cgroup/a.slice/other/cpuset.cpus";
    machine.write(sibling, "2");
    let reported: Vec<String> = host.release().iter().map(ToString::to_string).collect();
    assert_eq!(machine.text(sibling), "2\n");
    assert_eq!(machine.text(&format!("{A}/cpuset.cpus")), "0-3\n");
    for said in [
        "it is `0-3`, all that the group above has now",
        "Weir added cpuset, which /sys/fs/cgroup/a.slice/other/cpuset.cpus uses now",
        "Weir added cpuset, which /sys/fs/cgroup/a.slice/cgroup.subtree_control uses now",
    ] {
        assert!(
            reported.iter().any(|not| not.contains(said)),
            "{said}: {reported:?}"
        );
    }
    // It belongs to the other program now, so that there is nothing to restore.
    assert_eq!(host.release(), []);
}

/// Another program makes a group a partition of the processors in its list, which the others lose.
fn make_partition(machine: &Machine, group: &str, others: &str) {
    machine.put(
        &format!("/sys/fs/cgroup{group}/cpuset.cpus.partition"),
        "root\n",
    );
    machine.put("/sys/fs/cgroup/cpuset.cpus.effective", others);
}

#[test]
fn a_partition_that_another_program_makes_of_a_limited_group_stays_and_is_told() {
    let machine = Machine::new();
    let list = "/sys/fs/cgroup/b/cpuset.cpus";
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    host.act(&cores("cgroup:/b", Some(1))).unwrap();
    make_partition(&machine, "/b", "1-3\n");
    let why = host.act(&cores("cgroup:/b", Some(2))).unwrap_err();
    assert!(why.reason.contains("is a partition"), "{why}");
    let reported: Vec<String> = host.release().iter().map(ToString::to_string).collect();
    assert_eq!(machine.text(list), "0\n");
    for said in [
        "partition of `0`, to which Weir",
        "which /sys/fs/cgroup/b/cpuset.cpus uses now",
    ] {
        assert!(
            reported.iter().any(|not| not.contains(said)),
            "{said}: {reported:?}"
        );
    }
}

#[test]
fn the_processors_of_a_partition_are_not_limited() {
    let machine = Machine::new();
    machine.write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
    machine.write("/sys/fs/cgroup/b/cpuset.cpus", "1-3");
    make_partition(&machine, "/b", "0\n");
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    assert!(!host.tenants()[0].can(Actuator::Cores));
    host.act(&time("cgroup:/b", 0.5)).unwrap();
    assert_eq!(host.release(), []);
}

#[test]
fn a_partition_that_an_earlier_list_overlaps_is_told() {
    let machine = Machine::new();
    machine.write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
    machine.write("/sys/fs/cgroup/b/cpuset.cpus", "0-3");
    let mut host = host(&machine, config(&["cgroup:/b"])).unwrap();
    host.act(&cores("cgroup:/b", Some(1))).unwrap();
    machine.write("/sys/fs/cgroup/shared/cpuset.cpus", "3");
    make_partition(&machine, "/shared", "0-2\n");
    let reported: Vec<String> = host.release().iter().map(ToString::to_string).collect();
    assert_eq!(machine.text("/sys/fs/cgroup/b/cpuset.cpus"), "0-3\n");
    assert!(
        reported.len() == 1
            && reported[0].contains("see /sys/fs/cgroup/shared/cpuset.cpus.partition"),
        "{reported:?}"
    );
}

#[test]
fn threads_in_groups_of_other_programs_are_limited_and_come_back_to_them() {
    let machine = Machine::new();
    let watch = "/sys/fs/resctrl/mon_groups/watch";
    let root = machine.root(&Life::default());
    root.make_folder(watch).unwrap();
    machine.write(&format!("{watch}/tasks"), "101");
    let before = machine.tree();
    let (a, b) = ("cgroup:/a.slice/a", "cgroup:/b");
    let mut host = host(&machine, config(&[a, b])).unwrap();
    let ways = Action::CacheWays {
        tenant: b.to_owned(),
        mask: 3,
    };
    host.act(&ways).unwrap();
    // The least that the processor takes, beside a value of another resource that is less.
    for tenant in [a, b] {
        let bandwidth = |percent| Action::Bandwidth {
            tenant: tenant.to_owned(),
            percent,
        };
        assert_eq!(host.act(&bandwidth(1)).unwrap().applied, bandwidth(10));
    }
    let groups = std::fs::read_dir(machine.real("/sys/fs/resctrl")).unwrap();
    let own = groups.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("weir-steer-")
    });
    let mut threads: Vec<String> = own
        .map(|path| std::fs::read_to_string(path.join("tasks")).unwrap())
        .collect();
    threads.sort();
    assert_eq!(threads, ["101\n102\n", "201\n"]);
    assert_eq!(host.release(), []);
    assert_eq!(differences(&before, &machine.tree()), [""; 0]);
}

#[test]
fn a_group_that_cannot_be_removed_yet_stays_in_the_journal_and_frees_whom_others_moved_in() {
    let machine = Machine::new();
    let own_groups = HostConfig {
        own_groups: true,
        ..config(&["pid:301"])
    };
    let mut host = host(&machine, own_groups).unwrap();
    host.act(&time("pid:301", 0.5)).unwrap();
    let path = host.tenants()[0].group().to_owned();
    let own = path.strip_prefix("/sys/fs/cgroup").unwrap();
    machine.begin(401);
    machine.move_to(401, own);
    machine.make(&format!("{own}/others"));
    let not = host.release();
    assert!(not.iter().any(|not| not.cause.is_refused()), "{not:?}");
    // A thread without an earlier group goes where the first one came from.
    let shared = machine.text("/sys/fs/cgroup/shared/cgroup.threads");
    assert_eq!(shared, "301\n302\n401\n");
    machine.vanish(&format!("{own}/others"));
    assert_eq!(host.release(), []);
    assert!(!machine.real(&path).exists());
}

#[test]
fn a_write_that_the_kernel_refuses_is_forgotten() {
    let machine = Machine::new();
    let before = machine.tree();
    let root = machine.root(&Life::default());
    let (mut writes, _) = JournalledWrites::on(&root, Box::new(Paper::default())).unwrap();
    let path = "/sys/fs/cgroup/b/cpu.max";
    for text in ["1000 10000", "2000 10000"] {
        assert!(writes.set(path, "1 1").is_err());
        assert_eq!(writes.set(path, text), Ok(text.to_owned()));
    }
    assert_eq!(writes.release(), []);
    assert_eq!(differences(&before, &machine.tree()), [""; 0]);
}

#[test]
fn what_another_program_sets_back_is_not_told() {
    let machine = Machine::new();
    let (b, path) = ("cgroup:/b", "/sys/fs/cgroup/b/cpu.max");
    let before = machine.text(path);
    let mut host = host(&machine, config(&[b])).unwrap();
    host.act(&time(b, 0.5)).unwrap();
    machine.write(path, "2000 10000");
    host.act(&time(b, 1.0)).unwrap_err();
    machine.write(path, &before);
    assert_eq!(host.release(), []);
}

#[test]
fn what_is_written_after_an_end_in_the_middle_of_a_write_stays() {
    let path = "/sys/fs/cgroup/b/cpu.max";
    let open = |machine: &Machine, paper: &Paper, life: &Life| {
        JournalledWrites::on(&machine.root(life), Box::new(paper.held_by(life)))
    };
    let write = |machine: &Machine, paper: &Paper, life: &Life| {
        let opened = open(machine, paper, life);
        drop(opened.map(|(mut writes, _)| writes.set(path, "1000 10000")));
    };
    let whole = Life::default();
    write(&Machine::new(), &Paper::default(), &whole);
    for step in 0..whole.taken() {
        let (machine, paper) = (Machine::new(), Paper::default());
        write(&machine, &paper, &Life::until(Some(step)));
        machine.write(path, "max 50000");
        let (_, restored) = open(&machine, &paper, &Life::default()).unwrap();
        assert_eq!(machine.text(path), "max 50000\n", "{step}");
        assert!(restored.is_whole(), "{step}: {:?}", restored.not);
    }
}

#[test]
fn only_the_threads_of_a_process_are_counted_for_it() {
    let machine = Machine::new();
    let host = host(&machine, config(&["=pid:301"])).unwrap();
    let monitors = machine.real("/sys/fs/resctrl/mon_groups");
    let monitor = std::fs::read_dir(monitors)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let counted = std::fs::read_to_string(monitor.path().join("tasks")).unwrap();
    assert_eq!(counted, "301\n");
    drop(host);
}
