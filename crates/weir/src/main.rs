//! The `weir` command: hands the arguments to the library and its verdict to the shell.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::run(std::env::args_os())
}
