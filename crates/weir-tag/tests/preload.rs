//! The library, preloaded into programs.

use std::path::PathBuf;
use std::process::Command;

fn library() -> PathBuf {
    std::env::current_exe()
        .unwrap()
        .parent()
        .unwrap()
        .join("libweir_tag.so")
}

/// Compiles a program that prints its names at its end: those of the kernel or of the table.
fn compiled(name: &str, body: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weir-tag-{name}-{}", std::process::id()));
    let source = path.with_extension("c");
    std::fs::write(&source, format!("{PRELUDE}{body}")).unwrap();
    let done = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-pthread", "-w", "-o"])
        .args([&path, &source])
        .status();
    assert!(done.unwrap().success());
    std::fs::remove_file(source).unwrap();
    path
}

const PRELUDE: &str = r#"
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define MUST(x) do { if (!(x)) { fprintf(stderr, "line %d: %s\n", __LINE__, #x); _exit(1); } } while (0)
#define MIB ((size_t)1 << 20)

/* As `weir` reads them: each name and its bytes. */
static void names(const char *who) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], name[256];
    uintptr_t from, to;
    while (fgets(line, sizeof line, maps)) {
        sscanf(line, "%lx-%lx", &from, &to);
        if (strstr(line, "[anon:site:"))
            printf("%s %s %zu\n", who, strtok(strstr(line, "site:"), "]"), to - from);
        if (!strstr(line, "/memfd:weir-names "))
            continue;
        const uintptr_t *entry = (void *)from;
        for (uintptr_t i = 1; i < ((uintptr_t *)from)[1]; i++)
            if (entry[12 * i] > 1)
                printf("%s %s %zu\n", who, (char *)(entry + 12 * i + 2), entry[12 * i + 1]);
    }
    fclose(maps);
    fflush(stdout);
}
"#;

/// What a program prints with the library, without what the test's own environment would change.
fn run(program: &PathBuf, variables: &[(&str, &str)]) -> (Vec<String>, String) {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", library())
        .env_remove("WEIR_TAG_FROM")
        .env_remove("WEIR_TAG_UP");
    let out = command.envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{:?} {said}", out.status);
    let lines = String::from_utf8_lossy(&out.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    (lines, said)
}

/// The distinct names, each without its bytes.
fn sites(lines: &[String]) -> Vec<&str> {
    let mut all: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn bytes(lines: &[String]) -> usize {
    lines
        .iter()
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

const SITES: &str = r#"
__attribute__((noinline)) char *first(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
__attribute__((noinline)) char *second(size_t n) { char *p = calloc(1, n); MUST(!p[n - 1]); p[0] = 1; return p; }
int main() {
    char *a = first(3 * MIB), *b = first(2 * MIB), *c = second(5 * MIB), *small = first(1000);
    names("x");
    return a == b || c == small;
}
"#;

#[test]
fn large_allocations_are_named_after_their_callers() {
    let program = compiled("sites", SITES);
    let (lines, said) = run(&program, &[]);
    let file = program.file_name().unwrap().to_str().unwrap();
    let module = format!("site:{}+0x", &file[..file.len().min(20)]);
    let all = sites(&lines);
    assert_eq!(all.len(), 2, "{lines:?}");
    assert!(all.iter().all(|site| site.starts_with(&module)), "{all:?}");
    assert_eq!((bytes(&lines), said.as_str()), (10 << 20, ""));

    // The size from which, and the frames above: the three are of two lines of `main` then.
    let (lines, _) = run(&program, &[("WEIR_TAG_FROM", "4M")]);
    assert_eq!((sites(&lines).len(), bytes(&lines)), (1, 5 << 20));
    let (lines, _) = run(&program, &[("WEIR_TAG_UP", "1")]);
    assert_eq!(
        (sites(&lines).len(), bytes(&lines)),
        (3, 10 << 20),
        "{lines:?}"
    );
    for (name, is) in [
        ("WEIR_TAG_FROM", "a size, such as 256K"),
        ("WEIR_TAG_UP", "a number of frames, such as 2"),
    ] {
        let (_, said) = run(&program, &[(name, "many")]);
        assert!(said.contains(&format!("{name} is {is}")), "{said}");
    }
    std::fs::remove_file(program).unwrap();
}

const CONTRACT: &str = r#"
static int is(const char *p, int byte, size_t n) { for (size_t i = 0; i < n; i += 997) if (p[i] != byte) return 0; return 1; }
int main() {
    for (int round = 0; round < 60; round++) {
        /* Through every size class, in and out of mappings of their own. */
        size_t n = 1000;
        char *p = malloc(n);
        memset(p, round, n);
        for (int i = 0; i < 24; i++) {
            size_t m = (size_t)(rand() % (i % 2 ? 6000000 : 300000)) + 1;
            p = realloc(p, m);
            MUST(p && is(p, (char)round, m < n ? m : n) && malloc_usable_size(p) >= m);
            memset(p, round, m);
            n = m;
        }
        free(p);
        char *z = calloc(3, MIB);
        MUST(is(z, 0, 3 * MIB));
        memset(z, 255, 3 * MIB);
        free(z);
        for (size_t align = 8; align <= 8 * MIB; align *= 4) {
            void *q = 0;
            MUST(!posix_memalign(&q, align, 2 * MIB) && (uintptr_t)q % align == 0);
            char *r = aligned_alloc(align, 2 * MIB), *s = memalign(align, 3 * MIB + 5);
            MUST((uintptr_t)r % align == 0 && (uintptr_t)s % align == 0 && q != r);
            memset(q, 1, 2 * MIB), memset(r, 2, 2 * MIB), memset(s, 3, 3 * MIB + 5);
            MUST(is(q, 1, 2 * MIB) && is(r, 2, 2 * MIB));
            free(q), free(r), free(s);
        }
    }
    void *q = &q;
    MUST(posix_memalign(&q, 24, 2 * MIB) && !calloc(SIZE_MAX / 2, 3) && !malloc(PTRDIFF_MAX));
    MUST(!realloc(malloc(2 * MIB), 0) && malloc_usable_size(0) == 0);
    free(0);
    /* All but what is kept for the next allocation has gone back. */
    names("left");
    return 0;
}
"#;

#[test]
fn the_contract_of_malloc_holds() {
    let program = compiled("contract", CONTRACT);
    let (lines, _) = run(&program, &[]);
    assert!(bytes(&lines) <= 64 << 20, "{lines:?}");
    std::fs::remove_file(program).unwrap();
}

const THREADS: &str = r#"
static volatile int stop;
static void *work(void *mark) {
    unsigned seed = (unsigned)(uintptr_t)mark;
    while (!stop) {
        size_t n = MIB + rand_r(&seed) % (2 * MIB);
        char *p = malloc(n);
        for (size_t i = 0; i < n; i += 4096) p[i] = (char)(uintptr_t)mark;
        if (seed % 3 == 0) p = realloc(p, n *= 2), p[n - 1] = 0;
        for (size_t i = 0; i < n / 2; i += 4096) MUST(p[i] == (char)(uintptr_t)mark);
        free(p);
    }
    return 0;
}
int main() {
    char *kept = malloc(4 * MIB); /* first, so that nothing that was freed serves it */
    memset(kept, 9, 4 * MIB);
    pthread_t all[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(all + i, 0, work, (void *)(i + 1));
    for (int i = 0; i < 100; i++) {
        int child = fork();
        if (!child) {
            alarm(20);
            MUST(kept[MIB] == 9);
            kept[MIB] = 8;
            char *more = malloc(40 * MIB); /* more than is kept of what was freed */
            memset(more, 1, 40 * MIB);
            if (i == 99) names("child");
            free(more), free(kept);
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0 && kept[MIB] == 9);
    }
    stop = 1;
    for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
    names("parent");
    return 0;
}
"#;

#[test]
fn threads_and_children_have_their_own_memory_and_names() {
    let program = compiled("threads", THREADS);
    let (lines, _) = run(&program, &[]);
    let has = |who: &str, mib: usize| {
        let line =
            |line: &String| line.starts_with(who) && line.ends_with(&format!(" {}", mib << 20));
        lines.iter().any(line)
    };
    assert!(
        has("child", 4) && has("child", 40) && has("parent", 4),
        "{lines:?}"
    );
    assert!(
        !has("parent", 40),
        "what a child has allocated is not its parent's: {lines:?}"
    );
    std::fs::remove_file(program).unwrap();
}

#[test]
fn other_programs_do_what_they_do_without_it() {
    let text: String = (0..200_000_u64)
        .map(|n| format!("{}\n", n * 7919 % 1_000_003))
        .collect();
    let file = std::env::temp_dir().join(format!("weir-tag-numbers-{}", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let sorted = |preload: bool| {
        let mut command = Command::new("sort");
        command.args(["-n", "--parallel=4"]).arg(&file);
        if preload {
            command.env("LD_PRELOAD", library());
        }
        let out = command.output().unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
        out.stdout
    };
    assert!(sorted(true) == sorted(false));
    let shell = "a=$(printf %2000000s x); b=$(echo \"$a\" | wc -c); (echo $b; sh -c 'echo in; exit 3'); echo $?";
    let out = Command::new("sh")
        .args(["-c", shell])
        .env("LD_PRELOAD", library())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&out.stdout),
        "2000001\nin\n3\n",
        "{out:?}"
    );
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_limit_on_file_sizes_does_not_end_a_program_and_is_told() {
    let program = compiled("limit", SITES);
    let out = Command::new("sh")
        .args(["-c", "ulimit -f 100; exec \"$0\""])
        .arg(&program)
        .env("LD_PRELOAD", library())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{out:?}");
    assert_eq!(out.stdout.is_empty(), said.contains("weir-tag"), "{said}");
    std::fs::remove_file(program).unwrap();
}
