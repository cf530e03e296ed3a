//! Case studies of CXL-Interplay (DAC 2025) and MIKU (arXiv 2503.17864) by name, for any machine that has the tiers.

use std::str::FromStr;

use weir_model::access::Op;
use weir_model::interplay::TierOp;
use weir_model::topology::{Tier, TierKind, TierName, Topology};
use weir_model::units::{Bytes, Nanos};

use super::Options;
use super::co_runners::usual;
use crate::LabError;

weir_model::named! {
    /// A case study.
    pub enum Preset {
        /// The matrix of memory, CXL and storage (CXL-Interplay, Table III).
        Table3 = "table3",
        /// Non-temporal against direct stores, and direct stores that only read CXL (§III-E).
        Movdir64b = "movdir64b",
        /// Sequential against random writes of a storage device (Figure 3).
        SsdWrites = "ssd-writes",
        /// A line that two cores hand over, with loads and stores of DRAM and of CXL (MIKU §4.4).
        SharedLine = "shared-line",
        /// Stores to DRAM with stores to CXL, both in the last-level cache, which is divided
        /// between them in every way (MIKU §4.3).
        LlcFits = "llc-fits",
        /// The same with working sets that exceed the cache together.
        LlcExceeds = "llc-exceeds",
        /// One victim against the bandwidth that the aggressor draws, by its threads and by its pauses
        /// (§III-F).
        Background = "background",
        /// Memory with CXL of its own socket and of the other one (MIKU §4).
        TwoSockets = "two-sockets",
    }
}

impl Preset {
    /// What it measures on a machine.
    ///
    /// # Errors
    /// The machine has no CXL memory, or none on its other socket or no storage device where the study is
    /// about one.
    pub fn options(self, topology: &Topology) -> Result<Options, LabError> {
        let dram = first(topology, TierKind::Dram, self)?;
        let cxl = first(topology, TierKind::Cxl, self)?;
        let tier_op = |tier: &Tier, op| TierOp {
            tier: tier.name.clone(),
            op,
            from: None,
            socket: 0,
            host: 0,
        };
        let most = (topology.cores.len() / 2).clamp(1, 16) as u32;
        Ok(match self {
            Preset::Table3 => {
                let storage = topology.tiers.iter().filter(|t| t.kind == TierKind::Ssd);
                let others: Vec<&Tier> = std::iter::once(dram).chain(storage).collect();
                let beside = |victim: &Tier, aggressor: &Tier| -> Vec<(TierOp, TierOp)> {
                    usual(victim)
                        .flat_map(|v| usual(aggressor).map(move |a| (v.clone(), a)))
                        .collect()
                };
                let to = others.iter().flat_map(|other| beside(other, cxl));
                let back = others.iter().flat_map(|other| beside(cxl, other));
                Options {
                    pairs: to.chain(back).collect(),
                    ..Options::default()
                }
            }
            Preset::Movdir64b => {
                let into_dram = TierOp {
                    from: Some(cxl.name.clone()),
                    ..tier_op(dram, Op::Movdir64b)
                };
                let aggressors = [
                    tier_op(cxl, Op::NtSt),
                    tier_op(cxl, Op::Movdir64b),
                    into_dram,
                ];
                Options {
                    pairs: with_each(&tier_op(dram, Op::Ld), aggressors),
                    threads: vec![most],
                    ..Options::default()
                }
            }
            Preset::SsdWrites => {
                let ssd = first(topology, TierKind::Ssd, self)?;
                let victims = [tier_op(ssd, Op::RandWrite), tier_op(ssd, Op::SeqWrite)];
                let aggressor = tier_op(cxl, Op::NtSt);
                Options {
                    pairs: victims.map(|v| (v, aggressor.clone())).to_vec(),
                    ..Options::default()
                }
            }
            Preset::SharedLine => Options {
                pairs: with_each(&tier_op(dram, Op::Ld), usual(dram).chain(usual(cxl))),
                shared_line: true,
                ..Options::default()
            },
            // 60 MB and 120 MB each of 160 MB.
            Preset::LlcFits => divided(
                topology,
                (3, 8),
                [tier_op(dram, Op::St), tier_op(cxl, Op::St)],
            ),
            Preset::LlcExceeds => divided(
                topology,
                (3, 4),
                [tier_op(dram, Op::St), tier_op(cxl, Op::St)],
            ),
            Preset::TwoSockets => {
                let beyond = |kind| {
                    let tier = first(topology, kind, self)?;
                    Ok::<_, LabError>(TierOp {
                        socket: 1,
                        ..tier_op(tier, Op::NtSt)
                    })
                };
                let crossing = TierOp {
                    socket: 1,
                    ..tier_op(cxl, Op::NtSt)
                };
                let aggressors = [
                    tier_op(cxl, Op::NtSt),
                    beyond(TierKind::RemoteCxl)?,
                    beyond(TierKind::Remote)?,
                    crossing,
                ];
                Options {
                    pairs: with_each(&tier_op(dram, Op::NtSt), aggressors),
                    threads: vec![most],
                    shared_line: true,
                    across: true,
                    ..Options::default()
                }
            }
            Preset::Background => {
                let aggressors = [Op::Ld, Op::NtSt].map(|op| tier_op(cxl, op));
                Options {
                    pairs: with_each(&tier_op(dram, Op::Ld), aggressors),
                    pauses: [0.0, 20.0, 50.0, 100.0, 200.0, 500.0].map(Nanos).to_vec(),
                    ..Options::default()
                }
            }
        })
    }
}

/// A pair whose working sets are each this part of the last-level cache, in shares of its ways.
fn divided(topology: &Topology, part: (u64, u64), [victim, aggressor]: [TierOp; 2]) -> Options {
    let cache = topology.last_level_cache().get();
    Options {
        pairs: vec![(victim, aggressor)],
        threads: vec![(topology.cores.len() / 2).clamp(1, 16) as u32],
        working_set: Some(Bytes(cache / part.1 * part.0)),
        shares: vec![5, 25, 50, 75, 95],
        ..Options::default()
    }
}

fn with_each(
    victim: &TierOp,
    aggressors: impl IntoIterator<Item = TierOp>,
) -> Vec<(TierOp, TierOp)> {
    let pair = |aggressor| (victim.clone(), aggressor);
    aggressors.into_iter().map(pair).collect()
}

fn first(topology: &Topology, kind: TierKind, preset: Preset) -> Result<&Tier, LabError> {
    let mut tiers = topology.tiers.iter();
    tiers.find(|tier| tier.kind == kind).ok_or_else(|| {
        let known: Vec<&str> = (topology.tiers.iter())
            .map(|tier| TierName::as_str(&tier.name))
            .collect();
        LabError::Nothing(format!(
            "preset {} needs {}, and this machine has {} only",
            preset.name(),
            kind.name(),
            known.join(", ")
        ))
    })
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Preset::named(text).ok_or_else(|| {
            let known = Preset::ALL.map(Preset::name).join(", ");
            format!("no preset is called `{text}`; known are {known}")
        })
    }
}
