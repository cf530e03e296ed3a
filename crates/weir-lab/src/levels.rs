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
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::Bytes;
use weir_model::workload::Workloads;

use crate::plan::choose_tiers;
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
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub max_loss: f64,
    /// Threads of each program [default: those of its description].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
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
    /// How much longer the program takes than with all objects on local memory, in percent.
    pub loss_pct: f64,
    /// Whether that is allowed.
    pub may_move: bool,
}

/// Lines that each thread touches in a phase while it is watched.
const ACCESSES: u64 = 20_000;

impl Study for Levels {
    const VERB: &'static str = "place levels";
    type Output = ByLevel;

    fn run(&self, lab: &Lab<'_>) -> Result<ByLevel, LabError> {
        let topology = lab.topology();
        let all = choose_tiers(topology, &self.tiers)?;
        let tiers: Vec<_> = all
            .into_iter()
            .filter(|tier| tier.name != self.from)
            .collect();
        if tiers.is_empty() {
            return Err(LabError::Nothing(format!(
                "there is no tier besides {}; name a machine with a device, such as emr2s+cxl-a",
                self.from
            )));
        }
        let options = WorkloadOptions {
            accesses: ACCESSES,
            seed: lab.seed(),
            ..WorkloadOptions::default()
        };
        let library = Workloads::builtin();
        let mut programs = Vec::new();
        for (kind, name, regions) in KINDS {
            let mut work = (library.get(name).cloned())
                .ok_or_else(|| LabError::Nothing(format!("there is no description of `{name}`")))?;
            work.threads = self.threads.unwrap_or(work.threads);
            programs.push((kind, regions, work));
        }
        let mut asks = Vec::new();
        for (_, regions, work) in &programs {
            let near = Placed {
                placement: Placement::Bind(self.from.clone()),
                ..Placed::local(work, &options)
            };
            asks.push(near.clone());
            for tier in &tiers {
                let on = |region: &&str| ((*region).to_owned(), Placement::Bind(tier.name.clone()));
                asks.push(Placed {
                    placements: regions.iter().map(on).collect::<BTreeMap<_, _>>(),
                    ..near.clone()
                });
            }
        }
        let ran = lab.ask_all(&asks)?;
        let mut kinds = Vec::new();
        for ((kind, regions, work), runs) in programs.iter().zip(ran.chunks(tiers.len() + 1)) {
            let Some((near, on)) = runs.split_first() else {
                continue;
            };
            let memory = work.memory();
            let own = memory.iter().filter(|(name, _)| regions.contains(name));
            let bytes: Bytes = own.map(|(_, bytes)| *bytes).sum();
            for (tier, run) in tiers.iter().zip(on) {
                let loss_pct = 100.0 * (run.time / near.time - 1.0);
                kinds.push(KindOnTier {
                    kind: (*kind).to_owned(),
                    workload: work.name.clone(),
                    regions: regions.join(", "),
                    bytes,
                    tier: tier.name.clone(),
                    device: tier.description.clone(),
                    loss_pct,
                    may_move: loss_pct <= self.max_loss,
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
            let of = |may: bool| {
                let own = self
                    .kinds
                    .iter()
                    .filter(|one| one.tier == *tier && one.may_move == may);
                own.map(|one| one.kind.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (may, never) = (of(true), of(false));
            let part = |kinds: String, else_: &str| match kinds.is_empty() {
                true => else_.to_owned(),
                false => kinds,
            };
            all.push(Verdict::new(
                Severity::Note,
                tier.to_string(),
                format!(
                    "for at most {:.0} % of run time {tier} ({device}) takes {}; {} keeps {}",
                    self.max_loss_pct,
                    part(may, "nothing"),
                    self.from,
                    part(never, "nothing")
                ),
            ));
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
