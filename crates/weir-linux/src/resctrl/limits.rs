//! The limits of the hardware, from the `info` folder.

use weir_model::capability::Unavailable;

use super::{MOUNT, Resctrl, Resource};

/// The valid masks of ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Every way (`cbm_mask`).
    pub all: u64,
    /// The fewest that a mask names (`min_cbm_bits`).
    pub least: u32,
    /// Whether they need not be adjacent (`sparse_masks`, Linux 6.7); older kernels do not say.
    pub sparse: Option<bool>,
    /// Groups that the processor can distinguish; the first is the default group (`num_closids`).
    pub groups: u32,
}

/// The valid bandwidths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandwidthLimits {
    /// The least (`min_bandwidth`).
    pub least: u64,
    /// The step to which others are rounded (`bandwidth_gran`).
    pub step: u64,
    /// As [`CacheLimits::groups`].
    pub groups: u32,
}

impl CacheLimits {
    /// Whether a mask is valid.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, mask: u64) -> Result<(), Unavailable> {
        let wrong = |why: String| Err(Unavailable::because(format!("cache ways {mask:#x}: {why}")));
        if mask & !self.all != 0 {
            return wrong(format!("the cache has {:#x}", self.all));
        }
        if mask.count_ones() < self.least.max(1) {
            return wrong(format!("at least {} are needed", self.least.max(1)));
        }
        let run = mask >> mask.trailing_zeros();
        if self.sparse == Some(false) && run & run.wrapping_add(1) != 0 {
            return wrong("this processor wants them side by side".to_owned());
        }
        Ok(())
    }
}

impl Resctrl {
    /// The valid masks of a cache.
    ///
    /// # Errors
    /// The resource is not allocated here, or its limits cannot be read.
    pub fn cache_limits(&self, resource: Resource) -> Result<CacheLimits, Unavailable> {
        let mask = self.info(resource, "cbm_mask")?;
        let all = u64::from_str_radix(&mask, 16).map_err(|_| {
            Unavailable::because(format!(
                "{resource}/cbm_mask says `{mask}`, which is no mask"
            ))
        })?;
        let sparse = self.info(resource, "sparse_masks").ok();
        Ok(CacheLimits {
            all,
            least: self.number(resource, "min_cbm_bits")?,
            sparse: sparse.map(|text| text == "1"),
            groups: self.number(resource, "num_closids")?,
        })
    }

    /// The valid bandwidths.
    ///
    /// # Errors
    /// As [`cache_limits`](Self::cache_limits).
    pub fn bandwidth_limits(&self, resource: Resource) -> Result<BandwidthLimits, Unavailable> {
        Ok(BandwidthLimits {
            least: self.number(resource, "min_bandwidth")?,
            step: self.number(resource, "bandwidth_gran")?,
            groups: self.number(resource, "num_closids")?,
        })
    }

    /// The resources that divide the last-level cache: one, or two if code and data are separate.
    ///
    /// # Errors
    /// The processor does not allocate its last-level cache.
    pub fn last_level(&self) -> Result<Vec<Resource>, Unavailable> {
        let all = [Resource::L3, Resource::L3Code, Resource::L3Data];
        let there = |r: &Resource| self.root.exists(&format!("{MOUNT}/info/{r}/cbm_mask"));
        let there: Vec<Resource> = all.into_iter().filter(there).collect();
        if there.is_empty() {
            return Err(Unavailable::because(format!(
                "this processor does not allocate its last-level cache (no {MOUNT}/info/L3; CAT on Intel, QoS on AMD)"
            )));
        }
        Ok(there)
    }

    fn info(&self, resource: Resource, name: &str) -> Result<String, Unavailable> {
        let text = self.root.text(&format!("{MOUNT}/info/{resource}/{name}"));
        text.get().cloned()
    }

    fn number<T: std::str::FromStr>(
        &self,
        resource: Resource,
        name: &str,
    ) -> Result<T, Unavailable> {
        let text = self.info(resource, name)?;
        text.parse().map_err(|_| {
            Unavailable::because(format!(
                "{resource}/{name} says `{text}`, which is no number"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_ways_enough_of_the_cache_side_by_side() {
        let limits = CacheLimits {
            all: 0xff0,
            least: 2,
            sparse: Some(false),
            groups: 8,
        };
        let is_valid = |mask| limits.check(mask).is_ok();
        assert!(is_valid(0x030) && is_valid(0xff0));
        assert!(!is_valid(0x010) && !is_valid(0) && !is_valid(0x018) && !is_valid(0x050));
    }
}
