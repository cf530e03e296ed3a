//! A platform as experiments see it.

use super::{Attached, Device, Dram, Host, Platform};
use crate::topology::{CacheLevel, Limits, Tier, TierKind, TierName, Topology};

impl Platform {
    /// Cores, caches and tiers: `dram`, then `cxl0`, `cxl1` …, then `remote` where the host has
    /// another socket that was measured.
    pub fn topology(&self) -> Topology {
        let host = &self.host;
        Topology {
            processor: format!(
                "{}, {} cores a socket",
                host.core.microarchitecture.value, host.core.count.value
            ),
            sockets: host.sockets.value,
            cores: (0..host.core.count.value).collect(),
            clock: Some(host.core.clock.value),
            caches: caches(host),
            tiers: self.tiers(),
            page: host.tlb.page.value,
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
        }];
        tiers.extend(self.devices.iter().enumerate().map(|(n, a)| cxl_tier(n, a)));
        if self.host.remote.is_some() {
            let far = self.host.remote_dram();
            tiers.push(Tier {
                name: TierName::remote(),
                kind: TierKind::Remote,
                node: None,
                capacity: far.capacity.value,
                description: format!("{}, other socket", dram_in_words(&far)),
                limits: Some(from_other_socket("DRAM of the other socket", far.limits())),
            });
        }
        tiers
    }
}

fn caches(host: &Host) -> Vec<CacheLevel> {
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
            size: host.llc.size.value,
            ways: Some(host.llc.ways.value),
            shared_by: host.core.count.value,
        },
    ]
}

fn dram_in_words(dram: &Dram) -> String {
    let grade = dram.media.name().to_uppercase();
    format!("{} x {grade}", dram.channels.value)
}

fn cxl_tier(n: usize, attached: &Attached) -> Tier {
    let Attached { device, remote } = attached;
    let kind = if *remote {
        TierKind::RemoteCxl
    } else {
        TierKind::Cxl
    };
    Tier {
        name: TierName::cxl(n),
        kind,
        node: None,
        capacity: device.capacity.value,
        description: device_in_words(device, *remote),
        limits: Some(match remote {
            false => device.limits(),
            true => from_other_socket("device of the other socket", device.limits()),
        }),
    }
}

/// The bounds of what lies behind the socket link, whose own rate is no parameter: what it adds is
/// measured, not known from parts.
fn from_other_socket(what: &str, limits: Limits) -> Limits {
    Limits {
        basis: format!(
            "{what}: {}; the socket link's rate is not in the platform",
            limits.basis
        ),
        ..limits
    }
}

fn device_in_words(device: &Device, remote: bool) -> String {
    format!(
        "{}: {} x {} behind x{}{}",
        device.name,
        device.channels.value,
        device.media.name().to_uppercase(),
        device.link.lanes.value,
        if remote { ", other socket" } else { "" }
    )
}
