//! A part of a process's address space.

use std::fmt;
use std::str::FromStr;

use weir_model::scope::Scope;

use super::base_page;

/// A part of a process's address space: `pid:4711:0x7f0000000000-0x7f0010000000`, as in `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRange {
    pub(super) process: u32,
    pub(super) start: usize,
    pub(super) end: usize,
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
        fn any_text_is_a_range_or_refused(text in "\\PC{0,40}|pid:[0-9]{1,11}:(0x)?[0-9a-f]{0,18}-(0x)?[0-9a-f]{0,18}") {
            if let Ok(range) = text.parse::<AddressRange>() {
                prop_assert_eq!(range.to_string().parse(), Ok(range));
            }
        }
    }
}
