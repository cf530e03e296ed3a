//! `weir place disaggregated`: what memory of another server takes, by the method that reaches it.
//!
//! DirectCXL (Gouk et al., USENIX ATC 2022) compares loads of a CXL device with one-sided reads over RDMA, with a key-value
//! store over RDMA, and with a kernel that swaps over RDMA. Here memory, device and caches are those of the machine: the
//! latency of a chase, and what a burst of many lines takes that a single one does not. What adapters, libraries, servers and
//! the kernel take is data ([`methods`]).

pub mod methods;
mod outcome;
pub mod programs;

pub use outcome::{AccessRow, Disaggregation, SetRow};

use weir_model::access::{Locality, Op, Pattern};
use weir_model::topology::{Tier, TierName};
use weir_model::units::{Bytes, LINE_BYTES, Nanos};

use crate::plan::{Load, or_usual};
use crate::room::working_set;
use crate::study::Study;
use crate::{Lab, LabError, PointSpec};
use methods::{Method, Methods, Parts};
use programs::{Program, ProgramOn, Work};

/// Bytes of an access (DirectCXL, figure 7).
const PAYLOADS: [Bytes; 7] = [
    Bytes(64),
    Bytes(128),
    Bytes(256),
    Bytes(512),
    Bytes::kib(1),
    Bytes::kib(2),
    Bytes::kib(4),
];
/// Working sets (figure 8).
const SETS: [Bytes; 8] = [
    Bytes::kib(1),
    Bytes::kib(8),
    Bytes::kib(64),
    Bytes::kib(256),
    Bytes::mib(1),
    Bytes::mib(8),
    Bytes::mib(64),
    Bytes::mib(512),
];

/// Compare methods that reach memory of another server: loads over CXL, RDMA, a key-value store, and swap.
///
/// Latency and bursts of local memory and of the device are measured on the machine. What the other methods take is from
/// the prototype of DirectCXL (USENIX ATC 2022), so that ratios mean most on `directcxl+directcxl-blade`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir place disaggregated --on directcxl+directcxl-blade
  weir place disaggregated --on directcxl+directcxl-blade --payload 64B,4K \\
      --program memdb")]
pub struct Disaggregated {
    /// The tier of the device.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub tier: TierName,
    /// Bytes of an access, multiples of 64B up to 4K [default: powers of two].
    #[arg(long = "payload", value_delimiter = ',', value_name = "SIZE")]
    pub payloads: Vec<Bytes>,
    /// Programs: dlrm, memdb, graph [default: all].
    #[arg(long = "program", value_delimiter = ',', value_name = "PROGRAM")]
    pub programs: Vec<Program>,
}

impl Study for Disaggregated {
    const VERB: &'static str = "place disaggregated";
    type Output = Disaggregation;

    fn run(&self, lab: &Lab<'_>) -> Result<Disaggregation, LabError> {
        let topology = lab.topology();
        let tier = (topology.tier(&self.tier))
            .ok_or_else(|| LabError::unknown_tier(&self.tier, topology))?;
        let local = topology
            .tier(&TierName::dram())
            .ok_or_else(|| LabError::unknown_tier(&TierName::dram(), topology))?;
        if tier.name == local.name {
            return Err(LabError::same_tier(&tier.name));
        }
        let programs = or_usual(&self.programs, &Program::ALL);
        let cores = topology.cores.len() as u32;
        for &program in &programs {
            program.check_room(cores, local, tier)?;
        }
        let methods = Methods::builtin().map_err(|why| LabError::Failed(why.to_string()))?;
        let payloads = or_usual(&self.payloads, &PAYLOADS);
        for payload in &payloads {
            let lines = payload.get() / LINE_BYTES;
            let most = u64::from(Pattern::MOST_IN_BURST);
            if payload.get() % LINE_BYTES != 0 || !(1..=most).contains(&lines) {
                return Err(LabError::Nothing(format!(
                    "--payload {payload}: an access is a multiple of {LINE_BYTES} bytes, up to {}",
                    Bytes(most * LINE_BYTES)
                )));
            }
        }
        let idle = |tier: &Tier| chase(&tier.name, working_set(topology, tier, 1));
        let one = Bytes(LINE_BYTES);
        // A hit of the last level, which half of it is.
        let hit = chase(&local.name, Bytes(topology.last_level_cache().get() / 2));
        let mut plan = vec![hit.clone()];
        for tier in [local, tier] {
            plan.push(idle(tier));
            plan.extend(SETS.map(|set| chase(&tier.name, set)));
            plan.push(burst(&tier.name, one));
            plan.extend(payloads.iter().map(|&size| burst(&tier.name, size)));
        }
        let mut distinct: Vec<PointSpec> = Vec::new();
        for spec in plan {
            if !distinct.contains(&spec) {
                distinct.push(spec);
            }
        }
        let points = lab.measure(distinct.clone(), &[])?;
        if points.len() < distinct.len() {
            return Err(LabError::Stopped);
        }
        let at = |spec: &PointSpec| {
            let mut measured = distinct.iter().zip(&points);
            let point = measured.find_map(|(own, point)| (own == spec).then_some(point));
            let mean = point.and_then(|point| point.ns.as_ref()).map(|ns| ns.mean);
            mean.ok_or_else(|| LabError::Failed(format!("no latency of {}", spec.load.tier)))
        };
        let mut found = Disaggregation {
            tier: self.tier.clone(),
            accesses: Vec::new(),
            sets: Vec::new(),
            programs: Vec::new(),
        };
        let (near, far, cache) = (at(&idle(local))?, at(&idle(tier))?, at(&hit)?);
        for &payload in &payloads {
            let stall = |tier: &Tier| -> Result<Nanos, LabError> {
                let lines = payload.get() as f64 / LINE_BYTES as f64;
                let of = |size| at(&burst(&tier.name, size));
                let (all, first) = (of(payload)? * lines, of(one)?);
                Ok(Nanos((all - first).get().max(0.0)))
            };
            let loads = |stall, cxl| Parts {
                cache,
                stall,
                cxl,
                memory: near - cache,
                ..Parts::default()
            };
            let all = [
                (Method::Local, loads(stall(local)?, Nanos(0.0))),
                (Method::Cxl, loads(stall(tier)?, far - near)),
                (Method::Rdma, methods.rdma(payload)),
                (Method::KeyValue, methods.key_value(payload)),
                (Method::Swap, methods.swap()),
            ];
            let rows = all.map(|(method, parts)| AccessRow::of(method, payload, parts));
            found.accesses.extend(rows);
        }
        let wire = methods.wire(one).total();
        for set in SETS {
            found.sets.push(SetRow {
                working_set: set,
                local: at(&chase(&local.name, set))?,
                cxl: at(&chase(&tier.name, set))?,
                rdma: wire,
            });
        }
        if programs.contains(&Program::MemDb) {
            let get = Work::get(&methods, near, far);
            found.programs.extend(get.rows(Program::MemDb, &methods));
        }
        let described = programs
            .iter()
            .filter(|&&program| program != Program::MemDb);
        let described: Vec<Program> = described.copied().collect();
        let asks: Vec<ProgramOn> = (described.iter())
            .flat_map(|&program| [local, tier].map(|tier| (program, tier.name.clone())))
            .map(|(program, tier)| ProgramOn { program, tier })
            .collect();
        let runs = lab.ask_all(&asks)?;
        for (&program, runs) in described.iter().zip(runs.chunks(2)) {
            let [near, far] = runs else { continue };
            if let Some(work) = Work::of(program, (near, far), &methods, cores) {
                found.programs.extend(work.rows(program, &methods));
            }
        }
        Ok(found)
    }
}

/// Loads that depend on each other.
pub fn chase(tier: &TierName, set: Bytes) -> PointSpec {
    let pattern = Pattern::Chase {
        locality: Locality::TlbFriendly,
    };
    let load = Load::new(tier, Op::Ld, pattern, 1, set).prefetch(false);
    PointSpec::alone("disaggregated", load)
}

/// Loads of this many bytes at once, none of which any cache has.
pub fn burst(tier: &TierName, bytes: Bytes) -> PointSpec {
    let pattern = Pattern::FlushedBurst {
        lines: (bytes.get() / LINE_BYTES) as u32,
    };
    let load = Load::new(tier, Op::Ld, pattern, 1, Bytes::mib(64)).prefetch(false);
    PointSpec::alone("disaggregated", load)
}
