//! `weir place levels`: what each kind of a database's objects loses on each slower tier.
//!
//! *CXL and the Return of Scale-Up Database Engines* (arXiv 2401.01150, section 3) has three levels of memory: an expander
//! of the server, a pool behind a switch, and memory of a rack that hosts share. Which objects may live where is asked
//! there and not measured. Here a described program runs with one of its objects on a tier, for each kind of object; a
//! device of the machine is an expander, one behind its switch (`@switch`) a pool. What hosts pay for sharing comes on top
//! ([`crate::coherence`]).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::number::percent;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::Bytes;
use weir_model::workload::Workloads;

use crate::plan::choose_tiers;
use crate::room::check_regions;
use crate::statistics::Estimate;
use crate::study::{About, Outcome, Study};
use crate::view::{View, col};
use crate::{Lab, LabError, Placed, Severity, Verdict, WorkloadOptions};

/// Kinds of objects (the paper's sections 3.1 to 3.3), each as regions of a preset whose file names its source.
const KINDS: [(&str, &str, &[&str]); 9] = [
    ("index", "btree-lookup", &["inner", "leaves"]),
    ("inner nodes of it", "btree-lookup", &["inner"]),
    ("rows of transactions", "voltdb-tpcc", &["tuples"]),
    ("buffer pages", "rocksdb-get", &["blocks"]),
    ("columns for analysis", "scan-column", &["column"]),
    (
        "state of a join",
        "hash-join-probe",
        &["buckets", "overflow"],
    ),
    ("state of a grouping", "group-by", &["groups"]),
    ("temporary runs", "sort-merge", &["runs", "output"]),
    ("log", "voltdb-tpcc", &["log"]),
];

/// Say what each kind of a database's objects loses on each slower tier.
///
/// Described programs run with one kind of object on a tier and all else on local memory. A device is a local expander, one
/// behind a switch a pool.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir place levels --on emr2s+cxl-a+cxl-a@switch
  weir place levels --on eurosys24+leo-x16 --max-loss 10")]
pub struct Levels {
    /// Tiers that take objects [default: all but the first].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// The tier that keeps the others.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub from: TierName,
    /// The loss of run time that is allowed, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, allow_negative_numbers = true, value_parser = allowed_loss)]
    pub max_loss: f64,
    /// Threads of each program [default: those of its description].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}

/// Reads a loss that is allowed, in percent.
///
/// # Errors
/// It is no number from 0 to 1000, in words.
pub fn allowed_loss(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(loss) if (0.0..=1000.0).contains(&loss) => Ok(loss),
        _ => Err("a loss is a number of percent from 0 to 1000".into()),
    }
}

/// Objects by kind on each tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ByLevel {
    /// The tier that keeps the others.
    pub from: TierName,
    /// The loss that is allowed.
    pub max_loss_pct: f64,
    /// A kind of object on a tier.
    pub kinds: Vec<KindOnTier>,
}

/// A kind of object on a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-intervals" = {"loss_pct": "loss_ci95_pct"}))]
pub struct KindOnTier {
    /// The kind.
    pub kind: String,
    /// The program that has such objects.
    pub workload: String,
    /// Its regions that are of this kind.
    pub regions: String,
    /// Their size.
    pub bytes: Bytes,
    /// The tier.
    pub tier: TierName,
    /// What it is: the device, and whether it is behind a switch.
    pub device: String,
    /// How much longer the program takes than with all objects on local memory, in percent: the mean of pairs of runs, each
    /// pair of one seed.
    pub loss_pct: f64,
    /// Half of the 95 % interval of the mean (Student's t), in points; documents of single pairs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ci95_pct: Option<f64>,
    /// Whether that is allowed: the whole interval is.
    pub may_move: bool,
}

impl KindOnTier {
    /// Half of the interval, in points.
    fn half(&self) -> f64 {
        self.loss_ci95_pct.unwrap_or(0.0)
    }

    /// Whether the loss that is allowed lies within the interval.
    fn is_open(&self, most: f64) -> bool {
        !self.may_move && self.loss_pct - self.half() <= most
    }
}

/// Lines that each thread touches in a phase while it is watched.
const ACCESSES: u64 = 20_000;

/// Pairs of runs: the time of a program that hardly waits for memory differs by some points of chance.
const PAIRS: u64 = 4;

impl Study for Levels {
    const VERB: &'static str = "place levels";
    type Output = ByLevel;

    fn run(&self, lab: &Lab<'_>) -> Result<ByLevel, LabError> {
        let topology = lab.topology();
        let from = (topology.tier(&self.from))
            .ok_or_else(|| LabError::unknown_tier(&self.from, topology))?;
        let all = choose_tiers(topology, &self.tiers)?;
        let tiers: Vec<_> = all
            .into_iter()
            .filter(|tier| tier.name != self.from)
            .collect();
        if tiers.is_empty() {
            let text = match topology.tiers.len() {
                1 => format!(
                    "there is no tier besides {}; name a machine with a device, such as emr2s+cxl-a",
                    self.from
                ),
                _ => format!("--tier: {} has the objects already (--from)", self.from),
            };
            return Err(LabError::Nothing(text));
        }
        let twice = (tiers.iter().enumerate())
            .find(|(n, tier)| tiers.iter().take(*n).any(|own| own.name == tier.name));
        if let Some((_, tier)) = twice {
            let text = format!("--tier: {} is named twice", tier.name);
            return Err(LabError::Nothing(text));
        }
        let library = Workloads::builtin();
        let mut programs = Vec::new();
        for (kind, name, regions) in KINDS {
            let mut work = (library.get(name).cloned())
                .ok_or_else(|| LabError::Nothing(format!("there is no description of `{name}`")))?;
            work.threads = self.threads.unwrap_or(work.threads);
            let cores = topology.cores.len();
            if work.threads as usize > cores {
                // A part on the other socket would be nearer to some tiers than to the one that keeps the others.
                return Err(LabError::Nothing(format!(
                    "`{name}` is to run {} threads, one on a core, and there are {cores} cores on this socket; give fewer with --threads",
                    work.threads
                )));
            }
            let memory = work.memory();
            let own = memory.iter().filter(|(name, _)| regions.contains(name));
            let bytes: Bytes = own.map(|(_, bytes)| *bytes).sum();
            check_regions(&format!("all objects of `{name}`"), work.footprint(), from)?;
            for tier in &tiers {
                check_regions(&format!("{kind} of `{name}`"), bytes, tier)?;
            }
            programs.push((kind, regions, bytes, work));
        }
        let options: Vec<WorkloadOptions> = (0..PAIRS)
            .map(|pair| WorkloadOptions {
                accesses: ACCESSES,
                seed: lab.seed().wrapping_add(pair),
                ..WorkloadOptions::default()
            })
            .collect();
        let mut asks = Vec::new();
        for (_, regions, _, work) in &programs {
            for options in &options {
                let near = Placed {
                    placement: Placement::Bind(self.from.clone()),
                    ..Placed::local(work, options)
                };
                asks.push(near.clone());
                for tier in &tiers {
                    let on =
                        |region: &&str| ((*region).to_owned(), Placement::Bind(tier.name.clone()));
                    asks.push(Placed {
                        placements: regions.iter().map(on).collect::<BTreeMap<_, _>>(),
                        ..near.clone()
                    });
                }
            }
        }
        let ran = lab.ask_all(&asks)?;
        let of_pair = tiers.len() + 1;
        let of_kind = ran.chunks(of_pair * options.len());
        let mut kinds = Vec::new();
        for ((kind, regions, bytes, work), runs) in programs.iter().zip(of_kind) {
            for (number, tier) in tiers.iter().enumerate() {
                let losses = runs.chunks(of_pair).filter_map(|pair| {
                    let (near, on) = pair.split_first()?;
                    Some(100.0 * (on.get(number)?.time / near.time - 1.0))
                });
                let Some(loss) = Estimate::of(losses) else {
                    continue;
                };
                kinds.push(KindOnTier {
                    kind: (*kind).to_owned(),
                    workload: work.name.clone(),
                    regions: regions.join(", "),
                    bytes: *bytes,
                    tier: tier.name.clone(),
                    device: tier.description.clone(),
                    loss_pct: loss.mean,
                    loss_ci95_pct: loss.ci95,
                    may_move: loss.mean + loss.ci95.unwrap_or(0.0) <= self.max_loss,
                });
            }
        }
        Ok(ByLevel {
            from: self.from.clone(),
            max_loss_pct: self.max_loss,
            kinds,
        })
    }
}

impl Outcome for ByLevel {
    const SCHEMA: &'static str = "weir/place-levels/1";
    const TITLE: &'static str = "Objects by level of memory";
    const WORDS: &'static str =
        "Described programs with one kind of object on a slower tier and all else on local memory.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let mut all = Vec::new();
        let mut tiers: Vec<(&TierName, &str)> = Vec::new();
        for one in &self.kinds {
            if !tiers.contains(&(&one.tier, one.device.as_str())) {
                tiers.push((&one.tier, &one.device));
            }
        }
        for (tier, device) in tiers {
            let most = self.max_loss_pct;
            let (mut takes, mut keeps, mut open) = (Vec::new(), Vec::new(), Vec::new());
            for one in self.kinds.iter().filter(|one| one.tier == *tier) {
                if one.may_move {
                    takes.push(one.kind.clone());
                } else if one.is_open(most) {
                    let (loss, half) = (percent(one.loss_pct), one.half());
                    open.push(format!("{} ({loss} ±{half:.1} %)", one.kind));
                } else {
                    keeps.push(one.kind.clone());
                }
            }
            let part = |kinds: Vec<String>| match kinds.is_empty() {
                true => "nothing".to_owned(),
                false => kinds.join(", "),
            };
            let mut text = format!(
                "for at most {most} % of run time {tier} ({device}) takes {}; {} keeps {}",
                part(takes),
                self.from,
                part(keeps)
            );
            if !open.is_empty() {
                text += &format!("; uncertain: {}", open.join(", "));
            }
            all.push(Verdict::new(Severity::Note, tier.to_string(), text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        vec![
            View::grid(
                "kinds",
                format!(
                    "Loss with one kind of object on a tier and all else on {}",
                    self.from
                ),
                "kind",
                &["tier"],
                "loss_pct",
            ),
            View::table(
                "kinds",
                "Where the figures come from",
                vec![
                    col("kind"),
                    col("workload").and("regions"),
                    col("bytes").head("size"),
                    col("tier"),
                    col("loss_pct").head("loss").signed(),
                ],
            ),
        ]
    }
}
