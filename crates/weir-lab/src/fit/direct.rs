//! Parameters that are measured figures themselves, or follow from one by arithmetic.

use weir_model::access::{Op, Pattern};
use weir_model::document::Point;
use weir_model::platform::{Host, Platform, Provenance};
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use super::evidence::LoadedCurve;
use super::median;
use super::outcome::{FittedParameter, How};
use super::twin::Twin;

/// A figure of one load alone on the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Single {
    /// The tier.
    pub tier: TierName,
    /// What it is.
    pub what: What,
    /// The figure, in ns or GB/s.
    pub value: f64,
    /// Half of its 95 % interval, in the same unit; 0 where it is not known.
    pub half: f64,
}

/// What a figure of one load alone is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Latency of a chase.
    Idle,
    /// Bandwidth of so many threads that load.
    Loads(u32),
    /// Bandwidth of the program of so many threads of temporal stores.
    Stores(u32),
    /// Bandwidth of so many threads of non-temporal stores.
    Posted(u32),
    /// Bandwidth of one thread of movdir64B.
    Movdir64b,
}

impl Single {
    /// The figure of a point, where it is one that a parameter is.
    pub fn of(point: &Point) -> Option<Self> {
        let alone = point.beside.is_none() && point.source.is_none() && point.cache_ways.is_none();
        if !alone || point.socket != 0 || point.error.is_some() {
            return None;
        }
        // As of a log that does not say how many there were, there was more than one.
        let threads = match point.threads {
            0 => u32::MAX,
            threads => threads,
        };
        let (what, value) = match (point.experiment.as_str(), point.op) {
            ("loaded", Op::Ld) => (What::Idle, point.ns?.mean.get()),
            ("bandwidth", op)
                if point.prefetch
                    && point.read_share.is_none()
                    && point.pattern == Pattern::Sequential.name() =>
            {
                let what = match op {
                    Op::Ld => What::Loads(threads),
                    Op::St => What::Stores(threads),
                    Op::NtSt => What::Posted(threads),
                    Op::Movdir64b if threads == 1 => What::Movdir64b,
                    _ => return None,
                };
                (what, point.gbps?.get())
            }
            _ => return None,
        };
        (value > 0.0).then(|| Self {
            tier: point.tier.clone(),
            what,
            value,
            half: point.ci95.unwrap_or(0.0),
        })
    }

    /// The same figures, from the used points of curves under load.
    pub fn of_curves(curves: &[LoadedCurve]) -> Vec<Self> {
        let mut singles: Vec<Self> = Vec::new();
        let mut tiers: Vec<&TierName> = curves.iter().map(|c| &c.tier).collect();
        tiers.dedup();
        for tier in tiers {
            let of_tier = || curves.iter().filter(|c| c.tier == *tier);
            let least: Vec<f64> = of_tier()
                .filter_map(|c| c.points.first().filter(|p| p.used))
                .map(|p| p.latency.get())
                .collect();
            if !least.is_empty() {
                let spread = |all: &[f64]| {
                    let most = all.iter().copied().fold(f64::MIN, f64::max);
                    (most - all.iter().copied().fold(f64::MAX, f64::min)) / 2.0
                };
                singles.push(Self {
                    tier: tier.clone(),
                    what: What::Idle,
                    value: median(&least),
                    half: spread(&least),
                });
            }
            for curve in of_tier().filter(|c| c.traffic.mix.is_none()) {
                let Some(top) = curve.points.last().filter(|p| p.used) else {
                    continue;
                };
                // A log that does not say how many threads there were had more than one.
                let threads = curve.threads.unwrap_or(u32::MAX);
                let traffic = top.bandwidth.get();
                let (what, value) = match curve.traffic.op {
                    Op::Ld => (What::Loads(threads), traffic),
                    Op::St => (What::Stores(threads), traffic / 2.0),
                    _ => (What::Posted(threads), traffic),
                };
                let tier = tier.clone();
                singles.push(Self {
                    tier,
                    what,
                    value,
                    half: 0.0,
                });
            }
        }
        singles
    }
}

/// The figure of a tier that is largest among those of a kind.
fn most<'s>(singles: &'s [Single], tier: &TierName, kind: fn(What) -> bool) -> Option<&'s Single> {
    let of_kind = singles.iter().filter(|s| s.tier == *tier && kind(s.what));
    of_kind.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// Puts every parameter that is a measured figure into the files of a machine.
pub fn apply(singles: &[Single], from: &str, twin: &mut Twin) -> Vec<FittedParameter> {
    let mut put = Put {
        from,
        twin,
        done: Vec::new(),
    };
    let (dram, remote) = (TierName::dram(), TierName::remote());
    let loads = |what| matches!(what, What::Loads(_));
    // One thread is limited by its core.
    let posted = |what| matches!(what, What::Posted(2..));
    let idle = |what| what == What::Idle;
    let one = |what: What| {
        most(
            singles,
            &dram,
            match what {
                What::Loads(_) => |w| w == What::Loads(1),
                What::Stores(_) => |w| w == What::Stores(1),
                _ => |w| w == What::Posted(1),
            },
        )
    };
    put.time(
        None,
        "dram.idle",
        "a chase alone",
        most(singles, &dram, idle),
    );
    let peak = most(singles, &dram, loads);
    put.rate(
        None,
        "dram.read",
        "the most of any number of loading threads",
        peak,
    );
    let nt_peak = most(singles, &dram, posted);
    put.rate(
        None,
        "dram.nt_write",
        "the most of any number of threads of non-temporal stores",
        nt_peak,
    );
    let core = one(What::Loads(1)).map(|s| Single {
        value: peak.map_or(s.value, |peak| s.value.min(peak.value)),
        ..s.clone()
    });
    put.rate(
        None,
        "core.load_peak",
        "one thread that loads",
        core.as_ref(),
    );
    put.rate(
        None,
        "core.store_peak",
        "one thread that stores",
        one(What::Stores(1)),
    );
    let movdir = most(singles, &dram, |w| w == What::Movdir64b);
    if let (Some(movdir), Some(nt)) = (movdir, one(What::Posted(1))) {
        let share = (movdir.value / nt.value).min(1.0);
        put.share(None, "core.movdir64b_share", "one thread of each", share);
    }
    if let (idle @ Some(_), read @ Some(_)) =
        (most(singles, &remote, idle), most(singles, &remote, loads))
    {
        put.time(
            None,
            "remote.idle",
            "a chase alone on the other socket's memory",
            idle,
        );
        put.rate(
            None,
            "remote.read",
            "the most of any number of threads that load there",
            read,
        );
    }
    for tier in put.twin.tiers() {
        put.time(
            Some(&tier),
            "idle",
            "a chase alone",
            most(singles, &tier, idle),
        );
        let read = most(singles, &tier, loads);
        put.rate(
            Some(&tier),
            "read",
            "the most of any number of loading threads",
            read,
        );
    }
    put.done
}

/// `core.nt_store_hold`, from what one thread of non-temporal stores writes through the buffers of its core.
pub fn hold(singles: &[Single], from: &str, host: &Host, twin: &mut Twin) -> Vec<FittedParameter> {
    let one = most(singles, &TierName::dram(), |w| w == What::Posted(1));
    let buffers = f64::from(host.core.line_fill_buffers.value) * LINE_BYTES as f64;
    let held = one.map(|s| Single {
        value: buffers / s.value,
        half: buffers / s.value * s.half / s.value,
        ..s.clone()
    });
    let mut put = Put {
        from,
        twin,
        done: Vec::new(),
    };
    let what = "all fill buffers over what one thread of non-temporal stores writes";
    put.time(None, "core.nt_store_hold", what, held.as_ref());
    put.done
}

/// Stores fill a device's link if they reach this part of what its slots carry.
const FILLED: f64 = 0.85;

/// `efficiency` of links, from what the most threads of non-temporal stores write through them.
pub fn links(
    singles: &[Single],
    from: &str,
    platform: &Platform,
    twin: &mut Twin,
) -> Vec<FittedParameter> {
    let mut put = Put {
        from,
        twin,
        done: Vec::new(),
    };
    for (tier, attached) in put.twin.tiers().iter().zip(&platform.devices) {
        let device = &attached.device;
        let limit = device.link.write_limit().get();
        let media = device.media_peak().get();
        let Some(posted) = most(singles, tier, |w| matches!(w, What::Posted(_))) else {
            continue;
        };
        let share = (posted.value / limit).min(1.0);
        // Below, the media or the controller may be what limits them.
        if share >= FILLED && limit < media * FILLED {
            let what = "the most of any number of threads of non-temporal stores over the slots of the link";
            put.share(Some(tier), "efficiency", what, share);
        }
    }
    put.done
}

/// Puts values into drafts, and lists them.
struct Put<'a> {
    from: &'a str,
    twin: &'a mut Twin,
    done: Vec<FittedParameter>,
}

impl Put<'_> {
    fn time(&mut self, tier: Option<&TierName>, key: &str, what: &str, single: Option<&Single>) {
        if let Some(single) = single {
            let shown = |ns: f64| Nanos(rounded(ns)).to_string();
            self.value(tier, key, what, single, &shown);
        }
    }

    fn rate(&mut self, tier: Option<&TierName>, key: &str, what: &str, single: Option<&Single>) {
        if let Some(single) = single {
            let shown = |gbps: f64| GbPerSec(rounded(gbps)).to_string();
            self.value(tier, key, what, single, &shown);
        }
    }

    fn share(&mut self, tier: Option<&TierName>, key: &str, what: &str, share: f64) {
        let single = Single {
            tier: TierName::dram(),
            what: What::Idle,
            value: share,
            half: 0.0,
        };
        self.value(tier, key, what, &single, &|share| {
            rounded(share).to_string()
        });
    }

    fn value(
        &mut self,
        tier: Option<&TierName>,
        key: &str,
        what: &str,
        single: &Single,
        shown: &dyn Fn(f64) -> String,
    ) {
        let value = shown(single.value);
        let (low, high) = (single.value - single.half, single.value + single.half);
        let range = (single.half > 0.0).then(|| (shown(low), shown(high)));
        let within = range.as_ref().map_or(String::new(), |(low, high)| {
            format!("; {low} to {high} with its scatter")
        });
        let why = format!("measured: {what}, {}{within}", self.from);
        let provenance = Provenance::Source(why.clone());
        if let Some(part) = self.twin.set(tier, key, &value, provenance) {
            let (low, high) = range.unzip();
            self.done.push(FittedParameter {
                part,
                key: key.into(),
                value,
                low,
                high,
                how: How::Measured,
                why,
            });
        }
    }
}

/// Four digits, which is more than any figure is certain of.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(rounded(69.691_733), 69.69);
        assert_eq!(rounded(255.04), 255.0);
        assert_eq!(rounded(0.012_345_6), 0.012_35);
        assert_eq!(rounded(0.0), 0.0);
    }
}
