//! Values of other programs' groups, changed for a time.

use weir_model::capability::Unavailable;

use super::{Resctrl, Resource, Setting};

/// Changed values; a drop restores the first values.
#[derive(Debug)]
pub struct TemporaryValues {
    resctrl: Resctrl,
    before: Vec<(String, Resource, u32, u64)>,
}

impl TemporaryValues {
    /// Nothing changed yet.
    pub fn new(resctrl: &Resctrl) -> Self {
        Self {
            resctrl: resctrl.clone(),
            before: Vec::new(),
        }
    }

    /// Changes one value of a group; the empty name is the default group.
    ///
    /// # Errors
    /// As [`Resctrl::set`]; nothing has changed then.
    pub fn set(
        &mut self,
        group: &str,
        resource: Resource,
        domain: u32,
        value: u64,
    ) -> Result<Setting, Unavailable> {
        let found = self.resctrl.value(group, resource, domain)?;
        let setting = self.resctrl.set(group, resource, domain, value)?;
        let known = (self.before.iter())
            .any(|(g, r, d, _)| (g.as_str(), *r, *d) == (group, resource, domain));
        if !known {
            self.before
                .push((group.to_owned(), resource, domain, found));
        }
        Ok(setting)
    }

    /// Restores the earlier values.
    ///
    /// # Errors
    /// A value cannot be written, or is not what it was; the others are restored all the same.
    pub fn restore(mut self) -> Result<(), Unavailable> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), Unavailable> {
        let mut result = Ok(());
        for (group, resource, domain, value) in self.before.drain(..).rev() {
            let put = self.resctrl.set(&group, resource, domain, value);
            result = result.and(put.and_then(|put| {
                if put.applied == value {
                    return Ok(());
                }
                let applied = resource.assign(domain, put.applied);
                let wanted = resource.assign(domain, value);
                Err(Unavailable::because(format!(
                    "{wanted} of group `{group}` became {applied}"
                )))
            }));
        }
        result
    }
}

impl Drop for TemporaryValues {
    fn drop(&mut self) {
        // Callers that need the error call `restore`.
        let _ = self.put_back();
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn whatever_was_there_comes_back(
            changes in prop::collection::vec((any::<bool>(), 0_u32..2, 1_u64..15, any::<bool>()), 0..12),
            amd: bool,
        ) {
            let fake = if amd { Fake::amd() } else { Fake::intel() };
            fake.add_group("others");
            let resctrl = fake.resctrl();
            // The earlier value need not be the default.
            resctrl.set("others", Resource::L3, 1, 0x6).unwrap();
            resctrl.set("", Resource::Mb, 0, 40).unwrap();
            let before = (resctrl.schemata(""), resctrl.schemata("others"));
            let mut held = TemporaryValues::new(&resctrl);
            for (cache, domain, value, own) in changes {
                let group = if own { "others" } else { "" };
                // A mask of adjacent ways, or a bandwidth.
                let (what, value) = match cache {
                    true => (Resource::L3, (1 << value) - 1),
                    false => (Resource::Mb, 10 * value.min(10)),
                };
                let setting = held.set(group, what, domain, value).unwrap();
                prop_assert_eq!(resctrl.value(group, what, domain), Ok(setting.applied));
            }
            drop(held);
            prop_assert_eq!((resctrl.schemata(""), resctrl.schemata("others")), before);
        }
    }

    #[test]
    fn what_the_kernel_refuses_changes_nothing_and_is_told_in_its_words() {
        let fake = Fake::intel();
        let resctrl = fake.resctrl();
        let before = resctrl.schemata("").unwrap();
        let mut held = TemporaryValues::new(&resctrl);
        let error = held.set("", Resource::L3, 0, 0b101).unwrap_err();
        assert!(
            error.reason.contains("has non-consecutive 1-bits"),
            "{error}"
        );
        assert!(held.set("", Resource::L3, 9, 1).is_err());
        assert!(held.set("nobody", Resource::L3, 0, 1).is_err());
        assert!(held.set("", Resource::Smba, 0, 1).is_err());
        assert_eq!(resctrl.schemata("").unwrap(), before);
        // Bandwidths are rounded, and the result says so.
        let setting = held.set("", Resource::Mb, 0, 42).unwrap();
        assert_eq!((setting.requested, setting.applied), (42, 50));
        held.restore().unwrap();
        assert_eq!(resctrl.schemata("").unwrap(), before);
    }
}
