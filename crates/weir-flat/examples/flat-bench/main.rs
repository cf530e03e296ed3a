//! What attaching pages is worth on this machine, against the page cache of a file system, tmpfs and DAX.
//!
//! All variants run in every round, in an order that turns; a figure is the median of the rounds, a ratio the median of
//! the rounds' ratios. `docs/flat.md` says what the lines are.

mod lines;
mod report;
mod variants;

use std::path::PathBuf;
use std::process::ExitCode;

use lines::{Line, Sample};
use variants::Outcome;

/// Bytes of one read or write, as in the paper.
pub const IO: usize = 2 << 20;

/// What is to be measured.
pub struct Asked {
    folder: PathBuf,
    tmpfs: Option<PathBuf>,
    dax: Option<PathBuf>,
    /// Bytes of each file; there are 16.
    file: usize,
    rounds: usize,
    /// Reads or writes of a thread in a round.
    ops: usize,
    threads: Vec<usize>,
    json: Option<PathBuf>,
}

const HELP: &str =
    "flat-bench --dir DIR [--tmpfs DIR] [--dax DIR] [--mib MIB] [--rounds N] [--ops N] \
[--threads 1,2,4] [--json FILE]
  --dir      a folder on the file system to compare with; the store's medium is there too
  --tmpfs    a folder on tmpfs (/dev/shm where it exists)
  --dax      a folder on a file system that is mounted with dax=always; a second store is there
  --mib      size of all files, 512
  --rounds   rounds, 9
  --ops      2 MB reads or writes of each thread in a round, 48
  --threads  1,2,4,8,16
  --json     where all figures go as JSON";

fn arguments() -> Result<Asked, String> {
    let shm = PathBuf::from("/dev/shm");
    let mut asked = Asked {
        folder: PathBuf::new(),
        tmpfs: shm.is_dir().then_some(shm),
        dax: None,
        file: 32 << 20,
        rounds: 9,
        ops: 48,
        threads: vec![1, 2, 4, 8, 16],
        json: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .ok_or_else(|| format!("{word} needs a value\n{HELP}"))
        };
        let number = |text: String| text.parse::<usize>().ok().filter(|number| *number > 0);
        let positive = |text: String| {
            number(text.clone()).ok_or_else(|| format!("{text} is no number above 0"))
        };
        match word.as_str() {
            "--dir" => asked.folder = value()?.into(),
            "--tmpfs" => asked.tmpfs = Some(value()?.into()),
            "--dax" => asked.dax = Some(value()?.into()),
            "--mib" => asked.file = (positive(value()?)?.max(64) << 20) / 16 / IO * IO,
            "--rounds" => asked.rounds = positive(value()?)?,
            "--ops" => asked.ops = positive(value()?)?,
            "--threads" => {
                asked.threads = value()?
                    .split(',')
                    .map(|text| positive(text.to_owned()))
                    .collect::<Result<_, _>>()?;
            }
            "--json" => asked.json = Some(value()?.into()),
            _ => return Err(format!("{word} is not known\n{HELP}")),
        }
    }
    if asked.folder.as_os_str().is_empty() {
        return Err(HELP.to_owned());
    }
    if asked.threads.iter().any(|threads| *threads > 16) {
        return Err("there are 16 files, one for each thread: at most 16 threads".to_owned());
    }
    Ok(asked)
}

fn measure(asked: &Asked) -> Outcome<Vec<Sample>> {
    let variants = variants::all(asked)?;
    let mut samples = Vec::new();
    for round in 0..asked.rounds {
        eprintln!("round {} of {}", round + 1, asked.rounds);
        for line in Line::all(&asked.threads) {
            for nth in 0..variants.len() {
                // Forwards in one round and backwards in the next, from another one each time.
                let nth = if round % 2 == 0 {
                    nth
                } else {
                    variants.len() - 1 - nth
                };
                let variant = &variants[(nth + round / 2) % variants.len()];
                if let Some(figures) = line.measure(variant, asked.ops)? {
                    samples.push(Sample {
                        round,
                        line,
                        variant: variant.name(),
                        figures,
                    });
                }
            }
        }
    }
    Ok(samples)
}

fn main() -> ExitCode {
    let asked = match arguments() {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    match measure(&asked).and_then(|samples| report::print(&asked, &samples)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("flat-bench: {why}");
            ExitCode::FAILURE
        }
    }
}
