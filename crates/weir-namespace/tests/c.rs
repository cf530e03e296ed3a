//! A program in C, compiled with the header and linked to the library.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
#include "weir_namespace.h"
#include <stdio.h>
#include <string.h>
#define MUST(x) do { if (!(x)) { printf("line %d: %s: %s\n", __LINE__, #x, weir_namespace_error()); return 1; } } while (0)
#define SAID(x) (strstr(weir_namespace_error(), x) != 0)

int main(int count, char **words) {
    MUST(!weir_namespace_open("/nowhere/pool", "a") && SAID("cannot open /nowhere/pool"));
    weir_namespace_pool *pool = weir_namespace_make(words[1], 3 << 20, "a");
    MUST(pool);
    MUST(!weir_namespace_create(pool, "n", 1 << 20, 0600, 1));
    MUST(weir_namespace_create(pool, "n", 1 << 20, 0600, 1) == -1 && SAID("a namespace \"n\" already, of host a"));
    MUST(weir_namespace_create(pool, "m", 1 << 20, 0600, 1) == -1 && SAID("the largest has"));
    weir_namespace_handle *handle = weir_namespace_map(pool, "n", 1);
    MUST(handle);
    uint64_t bytes = 0;
    char *memory = weir_namespace_memory(handle, &bytes);
    MUST(memory && bytes == 1 << 20 && memory[0] == 0 && memory[bytes - 1] == 0);
    strcpy(memory, "stored");
    MUST(!weir_namespace_flush(handle, 0, 64) && !weir_namespace_check(handle));
    char seen[7];
    MUST(!weir_namespace_read(handle, 0, seen, 7) && !strcmp(seen, "stored"));
    MUST(!weir_namespace_write(handle, 8, seen, 7) && !strcmp(memory + 8, "stored"));
    MUST(weir_namespace_read(handle, bytes - 1, seen, 7) == -1 && SAID("are not in"));
    MUST(weir_namespace_destroy(pool, "n") == -1 && SAID("in use by process"));
    MUST(weir_namespace_heap(handle) == -1 && SAID("not zero"));
    memset(memory, 0, 16);
    MUST(!weir_namespace_heap(handle));
    uint64_t at = weir_namespace_malloc(handle, 100);
    MUST(at && at + 100 <= bytes);
    MUST(!weir_namespace_free(handle, at) && weir_namespace_free(handle, at) == -1 && SAID("nothing is allocated"));
    MUST(!weir_namespace_malloc(handle, 8 << 20) && SAID("no room"));
    MUST(!weir_namespace_close(handle) && !weir_namespace_close(0));
    MUST(!weir_namespace_resize(pool, "n", 4096));
    MUST(weir_namespace_hand_over(pool, "n", "b") == -1 && SAID("does not admit a host \"b\""));
    MUST(!weir_namespace_map(pool, "x", 0) && SAID("there is no namespace \"x\""));
    MUST(!weir_namespace_destroy(pool, "n"));
    MUST(weir_namespace_destroy(0, "n") == -1 && weir_namespace_check(0) == -1 && !weir_namespace_map(pool, 0, 0));
    weir_namespace_pool_close(pool);
    weir_namespace_pool_close(0);
    pool = weir_namespace_open(words[1], "a");
    MUST(pool);
    weir_namespace_pool_close(pool);
    puts("all well");
    return 0;
}
"#;

#[test]
fn a_c_program_uses_a_pool_through_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (
        folder.path().join("program.c"),
        folder.path().join("program"),
    );
    std::fs::write(&source, PROGRAM).unwrap();
    let own = std::env::current_exe().unwrap();
    let libraries = own.parent().unwrap();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .arg(format!("-I{}", headers.display()))
        .arg(format!("-L{}", libraries.display()))
        .arg("-lweir_namespace")
        .status();
    assert!(compiled.unwrap().success());
    let run = Command::new(&program)
        .arg(folder.path().join("pool"))
        .env("LD_LIBRARY_PATH", libraries)
        .output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let why = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said == "all well\n", "{said}{why}");
}
