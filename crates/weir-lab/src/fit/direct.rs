//! Parameters that are measured figures themselves, or follow from one by arithmetic.

use weir_model::platform::{Host, Platform};
use weir_model::topology::TierName;
use weir_model::units::LINE_BYTES;

use super::evidence::{Single, What};
use super::outcome::FittedParameter;
use super::put::Put;
use super::twin::Twin;

/// The figure of a tier that is largest among those of a kind.
fn most<'s>(singles: &'s [Single], tier: &TierName, kind: fn(What) -> bool) -> Option<&'s Single> {
    let of_kind = singles.iter().filter(|s| s.tier == *tier && kind(s.what));
    of_kind.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// Threads that were added and gave at least this part of what each of those before gives are limited by their cores.
const AS_MUCH: f64 = 0.8;

/// The most threads that loaded a tier, where each of those that came last gave as much as the others, so that more threads
/// would give more.
fn rising(singles: &[Single], tier: &TierName, kind: fn(What) -> Option<u32>) -> Option<u32> {
    let of_tier = singles.iter().filter(|single| single.tier == *tier);
    let curve: Vec<(u32, f64)> = of_tier
        .filter_map(|single| Some((kind(single.what)?, single.value)))
        .collect();
    let most = *curve.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let fewer = curve.iter().filter(|point| point.0 < most.0);
    let before = *fewer.max_by_key(|point| point.0)?;
    // As of a log that does not say how many threads there were, they are as many as the cores.
    let known = most.0 < u32::MAX && curve.iter().all(|point| point.0 <= most.0);
    let more = (most.1 - before.1) / f64::from(most.0 - before.0);
    (known && more >= AS_MUCH * before.1 / f64::from(before.0)).then_some(most.0)
}

/// Puts every parameter that is a measured figure into the files of a machine. Returns those, and what figures are no peak.
pub fn apply(
    singles: &[Single],
    from: &str,
    twin: &mut Twin,
) -> (Vec<FittedParameter>, Vec<String>) {
    let cores = twin.host.get("core.count").and_then(|n| n.parse().ok());
    let mut put = Put::new(from, twin);
    put.cores = cores.unwrap_or(u32::MAX);
    let all_loads = |what| match what {
        What::Loads(threads) => Some(threads),
        _ => None,
    };
    let all_posted = |what| match what {
        What::Posted(threads) => Some(threads),
        _ => None,
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
        rising(singles, &dram, all_loads),
    );
    let nt_peak = most(singles, &dram, posted);
    put.rate(
        None,
        "dram.nt_write",
        "the most of any number of threads of non-temporal stores",
        nt_peak,
        rising(singles, &dram, all_posted),
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
        None,
    );
    put.rate(
        None,
        "core.store_peak",
        "one thread that stores",
        one(What::Stores(1)),
        None,
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
            rising(singles, &remote, all_loads),
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
            rising(singles, &tier, all_loads),
        );
    }
    (put.done, put.no_peaks)
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
    let mut put = Put::new(from, twin);
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
    let mut put = Put::new(from, twin);
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::platform::{Draft, FileKind, Provenance};

    fn fitted(curve: &[(u32, f64)], known: Option<&str>) -> (Vec<FittedParameter>, usize, Twin) {
        let mut host = Draft::new(FileKind::Host, "mine", "fitted");
        let says = || Provenance::Source("it is so".into());
        host.set("core.count", "32", says());
        if let Some(known) = known {
            host.set("dram.read", known, says());
        }
        let mut twin = Twin {
            host,
            devices: Vec::new(),
        };
        let single = |&(threads, value): &(u32, f64)| Single {
            tier: TierName::dram(),
            what: What::Loads(threads),
            value,
            half: 0.0,
        };
        let singles: Vec<Single> = curve.iter().map(single).collect();
        let (done, no_peaks) = apply(&singles, "run 1", &mut twin);
        (done, no_peaks.len(), twin)
    }

    #[test]
    fn a_curve_that_still_rises_has_no_peak() {
        let rises = [(1, 17.0), (4, 68.0), (8, 134.7)];
        let is_read = |done: &[FittedParameter]| done.iter().any(|p| p.key == "dram.read");
        let (done, no_peaks, twin) = fitted(&rises, None);
        assert_eq!((is_read(&done), no_peaks), (false, 1));
        let mut rows = twin.host.rows();
        let (_, value, provenance) = rows.find(|row| row.0 == "dram.read").unwrap();
        let Provenance::Assumed { low, high, .. } = provenance else {
            panic!("{provenance:?}");
        };
        assert_eq!(
            (value, &**low, &**high),
            ("134.7 GB/s", "134.7 GB/s", "538.8 GB/s")
        );
        // What a base says stays where it may be so.
        let (_, _, twin) = fitted(&rises, Some("241 GB/s"));
        assert_eq!(twin.host.get("dram.read"), Some("241 GB/s"));
        let (_, _, twin) = fitted(&rises, Some("100 GB/s"));
        assert_eq!(twin.host.get("dram.read"), Some("134.7 GB/s"));
        // It bends, or there are no more cores.
        for curve in [
            vec![(1, 17.0), (8, 134.7), (16, 200.0)],
            vec![(1, 17.0), (32, 540.0)],
            vec![(8, 134.7)],
        ] {
            let (done, no_peaks, _) = fitted(&curve, None);
            assert_eq!((is_read(&done), no_peaks), (true, 0), "{curve:?}");
        }
    }
}
