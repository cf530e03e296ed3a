//! What a space varies.

use weir_model::platform::FileKind;
use weir_model::tenant::Placement;
use weir_model::topology::{TierKind, TierName, Topology};

use crate::silicon::Item;

/// An axis of a space.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its name in tables and pictures.
    pub name: String,
    /// What it varies.
    pub key: Key,
    /// Its values, as written.
    pub values: Vec<String>,
}

impl Axis {
    /// Whether its values are figures, so that neighbours are alike.
    pub fn is_ordered(&self) -> bool {
        let figure = |value: &String| value.starts_with(|c: char| c.is_ascii_digit());
        !matches!(self.key, Key::Platform | Key::Policy | Key::Controller)
            && self.values.iter().all(figure)
    }
}

/// What an axis varies.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// The whole platform, as `--on` takes it.
    Platform,
    /// How many of a device the server has; without a part, of its only one.
    Cards(Option<String>),
    /// DDR channels of a socket, with the bandwidth that was measured for each.
    Ddr,
    /// What every device adds to the latency of local memory, in ns.
    Premium,
    /// Threads of every workload, which are the cores in use.
    Threads,
    /// Where the pages of the workloads are.
    Policy,
    /// What limits the tenants that run with the workloads.
    Controller,
    /// A figure of [`silicon`](crate::silicon).
    Silicon(Item),
    /// The price of memory, in USD a GiB.
    DramPrice,
    /// The price of a card, in USD.
    CardPrice,
    /// A key of a platform file, of the host or of devices.
    File {
        /// The key.
        path: &'static str,
        /// Whether it is of the host's file.
        of_host: bool,
        /// The one device that it is of; all where none is named.
        part: Option<String>,
    },
}

/// The keys that are not of platform files, for messages.
pub const DERIVED: [&str; 9] = [
    "platform",
    "cards",
    "ddr",
    "premium",
    "threads",
    "policy",
    "controller",
    "price.dram",
    "price.card",
];

impl Key {
    /// The key of this name; `part` names the device that is meant.
    pub fn named(name: &str, part: Option<String>) -> Option<Self> {
        let derived = match name {
            "platform" => Self::Platform,
            "cards" => return Some(Self::Cards(part)),
            "ddr" => Self::Ddr,
            "premium" => Self::Premium,
            "threads" => Self::Threads,
            "policy" => Self::Policy,
            "controller" => Self::Controller,
            "price.dram" => Self::DramPrice,
            "price.card" => Self::CardPrice,
            name => match name.strip_prefix("silicon.") {
                Some(item) => Self::Silicon(Item::named(item)?),
                None => {
                    let of = |kind: FileKind| kind.keys().iter().find(|key| key.path == name);
                    let host = of(FileKind::Host).filter(|_| part.is_none());
                    let key = host.or_else(|| of(FileKind::Device))?;
                    return Some(Self::File {
                        path: key.path,
                        of_host: host.is_some(),
                        part,
                    });
                }
            },
        };
        part.is_none().then_some(derived)
    }

    /// The figures that it takes and what they are, where its values are plain numbers.
    pub fn bounds(&self) -> Option<(f64, f64, &'static str)> {
        Some(match self {
            Self::Cards(_) => (0.0, 64.0, "a whole number between 0 and 64"),
            Self::Ddr => (1.0, 64.0, "a whole number between 1 and 64"),
            Self::Threads => (1.0, 1024.0, "a whole number between 1 and 1024"),
            Self::Premium => (0.0, 100_000.0, "a number of ns between 0 and 100000"),
            Self::DramPrice | Self::CardPrice => (0.0, 1e9, "a number between 0 and 1000000000"),
            Self::Silicon(Item::DimmIdleShare) => (0.0, 1.0, "a number between 0 and 1"),
            Self::Silicon(_) => (0.0, 1e6, "a number between 0 and 1000000"),
            Self::Platform | Self::Policy | Self::Controller | Self::File { .. } => return None,
        })
    }

    /// Whether its numbers are whole.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Cards(_) | Self::Ddr | Self::Threads)
    }
}

/// Where pages go: tiers with weights, such as `dram=3,cxl0=1`. `cxl` stands for every CXL tier of the design.
///
/// # Errors
/// It has no such form.
pub fn policy(text: &str) -> Result<Vec<(String, u32)>, String> {
    let part = |part: &str| {
        let (tier, weight) = part.split_once('=').unwrap_or((part, "1"));
        let weight = weight.trim().parse::<u32>().ok();
        match (
            tier.trim(),
            weight.filter(|weight| (1..=255).contains(weight)),
        ) {
            ("", _) | (_, None) => Err(format!(
                "`{part}` is no tier with a number of pages from 1 to 255, such as dram=3"
            )),
            (tier, Some(weight)) => check_tier(tier).map(|()| (tier.to_owned(), weight)),
        }
    };
    text.split(',').map(part).collect()
}

/// Refuses a name that no model gives to a tier of memory.
///
/// # Errors
/// It is none.
pub fn check_tier(name: &str) -> Result<(), String> {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match matches!(kind, "dram" | "cxl") || name == "remote" {
        true => Ok(()),
        false => Err(format!(
            "no design has a tier `{name}`; there are dram, dram1, ..., cxl0, cxl1, ..., remote, and cxl for every CXL tier"
        )),
    }
}

/// The placement of a policy on a machine.
///
/// # Errors
/// It names a tier that the machine does not have.
pub fn placement(parts: &[(String, u32)], topology: &Topology) -> Result<Placement, String> {
    let mut weights: Vec<(TierName, u32)> = Vec::new();
    for (name, weight) in parts {
        let own = |kind| matches!(kind, TierKind::Cxl | TierKind::RemoteCxl);
        let tiers = topology.tiers.iter().filter(|tier| match name.as_str() {
            "cxl" => own(tier.kind),
            name => tier.name.as_str() == name,
        });
        let before = weights.len();
        weights.extend(tiers.map(|tier| (tier.name.clone(), *weight)));
        if weights.len() == before {
            return Err(format!("this design has no tier `{name}`"));
        }
    }
    Ok(match weights.as_slice() {
        [(tier, _)] => Placement::Bind(tier.clone()),
        _ => Placement::Interleave(weights),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_the_space_of_a_host_or_of_a_device() {
        let file = |name: &str, part: Option<&str>| Key::named(name, part.map(str::to_owned));
        assert!(matches!(
            file("llc.size", None),
            Some(Key::File { of_host: true, .. })
        ));
        assert!(matches!(
            file("lanes", None),
            Some(Key::File { of_host: false, .. })
        ));
        assert_eq!(
            file("silicon.lane_w", None),
            Some(Key::Silicon(Item::LaneW))
        );
        assert_eq!(file("silicon.nothing", None), None);
        assert_eq!(file("llc.colour", None), None);
        // A part is of a device.
        assert_eq!(file("threads", Some("cxl-a")), None);
        for name in DERIVED {
            assert!(file(name, None).is_some(), "{name}");
        }
    }

    #[test]
    fn a_policy_is_tiers_with_weights() {
        let weights =
            |text| policy(text).map(|parts| parts.iter().map(|(_, w)| *w).collect::<Vec<_>>());
        assert_eq!(weights("dram"), Ok(vec![1]));
        assert_eq!(weights("dram=3, cxl=1"), Ok(vec![3, 1]));
        assert_eq!(weights("dram1=2, cxl12, remote"), Ok(vec![2, 1, 1]));
        // Designs without this tier were a part of the space, all of them impossible.
        for wrong in [
            "",
            "dram=0",
            "dram=many",
            "=3",
            "dram,,cxl0",
            "dram=3,clx=1",
        ] {
            assert!(policy(wrong).is_err(), "{wrong:?}");
        }
    }
}
