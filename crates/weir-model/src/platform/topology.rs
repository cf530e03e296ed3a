//! A platform as experiments see it.

use super::{Attached, Dram, Host, Place, Platform, Ports, Provenance, StorageDevice};
use crate::topology::{CacheLevel, Tier, TierKind, TierName, Topology};
use crate::units::Bytes;

/// What ranges of hosts are whole multiples of: a block of CXL's decoders (CXL 3.0, 8.2.4.19).
const RANGE: Bytes = Bytes::mib(256);

impl Platform {
    /// Cores, caches and tiers: `dram` (and `dram1` … of other sub-NUMA clusters), then `cxl0`, `cxl1` …, then
    /// `remote` where the host has another socket that was measured, and storage last: `ssd0`, `ssd1` …
    pub fn topology(&self) -> Topology {
        let host = &self.host;
        let core = &host.core.microarchitecture;
        let like = match core.provenance {
            // Cores of another one are described with it.
            Provenance::Assumed { .. } => "like ",
            _ => "",
        };
        Topology {
            processor: format!(
                "{like}{}, {} cores a socket",
                core.value, host.core.count.value
            ),
            sockets: host.sockets.value,
            cores: (0..host.core.count.value).collect(),
            other_cores: match self.hosts {
                1 => other_cores(host),
                _ => Vec::new(),
            },
            other_hosts: (1..self.hosts)
                .map(|n| (n * host.core.count.value..(n + 1) * host.core.count.value).collect())
                .collect(),
            clock: Some(host.core.clock.value),
            allocation: Some(host.allocation.step.value).filter(|&step| step < 1.0),
            caches: caches(host),
            tiers: self.tiers(),
            page: host.tlb.page.value,
        }
    }

    /// Whether all hosts share the devices of a tier.
    pub fn is_shared(&self, attached: &Attached) -> bool {
        self.hosts > 1 && attached.place == Place::Switch
    }

    /// What one host may use of the devices of a tier: all, or an equal range of those that it shares.
    pub fn capacity_of(&self, attached: &Attached) -> Bytes {
        let all = attached.device.capacity.get() * u64::from(attached.ways);
        match self.is_shared(attached) {
            false => Bytes(all),
            true => Bytes(all / u64::from(self.hosts) / RANGE.get() * RANGE.get()),
        }
    }

    fn cxl_tier(&self, n: usize, attached: &Attached) -> Tier {
        let kind = match attached.is_remote() {
            true => TierKind::RemoteCxl,
            false => TierKind::Cxl,
        };
        let shared = match (self.is_shared(attached), attached.ports) {
            (false, _) => String::new(),
            (true, Ports::MultiHeaded) => {
                format!(", a range and a port for each of {} hosts", self.hosts)
            }
            (true, Ports::MultiLogical) => {
                format!(", a range for each of {} hosts, one port", self.hosts)
            }
        };
        Tier {
            name: TierName::cxl(n),
            kind,
            node: None,
            capacity: self.capacity_of(attached),
            description: devices_in_words(attached) + &shared,
            limits: Some(attached.limits(&self.host)),
            programs_left: (attached.device.backing.as_ref())
                .and_then(|backing| backing.programs_left(*attached.device.capacity))
                .map(|pages| pages * u64::from(attached.ways)),
        }
    }

    fn tiers(&self) -> Vec<Tier> {
        let mut tiers = vec![Tier {
            name: TierName::dram(),
            kind: TierKind::Dram,
            node: None,
            capacity: self.host.dram.capacity.value,
            description: dram_in_words(&self.host.dram),
            limits: Some(self.host.dram.limits()),
            programs_left: None,
        }];
        let host = &self.host;
        tiers.extend(
            (1..host.uncore.cluster_tiers())
                .map(|n| Tier {
                    name: TierName::cluster(n),
                    description: format!("{}, sub-NUMA cluster {n}", tiers[0].description),
                    ..tiers[0].clone()
                })
                .collect::<Vec<_>>(),
        );
        tiers.extend((self.devices.iter().enumerate()).map(|(n, a)| self.cxl_tier(n, a)));
        if let Some(remote) = &host.remote {
            let far = self.host.remote_dram();
            tiers.push(Tier {
                name: TierName::remote(),
                kind: TierKind::Remote,
                node: None,
                capacity: far.capacity.value,
                description: format!("{}, other socket", dram_in_words(&far)),
                limits: Some(far.limits().behind(&remote.limits())),
                programs_left: None,
            });
        }
        tiers.extend(self.storage.iter().enumerate().map(storage_tier));
        if let Some(complexes) = &host.uncore.complexes {
            let links = complexes.limits(host.uncore.running_clock());
            for tier in tiers.iter_mut().filter(|t| t.kind != TierKind::Ssd) {
                tier.limits = tier.limits.take().map(|limits| limits.behind(&links));
            }
        }
        tiers
    }
}

/// Cores of the next socket, numbered on from this one's. Without its DRAM's latency nothing is known of it;
/// how clusters and complexes of two sockets reach each other is not modelled.
fn other_cores(host: &Host) -> Vec<u32> {
    let is_known = host.remote.is_some() && host.sockets.value >= 2;
    let is_whole = host.uncore.complexes.is_none() && host.uncore.clusters.value == 1;
    let count = host.core.count.value;
    match is_known && is_whole {
        true => (count..2 * count).collect(),
        false => Vec::new(),
    }
}

fn caches(host: &Host) -> Vec<CacheLevel> {
    let parts = (host.uncore.complexes.as_ref()).map_or(1, |c| c.count.value.max(1));
    vec![
        CacheLevel {
            name: "L1d".into(),
            size: host.l1.size.value,
            ways: Some(host.l1.ways.value),
            shared_by: 1,
        },
        CacheLevel {
            name: "L2".into(),
            size: host.l2.size.value,
            ways: Some(host.l2.ways.value),
            shared_by: 1,
        },
        CacheLevel {
            name: "L3".into(),
            size: Bytes(host.llc.size.get() / u64::from(parts)),
            ways: Some(host.llc.ways.value),
            shared_by: host.core.count.value / parts,
        },
    ]
}

fn dram_in_words(dram: &Dram) -> String {
    let grade = dram.media.name().to_uppercase();
    format!("{} x {grade}", dram.channels.value)
}

fn storage_tier((n, device): (usize, &StorageDevice)) -> Tier {
    Tier {
        name: TierName::ssd(n),
        kind: TierKind::Ssd,
        node: None,
        capacity: device.capacity.value,
        description: format!(
            "{}: {} dies behind {}",
            device.name, device.dies.value, device.link.value
        ),
        limits: Some(device.limits()),
        programs_left: None,
    }
}

fn devices_in_words(attached: &Attached) -> String {
    let device = &attached.device;
    let several = match attached.ways {
        1 => String::new(),
        ways => format!("{ways} interleaved, each "),
    };
    let place = match attached.place {
        Place::Local => "",
        Place::Remote => ", other socket",
        Place::Switch => ", behind a switch",
    };
    format!(
        "{several}{}: {} x {} behind x{}{place}",
        device.name,
        device.channels.value,
        device.media.name().to_uppercase(),
        device.link.lanes.value,
    )
}
