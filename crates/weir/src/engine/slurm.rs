//! Workers as a job array of Slurm.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::round::{Round, Share, TRIES};
use crate::failure::{Failure, Result};

/// The time between two looks at the parts.
const LOOK: Duration = Duration::from_millis(200);

/// Submits the parts that are not done as one array, until all are.
pub(super) fn carry_out(round: &mut Round<'_>) -> Result<()> {
    for tried in 1..=TRIES {
        let left: Vec<usize> = (0..round.shares.len())
            .filter(|&place| code(&round.shares[place]).is_none_or(|code| code != 0))
            .collect();
        if left.is_empty() || round.context.stop.requested() {
            break;
        }
        submit(round, &left)?;
        for &place in &left {
            let share = &round.shares[place];
            let said = fs::read_to_string(log(share)).unwrap_or_default();
            let code = code(share);
            if code == Some(0) || round.context.stop.requested() {
                continue;
            }
            if let Some(failure) = round.failure(share, code, &said) {
                return Err(failure);
            }
            if tried == TRIES {
                let how = code.map_or_else(
                    || "was ended".into(),
                    |code| format!("ended with exit code {code}"),
                );
                return Err(round.gave_up(share, &how, &said));
            }
        }
    }
    Ok(())
}

/// The exit code of a part's worker, once it has ended by itself.
fn code(share: &Share) -> Option<i32> {
    fs::read_to_string(share.store.with_extension("code"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn log(share: &Share) -> PathBuf {
    share.store.with_extension("log")
}

/// Submits an array, and waits for its end.
fn submit(round: &mut Round<'_>, left: &[usize]) -> Result<()> {
    let written = |path: &PathBuf, text: String| {
        fs::write(path, text).map_err(|error| {
            Failure::Work(
                anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
            )
        })
    };
    for &place in left {
        let share = &round.shares[place];
        let _ = fs::remove_file(share.store.with_extension("code"));
        let words: Vec<_> = share
            .command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        let quoted = |path: PathBuf| shell_words::quote(&path.to_string_lossy()).into_owned();
        let code = quoted(share.store.with_extension("code"));
        written(
            &round.folder.join(format!("task-{place}.sh")),
            format!(
                "{} >/dev/null 2>{}\ncode=$?\n[ $code -gt 4 ] || echo $code >{code}\nexit $code\n",
                shell_words::join(&words),
                quoted(log(share)),
            ),
        )?;
    }
    let script = round.folder.join("array.sh");
    let folder = shell_words::quote(&round.folder.to_string_lossy()).into_owned();
    written(
        &script,
        format!(
            "#!/bin/sh\nexport WEIR_THREADS=${{SLURM_CPUS_PER_TASK:-1}}\nexec sh {folder}/task-$SLURM_ARRAY_TASK_ID.sh\n"
        ),
    )?;
    let places: Vec<String> = left.iter().map(usize::to_string).collect();
    let most = round
        .workers
        .map_or_else(String::new, |workers| format!("%{workers}"));
    let mut command = Command::new("sbatch");
    command
        .args([
            "--parsable",
            "--job-name=weir",
            "--requeue",
            "--output=/dev/null",
        ])
        .arg(format!("--array={}{most}", places.join(",")))
        .arg(&script)
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| {
        Failure::Missing(anyhow::anyhow!(
            "Slurm cannot be used (sbatch: {error}): `apt install slurm-client` installs its commands, and a cluster needs slurmctld and slurmd"
        ))
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Failure::work(format!("sbatch: {}", said.trim())));
    }
    let job = String::from_utf8_lossy(&output.stdout);
    let job = job.trim().split(';').next().unwrap_or_default().to_owned();
    let mut done = vec![false; left.len()];
    loop {
        for (seen, &place) in done.iter_mut().zip(left) {
            if !*seen && code(&round.shares[place]) == Some(0) {
                *seen = true;
                round.is_done();
            }
        }
        let stops = round.context.stop.requested();
        if stops {
            let _ = Command::new("scancel").arg(&job).status();
        }
        // Tasks that a controller has, which is restarted, may not be submitted once more.
        if done.iter().all(|done| *done) || !is_queued(&job).unwrap_or(!stops) {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
}

/// Whether tasks of a job wait or run; unknown where the controller does not answer. Slurm forgets a job some time after its end.
fn is_queued(job: &str) -> Option<bool> {
    let asked = Command::new("squeue")
        .args(["--noheader", "--jobs", job])
        .output();
    let Ok(asked) = asked else { return Some(false) };
    let said = String::from_utf8_lossy(&asked.stderr);
    match asked.status.success() {
        true => Some(!asked.stdout.trim_ascii().is_empty()),
        false => said.contains("Invalid job id").then_some(false),
    }
}
