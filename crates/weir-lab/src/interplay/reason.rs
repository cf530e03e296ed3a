//! Reverse reasoning: from what counters did, alone and together, to where the change comes from
//! (CXL-Interplay §III-D). Every rule is in this file; each looks at evidence and at nothing else.
//!
//! A victim's requests pass core, ingress queue (IRQ), Table of Requests (ToR), tier. What got longer
//! says where they wait: time before the table with a flat time in it is congestion of the tables by
//! requests of others; time in the table is the tier's own.

use weir_model::capability::Unavailable;
use weir_model::counters::Counter;
use weir_model::interplay::{Cause, CellLatency, ChangeClass, Reason, TierOp};
use weir_model::topology::{Tier, TierKind, Topology};
use weir_model::units::Bytes;

use super::side_by_side::{Quantity, RunCounters};

/// What is known of a pair at one pair of thread counts.
pub struct Evidence<'a> {
    pub topology: &'a Topology,
    pub victim: &'a TierOp,
    pub aggressor: &'a TierOp,
    pub change_pct: f64,
    pub solo: &'a RunCounters<'a>,
    pub corun: &'a RunCounters<'a>,
    /// What a hop of a chase in the victim's tier takes, or a request to its device.
    pub timed: Option<CellLatency>,
}

/// A time that is no more than this many times as long is flat: the paper's L3-miss latency moves by
/// 1 % while its L2-miss latency is 15 times as long.
const FLAT: f64 = 1.25;
/// A wait before the table matters from this share of the time in it.
const WAIT_MATTERS: f64 = 0.10;
/// A tier gives all it can from this share of its limit; refresh, turns of the bus and flits that carry
/// headers leave no more.
const FULL: f64 = 0.70;
/// A tenant lost its lines if its share of hits fell by this many points.
const HITS_LOST: f64 = 0.10;

/// Why the victim's bandwidth changed.
pub fn reason(evidence: &Evidence<'_>) -> Reason {
    let mut reason = Reason {
        cause: Cause::Undetermined,
        evidence: Vec::new(),
        unseen: unseen(evidence),
    };
    if ChangeClass::of(evidence.change_pct) >= ChangeClass::None {
        reason.cause = Cause::Unharmed;
        reason.unseen.clear();
        return reason;
    }
    const RULES: [Rule; 6] = [
        storage_path,
        llc_capacity,
        tor_congestion,
        link,
        device_saturation,
        ddr_saturation,
    ];
    for rule in RULES {
        if let Some((cause, said)) = rule(evidence) {
            reason.cause = cause;
            reason.evidence = said;
            return reason;
        }
    }
    reason.evidence = evidence.facts();
    reason
}

/// A cause with what speaks for it, if the evidence fits.
type Rule = fn(&Evidence<'_>) -> Option<(Cause, Vec<String>)>;

/// Requests wait before the tables, and once in them are served as fast as alone: others'
/// requests hold the entries, because they are slow or because they are many. The victim's cores see the
/// same from their side: what misses L2 takes longer, what misses L3 does not.
fn tor_congestion(e: &Evidence<'_>) -> Option<(Cause, Vec<String>)> {
    let own = e.served()?;
    let wait = e.irq_wait()?;
    let all = e.residency(Counter::TorOccupancyIaMiss, Counter::TorInsertsIaMiss)?;
    let waits = wait.corun - wait.solo > WAIT_MATTERS * own.solo;
    if !(waits && own.factor()? <= FLAT) || e.victim.host != e.aggressor.host {
        return None;
    }
    let mut said = e.latencies();
    said.extend([
        all.phrase("a miss stays in the Table of Requests"),
        wait.phrase("a request waits in the ingress queue"),
    ]);
    said.extend(
        e.own_residency()
            .map(|own| own.phrase(&format!("one for {} stays in the table", e.victim.tier))),
    );
    said.extend(e.holder());
    Some((Cause::TorCongestion, said))
}

/// The victim's own requests are served more slowly, and the DRAM of this socket carries nearly all it
/// can.
fn ddr_saturation(e: &Evidence<'_>) -> Option<(Cause, Vec<String>)> {
    if e.kind(e.victim)? != TierKind::Dram {
        return None;
    }
    let (carried, limit) = (e.dram_gbps().ok()?, e.dram_limit()?);
    if carried < FULL * limit {
        return None;
    }
    let mut said = vec![format!(
        "DRAM carries {carried:.0} GB/s of {limit:.0} GB/s that its bus allows"
    )];
    said.extend(e.latencies());
    said.extend(e.own_residency().map(|own| own.phrase("a miss for dram")));
    Some((Cause::DdrSaturation, said))
}

/// Both use one device, and its requests take longer than alone.
fn device_saturation(e: &Evidence<'_>) -> Option<(Cause, Vec<String>)> {
    let kind = e.kind(e.victim)?;
    if !matches!(kind, TierKind::Cxl | TierKind::RemoteCxl) || e.victim.tier != e.aggressor.tier {
        return None;
    }
    let own = e.own_residency()?;
    let mut said = vec![own.phrase(&format!("a request to {}", e.victim.tier))];
    said.extend(e.others_share());
    said.extend(e.latencies());
    Some((Cause::DeviceSaturation, said))
}

/// Both cross the link between sockets, and requests take longer there.
fn link(e: &Evidence<'_>) -> Option<(Cause, Vec<String>)> {
    let crosses = |tier_op: &TierOp| {
        matches!(
            e.kind(tier_op),
            Some(TierKind::Remote | TierKind::RemoteCxl)
        )
    };
    if !(crosses(e.victim) && crosses(e.aggressor)) {
        return None;
    }
    let own = e.residency(
        Counter::TorOccupancyIaMissRemote,
        Counter::TorInsertsIaMissRemote,
    )?;
    if own.factor()? <= FLAT {
        return None;
    }
    let mut said = vec![own.phrase("a request to the other socket")];
    if let (Ok(came), Ok(left)) = (
        e.corun.lines_gbps(Counter::UpiRxData),
        e.corun.lines_gbps(Counter::UpiTxData),
    ) {
        said.push(format!(
            "the socket link carries {came:.0} GB/s in and {left:.0} GB/s out"
        ));
    }
    Some((Cause::Link, said))
}

/// Lines that the victim found in the last-level cache alone, it no longer finds.
fn llc_capacity(e: &Evidence<'_>) -> Option<(Cause, Vec<String>)> {
    let own = e.pair(|s| s.l3_hit_share());
    let hits = own.or_else(|| {
        // Of a victim that does not load, only what both tenants together hit is known.
        e.pair(|s| s.share(Counter::TorInsertsIaHit, Counter::TorInsertsIa))
    })?;
    (hits.solo - hits.corun >= HITS_LOST).then(|| {
        let said = format!(
            "{:.0} % of its requests hit the last-level cache alone, {:.0} % of {} do now",
            hits.solo * 100.0,
            hits.corun * 100.0,
            if own.is_some() { "them" } else { "all" }
        );
        let held = e
            .pair(|s| s.llc_bytes())
            .filter(|held| held.corun < held.solo);
        let held = held.map(|held| {
            let [solo, corun] = [held.solo, held.corun].map(|bytes| Bytes(bytes as u64));
            format!("its lines fill {corun} of the cache, and {solo} alone")
        });
        (
            Cause::LlcCapacity,
            [Some(said), held].into_iter().flatten().collect(),
        )
    })
}

/// The victim's own tier is a storage device: it shares the device, or its data and the kernel's copies
/// wait in the queues that the aggressor fills. Without a look into those nothing can be said.
fn storage_path(e: &Evidence<'_>) -> Option<(Cause, Vec<String>)> {
    if e.kind(e.victim)? != TierKind::Ssd {
        return None;
    }
    if e.victim.tier == e.aggressor.tier {
        let said = "both put requests to one device".to_owned();
        return Some((Cause::DeviceSaturation, vec![said]));
    }
    let wait = e.irq_wait()?;
    (wait.corun > wait.solo).then(|| {
        let said = wait.phrase("a request of memory waits in the ingress queue");
        (Cause::StoragePath, vec![said])
    })
}

/// One quantity alone and together.
#[derive(Debug, Clone, Copy)]
struct Pair {
    solo: f64,
    corun: f64,
}

impl Pair {
    fn factor(self) -> Option<f64> {
        (self.solo > 0.0).then(|| self.corun / self.solo)
    }

    /// `a miss stays ... 412 ns, 3.6 x its 114 ns alone`.
    fn phrase(self, what: &str) -> String {
        let (solo, corun) = (self.solo, self.corun);
        // What rounds to nothing is nothing.
        match self.factor().filter(|_| solo >= 0.5) {
            Some(factor) => format!("{what}: {corun:.0} ns, {factor:.1} x the {solo:.0} ns alone"),
            None => format!("{what}: {corun:.0} ns, alone not at all"),
        }
    }
}

impl Evidence<'_> {
    fn tier(&self, name: &weir_model::topology::TierName) -> Option<&Tier> {
        self.topology.tier(name)
    }

    /// The kind of a participant's tier, for its cores.
    fn kind(&self, tier_op: &TierOp) -> Option<TierKind> {
        let tier = self.tier(&tier_op.tier)?;
        Some(tier.kind.seen_from(tier_op.socket))
    }

    /// What the buses of this socket's DRAM allow, in GB/s, of all its clusters.
    fn dram_limit(&self) -> Option<f64> {
        let dram = (self.topology.tiers.iter()).filter(|t| t.kind == TierKind::Dram);
        dram.map(|tier| Some(tier.limits.as_ref()?.total.get()))
            .sum()
    }

    fn pair(&self, of: impl Fn(&RunCounters<'_>) -> Quantity) -> Option<Pair> {
        Some(Pair {
            solo: of(self.solo).ok()?,
            corun: of(self.corun).ok()?,
        })
    }

    fn residency(&self, occupancy: Counter, inserts: Counter) -> Option<Pair> {
        self.pair(|s| s.residency_ns(occupancy, inserts))
    }

    fn irq_wait(&self) -> Option<Pair> {
        self.residency(Counter::IrqOccupancy, Counter::IrqInserts)
    }

    /// The counters of the victim's own tier: occupancy and inserts.
    fn own_counters(&self) -> Option<(Counter, Counter)> {
        Some(match self.kind(self.victim)? {
            TierKind::Dram => (Counter::TorOccupancyIaMissDdr, Counter::TorInsertsIaMissDdr),
            TierKind::Cxl => (Counter::TorOccupancyIaMissCxl, Counter::TorInsertsIaMissCxl),
            TierKind::Remote | TierKind::RemoteCxl => (
                Counter::TorOccupancyIaMissRemote,
                Counter::TorInsertsIaMissRemote,
            ),
            TierKind::CpuLess | TierKind::Ssd => return None,
        })
    }

    /// How long a miss for the victim's tier stays in the tables: its L3-miss latency.
    fn own_residency(&self) -> Option<Pair> {
        let (occupancy, inserts) = self.own_counters()?;
        self.residency(occupancy, inserts)
    }

    /// How long the victim is served for, once its slice has taken a request: its own L3-miss latency, or
    /// that of all requests to its tier where its cores do not count it.
    fn served(&self) -> Option<Pair> {
        self.pair(|s| s.l3_miss_ns())
            .or_else(|| self.own_residency())
    }

    /// What the victim's own cores see.
    fn latencies(&self) -> Vec<String> {
        let l2 = self.pair(|s| s.l2_miss_ns());
        let l3 = self.pair(|s| s.l3_miss_ns());
        [
            l2.map(|l2| l2.phrase("the victim's L2-miss latency")),
            l3.map(|l3| l3.phrase("its L3-miss latency")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn dram_gbps(&self) -> Quantity {
        Ok(self.corun.lines_gbps(Counter::CasRd)? + self.corun.lines_gbps(Counter::CasWr)?)
    }

    /// How many of the lines that shared devices serve are of other hosts than the victim's.
    fn others_share(&self) -> Option<String> {
        let served = self.corun.lines_gbps(Counter::CxlDeviceReads).ok()?
            + self.corun.lines_gbps(Counter::CxlDeviceWrites).ok()?;
        let own = self.corun.lines_gbps(Counter::CxlRxMemData).ok()?
            + self.corun.lines_gbps(Counter::CxlTxMemData).ok()?;
        (self.victim.host != self.aggressor.host && served > 0.0).then(|| {
            let others = (1.0 - own / served).max(0.0) * 100.0;
            format!(
                "another host fills the queues of the devices: {others:.0} % of the {served:.0} GB/s that they serve are its lines"
            )
        })
    }

    /// Whose requests hold the tables, by tier.
    fn holder(&self) -> Option<String> {
        let held = [
            ("dram", Counter::TorOccupancyIaMissDdr),
            ("CXL", Counter::TorOccupancyIaMissCxl),
            ("the other socket", Counter::TorOccupancyIaMissRemote),
        ];
        let held = held.map(|(name, counter)| (name, self.corun.entries(counter).unwrap_or(0.0)));
        let all: f64 = held.iter().map(|(_, entries)| entries).sum();
        let (name, most) = held.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (all > 0.0).then(|| {
            format!(
                "{:.0} % of the entries in use wait for {name}",
                most / all * 100.0
            )
        })
    }

    /// What can be said where no rule fits.
    fn facts(&self) -> Vec<String> {
        let mut facts = self.latencies();
        facts.extend(self.own_residency().map(|own| {
            own.phrase(&format!(
                "a miss for {} stays in the table",
                self.victim.tier
            ))
        }));
        facts.extend(
            self.irq_wait()
                .map(|wait| wait.phrase("a request waits in the ingress queue")),
        );
        facts.extend(self.timed.map(|ns| {
            let pair = Pair {
                solo: ns.solo_mean.get(),
                corun: ns.corun_mean.get(),
            };
            let what = if self.victim.op.is_storage() {
                "a request to"
            } else {
                "a dependent load from"
            };
            pair.phrase(&format!("{what} {}", self.victim.tier))
        }));
        facts
    }
}

/// What a verdict needs and this machine does not count, each reason once.
fn unseen(e: &Evidence<'_>) -> Vec<String> {
    let needed = [
        ("the Table of Requests", Counter::TorOccupancyIaMiss),
        ("the ingress queues", Counter::IrqOccupancy),
        ("the traffic of DRAM", Counter::CasRd),
    ];
    let missing = needed.into_iter().filter_map(|(what, counter)| {
        let Unavailable { reason } = e.corun.rate(counter).err()?;
        Some((what, reason))
    });
    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for (what, reason) in missing {
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, all)) => all.push(what),
            None => by_reason.push((reason, vec![what])),
        }
    }
    by_reason
        .into_iter()
        .map(|(reason, what)| format!("{} could not be seen: {reason}", what.join(", ")))
        .collect()
}
