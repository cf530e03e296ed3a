//! A program in C, compiled with the header and linked to the library.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
#include "weir_flat.h"
#include <stdio.h>
#include <string.h>
#define MUST(x) do { if (!(x)) { printf("line %d: %s: %s\n", __LINE__, #x, weir_flat_error()); return 1; } } while (0)

int main(int count, char **words) {
    MUST(!weir_flat_open("/nowhere/store", 0, 0) && strstr(weir_flat_error(), "cannot open /nowhere/store"));
    weir_flat_store *store = weir_flat_open(words[1], 16 << 20, 8 << 20);
    MUST(store);
    MUST(!weir_flat_file(store, "a", 0) && strstr(weir_flat_error(), "no file \"a\""));
    weir_flat_file_handle *file = weir_flat_file(store, "a", 1);
    weir_flat_buffer_handle *from = weir_flat_buffer(store, 1 << 20), *to = weir_flat_buffer(store, 1 << 20);
    MUST(file && from && to && !weir_flat_renew(from));
    size_t length = 0;
    char *bytes = weir_flat_bytes(from, &length);
    MUST(length == 1 << 20);
    memset(bytes, 7, length);
    MUST(!weir_flat_write(file, 0, from));
    memset(bytes, 8, length);
    MUST(weir_flat_read(file, 4096, 4 << 20, to, 0) == (1 << 20) - 4096);
    char *read = weir_flat_bytes(to, &length);
    MUST(length == (1 << 20) - 4096 && read[0] == 7 && read[length - 1] == 7);
    MUST(weir_flat_read(file, 5, 10, to, 1) == 10 && ((char *)weir_flat_bytes(to, 0))[9] == 7);
    MUST(!weir_flat_window(from, 0, 100) && weir_flat_window(from, 1 << 20, 1) == -1);
    MUST(!weir_flat_write(file, 1 << 20, from) && !weir_flat_flush(store));
    MUST(weir_flat_read(0, 0, 1, to, 0) == -1 && weir_flat_sync(0) == -1 && !weir_flat_file(store, 0, 0));
    weir_flat_buffer_free(from);
    weir_flat_buffer_free(to);
    weir_flat_file_close(file);
    MUST(!weir_flat_close(store));
    store = weir_flat_open(words[1], 0, 0);
    MUST(store && (file = weir_flat_file(store, "a", 0)) && (to = weir_flat_buffer(store, 4096)));
    MUST(weir_flat_read(file, 1 << 20, 4096, to, 0) == 100 && ((char *)weir_flat_bytes(to, 0))[99] == 8);
    MUST(!weir_flat_remove(store, "a") && weir_flat_read(file, 0, 1, to, 0) == -1);
    weir_flat_file_close(file);
    weir_flat_buffer_free(to);
    MUST(!weir_flat_close(store) && !weir_flat_close(0));
    puts("all well");
    return 0;
}
"#;

#[test]
fn a_c_program_uses_the_store_through_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (
        folder.path().join("program.c"),
        folder.path().join("program"),
    );
    std::fs::write(&source, PROGRAM).unwrap();
    let libraries = std::env::current_exe()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .arg(format!("-I{}", headers.display()))
        .arg(format!("-L{}", libraries.display()))
        .arg("-lweir_flat")
        .status();
    assert!(compiled.unwrap().success());
    let mut run = Command::new(&program);
    let run = run
        .arg(folder.path().join("store"))
        .env("LD_LIBRARY_PATH", &libraries)
        .output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let why = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said == "all well\n", "{said}{why}");
}
