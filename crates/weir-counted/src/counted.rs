//! Counts of instructions by valgrind, compared with those of a file.

use std::process::{Command, ExitCode};

/// `NAME` or `NAME/warm`: what the process under valgrind runs.
const TASK: &str = "WEIR_BENCH_TASK";
/// A larger change is said again, in percent. Compilers and C libraries change counts by less.
const LARGE: f64 = 3.0;

/// What is counted.
pub struct Counted<'a> {
    /// Its name on the command line, which is what is counted.
    pub experiment: &'a str,
    /// What instructions are divided by.
    pub unit: &'a str,
    /// The counts to compare with.
    pub stored: &'a str,
    /// What can be run.
    pub names: &'a [&'a str],
    /// Prepares what has this name, and runs what is counted only where that is asked for; how many units these were.
    pub run: fn(&str, bool) -> u64,
}

impl Counted<'_> {
    /// Counts what is wanted, or all.
    pub fn main(&self, wanted: Option<&str>) -> ExitCode {
        if let Ok(task) = std::env::var(TASK) {
            let (name, whole) = match task.strip_suffix("/warm") {
                Some(name) => (name, false),
                None => (task.as_str(), true),
            };
            println!("{}", (self.run)(name, whole));
            return ExitCode::SUCCESS;
        }
        if Command::new("valgrind").arg("--version").output().is_err() {
            println!("instructions: not counted, since valgrind is not on the PATH");
            return ExitCode::SUCCESS;
        }
        match self.compare(wanted) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        }
    }

    /// Counts what is wanted, and prints how far it is from the stored counts.
    fn compare(&self, wanted: Option<&str>) -> Result<(), String> {
        let (path, unit) = (self.stored, self.unit);
        let stored = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        println!(
            "{:20} {:>10} {:>18} {:>10} {:>8}",
            "workload",
            self.experiment,
            format!("instructions/{unit}"),
            "stored",
            "change"
        );
        let mut large = Vec::new();
        let mut renewed = format!("workload,instructions_per_{unit}\n");
        for &name in self.names {
            if wanted.is_some_and(|w| !name.contains(w)) {
                continue;
            }
            let (units, instructions) =
                measure(self.experiment, name).map_err(|why| format!("{name}: {why}"))?;
            let each = instructions as f64 / units as f64;
            renewed += &format!("{name},{each:.1}\n");
            print!("{name:20} {units:>10} {each:>18.1}");
            let Some(before) = stored_count(path, &stored, name)? else {
                println!(" {:>10}", "none");
                continue;
            };
            let change = (each / before - 1.0) * 100.0;
            println!(" {before:>10.1} {change:>+6.1} %");
            if change.abs() > LARGE {
                large.push(format!(
                    "{name}: {each:.1} instructions/{unit}, {change:+.1} % from the stored {before:.1}"
                ));
            }
        }
        for line in large {
            println!("{line}");
        }
        if wanted.is_none() && std::env::var_os("WEIR_UPDATE").is_some() {
            std::fs::write(path, renewed).map_err(|e| format!("{path}: {e}"))?;
        }
        Ok(())
    }
}

/// The stored count of a workload, if there is one.
fn stored_count(path: &str, stored: &str, name: &str) -> Result<Option<f64>, String> {
    let found = (stored.lines().enumerate().skip(1))
        .filter_map(|(n, line)| Some((n + 1, line.split_once(',')?)))
        .find(|(_, (of, _))| *of == name);
    let Some((line, (_, count))) = found else {
        return Ok(None);
    };
    match count.trim().parse() {
        Ok(count) if count > 0.0 => Ok(Some(count)),
        _ => Err(format!(
            "{path}:{line}: `{count}` is no count of instructions"
        )),
    }
}

/// Units of what is counted, and the instructions they took.
fn measure(experiment: &str, name: &str) -> Result<(u64, u64), String> {
    let (_, before) = count(experiment, &format!("{name}/warm"))?;
    let (out, after) = count(experiment, name)?;
    let units = out
        .trim()
        .parse()
        .map_err(|_| format!("no count in `{out}`"))?;
    if units == 0 || after <= before {
        return Err(format!("{units} in {after} - {before} instructions"));
    }
    Ok((units, after - before))
}

/// Runs a task under callgrind: what it printed, and the instructions collected.
fn count(experiment: &str, task: &str) -> Result<(String, u64), String> {
    let own = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .arg(experiment)
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
