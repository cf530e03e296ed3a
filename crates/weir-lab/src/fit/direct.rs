//! Parameters that are measured figures themselves, or follow from one by arithmetic.

use weir_model::platform::{Host, Platform, Provenance};
use weir_model::topology::TierName;
use weir_model::units::{GbPerSec, LINE_BYTES, Nanos};

use super::evidence::{Single, What};
use super::outcome::{FittedParameter, How};
use super::twin::Twin;

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
