//! The text of a group's values: `L3:0=7fff;1=7fff`, a line for each resource.

use std::collections::BTreeMap;

use weir_model::capability::Unavailable;

weir_model::named! {
    /// A resource that is divided between groups.
    pub enum Resource {
        /// Ways of the last-level cache, a bit each (CAT).
        L3 = "L3",
        /// The same for lines of code, if code and data are separate (CDP).
        L3Code = "L3CODE",
        /// The same for lines of data.
        L3Data = "L3DATA",
        /// Ways of the second-level cache.
        L2 = "L2",
        /// The same for lines of code.
        L2Code = "L2CODE",
        /// The same for lines of data.
        L2Data = "L2DATA",
        /// Memory bandwidth: percent on Intel (MBA), eighths of a GB/s on AMD; MB/s where the file
        /// system was mounted with `mba_MBps`.
        Mb = "MB",
        /// Bandwidth of slow memory, such as CXL, on AMD (SMBA), in eighths of a GB/s.
        Smba = "SMBA",
    }
}

impl Resource {
    /// Whether its values are masks of ways, which are hexadecimal.
    pub const fn is_cache(self) -> bool {
        !matches!(self, Resource::Mb | Resource::Smba)
    }

    /// The line that gives one domain a value.
    pub(crate) fn assign(self, domain: u32, value: u64) -> String {
        if self.is_cache() {
            format!("{self}:{domain}={value:x}")
        } else {
            format!("{self}:{domain}={value}")
        }
    }

    fn value(self, text: &str) -> Option<u64> {
        let radix = if self.is_cache() { 16 } else { 10 };
        u64::from_str_radix(text.trim(), radix).ok()
    }
}

/// The values of one group, by resource and domain. A domain is an instance of the cache, by its
/// `id` in sysfs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schemata(BTreeMap<Resource, BTreeMap<u32, u64>>);

impl Schemata {
    /// Reads the kernel's text. Unknown resources are left out, and resources without a value.
    ///
    /// # Errors
    /// A line of a known resource is not of the form `NAME:DOMAIN=VALUE;...`.
    pub fn parse(text: &str) -> Result<Self, Unavailable> {
        let mut all = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let wrong = || {
                let line: String = line.chars().take(60).collect();
                Unavailable::because(format!("`{line}` is no line of schemata"))
            };
            let (name, values) = line.split_once(':').ok_or_else(wrong)?;
            let resource = Resource::named(name.trim());
            let Some(resource) = resource.filter(|_| values.trim() != "uninitialized") else {
                continue;
            };
            let values = values.split(';').map(|part| {
                let (domain, value) = part.split_once('=')?;
                Some((domain.trim().parse().ok()?, resource.value(value)?))
            });
            let values: Option<BTreeMap<u32, u64>> = values.collect();
            all.0.insert(resource, values.ok_or_else(wrong)?);
        }
        Ok(all)
    }

    /// A resource's value for one domain.
    pub fn get(&self, resource: Resource, domain: u32) -> Option<u64> {
        self.0.get(&resource)?.get(&domain).copied()
    }

    /// Every value.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, u32, u64)> + '_ {
        (self.0.iter()).flat_map(|(&resource, values)| {
            let of_domain = move |(&domain, &value)| (resource, domain, value);
            values.iter().map(of_domain)
        })
    }

    /// The resources that have values.
    pub fn resources(&self) -> impl Iterator<Item = Resource> + '_ {
        self.0.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_of_both_vendors_are_read() {
        // Sapphire Rapids; the kernel pads names and masks.
        let intel = Schemata::parse("    MB:0=100;1=100\n    L3:0=7fff;1=07ff\n").unwrap();
        assert_eq!(intel.get(Resource::L3, 1), Some(0x7ff));
        assert_eq!(intel.get(Resource::Mb, 0), Some(100));
        assert_eq!(intel.get(Resource::L3, 2), None);
        // Genoa: a domain for each core complex, and slow memory.
        let amd = "  SMBA:0=2048;1=2048\n    MB:0=2048;1=64\n    L3:0=ffff;1=000f\n";
        let amd = Schemata::parse(amd).unwrap();
        assert_eq!(amd.get(Resource::Smba, 0), Some(2048));
        assert_eq!(amd.get(Resource::L3, 1), Some(0xf));
        // Code and data are separate.
        let cdp = Schemata::parse("L3DATA:0=fffff\nL3CODE:0=fffff\n").unwrap();
        let resources: Vec<Resource> = cdp.resources().collect();
        assert_eq!(resources, [Resource::L3Code, Resource::L3Data]);
    }

    #[test]
    fn what_is_not_known_is_left_out_and_what_is_wrong_is_reported() {
        let text = "L4:0=ff\nL2:uninitialized\nMB:0=50";
        let found = Schemata::parse(text).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [(Resource::Mb, 0, 50)]);
        for wrong in ["L3", "L3:", "L3:0", "L3:0=xyz", "L3:a=1", "MB:0=ff"] {
            let error = Schemata::parse(wrong).unwrap_err();
            assert!(error.reason.contains(wrong), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_assigned_is_read_back(which in 0_usize..8, domain: u32, value: u64) {
            let resource = Resource::ALL[which];
            let found = Schemata::parse(&resource.assign(domain, value)).unwrap();
            prop_assert_eq!(found.get(resource, domain), Some(value));
        }

        #[test]
        fn garbage_is_reported(text in "(?s)([LMB3:=;0-9a-f\n ]|.){0,80}") {
            if let Err(why) = Schemata::parse(&text) {
                prop_assert!(why.reason.contains("schemata"));
            }
        }
    }
}
