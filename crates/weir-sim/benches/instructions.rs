//! Instructions per line request, which other programs and the clock cannot change.
//!
//! `cargo bench -p weir-sim --bench instructions [NAME]` runs itself under `valgrind --tool=callgrind`, once
//! with a window and once without, and divides the difference by the lines of the window. Without valgrind it
//! says so and exits without an error.

use std::process::{Command, ExitCode};

mod workloads;

use workloads::Workload;

/// `NAME` or `NAME/warm`: what the process under valgrind runs.
const TASK: &str = "WEIR_BENCH_TASK";

fn main() -> ExitCode {
    if let Ok(task) = std::env::var(TASK) {
        run(&task);
        return ExitCode::SUCCESS;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    if !args.iter().any(|a| a == "--bench") {
        // `cargo test --all-targets` checks only that it starts.
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions: not counted, since valgrind is not on the PATH");
        return ExitCode::SUCCESS;
    }
    let wanted = args.iter().find(|a| !a.starts_with('-'));
    println!(
        "{:20} {:>10} {:>18}",
        "workload", "lines", "instructions/line"
    );
    for workload in &workloads::ALL {
        if wanted.is_some_and(|w| !workload.name.contains(w.as_str())) {
            continue;
        }
        match measure(workload) {
            Ok((lines, instructions)) => {
                let each = instructions as f64 / lines as f64;
                println!("{:20} {lines:>10} {each:>18.1}", workload.name);
            }
            Err(why) => {
                eprintln!("{}: {why}", workload.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Runs a task and prints the lines of its window.
fn run(task: &str) {
    let (name, windows) = match task.strip_suffix("/warm") {
        Some(name) => (name, 0),
        None => (task, 1),
    };
    for workload in workloads::ALL.iter().filter(|w| w.name == name) {
        let mut machine = workload.start();
        for _ in 0..windows {
            println!("{}", workload.advance(&mut machine, workload.window));
        }
    }
}

/// Lines of the window and instructions they took.
fn measure(workload: &Workload) -> Result<(u64, u64), String> {
    let (_, before) = count(&format!("{}/warm", workload.name))?;
    let (out, after) = count(workload.name)?;
    let lines = out
        .trim()
        .parse()
        .map_err(|_| format!("no count of lines in `{out}`"))?;
    if lines == 0 || after <= before {
        return Err(format!("{lines} lines in {after} - {before} instructions"));
    }
    Ok((lines, after - before))
}

/// Runs a task under callgrind: what it printed, and the instructions collected.
fn count(task: &str) -> Result<(String, u64), String> {
    let own = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .env(TASK, task)
        .output()
        .map_err(|e| format!("valgrind does not start: {e}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    let collected = said
        .lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, n)| n.trim().parse().ok());
    match collected {
        Some(n) if done.status.success() => {
            Ok((String::from_utf8_lossy(&done.stdout).into_owned(), n))
        }
        _ => Err(format!("valgrind: {}: {said}", done.status)),
    }
}
