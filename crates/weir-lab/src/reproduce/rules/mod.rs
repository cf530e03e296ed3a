//! Which published row is answered from points and how, one file for each paper, and which rows have
//! no answer yet.

mod applications;
mod cxl_ssd;
mod directcxl;
mod flac;
mod interplay;
mod memo;
mod micro23;
mod miku;
mod near_to_far;
mod sap;
mod streamer;
mod supmario;

use crate::reproduce::rule::Rule;

const NO_MISSES: &str = "alone the model's requests find all they want in the caches, so that there is nothing to divide by";
const ROCKS_DB: &str = "needs what makes RocksDB retire fewer instructions with loads from CXL: INT-105 gains nothing here";
const THEIR_PROGRAMS: &str =
    "counts among the paper's own programs; presets and a population of ours are others";
const PARAMETER: &str = "is a parameter of the model's cores, not a result";
const CONTROLLER: &str =
    "needs a controller that regulates tenants, beyond the points of an experiment";
const BEYOND: &str = "needs to know what counters mean, beyond the points of an experiment";
const STATED_TWICE: &str =
    "the text repeats another column of its table; the table's own rows are answered";
const PHASES: &str = "needs the phases of the program; the preset that resembles it has one";
const SINGLE: &str =
    "needs latencies of single requests of a program, which runs of descriptions do not keep";
const POPULATION: &str = "it shaped the population that represents the paper's programs";
const REQUESTS: &str = "needs single requests: when each arrives, and which wait for a hint fault or a move; the \
     model of pages has mean accesses of all threads in a quarter of a second, and no p99";
const BY_EYE: &str = "read off a figure by eye: the paper gives no measure of alike";
const TUNER: &str = "needs a tuner of weights, beyond the points of an experiment";
const KERNEL: &str = "needs the time of functions of the kernel";
const OCCUPANCY: &str = "needs tags of the cache where requests alone fill it";

/// Every rule that needs nothing but points, paper by paper.
pub fn rules() -> Vec<Rule> {
    let mut rules = supmario::rules();
    rules.extend(memo::rules());
    rules.extend(micro23::rules());
    rules.extend(interplay::rules());
    rules.extend(miku::rules());
    rules.extend(applications::rules());
    rules.extend(sap::rules());
    rules.extend(near_to_far::rules());
    rules.extend(cxl_ssd::rules());
    rules.extend(directcxl::rules());
    rules.extend(flac::rules());
    rules.extend(streamer::rules());
    rules
}

/// Rows that no rule of any crate may answer, and what each needs. They come after all others: the
/// first rule for a row counts.
pub fn unanswered() -> Vec<Rule> {
    let reasons = [
        ("CAP", 1..=12, TUNER),
        ("INT", 77..=79, NO_MISSES),
        ("INT", 80..=86, KERNEL),
        ("INT", 91..=92, OCCUPANCY),
        ("INT", 106..=108, ROCKS_DB),
        ("INT", 116..=127, CONTROLLER),
        ("MEM", 51..=52, BY_EYE),
        ("MIC", 40..=40, REQUESTS),
        ("MIK", 54..=57, CONTROLLER),
        ("MIK", 63..=75, CONTROLLER),
        ("SUP", 91..=91, THEIR_PROGRAMS),
        ("SUP", 126..=127, SINGLE),
        ("SUP", 135..=136, POPULATION),
        ("SUP", 108..=141, THEIR_PROGRAMS),
        ("SUP", 144..=145, PARAMETER),
        ("SUP", 185..=190, STATED_TWICE),
        ("SUP", 248..=249, PHASES),
        ("SUP", 142..=246, BEYOND),
    ];
    let rules = reasons.into_iter();
    let rules = rules.flat_map(|(prefix, rows, needs)| Rule::not_modelled(prefix, rows, needs));
    rules.collect()
}
