//! What a host lacks for steering, and the effect of each loss.

use weir_model::capability::{Capability, Feature, Unavailable};

use super::actuators::{allocation, weights};
use super::config::HostConfig;
use super::sensors::probe::Probe;
use super::sensors::touched::Touched;
use super::sensors::traffic;
use super::sensors::uncore::Uncore;
use crate::root::Root;

/// The effect of timed loads in place of the Tables of Requests.
const BY_PROBE: &str = "loads from the fast tier are timed instead: that it is slow is seen, but not what \
    fills the Table of Requests, nor how busy the slow tier is; holds are tried, and are narrower";

/// The capabilities of the host, present and missing.
pub(super) fn all(
    root: &Root,
    config: &HostConfig,
    uncore: &Uncore,
    probe: &Result<Probe, Unavailable>,
) -> Vec<Capability> {
    let mut all = uncore.capabilities().to_vec();
    if !uncore.counts_tables() {
        for known in all.iter_mut().filter(|c| c.feature == Feature::UncorePmu) {
            match probe {
                Ok(_) => known.cost = BY_PROBE.to_owned(),
                Err(why) => known.cost = format!("{}; nor are loads timed: {why}", known.cost),
            }
        }
    }
    all.push(match traffic::find(root) {
        Ok(()) => Capability::present(Feature::BandwidthMonitoring, "MBM counts bytes by group"),
        Err(why) => Capability::missing(
            Feature::BandwidthMonitoring,
            why.reason,
            "the bytes of tenants cannot be separated; all get the same limit",
            "mount -t resctrl resctrl /sys/fs/resctrl, on a processor with MBM",
        ),
    });
    all.push(match allocation::scale(root, config.full) {
        Ok(scale) => {
            let detail = format!("{} bounds bandwidth", scale.resource);
            Capability::present(Feature::Resctrl, detail)
        }
        Err(why) => Capability::missing(
            Feature::Resctrl,
            why.reason,
            "tenants are held by cores and processor time only, in coarser steps",
            "mount -t resctrl resctrl /sys/fs/resctrl, on a processor with MBA or SMBA",
        ),
    });
    all.push(match weights::find(root) {
        Ok(()) => Capability::present(Feature::InterleaveWeights, "weights can be set"),
        Err(why) => Capability::missing(
            Feature::InterleaveWeights,
            why.reason,
            "pages are interleaved one to one",
            "Linux 6.9",
        ),
    });
    all
}

/// Whether accesses are sampled.
pub(super) fn of_samples(touched: &Result<Touched, Unavailable>) -> Capability {
    match touched {
        Ok(_) => Capability::present(
            Feature::CorePmu,
            "accesses are sampled with their addresses",
        ),
        Err(why) => Capability::missing(
            Feature::CorePmu,
            why.reason.clone(),
            "the pages on the slow tier, used or not, show which tenants use it",
            "a bare-metal host with PEBS or IBS, and CAP_PERFMON",
        ),
    }
}
