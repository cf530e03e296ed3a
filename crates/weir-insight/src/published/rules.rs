//! Which row is answered by what.

pub use super::climbs::ClimbFigure;

/// A platform, and the tier beside its local DRAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The platform expression.
    pub platform: &'static str,
    /// The slower tier.
    pub to: &'static str,
}

/// Which of several figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The least.
    Low,
    /// The greatest.
    High,
}

impl End {
    /// Of figures of which each must be there.
    pub(super) fn of(
        self,
        figures: impl Iterator<Item = Result<f64, String>>,
    ) -> Result<f64, String> {
        let all = figures.collect::<Result<Vec<f64>, String>>()?;
        let chosen = match self {
            End::Low => all.into_iter().reduce(f64::min),
            End::High => all.into_iter().reduce(f64::max),
        };
        chosen.ok_or_else(|| "none of them does".into())
    }
}

/// How good predictions of a component are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quality {
    /// Pearson's correlation with what was measured.
    Pearson,
    /// Percent of them within 2 points.
    Within2,
    /// Within 5 points.
    Within5,
    /// Within 10 points.
    Within10,
}

/// A figure of a population that ran on both tiers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// How good predictions of a component, or of the `total`, are.
    Line(&'static str, Quality),
    /// Percent of the workloads whose causes account for their slowdown within 5 points.
    Explained,
    /// Points by which the causes miss the slowdown, for all but 5 % of the workloads.
    Unexplained,
    /// Percent of the workloads that lose at least 5 points to a component.
    Slowed(&'static str),
    /// Pearson's correlation of stalls on misses, as they are, with the slowdown by DRAM.
    StallsAlone,
    /// Slowdown in percent, of the workloads that draw 10 to 20 GB/s.
    AtTenToTwenty(End),
}

/// A figure of workloads that wait for bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShotFigure {
    /// The best share of pages on the slower tier, of those that gain more than 5 %.
    ShareOfGainers,
    /// Of those that gain less.
    ShareOfOthers,
    /// What best-shot gains over local DRAM.
    Gain,
    /// How many times as long it takes with every page on the slower tier.
    AllSlow,
}

/// A figure of a preset that ran on both tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresetFigure {
    /// How much longer it takes, in percent.
    Slowdown,
    /// How many times as long.
    Times,
    /// Slowdown by DRAM in percent of all slowdown.
    DramShare,
    /// What it draws from the slower tier, in GB/s.
    Bandwidth,
}

/// What a row asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Question {
    /// A figure of a population, the least or greatest of some pairs.
    Population(&'static [Pair], End, Figure),
    /// A figure of presets, the least or greatest of all of them on all of some pairs.
    Presets(&'static [Pair], &'static [&'static str], PresetFigure, End),
    /// The greatest slowdown by caches of a population without prefetchers, as a share.
    CacheWithoutPrefetch(Pair),
    /// A figure of workloads that wait for bandwidth when all cores run them.
    Shots(Pair, ShotFigure, End),
    /// A figure of Caption's climbs.
    Climbs(Pair, ClimbFigure, End),
    /// A step of Caption's published path.
    Path(usize),
}

impl Question {
    pub(super) fn pairs(self) -> Vec<Pair> {
        match self {
            Question::Population(pairs, ..) | Question::Presets(pairs, ..) => pairs.to_vec(),
            Question::CacheWithoutPrefetch(pair)
            | Question::Shots(pair, ..)
            | Question::Climbs(pair, ..) => vec![pair],
            Question::Path(_) => Vec::new(),
        }
    }

    /// The unit of the figure, as published data spells it.
    pub const fn unit(self) -> &'static str {
        match self {
            Question::Population(_, _, Figure::Line(_, Quality::Pearson) | Figure::StallsAlone) => {
                "r"
            }
            Question::CacheWithoutPrefetch(_) => "fraction",
            Question::Climbs(_, ClimbFigure::Tunings, _) => "runs",
            Question::Shots(_, ShotFigure::AllSlow, _)
            | Question::Presets(_, _, PresetFigure::Times, _) => "x",
            Question::Presets(_, _, PresetFigure::Bandwidth, _) => "GB/s",
            _ => "%",
        }
    }
}

/// How a row is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The row.
    pub id: &'static str,
    /// What it asks.
    pub question: Question,
    /// What to know when comparing.
    pub note: &'static str,
}

/// The rule of a row.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

const ZNUMA: Pair = Pair {
    platform: "skx2s",
    to: "remote",
};
const CXL_A: Pair = Pair {
    platform: "emr2s+cxl-a",
    to: "cxl0",
};
const CXL_B: Pair = Pair {
    platform: "emr2s+cxl-b",
    to: "cxl0",
};
const CXL_C: Pair = Pair {
    platform: "emr2s+cxl-c",
    to: "cxl0",
};
const CXL_D: Pair = Pair {
    platform: "emr2s+cxl-d",
    to: "cxl0",
};
/// The other socket of the servers that have the cards.
const EMR_NUMA: Pair = Pair {
    platform: "emr2s",
    to: "remote",
};
/// Cards behind the other socket.
const REMOTE_CXL: &[Pair] = &[
    Pair {
        platform: "emr2s+cxl-a@remote",
        to: "cxl0",
    },
    Pair {
        platform: "emr2s+cxl-b@remote",
        to: "cxl0",
    },
];
const TWO_CXL_A: Pair = Pair {
    platform: "emr2s+2xcxl-a@interleaved",
    to: "cxl0",
};

/// One cluster with two channels, and the card.
const CLUSTER: Pair = Pair {
    platform: "micro23-snc4",
    to: "cxl0",
};

const OF_POPULATION: &str =
    "over a population of ours (`weir predict --population`), not over the paper's programs";
const SHAPED: &str = "over a population of ours whose density of accesses was chosen so that about as many are slowed by \
                      more than half as in the paper; the parts were not";
const OF_PRESETS: &str = "of a preset that resembles it, on one core";
const CROWDS: &str =
    "of presets that resemble the paper's four codes of SPEC, its Llama and STREAM, on all cores";

const OF_FOUR: &str = "of presets that resemble the paper's four codes, 16 instances each, without its mixes; the tuner goes by \
                       the paper's estimate with its published coefficients, in which the wait in the controllers of local \
                       memory outweighs the rest here; by run times it settles at 9 to 23 %";
const AS_SHOWN: &str = "the tuner is told what the figure shows of the four runs before: better, better, worse, better";

const fn climb(id: &'static str, figure: ClimbFigure, end: End) -> Rule {
    Rule {
        id,
        question: Question::Climbs(CLUSTER, figure, end),
        note: OF_FOUR,
    }
}

const fn path(id: &'static str, step: usize) -> Rule {
    Rule {
        id,
        question: Question::Path(step),
        note: AS_SHOWN,
    }
}

const fn of(id: &'static str, pair: &'static [Pair], end: End, figure: Figure) -> Rule {
    Rule {
        id,
        question: Question::Population(pair, end, figure),
        note: OF_POPULATION,
    }
}

const fn line(
    id: &'static str,
    pair: &'static [Pair],
    what: &'static str,
    quality: Quality,
) -> Rule {
    of(id, pair, End::Low, Figure::Line(what, quality))
}

const fn shot(id: &'static str, pair: Pair, figure: ShotFigure, end: End) -> Rule {
    Rule {
        id,
        question: Question::Shots(pair, figure, end),
        note: CROWDS,
    }
}

const fn presets(
    id: &'static str,
    pairs: &'static [Pair],
    presets: &'static [&'static str],
    figure: PresetFigure,
    end: End,
) -> Rule {
    Rule {
        id,
        question: Question::Presets(pairs, presets, figure, end),
        note: OF_PRESETS,
    }
}

const fn slowdown(
    id: &'static str,
    pairs: &'static [Pair],
    preset: &'static [&'static str],
) -> Rule {
    presets(id, pairs, preset, PresetFigure::Slowdown, End::High)
}

const fn share(id: &'static str, names: &'static [&'static str]) -> Rule {
    presets(id, A, names, PresetFigure::DramShare, End::Low)
}

const Z: &[Pair] = &[ZNUMA];
const A: &[Pair] = &[CXL_A];
const B: &[Pair] = &[CXL_B];
const C: &[Pair] = &[CXL_C];
const NUMA: &[Pair] = &[EMR_NUMA];
const ALL: &[Pair] = &[ZNUMA, CXL_A, CXL_B];
const GCC: &[&str] = &["gcc-like"];
const BWAVES: &[&str] = &["bwaves-like"];
const OMNETPP: &[&str] = &["omnetpp-like"];

/// SupMario (arXiv 2409.14317), sections 3 to 6.
pub const RULES: &[Rule] = &[
    slowdown("SUP-108", NUMA, &["lbm-like", "fotonik-like"]),
    slowdown("SUP-114", NUMA, GCC),
    slowdown("SUP-115", A, GCC),
    slowdown("SUP-116", B, GCC),
    slowdown("SUP-117", C, GCC),
    slowdown("SUP-118", NUMA, BWAVES),
    slowdown("SUP-119", A, BWAVES),
    slowdown("SUP-120", B, BWAVES),
    slowdown("SUP-121", C, BWAVES),
    presets(
        "SUP-122",
        C,
        &["fotonik-like"],
        PresetFigure::Times,
        End::High,
    ),
    slowdown("SUP-123", &[CXL_A, CXL_B, CXL_C, CXL_D], OMNETPP),
    presets(
        "SUP-124",
        REMOTE_CXL,
        OMNETPP,
        PresetFigure::Times,
        End::High,
    ),
    presets(
        "SUP-125",
        REMOTE_CXL,
        OMNETPP,
        PresetFigure::Bandwidth,
        End::High,
    ),
    of("SUP-142", ALL, End::High, Figure::Unexplained),
    of("SUP-143", ALL, End::Low, Figure::Explained),
    Rule {
        note: SHAPED,
        ..of("SUP-147", ALL, End::Low, Figure::Slowed("cache"))
    },
    Rule {
        note: SHAPED,
        ..of("SUP-148", ALL, End::Low, Figure::Slowed("DRAM"))
    },
    share("SUP-149", &["dlrm-embedding", "gpt2-decode"]),
    share("SUP-150", &["gcc-like"]),
    of("SUP-151", A, End::Low, Figure::AtTenToTwenty(End::Low)),
    of("SUP-152", A, End::High, Figure::AtTenToTwenty(End::High)),
    of("SUP-156", Z, End::Low, Figure::StallsAlone),
    line("SUP-157", Z, "DRAM", Quality::Pearson),
    line("SUP-158", Z, "DRAM", Quality::Pearson),
    line("SUP-159", A, "DRAM", Quality::Pearson),
    line("SUP-160", B, "DRAM", Quality::Pearson),
    line("SUP-161", Z, "DRAM", Quality::Within5),
    line("SUP-162", A, "DRAM", Quality::Within5),
    line("SUP-163", B, "DRAM", Quality::Within5),
    line("SUP-164", Z, "DRAM", Quality::Within10),
    line("SUP-165", A, "DRAM", Quality::Within10),
    line("SUP-166", B, "DRAM", Quality::Within10),
    line("SUP-167", Z, "cache", Quality::Pearson),
    line("SUP-168", A, "cache", Quality::Pearson),
    line("SUP-169", B, "cache", Quality::Pearson),
    line("SUP-170", Z, "cache", Quality::Within5),
    line("SUP-171", A, "cache", Quality::Within5),
    line("SUP-172", B, "cache", Quality::Within5),
    line("SUP-173", Z, "cache", Quality::Within10),
    line("SUP-174", A, "cache", Quality::Within10),
    line("SUP-175", B, "cache", Quality::Within10),
    line("SUP-176", Z, "store", Quality::Pearson),
    line("SUP-177", A, "store", Quality::Pearson),
    line("SUP-178", B, "store", Quality::Pearson),
    line("SUP-179", Z, "store", Quality::Within2),
    line("SUP-180", A, "store", Quality::Within2),
    line("SUP-181", B, "store", Quality::Within2),
    line("SUP-182", Z, "store", Quality::Within5),
    line("SUP-183", A, "store", Quality::Within5),
    line("SUP-184", B, "store", Quality::Within5),
    line("SUP-191", Z, "total", Quality::Within10),
    of(
        "SUP-192",
        &[CXL_A, CXL_B],
        End::Low,
        Figure::Line("total", Quality::Within10),
    ),
    of(
        "SUP-193",
        &[CXL_A, CXL_B],
        End::High,
        Figure::Line("total", Quality::Within10),
    ),
    shot("SUP-199", ZNUMA, ShotFigure::ShareOfGainers, End::Low),
    shot("SUP-200", ZNUMA, ShotFigure::ShareOfGainers, End::High),
    shot("SUP-201", ZNUMA, ShotFigure::ShareOfOthers, End::Low),
    shot("SUP-202", ZNUMA, ShotFigure::ShareOfOthers, End::High),
    shot("SUP-205", ZNUMA, ShotFigure::Gain, End::Low),
    shot("SUP-206", ZNUMA, ShotFigure::Gain, End::High),
    shot("SUP-207", CXL_A, ShotFigure::Gain, End::Low),
    shot("SUP-208", CXL_A, ShotFigure::Gain, End::High),
    shot("SUP-209", TWO_CXL_A, ShotFigure::Gain, End::Low),
    shot("SUP-210", TWO_CXL_A, ShotFigure::Gain, End::High),
    share("SUP-214", &["tc-twitter"]),
    Rule {
        id: "SUP-244",
        question: Question::CacheWithoutPrefetch(CXL_A),
        note: OF_POPULATION,
    },
    shot("SUP-245", CXL_A, ShotFigure::AllSlow, End::Low),
    shot("SUP-246", CXL_A, ShotFigure::AllSlow, End::High),
    path("CAP-001", 0),
    path("CAP-002", 1),
    path("CAP-003", 2),
    path("CAP-004", 3),
    path("CAP-005", 4),
    climb("CAP-010", ClimbFigure::Share, End::Low),
    climb("CAP-011", ClimbFigure::Share, End::High),
    climb("CAP-012", ClimbFigure::Tunings, End::High),
];
