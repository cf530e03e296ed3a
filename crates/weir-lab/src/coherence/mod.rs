//! `weir place share`: what hosts that share memory pay for coherence, by structure.
//!
//! Memory of a rack that several hosts map is coherent: *CXL and the Return of Scale-Up Database Engines* (arXiv
//! 2401.01150, sections 2 and 3.3) asks how much traffic a lock table or an index makes then. Operations of each host
//! touch the lines of a structure in turn, the protocol of `weir-coherence` says the messages of each, and the latency of an operation follows from
//! that of the tier: a request to the device takes what a read takes, and one that waits for other hosts as long again,
//! since the device asks them over links like that of the host. What hits in a host's cache takes no time here.

mod btree;
mod outcome;
mod program;

pub use outcome::{SharedPiece, SharedRun, Sharing};
pub use program::{Counted, Piece, Structure, Use, run};
pub use weir_coherence::serial::{Directory, Holders, Host, Line, MOST_HOSTS, Messages};

use serde::Serialize;
use weir_model::access::{Locality, Op, Pattern};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, LINE_BYTES};

use crate::plan::{Load, PointSpec, or_usual};
use crate::room::working_set;
use crate::study::Study;
use crate::{Ask, Lab, LabError};

/// Count what hosts that share memory pay for coherence, structure by structure.
///
/// Hosts use a structure at the same time. The protocol of CXL (HDM-DB) says reads of memory, invalidations,
/// requests to other hosts and write-backs; the latency of the tier says what an operation waits for them. Each host
/// has read all of the structure before (the line of a lock is with one of them), so that one host alone pays only where
/// its cache is too small.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir place share --on emr2s+cxl-a@switch
  weir place share --on emr2s+cxl-a@switch --structure btree,btree_latched \\
      --hosts 2,16
  weir place share --on emr2s+cxl-a@switch --structure locks --skew 0 \\
      --items 1000000
  weir place share --on emr2s+cxl-a@switch --snoop-filter 65536")]
pub struct Share {
    /// The tier that the hosts share.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// Structures: locks, own_locks, table, partitions, btree, btree_latched [default: all].
    #[arg(long = "structure", value_delimiter = ',', value_name = "STRUCTURE")]
    pub structures: Vec<Structure>,
    /// Numbers of hosts [default: 1,2,4,8,16].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_HOSTS as i64))]
    pub hosts: Vec<u32>,
    /// Locks, records, or keys of a tree.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(64..=10_000_000))]
    pub items: u64,
    /// Entries of a tree's node, of 16 bytes.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(4..=4096))]
    pub fan_out: u32,
    /// Operations that update a record or insert a key, of all; those of YCSB B are 5%.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub writes: f64,
    /// Exponent of Zipf's law, by which items are chosen; 0 for all alike.
    #[arg(long, value_name = "EXPONENT", default_value_t = 0.99, value_parser = skew)]
    pub skew: f64,
    /// What each host's cache holds [default: the last-level cache of the machine].
    #[arg(long, value_name = "SIZE")]
    pub cache: Option<Bytes>,
    /// Lines that the device's snoop filter tracks [default: every line that is cached].
    #[arg(long, value_name = "ENTRIES", value_parser = clap::value_parser!(u64).range(1..))]
    pub snoop_filter: Option<u64>,
    /// Operations of each host that are counted, after as many that are not.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub operations: u64,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err("a share is from 0 to 100 percent, such as 5%".into()),
    }
}

fn skew(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(skew) if (0.0..=3.0).contains(&skew) => Ok(skew),
        _ => Err("the exponent is from 0 to 3".into()),
    }
}

/// A structure that this many hosts use.
#[derive(Serialize)]
struct Counting {
    structure: Structure,
    with: Use,
}

impl Ask for Counting {
    type Got = Counted;
    const KIND: &'static str = "structure that hosts share, version 2";

    fn ask(&self, lab: &Lab<'_>) -> Result<Counted, LabError> {
        let counted = run(self.structure, self.with, &|| lab.stopped());
        match counted.operations {
            0 => Err(LabError::Stopped),
            _ => Ok(counted),
        }
    }
}

impl Study for Share {
    const VERB: &'static str = "place share";
    type Output = Sharing;

    fn run(&self, lab: &Lab<'_>) -> Result<Sharing, LabError> {
        let topology = lab.topology();
        let tier = (topology.tier(&self.tier))
            .ok_or_else(|| LabError::unknown_tier(&self.tier, topology))?;
        let last = topology.caches.last().map(|level| level.size);
        let cache = self.cache.or(last).ok_or_else(|| {
            LabError::Nothing(
                "the machine does not tell the size of its caches; give --cache".into(),
            )
        })?;
        let pattern = Pattern::Chase {
            locality: Locality::TlbFriendly,
        };
        let set = working_set(topology, tier, 1);
        let load = Load::new(&self.tier, Op::Ld, pattern, 1, set).prefetch(false);
        let read = lab.measure(vec![PointSpec::alone("latency", load)], &[])?;
        let latency = (read.first().and_then(|point| point.ns.as_ref()))
            .map(|ns| ns.mean)
            .ok_or_else(|| LabError::Failed(format!("no latency of {}", self.tier)))?;
        let mut hosts = or_usual(&self.hosts, &[1, 2, 4, 8, 16]);
        hosts.sort_unstable();
        hosts.dedup();
        let structures = or_usual(&self.structures, &Structure::ALL);
        let asks: Vec<Counting> = (structures.iter())
            .flat_map(|&structure| hosts.iter().map(move |&hosts| (structure, hosts)))
            .map(|(structure, hosts)| Counting {
                structure,
                with: Use {
                    hosts: hosts as usize,
                    items: self.items,
                    fan_out: self.fan_out as usize,
                    writes: self.writes / 100.0,
                    skew: self.skew,
                    capacity: (cache.get() / LINE_BYTES) as usize,
                    filter: self.snoop_filter,
                    operations: self.operations,
                    seed: lab.seed(),
                },
            })
            .collect();
        let counted = lab.ask_all(&asks)?;
        let runs = asks.iter().zip(&counted);
        let runs = runs.map(|(ask, counted)| {
            SharedRun::of(ask.structure, ask.with.hosts as u32, counted, latency)
        });
        let pieces = asks.iter().zip(&counted);
        let pieces = pieces.flat_map(|(ask, counted)| {
            SharedPiece::all(ask.structure, ask.with.hosts as u32, counted)
        });
        Ok(Sharing {
            tier: self.tier.clone(),
            latency,
            cache_bytes: cache,
            items: self.items,
            writes_pct: self.writes,
            skew: self.skew,
            snoop_filter: self.snoop_filter,
            runs: runs.collect(),
            pieces: pieces.collect(),
        })
    }
}
