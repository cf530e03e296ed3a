//! Advice as a policy of `weir-alloc`, and commands whose allocations are named by call site.

use serde_json::Value;

use crate::common::Place;
use crate::place::{JOB, can_place};

/// Where the policy of an advice puts a class, by what the kernel says of memory of that class in this process.
fn kernel_places(policy: &std::path::Path, class: &str) -> Option<String> {
    let arenas = weir_alloc::Arenas::from_policy(policy).unwrap();
    let class = arenas
        .class(&weir_alloc::ObjectClass::named(class))
        .unwrap();
    let object = class.alloc(8 << 20, 64).unwrap();
    let maps = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
    let at = object.as_ptr().addr() as u64;
    let start = |line: &&str| u64::from_str_radix(line.split(' ').next().unwrap_or(""), 16).ok();
    let of = maps
        .lines()
        .filter(|line| start(line).is_some_and(|start| start <= at));
    of.max_by_key(start).map(str::to_owned)
}

#[test]
fn advice_is_a_policy_that_the_allocator_reads_as_it_is() {
    let place = Place::new();
    place.file("job.toml", JOB);
    let advise = "place advise job.toml --on emr2s+cxl-a";
    let line = format!("{advise} --policy policy.toml --format json");
    let done = place.run(&line).expect(0);
    let found: Value = serde_json::from_str(&done.out()).unwrap();
    let text = std::fs::read_to_string(place.path("policy.toml")).unwrap();
    assert!(text.contains("# Predicted loss with 6"), "{text}");
    let read = weir_alloc::placements("policy.toml", &text, &[0, 1]).unwrap();
    for object in found["objects"].as_array().unwrap() {
        let class = read
            .iter()
            .find(|one| object["object"] == one.class.as_str());
        let nodes = &class.unwrap().nodes;
        let all: u32 = nodes.iter().map(|one| one.1).sum();
        let there = nodes.iter().find(|one| one.0 == 1).map_or(0, |one| one.1);
        let share = f64::from(there) / f64::from(all) * 100.0;
        assert!(
            (share - object["share_pct"].as_f64().unwrap()).abs() < 1e-6,
            "{text}"
        );
    }
    // What is not for this host is said, in the file too.
    for said in [&done.err(), &text] {
        assert!(
            said.contains("this host has no tier cxl0, and 1 is assumed"),
            "{said}"
        );
    }

    // With everything on local memory a program runs with the file on any host.
    let written = r#""log", bytes = "6 GiB", order = "sequential", element = "8 B", stores = 1.0, share = 0.1"#;
    let waited_for = r#""pages", bytes = "6 GiB", order = "chase", element = "64 B", share = 0.9"#;
    let renamed = JOB.replace(written, waited_for);
    assert_ne!(renamed, JOB);
    place.file("renamed.toml", renamed.as_str());
    let here = "place advise renamed.toml --on emr2s+cxl-a --max-loss 0 --whole --policy here.toml";
    let said = place.run(here).expect(0).err();
    assert!(
        said.contains("`pages` (6 GiB) is no class and not in this policy"),
        "{said}"
    );
    place.run(format!("{here} --class pages=cold")).expect(0);
    let text = std::fs::read_to_string(place.path("here.toml")).unwrap();
    assert!(text.contains("# pages, 6 GiB: "), "{text}");
    if can_place(&place) {
        for class in ["index", "cold"] {
            let mapped = kernel_places(&place.path("here.toml"), class);
            let policy = mapped.as_deref().and_then(|line| line.split(' ').nth(1));
            assert!(policy.is_none_or(|policy| policy == "bind:0"), "{mapped:?}");
        }
    }

    for (arguments, code, said) in [
        (
            "renamed.toml --policy p.toml --class log",
            2,
            "there is no object `log`",
        ),
        (
            "chase --policy p.toml",
            2,
            "no object is a class of the program (index, buffer",
        ),
        (
            "renamed.toml --policy p.toml --class pages=a/b",
            2,
            "`a/b` has not",
        ),
        ("renamed.toml --class pages", 2, "--policy"),
        (
            "renamed.toml --policy no/p.toml",
            2,
            "cannot write no/p.toml",
        ),
        ("renamed.toml --tag", 2, "--tag is for a command"),
    ] {
        let done = place.run(format!("place advise {arguments} --on emr2s+cxl-a"));
        done.refuses(code, &[said]);
    }
    assert!(!place.path("p.toml").exists());
}

/// Asks for two large blocks in functions of its own, and goes through them until something leaves the caches.
const BLOCKS: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) long *table(size_t n) { long *p = malloc(n * sizeof *p); p[0] = 1; return p; }
__attribute__((noinline)) long *column(size_t n) { long *p = malloc(n * sizeof *p); p[0] = 2; return p; }
int main()
{
    size_t n = 1 << 18, at = 0;
    long *a = table(n), *b = column(n), sum = 0;
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = i;
    for (size_t i = 0; i < 2 * n; i++) {
        at = (at * 77773 + 12345) % n;
        sum += a[at] + b[i % n];
    }
    return sum == 1;
}
"#;

/// The command by a link in a folder of its own, so that no library is next to it.
fn alone() -> std::path::PathBuf {
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let bin = target.join(format!("tag-{}/bin", std::process::id()));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::hard_link(env!("CARGO_BIN_EXE_weir"), bin.join("weir")).unwrap();
    bin
}

#[test]
fn a_command_is_advised_by_the_sites_of_its_allocations() {
    let place = Place::new();
    let bin = alone();
    let weir = |words: &[&str]| {
        let mut command = std::process::Command::new(bin.join("weir"));
        let like = place.command("runs list");
        command.envs(
            like.get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        command.current_dir(place.path("")).args(words);
        crate::common::Done(command.output().unwrap())
    };
    let compile = |name: &str, more: &[&str]| {
        std::fs::write(place.path("blocks.c"), BLOCKS).unwrap();
        let mut command = std::process::Command::new("cc");
        command
            .args(["-O1", "-fno-builtin", "-o"])
            .arg(place.path(name));
        let done = command.arg(place.path("blocks.c")).args(more).status();
        done.is_ok_and(|status| status.success())
    };
    let tag = ["place", "advise", "--on", "emr2s+cxl-a", "--tag"];
    let can_record = compile("blocks", &[])
        && std::process::Command::new("qemu-x86_64")
            .arg("--version")
            .output()
            .is_ok();
    if can_record {
        let done = weir(&[&tag[..], &["--", "./blocks"]].concat());
        done.refuses(
            3,
            &[
                "libweir_tag.so",
                "../lib",
                "cargo build --release -p weir-tag",
                "--tag FILE",
            ],
        );
        weir(&[&tag[..], &["no/lib.so", "--", "true"]].concat()).refuses(2, &["--tag no/lib.so"]);
        let library = std::env::current_exe()
            .unwrap()
            .with_file_name("libweir_tag.so");
        if library.exists() {
            std::fs::create_dir_all(bin.join("../lib")).unwrap();
            std::fs::copy(&library, bin.join("../lib/libweir_tag.so")).unwrap();
            let words = ["-o", "b.toml", "--format", "json", "--", "./blocks"];
            let done = weir(&[&tag[..], &words].concat()).expect(0);
            // One document: that of the recording is only kept.
            let found: Value = serde_json::from_str(&done.out()).unwrap();
            let objects = found["objects"].as_array().unwrap();
            let sites = objects.iter().filter(|one| {
                one["object"]
                    .as_str()
                    .is_some_and(|name| name.starts_with("site-blocks-0x"))
            });
            assert_eq!(sites.count(), 2, "{objects:?}");
            // A static program runs on, and has no names.
            if compile("fixed", &["-static"]) {
                let library = library.display().to_string();
                let words = ["--tag-library", &library, "-o", "f.toml", "--", "./fixed"];
                let record = ["workload", "record"];
                let said = weir(&[&record[..], &words].concat()).expect(0).err();
                assert!(said.contains("`./fixed` is a static program"), "{said}");
                assert!(said.contains("--tag named nothing"), "{said}");
            }
        } else {
            eprintln!("SKIPPED: libweir_tag.so was not built; `cargo test --workspace` does");
        }
    }
    std::fs::remove_dir_all(bin.parent().unwrap()).unwrap();
}
