//! A profile of a recorded trace of accesses.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use weir_lab::Outcome as _;
use weir_linux::input::Input;
use weir_model::document::Document;
use weir_model::heat::SeenPages;
use weir_model::units::{Bytes, Nanos};
use weir_steer::tier::profile::{
    History, MOST_INTERVALS, Profile, ProfileModel, ProfileOf, ProfileSource, Times,
};

use super::profile::Args;
use super::profile_host::bad;
use crate::context::Context;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::files::OfLines;
use crate::keeping::Keeping;
use crate::progress::Progress;

/// The columns of a trace.
const HEAD: &str = "time_s,address,kind";
/// Pages are distinguished.
const PAGE: u64 = 4096;
/// An interval that was not asked for is a multiple of this, in seconds.
const STEP_S: f64 = 0.001;
/// Seconds that a trace lasts at most: more than any clock has.
const LONGEST_S: f64 = 1e12;
/// Lines between two looks at the clock and at a stop request.
const LINES: u64 = 1 << 16;

/// An access.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Access {
    time_s: f64,
    address: u64,
    file: bool,
}

/// Reads a trace twice: once to check it and to find its length, once for its profile.
///
/// # Errors
/// The file cannot be read or has a line that is no access: file, line and column.
pub(super) fn run(args: &Args, file: &Path, context: &Context) -> Result<()> {
    let keeping = Keeping::begin(context, <ProfileModel as weir_lab::Study>::VERB)?;
    let mut accesses = 0;
    let mut last_s = 0.0;
    read(file, context, "checking", |access| {
        accesses += 1;
        last_s = access.time_s;
    })?;
    if accesses == 0 {
        return Err(Failure::request(format!(
            "{} has no accesses",
            file.display()
        )));
    }
    let mut asked = args.study.times.clone();
    // The last access is in an interval, too.
    let least = asked.interval.map_or(STEP_S, |interval| interval.as_secs());
    asked.lasts = Some(Nanos(last_s.max(least) * 1e9));
    let mut times: Times = asked.check(0.0, STEP_S).map_err(bad)?;
    times.intervals = (last_s / times.interval_s).floor() as usize + 1;
    if times.intervals > MOST_INTERVALS as usize {
        return Err(Failure::request(format!(
            "{} has {} intervals, and at most {MOST_INTERVALS} are kept; give a longer --interval",
            file.display(),
            times.intervals
        )));
    }
    let mut history = History::new(times.interval_s);
    let region: std::sync::Arc<str> = "trace".into();
    read(file, context, "reading", |access| {
        let interval = (access.time_s / times.interval_s).floor() as usize;
        while history.intervals() < interval.min(times.intervals - 1) {
            history.next_interval_of_all();
        }
        history.add(&SeenPages {
            space: 0,
            start: access.address / PAGE * PAGE,
            bytes: Bytes(PAGE),
            page: Bytes(PAGE),
            file: access.file,
            region: region.clone(),
            touches: 1.0,
            frame: 0,
        });
    })?;
    history.next_interval_of_all();
    let output = history.profile(ProfileOf {
        source: ProfileSource::Trace,
        of: file.display().to_string(),
        how: format!(
            "{accesses} {} of a trace, in pages of {}",
            if accesses == 1 { "access" } else { "accesses" },
            Bytes(PAGE)
        ),
        hot_s: times.hot_s,
        warm_s: times.warm_s,
        granule: Bytes(PAGE),
        most_per_s: None,
    });
    let header = header(Profile::SCHEMA, context, "");
    keeping.put(Document { header, output }, None)
}

/// Calls with each access, in order.
fn read(path: &Path, context: &Context, what: &str, mut of: impl FnMut(Access)) -> Result<()> {
    let name = path.display().to_string();
    let opened = Input::open(path).with_context(|| format!("cannot open {name}"));
    let file = opened.map_err(Failure::Request)?;
    let length = file.file().metadata().map_or(0, |data| data.len());
    let mut progress = Progress::percent(&format!("{what} the trace"), context.global.quiet);
    let (mut lines, mut bytes, mut before) = (0_u64, 0_u64, 0.0);
    let mut line = String::new();
    let mut reader = BufReader::new(OfLines::new(file));
    loop {
        line.clear();
        let read = reader.read_line(&mut line);
        let read = read.map_err(|why| Failure::reading(anyhow!("{name}:{}: {why}", lines + 1)))?;
        if read == 0 {
            break;
        }
        lines += 1;
        bytes += read as u64;
        let text = line.trim_end_matches(['\n', '\r']);
        let wrong = |(column, why): (usize, String)| {
            Failure::request(format!("{name}:{lines}:{column}: {why}"))
        };
        if lines == 1 {
            if text.trim_start_matches('\u{feff}') != HEAD {
                return Err(wrong((1, format!("the first line must be `{HEAD}`"))));
            }
            continue;
        }
        if text.is_empty() {
            continue;
        }
        let access = parse(text, before).map_err(wrong)?;
        before = access.time_s;
        of(access);
        if lines % LINES == 0 {
            if context.stop.requested() {
                return Err(Failure::Partial(
                    "stopped: nothing is kept of a trace that was not read to its end".into(),
                ));
            }
            let share = bytes as f64 / length.max(1) as f64;
            progress.share(share);
        }
    }
    progress.end();
    Ok(())
}

fn no_kind(text: &str) -> String {
    format!(
        "`{}` is no kind; write anon or file",
        text.chars().take(40).collect::<String>()
    )
}

/// A line, or the column in characters at which it is wrong, and why.
fn parse(line: &str, before: f64) -> std::result::Result<Access, (usize, String)> {
    let mut fields = [(1, ""); 3];
    let mut column = 1;
    let mut count = 0;
    for field in line.split(',') {
        if let Some(place) = fields.get_mut(count) {
            *place = (column, field.trim());
        }
        if count == 3 {
            return Err((
                column,
                format!("there are more than three fields; write {HEAD}"),
            ));
        }
        count += 1;
        column += field.chars().count() + 1;
    }
    if count < 3 {
        return Err((column - 1, format!("a field is missing; write {HEAD}")));
    }
    let [(at, time), (at_address, address), (at_kind, kind)] = fields;
    let shown = |text: &str| text.chars().take(40).collect::<String>();
    let time_s: f64 = time
        .parse()
        .ok()
        .filter(|t| (0.0..=LONGEST_S).contains(t))
        .ok_or_else(|| {
            let why = format!(
                "`{}` is no time in seconds, from 0 to {LONGEST_S:e}",
                shown(time)
            );
            (at, why)
        })?;
    if time_s < before {
        let why = format!("time goes back, from {before} s; sort the trace by time");
        return Err((at, why));
    }
    let number = match address.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => address.parse().ok(),
    };
    let address = number.ok_or_else(|| {
        let why = format!(
            "`{}` is no address, such as 0x7f00 or 32512",
            shown(address)
        );
        (at_address, why)
    })?;
    let file = match kind {
        "anon" => false,
        "file" => true,
        other => return Err((at_kind, no_kind(other))),
    };
    Ok(Access {
        time_s,
        address,
        file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_access_or_wrong_at_a_column() {
        let access = parse("0.5, 0x1000,file", 0.0).unwrap();
        assert_eq!(
            access,
            Access {
                time_s: 0.5,
                address: 4096,
                file: true
            }
        );
        assert_eq!(parse("1,7,anon", 0.5).unwrap().address, 7);
        for (line, column, said) in [
            ("x,1,anon", 1, "time"),
            ("-1,1,anon", 1, "time"),
            ("1e300,1,anon", 1, "from 0 to 1e12"),
            ("0.1,1,anon", 1, "back"),
            ("1.25,0xg,anon", 6, "address"),
            ("1,2,heap", 5, "anon or file"),
            ("1,2", 4, "missing"),
            ("1,2,anon,3", 10, "more than three"),
        ] {
            let (at, why) = parse(line, 0.5).unwrap_err();
            assert_eq!(at, column, "{line}: {why}");
            assert!(why.contains(said), "{line}: {why}");
        }
    }
}
