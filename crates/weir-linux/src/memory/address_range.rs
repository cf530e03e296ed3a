//! A part of a process's address space.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use weir_model::scope::Scope;
use weir_model::units::Bytes;

use super::base_page;

/// A part of a process's address space: `pid:4711:0x7f0000000000-0x7f0010000000`, as in `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRange {
    pub(crate) process: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl AddressRange {
    /// Its size.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.end.saturating_sub(self.start) as u64)
    }

    /// Its first `bytes`, in whole pages; all of it where it has no more.
    #[must_use]
    pub fn first(&self, bytes: Bytes) -> Self {
        let page = base_page() as u64;
        let wanted = usize::try_from(bytes.get() / page * page).unwrap_or(usize::MAX);
        Self {
            end: self.end.min(self.start.saturating_add(wanted)),
            ..self.clone()
        }
    }
}

/// Addresses of a process, in ranges that do not touch each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet(BTreeMap<usize, usize>);

impl RangeSet {
    /// Adds a range. Returns the parts of it that were not there.
    pub fn insert(&mut self, range: &AddressRange) -> Vec<AddressRange> {
        let AddressRange { start, end, .. } = *range;
        // From the last that begins at or before it, to the last that begins before its end or at it.
        let before = self.0.range(..=start).next_back();
        let from = before.map_or(start, |(&start, _)| start);
        let near: Vec<(usize, usize)> = (self.0.range(from..=end.max(from)))
            .map(|(&start, &end)| (start, end))
            .filter(|near| near.1 >= start && near.0 <= end)
            .collect();
        let (mut added, mut at) = (Vec::new(), start);
        let (mut first, mut last) = (start, end);
        for (near_start, near_end) in near {
            if at < near_start {
                added.push((at, near_start));
            }
            at = at.max(near_end);
            (first, last) = (first.min(near_start), last.max(near_end));
            self.0.remove(&near_start);
        }
        if at < end {
            added.push((at, end));
        }
        if first < last {
            self.0.insert(first, last);
        }
        let part = |(start, end)| AddressRange {
            process: range.process,
            start,
            end,
        };
        added.into_iter().map(part).collect()
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write pid:NUMBER:START-END with addresses as in /proc/NUMBER/maps";
        let (scope, range) = text.rsplit_once(':').ok_or(FORM)?;
        let scope = scope.parse().map_err(|_| FORM)?;
        let Scope::Pid(process) = scope else {
            return Err(FORM.into());
        };
        let address = |text: &str| {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            usize::from_str_radix(digits, 16).map_err(|_| format!("`{text}` is no address; {FORM}"))
        };
        let (start, end) = range.split_once('-').ok_or(FORM)?;
        let (start, end) = (address(start)?, address(end)?);
        let page = base_page();
        match start < end && start % page == 0 && end % page == 0 {
            true => Ok(Self {
                process,
                start,
                end,
            }),
            false => Err(format!(
                "{start:#x}-{end:#x} is not one or more whole pages of {page} bytes"
            )),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid:{}:{:#x}-{:#x}", self.process, self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whole_pages_of_a_process_are_a_range_and_nothing_else_is(
            process in 2_u32..1 << 22, first in 0_usize..1 << 30, pages in 0_usize..1 << 20,
            off in prop_oneof![Just((0, 0)), Just((1, 0)), Just((0, 1))],
        ) {
            let page = base_page();
            let (start, end) = (first * page + off.0, (first + pages) * page + off.1);
            let text = format!("pid:{process}:{start:x}-{end:x}");
            let range = AddressRange { process, start, end };
            match text.parse::<AddressRange>() {
                Ok(read) => prop_assert_eq!((&read, off, pages > 0), (&range, (0, 0), true)),
                Err(_) => prop_assert!(off != (0, 0) || pages == 0),
            }
            prop_assert!(pages == 0 || off != (0, 0) || range.to_string().parse() == Ok(range));
        }

        #[test]
        fn a_set_has_each_page_once(ranges in prop::collection::vec((0_usize..60, 1_usize..20), 0..30)) {
            let page = base_page();
            let mut set = RangeSet::default();
            let mut pages = std::collections::BTreeSet::new();
            for (first, long) in ranges {
                let range = AddressRange { process: 7, start: first * page, end: (first + long) * page };
                let added = set.insert(&range);
                let added: Vec<usize> = added.iter().flat_map(|one| (one.start..one.end).step_by(page)).collect();
                let wanted: Vec<usize> = (range.start..range.end).step_by(page).filter(|at| pages.insert(*at)).collect();
                prop_assert_eq!(added, wanted);
                let held: usize = set.0.iter().map(|(start, end)| (end - start) / page).sum();
                prop_assert_eq!(held, pages.len());
            }
        }

        #[test]
        fn any_text_is_a_range_or_refused(text in "\\PC{0,40}|pid:[0-9]{1,11}:(0x)?[0-9a-f]{0,18}-(0x)?[0-9a-f]{0,18}") {
            if let Ok(range) = text.parse::<AddressRange>() {
                prop_assert_eq!(range.to_string().parse(), Ok(range));
            }
        }
    }
}
