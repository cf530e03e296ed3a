//! A platform as experiments see it.

use super::{Attached, Device, Host, Platform};
use crate::topology::{CacheLevel, Limits, Tier, TierKind, TierName, Topology};

impl Platform {
    /// Cores, caches and tiers: `dram`, then `cxl0`, `cxl1` …, then `remote` where the host has
    /// another socket that was measured.
    pub fn topology(&self) -> Topology {
        let host = &self.host;
        Topology {
            processor: format!(
                "{} x {} cores, {} at {}",
                host.sockets.value,
                host.core.count.value,
                host.core.microarchitecture.value,
                host.core.clock.value
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
            description: dram_in_words(&self.host),
            limits: Some(self.host.dram.limits()),
        }];
        tiers.extend(self.devices.iter().enumerate().map(|(n, a)| cxl_tier(n, a)));
        if self.host.remote.is_some() {
            tiers.push(Tier {
                name: TierName::remote(),
                kind: TierKind::Remote,
                node: None,
                capacity: self.host.dram.capacity.value,
                description: format!("{}, other socket", dram_in_words(&self.host)),
                // The socket link's rate is no parameter, so only the media bounds this tier.
                limits: Some(self.host.dram.limits()),
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

fn dram_in_words(host: &Host) -> String {
    let grade = host.dram.media.name().to_uppercase();
    format!("{} x {grade}", host.dram.channels.value)
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
            // The same bounds: what the socket link adds is measured, not known from parts.
            true => Limits {
                basis: format!("{}; the socket link is left out", device.limits().basis),
                ..device.limits()
            },
        }),
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
