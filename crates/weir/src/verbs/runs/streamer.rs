//! Files as STREAMer writes them (Fridman et al., 2023): a line for each thread count, with what STREAM prints for each
//! kernel in MB/s; a file for each memory, access and affinity.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use weir_lab::import::stream::{self, HEAD, Lines};
use weir_lab::stream::Kernel;

use crate::context::Context;
use crate::context::Format;
use crate::failure::{Failure, Result};
use crate::files;
use crate::output::{Column, Table, figure, print, wrap};
use crate::store::StoredRun;
use crate::stored;

/// The longest file that is read.
const MOST_BYTES: usize = 1 << 20;

/// The files of a run, by what they are of: `dram`, `remote-close`, `transaction`.
fn files(run: &StoredRun) -> Result<BTreeMap<String, Lines>> {
    let frame = stored::frame(run, None)?;
    let column = |name: &str| frame.columns.iter().position(|column| column.name == name);
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    for row in &frame.rows {
        let value = |name: &str| {
            column(name)
                .and_then(|at| row.get(at))
                .unwrap_or(&Value::Null)
        };
        let is_other = value("experiment")
            .as_str()
            .is_some_and(|of| of != "stream");
        let kernel = value("kernel").as_str();
        let at = Kernel::ALL
            .iter()
            .position(|one| Some(one.name()) == kernel);
        let (Some(at), Some(threads), Some(gbps)) =
            (at, value("threads").as_u64(), value("gbps").as_f64())
        else {
            continue;
        };
        if is_other {
            continue;
        }
        let mut parts: Vec<String> = ["tier", "op", "durable", "affinity"]
            .iter()
            .filter_map(|name| value(name).as_str())
            .filter(|part| *part != "st")
            .map(str::to_owned)
            .collect();
        if let Some(socket) = value("socket").as_u64().filter(|&socket| socket > 0) {
            parts.push(format!("socket{socket}"));
        }
        if value("prefetch") == &Value::Bool(false) {
            parts.push("no-prefetch".into());
        }
        let lines = files.entry(parts.join("-")).or_default();
        lines.entry(threads as u32).or_default()[at] = Some(gbps * 1e3);
    }
    match files.is_empty() {
        true => Err(Failure::request(format!(
            "run {} has no figures of STREAM",
            run.summary.id
        ))),
        false => Ok(files),
    }
}

fn text(lines: &Lines) -> String {
    let mut text = format!("{HEAD}\n");
    for (threads, kernels) in lines {
        let cells = kernels.map(|mbps| mbps.map_or_else(String::new, |mbps| format!("{mbps:.1}")));
        text.push_str(&format!("{threads},{}\n", cells.join(",")));
    }
    text
}

/// Writes a run: one file to standard output or where it is named, several into a folder.
///
/// # Errors
/// The run has no figures of STREAM, or several files and no folder for them, or one cannot be written.
pub fn write(run: &StoredRun, output: Option<&Path>) -> Result<()> {
    let texts = files(run)?.into_iter();
    let texts = texts.map(|(name, lines)| (format!("{name}.csv"), text(&lines)));
    write_all(run, &texts.collect(), output)
}

/// Writes the files of a run, by their names: one to standard output or where it is named, several into a folder.
///
/// # Errors
/// There are several and no folder for them, or one cannot be written.
pub fn write_all(
    run: &StoredRun,
    all: &BTreeMap<String, String>,
    output: Option<&Path>,
) -> Result<()> {
    let mut each = all.iter();
    match (output, each.next(), each.next()) {
        (None, Some((_, text)), None) => print(text),
        (Some(path), Some((_, text)), None) if !path.is_dir() => files::write(path, text),
        (Some(folder), ..) if folder.is_dir() => {
            (all.iter()).try_for_each(|(name, text)| files::write(&folder.join(name), text))
        }
        _ => {
            let names: Vec<&str> = all.keys().map(|name| stem(name)).collect();
            Err(Failure::request(format!(
                "run {} makes {} files ({}); name a folder that exists with -o",
                run.summary.id,
                names.len(),
                names.join(", ")
            )))
        }
    }
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Reads a file.
fn read(path: &Path) -> Result<Lines> {
    let all = files::text(path, "STREAM file", MOST_BYTES)?;
    let (lines, _) = stream::lines(&path.display().to_string(), &all)
        .map_err(|error| Failure::Request(error.into()))?;
    Ok(lines)
}

/// Compares a run with a file, kernel by kernel.
///
/// # Errors
/// The file is wrong, the run makes several files, or they have no thread count in common.
pub fn compare(run: &StoredRun, path: &Path, context: &Context) -> Result<()> {
    let theirs = read(path)?;
    let ours = files(run)?;
    let ours = match ours.iter().collect::<Vec<_>>().as_slice() {
        [(_, one)] => (*one).clone(),
        several => {
            return Err(Failure::request(format!(
                "run {} has figures of {} memories or accesses, and the file of one; measure that one alone",
                run.summary.id,
                several.len()
            )));
        }
    };
    let mut rows = Vec::new();
    for (threads, mbps) in &ours {
        let Some(other) = theirs.get(threads) else {
            continue;
        };
        for (at, kernel) in Kernel::ALL.iter().enumerate() {
            if let (Some(own), Some(other)) = (mbps[at], other[at]) {
                rows.push((*threads, kernel.name(), own, other));
            }
        }
    }
    if rows.is_empty() {
        return Err(Failure::request(format!(
            "run {} and {} have no thread count in common",
            run.summary.id,
            path.display()
        )));
    }
    let mut off: Vec<f64> = rows.iter().map(|row| (row.3 / row.2 - 1.0).abs()).collect();
    off.sort_by(f64::total_cmp);
    let median = (off[(off.len() - 1) / 2] + off[off.len() / 2]) / 2.0;
    let mut table = Table::new(&[
        Column::number("threads"),
        Column::words("kernel"),
        Column::number("A"),
        Column::number("B"),
        Column::number("B/A"),
    ]);
    for (threads, kernel, own, other) in &rows {
        table.row([
            threads.to_string(),
            (*kernel).to_owned(),
            figure(*own),
            figure(*other),
            format!("{:.3}", other / own),
        ]);
    }
    match context.global.format {
        Format::Table => {
            let head = format!(
                "A is run {} on {}, B is {}, both in MB/s; the median difference of {} figures is {:.1} %",
                run.summary.id,
                run.summary.machine,
                path.display(),
                rows.len(),
                100.0 * median
            );
            print(&format!("{}\n{}", wrap(&head, "", "  "), table))
        }
        Format::Csv => {
            let lines = rows
                .iter()
                .map(|(threads, kernel, own, other)| format!("{threads},{kernel},{own},{other}\n"));
            print(&format!(
                "threads,kernel,a,b\n{}",
                lines.collect::<String>()
            ))
        }
        Format::Json => Err(Failure::request(
            "a comparison with a file is a table or CSV; export the run as JSON for other tools",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_mistakes_name_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.csv");
        let lines = Lines::from([
            (1, [Some(8140.2), Some(6716.8), None, Some(6852.5)]),
            (10, [Some(21356.9); 4]),
        ]);
        std::fs::write(&path, text(&lines)).unwrap();
        assert_eq!(read(&path).unwrap(), lines);
        for (wrong, words) in [
            ("threads,copy\n", ":1: "),
            ("threads,copy,scale,add,triad\n1,2,3,4\n", ":2: 3 values"),
            (
                "threads,copy,scale,add,triad\n\nmany,2,3,4,5\n",
                ":3: `many`",
            ),
            (
                "threads,copy,scale,add,triad\n1,-2,3,4,5\n",
                "`-2` is no bandwidth",
            ),
            (
                "threads,copy,scale,add,triad\n1,2,3,4,5\n1,2,3,4,5\n",
                "twice",
            ),
        ] {
            std::fs::write(&path, wrong).unwrap();
            let reason = read(&path).err().and_then(|failure| failure.message());
            assert!(
                reason
                    .as_deref()
                    .is_some_and(|reason| reason.contains(words)),
                "{reason:?}"
            );
        }
    }
}
