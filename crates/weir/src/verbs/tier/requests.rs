//! What `weir tier run` is asked for, as words of the command line.

use std::str::FromStr;

use weir_linux::memory::AddressRange;
use weir_model::scope::Scope;
use weir_model::tiering::Heat;
use weir_model::topology::TierName;
use weir_model::units::GbPerSec;

pub(super) fn rate(text: &str) -> std::result::Result<GbPerSec, String> {
    let rate: GbPerSec = text.parse().map_err(|error| format!("{error}"))?;
    match rate.get() > 0.0 && rate.get().is_finite() {
        true => Ok(rate),
        false => Err("a rate is more than 0 GB/s".into()),
    }
}

/// The weight of a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Weight(pub TierName, pub u32);

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (tier, number) = text.split_once('=').ok_or("write TIER=N, as dram=3")?;
        match number.parse() {
            Ok(weight) if (1..=255).contains(&weight) => Ok(Self(TierName::named(tier), weight)),
            _ => Err(format!("`{number}` is not a weight from 1 to 255")),
        }
    }
}

/// A control group and the rate at which its cold pages are demoted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Demote(pub Scope, pub GbPerSec);

impl FromStr for Demote {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        // A path may have `=` in it.
        let (scope, of) = text
            .rsplit_once('=')
            .ok_or("write SCOPE=RATE, as 'cgroup:/batch=0.05 GB/s'")?;
        let scope = scope.parse().map_err(|error| format!("{error}"))?;
        Ok(Self(scope, rate(of)?))
    }
}

/// A part of a process's memory and the tier to which it moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move(pub AddressRange, pub TierName);

impl FromStr for Move {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (range, tier) = text
            .split_once('=')
            .ok_or("write pid:NUMBER:START-END=TIER, as pid:4711:7f0000000000-7f0010000000=cxl0")?;
        Ok(Self(range.parse()?, TierName::named(tier)))
    }
}

/// A scheme of DAMON: what it takes, to which tier, and how much in a second.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Migrate {
    pub heat: Heat,
    pub tier: TierName,
    pub rate: GbPerSec,
}

impl FromStr for Migrate {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let form = "write hot:TIER:RATE or cold:TIER:RATE, as 'hot:dram:0.2 GB/s'";
        let (Some(heat), Some(tier), Some(of)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(form.into());
        };
        Ok(Self {
            heat: Heat::named(heat).ok_or(form)?,
            tier: TierName::named(tier),
            rate: rate(of)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_its_rate_are_read_apart_and_mistakes_named() {
        let Demote(scope, rate) = "cgroup:/a=b/c=0.5 GB/s".parse().unwrap();
        assert_eq!(scope, "cgroup:/a=b/c".parse().unwrap());
        assert_eq!(rate, GbPerSec(0.5));
        for wrong in [
            "cgroup:/a",
            "cgroup:/a=",
            "cgroup:/a=-1 GB/s",
            "cgroup:/a=0 GB/s",
            "a=1 GB/s",
        ] {
            assert!(wrong.parse::<Demote>().is_err(), "{wrong}");
        }
        let cold: Migrate = "cold:cxl0:0.1 GB/s".parse().unwrap();
        assert_eq!((cold.heat, cold.rate), (Heat::Cold, GbPerSec(0.1)));
        for wrong in ["hot:dram", "warm:dram:1 GB/s", "hot:dram:0 GB/s", "hot"] {
            assert!(wrong.parse::<Migrate>().is_err(), "{wrong}");
        }
        assert_eq!("dram=3".parse(), Ok(Weight(TierName::dram(), 3)));
        for wrong in ["dram", "dram=0", "dram=256", "dram=x"] {
            assert!(wrong.parse::<Weight>().is_err(), "{wrong}");
        }
    }
}
