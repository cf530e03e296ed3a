//! Published figures that need other programs, other hardware or another experiment, and what each of
//! them needs.

use std::ops::RangeInclusive;

/// Why rows have no answer yet.
struct Reason {
    /// The letters that ids of the paper start with.
    prefix: &'static str,
    /// The numbers of the rows.
    numbers: RangeInclusive<u32>,
    /// A word in the row's description that is needed too; empty if none.
    word: &'static str,
    /// What is missing.
    needs: &'static str,
}

const fn reason(
    prefix: &'static str,
    numbers: RangeInclusive<u32>,
    word: &'static str,
    needs: &'static str,
) -> Reason {
    Reason {
        prefix,
        numbers,
        word,
        needs,
    }
}

const NO_MISSES: &str = "alone the model's requests find all they want in the caches, so that there is nothing to divide by";
const APPLICATION: &str =
    "needs the application itself, with its requests and whatever it waits for besides memory";
const THEIR_PROGRAMS: &str =
    "counts among the paper's own programs; presets and a population of ours are others";
const PARAMETER: &str = "is a parameter of the model's cores, and no result of it";
const CONTROLLER: &str =
    "needs a controller that regulates tenants, beyond the points of an experiment";
const L2_PREFETCHES: &str = "needs the L2 prefetches that missed the last-level cache, which the cores of Skylake do not tell from \
     those that hit";
const BEYOND: &str = "needs to know what counters mean, beyond the points of an experiment";
const STATED_TWICE: &str =
    "the text repeats another column of its table; the table's own rows are answered";
const PHASES: &str = "needs the phases of the program; the preset that resembles it has one";
const SINGLE: &str =
    "needs latencies of single requests of a program, which runs of descriptions do not keep";
const POPULATION: &str = "the population that stands for the paper's programs was shaped by it";
const PAGES: &str = "needs page placement that moves pages";
const BY_EYE: &str = "read off a figure by eye: the paper gives no measure of alike";

const TUNER: &str = "needs a tuner of weights, beyond the points of an experiment";

/// The first that fits counts.
const REASONS: &[Reason] = &[
    reason("CAP", 1..=12, "", TUNER),
    reason("INT", 77..=79, "", NO_MISSES),
    reason(
        "INT",
        80..=86,
        "",
        "needs the time of functions of the kernel",
    ),
    reason("INT", 91..=92, "", "needs the cache's occupancy by tenant"),
    reason("INT", 102..=112, "", APPLICATION),
    reason("INT", 123..=124, "", APPLICATION),
    reason("INT", 116..=127, "", CONTROLLER),
    reason("MEM", 51..=52, "", BY_EYE),
    reason("MEM", 65..=78, "", APPLICATION),
    reason("MIK", 54..=57, "", CONTROLLER),
    reason("MIK", 63..=78, "", APPLICATION),
    reason(
        "SUP",
        80..=81,
        "",
        "needs a socket whose uncore clock is lowered",
    ),
    reason("SUP", 91..=91, "", THEIR_PROGRAMS),
    reason("SUP", 126..=127, "", SINGLE),
    reason("SUP", 135..=136, "", POPULATION),
    reason("SUP", 108..=141, "", THEIR_PROGRAMS),
    reason("SUP", 144..=145, "", PARAMETER),
    reason("SUP", 146..=146, "", L2_PREFETCHES),
    reason("SUP", 185..=190, "", STATED_TWICE),
    reason("SUP", 214..=243, "", PAGES),
    reason("SUP", 248..=249, "", PHASES),
    reason("SUP", 142..=246, "", BEYOND),
];

/// What a row needs that is not there, or `None` if no reason is known.
pub fn needs(id: &str, description: &str) -> Option<&'static str> {
    let (prefix, number) = id.split_once('-')?;
    let number: u32 = number.parse().ok()?;
    let fits = |reason: &&Reason| {
        reason.prefix == prefix
            && reason.numbers.contains(&number)
            && description.contains(reason.word)
    };
    REASONS.iter().find(fits).map(|reason| reason.needs)
}
