//! A program in C, compiled with the header and linked to the library.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
#include "weir_alloc.h"
#include <stdio.h>
#include <string.h>
#include <stdint.h>
#define MUST(x) do { if (!(x)) { printf("line %d: %s: %s\n", __LINE__, #x, weir_alloc_error()); return 1; } } while (0)

int main(int count, char **words) {
    MUST(!weir_alloc_open("/nowhere.toml") && strstr(weir_alloc_error(), "/nowhere.toml"));
    MUST(!weir_alloc_open(words[2]) && strstr(weir_alloc_error(), "line 2: class.cold.place: node 999"));
    weir_arenas *arenas = weir_alloc_open(words[1]);
    MUST(arenas);
    MUST(strstr(weir_alloc_notices(arenas), "node 999"));
    MUST(!weir_alloc_class(arenas, "keys") && strstr(weir_alloc_error(), "there are index, cold, buffer"));
    const weir_class *index = weir_alloc_class(arenas, "index");
    const weir_class *cold = weir_alloc_class(arenas, "cold");
    MUST(index && cold);
    char *node = weir_alloc(index, 100, 64);
    MUST(node && (uintptr_t)node % 64 == 0 && weir_usable_size(node) >= 100);
    strcpy(node, "kept");
    node = weir_realloc(node, 100000, 64);
    MUST(node && !strcmp(node, "kept"));
    char *column = weir_alloc(cold, 5 << 20, 0);
    MUST(column);
    memset(column, 1, 5 << 20);
    weir_class_stats stats;
    MUST(!weir_alloc_stats(index, &stats) && stats.objects == 1 && stats.used >= 100000 && stats.mapped >= stats.used);
    MUST(!weir_alloc(index, 64 << 20, 0) && strstr(weir_alloc_error(), "limit of 16777216"));
    MUST(weir_free(node) == 0 && weir_free(0) == 0);
    MUST(weir_free(node) == -1 && strstr(weir_alloc_error(), "no object begins"));
    weir_alloc_trim(index);
    MUST(!weir_alloc_stats(index, &stats) && stats.mapped == 0 && stats.objects == 0);
    MUST(!weir_realloc(&stats, 10, 0));
    MUST(!weir_alloc(0, 10, 0) && weir_free(column) == 0);
    weir_alloc_close(arenas);
    puts("all well");
    return 0;
}
"#;

#[test]
fn a_c_program_uses_classes_through_the_header() {
    let folder = std::env::temp_dir().join(format!("weir-alloc-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let source = file("program.c", PROGRAM);
    let policy =
        "[class.index]\nlimit = \"16 MiB\"\n[class.cold]\nplace = 999\nfallback = \"any\"\n";
    let (policy, wrong) = (
        file("policy.toml", policy),
        file("wrong.toml", "[class.cold]\nplace = 999\n"),
    );
    let libraries = std::env::current_exe()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    let program = folder.join("program");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .arg(format!(
            "-I{}",
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("include")
                .display()
        ))
        .arg(format!("-L{}", libraries.display()))
        .arg("-lweir_alloc")
        .status();
    assert!(compiled.unwrap().success());
    let run = Command::new(&program)
        .args([&policy, &wrong])
        .env("LD_LIBRARY_PATH", &libraries)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && said == "all well\n",
        "{said}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let _ = std::fs::remove_dir_all(&folder);
}
