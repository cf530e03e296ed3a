//! What Intel Memory Latency Checker prints for `--loaded_latency`: its command line, then a table of inject delay,
//! latency and bandwidth. One file may have several outputs, one after the other.

use crate::diagnostic::{Collector, Mistakes, quote};
use crate::units::{GbPerSec, Nanos};

use super::measured::{Curve, CurvePoint, Traffic};

/// What the user says of outputs whose command line does not say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MlcOptions {
    /// MLC's `-W`; 0 for reads only.
    pub traffic: Option<u32>,
    /// Loading threads.
    pub threads: Option<u32>,
}

/// Whether a text is such an output.
pub fn is_mlc_output(text: &str) -> bool {
    let mut head = text.lines().take(60).map(str::trim_start);
    head.any(|line| line.starts_with("Intel(R) Memory Latency Checker") || is_head(line))
}

/// Reads outputs; `name` is that of the machine in the curves.
///
/// # Errors
/// Every mistake in the text, at its line and column.
pub fn parse(file: &str, text: &str, name: &str, said: MlcOptions) -> Result<Vec<Curve>, Mistakes> {
    let mistakes = Collector::new(file, text);
    let mut curves: Vec<Curve> = Vec::new();
    let mut now = curve(name, said);
    let (mut in_table, mut at) = (false, 0);
    for whole in text.split_inclusive('\n') {
        let line = whole.trim();
        let span = at..at + whole.trim_end().len();
        at += whole.len();
        if line.starts_with("Intel(R) Memory Latency Checker") {
            keep(&mut curves, &mut now, name, said);
            in_table = false;
        } else if let Some((_, words)) = line.split_once("Command line parameters:") {
            if let Err(why) = command(words, &mut now, said) {
                let help = "give what it does with --traffic and --threads".to_owned();
                mistakes.report(span, None, why, Some(help));
            }
        } else if is_head(line) {
            in_table = true;
        } else if in_table && !line.is_empty() && !line.starts_with(['=', 'D']) {
            match row(line) {
                Ok(point) => now.points.push(point),
                // What follows a table is not part of it.
                Err(_)
                    if !now.points.is_empty()
                        && !line.starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    in_table = false;
                }
                Err(why) => mistakes.report(span, None, why, None),
            }
        }
    }
    keep(&mut curves, &mut now, name, said);
    if curves.is_empty() {
        let help = "run `mlc --loaded_latency` and keep all that it prints".to_owned();
        mistakes.report(
            0..0,
            None,
            "there is no table of inject delay, latency and bandwidth",
            Some(help),
        );
    }
    mistakes.finish(Some(curves))
}

fn is_head(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words == ["Inject", "Latency", "Bandwidth"]
}

fn curve(name: &str, said: MlcOptions) -> Curve {
    Curve {
        name: name.into(),
        at: String::new(),
        threads: said.threads,
        traffic: Traffic::of_mlc(said.traffic.unwrap_or(0)).unwrap_or(Traffic::READS),
        random: false,
        points: Vec::new(),
    }
}

fn keep(curves: &mut Vec<Curve>, now: &mut Curve, name: &str, said: MlcOptions) {
    let done = std::mem::replace(now, curve(name, said));
    if !done.points.is_empty() {
        curves.push(done);
    }
}

/// Takes from the command line of an output (`-W5 -k1-8 -r`) traffic, cores of the loading threads, and random lines.
///
/// # Errors
/// What is wrong with an option, in words.
pub fn command(words: &str, curve: &mut Curve, said: MlcOptions) -> Result<(), String> {
    let mut words = words.split_whitespace().peekable();
    while let Some(word) = words.next() {
        // A value follows its letter at once, or as the next word.
        let mut value = |letter: &str| -> Option<String> {
            let rest = word.strip_prefix(letter)?;
            match rest.is_empty() {
                true => words
                    .next_if(|next| !next.starts_with('-'))
                    .map(str::to_owned),
                false => Some(rest.to_owned()),
            }
        };
        if word == "-r" {
            curve.random = true;
        } else if let Some(w) = value("-W") {
            let traffic = w.parse().ok().and_then(Traffic::of_mlc);
            curve.traffic = match (said.traffic, traffic) {
                (None, Some(traffic)) => traffic,
                (None, None) => return Err(format!("-W{} is not a known traffic", quote(&w))),
                (Some(_), _) => curve.traffic,
            };
        } else if let Some(cores) = value("-k") {
            let threads = cores_of(&cores);
            curve.threads = match (said.threads, threads) {
                (None, None) => return Err(format!("-k{} is not a list of cores", quote(&cores))),
                (said, threads) => said.or(threads),
            };
        }
    }
    Ok(())
}

/// How many cores `1-8,16` names.
pub fn cores_of(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// `00002  224.41   69311.8`
fn row(line: &str) -> Result<CurvePoint, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, ns, mb_s] = fields[..] else {
        return Err(format!(
            "`{}` is not a row of inject delay, latency and bandwidth",
            quote(line)
        ));
    };
    let number = |column: &str, text: &str| {
        let number = text
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite() && *x > 0.0);
        number.ok_or_else(|| {
            format!(
                "{column} is `{}`, but a positive number is wanted",
                quote(text)
            )
        })
    };
    Ok(CurvePoint {
        latency: Nanos(number("Latency (ns)", ns)?),
        bandwidth: GbPerSec(number("Bandwidth (MB/sec)", mb_s)? / 1e3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
Intel(R) Memory Latency Checker - v3.11
Command line parameters: --loaded_latency -W5 -k1-8 -j0

Using buffer size of 100.000MiB/thread for reads and writes
Measuring Loaded Latencies for the system
Inject\tLatency\tBandwidth
Delay\t(ns)\tMB/sec
==========================
 00000\t339.11\t  59316.1
 20000\t100.20\t    954.6

";

    #[test]
    fn an_output_is_a_curve_with_what_its_command_line_says() {
        assert!(is_mlc_output(OUTPUT));
        let curves = parse("log.txt", OUTPUT, "ours", MlcOptions::default()).unwrap();
        let [curve] = &curves[..] else {
            panic!("one curve")
        };
        assert_eq!(curve.threads, Some(8));
        assert_eq!(Some(curve.traffic), Traffic::of_mlc(5));
        assert_eq!(curve.peak(), GbPerSec(59.3161));
        let twice = format!("{OUTPUT}{}", OUTPUT.replace("-W5 -k1-8", "-R -k 2,4-6"));
        let curves = parse("log.txt", &twice, "ours", MlcOptions::default()).unwrap();
        assert_eq!(curves.len(), 2);
        assert_eq!(curves[1].threads, Some(4));
        assert_eq!(curves[1].traffic, Traffic::READS);
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (from, to, expected) in [
            (
                "339.11",
                "fast",
                "Latency (ns) is `fast`, but a positive number is wanted\n --> log.txt:9:1",
            ),
            ("-W5", "-W1", "-W1 is not a known traffic\n --> log.txt:2:1"),
            ("-k1-8", "-k8-1", "-k8-1 is not a list of cores"),
            ("Inject\t", "In\t", "there is no table of inject delay"),
        ] {
            let text = OUTPUT.replace(from, to);
            let shown = parse("log.txt", &text, "ours", MlcOptions::default());
            let shown = shown.unwrap_err().to_string();
            assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
        }
    }
}
