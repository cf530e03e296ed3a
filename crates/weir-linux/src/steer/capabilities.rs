//! What a host lacks to be steered, and what each loss costs.

use weir_model::capability::{Capability, Feature};

use super::config::HostConfig;
use super::means::{allocation, weights};
use super::sight::traffic;
use super::sight::uncore::Uncore;
use crate::root::Root;

/// What it offers and what it lacks.
pub(super) fn all(root: &Root, config: &HostConfig, uncore: &Uncore) -> Vec<Capability> {
    let mut all = uncore.capabilities().to_vec();
    all.push(match traffic::find(root) {
        Ok(()) => Capability::present(Feature::BandwidthMonitoring, "MBM counts bytes by group"),
        Err(why) => Capability::missing(
            Feature::BandwidthMonitoring,
            why.reason,
            "whose bytes are whose is not told; tenants are held alike",
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
