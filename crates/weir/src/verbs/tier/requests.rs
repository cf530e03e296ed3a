//! What `weir tier run` is asked for: its arguments, and their words.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use weir_linux::memory::AddressRange;
use weir_model::scope::Scope;
use weir_model::tiering::{Balancing, Heat, KernelTiering};
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, Nanos};

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir tier run --for 10s
  weir tier run --demotion on --balancing tiering --promote-limit '0.1 GB/s'
  weir tier run --demotion on --demote 'cgroup:/batch.slice=0.05 GB/s'
  weir tier run --weights dram=3,cxl0=1 --for 60s
  weir tier run --move pid:4711:7f0000000000-7f0010000000=cxl0 \\
      --move-rate '0.1 GB/s'
  weir tier run --schemes 'hot:dram:0.2 GB/s,cold:cxl0:0.1 GB/s' --for 60s

Without settings nothing is changed. With them it needs root; they apply to the
whole machine until --for is over or a stop is requested (Ctrl-C, SIGTERM), and
are then restored. After kill -9, `weir steer restore` restores them. Pages
that --move or --schemes has moved stay where they are: nothing moves them
back. With --move alone the run ends when all has moved.

Exit codes: 3 where the kernel lacks what is asked for.")]
pub struct Args {
    /// Whether reclaim demotes cold pages to slower tiers.
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(["on", "off"]))]
    pub(super) demotion: Option<String>,
    /// What NUMA balancing does: tiering promotes hot pages of slow tiers.
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(Balancing::ALL.map(Balancing::name)))]
    pub(super) balancing: Option<String>,
    /// At most this much is promoted to a tier.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(super) promote_limit: Option<GbPerSec>,
    /// The weights of weighted interleave, from 1 to 255.
    #[arg(long, value_name = "TIER=N", value_delimiter = ',')]
    pub(super) weights: Vec<Weight>,
    /// Demote cold pages of this control group at this rate; may be repeated.
    #[arg(long, value_name = "SCOPE=RATE")]
    pub(super) demote: Vec<Demote>,
    /// Demote nothing more of a group whose tasks wait for memory longer than this share of the time, in percent
    /// (TMO, ASPLOS 2022, section 3.3).
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.1,
        requires = "demote"
    )]
    pub(super) pressure: f64,
    /// Move the pages of these addresses of a process to a tier; may be repeated. They stay there after the run.
    #[arg(long = "move", value_name = "pid:N:START-END=TIER")]
    pub(super) moves: Vec<Move>,
    /// At most this much of each --move is moved.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "0.2 GB/s", requires = "moves")]
    pub(super) move_rate: GbPerSec,
    /// Migrate what DAMON finds hot or cold to a tier, each at most at its rate.
    #[arg(long, value_name = "HEAT:TIER:RATE", value_delimiter = ',')]
    pub(super) schemes: Vec<Migrate>,
    /// The memory to which --schemes apply: cgroup:/PATH, unit:NAME, or pid:N (Linux 6.17); all where it is left out.
    #[arg(long, value_name = "SCOPE", requires = "schemes")]
    pub(super) schemes_of: Option<Scope>,
    /// The length of a window.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(super) window: Nanos,
    /// How long it runs; until a stop is requested if it is left out.
    #[arg(long = "for", value_name = "TIME")]
    pub(super) lasts: Option<Nanos>,
    /// The folder of the journal.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/weir/steer")]
    pub(super) journal: PathBuf,
}

impl Args {
    /// The kernel's settings that are asked for.
    pub(super) fn settings(&self) -> KernelTiering {
        KernelTiering {
            demotion: self.demotion.as_deref().map(|when| when == "on"),
            balancing: self.balancing.as_deref().and_then(Balancing::named),
            promote_limit: self.promote_limit,
        }
    }
}

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
