//! The file that describes a space: what it means, and what is said of its mistakes.

mod common;

use common::{MODELS, SMALL, WITH_TENANT, read};
use weir_design::search::Method;

fn good(text: &str) -> weir_design::space::Space {
    read(text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// A change of the small space, and what is said of it.
fn said(from: &str, to: &str) -> String {
    said_of(SMALL, from, to)
}

fn said_of(space: &str, from: &str, to: &str) -> String {
    assert!(space.contains(from), "{from}");
    let text = space.replacen(from, to, 1);
    match read(&text) {
        Ok(_) => panic!("{to:?} is taken"),
        Err(mistakes) => mistakes.to_string(),
    }
}

#[test]
fn every_mistake_names_file_line_and_key() {
    let mut missed = Vec::new();
    for (from, to, expected) in [
        (
            "kind = \"design\"",
            "kind = \"host\"",
            "this file is not a design space",
        ),
        ("base =", "bass =", "`bass` is not a key of a design space"),
        ("base = \"emr2s+cxl-a\"\n", "", "missing key `base`"),
        (
            "base = \"emr2s+cxl-a\"",
            "base = 3",
            "`base` must be text in quotes",
        ),
        ("base = \"emr2s+cxl-a\"", "base = \"emr9+cxl-a\"", "emr9"),
        (
            "key = \"cards\"",
            "key = \"card\"",
            "an axis cannot vary `card`",
        ),
        (
            "key = \"cards\"",
            "colour = 1\nkey = \"cards\"",
            "`axis.colour` is not a key of an axis",
        ),
        (
            "values = [0, 1, 2]",
            "values = []",
            "a space without a design is none",
        ),
        (
            "values = [0, 1, 2]",
            "values = [0, 1.5]",
            "must be a whole number between 0 and 64",
        ),
        (
            "values = [0, 1, 2]",
            "values = [0, 0]",
            "without a value twice",
        ),
        (
            "values = [0, 1, 2]",
            "values = [0, 99]",
            "must be a whole number between 0 and 64",
        ),
        (
            "values = [0, 1, 2]",
            "values = [[1]]",
            "must be text in quotes or a number",
        ),
        (
            "values = [0, 1, 2]",
            "from = 3\nto = 1",
            "at least `from`, which is 3",
        ),
        (
            "values = [0, 1, 2]",
            "from = 1",
            "either `values`, or `from` and `to`",
        ),
        (
            "values = [0, 1, 2]",
            "part = \"cxl-z\"\nvalues = [1]",
            "no part `cxl-z`",
        ),
        (
            "dram=3,cxl=1",
            "dram=0",
            "no tier with a number of pages from 1 to 255",
        ),
        (
            "name = \"scan-column\"",
            "name = \"nothing\"",
            "there is no workload `nothing`",
        ),
        (
            "name = \"scan-column\"",
            "name = \"scan-column\"\nweight = 0",
            "`workload.weight` must be a number",
        ),
        (
            "[[workload]]\nname = \"scan-column\"\n",
            "",
            "missing key `workload`",
        ),
        (
            "name = \"dollars\"",
            "name = \"beauty\"",
            "known are speed, neighbour, p99, watts, edp, area, pins, dollars",
        ),
        (
            "name = \"dollars\"",
            "name = \"speed\"",
            "must be named once",
        ),
        (
            "[[objective]]",
            "[[constraint]]\nobjective = \"watts\"\n[[objective]]",
            "missing key `constraint.most`",
        ),
        (
            "[[objective]]",
            "[[constraint]]\nobjective = \"watts\"\nleast = 9\nmost = 8\n[[objective]]",
            "watts cannot be at least 9 W and at most 8 W",
        ),
        (
            "[[objective]]",
            "[[constraint]]\nobjective = \"pins\"\nleast = 9\n[[constraint]]\nobjective = \"pins\"\nmost = 8\n[[objective]]",
            "pins cannot be at least 9 pins and at most 8 pins",
        ),
        (
            "base =",
            "search = \"grid\"\nbase =",
            "known are full, random, bayesian",
        ),
        (
            "base =",
            "search = \"random\"\nbase =",
            "missing key `points`",
        ),
        (
            "base =",
            "points = 0\nsearch = \"random\"\nbase =",
            "`points` must be a whole number between 1",
        ),
        (
            "base =",
            "points = 2\nbase =",
            "tries all 6 designs of this space, and not 2",
        ),
        (
            "base =",
            "seed = \"x\"\nbase =",
            "`seed` must be a whole number",
        ),
        ("base =", "policy = \"\"\nbase =", "`policy` must be tiers"),
        (
            "name = \"cards\"",
            "name = \"watts\"",
            "an axis cannot be called `watts`",
        ),
        (
            "name = \"cards\"",
            "name = \"pages\"",
            "two axes are called `pages`",
        ),
        ("base =", "this is no TOML\nbase =", "not valid TOML"),
    ] {
        let shown = said(from, to);
        if !shown.contains(expected) || !shown.contains("--> my.toml:") {
            missed.push(format!("{expected:?} is not in:\n{shown}"));
        }
    }
    // Every value of every axis was wrong with it.
    let shown = said("emr2s+cxl-a", "emr2+cxl-a");
    if !shown.contains("--> my.toml:3:8") || !shown.ends_with("1 mistake in my.toml") {
        missed.push(shown);
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn mistakes_of_tenants_and_controllers_name_file_line_and_key() {
    let tenant = "[[tenant]]\nname = \"cxl0:nt_st\"\nthreads = 8\n";
    let mut missed = Vec::new();
    for (from, to, expected, line) in [
        (
            "\"miku\"",
            "\"mikku\"",
            "known are weir, miku, quota, frequency, allocation, isolation, none",
            7,
        ),
        (
            "base =",
            "controller = \"alto\"\nbase =",
            "known are weir, miku",
            3,
        ),
        (tenant, "", "`miku` has no tenant to limit", 7),
        (
            "key = \"controller\"\nvalues = [\"none\", \"miku\"]\n",
            "key = \"cards\"\nvalues = [1]\n",
            "",
            0,
        ),
        (
            "\"cxl0:nt_st\"",
            "\"cxl0\"",
            "a tenant has an instruction or a program",
            17,
        ),
        ("\"cxl0:nt_st\"", "\"cxl0:nt_store\"", "nt_store", 17),
        (
            "\"cxl0:nt_st\"",
            "\"clx0:nt_st\"",
            "no design has a tier `clx0`",
            17,
        ),
        (
            "\"cxl0:nt_st\"",
            "\"remote:ld@1\"",
            "on the socket of its workloads",
            17,
        ),
        (
            "threads = 8\n\n[[obj",
            "\n[[obj",
            "missing key `tenant.threads`",
            16,
        ),
        (
            "threads = 8\n\n[[obj",
            "threads = 0\n\n[[obj",
            "`tenant.threads` must be",
            18,
        ),
        (
            "threads = 8\n\n[[obj",
            "thread = 8\n\n[[obj",
            "`tenant.thread` is not a key of a tenant",
            18,
        ),
    ] {
        if expected.is_empty() {
            good(&WITH_TENANT.replacen(from, to, 1));
            continue;
        }
        let shown = said_of(WITH_TENANT, from, to);
        if !shown.contains(expected) || !shown.contains(&format!("--> my.toml:{line}:")) {
            missed.push(format!("{expected:?} at {line} is not in:\n{shown}"));
        }
    }
    let alone = WITH_TENANT
        .replacen(tenant, "", 1)
        .replace(", \"miku\"", "");
    let shown = said_of(&alone, "\"speed\"", "\"watts\"");
    if !shown.contains("missing key `tenant`") {
        missed.push(shown);
    }
    let still = WITH_TENANT.replacen("[[objective]]\nname = \"neighbour\"\n", "", 1);
    let shown = said_of(&still, "\"speed\"", "\"pins\"");
    if !shown.contains("tenants run with workloads, and pins need no workload") {
        missed.push(shown);
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn a_value_that_no_server_can_have_is_refused_at_its_place() {
    let shown = said(
        "key = \"policy\"\nvalues = [\"dram\", \"dram=3,cxl=1\"]",
        "key = \"llc.ways\"\nvalues = [16, 4000]",
    );
    assert!(shown.contains("`pages` cannot be `4000`"), "{shown}");
    assert!(shown.contains("--> my.toml:13:"), "{shown}");
}

#[test]
fn a_range_has_its_ends_and_a_unit() {
    let text = SMALL.replace(
        "key = \"policy\"\nvalues = [\"dram\", \"dram=3,cxl=1\"]",
        "key = \"idle\"\nfrom = 200\nto = 300\nstep = 50\nunit = \"ns\"",
    );
    let space = good(&text);
    assert_eq!(space.axes[1].values, ["200 ns", "250 ns", "300 ns"]);
    assert!(space.axes[1].is_ordered() && !good(SMALL).axes[1].is_ordered());
    assert_eq!((space.method, space.points), (Method::Full, 9));
}

#[test]
fn axes_change_the_server_that_they_name() {
    let of = |axis: &str, values: &str, at: usize| {
        let text = SMALL.replace(
            "key = \"policy\"\nvalues = [\"dram\", \"dram=3,cxl=1\"]",
            &format!("key = \"{axis}\"\nvalues = {values}"),
        );
        let space = good(&text);
        space
            .design(&[1, at], &MODELS)
            .unwrap_or_else(|why| panic!("{axis}: {why}"))
    };
    let plain = good(SMALL)
        .design(&[1, 0], &MODELS)
        .unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(plain.on, "emr2s+cxl-a");
    assert_eq!(
        (plain.parts.ddr, plain.parts.lanes, plain.parts.cores),
        (8.0, 8.0, 32.0)
    );
    let fewer = of("ddr", "[8, 4]", 1);
    assert_eq!(fewer.parts.ddr, 4.0);
    assert_eq!(fewer.peaks[0], plain.peaks[0] / 2.0);
    assert!(of("ddr", "[4, 12]", 1).on.contains("dram.read=369 GB/s"));
    assert_eq!(of("premium", "[30]", 0).on, "emr2s+cxl-a,idle=141 ns");
    assert_eq!(of("threads", "[4, 8]", 1).threads, Some(8));
    let wider = of("lanes", "[8, 16]", 1);
    assert_eq!(
        (wider.on.as_str(), wider.parts.lanes),
        ("emr2s+cxl-a,lanes=16,read=48 GB/s", 16.0)
    );
    let narrower = of("lanes", "[8, 4]", 1);
    assert_eq!(
        narrower.on,
        "emr2s+cxl-a,remote_read=12 GB/s,read=12 GB/s,lanes=4"
    );
    // Its link is the limit, and not its channels.
    let text = SMALL.replace(
        "key = \"policy\"\nvalues = [\"dram\", \"dram=3,cxl=1\"]",
        "key = \"channels\"\nvalues = [1]",
    );
    assert_eq!(
        good(&text).design(&[1, 0], &MODELS).map(|own| own.on),
        Ok("emr2s+cxl-a,channels=1".into())
    );
    assert_eq!(of("llc.size", "[\"80 MiB\"]", 0).parts.llc_mb, 80.0);
    assert!(of("price.dram", "[3, 30]", 1).dollars > plain.dollars);
    assert!(
        of("silicon.lane_w", "[20]", 0)
            .silicon
            .power(&plain.parts)
            .lanes
            > 100.0
    );
    let none = good(SMALL)
        .design(&[0, 0], &MODELS)
        .unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((none.on.as_str(), none.parts.lanes), ("emr2s", 0.0));
    let two = good(SMALL)
        .design(&[2, 0], &MODELS)
        .unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((two.on.as_str(), two.parts.lanes), ("emr2s+2xcxl-a", 16.0));
}

#[test]
fn an_axis_may_choose_platforms_and_the_file_their_parts() {
    let text = SMALL
        .replace(
            "base = \"emr2s+cxl-a\"\n",
            "[[parts]]\non = \"spr2s\"\nddr = 0\nlanes = 384\nchannels = 48\n",
        )
        .replace(
            "name = \"cards\"\nkey = \"cards\"\nvalues = [0, 1, 2]",
            "key = \"platform\"\nvalues = [\"emr2s\", \"spr2s\"]",
        )
        .replace(", \"dram=3,cxl=1\"", "");
    let space = good(&text);
    assert_eq!(space.axes[0].name, "platform");
    let own = space
        .design(&[1, 0], &MODELS)
        .unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(
        (own.on.as_str(), own.parts.ddr, own.parts.lanes),
        ("spr2s", 0.0, 384.0)
    );
    assert_eq!(
        own.parts.channels.iter().map(|own| own.count).sum::<f64>(),
        48.0
    );
}
