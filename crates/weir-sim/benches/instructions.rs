//! Instructions per line request, which other programs and the clock cannot change.
//!
//! `cargo bench -p weir-sim --bench instructions [NAME]` runs itself under `valgrind --tool=callgrind`, once
//! with a window and once without, and divides the difference by the lines of the window. It prints how far
//! each count is from that of `instructions.csv`, and again those that are further than 3 %; none is an error.
//! `WEIR_UPDATE=1` writes the file anew. Without valgrind it says so and exits without an error.

use std::process::{Command, ExitCode};

mod workloads;

use workloads::Workload;

/// `NAME` or `NAME/warm`: what the process under valgrind runs.
const TASK: &str = "WEIR_BENCH_TASK";

/// The counts to compare with.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.csv");
const HEAD: &str = "workload,instructions_per_line";
/// A larger change is said again, in percent. Compilers and C libraries change counts by less.
const LARGE: f64 = 3.0;

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
    match compare(wanted.map(String::as_str)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Counts the workloads that are wanted, and prints how far they are from the stored counts.
fn compare(wanted: Option<&str>) -> Result<(), String> {
    let stored = std::fs::read_to_string(STORED).map_err(|e| format!("{STORED}: {e}"))?;
    println!(
        "{:20} {:>10} {:>18} {:>10} {:>8}",
        "workload", "lines", "instructions/line", "stored", "change"
    );
    let (mut large, mut renewed) = (Vec::new(), format!("{HEAD}\n"));
    for workload in &workloads::ALL {
        let name = workload.name;
        if wanted.is_some_and(|w| !name.contains(w)) {
            continue;
        }
        let (lines, instructions) = measure(workload).map_err(|why| format!("{name}: {why}"))?;
        let each = instructions as f64 / lines as f64;
        renewed += &format!("{name},{each:.1}\n");
        print!("{name:20} {lines:>10} {each:>18.1}");
        let Some(before) = stored_count(&stored, name)? else {
            println!(" {:>10}", "none");
            continue;
        };
        let change = (each / before - 1.0) * 100.0;
        println!(" {before:>10.1} {change:>+6.1} %");
        if change.abs() > LARGE {
            large.push(format!(
                "{name}: {each:.1} instructions/line, {change:+.1} % from the stored {before:.1}"
            ));
        }
    }
    for line in large {
        println!("{line}");
    }
    if wanted.is_none() && std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(STORED, renewed).map_err(|e| format!("{STORED}: {e}"))?;
    }
    Ok(())
}

/// The stored count of a workload, if there is one.
fn stored_count(stored: &str, name: &str) -> Result<Option<f64>, String> {
    let found = (stored.lines().enumerate().skip(1))
        .filter_map(|(n, line)| Some((n + 1, line.split_once(',')?)))
        .find(|(_, (of, _))| *of == name);
    let Some((line, (_, count))) = found else {
        return Ok(None);
    };
    match count.trim().parse() {
        Ok(count) if count > 0.0 => Ok(Some(count)),
        _ => Err(format!(
            "{STORED}:{line}: `{count}` is no count of instructions"
        )),
    }
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
